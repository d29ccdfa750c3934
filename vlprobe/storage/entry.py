"""Cache entries. An entry is a folder with tables that are written once. It has parts while it is incomplete and a
manifest once it is complete.

Each file is written under a temporary name, read back, flushed to disk and renamed.
"""

import bisect
import contextlib
import functools
import hashlib
import itertools
import json
import logging
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from vlprobe.errors import InvalidInput, StoredDamage
from vlprobe.storage.files import (
    atomic_writer,
    parse_json_object,
    present,
    replace_surrogates,
    sha256,
    unreadable,
    write_json,
)

SCHEMA = 2
GROUP_ROWS = 8192  # per row group, all read to show one row; smaller groups make full reads slower
BLOCK_ROWS = 122_880  # read at a time in a full read
GROUP_BYTES = 64 << 20  # per row group, which is in memory while it is written or read
RETRY_SECONDS = 0.5  # between two looks at a table whose checksum differs
# Fields in a run's manifest and their types; manifests in a bucket are untrusted.
FieldType = type | tuple[type, ...]
NUMBER = (int, float)
REQUIRED_FIELDS: dict[str, FieldType] = {
    "key": str,
    "case_key": str,
    "run": dict,
    "finished": str,
    "note": str,
}
REQUIRED_FIELDS |= {"n_items": int, "n_cases": int, "spread": NUMBER, "seconds": NUMBER}
OPTIONAL_FIELDS: dict[str, FieldType] = {"dropped": dict, "findings": list, "notes": list}
OPTIONAL_FIELDS |= {"erased": dict, "n_units": int}
RUN_FIELDS: dict[str, FieldType] = {
    "model": str,
    "model_digest": str,
    "dataset": str,
    "dataset_digest": str,
    "probe": str,
    "probe_version": int,
}
RUN_FIELDS |= {"metrics": list, "options": dict, "seed": int, "limit": int}
SELECTION_FIELDS: dict[str, FieldType] = {"item": list, "where": list, "sample": int}
SELECTION_FIELDS |= {"without": list, "errata": list}


class TableWriter:
    """Writer for one Parquet file. It takes tables of any length and writes row groups of about GROUP_ROWS or
    GROUP_BYTES.

    Once the file is written, `line` holds its record for the manifest.
    """

    def __init__(self, handle: BinaryIO) -> None:
        self.rows = 0
        self.line: dict[str, object] = {}
        self._handle = handle
        self._parquet: pq.ParquetWriter | None = None
        self._pending: list[pa.Table] = []  # rows of the next row group
        self._pending_bytes = 0

    def write(self, table: pa.Table) -> None:
        """Append rows. Rows that do not fill a row group are held until the next call."""
        for start in range(0, table.num_rows, GROUP_ROWS) or [0]:
            self._pending.append(table.slice(start, GROUP_ROWS))
            self._pending_bytes += self._pending[-1].nbytes
            pending_rows = sum(piece.num_rows for piece in self._pending)
            if self._pending_bytes >= GROUP_BYTES or pending_rows >= GROUP_ROWS:
                self.flush()

    def flush(self) -> None:
        """Write the held rows as one row group."""
        if not self._pending:
            return
        group = pa.concat_tables(self._pending)
        self._pending, self._pending_bytes = [], 0
        if self._parquet is None:
            repeated = _words(group.schema)
            self._parquet = pq.ParquetWriter(
                self._handle,
                group.schema,
                compression="zstd",
                use_dictionary=repeated,  # pyright: ignore[reportArgumentType] - the stub has bool, pyarrow takes names
            )
        self._parquet.write_table(group, row_group_size=max(1, group.num_rows))
        self.rows += group.num_rows

    def close(self) -> None:
        """Write the file's footer."""
        if self._parquet:
            self._parquet.close()
            self._parquet = None


@contextlib.contextmanager
def _table_writer(path: Path) -> Iterator[TableWriter]:
    """Open a writer for one Parquet file, which appears atomically when the block ends."""
    with atomic_writer(path) as handle:
        writer = TableWriter(handle)
        try:
            yield writer
            writer.flush()
        finally:
            writer.close()
        handle.flush()
        file = Path(handle.name)
        if pq.read_metadata(file).num_rows != writer.rows:
            raise InvalidInput(
                "A result file differs from what was written. Check the memory and the disk of this machine."
            )
        size = file.stat().st_size
        writer.line |= {
            "name": path.name,
            "rows": writer.rows,
            "bytes": size,
            "sha256": sha256(file),
        }


def _write(path: Path, tables: Iterable[pa.Table]) -> dict:
    """Write all tables to one Parquet file, one after another, and return its record for the manifest."""
    with _table_writer(path) as writer:
        for table in tables:
            writer.write(table)
    return writer.line


def _words(schema: pa.Schema) -> list[str]:
    """Return the Parquet names of text and text-list columns, in which values repeat because edits share captions."""
    strings = [field.name for field in schema if pa.types.is_string(field.type)]
    lists = [field for field in schema if pa.types.is_list(field.type)]
    return strings + [
        f"{field.name}.list.element" for field in lists if pa.types.is_string(field.type.value_type)
    ]


def _seal(manifest: Mapping[str, object]) -> str:
    """Return the checksum over all fields of a manifest except the checksum itself."""
    fields = {name: value for name, value in manifest.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


def parse_manifest(content: bytes) -> dict[str, Any] | None:
    """Return the fields of a manifest, or None if its checksum differs or a field has an unexpected type."""
    try:
        manifest = parse_json_object(content.decode())
        intact = manifest.get("sha256") in (None, _seal(manifest)) and all(
            map(_is_file_record, manifest["files"])
        )
        if intact and manifest["schema"] == SCHEMA:
            intact = _has_types(manifest, REQUIRED_FIELDS | OPTIONAL_FIELDS)
            if intact and "run" in manifest:
                intact = set(REQUIRED_FIELDS) <= set(manifest) and _is_run(manifest["run"])
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        # Not JSON, or not a manifest
        return None
    return replace_surrogates(manifest) if intact else None


def _has_types(fields: Mapping[str, object], types: Mapping[str, FieldType]) -> bool:
    return all(isinstance(fields[name], kind) for name, kind in types.items() if name in fields)


def _is_run(run: Mapping[str, object]) -> bool:
    """Return whether the fields describe a run. A `selection` is optional."""
    selection = run.get("selection", {})
    return (
        set(run) - {"selection"} == set(RUN_FIELDS)
        and _has_types(run, RUN_FIELDS)
        and isinstance(selection, dict)
        and set(selection) <= set(SELECTION_FIELDS)
        and _has_types(selection, SELECTION_FIELDS)
    )


def _is_file_record(record: Mapping[str, Any]) -> bool:
    """Return whether a record names a Parquet file next to the manifest and gives its checksum."""
    return bool(
        re.fullmatch(r"[\w-]+\.parquet", record["name"])
        and re.fullmatch("[0-9a-f]{64}", record["sha256"])
    )


def part_record(path: Path) -> dict[str, Any] | None:
    """Return the record that was stored with a part, or None if the part is missing or damaged."""
    try:
        record = parse_json_object(path.with_suffix(".json").read_text("utf-8"))
        return record if _is_file_record(record) and record["sha256"] == sha256(path) else None
    except (OSError, ValueError, TypeError, KeyError):
        return None


def verify_table(path: Path) -> None:
    """Raise InvalidInput if a table in a complete cache entry is missing or differs from what was written.

    Each file is checked once per process, and again if its size or modification time has changed.
    """
    try:
        status = path.stat()
        _verify_checksum(path, status.st_size, status.st_mtime_ns)
    except OSError as error:
        raise unreadable(path, error) from None


@functools.lru_cache(maxsize=10_000)  # each query needs it: 1.5 ms per megabyte
def _verify_checksum(path: Path, size: int, time_ns: int) -> None:
    # Tried twice: a process may be between writing the table and the manifest
    for pause in (RETRY_SECONDS, 0):
        checksums = {
            record["name"]: record["sha256"] for record in Entry(path.parent).manifest()["files"]
        }
        if checksums.get(path.name) == sha256(path):
            return
        time.sleep(pause)
    raise StoredDamage(f"'{path}' has changed since it was written: its checksum differs.")


class Entry:
    """Cache entry: a folder with parts while it is incomplete, and with tables and a manifest once it is complete."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def complete(self) -> bool:
        """Return whether the entry has a manifest in the current SCHEMA."""
        return present(self.folder / "manifest.json") and self.manifest()["schema"] == SCHEMA

    def manifest(self) -> dict[str, Any]:
        """Return the fields in the manifest. Raises InvalidInput if it is missing or damaged."""
        path = self.folder / "manifest.json"
        try:
            manifest = parse_manifest(path.read_bytes())
        except FileNotFoundError:
            raise InvalidInput(
                f"Nothing is stored in '{self.folder}'. `vlprobe show` lists what is stored."
            ) from None
        except OSError as error:
            raise unreadable(path, error) from None
        if manifest is None:
            raise StoredDamage(f"'{path}' is damaged.")
        return manifest

    def has_table(self, name: str) -> bool:
        """Return whether a complete cache entry has the named table. Entries from earlier versions may lack one."""
        return any(line["name"] == f"{name}.parquet" for line in self.manifest()["files"])

    def part(self, name: str) -> pa.Table | None:
        """Return a finished part, or None if it is missing or damaged; a damaged part is computed again."""
        path = self.folder / "parts" / f"{name}.parquet"
        if not self.has_part(name):
            return None
        if part_record(path):
            return pq.read_table(path)
        logging.getLogger(__name__).warning("'%s' is damaged and will be recomputed.", path)
        return None

    def has_part(self, name: str) -> bool:
        """Return whether a part is finished, which means that the record written after its table exists."""
        return (self.folder / "parts" / f"{name}.json").exists()

    def parts(self) -> set[str]:
        """Return the names of all finished parts."""
        return {path.stem for path in (self.folder / "parts").glob("*.json")}

    def write_part(self, name: str, table: pa.Table) -> None:
        """Store a part. Parts with the same name always hold the same rows."""
        path = self.folder / "parts" / f"{name}.parquet"
        write_json(path.with_suffix(".json"), _write(path, [table]))

    def write(self, name: str, tables: Iterable[pa.Table]) -> dict:
        """Write a table to a file in the entry, one row group at a time, and return its record for the manifest."""
        return _write(self.folder / f"{name}.parquet", tables)

    def writer(self, name: str) -> contextlib.AbstractContextManager[TableWriter]:
        """Open a writer for a table in the entry. Pass the writer's `line` to `finish` afterwards."""
        return _table_writer(self.folder / f"{name}.parquet")

    def finish(
        self,
        tables: Mapping[str, pa.Table],
        facts: Mapping[str, object],
        files: Sequence[dict] = (),
    ) -> None:
        """Complete the entry: write all tables and a manifest with `facts` and `files`, and delete the parts."""
        files = [*files, *(self.write(name, [table]) for name, table in tables.items())]
        manifest = {**facts, "schema": SCHEMA, "files": files}
        self._commit(manifest | {"sha256": _seal(manifest)})

    def _commit(self, manifest: dict) -> None:
        write_json(self.folder / "manifest.json", manifest)
        shutil.rmtree(self.folder / "parts", ignore_errors=True)

    def table(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Read a table from a complete cache entry. Raises InvalidInput if its checksum differs."""
        return pq.read_table(self.table_path(name), columns=columns)

    def slices(
        self, name: str, ranges: Sequence[tuple[int, int]], columns: Sequence[str] | None = None
    ) -> Iterator[pa.Table]:
        """Yield the rows in each range (start, stop). Ranges must be in ascending order; one row group is in memory at
        a time.

        Raises InvalidInput if the table's checksum differs.
        """
        with pq.ParquetFile(self.table_path(name)) as file:
            sizes = [
                file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)
            ]
            starts = list(itertools.accumulate(sizes, initial=0))
            number, group = -1, pa.table({})
            for range_start, range_stop in ranges:
                pieces = []
                needed = bisect.bisect_right(starts, range_start) - 1
                while needed < len(sizes) and starts[needed] < range_stop:
                    if needed != number:
                        # Frees the previous group before the next is read
                        number, group = (needed, pa.table({}))
                        group = file.read_row_group(number, columns=columns)
                    start = max(range_start - starts[number], 0)
                    pieces.append(group.slice(start, range_stop - starts[number] - start))
                    needed += 1
                yield pa.concat_tables(pieces)

    def blocks(self, name: str, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield all rows in tables of up to BLOCK_ROWS rows. Raises InvalidInput if the table's checksum differs."""
        rows = pq.read_metadata(self.table_path(name)).num_rows
        return self.slices(
            name,
            [(start, min(start + BLOCK_ROWS, rows)) for start in range(0, rows, BLOCK_ROWS)],
            columns,
        )

    def table_path(self, name: str) -> Path:
        """Return the path to a table in a complete cache entry. Raises InvalidInput if its checksum differs."""
        path = self.folder / f"{name}.parquet"
        verify_table(path)
        return path
