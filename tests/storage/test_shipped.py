"""Bundled results are shown together with the user's own results and are never written to."""

import hashlib
import pickle
from pathlib import Path

import pytest

from tests.conftest import case_key_of, make_tiny
from vlprobe import views
from vlprobe.errors import NotFound
from vlprobe.models.doctor import examine
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage import annotations, shipped, thumbnails
from vlprobe.storage.annotations import Annotation
from vlprobe.storage.shipped import StoreAboveShipped
from vlprobe.storage.store import Store

RANDOM, CONSTANT, WEAK = "control:random", "control:constant", "demo:weak"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_tiny(tmp_path_factory.mktemp("shipped") / "tiny")


@pytest.fixture(scope="module")
def below(tiny: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store in place of the bundled results: one model on all items and on four of them."""
    store = Store(tmp_path_factory.mktemp("below") / "shipped")
    execute(Request((RANDOM,), tiny, "lgip"), store)
    execute(Request((RANDOM,), tiny, "lgip", limit=4), store)
    return store.root


@pytest.fixture
def empty(tmp_path: Path, below: Path) -> StoreAboveShipped:
    return StoreAboveShipped(tmp_path / "own", below)


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_an_empty_store_shows_the_bundled_results_with_a_label(empty):
    sets = views.runs.question_sets(empty)
    assert list(sets["shipped"]) == [True, True]
    assert all(label.startswith("Bundled results · ") for label in sets["label"])
    for key, n_cases in zip(sets["case_key"], sets["n_cases"], strict=True):
        question_set = views.runs.question_set(empty, key)
        assert question_set.shipped
        assert question_set.label.startswith("Bundled results · ")
        rows = views.rows.questions(question_set, range(n_cases))
        assert len(rows) == n_cases > 0
        assert not views.estimates.estimates(question_set).empty
    assert not empty.root.exists()


def test_own_runs_are_listed_first_and_compared_with_bundled_runs(empty, tiny):
    version = empty.version()
    execute(Request((WEAK,), tiny, "lgip", limit=4), Store(empty.root))
    assert empty.version() != version
    sets = views.runs.question_sets(empty)
    assert list(sets["shipped"]) == [False, True]
    assert sets["models"][0] == [WEAK, RANDOM]
    question_set = views.runs.question_set(empty, sets["case_key"][0])
    assert [(run.model, run.shipped) for run in question_set.runs] == [
        (WEAK, False),
        (RANDOM, True),
    ]
    assert not question_set.shipped
    answers = views.rows.answers(question_set, range(5))
    assert set(answers["model"]) == {RANDOM, WEAK}
    differences = views.paired_tests.compare_metrics(question_set, (RANDOM, WEAK))
    assert len(differences)


def test_a_run_in_both_folders_counts_as_own(empty, tiny):
    (manifest,) = execute(Request((RANDOM,), tiny, "lgip", limit=4), Store(empty.root))
    assert not empty.is_shipped(manifest["key"])
    keys = [run["key"] for run in empty.runs()]
    assert len(keys) == len(set(keys)) == 2
    assert empty.run(manifest["key"]).folder.is_relative_to(empty.root)
    snapshot = empty.snapshot()
    for store in (empty, snapshot, snapshot):
        assert [row.shipped for row in views.runs.run_rows(store)] == [False, True]
    assert (snapshot.runs(), snapshot.version()) == (empty.runs(), empty.version())
    assert len(examine.load(empty)) == 1  # it is in both folders


def test_tags_of_bundled_cases_are_written_to_the_own_store_only(empty, below):
    before = contents(below)
    key = case_key_of(empty)
    annotations.write(empty, key, Annotation(3, "an-id", ("telling",), "look"))
    assert annotations.read(empty, key).tags == {"telling": 1}
    assert annotations.read(Store(empty.root), key).tags == {"telling": 1}
    assert contents(below) == before


def test_a_plain_store_has_only_own_runs(empty, tiny):
    (manifest,) = execute(Request((CONSTANT,), tiny, "lgip", limit=3), Store(empty.root))
    private = Store(empty.root)
    assert [run["key"] for run in private.runs()] == [manifest["key"]]
    assert [private.is_shipped(run["key"]) for run in private.runs()] == [False]
    shipped_keys = {run["key"] for run in empty.runs()} - {manifest["key"]}
    for key in shipped_keys:
        assert empty.find(key)["key"] == key
        with pytest.raises(NotFound):
            private.find(key)


def test_a_cursor_reads_only_the_two_folders(empty, tiny, tmp_path):
    execute(Request((CONSTANT,), tiny, "lgip", limit=4), Store(empty.root))
    keys = [run["key"] for run in empty.runs()]
    files = empty.files(keys, "scores")
    assert {Path(file).is_relative_to(empty.root) for file in files} == {True, False}
    outside = tmp_path / "outside.parquet"
    outside.write_bytes(Path(files[0]).read_bytes())
    with empty.cursor() as cursor:
        (total,) = cursor.execute("SELECT count(*) FROM read_parquet(?)", [files]).fetchone()
        assert total == sum(run["n_cases"] for run in empty.runs())
        with pytest.raises(Exception, match="Permission"):
            cursor.execute("SELECT count(*) FROM read_parquet(?)", [str(outside)])


def test_a_store_with_bundled_results_can_be_pickled(empty):
    copy = pickle.loads(pickle.dumps(empty))
    assert copy.roots == empty.roots
    assert copy.version() == empty.version()


@pytest.mark.parametrize("setting", ["", "/nowhere/at/all"])
def test_bundled_results_can_be_hidden_by_the_setting(monkeypatch, setting):
    monkeypatch.setenv(shipped.SETTING, setting)
    assert shipped.folders() == ()


def test_without_a_setting_the_bundled_results_of_the_package_are_used(monkeypatch):
    monkeypatch.delenv(shipped.SETTING)
    package = Path(shipped.__file__).parent
    expected = package / "published_results", package / "shipped_results"
    assert shipped.folders() == (shipped.PUBLISHED_FOLDER, shipped.FOLDER) == expected


def test_several_folders_of_bundled_results_are_combined(empty, below, tiny, tmp_path):
    lowest = Store(tmp_path / "lowest")
    execute(Request((CONSTANT,), tiny, "lgip", limit=4), lowest)
    store = StoreAboveShipped(tmp_path / "mine", below, lowest.root)
    assert store.roots == (tmp_path / "mine", below, lowest.root)
    assert [run.model for run in views.runs.run_rows(store)] == [RANDOM, RANDOM, CONSTANT]
    assert all(run.shipped for run in views.runs.run_rows(store))
    question_set = views.runs.question_set(store, Store(lowest.root).runs()[0]["case_key"])
    assert set(question_set.models) == {RANDOM, CONSTANT}
    assert len(views.rows.answers(question_set, range(3))) == 6
    copy = pickle.loads(pickle.dumps(store))
    assert (copy.roots, copy.version()) == (store.roots, store.version())
    (manifest,) = execute(Request((CONSTANT,), tiny, "lgip", limit=4), Store(tmp_path / "mine"))
    assert not store.is_shipped(manifest["key"])
    assert not (below / "runs" / manifest["key"]).exists()


def test_no_thumbnail_is_written_into_the_bundled_results(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(shipped, "FOLDER", tmp_path / "shipped")
    for folder in ("shipped", "own"):
        thumbnails.write(tmp_path / folder, "0" * 32, b"RIFF")
    assert [path.parents[2].name for path in tmp_path.rglob("*.webp")] == ["own"]
