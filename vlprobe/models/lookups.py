"""What models that look up pictures and texts share: which row of a file is whose."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from vlprobe.errors import InvalidInput
from vlprobe.scoring.inputs import text_id
from vlprobe.types import Inputs, Lookup, Picture

SIDES = {"pictures": "picture", "texts": "text"}
PARTIAL = "partial"
Rows = tuple[Mapping[str, int] | None, int, frozenset[int]]


class _Sought(NamedTuple):
    """How the inputs of one side were found."""

    n_asked: int
    n_missing: int
    first: str  # of those that are asked about
    first_missing: str


class BoundLookup(Lookup):
    """A Lookup that binds by keys, or by place.

    Args:
        name: Of the model.
        file: For errors.
        rows: Of the sides that it has, "pictures" and "texts": row by key (None: in the order of what
            is asked), how many rows, and which of these hold nothing.
        is_partial: Whether what is missing is unknown rather than refused.
    """

    def __init__(self, name: str, file: str, rows: Mapping[str, Rows], is_partial: bool) -> None:
        self.name, self._file, self._rows, self._is_partial = name, file, rows, is_partial
        self._row_of_text: dict[str, int] = {}  # by `text_id`
        self._row_of_picture: dict[str, int] = {}  # by its name
        self._bound_to, self._note = "", ""

    @property
    def is_bound(self) -> bool:
        """Whether it knows which rows are whose."""
        return bool(self._bound_to)

    def bind(self, inputs: Inputs, key: str, *, is_gallery: bool) -> str:
        """Finds the rows of a run's pictures and texts; see `types.Lookup`."""
        if self._bound_to == f"{key} {is_gallery}":
            return self._note
        self._bound_to = ""
        self._row_of_text, self._row_of_picture = {}, {}
        sought = {}
        if "pictures" in self._rows:
            named = ((picture.name, keys) for picture, keys in inputs.pictures())
            sought["pictures"] = self._find("pictures", named, self._row_of_picture)
        texts = ((keys[0], keys) for _, keys in inputs.texts())
        sought["texts"] = self._find("texts", texts, self._row_of_text)
        self._note = self._told(sought, is_gallery)
        self._bound_to = f"{key} {is_gallery}"
        return self._note

    def _find(
        self,
        side: str,
        named: Iterable[tuple[str, Sequence[str]]],
        row_of: dict[str, int],
    ) -> _Sought:
        """Fills `row_of`; what is missing has the row -1."""
        rows, n_rows, empty = self._rows[side]
        places: dict[str, int] = {}
        missing: set[str] = set()
        first = first_missing = ""
        for name, keys in named:
            first = first or keys[-1]
            content = keys[0]
            place = places.setdefault(content, len(places))
            if rows is None:
                row = place if place < n_rows else -1
            else:
                row = next((rows[key] for key in keys if key in rows), -1)
            if row in empty:
                row = -1
            if row < 0:
                missing.add(content)
                first_missing = first_missing or keys[-1]
            row_of[name] = row
        if rows is None and len(places) != n_rows:
            raise InvalidInput(
                f"'{self._file}' has {n_rows:,} {side} without ids, and {len(places):,} are asked about. Expected one "
                "row for each, in the order in which `vlprobe ask` writes them."
            )
        if places and len(missing) == len(places):
            key = next(iter(rows or {}), "")
            holds = f"its first key is '{key[:80]}'" if key else "its rows are empty"
            raise InvalidInput(
                f"'{self._file}' has none of the {len(places):,} {side} that are asked about: {holds}, and the first "
                f"{SIDES[side]} is '{first[:80]}'. Expected the ids that `vlprobe ask` writes, or their names."
            )
        return _Sought(len(places), len(missing), first, first_missing)

    def _told(self, sought: Mapping[str, _Sought], is_gallery: bool) -> str:
        """What a reader must know. Raises InvalidInput where what is missing is refused."""
        lacking = {side: of_side for side, of_side in sought.items() if of_side.n_missing}
        counts = " and ".join(
            f"{of_side.n_missing:,} of {of_side.n_asked:,} {side}"
            for side, of_side in lacking.items()
        )
        if not lacking:
            by_place = [side for side in sought if self._rows[side][0] is None]
            return f"{' and '.join(by_place)} are found by their place" if by_place else ""
        side, of_side = next(iter(lacking.items()))
        what = (
            f"'{self._file}' lacks {counts} (first: {SIDES[side]} '{of_side.first_missing[:80]}')"
        )
        if is_gallery:
            raise InvalidInput(f"{what}. A gallery takes them all: `vlprobe ask` writes them.")
        if not self._is_partial:
            raise InvalidInput(
                f"{what}. Add them, or write '{self.name}+{PARTIAL}' to leave their cases unknown."
            )
        return f"{counts} are missing: their cases are unknown"

    def text_vectors(self, texts: Sequence[str]) -> np.ndarray:
        """Float32 of shape (n, dim), NaN where the file has none."""
        rows = [self._row_of_text.get(text_id(text), -1) for text in texts]
        return self.vectors_of_rows("texts", np.array(rows, dtype=np.int64))

    def image_vectors(self, images: Sequence[Picture]) -> np.ndarray:
        """Float32 of shape (n, dim), NaN where the file has none."""
        rows = [self._row_of_picture.get(picture.name, -1) for picture in images]
        return self.vectors_of_rows("pictures", np.array(rows, dtype=np.int64))

    def vectors_of_rows(self, side: str, rows: np.ndarray) -> np.ndarray:
        """Rows of the file to vectors; NaN for a negative row."""
        raise NotImplementedError
