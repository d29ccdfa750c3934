"""Workers on the machines of a Ray cluster: hired where there is room, given one task at a time,
replaced when lost.

Ray is imported when a cluster is joined. A cluster that this machine joins receives its Ray token,
so the cluster must be in VLPROBE_RAY: `vlprobe run --executor ray`, a Python call and `vlprobe
dashboard --ray` put it there; a link, a form or the file of a job cannot.
"""

import contextlib
import faulthandler
import logging
import os
import re
import socket
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vlprobe import __version__
from vlprobe.errors import InvalidInput, JobFailed, MissingDependency, VlprobeError
from vlprobe.runs import processes
from vlprobe.storage.access import APIS, PLUGINS, RAY

if TYPE_CHECKING:
    from ray.exceptions import RayTaskError

LOOK = 0.5  # seconds between two looks at what is done while nothing is
ROOM = 2.0  # seconds between two looks at the machines of the cluster
PATIENCE = 120.0  # seconds without any worker after which a run fails
TRIES = 3  # workers that may be lost with one and the same task, or while they start
ANSWERS = 5.0  # seconds in which an address accepts a connection
CONNECTING = 25.0  # seconds in which a cluster accepts this machine
LOCAL = "local"  # a new cluster on this machine
ADDRESS = re.compile(
    r"([A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|\[[0-9A-Fa-f:.]{2,45}\]):[0-9]{1,5}"
)
CLOSING = 60.0  # seconds in which workers write what they still hold
# Ray's own: it leaves the devices of a worker that takes no GPU as they are. That it tells nobody of its use is said in
# `vlprobe/__init__.py`.
QUIET = {"RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
# Ray then gives a local cluster the address 127.0.0.1, as on Windows and macOS; on Linux it listens on all interfaces.
LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}

Task = tuple[str, tuple]  # a method of a worker and its arguments: numbers, and tuples of them
_log = logging.getLogger(__name__)
_HELLO: Task = ("hello", ())
_LOAD: Task = ("load", ())


def parse_address(text: str, accepts_local: bool = True) -> str:
    """Return the address of a cluster, or "local" for an empty text: a new cluster on this machine.

    Raises InvalidInput unless the text is HOST:PORT or, where it is accepted, "local". Ray would also
    import a module that a scheme such as "name://" names.
    """
    address = text.strip() or LOCAL
    if not (ADDRESS.fullmatch(address) or (accepts_local and address == LOCAL)):
        raise InvalidInput(
            f"'{text}' is not the address of a Ray cluster. Expected HOST:PORT, such as 10.0.0.7:6379."
        )
    return address


def allow(address: str) -> None:
    """Let this process and the processes that it starts use one cluster.

    Call this only with what the owner of this process typed, never with the content of a link, a form
    or a file. An empty address means RAY_ADDRESS, if set.
    """
    os.environ[RAY] = _resolve(address)


def allowed_cluster() -> str:
    """Return the HOST:PORT that the owner of this process named, or "" if there is none."""
    address = os.environ.get(RAY, "")
    return "" if address == LOCAL else address


def refuse_unnamed(address: str) -> None:
    """Raise InvalidInput unless the owner of this process named this cluster."""
    if _resolve(address) != os.environ.get(RAY):
        raise InvalidInput(
            f"Ray cluster '{address or LOCAL}' is not allowed here. Only the person who starts the dashboard can name "
            "one: vlprobe dashboard --ray HOST:PORT."
        )


def _resolve(address: str) -> str:
    return parse_address(address or os.environ.get("RAY_ADDRESS", ""))


@contextlib.contextmanager
def joined(address: str, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Connect to a Ray cluster while the block runs.

    Ray's messages go to stderr. The token of this machine, if any, is sent to this address.

    Args:
        address: HOST:PORT, or "local" for a new cluster on 127.0.0.1; "" means RAY_ADDRESS, if set.
        waiting: Called twice a second while the cluster does not answer; may raise to stop.

    Raises:
        MissingDependency: Ray is not installed.
        InvalidInput: the owner of this process did not name the address, or no cluster answers
            within CONNECTING seconds.
    """
    refuse_unnamed(address)
    address = _resolve(address)
    for name, value in (QUIET | (LOOPBACK if address == LOCAL else {})).items():
        os.environ.setdefault(name, value)
    if _has_token():  # Ray sends it to a given address only if this is set when Ray is imported
        os.environ.setdefault("RAY_AUTH_MODE", "token")
    try:
        import ray
    except ImportError:
        raise MissingDependency("--executor ray", "ray", "'vlprobe[scale]'") from None
    if ray.is_initialized():
        yield
        return
    if address != LOCAL:
        _check_connection(address, waiting)
    with contextlib.redirect_stdout(sys.stderr):
        reason = _connect(address)
        if reason:
            raise _unreachable(address, reason)
        try:
            yield
        finally:
            ray.shutdown()


def _connect(address: str) -> str:
    """Connect this process to a cluster; return why that failed, or ""."""
    try:
        if address != LOCAL:  # Ray itself would try for minutes
            host, _, port = address.rpartition(":")
            socket.create_connection((host.strip("[]"), int(port)), ANSWERS).close()
        import ray

        ray.init(
            address,
            log_to_driver=False,
            logging_level=logging.ERROR,
            include_dashboard=False if address == LOCAL else None,
        )
    except (OSError, OverflowError, RuntimeError, ValueError) as error:
        return str(error).strip().partition("\n")[0] or type(error).__name__
    return ""


def _check_connection(address: str, waiting: Callable[[], None]) -> None:
    """Raise InvalidInput unless another process can connect to the cluster in time.

    `ray.init` cannot be interrupted: with an address that accepts connections and never answers, it
    ignored SIGTERM for more than 180 s.
    """
    deadline = time.monotonic() + CONNECTING
    with processes.start(
        __name__, address, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as child:
        try:
            while child.poll() is None:
                waiting()
                if time.monotonic() > deadline:
                    raise _unreachable(address, f"no answer in {CONNECTING:g} s")
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(LOOK)
        finally:
            child.kill()
        if child.returncode:
            reason = child.stdout.read().decode(errors="replace") if child.stdout else ""
            raise _unreachable(address, reason or "Ray ended without a reason")


def _unreachable(address: str, reason: str) -> InvalidInput:
    return InvalidInput(
        f"No Ray cluster can be joined at '{address}' ({reason}). Start one with `ray start --head`, and give its "
        "address with --ray-address HOST:6379. If it has a token, copy the token to this machine."
    )


def _has_token() -> bool:
    path = os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token"
    return bool(os.environ.get("RAY_AUTH_TOKEN")) or Path(path).is_file()


def room(cpus: int, gpus: int) -> int:
    """How many workers that take so many CPU slots and GPUs the machines of the cluster hold."""
    return sum(
        min(
            int(machine.get(name, 0) // each)
            for name, each in (("CPU", cpus), ("GPU", gpus))
            if each
        )
        for machine in machines()
    )


def machines() -> list[dict[str, float]]:
    """What each machine that is alive has: CPU, GPU and others."""
    import ray

    return [node["Resources"] for node in ray.nodes() if node["Alive"]]


def readers(cpus: int, gpus: int) -> int:
    """How many threads read pictures for a worker: one a CPU slot, or its share of the slots
    beside the GPUs.
    """
    shares = [
        int(machine.get("CPU", 0) // machine["GPU"])
        for machine in machines()
        if machine.get("GPU", 0) >= 1
    ]
    return max(1, min(shares, default=1)) if gpus else cpus


def worker_environment(threads: int) -> dict[str, str]:
    """What workers have of this process's environment: the threads of libraries, the plug-ins and
    the servers that were named here, no others.
    """
    return {
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(threads)),
        PLUGINS: os.environ.get(PLUGINS, ""),
        APIS: os.environ.get(APIS, ""),
    }


class Crew:
    """Workers of one kind, each on its own CPU slots or GPU.

    Args:
        worker: A class of actors: `hello` returns its version of vlprobe, `load` takes the job,
            `close` ends its work; its other methods are tasks. It may raise VlprobeError kinds that
            are made of one message.
        job: What each worker is given once.
        cpus: CPU slots of a worker.
        gpus: GPUs of a worker.
        threads: That libraries of a worker take for arithmetic.
        waiting: Called twice a second; may raise to stop.
    """

    def __init__(
        self,
        worker: type,
        job: object,
        cpus: int,
        gpus: int,
        threads: int,
        waiting: Callable[[], None],
    ) -> None:
        import ray

        self.ray, self.cpus, self.gpus, self.waiting = ray, cpus, gpus, waiting
        self.kind = ray.remote(worker).options(
            num_cpus=cpus,
            num_gpus=gpus,
            max_restarts=0,
            runtime_env={"env_vars": worker_environment(threads)},
        )
        self.job = ray.put(job)
        self.idle: list[Any] = []
        self.open: dict[
            Any, tuple[Any, Task]
        ] = {}  # what is awaited: which worker is at which task
        self.lost: Counter[Task] = Counter()
        self.heard = self.looked = time.monotonic()
        self.room = room(cpus, gpus)

    def end(self, at_once: bool = False) -> None:
        """Ends all workers, unless `at_once` when `close` has been done by those who have no task.

        Raises VlprobeError as a worker raised it in `close`.
        """
        try:
            if self.idle and not at_once:
                self._close()
        finally:
            for worker in [*self.idle, *(worker for worker, _ in self.open.values())]:
                self.ray.kill(worker)
            self.idle, self.open = [], {}

    def _close(self) -> None:
        closing = [worker.close.remote() for worker in self.idle]
        closed, late = self.ray.wait(closing, num_returns=len(closing), timeout=CLOSING)
        lost = len(late)
        for ref in closed:
            try:
                self.ray.get(ref)
            except self.ray.exceptions.RayTaskError as error:
                raise _cause(error) from None
            except self.ray.exceptions.RayError:
                lost += 1
        if lost:
            _log.warning(
                "%d workers of the Ray cluster may not have kept all embeddings: they were lost.",
                lost,
            )

    def do(self, tasks: Sequence[Task], done: Callable[[Task, Any], None]) -> None:
        """Has every task done, in about their order.

        Args:
            tasks: Each is done once; where its worker is lost meanwhile, by another again.
            done: Called with a task and what its method returned.

        Raises:
            JobFailed: no worker can be had, or a task takes every worker that is at it with it.
            VlprobeError: as a worker raised it.
        """
        left = deque(tasks)
        busy = len(left)
        self.heard = time.monotonic()
        while busy:
            self._hire(busy)
            while left and self.idle:
                self._ask(self.idle.pop(), left.popleft())
            for worker, task, answer in self._answers():
                if worker is None:
                    if task not in (_HELLO, _LOAD):
                        left.appendleft(task)
                elif task is _HELLO:
                    self._greeted(answer)
                    self._ask(worker, _LOAD, self.job)
                else:
                    self.idle.append(worker)
                    if task is _LOAD:
                        self.lost[_HELLO] = self.lost[_LOAD] = 0
                    else:
                        busy -= 1
                        done(task, answer)
            self.waiting()

    def _hire(self, n_unfinished: int) -> None:
        """Starts workers where there is room and a task for each; raises JobFailed where there
        was none for long.
        """
        now = time.monotonic()
        if now - self.looked > ROOM:
            self.room, self.looked = room(self.cpus, self.gpus), now
        for _ in range(min(self.room, n_unfinished) - len(self.idle) - len(self.open)):
            self._ask(self.kind.remote(), _HELLO)
        if self._at_work() or any(task is _LOAD for _, task in self.open.values()):
            self.heard = now
        elif now - self.heard > PATIENCE:
            raise JobFailed(
                f"The Ray cluster has had no room for a worker for {PATIENCE:g} s (each takes {self._taken()}). What "
                "is finished is kept; the same command goes on from there when there is room."
            )

    def _at_work(self) -> bool:
        return bool(self.idle) or any(task not in (_HELLO, _LOAD) for _, task in self.open.values())

    def _taken(self) -> str:
        return "a GPU" if self.gpus else f"{self.cpus} CPU slot{'s' if self.cpus > 1 else ''}"

    def _ask(self, worker: Any, task: Task, *arguments: object) -> None:
        method, values = task
        self.open[getattr(worker, method).remote(*values, *arguments)] = worker, task

    def _answers(self) -> Iterator[tuple[Any | None, Task, Any]]:
        """Worker, task and returned value of what is finished; None for a worker that was lost
        with its task.
        """
        if not self.open:
            time.sleep(LOOK)
            return
        ready, _ = self.ray.wait(list(self.open), timeout=LOOK)
        for ref in ready:
            worker, task = self.open.pop(ref)
            try:
                answer = self.ray.get(ref)
            except self.ray.exceptions.RayTaskError as error:
                self.ray.kill(worker)
                raise _cause(error) from None
            except (
                self.ray.exceptions.RayError
            ) as error:  # its process or its machine is gone, or out of reach
                self.ray.kill(worker)
                # Nobody is hired before the next look: until then its machine may only seem to be
                # alive.
                self.room, self.looked = len(self.idle) + len(self.open), time.monotonic()
                self._count(task, error)
                yield None, task, None
            else:
                yield worker, task, answer

    def _count(self, task: Task, error: Exception) -> None:
        self.lost[task] += 1
        starting = task in (_HELLO, _LOAD)
        if self.lost[task] < TRIES or (starting and self._at_work()):
            return
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        telling = [line for line in lines if "Error: " in line or "out of memory" in line.lower()]
        when = (
            "while they started"
            if starting
            else f"at the same work ({task[0]} {str(task[1])[:40]})"
        )
        reason = (telling or lines or [type(error).__name__])[-1].partition(". ")[0].rstrip(".")
        raise JobFailed(
            f"{TRIES} workers of the Ray cluster were lost {when}: {reason}. What is finished is kept; the same "
            "command goes on from there."
        )

    def _greeted(self, version: str) -> None:
        if version != __version__:
            raise InvalidInput(
                f"A worker of the Ray cluster has vlprobe {version}, this machine has {__version__}. Install the same "
                "on all machines."
            )


def _cause(error: "RayTaskError") -> Exception:
    """The error that a worker raised, where it is a VlprobeError; else Ray's own."""
    return error.cause if isinstance(error.cause, VlprobeError) else error


if __name__ == "__main__":  # the other process of `_check_connection`
    faulthandler.dump_traceback_later(CONNECTING + ANSWERS, exit=True)  # its parent may be killed
    problem = _connect(sys.argv[1])
    sys.stdout.write(problem)
    sys.exit(bool(problem))
