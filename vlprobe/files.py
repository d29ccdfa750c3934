"""Writing files: whole, or not at all, and one process at a time where that matters."""

import contextlib
import json
import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import filelock

from vlprobe.access import refuse_writing
from vlprobe.errors import InvalidInput


@contextlib.contextmanager
def writing(path: Path, durable: bool = True) -> Iterator[BinaryIO]:
    """A handle to write to; the file appears whole or not at all; where `durable`, it is on the disk by then.

    Raises:
        InvalidInput: it cannot or may not be written; an earlier file of that name is as it was.
    """
    refuse_writing()
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
    """The file appears whole or not at all, whoever else writes it. Raises InvalidInput, as `writing` does."""
    with writing(path, durable) as handle:
        handle.write(data)


@contextlib.contextmanager
def turn(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Holds the lock file while the block runs; a process that ends, however it ends, lets go of it.

    Args:
        path: The lock file; its folder is made.
        waiting: Called twice a second while another process holds it; may raise to give up.

    Raises:
        InvalidInput: the lock file cannot be made.
    """
    lock = filelock.FileLock(path)
    while not lock.is_locked:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            lock.acquire(timeout=0.5)
        except filelock.Timeout:
            waiting()
        except OSError as error:
            raise InvalidInput(
                f"Cannot write '{path}' ({error.strerror}). Free space or choose another folder with --cache."
            ) from None
    try:
        yield
    finally:
        lock.release()


def write_json(path: Path, value: object) -> None:
    """JSON that appears whole or not at all."""
    write_bytes(path, json.dumps(value, indent=1, sort_keys=True).encode())
