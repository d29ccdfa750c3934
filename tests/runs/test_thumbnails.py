"""A run leaves small copies of the pictures that it read; those of results that are gone can be told and removed."""

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from vlprobe.errors import InvalidInput, StoredDamage
from vlprobe.runs import questions
from vlprobe.runs import thumbnails as runs_thumbnails
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.scoring import pictures
from vlprobe.storage import thumbnails
from vlprobe.storage.store import Store


@pytest.fixture
def case_key(tiny: str, store: Store) -> str:
    """The questions of a run over two pictures."""
    request = Request(("control:random",), tiny, "lgip", limit=2, examine=False)
    return execute(request, store)[0]["case_key"]


def test_a_run_leaves_a_small_copy_of_each_picture_that_it_read(case_key: str, store: Store):
    names = questions.picture_names(store.cases(case_key))
    assert sorted(Path(name).name for name in names) == ["0.png", "1.png"]
    digests = {pictures.digest(Path(name).read_bytes()) for name in names}
    assert {path.stem for path in thumbnails.paths(store.root)} == digests
    usage = runs_thumbnails.usage(store)
    assert (usage.n_entries, usage.n_unused) == (2, 0)
    assert usage.n_bytes == sum(path.stat().st_size for path in thumbnails.paths(store.root))
    assert "removed" not in runs_thumbnails.summary(usage)


def test_what_no_result_shows_is_told_and_removed(
    case_key: str, store: Store, monkeypatch: pytest.MonkeyPatch
):
    content = next(thumbnails.paths(store.root)).read_bytes()
    mixed = "b" * 32 + thumbnails.MIXED  # made again when it is shown, and no sign of a removed run
    for key in ("a" * 32, mixed):
        thumbnails.write(store.root, key, content)
    usage = runs_thumbnails.usage(store)
    assert (usage.n_entries, usage.n_unused) == (4, 1)
    with monkeypatch.context() as patch, pytest.raises(InvalidInput, match="read-only"):
        patch.setenv("VLPROBE_READ_ONLY", "1")
        runs_thumbnails.clean(store)
    assert runs_thumbnails.clean(store) == 2
    assert runs_thumbnails.usage(store).n_entries == 2
    shutil.rmtree(store.root / "runs")
    assert runs_thumbnails.usage(store).n_unused == 2
    assert runs_thumbnails.clean(store) == 2


def test_questions_that_name_no_pictures_are_damaged(store: Store):
    store.cases("a" * 16).finish({"cases": pa.table({"case": [0]})}, {})
    with pytest.raises(StoredDamage, match="have no pictures"):
        questions.picture_names(store.cases("a" * 16))
