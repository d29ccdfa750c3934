"""Convert a table with a known layout to items.

A row becomes an item for one of the probes: a minimal pair (two pictures and two captions), foils (a picture, a
caption and wrong captions), a triplet (two captions with the same meaning and a foil), or a picture and its captions.

The error about an unexpected value names its row and column.
"""

import ast
import heapq
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pyarrow as pa

from vlprobe.datasets import audit, labels, sources
from vlprobe.datasets.pairs import DOUBTFUL, VOTES
from vlprobe.datasets.queries import KINDS
from vlprobe.datasets.tables.layouts import Kind, Layout
from vlprobe.datasets.tables.reader import Table
from vlprobe.errors import InvalidInput
from vlprobe.types import Item

MOST_LITERAL = 200_000  # characters of a list written as text
MOST_TAG_VALUES = 1000  # of a column; one with more is text, not a tag
ATTRIBUTES = {attribute.lower(): attribute for attribute in KINDS}
SPATIAL_FOILS = 3  # candidates for a triplet of VSR


class TableReading:
    """A table while its rows are converted to items. Each column is extracted only once.

    Attributes:
        chosen: Numbers of the rows that become items. `choose` sets this and the next attributes.
        notes: Notes on rows that were left out.
        tags: Values of the columns that become tags.
        unread: Names of the columns that are not read.
        has_ids: Whether the rows have different ids.
    """

    chosen: list[int]
    notes: list[str]
    tags: dict[str, Sequence[Any]]
    unread: list[str]
    has_ids: bool

    def __init__(self, table: Table, layout: Layout) -> None:
        self.table, self.layout = table, layout
        self._values: dict[str, Sequence[Any]] = {}
        self._names = table.names
        self._no_texts = [""] * table.n_rows  # for a role without a column

    def choose(self, chosen: Mapping[str, str]) -> None:
        """Choose the rows with the required value in every given column, and read tags and ids. Raises InvalidInput."""
        self.chosen = self._chosen_rows(chosen)
        self.notes = []
        if self.layout.votes in self.table.columns:
            self._leave_out_doubtful()
        self.tags, self.unread = self._tag_columns()
        ids = [self.role("id")[row] for row in self.chosen]
        self.has_ids = all(ids) and len(set(map(str, ids))) == len(ids)

    def values(self, column: str) -> Sequence[Any]:
        """Return the values in a column, each of which is text or a list of texts."""
        if column not in self._values:
            self._values[column] = self.table.values(column)
        return self._values[column]

    def role(self, role: str) -> Sequence[Any]:
        """Return the values in the column with a given role. If no column has the role, all values are empty."""
        column = self.layout.columns.get(role, "")
        if column in self._names:
            return self.values(column)
        return self._no_texts

    def _chosen_rows(self, chosen: Mapping[str, str]) -> list[int]:
        """Return the numbers of the rows that have the required value in every given column. Raises InvalidInput."""
        rows = list(range(self.table.n_rows))
        for column, value in chosen.items():
            if column not in self.table.columns:
                raise InvalidInput(
                    f"'{self.table.file}' has no column '{column}'. Remove '+{column}={value}'."
                )
            values = self.values(column)
            rows = [row for row in rows if values[row] == value]
            if not rows:
                listing = ", ".join(sorted(set(map(str, values)))[:12])
                raise InvalidInput(
                    f"'{self.table.file}' has no rows with {column} '{value}'. Expected "
                    f"one of: {listing}."
                )
        return rows

    def n_values(self, column: str) -> int:
        """Count the distinct texts in a column. For a column of lists, return a number that is too large for a tag."""
        values = self.table.columns[column]
        if pa.types.is_list(values.type) or pa.types.is_large_list(values.type):
            return self.table.n_rows + 1_000_000
        return len(values.unique())

    def fault(self, row: int, role: str, expected: str) -> InvalidInput:
        """Build the error raised for an unexpected value."""
        column = self.layout.columns.get(role, role)
        return InvalidInput(
            f"'{self.table.file}', row {row + 1}, column '{column}': expected {expected}."
        )

    def text(self, value: object, row: int, role: str) -> str:
        """Return a value as text; for a list, return its first entry. Raises InvalidInput if it is not text."""
        texts = self.texts(value)
        if not texts or not texts[0]:
            raise self.fault(row, role, "text, but the value is empty")
        return texts[0]

    def texts(self, value: object) -> list[str]:
        """Return the texts in a value, which is text, a list, or a list written in Python notation."""
        if isinstance(value, str):
            texts = _literal(value) if value.lstrip().startswith("[") else [value]
        else:
            texts = value if isinstance(value, list) else []
        return [text.strip() for text in texts if isinstance(text, str)]

    def number(self, value: str, row: int, role: str) -> int:
        """Parse a value as a whole number. Raises InvalidInput."""
        if not value.strip().isdecimal():
            raise self.fault(row, role, "a whole number")
        return int(value)

    def image(self, value: object, row: int, role: str) -> str:
        """Return the name of a picture; for a URL, the last part of its path.

        Raises InvalidInput if the name is empty.
        """
        name = value.strip() if isinstance(value, str) else ""
        if "://" in name:
            name = PurePosixPath(urlsplit(name).path).name
        if self.layout.rooted:
            name = name.lstrip("/")
        if not name or "\0" in name:
            raise self.fault(row, role, "the name of a picture")
        return name

    def box(self, row: int) -> str:
        """Return the crop of a row's picture, in the notation of `storage.containers`; "" for the whole picture."""
        if not self.layout.box:
            return ""
        sides = []
        for column in self.layout.box:
            try:
                sides.append(round(float(self.values(column)[row])))
            except (ValueError, OverflowError):
                raise self.fault(row, column, "a number of pixels") from None
        return "crop={},{},{},{}".format(*sides)

    def _leave_out_doubtful(self) -> None:
        column = self.layout.votes
        votes = self.values(column)
        doubtful = [
            row
            for row in self.chosen
            if votes[row] and self.number(str(votes[row]), row, column) < VOTES
        ]
        keys = [f"row {row + 1}" for row in doubtful]
        self.notes += sources.count_note(keys, len(self.chosen), DOUBTFUL)
        left_out = set(doubtful)
        self.chosen = [row for row in self.chosen if row not in left_out]

    def _tag_columns(self) -> tuple[dict[str, Sequence[Any]], list[str]]:
        """Return the columns that become tags, and the names of the columns that are not read."""
        used = {*self.layout.columns.values(), *self.layout.needs, *self.layout.box}
        further = [
            name for name in self.table.columns if name not in used and name != self.layout.votes
        ]
        tags = {}
        for name in further:
            if name not in self.layout.no_tags and self.n_values(name) <= MOST_TAG_VALUES:
                tags[name] = self.table.values(name)
        unread = [name for name in further if name not in tags]
        return tags, [*unread, *self.table.skipped]

    def tags_of(self, row: int) -> dict[str, str]:
        """Return the tags for a row, starting with the subset."""
        subset = self.role("subset")[row] or self.table.file.stem
        further = {name: values[row].strip() for name, values in self.tags.items()}
        return {"subset": subset, **{name: value for name, value in further.items() if value}}

    def key(self, row: int) -> str:
        """Return the item id for a row. It contains the row number unless the table has unique ids."""
        return f"{self.table.file.stem}/{self.role('id')[row] if self.has_ids else row}"

    def item(
        self, row: int, captions: Iterable[str], foils: Iterable[str], item_id: str = ""
    ) -> Item:
        """Build the item for a row, without its pictures. Its id is the row's key unless another is given."""
        key = item_id or self.key(row)
        return Item(key, None, tuple(captions), self.tags_of(row), tuple(foils))

    def names(self, row: int, *roles: str) -> list[str]:
        """Return the names of a row's pictures in the columns with the given roles."""
        return [self.image(self.role(role)[row], row, role) for role in roles]


def _literal(text: str) -> list[str]:
    """Parse a list of strings in Python or JSON notation. Any other text is returned as the only entry of a list."""
    try:
        value = ast.literal_eval(text.strip()) if len(text) <= MOST_LITERAL else None
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return [text]
    is_list = isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
    return list(value) if value is not None and is_list else [text]


class Unpictured(NamedTuple):
    """An item without its pictures, and the names and crop of these pictures."""

    item: Item
    images: list[str]
    box: str = ""


def rows_of(
    table: Table, layout: Layout, chosen: Mapping[str, str]
) -> tuple[list[Unpictured], list[str]]:
    """Convert the rows in a table to dataset items. Also return notes for people who read results on them.

    Args:
        table: The table as read.
        layout: Roles of its columns.
        chosen: Required value of each column that selects rows; empty for all rows.

    Raises:
        InvalidInput: a row lacks a value that its layout needs; the message has the row and the column.
    """
    reading = TableReading(table, layout)
    reading.choose(chosen)
    rows: list[Unpictured] = []
    first_with: dict[object, str] = {}
    repeated = []
    for row in MAKERS[layout.kind](reading):
        content = (tuple(row.images), row.box, row.item.captions, row.item.foils)
        if first_with.setdefault(content, row.item.id) != row.item.id:
            repeated.append(row.item.id)
        else:
            rows.append(row)
    repetition = "repeat an earlier row and are left out"
    notes = [
        *reading.notes,
        *sources.count_note(repeated, len(rows) + len(repeated), repetition),
    ]
    if reading.unread:
        notes.append(
            f"Columns of {table.file.name} that are not read: {', '.join(reading.unread)}."
        )
    return rows, notes


def _pairs(reading: TableReading) -> Iterator[Unpictured]:
    for row in reading.chosen:
        texts = [reading.text(reading.role(role)[row], row, role) for role in ("caption", "foil")]
        item = reading.item(row, texts[:1], texts[1:])
        yield Unpictured(item, reading.names(row, "image", "image2"))


def _foils(reading: TableReading) -> Iterator[Unpictured]:
    captions, seconds, foils = map(reading.role, ("caption", "caption2", "foil"))
    without = []
    for row in reading.chosen:
        texts = [reading.text(captions[row], row, "caption")]
        texts += [text for text in reading.texts(seconds[row]) if text]
        wrong = [text for text in reading.texts(foils[row]) if text]
        if not wrong:
            without.append(f"row {row + 1}")
            continue
        item = reading.item(row, texts, wrong)
        yield Unpictured(item, reading.names(row, "image"), reading.box(row))
    reading.notes += sources.count_note(
        without, len(reading.chosen), "have no foil and are left out"
    )


def _options(reading: TableReading) -> Iterator[Unpictured]:
    """Read multiple-choice captions: a list that begins with the correct one, or columns and the number of that one."""
    listed = "caption" in reading.layout.columns
    names = [f"caption_{n}" for n in range(100) if f"caption_{n}" in reading.table.names]
    answers = [] if listed else reading.values("correct_answer")
    columns = [reading.role("caption")] if listed else [reading.values(name) for name in names]
    for row in reading.chosen:
        texts = [text for column in columns for text in reading.texts(column[row])]
        right = 0 if listed else reading.number(answers[row], row, "correct_answer")
        if len(texts) < 2 or not 0 <= right < len(texts) or not all(texts):
            column = "caption" if listed else "correct_answer"
            raise reading.fault(row, column, "two or more captions, one of which is right")
        item = reading.item(row, [texts.pop(right)], texts)
        yield Unpictured(item, reading.names(row, "image"))


def _statements(reading: TableReading) -> Iterator[Unpictured]:
    """Read MMVP-VLM, where two consecutive rows form a pair. The file of a picture is TYPE/ID.jpg."""
    numbers, texts, types = map(reading.role, ("image", "caption", "subset"))
    if len(reading.chosen) % 2:
        raise reading.fault(reading.chosen[-1], "image", "a second row to form a pair")
    for row, second in zip(reading.chosen[::2], reading.chosen[1::2], strict=True):
        if types[row] != types[second]:
            raise reading.fault(second, "subset", f"'{types[row]}', as in the previous row")
        captions = [reading.text(texts[each], each, "caption") for each in (row, second)]
        key = f"{reading.table.file.stem}/{numbers[row]}-{numbers[second]}"
        item = reading.item(row, captions[:1], captions[1:], key)
        yield Unpictured(item, [f"{types[n]}/{numbers[n]}.jpg" for n in (row, second)])


def _questions(reading: TableReading) -> Iterator[Unpictured]:
    """Read NaturalBench: each question has different answers for two pictures. Question and answer become one text."""
    same = []
    for number in (0, 1):
        questions = reading.values(f"question_{number}")
        answers, foil_answers = (
            reading.values(f"image_{image}_question_{number}") for image in (0, 1)
        )
        for row in reading.chosen:
            question = reading.text(questions[row], row, f"question_{number}")
            right, wrong = (
                reading.text(column[row], row, f"image_{image}_question_{number}")
                for image, column in enumerate((answers, foil_answers))
            )
            if right == wrong:
                same.append(f"row {row + 1}")
                continue
            texts = [f"{question} {right}"], [f"{question} {wrong}"]
            item = reading.item(row, *texts, f"{reading.key(row)}-{number}")
            yield Unpictured(item, reading.names(row, "image", "image2"))
    predicate = "have the same answer for both pictures and are left out"
    reading.notes += sources.count_note(same, 2 * len(reading.chosen), predicate, "questions")


def _probes_of_verbs(reading: TableReading) -> Iterator[Unpictured]:
    """Read SVO-Probes, where a row has a sentence, a picture that it fits, and a picture that it does not fit. Two rows
    with the same pictures in reverse order form a pair. Other rows are left out: no sentence describes their second
    picture.
    """
    images, foil_images = reading.role("image"), reading.role("image2")
    sentences = reading.role("caption")
    right_triplets, wrong_triplets = reading.values("pos_triplet"), reading.values("neg_triplet")
    waiting: dict[tuple[str, ...], int] = {}
    n_paired = 0
    for row in reading.chosen:
        sides = ((images[row], right_triplets[row]), (foil_images[row], wrong_triplets[row]))
        first = waiting.pop((*sides[1], *sides[0]), None)
        if first is None:
            waiting[(*sides[0], *sides[1])] = row
            continue
        n_paired += 2
        texts = [reading.text(sentences[each], each, "caption") for each in (first, row)]
        key = f"{reading.table.file.stem}/{first}-{row}"
        item = reading.item(first, texts[:1], texts[1:], key)
        yield Unpictured(item, [images[first], images[row]])
    if n_paired < len(reading.chosen):
        reading.notes.append(
            f"{len(reading.chosen) - n_paired} of {len(reading.chosen)} rows have no row "
            "for their second picture and are left out; "
            "+image=pos_image_id+caption=sentence reads pictures and captions."
        )


def _captions(reading: TableReading) -> Iterator[Unpictured]:
    """Yield one item for each picture. Other columns become tags if all rows for each picture agree on their values."""
    images, captions = reading.role("image"), reading.role("caption")
    is_inside = reading.layout.columns["image"] in reading.table.pictures
    texts: dict[str, list[str]] = {}
    rows: dict[str, list[int]] = {}
    for row in reading.chosen:
        name = reading.image(images[row], row, "image")
        rows.setdefault(name, []).append(row)
        texts.setdefault(name, []).extend(
            reading.text(text, row, "caption") for text in reading.texts(captions[row]) or [""]
        )
    differing: dict[str, str] = {}  # by column, the first picture whose rows differ in it
    for column, values in sorted(reading.tags.items()):
        for name, group in rows.items():
            if len({values[row] for row in group}) > 1:
                differing[column] = name
                break
    if differing:
        first = next(iter(differing.values()))
        reading.notes.append(
            f"Columns of {reading.table.file.name} that are not tags, because rows of one "
            f"picture differ in them: {', '.join(differing)} (first: {first}). A tag belongs to "
            "the picture, so all of its rows need the same value."
        )
    tags = {name: values for name, values in reading.tags.items() if name not in differing}
    if subset := reading.layout.columns.get("subset"):
        tags[subset] = reading.role("subset")
    for name, group in rows.items():
        labels = {tag: str(values[group[0]]).strip() for tag, values in tags.items()}
        labels = {tag: value for tag, value in labels.items() if value}
        key = reading.key(group[0]) if is_inside or reading.has_ids else name
        yield Unpictured(Item(key, None, tuple(texts[name]), labels), [name])


def _true_statements(reading: TableReading) -> Iterator[Unpictured]:
    """Read the true statements about each picture in VSR."""
    are_true = _truths(reading)
    wrong = [f"row {row + 1}" for row, is_true in are_true.items() if not is_true]
    why = "are labeled false and are left out; +layout=vsr-foils uses those that a true one pairs with"
    reading.notes += sources.count_note(wrong, len(reading.chosen), why)
    reading.chosen = [row for row, is_true in are_true.items() if is_true]
    yield from _captions(reading)


def _true_and_false(reading: TableReading) -> Iterator[Unpictured]:
    """Read VSR as foils: a true statement, and false ones about the same picture that differ only in the relation."""
    images, captions = reading.role("image"), reading.role("caption")
    relations, are_true = reading.role("subset"), _truths(reading)
    groups: dict[tuple[str, ...], list[int]] = {}
    for row in reading.chosen:
        beginning, _, ending = reading.text(captions[row], row, "caption").partition(
            reading.text(relations[row], row, "subset")
        )
        groups.setdefault((reading.image(images[row], row, "image"), beginning, ending), []).append(
            row
        )
    unpaired = []
    for (name, *_), rows in groups.items():
        foils = dict.fromkeys(captions[row].strip() for row in rows if not are_true[row])
        right = dict.fromkeys(captions[row].strip() for row in rows if are_true[row])
        wrong = tuple(foil for foil in foils if foil not in right)
        for row in rows:
            if wrong and are_true[row]:
                yield Unpictured(reading.item(row, [captions[row].strip()], wrong), [name])
        if not wrong or not right:
            unpaired += [f"row {row + 1}" for row in rows]
    why = (
        "have no statement with the opposite label that differs only in the relation and are "
        "left out"
    )
    reading.notes += sources.count_note(unpaired, len(reading.chosen), why)


def _spatial_triplets(reading: TableReading) -> Iterator[Unpictured]:
    """Read VSR as VISLA's spatial triplets. The two captions are true statements about a picture with subject and
    object exchanged. The foils are the three most similar statements in the table (by shared words) that are not true
    of the picture. In the paper, people then chose and edited the foils, so the foils here are only candidates. Source:
    VISLA, section 3.3.
    """
    true_rows, true_captions = _true_statements_by_objects(reading)
    captions = {row: reading.role("caption")[row].strip() for row in reading.chosen}
    words = {text: frozenset(audit.split_words(text)) for text in captions.values()}
    n_paired = 0
    for name, rows in true_rows.items():
        for (subject, landmark), first in rows.items():
            second = rows.get((landmark, subject), -1)
            if second <= first:
                continue
            n_paired += 2
            caption = captions[first]
            foils = heapq.nsmallest(
                SPATIAL_FOILS,
                (text for text in words if text not in true_captions[name]),
                key=lambda text: (
                    -len(words[caption] & words[text]) / len(words[caption] | words[text])
                ),
            )
            if foils:
                key = f"{reading.key(first)}-{reading.key(second).rpartition('/')[2]}"
                tags = reading.tags_of(first) | {"subset": "spatial"}
                texts = (caption, captions[second])
                yield Unpictured(Item(key, None, texts, tags, tuple(foils)), [name])
    n_true = sum(map(len, true_rows.values()))
    reading.notes.append(
        f"{n_true - n_paired:,} of {n_true:,} true statements have no true statement with subject and object exchanged "
        "and are left out. The foils are candidates: check that they are wrong before you report a number."
    )


def _true_statements_by_objects(
    reading: TableReading,
) -> tuple[dict[str, dict[tuple[str, str], int]], dict[str, set[str]]]:
    """Index the true statements in VSR by picture. Return the first row for each subject and object (such as cat and
    bed in "The cat is on the bed."), and the texts of all statements.
    """
    images, captions = reading.role("image"), reading.role("caption")
    relations = reading.values("relation")
    rows: dict[str, dict[tuple[str, str], int]] = {}
    statements: dict[str, set[str]] = {}
    for row, is_true in _truths(reading).items():
        text = reading.text(captions[row], row, "caption")
        if not is_true:
            continue
        name = reading.image(images[row], row, "image")
        statements.setdefault(name, set()).add(text)
        subject, _, landmark = text.lower().rstrip(".").partition(f" {relations[row]} ")
        objects = re.sub(r"^the | (is|are)$", "", subject), landmark.removeprefix("the ")
        if landmark:
            rows.setdefault(name, {}).setdefault(objects, row)
    return rows, statements


def _truths(reading: TableReading) -> dict[int, bool]:
    """Return, for each chosen row, whether its caption is labeled true."""
    truths: dict[int, bool] = {}
    values = reading.values(labels.LABEL)
    for row in reading.chosen:
        is_true = labels.is_true(str(values[row]))
        if is_true is None:
            raise reading.fault(row, labels.LABEL, "0 or 1")
        truths[row] = is_true
    return truths


def _people(reading: TableReading) -> Iterator[Unpictured]:
    """Read pictures of people. The tags gender, race and trait, which `queries` also gives to prompts, are derived from
    the two attributes in each row.
    """
    for unpictured in _captions(reading):
        item = unpictured.item
        values = [item.tags.get(column, "").lower() for column in ("a1", "a2")]
        attributes = [ATTRIBUTES[value] for value in values if value in ATTRIBUTES]
        tags = {KINDS[attribute]: attribute for attribute in attributes}
        yield unpictured._replace(item=replace(item, tags={**item.tags, **tags}))


MAKERS: Mapping[Kind, Callable[[TableReading], Iterator[Unpictured]]] = {
    "pair": _pairs,
    "foils": _foils,
    "triplet": _foils,
    "captions": _captions,
    "options": _options,
    "questions": _questions,
    "rows": _statements,
    "svo": _probes_of_verbs,
    "people": _people,
    "statements": _true_statements,
    "statement foils": _true_and_false,
    "statement triplets": _spatial_triplets,
}
