"""Which cases to look at, as people choose them: a condition on the questions in SQL, and one on the answers."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from vlprobe.errors import InvalidInput, NotFound

# Margins of cases to whether each has the outcome; what is unknown has none.
OUTCOMES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "fooled": lambda margin: margin <= 0,
    "tied": lambda margin: margin == 0,
    "held": lambda margin: margin > 0,
    "all": lambda margin: np.ones(len(margin), dtype=bool),
}
OTHER_OUTCOMES = {"": OUTCOMES["all"], "fooled": OUTCOMES["fooled"], "held": OUTCOMES["held"]}
# Margins of both models to what cases are sorted by, the smallest first and what is unknown last.
SORTS: dict[str, Callable[[np.ndarray, np.ndarray | None], np.ndarray]] = {
    "worst": lambda margin, other: margin,
    "closest": lambda margin, other: np.abs(margin),
    "best": lambda margin, other: -margin,
    "difference": lambda margin, other: -np.abs(margin - other),
    "dataset": lambda margin, other: np.zeros(len(margin), dtype=np.int8),
}
CORNERS = 500  # of a polygon


@dataclass(frozen=True)
class Filter:
    """Which cases of one model to look at. Empty means any."""

    model: str
    kind: str = "flip"
    subtype: str = ""
    rule: str = ""
    tag: str = ""  # name=value
    contains: str = ""  # words in a caption
    outcome: str = "fooled"
    sort: str = "worst"
    other: str = ""  # another model that was asked the same
    other_outcome: str = ""  # fooled (or tied) or held
    within: tuple[tuple[float, float], ...] = ()  # corners of a polygon: margin of the model, margin of the other
    tagged: str = ""  # what people said of the case

    @property
    def paired(self) -> bool:
        """Whether the other model's margins decide which cases pass, or in which order."""
        return bool(self.other_outcome or self.within or self.sort == "difference")


def check(chosen: Filter) -> None:
    """Raises NotFound or InvalidInput where a filter says what there is not."""
    for name, known in (("outcome", OUTCOMES), ("other_outcome", OTHER_OUTCOMES), ("sort", SORTS)):
        if getattr(chosen, name) not in known:
            raise NotFound(name.replace("_", " "), getattr(chosen, name), known)
    if chosen.paired and not chosen.other:
        raise InvalidInput("Only one model is named. Name the other that it is to be compared with.")
    if chosen.within and not 3 <= len(chosen.within) <= CORNERS:
        raise InvalidInput(f"A selection has {len(chosen.within)} corners. Expected 3 to {CORNERS}.")


def condition(chosen: Filter) -> tuple[str, list[object]]:
    """What a question meets that passes the filter, but for `tagged`, and the values of the question marks.

    It speaks of the columns of a question set's `cases`.
    """
    terms, values = ["true"], []
    for column in ("kind", "subtype", "rule"):
        if getattr(chosen, column):
            terms.append(f"{column} = ?")
            values.append(getattr(chosen, column))
    if chosen.tag:
        name, equals, value = chosen.tag.partition("=")
        if not equals:
            raise InvalidInput(f"Tag '{chosen.tag}' is not NAME=VALUE, such as background=sea.")
        terms.append("tags[?] = ?")
        values += [name, value]
    if chosen.contains:
        terms.append("contains(lower(array_to_string(texts, chr(10))), lower(?))")
        values.append(chosen.contains)
    return " AND ".join(terms), values


def answered(chosen: Filter, margin: np.ndarray, other: np.ndarray | None) -> np.ndarray:
    """Whether the answers to each case pass the filter.

    Args:
        chosen: The filter.
        margin: Of its model, a number a case.
        other: Of its other model, where the filter is `paired`.
    """
    passing = OUTCOMES[chosen.outcome](margin)
    if chosen.other_outcome:
        passing &= OTHER_OUTCOMES[chosen.other_outcome](other)
    if chosen.within:
        passing[passing] = _inside(chosen.within, margin[passing].astype(float), other[passing].astype(float))
    return passing


def first(chosen: Filter, margin: np.ndarray, other: np.ndarray | None, start: int, stop: int) -> np.ndarray:
    """The places of the cases that come from `start` to before `stop` in the filter's order; equals in their own."""
    by = SORTS[chosen.sort](margin, other)
    stop = min(stop, len(by))
    if start >= stop:
        return np.empty(0, dtype=np.int64)
    last = np.partition(by, stop - 1)[stop - 1]
    places = np.arange(len(by)) if np.isnan(last) else np.flatnonzero(by <= last)
    return places[np.argsort(by[places], kind="stable")][start:stop]


def _inside(corners: tuple[tuple[float, float], ...], x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Whether points lie in the polygon: a ray from the point crosses its sides an odd number of times."""
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
