"""The models with the lowest invariance error and the highest positive rate, as a heading and a sentence below it.

It never says more than is known: a model is named alone only where every other credible one is
behind it by more than chance; else models are tied. Controls, models that failed their checks and
models that may be guessing are never the best.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from vlprobe.registry import is_control
from vlprobe.render.numbers import number
from vlprobe.render.sentences import count_word, listed
from vlprobe.views.paired_tests import Leader
from vlprobe.views.records import PointRow

MOST_TIED = 3  # models that a heading names as tied


@dataclass(frozen=True, slots=True)
class Finding:
    """The verdict of the trade-off."""

    heading: str
    detail: str
    best: str = ""  # the model to look at first; "" where none stands out


@dataclass(frozen=True, slots=True)
class Sides:
    """The leaders on both sides, and the results of all models."""

    points: Sequence[PointRow]
    steadiest: Leader
    most_alert: Leader
    fit: Collection[str]  # models that are not controls and failed no check
    names: Mapping[str, str]
    x_unit: str
    y_unit: str


def finding(sides: Sides) -> Finding:
    """The first of these that applies."""
    complete = [point for point in sides.points if not math.isnan(point.x + point.y)]
    if not complete:
        return Finding("Nothing is known of how steady and how alert these models are.", "")
    if not any(point.model in sides.fit for point in complete):
        return Finding(_nobody_fit(complete), _values(sides, complete[:3]))
    if sides.most_alert.state == "chance":
        guess = "No model is more alert than guessing."
        best = sides.most_alert.models
        return Finding(guess, _values(sides, [point for point in complete if point.model in best]))
    if sides.most_alert.state == "alone":
        (model,) = sides.most_alert.models
        others = "" if len(complete) == 1 else " The others are not fit to be compared with it."
        point = next(point for point in complete if point.model == model)
        heading = f"{sides.names[model]} rejects {number(point.y, sides.y_unit)} of the lies."
        if sides.y_unit != "rate":
            heading = f"{sides.names[model]} is the only model here."
        return Finding(heading, _values(sides, [point]) + others, model)
    return _compared(sides, complete)


def _nobody_fit(points: Sequence[PointRow]) -> str:
    if all(is_control(point.model) for point in points):
        return "These are controls: they are meant to fail."
    return "No model here matches these pictures with their captions better than chance."


def _compared(sides: Sides, complete: Sequence[PointRow]) -> Finding:
    steady, alert = sides.steadiest, sides.most_alert
    leads = [leader.models[0] for leader in (steady, alert) if leader.state == "leads"]
    to_name = list(dict.fromkeys([*leads, *steady.models, *alert.models]))
    detail = _values(
        sides, [point for model in to_name[:2] for point in complete if point.model == model]
    )
    best = leads[0] if leads else next(iter(alert.models or steady.models), "")
    return Finding(_heading(sides), detail, best)


def _heading(sides: Sides) -> str:
    steady, alert, names = sides.steadiest, sides.most_alert, sides.names
    n_fit = sum(
        not math.isnan(point.x + point.y) and point.model in sides.fit for point in sides.points
    )
    is_pair = n_fit == 2
    if steady.state == alert.state == "leads":
        steadiest, most_alert = names[steady.models[0]], names[alert.models[0]]
        if steadiest == most_alert:
            return f"{steadiest} is {'steadier and more alert' if is_pair else 'the steadiest and the most alert'}."
        if is_pair:
            return f"No model is best: {steadiest} is steadier, {most_alert} more alert."
        return f"No model is best: {steadiest} is the steadiest, {most_alert} the most alert."
    if steady.state == "leads":
        return _one_side(
            sides, steady.models[0], "steadier" if is_pair else "the steadiest", alert, "alert"
        )
    if alert.state == "leads":
        return _one_side(
            sides, alert.models[0], "more alert" if is_pair else "the most alert", steady, "steady"
        )
    if is_pair and steady.state == alert.state == "tied":
        return f"{listed([names[model] for model in sorted(alert.models)])} are tied."
    if set(steady.models) == set(alert.models) and steady.models:
        return f"No model is best: {_tied(sides, alert)} on both counts."
    lines = [
        f"{_tied(sides, leader)} as {word}"
        for leader, word in ((steady, "the steadiest"), (alert, "the most alert"))
        if leader.models
    ]
    return f"No model is best: {', '.join(lines)}."


def _one_side(sides: Sides, model: str, praise: str, rest: Leader, side: str) -> str:
    """One model leads on one side; on the other several are tied."""
    name = sides.names[model]
    if model in rest.models:
        others = [rival for rival in rest.models if rival != model]
        return f"{name} is {praise}, and as {side} as {_named(sides, others)}."
    if rest.models:
        return f"{name} is {praise}; {_tied(sides, rest)} as the most {side}."
    return f"{name} is {praise}."


def _tied(sides: Sides, leader: Leader) -> str:
    models = leader.models
    if len(models) == 1:
        return f"{sides.names[models[0]]} stands alone"
    if len(models) > MOST_TIED:
        return f"{count_word(len(models))} are tied"
    return f"{_named(sides, models)} are tied"


def _named(sides: Sides, models: Sequence[str]) -> str:
    return listed([sides.names[model] for model in models])


def _values(sides: Sides, points: Sequence[PointRow]) -> str:
    """Return the values of the named models on both sides."""
    sentences = []
    for point in points:
        value = number(point.y, sides.y_unit)
        verb = (
            f"rejects {value} of the lies"
            if sides.y_unit == "rate"
            else f"falls by {value} at a lie"
        )
        subject = (
            sides.names[point.model]
            if sides.y_unit == "rate"
            else f"The score of {sides.names[point.model]}"
        )
        moves = number(point.x, sides.x_unit)
        of_spread = " of its own spread" if sides.x_unit == "spread" else ""
        sentences.append(f"{subject} {verb}; a rewording moves its score by {moves}{of_spread}.")
    return " ".join(sentences)
