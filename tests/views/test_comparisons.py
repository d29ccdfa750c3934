"""The named comparisons of PRSM's table 1, against scipy's rankings and sets for one pair of texts at a time."""

import json
import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy import stats

from vlprobe import registry, views
from vlprobe.probes import prsm_ranking
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.scoring import pictures
from vlprobe.storage.store import Store
from vlprobe.types import Item, Model
from vlprobe.views import estimates

MODEL = "demo:weak"
PAIRS = {"P2": {"p1-p2": (3, 2), "p1-np": (3, 0)}, "P3": {"o-a1": (0, 1), "o-a2": (0, 2), "o-a12": (0, 3)}}  # fmt: skip
SHARED = Path(__file__).parents[3] / "shared" / "data" / "socialcounterfactuals"


@pytest.fixture(scope="module")
def comparison_runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, dict[str, dict]]:
    """Return runs on four released prompts in the paper's prefixes and synonyms, searched in thirty pictures."""
    folder = tmp_path_factory.mktemp("comparisons")
    store = Store(folder / "cache")
    people = ("a White male", "a Black female")
    prompts = [f"{who} {what}" for what in ("barber", "chef") for who in people]
    (folder / "prompts.jsonl").write_text(
        "".join(json.dumps({"caption": text}) + "\n" for text in prompts)
    )
    rng = np.random.default_rng(3)
    for number in range(30):
        pixels = rng.integers(0, 256, (4, 4, 3), dtype=np.uint8)
        Image.fromarray(pixels).resize((32, 32)).save(folder / f"{number:02}.png")
    lines = [f"{number:02}.png,picture {number}" for number in range(30)]
    (folder / "gallery.csv").write_text("\n".join(["image,caption", *lines]))
    manifests = {}
    for setting in PAIRS:
        name = f"queries:{folder}/prompts.jsonl+{setting.lower()}"
        gallery = {"gallery": f"csv:{folder}/gallery.csv"}
        (manifests[setting],) = execute(
            Request((MODEL,), name, "prsm", gallery, examine=False), store
        )
    return store, manifests


@cache
def the_model() -> Model:
    """Return the model of the runs, cached because loading takes longer than its use."""
    return registry.load_model(MODEL, "cpu")


@pytest.fixture(scope="module")
def gallery_vectors(comparison_runs) -> np.ndarray:
    store, _ = comparison_runs
    model = the_model()
    name = f"csv:{store.root.parent}/gallery.csv"
    items = registry.load_dataset(name, store.root).items
    images = [item.image for item in items if item.image]
    pixels = np.stack([model.preprocess(pictures.open_picture(image)) for image in images])
    vectors = model.encode_images(pixels)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def similarities(texts: list[str], gallery_vectors: np.ndarray) -> np.ndarray:
    model = the_model()
    vectors = model.encode_texts(model.tokenize(texts))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)) @ gallery_vectors.T


@pytest.mark.parametrize("setting", PAIRS)
def test_a_comparison_equals_that_of_its_two_rankings(
    comparison_runs, gallery_vectors, setting: str
):
    store, manifests = comparison_runs
    manifest = manifests[setting]
    cases = store.cases(manifest["case_key"]).table("cases").to_pylist()
    rows = store.run(manifest["key"]).table("comparisons").to_pylist()
    assert len(rows) == len(cases) == 4
    for case, row in zip(cases, rows, strict=True):
        assert row["comparison"] == list(PAIRS[setting])
        for place, (left, right) in enumerate(PAIRS[setting].values()):
            scores = similarities([case["texts"][left], case["texts"][right]], gallery_vectors)
            expected = stats.spearmanr(*scores).statistic
            assert row["comparison_global"][place] == pytest.approx(expected, abs=0.01)
            first, second = (set(np.argsort(-line)[:10].tolist()) for line in scores)
            share = len(first & second) / 10
            assert row["comparison_local_10"][place] == pytest.approx(share)


@pytest.mark.parametrize("setting", PAIRS)
def test_estimates_of_a_comparison_are_means_over_its_queries(comparison_runs, setting: str):
    store, manifests = comparison_runs
    manifest = manifests[setting]
    question_set = views.runs.question_set(store, manifest["case_key"])
    assert estimates.BREAKDOWN in views.estimates.slices(question_set)
    table = views.estimates.estimates(question_set, estimates.BREAKDOWN)
    rows = store.run(manifest["key"]).table("comparisons").to_pylist()
    assert set(table["slice"]) == set(PAIRS[setting])
    for place, name in enumerate(PAIRS[setting]):
        of_name = table[table["slice"] == name].set_index("metric")
        for metric in ("prsm_global", "prsm_local_10", "prsm_global_idlist"):
            column = metric.replace("prsm", "comparison")
            mean = np.mean([row[column][place] for row in rows])
            assert of_name.loc[metric, "value"] == pytest.approx(mean)
            assert of_name.loc[metric, "n_items"] == 4  # fewer than five items have no interval
            assert of_name.loc[metric, ["low", "high"]].isna().all()


def test_the_mean_of_all_versions_is_consistent_with_the_named_pairs(comparison_runs):
    """Check the stored number, which rests on all pairs, against the named pairs."""
    store, manifests = comparison_runs
    for setting, manifest in manifests.items():
        scores = store.run(manifest["key"]).table("scores").to_pylist()
        rows = store.run(manifest["key"]).table("comparisons").to_pylist()
        for score, row in zip(scores, rows, strict=True):
            named, n_pairs = row["comparison_local_10"], 6
            rest = n_pairs * score["local_10"] - sum(named)
            assert -1e-9 <= rest <= n_pairs - len(named) + 1e-9, setting


def test_the_queries_of_a_group_are_those_with_its_tag(comparison_runs):
    store, manifests = comparison_runs
    question_set = views.runs.question_set(store, manifests["P3"]["case_key"])
    whole = estimates.comparisons(question_set)
    women, men = (
        estimates.comparisons(question_set, f"gender={name}") for name in ("female", "male")
    )
    whole, women, men = (table[table["n_items"] > 0] for table in (whole, women, men))
    assert set(whole["n_items"]) == {4} and set(women["n_items"]) == set(men["n_items"]) == {2}
    for all_rows, *halves in zip(*(table["value"] for table in (whole, women, men)), strict=True):
        assert all_rows == pytest.approx(np.mean(halves))


@pytest.mark.parametrize(
    ("item", "setting", "texts", "names"),
    [
        (Item("1", None, ("b", "a", "a"), {"versions": "o,c1,c2"}, setting="P1"), "P1", ("b", "a"), ["o-c1", "o-c2"]),
        (Item("1", None, ("a", "a", "b"), {"versions": "o,c1,c2"}, setting="P1"), "P1", ("a", "b"), ["o-c2"]),
        (Item("1", None, ("a", "b", "c")), "P1", ("a", "b", "c"), ["o-c1", "o-c2"]),
        (Item("1", None, ("a", "a", "b")), "P1", ("a", "b"), ["o-c1"]),  # no tag: numbered without the repeated text
        (Item("1", None, ("a",)), "P2", ("a", "A photo of a"), []),
        (Item("1", None, ("a",)), "P2", ("a", "A picture of a", "An image of a"), ["p1-p2", "p1-np"]),
        (Item("1", None, ("a",)), "P3", ("a", "b"), []),
        (Item("1", None, ("a",)), "0/P4", ("a", "b"), []),
    ],
)  # fmt: skip
def test_only_the_versions_of_an_item_are_compared(item, setting, texts, names):
    n_pairs = math.comb(len(texts), 2)
    pairs = {measure: np.arange(float(n_pairs)) for measure in prsm_ranking.MEASURES}
    row = prsm_ranking.measured(item, setting, texts, pairs)
    assert row["comparison"] == names
    assert all(len(values) == len(names) for values in row.values())


def test_a_run_of_an_older_version_has_no_named_comparisons(comparison_runs, monkeypatch):
    store, manifests = comparison_runs
    question_set = views.runs.question_set(store, manifests["P2"]["case_key"])
    monkeypatch.setattr("vlprobe.storage.entry.Entry.has_table", lambda self, name: False)
    assert estimates.comparisons(question_set).empty
    assert estimates.BREAKDOWN not in views.estimates.slices(question_set)
    cells = views.papers.beside(question_set, MODEL)
    beside = cells.dropna(subset=["run"])
    assert set(beside["split"]) == {"overall/p2/p1-p2-p3-np"}


def test_a_run_is_shown_next_to_the_rows_of_table_1(comparison_runs):
    store, manifests = comparison_runs
    for setting, manifest in manifests.items():
        question_set = views.runs.question_set(store, manifest["case_key"])
        cells = views.papers.beside(question_set, MODEL).dropna(subset=["run"])
        versions = views.published.PRSM_VERSIONS[setting]
        names = {f"overall/{setting.lower()}/{name}" for name in (*PAIRS[setting], versions)}
        assert set(cells["split"]) == names


@pytest.mark.skipif(not SHARED.is_dir(), reason="the released prompts are not here")
def test_every_released_prompt_has_its_comparisons():
    from vlprobe.datasets import queries

    for setting, pairs in PAIRS.items():
        name = f"queries:{SHARED}/race_gender_occupation.jsonl+{setting.lower()}"
        for item in queries.load(name, Path()).items[::97]:
            texts = tuple(dict.fromkeys(item.captions))
            pairs_of = {
                measure: np.zeros(math.comb(len(texts), 2)) for measure in prsm_ranking.MEASURES
            }
            row = prsm_ranking.measured(item, setting, texts, pairs_of)
            assert row["comparison"] == list(pairs)


def test_show_prints_the_comparisons_and_the_page_rankings_draws_them(comparison_runs, monkeypatch):
    from tests.conftest import call
    from tests.dashboard.test_pages import open_page

    store, manifests = comparison_runs
    manifest = manifests["P3"]
    words = ("show", manifest["key"], "--by", "comparison", "--format", "json")
    listed = json.loads(call(store.root, *words).stdout)
    assert {row["slice"] for row in listed} == set(PAIRS["P3"])
    at = open_page(monkeypatch, store, "rankings", set=manifest["case_key"], depth="prsm_local_10")
    assert not at.error
    assert "comparisons" in [element.key for element in at.get("plotly_chart")]
    parts = open_page(
        monkeypatch, store, "breakdown", set=manifest["case_key"], by=estimates.BREAKDOWN
    )
    assert not parts.error and not parts.exception
