"""Jobs continue after their starter ends, run one after the other, and are never reported as running when they are
dead, even if the clock changes."""

import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import filelock
import psutil
import pytest

from tests.faults import forks
from vlprobe.errors import InvalidInput
from vlprobe.runs import jobs
from vlprobe.runs.job import JobReport
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.store import Store
from vlprobe.training.request import TrainRequest

ROOT = Path(__file__).resolve().parents[2]
DAY = 86_400
STARTER = """
import os, signal, sys
from pathlib import Path
from vlprobe.runs import jobs
from vlprobe.runs.job import JobReport
from vlprobe.runs.request import Request
from vlprobe.storage.store import Store
from vlprobe.training.request import TrainRequest
for model in ("control:random", "control:constant"):
    request = Request((model,), sys.argv[2], "lgip", device="cpu", limit=1, examine=False)
    print(jobs.start(request, Store(Path(sys.argv[1]))), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def wait_until(store: Store, job_id: str, reached) -> jobs.Job:
    """Wait until the job satisfies `reached`, and return it."""
    deadline = time.monotonic() + 300  # a busy machine
    while not reached(job := jobs.read(store, job_id)):
        assert time.monotonic() < deadline, f"still {job}: {jobs.log(store, job_id)}"
        time.sleep(0.05)
    return job


def test_jobs_survive_a_killed_dashboard_run_in_turn_and_can_be_resumed_after_a_kill(tiny, store):
    (store.root / "jobs").mkdir(parents=True)
    with filelock.FileLock(store.root / "jobs" / ".cpu.lock"):
        command = [sys.executable, "-c", STARTER, str(store.root), tiny]
        starter = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert starter.returncode == -signal.SIGKILL
        first, second = starter.stdout.split()
        wait_until(store, second, lambda job: job.label == "Waiting for cpu, 1 job before this one")
        assert wait_until(store, first, lambda job: job.device).label == "Waiting for cpu"
        facts = json.loads((store.root / "jobs" / second / "process.json").read_bytes())
        psutil.Process(facts["pid"]).kill()
        killed = wait_until(store, second, lambda job: job.ended)
        assert killed.state == "dead" and "Resume the job" in killed.error
        assert jobs.read(store, first).state == "queued"
        jobs.resume(store, second)
    for job_id in (first, second):
        assert wait_until(store, job_id, lambda job: job.ended).state == "done"
    ended = [jobs.read(store, job_id) for job_id in (first, second)]
    assert ended[0].updated <= ended[1].started  # one after the other
    whole = Store(store.root.parent / "whole")
    for model in ("control:random", "control:constant"):
        execute(Request((model,), tiny, "lgip", limit=1, examine=False), whole)
    assert forks.results(store.root) == forks.results(whole.root)


@contextlib.contextmanager
def process(*words: str) -> Iterator[int]:
    """Start a process that waits, with these words in its arguments."""
    child = subprocess.Popen([sys.executable, "-S", "-c", "input()", *words], stdin=subprocess.PIPE)
    try:
        while not psutil.Process(child.pid).cmdline():  # it can be empty when Popen returns
            pass
        yield child.pid
    finally:
        child.kill()
        child.communicate()


def write(store: Store, job_id: str, state: str = "running", **facts) -> Path:
    """Write the files of a job by hand."""
    folder = store.root / "jobs" / job_id
    folder.mkdir(parents=True)
    job_request = asdict(Request(("control:random",), "demo", "lgip")) | {
        "created": facts.pop("created", time.time())
    }
    (folder / "request.json").write_text(json.dumps(job_request))
    (folder / "status.json").write_text(
        json.dumps({"state": state, "device": "cpu", "updated": 1.0} | facts)
    )
    return folder


def test_a_process_that_reuses_the_pid_of_a_dead_job_is_not_mistaken_for_it(store):
    folder = write(store, "abc")
    with process("another") as pid:
        (folder / "process.json").write_text(json.dumps({"pid": pid}))
        assert jobs.read(store, "abc").state == "dead"
    with process("vlprobe.runs.jobs", "abc") as pid:
        (folder / "process.json").write_text(json.dumps({"pid": pid}))
        assert jobs.read(store, "abc").state == "running"


@pytest.mark.parametrize("shift", [-DAY, DAY])
def test_changing_the_clock_does_not_change_the_state_of_a_job(store, monkeypatch, shift):
    live, gone = write(store, "a1"), write(store, "b2")
    now = time.time()
    with process("vlprobe.runs.jobs", "a1") as pid:
        (live / "process.json").write_text(json.dumps({"pid": pid}))
        monkeypatch.setattr(time, "time", lambda: now + shift)
        assert jobs.read(store, "a1").state == "running"
        assert jobs.read(store, "b2").state == "dead"  # no process was recorded for this job
    assert gone.exists()


def test_a_job_reports_progress_after_the_clock_is_set_back(store, monkeypatch):
    folder = write(store, "abc")
    report = JobReport(folder)
    report.update("control:random on demo", 1, 10)
    now, ticks = time.time(), time.monotonic()
    monkeypatch.setattr(time, "time", lambda: now - DAY)
    monkeypatch.setattr(time, "monotonic", lambda: ticks + 1)
    report.update("control:random on demo", 5, 10)
    assert json.loads((folder / "status.json").read_bytes())["done"] == 5


def test_jobs_have_one_order_and_one_queue_even_if_the_clock_goes_back_or_stops(store):
    with process("vlprobe.runs.jobs", "a", "b", "c", "d") as pid:
        for job_id, queued in (("a", 5.0), ("b", 3.0), ("c", 3.0), ("d", 4.0)):
            folder = write(store, job_id, "queued", queued=queued, created=queued)
            (folder / "process.json").write_text(json.dumps({"pid": pid}))
        assert [job.id for job in jobs.jobs(store)] == ["a", "d", "c", "b"]
        first = {
            job.id: {one.id for one in jobs.jobs_ahead(store, job)} for job in jobs.jobs(store)
        }
    assert first == {"b": set(), "c": {"b"}, "d": {"b", "c"}, "a": {"b", "c", "d"}}


def test_a_running_job_is_ahead_of_a_waiting_one_and_ended_or_dead_jobs_are_not(store):
    with process("vlprobe.runs.jobs", "a", "b") as pid:
        for job_id, state, queued in (
            ("a", "queued", 1.0),
            ("b", "running", 2.0),
            ("c", "done", 0.0),
            ("d", "running", 0),
        ):
            folder = write(store, job_id, state, queued=queued)
            (folder / "process.json").write_text(json.dumps({"pid": pid}))
        assert [one.id for one in jobs.jobs_ahead(store, jobs.read(store, "a"))] == ["b"]


DEEP = "[" * 100_000
NO_JSON_OBJECT = ["", "{", "[]", "null", "5", DEEP, '{"x": ' + DEEP, "\x00", "\xff"]
NO_STATUS = [
    *(
        *NO_JSON_OBJECT,
        "{}",
        '{"label": "x"}',
        '{"state": null}',
        '{"state": "sleeping"}',
        '{"state": []}',
    ),
    *(
        '{"state": "done", "rocket": 1}',
        '{"state": "done", "created": 5}',
        '{"state": "done", "label": 5}',
    ),
    *(
        '{"state": "done", "keys": "abc"}',
        '{"state": "done", "keys": [5]}',
        '{"state": "done", "done": "x"}',
    ),
    *(
        '{"state": "done", "total": NaN}',
        '{"state": "done", "updated": 1e999}',
        '{"state": "done", "queued": 1e99}',
    ),
    *('{"state": "done", "started": true}', '{"state": "done", "label": "\\ud800"}'),
    '{"state": "done", "done": ' + "9" * 5000 + "}",
]
WRONG_REQUESTS = [
    *(
        {"models": 5},
        {"models": [5]},
        {"dataset": None},
        {"options": []},
        {"limit": "x"},
        {"seed": 10**30},
        {"x": 1},
    ),
    *(
        {"created": "now"},
        {"created": 1e300},
        {"created": float("nan")},
        {"examine": 1},
        {"probe": "\ud800"},
    ),
]


def changed_request(**changes) -> str:
    return json.dumps(
        asdict(Request(("control:random",), "demo", "lgip")) | {"created": 1.0} | changes
    )


def repaired(store: Store) -> list[str]:
    """Return the lines of `vlprobe verify --repair`, and check that a second verify finds nothing."""
    from click.testing import CliRunner

    from vlprobe.cli.main import main

    command = ["--cache", str(store.root), "verify"]
    done = CliRunner().invoke(main, [*command, "--repair"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert CliRunner().invoke(main, command, catch_exceptions=False).exit_code == 0
    return done.stdout.splitlines()


@pytest.mark.parametrize("text", NO_STATUS, ids=lambda text: text[:40])
def test_a_job_with_a_damaged_status_counts_as_dead_hides_no_other_job_and_is_repaired(store, text):
    folder = write(store, "abc")
    write(store, "def", "done")
    (folder / "status.json").write_text(text, "latin-1")
    job = jobs.read(store, "abc")
    assert job.state == "dead"
    assert "Resume it" in job.error
    assert {one.id for one in jobs.jobs(store)} == {"abc", "def"}
    assert repaired(store) == [f"{folder / 'status.json'}: it differs from what was written"]
    assert jobs.read(store, "abc").error == "The job never started. Resume it."


@pytest.mark.parametrize(
    "text",
    [*NO_JSON_OBJECT, "{}", *(changed_request(**one) for one in WRONG_REQUESTS)],
    ids=lambda text: text[-40:],
)
def test_a_job_with_a_damaged_request_is_reported_hides_no_other_job_and_is_deleted(store, text):
    folder = write(store, "abc")
    write(store, "def", "done")
    (folder / "request.json").write_text(text, "latin-1")
    with pytest.raises(InvalidInput, match="is damaged"):
        jobs.read(store, "abc")
    assert [one.id for one in jobs.jobs(store)] == ["def"]
    assert [str(folder / "request.json") in str(error) for error in jobs.damaged(store)] == [True]
    assert repaired(store) == [f"{folder / 'request.json'}: it differs from what was written"]
    assert jobs.damaged(store) == []


@pytest.mark.parametrize(
    "text",
    [
        *NO_JSON_OBJECT,
        "{}",
        '{"pid": null}',
        '{"pid": -1}',
        '{"pid": true}',
        '{"pid": 1e9}',
        f'{{"pid": {10**30}}}',
    ],
)
def test_a_job_with_damaged_process_data_counts_as_dead_and_is_repaired(store, text):
    folder = write(store, "abc")
    waiting = write(store, "def", "queued", queued=5.0)
    (folder / "process.json").write_text(text, "latin-1")
    with process("vlprobe.runs.jobs", "def") as pid:
        (waiting / "process.json").write_text(json.dumps({"pid": pid}))
        assert jobs.read(store, "abc").state == "dead"
        assert "process.json" in jobs.read(store, "abc").error
        assert jobs.jobs_ahead(store, jobs.read(store, "def")) == []
    assert repaired(store) == [f"{folder / 'process.json'}: it differs from what was written"]
    assert jobs.read(store, "abc").request == Request(("control:random",), "demo", "lgip")


@pytest.mark.parametrize("name", ["abc (copy)", "copy of abc", "-abc", "--help", "ABC", "a" * 41])
def test_a_folder_that_is_not_a_job_blocks_no_job_and_is_not_deleted(store, name):
    folder = write(store, name)
    (folder / "status.json").write_text("null")
    write(store, "def", "done")
    assert [one.id for one in jobs.jobs(store)] == ["def"]
    assert jobs.jobs_ahead(store, jobs.read(store, "def")) == []
    assert repaired(store) == []
    assert (folder / "request.json").exists()


def test_repair_does_not_delete_a_job_that_has_not_started(store):
    job_id = jobs.write(Request(("control:random",), "demo", "lgip"), store)
    assert repaired(store) == []
    assert jobs.read(store, job_id).error == "The job never started. Resume it."


def test_a_folder_in_place_of_a_job_file_is_reported_and_repaired(store):
    for job_id, name in (("a", "request.json"), ("b", "status.json"), ("c", "process.json")):
        folder = write(store, job_id)
        (folder / name).unlink(missing_ok=True)
        (folder / name).mkdir()
    assert len(jobs.jobs(store)) == 2
    assert "cannot be read (Is a directory)" in str(jobs.damaged(store)[0])
    assert len(repaired(store)) == 3
    assert len(jobs.jobs(store)) == 2


def test_every_field_of_a_job_request_is_read_back(store):
    training = TrainRequest("demo:weak", ("demo-train",), "x.safetensors")
    for request in (Request(("control:random",), "demo", "lgip", {"k": [1, "a"]}), training):
        assert jobs.read(store, jobs.write(request, store)).request == request


def test_only_the_end_of_a_job_log_is_read_and_a_missing_log_is_empty(store):
    folder = write(store, "abc", "failed")
    assert jobs.log(store, "abc") == ""
    (folder / "log.txt").write_bytes(b"\xff line\n" * 200_000 + b"the end\n")
    assert jobs.log(store, "abc").splitlines()[-2:] == ["\ufffd line", "the end"]
    assert len(jobs.log(store, "abc", 10)) < 100


def test_only_one_of_two_people_who_resume_a_job_at_once_starts_it(store, monkeypatch):
    write(store, "abc", "failed")
    spawned = []

    def spawn(store: Store, job_id: str) -> None:
        spawned.append(job_id)
        folder = store.root / "jobs" / job_id
        (folder / "process.json").write_text(json.dumps({"pid": pid}))
        (folder / "status.json").write_text(json.dumps({"state": "queued"}))

    monkeypatch.setattr(jobs, "_spawn", spawn)
    errors = []

    def press() -> None:
        try:
            jobs.resume(store, "abc")
        except InvalidInput as error:
            errors.append(str(error))

    with process("vlprobe.runs.jobs", "abc") as pid:
        both = [threading.Thread(target=press) for _ in range(2)]
        for one in both:
            one.start()
        for one in both:
            one.join()
    assert spawned == ["abc"]
    assert errors == ["Job 'abc' is still running. Cancel the job or wait."]


def test_failing_to_start_the_process_of_a_job_is_reported(store, monkeypatch):
    def refuse(*_, **__):
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    monkeypatch.setattr(subprocess, "Popen", refuse)
    with pytest.raises(InvalidInput, match=r"cannot be started \(Cannot allocate memory\)"):
        jobs.start(Request(("control:random",), "demo", "lgip"), store)


def test_two_names_of_the_same_device_share_a_queue(monkeypatch):
    monkeypatch.setattr(
        jobs,
        "pick_device",
        {"auto": "cuda", "cuda": "cuda", "cuda:0": "cuda:0", "cuda:1": "cuda:1"}.get,
    )
    named = {
        name: jobs._device(Request(("m",), "d", "lgip", device=name))
        for name in ("auto", "cuda", "cuda:0", "cuda:1", "cpu")
    }
    assert named["auto"] == named["cuda"] == named["cuda:0"] == "cuda:0"
    assert named["cuda:1"] == "cuda:1"
    assert named["cpu"] == "cpu"
