"""Usage and cleanup of stored thumbnails."""

from dataclasses import replace

from vlprobe.errors import InvalidInput
from vlprobe.runs.questions import picture_names
from vlprobe.scoring.thumbnails import digests_of
from vlprobe.storage import containers, thumbnails
from vlprobe.storage.access import refuse_writing
from vlprobe.storage.store import Store
from vlprobe.storage.thumbnails import Usage
from vlprobe.types import Picture


def usage(store: Store) -> Usage:
    """Compute the total size of the thumbnails in a store and the number of unused ones."""
    used = _used(store)
    stored = thumbnails.usage(store.root, used or set())
    return stored if used is not None else replace(stored, n_unused=0)


def summary(stored: Usage) -> str:
    """Describe the size of the thumbnails in a sentence.

    >>> summary(Usage(1200, 5_300_000, 20))
    '1,200 thumbnails take 5.3 MB; 20 belong to removed results.'
    """
    unused = f"; {stored.n_unused:,} belong to removed results"
    return (
        f"{stored.n_entries:,} thumbnails take {stored.n_bytes / 1e6:.1f} MB"
        f"{unused if stored.n_unused else ''}."
    )


def clean(store: Store) -> int:
    """Remove unused thumbnails and thumbnails of mixed pictures, and return their number.

    Thumbnails of mixed pictures are rebuilt on demand. Nothing is removed if a result cannot be read,
    because it may use a thumbnail. Raises InvalidInput on a read-only server.
    """
    refuse_writing()
    used = _used(store)
    return 0 if used is None else thumbnails.remove_unused(store.root, used)


def _used(store: Store) -> set[str] | None:
    """Collect the digests of the pictures of all stored runs that exist at the stored paths; None if a stored run or
    its cases cannot be read.
    """
    manifests, unread = store.read_runs()
    if unread:
        return None
    used: set[str] = set()
    try:
        for case_key in {manifest["case_key"] for manifest in manifests}:
            paths = [Picture.from_name(name).path for name in picture_names(store.cases(case_key))]
            used.update(
                digests_of(store.root, [path for path in paths if containers.is_file(path)])
            )
    except InvalidInput:  # damaged or not readable, and reported as such
        return None
    return used
