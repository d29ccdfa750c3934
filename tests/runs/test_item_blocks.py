"""Items that workers of a run read in blocks, and never have whole."""

import pickle
from pathlib import Path

import pytest

from vlprobe.errors import StoredDamage
from vlprobe.runs import item_blocks
from vlprobe.runs.item_blocks import ItemBlocks
from vlprobe.storage.store import Store
from vlprobe.types import Item, Picture, PictureEdit, Series

KEY = "0a" * 16
MIXED = Picture(Path("/d/é \udc80.png"), PictureEdit("mix", Path("/d/b.png"), 0.1, 3))
ITEMS = [
    Item("a", Picture(Path("/d/a.png"), absent="x1"), ("a cat", "a\n'cat'"), {"year": "2001"}),
    Item("", None, ("texts only",)),
    Item("c", MIXED, ("b",), {}, ("not b",), Picture(Path("/d/c.png")), "cluster", "P2"),
    Item("d", None, ("q",), series=Series((MIXED, MIXED), (0.1, 1 / 3), 0.2)),
    Item("e", None, ("q",), series=Series((MIXED, MIXED, MIXED), edit_order=(2, 0))),
]


@pytest.fixture(params=[2, 5, 4096])
def blocks(request, tmp_path, monkeypatch) -> ItemBlocks:
    monkeypatch.setattr(item_blocks, "BLOCK_ITEMS", request.param)
    return ItemBlocks.write(Store(tmp_path), KEY, ITEMS)


def test_a_worker_reads_the_items_that_were_written(blocks, monkeypatch):
    sent = pickle.dumps(blocks)
    assert b"cat" not in sent, "items go to a worker whole"
    monkeypatch.setattr(item_blocks, "BLOCK_ITEMS", 3)  # another machine's
    read = pickle.loads(sent)
    assert list(read) == ITEMS
    assert [read[number] for number in (4, 0, -2)] == [ITEMS[4], ITEMS[0], ITEMS[-2]]
    assert read[1:4] == ITEMS[1:4]
    assert len(read) == 5
    with pytest.raises(IndexError):
        read[5]


def test_a_damaged_block_is_told_and_written_again(tmp_path, monkeypatch):
    monkeypatch.setattr(item_blocks, "BLOCK_ITEMS", 2)
    store = Store(tmp_path)
    ItemBlocks.write(store, KEY, ITEMS)
    paths = sorted((store.run(KEY).folder / "parts").glob("items-*.parquet"))
    assert len(paths) == 3
    kept = {path.stat().st_ino for path in paths[1:]}
    paths[0].write_bytes(b"x")
    blocks = ItemBlocks(store, KEY, [paths[0].stem], 1, 2)
    with pytest.raises(StoredDamage, match="The same command writes them again"):
        blocks[0]
    assert list(ItemBlocks.write(store, KEY, ITEMS)) == ITEMS
    assert kept <= {path.stat().st_ino for path in paths}, "what was whole was written again"
