"""Display names for models and datasets, shared by everyone who uses the cache.

mine/display_names.json    stored name to display name; replaced atomically by one process at a time

Keys, digests and results do not contain display names.
"""

from collections.abc import Mapping
from pathlib import Path

from vlprobe.errors import InvalidInput
from vlprobe.storage import access, files, mine
from vlprobe.storage.store import Store

MAX_LENGTH = 60
MAX_NAMES = 1000


def read(store: Store) -> Mapping[str, str]:
    """Return the display name for each stored name. A damaged file gives an empty mapping; `check` reports it."""
    try:
        return check(store)
    except InvalidInput:
        return {}


def check(store: Store) -> Mapping[str, str]:
    """Return the display name for each stored name. Raises InvalidInput if the file is damaged."""
    names = files.read_texts(_path(store), "so models appear under their stored names")
    return {name: _valid(display) for name, display in names.items()}


def version(store: Store) -> tuple[int, int]:
    """Return a value that changes when any name changes."""
    return files.version(_path(store))


def rename(store: Store, name: str, display: str) -> None:
    """Set the display name for a model or dataset. An empty display name removes it.

    Raises:
        InvalidInput: the display name is too long, not printable or already used, there are too many names, or the
            cache is read-only.
    """
    access.refuse_writing()
    display = " ".join(display.split())
    if display:
        _valid(display)
    with files.lock(_path(store).with_suffix(".lock"), lambda: None):
        names = dict(check(store))
        names.pop(name, None)
        if display and display in names.values():
            raise InvalidInput(f"'{display}' is already in use. Choose another name.")
        if display:
            names[name] = display
        if len(names) > MAX_NAMES:
            raise InvalidInput(
                f"The limit of {MAX_NAMES:,} names is reached. Remove a name that is no longer "
                "used."
            )
        files.write_json(_path(store), names)


def _valid(display: str) -> str:
    """Return the display name unchanged if it is valid. Raises InvalidInput otherwise."""
    if not 0 < len(display) <= MAX_LENGTH or not display.isprintable():
        raise InvalidInput(
            f"'{display[:80]}' is not a valid display name. Expected 1 to {MAX_LENGTH} characters."
        )
    return display


def _path(store: Store) -> Path:
    return mine.path(store.root, "display_names.json")
