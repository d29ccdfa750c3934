"""HTTP downloads: several files at once, each verified and written atomically.

Files that exist are skipped, so an interrupted download continues where it stopped. Redirects are rejected, so that
files only come from the address the user saw.
"""

import contextlib
import itertools
import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPMessage, HTTPResponse
from pathlib import Path
from typing import IO

from vlprobe.storage import files

PARALLEL = 8  # connections to one host, as browsers open
TIMEOUT_S = 30.0  # seconds without a byte
MAX_FILE_BYTES = 32 << 20
FAILURES = (urllib.error.URLError, HTTPException, OSError, ValueError)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> None:
        """Reject a redirect; urllib then raises an HTTPError with the redirect's status code."""


_opener = urllib.request.build_opener(_NoRedirect)


@dataclass
class DownloadReport:
    """Result of a download.

    Attributes:
        n_written: Number of files downloaded.
        n_bytes: Total size of those files in bytes.
        failures: The reason for each failed file, by path.
    """

    n_written: int = 0
    n_bytes: int = 0
    failures: dict[Path, str] = field(default_factory=dict)


def missing(downloads: Mapping[Path, str]) -> dict[Path, str]:
    """Select the downloads whose files do not exist yet. `downloads` maps paths to URLs."""
    return {path: url for path, url in downloads.items() if not files.is_file(path)}


def total_bytes(urls: Iterable[str]) -> tuple[int, int, str]:
    """Request the sizes of files. If none of the first PARALLEL sizes is known, the other files are skipped.

    Returns:
        The sum of the sizes in bytes, the number of files whose size is unknown, and the first reason.
    """
    every = list(urls)
    with ThreadPoolExecutor(PARALLEL) as pool:  # the threads only wait for servers
        sizes = list(pool.map(_size, every[:PARALLEL]))
        if int in map(type, sizes):  # without a network, all others would wait for the timeout
            sizes += pool.map(_size, every[PARALLEL:])
    known = [size for size in sizes if isinstance(size, int)]
    reasons = (size for size in sizes if isinstance(size, str))
    return sum(known), len(every) - len(known), next(reasons, "")


def download(
    downloads: Mapping[Path, str],
    verify: Callable[[bytes], None],
    on_progress: Callable[[int, int], None],
) -> DownloadReport:
    """Download the files that do not exist yet.

    Args:
        downloads: The URL for each path.
        verify: Raises ValueError if the bytes are not as expected, for example not an image.
        on_progress: Called in the calling thread after each file with the number of files handled so far and
            the total; an error in it stops the download, and finished files stay.
    """
    report = DownloadReport()
    pool = ThreadPoolExecutor(PARALLEL)  # the threads only wait for servers
    wanted = missing(downloads)
    waiting = iter(wanted.items())
    pending: dict[Future[int], Path] = {}

    def submit(count: int) -> None:
        for path, url in itertools.islice(waiting, count):
            pending[pool.submit(_fetch, url, path, verify)] = path

    try:
        submit(PARALLEL)  # no more at a time: a process that exits waits for everything submitted
        for n_handled in range(1, len(wanted) + 1):
            future = next(as_completed(pending))
            path = pending.pop(future)
            submit(1)
            try:
                report.n_bytes += future.result()
                report.n_written += 1
            except FAILURES as error:
                report.failures[path] = _reason(error)
            on_progress(n_handled, len(wanted))
    finally:
        pool.shutdown(cancel_futures=True)
    return report


@contextlib.contextmanager
def _open(url: str, method: str) -> Iterator[HTTPResponse]:
    try:
        with _opener.open(urllib.request.Request(url, method=method), timeout=TIMEOUT_S) as answer:
            yield answer
    except urllib.error.HTTPError as error:
        error.close()
        raise ValueError(f"the server answered {error.code}") from None


def _size(url: str) -> int | str:
    """Return the size of a file in bytes, or the reason why it is unknown."""
    try:
        with _open(url, "HEAD") as answer:
            length = answer.headers.get("Content-Length")
            return int(length) if length else "the server does not report sizes"
    except FAILURES as error:
        return _reason(error)


def _fetch(url: str, path: Path, verify: Callable[[bytes], None]) -> int:
    with _open(url, "GET") as answer:
        content = answer.read(MAX_FILE_BYTES + 1)
        promised = answer.headers.get("Content-Length")
    if len(content) > MAX_FILE_BYTES:
        raise ValueError(f"larger than {MAX_FILE_BYTES >> 20} MiB")
    if promised and len(content) < int(promised):
        raise ValueError(f"truncated: {len(content):,} of {int(promised):,} bytes arrived")
    verify(content)
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_bytes(path, content, durable=False)
    return len(content)


def _reason(error: BaseException) -> str:
    if isinstance(error, TimeoutError) or isinstance(getattr(error, "reason", None), TimeoutError):
        return "the server did not answer in time"
    if isinstance(getattr(error, "reason", None), socket.gaierror):
        return "the server's name is unknown, as without a network"
    return str(getattr(error, "reason", None) or error) or type(error).__name__
