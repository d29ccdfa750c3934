"""Downloads from a local server: failures are reported, and finished files remain."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from unittest.mock import Mock

import pytest

from tests.conftest import serving_http
from vlprobe.storage import downloads
from vlprobe.storage.downloads import download, missing, total_bytes

CONTENT = b"image:" + bytes(2000)


class Server(BaseHTTPRequestHandler):
    """Serve CONTENT under /good*; other paths fail as their name says."""

    requested: list[str]
    release = threading.Event()

    def do_HEAD(self) -> None:
        self._answer(send=False)

    def do_GET(self) -> None:
        self._answer(send=True)

    def _answer(self, send: bool) -> None:
        if send:
            self.requested.append(self.path)
        if self.path.startswith("/gone"):
            return self.send_error(404)
        if self.path.startswith("/moved"):
            self.send_response(302)
            self.send_header("Location", "/good-elsewhere")
            return self.end_headers()
        if self.path.startswith("/silent"):
            self.release.wait(20)
            return None
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        if send:
            self.wfile.write(CONTENT[:100] if self.path.startswith("/short") else CONTENT)
        return None

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@pytest.fixture
def server() -> Iterator[str]:
    Server.requested, Server.release = [], threading.Event()
    with serving_http(Server) as address:
        yield address
        Server.release.set()


def verify(content: bytes) -> None:
    if not content.startswith(b"image:"):
        raise ValueError("not an image")


def ignore(n_handled: int, n_total: int) -> None:
    """Report progress to no one."""


def test_complete_files_are_written_and_each_failure_has_its_reason(server: str, tmp_path: Path):
    names = ["good-1", "good-2", "gone", "moved", "short"]
    seen: list[tuple[int, int]] = []
    report = download(
        {tmp_path / name: f"{server}/{name}" for name in names},
        verify,
        lambda *counts: seen.append(counts),
    )
    assert (report.n_written, report.n_bytes) == (2, 2 * len(CONTENT))
    assert {path.name: reason for path, reason in report.failures.items()} == {
        "gone": "the server answered 404",
        "moved": "the server answered 302",
        "short": "truncated: 100 of 2,006 bytes arrived",
    }
    assert sorted(path.name for path in tmp_path.iterdir()) == ["good-1", "good-2"]
    assert seen == [(n, 5) for n in range(1, 6)]
    assert "/good-elsewhere" not in Server.requested


def test_a_server_that_does_not_answer_is_reported_as_a_failure(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(downloads, "TIMEOUT_S", 0.3)
    report = download({tmp_path / "a": f"{server}/silent"}, verify, ignore)
    assert report.failures == {tmp_path / "a": "the server did not answer in time"}


def test_a_file_that_is_not_an_image_is_not_written(server: str, tmp_path: Path):
    refuse = Mock(side_effect=ValueError("not an image"))
    report = download({tmp_path / "a": f"{server}/good"}, refuse, ignore)
    assert report.failures == {tmp_path / "a": "not an image"}
    assert not (tmp_path / "a").exists()


def test_a_file_above_the_limit_is_refused(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(downloads, "MAX_FILE_BYTES", 1000)
    assert download({tmp_path / "a": f"{server}/good"}, verify, ignore).n_written == 0


def test_an_interrupted_download_continues_with_the_missing_files(server: str, tmp_path: Path):
    wanted = {tmp_path / f"{n}": f"{server}/good-{n}" for n in range(30)}

    def stop(n_handled: int, n_total: int) -> None:
        if n_handled == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download(wanted, verify, stop)
    finished = {path for path in wanted if path.exists()}
    assert 5 <= len(finished) < 30
    Server.requested.clear()
    report = download(wanted, verify, ignore)
    assert report.n_written == len(wanted) - len(finished) == len(Server.requested)
    assert not missing(wanted)


def test_the_total_is_known_before_anything_is_downloaded(server: str):
    urls = [f"{server}/good-1", f"{server}/good-2", f"{server}/gone"]
    assert total_bytes(urls) == (2 * len(CONTENT), 1, "the server answered 404")
    assert Server.requested == []


def test_an_unreachable_server_is_reported_as_a_failure(tmp_path: Path):
    report = download({tmp_path / "a": "http://127.0.0.1:9/x"}, verify, ignore)
    assert "refused" in report.failures[tmp_path / "a"]
