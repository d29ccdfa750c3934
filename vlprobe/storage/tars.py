"""Tar files, read in place: the names of their members, and the position of the bytes of each.

Nothing is unpacked, so the name of a member is never a path on this machine. Links, devices, folders
and sparse files are not members. Compressed tars are refused: their size is unknown before. The
standard library's tarfile finds the members; its reads are bounded, because made-up headers keep it
busy for minutes, or forever (CVE-2024-6232, CVE-2025-8194).
"""

import functools
import io
import re
import tarfile
from pathlib import Path
from typing import NamedTuple

from vlprobe.errors import InvalidInput
from vlprobe.storage import memo

MOST_MEMBERS = 5_000_000
MOST_BYTES = 1 << 30  # of one member
MOST_HEADER_BYTES = 1 << 18  # of one member, with its long name and its fields
MOST_GLOBAL_FIELDS = 100
MOST_INDEXES = 16  # in memory
REGULAR = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE)  # types of members that are files
LONG_NUMBER = re.compile(rb"[0-9]{100}")


class Member(NamedTuple):
    """Position of the bytes of a member."""

    start: int
    n_bytes: int


def has(file: Path, name: str) -> bool:
    """Return whether a tar has a file of this name. Raises InvalidInput or OSError."""
    return name in members(file)


def read(file: Path, name: str) -> bytes:
    """Return the bytes of a member.

    Raises:
        InvalidInput: no such member, or it is too large.
        OSError: the tar cannot be read.
    """
    member = members(file).get(name)
    if member is None:
        raise InvalidInput(f"'{file}' has no member '{name}'.")
    if member.n_bytes > MOST_BYTES:
        raise InvalidInput(
            f"'{name}' in '{file}' has {member.n_bytes:,} bytes. Expected at most {MOST_BYTES:,}."
        )
    with file.open("rb") as handle:
        handle.seek(member.start)
        return handle.read(member.n_bytes)


def members(file: Path) -> dict[str, Member]:
    """List the files of a tar by name, in their order; callers must not modify the result.

    A tar is scanned once per process, and again only after it has changed.

    Raises:
        InvalidInput: it is not a tar, is truncated, or has more than MOST_MEMBERS members.
        OSError: it cannot be read.
    """
    return _members(str(file), *memo.stamp(file))


@functools.lru_cache(maxsize=MOST_INDEXES)
def _members(file: str, n_bytes: int, *stamp: int) -> dict[str, Member]:
    """Find the members by name with the standard library; the other parts of the stamp detect changes of the tar."""
    members: dict[str, Member] = {}
    offset, count = -1, 0
    try:
        with (
            _Headers(file) as headers,
            tarfile.open(
                fileobj=headers, mode="r:", encoding="utf-8", errors="surrogateescape"
            ) as tar,
        ):
            while (info := tar.next()) is not None:
                tar.members.clear()  # of 1 kB each  # pyright: ignore[reportAttributeAccessIssue] - not in the stubs
                headers.budget = MOST_HEADER_BYTES
                count += 1
                if count > MOST_MEMBERS:
                    raise InvalidInput(
                        f"'{file}' has more than {MOST_MEMBERS:,} members. Divide it into several tars."
                    )
                if info.size < 0 or info.offset <= offset:  # tarfile would go round in circles
                    raise tarfile.ReadError("a member ends before it begins")
                offset = info.offset
                if len(tar.pax_headers) > MOST_GLOBAL_FIELDS:  # copied for each member
                    raise tarfile.ReadError(f"more than {MOST_GLOBAL_FIELDS} global fields")
                if info.type in REGULAR and not info.issparse():
                    if info.offset_data + info.size > n_bytes:
                        raise _truncated(file)
                    members[info.name.removeprefix("./")] = Member(info.offset_data, info.size)
            if len(headers.block) < tarfile.BLOCKSIZE:
                raise _truncated(file)
            if any(headers.block):
                raise tarfile.ReadError("neither a member nor the end")
    except (tarfile.TarError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidInput(
            f"'{file}' is not a valid tar ({error}). Expected a whole tar that is not compressed; download it again."
        ) from None
    return members


class _Headers(io.FileIO):
    """The part of a tar that tarfile reads: blocks of headers, never the members themselves.

    Attributes:
        block: The last of them.
        budget: The bytes of headers that are still allowed before the next member.
    """

    block = b""
    budget = MOST_HEADER_BYTES

    def read(self, size: int | None = -1, /) -> bytes:
        """Return the next block. Raises tarfile.ReadError where headers are endless or made to take endless time."""
        self.budget -= size if size is not None and size >= 0 else MOST_HEADER_BYTES + 1
        if self.budget < 0:
            raise tarfile.ReadError(f"headers of more than {MOST_HEADER_BYTES:,} bytes")
        self.block = super().read(size) or b""
        if LONG_NUMBER.search(self.block):  # tarfile's patterns try each digit of it as a beginning
            raise tarfile.ReadError("a number of more than 100 digits")
        return self.block


def _truncated(file: str) -> InvalidInput:
    return InvalidInput(f"'{file}' is truncated. Download it again.")
