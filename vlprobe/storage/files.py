"""Reading files that anybody made, and writing: whole or not at all, one process at a time where that matters."""

import contextlib
import errno
import hashlib
import json
import os
import re
import stat
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import filelock

from vlprobe.errors import InvalidInput
from vlprobe.storage.access import refuse_typed, refuse_writing

SURROGATE = re.compile("[\ud800-\udfff]")  # in a path: a byte that is not UTF-8
REPAIR = "Run `vlprobe verify --repair`, then the same run again: it makes anew what was damaged."


def parse_path(text: str, confined: bool = True) -> Path:
    """A path as people type it, with ~ for a home.

    Args:
        text: What was typed.
        confined: Whether the limits of a dashboard hold: it must lie under the roots, with all links followed.

    Raises:
        InvalidInput: no file can be there, or it may not be read.
    """
    try:
        path = Path(text).expanduser()
        if confined:
            refuse_typed(path)
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):  # whoever reads it says so
            os.stat(path)
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidInput(f"'{text}' is no path that can be read ({reason}). Check the name.") from None
    return path


def require_utf8(path: Path, kind: str) -> None:
    """Raises InvalidInput where the whole path is not UTF-8: neither JSON nor Parquet could hold it.

    Args:
        path: Any path; a relative one is judged with the working folder before it.
        kind: What it is the path of, for the message.
    """
    if SURROGATE.search(os.fspath(path.absolute())):
        raise InvalidInput(f"The path of {kind}, '{path.absolute()}', is not UTF-8. Rename that file or folder.")


def require_regular(path: Path) -> None:
    """Raises OSError where there is a pipe or a device, which could be read for ever, or no such name can be."""
    try:
        mode = os.stat(path).st_mode
    except ValueError as error:
        raise OSError(errno.EINVAL, str(error)) from None
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # opening a folder says by itself that it is one
        raise OSError(errno.EINVAL, "Not a regular file")


def read(path: Path) -> bytes:
    """The bytes of a file. Raises OSError, also where it is not a regular one."""
    require_regular(path)
    return path.read_bytes()


def present(path: Path) -> bool:
    """Whether something of that name is there, also where nobody but its owner may look at it."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def unreadable_message(path: Path, error: OSError) -> str:
    """One line about a stored file that cannot be opened, and who can do what about it."""
    remedy = REPAIR
    if isinstance(error, PermissionError):
        remedy = "Whoever wrote it can let others read it: chmod -R a+rX, with the folder of the cache."
    return f"'{path}' cannot be read ({error.strerror}). {remedy}"


def parse_json(text: str, unique: bool = False) -> object:
    """What a JSON text says. Raises ValueError, also where it nests too deeply or, if `unique`, says a name twice."""
    try:
        return json.loads(text, object_pairs_hook=_object if unique else None)
    except json.JSONDecodeError as error:
        raise ValueError(f"line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the name '{next(name for name in found if names.count(name) > 1)}' is there twice")
    return found


def sha256(path: Path) -> str:
    """The checksum of a file's bytes. Raises OSError."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


@contextlib.contextmanager
def atomic_writer(path: Path, durable: bool = True) -> Iterator[BinaryIO]:
    """A handle to write to; the file appears whole or not at all; where `durable`, it is on the disk by then.

    Raises:
        InvalidInput: it cannot or may not be written; an earlier file of that name is as it was.
    """
    refuse_writing()
    with cache_writer(path, durable) as handle:
        yield handle


@contextlib.contextmanager
def cache_writer(path: Path, durable: bool = False) -> Iterator[BinaryIO]:
    """As `atomic_writer`; also where nothing may be changed, for a copy of what is stored elsewhere."""
    temporary = path.parent / f".{path.name}.{uuid.uuid4().hex}.tmp"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as handle:
            yield handle
            if durable:
                handle.flush()
                os.fsync(handle.fileno())
        temporary.replace(path)
    except OSError as error:
        raise InvalidInput(
            f"Cannot write '{path}' ({error.strerror}). Free space or choose another folder with --cache; "
            "finished work is kept."
        ) from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def write_bytes(path: Path, data: bytes, durable: bool = True) -> None:
    """The file appears whole or not at all, whoever else writes it. Raises InvalidInput, as `atomic_writer` does."""
    with atomic_writer(path, durable) as handle:
        handle.write(data)


@contextlib.contextmanager
def lock(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Holds the lock file while the block runs; a process that ends, however it ends, lets go of it.

    Args:
        path: The lock file; its folder is made.
        waiting: Called twice a second while another process holds it; may raise to give up.

    Raises:
        InvalidInput: the lock file cannot be made.
    """
    file_lock = filelock.FileLock(path)
    while not file_lock.is_locked:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file_lock.acquire(timeout=0.5)
        except filelock.Timeout:
            waiting()
        except OSError as error:
            raise InvalidInput(
                f"Cannot write '{path}' ({error.strerror}). Free space or choose another folder with --cache."
            ) from None
    try:
        yield
    finally:
        file_lock.release()


def write_json(path: Path, value: object) -> None:
    """JSON that appears whole or not at all."""
    write_bytes(path, json.dumps(value, indent=1, sort_keys=True).encode())
