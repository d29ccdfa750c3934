"""Negation: the edited caption says that something in the original is absent or untrue.

Five constructions are used, and each contradicts the caption by its grammar alone: "is not", "not riding",
"does not ride", "There is no man ...", "without". If several fit, one is drawn. Left unchanged are captions that
contain a negation, subjects with a quantifier before "not" ("Two men are not ..." may be true of two others), and
words whose sense changes under a negation ("some", "both", "still").

Source of the idea: NegBench (arXiv 2501.09425), whose captions state that a thing is absent. NegBench's captions are
templates that a language model rewords, while the rules here are our own.
"""

from vlprobe.perturb.clauses import STATES, subject_phrases
from vlprobe.perturb.grammar import (
    POSSESSIVE,
    RESULT,
    Phrase,
    Sentence,
    is_verb_ing,
    no_finite_verb,
    noun_phrase,
)
from vlprobe.perturb.lexicon import (
    ADVERB,
    BASE,
    DETERMINER,
    NOUN,
    NUMBER,
    PREPOSITION,
    PRESENT,
    VERBS,
)
from vlprobe.perturb.rewriting import (
    NEGATIVE,
    UNDER_POLARITY,
    Change,
    changes,
    exchanged,
    is_plain,
    rewritten,
)
from vlprobe.perturb.tokens import words

_QUANTITIES = words("few couple lot lots pair bunch number variety all each every another other")
_NOT_HAD = POSSESSIVE | words("each another other one his her its their no different all the")


def negations(sentence: Sentence) -> list[Change]:
    """Return the negated captions that the rules can make from a caption."""
    lower = sentence.lower
    if not is_plain(sentence) or (NEGATIVE | UNDER_POLARITY).intersection(lower):
        return []
    if lower[0] == "there":
        return _there_is_no(sentence)
    phrases = subject_phrases(sentence)
    if phrases is None:
        return []
    first_phrase, subject = phrases
    return [
        *_no_such(sentence, first_phrase, subject),
        *_not(sentence, subject),
        *_does_not(sentence, subject),
        *_without(sentence),
    ]


def _there_is_no(sentence: Sentence) -> list[Change]:
    lower = sentence.lower
    if lower[1] not in ("is", "are") or not no_finite_verb(sentence, 2):
        return []
    phrase = noun_phrase(sentence, 2)
    if phrase is None or not _is_counted(sentence, phrase):
        return []
    return changes(exchanged(sentence, "negation:no", 2, 3, "no"))


def _is_counted(sentence: Sentence, phrase: Phrase) -> bool:
    """Return whether a phrase begins with exactly one article or number, so that "no" can replace it."""
    i = phrase.start
    opens = sentence.lower[i] in ("a", "an", "several", "many") or bool(sentence.bits[i] & NUMBER)
    following = sentence.lower[i + 1]
    return (
        opens
        and not phrase.definite
        and following not in _QUANTITIES | {"very", "pretty"}
        and following != "of"
        and not sentence.bits[i + 1] & NUMBER
    )


def _no_such(sentence: Sentence, first_phrase: Phrase, subject: Phrase) -> list[Change]:
    """Make "There is no man riding a horse" or, if the subject is followed by "is", "No man is riding a horse"."""
    if subject.end != first_phrase.end or not _is_counted(sentence, first_phrase):
        return []
    i, lower = subject.end, sentence.lower
    if lower[i] in ("is", "are"):
        if not no_finite_verb(sentence, i + 1):
            return []
        return changes(exchanged(sentence, "negation:no", 0, 1, "no"))
    goes_on = (
        i == sentence.size
        or is_verb_ing(sentence, i)
        or lower[i] in RESULT
        or bool(sentence.bits[i] & PREPOSITION)
    )
    if not goes_on or not no_finite_verb(sentence, i):
        return []
    new = f"there {'are' if first_phrase.plural else 'is'} no"
    return changes(exchanged(sentence, "negation:there-is-no", 0, 1, new))


def _not(sentence: Sentence, subject: Phrase) -> list[Change]:
    """Insert "not", as in "is not riding" or "not riding"."""
    i, lower = subject.end, sentence.lower
    if subject.bare or (subject.plural and not subject.definite):
        return []
    if lower[i] in ("is", "are"):
        if not no_finite_verb(sentence, i + 1) or lower[i + 1] in ("just", "now"):
            return []
        segments = [(0, i + 1), "not", (i + 1, sentence.size)]
        new = f"{lower[i]} not"
        return changes(rewritten(sentence, "negation:is-not", segments, lower[i], new))
    participle = is_verb_ing(sentence, i) or (
        lower[i] in RESULT and bool(sentence.bits[i + 1] & (PREPOSITION | ADVERB))
    )
    if not participle or not no_finite_verb(sentence, i + 1):
        return []
    return changes(
        exchanged(sentence, "negation:not", i, i + 1, f"not {sentence.reading.words[i]}")
    )


def _does_not(sentence: Sentence, subject: Phrase) -> list[Change]:
    """Negate a verb in the present tense, as in "does not ride" or "does not have"."""
    i, lower = subject.end, sentence.lower
    if subject.bare or (subject.plural and not subject.definite):
        return []
    bits = sentence.bits[i]
    if lower[i] == "has":
        if not sentence.bits[i + 1] & (DETERMINER | NUMBER):
            return []
        base = "have"
    else:
        singular = bits & PRESENT and not bits & NOUN and not subject.members
        if not singular or not no_finite_verb(sentence, i + 1):
            return []
        base = VERBS[lower[i]].base
        if base in STATES - {"display", "overlook", "contain", "include", "show"}:
            return []
    return changes(exchanged(sentence, "negation:does-not", i, i + 1, f"does not {base}"))


def _without(sentence: Sentence) -> list[Change]:
    """Replace "with" by "without", as in "a pizza without cheese"."""
    lower = sentence.lower
    if lower.count("with") != 1:
        return []
    i = lower.index("with")
    previous = sentence.bits[i - 1]
    if i == 0 or not previous & NOUN or previous & BASE or lower[i + 1] in _NOT_HAD:
        return []
    phrase = noun_phrase(sentence, i + 1)
    if phrase is None or phrase.bare or phrase.definite:
        return []
    if "and" in lower[i:] or is_verb_ing(sentence, phrase.end):
        return []
    segments = [(0, i), "without", (i + 1, sentence.size)]
    return changes(rewritten(sentence, "negation:without", segments, "with", "without"))
