"""Tar files, read where they lie: which members they have and where the bytes of each are.

Nothing is unpacked, so that no name of a member is ever a path on this machine. Links, devices and
folders are no members. Compressed tars are refused: nobody knows their size before.
"""

import os
import struct
import time
from pathlib import Path
from typing import NamedTuple

from vlprobe.errors import InvalidInput
from vlprobe.storage import memo, tar_index

BLOCK = 512
MOST_MEMBERS = 5_000_000
LONGEST_NAME = 65_536
MOST_BYTES = 1 << 30  # of one member
MOST_INDEXES = 16  # in memory
REGULAR = (b"0", b"\0", b"7")  # types of members that are files
LONG_NAME, LONG_LINK, EXTENDED, GLOBAL = b"L", b"K", b"x", b"g"
EXTENSIONS = (LONG_NAME, LONG_LINK, EXTENDED, GLOBAL)
HEADER = struct.Struct("100s24x11s21xc100x5s")  # name, size, type and "ustar" of a member


class Member(NamedTuple):
    """Where the bytes of a member are."""

    start: int
    n_bytes: int


# By path and stamp, in the order of the first question.
_indexes: dict[tuple[str | int, ...], dict[str, Member]] = {}


def has(file: Path, name: str) -> bool:
    """Whether a tar has a file of this name. Raises InvalidInput or OSError."""
    return name in members(file)


def read(file: Path, name: str) -> bytes:
    """The bytes of a member.

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


def members(file: Path, cache: Path | None = None) -> dict[str, Member]:
    """The files of a tar by name, in their order; callers must not modify it.

    A tar is gone through once in a process, and again only after it has changed.

    Args:
        file: The tar.
        cache: Where its index is kept for other processes (`storage.tar_index`).

    Raises:
        InvalidInput: it is no tar, is cut short, or has more than MOST_MEMBERS members.
        OSError: it cannot be read.
    """
    status = os.stat(file)
    key = (str(file), *memo.stamp_of(status))
    index = _indexes.get(key)
    if index is None:
        index = _indexes[key] = _kept_or_scanned(file, status.st_size, cache)
        for oldest in list(_indexes)[:-MOST_INDEXES]:
            _indexes.pop(oldest, None)
    return index


def _kept_or_scanned(file: Path, n_bytes: int, cache: Path | None) -> dict[str, Member]:
    if cache is None:
        return _members(str(file), n_bytes)
    if (places := tar_index.kept(file, cache)) is not None:
        return {name: Member(*place) for name, place in places}
    began = time.time_ns()
    index = _members(str(file), n_bytes)
    tar_index.keep(file, cache, index, began)
    return index


def _members(file: str, n_bytes: int) -> dict[str, Member]:
    if n_bytes < BLOCK:
        raise _no_tar(file, 0)
    with open(file, "rb", buffering=0) as tar:
        return _scan(file, tar.fileno(), n_bytes)


def _scan(file: str, tar: int, n_bytes: int) -> dict[str, Member]:
    """The members of an open file; headers alone are read."""
    found: dict[str, Member] = {}
    place, long_name, long_size, count = 0, "", -1, 0
    while place + BLOCK <= n_bytes:
        header = os.pread(tar, BLOCK, place)
        name, field, kind, magic = HEADER.unpack_from(header)
        size = _size(header, field, magic)
        if size is None:
            if not any(header):
                return found
            raise _no_tar(file, place)
        start, is_extension = place + BLOCK, kind in EXTENSIONS
        if long_size >= 0 and not is_extension:
            size = long_size
        if start + size > n_bytes:
            raise InvalidInput(
                f"'{file}' is cut short: it ends within '{long_name or _text(name)}'. Fetch it again."
            )
        if is_extension:
            if kind in (LONG_NAME, EXTENDED):
                if size > LONGEST_NAME:
                    raise _no_tar(file, place)
                text = os.pread(tar, size, start)
                if kind == LONG_NAME:
                    long_name = _text(text)
                else:
                    long_name, long_size = _extended(text, long_name)
        else:
            count += 1
            if count > MOST_MEMBERS:
                raise InvalidInput(
                    f"'{file}' has more than {MOST_MEMBERS:,} members. Divide it into several tars."
                )
            if kind in REGULAR:
                found[_member_name(long_name, name, header)] = Member(start, size)
            long_name, long_size = "", -1
        place = start + (size + BLOCK - 1) // BLOCK * BLOCK
    raise InvalidInput(f"'{file}' is cut short: it has no end. Fetch it again.")


def _size(header: bytes, field: bytes, magic: bytes) -> int | None:
    """The size that a header states in a field; None where it is no header."""
    if magic == b"ustar" and field.isdigit():
        try:
            return int(field, 8)
        except ValueError:
            return None
    field = header[124:136]
    try:
        is_binary = field[0] == 0x80  # for 8 GiB and more
        octal = field.strip(b" \0") or b"0"
        size = int.from_bytes(field[1:], "big") if is_binary else int(octal, 8)
        stated = int(header[148:156].strip(b" \0"), 8)
    except ValueError:
        return None
    # The sum of all bytes, those of the sum itself counted as blanks.
    is_header = sum(header) - sum(header[148:156]) + 256 == stated
    return size if is_header and size >= 0 else None


def _member_name(long_name: str, field: bytes, header: bytes) -> str:
    name = long_name or _text(field)
    if not long_name and header[345] and header[257:263] == b"ustar\0":
        name = f"{_text(header[345:500])}/{name}"
    return name[2:] if name.startswith("./") else name


def _text(field: bytes) -> str:
    return field.split(b"\0", 1)[0].decode("utf-8", "surrogateescape")


def _extended(text: bytes, name: str) -> tuple[str, int]:
    """The name and the size in an extended header; -1 where it has no size."""
    size = -1
    while text:
        length, *_ = text.split(b" ", 1)
        if not length.isdigit() or not len(length) < int(length) <= len(text):
            break
        key, _, value = text[len(length) + 1 : int(length) - 1].partition(b"=")
        if key == b"path":
            name = value.decode("utf-8", "surrogateescape")
        elif key == b"size" and value.isdigit():
            size = int(value)
        text = text[int(length) :]
    return name, size


def _no_tar(file: str, place: int) -> InvalidInput:
    return InvalidInput(
        f"'{file}' is no tar, or damaged at byte {place:,}. Expected a tar that is not compressed; fetch it again."
    )
