"""An API key is sent only to its origin, and never appears in output or files."""

import logging
import traceback
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from tests.conftest import call
from tests.models.endpoint.conftest import Server
from tests.probes.test_common import make
from vlprobe.errors import InvalidInput
from vlprobe.models.endpoint import reply
from vlprobe.registry import endpoints
from vlprobe.runs import jobs
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.store import Store

KEY = "sk-1234567890-of-this-origin"


@pytest.fixture
def keyed(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    monkeypatch.setenv(endpoints.KEYS, f"https://api.example.com sk-other {server.origin} {KEY}")
    return server


def received_keys(server: Server) -> set[str]:
    return {request["key"] for request in server.requests()}


def test_a_key_appears_in_no_file_log_error_or_output(
    keyed: Server,
    store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
):
    caplog.set_level(logging.DEBUG)
    name, data = keyed.name("demo:softmax"), make("visla", tmp_path / "data", 4)
    request = Request((name,), data, "visla", device="cpu")
    execute(request, store)
    failed = []
    for kind in ("401", "400", "garbage", "key", "redirect", "half"):
        keyed.fail(kind, 1)
        with pytest.raises(InvalidInput) as error:
            execute(replace(request, models=(f"{name}+dimensions={len(kind)}",)), store)
        failed += ["".join(traceback.format_exception(error.value)), repr(error.value)]
        assert received_keys(keyed) == {f"Bearer {KEY}"}
    keyed.fail()
    words = ["run", "--probe", "visla", "--dataset", data, "--model", name, "--price", "1"]
    typed = call(store.root, *words)
    finished = jobs.write(request, store)
    assert jobs.work(str(store.root), finished) == 0
    monkeypatch.setattr(reply, "parse", Mock(side_effect=RuntimeError("a bug")))
    assert jobs.work(str(store.root), jobs.write(request, store)) == 1
    message = capfd.readouterr()
    assert "a bug" in message.err
    written = [path.read_bytes() for path in store.root.rglob("*") if path.is_file()]
    everything = [*failed, typed.output, typed.stderr, message.out, message.err, caplog.text]
    assert len(written) > 10 and not any(KEY.encode() in content for content in written)
    assert not any(KEY in text or "Bearer" in text for text in everything)


def test_a_key_is_sent_to_no_other_origin(
    server: Server, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    port = server.origin.rpartition(":")[2]
    data = make("visla", tmp_path / "data", 4)
    for owner in ("http://localhost", f"http://localhost:{port}", f"https://127.0.0.1:{port}"):
        monkeypatch.setenv(endpoints.KEYS, f"{owner} {KEY}")
        execute(Request((server.name("demo:softmax"),), data, "visla", device="cpu"), store)
    assert received_keys(server) == {""}


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (KEY, "is malformed"),
        (f"{KEY} https://api.example.com", "has a word where an origin is expected"),
        (f"https://api.example.com/v1 {KEY}", "has a URL with a path where an origin is expected"),
        (f"http://api.example.com {KEY}", "would be sent unencrypted"),
    ],
)
def test_malformed_keys_are_refused_without_showing_them(
    keys: str, message: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(endpoints.KEYS, keys)
    with pytest.raises(InvalidInput, match=message) as error:
        endpoints.key_of("http://api.example.com")
    assert KEY not in str(error.value)


@pytest.mark.parametrize(
    "url", [f"https://me:{KEY}@api.example.com/v1", f"https://api.example.com/v1?key={KEY}"]
)
def test_a_key_in_a_url_is_refused_without_showing_it(url: str, store: Store):
    message = call(store.root, "run", "--model", f"http:{url}#m", code=1).output
    assert "contains a password or a query" in message and KEY not in message


@pytest.mark.parametrize(
    ("typed", "url"),
    [
        ("HTTPS://API.Example.com:443/v1/#a", "https://api.example.com/v1"),
        ("http://[::1]:80/v1#a", "http://[::1]/v1"),
        ("http://localhost:8000#a/b:c%2Bd", "http://localhost:8000"),
    ],
)
def test_equivalent_urls_of_a_server_are_normalized(typed: str, url: str):
    assert endpoints.parse(typed).url == url


@pytest.mark.parametrize(
    "text", ["", "ftp://a#b", "https://#a", "https://a/../b#c", "https://a/b c#d", "//a#b", "a#b"]
)
def test_an_invalid_server_address_is_refused(text: str):
    with pytest.raises(InvalidInput, match="Expected http:URL#MODEL"):
        endpoints.parse(text)
