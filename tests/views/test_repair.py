"""Before, control and after: every number is one of `compare`, with the models swapped where necessary."""

import json
import math
import statistics
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.views.conftest import MODELS
from vlprobe import registry, views
from vlprobe.errors import InvalidInput
from vlprobe.metrics import estimate
from vlprobe.render import charts
from vlprobe.storage.store import Store
from vlprobe.views.records import QuestionSetRow
from vlprobe.views.repair import (
    loss_curves,
    repair_levels,
    repair_moves,
    repair_seeds,
    repair_sets,
    seconds_per_step,
    training_differences,
)

BEFORE, CONTROL, AFTER = MODELS
NUMBERS = (
    ("lgip", ("positive_rate", "sensitivity_gap", "invariance_error")),
    ("eqben", ("text_score",)),
)
CONTROLS = ("control:random", "control:constant")


@pytest.mark.parametrize("unit", ["cosine", "spread"])
@pytest.mark.parametrize(
    ("step", "base", "model"), [("loss", CONTROL, AFTER), ("training", BEFORE, CONTROL)]
)
def test_each_step_equals_the_comparison_of_its_two_models(
    filled: Store, key: str, unit: str, step: str, base: str, model: str
):
    steps = repair_moves(filled, BEFORE, CONTROL, AFTER, NUMBERS, unit)
    steps = steps[steps["step"] == step].set_index("metric")
    table = views.paired_tests.compare_metrics(
        views.runs.question_set(filled, key), (base, model), "micro", unit
    ).set_index("metric")
    assert tuple(steps.index) == NUMBERS[0][1]
    for name, row in steps.iterrows():
        for column in ("base", "value", "difference", "low", "high", "p", "n_items", "left_out"):
            assert row[column] == pytest.approx(table.loc[name, column]), (name, column)


def test_p_is_corrected_for_the_whole_table_and_decides_the_verdict(filled: Store):
    table = repair_moves(filled, BEFORE, CONTROL, AFTER, NUMBERS)
    assert len(table) == 6  # three metrics, two steps; no model has answers to pairs
    assert table["p_holm"].to_numpy() == pytest.approx(estimate.holm(table["p"]))
    known = views.runs.metrics("lgip")
    for row in table.itertuples():
        up = known[row.metric].direction == "up"
        word = "tied" if row.p_holm >= 0.05 else "better" if (row.difference > 0) == up else "worse"
        assert row.verdict == word


def test_levels_are_the_estimates_in_the_requested_order(filled: Store, key: str):
    table = repair_levels(filled, MODELS, NUMBERS, "spread")
    order = [(name, model) for name in NUMBERS[0][1] for model in MODELS]
    assert list(zip(table["metric"], table["model"], strict=True)) == order
    known = views.estimates.estimates(
        views.runs.question_set(filled, key), "all", "micro", "spread"
    ).set_index(["metric", "model"])
    for row in table.itertuples():
        for column in ("value", "low", "high", "n_items"):
            assert getattr(row, column) == known.loc[(row.metric, row.model), column]


def test_repair_uses_exactly_the_probes_that_all_models_answered(every_probe: Store):
    keys = repair_sets(every_probe, CONTROLS)
    assert set(keys) == set(registry.names("probes"))
    assert keys == dict(views.runs.question_sets(every_probe).set_index("probe")["case_key"])
    assert repair_sets(every_probe, (*CONTROLS, "demo:softmax")) == {}
    empty = repair_moves(every_probe, *CONTROLS, "demo:softmax", NUMBERS)
    assert empty.empty
    assert {"verdict", "p_holm"} <= set(empty)
    assert repair_levels(every_probe, (*CONTROLS, "demo:softmax"), NUMBERS).empty


def test_repair_uses_the_newest_question_set_that_all_models_answered(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    rows = [
        ("4", "lgip", ["a"]),
        ("3", "lgip", ["b", "c", "a"]),
        ("2", "lgip", ["a", "b"]),
        ("1", "prsm", ["a"]),
    ]
    sets = [  # newest first, as from `question_set_rows`
        QuestionSetRow(key, key, "d", probe, models, 1, 1, False) for key, probe, models in rows
    ]
    monkeypatch.setattr("vlprobe.views.repair.question_set_rows", lambda _: sets)
    assert repair_sets(store, ("a", "b")) == {"lgip": "3"}
    assert repair_sets(store, ("a",)) == {"lgip": "4", "prsm": "1"}


def test_seeds_have_differences_of_estimates_with_mean_and_deviation(filled: Store, key: str):
    pairs = ((BEFORE, CONTROL), (AFTER, CONTROL), (BEFORE, AFTER))
    table = repair_seeds(filled, pairs, NUMBERS).set_index("metric")
    known = views.estimates.estimates(
        views.runs.question_set(filled, key), "all", "micro", "spread"
    ).set_index(["metric", "model"])["value"]
    assert tuple(table.index) == NUMBERS[0][1]
    for name, row in table.iterrows():
        gains = [known[name, after] - known[name, control] for control, after in pairs]
        assert row["differences"] == pytest.approx(tuple(gains))
        assert row["mean"] == pytest.approx(statistics.mean(gains))
        assert row["sd"] == pytest.approx(statistics.stdev(gains))
    assert math.isnan(repair_seeds(filled, pairs[:1], NUMBERS)["sd"].iloc[0])
    assert repair_seeds(filled, (*pairs, ("nobody", AFTER)), NUMBERS).empty


def test_three_models_are_needed(filled: Store):
    with pytest.raises(InvalidInput, match="three different models"):
        repair_moves(filled, BEFORE, BEFORE, AFTER, NUMBERS)


def test_training_differences_other_than_the_loss_are_reported(tmp_path: Path):
    assert (
        training_differences(
            "demo:softmax", "demo:weak", f"demo:softmax@{tmp_path / 'none.safetensors'}"
        )
        == []
    )
    card = {
        "model": "demo:softmax",
        "loss": "clip",
        "steps": 200,
        "datasets": ["demo-train"],
        "batch_size": 128,
    }
    card |= {"rate": 1e-4, "decay": 0.1, "freeze": "", "seed": 1}
    names = []
    for place, change in enumerate(({}, {"loss": "clip+sc"}, {"seed": 2, "datasets": ["a", "b"]})):
        path = tmp_path / f"{place}.safetensors"
        path.with_suffix(".json").write_text(json.dumps(card | change))
        names.append(f"demo:softmax@{path}")
    assert training_differences("demo:softmax", *names[:2]) == []
    assert training_differences("demo:softmax", *names[1:]) == [
        *("data: demo-train in the control, a and b after", "seed: 1 in the control, 2 after")
    ]
    assert len(training_differences("demo:weak", *names[:2])) == 2
    (tmp_path / "0.json").write_text("[]")
    assert training_differences("demo:softmax", names[0], names[2]) == []


def test_an_incomplete_log_is_read_up_to_its_last_full_line(tmp_path: Path):
    path = tmp_path / "tuned.safetensors"
    assert loss_curves(path).empty
    assert math.isnan(seconds_per_step(path))
    lines = [
        {"step": 0, "held_out": {"clip": 2.0, "sc": 0.5}},
        {"step": 1, "loss": 1.5, "clip": 1.5, "rate": 1e-5, "seconds": 0.4},
        {"step": 2, "loss": 1.25, "clip": 1.25, "rate": 1e-5, "seconds": 1.0},
        {"step": 2, "held_out": {"clip": 1.0, "sc": 0.75}},
    ]
    path.with_suffix(".jsonl").write_text("\n".join(map(json.dumps, lines)) + '\n{"step": 3, "lo')
    assert loss_curves(path).to_dict("split")["data"] == [
        [0, "held out", "clip", 2.0],
        [0, "held out", "sc", 0.5],
        [1, "training", "clip", 1.5],
        [2, "training", "clip", 1.25],
        [2, "held out", "clip", 1.0],
        [2, "held out", "sc", 0.75],
    ]
    assert seconds_per_step(path) == 0.5
    figure = charts.repair.losses(loss_curves(path), {"clip": "clip"}, 4)
    assert [(list(line.x), list(line.y)) for line in figure.data] == [
        ([1, 2], [1.5, 1.25]),
        ([0, 2], [2.0, 1.0]),
    ]


def test_a_dumbbell_has_one_mark_per_model_with_its_interval_and_omits_unknown_values():
    values = {"a": 0.2, "b": 0.4, "c": math.nan}
    levels = pd.DataFrame(
        [
            ("lgip", "m", model, value, value - 0.1, value + 0.2, 7)
            for model, value in values.items()
        ],
        columns=["probe", "metric", "model", "value", "low", "high", "n_items"],
    )
    names = dict(zip(values, ("Before", "<i>", "After"), strict=True))
    figure = charts.repair.dumbbells(
        levels, {("lgip", "m"): ("↑ M", "rate")}, names, charts.styles.styles(list(values))
    )
    assert [trace.name for trace in figure.data[1:]] == ["Before", "&lt;i&gt;", "After"]
    assert [list(trace.x) for trace in figure.data[1:]] == [[0.2], [0.4], []]
    assert np.allclose(figure.data[1].error_x.array, 0.2)
    assert np.allclose(figure.data[1].error_x.arrayminus, 0.1)
    # the axis runs downward: "before" is above the control
    assert figure.data[1].y[0] < figure.data[2].y[0]
    assert len({(trace.marker.color, trace.marker.symbol) for trace in figure.data[1:]}) == 3
