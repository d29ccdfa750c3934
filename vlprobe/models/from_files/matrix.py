"""Imported scores for every picture and text, in a memory-mapped matrix.

FOLDER      scores.npy, with one row per picture and one column per text, in the order of the files
            that `vlprobe ask` wrote to the same folder
.npy        the same matrix, with rows and columns by position
.npz        the array `scores`; with `picture_ids` and `text_ids`, in any order
"""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from vlprobe.errors import InvalidInput
from vlprobe.models.from_files import arrays
from vlprobe.models.from_files import vectors as vector_file
from vlprobe.models.from_files.lookup import BoundLookup, Rows
from vlprobe.models.score_table import BOUNDS, UNKNOWN_SCALE, ScoreSource, row_of_key
from vlprobe.scoring import pictures
from vlprobe.storage import files
from vlprobe.types import Capabilities, ScoreType

SIDES = ("pictures", "texts")
NO_CELLS = frozenset[int]()
MOST_PLACES = 1 << 24  # float32 can distinguish this many positions


def check(path: Path) -> None:
    """Raise InvalidInput if the path cannot be a score matrix."""
    if path.is_dir():
        arrays.mapped(path / "scores.npy")
    elif path.suffix.lower() not in (".npy", ".npz"):
        raise InvalidInput(
            f"'{path}' is not a score matrix. Expected pictures as rows and texts as "
            "columns in a .npy or .npz file, or a folder with scores.npy."
        )
    else:
        vector_file.check(path)


def load(name: str, source: ScoreSource) -> "ScoreMatrix":
    """Load a score matrix as a model. For an archive, `source.mapping` may name the array with scores, under the key
    `score`. Raises InvalidInput.
    """
    path = source.file
    check(path)
    keys: dict[str, list[str] | None] = dict.fromkeys(SIDES)
    if path.is_dir():
        file = path / "scores.npy"
        matrix = arrays.mapped(file)
        keys = {side: vector_file.ids_beside(path, side) for side in SIDES}
    elif path.suffix.lower() == ".npy":
        file, matrix = path, arrays.mapped(path)
    else:
        score_name = source.mapping.get("score", "scores")
        members = arrays.read_archive(path, [score_name], ["picture_ids", "text_ids"])
        file, matrix = path, members[score_name]
        keys = {side: arrays.ids_in(path, members, f"{side[:-1]}_ids") for side in SIDES}
    _require_matrix(file, matrix, source.scale)
    details = [files.blake2b(file), source.scale, source.partial, sorted(source.mapping.items())]
    content = json.dumps([*details, keys["pictures"], keys["texts"]])
    digest = pictures.digest(f"score matrix version 1 {content}".encode())
    rows = {
        side: (None if ids is None else row_of_key(file, ids, size, side), size, NO_CELLS)
        for (side, ids), size in zip(keys.items(), matrix.shape, strict=True)
    }
    return ScoreMatrix(name, source, file, matrix, rows, digest)


def _require_matrix(file: Path, matrix: np.ndarray, scale: str) -> None:
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiu" or max(matrix.shape) > MOST_PLACES:
        raise InvalidInput(
            f"'{file}' has type {matrix.dtype} and shape {matrix.shape}. Expected a score "
            "for each picture (row) and text (column)."
        )
    bounds = BOUNDS.get(scale)
    for start, block in arrays.row_blocks(matrix):
        wrong = np.isinf(block)
        if bounds:
            wrong |= (block < bounds[0]) | (block > bounds[1])
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            expected = f"a {scale}" if bounds else "a finite number"
            raise InvalidInput(
                f"'{file}', row {start + row}, column {column}: the score is "
                f"{block[row, column]:g}. Expected {expected}."
            )


class ScoreMatrix(BoundLookup):
    """A model that looks up the score for any picture and text in a matrix.

    The vector for a picture or text holds its side and its position in the matrix, so only `similarity`
    and `paired` can interpret it.
    """

    def __init__(
        self,
        name: str,
        source: ScoreSource,
        file: Path,
        matrix: np.ndarray,
        rows: Mapping[str, Rows],
        digest: str,
    ) -> None:
        super().__init__(name, file, rows, source.partial)
        self.digest, self._matrix = digest, matrix
        self._scale: ScoreType = source.scale
        self.note = "scores from a file: similarities of texts are unknown"
        if source.scale == "unknown":
            self.note += UNKNOWN_SCALE

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of a model whose scores are in a matrix: one for every picture-text pair."""
        return Capabilities(
            looks_up=True, has_matrix=True, dim=2, image_dim=2, score_type=self._scale
        )

    def facts(self) -> dict[str, str]:
        """Describe the contents of the file, as a dictionary from subject to text."""
        n_pictures, n_texts = self._matrix.shape
        return {
            "architecture": "none: scores from a file",
            "parameters": "unknown",
            "scores": f"{n_pictures:,} pictures with {n_texts:,} texts",
        }

    def check_bound(self, is_gallery: bool) -> str:
        """Return a note about scores that are NaN, which count as missing. Raises InvalidInput if they are required."""
        images, texts = self.bound_rows()
        if not len(images):
            raise InvalidInput(
                f"All cases compare only texts, but '{self.name}' only has scores of pictures "
                "with texts. Choose a text encoder."
            )
        n_missing, first_cell = 0, (0, 0)
        for start, block in arrays.row_blocks(self._matrix):
            inside = images[(images >= start) & (images < start + len(block))]
            is_missing = np.isnan(block[inside - start][:, texts])
            if is_missing.any() and not n_missing:
                row, column = np.argwhere(is_missing)[0]
                first_cell = int(inside[row]), int(texts[column])
            n_missing += int(is_missing.sum())
        if not n_missing:
            return ""
        count = f"{n_missing:,} of {len(images) * len(texts):,} scores"
        if is_gallery or not self._is_partial:
            remedy = (
                "A search needs all scores in its gallery."
                if is_gallery
                else f"Add them, or use '{self.name}+partial' to mark their cases as unknown."
            )
            raise InvalidInput(
                f"'{self.file}' lacks {count} that the question set may need (first: row "
                f"{first_cell[0]}, column {first_cell[1]}). {remedy}"
            )
        return f"{count} are missing: cases that need them are unknown"

    def vectors_of_rows(self, side: str, rows: np.ndarray) -> np.ndarray:
        """Return the side and the position of each row, float32 with shape (n, 2), NaN for a negative row number."""
        addresses = np.stack([np.full(len(rows), SIDES.index(side)), rows], axis=1)
        return np.where(rows[:, None] < 0, np.nan, addresses).astype(np.float32)

    def similarity(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return the score for every pair of a left and a right input, float32 with shape (n, m)."""
        if len(left) and left[0, 0] == SIDES.index("texts"):
            return self.similarity(right, left).T
        images, texts = left[:, 1].astype(np.int64), right[:, 1].astype(np.int64)
        scores = np.empty((len(images), len(texts)), dtype=np.float32)
        width = max(1, self._matrix.shape[1] * self._matrix.dtype.itemsize)
        size = max(1, arrays.BLOCK_BYTES // width)
        for start in range(0, len(images), size):
            block = slice(start, start + size)
            scores[block] = self._matrix[images[block]][:, texts]
        return scores

    def paired(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return the score for each left input and the right input at the same position, NaN if one is unknown."""
        is_known = ~(np.isnan(left[:, 1]) | np.isnan(right[:, 1]))
        scores = np.full(len(left), np.nan, dtype=np.float32)
        images, texts = (side[is_known, 1].astype(np.int64) for side in (left, right))
        scores[is_known] = self._matrix[images, texts]
        return scores
