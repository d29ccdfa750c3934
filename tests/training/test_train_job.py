"""Training runs as a job: it is started, executed, cancelled and resumed."""

from dataclasses import replace

import pytest

from vlprobe.runs import jobs
from vlprobe.storage.store import Store
from vlprobe.training import outputs, trainer


@pytest.fixture
def begun(straight, tmp_path, monkeypatch):
    """Return a store with a training job whose process has not started."""
    monkeypatch.setattr(jobs, "_spawn", lambda *_: None)
    store = Store(tmp_path / "cache")
    request = replace(straight.request, output=str(store.root / "trained" / "tuned.safetensors"))
    return store, jobs.start(request, store), request


def test_a_training_job_trains_and_reports_the_end(begun, straight):
    store, job_id, request = begun
    assert jobs.work(str(store.root), job_id) == 0
    job = jobs.read(store, job_id)
    assert (job.state, job.fraction, job.keys, job.error) == ("done", 1, (), "")
    assert job.request == request
    assert outputs.read_log(request.path)[-1]["held_out"] == straight.card["held_out"]["after"]
    job = jobs.jobs(store)[0]
    assert (job.models, job.dataset, job.task) == (
        (request.model,),
        request.datasets[0],
        "training",
    )


def test_a_cancelled_training_resumes_from_its_steps(begun, monkeypatch):
    store, job_id, request = begun
    note = trainer._Training._note

    def cancel_at_two(self, line):
        note(self, line)
        if line["step"] == 2:
            jobs.cancel(store, job_id)

    with monkeypatch.context() as patch:
        patch.setattr(trainer._Training, "_note", cancel_at_two)
        assert jobs.work(str(store.root), job_id) == 0
    assert jobs.read(store, job_id).state == "cancelled"
    assert [line["step"] for line in outputs.read_log(request.path)] == [0, 1, 2, 2]
    jobs.resume(store, job_id)
    assert jobs.work(str(store.root), job_id) == 0
    assert [line["step"] for line in outputs.read_log(request.path)] == [0, 1, 2, 2, 3, 4, 4]
    assert request.path.exists()


def test_a_training_job_that_cannot_run_fails_in_one_line(begun):
    store, _, request = begun
    job_id = jobs.start(replace(request, datasets=("demo",)), store)
    assert jobs.work(str(store.root), job_id) == 1
    assert "cannot be used for training" in jobs.read(store, job_id).error
