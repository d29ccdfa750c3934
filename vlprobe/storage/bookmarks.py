"""Views of the dashboard that people gave a name: the query of the address, kept in the cache for all who use it.

bookmarks.json    name to query; written whole, one process at a time
"""

from pathlib import Path

from vlprobe.errors import InvalidInput, NotFound
from vlprobe.storage import access, files
from vlprobe.storage.store import Store

NAME_LENGTH = 60
QUERY_LENGTH = 4000
MAX_BOOKMARKS = 100


def read(store: Store) -> dict[str, str]:
    """Queries by name, in the order of the alphabet. Raises InvalidInput where the file is damaged."""
    path = _path(store)
    if not path.exists():
        return {}
    try:
        found = {str(name): str(query) for name, query in files.parse_json(path.read_text("utf-8")).items()}
    except OSError as error:
        raise InvalidInput(files.unreadable_message(path, error)) from None
    except (ValueError, AttributeError):
        raise InvalidInput(f"'{path}' is damaged, so no saved view can be listed. Repair or delete it.") from None
    return dict(sorted(found.items(), key=lambda pair: pair[0].lower()))


def save(store: Store, name: str, query: str) -> None:
    """Keeps a query under a name; one of that name is replaced.

    Raises:
        InvalidInput: no name, too long, too many, or nothing may be kept here.
    """
    access.refuse_writing()
    name = " ".join(name.split())
    if not 0 < len(name) <= NAME_LENGTH or not name.isprintable():
        raise InvalidInput(f"'{name[:80]}' is no name for a view. Expected 1 to {NAME_LENGTH} letters.")
    if len(query) > QUERY_LENGTH:
        raise InvalidInput(f"This view's address has {len(query):,} letters. Expected at most {QUERY_LENGTH:,}.")
    with files.lock(_path(store).with_suffix(".lock"), lambda: None):
        known = read(store) | {name: query}
        if len(known) > MAX_BOOKMARKS:
            raise InvalidInput(f"There are {MAX_BOOKMARKS} saved views. Remove one that is not used any more.")
        files.write_json(_path(store), known)


def remove(store: Store, name: str) -> None:
    """Forgets a saved view. Raises NotFound."""
    access.refuse_writing()
    with files.lock(_path(store).with_suffix(".lock"), lambda: None):
        known = read(store)
        if name not in known:
            raise NotFound("saved view", name, known)
        del known[name]
        files.write_json(_path(store), known)


def _path(store: Store) -> Path:
    return store.root / "bookmarks.json"
