"""Imported scores as a model: cards, metrics and tests use the scores of the file."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.conftest import make_tiny
from tests.datasets.test_pairs import eqben, valse
from vlprobe import registry
from vlprobe.datasets import audit
from vlprobe.errors import InvalidInput
from vlprobe.models import scores
from vlprobe.models.doctor import examine
from vlprobe.runs.playground import Player
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.store import Store

PAIRS = {  # key -> [caption][picture]: all correct; text score only; a tie
    "0": [[0.9, 0.2], [0.1, 0.8]],
    "1": [[0.5, 0.6], [0.4, 0.7]],
    "2": [[0.5, 0.3], [0.5, 0.6]],
}


def dataset(folder: Path, n: int = 3) -> str:
    """Write a dataset of pairs without their pictures, and return its name."""
    rows = [
        eqben(f"p{number}/", caption0=f"one {number}", caption1=f"two {number}")
        for number in range(n)
    ]
    (folder / "pairs.json").write_text(json.dumps(rows))
    return f"pairs:{folder / 'pairs.json'}+unpictured"


def labelled(prefix: str = "", pairs: dict = PAIRS) -> list[dict]:
    return [
        {"label": f"{prefix}{key}_c{caption}_i{image}", "score": score}
        for key, rows in pairs.items()
        for caption, row in enumerate(rows)
        for image, score in enumerate(row)
    ]


def json_lines(file: Path, rows: list[dict]) -> str:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return f"scores:{file}"


def table(file: Path, rows: list[dict]) -> str:
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    file.write_text("\n".join(lines) + "\n")
    return f"scores:{file}"


def parquet(file: Path, rows: list[dict]) -> str:
    pq.write_table(pa.Table.from_pylist(rows), file)
    return f"scores:{file}"


def parts(rows: list[dict]) -> list[dict]:
    return [
        {
            "case": row["label"][:-6],
            "caption": int(row["label"][-4]),
            "image": int(row["label"][-1]),
            "score": row["score"],
        }
        for row in rows
    ]


def wide(prefix: str = "") -> list[dict]:
    return [
        {
            "id": f"{prefix}{key}",
            **{f"c{c}_i{i}": row[i] for c, row in enumerate(rows) for i in (0, 1)},
        }
        for key, rows in PAIRS.items()
    ]


def renamed(rows: list[dict], **names: str) -> list[dict]:
    return [{names.get(name, name): value for name, value in row.items()} for row in rows]


def array(file: Path, values: object, **beside: object) -> str:
    if file.suffix == ".npy":
        np.save(file, values)
    else:
        np.savez_compressed(file, scores=values, **beside)
    return f"scores:{file}"


CUBE = np.array(list(PAIRS.values()))
FORMS = {
    "labels in JSON lines": lambda f: json_lines(f / "s.jsonl", labelled()),
    "whole ids": lambda f: json_lines(f / "s.jsonl", labelled("pairs/")),
    "any order": lambda f: json_lines(f / "s.jsonl", labelled()[::-1]),
    "labels in a table": lambda f: table(f / "s.csv", labelled()),
    "labels in Parquet": lambda f: parquet(f / "s.parquet", labelled()),
    "case, caption and image": lambda f: table(f / "s.csv", parts(labelled())),
    "the same in Parquet": lambda f: parquet(f / "s.parquet", parts(labelled())),
    "a row a case": lambda f: table(f / "s.csv", wide()),
    "a row a case in Parquet": lambda f: parquet(f / "s.parquet", wide("pairs/")),
    "names in capitals": lambda f: table(
        f / "s.csv", renamed(labelled(), label="Label", score="SCORE")
    ),
    "mapped columns": lambda f: (
        parquet(f / "s.parquet", renamed(labelled(), label="what", score="Sim"))
        + "+key=what+score=sim"
    ),
    "mapped cells": lambda f: (
        table(f / "s.csv", renamed(wide(), id="nr", c1_i0="x", c0_i1="y"))
        + "+key=nr+c1_i0=x+c0_i1=y"
    ),
    "an array": lambda f: array(f / "s.npy", CUBE),
    "an array of Fortran": lambda f: array(f / "s.npy", np.asfortranarray(CUBE.astype(np.float32))),
    "an archive": lambda f: array(f / "s.npz", CUBE),
    "an archive with ids": lambda f: array(f / "s.npz", CUBE[::-1], ids=np.array(["2", "1", "0"])),
    "an archive with numbers for ids": lambda f: array(
        f / "s.npz", CUBE[[1, 0, 2]], ids=np.array([1, 0, 2])
    ),
    "a name with a plus sign": lambda f: json_lines(f / "a+b.jsonl", labelled()) + "+probability",
}


def answered(name: str, data: str, store: Store, probe: str = "eqben") -> dict:
    return execute(Request((name,), data, probe), store)[0]


def values(store: Store, manifest: dict) -> dict[str, float]:
    rows = store.run(manifest["key"]).table("estimates").to_pylist()
    return {
        row["metric"]: np.nan if row["value"] is None else row["value"]
        for row in rows
        if row["by"] == "all"
    }


@pytest.mark.parametrize("form", FORMS)
def test_scores_in_every_file_format_become_the_scores_of_the_cases(form, tmp_path, store):
    manifest = execute(
        Request((FORMS[form](tmp_path),), dataset(tmp_path), "eqben", examine=False), store
    )[0]
    rows = store.run(manifest["key"]).table("scores").to_pylist()
    expected = [np.float32(np.array(PAIRS[key])).T.ravel().tolist() for key in PAIRS]
    assert [row["scores"] for row in rows] == expected
    margins = [
        min(a - b, d - c, a - c, d - b) for (a, b), (c, d) in map(np.transpose, PAIRS.values())
    ]
    np.testing.assert_allclose([row["margin"] for row in rows], margins, atol=1e-6)
    metrics = values(store, manifest)
    assert metrics["text_score"] == pytest.approx(2 / 3)
    assert metrics["image_score"] == pytest.approx(2 / 3)
    assert metrics["group_score"] == pytest.approx(1 / 3)


def test_acceptance_of_foils_is_measured_only_for_probabilities(tmp_path, store):
    rows = {f"k{number}": valse() for number in range(4)}
    (tmp_path / "v.json").write_text(json.dumps(rows))
    made = [
        {"file": "v", "key": f"k{number}", "caption_score": caption, "foil_score": foil}
        for number, (caption, foil) in enumerate([(0.9, 0.2), (0.6, 0.7), (0.4, 0.3), (0.8, 0.8)])
    ]
    name, data = table(tmp_path / "valse.csv", made), f"pairs:{tmp_path / 'v.json'}+unpictured"
    manifests = execute(Request((f"{name}+probability", name), data, "eqben"), store)
    known, unknown = (values(store, manifest) for manifest in manifests)
    assert known["foil_accuracy"] == unknown["foil_accuracy"] == 0.5
    assert (known["caption_accepted"], known["foil_rejected"]) == (0.75, 0.5)
    assert np.isnan([unknown["caption_accepted"], unknown["foil_rejected"]]).all()
    assert [manifest["score_type"] for manifest in manifests] == ["probability", "unknown"]
    assert "the scale is not named" in manifests[1]["note"]
    assert "the scale" not in manifests[0]["note"]
    assert all(manifest["spread"] != manifest["spread"] for manifest in manifests)


def test_metrics_in_cosines_are_unknown_if_the_scale_is_unknown(tmp_path, store):
    name = json_lines(tmp_path / "s.jsonl", labelled())
    manifests = execute(Request((name, f"{name}+cosine"), dataset(tmp_path), "eqben"), store)
    unknown, known = (values(store, manifest) for manifest in manifests)
    assert np.isnan(unknown["equivariance_deviation"])
    expected = [
        abs((a - b) - (d - c)) + abs((a - c) - (d - b))
        for (a, b), (c, d) in map(np.transpose, PAIRS.values())
    ]
    assert known["equivariance_deviation"] == pytest.approx(np.mean(expected), abs=1e-6)
    assert unknown["text_score"] == known["text_score"]


def test_missing_scores_are_counted_and_refused_or_unknown_with_an_option(tmp_path, store):
    rows = labelled()
    for row in rows[9:11]:
        row["score"] = None
    name, data = json_lines(tmp_path / "s.jsonl", rows[:-1]), dataset(tmp_path)
    with pytest.raises(
        InvalidInput, match=r"lacks 3 of 12 required scores .*first: pairs/2_c0_i1\).*\+partial"
    ):
        answered(name, data, store)
    assert not store.runs()
    manifest = answered(f"{name}+partial", data, store)
    assert "3 of 12 scores are missing" in manifest["note"]
    answers = store.run(manifest["key"]).table("scores").to_pylist()
    assert [bool(np.isnan(row["margin"])) for row in answers] == [False, False, True]
    assert values(store, manifest)["text_score"] == 1.0  # over the two pairs with scores


def test_unused_rows_of_a_score_file_are_counted(tmp_path, store):
    name = json_lines(tmp_path / "s.jsonl", labelled())
    manifest = answered(name, dataset(tmp_path, 2), store)
    assert "1 of 3 cases in the file are not among the questions" in manifest["note"]
    assert scores.load(name).facts()["scores"].startswith("12 scores of 3 cases by name, ")


def test_a_row_that_matches_two_cases_is_refused(tmp_path, store):
    folder = tmp_path / "both"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / f"{name}.json").write_text(json.dumps([eqben(f"{name}/")]))
    data = f"pairs:{folder}@{folder}+unpictured"
    name = json_lines(tmp_path / "s.jsonl", labelled(pairs={"0": PAIRS["0"]}))
    with pytest.raises(InvalidInput, match="one row that matches both 'a/0' and 'b/0'"):
        answered(name, data, store)
    both = labelled("a/", {"0": PAIRS["0"]}) + labelled("b/", {"0": PAIRS["1"]})
    manifest = answered(json_lines(tmp_path / "s.jsonl", both), data, store)
    assert values(store, manifest)["group_score"] == 0.5


def test_scores_that_differ_only_in_float64_are_reported_as_ties(tmp_path, store):
    name = json_lines(tmp_path / "s.jsonl", labelled(pairs={"0": [[0.5, 0.1], [0.5 - 1e-12, 0.6]]}))
    manifest = answered(name, dataset(tmp_path, 1), store)
    assert "1 cases have scores that differ only beyond seven digits" in manifest["note"]
    assert values(store, manifest)["text_score"] == 0


def test_a_score_file_without_any_matching_case_is_refused_even_with_partial(tmp_path, store):
    name = json_lines(tmp_path / "s.jsonl", labelled("elsewhere/x"))
    with pytest.raises(InvalidInput, match=r"none of the scores .*'elsewhere/x0'.*'pairs/0'"):
        answered(f"{name}+partial", dataset(tmp_path), store)


@pytest.mark.parametrize("probe", ["rococo", "prsm"])
def test_the_error_for_scores_in_a_gallery_states_the_required_scores(probe, tmp_path, store):
    name = json_lines(tmp_path / "s.jsonl", labelled())
    with pytest.raises(InvalidInput, match="a score for every picture with every caption"):
        answered(name, make_tiny(tmp_path / "data"), store, probe)


def test_scores_are_refused_if_all_cases_compare_only_texts(tmp_path, store):
    rows = [
        {"id": 0, "filename": "0.png", "caption": "a", "caption2": "b", "negative_caption": "not"}
    ]
    (tmp_path / "swap.json").write_text(json.dumps(rows))
    name = json_lines(tmp_path / "s.jsonl", labelled())
    with pytest.raises(InvalidInput, match="All cases compare only texts"):
        answered(name, f"triplets:{tmp_path / 'swap.json'}", store, "visla")


def test_scores_can_be_matched_by_case_id_in_any_probe(tmp_path, store):
    data = make_tiny(tmp_path / "data")
    loaded = registry.load_dataset(data, store.root)
    probe = registry.load_probe("lgip")
    cases = [case for item in loaded.items for case in probe.cases(item, probe.defaults, 42)[0]]
    rng = np.random.default_rng(0)
    made = {case.id: rng.random(len(case.texts)) for case in cases}
    rows = [
        {"label": f"{key}_c{place}_i0", "score": float(score)}
        for key, numbers in made.items()
        for place, score in enumerate(numbers)
    ]
    manifest = answered(
        json_lines(tmp_path / "s.jsonl", rows) + "+probability", data, store, "lgip"
    )
    answers = store.run(manifest["key"]).table("scores").to_pylist()
    assert [row["scores"] for row in answers] == [
        np.float32(numbers).tolist() for numbers in made.values()
    ]


def test_a_picture_model_is_refused_if_the_pictures_are_not_available(tmp_path, store):
    with pytest.raises(InvalidInput, match=r"3 of 3 items have no picture here, .*\+available"):
        answered("control:random", dataset(tmp_path), store)


def test_the_digest_depends_on_the_bytes_and_the_options(tmp_path):
    first = json_lines(tmp_path / "a.jsonl", labelled())
    again = json_lines(tmp_path / "b.jsonl", labelled())
    other = json_lines(tmp_path / "c.jsonl", labelled()[:-1])
    names = [first, other, f"{first}+cosine", f"{first}+probability", f"{first}+score=score"]
    digests = [scores.load(name).digest for name in names]
    assert len(set(digests)) == len(names)
    assert scores.load(again).digest == digests[0]


def test_doctor_reports_the_checks_that_do_not_apply_to_a_score_file(tmp_path, store):
    model = scores.load(json_lines(tmp_path / "s.jsonl", labelled()))
    loaded = registry.load_dataset(dataset(tmp_path), store.root)
    examination = examine.examine(model, loaded, store.root)
    outcomes = {check.name: check.passed for check in examination.checks}
    assert outcomes.pop("finite") is True
    assert outcomes and set(outcomes.values()) == {None}
    details = {check.detail for check in examination.checks if check.name != "finite"}
    assert details == {"Not judged: scores from a file cannot be computed again."}
    assert examination.passport["embedding"] == "none: scores from a file"
    assert examination.passport["score"] == "unknown"
    assert str(examine.load(store, model.digest)[0].checks) == str(examination.checks)


def test_new_texts_are_refused_in_one_line(tmp_path):
    model = scores.load(json_lines(tmp_path / "s.jsonl", labelled()))
    with pytest.raises(InvalidInput, match="cannot score new words"):
        Player(model)
    with pytest.raises(InvalidInput, match="to score other texts"):
        model.tokenize(["a dog"])


MODELS = ("albef_14m", "blip_129m", "blip2_itm_pretrain", "x-vlm_16m")
WINOGROUND = ((32.75, 16.5, 12.5), (35.5, 15, 11.75), (43, 22, 18.25), (46.75, 24.5, 21.25))
VALSE = ((69.44, 62.49, 47.38), (68.81, 68.58, 38.22), (74.05, 51.14, 62.63), (74.5, 69.2, 51.26))


def test_the_error_for_a_file_of_ranks_shows_the_alternative(tmp_path):
    rows = [{"image": n, "rank_i2t": 3 * n, "rank_t2i": n} for n in range(3)]
    for name in (table(tmp_path / "ranks.csv", rows), json_lines(tmp_path / "ranks.jsonl", rows)):
        with pytest.raises(
            InvalidInput, match=r"margins cannot be computed from ranks.* scores:FILE\.npy\+matrix"
        ):
            registry.load_model(name, "cpu")


def published(store: Store, data: str, names: list[str]) -> list[dict[str, float]]:
    manifests = execute(Request(tuple(names), data, "eqben", examine=False), store)
    return [values(store, manifest) | {"n": manifest["n_cases"]} for manifest in manifests]


@pytest.mark.full  # real data, seconds
def test_winoground_scores_of_four_models_give_the_published_numbers(shared_data, tmp_path, store):
    rows = [
        {
            "id": number,
            **{f"image_{side}": f"ex_{number}_img_{side}" for side in (0, 1)},
            **{f"caption_{side}": f"{number}, caption {side}" for side in (0, 1)},
        }
        for number in range(400)
    ]
    json_lines(tmp_path / "winoground.jsonl", rows)
    names = [f"scores:{shared_data}/scores/winoground_{model}.jsonl" for model in MODELS]
    model_metrics = published(store, f"pairs:{tmp_path}/winoground.jsonl+unpictured", names)
    metrics = ("text_score", "image_score", "group_score")
    assert [tuple(round(100 * one[name], 2) for name in metrics) for one in model_metrics] == list(
        WINOGROUND
    )


@pytest.mark.full  # tests/test_published_results.py checks the published numbers on the bundled answers
def test_valse_scores_of_four_models_give_the_published_numbers(shared_data, store, monkeypatch):
    # Skips three seconds of unrelated checks
    monkeypatch.setattr(audit, "check", lambda items, cache: [])
    data = f"pairs:{shared_data}/valse@{shared_data}/coco_real/val2017+unpictured"
    names = [f"scores:{shared_data}/scores/valse_{model}.csv+probability" for model in MODELS]
    model_metrics = published(store, data, names)
    metrics = ("foil_accuracy", "caption_accepted", "foil_rejected")
    assert [tuple(round(100 * one[name], 2) for name in metrics) for one in model_metrics] == list(
        VALSE
    )
    assert {one["n"] for one in model_metrics} == {7702}
    notes = store.run(store.runs()[0]["key"]).manifest()["notes"]
    assert notes[0].startswith("86 of 7,702 have a picture here")
