"""Saved views of the dashboard: the query of their address under a name, shared by all who use the
cache.

mine/bookmarks.json    name to query; replaced atomically, one process at a time
"""

from pathlib import Path

from vlprobe.errors import InvalidInput, NotFound
from vlprobe.storage import access, files, mine
from vlprobe.storage.store import Store

NAME_LENGTH = 60
QUERY_LENGTH = 4000
MAX_BOOKMARKS = 100


def read(store: Store) -> dict[str, str]:
    """Return the queries by name, sorted. Raises InvalidInput if the file is damaged."""
    queries = files.read_texts(_path(store), "so no saved view can be listed")
    return dict(sorted(queries.items(), key=lambda pair: pair[0].lower()))


def save(store: Store, name: str, query: str) -> None:
    """Store a query under a name, replacing one of that name.

    Raises:
        InvalidInput: no name, too long, too many, or the cache is read-only.
    """
    access.refuse_writing()
    name = " ".join(name.split())
    if not 0 < len(name) <= NAME_LENGTH or not name.isprintable():
        raise InvalidInput(
            f"'{name[:80]}' is not a valid name for a view. Expected 1 to {NAME_LENGTH} characters."
        )
    if len(query) > QUERY_LENGTH:
        raise InvalidInput(
            f"This view's address has {len(query):,} characters. The maximum is {QUERY_LENGTH:,}."
        )
    with files.lock(_path(store).with_suffix(".lock"), lambda: None):
        queries = read(store) | {name: query}
        if len(queries) > MAX_BOOKMARKS:
            raise InvalidInput(
                f"The limit of {MAX_BOOKMARKS} saved views is reached. Delete a view that "
                "is no longer used."
            )
        files.write_json(_path(store), queries)


def remove(store: Store, name: str) -> None:
    """Remove a saved view. Raises NotFound."""
    access.refuse_writing()
    with files.lock(_path(store).with_suffix(".lock"), lambda: None):
        queries = read(store)
        if name not in queries:
            raise NotFound("saved view", name, queries)
        del queries[name]
        files.write_json(_path(store), queries)


def _path(store: Store) -> Path:
    return mine.path(store.root, "bookmarks.json")
