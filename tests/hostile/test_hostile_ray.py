"""No link, form or job file sends anything to a Ray cluster that the owner of the dashboard did not name."""

import importlib.util
import json
import socket
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.conftest import make_tiny
from tests.dashboard.test_pages import open_form, open_page
from tests.dashboard.test_pages_run import requests
from vlprobe.cli import main, serve
from vlprobe.runs import jobs
from vlprobe.runs.request import PlanRequest, Request
from vlprobe.storage import access
from vlprobe.storage.store import Store

FIELDS = {"run_executor", "run_ray_address"}


class Listener:
    """A port that counts connections and never answers."""

    def __init__(self, server: socket.socket) -> None:
        self.server, self.address = server, f"127.0.0.1:{server.getsockname()[1]}"
        server.setblocking(False)

    @property
    def n_connections(self) -> int:
        count = 0
        while True:
            try:
                self.server.accept()[0].close()
            except BlockingIOError:
                return count
            count += 1


@pytest.fixture
def listener(monkeypatch: pytest.MonkeyPatch) -> Iterator[Listener]:
    monkeypatch.setenv(access.RAY, "")
    monkeypatch.delenv(access.RAY)
    monkeypatch.setenv("RAY_ADDRESS", "")
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield Listener(server)


def ray_fields(at) -> set[str]:
    return FIELDS & {field.key for field in [*at.selectbox, *at.text_input]}


def test_the_run_form_has_no_ray_fields_whatever_a_link_contains(
    store: Store, listener: Listener, monkeypatch: pytest.MonkeyPatch
):
    assert not ray_fields(open_form(monkeypatch, store))
    link = {"executor": "ray", "ray_address": listener.address, "run_executor": "ray"}
    at = open_page(monkeypatch, store, "run", open="machine", **link)
    assert not at.exception and not ray_fields(at)
    assert [field.key for field in at.number_input if field.key == "run_seed"]


def test_visitors_can_choose_only_the_cluster_that_the_owner_named(
    store: Store,
    listener: Listener,
    unspawned: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv(access.RAY, "10.0.0.7:6379")
    at = open_form(monkeypatch, store)
    assert ray_fields(at) == {"run_executor"}
    at.multiselect(key="run_models").set_value(["control:random"])
    at.text_input(key="run_own").set_value(make_tiny(tmp_path / "tiny"))
    at.selectbox(key="run_executor").set_value("ray").run()
    assert not at.error
    at.button(key="start").click().run()
    assert [one.executor for one in requests(store)] == ["ray"]


@pytest.mark.parametrize("kind", ["run", "plan"])
def test_a_job_file_connects_to_no_cluster(
    store: Store,
    listener: Listener,
    tmp_path: Path,
    kind: str,
    monkeypatch: pytest.MonkeyPatch,
):
    request = Request(("control:random",), make_tiny(tmp_path / "tiny"), "lgip", executor="ray")
    written = asdict(request if kind == "run" else PlanRequest((request,)))
    for fields in written.get("requests", [written]):  # as version 0.2 wrote them
        fields["ray_address"] = listener.address
    folder = store.root / "jobs" / "abcdef"
    folder.mkdir(parents=True)
    (folder / "request.json").write_text(json.dumps(written | {"created": 0}))
    (folder / "status.json").write_text(json.dumps({"state": "queued", "queued": 0}))
    assert jobs.work(str(store.root), folder.name) == 1
    assert "is not allowed" in jobs.read(store, folder.name).error
    assert listener.n_connections == 0


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs requirements-ray.txt")
def test_a_server_uses_only_the_ray_cluster_of_its_command_line(
    tmp_path: Path, listener: Listener, monkeypatch: pytest.MonkeyPatch
):
    started = []
    monkeypatch.setattr(serve, "_become", lambda command, folder, env: started.append(env))
    words = ["--cache", str(tmp_path / "cache"), "dashboard"]
    assert CliRunner().invoke(main.main, words).exit_code == 0
    assert CliRunner().invoke(main.main, [*words, "--ray", "10.0.0.7:6379"]).exit_code == 0
    assert [env.get(access.RAY) for env in started] == [None, "10.0.0.7:6379"]
    for text in ("local", "auto", "ray://10.0.0.7:6379", "this://x"):
        refused = CliRunner().invoke(main.main, [*words, "--ray", text])
        assert refused.exit_code == 1 and refused.stderr.count("\n") == 1
        assert "Expected HOST:PORT" in refused.stderr
    assert len(started) == 2
