"""Pictures stored inside other files: as members of a tar, cells in a table, or crops of a picture.

The path to such a picture continues after the file that contains it. This is unambiguous, because a file has no
children:

    SHARD.tar/000001.jpg       a member of the tar
    TABLE.parquet/image/17     the bytes in row 17 of the column, counted from 0
    PHOTO.jpg/crop=3,4,50,60   a crop 3 pixels from the left and 4 from the top, 50 wide and 60 high; the
                               picture may itself be inside another file

Nothing is unpacked to disk: bytes are read in place, and a member name is never used as a path on this machine. Links,
devices, folders and sparse files are not members. Compressed tars are rejected, because their unpacked size is not
known in advance. The standard library's tarfile finds the members; its reads are limited, because malicious headers
can keep it busy for minutes or forever (CVE-2024-6232, CVE-2025-8194). A table is read one row group at a time;
the last few groups stay in memory.
"""

import bisect
import functools
import io
import itertools
import os
import re
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from vlprobe.errors import InvalidInput
from vlprobe.storage import columnar_files, memo

if TYPE_CHECKING:
    import pyarrow as pa

MOST_MEMBERS = 5_000_000
MOST_BYTES = 1 << 30  # per member
MOST_HEADER_BYTES = 1 << 18  # per member, including its long name and fields
MOST_GLOBAL_FIELDS = 100
MOST_INDEXES = 16  # tar indexes kept in memory
REGULAR = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE)  # types of members that are files
LONG_NUMBER = re.compile(rb"[0-9]{100}")


class Member(NamedTuple):
    """Position of a tar member's bytes in the file."""

    start: int
    n_bytes: int


def read_member(file: Path, name: str) -> bytes:
    """Return the bytes of a tar member.

    Raises:
        InvalidInput: the member does not exist or is too large.
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
    """Return the position of each file in a tar, keyed by file name. Callers must not modify the result.

    A tar is scanned once per process, and again only after it has changed.

    Raises:
        InvalidInput: the file is not a tar, is truncated, or has more than MOST_MEMBERS members.
        OSError: the file cannot be read.
    """
    return _members(str(file), *memo.stamp(file))


@functools.lru_cache(maxsize=MOST_INDEXES)  # 100,000 members take 2.6 s to find
def _members(file: str, n_bytes: int, *stamp: int) -> dict[str, Member]:
    """Find all members with the standard library. Because the stamp is an argument, a changed tar is scanned again."""
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
                tar.members.clear()  # each takes 1 kB  # pyright: ignore[reportAttributeAccessIssue] - not in the stubs
                headers.budget = MOST_HEADER_BYTES
                count += 1
                if count > MOST_MEMBERS:
                    raise InvalidInput(
                        f"'{file}' has more than {MOST_MEMBERS:,} members. Split it into "
                        "several tar files."
                    )
                if info.size < 0 or info.offset <= offset:  # tarfile would loop forever
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
                raise tarfile.ReadError("a block is neither a member nor the end of the archive")
    except (tarfile.TarError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidInput(
            f"'{file}' is not a valid tar ({error}). Expected a complete, uncompressed tar; download it again."
        ) from None
    return members


class _Headers(io.FileIO):
    """Reader that gives tarfile the header blocks of a tar but never the members themselves.

    Attributes:
        block: The last block that was read.
        budget: How many more header bytes may be read before the next member.
    """

    block = b""
    budget = MOST_HEADER_BYTES

    def read(self, size: int | None = -1, /) -> bytes:
        """Return the next header block. Raises tarfile.ReadError if the headers are too long or too slow to parse."""
        self.budget -= size if size is not None and size >= 0 else MOST_HEADER_BYTES + 1
        if self.budget < 0:
            raise tarfile.ReadError(f"headers of more than {MOST_HEADER_BYTES:,} bytes")
        self.block = super().read(size) or b""
        if LONG_NUMBER.search(self.block):  # tarfile's patterns try each of its digits as a start
            raise tarfile.ReadError("a number of more than 100 digits")
        return self.block


def _truncated(file: str) -> InvalidInput:
    return InvalidInput(f"'{file}' is truncated. Download it again.")


REMEMBERED = 4  # row groups kept in memory


def has_cell(file: Path, name: str) -> bool:
    """Return whether COLUMN/ROW names a cell in a bytes column of a table. Raises InvalidInput or OSError."""
    column, _, row = name.rpartition("/")
    kinds, bounds = _shape(str(file), *memo.stamp(file))
    return column in kinds and row.isdecimal() and len(row) < 19 and int(row) < bounds[-1]


def read_cell(file: Path, name: str) -> bytes:
    """Return the bytes in the cell COLUMN/ROW of a table.

    Raises:
        InvalidInput: the cell does not exist or is empty, or the file is damaged.
        OSError: the file cannot be read.
    """
    import pyarrow as pa

    column, _, row = name.rpartition("/")
    if not has_cell(file, name):
        raise InvalidInput(f"'{file}' has no row {row} with a picture in column '{column}'.")
    stamp = memo.stamp(file)
    _, bounds = _shape(str(file), *stamp)
    group = bisect.bisect_right(bounds, int(row)) - 1
    with columnar_files.translate_errors(file):
        cell = _group(str(file), column, group, *stamp)[int(row) - bounds[group]]
        content = (cell["bytes"] if isinstance(cell, pa.StructScalar) else cell).as_py()
    if not content:
        raise InvalidInput(
            f"'{file}', row {row}, column '{column}': the cell is empty. Expected the bytes of a picture."
        )
    return content


def bytes_columns(schema: "pa.Schema") -> list[str]:
    """Return the names of the columns that hold bytes, or structs with a `bytes` field like Hugging Face images."""
    import pyarrow as pa

    return [
        field.name
        for field in schema
        if _is_bytes(field.type)
        or (
            pa.types.is_struct(field.type)
            and field.type.get_field_index("bytes") >= 0
            and _is_bytes(field.type.field("bytes").type)
        )
    ]


def _is_bytes(kind: Any) -> bool:
    import pyarrow as pa

    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind)


@functools.lru_cache(maxsize=16)  # each picture needs the footer of its file
def _shape(file: str, *stamp: int) -> tuple[tuple[str, ...], list[int]]:
    """Return the names of the bytes columns, and a list of each row group's first row and the total row count."""
    with columnar_files.translate_errors(Path(file)):
        opened = columnar_files.ParquetFile(Path(file))
        return tuple(bytes_columns(opened.schema)), [0, *itertools.accumulate(opened.row_counts)]


@functools.lru_cache(maxsize=REMEMBERED)  # pictures from one row group are read one after another
def _group(file: str, column: str, group: int, *stamp: int) -> "pa.ChunkedArray":
    import pyarrow as pa

    with columnar_files.translate_errors(Path(file)):
        batches = columnar_files.ParquetFile(Path(file)).batches([column], [group])
        return pa.chunked_array([batch.column(column) for batch in batches])


TABLE, TAR = ".parquet", ".tar"
CROP = re.compile(r"crop=(-?\d{1,7}),(-?\d{1,7}),(-?\d{1,7}),(-?\d{1,7})")


def holder(path: Path) -> tuple[Path, str] | None:
    """Split the path to a picture inside a file into the file and the picture's name. Returns None for other paths."""
    for parent in path.parents:
        if parent.suffix.lower() in (TABLE, TAR) and parent.is_file():
            return parent, path.relative_to(parent).as_posix()
    return None


def is_file(path: Path) -> bool:
    """Return whether a path names an existing file or a picture inside one."""
    try:
        if path.is_file():
            return True
        if crop_box(path):
            return is_file(path.parent)
        held = holder(path)
        if held is None:
            return False
        file, name = held
        return name in members(file) if file.suffix.lower() == TAR else has_cell(file, name)
    except (OSError, ValueError, InvalidInput):
        return False


def crop_box(path: Path) -> tuple[int, int, int, int] | None:
    """Parse the left, top, width and height of a crop from its path. Returns None for any other path."""
    match = CROP.fullmatch(path.name)
    if match is None or path.parent.is_dir():
        return None
    left, top, width, height = map(int, match.groups())
    return left, top, width, height


def status(path: Path) -> os.stat_result:
    """Return the os.stat result for a file. A picture inside a file gives that file's result. Raises OSError."""
    try:
        return os.stat(path)
    except NotADirectoryError:
        if crop_box(path):
            return status(path.parent)
        held = holder(path)
        if held is None:
            raise
        return os.stat(held[0])


def read(path: Path) -> bytes | None:
    """Return the bytes of a picture inside a file, or None if the path does not name one.

    Raises:
        InvalidInput: the file is damaged or does not contain the picture.
        OSError: the file cannot be read.
    """
    held = holder(path)
    if held is None:
        return None
    file, name = held
    return read_member(file, name) if file.suffix.lower() == TAR else read_cell(file, name)
