"""The bundled results are complete, match the current code, and equal what the models compute now."""

import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import tiers
from tools import ship
from vlprobe import registry, views
from vlprobe.datasets.world.renderer import VERSION
from vlprobe.runs import verify
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.scoring import pictures
from vlprobe.storage import shipped
from vlprobe.storage.store import Store
from vlprobe.types import Picture

STORE = Store(shipped.FOLDER)
CLOSE = 1e-5  # tolerance of scores; a verdict may differ if the margin is closer to 0 than this
SAMPLE = 8  # cases per kind; the full suite scores all of them
MODEL = "demo:sigmoid"


@cache
def manifests() -> dict[tuple[str, str], dict]:
    """Return the bundled runs by probe and model."""
    return {
        (manifest["run"]["probe"], manifest["run"]["model"]): manifest for manifest in STORE.runs()
    }


@cache
def model(name: str):
    return registry.load_model(name, "cpu")


@cache
def picture_vector(name: str) -> np.ndarray:
    image = pictures.open_picture(Picture.from_name(name))
    pixels = np.stack([model(MODEL).preprocess(image)])
    return _unit(model(MODEL).encode_images(pixels))[0]


def text_vectors(texts: list[str]) -> np.ndarray:
    return _unit(model(MODEL).encode_texts(model(MODEL).tokenize(texts)))


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def sample(probe: str, kind: str) -> list[tuple[dict, dict]]:
    """Return questions and answers of some cases of a kind, evenly spread over the table."""
    manifest = manifests()[probe, MODEL]
    questions = STORE.cases(manifest["case_key"]).table("cases")
    numbers = np.flatnonzero(np.array(questions["kind"].to_pylist()) == kind)
    chosen = numbers[:: max(1, len(numbers) // SAMPLE)].tolist()
    answers = STORE.run(manifest["key"]).table("scores").take(chosen)
    return list(zip(questions.take(chosen).to_pylist(), answers.to_pylist(), strict=True))


def test_the_bundled_results_have_all_probes_and_demo_models_in_ten_megabytes():
    expected = {(probe, name) for probe in ship.PROBES for name in ship.models()}
    assert len(expected) == 36
    assert set(manifests()) == expected
    assert all(manifest["run"]["limit"] == 0 for manifest in manifests().values())
    size = sum(path.stat().st_size for path in shipped.FOLDER.rglob("*") if path.is_file())
    assert size <= 10_000_000


def test_the_bundled_results_are_not_damaged():
    assert list(verify.damages(STORE)) == []


def test_the_bundled_results_match_the_current_code_and_models():
    """If this fails, rebuild them: `python -m tools.ship CACHE`."""
    for row in views.runs.run_rows(STORE):
        assert (row.older, row.shipped) == ("", False)
    digests = {name: model(name).digest for name in ship.models()}
    for (_, name), manifest in manifests().items():
        assert manifest["run"]["model_digest"] == digests[name]
    for case_key in {manifest["case_key"] for manifest in manifests().values()}:
        images = STORE.cases(case_key).table("cases", ["images"])["images"].combine_chunks()
        assert all(VERSION in name for name in images.flatten().unique().to_pylist())


@pytest.mark.parametrize(
    ("probe", "kind"),
    tiers(
        [
            *(("lgip", kind) for kind in ("paraphrase", "flip", "combined")),
            ("eqben", "pair"),
            *(
                ("series", kind) for kind in ("boundary", "order")
            ),  # drawing takes a second per picture
            *(("visla", kind) for kind in ("i2t", "t2t")),
        ],
        [("lgip", "flip"), ("eqben", "pair"), ("visla", "i2t"), ("visla", "t2t")],
    ),
)
def test_the_bundled_scores_equal_what_the_model_computes_now(probe, kind):
    checked = 0
    for question, answer in sample(probe, kind):
        texts = text_vectors(question["texts"])
        if question["images"]:
            images = np.stack([picture_vector(name) for name in question["images"]])
            scores = (images @ texts.T).ravel()
            np.testing.assert_allclose(answer["scores"], scores, atol=CLOSE)
            checked += 1
        if probe == "visla" and kind == "t2t":
            pairs = [texts[a] @ texts[b] for a, b in ((0, 1), (0, 2), (1, 2))]
            np.testing.assert_allclose(answer["text_scores"], pairs, atol=CLOSE)
            checked += 1
    assert checked >= SAMPLE


def test_the_bundled_verdicts_equal_what_the_model_computes_now():
    n_fooled = 0
    for question, answer in sample("lgip", "flip"):
        scores = text_vectors(question["texts"]) @ picture_vector(question["images"][0])
        if abs(answer["margin"]) > CLOSE:
            assert (answer["margin"] <= 0) == (scores[0] <= scores[1])
            n_fooled += answer["margin"] <= 0
    assert n_fooled > 0


@pytest.mark.parametrize("kind", ["i2t", "t2i"])
def test_the_bundled_search_margins_equal_what_the_model_computes_now(kind):
    for question, answer in sample("rococo", kind):
        if kind == "i2t":
            image = picture_vector(question["images"][0])
            scores = text_vectors(question["texts"]) @ image
            is_true = np.array([role != "different" for role in question["roles"]])
            assert answer["scores"][0] == pytest.approx(scores[is_true].max(), abs=CLOSE)
        else:
            text = text_vectors(question["texts"])[0]
            assert answer["scores"][0] == pytest.approx(
                picture_vector(question["images"][0]) @ text, abs=CLOSE
            )
            if answer["top"].startswith("{"):
                top = picture_vector(answer["top"]) @ text
                assert top == pytest.approx(answer["scores"][1], abs=CLOSE)


def test_showing_the_bundled_results_loads_no_model_and_no_torch(tmp_path):
    """Home on a fresh clone shows a case, its answers and its numbers."""
    script = f"""
import sys
from vlprobe import views
from vlprobe.scoring import pictures
from vlprobe.storage import shipped
from vlprobe.storage.shipped import StoreAboveShipped
from vlprobe.types import Picture
from vlprobe.views.filter import Filter
store = StoreAboveShipped({str(tmp_path / "none")!r}, shipped.FOLDER)
sets = views.runs.question_sets(store)
assert len(sets) == 6 and sets["probe"][0] == "lgip", sets
for key in sets["case_key"]:
    question_set = views.runs.question_set(store, key)
    kind = next(iter(views.runs.kinds(question_set.probe)))
    cards, _, _ = views.wall.wall(question_set, Filter("demo:softmax", kind, outcome="all"), size=4)
    assert len(cards) == 4
    for name in cards[0].images:
        pictures.open_picture(Picture.from_name(name)).load()
    assert not views.estimates.estimates(question_set).empty
loaded = {{"torch", "open_clip", "transformers", "streamlit"}} & set(sys.modules)
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", script], check=True, cwd=Path(__file__).parents[1])
    assert not (tmp_path / "none").exists()


@pytest.mark.full
@pytest.mark.parametrize("probe", ship.PROBES)
def test_repeating_a_bundled_run_returns_the_same_results(probe, tmp_path_factory):
    """Every score agrees within CLOSE, every verdict agrees unless its margin is near 0, and every estimate agrees
    within 0.001.
    """
    folder = tmp_path_factory.getbasetemp() / "asked-again"
    (manifest,) = execute(Request((MODEL,), "", probe), Store(folder))
    before = manifests()[probe, MODEL]
    if manifest["run"]["dataset_digest"] != before["run"]["dataset_digest"]:
        pytest.skip("this machine's Pillow draws other pixels")
    assert manifest["key"] == before["key"]
    again, stored = (store.run(manifest["key"]).table("scores") for store in (Store(folder), STORE))
    for name in ("scores", *(() if probe == "lgip" else ("text_scores",))):
        values = [np.array(table[name].combine_chunks().flatten()) for table in (again, stored)]
        np.testing.assert_allclose(*values, atol=CLOSE)
    margins = [np.array(table["margin"]) for table in (again, stored)]
    clear = np.abs(margins[1]) > CLOSE
    np.testing.assert_array_equal(np.sign(margins[0][clear]), np.sign(margins[1][clear]))
    estimates = [
        store.run(manifest["key"]).table("estimates").to_pandas()
        for store in (Store(folder), STORE)
    ]
    for name in ("value", "low", "high"):
        np.testing.assert_allclose(*(table[name] for table in estimates), atol=1e-3)
