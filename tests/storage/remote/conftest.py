"""A real S3 server on this machine, and simulated machines that share one of its buckets, each with its own mirror."""

import itertools
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.conftest import free_port, make_tiny
from vlprobe.storage import mirror
from vlprobe.storage.mirror import MIRROR, Mirror
from vlprobe.storage.store import Store

_numbers = itertools.count()


def put_after(action: Callable[[], object], folder: str = "index/") -> Callable[..., None]:
    """Return a `Mirror.put` that runs an action before it writes a file of a folder."""
    put = Mirror.put

    def put_then(self: Mirror, name: str, content: bytes) -> None:
        if name.startswith(folder):
            action()
        put(self, name, content)

    return put_then


@dataclass
class Server:
    """An S3 server that can be stopped and started again without losing its content."""

    port: int = field(default_factory=free_port)

    def start(self) -> None:
        from moto.server import ThreadedMotoServer

        self.server = ThreadedMotoServer(ip_address="127.0.0.1", port=self.port, verbose=False)
        self.server.start()

    def stop(self) -> None:
        self.server.stop()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    pytest.importorskip("s3fs", reason="needs requirements-ray.txt")
    pytest.importorskip("moto", reason="needs requirements-ray.txt")
    from fsspec.config import conf

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    own = Server()
    own.start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{own.port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "testing")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        patch.setenv("AWS_MAX_ATTEMPTS", "1")  # report a stopped server immediately
        patch.setattr("s3fs.S3FileSystem.retries", 1)
        patient = {"connect_timeout": 300, "read_timeout": 300}  # long enough for a busy machine
        patch.setitem(conf, "s3", {"config_kwargs": patient})
        yield own
    own.stop()


@pytest.fixture
def bucket(server: Server) -> str:
    """Return the URL of a folder in a new bucket."""
    import fsspec

    name = f"bucket{next(_numbers)}"
    fsspec.filesystem("s3", use_listings_cache=False).mkdir(name)
    return f"s3://{name}/cache"


@pytest.fixture
def memory() -> str:
    """Return the URL of a folder that exists only in this process."""
    pytest.importorskip("fsspec", reason="needs requirements-ray.txt")
    return f"memory://shared{next(_numbers)}"


@pytest.fixture
def on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Store]:
    """Return a function that opens the store at a URL as a named machine, which reads the bucket again each time."""
    monkeypatch.setattr(mirror, "LISTED_SECONDS", 0.0)
    monkeypatch.setattr(mirror, "UNREACHED_SECONDS", 0.0)

    def machine(name: str, url: str) -> Store:
        monkeypatch.setenv(MIRROR, str(tmp_path / name))
        return Store(url)

    return machine


@pytest.fixture(scope="session")
def dataset_name(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the name of a dataset with six pictures that all machines find at the same path."""
    return make_tiny(tmp_path_factory.mktemp("drawn") / "tiny")
