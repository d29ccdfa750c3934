"""Results that come with vlprobe: a store in the package that is read and never written to.

Whatever shows results opens its store here (`opened`). They are shown below one's own: a run that is
in both is one's own. Everything that is written (annotations, saved views, jobs) goes to one's own store.

    VLPROBE_SHIPPED=FOLDER    another folder of such results; empty: none are shown
"""

import functools
import hashlib
import os
from collections.abc import Mapping
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


def folder() -> Path | None:
    """The folder of the shipped results; None where there are none, or none are to be shown."""
    path = _configured_folder()
    return path if path and path.is_dir() else None


def _configured_folder() -> Path | None:
    setting = os.environ.get(SETTING)
    return FOLDER if setting is None else Path(setting) if setting else None


def thumbnail(key: str) -> bytes | None:
    """The shipped small copy of a picture, WebP; None where there is none."""
    path = _configured_folder()
    return _thumbnails(path / THUMBNAILS).get(key) if path else None


def write_thumbnails(path: Path, contents: Mapping[str, bytes]) -> None:
    """Writes small copies by their keys into one file of a folder of shipped results."""
    table = pa.table({"key": list(contents), "content": list(contents.values())})
    pq.write_table(
        table, path / THUMBNAILS, compression="zstd", compression_level=19, use_dictionary=False
    )


@functools.lru_cache(maxsize=4)
def _thumbnails(file: Path) -> dict[str, bytes]:
    try:
        table = pq.read_table(file)
    except (OSError, pa.ArrowInvalid):  # they are drawn again
        return {}
    return dict(zip(table["key"].to_pylist(), table["content"].to_pylist(), strict=True))


class StoreAboveShipped(Store):
    """One's own store, which also shows the runs of another one that is only read.

    Args:
        root: Of one's own.
        shipped_root: Of the other.
    """

    def __init__(self, root: Path | str, shipped_root: Path) -> None:
        super().__init__(root)
        self.shipped = Store(shipped_root)
        self._shipped_version = self.shipped.version()

    def __reduce__(self) -> tuple:
        return StoreAboveShipped, (self.address, self.shipped.root)

    @property
    def roots(self) -> tuple[Path, ...]:
        """One's own folder, then that of the shipped results."""
        return (self.root, self.shipped.root)

    def is_shipped(self, run_key: str) -> bool:
        """Whether a run is read from the shipped results."""
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
        """The shipped ones first, then one's own, oldest first."""
        manifests, unread = super()._read_runs()
        keys = {manifest["key"] for manifest in manifests}
        shipped_manifests, shipped_unread = self.shipped.read_runs()
        below = [manifest for manifest in shipped_manifests if manifest["key"] not in keys]
        return [*below, *manifests], shipped_unread | unread

    def _read_version(self) -> str:
        own_version = super()._read_version()
        return hashlib.sha256(f"{own_version}:{self._shipped_version}".encode()).hexdigest()[:16]


def opened(root: Path | str = DEFAULT) -> Store:
    """One's own store with the shipped results below it: what the pages, Python and the command line show."""
    store, below = Store(root), folder()
    if below is None or below.resolve() == store.root:
        return store
    return StoreAboveShipped(root, below)


def _complete(entry: Entry) -> bool:
    return present(entry.folder / "manifest.json")
