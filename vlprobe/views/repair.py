"""What a fine-tuning changed on all probes: before, a control that was only trained on, and after; and its losses.

Training longer changes a model too, whatever the loss. So what a loss did is how far its model is from the control.
"""

import json
import math
from pathlib import Path

import pandas as pd

from vlprobe.errors import InvalidInput
from vlprobe.metrics import estimate
from vlprobe.models.demo_weights import FOLDER
from vlprobe.storage.store import Store
from vlprobe.training import trainer
from vlprobe.views.compare import compare, verdict
from vlprobe.views.estimates import estimates
from vlprobe.views.runs import metrics, question_sets

Numbers = tuple[tuple[str, tuple[str, ...]], ...]  # probes in order, each with the metrics that are shown
ALIKE = {  # what a control shares with what it controls
    "steps": "steps",
    "datasets": "data",
    "batch_size": "batch size",
    "rate": "learning rate",
    "decay": "weight decay",
    "freeze": "frozen tower",
    "seed": "seed",
}
LEVELS = ["probe", "metric", "model", "value", "low", "high", "n_items"]
MOVES = [
    *("probe", "metric", "step", "base", "value", "difference", "low", "high"),
    *("p", "p_holm", "verdict", "n_items", "left_out"),
]


def repair_sets(store: Store, models: tuple[str, ...]) -> dict[str, str]:
    """By probe, the newest question set that all of these models answered; probes without one are absent."""
    found: dict[str, str] = {}
    for row in question_sets(store).itertuples():
        if set(models) <= set(row.models):
            found.setdefault(row.probe, row.case_key)
    return found


def repair_levels(store: Store, models: tuple[str, ...], numbers: Numbers, unit: str = "spread") -> pd.DataFrame:
    """Where each model stands: the macro means of these metrics with their 95 % intervals.

    Args:
        store: Where results are.
        models: Which ones; only questions that all of them answered count.
        numbers: Which probes and metrics, in order.
        unit: "cosine" or "spread": fine-tuning changes the range of a model's cosines, so they are best given in
            multiples of its own spread.

    Returns:
        A row a metric and model: probe, metric, model, value, low, high, n_items.
    """
    keys, parts = repair_sets(store, models), [pd.DataFrame(columns=LEVELS)]
    for probe, names in numbers:
        if probe in keys:
            table = estimates(store, keys[probe], "all", "macro", unit).assign(probe=probe)
            parts.append(table[table["model"].isin(models) & table["metric"].isin(names)][LEVELS])
    table = pd.concat(parts[1:] or parts, ignore_index=True)
    return _in_order(table, numbers, "model", models)


def repair_moves(
    store: Store, before: str, control: str, after: str, numbers: Numbers, unit: str = "spread"
) -> pd.DataFrame:
    """How far apart the three models are, item by item: what the loss did, and what training alone did.

    Args:
        store: Where results are.
        before: The model that both of the others were tuned from.
        control: What it became without the loss in question.
        after: What it became with it.
        numbers: Which probes and metrics, in order.
        unit: As of `repair_levels`.

    Returns:
        A row a metric and step: probe, metric, step ("loss": after minus control; "training": control minus before),
        base, value, difference (value minus base), low, high (95 %), p (two-sided), p_holm (adjusted for all rows),
        verdict, n_items and left_out (as of `compare`).

    Raises:
        InvalidInput: the three are not three.
    """
    if len({before, control, after}) < 3:
        raise InvalidInput(f"Before, control and after must be three models. Given: {before}, {control}, {after}.")
    keys, parts = repair_sets(store, (before, control, after)), [pd.DataFrame(columns=MOVES)]
    for probe, names in numbers:
        if probe in keys:
            table = compare(store, keys[probe], (control, after, before), "macro", unit).assign(probe=probe)
            table = table[table["metric"].isin(names)]
            parts += [table[table["model"] == after].assign(step="loss")]
            parts += [_turned(table[table["model"] == before]).assign(step="training")]
    table = _in_order(pd.concat(parts[1:] or parts, ignore_index=True), numbers, "step", ("loss", "training"))
    table["p_holm"] = estimate.holm(table["p"])
    known = {probe: metrics(probe) for probe, _ in numbers}
    table["verdict"] = [verdict(known[row.probe][row.metric], row.difference, row.p_holm) for row in table.itertuples()]
    return table[MOVES]


def _turned(table: pd.DataFrame) -> pd.DataFrame:
    """The same differences with the baseline as the model."""
    other = {"base": table["value"], "value": table["base"], "difference": -table["difference"]}
    return table.assign(**other, low=-table["high"], high=-table["low"])


def _in_order(table: pd.DataFrame, numbers: Numbers, last: str, order: tuple[str, ...]) -> pd.DataFrame:
    places = {(probe, name): place for place, (probe, name) in enumerate((p, n) for p, names in numbers for n in names)}
    first = [places[pair] for pair in zip(table["probe"], table["metric"], strict=True)]
    second = [order.index(name) for name in table[last]]
    rows = sorted(range(len(table)), key=lambda row: (first[row], second[row]))
    return table.iloc[rows].reset_index(drop=True)


def otherwise(before: str, control: str, after: str) -> list[str]:
    """In what the trainings of the control and of the model after differ but for the loss, by the cards beside them.

    Returns:
        Such as "steps: 240 in the control, 200 after"; nothing where all is alike, or no card is there to tell.
    """
    cards = {role: _card(name) for role, name in (("in the control", control), ("after", after))}
    found = [
        f"{role}, it was tuned from {card['model']}, not from {before}"
        for role, card in cards.items()
        if card and card["model"] != before
    ]
    one, other = cards.values()
    if one and other:
        for name, word in ALIKE.items():
            if one[name] != other[name]:
                found.append(f"{word}: {_said(one[name])} in the control, {_said(other[name])} after")
    return found


def _said(value: object) -> str:
    return " and ".join(value) if isinstance(value, list) else f"{value}"


def _card(model: str) -> dict:
    """How a demo model or a checkpoint was tuned; empty where nothing says so."""
    name, _, checkpoint = model.partition("@")
    path = Path(checkpoint) if checkpoint else FOLDER / f"{name.removeprefix('demo:')}.safetensors"
    try:
        card = json.loads(path.with_suffix(".json").read_bytes())
    except (OSError, ValueError):
        return {}
    return card if isinstance(card, dict) and {"model", *ALIKE} <= set(card) else {}


def losses(path: Path) -> pd.DataFrame:
    """The parts of the loss that a training has noted so far, each before its weight; empty before the first line.

    Returns:
        step, side ("training": of the batch that the step learned from; "held out": after the step), part, value.
    """
    rows = []
    for line in trainer.log(path):
        known = line.get("held_out")
        side = "training" if known is None else "held out"
        said = line if known is None else known
        rows += [
            (line["step"], side, part, value)
            for part, value in said.items()
            if part not in ("step", "loss", "rate", "seconds")
        ]
    return pd.DataFrame(rows, columns=["step", "side", "part", "value"])


def pace(path: Path) -> float:
    """Seconds a step of a training so far; NaN before the first."""
    last = next((line for line in reversed(trainer.log(path)) if "seconds" in line), None)
    return last["seconds"] / last["step"] if last else math.nan


def repair_seeds(
    store: Store, pairs: tuple[tuple[str, str], ...], numbers: Numbers, unit: str = "spread"
) -> pd.DataFrame:
    """What the loss did in trainings that differ by their seed alone, and how much the seeds disagree.

    Args:
        store: Where results are.
        pairs: Of each seed the control and the model after; only questions that all of them answered count.
        numbers: Which probes and metrics, in order.
        unit: As of `repair_levels`.

    Returns:
        A row a metric: probe, metric, differences (a tuple, after minus control, in the order of the pairs), mean, sd
        (of one training, over the seeds; NaN with fewer than two).
    """
    models = tuple(dict.fromkeys(name for pair in pairs for name in pair))
    levels = repair_levels(store, models, numbers, unit)
    rows = []
    for (probe, metric), own in levels.groupby(["probe", "metric"], sort=False):
        value = own.set_index("model")["value"]
        found = pd.Series([value[after] - value[control] for control, after in pairs])
        rows.append((probe, metric, tuple(found), found.mean(skipna=False), found.std(skipna=False)))
    return pd.DataFrame(rows, columns=["probe", "metric", "differences", "mean", "sd"])
