"""A run whose galleries several executors rank, each its shares, against the run of one process."""

from dataclasses import replace

import pytest

from tests.conftest import make_tiny
from vlprobe import registry
from vlprobe.runs import answers, questions
from vlprobe.runs.context import RunContext
from vlprobe.runs.executor import CaseRange, LocalExecutor
from vlprobe.runs.request import Progress, Request
from vlprobe.runs.run import execute
from vlprobe.scoring import gallery
from vlprobe.scoring.shares import chunk_starts
from vlprobe.storage.store import Store

CLEAN = {"policies": [], "pictures": []}
ALTERED = {"policies": ["same-concept"], "pictures": ["mix:0.6"], "picture_seeds": [1]}


class Stop(Progress):
    """Ends a run when its first case is to be scored."""

    def begin_run(self, keys) -> None:
        if keys.run:
            self.keys = keys

    def update(self, label, done, total) -> None:
        if hasattr(self, "keys"):
            raise KeyboardInterrupt


@pytest.fixture
def small_products(monkeypatch):
    """Products of 3 candidates of the control model, and galleries that are gathered 2 at a time."""
    monkeypatch.setattr(gallery, "PRODUCT_BYTES", 3 * 4 * 64)
    monkeypatch.setattr(gallery, "PRODUCT_CANDIDATES", 3)
    monkeypatch.setattr(gallery, "ENCODE_CHUNK", 2)


def executors(request: Request, store: Store, n: int) -> list[LocalExecutor]:
    """So many executors of a run whose questions are written, each with an encoder of its own."""
    stopped = Stop()
    with pytest.raises(KeyboardInterrupt):
        execute(request, store, stopped)
    from vlprobe.runs.run import prepare

    prepared = prepare(request, store, Progress())
    model = registry.load_model(request.models[0], "cpu", "fp32")
    run = replace(prepared.run, model=model.name, model_digest=model.digest)
    context = RunContext(run, prepared.items, prepared.probe, request, store)
    assert run.key == stopped.keys.run
    return [LocalExecutor(context, model, Progress()) for _ in range(n)]


def rank_in_turn(crew: list[LocalExecutor], parts: list[CaseRange], n_shares: int) -> None:
    """Has every task of a stage done before the next stage, each by another executor."""
    turn = 0

    def another() -> LocalExecutor:
        nonlocal turn
        turn += 1
        return crew[turn % len(crew)]

    galleries = another().large_galleries()
    assert galleries
    for name, n in galleries:
        for start in chunk_starts(n):
            another().gather(name, start)
    for stage in ("best", "counts"):
        for share in range(n_shares):
            for part in parts:
                another().rank_share(part, share, n_shares, stage)
    for part in parts:
        another().score_shares(part, n_shares)


def sums(manifest: dict) -> dict[str, str]:
    return {file["name"]: file["sha256"] for file in manifest["files"]}


@pytest.mark.parametrize(("options", "n_shares"), [(ALTERED, 3), (CLEAN, 7)])
def test_shares_of_several_workers_make_the_bytes_of_one_process(
    options, n_shares: int, tmp_path, small_products, monkeypatch
):
    monkeypatch.setattr(answers, "PART_CASES", 5)
    monkeypatch.setattr(questions, "FIRST_PART_CASES", 3)
    data = make_tiny(tmp_path / "data")
    request = Request(("control:random",), data, "rococo", options, examine=False)
    alone = execute(request, Store(tmp_path / "alone"))[0]
    store = Store(tmp_path / "shares")
    crew = executors(request, store, 2)
    parts = questions.part_ranges(crew[0].context.case_entry, answers.PART_CASES)
    assert len(parts) > 1
    rank_in_turn(crew, parts, n_shares)
    names = crew[0].context.run_entry.parts()
    assert {name.split("-")[1] for name in names} > {"rows", "digests"}
    assert {name.split("-")[-3] for name in names if name.count("-") == 5} == {"best", "counts"}
    assert sums(execute(request, store)[0]) == sums(alone)
    assert not (crew[0].context.run_entry.folder / "parts").exists()


def test_what_a_worker_left_damaged_is_made_again(tmp_path, small_products):
    data = make_tiny(tmp_path / "data")
    request = Request(("control:random",), data, "rococo", ALTERED, examine=False)
    alone = execute(request, Store(tmp_path / "alone"))[0]
    store = Store(tmp_path / "shares")
    crew = executors(request, store, 2)
    parts = questions.part_ranges(crew[0].context.case_entry, answers.PART_CASES)
    n_galleries = len(crew[0].large_galleries())
    for name, n in crew[0].large_galleries():
        for start in chunk_starts(n):
            crew[0].gather(name, start)
    folder = crew[0].context.run_entry.folder / "parts"
    for part in parts:
        crew[0].rank_share(part, 0, 2, "best")
    for kind in ("rows", "digests", "best"):
        damaged = sorted(folder.glob(f"*-{kind}-*.parquet"))
        assert len(damaged) >= n_galleries
        damaged[0].write_bytes(b"x")
    for part in parts:
        crew[1].score_shares(part, 2)
    assert sums(execute(request, store)[0]) == sums(alone)
