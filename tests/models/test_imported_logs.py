"""Logs of other tools as models: a run on the same questions gives the accuracy in the log."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.conftest import call, make_foils
from tests.models.test_answer_logs import archive, sample, spreadsheet
from vlprobe import views
from vlprobe.errors import InvalidInput
from vlprobe.models.score_file import parse
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.store import Store

RIGHT = [True, True, False, True, False, True]  # whether the answer to each question is correct


@pytest.fixture
def dataset(tmp_path: Path) -> str:
    return make_foils(tmp_path, "add_att", len(RIGHT), end=".")


def letters() -> list[tuple[str, str]]:
    """Return the letters of the true caption and of the chosen one for each question; A is the wrong caption."""
    return [("B", "B" if right else "A") for right in RIGHT]


def log_of_vlmevalkit(folder: Path) -> Path:
    rows = [["index", "A", "B", "answer", "prediction", "image_path"]]
    rows += [
        [k, f"{k} cats.", f"{k} dogs.", true, f"({chosen})", f"photos/{k}.png"]
        for k, (true, chosen) in enumerate(letters())
    ]
    path = folder / "vlmevalkit.xlsx"
    path.write_bytes(spreadsheet(rows))
    return path


def log_of_lmms_eval(folder: Path) -> Path:
    path = folder / "x_samples_add_att.jsonl"
    lines = [
        {
            "doc_id": k,
            "doc": {"options": [f"{k} cats.", f"{k} dogs."]},
            "target": true,
            "filtered_resps": [chosen],
        }
        for k, (true, chosen) in enumerate(letters())
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def log_of_inspect(folder: Path) -> Path:
    path = folder / "log.eval"
    samples = [
        sample(
            id=k,
            choices=[f"{k} cats.", f"{k} dogs."],
            target=true,
            scores={"choice": {"value": "C", "answer": chosen}},
            metadata={"filename": f"{k}.png"},
        )
        for k, (true, chosen) in enumerate(letters())
    ]
    path.write_bytes(archive(samples))
    return path


def log_of_sugarcrepe(folder: Path) -> Path:
    path = folder / "gpt4v.json"
    rows = {
        str(k): {
            "caption": f"{k} dogs.",
            "negative_caption": f"{k} cats.",
            "filename": f"{k}.png",
            "correct": right,
            "answer": {"multiple_choice_answer": f"{k} dogs." if right else f"{k} cats."},
        }
        for k, right in enumerate(RIGHT)
    }
    path.write_text(json.dumps(rows))
    return path


LOGS = [log_of_vlmevalkit, log_of_lmms_eval, log_of_inspect, log_of_sugarcrepe]


def accuracy(name: str, dataset: str, cache: Path) -> tuple[float, int, int]:
    """Return the pair accuracy of a run, its number of cases and its number of ties."""
    store = Store(cache)
    (manifest,) = execute(Request((name,), dataset, "visla"), store)
    table = views.estimates.estimates(views.runs.question_set(store, manifest["case_key"]))
    row = table.set_index("metric").loc["pair_accuracy"]
    return float(row["value"]), int(row["n_cases"]), int(row["ties"])


@pytest.mark.parametrize("log", LOGS)
def test_a_run_gives_the_accuracy_in_the_log(
    tmp_path: Path, dataset: str, log: Callable[[Path], Path]
):
    estimate = accuracy(f"scores:{log(tmp_path)}+verdict", dataset, tmp_path / "cache")
    assert estimate == (np.mean(RIGHT), len(RIGHT), 0)


def test_an_unparsable_reply_is_counted_and_excluded(tmp_path: Path, dataset: str):
    path = log_of_lmms_eval(tmp_path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[0]["filtered_resps"] = ["I cannot say"]
    path.write_text("\n".join(map(json.dumps, lines)))
    value, _, _ = accuracy(f"scores:{path}+verdict", dataset, tmp_path / "cache")
    assert value == pytest.approx(np.mean(RIGHT[1:]))
    note = views.runs.run_rows(Store(tmp_path / "cache"))[0].note
    said = "1 of 6 replies name no caption, or several, and are unknown (first: 'I cannot say')"
    assert said in note


def test_a_log_of_other_questions_is_refused_in_one_line(tmp_path: Path, dataset: str):
    path = log_of_lmms_eval(tmp_path)
    path.write_text(path.read_text().replace("dogs", "birds"))
    with pytest.raises(InvalidInput, match=r"answers none of these questions: .* '0 birds"):
        accuracy(f"scores:{path}+verdict", dataset, tmp_path / "cache")


def test_a_log_requires_the_option_verdict(tmp_path: Path, dataset: str):
    with pytest.raises(InvalidInput, match=r"\+verdict"):
        accuracy(f"scores:{log_of_inspect(tmp_path)}", dataset, tmp_path / "cache")


def test_mteb_predictions_are_matched_by_subset_and_number(tmp_path: Path, dataset: str):
    matrices = [[[0.3, 0.2 if right else 0.4]] for right in RIGHT]
    log = {
        "mteb_model_meta": {"model_name": "m"},
        "add_att": {"test": matrices},
        "swap_obj": {"test": [[[0, 1]]]},
    }
    path = tmp_path / "SugarCrepe_predictions.json"
    path.write_text(json.dumps(log))
    estimate = accuracy(f"scores:{path}+cosine", dataset, tmp_path / "cache")
    assert estimate == (np.mean(RIGHT), len(RIGHT), 0)


@pytest.mark.parametrize("layout", ["by_place", "objects"])
def test_a_json_array_of_scores_is_read(tmp_path: Path, dataset: str, layout: str):
    pairs = [(0.3, 0.2 if right else 0.4) for right in RIGHT]
    rows = [
        {"case": f"add_att/{k}", "c0_i0": true, "c1_i0": wrong}
        for k, (true, wrong) in enumerate(pairs)
    ]
    path = tmp_path / "scores.json"
    path.write_text(json.dumps(pairs if layout == "by_place" else rows))
    assert accuracy(f"scores:{path}", dataset, tmp_path / "cache")[0] == np.mean(RIGHT)


@pytest.mark.parametrize(
    "content", ["[0.1, 0.2]", "[[0.1], [0.2]]", '[[0.1, "x"]]', "[[0.1, NaN]]", "{}", "3", "[]"]
)
def test_a_json_file_of_an_unknown_layout_is_refused_in_one_line(
    tmp_path: Path, dataset: str, content: str
):
    path = tmp_path / "scores.json"
    path.write_text(content)
    with pytest.raises(InvalidInput, match=r"scores\.json"):
        accuracy(f"scores:{path}", dataset, tmp_path / "cache")


def test_scores_of_text_pairs_give_text_accuracy_of_triplets_and_crossed_answers(tmp_path: Path):
    rows = {
        str(k): {
            "filename": f"{k}.png",
            "caption": f"{k} dogs",
            "caption2": f"dogs {k}",
            "negative_caption": f"{k} cats",
        }
        for k in range(4)
    }
    (tmp_path / "photos").mkdir()
    for k in range(4):
        Image.new("RGB", (8, 8), (40 * k, 0, 0)).save(tmp_path / f"photos/{k}.png")
    (tmp_path / "swap.json").write_text(json.dumps(rows))
    dataset = f"triplets:{tmp_path}/swap.json@{tmp_path}/photos"
    t2t = [
        (0.9, 0.1, 0.2),
        (0.1, 0.9, 0.2),
        (0.5, 0.5, 0.1),
        (0.9, 0.3, 0.4),
    ]  # correct, wrong, tied, correct
    i2t = [(0.9, 0.8, 0.1), (0.9, 0.8, 0.1), (0.1, 0.8, 0.9), (0.9, 0.8, 0.1)]
    lines = ["case,c0_i0,c1_i0,c2_i0,t0_t1,t0_t2,t1_t2"]
    for k in range(4):
        lines.append(f"swap/{k}/t2t,,,,{t2t[k][0]},{t2t[k][1]},{t2t[k][2]}")
        lines.append(f"swap/{k}/i2t,{i2t[k][0]},{i2t[k][1]},{i2t[k][2]},,,")
    (tmp_path / "scores.csv").write_text("\n".join(lines))
    store = Store(tmp_path / "cache")
    (manifest,) = execute(
        Request((f"scores:{tmp_path}/scores.csv+cosine",), dataset, "visla"), store
    )
    question_set = views.runs.question_set(store, manifest["case_key"])
    table = views.estimates.estimates(question_set).set_index("metric")
    assert (table.loc["t2t_accuracy", "value"], table.loc["t2t_accuracy", "ties"]) == (0.5, 1)
    assert table.loc["i2t_accuracy", "value"] == 0.75
    # Every line of the file is used
    assert "not among the questions" not in question_set.runs[0].note
    shown = call(store.root, "show", manifest["key"], "--by", "crossed", "--format", "json")
    assert json.loads(shown.stdout)


@pytest.mark.parametrize("value", ["inf", "high", "1e400"])
def test_a_text_pair_score_that_is_not_a_finite_number_is_refused_in_one_line(
    tmp_path: Path, value: str
):
    path = tmp_path / "text_pairs.csv"
    path.write_text(f"case,t0_t1,t0_t2,t1_t2\nswap/0/t2t,0.1,{value},0.3\n")
    with pytest.raises(InvalidInput, match=r"text_pairs\.csv") as failure:
        parse(path, path.read_bytes(), {})
    assert "\n" not in str(failure.value)


def test_scores_of_a_second_picture_that_a_log_lacks_are_reported_missing(tmp_path: Path):
    (tmp_path / "photos").mkdir()
    for name in "ab":
        Image.new("RGB", (8, 8), "red" if name == "a" else "blue").save(
            tmp_path / f"photos/{name}.png"
        )
    texts = {"caption_0": "a dog sees a cat", "caption_1": "a cat sees a dog"}
    pair = {"image_0": "a", "image_1": "b", **texts}
    (tmp_path / "winoground.jsonl").write_text(json.dumps({"id": 0, **pair}))
    options = list(texts.values())
    line = {"doc_id": 0, "doc": {"options": options}, "target": "A", "filtered_resps": ["A"]}
    (tmp_path / "x_samples_pairs.jsonl").write_text(json.dumps(line))
    dataset = f"pairs:{tmp_path}/winoground.jsonl@{tmp_path}/photos"
    model = f"scores:{tmp_path}/x_samples_pairs.jsonl+verdict"
    with pytest.raises(InvalidInput, match="lacks 2 of 4 required scores"):
        execute(Request((model,), dataset, "eqben"), Store(tmp_path / "cache"))
