"""Place names next to the marks in a figure so that they do not overlap each other or the marks.

Plotly puts texts at fixed positions and lets them overlap. The browser decides how wide a figure is, so a place
counts as free only if it is free at each of `WIDTHS`. Names that are not free in a narrow figure are hidden there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

# Pixels of a plot in windows of 1024 and 1280 pixels, in a figure file, and in a narrow window (390 pixels)
WIDTHS = (580, 765, 602, 288)
NARROW = 3  # index of the last one, which counts less than the others
GAPS = (4, 10, 20, 34, 52, 74)  # pixels between a mark and its name
LEADER = 16  # pixels: a wider gap gets a line from the mark to its name
WAYS = ((1, 0), (-1, 0), (1, -1), (1, 1), (-1, -1), (-1, 1), (0, -1), (0, 1))
LETTER, LINE = 7.0, 18  # pixels: width of a letter, height of a line
MARK = 11  # pixels: half of a mark with the space around it
ON_MARK_OR_NAME, ON_ARM = 10.0, 3.0  # cost per covered square pixel
IN_NARROW = 0.1  # factor of costs in a narrow figure
ON_CAP = 16.0  # square pixels of an end cap that a name may cover in a narrow figure
OUTSIDE = 400.0  # cost per pixel outside of the plot
PASSES = 4
PIECES = np.linspace(0.2, 0.8, 4)  # places along a leader that count as covered
THICK = np.array([-2.0, -2.0, 2.0, 2.0])  # pixels of a leader to all sides


@dataclass(frozen=True, slots=True)
class NamedMark:
    """A mark with its name and intervals. Positions are shares of the plot's size, from the lower left corner."""

    text: str  # "" for an obstacle without a name
    x: float
    y: float
    across: tuple[float, float]  # ends of the horizontal interval
    along: tuple[float, float]
    line_to: tuple[float, float] | None = None  # other end of a line that begins at the mark


@dataclass(frozen=True, slots=True)
class LabelPlace:
    """Where to draw a name: the offset of its center from the mark, in pixels to the right and upward."""

    right: float
    up: float
    has_leader: bool
    fits_narrow: bool  # whether the name is also free in a narrow figure


def place_names(
    marks: Sequence[NamedMark], height: float, corner: str = ""
) -> list[LabelPlace | None]:
    """Find a position for each name. The result is None for marks without a name and for names that do not fit
    anywhere.

    Args:
        marks: All marks in the figure. Names of earlier marks are placed first.
        height: Height of the plot in pixels.
        corner: Text in the upper right corner of the plot.
    """
    if not any(mark.text for mark in marks):
        return [None] * len(marks)
    sizes = np.array([(width, height) for width in WIDTHS])  # (W, 2)
    centers = np.array([(mark.x, mark.y) for mark in marks]).reshape(-1, 1, 2) * sizes  # (M, W, 2)
    # The boxes of each place of a name: its text, and the pieces of its leader, shape (places, 1 + pieces, W, 4)
    boxes = {
        index: np.tile(centers[index], 2) + _candidates(mark.text)[:, :, None]
        for index, mark in enumerate(marks)
        if mark.text
    }
    solid = np.concatenate([centers - MARK, centers + MARK], axis=2)  # (M, W, 4)
    if corner:
        in_corner = np.concatenate([sizes - (LETTER * len(corner), LINE), sizes], axis=1)
        solid = np.concatenate([solid, in_corner[None]])
    weights = np.ones(len(WIDTHS))
    weights[NARROW] = IN_NARROW
    arms = np.array([_arms(mark, sizes) for mark in marks])  # (M, A, W, 4)
    every_arm = np.concatenate(arms)
    chosen: dict[int, int] = {}  # index of the chosen candidate for each name
    # A small cost per candidate prefers near places, then places to the right
    order = np.array([3 * gap + way for gap in GAPS for way in range(len(WAYS))])

    def covered(index: int, places: Mapping[int, int]) -> np.ndarray:
        """Return the boxes that the name must not overlap: all other marks, names and leaders, shape (O, W, 4)."""
        names = [boxes[other][place] for other, place in places.items() if other != index]
        return np.concatenate([np.delete(solid, index, axis=0), *names])

    def is_free(index: int, places: Mapping[int, int]) -> np.ndarray:
        """Return whether the place of a name is inside and overlaps no mark or name, by width."""
        box = boxes[index][chosen[index]]
        is_inside = ((box[..., :2] >= -2) & (box[..., 2:] <= sizes + 2)).all(axis=(0, 2))
        return is_inside & (_overlap(box, covered(index, places)).sum(axis=0) <= 2)

    for _ in range(PASSES):
        for index, box in boxes.items():
            text, leader = box[:, 0], box[:, 1:]
            outside = np.maximum(-text[..., :2], 0) + np.maximum(text[..., 2:] - sizes, 0)
            cost = ON_MARK_OR_NAME * _overlap(box, covered(index, chosen)).sum(axis=1)
            cost += ON_ARM * _overlap(text, every_arm) + OUTSIDE * outside.sum(axis=2)
            intervals = np.delete(arms, index, axis=0)[:, :2].reshape(-1, len(sizes), 4)
            cost += ON_ARM * _overlap(leader, intervals).sum(axis=1)
            chosen[index] = int((cost @ weights + order).argmin())
    for index in reversed(boxes):
        if not is_free(index, chosen)[:NARROW].all():
            del chosen[index]
    places: list[LabelPlace | None] = [None] * len(marks)
    in_narrow = dict(chosen)
    for index in reversed(chosen):
        on_arm = _overlap(boxes[index][chosen[index]][0], every_arm)
        if not is_free(index, in_narrow)[NARROW] or on_arm[NARROW] > ON_CAP:
            del in_narrow[index]
    for index, candidate in chosen.items():
        box = boxes[index][candidate][0, 0] - np.tile(centers[index][0], 2)
        right, up = (box[:2] + box[2:]) / 2
        # Beyond the end of its mark's interval, a name needs no leader, which would cover the interval
        beyond_half = boxes[index][candidate][3]  # the third of four pieces
        on_interval = _overlap(beyond_half, arms[index][:2]).any()
        has_leader = GAPS[candidate // len(WAYS)] > LEADER and not on_interval
        places[index] = LabelPlace(float(right), float(up), has_leader, index in in_narrow)
    return places


def _candidates(text: str) -> np.ndarray:
    """Return the boxes of a name and of the pieces of its leader at all places around the mark, shape (places, 1 +
    pieces, 4): left, bottom, right, top in pixels. Without a leader, its pieces are empty.
    """
    wide, high = LETTER * len(text) / 2, LINE / 2
    boxes = []
    for gap in GAPS:
        for right, up in WAYS:
            reach = MARK - 2 + gap * (0.7 if right and up else 1.0)
            x = right * (reach + wide)
            y = up * (reach * 0.6 + high if right else reach + high)
            line = np.outer(PIECES * (gap > LEADER), (x, y, x, y)) + THICK * (gap > LEADER)
            boxes.append([(x - wide, y - high, x + wide, y + high), *line])
    return np.array(boxes)


def _arms(mark: NamedMark, sizes: np.ndarray) -> np.ndarray:
    """Return the boxes around both intervals of a mark and the pieces of its line, shape (2 + pieces, W, 4)."""
    across = np.array([mark.across[0], mark.y, mark.across[1], mark.y])
    along = np.array([mark.x, mark.along[0], mark.x, mark.along[1]])
    line = np.tile(np.linspace((mark.x, mark.y), mark.line_to or (mark.x, mark.y), 16), 2)
    # Includes the end caps
    return np.stack([ends * np.tile(sizes, 2) + 2 * THICK for ends in (across, along, *line)])


def _overlap(boxes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return how many pixels of each box (..., W, 4) the others (O, W, 4) cover, by width, shape (..., W)."""
    left_bottom = np.maximum(boxes[..., None, :, :2], others[..., :2])
    right_top = np.minimum(boxes[..., None, :, 2:], others[..., 2:])
    return np.maximum(right_top - left_bottom, 0).prod(axis=-1).sum(axis=-2)
