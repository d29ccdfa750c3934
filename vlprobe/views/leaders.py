"""Which model leads at a metric, if any: nobody is named where the order, or the value itself, may
be chance.
"""

import math
from collections.abc import Callable, Mapping, Sequence
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
# Models to whether the first is better; None: they were not compared.
PairedTest = Callable[[str, str], bool | None]


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

    state: "leads": `models` is one model that is ahead of every other credible one by more than
        chance; "tied":
    `models` are the best one and those that may be as good; "chance": no value is above what
    guessing gets, `models` is the best of them; "alone": one model is credible; "unknown": nothing
    can be said.
    """

    state: State
    models: tuple[str, ...] = ()


def _not_compared(better: str, worse: str) -> None:
    return None


def leader(
    contenders: Sequence[Contender],
    direction: str,
    chance: float,
    paired: PairedTest = _not_compared,
) -> Leader:
    """The leader among these models.

    Args:
        contenders: A value a model.
        direction: Which way is better: "up", "down" or "none".
        chance: What guessing gets; NaN where that is not defined. Only a model above it with the
            whole interval leads.
        paired: Whether the first model is better than the second in a comparison on the same items;
            where none was made, the two intervals must not overlap.
    """
    sign = {"up": 1.0, "down": -1.0}.get(direction)
    credible = [
        contender
        for contender in contenders
        if contender.credible and not math.isnan(contender.value)
    ]
    if sign is None or not credible:
        return Leader("unknown")
    ranked = sorted(credible, key=lambda contender: (-sign * contender.value, contender.model))
    guessing = Contender("", chance, chance, chance)
    above_chance = [
        contender
        for contender in ranked
        if math.isnan(chance)
        or clearly_better(
            contender,
            guessing,
            sign,
        )
    ]
    if not above_chance:
        return Leader("chance", (ranked[0].model,))
    if len(ranked) == 1:
        return Leader("alone", (ranked[0].model,))
    best = above_chance[0]
    rivals = [
        rival.model
        for rival in ranked
        if rival is not best and not _ahead(best, rival, sign, paired)
    ]
    return Leader("tied", (best.model, *rivals)) if rivals else Leader("leads", (best.model,))


def clearly_better(contender: Contender, rival: Contender, sign: float) -> bool:
    """Whether the whole interval of the contender lies on the better side of the rival's; not where
    one is unknown.

    Args:
        contender: Which one.
        rival: The one that it is held against.
        sign: 1 where higher is better, -1 where lower is.
    """
    ends = (contender.low, rival.high) if sign > 0 else (rival.low, contender.high)
    return ends[0] > ends[1]


def _ahead(contender: Contender, rival: Contender, sign: float, paired: PairedTest) -> bool:
    is_better = paired(contender.model, rival.model)
    return clearly_better(contender, rival, sign) if is_better is None else is_better


def credible_models(store: Store, question_set: QuestionSet) -> set[str]:
    """Models of a question set that are no controls and failed no check of being better than chance
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
    """The leader at each metric of a question set, by the metric's name.

    Where the intervals of two models overlap, the paired comparison of the two on the same items
    decides (Holm's p over all that are compared with the same model).

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
    by_intervals = {
        name: leader(
            contenders[name],
            metric.direction,
            chance_levels[name],
        )
        for name, metric in metrics.items()
    }
    is_better = _paired_tests(store, question_set, by_intervals, averaging, unit)
    return {
        name: leader(
            contenders[name],
            metric.direction,
            chance_levels[name],
            lambda best, rival, name=name: is_better.get((name, best, rival)),
        )
        for name, metric in metrics.items()
    }


def _paired_tests(
    store: Store,
    question_set: QuestionSet,
    by_intervals: Mapping[str, Leader],
    averaging: str,
    unit: str,
) -> dict[tuple[str, str, str], bool]:
    """Whether the best model is better than each whose interval overlaps its interval: by metric,
    best and rival.
    """
    # Of each best model the metrics and the rivals.
    undecided: dict[str, tuple[list[str], set[str]]] = {}
    for name, tied in by_intervals.items():
        if tied.state == "tied" and name not in NOT_OF_MODELS:
            names, rivals = undecided.setdefault(tied.models[0], ([], set()))
            names.append(name)
            rivals.update(tied.models[1:])
    is_better: dict[tuple[str, str, str], bool] = {}
    for best, (names, rivals) in undecided.items():
        table = compare(store, question_set, (best, *sorted(rivals)), averaging, unit, tuple(names))
        for row in records(DifferenceRow, table):
            if row.verdict:
                is_better[row.metric, best, row.model] = row.verdict == "worse"
    return is_better


def pareto_front(points: pd.DataFrame, credible: set[str], chance: float) -> pd.Series:
    """Which models make a trade-off that nothing else here makes as well, whatever the intervals
    hide.

    Such a model is credible, above chance on y, and against every other credible model clearly
    lower on x or clearly higher on y: no other beats it on both.

    Args:
        points: The columns of `PointRow`; lower is better on x, higher on y.
        credible: Names of credible models.
        chance: What guessing gets on y; NaN where that is not defined.

    Returns:
        bool, by the index of `points`.
    """
    candidates = {
        index: (
            Contender(row.model, row.x, row.x_low, row.x_high),
            Contender(row.model, row.y, row.y_low, row.y_high),
        )
        for index, row in zip(points.index, records(PointRow, points), strict=True)
        if row.model in credible and not math.isnan(row.x) and not math.isnan(row.y)
    }
    guessing = Contender("", chance, chance, chance)
    on_front = {
        index: (math.isnan(chance) or clearly_better(y, guessing, 1.0))
        and all(
            clearly_better(x, rival_x, -1.0) or clearly_better(y, rival_y, 1.0)
            for rival, (rival_x, rival_y) in candidates.items()
            if rival != index
        )
        for index, (x, y) in candidates.items()
    }
    return pd.Series(
        [on_front.get(index, False) for index in points.index],
        index=points.index,
        dtype=bool,
    )
