"""Jobs: child processes with a state on disk, which can be cancelled and whose death is noticed."""

import os
import time

import psutil
import pytest

from vlprobe.errors import InvalidInput, NotFound
from vlprobe.runs import job as job_files
from vlprobe.runs import jobs
from vlprobe.runs.request import PlanRequest, Request


def wait(store, job_id: str, states: tuple[str, ...] = jobs.ENDED) -> jobs.Job:
    """Wait until the job is in one of these states, and return it."""
    until = time.monotonic() + 300  # a busy machine
    while (job := jobs.read(store, job_id)).state not in states:
        assert time.monotonic() < until, f"still {job.state}: {jobs.log(store, job_id)}"
        time.sleep(0.02)  # leaves the CPU to the job
    return job


def request(tiny: str, **changes) -> Request:
    return Request(
        **{"models": ("control:random",), "dataset": tiny, "probe": "lgip", "device": "cpu"}
        | changes
    )


def test_one_job_runs_several_probes_and_lists_those_without_cases(tiny, store):
    probes = ("eqben", "lgip", "prsm")
    plan = PlanRequest(tuple(request(tiny, probe=probe, examine=False) for probe in probes))
    job_id = jobs.write(plan, store)
    assert jobs.read(store, job_id).request == plan
    jobs.resume(store, job_id)
    job = wait(store, job_id)
    assert (job.state, job.probes, job.dataset) == ("done", probes, tiny)
    stored = [store.run(key).manifest()["run"]["probe"] for key in job.keys]
    assert stored == ["lgip", "prsm"]
    (reason,) = job.left_out
    assert reason.startswith("eqben: Probe 'eqben' has no cases")
    assert f"Left out {reason}" in jobs.log(store, job_id)
    assert (job_files.read_status(store.root / "jobs" / job_id).probe, job.fraction) == ("prsm", 1)


def test_a_plan_without_any_case_fails_with_the_reasons(tiny, store):
    plan = PlanRequest(tuple(request(tiny, probe=probe) for probe in ("eqben", "visla")))
    job_id = jobs.write(plan, store)
    assert jobs.work(store.address, job_id) == 1
    job = jobs.read(store, job_id)
    assert job.state == "failed"
    assert "eqben: Probe 'eqben' has no cases" in job.error and "visla: " in job.error


def test_a_failed_job_has_a_one_line_error(tiny, store):
    job_id = jobs.write(request(tiny, models=("control:rondom",)), store)
    assert jobs.work(store.address, job_id) == 1
    job = jobs.read(store, job_id)
    assert job.state == "failed"
    assert "Did you mean 'control:random'" in job.error


def test_a_waiting_job_can_be_cancelled_and_resumed_and_then_lists_its_runs(tiny, store):
    import filelock

    (store.root / "jobs").mkdir(parents=True)
    turn = filelock.FileLock(store.root / "jobs" / ".cpu.lock")
    with turn:
        job_id = jobs.start(request(tiny), store)
        with pytest.raises(InvalidInput, match="still running"):
            jobs.resume(store, job_id)
        jobs.cancel(store, job_id)
        assert wait(store, job_id).state == "cancelled"
    jobs.resume(store, job_id)
    job = wait(store, job_id)
    assert job.state == "done"
    assert list(job.keys) == [manifest["key"] for manifest in store.runs()]
    assert jobs.jobs(store)[0].request == request(tiny)


def test_a_job_whose_process_has_no_arguments_yet_is_not_reported_dead(tiny, store, monkeypatch):
    job_id = jobs.write(request(tiny), store)
    jobs.write_json(store.root / "jobs" / job_id / "status.json", {"state": "queued", "queued": 0})
    jobs.write_json(store.root / "jobs" / job_id / "process.json", {"pid": os.getpid()})
    monkeypatch.setattr(psutil.Process, "cmdline", lambda process: [])
    assert jobs.read(store, job_id).state == "queued"
    monkeypatch.setattr(psutil.Process, "cmdline", lambda process: ["another"])
    assert jobs.read(store, job_id).state == "dead"


def test_an_unknown_job_is_refused(store):
    with pytest.raises(NotFound, match="No job named 'abc'"):
        jobs.read(store, "abc")
    with pytest.raises(NotFound):
        jobs.log(store, "../../etc")
