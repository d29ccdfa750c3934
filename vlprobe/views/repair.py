"""Effects of fine-tuning on all probes. The original model is compared with a repaired model and
with a control that was trained without the loss. Also reads the logged losses.

Training changes a model even without the loss, so the effect of the loss is measured against the
control.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from vlprobe.errors import InvalidInput
from vlprobe.metrics import estimate
from vlprobe.models.demo_weights import FOLDER
from vlprobe.storage.store import Store
from vlprobe.training import outputs
from vlprobe.views.estimates import estimates
from vlprobe.views.paired_tests import COMPARED, DifferenceRow, compare_metrics, verdict
from vlprobe.views.records import records
from vlprobe.views.runs import metrics, question_set, question_set_rows

# Probes in order, each with the metrics to show.
Numbers = tuple[tuple[str, tuple[str, ...]], ...]
SHARED_SETTINGS = {  # settings that a control shares with the repaired model
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
    """Return, for each probe, the key of the most complete question set that all of the given models answered."""
    keys: dict[str, str] = {}
    for row in question_set_rows(store):
        if set(models) <= set(row.models):
            keys.setdefault(row.probe, row.case_key)
    return keys


def repair_levels(
    store: Store, models: tuple[str, ...], numbers: Numbers, unit: str = "spread"
) -> pd.DataFrame:
    """Return each model's means of the given metrics, with 95 % intervals.

    Args:
        models: The models; only questions that all of them answered are used.
        unit: "cosine", or "spread" for multiples of each model's own spread. Fine-tuning changes
            the range of a model's cosines, so "spread" is usually better.

    Returns:
        One row per metric and model: probe, metric, model, value, low, high, n_items.
    """
    keys = repair_sets(store, models)
    tables = []
    for probe, names in numbers:
        if probe in keys:
            questions = question_set(store, keys[probe])
            runs = tuple(run for run in questions.runs if run.model in models)
            table = estimates(replace(questions, runs=runs), "all", unit=unit)
            table = table.assign(probe=probe)
            tables.append(table.loc[table["metric"].isin(list(names)), LEVELS])
    return _in_order(tables, LEVELS, numbers, "model", models)


def repair_moves(
    store: Store, original: str, control: str, tuned: str, numbers: Numbers, unit: str = "spread"
) -> pd.DataFrame:
    """Compute paired differences between the three models: the effect of the loss and the effect of
    training without it.

    Args:
        original: The model from which the others were fine-tuned.
        control: The model trained without the loss.
        tuned: The model trained with the loss.
        unit: As in `repair_levels`.

    Returns:
        One row per metric and step: probe, metric, step ("loss": tuned minus control; "training":
        control minus original), base, value, difference (value minus base), low, high (95 %), p
        (two-sided), p_holm (adjusted for all rows), verdict, n_items and left_out (as in
        `compare_metrics`).

    Raises:
        InvalidInput: the three models are not distinct.
    """
    if len({original, control, tuned}) < 3:
        raise InvalidInput(
            f"Before, control and after must be three different models. Given: {original}, "
            f"{control}, {tuned}."
        )
    keys = repair_sets(store, (original, control, tuned))
    tables = []
    for probe, names in numbers:
        if probe in keys:
            questions, models = question_set(store, keys[probe]), (control, tuned, original)
            compared = compare_metrics(questions, models, unit=unit, only=names)
            compared = compared.loc[compared["metric"].isin(list(names))].assign(probe=probe)
            tables.append(compared.loc[compared["model"] == tuned].assign(step="loss"))
            table = compared.loc[compared["model"] == original]  # to be read from this model on
            sides = {"base": table["value"], "value": table["base"], "low": -table["high"]}
            sides |= {"high": -table["low"], "difference": -table["difference"]}
            tables.append(table.assign(**sides, step="training"))
    columns = [*MOVES, *(name for name in COMPARED if name not in MOVES)]
    table = _in_order(tables, columns, numbers, "step", ("loss", "training"))
    table["p_holm"] = estimate.holm(table["p"].tolist())
    metrics_of = {probe: metrics(probe) for probe, _ in numbers}
    verdicts = [
        verdict(metrics_of[probe][row.metric], row.difference, row.p_holm)
        for probe, row in zip(table["probe"], records(DifferenceRow, table), strict=True)
    ]
    return table.assign(verdict=verdicts).loc[:, MOVES]


def _in_order(
    tables: Sequence[pd.DataFrame],
    columns: list[str],
    numbers: Numbers,
    minor: str,
    minor_order: tuple[str, ...],
) -> pd.DataFrame:
    """Concatenate tables. Sort the rows by probe and metric in the order of `numbers`, then by the column `minor`."""
    if not tables:
        return pd.DataFrame(columns=pd.Index(columns))
    table = pd.concat(tables, ignore_index=True)
    pairs = [(probe, name) for probe, names in numbers for name in names]
    ranks = [
        (pairs.index((probe, metric)), minor_order.index(name))
        for probe, metric, name in zip(table["probe"], table["metric"], table[minor], strict=True)
    ]
    return table.iloc[sorted(range(len(table)), key=ranks.__getitem__)].reset_index(drop=True)


def training_differences(original: str, control: str, tuned: str) -> list[str]:
    """Compare the training settings of the control and the repaired model, according to their model cards. Return the
    differences other than the loss.

    Returns:
        Lines such as "steps: 240 in the control, 200 after"; empty if there is no difference or a
        card is missing.
    """
    control_card, after_card = _training_card(control), _training_card(tuned)
    differences = [
        f"{role}, it was tuned from {card['model']}, not from {original}"
        for role, card in (("in the control", control_card), ("after", after_card))
        if card and card["model"] != original
    ]
    if control_card and after_card:
        for name, word in SHARED_SETTINGS.items():
            if control_card[name] != after_card[name]:
                of_control, of_after = (
                    " and ".join(card[name]) if isinstance(card[name], list) else card[name]
                    for card in (control_card, after_card)
                )
                differences.append(f"{word}: {of_control} in the control, {of_after} after")
    return differences


def _training_card(model: str) -> dict:
    """Return the training settings recorded for a demo model or a checkpoint, or {} if none are recorded."""
    name, _, checkpoint = model.partition("@")
    path = Path(checkpoint) if checkpoint else FOLDER / f"{name.removeprefix('demo:')}.safetensors"
    try:
        card = json.loads(path.with_suffix(".json").read_bytes())
    except (OSError, ValueError):
        return {}
    return card if isinstance(card, dict) and {"model", *SHARED_SETTINGS} <= set(card) else {}


def loss_curves(path: Path) -> pd.DataFrame:
    """Return the unweighted loss terms that a training run has logged so far. The table is empty
    before the first step.

    Returns:
        step, side ("training": measured on the step's batch; "held out": measured on held-out data
        after the step), part (the loss term), value.
    """
    rows = []
    for line in outputs.read_log(path):
        held_out = line.get("held_out")
        side = "training" if held_out is None else "held out"
        terms = line if held_out is None else held_out
        rows += [
            (line["step"], side, name, value)
            for name, value in terms.items()
            if name not in ("step", "loss", "rate", "seconds")
        ]
    return pd.DataFrame(rows, columns=pd.Index(["step", "side", "part", "value"]))


def added_time(path: Path) -> float:
    """Return how much longer the added terms make a step, as a share; NaN if there are none or it is not known yet."""
    first = next(iter(outputs.read_log(path)), {})
    return first.get("added_time", math.nan)


def seconds_per_step(path: Path) -> float:
    """Return the average time per training step so far, in seconds; NaN before the first step."""
    newest = next((line for line in reversed(outputs.read_log(path)) if "seconds" in line), None)
    return newest["seconds"] / newest["step"] if newest else math.nan


def repair_seeds(
    store: Store, pairs: tuple[tuple[str, str], ...], numbers: Numbers, unit: str = "spread"
) -> pd.DataFrame:
    """Compute the effect of the loss for each training seed, with the mean and the standard
    deviation over seeds.

    Args:
        pairs: For each seed, the control and the repaired model. Only questions that all of these
            models answered are used.

    Returns:
        One row per metric: probe, metric, differences (a tuple, tuned minus control, in the order
        of the pairs), mean, sd (the standard deviation over seeds; NaN with fewer than two seeds).
    """
    models = tuple(dict.fromkeys(name for pair in pairs for name in pair))
    levels = repair_levels(store, models, numbers, unit)
    rows = []
    for _, of_metric in levels.groupby(["probe", "metric"], sort=False):
        probe, metric = of_metric[["probe", "metric"]].iloc[0]
        values = of_metric.set_index("model")["value"]
        differences = pd.Series([values[tuned] - values[control] for control, tuned in pairs])
        mean, deviation = differences.mean(skipna=False), differences.std(skipna=False)
        rows.append((probe, metric, tuple(differences), mean, deviation))
    return pd.DataFrame(rows, columns=pd.Index(["probe", "metric", "differences", "mean", "sd"]))
