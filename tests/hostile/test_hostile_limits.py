"""A full disk and too little memory: one line on stderr and an exit code that is not 0."""

import errno
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from tests.conftest import tiers
from vlprobe import errors
from vlprobe.errors import InvalidInput
from vlprobe.storage.store import Store

NO_ROOM, TOO_LARGE = "(No space left on device)", "(File too large)"
LISTS = ("list", "metrics", "--format", "json")
MEBIBYTE = 1 << 20


def error_line(*words: str, out: str, limit: Callable[[], None] | None = None) -> str:
    """Run a command that fails, with its stdout in a file, and return the one line on stderr."""
    with Path(out).open("w") as handle:
        done = subprocess.run(
            [sys.executable, "-m", "vlprobe", *words],
            stdout=handle,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=limit,
            # With limited file sizes, Python 3.11 would write incomplete bytecode files and, without a buffer, report
            # no error for an incomplete line.
            env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": ""},
        )
    assert done.returncode == 1, done.stderr
    lines = [line for line in done.stderr.splitlines() if not line.startswith("<jemalloc>")]
    assert len(lines) == 1, done.stderr
    return lines[0]


@pytest.mark.parametrize(
    "words",
    tiers(
        ["--version", "--help", "list probes", "list models --format json"],
        ("--help", "list models --format json"),
    ),
)
def test_a_full_disk_behind_stdout_is_reported_in_one_line(words: str, tmp_path: Path):
    line = error_line("--cache", str(tmp_path), *words.split(), out="/dev/full")
    assert line.startswith(f"Error: Cannot write {NO_ROOM}. Free some space")


def test_exceeding_the_file_size_limit_is_reported_in_one_line(tmp_path: Path):
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))

    line = error_line("--cache", str(tmp_path), *LISTS, out=str(tmp_path / "out"), limit=limit)
    assert line.startswith(f"Error: Cannot write {TOO_LARGE}. Free some space")


def test_too_little_memory_to_load_a_library_is_reported_in_one_line(tmp_path: Path):
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (175 * MEBIBYTE, 175 * MEBIBYTE))

    line = error_line("--cache", str(tmp_path), *LISTS, out=str(tmp_path / "out"), limit=limit)
    assert line == f"Error: {errors.NO_MEMORY}"


def test_a_query_that_runs_out_of_memory_is_reported_in_one_line(store: Store):
    with pytest.raises(InvalidInput, match="There is not enough memory"), store.cursor():
        raise duckdb.OutOfMemoryException(
            "Out of Memory Error: failed to allocate\nPossible solutions"
        )


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), errors.NO_MEMORY),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), errors.NO_MEMORY),
        (ImportError("libx.so: failed to map segment from shared object"), errors.NO_MEMORY),
        (RuntimeError("CUDA out of memory. Tried to allocate"), errors.NO_MEMORY),
        (OSError(errno.ENOSPC, "No space left on device", "/a"), f"Cannot write '/a' {NO_ROOM}."),
        (OSError(errno.EFBIG, "File too large"), f"Cannot write {TOO_LARGE}."),
        (OSError(errno.EPIPE, "Broken pipe"), ""),
        (OSError(errno.ENOENT, "No such file"), ""),
        (ImportError("No module named 'x'"), ""),
        (RuntimeError("a bug"), ""),
    ],
)
def test_only_a_lack_of_memory_or_disk_space_has_a_shortage_message(
    error: Exception, expected: str
):
    line = errors.describe_shortage(error)
    assert line.startswith(expected) and bool(line) == bool(expected)
