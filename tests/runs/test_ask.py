"""Questions written to files: each distinct picture and text once, and all fields of the cases."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.conftest import call, make_tiny
from tests.datasets.test_pairs import eqben
from tests.models import answered
from tests.models.answered import rows
from vlprobe import registry
from vlprobe.errors import InvalidInput
from vlprobe.runs.ask import ask
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.scoring import pictures
from vlprobe.scoring.inputs import text_id
from vlprobe.types import Picture

HOSTILE = '</script><img onerror="x">\u202e "quoted"\ttab'


def test_the_written_cases_are_those_of_a_run_in_both_formats(tiny, tmp_path, store):
    facts = ask(Request((), tiny, "lgip"), tmp_path / "out", store)
    manifest = execute(Request(("control:constant",), tiny, "lgip", examine=False), store)[0]
    assert facts["case_key"] == manifest["case_key"]
    stored = store.cases(manifest["case_key"]).table("cases").to_pylist()
    written = rows(tmp_path / "out" / "cases.jsonl")
    text_of = {row["id"]: row["text"] for row in rows(tmp_path / "out" / "texts.jsonl")}
    assert [row["id"] for row in written] == [row["id"] for row in stored]
    assert [[text_of[key] for key in row["texts"]] for row in written] == [
        row["texts"] for row in stored
    ]
    assert facts["n_pairs"] == sum(len(row["texts"]) * len(row["images"]) for row in stored)
    for name in ("pictures", "texts", "cases"):
        table = pq.read_table(tmp_path / "out" / f"{name}.parquet").to_pylist()
        assert table == rows(tmp_path / "out" / f"{name}.jsonl")
        assert len({row["id"] for row in table}) == len(table) == facts[f"n_{name}"]
    assert all(key == text_id(text) for key, text in text_of.items())


def test_mixed_pictures_are_written_with_the_pixels_that_a_model_gets(tiny, tmp_path, store):
    options = {"policies": [], "pictures": ["patch:0.8"], "picture_seeds": [1]}
    facts = ask(Request((), tiny, "rococo", options), tmp_path / "out", store)
    shown = rows(tmp_path / "out" / "pictures.jsonl")
    edited = [row for row in shown if not Path(row["file"]).is_absolute()]
    assert len(shown) == 12 and len(edited) == 6 and facts["n_pairs"] == 12 * 12
    store_run = execute(
        Request(("control:random",), tiny, "rococo", options, examine=False), store
    )[0]
    tops = {row["top"] for row in store.run(store_run["key"]).table("scores").to_pylist()}
    pixels = {Image.open(tmp_path / "out" / row["file"]).tobytes() for row in edited}
    assert {pictures.open_picture(Picture.from_name(top)).tobytes() for top in tops} <= pixels


def test_changed_pictures_are_written_with_the_pixels_that_a_model_gets(tiny, tmp_path, store):
    options = {"changes": ["pixelate", "jpeg"], "severities": [2, 4]}
    facts = ask(Request((), tiny, "pictures", options), tmp_path / "out", store)
    shown = {row["id"]: row["file"] for row in rows(tmp_path / "out" / "pictures.jsonl")}
    edited = [file for file in shown.values() if not Path(file).is_absolute()]
    cases = rows(tmp_path / "out" / "cases.jsonl")
    assert len(edited) == len(cases) == facts["n_cases"] > 4
    manifest = execute(
        Request(("control:constant",), tiny, "pictures", options, examine=False), store
    )[0]
    stored = store.cases(manifest["case_key"]).table("cases").to_pylist()
    images_by_case = {row["id"]: row["images"] for row in stored}
    for case in cases:
        changed = Picture.from_name(images_by_case[case["id"]][1])
        assert (
            Image.open(tmp_path / "out" / shown[case["pictures"][1]]).tobytes()
            == pictures.open_picture(changed).tobytes()
        )


def test_copied_pictures_make_the_folder_portable_and_missing_pictures_have_only_a_name(
    tiny, tmp_path, store
):
    ask(Request((), tiny, "prsm", limit=2), tmp_path / "out", store, copies=True)
    shown = rows(tmp_path / "out" / "pictures.jsonl")
    folder = Path(tiny.partition(":")[2]).parent
    assert [(tmp_path / "out" / row["file"]).read_bytes() for row in shown] == [
        (folder / row["name"]).read_bytes() for row in shown
    ]
    (tmp_path / "pairs.json").write_text(
        json.dumps([eqben("p/", caption0=HOSTILE, caption1="two")])
    )
    ask(Request((), f"pairs:{tmp_path}/pairs.json+unpictured", "eqben"), tmp_path / "absent", store)
    absent = rows(tmp_path / "absent" / "pictures.jsonl")
    assert {row["file"] for row in absent} == {""} and len({row["id"] for row in absent}) == 2
    assert rows(tmp_path / "absent" / "texts.jsonl")[0]["text"] == HOSTILE


def test_equal_pictures_and_texts_are_written_once(tmp_path, store):
    data = Path(make_tiny(tmp_path / "data").partition(":")[2])
    (data.parent / "1.png").write_bytes((data.parent / "0.png").read_bytes())
    data.write_text("image,caption\n0.png,a dog\n1.png,a dog\n2.png,a cat\n")
    facts = ask(
        Request((), f"csv:{data}", "rococo", {"policies": [], "pictures": []}),
        tmp_path / "out",
        store,
    )
    assert (facts["n_pictures"], facts["n_texts"]) == (2, 2)


def test_ask_refuses_invalid_outputs_and_options_in_one_line(tiny, tmp_path, store, monkeypatch):
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match=r"is a file, not a folder"):
        ask(Request((), tiny, "prsm"), tmp_path / "file", store)
    with pytest.raises(InvalidInput, match="has no option 'x'"):
        ask(Request((), tiny, "prsm", {"x": 1}), tmp_path / "out", store)
    monkeypatch.setenv("VLPROBE_READ_ONLY", "1")
    with pytest.raises(InvalidInput, match="read-only"):
        ask(Request((), tiny, "prsm"), tmp_path / "out", store)


def test_ask_writes_the_questions_and_prints_their_number(tiny, tmp_path):
    out = str(tmp_path / "out")
    called = call(tmp_path / "cache", "ask", tiny, "--probe", "prsm", out, "--limit", "3")
    assert "3 pictures" in called.stderr and "every picture with every text" in called.stderr
    facts = json.loads((tmp_path / "out" / "questions.json").read_text())
    assert facts["limit"] == 3 and facts["n_pairs"] == 3 * facts["n_texts"]
    assert registry.load_dataset(tiny, tmp_path / "cache").digest == facts["dataset_digest"]


@pytest.mark.parametrize("form", ["embeddings", "scores"])
def test_the_error_for_a_run_with_other_settings_shows_those_of_the_questions(
    tiny, tmp_path, store, form
):
    images_by_case = {"limit": 3, "options": {"k_same": 1, "kinds": ["paraphrase", "flip"]}}
    out = tmp_path / "out"
    ask(Request((), tiny, "lgip", **images_by_case), out, store)
    images, texts = answered.vectors(out)
    for name, array in (("pictures", images), ("texts", texts), ("scores", images @ texts.T)):
        np.save(out / f"{name}.npy", array)
    model = f"{form}:{out}"
    with pytest.raises(InvalidInput) as caught:
        execute(Request((model,), tiny, "lgip", examine=False), store)
    words = "--limit 3 --option k_same=1 --option kinds=paraphrase,flip"
    assert f"'{out / 'questions.json'}' was written with {words}" in str(caught.value)
    with pytest.raises(InvalidInput) as caught:
        execute(Request((model,), tiny, "lgip", limit=3, examine=False), store)
    assert "--option k_same=1" in str(caught.value) and "--limit" not in str(caught.value)
    assert execute(Request((model,), tiny, "lgip", examine=False, **images_by_case), store)


@pytest.mark.parametrize("content", ["{", "[]", '{"limit": [1]}', '{"options": 3}', "\xff", ""])
def test_a_malformed_questions_file_does_not_change_the_error(tiny, tmp_path, store, content):
    out = tmp_path / "out"
    ask(Request((), tiny, "lgip", limit=3), out, store)
    images, texts = answered.vectors(out)
    np.save(out / "pictures.npy", images)
    np.save(out / "texts.npy", texts)
    (out / "questions.json").write_bytes(content.encode("latin-1"))
    with pytest.raises(InvalidInput, match=r"lacks 3 of 6 pictures") as caught:
        execute(Request((f"embeddings:{out}",), tiny, "lgip", examine=False), store)
    assert str(caught.value).count("\n") == 0
