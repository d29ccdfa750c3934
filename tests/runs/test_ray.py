"""Runs on a real Ray cluster of two nodes on this machine, one of which dies halfway."""

import contextlib
import gc
import importlib.util
import multiprocessing
import os
import shutil
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

from tests.conftest import draw_fewer, make_tiny
from vlprobe.errors import InvalidInput, JobFailed, VlprobeError
from vlprobe.runs import answers, ray_cluster, ray_executor
from vlprobe.runs.request import Progress, Request
from vlprobe.runs.run import execute
from vlprobe.storage import access
from vlprobe.storage.store import Store

# Ray warns about processes that it ends itself and about settings whose meaning will change.
pytestmark = pytest.mark.filterwarnings("ignore")
NODE = {"num_cpus": 1, "num_gpus": 0, "object_store_memory": 80 << 20, "include_log_monitor": False}
TASKS = ("ray::do_task", "ray::wait_for_ever", "ray::die")
SETTINGS = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 300,
    "health_check_failure_threshold": 3,
    "prestart_worker_first_driver": False,
}


class TwoNodes:
    """A head node and a second node, which can be killed and added again."""

    def __init__(self, folder: str) -> None:
        from ray.cluster_utils import Cluster

        head = NODE | {"include_dashboard": False, "temp_dir": folder, "_system_config": SETTINGS}
        self.all = Cluster(initialize_head=True, head_node_args=head)
        self.address = str(self.all.address)
        self.other: Any = None
        self.n_killed = 0  # workers that died with the node

    def complete(self) -> "TwoNodes":
        if self.other is None:
            self.other = self.all.add_node(wait=False, **NODE)
        return self

    def kill_one(self) -> None:
        """Kill the second node at once, as if the machine died. Ray's own removal leaves workers alive for a second."""
        raylet = psutil.Process(self.other.all_processes["raylet"][0].process.pid)
        deadline = time.monotonic() + 60  # a worker on a new node starts after the first tasks end
        while not (busy := workers(raylet)) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.n_killed = len(busy)
        own = raylet.children(recursive=True)
        for process in own:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(own, timeout=120)
        self.all.remove_node(self.other, allow_graceful=False)
        self.other = None


@pytest.fixture(scope="module")
def started() -> Iterator[TwoNodes]:
    if importlib.util.find_spec("ray") is None:  # Ray reads its settings when it is imported
        pytest.skip("needs requirements-ray.txt")
    threads = torch.get_num_threads()
    with pytest.MonkeyPatch.context() as patch:
        folder = tempfile.mkdtemp(prefix="ray")  # socket names must be short
        # Ray's Cluster writes RAY_TMPDIR/ray/ray_current_cluster regardless of temp_dir and does not create the folder.
        # A new folder makes this independent of earlier uses of Ray on the machine.
        (Path(folder) / "ray").mkdir()
        environment = {"OMP_NUM_THREADS": "1", "RAY_AUTH_MODE": "disabled", "RAY_TMPDIR": folder}
        for name, value in (ray_cluster.QUIET | environment).items():
            patch.setenv(name, value)
        torch.set_num_threads(1)
        nodes = TwoNodes(folder)
        patch.setenv(access.RAY, nodes.address)
        yield nodes
        nodes.all.shutdown()
        torch.set_num_threads(threads)
        shutil.rmtree(folder, ignore_errors=True)
        gc.collect()  # warnings about files that Ray leaves open appear here, not in another test


@pytest.fixture(scope="module")
def joined(started: TwoNodes) -> Iterator[TwoNodes]:
    """Join the cluster once: Ray's driver does not support leaving and joining many times."""
    with ray_cluster.joined():
        yield started


@pytest.fixture(scope="module")
def demo_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Return a store in which the first demo pictures are drawn once."""
    with pytest.MonkeyPatch.context() as patch:
        draw_fewer(patch, 24)
        yield Store(tmp_path_factory.mktemp("drawn") / "cache")


@pytest.fixture
def nodes(joined: TwoNodes) -> TwoNodes:
    return joined.complete()


def workers(of: psutil.Process | None = None) -> list[psutil.Process]:
    """Return the processes that execute a task, among the descendants of this process or of a raylet."""
    processes = []
    for process in (of or psutil.Process()).children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if any(name in " ".join(process.cmdline()) for name in TASKS):
                processes.append(process)
    return processes


def wait_until_no_worker_is_left() -> None:
    deadline = time.monotonic() + 120  # Ray ends a worker with a short delay
    while workers():
        assert time.monotonic() < deadline, "a worker is left"
        time.sleep(0.05)


class Half(Progress):
    """Call `act` once when a labeled stage is half done, and record the parts at that time and later."""

    def __init__(self, label: str, act: Callable[[], None], parts: Path) -> None:
        self.label, self.act, self.parts = label, act, parts
        self.before: dict[str, int] | None = None
        self.after: dict[str, int] = {}

    def update(self, label, done, total):
        if self.before is None and label == self.label and 2 * done >= total:
            self.before = self._written()
            self.act()
        if label.endswith("intervals"):
            self.after = self._written()

    def remade(self) -> list[str]:
        return [name for name, number in (self.before or {}).items() if self.after[name] != number]

    def _written(self) -> dict[str, int]:
        return {path.name: path.stat().st_ino for path in self.parts.glob("0*.json")}


def make_request(nodes: TwoNodes | None, **changes) -> Request:
    request = Request(("demo:softmax",), "", "lgip", limit=16, examine=False)
    return replace(request, **({"executor": "ray"} if nodes else {}), **changes)


def sums(manifest: dict) -> dict[str, str]:
    return {file["name"]: file["sha256"] for file in manifest["files"]}


def run_locally(request: Request, store: Store) -> dict:
    """Run in this process, move the results and embeddings away, and return the manifest."""
    manifest = execute(request, store)[0]
    for folder in ("runs", "embeddings"):
        shutil.move(store.root / folder, store.root.parent / f"local-{request.probe}" / folder)
    return manifest


@pytest.mark.full  # 34 s; the cancelled run below checks the same bytes on a cluster of one node
def test_lgip_results_have_the_same_bytes_when_a_node_dies(nodes, demo_store, monkeypatch):
    monkeypatch.setattr(answers, "PART_CASES", 120)
    sent: list[ray_executor.RayJob] = []
    job = ray_executor.RayJob
    monkeypatch.setattr(
        ray_executor, "RayJob", lambda *fields: sent.append(job(*fields)) or sent[-1]
    )
    local = run_locally(make_request(None), demo_store)
    progress = Half(
        "demo:softmax on demo", nodes.kill_one, demo_store.run(local["key"]).folder / "parts"
    )
    spread = execute(make_request(nodes), demo_store, progress)[0]
    assert sums(spread) == sums(local)
    assert spread["spread"] == local["spread"]
    assert progress.before and len(progress.before) >= 4
    assert nodes.n_killed == 1, "no worker was lost with the node"
    assert sent[0].request.workers == 1, "each worker reads pictures for all machines"
    assert len(progress.remade()) <= 1, "more was done again than the part that the node was at"


@pytest.mark.full
def test_rococo_results_have_the_same_bytes_when_a_node_dies_during_encoding(
    nodes, demo_store, monkeypatch
):
    monkeypatch.setattr(answers, "PART_CASES", 80)
    monkeypatch.setattr("vlprobe.runs.ray_executor.ENCODED", 8)
    options = {
        "pictures": ["mix:0.9"],
        "picture_seeds": [1, 2],
        "policies": ["same-concept", "danger"],
    }
    request = make_request(None, probe="rococo", options=options)
    local = run_locally(request, demo_store)
    texts = sum(
        path.stat().st_size
        for path in (demo_store.root.parent / "local-rococo").rglob("texts/*.npy")
    )
    progress = Half(
        "demo:softmax on demo: embeddings",
        nodes.kill_one,
        demo_store.run(local["key"]).folder / "parts",
    )
    spread = execute(replace(request, executor="ray"), demo_store, progress)[0]
    assert sums(spread) == sums(local)
    assert progress.before == {}, "a part was scored before the gallery was encoded"
    assert nodes.n_killed == 1, "no worker was lost with the node"
    kept = sum(path.stat().st_size for path in demo_store.root.rglob("embeddings/*/texts/*.npy"))
    assert kept > texts, "the altered captions were not shared"


class Stop(Progress):
    def update(self, label, done, total):
        if label.startswith("control:random on") and done:
            raise KeyboardInterrupt


def test_a_cancelled_run_ends_its_workers_and_resumes_from_its_parts(joined, tmp_path, monkeypatch):
    monkeypatch.setattr(answers, "PART_CASES", 8)
    local = make_request(
        None, models=("control:random",), dataset=make_tiny(tmp_path / "tiny"), limit=0
    )
    request = replace(local, executor="ray")
    store = Store(tmp_path / "cache")
    expected = run_locally(local, store)
    with ray_cluster.joined():
        with pytest.raises(KeyboardInterrupt):
            execute(request, store, Stop())
        wait_until_no_worker_is_left()
        parts = store.run(expected["key"]).folder / "parts"
        kept = {path.name: path.stat().st_ino for path in parts.glob("0*.json")}
        assert kept
        progress = Half("control:random on " + local.dataset, lambda: None, parts)
        assert sums(execute(request, store, progress)[0]) == sums(expected)
    assert kept.items() <= progress.after.items()


def wait_for_ever(job_refs: list, kind: str, values: list) -> tuple[float, str]:
    """A task that never ends."""
    while True:
        time.sleep(1)


class StopWaiting(Progress):
    """Cancel the run once a worker of the parent process executes a task."""

    def update(self, label, done, total):
        if label.startswith("control:random on") and workers(psutil.Process().parent()):
            raise KeyboardInterrupt


def cancel_at_a_long_task(dataset: str, cache: Path) -> None:
    """Cancel a run whose worker never ends, and check that this process has then left the cluster."""
    import ray
    from ray import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    ray_executor.do_task = wait_for_ever
    request = Request(("control:random",), dataset, "lgip", executor="ray")
    with pytest.raises(KeyboardInterrupt):
        execute(replace(request, examine=False), Store(cache), StopWaiting())
    names = [thread.name for thread in threading.enumerate()]
    assert not any("Pool" in name or "Streaming" in name for name in names), (
        "a thread still waits for the cluster"
    )
    assert not ray.is_initialized(), "a thread joined the cluster again"


@pytest.mark.full  # imports torch and Ray in another process
def test_a_run_can_be_cancelled_during_a_long_task(started, tiny, tmp_path):
    """Use a separate process, because an active thread of Ray can end the process."""
    arguments = (tiny, tmp_path / "cache")
    process = multiprocessing.get_context("spawn").Process(
        target=cancel_at_a_long_task, args=arguments
    )
    process.start()
    process.join(300)
    assert process.exitcode == 0
    wait_until_no_worker_is_left()


def refused(request: Request, store: Store, kind: type[VlprobeError] = InvalidInput) -> str:
    with pytest.raises(VlprobeError) as raised:
        execute(request, store)
    assert type(raised.value) is kind
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_an_error_in_a_ray_worker_is_reported_in_one_line(joined, tiny, store):
    request = make_request(joined, models=("control:random",), dataset=tiny, probe="prsm", limit=0)
    assert "has the tag 'year', so pictures cannot be grouped by it" in refused(
        replace(request, options={"group": "year"}), store
    )


def test_a_run_that_needs_more_than_the_cluster_has_is_refused_before_scoring(joined, tiny, store):
    request = make_request(joined, models=("control:random",), dataset=tiny, limit=0)
    with ray_cluster.joined():
        assert "and 1 GPUs, but the Ray cluster has none" in refused(
            replace(request, device="cuda"), store
        )
        assert "Choose auto, cpu or cuda" in refused(replace(request, device="cuda:1"), store)
        torch.set_num_threads(3)
        try:
            assert (
                "3 CPUs (one per PyTorch thread) and 0 GPUs, but the Ray cluster has none. Use --threads 1"
                in refused(request, store)
            )
        finally:
            torch.set_num_threads(1)


class Cycle:
    """An object that only the garbage collector frees."""

    def __init__(self) -> None:
        self.itself = self


def test_garbage_is_collected_before_ray_shuts_down(joined, monkeypatch):
    import ray

    alive = []
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", lambda *_, **__: None)
    monkeypatch.setattr(ray_cluster, "_check_connection", lambda *_: None)
    monkeypatch.setattr(ray, "shutdown", lambda: alive.append(garbage()))
    with ray_cluster.joined():
        garbage = weakref.ref(Cycle())
    assert alive == [None]


@pytest.mark.full  # a worker starts, 10 s
def test_a_gallery_run_without_stored_embeddings_has_the_same_bytes_on_ray(joined, tiny, tmp_path):
    local = make_request(None, models=("control:random",), dataset=tiny, probe="prsm", limit=0)
    store = Store(tmp_path / "cache")
    expected = run_locally(local, store)
    request = replace(local, executor="ray", keep_embeddings=False)
    assert sums(execute(request, store)[0]) == sums(expected)
    assert not (store.root / "embeddings").exists()


def die(job_refs: list, kind: str, values: list) -> tuple[float, str]:
    """A task that ends its worker process."""
    os._exit(1)


@pytest.fixture
def by_value(monkeypatch) -> Iterator[Callable[[Callable], None]]:
    """Replace the worker's task by a function of this module, which workers cannot import."""
    from ray import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield lambda kind: monkeypatch.setattr(ray_executor, "do_task", kind)
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


@pytest.mark.full  # three workers start, 10 s
def test_a_task_that_ends_every_worker_is_abandoned(joined, tiny, store, by_value):
    by_value(die)
    request = make_request(joined, models=("control:random",), dataset=tiny, limit=0)
    message = refused(request, store, JobFailed)
    assert message.startswith("3 workers in the Ray cluster died on the same task (")
    assert len(message) < 240, "all the advice that Ray has"
