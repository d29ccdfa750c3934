"""A server whose answer never ends is reported in one line, within limits on memory and time."""

import contextlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import pytest

from tests.conftest import serving_http
from vlprobe.errors import InvalidInput
from vlprobe.models.endpoint import client
from vlprobe.models.endpoint.budget import Bill
from vlprobe.registry import endpoints


@pytest.fixture(params=[200, 503])
def endless(request: pytest.FixtureRequest) -> Iterator[endpoints.Address]:
    """Yield the address of a server that answers with this status and endless blanks."""

    class Endless(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(request.param)
            self.end_headers()
            with contextlib.suppress(OSError):  # until the client closes the connection
                while True:
                    self.wfile.write(b" " * 4096)

        def log_message(self, *words: object) -> None:
            pass

    with serving_http(Endless) as address:
        yield endpoints.parse(f"{address}/v1#m")


@pytest.mark.parametrize(
    ("most_bytes", "seconds", "message"),
    [(1 << 20, 60.0, "the answer has more than 1 MiB"), (1 << 50, 0.2, "took more than 0.2 s")],
)
def test_an_endless_answer_is_stopped_and_reported_in_one_line(
    endless: endpoints.Address,
    monkeypatch: pytest.MonkeyPatch,
    most_bytes: int,
    seconds: float,
    message: str,
):
    monkeypatch.setattr(client, "MAX_ANSWER", most_bytes)
    with pytest.raises(InvalidInput, match=message) as error:
        client.Client(endless, seconds, 1).post("embeddings", b"{}", "a request", Bill())
    assert "\n" not in str(error.value)
