"""Paraphrases that keep the order of the words: there is, copula, relative clause, tense, has and with, article."""

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
from vlprobe.perturb.lexicon import ADVERB, ANIMAL, BASE, DETERMINER, HUMAN, NUMBER, PARTICIPLE, PREPOSITION, PRESENT, VERBS
from vlprobe.perturb.paraphrase import Paraphrase
from vlprobe.perturb.rewriting import rewritten
from vlprobe.perturb.tokens import takes_an

# Verbs of a state: "a bowl containing fruit" never becomes "a bowl is containing fruit".
STATES = frozenset("contain feature include show display overlook depict have need want like seem appear reflect cover fill "
                   "surround line top be say know think see belong consist remain connect".split())  # fmt: skip
_NEVER = frozenset("be have get do go come see say".split())


def subject(sentence: Sentence) -> tuple[Phrase, Phrase] | None:
    """The first noun phrase of the caption, and that with all phrases joined to it by "and" as one."""
    first = noun_phrase(sentence, 0)
    if first is None:
        return None
    whole = first
    if sentence.word(first.end) == "and":
        second = noun_phrase(sentence, first.end + 1)
        if second is None or second.bare != first.bare:
            return None
        whole = first._replace(
            end=second.end, plural=True, members=True, animate=first.animate & second.animate, head="",
            definite=first.definite or second.definite,
        )  # fmt: skip
    return first, whole


def restatements(sentence: Sentence) -> list[Paraphrase]:
    """The caption with its subject introduced or linked to its verb in another way."""
    if sentence.word(0) == "there":
        return _without_there(sentence)
    found = subject(sentence)
    if found is None:
        return []
    first, who = found
    out: list[Paraphrase | None] = []
    if who.bare:
        out.append(_with_article(sentence, who))
        return [one for one in out if one]
    at = who.end
    if at == sentence.size:
        if not who.definite:
            out.append(_there(sentence, first, [(0, at)]))
    elif sentence.word(at) in ("is", "are"):
        out += _after_copula(sentence, first, who)
    elif is_verb_ing(sentence, at):
        out += _after_participle(sentence, first, who)
    elif sentence.word(at) in RESULT and _takes_result(sentence, at):
        if no_finite_verb(sentence, at + 1):
            out += [_there(sentence, first, [(0, sentence.size)]), _with_copula(sentence, who, at), _relative(sentence, who, at)]
    elif _is_present(sentence, who):
        out += _after_present(sentence, who)
    elif sentence.tags(at) & PREPOSITION or sentence.word(at) in ("next", "that", "who", "which"):
        out += _after_preposition(sentence, first, who)
    elif sentence.word(at) == "has" and sentence.tags(at + 1) & (DETERMINER | NUMBER) and who.animate == 0:
        if no_finite_verb(sentence, at + 1):
            out.append(rewritten(sentence, "has-to-with", [(0, at), "with", (at + 1, sentence.size)], "has", "with"))
    return [one for one in out if one]


def be(phrase: Phrase) -> str:
    """The form of "be" that agrees with the phrase."""
    return "are" if phrase.plural else "is"


def _there(sentence: Sentence, first: Phrase, rest: list[str | tuple[int, int]]) -> Paraphrase | None:
    if first.definite or sentence.word(0) in ("all", "both", "different"):
        return None
    new = f"there {be(first)}"
    return rewritten(sentence, "there-is", [new, *rest], "", new)


def _with_copula(sentence: Sentence, who: Phrase, at: int) -> Paraphrase | None:
    return rewritten(sentence, "copula-in", [(0, at), be(who), (at, sentence.size)], "", be(who))


def _relative(sentence: Sentence, who: Phrase, at: int) -> Paraphrase | None:
    pronoun = "who" if who.animate == HUMAN else "that"
    new = f"{pronoun} {'are' if who.members else 'is'}"
    return rewritten(sentence, "relative", [(0, at), new, (at, sentence.size)], "", new)


def _takes_result(sentence: Sentence, at: int) -> bool:
    return bool(sentence.tags(at + 1) & (PREPOSITION | ADVERB)) or sentence.word(at + 1) in ("", "next")


def _is_present(sentence: Sentence, who: Phrase) -> bool:
    bits = sentence.tags(who.end)
    return bool(bits & PRESENT and not who.plural) or bool(bits & BASE and who.members)


def _present(sentence: Sentence, who: Phrase, at: int) -> str | None:
    verb = VERBS[sentence.word(at)]
    if verb.base in _NEVER:
        return None
    return verb.base if who.plural else verb.present


def _after_participle(sentence: Sentence, first: Phrase, who: Phrase) -> list[Paraphrase | None]:
    at = who.end
    if not no_finite_verb(sentence, at + 1):
        return []
    out = [_there(sentence, first, [(0, sentence.size)])]
    verb = VERBS[sentence.word(at)].base
    if verb not in STATES:
        out += [_with_copula(sentence, who, at), _relative(sentence, who, at)]
    present = _present(sentence, who, at)
    if present:
        ing = sentence.reading.words[at]
        out.append(rewritten(sentence, "simple-present", [(0, at), present, (at + 1, sentence.size)], ing, present))
    return out


def _after_copula(sentence: Sentence, first: Phrase, who: Phrase) -> list[Paraphrase | None]:
    at = who.end + 1
    is_ing = is_verb_ing(sentence, at)
    is_result = sentence.word(at) in RESULT and _takes_result(sentence, at)
    place = prepositional_phrase(sentence, at)
    if not (is_ing or is_result or place) or not no_finite_verb(sentence, at + 1):
        return []
    copula = sentence.reading.words[who.end]
    out = [rewritten(sentence, "copula-out", [(0, who.end), (at, sentence.size)], copula, "")]
    if not who.definite:
        out.append(_there(sentence, first, [(0, who.end), (at, sentence.size)]))
    present = _present(sentence, who, at) if is_ing else None
    if present and VERBS[present].base not in STATES:
        source = f"{copula} {sentence.reading.words[at]}"
        parts = [(0, who.end), present if copula == be(who) else VERBS[present].base, (at + 1, sentence.size)]
        out.append(rewritten(sentence, "simple-present", parts, source, present))
    return out


def _after_present(sentence: Sentence, who: Phrase) -> list[Paraphrase | None]:
    at = who.end
    verb = VERBS[sentence.word(at)]
    following = sentence.tags(at + 1)
    if verb.base in STATES or verb.base in _NEVER or not no_finite_verb(sentence, at + 1):
        return []
    if at + 1 < sentence.size and not following & (PREPOSITION | DETERMINER | NUMBER | ADVERB) and sentence.word(at + 1) != "next":
        return []
    source = sentence.reading.words[at]
    new = f"{'is' if sentence.tags(at) & PRESENT else 'are'} {verb.ing}"
    return [
        rewritten(sentence, "progressive", [(0, at), new, (at + 1, sentence.size)], source, new),
        rewritten(sentence, "participle", [(0, at), verb.ing, (at + 1, sentence.size)], source, verb.ing),
    ]


def _after_preposition(sentence: Sentence, first: Phrase, who: Phrase) -> list[Paraphrase | None]:
    at, size = who.end, sentence.size
    if sentence.word(at) in ("to", "for", "as", "like", "about", "from", "without", "of", "by"):
        return []
    if not no_finite_verb(sentence, at + (sentence.word(at) in ("that", "who", "which")) * 0):
        return []
    out = [_there(sentence, first, [(0, size)])]
    place = prepositional_phrase(sentence, at)
    if place and not has_verb(sentence, at) and "with" not in sentence.lower[at:] and "," not in sentence.lower:
        out += [_with_copula(sentence, who, at), _relative(sentence, who, at)]
    if sentence.word(at) == "with" and not who.animate and not has_verb(sentence, at):
        what = noun_phrase(sentence, at + 1)
        if what and not what.bare and not what.animate:
            has = "have" if who.plural else "has"
            that = "have" if who.members else "has"
            out.append(rewritten(sentence, "with-to-has", [(0, at), has, (at + 1, size)], "with", has))
            out.append(rewritten(sentence, "relative-has", [(0, at), f"that {that}", (at + 1, size)], "with", f"that {that}"))
    out += _after_place(sentence, who, place)
    return out


def _after_place(sentence: Sentence, who: Phrase, place: tuple[int, Phrase] | None) -> list[Paraphrase | None]:
    """For a person or an animal somewhere, doing something: "A man in a suit riding a bus" with a finite verb."""
    if place is None or not who.animate or place[1].animate or place[1].bare:
        return []
    at = place[1].end
    if not is_verb_ing(sentence, at) or VERBS[sentence.word(at)].base in STATES:
        return []
    return [_with_copula(sentence, who, at)]


def _without_there(sentence: Sentence) -> list[Paraphrase]:
    if sentence.word(1) not in ("is", "are") or "there" in sentence.lower[1:]:
        return []
    what = noun_phrase(sentence, 2)
    if what is None or what.definite:
        return []
    source = " ".join(sentence.reading.words[:2])
    done = rewritten(sentence, "there-out", [(2, sentence.size)], source, "")
    return [done] if done else []


def _with_article(sentence: Sentence, who: Phrase) -> Paraphrase | None:
    at = who.end
    if not (is_verb_ing(sentence, at) or sentence.word(at) in RESULT or sentence.word(at) in LOCATIVE):
        return None
    if not no_finite_verb(sentence, at + 1):
        return None
    article = "an" if takes_an(sentence.reading.words[0]) else "a"
    return rewritten(sentence, "article-in", [article, (0, sentence.size)], "", article)
