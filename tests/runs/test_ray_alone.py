"""How a cluster is joined and left and what its workers share, without one."""

import socket
import sys

import pytest

from tests.test_architecture import PACKAGE, imports
from vlprobe.errors import InvalidInput, MissingDependency
from vlprobe.runs import executor, ray_pool
from vlprobe.runs.ray_executor import Job, Worker, takes_gpu
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.types import Run

IMITATION = """
import os
mode = os.environ.get("RAY_AUTH_MODE")
is_initialized = lambda: False
init = lambda address, **given: asked.append(address)
shutdown = lambda: None
asked = []
"""


@pytest.fixture
def imitated(tmp_path, monkeypatch):
    """In place of Ray what remembers how it was imported and asked."""
    (tmp_path / "ray.py").write_text(IMITATION)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "ray", None)
    del sys.modules["ray"]


@pytest.mark.parametrize(
    ("given", "set_address", "expected"),
    [
        ("", "", "local"),
        ("", "10.0.0.7", "10.0.0.7"),
        ("auto", "10.0.0.7", "10.0.0.7"),
        ("auto", "", "auto"),
    ],
)
def test_without_an_address_no_cluster_that_happens_to_be_there_is_joined(
    given, set_address, expected, imitated, monkeypatch
):
    monkeypatch.setenv("RAY_ADDRESS", set_address)
    with ray_pool.joined(given):
        assert sys.modules["ray"].asked == [expected]


@pytest.mark.parametrize("chosen", ["", "disabled"])
@pytest.mark.parametrize("where", ["RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "HOME", ""])
def test_a_token_is_used_where_there_is_one_and_nothing_else_was_chosen(
    where, chosen, imitated, tmp_path, monkeypatch
):
    for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_AUTH_MODE"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    path = tmp_path / ".ray" / "auth_token"
    path.parent.mkdir()
    path.write_text("secret")
    monkeypatch.setenv("HOME", str(tmp_path if where == "HOME" else tmp_path / "nobody"))
    if where.startswith("RAY"):
        monkeypatch.setenv(where, "secret" if where == "RAY_AUTH_TOKEN" else str(path))
    if chosen:
        monkeypatch.setenv("RAY_AUTH_MODE", chosen)
    with ray_pool.joined("local"):
        assert sys.modules["ray"].mode == (chosen or ("token" if where else None))


@pytest.mark.parametrize(("device", "gpu"), [("auto", True), ("cuda", True), ("cpu", False)])
def test_workers_take_gpus_where_there_are_any(device, gpu, monkeypatch):
    monkeypatch.setattr(ray_pool, "machines", lambda: [{"CPU": 16.0, "GPU": 8.0}, {"CPU": 4.0}])
    assert takes_gpu(device) is gpu
    assert (ray_pool.room(1, 1), ray_pool.room(4, 0), ray_pool.room(16, 0)) == (8, 5, 1)


def test_workers_share_the_slots_of_their_machine_to_read_pictures(monkeypatch):
    monkeypatch.setattr(
        ray_pool,
        "machines",
        lambda: [{"CPU": 17.0, "GPU": 8.0}, {"CPU": 64.0, "GPU": 4.0}, {"CPU": 4}],
    )
    assert (ray_pool.readers(1, 1), ray_pool.readers(3, 0)) == (2, 3)
    monkeypatch.setattr(ray_pool, "machines", lambda: [{"CPU": 2.0, "GPU": 8.0}])
    assert ray_pool.readers(1, 1) == 1


class Closing:
    """A worker that cannot write what it holds."""

    def __init__(self, error: BaseException) -> None:
        self.close = self  # as an actor's method
        self.error = error

    def remote(self) -> BaseException:
        return self.error


class Ended:
    """Of Ray, what ends a crew."""

    def __init__(self) -> None:
        self.exceptions = pytest.importorskip("ray", reason="needs requirements-ray.txt").exceptions
        self.killed: list[Closing] = []

    def wait(self, asked, num_returns, timeout):
        late = [one for one in asked if isinstance(one, TimeoutError)]
        return [one for one in asked if one not in late], late

    def get(self, error):
        raise error

    def kill(self, worker):
        self.killed.append(worker)


def ended(*errors: BaseException) -> ray_pool.Crew:
    crew = ray_pool.Crew.__new__(ray_pool.Crew)
    crew.ray, crew.idle, crew.open = Ended(), [Closing(error) for error in errors], {}
    return crew


def test_what_a_worker_cannot_write_at_the_end_is_told():
    crew = ended()
    full = crew.ray.exceptions.RayTaskError(
        "close", "...", InvalidInput("The disk of a worker is full.")
    )
    crew.idle = [Closing(full), Closing(full)]
    with pytest.raises(InvalidInput, match=r"^The disk of a worker is full\.$"):
        crew.end()
    assert len(crew.ray.killed) == 2 and not crew.idle


def test_workers_that_are_lost_or_late_at_the_end_are_counted_in_the_log(caplog):
    crew = ended(TimeoutError())
    crew.idle.append(Closing(crew.ray.exceptions.ActorDiedError()))
    crew.end()
    assert "2 workers of the Ray cluster may not have kept all embeddings" in caplog.text
    assert len(crew.ray.killed) == 2


def test_an_unknown_executor_is_told(tiny, store):
    with pytest.raises(InvalidInput, match="Expected one of: local, ray"):
        execute(Request(("control:random",), tiny, "lgip", executor="slurm"), store)


def test_nothing_imports_ray_before_a_cluster_is_joined():
    top = {name.partition(".")[0] for path in PACKAGE for name, at_top in imports(path) if at_top}
    assert "ray" not in top


def test_the_name_of_a_part_says_where_it_is():
    assert executor.part_name((12, 4096)) == "000000012-000004096"


def test_an_address_that_does_not_answer_is_told_at_once(tiny, store):
    pytest.importorskip("ray", reason="needs requirements-ray.txt")
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{held.getsockname()[1]}"
        request = Request(("control:random",), tiny, "lgip", executor="ray", ray_address=address)
        with pytest.raises(InvalidInput, match=f"No Ray cluster can be joined at '{address}'"):
            execute(request, store)


def test_without_ray_it_is_said_what_to_install(tiny, store, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    request = Request(("control:random",), tiny, "lgip", executor="ray")
    with pytest.raises(MissingDependency, match=r"pip install 'vlprobe\[scale\]'"):
        execute(request, store)


def test_a_worker_with_another_model_is_refused(store):
    run = Run("control:random", "0" * 32, "demo", "", "lgip", 1, ())
    job = Job(run, [], Request(("control:random",), "", "lgip"), store, threads=0)
    with pytest.raises(
        InvalidInput,
        match=r"not the same on all machines: its digest is .* on a worker and 0{32} here",
    ):
        Worker().load(job)
