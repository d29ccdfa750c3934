"""The scores of a file in memory, and how large one may be."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from vlprobe.errors import InvalidInput

MAX_BYTES = 512 << 20  # of a file, and of what it unpacks to
MAX_TEXT_BYTES = 128 << 20  # of a file of text, which takes many times its size
MAX_ROWS = 5_000_000  # of a file with columns
MAX_CELLS = 50_000_000  # cases times captions times pictures
UNKNOWN_SCALE = (  # ends a note on scores
    ", and so is what is measured in cosines or needs probabilities, because the scale is not named "
    "(+probability, +cosine or +logit)"
)
Cell = tuple[int, int]  # caption and picture, counted from 0


@dataclass(frozen=True)
class ScoreTable:
    """The scores of a file, NaN if it has none."""

    rows: Mapping[str, int]  # of a case or an item, by its key
    scores: np.ndarray  # float64 of shape (rows, captions, pictures)
    by_place: bool = False  # whether a row is an item by its place in the data: it has no keys
    # Whether the true caption was chosen where it was listed first, and where second: 1, 0 or NaN,
    # float64 of shape (rows, 2); None if every question was posed once
    orders: np.ndarray | None = None
    is_verdict: bool = False  # read from columns of right and wrong answers
    # Of a log: row by its captions, sorted, and its picture's name, "" if the log names none
    by_content: Mapping[tuple[tuple[str, ...], str], int] = field(default_factory=dict)
    texts: tuple[
        tuple[str, ...], ...
    ] = ()  # of a log: the captions of each row, as `scores` has them
    n_unparsed: int = 0  # replies of a log that name no caption, or several
    first_unparsed: str = ""
    # Scores of text pairs, float64 of shape (rows, pairs) in the order 01, 02, 12; None without any
    text_scores: np.ndarray | None = None

    @property
    def n_scores(self) -> int:
        """Count how many scores there are."""
        return int((~np.isnan(self.scores)).sum())


def table_of_verdicts(rows: Mapping[str, int], orders: np.ndarray) -> ScoreTable:
    """Convert right or wrong answers to a table of scores.

    Args:
        rows: The row of each case or item by its key.
        orders: 1, 0 or NaN, float64 of shape (rows, 1), or (rows, 2) if every question was posed with the true
        caption first and second. The score of a caption is the share of the orders
            in which it was chosen.
    """
    share = orders.mean(axis=1)
    scores = np.stack([share, 1 - share], axis=1)[:, :, None]
    return ScoreTable(
        rows, scores, orders=orders if orders.shape[1] == 2 else None, is_verdict=True
    )


def row_of_key(
    file: Path, keys: Sequence[str], n_rows: int | None = None, noun: str = "rows"
) -> dict[str, int]:
    """Map each key to its row. Raises InvalidInput if a key occurs twice, or there are not `n_rows` keys."""
    if n_rows not in (None, len(keys)):
        raise InvalidInput(
            f"'{file}' has {len(keys):,} ids for {n_rows:,} {noun}. Expected one id for each."
        )
    rows = {key: row for row, key in enumerate(keys)}
    if len(rows) < len(keys):
        twice = next(key for row, key in enumerate(keys) if rows[key] != row)
        raise InvalidInput(
            f"'{file}' names '{twice}' more than once. Expected one row for each case."
        )
    return rows


def empty_scores(file: Path, n_rows: int, cells: Sequence[Cell]) -> np.ndarray:
    """Room for these captions and pictures of so many cases. Raises InvalidInput if that is too much."""
    shape = (n_rows, *(1 + max((cell[axis] for cell in cells), default=0) for axis in (0, 1)))
    if math.prod(shape) > MAX_CELLS:
        raise InvalidInput(
            f"'{file}' has up to {shape[1]:,} captions and {shape[2]:,} pictures for "
            f"{n_rows:,} cases. The maximum is {MAX_CELLS:,} scores in total."
        )
    return np.full(shape, np.nan)
