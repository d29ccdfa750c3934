"""Color and number flips for captions in eight languages other than English, by the tables in other_languages.toml.

A word is exchanged for the form of another word that has its gender, number and case, so the caption stays
grammatical. If a form has several readings (French "rouge" is masculine and feminine), the new word must have one form
for all of them. As in the strict rules for English, counts only go up, and a flip must be false judging by all
captions of the image. LGIP names other languages as future work.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from vlprobe.perturb.draws import draw, shuffled
from vlprobe.perturb.flips import VOCABULARY, Flip
from vlprobe.perturb.tokens import Reading, like, read_resource, words
from vlprobe.perturb.truths import Truths, truths

VERSION = 2  # of the rules and tables: raise it when an edit changes
OTHER_LANGUAGES = "other_languages"  # the option of a run with flips by the tables
KINDS = ("color", "number")
_WITHOUT_BLANKS = ("zh", "ja")
_WITH_COMPOUNDS = ("de", "nl")  # "hellrot" states red
_BLACK_AND_WHITE = {"black", "white"}


class _Word(NamedTuple):
    """A word of a caption that states a color or a number."""

    kind: str
    meaning: str  # an English word of VOCABULARY
    text: str  # as written in the caption
    start: int
    previous: str  # the neighboring words in lowercase
    following: str


class Language:
    """The table of one language.

    Args:
        code: A key of other_languages.toml.
        table: Its value.
    """

    def __init__(self, code: str, table: Mapping[str, Any]) -> None:
        self.code, self.name = code, str(table["name"])
        self.rows: dict[str, dict[str, list[str]]] = {
            kind: {meaning: forms.split() for meaning, forms in table[kind].items()}
            for kind in KINDS
        }
        self.lists = {name: words(text) for name, text in table.items() if isinstance(text, str)}
        self.meanings: dict[str, tuple[str, str]] = {
            form: (kind, meaning)
            for kind, rows in self.rows.items()
            for meaning, forms in rows.items()
            for form in forms
            if form != "-"
        }
        self.mentions = [(form, meaning) for form, (_, meaning) in self.meanings.items()]
        self.mentions += [
            (form, meaning)
            for meaning, forms in table["mentions"].items()
            for form in forms.split()
        ]
        self._before, self._after = table.get("before", {}), table.get("after", {})

    def stated(self, reading: Reading) -> Iterator[str]:
        """Yield the English word for each color and number that a caption states."""
        text, parts = reading.text.lower(), _parts(reading)
        for form, meaning in self.mentions:
            if form in (text if self.code in _WITHOUT_BLANKS else parts) or (
                self.code in _WITH_COMPOUNDS
                and meaning in VOCABULARY["color"]
                and any(part.endswith(form) for part in parts)
            ):
                yield meaning

    def has_any(self, name: str, reading: Reading) -> bool:
        """Return whether one of the words in a list of the table occurs in a caption."""
        if self.code in _WITHOUT_BLANKS:
            text = reading.text.lower()
            for word in self.lists.get(f"not_{name}", ()):
                text = text.replace(word, "")
            return any(word in text for word in self.lists[name])
        return not self.lists[name].isdisjoint(_parts(reading))

    def counts_again(self, word: _Word, reading: Reading) -> bool:
        """Return whether a caption lists the things that a number counts one by one later."""
        rest = Reading(reading.text[word.start :])
        return self.has_any("later", rest) or any(
            rest.lower.count(article) > 1 for article in self.lists.get("later_twice", ())
        )

    def words(self, reading: Reading) -> Iterator[_Word]:
        """Yield the words of a caption that could be exchanged, from left to right."""
        if self.code in _WITHOUT_BLANKS:
            for match in re.finditer("|".join(self.meanings), reading.text):
                start, end = match.span()
                neighbors = reading.text[start - 1 : start], reading.text[end : end + 1]
                yield _Word(*self.meanings[match[0]], match[0], start, *neighbors)
            return
        around = ["", *(re.split("['’]", token)[-1] for token in reading.lower), ""]
        for i, form in enumerate(reading.lower):
            if form in self.meanings:
                start = reading.spans[i][0]
                yield _Word(*self.meanings[form], reading.words[i], start, around[i], around[i + 2])

    def why_not(self, word: _Word, reading: Reading) -> str:
        """Return the reason why a word is left unchanged; empty if it can be exchanged."""
        if self.code in _WITHOUT_BLANKS:
            needed, end = self._after.get(word.kind), word.start + len(word.text)
            if (word.previous and word.previous in self._before[word.kind]) or (
                reading.text.startswith(tuple(self.lists.get("idioms", ())), end)
            ):
                return "an idiom or a name"
            if needed and (not word.following or word.following not in needed):
                return "no thing counted"
        elif word.text.lower() in self.lists["only_targets"]:
            return "perhaps another word"
        elif word.start and word.text[:1].isupper() and not reading.text.isupper():
            return "part of a name"
        elif word.kind == "color":
            neighbors = {word.previous, word.following}
            if neighbors & self.lists["idioms"]:
                return "an idiom or a name"
            if word.previous in self.lists["nouns_after"]:
                return "a noun, not a color"
            if word.meaning in _BLACK_AND_WHITE and _BLACK_AND_WHITE.issubset(self.stated(reading)):
                return "black and white pictures"
        elif not word.following.isalpha():
            return "no thing counted"
        elif {word.previous, word.following} & self.lists["not_counted"]:
            return "a measure or part of a name"
        if word.kind == "number" and self.counts_again(word, reading):
            return "counted again later"
        return "under a negation" if self.has_any("negations", reading) else ""

    def form(self, word: _Word, meaning: str) -> str | None:
        """Return the form of another word that agrees with everything that a word agrees with; None if none is sure."""
        row = self.rows[word.kind][word.meaning]
        columns = [i for i, form in enumerate(row) if form == word.text.lower()]
        forms = {self.rows[word.kind][meaning][i] for i in columns}
        return like(word.text, forms.pop()) if len(forms) == 1 and "-" not in forms else None


def _parts(reading: Reading) -> set[str]:
    """Return the tokens of a caption in lowercase, and what apostrophes and hyphens separate in them."""
    tokens = [token.replace("’", "'") for token in reading.lower]
    return {part for token in tokens for part in (token, *re.split("['-]", token))}


@cache  # 3 ms, and each caption needs it
def languages() -> Mapping[str, Language]:
    """Return the languages with a table, by ISO 639-1 code."""
    tables = tomllib.loads(read_resource("other_languages.toml"))
    return {code: Language(code, table) for code, table in tables.items()}


def image_truths(readings: Sequence[Reading], codes: Iterable[str]) -> Truths:
    """Collect the facts about one image from all of its captions.

    Each caption is read in English and by the tables of all languages among the captions, because a short caption has
    no known language.
    """
    tables = [languages()[code] for code in languages().keys() & codes]
    return truths(
        (*reading.lower, *(word for table in tables for word in table.stated(reading)))
        for reading in readings
    )


def flips(
    readings: Sequence[Reading], codes: Sequence[str], of_image: Truths, item_id: str, seed: int
) -> tuple[list[list[Flip]], dict[str, int]]:
    """Make at most one color flip and one number flip for each caption in a language with a table.

    Args:
        readings: All captions of an image.
        codes: The language of each caption, "" for English or an unknown language.
        of_image: The facts from `image_truths`.
        item_id: Id of the image.
        seed: Seed of the run.

    Returns:
        The flips for each caption, none for English and other languages, and the number of words that are left
        unchanged by reason.
    """
    dropped: Counter[str] = Counter()
    out = []
    for index, (reading, code) in enumerate(zip(readings, codes, strict=True)):
        purpose = (seed, item_id, index)
        language = languages().get(code)
        out.append([*_flips(language, reading, of_image, purpose, dropped)] if language else [])
    return out, dict(dropped)


def _flips(
    language: Language,
    reading: Reading,
    of_image: Truths,
    key: tuple[int, str, int],
    dropped: Counter[str],
) -> Iterator[Flip]:
    done: set[str] = set()
    for word in language.words(reading):
        kind = word.kind
        if kind in done:
            continue
        if reason := language.why_not(word, reading):
            dropped[f"flip:{kind}, {reason}"] += 1
            continue
        done.add(kind)
        new = next(_targets(language, word, of_image, draw(*key, f"flip:{kind}")), None)
        if new is None:
            dropped[f"flip:{kind}, no word left"] += 1
            continue
        end = word.start + len(word.text)
        text = reading.text[: word.start] + new + reading.text[end:]
        yield Flip(kind, text, word.text, new, word.start, "")


def _targets(language: Language, word: _Word, of_image: Truths, number: int) -> Iterator[str]:
    """Yield the words that may replace a word, in the form that agrees."""
    vocabulary = VOCABULARY[word.kind]
    for meaning in shuffled(list(language.rows[word.kind]), number):
        rises = word.kind == "color" or vocabulary.index(meaning) > vocabulary.index(word.meaning)
        shaded = meaning in _BLACK_AND_WHITE and not {word.previous, word.following}.isdisjoint(
            language.lists.get("shades", ())
        )
        if meaning == word.meaning or not rises or shaded:
            continue
        if of_image.allow(word.kind, word.meaning, meaning) and (
            new := language.form(word, meaning)
        ):
            yield new
