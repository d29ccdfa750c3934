"""A run stores thumbnails of the pictures that it read."""

from pathlib import Path

import pyarrow as pa
import pytest

from vlprobe.errors import StoredDamage
from vlprobe.runs import questions
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.scoring import pictures
from vlprobe.storage import thumbnails
from vlprobe.storage.store import Store


@pytest.fixture
def case_key(tiny: str, store: Store) -> str:
    """Return the key of the question set of a run on two pictures."""
    request = Request(("control:random",), tiny, "lgip", limit=2, examine=False)
    return execute(request, store)[0]["case_key"]


def test_a_run_stores_a_thumbnail_of_each_picture_that_it_read(case_key: str, store: Store):
    names = questions.picture_names(store.cases(case_key))
    assert sorted(Path(name).name for name in names) == ["0.png", "1.png"]
    digests = {pictures.digest(Path(name).read_bytes()) for name in names}
    assert {path.stem for path in thumbnails.paths(store.root)} == digests


def test_questions_without_a_column_of_pictures_are_damaged(store: Store):
    store.cases("a" * 16).finish({"cases": pa.table({"case": [0]})}, {})
    with pytest.raises(StoredDamage, match="have no pictures"):
        questions.picture_names(store.cases("a" * 16))
