"""Safe reading of untrusted files, atomic writing, and interprocess locks."""

import contextlib
import errno
import hashlib
import json
import os
import re
import shutil
import stat
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import filelock
import msgspec

from vlprobe.errors import InvalidInput, StoredDamage
from vlprobe.storage.access import refuse_typed, refuse_writing

Content = TypeVar("Content")
SURROGATE = re.compile("[\ud800-\udfff]")  # half a character; in a path, a byte that is not UTF-8


def parse_path(text: str, confined: bool = True) -> Path:
    """Parse a path that a user typed. A leading ~ means a home folder.

    Args:
        text: The typed path.
        confined: Whether to apply the limits in `access`: after links are resolved, the path must be in an allowed
            folder.

    Raises:
        InvalidInput: no file can have this path, or it may not be read.
    """
    try:
        path = Path(text).expanduser()
        if confined:
            refuse_typed(path)
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):  # reported when it is read
            os.stat(path)
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidInput(f"'{text}' is not a readable path ({reason}). Check the name.") from None
    return path


def split_options(
    name: str, pattern: re.Pattern[str], expected: str
) -> tuple[str, frozenset[str], dict[str, str]]:
    """Split a name PREFIX:FILE+WORD+KEY=VALUE into the file or URL, the words and the values. An existing path may
    contain a plus sign.

    Args:
        name: The name that the user typed.
        pattern: The pattern that a complete option matches. Group 1 is a word; groups 2 and 3 are a key and its value.
        expected: A description of the options, for error messages.

    Raises:
        InvalidInput: The name has no file, or the text after a plus sign is not an option.
    """
    prefix, _, text = name.partition(":")
    if not text:
        raise InvalidInput(f"'{name}' does not name a file. Expected {prefix}:FILE.")
    options = []
    while ("://" in text or not parse_path(text).exists()) and "+" in text:
        text, _, option = text.rpartition("+")
        match = pattern.fullmatch(option)
        if not match:
            raise InvalidInput(
                f"'{option[:80]}' in '{name}' is not a valid option, or the file does not "
                f"exist. Expected {expected}."
            )
        options.append(match)
    words = frozenset(match[1] for match in options if match[1])
    return text, words, {match[2]: match[3] for match in reversed(options) if match[2]}


def require_utf8(path: Path, kind: str) -> None:
    """Raise InvalidInput unless the absolute path is valid UTF-8, as JSON and Parquet require.

    Args:
        path: Any path.
        kind: A description of the file or folder for the error message.
    """
    if SURROGATE.search(os.fspath(path.absolute())):
        raise InvalidInput(
            f"The path of {kind}, '{path.absolute()}', is not valid UTF-8. Rename the file "
            "or folder."
        )


def require_regular(path: Path) -> None:
    """Raise OSError for a pipe or a device, whose content may never end, or for an invalid file name."""
    try:
        mode = os.stat(path).st_mode
    except ValueError as error:
        raise OSError(errno.EINVAL, str(error)) from None
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # opening a folder raises on its own
        raise OSError(errno.EINVAL, "Not a regular file")


def require_new(path: Path, contents: str = "") -> None:
    """Raise InvalidInput if there is a file at a path, because a command must not replace it.

    Args:
        contents: What the file may contain, for the message.
    """
    if present(path):
        warning = f" and may contain {contents}" if contents else ""
        raise InvalidInput(
            f"'{path}' already exists{warning}. Choose another file name, or delete the file."
        )


def require_space(path: Path, n_bytes: int) -> None:
    """Raise InvalidInput if the disk has too little free space to write a path, OSError if its folder is missing."""
    free = shutil.disk_usage(path.absolute().parent).free
    if free < n_bytes:
        raise InvalidInput(
            f"Not enough disk space for '{path}': it needs at least {n_bytes / 1e6:,.0f} MB, but "
            f"only {free / 1e6:,.0f} MB are free. Choose another path or free some space."
        )


def read(path: Path) -> bytes:
    """Return the bytes of a regular file. Raises OSError."""
    require_regular(path)
    return path.read_bytes()


def is_file(path: Path) -> bool:
    """Return whether a file exists; False for an invalid file name."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def present(path: Path) -> bool:
    """Return whether a path exists. A path that this process may not access counts as existing."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def version(path: Path) -> tuple[int, int]:
    """Return a file's size in bytes and its modification time in nanoseconds, or (0, 0) if there is no file."""
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_size, status.st_mtime_ns


def read_texts(path: Path, consequence: str) -> dict[str, str]:
    """Read a JSON object that maps names to text from a shared file. The result is empty if the file does not exist.

    Args:
        path: The file.
        consequence: How the error message for a damaged file ends, such as "so no saved view can be listed".

    Raises:
        InvalidInput: the file is damaged or may not be read.
    """
    if not path.exists():
        return {}
    try:
        content = parse_json_object(path.read_text("utf-8"))
    except OSError as error:
        raise unreadable(path, error) from None
    except ValueError:
        raise InvalidInput(
            f"'{path}' is damaged, {consequence}. Repair or delete the file."
        ) from None
    return {str(name): str(text) for name, text in content.items()}


def unreadable(path: Path, error: OSError) -> InvalidInput:
    """Build the error raised when a stored file cannot be opened: StoredDamage, or InvalidInput if this process lacks
    permission.
    """
    problem = f"'{path}' cannot be read ({error.strerror})."
    if isinstance(error, PermissionError):
        return InvalidInput(f"{problem} Ask its owner to run chmod -R a+rX on the cache folder.")
    return StoredDamage(problem)


def parse_json(text: str, unique: bool = False) -> object:
    """Parse JSON. Raises ValueError if the text is invalid, nested too deeply or, with `unique`, repeats a name."""
    try:
        return json.loads(text, object_pairs_hook=_unique_object if unique else None)
    except json.JSONDecodeError as error:
        raise ValueError(f"line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None


def parse_json_object(text: str) -> dict[str, Any]:
    """Parse a JSON object. Raises ValueError, including for any other JSON value."""
    content = parse_json(text)
    if not isinstance(content, dict):
        raise ValueError("not a JSON object")
    return content


def convert(content: object, kind: type[Content]) -> Content:
    """Convert parsed JSON to `kind`. Values are not coerced: raises ValueError if a value has another type."""
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None


def _unique_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        raise ValueError(
            f"the name '{next(name for name in members if counts[name] > 1)}' occurs twice"
        )
    return members


def sha256(path: Path) -> str:
    """Return the SHA-256 digest of a file in hexadecimal. Raises OSError."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def blake2b(path: Path) -> str:
    """Return the BLAKE2b digest (32 hex digits) of a file. Raises OSError."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


@contextlib.contextmanager
def atomic_writer(path: Path, durable: bool = True) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces `path` when the block ends. With `durable`, it is flushed to disk first.

    Raises:
        InvalidInput: the file cannot be written, or the cache is read-only. An existing file stays unchanged.
    """
    refuse_writing()
    with cache_writer(path, durable) as handle:
        yield handle


@contextlib.contextmanager
def cache_writer(path: Path, durable: bool = False) -> Iterator[BinaryIO]:
    """Open an atomic writer that also works on a read-only server, for local copies of objects in a remote store."""
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


def write_bytes(path: Path, content: bytes | memoryview, durable: bool = True) -> None:
    """Replace a file atomically. Raises InvalidInput if it cannot be written or the cache is read-only."""
    with atomic_writer(path, durable) as handle:
        handle.write(content)


@contextlib.contextmanager
def lock(path: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold an interprocess lock while the block runs. The lock is released when the process ends for any reason.

    Args:
        path: The lock file; its folder is created if missing.
        on_wait: Called twice per second while another process holds the lock; may raise an error to give up.

    Raises:
        InvalidInput: the lock file cannot be created.
    """
    file_lock = filelock.FileLock(path)
    while not file_lock.is_locked:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file_lock.acquire(timeout=0.5)
        except filelock.Timeout:
            on_wait()
        except OSError as error:
            raise InvalidInput(
                f"Cannot write '{path}' ({error.strerror}). Free space or choose another folder with --cache."
            ) from None
    try:
        yield
    finally:
        file_lock.release()


def write_json(path: Path, value: object) -> None:
    """Replace a file atomically with the value as JSON. Raises InvalidInput."""
    write_bytes(path, _json(path, value, indent=1, sort_keys=True))


def _json(path: Path, value: object, **options: Any) -> bytes:
    """Serialize a value as JSON. Raises InvalidInput if it contains a lone surrogate, which pages cannot show."""
    if SURROGATE.search(json.dumps(value, ensure_ascii=False)):
        raise InvalidInput(
            f"Cannot write '{path}': a string in it has a lone surrogate. Use another name or text."
        )
    return json.dumps(value, **options).encode()


def replace_surrogates(content: dict[str, Any]) -> dict[str, Any]:
    """Replace lone surrogates in parsed JSON with U+FFFD. Until version 0.2, server answers were stored with them."""
    text = json.dumps(content, ensure_ascii=False)
    return json.loads(SURROGATE.sub("\ufffd", text)) if SURROGATE.search(text) else content


def append_json(path: Path, *values: object) -> None:
    """Append values to a file as lines of JSON, completing an unfinished last line first. Raises InvalidInput."""
    refuse_writing()
    lines = b"".join(_json(path, value) + b"\n" for value in values)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        ends_with_newline = not path.exists() or path.read_bytes()[-1:] in (b"", b"\n")
        with path.open("ab") as handle:
            handle.write((b"" if ends_with_newline else b"\n") + lines)
            handle.flush()
            os.fsync(handle.fileno())
    except OSError as error:
        raise InvalidInput(
            f"Cannot write '{path}' ({error.strerror}). Free some space and save again."
        ) from None
