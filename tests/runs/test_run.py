"""Runs are complete and resumable, and speed settings do not change their numbers."""

import dataclasses
import itertools
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from PIL import Image

from tests.conftest import call, estimates_of, image_vector, make_tiny, text_vector, tiers
from vlprobe import registry, views
from vlprobe.errors import InvalidInput, NotFound
from vlprobe.models.controls import ControlEncoder
from vlprobe.models.open_clip_encoder import OpenClipEncoder
from vlprobe.runs import answers, questions
from vlprobe.runs import run as runs_run
from vlprobe.runs.request import Progress, Request
from vlprobe.runs.run import execute
from vlprobe.storage.entry import Entry
from vlprobe.storage.store import Store
from vlprobe.types import Run

MODELS = ("control:random", "control:constant")


def request(tiny: str, **changes) -> Request:
    return Request(**{"models": MODELS[:1], "dataset": tiny, "probe": "lgip"} | changes)


def stored_bytes(store: Store) -> dict[str, bytes]:
    return {
        str(path.relative_to(store.root)): path.read_bytes()
        for path in sorted(store.root.rglob("runs/*/*.parquet"))
    }


class StopAt(Progress):
    """Stop a run at its n-th step, like a user or a crash."""

    def __init__(self, step: int) -> None:
        self.left = step

    def update(self, label, done, total):
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt


def test_every_edit_of_every_caption_is_scored_once(tiny, store):
    manifest = execute(request(tiny), store)[0]
    cases = store.cases(manifest["case_key"]).table("cases").to_pandas()
    scores = store.run(manifest["key"]).table("scores").to_pandas()
    assert cases["case"].tolist() == scores["case"].tolist() == list(range(manifest["n_cases"]))
    assert cases["id"].is_unique
    assert set(cases["kind"]) == {"paraphrase", "flip", "combined"}
    assert not scores["margin"].isna().any()


def test_stored_numbers_equal_a_plain_loop(tiny, store):
    manifest = execute(request(tiny), store)[0]
    cases = store.cases(manifest["case_key"]).table("cases").to_pylist()
    model = registry.load_model("control:random")
    gaps: dict[str, list[float]] = {}
    moved: dict[str, list[float]] = {}
    for case in cases:
        image = image_vector(model, case["images"][0])
        true, edited = (float(image @ text_vector(model, text)) for text in case["texts"][:2])
        gap = true - edited
        if case["kind"] == "flip":
            gaps.setdefault(case["group"], []).append(gap)
        elif case["kind"] == "paraphrase":
            moved.setdefault(case["group"], []).append(abs(gap))
    estimates = estimates_of(store, manifest, averaging="macro")["value"]
    assert estimates["sensitivity_gap"] == pytest.approx(
        np.mean([np.mean(own) for own in gaps.values()]), abs=1e-6
    )
    assert estimates["invariance_error"] == pytest.approx(
        np.mean([np.mean(own) for own in moved.values()]), abs=1e-6
    )
    rate = np.mean([np.mean([gap > 0 for gap in own]) for own in gaps.values()])
    assert estimates["positive_rate"] == pytest.approx(rate)


def test_a_constant_model_scores_zero_because_every_case_is_a_tie(tiny, store):
    manifest = execute(request(tiny, models=("control:constant",)), store)[0]
    estimates = estimates_of(store, manifest)
    assert estimates.loc["positive_rate", "value"] == 0
    assert estimates.loc["positive_rate", "ties"] == estimates.loc["positive_rate", "n_cases"]
    assert estimates.loc["invariance_error", "value"] == 0
    # all edits are erased, so its invariance error of 0 has no meaning
    assert estimates.loc["erased_share", "value"] == 1
    assert manifest["erased"] == {  # all of them, and each flip or combined edit is a tie
        "paraphrase": estimates.loc["invariance_error", "n_cases"],
        "flip": estimates.loc["positive_rate", "ties"],
        "combined": estimates.loc["combined_positive_rate", "ties"],
    }


def test_repeating_a_finished_run_returns_the_same_results_without_work(tiny, store, monkeypatch):
    first = execute(request(tiny), store)
    monkeypatch.setattr(runs_run, "answer", None)
    assert execute(request(tiny), store) == first


@pytest.mark.parametrize(
    ("step", "is_damaged"),
    tiers([*((step, False) for step in (3, 5, 7, 9, 12)), (12, True)], [(7, False), (12, True)]),
)
def test_a_run_stopped_at_any_step_or_with_a_damaged_part_resumes_to_the_same_bytes(
    tiny, tmp_path, monkeypatch, step: int, is_damaged: bool
):
    monkeypatch.setattr(answers, "PART_CASES", 16)
    whole, broken = Store(tmp_path / "whole"), Store(tmp_path / "broken")
    execute(request(tiny), whole)
    with pytest.raises(KeyboardInterrupt):
        execute(request(tiny), broken, StopAt(step))
    assert stored_bytes(broken) == {}
    if is_damaged:
        part = next(broken.root.rglob("parts/*.parquet"))
        part.write_bytes(part.read_bytes()[:-20])
    execute(request(tiny), broken)
    assert stored_bytes(broken) == stored_bytes(whole)


@pytest.mark.parametrize("first_lacks_it", tiers([True, False], (True,)))
def test_parts_of_a_run_are_joined_if_one_has_an_additional_column(
    tiny, tmp_path, monkeypatch, first_lacks_it: bool
):
    monkeypatch.setattr(answers, "PART_CASES", 16)
    monkeypatch.setattr(answers, "JUDGED_CASES", 1)
    whole, store = Store(tmp_path / "whole"), Store(tmp_path / "store")
    (one,) = execute(request(tiny, models=("control:random",)), whole)
    read, seen = Entry.part, []

    def part(self: Entry, name: str) -> pa.Table | None:
        table = read(self, name)
        if table is not None:
            seen.append(name)
            if (name == seen[0]) != first_lacks_it:
                table = table.add_column(
                    1, "later", pa.array(np.ones(len(table), dtype=np.float32))
                )
        return table

    monkeypatch.setattr(Entry, "part", part)
    execute(request(tiny, models=("control:random",)), store)
    assert len(set(seen)) > 1
    left, right = (each.run(one["key"]).table("scores").to_pandas() for each in (whole, store))
    pd.testing.assert_frame_equal(left, right[list(left.columns)])


@pytest.fixture(scope="module")
def weak(tmp_path_factory) -> tuple[Request, Store, dict]:
    """Run a trained model. Return the request, the store and the manifest."""
    folder = tmp_path_factory.mktemp("weak")
    run_request = request(make_tiny(folder / "tiny"), models=("demo:weak",), examine=False, limit=3)
    store = Store(folder / "cache")
    return run_request, store, execute(run_request, store)[0]


CHANGES = [
    {"batch_size": 1},
    {"workers": 5},
    {"keep_embeddings": False, "memory": 256},
    {"JUDGED_CASES": 1, "PART_CASES": 1},
    {"_pools_at_the_end_of_text": lambda self: False},
]


@pytest.mark.parametrize(
    "change", tiers(CHANGES, CHANGES[1:4]), ids=lambda change: next(iter(change))
)
def test_speed_settings_change_neither_the_key_nor_a_number(weak, tmp_path, monkeypatch, change):
    run_request, store, one = weak
    other_store = Store(tmp_path)
    for owner in (answers, OpenClipEncoder):
        for name in [name for name in change if hasattr(owner, name)]:
            monkeypatch.setattr(owner, name, change.pop(name))
    other = execute(dataclasses.replace(run_request, **change), other_store)[0]
    assert one["key"] == other["key"]
    assert one["spread"] == pytest.approx(other["spread"], abs=1e-6)
    assert one["erased"] == other["erased"] and sum(one["erased"].values())
    for table in ("scores", "estimates", "sums"):
        left, right = (own.run(one["key"]).table(table).to_pandas() for own in (store, other_store))
        pd.testing.assert_frame_equal(left, right, rtol=0, atol=1e-6)


def test_every_part_of_a_run_that_can_change_a_number_changes_its_key():
    run = Run("m", "d1", "data", "d2", "lgip", 1, ("a@1",), {"rules": "strict"}, 42, 0)
    changes = {
        "model_digest": "x",
        "dataset_digest": "x",
        "probe": "x",
        "probe_version": 2,
        "metrics": ("a@2",),
        "options": {"rules": "paper"},
        "seed": 1,
        "limit": 5,
        "selection": {"sample": 5},
    }
    keys = {dataclasses.replace(run, **{name: value}).key for name, value in changes.items()} | {
        run.key
    }
    assert len(keys) == len(changes) + 1
    assert dataclasses.replace(run, model="another name", dataset="another path").key == run.key
    assert dataclasses.replace(run, model_digest="x", metrics=("b@1",)).case_key == run.case_key
    assert dataclasses.replace(run, seed=1).case_key != run.case_key


def test_the_cases_of_an_item_do_not_depend_on_the_others(tiny, store):
    whole = execute(request(tiny), store)[0]
    part = execute(request(tiny, limit=2), store)[0]
    cases = [store.cases(m["case_key"]).table("cases").to_pandas() for m in (whole, part)]
    columns = ["id", "rule", "target"]
    texts = [pd.concat([c[columns], c["texts"].map(tuple)], axis=1) for c in cases]
    pd.testing.assert_frame_equal(texts[0].iloc[: len(texts[1])], texts[1])


def test_finished_runs_remain_when_a_later_model_fails(tiny, store):
    class Broken(ControlEncoder):
        def encode_texts(self, tokens):
            raise InvalidInput("it broke")

    broken = Broken("constant")
    with pytest.raises(InvalidInput, match="it broke"):
        both = request(tiny, models=("control:random", broken.name))
        execute(both, store, models={broken.name: broken})
    assert [manifest["run"]["model"] for manifest in store.runs()] == ["control:random"]


def test_a_damaged_picture_is_named_and_finished_parts_remain(tiny, store, monkeypatch):
    monkeypatch.setattr(answers, "PART_CASES", 16)
    monkeypatch.setattr(answers, "SPREAD_ITEMS", 1)
    path = Path(tiny.removeprefix("csv:")).parent / "5.png"
    data = path.read_bytes()
    path.write_bytes(data[:-40])
    with pytest.raises(InvalidInput, match=r"5\.png' is damaged"):
        execute(request(tiny), store)
    assert list(store.root.rglob("parts/*.parquet"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"options": {"rulez": "paper"}},
            "Probe 'lgip' has no option 'rulez'. Available options: rules",
        ),
        ({"options": {"rules": "papier"}}, "'papier'"),
        ({"probe": "lgib"}, "Did you mean 'lgip'"),
        ({"dataset": "demoo"}, "Did you mean 'demo'"),
        ({"batch_size": 0}, "'batch_size' is '0'. Expected a whole number from 1 to"),
        ({"limit": -1}, "'limit' is '-1'. Expected a whole number, 0 or more"),
        ({"memory": 9}, "'memory' is '9'. Expected a whole number, 256 or more"),
        (
            {"options": {"kinds": []}},
            "'kinds' has no value. Expected one of: paraphrase, flip, combined",
        ),
        ({"precision": "fp8"}, "'precision' is 'fp8'. Expected one of: fp32, fp16, bf16"),
        ({"device": "gpu"}, "'device' is 'gpu'. Expected auto, cpu, cuda, cuda:N or mps"),
        ({"executor": "slurm"}, "'executor' is 'slurm'. Expected one of: local, ray"),
        (
            {"probe": "rococo", "options": {"policies": ["delete:low-ei"]}},
            "'delete:low-ei' needs EI scores. Use the option 'influence' to choose the encoders that vote",
        ),
        ({"probe": "rococo", "options": {"picture_seeds": []}}, "Altered pictures need a seed"),
    ],
)
def test_an_invalid_request_is_refused_in_one_line(tiny, store, changes, message):
    with pytest.raises((InvalidInput, NotFound)) as caught:
        execute(request(tiny, **changes), store)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_edits_written_by_perturb_and_read_back_give_the_same_numbers(tiny, store, tmp_path):
    file = tmp_path / "edits.jsonl"
    call(store.root, "perturb", tiny, "--output", str(file))
    made = execute(request(tiny), store)[0]
    read = execute(request(tiny, options={"edits": str(file)}), store)[0]
    assert made["key"] != read["key"]
    one, other = (estimates_of(store, manifest)["value"] for manifest in (made, read))
    for metric in ("invariance_error", "sensitivity_gap", "positive_rate", "combined_gap"):
        assert one[metric] == pytest.approx(other[metric], abs=1e-9)


def test_edits_of_other_captions_are_refused(tiny, store, tmp_path):
    file = tmp_path / "edits.jsonl"
    file.write_text('{"image_path": "0.png", "orig_captions": ["Another caption."]}\n')
    with pytest.raises(InvalidInput, match="no line for the picture and captions of item"):
        execute(request(tiny, options={"edits": str(file)}), store)
    with pytest.raises(InvalidInput, match="cannot be read"):
        execute(request(tiny, options={"edits": str(tmp_path / "none")}), store)


def test_a_failed_model_check_is_shown_with_the_runs_of_the_model(tiny, store):
    execute(request(tiny, models=MODELS), store)
    notes = views.runs.runs(store).set_index("model")["note"]
    assert "Check 'matched_auc' failed" in notes["control:constant"]
    unexamined = Store(store.root.parent / "other")
    execute(request(tiny, models=MODELS[1:], examine=False), unexamined)
    assert "Check" not in views.runs.runs(unexamined)["note"].iloc[0]


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("k_same", "x", "Option 'k_same' is 'x'. Expected a whole number"),
        ("k_same", "-1", "Expected a whole number"),
        ("k_same", "²", "Expected a whole number"),
        ("kinds", "flop", "'flop'"),
        ("rules", 1, "'1'"),
    ],
)
def test_an_option_of_the_wrong_type_is_refused_with_its_name(tiny, store, option, value, message):
    with pytest.raises((InvalidInput, NotFound)) as caught:
        execute(request(tiny, options={option: value}), store)
    assert message in str(caught.value)


def test_options_given_as_text_and_as_values_give_the_same_key(tiny, store):
    typed = execute(request(tiny, options={"k_same": "2", "kinds": "flip"}), store)[0]
    given = execute(request(tiny, options={"k_same": 2, "kinds": ["flip"]}), store)[0]
    assert typed["key"] == given["key"]


@pytest.mark.parametrize(
    "models", [MODELS[1:], MODELS[:1]], ids=["another model", "a finished run"]
)
def test_a_moved_dataset_has_the_same_key_and_its_pictures_are_found(tiny, store, models):
    folder = Path(tiny.removeprefix("csv:")).parent
    first = execute(request(tiny, models=MODELS[:1]), store)[0]
    moved = folder.rename(folder.with_name("moved"))
    other = execute(request(f"csv:{moved / 'captions.csv'}", models=models), store)[0]
    assert other["case_key"] == first["case_key"]
    cases = store.cases(first["case_key"]).table("cases").to_pandas()
    assert all(str(moved) in row[0] for row in cases["images"])


def test_a_model_is_checked_by_a_later_run_if_the_first_skipped_the_checks(tiny, store):
    execute(request(tiny, examine=False), store)
    assert not list(store.root.glob("models/*.json"))
    execute(request(tiny), store)
    assert list(store.root.glob("models/*.json"))


def test_two_threads_with_the_same_request_make_one_run(tiny, store, monkeypatch):
    from concurrent.futures import ThreadPoolExecutor

    monkeypatch.setattr(answers, "PART_CASES", 16)
    with ThreadPoolExecutor(2) as pool:
        manifests = list(pool.map(lambda _: execute(request(tiny, examine=False), store), range(2)))
    assert manifests[0] == manifests[1]
    assert len(store.runs()) == 1


def test_parts_end_at_items_and_have_the_minimum_size_except_the_first_and_last(tiny, store):
    manifest = execute(request(tiny, examine=False), store)[0]
    entry = store.cases(manifest["case_key"])
    items = entry.table("cases")["item_code"].to_pylist()
    for size in (1, 7, 30, 10_000):
        parts = questions.part_ranges(entry, size)
        assert parts[0][0] == 0 and parts[-1][1] == len(items)
        assert all(one[1] == other[0] for one, other in itertools.pairwise(parts))
        assert all(last - first >= size for first, last in parts[1:-1])
        tenth = max(len(items) // 10, questions.FIRST_PART_CASES)
        assert len(parts) == 1 or parts[0][1] >= min(size, tenth)
        assert all(items[last - 1] != items[last] for _, last in parts[:-1])


def pictured(folder: Path, captions: dict[str, str], color: str = "red") -> str:
    """Create a dataset with a single-color picture for each caption, and return its name."""
    for name in captions:
        Image.new("RGB", (8, 8), color).save(folder / name)
    (folder / "captions.json").write_text(
        json.dumps({name: [caption] for name, caption in captions.items()})
    )
    return f"folder:{folder}"


def test_with_a_limit_only_defects_of_the_selected_items_are_reported(tmp_path, store):
    run_request = request(
        pictured(tmp_path, {"a.png": "A red dog.", "b.png": "A red cat."}), examine=False
    )
    (whole,) = execute(run_request, store)[0]["findings"]
    assert (whole["name"], whole["count"], whole["of"]) == ("shared_image", 2, 2)
    assert execute(dataclasses.replace(run_request, limit=1), store)[0]["findings"] == []


def test_a_run_notes_the_number_of_captions_that_are_not_in_english(tmp_path, store):
    captions = {
        "a.png": "A red dog sits on the grass.",
        "b.png": "Egy piros kutya ül a zöld füvön a ház előtt.",
    }
    run_request = request(pictured(tmp_path, captions), examine=False)
    manifest = execute(run_request, store)[0]
    (note,) = manifest["notes"]
    assert manifest["dropped"]["not in English"] == 1
    assert note.startswith("1 of 2 captions are not in English (in b.png).")
    assert execute(dataclasses.replace(run_request, limit=1), store)[0]["notes"] == []
