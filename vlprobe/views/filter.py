"""Filters for cases: a condition on the questions in SQL, and one on the answers."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vlprobe.errors import InvalidInput, NotFound
from vlprobe.views import bins, caption_bins, crossed

# Margins of cases to whether each has the outcome; an unknown margin has none.
OUTCOMES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "fooled": lambda margin: margin <= 0,
    "tied": lambda margin: margin == 0,
    "held": lambda margin: margin > 0,
    "all": lambda margin: np.ones(len(margin), dtype=bool),
}
OTHER_OUTCOMES = {"": OUTCOMES["all"], "fooled": OUTCOMES["fooled"], "held": OUTCOMES["held"]}
# Margins of both models, and how many of all models are fooled, to sort keys: the smallest first
# and what is unknown last. Most need the first model's margins only.
SORTS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    "worst": lambda margin, second, fooled: margin,
    "closest": lambda margin, second, fooled: np.abs(margin),
    "best": lambda margin, second, fooled: -margin,
    "difference": lambda margin, second, fooled: -np.abs(margin - second),
    "models": lambda margin, second, fooled: -fooled,
    "dataset": lambda margin, second, fooled: np.zeros(len(margin), dtype=np.int8),
}
LOST_TO = ("", "own")
PICTURED = ("", "here")
CORNERS = 500  # of a polygon
MOST_PAIRS = 100


@dataclass(frozen=True)
class Filter:
    """A filter for the cases of one model. Empty means any."""

    model: str
    kind: str = "flip"
    subtype: str = ""
    rule: str = ""
    tag: str = ""  # name=value
    contains: str = ""  # words in a caption
    outcome: str = "fooled"
    sort: str = "worst"
    other: str = ""  # another model with the same questions
    other_outcome: str = ""  # fooled (or tied) or held
    # Corners of a polygon: margin of the model, margin of the other.
    within: tuple[tuple[float, float], ...] = ()
    tagged: str = ""  # what people said of the case
    # Keys of patterns, of which a case is a member of one: see `views.pattern_groups`.
    pair: tuple[str, ...] = ()
    # "own": searches for a picture that are found, and lost to the picture's own mixture.
    lost_to: str = ""
    # NAME=VALUE of what the model's answers say of a case: see `views.bins`.
    bin: str = ""
    # NAME=VALUE of what the caption of a case is: see `views.caption_bins`.
    caption: str = ""
    # "here": cases with all their pictures on this machine.
    pictured: str = ""
    # KIND=OUTCOME of the model's answer to the same triplet on its other side: see `views.crossed`.
    crossed: str = ""

    @property
    def paired(self) -> bool:
        """Return whether the other model's margins decide which cases pass, or in which order."""
        return bool(self.other_outcome or self.within or self.sort == "difference")


class Matches(NamedTuple):
    """Cases whose questions pass a filter, and what sorts them; arrays of shape (n,).

    Attributes:
        numbers: Numbers of the cases, int32, rising.
        margins: Margins of the filter's model, float32.
        second_margins: Second margins of its second model, float32, where the filter is `paired`.
        n_fooled: Models that are fooled, where the filter sorts by `models`.
        is_pictured: Whether the pictures of each case are on this machine; None where all are.
    """

    numbers: np.ndarray
    margins: np.ndarray
    second_margins: np.ndarray | None = None
    n_fooled: np.ndarray | None = None
    is_pictured: np.ndarray | None = None

    def take(self, positions: np.ndarray) -> "Matches":
        """Return the cases at these positions, or those where a mask is True."""
        return Matches(*(None if column is None else column[positions] for column in self))  # type: ignore[arg-type]


def check(case_filter: Filter) -> None:
    """Raise NotFound or InvalidInput where a filter names what does not exist."""
    for name, names in (("outcome", OUTCOMES), ("other_outcome", OTHER_OUTCOMES), ("sort", SORTS)):
        if getattr(case_filter, name) not in names:
            raise NotFound(name.replace("_", " "), getattr(case_filter, name), names)
    if case_filter.lost_to not in LOST_TO:
        raise NotFound("way to lose", case_filter.lost_to, LOST_TO)
    if case_filter.pictured not in PICTURED:
        raise NotFound("place of pictures", case_filter.pictured, PICTURED)
    if case_filter.bin:
        bins.check(case_filter.bin)
    if case_filter.caption:
        caption_bins.check(case_filter.caption)
    if case_filter.crossed:
        crossed.check(case_filter.crossed)
    if case_filter.paired and not case_filter.other:
        raise InvalidInput(
            "Only one model is named. Name the other that it is to be compared with."
        )
    if case_filter.within and not 3 <= len(case_filter.within) <= CORNERS:
        raise InvalidInput(
            f"A selection has {len(case_filter.within)} corners. Expected 3 to {CORNERS}."
        )
    if len(case_filter.pair) > MOST_PAIRS:
        raise InvalidInput(
            f"{len(case_filter.pair)} patterns are chosen. Expected at most {MOST_PAIRS}."
        )


def parse_corners(text: str) -> tuple[tuple[float, float], ...]:
    """The corners of an area as a link has them: x,y;x,y;... Nothing where it is not that.

    >>> parse_corners("0,0;1,0;1,1"), parse_corners("0,0;nan,1;1,1")
    (((0.0, 0.0), (1.0, 0.0), (1.0, 1.0)), ())
    """
    try:
        corners = tuple(
            (float(x), float(y)) for x, y in (pair.split(",") for pair in text.split(";") if pair)
        )
    except ValueError:
        return ()
    is_finite = all(math.isfinite(number) for corner in corners for number in corner)
    return corners if 3 <= len(corners) <= CORNERS and is_finite else ()


def condition(case_filter: Filter) -> tuple[str, list[object]]:
    """The SQL condition on a question set's `cases` that the filter stands for, but for `tagged`,
    `pair`, `lost_to`, `bin`, `caption`, `pictured` and `crossed`.

    Returns:
        The condition, and the values of its question marks.
    """
    terms, values = ["true"], []
    for column in ("kind", "subtype", "rule"):
        if getattr(case_filter, column):
            terms.append(f"{column} = ?")
            values.append(getattr(case_filter, column))
    if case_filter.tag:
        name, equals, value = case_filter.tag.partition("=")
        if not equals:
            raise InvalidInput(
                f"Tag '{case_filter.tag}' is not NAME=VALUE, such as background=sea."
            )
        terms.append("tags[?] = ?")
        values += [name, value]
    if case_filter.contains:
        terms.append("contains(lower(array_to_string(texts, chr(10))), lower(?))")
        values.append(case_filter.contains)
    return " AND ".join(terms), values


def passing(case_filter: Filter, matches: Matches) -> np.ndarray:
    """Return whether the answers to each case pass the filter: bool of shape (n,)."""
    margins, second_margins = matches.margins, matches.second_margins
    is_passing = OUTCOMES[case_filter.outcome](margins)
    if second_margins is not None:
        if case_filter.other_outcome:
            is_passing &= OTHER_OUTCOMES[case_filter.other_outcome](second_margins)
        if case_filter.within:
            x, y = margins[is_passing].astype(float), second_margins[is_passing].astype(float)
            is_passing[is_passing] = _inside(case_filter.within, x, y)
    return is_passing


def sorted_indices(case_filter: Filter, matches: Matches, start: int, stop: int) -> np.ndarray:
    """Return indices of the cases from `start` to before `stop` in the filter's order; ties stay in the
    order of cases. See `sort_keys`.
    """
    keys = sort_keys(case_filter, matches)
    stop = min(stop, len(keys))
    if start >= stop:
        return np.empty(0, dtype=np.int64)
    bound = np.partition(keys, stop - 1)[stop - 1]
    candidates = np.arange(len(keys)) if np.isnan(bound) else np.flatnonzero(keys <= bound)
    return candidates[np.argsort(keys[candidates], kind="stable")][start:stop]


def sort_keys(case_filter: Filter, matches: Matches) -> np.ndarray:
    """Return what cases are sorted by, the smallest first, shape (n,): cases with a picture come
    before those without, each half in the filter's order.
    """
    margins, second_margins, n_fooled = matches[1:4]
    keys = SORTS[case_filter.sort](
        margins,
        margins if second_margins is None else second_margins,
        np.zeros(len(margins)) if n_fooled is None else n_fooled,
    )
    if matches.is_pictured is None:
        return keys
    ranks = np.unique(keys, return_inverse=True)[1]
    return np.where(matches.is_pictured, ranks, ranks + len(ranks))


def _inside(corners: tuple[tuple[float, float], ...], x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return whether points lie in the polygon: a ray from the point crosses its sides an odd number of
    times.
    """
    sides = list(zip(corners, (*corners[1:], corners[0]), strict=True))
    xs, ys = zip(*corners, strict=True)
    boxed = (x >= min(xs)) & (x <= max(xs)) & (y >= min(ys)) & (y <= max(ys))
    if len(set(corners)) == 4 and all(a[0] == b[0] or a[1] == b[1] for a, b in sides):
        return boxed
    odd = np.zeros(len(x), dtype=bool)
    for (from_x, from_y), (to_x, to_y) in sides:
        if from_y != to_y:
            slope = (to_x - from_x) / (to_y - from_y)
            odd ^= ((y < from_y) != (y < to_y)) & (x < from_x - from_y * slope + y * slope)
    return boxed & odd
