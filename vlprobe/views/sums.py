"""Stored sums from which a run's means are computed, one row per metric, averaging and item."""

from collections.abc import Collection

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from vlprobe.storage.store import Store
from vlprobe.types import Measure
from vlprobe.views.rows import readable

WORDS = ["metric", "averaging"]
NUMBERS = ["total", "weight", "item_code"]
Averaged = tuple[str, str]  # a metric and an averaging


@readable()
def measures(store: Store, run_key: str, wanted: Collection[Averaged]) -> dict[Averaged, Measure]:
    """Read the measures of one run, one row per item; empty if the run lacks the metric.

    Row groups are read one by one and filtered, because DuckDB takes five times as long for files
    of this size.
    """
    pieces: dict[Averaged, list[tuple[np.ndarray, ...]]] = {pair: [] for pair in wanted}
    with pq.ParquetFile(store.files([run_key], "sums")[0], read_dictionary=WORDS) as file:
        for group in range(file.num_row_groups):
            rows = file.read_row_group(group, columns=[*WORDS, *NUMBERS], use_threads=False)
            metrics, averagings = (_codes(rows[name]) for name in WORDS)
            columns = [rows[name].to_numpy() for name in NUMBERS]
            for metric, averaging in wanted:
                selected = np.flatnonzero(
                    (metrics[0] == metrics[1].get(metric, -1))
                    & (averagings[0] == averagings[1].get(averaging, -1))
                )
                pieces[metric, averaging].append(tuple(column[selected] for column in columns))
    return {pair: _measure(of_pair) for pair, of_pair in pieces.items()}


def _codes(texts: pa.ChunkedArray) -> tuple[np.ndarray, dict[str, int]]:
    """A column of texts as codes, and the code of each text."""
    encoded = texts.unify_dictionaries().combine_chunks()
    names = encoded.dictionary.to_pylist()
    return encoded.indices.to_numpy(), {name: code for code, name in enumerate(names)}


def _measure(pieces: list[tuple[np.ndarray, ...]]) -> Measure:
    empty = np.empty(0), np.empty(0), np.empty(0, np.int32)
    total, weight, item = map(np.concatenate, zip(empty, *pieces, strict=True))
    with np.errstate(divide="ignore", invalid="ignore"):
        return Measure(total / weight, weight, item)
