"""The model that leads at a metric, if any: none is named where the order, or the value itself, may
be chance.
"""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from vlprobe.models.doctor import examine
from vlprobe.registry import is_control
from vlprobe.storage.store import Store
from vlprobe.types import POOLED
from vlprobe.views import estimates
from vlprobe.views.compare import NOT_OF_MODELS, compare
from vlprobe.views.papers import chances
from vlprobe.views.records import DifferenceRow, EstimateRow, PointRow, records
from vlprobe.views.runs import QuestionSet

State = Literal["leads", "tied", "chance", "alone", "unknown"]
# Two models to whether a paired test says that the first is better; False if none was made.
PairedTest = Callable[[str, str], bool]


@dataclass(frozen=True)
class Contender:
    """One model's value of one metric with its 95 % interval; NaN where unknown."""

    model: str
    value: float
    low: float
    high: float
    # False: a control, or a model that failed a check of being better than chance.
    credible: bool = True


@dataclass(frozen=True)
class Leader:
    """The best model at one metric, if there is one.

    state: "leads": `models` is one model that is better than every other credible one in a paired
        test; "tied":
    `models` are the best one and those that may be as good; "chance": no value is above what
    guessing gets, `models` is the best of them; "alone": one model is credible; "unknown": no value
    is known, or no interval that could be compared with guessing.
    """

    state: State
    models: tuple[str, ...] = ()


def leader(
    contenders: Sequence[Contender], direction: str, chance: float, is_better: PairedTest
) -> Leader:
    """Find the leader among these models.

    Args:
        contenders: One value per model.
        direction: Which way is better: "up", "down" or "none".
        chance: The value of a model that guesses; NaN if not defined. Only a model above it with
            the whole interval leads.
        is_better: The paired test of two models on the same items. Intervals that do not overlap
            are not a test.
    """
    sign = {"up": 1.0, "down": -1.0}.get(direction)
    credible = [
        contender
        for contender in contenders
        if contender.credible and not math.isnan(contender.value)
    ]
    has_chance = not math.isnan(chance)
    if (
        sign is None
        or not credible
        or (has_chance and all(math.isnan(contender.low) for contender in credible))
    ):
        return Leader("unknown")
    ranked = sorted(credible, key=lambda contender: (-sign * contender.value, contender.model))
    above_chance = [
        contender
        for contender in ranked
        if not has_chance or _above_chance(contender, chance, sign)
    ]
    if not above_chance:
        return Leader("chance", (ranked[0].model,))
    if len(ranked) == 1:
        return Leader("alone", (ranked[0].model,))
    best = above_chance[0].model
    rivals = [
        rival.model for rival in ranked if rival.model != best and not is_better(best, rival.model)
    ]
    return Leader("tied", (best, *rivals)) if rivals else Leader("leads", (best,))


def _above_chance(contender: Contender, chance: float, sign: float) -> bool:
    """Return whether the whole interval is better than guessing; not if it is unknown."""
    return contender.low > chance if sign > 0 else contender.high < chance


def credible_models(store: Store, question_set: QuestionSet) -> set[str]:
    """Models of a question set that are not controls and failed no check of being better than chance
    on its dataset.
    """
    guessing = examine.models_at_chance(store)
    return {
        run.model
        for run in question_set.runs
        if not is_control(run.model) and (run.model_digest, run.dataset_digest) not in guessing
    }


def leaders(
    store: Store, question_set: QuestionSet, averaging: str = POOLED, unit: str = "cosine"
) -> dict[str, Leader]:
    """Find the leader at each metric of a question set, by the metric's name.

    The paired test of the best model against every other credible one on the same items decides
    (Holm's p over all tests against the same model).

    Args:
        store: Where results are.
        question_set: The models and their runs.
        averaging: "macro" or "micro".
        unit: "cosine" or "spread".
    """
    metrics = question_set.metrics
    chance_levels, credible = chances(store, question_set), credible_models(store, question_set)
    table = estimates.estimates(store, question_set, "all", averaging, unit)
    contenders: dict[str, list[Contender]] = {name: [] for name in metrics}
    for row in records(EstimateRow, table):
        if row.metric in contenders:
            contender = Contender(row.model, row.value, row.low, row.high, row.model in credible)
            contenders[row.metric].append(contender)

    def leaders_by(is_better: Callable[[str, str, str], bool]) -> dict[str, Leader]:
        return {
            name: leader(
                contenders[name],
                metric.direction,
                chance_levels[name],
                functools.partial(is_better, name),
            )
            for name, metric in metrics.items()
        }

    # Best model: its metrics, and the other models at any of them.
    tests: dict[str, tuple[list[str], set[str]]] = {}
    for name, tied in leaders_by(lambda *_: False).items():
        if tied.state == "tied" and name not in NOT_OF_MODELS:
            names, rivals = tests.setdefault(tied.models[0], ([], set()))
            names.append(name)
            rivals.update(tied.models[1:])
    won: set[tuple[str, str, str]] = set()
    for best, (names, rivals) in tests.items():
        others = tuple(sorted(rivals))
        won |= wins(store, question_set, best, others, averaging, unit, tuple(names))
    return leaders_by(lambda *test: test in won)


def wins(
    store: Store,
    question_set: QuestionSet,
    model: str,
    rivals: tuple[str, ...],
    averaging: str,
    unit: str,
    metrics: tuple[str, ...],
) -> set[tuple[str, str, str]]:
    """Find where a model is better than a rival in the paired test on the same items.

    Returns:
        Metric, model and rival of each significant test (Holm's p over all of these tests).
    """
    if not rivals:
        return set()
    table = compare(store, question_set, (model, *rivals), averaging, unit, metrics)
    return {
        (row.metric, model, row.model)
        for row in records(DifferenceRow, table)
        if row.verdict == "worse"
    }


def pareto_front(
    points: pd.DataFrame, credible: set[str], chance: float, lower: PairedTest, higher: PairedTest
) -> pd.Series:
    """Find the models whose trade-off no other model here beats for certain.

    Such a model is credible, above chance on y, and better than every other credible model on x or
    on y in the paired test: no other beats it on both.

    Args:
        points: The columns of `PointRow`; lower is better on x, higher on y.
        credible: Names of credible models.
        chance: The value of a model that guesses on y; NaN if not defined.
        lower: The paired test of two models on x.
        higher: The paired test of two models on y.

    Returns:
        bool, by the index of `points`.
    """
    candidates = {
        index: Contender(row.model, row.y, row.y_low, row.y_high)
        for index, row in zip(points.index, records(PointRow, points), strict=True)
        if row.model in credible and not math.isnan(row.x) and not math.isnan(row.y)
    }
    on_front = {
        index: (math.isnan(chance) or _above_chance(y, chance, 1.0))
        and all(
            lower(y.model, rival.model) or higher(y.model, rival.model)
            for rival in candidates.values()
            if rival.model != y.model
        )
        for index, y in candidates.items()
    }
    return pd.Series(
        [on_front.get(index, False) for index in points.index],
        index=points.index,
        dtype=bool,
    )
