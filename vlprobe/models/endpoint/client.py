"""An HTTP client for one server. It sends a key only to its origin, follows no redirects, and waits between attempts.

urllib3 sends the requests, but the retries are implemented here. urllib3's own `Retry` first reads the body of a failed
attempt to its end, which a hostile server never sends. httpx does not retry by status. Neither library reports an
attempt that was lost and may cost money.
"""

import json
import random
import threading
import time

import urllib3
from urllib3.exceptions import HTTPError, InvalidHeader, ProtocolError, ReadTimeoutError, SSLError

from vlprobe import __version__
from vlprobe.errors import InvalidInput
from vlprobe.models.endpoint.budget import Bill
from vlprobe.registry import endpoints
from vlprobe.registry.endpoints import Address
from vlprobe.storage import files

ATTEMPTS = 6
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0  # seconds between attempts; doubled each time
LONGEST_ASKED_FOR = 300.0  # longest wait in seconds that a server may request
CONNECT_SECONDS = 10.0
MAX_ANSWER = 64 << 20  # bytes
BLOCK = 1 << 16
BUSY = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
PIECE = 8  # consecutive letters of a key that must never be shown or stored with results
LONG_FIELDS = ("data", "choices")  # fields with the actual answers


class Stopped(Exception):
    """Raised in threads that are waiting or about to send a request when a stop is requested."""


def _repeats(key: str, text: str) -> bool:
    """Return whether an answer contains the API key in any JSON spelling, or a part of it outside LONG_FIELDS."""
    remaining = text
    try:
        content = files.parse_json(text)
    except ValueError:
        pass
    else:
        spelled = json.dumps(key)[1:-1]
        if key in text or ("\\" in text and spelled in json.dumps(content, ensure_ascii=False)):
            return True
        if isinstance(content, dict):
            content = {name: part for name, part in content.items() if name not in LONG_FIELDS}
        key, remaining = spelled, json.dumps(content, ensure_ascii=False)
    starts = range(max(1, len(key) - PIECE + 1))
    return any(key[start : start + PIECE] in remaining for start in starts)


class Client:
    """A client that sends requests to one server from several threads.

    Args:
        address: The address of the server.
        seconds: The timeout for receiving data, and also for a whole answer.
        threads: The number of concurrent requests.
    """

    def __init__(self, address: Address, seconds: float, threads: int) -> None:
        self._address, self._seconds = address, seconds
        self._stopping = threading.Event()
        # A PoolManager reads no proxy settings, no .netrc and no key from anywhere.
        self._pool = urllib3.PoolManager(
            num_pools=1,
            maxsize=threads,
            retries=False,
            timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=seconds),
        )

    def stop(self) -> None:
        """Stop all waiting threads. Requests in progress still receive their answers."""
        self._stopping.set()

    def post(self, path: str, body: bytes, label: str, bill: Bill) -> str:
        """Send a request and return the text of the answer.

        Args:
            path: The path after the URL of the server.
            body: The request body, as JSON.
            label: The name of the request in error messages.
            bill: The bill that counts each attempt that was sent but got no answer.

        Raises:
            InvalidInput: The server rejects the request, or returns no complete answer.
            Stopped: `stop` was called.
        """
        problem, asked_wait = "", 0.0
        for attempt in range(ATTEMPTS):
            if attempt:
                wait = min(LONGEST_WAIT, FIRST_WAIT * 2 ** (attempt - 1))
                self._stopping.wait(max(wait * (1 + random.random() / 4), asked_wait))
            if self._stopping.is_set():
                raise Stopped
            key = endpoints.key_of(self._address.origin)
            headers = {
                "Content-Type": "application/json",
                "Accept": "application/json",
                "User-Agent": f"vlprobe/{__version__}",
                **({"Authorization": f"Bearer {key}"} if key else {}),
            }
            deadline, asked_wait = time.monotonic() + self._seconds, 0.0
            try:
                response = self._pool.request(
                    "POST",
                    f"{self._address.url}/{path}",
                    body=body,
                    headers=headers,
                    redirect=False,
                    preload_content=False,
                )
                content = self._read(response, deadline, label)
            except ReadTimeoutError:
                bill.attempts_lost += 1
                problem = f"no answer within {self._seconds:g} s"
            except SSLError:
                raise self._refused(label, "its certificate is not trusted") from None
            except ProtocolError:
                bill.attempts_lost += 1
                problem = "the connection broke"
            except HTTPError as error:
                problem = f"no connection ({type(error).__name__})"
            else:
                if response.status == 200:
                    return self._text(content, key, label)
                problem = self._problem(response.status, label)
                asked_wait = self._asked_wait(response, problem, label)
        raise self._refused(label, f"{problem}, {ATTEMPTS} times")

    def _read(self, response: urllib3.BaseHTTPResponse, deadline: float, label: str) -> bytes:
        """Read the body of an answer. Raises InvalidInput if it is truncated, too long or takes too long."""
        content = bytearray()
        try:
            for block in response.stream(BLOCK, decode_content=True):
                content += block
                if len(content) > MAX_ANSWER:
                    raise self._refused(label, f"the answer has more than {MAX_ANSWER >> 20} MiB")
                if time.monotonic() > deadline:
                    raise self._refused(label, f"the answer took more than {self._seconds:g} s")
        except ProtocolError:
            raise self._refused(label, "the answer is truncated") from None
        finally:
            response.close()
        return bytes(content)

    def _text(self, content: bytes, key: str, label: str) -> str:
        """Decode the text of an answer. Raises InvalidInput if it is not text, or repeats the API key."""
        try:
            text = content.decode()
        except UnicodeDecodeError:
            raise self._refused(label, "the answer is not text") from None
        if key and _repeats(key, text):
            raise self._refused(label, "the answer contains the API key and was discarded")
        return text

    def _problem(self, status: int, label: str) -> str:
        """Describe an HTTP status that may be temporary. Raises InvalidInput for any other status.

        The server's message is not quoted, because servers may repeat keys, in full or in part.
        """
        if status in BUSY:
            return f"status {status}"
        if 300 <= status < 400:
            problem = (
                f"it redirects (status {status}), and redirects are not followed; use the final URL"
            )
        elif status in (401, 403):
            problem = (
                f"it rejected the key, or no key is set (status {status}); put the key for "
                f"{self._address.origin} into {endpoints.KEYS}"
            )
        else:
            problem = (
                f"status {status}. Check the address, the model's name and the log of the server"
            )
        raise self._refused(label, problem)

    def _asked_wait(self, response: urllib3.BaseHTTPResponse, problem: str, label: str) -> float:
        """Return how many seconds a busy server requests us to wait. Raises InvalidInput if it is too long."""
        try:
            seconds = urllib3.Retry(retry_after_max=10**9).get_retry_after(response) or 0.0
        except InvalidHeader:
            return 0.0
        if seconds > LONGEST_ASKED_FOR:
            raise self._refused(label, f"{problem}, and the server asks to wait {seconds:,.0f} s")
        return seconds

    def _refused(self, label: str, problem: str) -> InvalidInput:
        return InvalidInput(
            f"{self._address.origin} did not answer {label}: {problem}. Answers are "
            "stored; repeat the run to continue."
        )
