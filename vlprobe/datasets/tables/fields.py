"""The values of a table's rows, as a layout needs them; an unexpected value is reported with its row and column."""

import ast
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from vlprobe.datasets.tables.layouts import Layout
from vlprobe.datasets.tables.reader import Table
from vlprobe.errors import InvalidInput

MOST_LITERAL = 200_000  # characters of a list that is written as text


class Fields:
    """A table with its layout; each column is taken out once."""

    def __init__(self, table: Table, layout: Layout) -> None:
        self.table, self.layout = table, layout
        self._values: dict[str, Sequence[Any]] = {}
        self._names = table.names
        self._no_texts = [""] * table.n_rows  # of a role that no column has

    def values(self, column: str) -> Sequence[Any]:
        """A column: texts, or lists of texts."""
        if column not in self._values:
            self._values[column] = self.table.values(column)
        return self._values[column]

    def role(self, role: str) -> Sequence[Any]:
        """The values of the column that has a role; empty texts where no column has it."""
        column = self.layout.columns.get(role, "")
        if column in self._names:
            return self.values(column)
        return self._no_texts

    def chosen_rows(self, chosen: Mapping[str, str]) -> list[int]:
        """Return the numbers of the rows that have these values, by column. Raises InvalidInput."""
        rows = list(range(self.table.n_rows))
        for column, value in chosen.items():
            if column not in self.table.columns:
                raise InvalidInput(
                    f"'{self.table.file}' has no column '{column}'. Leave '+{column}={value}' out."
                )
            values = self.values(column)
            rows = [row for row in rows if values[row] == value]
            if not rows:
                listing = ", ".join(sorted(set(map(str, values)))[:12])
                raise InvalidInput(
                    f"'{self.table.file}' has no rows of the {column} '{value}'. Expected one of: {listing}."
                )
        return rows

    def n_values(self, column: str) -> int:
        """Count how many distinct values a column of texts has; of lists more than any tag may have."""
        import pyarrow as pa

        values = self.table.columns[column]
        if pa.types.is_list(values.type) or pa.types.is_large_list(values.type):
            return self.table.n_rows + 1_000_000
        return len(values.unique())

    def fault(self, row: int, role: str, expected: str) -> InvalidInput:
        """The error about a value."""
        column = self.layout.columns.get(role, role)
        return InvalidInput(
            f"'{self.table.file}', row {row + 1}, column '{column}': expected {expected}."
        )

    def text(self, value: object, row: int, role: str) -> str:
        """A value that must be text; of a list the first. Raises InvalidInput."""
        texts = self.texts(value)
        if not texts or not texts[0]:
            raise self.fault(row, role, "text, but there is none")
        return texts[0]

    def texts(self, value: object) -> list[str]:
        """The texts of a value: a text, a list, or a list as Python writes it."""
        if isinstance(value, str):
            texts = _literal(value) if value.lstrip().startswith("[") else [value]
        else:
            texts = value if isinstance(value, list) else []
        return [text.strip() for text in texts if isinstance(text, str)]

    def number(self, value: str, row: int, role: str) -> int:
        """A value that must be a whole number. Raises InvalidInput."""
        if not value.strip().isdecimal():
            raise self.fault(row, role, "a whole number")
        return int(value)

    def image(self, value: object, row: int, role: str) -> str:
        """The name of a picture; of an address in the web the last part of its path.

        Raises InvalidInput where there is none.
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
        """The part of the picture that is meant, as `storage.containers` names it; "" for all of it."""
        if not self.layout.box:
            return ""
        sides = []
        for column in self.layout.box:
            try:
                sides.append(round(float(self.values(column)[row])))
            except (ValueError, OverflowError):
                raise self.fault(row, column, "a number of pixels") from None
        return "crop={},{},{},{}".format(*sides)


def _literal(text: str) -> list[str]:
    """The texts of a list as Python or JSON writes it; the text itself where it is none."""
    try:
        value = ast.literal_eval(text.strip()) if len(text) <= MOST_LITERAL else None
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return [text]
    is_list = isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
    return list(value) if value is not None and is_list else [text]
