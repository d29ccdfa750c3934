"""Texts that several runs of one model share."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pyarrow as pa
from pandas.core.util.hashing import hash_array

from vlprobe.runs.context import RunContext


def recurring_texts(contexts: Sequence[RunContext]) -> Callable[[Sequence[str]], np.ndarray]:
    """Build a test for texts that are in the stored cases of at least two of these runs.

    In memory are 8 bytes for each distinct text of a run; two texts of one hash, one in 2^64, would
    only be kept for nothing.

    Returns:
        A function of texts, bool of shape (n,).
    """
    hashes, counts = np.unique(
        np.concatenate([_hashes(context.read_cases(["texts"])) for context in contexts]),
        return_counts=True,
    )
    recurring = hashes[counts > 1]
    return lambda texts: np.isin(_hash(texts), recurring)


def _hashes(blocks: Iterable[pa.Table]) -> np.ndarray:
    """Hash the distinct texts of one run's cases, uint64."""
    hashes = [np.empty(0, dtype=np.uint64)]
    for block in blocks:
        texts = block["texts"].combine_chunks().flatten().unique().to_pylist()
        hashes.append(np.unique(_hash(texts)))
    return np.unique(np.concatenate(hashes))


def _hash(texts: Sequence[str]) -> np.ndarray:
    return hash_array(np.array(texts, dtype=object), categorize=False)
