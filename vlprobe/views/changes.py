"""Compare two captions word by word."""

import difflib
import itertools
import re
from collections.abc import Iterator

_WORDS = re.compile(r"\s*(?:[\w'’-]+|[^\w\s])")
_INSIDE = re.compile(r"(?<=\w)['’-](?=\w)|(?<=s)['’]$")  # marks in a word, and the last of "dogs'"
_WORD = re.compile(r"\w")
_SENTENCE_END = re.compile(r"[.!?\s]+$")
_MARKS = ' .,;:!?"()'
_EDGES = " ,.;:"  # marks that are no part of the words
_ARTICLE = re.compile(r"an?(?:\s+|$)", re.IGNORECASE)
FEW = 5  # words of a short caption
# Shares of letters in two captions: below the first one, their order differs too much to align them; below the second
# one, they have little in common
SAME_ORDER, LITTLE = 0.35, 0.2
COMPARED = 400  # words compared per caption; the comparison is quadratic, and no one reads further


def in_step(original: str, edited: str) -> Iterator[tuple[str, str, bool]]:
    """Align two captions word by word. Yield stretches of text, each as (text in `original`, text in `edited`,
    whether they differ).

    Letter case is ignored. Punctuation, also in a word ("janitor's", "janitors"), counts only if no word differs,
    because SugarCrepe's wrong captions often add or remove it.

    >>> [run for run in in_step("a red dog", "A blue dog.") if run[2]]
    [(' red', ' blue', True)]
    """
    left, right = (_WORDS.findall(text.strip()) for text in (original, edited))
    folded = [[word.strip().lower() for word in words] for words in (left, right)]
    plain = [[_folded(word) for word in words] for words in (left, right)]
    folded = folded if plain[0] == plain[1] else plain
    matcher = difflib.SequenceMatcher(None, *folded, autojunk=False)
    runs = [
        ("".join(left[a:b]), "".join(right[c:d]), kind != "equal")
        for kind, a, b, c, d in matcher.get_opcodes()
    ]
    has_words = any(differs and _WORD.search(source + target) for source, target, differs in runs)
    for source, target, differs in runs:
        if not differs or not has_words or not _WORD.search(source + target):
            yield source, target, differs and not has_words
            continue
        ends = [_SENTENCE_END.sub("", text) for text in (source, target)]
        if any(ends):
            yield ends[0], ends[1], True
        if source != ends[0] or target != ends[1]:
            yield source[len(ends[0]) :], target[len(ends[1]) :], False


def word_runs(original: str, edited: str, is_after: bool) -> list[tuple[str, bool]]:
    """Split one of two captions into stretches of words, each marked as equal to or different from the other caption.

    Spaces before differing words form a separate stretch. If the captions have the same words in another order, only
    words that the other caption lacks differ. Of two captions with little in common, nothing is marked.

    >>> word_runs("A red dog.", "A blue dog.", True)
    [('A', False), (' ', False), ('blue', True), (' dog.', False)]
    >>> word_runs("A woman emerges from the swimming pool.", "A pool emerges behind a woman.", True)
    [('A pool emerges', False), (' ', False), ('behind', True), (' a woman.', False)]
    >>> word_runs("Five purple cats fly high in the sky.", "We see a moped next to some trucks.", True)
    [('We see a moped next to some trucks.', False)]
    """
    runs, steps = [], list(in_step(original, edited))
    is_long = min(len(original.split()), len(edited.split())) > FEW
    if is_long and _shared(steps) < SAME_ORDER * len(original + edited):
        sides = _lacking(original, edited), _lacking(edited, original)
        if _shared([*sides[0], *sides[1]]) < 2 * LITTLE * len(original + edited):
            return [(edited if is_after else original, False)]
        if any(differs for _, _, differs in sides[0] + sides[1]):
            steps = sides[is_after]
    for source, target, differs in steps:
        text = target if is_after else source
        words = text.lstrip()
        if differs and words:
            runs += [(text[: len(text) - len(words)], False), (words, True)]
        else:
            runs.append((text, False))
    return runs


def _shared(steps: list[tuple[str, str, bool]]) -> int:
    """Count the letters of equal stretches in both captions."""
    return sum(len(source + target) for source, target, differs in steps if not differs)


def _folded(word: str) -> str:
    """Return a word without spaces around it, capital letters, and marks in it."""
    return _INSIDE.sub("", word.strip().lower())


def _lacking(text: str, other: str) -> list[tuple[str, str, bool]]:
    """Split a caption into stretches of words that another caption has or lacks, in the form of `in_step`."""
    words = {_folded(word) for word in _WORDS.findall(other)}
    stretches = itertools.groupby(
        _WORDS.findall(text.strip()),
        lambda word: bool(_WORD.search(word)) and _folded(word) not in words,
    )
    return [(joined := "".join(group), joined, differs) for differs, group in stretches]


def changed_words(original: str, edited: str) -> tuple[str, str]:
    """Return the words removed from a caption and the words inserted, each as a comma-separated string.

    A switch between "a" and "an" that only follows from the next word is not a change.

    >>> changed_words("A dog and a blue bus by trees", "An owl and a red bus by two trees")
    ('dog, blue', 'owl, red, two')
    """
    shortened = [" ".join(text.split()[:COMPARED]) for text in (original, edited)]
    sources, targets = [], []
    for source, target, differs in in_step(*shortened):
        words = source.strip(), target.strip()
        if differs and all(map(_ARTICLE.match, words)):
            words = tuple(_ARTICLE.sub("", text, count=1) for text in words)
        if differs:
            sources.append(words[0].strip(_EDGES) or words[0])
            targets.append(words[1].strip(_EDGES) or words[1])
    return ", ".join(filter(None, sources)), ", ".join(filter(None, targets))


def is_in_several_places(source: str, target: str) -> bool:
    """Return whether words were changed in several places of a caption, given both results of `changed_words`. A word
    that only moved is missing in one place and added in another.

    >>> is_in_several_places("red", "blue"), is_in_several_places("grilled", "grilled")
    (False, True)
    """
    is_moved = source.casefold() == target.casefold() != ""
    return is_moved or "," in source + target


def change_in_words(original: str, edited: str, otherwise: str) -> str:
    """Return the removed and the inserted words, or `otherwise` if several places of the caption changed.

    >>> change_in_words("A red dog.", "A blue dog.", ""), change_in_words("A dog.", "A red dog.", "")
    ('red → blue', '(nothing) → red')
    >>> change_in_words("A red dog by two trees.", "A blue cat by six trees.", "several places")
    'several places'
    """
    words = changed_words(original, edited)
    if is_in_several_places(*words):
        return otherwise
    return " → ".join(each or "(nothing)" for each in words)


def single_change(original: str, edited: str, longest: int = 3) -> tuple[str, str] | None:
    """Return the old and the new words, in lowercase, if exactly one stretch of words was replaced. Return None if the
    captions are equal or if more than `longest` words differ.

    >>> single_change("A dog by two trees.", "An owl by two trees.")
    ('dog', 'owl')
    >>> single_change("It is red.", "It is not red.")
    ('', 'not')
    """
    left, right = original.lower().split(), edited.lower().split()
    shorter = min(len(left), len(right))
    start = 0
    while start < shorter and left[start] == right[start]:
        start += 1
    end = 0
    while end < shorter - start and left[-1 - end] == right[-1 - end]:
        end += 1
    taken, put = left[start : len(left) - end], right[start : len(right) - end]
    if taken and put and taken[0] in ("a", "an") and put[0] in ("a", "an"):
        taken, put = taken[1:], put[1:]
    if max(len(taken), len(put)) > longest:
        return None
    words = " ".join(taken).strip(_MARKS), " ".join(put).strip(_MARKS)
    return words if words[0] != words[1] else None
