"""Several probes in one plan: the model encodes each picture and text once, and the files equal those of single
runs.
"""

import json
import os
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import call, tiers
from tests.datasets.test_pairs import picture
from tests.runs.test_run import StopAt, stored_bytes
from vlprobe import registry
from vlprobe.errors import Misfit, VlprobeError
from vlprobe.models.controls import ControlEncoder
from vlprobe.runs import profile
from vlprobe.runs.request import Progress, Request
from vlprobe.runs.run import execute, execute_plan
from vlprobe.storage.store import Store

PROBES = ("lgip", "rococo", "prsm")
MODELS = ("control:random", "control:constant")
RUN = ("run", "--no-doctor", "--format", "json")


def requests(tiny: str, probes: tuple[str, ...] = PROBES, **changes) -> list[Request]:
    options = {"rococo": {"pictures": ["mix:0.9"], "picture_seeds": [1]}}
    return [Request(MODELS, tiny, probe, options.get(probe, {}), **changes) for probe in probes]


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the models that are loaded."""
    names: list[str] = []
    load = registry.load_model
    monkeypatch.setattr(
        registry, "load_model", lambda name, *rest: names.append(str(name)) or load(name, *rest)
    )
    return names


@pytest.fixture
def singles(tiny: str, tmp_path: Path) -> dict[str, bytes]:
    """Return the files that single runs store, each in a separate cache."""
    stored: dict[str, bytes] = {}
    for request in requests(tiny):
        store = Store(tmp_path / request.probe)
        execute(request, store)
        stored |= stored_bytes(store)
    return stored


@pytest.mark.parametrize("keeps", tiers([True, False], (True,)))
def test_a_plan_stores_the_keys_and_bytes_of_single_runs(tiny, tmp_path, singles, keeps: bool):
    store = Store(tmp_path / "plan")
    plan = execute_plan(requests(tiny, keep_embeddings=keeps), store)
    assert stored_bytes(store) == singles
    assert [len(manifests) for manifests in plan.manifests] == [2, 2, 2]
    assert {key.split("/")[1] for key in singles} == {
        manifest["key"] for manifests in plan.manifests for manifest in manifests
    }
    assert plan.left_out == []
    assert execute_plan(requests(tiny), store) == plan  # repeating it returns the stored runs


@pytest.mark.parametrize("keeps", tiers([True, False], (True,)))
def test_a_plan_encodes_each_picture_and_text_once_and_loads_the_model_once(
    tiny, tmp_path, monkeypatch, loads, keeps: bool
):
    seen: Counter[tuple[str, bytes]] = Counter()
    real_texts, real_images = ControlEncoder.encode_texts, ControlEncoder.encode_images

    def count(side: str, rows) -> None:
        seen.update((side, row.tobytes()) for row in rows)

    def texts(self, tokens):
        count("text", tokens)
        return real_texts(self, tokens)

    def images(self, pixels):
        count("image", pixels)
        return real_images(self, pixels)

    monkeypatch.setattr(ControlEncoder, "encode_texts", texts)
    monkeypatch.setattr(ControlEncoder, "encode_images", images)
    monkeypatch.setattr("vlprobe.scoring.encoder.fill_up", lambda rows, *sizes: rows)
    monkeypatch.setattr("vlprobe.scoring.batches.fill_up", lambda rows, *sizes: rows)
    plan = [
        replace(request, models=MODELS[:1])
        for request in requests(tiny, keep_embeddings=keeps, examine=False)
    ]
    execute_plan(plan, Store(tmp_path / "plan"))
    assert loads == ["control:random"]
    assert {side for side, _ in seen} == {"text", "image"}
    assert set(seen.values()) == {1}


def test_a_stopped_plan_resumes_to_the_same_bytes(tiny, tmp_path, singles):
    store = Store(tmp_path / "plan")
    for step in (6, 14, 22):
        with pytest.raises(KeyboardInterrupt):
            execute_plan(requests(tiny), store, StopAt(step))
    execute_plan(requests(tiny), store)
    assert stored_bytes(store) == singles


def test_a_model_is_examined_once_for_all_probes(tiny, tmp_path):
    labels: list[str] = []

    class Recorder(Progress):
        def update(self, label: str, done: float, total: float) -> None:
            labels.extend([label] if labels[-1:] != [label] else [])

    execute_plan(requests(tiny), Store(tmp_path / "plan"), Recorder())
    assert Counter(label for label in labels if label.startswith(("Examining", "Loading"))) == {
        f"{word} {model}{place}": 1
        for model in MODELS
        for word, place in (("Loading", ""), ("Examining", f" on {tiny}"))
    }
    assert sum(label.startswith("Reading ") for label in labels) == 1


def test_a_probe_without_cases_is_skipped_by_all_and_an_error_if_named(tiny, tmp_path):
    store = Store(tmp_path / "plan")
    plan = execute_plan(requests(tiny, ("eqben", "lgip")), store, leaves_out=True)
    assert [len(manifests) for manifests in plan.manifests] == [0, 2]
    assert all(line.startswith("eqben: Probe 'eqben' has no cases") for line in plan.left_out)
    with pytest.raises(Misfit, match="has no cases"):
        execute_plan(requests(tiny, ("eqben", "lgip")), store)


def test_run_accepts_several_probes_with_options_for_one_or_all(tiny, tmp_path):
    words = [*RUN, "--model", "control:random", "--dataset", tiny]
    options = ["--option", "lgip.rules=paper", "--option", "approximate=0"]
    options += ["--option", "pictures=mix:0.9", "--option", "rococo.picture_seeds=1"]
    ended = call(tmp_path, *words, "--probe", "lgip", "--probe", "rococo", *options, "--profile")
    table = json.loads(ended.stdout)
    assert {row["probe"] for row in table} == {"lgip", "rococo"}
    stored = {run["run"]["probe"]: run["run"]["options"] for run in Store(tmp_path).runs()}
    assert stored["lgip"]["rules"] == "paper"
    assert (stored["rococo"]["pictures"], stored["rococo"]["picture_seeds"]) == (["mix:0.9"], [1])
    stages = [line.split("  ")[0] for line in ended.stderr.splitlines()]
    assert {"load models", "make questions", "encode and score", "all"} <= set(stages)
    wrong = call(tmp_path, *words, "--probe", "lgip", "--probe", "prsm", "--option", "x=1", code=1)
    assert "No probe option named 'x'" in wrong.stderr
    assert "prmx" in call(tmp_path, *words, "--probe", "prmx", code=1).stderr


def test_probe_all_runs_every_probe_that_applies_to_the_dataset(tiny, tmp_path):
    words = [*RUN, "--model", "control:constant", "--dataset", tiny]
    ended = call(tmp_path, *words, "--probe", "all", "--option", "pictures=")
    assert {row["probe"] for row in json.loads(ended.stdout)} == {
        "halftruths",
        "hardpositives",
        "lgip",
        "pictures",
        "prsm",
        "rococo",
    }
    assert "Left out eqben: " in ended.stderr
    assert "Left out visla: " in ended.stderr


@pytest.mark.parametrize("wrong", ["control:typo", "demoo:weak", "embeddings:/no/such/file.npz"])
def test_an_invalid_name_of_a_later_model_is_refused_before_loading_the_first(
    tiny, tmp_path, wrong: str
):
    request = Request((*MODELS[:1], wrong), tiny, "lgip", examine=False)
    with pytest.raises(VlprobeError, match=r"typo|demoo|no/such"):
        execute(request, Store(tmp_path / "cache"))
    assert Store(tmp_path / "cache").runs() == []


def test_one_command_runs_several_datasets_with_the_bytes_of_single_runs(tiny, tmp_path, loads):
    (tmp_path / "foils.csv").write_text(
        "image,caption,foil\ntiny/0.png,a red ball,a blue ball\ntiny/1.png,a cup,a hat\n"
    )
    datasets = [tiny, f"table:{tmp_path / 'foils.csv'}"]
    words = [*RUN, "--model", "control:random"]
    stored: dict[str, bytes] = {}
    for dataset, probe in zip(datasets, ("lgip", "eqben"), strict=True):
        call(tmp_path / probe, *words, "--dataset", dataset, "--probe", probe)
        stored |= stored_bytes(Store(tmp_path / probe))
    loads.clear()
    both = [word for dataset in datasets for word in ("--dataset", dataset)]
    ended = call(tmp_path / "plan", *words, *both, "--probe", "eqben", "--probe", "lgip")
    assert loads == ["control:random"]
    pairs = {(row["dataset"], row["probe"]) for row in json.loads(ended.stdout)}
    assert {(tiny, "lgip"), (datasets[1], "eqben")} <= pairs
    assert (tiny, "eqben") not in pairs and f"has no cases for dataset '{tiny}'" in ended.stderr
    assert stored.items() <= stored_bytes(Store(tmp_path / "plan")).items()
    nothing = call(tmp_path / "none", *words, *["--dataset", tiny] * 2, "--probe", "visla", code=1)
    assert "visla: " in nothing.stderr


def test_a_profile_counts_the_seconds_of_each_stage_and_of_the_model(monkeypatch):
    # seconds of wall, CPU and model: at the start, and at each label that starts a stage
    ticks = iter([(0, 0, 0), (1, 1, 0), (3, 2, 0), (10, 6, 0), (30, 20, 15), (32, 21, 15)])
    monkeypatch.setattr(profile, "_clocks", lambda: next(ticks))
    clock = profile.Profile(Progress())
    for label in ("Reading d", "Loading m", "m on d", "m on d", "m on d: intervals"):
        clock.update(label, 0, 1)
    lines = {line[:26].strip(): line[26:].split() for line in clock.report().splitlines()[1:]}
    assert lines["read the dataset"] == ["2.00", "6.2%", "1.00", "0.00", "0.0%"]
    assert lines["load models"][0] == "7.00"
    assert lines["encode and score"] == ["20.00", "62.5%", "14.00", "15.00", "75.0%"]
    assert lines["judge, intervals, write"][0] == "2.00"
    assert lines["all"] == ["32.00", "100.0%", "21.00", "15.00", "46.9%"]


def test_computing_the_first_embeddings_is_not_counted_as_making_questions(
    tiny, tmp_path, monkeypatch
):
    clock, stages = profile.Profile(Progress()), []  # the stages in which the model encodes

    def time_stage(name: str):
        answer = getattr(ControlEncoder, name)
        return lambda *args: stages.append(clock._name) or answer(*args)

    for name in ("encode_texts", "encode_images"):
        monkeypatch.setattr(ControlEncoder, name, time_stage(name))
    plan = [request for request in requests(tiny) if request.probe != "prsm"]
    execute_plan(
        [replace(one, models=MODELS[:1], examine=False) for one in plan], Store(tmp_path), clock
    )
    assert set(stages) == {"similarity spread", "encode and score"}
    assert stages[0] == "similarity spread"
    assert {"make questions", "load models"} <= set(clock.stages)


def test_the_stages_of_a_real_profile_add_up_to_the_total(tiny, tmp_path):
    began, spent = time.perf_counter(), sum(os.times()[:4])
    words = ["run", "--model", "control:random", "--dataset", tiny, "--probe", "lgip", "--profile"]
    lines = call(tmp_path, *words).stderr.splitlines()
    wall, cpu = time.perf_counter() - began, sum(os.times()[:4]) - spent
    first = next(number for number, line in enumerate(lines) if line.startswith("stage "))
    rows = {line[:26].strip(): line[26:].split() for line in lines[first + 1 :]}
    of_all = rows.pop("all")
    assert {"doctor", "judge, intervals, write", "encode and score"} <= set(rows)
    for column in (0, 2, 3):  # seconds of wall, CPU and model
        total = sum(float(row[column]) for row in rows.values())
        assert total == pytest.approx(float(of_all[column]), abs=0.006 * len(rows))
    shares = sum(float(row[1].rstrip("%")) for row in rows.values())
    assert shares == pytest.approx(100, abs=0.06 * len(rows))
    assert float(of_all[0]) <= wall + 0.01
    assert float(of_all[2]) <= cpu + 0.01


EVERY = ("lgip", "eqben", "visla", "series")  # only the first has cases for six pictures


def test_a_probe_without_cases_is_reported_once_for_all_models(tiny, tmp_path):
    plan = execute_plan(requests(tiny, EVERY), Store(tmp_path / "cache"), leaves_out=True)
    assert [len(manifests) for manifests in plan.manifests] == [2, 0, 0, 0]
    assert [line.partition(":")[0] for line in plan.left_out] == ["eqben", "visla", "series"]


def test_a_probe_without_cases_is_remembered_and_no_model_is_loaded_again(tiny, tmp_path, loads):
    store = Store(tmp_path / "cache")

    def run_plan(probes: tuple[str, ...] = EVERY, leaves_out: bool = True, **changes):
        every = [replace(each, models=("demo:weak",)) for each in requests(tiny, probes, **changes)]
        return execute_plan(every, store, leaves_out=leaves_out)

    plan = run_plan(examine=False)
    assert loads == ["demo:weak"] and len(plan.left_out) == 3
    assert run_plan(examine=False) == plan
    with pytest.raises(Misfit) as caught:
        run_plan(("eqben",), leaves_out=False, examine=False)
    assert f"eqben: {caught.value}" == plan.left_out[0]
    assert loads == ["demo:weak"]
    run_plan(examine=False, verify=True)  # verify ignores the remembered probes
    assert loads == ["demo:weak"] * 2


def test_changed_data_is_run_although_it_had_no_cases_before(tmp_path):
    picture(tmp_path / "a.png")
    file, store = tmp_path / "x.csv", Store(tmp_path / "cache")
    request = Request(MODELS, f"table:{file}", "eqben", examine=False)
    file.write_text("image,caption\na.png,A cat.\n", encoding="utf-8")
    assert execute_plan([request], store, leaves_out=True).manifests == [[]]
    file.write_text("image,caption,foil\na.png,A cat.,A dog.\n", encoding="utf-8")
    assert len(execute_plan([request], store, leaves_out=True).manifests[0]) == 2


@pytest.mark.parametrize(
    "content",
    tiers(
        ["{", "[1]", '{"KEY": 3}', '{"KEY": {"no foil": "many"}}'],
        ("{", '{"KEY": {"no foil": "many"}}'),
    ),
)
def test_a_damaged_memo_of_probes_without_cases_is_ignored(tiny, tmp_path, content):
    store = Store(tmp_path / "cache")
    plan = execute_plan(requests(tiny, EVERY), store, leaves_out=True)
    (key,) = [
        key
        for key, dropped in json.loads((store.root / "no-cases.json").read_text()).items()
        if dropped == {"no foil": 6}
    ]
    (store.root / "no-cases.json").write_text(content.replace("KEY", key))
    assert execute_plan(requests(tiny, EVERY), store, leaves_out=True) == plan
