"""Several processes make the same questions as one process, and all of them end."""

import contextlib
import operator
import os
import pickle
import select
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from vlprobe import registry
from vlprobe.errors import InvalidInput, JobFailed
from vlprobe.runs import case_workers, questions
from vlprobe.runs.context import RunContext
from vlprobe.runs.request import Progress, Request
from vlprobe.storage.store import Entry, Store
from vlprobe.types import Item, Picture, Run

CAPTIONS = ("Two red dogs sit near a car.", "A dog is looking at a blue bus on the street")
ITEMS = [
    Item(
        f"item {n}",
        Picture(Path("/nowhere/a.jpg")),
        tuple(f"{text} {n}" for text in CAPTIONS),
        {"n": str(n % 7)},
    )
    for n in range(50)
]


@pytest.fixture
def several(monkeypatch) -> list[subprocess.Popen]:
    """Use chunks of six items and always start processes. Return the list of started processes."""
    started: list[subprocess.Popen] = []

    class Watched(subprocess.Popen):
        def __init__(self, *given, **named) -> None:
            super().__init__(*given, **named)
            started.append(self)

    monkeypatch.setattr(case_workers.subprocess, "Popen", Watched)
    monkeypatch.setattr(case_workers, "CHUNK_ITEMS", 6)
    monkeypatch.setattr(case_workers, "PAYS", 0.0)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    return started


def make_run(**options) -> Run:
    probe = registry.load_probe("lgip")
    return Run("m", "0", "made", "0", "lgip", probe.version, (), {**probe.defaults, **options})


def write(store: Store, workers: int, progress: Progress) -> Entry:
    """Write the questions. The pictures are not opened."""
    request = Request(("m",), "made", "lgip", workers=workers)
    context = RunContext(make_run(), ITEMS, registry.load_probe("lgip"), request, store)
    questions.write_cases(context, (), [], progress)
    return context.case_entry


def case_bytes(store: Store, workers: int) -> bytes:
    """Return the bytes of the file of questions."""
    return (write(store, workers, Progress()).folder / "cases.parquet").read_bytes()


def test_two_processes_write_the_same_bytes_as_one(tmp_path, several):
    alone = case_bytes(Store(tmp_path / "one"), 1)
    assert not several
    both = case_bytes(Store(tmp_path / "two"), 2)
    assert len(several) == 2
    assert all(process.poll() is not None for process in several)
    assert both == alone
    facts = [
        Store(tmp_path / name).cases(make_run().case_key).manifest() for name in ("one", "two")
    ]
    assert list(facts[0]["dropped"].items()) == list(facts[1]["dropped"].items())
    assert facts[0] == facts[1]


def test_an_error_in_a_process_has_the_same_message_as_without_processes(several):
    items = [*ITEMS[:40], replace(ITEMS[40], captions=("fine and well", " ")), *ITEMS[41:]]
    messages = []
    for workers in (1, 2):
        with pytest.raises(InvalidInput) as error:
            list(case_workers.chunks(items, registry.load_probe("lgip"), make_run(), workers))
        messages.append(str(error.value))
    assert "Caption 1 of item 'item 40' is empty" in messages[0]
    assert messages[0] == messages[1]
    assert len(several) == 2
    assert all(process.poll() is not None for process in several)


def test_a_killed_process_is_reported_in_one_line(several):
    made = case_workers.chunks(ITEMS, registry.load_probe("lgip"), make_run(), 2)
    next(made), next(made)  # the second chunk is the first one from a process
    for process in several:
        process.kill()
    with pytest.raises(JobFailed, match=rf"killed \(signal {signal.SIGKILL.value}\)"):
        list(made)
    assert all(process.poll() is not None for process in several)


def test_stopping_a_run_ends_all_processes(tmp_path, several):
    class Stopped(Exception):
        pass

    class Stop(Progress):
        def update(self, label, done, total):
            if done >= 18:
                raise Stopped

    with pytest.raises(Stopped):
        write(Store(tmp_path), 2, Stop())
    assert len(several) == 2
    assert all(process.poll() is not None for process in several)


def test_a_process_ends_when_its_parent_is_killed(several):
    """If the parent is killed, its end of the pipes is closed; the test closes it by hand."""
    made = case_workers.chunks(ITEMS, registry.load_probe("lgip"), make_run(), 2)
    next(made), next(made)
    orphan = several[1]
    os.dup2(os.open(os.devnull, os.O_RDONLY), orphan.stdout.fileno())
    assert orphan.wait(timeout=120) == 1
    made.close()


@pytest.mark.parametrize(("influence", "n_processes"), [((), 2), (("control:random",), 0)])
def test_no_processes_start_if_edits_need_a_model(several, influence, n_processes):
    probe = registry.load_probe("rococo")
    options = {
        **probe.defaults,
        "influence": list(influence),
        "pictures": [],
    }  # the pictures do not exist
    run = Run("m", "0", "made", "0", "rococo", probe.version, (), options)
    for _ in case_workers.chunks(ITEMS, probe, run, 2):
        pass
    assert len(several) == n_processes


def test_a_process_that_is_paused_and_continued_sends_every_chunk_completely():
    sizes = [3_000_000, 2_000_000, 1_000_000]
    with contextlib.ExitStack() as stack:
        process = case_workers._start(stack)
        pickle.dump((operator.mul, [(b"a", size) for size in sizes]), process.stdin)
        process.stdin.close()
        select.select([process.stdout], [], [], 60)  # the pipe is filling
        time.sleep(0.1)
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.1)
        process.send_signal(signal.SIGCONT)
        assert [len(chunk) for chunk in case_workers._received(process)] == sizes
        assert process.wait(timeout=60) == 0


def test_printing_in_a_process_does_not_corrupt_its_output():
    """The standard output of a process carries only tables."""
    code = "import os, vlprobe.runs.case_workers as c; c._send_chunks = lambda given, out: print('noise'); c.work()"
    ran = subprocess.run([sys.executable, "-c", code], input=b"", capture_output=True, check=True)
    assert (ran.stdout, ran.stderr.strip()) == (b"", b"noise")


def test_the_columns_of_a_chunk_are_those_of_the_cases_table():
    batch, _ = next(case_workers.chunks(ITEMS, registry.load_probe("lgip"), make_run(), 1))
    assert batch.schema == case_workers.COLUMNS
    assert questions.SCHEMA.names == ["case", *batch.schema.names]
    assert pa.types.is_int64(questions.SCHEMA.field("case").type)
