"""Errors whose messages are written for users.

    VlprobeError
    |- NotFound             an unknown name
    |- InvalidInput         an unexpected file, value or model answer
    |  |- Misfit            a probe that does not apply to the dataset or model
    |  `- StoredDamage      a stored file that is missing or was changed after it was written
    |- MissingDependency    an optional package that is not installed
    `- JobFailed            a run that stopped before its end

The command line and `app.py` catch only VlprobeError and show its one-line message: the problem, the
expected input, and the remedy. Every other exception is a bug and keeps its traceback.
"""

import contextlib
import difflib
import errno
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

MAX_MESSAGE = 1500  # characters
OUT_OF_MEMORY = (
    "out of memory",
    "not enough memory",
    "can't allocate memory",
    "ALLOC_FAILED",
)  # CUDA, MPS, CPU, cuBLAS
FULL_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NO_MEMORY = (
    "There is not enough memory. Close other programs or raise the limit (ulimit -v), then run the same command again; "
    "finished work is kept."
)
REPAIR = "Run `vlprobe verify --repair`, then the same run again: damaged files are recomputed."


def printable(text: str) -> str:
    """Return the text with unprintable characters escaped as in a Python string.

    >>> printable("a red\\ndog\\x1b[31m")
    'a red\\\\ndog\\\\x1b[31m'
    """
    return (
        text
        if text.isprintable()
        else "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
    )


def first_line(error: BaseException) -> str:
    """Return the first line of an error message without its final period, or the error type if there is no message.

    >>> first_line(ValueError("bad header.\\nat byte 3")), first_line(EOFError())
    ('bad header', 'EOFError')
    """
    return str(error).strip().partition("\n")[0][:200].rstrip(".:") or type(error).__name__


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error means that the machine or a device such as a GPU is out of memory."""
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and any(words in str(error) for words in OUT_OF_MEMORY)
    )


def describe_shortage(error: BaseException) -> str:
    """Return a one-line message if an error means that the memory or the disk is full, or "" for any other error."""
    is_unmapped = isinstance(error, ImportError) and "failed to map segment" in str(error)
    number = error.errno if isinstance(error, OSError) else None
    if is_out_of_memory(error) or is_unmapped or number == errno.ENOMEM:
        return NO_MEMORY
    if isinstance(error, OSError) and number in FULL_DISK:
        place = f" '{error.filename}'" if error.filename else ""
        return (
            f"Cannot write{place} ({error.strerror}). Free some space, then run the same command again; "
            "finished work is kept."
        )
    return ""


class VlprobeError(Exception):
    """An error that users see as one line, without a traceback.

    Text from a file or a link is untrusted: unprintable characters are escaped, so that they neither break the line
    nor control a terminal, and a long message is shortened in the middle.
    """

    def __init__(self, message: str = "") -> None:
        if len(message) > MAX_MESSAGE:
            message = f"{message[: MAX_MESSAGE - 400]} ... {message[-400:]}"
        super().__init__(printable(message))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the message and the fields unchanged, so that errors raised in other processes stay intact."""
        return _unpickled, (type(self), self.args), self.__dict__


def _unpickled(error_type: type[VlprobeError], arguments: tuple[str, ...]) -> VlprobeError:
    return error_type.__new__(error_type, *arguments)


class NotFound(VlprobeError):
    """An unknown name. The message suggests the closest known name and lists up to 12 known names."""

    def __init__(self, kind: str, name: str, names: Iterable[str], hint: str = "") -> None:
        names = list(names)
        close = difflib.get_close_matches(name[:100], names, n=1, cutoff=0.5)
        guess = f" Did you mean '{close[0]}'?" if close else ""
        listed = ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
        super().__init__(
            f"No {kind} named '{name}'.{guess} Known: {listed or 'none'}.{' ' + hint if hint else ''}"
        )


class InvalidInput(VlprobeError):
    """An unexpected file, value or result."""


class Misfit(InvalidInput):
    """A probe that does not apply to the dataset or model; another probe may."""


class StoredDamage(InvalidInput):
    """A stored file that is missing, cannot be read, or was changed after it was written.

    Attributes:
        problem: The problem without the remedy; printable and shortened like the message.
        remedy: The command that removes the damaged file, as the message's final sentence; "" if
            nothing has to be done. Pages show a button instead.
    """

    def __init__(self, problem: str, remedy: str = REPAIR) -> None:
        super().__init__(f"{problem} {remedy}" if remedy else problem)
        self.problem = str(self).removesuffix(f" {remedy}") if remedy else str(self)
        self.remedy = remedy


class MissingDependency(VlprobeError):
    """An optional package that is needed but not installed."""

    def __init__(self, needed_by: str, package: str, install: str = "") -> None:
        super().__init__(
            f"{needed_by} needs the package '{package}', which is not installed. Install "
            f"it: pip install {install or package}"
        )


class JobFailed(VlprobeError):
    """A run that stopped before its end. Finished work is kept."""


_plugin_titles: dict[Path, str] = {}  # plug-in titles by code file or folder


def register_plugin(root: Path, title: str) -> None:
    """Register a plug-in's code file or folder, so that `plugin_errors` can name the plug-in an error comes from."""
    _plugin_titles[root] = title


@contextlib.contextmanager
def plugin_errors(title: str = "", doing: str = "") -> Iterator[None]:
    """Turn an exception raised by a plug-in into a one-line error that names the plug-in, the file and the line.

    A VlprobeError, an out-of-memory error, and any error without plug-in code in its traceback pass unchanged.
    Commands, pages and runs use this context, so that a plug-in's probes, metrics and rules need no wrapper.

    Args:
        title: The plug-in whose code runs, if known; otherwise it is found from the traceback.
        doing: What the code was doing, such as "in load"; by default, the name of the plug-in's function.

    Raises:
        InvalidInput: for any exception raised by a plug-in, including SystemExit.
    """
    try:
        yield
    except VlprobeError:
        raise
    except (Exception, SystemExit) as error:  # a plug-in may raise anything
        frames = traceback.extract_tb(error.__traceback__)
        of_plugins = [
            (frame, owner)
            for frame in frames
            for root, owner in _plugin_titles.items()
            if Path(frame.filename).is_relative_to(root)
        ]
        if is_out_of_memory(error) or not (title or of_plugins):
            raise
        first, owner = of_plugins[0] if of_plugins else (frames[-1], title)
        last = of_plugins[-1][0] if of_plugins else frames[-1]
        place = f"({Path(last.filename).name}, line {last.lineno})"
        message = " ".join(str(error).split()) or "no reason given"
        raise InvalidInput(
            f"{title or owner} raised {type(error).__name__} {doing or f'in {first.name}'} {place}: {message}"
        ) from error
