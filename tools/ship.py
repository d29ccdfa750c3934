"""Build the bundled results: `python -m tools.ship CACHE`.

Every demo model runs every bundled probe on that probe's default dataset, in the cache (stored results are reused). The
runs are then written to `vlprobe/storage/shipped_results`, with all tables in their smallest encoding and with relative
picture names, which `datasets.drawn` can draw on any machine. No number is changed. Only numbers that no page shows are
removed (see `_shown`).
"""

import io
import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from vlprobe import registry
from vlprobe.errors import InvalidInput
from vlprobe.models.doctor import examine
from vlprobe.probes import rococo_galleries
from vlprobe.runs import questions
from vlprobe.runs.request import Progress, Request
from vlprobe.runs.run import execute
from vlprobe.scoring import pictures, thumbnails
from vlprobe.storage import shipped
from vlprobe.storage.entry import GROUP_ROWS, Entry
from vlprobe.storage.files import sha256
from vlprobe.storage.store import Store
from vlprobe.types import Picture

PROBES = ("lgip", "rococo", "eqben", "visla", "prsm", "series")  # bundled; from the five papers

LARGEST = 10_000_000  # size limit of the bundled store, in bytes
LEVEL = 19  # compression level of zstd
FAMILY = "demo"  # family of the bundled models
_FRONTS = f"{rococo_galleries.TABLE}.parquet"
_WITHOUT_TEXT_SCORES = ("paraphrase", "combined")  # kinds of cases whose text scores no page shows
_WITH_THUMBNAILS = "demo/test-*/*.png"
# Manifest facts that `Entry.finish` writes.
_OWN_FACTS = ("files", "schema", "sha256")


def models() -> tuple[str, ...]:
    """Return the names of the models with bundled answers: all demo models except the controls."""
    return tuple(registry.families("models")[FAMILY].NAMES)


def runs(store: Store, progress: Progress | None = None) -> list[dict]:
    """Return the manifests of all bundled runs. Runs that are not stored yet are executed first."""
    return [
        manifest
        for probe in PROBES
        for manifest in execute(Request(models(), "", probe), store, progress)
    ]


def ship(
    store: Store,
    manifests: list[dict],
    target: Path,
    contents: Mapping[str, bytes] = MappingProxyType({}),
) -> int:
    """Write runs, their question sets and the model checks to a new store.

    Args:
        store: The cache that contains the runs.
        manifests: The manifests of the runs.
        target: The folder for the new store; an existing folder is replaced completely.
        contents: Additional files for the new store, by relative path.

    Returns:
        The size of the new store in bytes.

    Raises:
        InvalidInput: The store would be larger than LARGEST, or would contain a path on this machine.
    """
    unfinished = target.with_name(f".{target.name}.tmp")
    shutil.rmtree(unfinished, ignore_errors=True)
    copy = Store(unfinished)
    lost = _lost_pictures(store, manifests)
    for manifest in manifests:
        is_lost = lost[manifest["case_key"]]
        _copy_entry(store.run(manifest["key"]), copy.run(manifest["key"]), store.root, is_lost)
    for case_key in lost:
        _copy_entry(store.cases(case_key), copy.cases(case_key), store.root, lost[case_key])
    _copy_examinations(store, copy, manifests)
    _write_thumbnails(copy, manifests)
    for name, content in contents.items():
        (unfinished / name).parent.mkdir(parents=True, exist_ok=True)
        (unfinished / name).write_bytes(content)
    size = sum(path.stat().st_size for path in unfinished.rglob("*") if path.is_file())
    if size > LARGEST:
        raise InvalidInput(f"{size:,} bytes are too many to ship. Expected at most {LARGEST:,}.")
    shutil.rmtree(target, ignore_errors=True)
    os.replace(unfinished, target)
    return size


def _lost_pictures(store: Store, manifests: list[dict]) -> dict[str, np.ndarray]:
    """Find, by case key, the cases in which a model ranks the picture first among unmixed pictures but not among all
    pictures: bool of shape (n_cases,).
    """
    lost = {
        manifest["case_key"]: np.zeros(manifest["n_cases"], dtype=bool) for manifest in manifests
    }
    for manifest in manifests:
        entry = store.run(manifest["key"])
        if _FRONTS in (record["name"] for record in entry.manifest()["files"]):
            scores = entry.table("scores", ["kind", "rank_clean", "rank"]).to_pandas()
            is_lost = (scores["kind"] == "t2i") & (scores["rank_clean"] == 1) & (scores["rank"] > 1)
            lost[manifest["case_key"]] |= is_lost.to_numpy()
    return lost


def _shown(name: str, table: pa.Table, is_lost: np.ndarray) -> pa.Table:
    """Replace large values that no page shows with empty lists and nulls.

    These are the similarities between the captions of a picture (which were only needed for metrics), and the top of a
    gallery in which no model is fooled.

    Args:
        name: The file name of the table.
        table: The stored table.
        is_lost: The result of `_lost_pictures` for the table's cases.
    """
    if name == _FRONTS:
        columns = [
            table[field.name]
            if field.name in ("run", "case")
            else pc.call_function(
                "if_else", [pa.array(is_lost), table[field.name], pa.scalar(None, field.type)]
            )
            for field in table.schema
        ]
        return pa.table(columns, schema=table.schema)
    if name == "scores.parquet":
        index = table.schema.get_field_index("text_scores")
        field = table.schema.field(index)
        pairs = zip(table["kind"].to_pylist(), table["text_scores"].to_pylist(), strict=True)
        lists = [[] if kind in _WITHOUT_TEXT_SCORES else scores for kind, scores in pairs]
        return table.set_column(index, field, pa.array(lists, field.type))
    return table


def _copy_entry(entry: Entry, copy: Entry, root: Path, is_lost: np.ndarray) -> None:
    manifest = entry.manifest()
    copy.folder.mkdir(parents=True)
    records = []
    for name in (record["name"] for record in manifest["files"]):
        table = _shown(name, entry.table(Path(name).stem), is_lost)
        records.append(_write(copy.folder / name, portable(table, root)))
    facts = {name: fact for name, fact in manifest.items() if name not in _OWN_FACTS}
    _refuse_paths(json.dumps(facts), root)
    copy.finish({}, facts, records)


def portable(table: pa.Table, root: Path) -> pa.Table:
    """Return a table in which the cache's pictures have names relative to the cache.

    Raises:
        InvalidInput: The table still contains a path on this machine.
    """
    for index, field in enumerate(table.schema):
        values = table[field.name].to_pylist()
        if _holds_text(field.type) and str(root) in json.dumps(values):
            relative = json.loads(json.dumps(values).replace(_escaped(f"{root}/"), ""))
            _refuse_paths(json.dumps(relative), root)
            table = table.set_column(index, field, pa.array(relative, field.type))
    return table


def _holds_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or (pa.types.is_list(kind) and _holds_text(kind.value_type))


def _escaped(text: str) -> str:
    return json.dumps(text)[1:-1]


def _refuse_paths(text: str, root: Path) -> None:
    if _escaped(str(root)) in text:
        raise InvalidInput(f"A path in '{root}' would be shipped: {text[:200]}")


def _write(path: Path, table: pa.Table) -> dict[str, object]:
    """Write a table with the smallest encoding for each column, and return its entry in a manifest."""
    encodings: dict[str, str] = {}
    dictionaries: list[str] = []
    for field in table.schema:
        sizes = {
            _size(table.select([field.name]), options): (names, options)
            for names, options in _encodings(field)
        }
        names, options = sizes[min(sizes)]
        if options == "dictionary":
            dictionaries += names
        elif options:
            encodings |= dict.fromkeys(names, options)
    pq.write_table(
        table,
        path,
        compression="zstd",
        compression_level=LEVEL,
        use_dictionary=dictionaries,  # pyright: ignore[reportArgumentType] - the stub has bool, pyarrow takes names
        column_encoding=encodings or None,
        row_group_size=GROUP_ROWS,
        write_statistics=False,  # saves 0.05 of 10 MB; queries over so few rows do not need them
    )
    return {
        "name": path.name,
        "rows": table.num_rows,
        "bytes": path.stat().st_size,
        "sha256": sha256(path),
    }


def _encodings(field: pa.Field) -> Iterator[tuple[list[str], str]]:
    """Yield the names of a field's Parquet columns with each encoding that they support; "" is the plain encoding."""
    leaf, names = field.type, [field.name]
    if pa.types.is_list(leaf):
        leaf, names = leaf.value_type, [f"{field.name}.list.element"]
    if pa.types.is_map(leaf):
        names = [f"{field.name}.key_value.{side}" for side in ("key", "value")]
    yield names, ""
    yield names, "dictionary"
    if pa.types.is_floating(leaf):
        yield names, "BYTE_STREAM_SPLIT"
    if pa.types.is_integer(leaf):
        yield names, "DELTA_BINARY_PACKED"


def _size(column: pa.Table, encoding: str) -> int:
    (field,) = column.schema
    name = f"{field.name}.list.element" if pa.types.is_list(field.type) else field.name
    buffer = io.BytesIO()
    pq.write_table(
        column,
        buffer,
        compression="zstd",
        compression_level=LEVEL,
        use_dictionary=encoding == "dictionary",
        column_encoding={name: encoding} if encoding not in ("", "dictionary") else None,
        row_group_size=GROUP_ROWS,
    )
    return buffer.tell()


def _copy_examinations(store: Store, copy: Store, manifests: list[dict]) -> None:
    pairs = {
        (manifest["run"]["model_digest"], manifest["run"]["dataset_digest"])
        for manifest in manifests
    }
    for examination in examine.load(store):
        if (examination.model_digest, examination.dataset_digest) in pairs:
            _refuse_paths(json.dumps(asdict(examination)), store.root)
            name = f"{examination.model_digest}-{examination.dataset_digest}.json"
            (copy.root / "models").mkdir(exist_ok=True)
            shutil.copyfile(store.root / "models" / name, copy.root / "models" / name)


def _write_thumbnails(copy: Store, manifests: list[dict]) -> None:
    """Write thumbnails for the scenes that most probes use. Pictures of pairs are drawn when a page shows them."""
    names = {
        name
        for case_key in dict.fromkeys(manifest["case_key"] for manifest in manifests)
        for name in questions.picture_names(copy.cases(case_key))
        if Path(name).match(_WITH_THUMBNAILS)
    }
    scenes = [Picture.from_name(name) for name in sorted(names)]
    contents = {
        thumbnails.name_key(scene): thumbnails.make(scene, pictures.read(scene)) for scene in scenes
    }
    table = pa.table({"key": list(contents), "content": list(contents.values())})
    path = copy.root / shipped.THUMBNAILS
    pq.write_table(table, path, compression="zstd", compression_level=LEVEL, use_dictionary=False)


def main(arguments: list[str]) -> str:
    """Run everything that is missing in the cache, write the bundled store, and return a summary line with its size."""
    store = Store(arguments[0])
    manifests = runs(store)
    size = ship(store, manifests, shipped.FOLDER)
    return f"{len(manifests)} runs, {size:,} bytes in {shipped.FOLDER}"


if __name__ == "__main__":
    sys.stdout.write(f"{main(sys.argv[1:])}\n")
