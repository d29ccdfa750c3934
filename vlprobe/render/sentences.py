"""Helpers for sentences about models: names, lists of names, counts and strengths."""

import unicodedata
from collections.abc import Mapping, Sequence
from typing import TypeVar

from vlprobe.errors import printable
from vlprobe.render.words import edit_title, model_name

LONGEST_NAME = 40  # maximum length of a name in a sentence
MOST_NAMES = 3  # in a list of names
LONGEST = 300  # maximum length of a caption on a card; the drawer shows all of it
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_STOPS = " .!?…\n"
CHANGES = "right in one order only"  # an answer that changes with the order of the captions
Style = TypeVar("Style")
ISOLATE, END_ISOLATE = "\u2068", "\u2069"


SKILLS = {  # by type of edit: a noun, and the skill of a model that it seldom fools
    "color": ("colors", "knows colors"),
    "number": ("numbers", "counts"),
    "object": ("objects", "knows objects"),
    "negation": ("negations", "understands negations"),
    "relation": ("relations", "tells relations apart"),
    "attribute-swap": ("swapped attributes", "sees swapped attributes"),
    "word-order": ("word order", "reads word order"),
    "location": ("locations", "tells locations apart"),
    "swap": ("swapped things", "sees swaps"),
    "rand-voca": ("random words", "spots random words"),
    "same-concept": ("words of the same concept", "spots words of the same concept"),
    "diff-concept": ("words of another concept", "spots words of another concept"),
    "danger": ("misleading words", "spots misleading words"),
}


def count_word(count: int) -> str:
    """Write numbers up to ten as words and larger numbers in digits.

    >>> count_word(6), count_word(1200)
    ('six', '1,200')
    """
    return NUMBERS[count] if 0 <= count < len(NUMBERS) else f"{count:,}"


def every_model(count: int) -> str:
    """Return a phrase that refers to all of several models.

    >>> every_model(2), every_model(6)
    ('both models', 'all six models')
    """
    return "both models" if count == 2 else f"all {count_word(count)} models"


def some_models(count: int, total: int) -> str:
    """Return the subject of a sentence about `count` of `total` models.

    >>> some_models(2, 5), some_models(6, 6), some_models(1, 1)
    ('Two of five models', 'All six models', 'The model')
    """
    if total == 1:
        return "The model"
    if count == total:
        return capitalized(every_model(total))
    return capitalized(f"{count_word(count)} of {count_word(total)} models")


def undecided(n_ties: int, n_changes: int) -> str:
    """Return the end of a sentence about models that neither chose the wrong caption nor rejected it.

    Args:
        n_ties: Models that score both captions alike.
        n_changes: Models whose answer changes with the order of the captions.

    >>> undecided(1, 0), undecided(0, 2), undecided(0, 0)
    (', one cannot tell', ', two right in one order only', '')
    """
    counts = (n_ties, "cannot tell"), (n_changes, CHANGES)
    return "".join(f", {count_word(count)} {words}" for count, words in counts if count)


def hesitate(n_ties: int, n_changes: int) -> str:
    """Return the verb of a sentence about models that all cannot decide.

    >>> hesitate(1, 0), hesitate(0, 1), hesitate(0, 2), hesitate(1, 1)
    ('cannot tell', 'is right in one order only', 'are right in one order only', 'cannot decide')
    """
    if n_changes:
        verb = "is" if n_changes == 1 else "are"
        return "cannot decide" if n_ties else f"{verb} {CHANGES}"
    return "cannot tell"


def halves_note(both_orders: Sequence[str]) -> str:
    """Name the models that saw the captions in both orders, and say how their cases are counted; "" without models."""
    if not both_orders:
        return ""
    return (
        f"{listed(both_orders)} saw the captions in both orders; a case “{CHANGES}” counts as half."
    )


def count_halves(n_always: int, n_once: int) -> str:
    """Write the number of cases that fool a model in both orders of the captions, and in only one (see `halves_note`).

    >>> count_halves(16, 1082), count_halves(16, 0)
    ('16 + 1,082 × ½', '16')
    """
    return f"{n_always:,} + {n_once:,} × ½" if n_once else f"{n_always:,}"


def shorten(text: str, length: int = LONGEST) -> str:
    """Cut text to `length` characters, ending in an ellipsis.

    >>> shorten("a long caption", 8)
    'a long …'
    """
    return text if len(text) <= length else f"{text[: length - 1]}…"


def capitalized(text: str) -> str:
    """Capitalize the first letter of a text and leave the rest unchanged."""
    return text[:1].upper() + text[1:]


def alike(
    captions: Sequence[Sequence[tuple[str, Style]]],
) -> list[tuple[tuple[str, Style], ...]]:
    """Give captions the same capital letters and end, because their form could betray the wrong one.

    >>> alike([(("a ", ""), ("dog", "true")), (("A ", ""), ("cat..", "lie"))])
    [(('A ', ''), ('dog.', 'true')), (('A ', ''), ('cat.', 'lie'))]
    """
    texts = ["".join(text for text, _ in caption) for caption in captions]
    is_capital = any(text[:1].isupper() for text in texts)
    are_upper = {text.isupper() for text in texts}
    ends = {text[len(text.rstrip(_STOPS)) :] for text in texts}
    same = []
    for caption in captions:
        runs = [run for run in caption if run[0]]
        if len(are_upper) > 1 and all(text.upper() == text for text, _ in runs):
            runs = [(text.lower(), style) for text, style in runs]
        if runs and is_capital:
            runs[0] = (capitalized(runs[0][0]), runs[0][1])
        while len(ends) > 1 and runs and not runs[-1][0].rstrip(_STOPS):
            runs.pop()
        if len(ends) > 1 and runs:
            runs[-1] = (runs[-1][0].rstrip(_STOPS) + "." * any(map(str.strip, ends)), runs[-1][1])
        same.append(tuple(runs))
    return same


def nouns(subtypes: Sequence[str]) -> str:
    """List types of edit in a sentence. Types without a plain name are quoted.

    >>> nouns(["object", "color"]), nouns(["P1"])
    ('objects and colors', '“P1: any other wording”')
    """
    return listed(
        [
            SKILLS[name][0] if name in SKILLS else f"“{shortened(edit_title(name))}”"
            for name in subtypes
        ]
    )


def does_better(subtypes: Sequence[str], is_one: bool) -> str:
    """Say at what models are better, given the types of edit that fool them less often.

    >>> does_better(["number", "object", "color"], True), does_better(["number"], False)
    ('counts and knows objects and colors better', 'count better')
    >>> does_better(["P1"], True)
    'does better on “P1: any other wording”'
    """
    if not all(name in SKILLS for name in subtypes):
        return f"{'does' if is_one else 'do'} better on {nouns(subtypes)}"
    objects: dict[str, list[str]] = {}  # by verb: "know objects", "know colors"
    for name in subtypes:
        verb, _, known = SKILLS[name][1].partition(" ")
        objects.setdefault(verb if is_one else verb.removesuffix("s"), []).append(known)
    return (
        f"{listed([f'{verb} {listed(rests)}'.strip() for verb, rests in objects.items()])} better"
    )


def shortened(name: str) -> str:
    """Shorten a name for use in a sentence: the middle of a long name is cut, and its writing direction is isolated."""
    text = printable(" ".join(name.split()))
    if len(text) > LONGEST_NAME:
        text = f"{text[: LONGEST_NAME // 2 - 1]}…{text[-LONGEST_NAME // 2 :]}"
    turns = any(unicodedata.bidirectional(char) in ("R", "AL", "AN") for char in text)
    return f"{ISOLATE}{text}{END_ISOLATE}" if turns else text


def sentence_names(models: Sequence[str], renamed: Mapping[str, str]) -> dict[str, str]:
    """Return the name to use in sentences for each model.

    Models that share a short name keep their full names. Names that are equal after shortening get a number.
    """
    names = {model: shortened(model_name(model, renamed)) or model for model in models}
    twins = {name for name in names.values() if list(names.values()).count(name) > 1}
    names |= {model: shortened(model) for model, name in names.items() if name in twins}
    n_uses: dict[str, int] = {}
    for model, name in names.items():
        n_uses[name] = n_uses.get(name, 0) + 1
        if n_uses[name] > 1:
            names[model] = f"{name} ({n_uses[name]})"
    return names


def listed(names: Sequence[str]) -> str:
    """List names in a sentence. For a long list, only the first few names and the number of others
    are given.

    >>> listed(["A"]), listed(["A", "B"]), listed(["A", "B", "C"]), listed(list("ABCDE"))
    ('A', 'A and B', 'A, B and C', 'A, B and 3 others')
    """
    if not names:
        return ""
    if len(names) > MOST_NAMES:
        n_listed = MOST_NAMES - 1
        names = [*names[:n_listed], f"{len(names) - n_listed:,} others"]
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def frequency(count: int, total: int) -> str:
    """Format a share as a percentage. "None" and "All" are used only if exact.

    >>> [frequency(count, 283) for count in (0, 2, 283)], frequency(1, 2500), frequency(2499, 2500)
    (['None', '0.7 %', 'All'], 'under 0.1 %', 'over 99.9 %')
    """
    if count in (0, total):
        return "All" if count else "None"
    text = f"{100 * (count / total):.1f} %"
    return {"0.0 %": "under 0.1 %", "100.0 %": "over 99.9 %"}.get(text, text)


def unbroken(text: str) -> str:
    """Replace the space before each percent sign, so that number and sign stay on one line.

    >>> unbroken("It believes 10.8 % of them")
    'It believes 10.8\\xa0% of them'
    """
    return text.replace(" %", "\N{NO-BREAK SPACE}%")


def counted(count: int, noun: str) -> str:
    """Return a number with a noun, which is in the plural if necessary.

    >>> counted(1, "picture"), counted(1200, "question")
    ('one picture', '1,200 questions')
    """
    return f"one {noun}" if count == 1 else f"{count:,} {noun}s"


def drawn_only(toys: Sequence[str], n_models: int) -> str:
    """Warn that the given models were trained on drawings and guess on photographs, or return "" if there are none.

    >>> drawn_only(["Tiny CLIP"], 3), drawn_only([], 2)
    ('Tiny CLIP was trained on drawings. On photographs it mostly guesses.', '')
    >>> drawn_only(["Tiny CLIP", "Half-trained"], 2)
    'These models were trained on drawings. On photographs they mostly guess.'
    """
    if not toys:
        return ""
    if len(toys) == 1:
        return f"{toys[0]} was trained on drawings. On photographs it mostly guesses."
    names = "These models" if len(toys) == n_models else listed(toys)
    return f"{names} were trained on drawings. On photographs they mostly guess."


def common(lists: Sequence[Sequence[str]]) -> list[str]:
    """Return the elements that occur in all lists, in the order of the first list."""
    return [name for name in lists[0] if all(name in names for names in lists)]


def joined(*sentences: str) -> str:
    """Join all sentences that are not empty."""
    return " ".join(filter(None, sentences))
