"""The items of a run in blocks beside its parts, for workers on other machines to read.

    items-DIGEST      so many items, each as JSON; named by its content, so that a run that goes on finds it again

A worker holds the block that it is at, and reads the next when it needs it.
"""

import functools
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from hashlib import blake2b
from typing import Any, overload

import pyarrow as pa

from vlprobe.errors import StoredDamage
from vlprobe.storage.entry import Entry
from vlprobe.storage.store import Store
from vlprobe.types import Item, Picture, Series

BLOCK_ITEMS = 4096  # of about 1 KB each
HELD_BLOCKS = 2  # by one process, as text


class ItemBlocks(Sequence[Item]):
    """Items that are read a block at a time; what is sent to a worker is where they stand.

    Raises StoredDamage where a block is damaged or gone.
    """

    def __init__(
        self, store: Store, run_key: str, block_names: Sequence[str], n_items: int, block_items: int
    ) -> None:
        self._store, self._run_key, self._block_names = store, run_key, block_names
        self._n_items, self._block_items = n_items, block_items
        self._entry = store.run(run_key)
        self._block = functools.lru_cache(maxsize=HELD_BLOCKS)(self._read)

    @classmethod
    def write(cls, store: Store, run_key: str, items: Sequence[Item]) -> "ItemBlocks":
        """Leaves the items where workers find them; what stands there undamaged stays."""
        entry = store.run(run_key)
        block_names = [
            _write(entry, [_line(item) for item in items[start : start + BLOCK_ITEMS]])
            for start in range(0, len(items), BLOCK_ITEMS)
        ]
        return cls(store, run_key, block_names, len(items), BLOCK_ITEMS)

    def __reduce__(self) -> tuple:
        address = self._store, self._run_key, self._block_names, self._n_items, self._block_items
        return ItemBlocks, address

    def __len__(self) -> int:
        return self._n_items

    @overload
    def __getitem__(self, index: int) -> Item: ...

    @overload
    def __getitem__(self, index: slice) -> list[Item]: ...

    def __getitem__(self, index: int | slice) -> Item | list[Item]:
        numbers = range(len(self))[index]
        if isinstance(numbers, range):
            return [self._item(number) for number in numbers]
        return self._item(numbers)

    def __iter__(self) -> Iterator[Item]:
        for number in range(len(self._block_names)):
            yield from map(_item, self._block(number))

    def _item(self, number: int) -> Item:
        block, place = divmod(number, self._block_items)
        return _item(self._block(block)[place])

    def _read(self, number: int) -> list[str]:
        table = self._entry.part(self._block_names[number])
        if table is None:
            raise StoredDamage(
                f"Items of this run are damaged or gone in '{self._entry.folder}'. Expected what was written when it "
                "began. The same command writes them again and goes on."
            )
        return table["item"].to_pylist()


def _write(entry: Entry, lines: list[str]) -> str:
    """Writes one block, unless it is there undamaged; returns its name."""
    digest = blake2b("\n".join(lines).encode(), digest_size=12).hexdigest()
    name = f"items-{digest}"
    if entry.part(name) is None:
        entry.write_part(name, pa.table({"item": pa.array(lines, pa.string())}))
    return name


def _line(item: Item) -> str:
    series = item.series and {
        **asdict(item.series),
        "pictures": [_named(picture) for picture in item.series.pictures],
    }
    fields: dict[str, Any] = {
        "id": item.id,
        "image": item.image and _named(item.image),
        "captions": item.captions,
        "tags": dict(item.tags),
        "foils": item.foils,
        "foil_image": item.foil_image and _named(item.foil_image),
        "cluster": item.cluster,
        "setting": item.setting,
        "series": series,
    }
    return json.dumps({name: value for name, value in fields.items() if value})


def _item(line: str) -> Item:
    fields = {"id": "", "image": None} | json.loads(line)
    for name in ("captions", "foils"):
        fields[name] = tuple(fields.get(name, ()))
    for name in ("image", "foil_image"):
        if fields.get(name):
            fields[name] = _picture(fields[name])
    if series := fields.get("series"):
        lists = {name: tuple(series[name]) for name in ("times", "edit_order")}
        pictures = tuple(map(_picture, series["pictures"]))
        fields["series"] = Series(**series | lists | {"pictures": pictures})
    return Item(**fields)


def _named(picture: Picture) -> list[str]:
    """A picture's name, and what tells one from others whose file is not here."""
    return [picture.name, picture.absent] if picture.absent else [picture.name]


def _picture(picture_fields: Sequence[str]) -> Picture:
    name, absent = (*picture_fields, "")[:2]
    picture = Picture.from_name(name)
    return replace(picture, absent=absent)
