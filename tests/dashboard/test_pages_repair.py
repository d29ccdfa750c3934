"""The Repair page, without a browser: changed metrics, started jobs, and a training from its start to its end."""

import base64
import json
import re
import time
from dataclasses import asdict, replace
from urllib.parse import parse_qs

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from tests.dashboard.test_pages import open_page, words
from tests.dashboard.walls import component_values
from tests.views.conftest import MODELS
from vlprobe import views
from vlprobe.dashboard.lab import repair as dashboard_repair
from vlprobe.dashboard.lab import training as dashboard_training
from vlprobe.render import charts, numbers
from vlprobe.render.html import repair
from vlprobe.runs import jobs
from vlprobe.runs.request import Request
from vlprobe.storage import access
from vlprobe.storage.store import Store
from vlprobe.training.losses import EQSIM_VARIANTS
from vlprobe.training.request import TrainRequest
from vlprobe.views.filter import Filter

PICKED = dict(zip(("before", "control", "after"), MODELS, strict=True))
LOG = [
    {"step": 0, "added_time": 0.034, "held_out": {"clip": 2.0, "eqsim": 0.5, "flip": 0.25}},
    {"step": 1, "loss": 1.75, "clip": 1.5, "eqsim": 0.25, "rate": 1e-5, "seconds": 0.5},
    {"step": 2, "loss": 1.5, "clip": 1.25, "eqsim": 0.25, "rate": 1e-5, "seconds": 1.0},
    {"step": 2, "held_out": {"clip": 1.0, "eqsim": 0.375, "flip": 0.3}},
]


@pytest.fixture(autouse=True)
def nothing_shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the bundled results, so that pages have no defaults but those of the test."""
    monkeypatch.setattr(
        dashboard_repair, "FIRST", {"before": "demo:softmax", "control": "", "after": ""}
    )


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list:
    """Return the requests of the started jobs, none of which runs."""
    started: list = []
    monkeypatch.setattr(jobs, "start", lambda request, _: started.append(request) or "")
    return started


def write_job(store: Store, request: jobs.JobRequest, state: str) -> str:
    """Write a job as its process leaves it on disk."""
    job_id = f"{len(jobs.jobs(store)) + 1:x}"
    folder, now = store.root / "jobs" / job_id, time.time()
    folder.mkdir(parents=True)
    (folder / "request.json").write_text(json.dumps(asdict(request) | {"created": now}))
    status = {
        "state": state,
        "label": "Training demo:softmax",
        "done": 2,
        "total": 4,
        "started": now,
        "updated": now,
    }
    (folder / "status.json").write_text(json.dumps(status))
    (folder / "log.txt").write_text("")
    return job_id


def write_training(store: Store, state: str, loss: str = "clip+eqsim") -> tuple[str, TrainRequest]:
    """Write the job of a training, with its log and its weights."""
    output = str(store.root / "trained" / "t.safetensors")
    request = TrainRequest("demo:softmax", ("demo-train",), output, loss, 4, device="cpu")
    request.path.parent.mkdir(parents=True)
    request.path.with_suffix(".jsonl").write_text("\n".join(map(json.dumps, LOG)))
    request.path.touch()
    return write_job(store, request, state), request


def labels(at: AppTest) -> list[str]:
    return [button.label for button in at.button]


def test_without_results_repair_names_its_requirements_and_can_train(monkeypatch, store: Store):
    at = open_page(monkeypatch, store, "repair")
    assert not at.error
    assert "Three models" in at.info[0].value
    assert labels(at) == ["Start fine-tuning"]
    assert "No training runs yet" in words(at)
    assert not at.get("plotly_chart")


def test_one_click_evaluates_the_default_bundled_models(monkeypatch, store: Store, begun: list):
    shipped = {"before": "demo:softmax", "control": "demo:weak", "after": "demo:sigmoid"}
    monkeypatch.setattr(dashboard_repair, "FIRST", shipped)
    at = open_page(monkeypatch, store, "repair")
    assert {name: at.query_params[name] for name in shipped} == shipped
    assert "Time unknown: these tests have not been run here yet" in words(at)
    at.button(key="ask_missing").click().run()
    assert [[(one.probe, one.models) for one in plan.requests] for plan in begun] == [
        [(name, tuple(shipped.values())) for name in dashboard_repair.PROBES]
    ]


def test_a_control_with_other_training_options_shows_a_warning(monkeypatch, store: Store):
    write_training(store, "done")
    output = str(store.root / "trained" / "c.safetensors")
    control = TrainRequest("demo:softmax", ("demo-train",), output, "clip", 8, device="cpu")
    write_job(store, control, "done")
    control.path.touch()
    for request in (control, jobs.jobs(store)[-1].request):
        request.path.with_suffix(".json").write_text(json.dumps(asdict(request)))
    at = open_page(monkeypatch, store, "repair")
    assert at.selectbox(key="control").value == control.tuned
    assert "steps: 8 in the control, 4 after" in at.warning[0].value.replace("\\", "")


def test_the_table_and_the_words_have_the_numbers_of_the_views(
    monkeypatch, filled: Store, begun: list
):
    at = open_page(monkeypatch, filled, "repair", **PICKED)
    assert not at.error
    text, known = words(at), views.runs.metrics("lgip")
    assert "nan" not in text
    moves = views.repair.repair_moves(filled, *MODELS, dashboard_repair.NUMBERS)
    assert len(moves) == 6
    for row in moves.itertuples():
        unit = numbers.unit_of(known[row.metric], "spread")
        size, around = (
            numbers.signed(row.difference, unit),
            numbers.between(row.low, row.high, unit),
        )
        assert f"{size} {row.verdict}{around} · {numbers.chance(row.p_holm)}" in text
    for row in views.repair.repair_levels(filled, MODELS, dashboard_repair.NUMBERS).itertuples():
        unit = numbers.unit_of(known[row.metric], "spread")
        assert numbers.number(row.value, unit) + numbers.interval(row.low, row.high, unit) in text
    assert [one.key for one in at.get("plotly_chart")] == [
        *("repair_rates", "repair_sensitivity_gap", "repair_invariance_error")
    ]
    at.button(key="ask_missing").click().run()
    assert [(one.probe, one.models) for one in begun[0].requests] == [
        (probe, MODELS)
        for probe in (
            "rococo",
            "eqben",
            "visla",
            "prsm",
            "series",
            "pictures",
            "halftruths",
            "hardpositives",
        )
    ]


def test_queued_jobs_are_shown_and_not_offered_again(monkeypatch, store: Store):
    picked = {"before": "demo:softmax", "control": "demo:sigmoid", "after": "demo:weak"}
    for probe in ("lgip", "prsm"):
        write_job(store, Request(tuple(picked.values()), "demo", probe), "queued")
    monkeypatch.setattr(jobs, "_reason_of_death", lambda _: "")
    at = open_page(monkeypatch, store, "repair", **picked)
    assert not at.error
    assert (
        "Waiting Wording and meaning (LGIP) · Drawn scenes · Tiny CLIP, Tiny SigLIP, Half-trained"
        in words(at)
    )
    assert "1 more such job is waiting" in words(at)
    assert "ask_missing" not in [button.key for button in at.button]
    monkeypatch.setattr(jobs, "_reason_of_death", lambda _: "Its process was killed.")
    at.run()
    assert "ask_missing" in [button.key for button in at.button]


def test_start_requests_the_chosen_training(monkeypatch, store: Store, begun: list):
    at = open_page(monkeypatch, store, "repair")
    at.radio(key="train_kind").set_value("scvc")
    at.selectbox(key="train_start").set_value("demo:sigmoid")
    at.selectbox(key="train_data").set_value("demo-train|demo-train:pairs")
    at.number_input(key="train_strength").set_value(2.0)
    at.number_input(key="train_steps").set_value(30)
    at.number_input(key="train_seed").set_value(7)
    at.run()
    assert "sigmoid+0.1*sc+0.4*vc" in words(at)
    at.button(key="train_begin").click().run()
    assert not at.error
    request = begun[0]
    assert (request.model, request.loss) == ("demo:sigmoid", "sigmoid+0.1*sc+0.4*vc")
    assert request.datasets == ("demo-train", "demo-train:pairs")
    assert (request.steps, request.seed, request.rate) == (30, 7, 3e-4)
    assert request.path.parent == store.root / "trained"
    assert request.path.name.startswith("sigmoid-scvc-30-seed7-")


def test_more_pairs_and_a_longer_trained_start_can_be_chosen(
    monkeypatch, store: Store, begun: list
):
    at = open_page(monkeypatch, store, "repair")
    at.selectbox(key="train_start").set_value("demo:plain")
    at.selectbox(key="train_data").set_value("demo-train|demo-train:pairs:1200").run()
    at.button(key="train_begin").click().run()
    assert not at.error
    assert begun[0].model == "demo:plain"
    assert begun[0].datasets == ("demo-train", "demo-train:pairs:1200")


def test_every_variant_of_eqsim_can_be_started(monkeypatch, store: Store, begun: list):
    at = open_page(monkeypatch, store, "repair")
    offered = dashboard_training.VARIANTS
    assert tuple(offered) == EQSIM_VARIANTS
    for variant in offered:
        at.selectbox(key="train_eqsim").set_value(variant).run()
        at.button(key="train_begin").click().run()
        assert not at.error
        assert begun[-1].eqsim == variant
    assert "EqSim v1+v2-close" in words(at)
    at.radio(key="train_kind").set_value("hardneg").run()
    assert "train_eqsim" not in [box.key for box in at.selectbox]
    at.button(key="train_begin").click().run()
    assert (begun[-1].loss, begun[-1].eqsim) == ("clip+hardneg", "hybrid")


def test_the_same_choices_name_the_same_file_and_others_another(monkeypatch, store: Store):
    monkeypatch.setattr(dashboard_training, "store", lambda: store)
    given = ("demo:softmax", "demo-train", "eqsim", 1.0, 240, 1e-4, 0)
    first = dashboard_training.tuning_request(*given)
    assert dashboard_training.tuning_request(*given) == first
    others = [
        dashboard_training.tuning_request(*given[:3], 0.5, *given[4:]),
        dashboard_training.tuning_request(*given[:5], 3e-4, 0),
        dashboard_training.tuning_request(*given, "v1+v2-close"),
    ]
    assert len({one.output for one in (first, *others)}) == 4
    hard = dashboard_training.tuning_request(*given[:2], "hardneg", *given[3:], "v2")
    assert (hard.loss, hard.eqsim) == ("clip+hardneg", "hybrid")
    assert dashboard_training.tuning_request(*given[:2], "plain", 5.0, *given[4:]).loss == "clip"


def test_a_finished_training_shows_losses_and_can_be_evaluated(
    monkeypatch, store: Store, begun: list
):
    _, request = write_training(store, "done")
    at = open_page(monkeypatch, store, "repair")
    assert not at.error
    assert at.selectbox(key="after").value == request.tuned  # the newest one that is not a control
    assert request.tuned in [code.value for code in at.code]
    assert "cost +3 % a step" in words(at)
    held_out, trainings = at.dataframe
    assert "eqsim 0.500 → 0.375" in trainings.value.iloc[0, -1]
    rows = [list(row) for row in held_out.value.iloc[:, 1:].itertuples(index=False)]
    assert [0.5, 0.375] in rows and [0.25, 0.3] in rows
    assert "not trained" in set(held_out.value["Weight"])
    drawn = json.loads(at.get("plotly_chart")[0].proto.spec)["data"]
    y = [np.frombuffer(base64.b64decode(line["y"]["bdata"])).tolist() for line in drawn]
    assert y == [[1.5, 1.25], [2.0, 1.0], [0.25, 0.25], [0.5, 0.375]]
    at.button(key="train_probe").click().run()
    assert [one.probe for one in begun[0].requests] == list(dashboard_repair.PROBES)
    assert {request.tuned, "demo:softmax"} <= set(begun[0].models)
    assert at.query_params["after"] == request.tuned


def test_other_seeds_are_trainings_that_differ_only_by_the_seed(monkeypatch, store: Store):
    monkeypatch.setattr(dashboard_training, "store", lambda: store)
    made = {}
    for loss in ("clip", "clip+eqsim"):
        for seed, steps in ((0, 4), (1, 4), (2, 4), (1, 8)):
            output = str(store.root / f"{loss}-{seed}-{steps}.safetensors")
            request = TrainRequest("demo:softmax", ("demo-train",), output, loss, steps, seed=seed)
            made[loss, seed, steps] = request.tuned
            write_job(store, request, "failed" if (loss, seed) == ("clip", 2) else "done")
    pair = (made["clip", 0, 4], made["clip+eqsim", 0, 4])
    assert dashboard_training.other_seeds(*pair) == [(made["clip", 1, 4], made["clip+eqsim", 1, 4])]
    assert dashboard_training.other_seeds("demo:plain", pair[1]) == []


def test_other_seeds_are_shown_next_to_the_selected_one(monkeypatch, filled: Store, begun: list):
    monkeypatch.setattr(dashboard_repair, "_other_seeds", lambda _: [(MODELS[0], MODELS[2])])
    at = open_page(monkeypatch, filled, "repair", **PICKED)
    table = views.repair.repair_seeds(
        filled, (MODELS[1:], (MODELS[0], MODELS[2])), dashboard_repair.NUMBERS
    )
    for row in table.itertuples():
        unit = numbers.unit_of(views.runs.metrics("lgip")[row.metric], "spread")
        cells = [numbers.signed(one, unit) for one in (*row.differences, row.mean)]
        assert "".join(cells) in words(at)
    monkeypatch.setattr(dashboard_repair, "_other_seeds", lambda _: [("demo:weak", "demo:sigmoid")])
    at.run().button(key="ask_seeds").click().run()
    assert [(one.probe, one.models) for one in begun] == [("lgip", ("demo:weak", "demo:sigmoid"))]


def test_gains_losses_and_unclear_changes_are_listed_separately():
    rows = [
        ("positive_rate", "better", 0.1),
        ("sensitivity_gap", "worse", -0.2),
        ("invariance_error", "tied", 0.0),
    ]
    moves = pd.DataFrame(
        [
            ("lgip", name, "loss", 0.5, 0.5 + by, by, by - 0.05, by + 0.05, 0.01, word, 0)
            for name, word, by in rows
        ],
        columns=[
            "probe",
            "metric",
            "step",
            "base",
            "value",
            "difference",
            "low",
            "high",
            "p_holm",
            "verdict",
            "left_out",
        ],
    )
    text = re.sub("<[^>]+>", "", repair.in_words(moves, {"lgip": views.runs.metrics("lgip")}))
    assert "Gained (1): Positive rate 50.0 % → 60.0 % (+10.0 points, 5.0 to 15.0)." in text
    assert "Lost (1): Sensitivity gap 0.500 → 0.300 (-0.200, -0.250 to -0.150 spreads)." in text
    assert "No clear change (1): Invariance error." in text


def test_a_plain_training_is_the_control(monkeypatch, store: Store, begun: list):
    _, request = write_training(store, "done", loss="clip")
    at = open_page(monkeypatch, store, "repair")
    assert at.selectbox(key="control").value == request.tuned
    at.button(key="train_probe").click().run()
    assert at.query_params["control"] == request.tuned


def test_a_running_training_shows_its_speed_and_can_be_cancelled(monkeypatch, store: Store):
    job_id, _ = write_training(store, "running")
    monkeypatch.setattr(jobs, "_reason_of_death", lambda _: "")
    at = open_page(monkeypatch, store, "repair")
    assert "2 of 4 steps · 0.5 s a step · about 1 s left" in words(at)
    at.button(key="train_cancel").click().run()
    assert (store.root / "jobs" / job_id / "cancel").exists()
    assert "Stopping at the next step" in labels(at)
    monkeypatch.setattr(jobs, "_reason_of_death", lambda _: "Its process was killed.")
    at.run()
    assert "Resume" in labels(at)
    assert "killed" in at.error[0].value


def test_panel_and_table_agree_on_a_training_that_starts_meanwhile(monkeypatch, store: Store):
    job_id, _ = write_training(store, "queued")
    monkeypatch.setattr(jobs, "_reason_of_death", lambda _: "")
    status = store.root / "jobs" / job_id / "status.json"

    def drawn_later(draw, run_every: float | None = None):
        if run_every:
            status.write_text(status.read_text().replace("queued", "running"))
        return draw

    monkeypatch.setattr(dashboard_training.st, "fragment", drawn_later)
    at = open_page(monkeypatch, store, "repair")
    states = " ".join(at.dataframe[-1].value["State"])
    assert re.findall("Running|Waiting", words(at) + states) == ["Running", "Running"]


def test_a_read_only_repair_page_has_no_buttons(monkeypatch, store: Store):
    write_training(store, "done")
    monkeypatch.setenv(access.READ_ONLY, "1")
    at = open_page(monkeypatch, store, "repair", control="demo:weak", after="demo:sigmoid")
    assert not at.error
    assert not at.button
    assert "read-only demo" in words(at)
    assert len(at.get("plotly_chart")) == 1


def test_the_page_begins_with_cases_that_fool_only_the_original_model(monkeypatch, filled: Store):
    at = open_page(monkeypatch, filled, "repair", **PICKED)
    (sentence,) = [element.value for element in at.markdown if "do not fool" in element.value]
    ((_, values),) = component_values(at, "wall")
    link = next(link.proto for link in at.get("page_link") if link.proto.page == "explore")
    query = {name: value for name, (value,) in parse_qs(link.query_string).items()}
    chosen = Filter(PICKED["before"], query["kind"], other=PICKED["after"], outcome="fooled")
    chosen = replace(chosen, other_outcome="held")
    question_set = views.runs.question_set(filled, query["set"])
    table, total = views.cases.failures(question_set, chosen, 1, 1000)
    assert link.label == f"All {total:,}" and sentence.startswith(f"**{total:,} ")
    assert query["bucket"] == "only_first" and query["other"] == PICKED["after"]
    assert {card["id"] for card in values["cards"]} <= set(table["id"])


def test_tick_labels_of_rates_are_not_rounded_to_the_same_text():
    levels = pd.DataFrame(
        [
            ("lgip", "positive_rate", model, value, value - 0.01, value + 0.01, 9)
            for model, value in zip(MODELS, (0.872, 0.885, 0.913), strict=True)
        ],
        columns=["probe", "metric", "model", "value", "low", "high", "n_items"],
    )
    looks = charts.styles.styles(list(MODELS))
    rows = {("lgip", "positive_rate"): ("Positive rate", "rate")}
    figure = charts.repair.dumbbells(levels, rows, dict.fromkeys(MODELS, "x"), looks)
    digits = figure.layout.xaxis.tickformat
    assert digits == ".4~%"  # 87.5 %, not 88 % twice
