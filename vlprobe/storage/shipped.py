"""Bundled results: read-only stores inside the package.

    published_results    answers from real models, published by their authors (`tools.ship_published`)
    shipped_results      answers from the tiny models to questions about drawn scenes (`tools.ship`)

All code that shows results opens its store with `opened`. A run that is also in the user's store is read from
there. All writes (annotations, saved views, jobs) go to the user's store.

    VLPROBE_SHIPPED=FOLDER    folder with bundled results; empty: none are shown
"""

import functools
import hashlib
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from vlprobe.errors import InvalidInput
from vlprobe.storage.entry import Entry
from vlprobe.storage.files import present
from vlprobe.storage.store import DEFAULT, Store

SETTING = "VLPROBE_SHIPPED"
THUMBNAILS = "thumbnails.parquet"
FOLDER = Path(__file__).resolve().parent / "shipped_results"
PUBLISHED_FOLDER = FOLDER.with_name("published_results")


def folders() -> tuple[Path, ...]:
    """Return the folders with bundled results to show, highest priority first. The tuple may be empty."""
    return tuple(path for path in _configured_folders() if path.is_dir())


def _configured_folders() -> tuple[Path, ...]:
    setting = os.environ.get(SETTING)
    if setting is None:
        return PUBLISHED_FOLDER, FOLDER
    return (Path(setting),) if setting else ()


def thumbnail(key: str) -> bytes | None:
    """Return the bundled WebP thumbnail for a key, or None if there is none."""
    every = (_thumbnails(path / THUMBNAILS).get(key) for path in _configured_folders())
    return next(filter(None, every), None)


@functools.lru_cache(maxsize=4)  # each thumbnail needs it: the files take 7 ms to read
def _thumbnails(file: Path) -> dict[str, bytes]:
    try:
        table = pq.read_table(file)
    except (OSError, pa.ArrowInvalid):  # the thumbnails are drawn again
        return {}
    return dict(zip(table["key"].to_pylist(), table["content"].to_pylist(), strict=True))


class StoreAboveShipped(Store):
    """The user's store, combined with read-only stores whose runs it also shows.

    Args:
        root: The folder of the user's store.
        shipped_root: The folder of a read-only store.
        more_roots: Folders of further read-only stores, in order of decreasing priority.
    """

    def __init__(self, root: Path | str, shipped_root: Path, *more_roots: Path) -> None:
        super().__init__(root)
        self.shipped = (
            StoreAboveShipped(shipped_root, *more_roots) if more_roots else Store(shipped_root)
        )
        self._shipped_version = self.shipped.version()

    def __reduce__(self) -> tuple:
        return StoreAboveShipped, (self.address, *self.shipped.roots)

    @property
    def roots(self) -> tuple[Path, ...]:
        """Return the user's folder, followed by the folders with bundled results."""
        return (self.root, *self.shipped.roots)

    def is_shipped(self, run_key: str) -> bool:
        """Return whether a run is read from the bundled results."""
        return self.listing_fact(("is_shipped", run_key), lambda: self._reads_shipped(run_key))

    def _reads_shipped(self, run_key: str) -> bool:
        return _complete(self.shipped.run(run_key)) and not _complete(
            super()._entry("runs", run_key)
        )

    def _entry(self, kind: str, key: str) -> Entry:
        entry = super()._entry(kind, key)
        shipped_entry = self.shipped._entry(kind, key)
        return shipped_entry if _complete(shipped_entry) and not _complete(entry) else entry

    def _read_runs(self) -> tuple[list[dict[str, Any]], dict[str, InvalidInput]]:
        """Return the bundled runs followed by the user's runs, oldest first, and the errors for unreadable runs."""
        manifests, unread = super()._read_runs()
        keys = {manifest["key"] for manifest in manifests}
        shipped_manifests, shipped_unread = self.shipped.read_runs()
        below = [manifest for manifest in shipped_manifests if manifest["key"] not in keys]
        return [*below, *manifests], shipped_unread | unread

    def _read_version(self) -> str:
        own_version = super()._read_version()
        return hashlib.sha256(f"{own_version}:{self._shipped_version}".encode()).hexdigest()[:16]


def opened(root: Path | str = DEFAULT) -> Store:
    """Open the user's store together with the bundled results. Dashboard, commands and Python API use this store."""
    store = Store(root)
    below = [path for path in folders() if path.resolve() != store.root]
    return StoreAboveShipped(root, *below) if below else store


def _complete(entry: Entry) -> bool:
    return present(entry.folder / "manifest.json")
