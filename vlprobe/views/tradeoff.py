"""Data for LGIP's figures: invariance error against positive rate, overall, by type of wrong
caption and by strength.
"""

import math
from dataclasses import replace

import pandas as pd

from vlprobe import registry
from vlprobe.errors import NotFound
from vlprobe.perturb.kinds import edits as kind_edits
from vlprobe.storage.store import Store
from vlprobe.types import POOLED
from vlprobe.types.presentation import OtherSide, TradeOff
from vlprobe.views import estimates, published, runs
from vlprobe.views.paired_tests import fit_models, pareto_front, wins
from vlprobe.views.papers import chances, rescaled
from vlprobe.views.runs import QuestionSet, list_kinds, metrics, question_set_rows

# Types of flips; the papers print the first three.
TYPES = ("color", "number", "object", *kind_edits.LIES)
COMBINED = "combined"  # flips of reworded captions
OF_COMBINED = {"positive_rate": "combined_positive_rate", "sensitivity_gap": "combined_gap"}
PUBLISHED_BY_TYPE = {"positive_rate": 6, "sensitivity_gap": 7}  # tables of the paper
PUBLISHED_COMBINED = 3  # table of the paper


def trade_off(
    question_set: QuestionSet, up: str, averaging: str = POOLED, unit: str = "cosine"
) -> pd.DataFrame:
    """Return the two metrics of the trade-off for each model: x is the invariance error, y the
    positive rate or sensitivity gap.

    Args:
        question_set: A question set of a probe that has a trade-off.

    Returns:
        model, x, x_low, x_high, x_n, y, y_low, y_high, y_n, front (as in
        `paired_tests.pareto_front`), sorted by model.
    """
    sides = trade_off_sides(question_set.probe)
    if up not in sides.ups:
        raise NotFound("trade-off metric", up, sides.ups)
    down = sides.x_metric(up)
    of_models = points(question_set, up, averaging, unit)
    credible, chance = fit_models(question_set), chances(question_set)[up]
    models = [model for model in of_models["model"] if model in credible]
    won: set[tuple[str, str, str]] = set()
    for model in models:
        rivals = tuple(rival for rival in models if rival != model)
        won |= wins(question_set, model, rivals, averaging, unit, (down, up))
    front = pareto_front(
        of_models,
        credible,
        chance,
        lambda *pair: (down, *pair) in won,
        lambda *pair: (up, *pair) in won,
    )
    return of_models.assign(front=front)


def trade_off_sides(probe: str) -> TradeOff:
    """Return the two metrics that form the probe's trade-off. Raises NotFound if the probe has none."""
    sides = registry.load_probe(probe).presentation.trade_off
    if sides is None:
        offering = [
            name
            for name in registry.names("probes")
            if registry.load_probe(name).presentation.trade_off
        ]
        raise NotFound("probe with a trade-off", probe, offering)
    return sides


def other_side(question_set: QuestionSet, up: str) -> tuple[QuestionSet, OtherSide] | None:
    """Return the question set with the other side of a trade-off on the same dataset; None if no model has both.

    For edited captions, it has changed pictures, and the reverse. Of several sets, it is the one with the most
    models in common, then with as many pictures.
    """
    side = trade_off_sides(question_set.probe).others.get(up)
    if side is None:
        return None
    if side.probe == question_set.probe:
        return question_set, side
    newest, models = question_set.runs[0], set(question_set.models)
    rows = [
        row
        for row in question_set_rows(question_set.store)
        if (row.probe, row.dataset) == (side.probe, newest.dataset) and models & {*row.models}
    ]
    if not rows:
        return None
    best = max(rows, key=lambda row: (len(models & {*row.models}), row.n_items == newest.n_items))
    found = runs.question_set(question_set.store, best.case_key)
    common = tuple(run for run in found.runs if run.model in models)
    return replace(found, runs=common), side


def points(
    question_set: QuestionSet, up: str, averaging: str = POOLED, unit: str = "cosine"
) -> pd.DataFrame:
    """Return the two metrics of the trade-off for each model, as `trade_off` does, without the column front."""
    down = trade_off_sides(question_set.probe).x_metric(up)
    table = estimates.estimates(question_set, "all", averaging, unit)
    return _points(table.loc[table["metric"] == down], table.loc[table["metric"] == up])


def sets_with_trade_off(store: Store) -> list[str]:
    """Return the keys of the question sets that have cases for both axes of their probe's trade-off."""
    keys = []
    for row in question_set_rows(store):
        sides = registry.load_probe(row.probe).presentation.trade_off
        if sides is None:
            continue
        kinds = set(list_kinds(store, row.case_key, row.probe))
        of_probe = metrics(row.probe)
        axes = (sides.x_metric(sides.ups[0]), sides.ups[0])
        if all(kinds & set(of_probe[name].kinds) for name in axes):
            keys.append(row.case_key)
    return keys


def published_trade_off(up: str) -> pd.DataFrame:
    """Return LGIP's table 2: model, x (invariance error), y (metric `up`), note. Values are cosines and shares."""
    cells = published.load("lgip")
    cells = cells.loc[cells["table"] == 2]
    values = cells.pivot(index="model", columns="metric", values="value")
    notes = cells.loc[cells["metric"].isin(["invariance_error", up])].groupby("model")["note"]
    table = pd.DataFrame({"x": values["invariance_error"], "y": values[up]})
    table["note"] = notes.agg(
        lambda of_model: "; ".join(dict.fromkeys(note for note in of_model if note))
    )
    return (
        table.reindex(list(dict.fromkeys(cells["model"]))).rename_axis(index="model").reset_index()
    )


def trade_off_by_type(
    question_set: QuestionSet, up: str, averaging: str = POOLED, unit: str = "cosine"
) -> pd.DataFrame:
    """Estimate the trade-off for each type of wrong caption or changed picture.

    LGIP's invariance error is the same for all types of wrong captions. For changed pictures, it is
    measured for each type of change.

    Returns:
        type, model, x, x_low, x_high, x_n, y, y_low, y_high, y_n; types without questions are
        omitted.
    """
    down = trade_off_sides(question_set.probe).x_metric(up)
    all_types = estimates.estimates(question_set, "all", averaging, unit)
    by_subtype = estimates.estimates(question_set, "subtype", averaging, unit).dropna(
        subset=["value"]
    )
    downs, ups = (by_subtype.loc[by_subtype["metric"] == metric] for metric in (down, up))
    if up in OF_COMBINED:
        overall = all_types.loc[all_types["metric"] == down]
        sides = {name: (overall, ups.loc[ups["slice"] == name]) for name in TYPES}
        combined = all_types.loc[all_types["metric"] == OF_COMBINED[up]].dropna(subset=["value"])
        sides[COMBINED] = (overall, combined)
    else:
        order = question_set.presentation.value_order
        ranks = {name: rank for rank, name in enumerate(order)}
        names = sorted(set(ups["slice"]), key=lambda name: (ranks.get(name, len(order)), name))
        sides = {
            name: (downs.loc[downs["slice"] == name], ups.loc[ups["slice"] == name])
            for name in names
        }
    tables = [_points(*tables).assign(type=name) for name, tables in sides.items()]
    return pd.concat(tables, ignore_index=True).dropna(subset=["y"], ignore_index=True)


def published_values(probe: str, number: int, metric: str) -> pd.DataFrame:
    """Return one metric from a paper's table: model, slice (the split), value (a cosine or share), note."""
    cells = published.load(probe)
    cells = cells.loc[(cells["table"] == number) & (cells["metric"] == metric)]
    table = cells.assign(slice=cells["split"], value=rescaled(cells))
    return table[["model", "slice", "value", "note"]].reset_index(drop=True)


def published_by_type(up: str) -> pd.DataFrame:
    """Return the values that LGIP reports by type of wrong caption (tables 3, 6, 7): type, model, x, y, note."""
    trade_offs = published_trade_off(up)
    invariance_errors = dict(zip(trade_offs["model"], trade_offs["x"], strict=True))
    tables = [
        published_values("lgip", PUBLISHED_BY_TYPE[up], up),
        published_values("lgip", PUBLISHED_COMBINED, OF_COMBINED[up]),
    ]
    table = pd.concat(tables, ignore_index=True).rename(columns={"slice": "type", "value": "y"})
    table["x"] = [invariance_errors.get(model, math.nan) for model in table["model"]]
    return table.loc[:, ["type", "model", "x", "y", "note"]]


def _points(down: pd.DataFrame, up: pd.DataFrame) -> pd.DataFrame:
    """Join two metrics into points: model, x and y, and the columns _low, _high and _n for both x and y."""
    suffixes = {"value": "", "low": "_low", "high": "_high", "n_items": "_n"}
    x, y = (
        table.set_index("model")
        .loc[:, list(suffixes)]
        .set_axis([axis + end for end in suffixes.values()], axis=1)
        for axis, table in (("x", down), ("y", up))
    )
    return x.join(y, how="outer").reset_index()
