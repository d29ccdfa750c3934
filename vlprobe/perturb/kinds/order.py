"""Word order: edits that use the same words in an order with a different meaning.

The two things in a relation change places: "A man riding a horse" becomes "A horse riding a man". In contrast, ARO's
order task (arXiv 2210.01936) shuffles the words until the text is no longer a sentence. A shuffled text makes no
statement that could be false of a picture, and a language model can distinguish it from the caption without the
picture (SugarCrepe, arXiv 2306.14610). Here, the new order is still a sentence, but a false one.

Only relations that cannot hold both ways are reversed: riding, chasing, carrying; on, under, inside. "Next to",
"in front of" and "behind" (each may face the other, or stand behind it), "with", "holding", "watching" and
"kissing" stay unchanged, and so do places ("on a beach").
"""

from vlprobe.perturb.clauses import subject_phrases
from vlprobe.perturb.concepts import named
from vlprobe.perturb.grammar import (
    POSSESSIVE,
    Phrase,
    Sentence,
    is_verb_ing,
    noun_phrase,
    prepositional_phrase,
)
from vlprobe.perturb.lexicon import PRESENT, SINGULARS, VERBS
from vlprobe.perturb.rewriting import NEGATIVE, Change, changes, is_plain, rewritten
from vlprobe.perturb.tokens import word_list, words

_VERBS = word_list("order.verbs")
_PLACED = words("sit stand lie lay rest")
_RELATIONS = {
    ("on",),
    ("on", "top", "of"),
    ("atop",),
    ("under",),
    ("underneath",),
    ("beneath",),
    ("below",),
    ("above",),
    ("inside",),
}
_THINGS = word_list("order.things")
# "Skis on a person" is true of a person on skis.
_WORN = words("ski skis snow snowboard snowboards phone phones cellphone cellphones cell")
_MORE = words("box suitcase laptop book plate bowl bag basket blanket tree")
_PRONOUNS = POSSESSIVE | word_list("order.pronouns")


def exchanges(sentence: Sentence) -> list[Change]:
    """Exchange the two things in the first relation of a caption; the list is empty if that is not possible."""
    lower = sentence.lower
    if not is_plain(sentence) or (NEGATIVE | _PRONOUNS).intersection(lower):
        return []
    phrases = subject_phrases(sentence)
    if phrases is None or phrases[0].end != phrases[1].end:
        return []
    subject = phrases[0]
    linked = lower[subject.end] in ("is", "are")
    i = subject.end + linked
    start, is_act = _relation_end(sentence, i)
    if not start:
        return []
    landmark = noun_phrase(sentence, start)
    if landmark is None or not _can_exchange(sentence, subject, landmark, is_act):
        return []
    is_finite = linked or (bool(sentence.bits[i] & PRESENT) and not is_verb_ing(sentence, i))
    if is_finite and subject.plural != landmark.plural:
        return []
    location = prepositional_phrase(sentence, landmark.end)  # where the whole scene is
    if sentence.size not in (landmark.end, location and location[1].end):
        return []
    segments = [
        (landmark.start, landmark.end),
        (subject.end, landmark.start),
        (0, subject.end),
        (landmark.end, sentence.size),
    ]
    source, target = (" ".join(lower[phrase.start : phrase.end]) for phrase in (subject, landmark))
    rule = f"word-order:{'verb' if is_act else 'place'}"
    return changes(rewritten(sentence, rule, segments, source, target))


def _relation_end(sentence: Sentence, i: int) -> tuple[int, bool]:
    """Return the index of the token after the relation that starts at `i` (0 for none), and whether it is an action."""
    lower = sentence.lower
    if lower[i] in VERBS:
        base = VERBS[lower[i]].base
        if not (is_verb_ing(sentence, i) or sentence.bits[i] & PRESENT):
            return 0, False
        if base in _VERBS:
            return i + 1, True
        if base not in _PLACED:
            return 0, False
        i += 1
    for size in (3, 1):
        if tuple(lower[i : i + size]) in _RELATIONS:
            return i + size, False
    return 0, False


def _can_exchange(sentence: Sentence, subject: Phrase, landmark: Phrase, is_act: bool) -> bool:
    same_head = SINGULARS.get(subject.head, subject.head) == SINGULARS.get(
        landmark.head, landmark.head
    )
    if same_head or subject.bare or landmark.bare or subject.definite != landmark.definite:
        return False
    if any("of" in sentence.lower[phrase.start : phrase.end] for phrase in (subject, landmark)):
        return False
    if is_act:
        return bool(subject.animate and landmark.animate)
    if _WORN.intersection(sentence.lower[landmark.start : landmark.end]):
        return False
    return _is_thing(subject) and _is_thing(landmark)


def _is_thing(phrase: Phrase) -> bool:
    """Return whether a phrase names a person, an animal, or a thing that others can be on or behind."""
    if phrase.animate or phrase.head in _MORE:
        return True
    return any(_THINGS & concept.groups for concept in named(phrase.head))
