"""Paraphrases that keep the word order but change the clause, for example with "there is" or a relative clause."""

from collections.abc import Sequence

from vlprobe.perturb.grammar import (
    LOCATIVE,
    RESULT,
    Phrase,
    Sentence,
    has_verb,
    is_verb_ing,
    no_finite_verb,
    noun_phrase,
    prepositional_phrase,
)
from vlprobe.perturb.lexicon import (
    ADVERB,
    BASE,
    DETERMINER,
    HUMAN,
    ING,
    NOUN,
    NUMBER,
    PREPOSITION,
    PRESENT,
    VERBS,
)
from vlprobe.perturb.rewriting import Paraphrase, Segment, exchanged, rewritten
from vlprobe.perturb.tokens import takes_an, word_list, words

# Verbs of a state: "a bowl containing fruit" never becomes "a bowl is containing fruit".
STATES = word_list("clauses.states")
_WHOLES = word_list("clauses.wholes")
_IDIOMS = {("stand", "out"), ("look", "like")}  # verbs with another meaning in another tense
_PARTS = word_list("clauses.parts")
_NEVER = words("be have get do go come see say")


def subject_phrases(sentence: Sentence) -> tuple[Phrase, Phrase] | None:
    """Parse the subject of a caption. Return None if it is not understood.

    Returns:
        The first noun phrase, and the whole subject: the first noun phrase with the one joined to it by "and", if any.
    """
    first_phrase = noun_phrase(sentence, 0)
    if first_phrase is None or (
        first_phrase.head in _PARTS and "of" in sentence.lower[: first_phrase.end]
    ):
        return None  # "The bottom of a plane flying": the verb may belong to the plane
    subject = first_phrase
    if sentence.lower[first_phrase.end] == "and":
        second = noun_phrase(sentence, first_phrase.end + 1)
        if second is None or second.bare != first_phrase.bare:
            return None
        final = sentence.bits[second.end - 2 : second.end]
        if final[1] & BASE and final[0] & NOUN:
            return None  # "A zebra and a giraffe stand in a field": the last word may be a verb
        subject = first_phrase._replace(
            end=second.end,
            plural=True,
            members=True,
            animate=first_phrase.animate & second.animate,
            head="",
            definite=first_phrase.definite or second.definite,
        )
    return first_phrase, subject


def restatements(sentence: Sentence, first_phrase: Phrase, subject: Phrase) -> list[Paraphrase]:
    """Return paraphrases that introduce the subject, or link it to the rest, in another way.

    Args:
        sentence: The caption.
        first_phrase: First noun phrase from `subject_phrases`.
        subject: Whole subject from `subject_phrases`.
    """
    return [paraphrase for paraphrase in _restated(sentence, first_phrase, subject) if paraphrase]


def _restated(sentence: Sentence, first_phrase: Phrase, subject: Phrase) -> list[Paraphrase | None]:
    i = subject.end
    word = sentence.lower[i]
    if subject.bare:
        return [_with_article(sentence, subject)]
    if i == sentence.size:
        return [_with_there_is(sentence, first_phrase, [(0, i)])]
    if word in ("is", "are"):
        return _after_copula(sentence, first_phrase, subject)
    if is_verb_ing(sentence, i):
        return _after_participle(sentence, first_phrase, subject)
    if word in RESULT and _takes_result(sentence, i):
        return _after_result(sentence, first_phrase, subject)
    if word == "has":
        return [_has_to_with(sentence, subject)]
    bits = sentence.bits[i]
    if (bits & PRESENT and not subject.plural) or (bits & BASE and subject.members):
        return _after_present(sentence, subject)
    if sentence.bits[i] & PREPOSITION or word in ("next", "that", "who", "which"):
        return _after_preposition(sentence, first_phrase, subject)
    return []


def be(phrase: Phrase) -> str:
    """Return "is" or "are", whichever agrees with a noun phrase as the subject."""
    return (
        "are" if phrase.plural or (phrase.members and phrase.head in ("bunch", "number")) else "is"
    )


def _is_state(sentence: Sentence, subject: Phrase, i: int) -> bool:
    """Return whether a verb describes a state, so that "is ...ing" would be wrong, as in "a plate holds food"."""
    verb = VERBS[sentence.lower[i]].base
    return verb in STATES or (
        not subject.animate and verb in ("hold", "carry", "make", "use", "wear")
    )


def _with_there_is(
    sentence: Sentence,
    first_phrase: Phrase,
    segments: Sequence[Segment],
) -> Paraphrase | None:
    if first_phrase.definite or sentence.lower[0] in ("all", "both", "different"):
        return None
    new = f"there {'are' if first_phrase.plural else 'is'}"
    return rewritten(sentence, "there-is", [new, *segments], "", new)


def _with_copula(sentence: Sentence, subject: Phrase, i: int) -> Paraphrase | None:
    return exchanged(sentence, "copula-in", i, i, be(subject))


def _relative(sentence: Sentence, subject: Phrase, i: int) -> Paraphrase | None:
    if subject.head in ("couple", "family", "team", "crowd", "crew") and not subject.members:
        return None
    pronoun = "who" if subject.animate == HUMAN else "that"
    new = f"{pronoun} {'are' if subject.members else 'is'}"
    return exchanged(sentence, "relative", i, i, new)


def _takes_result(sentence: Sentence, i: int) -> bool:
    return bool(sentence.bits[i + 1] & (PREPOSITION | ADVERB)) or sentence.lower[i + 1] in (
        "",
        "next",
    )


def _after_result(
    sentence: Sentence,
    first_phrase: Phrase,
    subject: Phrase,
) -> list[Paraphrase | None]:
    if not no_finite_verb(sentence, subject.end + 1):
        return []
    return [
        _with_there_is(sentence, first_phrase, [(0, sentence.size)]),
        _with_copula(sentence, subject, subject.end),
        _relative(sentence, subject, subject.end),
    ]


def _has_to_with(sentence: Sentence, subject: Phrase) -> Paraphrase | None:
    i = subject.end
    is_counted = sentence.bits[i + 1] & (DETERMINER | NUMBER)
    if (
        subject.animate
        or not is_counted
        or has_verb(sentence, i + 1)
        or not no_finite_verb(sentence, i + 1)
    ):
        return None
    segments = [(0, i), "with", (i + 1, sentence.size)]
    return rewritten(sentence, "has-to-with", segments, "has", "with")


def _present(sentence: Sentence, subject: Phrase, i: int) -> str | None:
    verb, lower = VERBS[sentence.lower[i]], sentence.lower
    goes_on = any(  # has another participle later, as in "standing in the water and drinking"
        sentence.bits[index] & ING
        and ("and" in lower[index - 2 : index] or lower[index - 1] == ",")
        for index in range(i + 1, sentence.size)
    )
    if verb.base in _NEVER or goes_on or (verb.base, lower[i + 1]) in _IDIOMS:
        return None
    return verb.base if subject.plural else verb.present


def _after_participle(
    sentence: Sentence,
    first_phrase: Phrase,
    subject: Phrase,
) -> list[Paraphrase | None]:
    i = subject.end
    if not no_finite_verb(sentence, i + 1):
        return []
    out = [_with_there_is(sentence, first_phrase, [(0, sentence.size)])]
    if not _is_state(sentence, subject, i):
        out += [_with_copula(sentence, subject, i), _relative(sentence, subject, i)]
    present = _present(sentence, subject, i)
    if present:
        out.append(exchanged(sentence, "simple-present", i, i + 1, present))
    return out


def _after_copula(
    sentence: Sentence,
    first_phrase: Phrase,
    subject: Phrase,
) -> list[Paraphrase | None]:
    i = subject.end + 1
    is_ing = is_verb_ing(sentence, i)
    is_result = sentence.lower[i] in RESULT and _takes_result(sentence, i)
    location = prepositional_phrase(sentence, i)
    if not (is_ing or is_result or location) or not no_finite_verb(sentence, i + 1):
        return []
    out = [exchanged(sentence, "copula-out", subject.end, i, "")]
    if not subject.definite:
        out.append(_with_there_is(sentence, first_phrase, [(0, subject.end), (i, sentence.size)]))
    present = _present(sentence, subject, i) if is_ing else None
    if present and VERBS[present].base not in STATES:
        source = " ".join(sentence.reading.words[subject.end : i + 1])
        agrees = sentence.reading.words[subject.end] == be(subject)
        new = present if agrees else VERBS[present].base
        segments = [(0, subject.end), new, (i + 1, sentence.size)]
        out.append(rewritten(sentence, "simple-present", segments, source, present))
    return out


def _after_present(sentence: Sentence, subject: Phrase) -> list[Paraphrase | None]:
    i = subject.end
    verb = VERBS[sentence.lower[i]]
    if (verb.base, sentence.lower[i + 1]) in _IDIOMS:
        return []
    if (
        _is_state(sentence, subject, i)
        or verb.base in _NEVER
        or not no_finite_verb(sentence, i + 1)
    ):
        return []
    understood = sentence.bits[i + 1] & (PREPOSITION | DETERMINER | NUMBER | ADVERB)
    if not understood and sentence.lower[i + 1] not in ("", "next"):
        return []
    new = f"{'is' if sentence.bits[i] & PRESENT else 'are'} {verb.ing}"
    return [
        exchanged(sentence, "progressive", i, i + 1, new),
        exchanged(sentence, "participle", i, i + 1, verb.ing),
    ]


def _after_preposition(
    sentence: Sentence,
    first_phrase: Phrase,
    subject: Phrase,
) -> list[Paraphrase | None]:
    i, size = subject.end, sentence.size
    if sentence.lower[i] in ("to", "for", "as", "like", "about", "from", "without", "of", "by"):
        return []
    if not no_finite_verb(sentence, i):
        return []
    out = [_with_there_is(sentence, first_phrase, [(0, size)])]
    location = prepositional_phrase(sentence, i)
    if (
        location
        and not has_verb(sentence, i)
        and not {"with", "and", ","}.intersection(sentence.lower[i:])
    ):
        out += [_with_copula(sentence, subject, i), _relative(sentence, subject, i)]
    # "with" introduces a part of the subject, not a separate thing next to it
    of_whole = subject.head in _WHOLES and {"of", "and"}.isdisjoint(sentence.lower[:i])
    if sentence.lower[i] == "with" and of_whole and not has_verb(sentence, i):
        phrase = noun_phrase(sentence, i + 1)
        if phrase and not phrase.bare and not phrase.animate:
            that = f"that {'have' if subject.members else 'has'}"
            for rule, new in (
                ("with-to-has", "have" if subject.plural else "has"),
                ("relative-has", that),
            ):
                segments = [(0, i), new, (i + 1, size)]
                out.append(rewritten(sentence, rule, segments, "with", new))
    if location and subject.animate and not location[1].animate and not location[1].bare:
        verb = location[1].end  # "A man in a suit riding a bus"
        if is_verb_ing(sentence, verb) and VERBS[sentence.lower[verb]].base not in STATES:
            out.append(_with_copula(sentence, subject, verb))
    return out


def without_there(sentence: Sentence) -> list[Paraphrase]:
    """Return the paraphrase that drops "There is" at the beginning of the caption; empty if the rule does not fit."""
    if sentence.lower[1] not in ("is", "are") or "there" in sentence.lower[1:]:
        return []
    phrase = noun_phrase(sentence, 2)
    if phrase is None or phrase.definite:
        return []
    done = exchanged(sentence, "there-out", 0, 2, "")
    return [done] if done else []


def _with_article(sentence: Sentence, subject: Phrase) -> Paraphrase | None:
    i = subject.end
    if not (
        is_verb_ing(sentence, i) or sentence.lower[i] in RESULT or sentence.lower[i] in LOCATIVE
    ):
        return None
    if not no_finite_verb(sentence, i + 1):
        return None
    article = "an" if takes_an(sentence.reading.words[0]) else "a"
    return exchanged(sentence, "article-in", 0, 0, article)
