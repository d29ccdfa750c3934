"""LGIP's pictures as tables: steady against alert, as a whole, by type of edit and by how strong a flip is."""

import pandas as pd

from vlprobe import registry
from vlprobe.errors import NotFound
from vlprobe.storage.store import Store
from vlprobe.types.presentation import TradeOff
from vlprobe.views import estimates, runs
from vlprobe.views.leaders import credible, front
from vlprobe.views.papers import SCALE, chances

TYPES = ("color", "number", "object")  # of flips
COMBINED = "combined"  # a flip of a reworded caption
OF_COMBINED = {"positive_rate": "combined_positive_rate", "sensitivity_gap": "combined_gap"}
PRINTED_BY_TYPE = {"positive_rate": 6, "sensitivity_gap": 7}  # tables of the paper


def trade_off(store: Store, case_key: str, up: str, averaging: str = "macro", unit: str = "cosine") -> pd.DataFrame:
    """How steady each model is under rewording against how alert it is to wrong captions.

    Args:
        store: Where results are.
        case_key: A question set of a probe with a trade-off.
        up: The metric that should be high.
        averaging: "macro" or "micro".
        unit: "cosine" or "spread".

    Returns:
        model, x, x_low, x_high, x_n, y, y_low, y_high, y_n, front (as `views_leaders.front`), by model.
    """
    sides = _trade_off(runs.runs_of(store, case_key)["probe"].iloc[0])
    if up not in sides.ups:
        raise NotFound("trade-off metric", up, sides.ups)
    table = estimates.estimates(store, case_key, "all", averaging, unit)
    points = _sides(table[table["metric"] == sides.down], table[table["metric"] == up])
    return points.assign(front=front(points, credible(store, case_key), chances(store, case_key)[up]))


def _trade_off(probe: str) -> TradeOff:
    """The two sides of the probe's trade-off. Raises NotFound where it has none."""
    sides = registry.load_probe(probe).presentation.trade_off
    if sides is None:
        offering = [name for name in registry.names("probes") if registry.load_probe(name).presentation.trade_off]
        raise NotFound("probe with a trade-off", probe, offering)
    return sides


def printed_trade_off(up: str) -> pd.DataFrame:
    """What LGIP's table 2 prints of its models: model, x (invariance error), y, note; cosines and shares."""
    known = runs.published("lgip")
    known = known[known["table"] == 2]
    values = known.pivot(index="model", columns="metric", values="value")
    notes = known[known["metric"].isin(["invariance_error", up])].groupby("model")["note"]
    found = pd.DataFrame({"x": values["invariance_error"], "y": values[up]})
    found["note"] = notes.agg(lambda own: "; ".join(dict.fromkeys(note for note in own if note)))
    return found.reindex(known["model"].unique()).reset_index()


def trade_off_by_type(
    store: Store, case_key: str, up: str, averaging: str = "macro", unit: str = "cosine"
) -> pd.DataFrame:
    """The trade-off once for each type of flip, and for flips of reworded captions; how steady is the same in all.

    Returns:
        type, model, x, x_low, x_high, x_n, y, y_low, y_high, y_n; types that nobody was asked are left out.
    """
    down = _trade_off("lgip").down
    whole = estimates.estimates(store, case_key, "all", averaging, unit)
    parts = estimates.estimates(store, case_key, "subtype", averaging, unit).dropna(subset=["value"])
    steady = whole[whole["metric"] == down]
    alert = {name: parts[(parts["metric"] == up) & (parts["slice"] == name)] for name in TYPES}
    alert[COMBINED] = whole[whole["metric"] == OF_COMBINED[up]].dropna(subset=["value"])
    return pd.concat([_sides(steady, own).assign(type=name) for name, own in alert.items()], ignore_index=True).dropna(
        subset=["y"], ignore_index=True
    )


def printed(probe: str, number: int, metric: str) -> pd.DataFrame:
    """What one table of a paper prints of one metric: model, slice (its split), value, note; shares and cosines."""
    known = runs.published(probe)
    known = known[(known["table"] == number) & (known["metric"] == metric)]
    value = known["value"] * known["unit"].map(SCALE).fillna(1.0)
    return known.assign(slice=known["split"], value=value)[["model", "slice", "value", "note"]].reset_index(drop=True)


def printed_by_type(up: str) -> pd.DataFrame:
    """What LGIP prints by type of flip (tables 6, 7) and of flips of reworded captions (3): type, model, x, y, note."""
    across = printed_trade_off(up).set_index("model")["x"]
    cells = [printed("lgip", PRINTED_BY_TYPE[up], up), printed("lgip", 3, OF_COMBINED[up])]
    found = pd.concat(cells, ignore_index=True).rename(columns={"slice": "type", "value": "y"})
    return found.assign(x=found["model"].map(across))[["type", "model", "x", "y", "note"]]


def _sides(down: pd.DataFrame, up: pd.DataFrame) -> pd.DataFrame:
    names = {"value": "", "low": "_low", "high": "_high", "n_items": "_n"}
    sides = [
        own.set_index("model")[list(names)].rename(columns={name: axis + end for name, end in names.items()})
        for axis, own in (("x", down), ("y", up))
    ]
    return sides[0].join(sides[1], how="outer").reset_index()
