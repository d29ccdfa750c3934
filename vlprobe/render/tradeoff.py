"""Invariance error against positive rate as one picture: the data that the component `tradeoff` draws, in percent of
its plot.

Real models alone set the frame. Controls, models that failed their checks and printed models that
lie outside of it are named at its edge and do not stretch it.
"""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from vlprobe.registry import is_control
from vlprobe.render.attribution import credit_values
from vlprobe.render.charts.styles import Looks
from vlprobe.render.marks import mark_values
from vlprobe.render.numbers import TOO_FEW, interval, number, with_interval
from vlprobe.render.sentences import listed
from vlprobe.types import Picture
from vlprobe.views.changes import word_runs
from vlprobe.views.records import PointRow, PrintedRow
from vlprobe.views.wall import WallCard

ROOM = 0.16  # of the spread of the marks and their intervals, beside them on each side
LEAST_ROOM = {"rate": 0.01, "cosine": 0.0005, "spread": 0.01}  # so that one model has a frame too
MOST_TICKS = 7
STEPS = (1, 2, 2.5, 5, 10)  # between ticks, times a power of ten
LONGEST = 2000  # characters of a caption beside the picture
SIDES = ("below", "above", "left", "right")
SIDE_WORDS = {
    "below": "below the chart",
    "above": "above the chart",
    "left": "further to the left",
    "right": "further to the right",
}


@dataclass(frozen=True, slots=True)
class Axis:
    """One side of the trade-off."""

    low: float
    high: float
    unit: str  # "rate", "cosine" or "spread"
    is_reversed: bool = False  # whether low values are on the right

    def at(self, value: float) -> float:
        """Return the position of a value between the ends, in percent."""
        share = (value - self.low) / (self.high - self.low)
        return round(100 * (1 - share if self.is_reversed else share), 3)

    def holds(self, value: float) -> bool:
        """Return whether it lies between the ends."""
        return self.low <= value <= self.high

    def within(self, value: float, low: float, high: float) -> list[float]:
        """Return the position of the part of a value's interval that is between the ends; the value's own position
        twice if it has no interval.
        """
        known = [value if math.isnan(end) else end for end in (low, high)]
        return sorted(self.at(min(max(end, self.low), self.high)) for end in known)

    def ticks(self) -> list[dict[str, object]]:
        """Round values between the ends, their positions and their labels."""
        step = next(
            size
            for power in range(-9, 9)
            for size in (multiple * 10.0**power for multiple in STEPS)
            if (self.high - self.low) / size <= MOST_TICKS
        )
        lowest, highest = math.ceil(self.low / step), math.floor(self.high / step)
        values = [round(count * step, 10) for count in range(lowest, highest + 1)]
        return [{"at": self.at(value), "text": self._written(value, step)} for value in values]

    def _written(self, value: float, step: float) -> str:
        scaled, step = (100 * value, 100 * step) if self.unit == "rate" else (value, step)
        decimals = next(
            count for count in range(12) if abs(round(step, count) - step) < step / 1000
        )
        return f"{scaled:.{decimals}f}{' %' if self.unit == 'rate' else ''}"


@dataclass(frozen=True, slots=True)
class Plane:
    """Both axes."""

    x: Axis
    y: Axis

    def holds(self, point: "PointRow | PrintedRow") -> bool:
        """Return whether a mark is in the frame."""
        return self.x.holds(point.x) and self.y.holds(point.y)

    def side(self, point: "PointRow | PrintedRow") -> str:
        """Return the side of the frame where a mark outside of it is."""
        if not self.y.holds(point.y):
            return "below" if point.y < self.y.low else "above"
        return "left" if point.x > self.x.high else "right"


def plane(points: Sequence[PointRow], fit: Collection[str], x_unit: str, y_unit: str) -> Plane:
    """The frame that holds the marks of all models that are `fit`, with their intervals; of all models
    where none is.

    Args:
        points: Known ones.
        fit: Models that are not controls and failed no check.
        x_unit: "cosine" or "spread".
        y_unit: "rate", "cosine" or "spread".
    """
    marks = [point for point in points if point.model in fit] or points
    return Plane(
        _axis([end for mark in marks for end in (mark.x, mark.x_low, mark.x_high)], x_unit, True),
        _axis([end for mark in marks for end in (mark.y, mark.y_low, mark.y_high)], y_unit, False),
    )


def _axis(values: Sequence[float], unit: str, is_reversed: bool) -> Axis:
    finite = [value for value in values if not math.isnan(value)] or [0.0, 1.0]
    low, high = min(finite), max(finite)
    room = max(ROOM * (high - low), LEAST_ROOM[unit])
    low = low - room if low < 0 else max(low - room, 0.0)
    if unit == "rate":
        high = min(high, 1.0)
        return Axis(low, min(high + room, 1.0 + room / 3), unit, is_reversed)
    return Axis(low, high + room, unit, is_reversed)


@dataclass(frozen=True, slots=True)
class Labels:
    """Words of the picture, by what "alert" is measured by."""

    up: str  # behind "More alert"
    right: str  # behind "Steadier"
    value: str  # in a sentence: "rejects {} of the wrong captions"


LABELS: Mapping[str, Labels] = {
    "rate": Labels(
        "wrong captions rejected",
        "how far the score moves when a caption is only reworded",
        "rejects {} of the wrong captions",
    ),
    "cosine": Labels(
        "how far the score falls at a wrong caption",
        "how far the score moves when a caption is only reworded",
        "its score falls by {} at a wrong caption",
    ),
}


def labels(y_unit: str) -> Labels:
    """The words for this unit."""
    return LABELS["rate" if y_unit == "rate" else "cosine"]


def described(point: PointRow, name: str, x_unit: str, y_unit: str) -> str:
    """A mark as a sentence, for those who do not see it and for a tooltip."""
    if math.isnan(point.x) or math.isnan(point.y):
        return f"{name}: no answers on one of the two axes."
    value = labels(y_unit).value.format(with_interval(point.y, point.y_low, point.y_high, y_unit))
    x_interval = interval(point.x_low, point.x_high, x_unit) or f"-, {TOO_FEW}"
    unit = " of its own spread" if x_unit == "spread" else ""
    return f"{name}: {value}; a rewording moves its score by {number(point.x, x_unit)}{unit} ({x_interval})."


def mark_data(
    point: PointRow, plane_: Plane, model_looks: Looks, names: Mapping[str, str]
) -> dict[str, object]:
    """One model: in the list, and, where it is in the frame, as a mark."""
    name, x_unit, y_unit = names[point.model], plane_.x.unit, plane_.y.unit
    drawn = plane_.holds(point)  # NaN is nowhere
    return {
        "model": point.model,
        "name": name,
        **mark_values(model_looks[point.model]),
        "value": number(point.y, y_unit),
        "label": described(point, name, x_unit, y_unit),
        "place": [plane_.x.at(point.x), 100 - plane_.y.at(point.y)] if drawn else None,
        "across": plane_.x.within(point.x, point.x_low, point.x_high) if drawn else None,
        "along": [100 - end for end in plane_.y.within(point.y, point.y_low, point.y_high)]
        if drawn
        else None,
    }


def ring_data(printed: Sequence[PrintedRow], plane_: Plane) -> list[dict[str, object]]:
    """Printed models in the frame."""
    x_unit, y_unit = plane_.x.unit, plane_.y.unit
    return [
        {
            "name": short_name(ring.model),
            "place": [plane_.x.at(ring.x), 100 - plane_.y.at(ring.y)],
            "label": f"{ring.model}, as printed, on other pictures: {number(ring.y, y_unit)}, "
            f"{number(ring.x, x_unit)}{'. ' + ring.note if ring.note else ''}",
        }
        for ring in printed
        if plane_.holds(ring)
    ]


def short_name(printed: str) -> str:
    """The name of a printed model at its mark; the full name is in its tooltip.

    >>> short_name("OpenCLIP ViT-H/14 (LAION-2B)"), short_name("EVA02-CLIP L/14")
    ('OpenCLIP H/14', 'EVA02-CLIP L/14')
    """
    return re.sub(r" \(.*\)$", "", printed).replace("ViT-", "")


def edge_notes(
    points: Sequence[PointRow],
    printed: Sequence[PrintedRow],
    plane_: Plane,
    names: Mapping[str, str],
) -> list[dict[str, str]]:
    """The marks outside of the frame, one line per side: models by name, printed ones together."""
    notes = []
    for side in SIDES:
        outside = [point for point in points if _is_at(point, side, plane_)]
        phrases = [
            f"{names[point.model]} {_value(point, side, plane_)}"
            f"{', a control' if is_control(point.model) else ''}"
            for point in outside
        ]
        rings = [ring for ring in printed if _is_at(ring, side, plane_)]
        if rings:
            values = sorted(
                {_value(ring, side, plane_): _number(ring, side) for ring in rings}.items(),
                key=lambda pair: pair[1],
            )
            ends = [values[0][0], values[-1][0]] if len(values) > 1 else [values[0][0]]
            phrases.append(
                f"{listed([short_name(ring.model) for ring in rings])}, as printed, {_between(ends)}"
            )
        if phrases:
            text = f"{SIDE_WORDS[side]}: {' · '.join(phrases)}"
            notes.append({"side": side, "text": text.replace(" %", "\u00a0%")})
    return notes


def _is_at(point: PointRow | PrintedRow, side: str, plane_: Plane) -> bool:
    is_known = not (math.isnan(point.x) or math.isnan(point.y))
    return is_known and not plane_.holds(point) and plane_.side(point) == side


def _number(point: PointRow | PrintedRow, side: str) -> float:
    return point.y if side in ("below", "above") else point.x


def _value(point: PointRow | PrintedRow, side: str, plane_: Plane) -> str:
    axis = plane_.y if side in ("below", "above") else plane_.x
    return number(_number(point, side), axis.unit)


def _between(ends: Sequence[str]) -> str:
    low, high = ends[0], ends[-1]
    return low if low == high else f"{low.removesuffix(' %')} to {high}"


def picture_data(
    points: Sequence[PointRow],
    front: Collection[str],
    printed: Sequence[PrintedRow],
    plane_: Plane,
    model_looks: Looks,
    names: Mapping[str, str],
    chance: float,
    labelled: Collection[str] = (),
) -> dict[str, object]:
    """The whole picture without the examples.

    Args:
        points: Every model, unknown ones too, in the order of the list.
        front: Models that no other beats on both sides; a dashed line joins them.
        printed: Models that a paper prints.
        plane_: The frame.
        model_looks: Model looks of each model.
        names: Names of each model.
        chance: What guessing gets on the alert side; NaN where that is not defined.
        labelled: Models whose names are next to their marks.
    """
    words = labels(plane_.y.unit)
    joined = sorted((point.x, point.y) for point in points if point.model in front)
    is_line = len(joined) > 1
    rings = ring_data(printed, plane_)
    has_arms = any(not math.isnan(point.x_low + point.y_low) for point in points)
    legend = [
        ("ring", "published models, on other pictures") if rings else None,
        ("front", "no other model is better on both counts") if is_line else None,
        ("arm", "lines: 95 % intervals" if has_arms else f"no 95 % intervals: {TOO_FEW}"),
    ]
    return {
        "label": alternative(points, names, plane_),
        "up": ["More sensitive", words.up],
        "right": ["More invariant", words.right],
        "corner": "better",
        "xTicks": plane_.x.ticks(),
        "yTicks": [tick | {"at": 100 - float(str(tick["at"]))} for tick in plane_.y.ticks()],
        "guess": 100 - plane_.y.at(chance) if plane_.y.holds(chance) else None,
        "front": [[plane_.x.at(x), 100 - plane_.y.at(y)] for x, y in joined] if is_line else [],
        "marks": [
            mark_data(point, plane_, model_looks, names) | {"named": point.model in labelled}
            for point in points
        ],
        "rings": rings,
        "legend": [entry for entry in legend if entry],
        "edges": edge_notes(points, printed, plane_, names),
    }


def alternative(points: Sequence[PointRow], names: Mapping[str, str], plane_: Plane) -> str:
    """The picture in a sentence."""
    complete = [point for point in points if not math.isnan(point.x + point.y)]
    if not complete:
        return "These models have no values for this trade-off."
    best = max(complete, key=lambda point: point.y)
    steadiest = min(complete, key=lambda point: point.x)
    return (
        f"The trade-off of {len(complete)} models, a mark per model: {names[best.model]} is highest with "
        f"{number(best.y, plane_.y.unit)}, {names[steadiest.model]} furthest right with "
        f"{number(steadiest.x, plane_.x.unit)}. The list below has them all."
    )


def example_data(card: WallCard | None, n_cases: int, source: str) -> dict[str, object]:
    """The worst mistake of a model, and the way to the others.

    Args:
        card: The case; None where it made no mistake.
        n_cases: How many wrong captions fool it.
        source: Its picture as a data address; "" where there is none.
    """
    if card is None:
        return {"note": "No wrong caption fools it here.", "lines": [], "picture": "", "press": ""}
    name = Picture.from_name(card.images[0]).path.name if card.images else ""
    return {
        "note": "Its worst mistake:",
        "picture": name,
        "credit": credit_values(card.images[0]) if card.images else None,
        "source": source,
        "alt": card.true_text,
        "lines": [
            ["true", _runs(card.true_text, card.wrong_text, "true", False)],
            ["lie", _runs(card.true_text, card.wrong_text, "lie", True)],
        ],
        "press": f"See the {n_cases:,} wrong captions that fool it"
        if n_cases > 1
        else "See the wrong caption that fools it",
    }


def _runs(before: str, after: str, style: str, is_after: bool) -> list[tuple[str, str]]:
    """One of two captions, the words marked in which they differ."""
    runs = word_runs(before[:LONGEST], after[:LONGEST], is_after)
    return [(words, style if differs else "") for words, differs in runs]
