"""Which model leads at a metric, if any: nobody is named where the order, or the value itself, may be chance."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from vlprobe.models.doctor import examine
from vlprobe.registry import is_control
from vlprobe.storage.store import Store
from vlprobe.types import Metric
from vlprobe.views import estimates
from vlprobe.views import runs as views_runs
from vlprobe.views.compare import NOT_OF_MODELS, compare
from vlprobe.views.papers import chances

State = Literal["leads", "tied", "chance", "alone", "unknown"]


@dataclass(frozen=True)
class Contender:
    """One model's value of one metric with its 95 % interval; NaN where unknown."""

    model: str
    value: float
    low: float
    high: float
    credible: bool = True  # False: a control, or a model that failed a check of being better than chance


@dataclass(frozen=True)
class Leader:
    """Who is best at one metric.

    state: "leads": `models` is one model that is ahead of every other credible one by more than chance; "tied":
    `models` are the best one and those that may be as good; "chance": no value is above what guessing gets, `models`
    is the best of them; "alone": one model is credible; "unknown": nothing can be said.
    """

    state: State
    models: tuple[str, ...] = ()


def leader(
    contenders: Sequence[Contender],
    direction: str,
    chance: float,
    paired: Callable[[str, str], bool | None] = lambda better, other: None,
) -> Leader:
    """Who leads among these models.

    Args:
        contenders: A value a model.
        direction: Which way is better: "up", "down" or "none".
        chance: What guessing gets; NaN where that is not defined. Only who is above it with the whole interval leads.
        paired: Whether the first model is better than the second in a comparison on the same items; None where none was
            made: then the two intervals must not overlap.
    """
    sign = {"up": 1.0, "down": -1.0}.get(direction)
    credible = [one for one in contenders if one.credible and not math.isnan(one.value)]
    if sign is None or not credible:
        return Leader("unknown")
    ranked = sorted(credible, key=lambda one: (-sign * one.value, one.model))
    able = [one for one in ranked if math.isnan(chance) or clear(one, Contender("", chance, chance, chance), sign)]
    if not able:
        return Leader("chance", (ranked[0].model,))
    if len(ranked) == 1:
        return Leader("alone", (ranked[0].model,))
    best = able[0]
    rivals = [one.model for one in ranked if one is not best and not _ahead(best, one, sign, paired)]
    return Leader("tied", (best.model, *rivals)) if rivals else Leader("leads", (best.model,))


def clear(one: Contender, other: Contender, sign: float) -> bool:
    """Whether the whole interval of one lies on the better side of the other's; not where either is unknown."""
    ends = (one.low, other.high) if sign > 0 else (other.low, one.high)
    return ends[0] > ends[1]


def _ahead(one: Contender, other: Contender, sign: float, paired: Callable[[str, str], bool | None]) -> bool:
    told = paired(one.model, other.model)
    return clear(one, other, sign) if told is None else told


def credible(store: Store, case_key: str) -> set[str]:
    """Models of a question set that are no controls and failed no check of being better than chance on its dataset."""
    guessing = examine.guessing(store)
    manifests = {one["key"]: one["run"] for one in store.runs()}
    runs = views_runs.runs_of(store, case_key)
    return {
        model
        for model, key in zip(runs["model"], runs["key"], strict=True)
        if not is_control(model) and (manifests[key]["model_digest"], manifests[key]["dataset_digest"]) not in guessing
    }


def leaders(store: Store, case_key: str, averaging: str = "macro", unit: str = "cosine") -> dict[str, Leader]:
    """Who leads at each metric of a question set, by the metric's name.

    Where the intervals of two models overlap, the paired comparison of the two on the same items decides (Holm's p over
    all that are compared with the same model).

    Args:
        store: Where results are.
        case_key: The question set.
        averaging: "macro" or "micro".
        unit: "cosine" or "spread".
    """
    metrics = views_runs.metrics(views_runs.runs_of(store, case_key)["probe"].iloc[0])
    guessed, trusted = chances(store, case_key), credible(store, case_key)
    table = estimates.estimates(store, case_key, "all", averaging, unit)
    rows: dict[str, list[Contender]] = {name: [] for name in metrics}
    for row in table.itertuples():
        if row.metric in rows:
            rows[row.metric].append(Contender(row.model, row.value, row.low, row.high, row.model in trusted))
    plain = {name: leader(rows[name], one.direction, guessed[name]) for name, one in metrics.items()}
    better = _paired(store, case_key, metrics, plain, averaging, unit)
    return {
        name: leader(
            rows[name],
            one.direction,
            guessed[name],
            lambda best, other, name=name: better.get((name, best, other)),
        )
        for name, one in metrics.items()
    }


def _paired(
    store: Store, case_key: str, metrics: Mapping[str, Metric], plain: Mapping[str, Leader], averaging: str, unit: str
) -> dict[tuple[str, str, str], bool]:
    """Whether the best model is better than each whose interval overlaps its own: by metric, best model and other."""
    asked: dict[str, tuple[list[str], set[str]]] = {}
    for name, found in plain.items():
        if found.state == "tied" and name not in NOT_OF_MODELS:
            names, others = asked.setdefault(found.models[0], ([], set()))
            names.append(name)
            others.update(found.models[1:])
    better: dict[tuple[str, str, str], bool] = {}
    for best, (names, others) in asked.items():
        table = compare(store, case_key, (best, *sorted(others)), averaging, unit, tuple(names))
        for row in table[table["verdict"] != ""].itertuples():
            better[row.metric, best, row.model] = row.verdict == "worse"
    return better


def front(points: pd.DataFrame, trusted: set[str], chance: float) -> pd.Series:
    """Which models make a trade-off that nothing else here makes as well, whatever the intervals hide.

    Such a model is credible, above chance on y, and against every other credible model clearly lower on x or clearly
    higher on y: no other beats it on both.

    Args:
        points: model, x, x_low, x_high, y, y_low, y_high; lower is better on x, higher on y.
        trusted: Names of credible models.
        chance: What guessing gets on y; NaN where that is not defined.
    """
    sides = {
        row.Index: [
            Contender(row.model, getattr(row, axis), getattr(row, f"{axis}_low"), getattr(row, f"{axis}_high"))
            for axis in ("x", "y")
        ]
        for row in points.itertuples()
        if row.model in trusted and not math.isnan(row.x) and not math.isnan(row.y)
    }
    guess = Contender("", chance, chance, chance)
    return pd.Series(
        {
            place: place in sides
            and (math.isnan(chance) or clear(sides[place][1], guess, 1.0))
            and all(
                clear(sides[place][0], other[0], -1.0) or clear(sides[place][1], other[1], 1.0)
                for elsewhere, other in sides.items()
                if elsewhere != place
            )
            for place in points.index
        },
        dtype=bool,
    )
