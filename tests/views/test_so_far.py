"""The results of a running run, against its final stored results."""

from pathlib import Path

import numpy as np
import pytest

from tests.conftest import make_tiny
from vlprobe import views
from vlprobe.runs import answers, questions
from vlprobe.runs.request import Progress, Request, RunKeys
from vlprobe.runs.run import execute
from vlprobe.storage.store import Store
from vlprobe.views.progress import SoFar

KIND = "flip"


class Watching(Progress):
    """Progress that reads the results so far at every step, as a page does."""

    def __init__(self, store: Store) -> None:
        self.store, self.keys, self.known = store, RunKeys("", ""), {}

    def begin_run(self, keys: RunKeys) -> None:
        self.keys = keys

    def update(self, label: str, done: float, total: float) -> None:
        if self.keys.run:
            self.known[done] = views.progress.so_far(
                self.store, self.keys.run, self.keys.cases, KIND
            )


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watching:
    """Return a run that was watched to its end, in parts of about sixteen cases."""
    monkeypatch.setattr(answers, "PART_CASES", 16)
    store = Store(tmp_path / "cache")
    watching = Watching(store)
    request = Request(("control:random",), make_tiny(tmp_path / "tiny"), "lgip", examine=False)
    execute(request, store, watching)
    return watching


def test_the_result_so_far_equals_that_of_the_complete_run_on_the_finished_cases(watched: Watching):
    keys = watched.keys
    kinds = np.array(watched.store.cases(keys.cases).table("cases")["kind"].to_pylist())
    margins = watched.store.run(keys.run).table("scores")["margin"].to_numpy()
    ends = [stop for _, stop in questions.part_ranges(watched.store.cases(keys.cases), 16)]
    assert len(ends) > 2
    for end in ends[:-1]:
        of_kind = margins[:end][kinds[:end] == KIND]
        fooled = np.flatnonzero((margins[:end] <= 0) & (kinds[:end] == KIND))
        n_answered = (~np.isnan(of_kind)).sum()
        last = fooled[-1] if len(fooled) else -1
        expected = SoFar(len(fooled), n_answered, (kinds == KIND).sum(), last)
        assert watched.known[end] == expected
    assert 0 < watched.known[ends[0]].n_answered < watched.known[ends[0]].n_cases


def test_without_readable_parts_the_result_so_far_is_empty(watched: Watching):
    store, keys = watched.store, watched.keys

    def count_answered() -> int:
        return views.progress.so_far(store, keys.run, keys.cases, KIND).n_answered

    assert count_answered() == 0  # the parts of a complete run are deleted
    folder = store.run(keys.run).folder / "parts"
    folder.mkdir(exist_ok=True)
    for name in ("000000000-000000016", "copy of 1", "000000000-99999999999999999999"):
        (folder / f"{name}.parquet").write_bytes(b"PAR1 cut short")
        (folder / f"{name}.json").write_text("{}")
    assert count_answered() == 0
