"""Paraphrases that change the word order: passive, inversion, or a place or "while" phrase moved to the beginning."""

from vlprobe.perturb.clauses import STATES, be
from vlprobe.perturb.grammar import (
    POSSESSIVE,
    RESULT,
    Phrase,
    Sentence,
    is_verb_ing,
    no_finite_verb,
    noun_phrase,
    prepositional_phrase,
)
from vlprobe.perturb.lexicon import (
    ADJECTIVE,
    ADVERB,
    BASE,
    DETERMINER,
    NOUN,
    NUMBER,
    PREPOSITION,
    PRESENT,
    PRONOUN,
    VERBS,
)
from vlprobe.perturb.rewriting import Paraphrase, rewritten
from vlprobe.perturb.tokens import word_list, words

_PASSIVE = word_list("moves.passive")
_PATHS = words("down up over across through along past from into off towards toward around")
_POSTURE = words("sit stand lie lay rest hang perch float park lean sleep graze")
_PLACED = words("parked perched seated docked displayed stacked mounted")
_SCENES = word_list("moves.scenes")
_LINKING = words("and of to from as that who while with")
_OF_THE_OBJECT = words("sky")  # the place of a verb's object, and rarely of its subject
_TOWARDS = word_list("moves.towards")


def moves(sentence: Sentence, subject: Phrase) -> list[Paraphrase]:
    """Return paraphrases that put the phrases of a caption into another order.

    Args:
        sentence: The caption.
        subject: Its subject, from `clauses.subject_phrases`.
    """
    if subject.bare or POSSESSIVE.intersection(sentence.lower) or "," in sentence.lower:
        return []
    i = subject.end
    linked = sentence.lower[i] in ("is", "are")
    verb = i + linked
    ing = is_verb_ing(sentence, verb)
    bits = sentence.bits[verb]
    is_present = (
        not linked
        and not ing
        and ((bits & PRESENT and not subject.plural) or (bits & BASE and subject.members))
    )
    out = [_inversion(sentence, subject, verb, bool(is_present))]
    if (ing or is_present) and no_finite_verb(sentence, verb + 1):
        out += [
            _passive(sentence, subject, verb, linked),
            _scene_first(sentence, subject, verb),
            _while_first(sentence, subject, verb),
        ]
    return [paraphrase for paraphrase in out if paraphrase]


def _passive(sentence: Sentence, subject: Phrase, verb: int, linked: bool) -> Paraphrase | None:
    forms = VERBS[sentence.lower[verb]]
    if forms.base not in _PASSIVE or not subject.animate or sentence.bits[verb + 1] & PREPOSITION:
        return None
    phrase = noun_phrase(sentence, verb + 1)
    if (
        phrase is None
        or phrase.bare
        or sentence.bits[phrase.start] & PRONOUN
        or phrase.end - phrase.start > 6
    ):
        return None
    end = sentence.size
    if (
        phrase.end < end
        and _is_scene(sentence, phrase.end)
        and sentence.lower[end - 1] not in _OF_THE_OBJECT
    ):
        end = phrase.end
    elif phrase.end < end and (forms.base == "wear" or not _is_circumstance(sentence, phrase.end)):
        return None
    being = f"{be(phrase)} being" if linked else "being"
    if not is_verb_ing(sentence, verb):
        being = be(phrase)
    segments = [
        (phrase.start, phrase.end),
        f"{being} {forms.participle}",
        (phrase.end, end),
        "by",
        (0, subject.end),
    ]
    source = " ".join(sentence.reading.words[subject.end : verb + 1])
    return rewritten(
        sentence,
        "passive",
        [*segments, (end, sentence.size)],
        source,
        f"{being} {forms.participle} by",
    )


def _is_circumstance(sentence: Sentence, i: int) -> bool:
    """Return whether the rest of a caption is one phrase, such as a place, that can also follow the participle."""
    location = prepositional_phrase(sentence, i)
    phrase = (
        location[1]
        if location
        else noun_phrase(sentence, i + 1)
        if sentence.lower[i] in _PATHS
        else None
    )
    if phrase is None or phrase.end != sentence.size or phrase.animate or phrase.bare:
        return False
    return not {"another", "other", "and"}.intersection(sentence.lower[i:])


def _is_scene(sentence: Sentence, i: int) -> bool:
    """Return whether the rest of a caption is one phrase that says where the whole scene is."""
    if sentence.lower[i] not in ("in", "on", "at") or sentence.lower[i + 1] not in (
        "a",
        "an",
        "the",
    ):
        return False
    phrase = noun_phrase(sentence, i + 1, of=False)
    return phrase is not None and phrase.end == sentence.size and phrase.head in _SCENES


def _inversion(
    sentence: Sentence,
    subject: Phrase,
    verb: int,
    is_present: bool,
) -> Paraphrase | None:
    if subject.definite or subject.head == "":
        return None
    linked = verb > subject.end
    word = sentence.lower[verb]
    if is_present:
        if VERBS[word].base not in _POSTURE - {"lay", "graze"}:
            return None
        return _if_located(
            sentence,
            verb + 1,
            [(verb + 1, sentence.size), (verb, verb + 1), (0, subject.end)],
            "",
        )
    is_posture = is_verb_ing(sentence, verb) and VERBS[word].base in _POSTURE
    if is_posture or word in _PLACED:
        source = sentence.reading.words[subject.end] if linked else ""
        return _if_located(
            sentence,
            verb + 1,
            [(verb, sentence.size), be(subject), (0, subject.end)],
            source,
        )
    if linked or (subject.animate and word in ("in", "on", "at") and not _is_scene(sentence, verb)):
        return None  # "In a suit is a man"
    return _if_located(sentence, verb, [(verb, sentence.size), be(subject), (0, subject.end)], "")


def _if_located(sentence: Sentence, i: int, segments: list, source: str) -> Paraphrase | None:
    location = prepositional_phrase(sentence, i)
    if (
        location is None
        or location[1].end != sentence.size
        or not sentence.bits[location[0]] & (DETERMINER | NUMBER)
    ):
        return None
    return rewritten(sentence, "inversion", segments, source, "")


def _finite(sentence: Sentence, subject: Phrase, verb: int) -> list[str | tuple[int, int]]:
    """Return the segments that begin a full sentence: the subject, and "is" or "are" if the verb is an -ing form."""
    if verb > subject.end or not is_verb_ing(sentence, verb):
        return [(0, verb)]
    return [(0, subject.end), be(subject)]


def _scene_first(sentence: Sentence, subject: Phrase, verb: int) -> Paraphrase | None:
    base = VERBS[sentence.lower[verb]].base
    if base in _TOWARDS or base in STATES:
        return None
    for i in range(verb + 1, sentence.size - 2):
        if sentence.lower[i] in ("in", "on", "at") and _is_scene(sentence, i):
            break
    else:
        return None
    previous = sentence.bits[i - 1]
    middle = sentence.lower[verb + 1 : i]
    intransitive = all(
        bits & (ADVERB | ADJECTIVE) and not bits & NOUN for bits in sentence.bits[verb + 1 : i]
    )
    if sentence.lower[sentence.size - 1] in _OF_THE_OBJECT and not intransitive:
        return None  # "A girl flying a kite in the sky": the kite is there, and she is not
    if previous & PREPOSITION or _LINKING.intersection(middle):
        return None
    if any(
        is_verb_ing(sentence, index) or sentence.lower[index] in RESULT
        for index in range(verb + 1, i)
    ):
        return None
    segments = [(i, sentence.size), ",", *_finite(sentence, subject, verb), (verb, i)]
    return rewritten(sentence, "scene-first", segments)


def _while_first(sentence: Sentence, subject: Phrase, verb: int) -> Paraphrase | None:
    if sentence.lower.count("while") != 1:
        return None
    i = sentence.lower.index("while")
    if (
        i <= verb + 1
        or not is_verb_ing(sentence, i + 1)
        or VERBS[sentence.lower[verb]].base in STATES
    ):
        return None
    if any(bits & PRONOUN for bits in sentence.bits[verb:]) or "and" in sentence.lower[i:]:
        return None
    segments = [(i, sentence.size), ",", *_finite(sentence, subject, verb), (verb, i)]
    return rewritten(sentence, "while-first", segments)
