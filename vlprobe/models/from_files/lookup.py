"""Base classes for models that are files."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np

from vlprobe.errors import InvalidInput
from vlprobe.scoring.cases import cosines
from vlprobe.scoring.gallery import similarity_matrix
from vlprobe.scoring.inputs import text_id
from vlprobe.types import Inputs, Lookup, Picture

SIDES = {"pictures": "picture", "texts": "text"}
PARTIAL = "partial"
Rows = tuple[Mapping[str, int] | None, int, frozenset[int]]


class _Sought(NamedTuple):
    """The result of looking up all inputs on one side."""

    n_asked: int
    n_missing: int
    first_missing: str


class CosineLookup(Lookup):
    """A Lookup with unit vectors, which are compared by their cosines."""

    def similarity(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return the cosine for every pair of a left row and a right row."""
        return similarity_matrix(left, right)

    def paired(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return the cosine of each left row with the right row at the same position."""
        rows = np.arange(len(left))
        return cosines(left, rows, right, rows)


class BoundLookup(Lookup):
    """A Lookup that finds the rows for inputs by key or by position.

    Args:
        name: The name of the model.
        file: The file or folder that holds the answers.
        rows: For each side, "pictures" and "texts": the row for each key (None: rows are in the order of the inputs),
            the number of rows, and the set of empty rows.
        is_partial: Whether to treat missing rows as unknown instead of rejecting them.
    """

    def __init__(self, name: str, file: Path, rows: Mapping[str, Rows], is_partial: bool) -> None:
        self.name, self.file, self._rows, self._is_partial = name, file, rows, is_partial
        self._row_of_text: dict[str, int] = {}  # by `text_id`
        self._row_of_picture: dict[str, int] = {}  # by its name
        self._bound_to, self._note = "", ""

    @property
    def is_bound(self) -> bool:
        """Whether rows have been assigned to the inputs of a run."""
        return bool(self._bound_to)

    def tokenize(self, texts: Sequence[str]) -> NoReturn:
        """Raise InvalidInput, because a file cannot tokenize text."""
        raise InvalidInput(
            f"'{self.name}' only has embeddings for the pictures and texts in its file. "
            "Choose a model to embed other texts."
        )

    def bound_rows(self) -> list[np.ndarray]:
        """Return the rows assigned to pictures and the rows assigned to texts, each in ascending order."""
        sides = (self._row_of_picture, self._row_of_text)
        return [np.array(sorted({*row_of.values()} - {-1}), np.int64) for row_of in sides]

    def bind(self, inputs: Inputs, key: str, *, is_gallery: bool) -> str:
        """Find the rows for the pictures and texts in a run; see `types.Lookup`."""
        if self._bound_to == f"{key} {is_gallery}":
            return self._note
        self._bound_to = ""
        self._row_of_text, self._row_of_picture = {}, {}
        sought = {}
        if "pictures" in self._rows:
            images = ((picture.name, keys) for picture, keys in inputs.pictures())
            sought["pictures"] = self._find("pictures", images, self._row_of_picture)
        texts = ((keys[0], keys) for _, keys in inputs.texts())
        sought["texts"] = self._find("texts", texts, self._row_of_text)
        notes = [self._note_on_missing(sought, is_gallery), self.check_bound(is_gallery)]
        self._note = "; ".join(filter(None, notes))
        self._bound_to = f"{key} {is_gallery}"
        return self._note

    def check_bound(self, is_gallery: bool) -> str:
        """Return an additional note about the rows that were found. Raises InvalidInput if they cannot be used."""
        return ""

    def _find(
        self, side: str, keys_of_names: Iterable[tuple[str, Sequence[str]]], row_of: dict[str, int]
    ) -> _Sought:
        """Fill `row_of` with the row for each input, or -1 for a missing input."""
        rows, n_rows, empty = self._rows[side]
        place_of: dict[str, int] = {}
        missing: set[str] = set()
        first_name = first_missing = ""
        for name, keys in keys_of_names:
            first_name = first_name or keys[-1]
            content = keys[0]
            place = place_of.setdefault(content, len(place_of))
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
        if rows is None and len(place_of) != n_rows:
            raise InvalidInput(
                f"'{self.file}' has {n_rows:,} {side} without ids, but the question set has "
                f"{len(place_of):,}. Expected one row for each, in the order in which `vlprobe "
                "ask` lists them."
            )
        if place_of and len(missing) == len(place_of):
            key = next(iter(rows or {}), "")
            holds = f"its first key is '{key[:80]}'" if key else "its rows are empty"
            raise InvalidInput(
                f"'{self.file}' has none of the {len(place_of):,} {side} of the question set: "
                f"{holds}, but the first {SIDES[side]} is '{first_name[:80]}'. Expected the ids "
                "that `vlprobe ask` writes, or file names and texts."
            )
        return _Sought(len(place_of), len(missing), first_missing)

    def _note_on_missing(self, sought: Mapping[str, _Sought], is_gallery: bool) -> str:
        """Return a note about missing rows. Raises InvalidInput if rows are missing but required."""
        lacking = {side: of_side for side, of_side in sought.items() if of_side.n_missing}
        counts = " and ".join(
            f"{of_side.n_missing:,} of {of_side.n_asked:,} {side}"
            for side, of_side in lacking.items()
        )
        if not lacking:
            by_place = [side for side in sought if self._rows[side][0] is None]
            return f"{' and '.join(by_place)} are matched by position" if by_place else ""
        side, of_side = next(iter(lacking.items()))
        problem = (
            f"'{self.file}' lacks {counts} (first: {SIDES[side]} '{of_side.first_missing[:80]}')"
        )
        if is_gallery:
            raise InvalidInput(
                f"{problem}. A search needs all pictures and texts in its gallery; "
                "`vlprobe ask` lists them."
            )
        if not self._is_partial:
            raise InvalidInput(
                f"{problem}. Add them, or use '{self.name}+{PARTIAL}' to mark their cases "
                "as unknown."
            )
        return f"{counts} are missing: their cases are unknown"

    def text_vectors(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors for texts, float32 with shape (n, dim), NaN for texts that are not in the file."""
        rows = [self._row_of_text.get(text_id(text), -1) for text in texts]
        return self.vectors_of_rows("texts", np.array(rows, dtype=np.int64))

    def image_vectors(self, images: Sequence[Picture]) -> np.ndarray:
        """Return the vectors for pictures, float32 with shape (n, dim), NaN for pictures that are not in the file."""
        rows = [self._row_of_picture.get(picture.name, -1) for picture in images]
        return self.vectors_of_rows("pictures", np.array(rows, dtype=np.int64))

    def vectors_of_rows(self, side: str, rows: np.ndarray) -> np.ndarray:
        """Return the vectors in the given rows of the file, NaN for a negative row number."""
        raise NotImplementedError
