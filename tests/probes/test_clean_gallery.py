"""RoCOCO with only the clean gallery: same recall as with altered candidates, and no mention of these."""

import functools

import numpy as np
import pytest

from tests.conftest import make_tiny, tiers
from tests.dashboard.test_pages import bodies, open_page, words
from vlprobe import views
from vlprobe.errors import InvalidInput
from vlprobe.runs.ask import ask
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.scoring.gallery import Gallery
from vlprobe.scoring.retrieval import retrieve
from vlprobe.storage.store import Store

CLEAN = {"policies": [], "pictures": []}
ALTERED = {"policies": ["same-concept"], "pictures": ["mix:0.8"], "picture_seeds": [1]}


def run_rococo(dataset, store, options):
    request = Request(
        ("control:random", "control:constant"), dataset, "rococo", options, examine=False
    )
    return execute(request, store)


def estimates(store, manifest):
    rows = store.run(manifest["key"]).table("estimates").to_pylist()
    return {
        row["metric"]: row["value"]
        for row in rows
        if row["by"] == "all" and row["averaging"] == "micro"
    }


def test_clean_recall_equals_that_with_altered_candidates_and_other_metrics_are_unknown(
    tiny, store
):
    for clean, beside in zip(
        run_rococo(tiny, store, CLEAN), run_rococo(tiny, store, ALTERED), strict=True
    ):
        of_clean, of_beside = estimates(store, clean), estimates(store, beside)
        for name, value in of_clean.items():
            if name[4:] in ("r1", "r5", "r10"):
                assert value == of_beside[name], name
            else:
                assert value is None or np.isnan(value), name
        assert clean["n_cases"] == 6 + 12 and set(of_beside) == set(of_clean)


def test_the_margin_compares_the_right_candidate_with_the_best_other(tiny, store):
    random, constant = (
        store.run(manifest["key"]).table("scores").to_pylist()
        for manifest in run_rococo(tiny, store, CLEAN)
    )
    for row in random:
        assert (
            (row["margin"] > 0) == (row["rank"] == 1)
            and row["rank"] == row["rank_clean"]
            and row["top"]
        )
    assert {row["margin"] for row in constant} == {0.0} and {
        row["top_tied"] for row in constant
    } == {1}


def test_ranks_equal_a_plain_loop():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(30, 8)).astype(np.float32)
    queries, owner = rng.normal(size=(9, 8)).astype(np.float32), np.arange(30) % 10
    query_item = np.arange(9)
    ranks = retrieve(queries, query_item, Gallery(vectors), owner)
    for row, query in enumerate(queries):
        scores = [float(np.float32(value)) for value in query @ vectors.T]
        own_score = max(score for score, item in zip(scores, owner, strict=True) if item == row)
        others = [score for score, item in zip(scores, owner, strict=True) if item != row]
        assert ranks.rank[row] == 1 + sum(score >= own_score - 1e-6 for score in others)
        assert ranks.best_altered[row] == pytest.approx(max(others), abs=1e-5)
        assert owner[ranks.which_altered[row]] != row


def test_a_gallery_of_one_item_is_refused_in_one_line(tiny, store):
    with pytest.raises(InvalidInput, match="contains only one item"):
        execute(Request(("control:random",), tiny, "rococo", CLEAN, limit=1), store)


def test_mixing_missing_pictures_is_refused_with_the_option_to_use(tmp_path, store):
    (tmp_path / "d.csv").write_text("image,caption\na.png,a red dog\nb.png,a blue car\n")
    data = f"csv:{tmp_path}/d.csv+unpictured"
    with pytest.raises(InvalidInput, match=r"2 of 2 pictures are missing .*--option pictures="):
        ask(Request((), data, "rococo"), tmp_path / "out", store)
    assert (
        ask(Request((), data, "rococo", {"pictures": []}), tmp_path / "out", store)["n_pictures"]
        == 2
    )


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    """Return a store with only the clean gallery, and the key of its question set."""
    folder = tmp_path_factory.mktemp("clean")
    store = Store(folder / "cache")
    return store, run_rococo(make_tiny(folder / "data"), store, CLEAN)[0]["case_key"]


@pytest.mark.parametrize("kind", ["clean_i2t", "clean_t2i"])
def test_failures_of_a_clean_gallery_are_shown_without_mentioning_mixtures(
    kind, clean, monkeypatch
):
    store, key = clean
    shown = functools.partial(open_page, monkeypatch)
    shown(store, "explore", set=key, model="control:random", kind=kind)
    numbers, _ = views.cases.failures(
        views.runs.question_set(store, key), views.filter.Filter("control:random", kind)
    )
    at = shown(
        store, "explore", set=key, model="control:random", kind=kind, case=numbers["id"].iloc[0]
    )
    assert "mixture" not in words(at) and "mixed" not in words(at)
    assert "is fooled by" in bodies(at)


@pytest.mark.parametrize(
    "page",
    tiers(
        ["home", "compare", "tradeoff", "present", "try", "breakdown", "lab", "retrieval"],
        ("retrieval",),
    ),
)
def test_every_page_opens_with_a_clean_gallery(page, clean, monkeypatch):
    store, key = clean
    open_page(monkeypatch, store, page, set=key, kind="clean_t2i")
