"""Joining and leaving a cluster, and data shared by workers, tested without a cluster."""

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace

import psutil
import pytest

from vlprobe.errors import InvalidInput, MissingDependency
from vlprobe.runs import executor, jobs, ray_cluster
from vlprobe.runs.job import JobReport
from vlprobe.runs.ray_executor import RayJob, takes_gpu
from vlprobe.runs.request import PlanRequest, Request
from vlprobe.runs.run import execute
from vlprobe.storage import access
from vlprobe.types import Run

IMITATION = """
import os
mode = os.environ.get("RAY_AUTH_MODE")
is_initialized = lambda: False
init = lambda address, **given: asked.append(address)
shutdown = lambda: None
asked = []
"""


@pytest.fixture(autouse=True)
def no_cluster(monkeypatch) -> None:
    """Remove all cluster settings, and restore them after the test."""
    for name in (access.RAY, "RAY_ADDRESS", *ray_cluster.LOOPBACK):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


@pytest.fixture
def imitated(tmp_path, monkeypatch):
    """Replace Ray by a module that records its token mode and the requested addresses."""
    (tmp_path / "ray.py").write_text(IMITATION)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "ray", None)
    del sys.modules["ray"]


@pytest.fixture
def listening(monkeypatch) -> Iterator[str]:
    """Yield the address of a port that accepts connections and never answers, allowed by the owner."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        monkeypatch.setenv(access.RAY, address)
        yield address


@pytest.mark.parametrize(
    ("given", "variable", "expected"),
    [
        ("", "", "local"),
        ("local", "LISTENING", "local"),
        ("", "LISTENING", "LISTENING"),
        ("LISTENING", "10.0.0.7:6379", "LISTENING"),
    ],
)
def test_only_the_configured_cluster_is_joined_whatever_ray_address_is_set(
    given, variable, expected, imitated, listening, monkeypatch
):
    given, variable, expected = (
        text.replace("LISTENING", listening) for text in (given, variable, expected)
    )
    monkeypatch.setattr(ray_cluster, "_check_connection", lambda address, waiting: None)
    monkeypatch.setenv("RAY_ADDRESS", variable)
    ray_cluster.allow(given)
    with ray_cluster.joined():
        assert sys.modules["ray"].asked == [expected]


@pytest.mark.parametrize(
    "address",
    ["auto", "10.0.0.7", "ray://10.0.0.7:6379", "this://x", "a b:1", "10.0.0.7:6379\n", "h:1/x"],
)
def test_a_cluster_address_other_than_host_and_port_is_refused(address, tiny, store, monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    if address.strip() == address:
        with pytest.raises(InvalidInput, match=r"Expected HOST:PORT, such as 10\.0\.0\.7:6379"):
            ray_cluster.allow(address)
    monkeypatch.setenv(access.RAY, address)  # set without a check
    problem = r"VLPROBE_RAY: .* Expected HOST:PORT"
    with pytest.raises(InvalidInput, match=problem):
        execute(Request(("control:random",), tiny, "lgip", executor="ray"), store)
    with pytest.raises(InvalidInput, match=problem), ray_cluster.joined():
        pass


@pytest.mark.parametrize("address", ["10.0.0.7:6379", "head.example.com:6379", "[fe80::1]:6379"])
def test_an_address_with_a_host_and_a_port_is_accepted(address):
    ray_cluster.allow(address)
    assert ray_cluster.allowed() == address


def test_nothing_is_sent_to_a_cluster_that_the_owner_did_not_allow(
    imitated, listening, tiny, store, monkeypatch
):
    monkeypatch.setenv("RAY_ADDRESS", listening)
    monkeypatch.setenv(access.RAY, "")
    request = Request(("control:random",), tiny, "lgip", executor="ray")
    with pytest.raises(InvalidInput, match=r"is not allowed.*--ray HOST:PORT"):
        execute(request, store)
    assert "ray" not in sys.modules


def test_a_request_has_no_field_for_a_cluster_address():
    assert not any("address" in name for name in Request.__dataclass_fields__)


@pytest.mark.parametrize(
    ("waiting", "reason"), [(1.0, "no answer in 1 s"), (30.0, "`ray health-check` failed")]
)
def test_an_unresponsive_cluster_ends_the_run_in_time_with_a_one_line_error(
    waiting, reason, listening, tiny, store, monkeypatch
):
    pytest.importorskip("ray", reason="needs requirements-ray.txt")
    assert ray_cluster.CONNECTING + ray_cluster.POLL < 30
    monkeypatch.setattr(ray_cluster, "CONNECTING", waiting)
    if waiting > 1:  # the health check fails at once; Ray's own fails only after 20 s
        monkeypatch.setattr(sys, "executable", "/bin/false")
    before = set(psutil.Process().children())
    request = Request(("control:random",), tiny, "lgip", executor="ray")
    expected = f"Cannot connect to a Ray cluster at '{listening}' ({reason})"
    with pytest.raises(InvalidInput, match=re.escape(expected)):
        execute(request, store)
    assert set(psutil.Process().children()) <= before


def test_a_run_that_waits_for_a_cluster_can_be_cancelled_at_once(listening, tiny, store):
    before = set(psutil.Process().children())
    pytest.importorskip("ray", reason="needs requirements-ray.txt")
    job_id = jobs.write(Request(("control:random",), tiny, "lgip", executor="ray"), store)

    class Connecting(JobReport):
        def write(self, state, **facts):
            super().write(state, **facts)
            if facts.get("label") == "Connecting to the Ray cluster":
                jobs.cancel(store, job_id)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs, "JobReport", Connecting)
        started = time.monotonic()
        assert jobs.work(str(store.root), job_id) == 0
    assert time.monotonic() - started < ray_cluster.CONNECTING
    assert jobs.read(store, job_id).state == "cancelled"
    assert set(psutil.Process().children()) <= before


def test_a_job_on_a_cluster_and_a_job_on_this_machine_do_not_wait_for_each_other(
    listening, tiny, store
):
    local = Request(("control:random",), tiny, "lgip", device="cpu")
    remote = replace(local, executor="ray")
    devices = [jobs._device(request) for request in (local, remote, PlanRequest((remote,)))]
    assert devices[0] != devices[1] == devices[2]


# Prints the addresses on which the cluster listens, and the exit codes of clients without and with the token.
LOCAL_CLUSTER = """
import json, os, subprocess, sys
import psutil
from vlprobe.runs import ray_cluster
ray_cluster.allow("")
with ray_cluster.joined():
    import ray.data
    ray.data.DataContext.get_current().enable_progress_bars = False
    rows = ray.data.range(3).map_batches(lambda batch: batch).take_all()
    assert sorted(row["id"] for row in rows) == [0, 1, 2]
    me = psutil.Process()
    hosts = {
        connection.laddr.ip.removeprefix("::ffff:")
        for process in [me, *me.children(recursive=True)]
        for connection in process.net_connections()
        if connection.status == psutil.CONN_LISTEN
    }
    address = ray.get_runtime_context().gcs_address
    stranger = os.environ | {"HOME": sys.argv[1], "RAY_AUTH_MODE": "disabled"}
    stranger |= {"VLPROBE_RAY": address, "RAY_ADDRESS": ""}
    command = [sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address", address]
    refused = subprocess.run(command, env=stranger, capture_output=True, text=True)
    known = subprocess.run(command, capture_output=True, text=True)
print(json.dumps([sorted(hosts), refused.returncode, known.returncode]))
"""


@pytest.mark.full
def test_a_local_cluster_listens_locally_and_requires_its_token(tmp_path):
    pytest.importorskip("ray", reason="needs requirements-ray.txt")
    (tmp_path / "home").mkdir()
    with tempfile.TemporaryDirectory(prefix="ray") as short:  # socket names must be short
        environment = os.environ | {"HOME": str(tmp_path / "home"), "RAY_TMPDIR": short}
        for name in [name for name in environment if name.startswith("RAY_AUTH")]:
            del environment[name]
        completed = subprocess.run(
            [sys.executable, "-c", LOCAL_CLUSTER, str(tmp_path)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
    assert completed.returncode == 0, completed.stderr
    hosts, refused, known = json.loads(completed.stdout.splitlines()[-1])
    assert hosts == ["127.0.0.1"]
    assert refused != 0 and known == 0


@pytest.mark.parametrize("chosen", ["", "disabled"])
@pytest.mark.parametrize("where", ["RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "HOME", ""])
def test_a_token_is_used_if_it_exists_and_no_other_mode_is_set(
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
    ray_cluster.allow("local")
    with ray_cluster.joined():
        assert sys.modules["ray"].mode == (chosen or ("token" if where else None))


@pytest.mark.parametrize(("device", "gpu"), [("auto", True), ("cuda", True), ("cpu", False)])
def test_workers_request_gpus_if_the_cluster_has_any(device, gpu):
    assert takes_gpu(device, [{"CPU": 16.0, "GPU": 8.0}, {"CPU": 4.0}]) is gpu


def test_an_unknown_executor_is_refused(tiny, store):
    with pytest.raises(InvalidInput, match="Expected one of: local, ray"):
        execute(Request(("control:random",), tiny, "lgip", executor="slurm"), store)


def test_the_name_of_a_part_has_its_first_and_last_case():
    assert executor.part_name((12, 4096)) == "000000012-000004096"


def test_the_error_for_missing_ray_shows_the_install_command(tiny, store, monkeypatch):
    ray_cluster.allow("")
    monkeypatch.setitem(sys.modules, "ray", None)
    request = Request(("control:random",), tiny, "lgip", executor="ray")
    with pytest.raises(MissingDependency, match=r"pip install 'vlprobe\[scale\]'"):
        execute(request, store)


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({}, "differs between machines: its digest is .* on a worker and 0{32} here"),
        ({"version": "0.0.1"}, r"A worker .* has vlprobe .*, but this machine has 0\.0\.1\."),
    ],
)
def test_a_worker_with_another_model_or_another_version_of_vlprobe_is_refused(
    facts: dict[str, str], message: str, store
):
    run = Run("control:random", "0" * 32, "demo", "", "lgip", 1, ())
    job = RayJob(run, [], Request(("control:random",), "", "lgip"), store, **facts)
    with pytest.raises(InvalidInput, match=message):
        job.load()
