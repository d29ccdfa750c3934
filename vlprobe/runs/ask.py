"""Export of a run's question set to a folder OUT, for models outside vlprobe:

    pictures.parquet .jsonl   id, name, file (relative to OUT; "" if not included) for each distinct picture
    texts.parquet .jsonl      id, text for each distinct text
    cases.parquet .jsonl      id, item, kind, subtype, rule, roles, pictures, texts (their ids)
    pictures/                 pictures that exist only as an edit, as PNG; with `copies` all pictures
    questions.json            the request, the number of pairs, and how to import answers

Answer arrays without ids must have one row per picture or text, in the same order as the files above.
"""

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from vlprobe.errors import InvalidInput
from vlprobe.runs.context import RunContext
from vlprobe.runs.request import Progress, Request
from vlprobe.runs.run import QUESTION_FIELDS, prepare, write_questions
from vlprobe.scoring import pictures
from vlprobe.scoring.inputs import RunInputs, text_id
from vlprobe.storage import files
from vlprobe.storage.store import Store
from vlprobe.types import Picture

ROWS = 4096  # rows written at once
STRINGS = pa.list_(pa.string())
SCHEMAS = {
    "pictures": pa.schema([("id", pa.string()), ("name", pa.string()), ("file", pa.string())]),
    "texts": pa.schema([("id", pa.string()), ("text", pa.string())]),
    "cases": pa.schema(
        [
            *((name, pa.string()) for name in ("id", "item", "kind", "subtype", "rule")),
            *((name, STRINGS) for name in ("roles", "pictures", "texts")),
        ]
    ),
}
HOW = (
    (
        "embeddings:OUT, after you write pictures.npy and texts.npy here, with rows as in "
        "pictures.parquet and texts.parquet"
    ),
    "scores:OUT, after you write scores.npy here: pictures as rows, texts as columns",
    (
        "scores:FILE, with a label and a score per line; labels are CASE_cTEXT_iPICTURE, "
        "numbered from 0 in each case"
    ),
)


def ask(
    request: Request,
    folder: Path,
    store: Store,
    progress: Progress | None = None,
    copies: bool = False,
) -> dict[str, object]:
    """Write the question set for a request. The models in the request are ignored.

    Args:
        folder: The output folder OUT. Answers already in it are kept.
        copies: Whether to copy all pictures into the folder, so that it can be moved to another machine.

    Returns:
        The content of questions.json.

    Raises:
        InvalidInput: the folder cannot be written, or a picture cannot be read.
    """
    progress = progress or Progress()
    if folder.exists() and not folder.is_dir():
        raise InvalidInput(
            f"'{folder}' is a file, not a folder. Choose a folder for the questions."
        )
    dataset, items, probe, run = prepare(request, store, progress)
    context = RunContext(run, items, probe, request, store)
    write_questions(context, dataset, progress)
    inputs = context.inputs()
    id_of_name: dict[str, str] = {}
    pictures_asked = _pictures(inputs, folder, copies, id_of_name, progress)
    n_pictures = _write(folder, "pictures", pictures_asked)
    n_texts = _write(
        folder, "texts", ({"id": keys[0], "text": text} for text, keys in inputs.texts())
    )
    n_pairs = [0]
    n_cases = _write(folder, "cases", _cases(context, id_of_name, n_pairs))
    facts: dict[str, object] = {
        **{name: getattr(run, name) for name in ("probe", "case_key", *QUESTION_FIELDS)},
        **{"n_pictures": n_pictures, "n_texts": n_texts, "n_cases": n_cases},
        "n_pairs": n_pictures * n_texts if probe.needs == "gallery" else n_pairs[0],
        "needs": "every picture with every text"
        if probe.needs == "gallery"
        else "the pairs of each case",
        "answers": list(HOW),
    }
    files.write_json(folder / "questions.json", facts)
    return facts


def write_texts(folder: Path, texts: Iterable[str]) -> int:
    """Write texts.parquet and texts.jsonl, and return the number of texts. Raises InvalidInput if writing fails."""
    return _write(folder, "texts", ({"id": text_id(text), "text": text} for text in texts))


def _pictures(
    inputs: RunInputs, folder: Path, copies: bool, id_of_name: dict[str, str], progress: Progress
) -> Iterator[Mapping[str, object]]:
    """Yield a row for each distinct picture, and add the id for every picture name to `id_of_name`."""
    written_keys: set[str] = set()
    for picture, (key, *_) in inputs.pictures():
        id_of_name[picture.name] = key
        if key not in written_keys:
            written_keys.add(key)
            progress.update("Writing pictures", len(written_keys), len(written_keys))
            file = _file(picture, key, folder, copies)
            yield {"id": key, "name": picture.path.name, "file": file}


def _file(picture: Picture, key: str, folder: Path, copies: bool) -> str:
    """Write a picture to the folder if necessary. Returns the picture's path, or "" if its file is missing."""
    if picture.absent:
        return ""
    if picture.edit_key:
        name = f"pictures/{key}.png"
        content = pictures.encode(pictures.open_picture(picture), "PNG")
        files.write_bytes(folder / name, content, durable=False)
        return name
    if copies:
        name = f"pictures/{key}{picture.path.suffix.lower()}"
        files.write_bytes(folder / name, pictures.read_bytes(picture.path), durable=False)
        return name
    return str(picture.path)


def _cases(
    context: RunContext, id_of_name: Mapping[str, str], n_pairs: list[int]
) -> Iterator[Mapping[str, object]]:
    """Yield a row for each case, and add its number of pairs to `n_pairs`."""
    columns = ["id", "item", "kind", "subtype", "rule", "roles", "images", "texts"]
    for block in context.read_cases(columns):
        for row in block.to_pylist():
            images, texts = row.pop("images"), row.pop("texts")
            n_pairs[0] += len(images) * len(texts)
            picture_ids = [id_of_name[name] for name in images]
            yield {**row, "pictures": picture_ids, "texts": [text_id(text) for text in texts]}


def _write(folder: Path, name: str, rows: Iterable[Mapping[str, object]]) -> int:
    """Write rows as a Parquet and a JSON Lines file, in blocks, and return the number of rows."""
    schema, n_rows, remaining = SCHEMAS[name], 0, map(dict, rows)
    with (
        files.atomic_writer(folder / f"{name}.jsonl") as lines,
        files.atomic_writer(folder / f"{name}.parquet") as table,
        pq.ParquetWriter(table, schema) as writer,
    ):
        while block := list(itertools.islice(remaining, ROWS)):
            for row in block:
                lines.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
            writer.write_table(pa.Table.from_pylist(block, schema=schema))
            n_rows += len(block)
    return n_rows
