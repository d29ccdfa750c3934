"""A table in memory with the scores from a file, and size limits for such files."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from vlprobe.errors import InvalidInput
from vlprobe.types import ScoreType

MAX_BYTES = 512 << 20  # limit for a file, and for its unpacked content
MAX_TEXT_BYTES = 128 << 20  # limit for a text file, which takes many times its size in memory
MAX_ROWS = 5_000_000  # limit for a file with columns
MAX_CELLS = 50_000_000  # cases times captions times pictures
UNKNOWN_SCALE = (  # ends a note on scores
    ", and so is what is measured in cosines or needs probabilities, because the scale is not named "
    "(+probability, +cosine or +logit)"
)
# Bounds of a score on each scale; rounding may take a cosine beyond 1
BOUNDS = {"cosine": (-1.001, 1.001), "probability": (0.0, 1.0)}
Cell = tuple[int, int]  # caption and picture, counted from 0


@dataclass(frozen=True, slots=True)
class ScoreSource:
    """The parsed name of a model with imported scores."""

    file: Path
    scale: ScoreType
    partial: bool
    is_matrix: bool
    mapping: Mapping[str, str]


@dataclass(frozen=True)
class ScoreTable:
    """The scores in a file. A missing score is NaN."""

    rows: Mapping[str, int]  # the row for each case or item, by its key
    scores: np.ndarray  # float64 with shape (rows, captions, pictures)
    by_place: bool = False  # whether rows have no keys and are items by their position in the data
    # Whether the true caption was chosen when it was listed first and when it was listed second: 1, 0
    # or NaN, float64 with shape (rows, 2); None if every question was asked once
    orders: np.ndarray | None = None
    is_verdict: bool = False  # whether the scores come from right or wrong answers
    # For a log, the row by its sorted captions and its picture's name, "" if the log names none
    by_content: Mapping[tuple[tuple[str, ...], str], int] = field(default_factory=dict)
    # For a log, the captions of each row, in the order of `scores`
    texts: tuple[tuple[str, ...], ...] = ()
    n_unparsed: int = 0  # replies in a log that name no caption, or several
    first_unparsed: str = ""
    # Scores for text pairs, float64 with shape (rows, pairs) in the order 01, 02, 12; None without any
    text_scores: np.ndarray | None = None

    @property
    def n_scores(self) -> int:
        """The number of scores that are not missing."""
        return int((~np.isnan(self.scores)).sum())


def table_of_verdicts(rows: Mapping[str, int], orders: np.ndarray) -> ScoreTable:
    """Convert right or wrong answers to a score table.

    Args:
        rows: The row for each case or item, by its key.
        orders: Answers as 1, 0 or NaN, float64 with shape (rows, 1), or with shape (rows, 2) if every question was
            asked with the true caption first and second. A caption's score is the share of orders in which it was
            chosen.
    """
    share = orders.mean(axis=1)
    scores = np.stack([share, 1 - share], axis=1)[:, :, None]
    return ScoreTable(
        rows, scores, orders=orders if orders.shape[1] == 2 else None, is_verdict=True
    )


def row_of_key(
    file: Path, keys: Sequence[str], n_rows: int | None = None, noun: str = "rows"
) -> dict[str, int]:
    """Map each key to its row. Raises InvalidInput if a key occurs twice, or the number of keys is not `n_rows`."""
    if n_rows not in (None, len(keys)):
        raise InvalidInput(
            f"'{file}' has {len(keys):,} ids for {n_rows:,} {noun}. Expected one id for each."
        )
    rows = {key: row for row, key in enumerate(keys)}
    if len(rows) < len(keys):
        twice = next(key for row, key in enumerate(keys) if rows[key] != row)
        raise InvalidInput(
            f"'{file}' lists '{twice}' more than once. Expected one row for each case."
        )
    return rows


def empty_scores(file: Path, n_rows: int, cells: Sequence[Cell]) -> np.ndarray:
    """Allocate a NaN array that has room for the given cells in each of `n_rows` cases. Raises InvalidInput if it
    would be too large.
    """
    shape = (n_rows, *(1 + max((cell[axis] for cell in cells), default=0) for axis in (0, 1)))
    if math.prod(shape) > MAX_CELLS:
        raise InvalidInput(
            f"'{file}' has up to {shape[1]:,} captions and {shape[2]:,} pictures per case for "
            f"{n_rows:,} cases. The maximum is {MAX_CELLS:,} scores in total."
        )
    return np.full(shape, np.nan)
