"""Scores for picture-text pairs from a model of any family, for `vlprobe score`: each picture is scored with its own
text.

The scores for a table are appended to a file in the cache, so that the same command resumes after an interruption.
"""

import contextlib
import hashlib
import json
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from vlprobe.datasets import sources
from vlprobe.datasets import table as table_names
from vlprobe.datasets.tables import cases, column, layouts, reader
from vlprobe.errors import InvalidInput, NotFound
from vlprobe.models.endpoint.budget import Budget
from vlprobe.models.endpoint.served import ServedModel
from vlprobe.runs.request import Progress
from vlprobe.scoring.cases import case_scorer
from vlprobe.scoring.encoder import CachedEncoder
from vlprobe.scoring.inputs import RunInputs
from vlprobe.storage import containers, files
from vlprobe.storage.store import Store
from vlprobe.types import Item, Model, Picture, answers_cases, looks_up

if TYPE_CHECKING:
    import pandas as pd

FOLDER = "scored"  # cache folder for the scores of unfinished tables
CHUNK_ROWS = 1024  # rows scored at a time: the most that an interruption loses
LABEL = "Scores"
OPTIONS = ("image", "caption")

PairScorer = Callable[[int, int], np.ndarray]


@contextlib.contextmanager
def pair_scorer(
    model: Model,
    items: Sequence[Item],
    store: Store,
    progress: Progress,
    budget: Budget | None = None,
) -> Iterator[PairScorer]:
    """Prepare a model to score the items, and yield a scoring function. The function takes the start and stop of a
    range of items, and returns the score of each picture with the item's first caption: float32, NaN if a picture is
    absent.

    Args:
        model: A model that compares pictures with texts. All data that it needs for the items is
            loaded or requested first.
        items: Items with a picture and a caption.
        budget: Spending limit for requests [no limit].

    Raises:
        InvalidInput: the model does not accept pictures, or has no answers for some items.
    """
    if isinstance(model, ServedModel):
        model.open(store.root, budget or Budget(), progress)
    capabilities = model.capabilities
    if not (capabilities.embeds_images or capabilities.scores_pairs or answers_cases(model)):
        raise InvalidInput(
            f"'{model.name}' does not accept pictures. Choose a model that compares pictures "
            "with texts."
        )
    if capabilities.chooses:
        raise InvalidInput(
            f"'{model.name}' only chooses between two captions of a picture. Remove +choice to score each "
            "picture with its own text."
        )
    reads_files = (looks_up(model) or answers_cases(model)) and not capabilities.asks_server
    pictures = [item.image for item in items if item.image]
    scored = np.array([reads_files or not picture.absent for picture in pictures])
    pairs = pa.table(
        {
            **dict.fromkeys(("kind", "subtype", "rule"), pa.repeat("pair", len(items))),
            **dict.fromkeys(("id", "item"), pa.array([item.id for item in items])),
            "item_code": np.arange(len(items)),
            "images": [[picture.name] for picture in pictures],
            "texts": [[item.captions[0]] for item in items],
        }
    )
    if looks_up(model) and scored.any():
        known = [items[row] for row in np.flatnonzero(scored).tolist()]
        inputs = RunInputs(known, cache=store.root)
        model.bind(inputs, uuid.uuid4().hex, is_gallery=False)
    elif answers_cases(model) and scored.any():
        model.check_cases(lambda columns: iter([pairs.filter(scored).select(list(columns))]))
    encoder = CachedEncoder(model)
    score_cases = case_scorer(encoder, lambda rows: np.zeros(len(rows)))

    def score(start: int, stop: int) -> np.ndarray:
        is_scored = scored[start:stop]
        scores = np.full(len(is_scored), np.nan, dtype=np.float32)
        if is_scored.any():
            table = score_cases(pairs[start:stop].filter(is_scored))
            scores[is_scored] = table["scores"].combine_chunks().flatten().to_numpy()
        return scores

    try:
        yield score
    finally:
        encoder.close()


def read_items(name: str) -> tuple[reader.Table, list[Item]]:
    """Read a table and convert each row to an item with a picture and a caption.

    Args:
        name: FILE, or FILE@FOLDER if the pictures are in FOLDER; `+image=COLUMN+caption=COLUMN` name the columns, and
            `+unpictured` keeps rows without a picture.

    Raises:
        InvalidInput: a column, a caption or a picture is missing, or a row has several captions.
    """
    parsed = table_names.parse(f"{table_names.PREFIX}:{name}")
    other = sorted({*parsed.values} - {*OPTIONS} | parsed.words - {sources.UNPICTURED})
    if parsed.url or other:
        raise InvalidInput(
            f"'{name}' is not a table that can be scored. Expected FILE, or FILE@FOLDER+image=COLUMN+caption=COLUMN."
        )
    table = reader.read(parsed.file)
    layout = layouts.recognized(str(parsed.file), table.names, "", parsed.columns)
    fields = cases.TableReading(table, layout)
    if not {"image", "caption"} <= layout.columns.keys():
        raise InvalidInput(
            f"'{parsed.file}' has the layout {layout.name}, which does not define one picture "
            "and one text per row. Choose the columns with +image=COLUMN+caption=COLUMN."
        )
    rows = []
    for row, (image, caption) in enumerate(
        zip(fields.role("image"), fields.role("caption"), strict=True)
    ):
        if len(fields.texts(caption)) > 1:
            raise fields.fault(row, "caption", "one text per row")
        text = fields.text(caption, row, "caption")
        rows.append((Item(f"row {row + 1}", None, (text,)), [fields.image(image, row, "image")]))
    if not rows:
        raise InvalidInput(
            f"'{parsed.file}' has no rows. Expected one picture and one text per row."
        )
    source = replace(parsed.source, images=(parsed.images or parsed.file.parent).absolute())
    items, _ = sources.attach_pictures(source, rows, knows_unpictured=True)
    if layout.box:
        items = [sources.cropped(item, fields.box(row)) for row, item in enumerate(items)]
    return table, items


def frame_items(frame: "pd.DataFrame", image: str, caption: str, folder: Path | str) -> list[Item]:
    """Convert each row of a DataFrame to an item with a picture and a caption.

    Args:
        frame: A DataFrame with picture paths and captions.
        image: The column with the paths to pictures.
        caption: The column with the captions.
        folder: The folder that relative paths start from.

    Raises:
        NotFound: a column does not exist.
        InvalidInput: a cell does not contain text, or a picture does not exist.
    """
    for name in (image, caption):
        if name not in frame:
            raise NotFound("column", name, map(str, frame), "Pass image= and caption=.")
    root = Path(folder).expanduser().absolute()
    items = []
    for row, (path, text) in enumerate(zip(frame[image], frame[caption], strict=True)):
        if not isinstance(path, str | Path) or not isinstance(text, str) or not text.strip():
            raise InvalidInput(
                f"Row {row} of the table: expected a path in '{image}' and a text in '{caption}'."
            )
        if not containers.is_file(root / path):
            raise InvalidInput(
                f"Row {row} of the table: '{root / path}' does not exist. Pass the folder "
                "of the pictures as folder=."
            )
        items.append(Item(f"row {row}", Picture(root / path), (text.strip(),)))
    return items


def score_table(
    name: str,
    load_model: Callable[[], Model],
    output: Path | None,
    column_name: str,
    store: Store,
    progress: Progress,
    budget: Budget | None = None,
) -> tuple[Path, np.ndarray]:
    """Write a copy of a table with an added score column. After an interruption, repeat the call to resume.

    Args:
        name: The table, as for `read_items`.
        load_model: A function that loads the model; called after the table is checked.
        output: A file that does not exist yet [FILE-scored.SUFFIX].
        store: The store whose cache holds the scores until the table is complete.
        budget: Spending limit for requests [no limit].

    Returns:
        The path to the copy, and the scores: float32 of shape (rows,), NaN if unknown.

    Raises:
        InvalidInput: the table or the output is not valid, or the model does not accept pictures.
    """
    store.require_local_writable()
    table, items = read_items(name)
    output = output or table.file.with_name(f"{table.file.stem}-scored{table.file.suffix}")
    column.check(table, output, column_name)
    model = load_model()
    with pair_scorer(model, items, store, progress, budget) as score:
        identity = json.dumps([files.sha256(table.file), name, model.name, model.digest])
        path = store.root / FOLDER / hashlib.sha256(identity.encode()).hexdigest()[:16]
        lock = path.with_suffix(".lock")
        with files.lock(lock, lambda: progress.update(f"{LABEL}: another process waits", 0, 1)):
            column.check(table, output, column_name)  # the other process may have written it
            scores = _resumed(path, len(items), score, progress)
            column.write(table, output, column_name, scores)
            path.unlink()
            lock.unlink(missing_ok=True)
    return output, scores


def _resumed(path: Path, n_rows: int, score: PairScorer, progress: Progress) -> np.ndarray:
    """Append the missing scores to the file at `path`, and return all scores."""
    with path.open("ab") as handle:
        done = handle.tell() // 4
        handle.truncate(4 * done)  # a float32 that was cut off is scored again
        for start in range(done, n_rows, CHUNK_ROWS):
            progress.update(LABEL, start, n_rows)
            handle.write(score(start, start + CHUNK_ROWS).astype("<f4").tobytes())
            handle.flush()
    progress.update(LABEL, n_rows, n_rows)
    return np.fromfile(path, dtype="<f4")
