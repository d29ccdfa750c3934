"""Captions in which a thing is exchanged for another or deleted, and nothing else is changed, for RoCOCO's galleries.

The inserted word has the number and case of the removed word, and a directly preceding "a" or "an" is adapted, so that
neither style nor grammar reveals the altered caption. The word is neither mentioned in the image's captions nor one
that may be true in addition to them. The draw for a caption depends only on the seed, the item and the caption's
index. Source: RoCOCO, sections 3.2, 4.3.2 and 4.3.4.
"""

import functools
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from vlprobe.errors import InvalidInput, NotFound
from vlprobe.perturb import lexicon
from vlprobe.perturb.compounds import extend_nouns
from vlprobe.perturb.concepts import (
    CONCEPTS,
    LISTS,
    TRUE_BESIDE,
    Concept,
    Form,
    Noun,
    find,
    mentions,
    named,
)
from vlprobe.perturb.draws import draw
from vlprobe.perturb.influence import Scores, elected, without
from vlprobe.perturb.tokens import TOKEN, like, takes_an
from vlprobe.types import Edit

POLICIES = ("rand-voca", "same-concept", "diff-concept", "danger", "danger-paper")
Deletion = Literal["random", "low-ei", "high-ei"]
DELETIONS: tuple[Deletion, ...] = ("random", "low-ei", "high-ei")
Vocabulary = Mapping[Form, tuple[Concept, ...]]

_ARTICLE = re.compile(r"\b(an?)(\s+)$", re.IGNORECASE)
_NO_WORD_LEFT = "no word left that is surely false"


class Altered(NamedTuple):
    """A caption that was altered so that it no longer fits its image, and the edit that altered it."""

    text: str
    edit: Edit


def sources(caption: str) -> list[Noun]:
    """Return the nouns in a caption that can be exchanged or deleted. Colors, numbers and directions are not included.

    A noun written as several words ("dining table", "tennis match") counts as one; see `compounds`.
    """
    return extend_nouns(caption, find(caption))


def vocabulary(words: Iterable[str]) -> Vocabulary:
    """Convert a list of words to a vocabulary for the policy rand-voca.

    As in the paper, only words with English letters are used. A word stands for its singular and its
    plural; a word known not to be a noun is skipped, and an unknown word is treated as
    countable.

    Raises:
        InvalidInput: no word remains.
    """
    concepts = {concept for word in words for concept in _as_concepts(word.strip().lower())}
    if not concepts:
        raise InvalidInput(
            "The vocabulary contains no nouns. Expected English nouns made up of the letters a to z. "
            "Colors, numbers and directions are skipped.",
        )
    return _by_form(concepts)


def _as_concepts(word: str) -> list[Concept]:
    if len(word) < 2 or not (word.isascii() and word.isalpha()):
        return []
    if concepts := named(word):
        return [concept for concept in concepts if concept.kind != "quality"]
    tag = lexicon.TAGS.get(word, 0)
    if tag and not tag & lexicon.NOUN:
        return []
    if tag & lexicon.MASS and not tag & lexicon.SINGULAR:
        return [Concept(word, word, "mass", frozenset(), False)]
    if tag & lexicon.PLURAL and word not in lexicon.SINGULARS and not tag & lexicon.SINGULAR:
        return [Concept(word, word, "plural", frozenset(), False)]
    lemma = word if tag & lexicon.SINGULAR else lexicon.SINGULARS.get(word, word)
    plural = lexicon.PLURALS.get(lemma) or lexicon.plural_of(lemma)
    return [Concept(lemma, plural, "count", frozenset(), False)]


def _by_form(concepts: Iterable[Concept]) -> Vocabulary:
    pools: dict[Form, list[Concept]] = {}
    for concept in sorted(concepts, key=lambda concept: (concept.lemma, concept.kind)):
        for form in concept.forms:
            pools.setdefault(form, []).append(concept)
    # A word without a singular may be replaced by any plural, but not the reverse: "two pants".
    pools["plural-only"] = pools.get("plural-only", []) + pools.get("plural", [])
    return {form: tuple(pool) for form, pool in pools.items()}


_THINGS = _by_form(
    concept for concept in CONCEPTS if concept.kind != "quality" and not concept.watch
)
_LISTED = {name: _by_form(words) for name, words in LISTS.items()}
_RAND_VOCA = _by_form(
    {
        concept
        for pools in (_THINGS, _LISTED["ordinary"])
        for pool in pools.values()
        for concept in pool
    }
)


@functools.cache  # .2 ms, and each noun of each caption needs it
def _pool(policy: str, form: Form, groups: frozenset[str]) -> tuple[Concept, ...]:
    if policy == "same-concept":
        return tuple(concept for concept in _THINGS.get(form, ()) if concept.groups & groups)
    if policy == "diff-concept":
        return tuple(concept for concept in _THINGS.get(form, ()) if not concept.groups & groups)
    return (_RAND_VOCA if policy == "rand-voca" else _LISTED[policy]).get(form, ())


def alter(
    captions: Sequence[str],
    item_id: str,
    policy: str,
    *,
    k: int = 1,
    seed: int = 42,
    influence: Sequence[Scores] | None = None,
    words: Vocabulary | None = None,
) -> tuple[list[Altered | None], dict[str, int]]:
    """Exchange k nouns in each caption of an image.

    The nouns that most encoders find the least influential are exchanged first, one after the other, with ties
    broken at random. Without scores, they are drawn at random. The draw is the same for every policy.
    If k is larger than the number of nouns, rand-voca also exchanges other words, at
    random, as in the paper's section 4.3.4.

    Args:
        captions: All captions of one image.
        item_id: The image's id.
        policy: One of POLICIES, which determines the inserted word. same-concept: a word from one of the noun's groups;
            diff-concept: a word that shares no group with the noun; danger: a word from our list of dangers;
            danger-paper: one of the paper's three dangers; rand-voca: any word.
        k: Number of words to exchange, 1 to 5.
        seed: Seed for the draws.
        influence: For each caption, the EI scores of its `sources`, by their start position.
        words: Vocabulary for rand-voca, from `vocabulary`; our lexicon and a list of ordinary words
            by default.

    Returns:
        For each caption, in order, the altered caption, or None if there is none; and the number of dropped captions
        by reason.

    Raises:
        NotFound: unknown policy.
        InvalidInput: a k outside 1 to 5, words for another policy than rand-voca, or scores that
            miss a noun.
    """
    if policy not in POLICIES:
        raise NotFound("policy", policy, POLICIES)
    if not 1 <= k <= 5:
        raise InvalidInput(f"k, the number of words to replace, must be from 1 to 5. Got {k}.")
    if words is not None and policy != "rand-voca":
        raise InvalidInput(
            f"The policy '{policy}' does not use a vocabulary; only rand-voca does. Remove the "
            "vocabulary."
        )
    mentioned = set().union(*map(mentions, captions))
    barred = mentioned | {
        word for word, beside in TRUE_BESIDE.items() if not beside.isdisjoint(mentioned)
    }
    out: list[Altered | None] = []
    dropped: Counter[str] = Counter()
    for index, caption in enumerate(captions):
        nouns = sources(caption)
        order = _ranked(nouns, _scores(nouns, influence, index), (seed, item_id, index))
        if policy == "rand-voca" and k > 1:
            order += _other_words(caption, nouns, (seed, item_id, index))
        taken: list[tuple[Noun, Concept]] = []
        used = set(barred)
        for noun in order:
            pool = (
                words.get(noun.form, ())
                if words is not None
                else _pool(policy, noun.form, noun.groups)
            )
            kinds = set().union(*(TRUE_BESIDE.get(lemma, ()) for lemma in noun.lemmas))
            left = [
                concept
                for concept in pool
                if concept.lemma not in kinds
                and used.isdisjoint(
                    (concept.lemma, concept.plural, concept.lemma.rpartition(" ")[2])
                )
            ]
            if left:
                concept = left[draw(seed, item_id, index, f"{policy}:{k}:{noun.start}") % len(left)]
                taken.append((noun, concept))
                used |= {concept.lemma, concept.plural}
            if len(taken) == k:
                break
        if len(taken) < k:
            dropped[_NO_WORD_LEFT if len(order) >= k else "fewer than k words to exchange"] += 1
            out.append(None)
            continue
        taken.sort(key=lambda pair: pair[0].start)
        text, put = _spliced(caption, taken)
        exchanged = ", ".join(caption[noun.start : noun.end] for noun, _ in taken), ", ".join(put)
        out.append(Altered(text, Edit("substitution", policy, f"{policy}:k{k}", *exchanged)))
    return out, dict(dropped)


def delete(
    captions: Sequence[str],
    item_id: str,
    which: Deletion,
    *,
    seed: int = 42,
    influence: Sequence[Scores] | None = None,
) -> tuple[list[Altered | None], dict[str, int]]:
    """Delete one noun in each caption of an image.

    Args:
        captions: All captions of one image.
        item_id: The image's id.
        which: The noun to delete: a random one, or the one that most encoders give the lowest or the highest EI score.
        seed: Seed for the draws.
        influence: For each caption, the EI scores of its `sources`; needed unless `which` is random.

    Returns:
        The same as `alter`.

    Raises:
        NotFound: unknown deletion.
        InvalidInput: no scores although they are needed, or scores that miss a noun.
    """
    if which not in DELETIONS:
        raise NotFound("deletion", which, DELETIONS)
    if which != "random" and influence is None:
        raise InvalidInput(
            f"The deletion '{which}' needs EI scores, but none were given. Choose text "
            "encoders, or use 'random'."
        )
    out: list[Altered | None] = []
    dropped: Counter[str] = Counter()
    for index, caption in enumerate(captions):
        nouns = sources(caption)
        scores = None if which == "random" else _scores(nouns, influence, index)
        order = _ranked(nouns, scores, (seed, item_id, index), highest=which == "high-ei")
        text = without(caption, order[0].start, order[0].end) if order else ""
        if not order or not any(map(str.isalnum, text)):
            dropped["no noun that could be deleted"] += 1
            out.append(None)
            continue
        source = caption[order[0].start : order[0].end]
        out.append(Altered(text, Edit("deletion", which, f"deletion:{which}", source)))
    return out, dict(dropped)


def _scores(
    nouns: Sequence[Noun],
    influence: Sequence[Scores] | None,
    index: int,
) -> dict[int, Sequence[float]] | None:
    if influence is None:
        return None
    scores = influence[index] if index < len(influence) else {}
    for noun in nouns:
        if noun.start not in scores:
            raise InvalidInput(
                f"Caption {index} has no EI score for the noun at position {noun.start}. Compute "
                "scores for all spans in `sources`."
            )
    return {noun.start: scores[noun.start] for noun in nouns}


def _ranked(
    nouns: Sequence[Noun],
    scores: Mapping[int, Sequence[float]] | None,
    key: tuple[int, str, int],
    highest: bool = False,
) -> list[Noun]:
    """Return the nouns in the order of exchange, by repeated votes of the encoders. Ties are in random order."""
    left = sorted(nouns, key=lambda noun: draw(*key, f"source:{noun.start}"))
    if scores is None:
        return left
    order = []
    while left:
        elected_starts = elected({noun.start: scores[noun.start] for noun in left}, highest)
        next_noun = next((noun for noun in left if noun.start in elected_starts), left[0])
        order.append(next_noun)
        left.remove(next_noun)
    return order


def _other_words(caption: str, nouns: Sequence[Noun], key: tuple[int, str, int]) -> list[Noun]:
    """Return the words that are not part of the nouns, as singular nouns in random order. Articles are left out."""
    words = []
    for token in TOKEN.finditer(caption):
        word = token.group().lower()
        free = not any(noun.start < token.end() and token.start() < noun.end for noun in nouns)
        if free and len(word) > 1 and word.isalpha() and word not in ("an", "the"):
            words.append(Noun(*token.span(), "singular", (word,), frozenset()))
    return sorted(words, key=lambda noun: draw(*key, f"other:{noun.start}"))


def _spliced(caption: str, taken: Sequence[tuple[Noun, Concept]]) -> tuple[str, list[str]]:
    """Return the caption after exchanging the given nouns, and the inserted words."""
    pieces, put, done = [], [], 0
    for noun, concept in taken:
        previous = caption[done : noun.start]
        word = _in_case(caption, noun, concept.write(noun.form))
        if article := _ARTICLE.search(previous):
            written = "an" if takes_an(word.lower()) else "a"
            written = written.upper() if caption.isupper() else like(article[1], written)
            previous = previous[: article.start()] + written + article[2]
        pieces += [previous, word]
        put.append(word)
        done = noun.end
    return "".join([*pieces, caption[done:]]), put


def _in_case(caption: str, noun: Noun, word: str) -> str:
    source = caption[noun.start : noun.end]
    if caption.isupper():
        return word.upper()
    is_first = not caption[: noun.start].strip()
    if source.isupper() and len(source) > 1:  # an acronym, such as TV
        return _capitalised(word) if is_first else word
    if source[:1].isupper() and not is_first:
        # And not the name in "a Wii remote"
        is_title = all(word[:1].isupper() for word in source.split())
        return " ".join(map(_capitalised, word.split(" "))) if is_title else word
    return like(source, word)


def _capitalised(word: str) -> str:
    return word[:1].upper() + word[1:]
