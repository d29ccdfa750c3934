"""A server that never ends its answer costs one line, and neither the memory nor the patience of a run."""

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
    """The address of a server that answers with this status and blanks without an end."""

    class Endless(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(request.param)
            self.end_headers()
            with contextlib.suppress(OSError):  # until the client hangs up
                while True:
                    self.wfile.write(b" " * 4096)

        def log_message(self, *words: object) -> None:
            pass

    with serving_http(Endless) as address:
        yield endpoints.parse(f"{address}/v1#m")


@pytest.mark.parametrize(
    ("most_bytes", "seconds", "said"),
    [(1 << 20, 60.0, "the answer has more than 1 MiB"), (1 << 50, 0.2, "took more than 0.2 s")],
)
def test_an_answer_without_an_end_is_one_line(
    endless: endpoints.Address,
    monkeypatch: pytest.MonkeyPatch,
    most_bytes: int,
    seconds: float,
    said: str,
):
    monkeypatch.setattr(client, "MAX_ANSWER", most_bytes)
    with pytest.raises(InvalidInput, match=said) as error:
        client.Client(endless, seconds, 1).post("embeddings", b"{}", "a request", Bill())
    assert "\n" not in str(error.value)
