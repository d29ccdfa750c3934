"""The store writes complete files or none and the manifest last, and reads nothing outside the cache."""

import os
from unittest.mock import Mock

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.conftest import facts
from vlprobe.errors import InvalidInput, NotFound
from vlprobe.storage import entry as storage_entry
from vlprobe.storage.files import write_bytes
from vlprobe.storage.store import Store

TABLE = pa.table(
    {"case": [0, 1, 2], "kind": ["flip", "flip", "paraphrase"], "margin": [0.1, -0.2, float("nan")]}
)


def finish(store: Store, key: str, when: str = "2026-01-01") -> None:
    store.run(key).finish({"scores": TABLE}, facts(key, when))


def test_a_run_without_a_manifest_is_not_listed(store: Store):
    store.run("a" * 16).write_part("0", TABLE)
    assert not store.run("a" * 16).complete
    assert store.runs() == []


def test_a_finished_table_reads_back_as_written(store: Store):
    finish(store, "a" * 16)
    assert store.run("a" * 16).table("scores").to_pandas().equals(TABLE.to_pandas())
    assert not (store.run("a" * 16).folder / "parts").exists()


def test_parts_exist_until_the_manifest_is_written_and_truncated_ones_count_as_missing(
    store: Store,
):
    entry = store.run("b" * 16)
    entry.write_part("0", TABLE)
    assert entry.has_part("0")
    assert entry.part("0").to_pandas().equals(TABLE.to_pandas())
    assert entry.part("1") is None
    path = entry.folder / "parts" / "0.parquet"
    path.write_bytes(path.read_bytes()[:50])
    assert entry.part("0") is None


def test_a_flipped_bit_is_detected_by_the_checksum(store: Store):
    finish(store, "a" * 16)
    path = store.run("a" * 16).folder / "scores.parquet"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(InvalidInput, match="checksum differs"):
        store.run("a" * 16).table("scores")


def test_runs_are_listed_in_the_order_in_which_they_finished(store: Store):
    finish(store, "b" * 16, "2026-01-02")
    finish(store, "a" * 16, "2026-01-03")
    assert [manifest["key"][0] for manifest in store.runs()] == ["b", "a"]


def test_a_run_is_found_by_the_beginning_of_its_key(store: Store):
    finish(store, "ab" * 8)
    assert store.find("aba")["key"] == "ab" * 8
    with pytest.raises(NotFound, match="No stored run named 'zz'"):
        store.find("zz")


def test_the_version_changes_with_every_completed_run(store: Store):
    empty = store.version()
    finish(store, "a" * 16)
    assert store.version() != empty


def test_a_snapshot_keeps_its_runs_its_version_and_its_derived_facts(store: Store):
    finish(store, "a" * 16)
    snapshot, version = store.snapshot(), store.version()
    names = [snapshot.listing_fact("first", lambda: store.runs()[-1]["key"])]
    finish(store, "b" * 16, "2026-01-02")
    assert [manifest["key"] for manifest in snapshot.runs()] == ["a" * 16]
    assert snapshot.version() == version != store.version()
    names += [
        one.listing_fact("first", lambda: store.runs()[-1]["key"]) for one in (snapshot, store)
    ]
    assert names == ["a" * 16, "a" * 16, "b" * 16]
    snapshot.runs()[0]["run"]["model"] = "mine"
    assert "mine" not in [manifest["run"]["model"] for manifest in snapshot.runs()]
    assert len(store.snapshot().runs()) == 2


def test_a_changed_manifest_is_read_again_and_callers_get_copies(
    store: Store,
):
    finish(store, "a" * 16)
    finish(store, "b" * 16)
    for each in (store, store.snapshot()):
        first = each.runs()
        first[0]["note"], first[0]["run"]["model"] = "mine", "mine"
        assert [manifest["note"] for manifest in each.runs()] == ["", ""]
        assert "mine" not in [manifest["run"]["model"] for manifest in each.runs()]
    path = store.run("b" * 16).folder / "manifest.json"
    path.write_bytes(path.read_bytes()[:-20])
    assert [manifest["key"] for manifest in store.runs()] == ["a" * 16]
    assert list(store.read_runs()[1]) == ["b" * 16]
    path.unlink()
    assert store.read_runs()[1] == {}


def test_the_version_changes_with_a_new_examination(store: Store):
    finish(store, "a" * 16)
    before = store.version()
    write_bytes(store.root / "models" / "m-d.json", b"{}")
    assert store.version() != before


def test_the_same_rows_give_the_same_bytes(store: Store):
    finish(store, "a" * 16)
    finish(store, "b" * 16)
    one, other = (store.run(key * 16).manifest()["files"][0]["sha256"] for key in "ab")
    assert one == other


def test_the_reader_cannot_leave_the_cache(store: Store, tmp_path):
    finish(store, "a" * 16)
    outside = tmp_path / "secret.csv"
    outside.write_text("x\n1\n")
    with store.cursor() as cursor:
        assert cursor.execute(
            "SELECT count(*) FROM read_parquet(?)", [store.files(["a" * 16], "scores")]
        ).fetchall() == [(3,)]
        for query in (
            f"SELECT * FROM read_csv('{outside}')",
            f"ATTACH '{tmp_path / 'x.duckdb'}'",
            "SET threads = 1",
        ):
            with pytest.raises(duckdb.Error):
                cursor.execute(query)


def test_a_failed_write_keeps_the_old_file_and_leaves_no_temporary_file(tmp_path, monkeypatch):
    path = tmp_path / "file.json"
    write_bytes(path, b"old")
    error = OSError(28, "No space left on device")
    monkeypatch.setattr(os, "fsync", Mock(side_effect=error))
    with pytest.raises(InvalidInput, match="No space left on device"):
        write_bytes(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_unwritable_cache_is_refused_before_any_work(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(InvalidInput, match="Cannot write to the cache"):
        Store(blocked / "cache").require_writable()


@pytest.mark.parametrize("rows", [1, 3, 100])
def test_a_table_written_in_pieces_reads_back_completely_and_in_slices(
    store: Store, monkeypatch, rows: int
):
    monkeypatch.setattr(storage_entry, "GROUP_ROWS", rows)
    monkeypatch.setattr(storage_entry, "BLOCK_ROWS", rows)
    whole = pa.table({"case": range(10), "texts": [["x"] * (number % 3) for number in range(10)]})
    entry = store.cases("a" * 16)
    written = entry.write("cases", (whole.slice(start, 2) for start in range(0, 10, 2)))
    entry.finish({}, {}, [written])
    assert entry.table("cases").equals(whole)
    ranges = [(0, 1), (1, 6), (8, 10)]
    for (first, last), rows_read in zip(ranges, entry.slices("cases", ranges), strict=True):
        assert rows_read.combine_chunks().equals(whole.slice(first, last - first).combine_chunks())
    blocks = list(entry.blocks("cases", ["case"]))
    assert [block.num_rows for block in blocks] == [rows] * (10 // rows) + [10 % rows] * (
        10 % rows > 0
    )
    assert pa.concat_tables(blocks).equals(whole.select(["case"]))


def test_the_memory_of_row_groups_is_limited(store: Store, monkeypatch):
    monkeypatch.setattr(storage_entry, "GROUP_BYTES", 1000)
    tables = (pa.table({"text": ["x" * 300]}) for _ in range(10))
    store.cases("a" * 16).finish({}, {}, [store.cases("a" * 16).write("cases", tables)])
    file = pq.ParquetFile(store.cases("a" * 16).folder / "cases.parquet")
    assert [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)] == [
        4,
        4,
        2,
    ]
    file.close()
