"""One POST to a server: the key for its origin alone, no redirect followed, waits between attempts."""

import random
import threading
import time
from collections.abc import Callable

import urllib3
from urllib3.exceptions import HTTPError, InvalidHeader, ProtocolError, ReadTimeoutError, SSLError

from vlprobe import __version__
from vlprobe.errors import InvalidInput
from vlprobe.registry import endpoints
from vlprobe.registry.endpoints import Address
from vlprobe.storage import files

ATTEMPTS = 6
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0  # seconds between attempts; doubled each time
LONGEST_ASKED_FOR = 300.0  # that a server may have us wait
CONNECT_SECONDS = 10.0
MAX_ANSWER = 64 << 20  # bytes
BLOCK = 1 << 16
BUSY = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
PIECE = 8  # letters of a key in a row that nothing which is shown or stored with results may have
LONG_FIELDS = ("data", "choices")  # the answers themselves


class Stopped(Exception):
    """Raised in threads that wait or would ask, once somebody stops them."""


def _repeats(key: str, text: str) -> bool:
    """Whether an answer has the key in any spelling of JSON, or a piece of it outside of the answers themselves."""
    pieces = [key[start : start + PIECE] for start in range(max(1, len(key) - PIECE + 1))]
    try:
        content = files.parse_json(text)
    except ValueError:
        return any(piece in text for piece in pieces)
    if key in text or ("\\" in text and key in _texts(content)):
        return True
    if isinstance(content, dict):
        content = {name: value for name, value in content.items() if name not in LONG_FIELDS}
    texts = _texts(content)
    return any(piece in texts for piece in pieces)


def _texts(content: object) -> str:
    """The texts of parsed JSON, one after the other."""
    texts, pending = [], [content]
    while pending:
        part = pending.pop()
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict):
            pending += [*part.keys(), *part.values()]
        elif isinstance(part, list):
            pending += part
    return "\n".join(texts)


class Client:
    """Sends requests to one server from several threads.

    Args:
        address: The server.
        seconds: How long it may be silent, and how long an answer may take in all.
        threads: Requests at the same time.
    """

    def __init__(self, address: Address, seconds: float, threads: int) -> None:
        self._address, self._seconds = address, seconds
        self._stopping = threading.Event()
        # A pool of this kind reads no proxy, no .netrc and no key from anywhere.
        self._pool = urllib3.PoolManager(
            num_pools=1,
            maxsize=threads,
            retries=False,
            timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=seconds),
        )

    def stop(self) -> None:
        """Ends all waiting; requests that are under way go on to their answer."""
        self._stopping.set()

    def post(self, path: str, body: bytes, label: str, lost: Callable[[], None]) -> str:
        """The text of the answer.

        Args:
            path: After the address's URL.
            body: JSON.
            label: What an error calls the request.
            lost: Called for each attempt that ended without an answer after it was sent.

        Raises:
            InvalidInput: the server refuses it, or gives no whole answer.
            Stopped: somebody called `stop`.
        """
        problem = ""
        for attempt in range(ATTEMPTS):
            if self._stopping.is_set():
                raise Stopped
            wait = min(LONGEST_WAIT, FIRST_WAIT * 2**attempt) * (1 + random.random() / 4)
            try:
                status, text, asked_wait = self._attempt(path, body, label)
            except ReadTimeoutError:
                lost()
                problem = f"no answer within {self._seconds:g} s"
            except SSLError:
                raise self._refused(label, "its certificate is not trusted") from None
            except ProtocolError:
                lost()
                problem = "the connection broke"
            except HTTPError as error:
                problem = f"no connection ({type(error).__name__})"
            else:
                if status == 200:
                    return text
                problem = self._problem(status, label)
                wait = self._wait(wait, asked_wait, label, problem)
            if attempt + 1 < ATTEMPTS and self._stopping.wait(wait):
                raise Stopped
        raise self._refused(label, f"{problem}, {ATTEMPTS} times")

    def _attempt(self, path: str, body: bytes, label: str) -> tuple[int, str, float | None]:
        """Status, the text of an answer, and how many seconds the server asks us to wait."""
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "User-Agent": f"vlprobe/{__version__}",
            **endpoints.authorization(self._address.origin),
        }
        deadline = time.monotonic() + self._seconds
        url = f"{self._address.url}/{path}"
        response = self._pool.request(
            "POST", url, body=body, headers=headers, redirect=False, preload_content=False
        )
        blocks, size = [], 0
        try:
            for block in response.stream(BLOCK, decode_content=True):
                blocks.append(block)
                size += len(block)
                if size > MAX_ANSWER:
                    raise self._refused(label, f"the answer has more than {MAX_ANSWER >> 20} MiB")
                if time.monotonic() > deadline:
                    raise self._refused(label, f"the answer took more than {self._seconds:g} s")
        except ProtocolError:
            raise self._refused(label, "the answer ends in its middle") from None
        finally:
            response.close()
        asked_wait = None
        if response.status in BUSY and "Retry-After" in response.headers:
            try:
                asked_wait = urllib3.Retry(retry_after_max=10**9).get_retry_after(response)
            except InvalidHeader:
                asked_wait = None
        text = self._scrubbed(b"".join(blocks), label) if response.status == 200 else ""
        return response.status, text, asked_wait

    def _scrubbed(self, content: bytes, label: str) -> str:
        """The text of an answer. Raises InvalidInput where it is none, or repeats the key."""
        key = endpoints.authorization(self._address.origin).get("Authorization", "")
        try:
            text = content.decode()
        except UnicodeDecodeError:
            raise self._refused(label, "the answer is no text") from None
        if key and _repeats(key.removeprefix("Bearer "), text):
            raise self._refused(label, "the answer repeats the key, and is not kept")
        return text

    def _problem(self, status: int, label: str) -> str:
        """What is wrong with a status that may pass. Raises InvalidInput for any other."""
        if status in BUSY:
            return f"status {status}"
        if 300 <= status < 400:
            raise self._refused(
                label,
                f"it redirects (status {status}), and redirects are not followed: name the address itself",
            )
        if status in (401, 403):  # which often quote a part of the key
            hint = f"put the key of {self._address.origin} into {endpoints.KEYS}"
            raise self._refused(
                label, f"it refuses the key, or there is none (status {status}): {hint}"
            )
        # What it says is not quoted: servers repeat keys, whole or in part.
        raise self._refused(
            label, f"status {status}. Check the address, the model's name and the log of the server"
        )

    def _wait(self, wait: float, asked_wait: float | None, label: str, problem: str) -> float:
        """Seconds before the next attempt."""
        if asked_wait is not None and asked_wait > LONGEST_ASKED_FOR:
            raise self._refused(label, f"{problem}, and it asks us to wait {asked_wait:,.0f} s")
        return max(wait, asked_wait or 0.0)

    def _refused(self, label: str, problem: str) -> InvalidInput:
        return InvalidInput(
            f"{self._address.origin} gave no answer to {label}: {problem}. What was answered is kept; "
            "the same run goes on from there."
        )
