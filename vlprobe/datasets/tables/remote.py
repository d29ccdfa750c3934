"""Tables that are elsewhere: s3://, gs://, https://, and hf:// for the hub, fetched whole into the cache.

A table is fetched once, and again where its size, time or tag there has changed. Its copy is named by its
URL and these; what is stored of it has the URL's name.
"""

import re
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from vlprobe.datasets.tables import hub
from vlprobe.errors import InvalidInput
from vlprobe.scoring.pictures import digest
from vlprobe.storage import file_systems, files
from vlprobe.storage.access import REMOTE, refuse_remote, refuse_writing

SCHEMES = ("s3", "gs", "https", "hf")
MOST_BYTES = 50 << 30  # of a table that is fetched
BLOCK_BYTES = 1 << 22
STAMPS = ("ETag", "etag", "LastModified", "mtime", "updated", "md5Hash", "size")


def is_url(text: str) -> bool:
    """Return whether a path is a URL."""
    return REMOTE.match(text) is not None


def require_url(url: str) -> None:
    """Raises InvalidInput where a URL is of another kind, or may not be fetched here. Looks nothing up."""
    parts = urlsplit(url)
    name = PurePosixPath(parts.path).name
    if "::" in url or parts.scheme not in SCHEMES:
        raise InvalidInput(
            f"'{url}' is no address that tables are fetched from. Expected {', '.join(f'{s}://' for s in SCHEMES)}, "
            "and one protocol alone."
        )
    if "@" in parts.netloc or parts.query or parts.fragment or not parts.netloc or not name:
        raise InvalidInput(
            f"'{url}' is no plain address of a file. Expected {parts.scheme}://HOST/FOLDER/FILE, without a name, "
            "a password or anything after a question mark: results are kept under it."
        )
    if parts.scheme == "hf":
        hub.split_of(url)
    refuse_remote(url)


def file_name(url: str) -> str:
    """Return the name of the copy of a table."""
    if url.startswith("hf://"):
        return hub.split_of(url).file
    return PurePosixPath(urlsplit(url).path).name


def local_copy(url: str, cache: Path) -> Path:
    """The table's copy on this machine; it is fetched where there is none.

    Raises:
        MissingDependency: the package that fetches such URLs is not installed.
        InvalidInput: nothing is there, it cannot be reached or is too large, or nothing may be written.
    """
    require_url(url)
    if url.startswith("hf://"):
        return hub.local_copy(url, cache)
    files_there, path = file_systems.open_file_system(url)
    try:
        with file_systems.translate_errors(url):
            facts = files_there.info(path)
            target = cache / "fetched" / _stamp(url, facts) / file_name(url)
            if not target.is_file():
                refuse_writing()
                _fetch(url, files_there, path, facts, target)
    except FileNotFoundError as error:
        if isinstance(error.__cause__, InvalidInput):  # fsspec hides that a redirect was refused
            raise error.__cause__ from None
        raise InvalidInput(
            f"There is no '{url}', or it cannot be reached. Check the address and the network."
        ) from None
    return target


def _stamp(url: str, facts: dict[str, Any]) -> str:
    """Return the identifier of the version of the remote file."""
    return digest(repr([url, *(str(facts.get(name)) for name in STAMPS)]).encode())


def _fetch(url: str, files_there: Any, path: str, facts: dict[str, Any], target: Path) -> None:
    n_bytes = 0
    _refuse_large(url, facts.get("size") or 0)
    with files_there.open(path, "rb") as source, files.atomic_writer(target, durable=False) as copy:
        while block := source.read(BLOCK_BYTES):
            n_bytes += len(block)
            _refuse_large(url, n_bytes)
            copy.write(block)
        stated = facts.get("size")
        if stated is not None and stated != n_bytes:
            raise InvalidInput(
                f"'{url}' came cut short: {n_bytes:,} of {stated:,} bytes. Ask for it again."
            )


def _refuse_large(url: str, n_bytes: int) -> None:
    if n_bytes > MOST_BYTES:
        raise InvalidInput(
            f"'{url}' has {n_bytes:,} bytes or more. Expected at most {MOST_BYTES:,}; divide it."
        )


def in_name(path: str) -> tuple[str, str]:
    """The URL and the folder of pictures of URL@IMAGEDIR; "" where it has none."""
    match = re.fullmatch(r"([^@]+)@(.+)", path)
    return (match[1], match[2]) if match else (path, "")
