"""An API server in a separate process, one for each test process, and the requests that it received."""

import contextlib
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from vlprobe.models.endpoint import client
from vlprobe.registry import endpoints
from vlprobe.storage import access

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Server:
    origin: str
    folder: Path  # folder of the server's chat model

    @property
    def url(self) -> str:
        return f"{self.origin}/v1"

    def name(self, model: str) -> str:
        return f"http:{self.url}#{model}"

    def _exchange(self, path: str, content: object = None) -> Mapping:
        body = None if content is None else json.dumps(content).encode()
        with urllib.request.urlopen(f"{self.origin}{path}", body) as response:
            return json.load(response)

    def fail(self, kind: str = "", times: int = 0) -> None:
        """Make the next requests fail in the given way, and forget all earlier requests."""
        self._exchange("/faults", {"kind": kind, "times": times})

    def warm_up(self) -> None:
        """Make the server load its smaller model, so that the first answer in a test does not take seconds."""
        self._exchange("/v1/embeddings", {"model": "demo:softmax", "input": ["a"]})

    def requests(self) -> list[dict]:
        return self._exchange("/requests")["requests"]


@contextlib.contextmanager
def started(folder: Path) -> Iterator[Server]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.models.endpoint.server", str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    yield Server(f"http://127.0.0.1:{int(process.stdout.readline())}", folder)
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with started(tmp_path_factory.mktemp("chat")) as server:
        server.warm_up()
        yield server


@pytest.fixture(scope="session")
def running_author(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Start a server that loads no weights, for tests that only use the model `author`."""
    with started(tmp_path_factory.mktemp("author")) as server:
        yield server


def named_and_healthy(running: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    running.fail()
    monkeypatch.setenv(access.APIS, running.url)
    monkeypatch.delenv(endpoints.KEYS, raising=False)
    monkeypatch.setattr(client, "FIRST_WAIT", 0.01)
    return running


@pytest.fixture
def server(running: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """Return the server with its URL allowed, without faults and without earlier requests."""
    return named_and_healthy(running, monkeypatch)


@pytest.fixture
def author_server(running_author: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """Return a server like `server`, but without weights."""
    return named_and_healthy(running_author, monkeypatch)
