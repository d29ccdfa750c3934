"""Runs on a real Ray cluster of two nodes on this machine, one of which goes away half-way."""

import contextlib
import gc
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

from tests.conftest import make_tiny
from vlprobe import __version__
from vlprobe.datasets import demo
from vlprobe.errors import InvalidInput, JobFailed, VlprobeError
from vlprobe.runs import answers, ray_pool
from vlprobe.runs.request import Progress, Request
from vlprobe.runs.run import execute
from vlprobe.storage import access
from vlprobe.storage.store import Store

# Ray's own, of processes that end when they are told to and of settings that will mean something else one day.
pytestmark = pytest.mark.filterwarnings("ignore")
NODE = {"num_cpus": 1, "num_gpus": 0, "object_store_memory": 80 << 20, "include_log_monitor": False}
SETTINGS = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 300,
    "health_check_failure_threshold": 3,
    "prestart_worker_first_driver": False,
}


class TwoNodes:
    """A head and another node; the other one can go and come."""

    def __init__(self, folder: str) -> None:
        from ray.cluster_utils import Cluster

        head = NODE | {"include_dashboard": False, "temp_dir": folder, "_system_config": SETTINGS}
        self.all = Cluster(initialize_head=True, head_node_args=head)
        self.other: Any = None

    def complete(self) -> "TwoNodes":
        if self.other is None:
            self.other = self.all.add_node(wait=False, **NODE)
        return self

    def kill_one(self) -> None:
        """As a machine dies: all at once. Ray's own way leaves workers alive for a second."""
        raylet = psutil.Process(self.other.all_processes["raylet"][0].process.pid)
        own = raylet.children(recursive=True)
        for process in own:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(own, timeout=120)
        self.all.remove_node(self.other, allow_graceful=False)
        self.other = None


@pytest.fixture(scope="module")
def started() -> Iterator[TwoNodes]:
    pytest.importorskip("ray", reason="needs requirements-ray.txt")
    threads = torch.get_num_threads()
    with pytest.MonkeyPatch.context() as patch:
        folder = tempfile.mkdtemp(prefix="ray")  # names of sockets are short
        # Ray's Cluster writes RAY_TMPDIR/ray/ray_current_cluster whatever temp_dir says, and does not make the folder.
        # As a new one it is the same on every machine, whether or not Ray was used there before.
        (Path(folder) / "ray").mkdir()
        environment = {"OMP_NUM_THREADS": "1", "RAY_AUTH_MODE": "disabled", "RAY_TMPDIR": folder}
        for name, value in (ray_pool.QUIET | environment).items():
            patch.setenv(name, value)
        torch.set_num_threads(1)
        nodes = TwoNodes(folder)
        patch.setenv(access.RAY, nodes.all.address)
        yield nodes
        nodes.all.shutdown()
        torch.set_num_threads(threads)
        shutil.rmtree(folder, ignore_errors=True)
        gc.collect()  # what Ray leaves open is told here, and not in a test of somebody else


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store in which the demo's first pictures are drawn once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(demo.SIZES, "test", 24)
        yield Store(tmp_path_factory.mktemp("drawn") / "cache")


@pytest.fixture
def nodes(started: TwoNodes) -> TwoNodes:
    return started.complete()


@pytest.fixture
def crews(monkeypatch: pytest.MonkeyPatch) -> list["Watched"]:
    """All crews of a test, which remember whom they hired and what was lost."""
    found: list[Watched] = []

    class Own(Watched):
        def __init__(self, *given) -> None:
            super().__init__(*given)
            found.append(self)

    monkeypatch.setattr(ray_pool, "Crew", Own)
    return found


class Watched(ray_pool.Crew):
    def __init__(self, *given) -> None:
        super().__init__(*given)
        self.given = given[1]
        self.hired: list[Any] = []
        self.missed: list[str] = []
        self.held: list[tuple] = []
        self.together = self.room

    def _ask(self, worker, task, *given):
        if task is ray_pool._HELLO:
            self.hired.append(worker)
        assert hash(task) is not None, "a task that is lost is counted"
        super()._ask(worker, task, *given)

    def _answers(self):
        """As it is, but that nobody begins before all have loaded: what is killed later is at work."""
        for answer in super()._answers():
            if answer[1] is not ray_pool._LOAD or not self.together:
                yield answer
                continue
            self.held.append(answer)
            if len(self.held) == self.together:
                yield from self.held
                self.held, self.together = [], 0

    def _hire(self, wanted):
        if not self.held:
            super()._hire(wanted)

    def _count(self, task, error):
        self.missed.append(task[0])
        super()._count(task, error)


class Half(Progress):
    """Does something once, when half of what a label says is done, and keeps which parts there are then and later."""

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
        return [name for name, number in self.before.items() if self.after[name] != number]

    def _written(self) -> dict[str, int]:
        return {path.name: path.stat().st_ino for path in self.parts.glob("0*.json")}


def asked(nodes: TwoNodes | None, **changes) -> Request:
    request = Request(("demo:softmax",), "", "lgip", limit=16, examine=False)
    return replace(
        request,
        **({"executor": "ray", "ray_address": nodes.all.address} if nodes else {}),
        **changes,
    )


def sums(manifest: dict) -> dict[str, str]:
    return {file["name"]: file["sha256"] for file in manifest["files"]}


def run_locally(request: Request, store: Store) -> dict:
    """The manifest of a run in this process, whose results and embeddings are then put away."""
    manifest = execute(request, store)[0]
    for folder in ("runs", "embeddings"):
        shutil.move(store.root / folder, store.root.parent / f"local-{request.probe}" / folder)
    return manifest


def test_lgip_is_the_same_to_the_byte_when_a_node_dies(nodes, crews, drawn, monkeypatch):
    monkeypatch.setattr(answers, "PART_CASES", 120)
    local = run_locally(asked(None), drawn)
    progress = Half(
        "demo:softmax on demo", nodes.kill_one, drawn.run(local["key"]).folder / "parts"
    )
    spread = execute(asked(nodes), drawn, progress)[0]
    assert sums(spread) == sums(local)
    assert spread["spread"] == local["spread"]
    assert len(progress.before) >= 4
    assert crews[0].missed, "nothing was lost with the node"
    assert crews[0].given.request.workers == 1, "each worker reads pictures for all machines"
    assert len(progress.remade()) <= 1, "more was done again than the part that the node was at"


@pytest.mark.full
def test_rococo_is_the_same_to_the_byte_when_a_node_dies_while_the_gallery_is_encoded(
    nodes, crews, drawn, monkeypatch
):
    monkeypatch.setattr(answers, "PART_CASES", 80)
    monkeypatch.setattr("vlprobe.runs.ray_executor.ENCODED", 8)
    options = {
        "pictures": ["mix:0.9"],
        "picture_seeds": [1, 2],
        "policies": ["same-concept", "danger"],
    }
    request = asked(None, probe="rococo", options=options)
    local = run_locally(request, drawn)
    texts = sum(
        path.stat().st_size for path in (drawn.root.parent / "local-rococo").rglob("texts/*.npy")
    )
    progress = Half(
        "demo:softmax on demo: embeddings", nodes.kill_one, drawn.run(local["key"]).folder / "parts"
    )
    spread = execute(
        replace(request, executor="ray", ray_address=nodes.all.address), drawn, progress
    )[0]
    assert sums(spread) == sums(local)
    assert progress.before == {}, "a part was scored before the gallery was encoded"
    assert crews[0].missed, "nothing was lost with the node"
    kept = sum(path.stat().st_size for path in drawn.root.rglob("embeddings/*/texts/*.npy"))
    assert kept > texts, "the altered captions were not shared"


class Stop(Progress):
    def update(self, label, done, total):
        if label.startswith("control:random on") and done:
            raise KeyboardInterrupt


def test_a_cancelled_run_leaves_no_worker_and_goes_on_from_its_parts_with_a_node_that_comes_later(
    started, crews, tmp_path, monkeypatch
):
    import ray

    monkeypatch.setattr(answers, "PART_CASES", 8)
    monkeypatch.setattr(ray_pool, "ROOM", 0.0)
    local = asked(None, models=("control:random",), dataset=make_tiny(tmp_path / "tiny"), limit=0)
    request = replace(local, executor="ray", ray_address=started.all.address)
    store = Store(tmp_path / "cache")
    expected = run_locally(local, store)
    with ray_pool.joined(started.all.address):
        with pytest.raises(KeyboardInterrupt):
            execute(request, store, Stop())
        deadline = time.monotonic() + 120  # Ray ends a worker a moment after it was told to
        with pytest.raises(ray.exceptions.RayActorError):
            while time.monotonic() < deadline:
                ray.get(crews[0].hired[0].hello.remote())
        parts = store.run(expected["key"]).folder / "parts"
        kept = {path.name: path.stat().st_ino for path in parts.glob("0*.json")}
        assert kept
        progress = Half("control:random on " + local.dataset, started.complete, parts)
        assert sums(execute(request, store, progress)[0]) == sums(expected)
    assert kept.items() <= progress.after.items()
    assert progress.remade() == []
    assert len(crews[0].hired) == 1
    assert len(crews[1].hired) == 2, "the room of the new node was not used"


def refused(request: Request, store: Store, kind: type[VlprobeError] = InvalidInput) -> str:
    with pytest.raises(VlprobeError) as raised:
        execute(request, store)
    assert type(raised.value) is kind
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_an_error_of_a_worker_is_one_line_here(started, tiny, store):
    request = asked(started, models=("control:random",), dataset=tiny, probe="prsm", limit=0)
    assert "has the tag 'year' to group by" in refused(
        replace(request, options={"group": "year"}), store
    )


def test_a_worker_with_another_version_is_refused(started, monkeypatch):
    monkeypatch.setattr(ray_pool, "__version__", "0.0.1")
    with ray_pool.joined(started.all.address):
        crew = ray_pool.Crew(deadly(), None, 1, 0, 1, lambda: None)
        with pytest.raises(
            InvalidInput, match=r"A worker .* has vlprobe .*, this machine has 0.0.1\."
        ):
            crew.do([("die", ())], lambda task, answer: None)
        crew.end(at_once=True)


def test_what_no_machine_has_is_said_before_anything_is_asked(started, tiny, store):
    request = asked(started, models=("control:random",), dataset=tiny, limit=0)
    with ray_pool.joined(started.all.address):
        assert "No machine of the Ray cluster has a GPU" in refused(
            replace(request, device="cuda"), store
        )
        assert "Choose auto, cpu or cuda" in refused(replace(request, device="cuda:1"), store)
        searched = replace(request, probe="prsm", keep_embeddings=False)
        assert "--no-embedding-cache" in refused(searched, store)
        torch.set_num_threads(3)
        try:
            assert "Choose --threads 1," in refused(request, store)
        finally:
            torch.set_num_threads(1)


def deadly() -> type:
    """A worker that takes its process with it; of no module, so that it is sent as it is."""

    class Deadly:
        def hello(self) -> str:
            return __version__

        def load(self, job: object) -> None:
            pass

        def die(self) -> None:
            os._exit(1)

    return Deadly


def test_work_that_takes_every_worker_with_it_is_given_up(started, monkeypatch):
    monkeypatch.setattr(ray_pool, "ROOM", 0.0)
    with ray_pool.joined(started.all.address):
        crew = ray_pool.Crew(deadly(), None, 1, 0, 1, lambda: None)
        with pytest.raises(
            JobFailed,
            match=r"3 workers of the Ray cluster were lost at the same work \(die \(\)\): ",
        ) as said:
            crew.do([("die", ())], lambda task, answer: None)
        assert len(str(said.value)) < 240, "all the advice that Ray has"
        crew.end(at_once=True)


def test_a_cluster_that_has_no_room_for_long_is_told(started, monkeypatch):
    import ray

    monkeypatch.setattr(ray_pool, "PATIENCE", 0.2)
    with ray_pool.joined(started.all.address):
        others = [ray.remote(deadly()).options(num_cpus=1).remote() for _ in ray.nodes()]
        ray.get([others[0].hello.remote()])
        deadline = time.monotonic() + 120  # the next is started a moment later
        while ray.available_resources().get("CPU"):
            assert time.monotonic() < deadline, "they do not take what there is"
            time.sleep(0.05)
        crew = ray_pool.Crew(deadly(), None, 1, 0, 1, lambda: None)
        with pytest.raises(JobFailed, match=r"no room for a worker.*the same command goes on"):
            crew.do([("die", ())], lambda task, answer: None)
        crew.end(at_once=True)
