"""The first candidates of a query in both galleries of RoCOCO, stored next to the scores.

    fronts.parquet has one row per case: the first candidates of the clean gallery and of the whole one

A candidate is named by its item; a caption also by its text, a mixed picture also by the item whose
picture was mixed in. Lists are best first and have up to `first_few.FIRST` candidates.
"""

from collections.abc import Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from vlprobe.scoring.retrieval import RetrievalRanks

TABLE = "fronts"
_WORDS, _NUMBERS = pa.list_(pa.string()), pa.list_(pa.float32())
SCHEMA = pa.schema(
    [
        ("clean_items", _WORDS),
        ("clean_texts", _WORDS),  # of captions; of pictures the list is empty
        ("clean_scores", _NUMBERS),
        ("whole_items", _WORDS),
        ("whole_texts", _WORDS),
        ("whole_partners", _WORDS),  # of mixed pictures; "" for an unmixed picture
        ("whole_altered", pa.list_(pa.bool_())),
        ("whole_scores", _NUMBERS),
        ("partner", pa.string()),  # whose picture is mixed into the query's own; "" of a caption
        ("own_altered", pa.float32()),  # similarity of the best altered candidate of the own item
        ("own_altered_rank", pa.int32()),  # its rank, if no tie counted against it
    ]
)
TABLES = MappingProxyType({TABLE: SCHEMA})


class CandidateNames(NamedTuple):
    """Names of a gallery's candidates; sequences of one length, by the candidate's number."""

    items: pa.Array
    texts: pa.Array | None  # of captions
    partners: pa.Array | None  # of pictures: the item that each is mixed with, or ""
    altered: pa.Array


def table(ranks: RetrievalRanks, names: CandidateNames, partners: Sequence[str]) -> pa.Table:
    """The rows of `SCHEMA` for some queries of one gallery.

    Args:
        ranks: The ranks of the candidates.
        names: Names of the gallery's candidates.
        partners: The item that each query's own picture is mixed with; "" of a caption's query.
    """
    clean, whole = ranks.first_clean, ranks.first
    columns = {
        "clean_items": _named(names.items, clean),
        "clean_texts": _named(names.texts, clean),
        "clean_scores": _listed(pa.array(ranks.first_clean_scores[clean >= 0]), clean),
        "whole_items": _named(names.items, whole),
        "whole_texts": _named(names.texts, whole),
        "whole_partners": _named(names.partners, whole),
        "whole_altered": _named(names.altered, whole),
        "whole_scores": _listed(pa.array(ranks.first_scores[whole >= 0]), whole),
        "partner": pa.array(partners, pa.string()),
        "own_altered": pa.array(ranks.own_altered, pa.float32(), from_pandas=True),
        "own_altered_rank": pa.array(ranks.own_altered_rank, pa.int32(), from_pandas=True),
    }
    return pa.table(columns, schema=SCHEMA)


def _named(names: pa.Array | None, numbers: np.ndarray) -> pa.ListArray:
    """The names of each query's candidates, as lists; empty ones where these have no such name."""
    if names is None:
        return pa.array([[]] * len(numbers), _WORDS)
    return _listed(names.take(pa.array(numbers[numbers >= 0])), numbers)


def _listed(values: pa.Array, numbers: np.ndarray) -> pa.ListArray:
    """Values of all queries' candidates, query by query, as a list a query."""
    lengths = (numbers >= 0).sum(axis=1)
    return pa.ListArray.from_arrays(pa.array(np.append(0, np.cumsum(lengths)), pa.int32()), values)
