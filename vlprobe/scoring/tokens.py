"""Keys and lengths of tokenized texts, and batches of texts of equal length."""

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np

PAD = -1  # in a row of tokens: after the end of the text


def token_counts(tokens: np.ndarray, pad: np.ndarray | int = PAD) -> np.ndarray:
    """Count the columns of each row before the trailing ones that equal `pad`, shape (n,); a row with only `pad`
    counts in full.
    """
    return tokens.shape[1] - np.argmax(tokens[:, ::-1] != pad, axis=1)


def text_keys(tokens: np.ndarray, counts: np.ndarray) -> list[bytes]:
    """16 bytes a row, independent of the number of PAD columns; `counts` are the rows'
    `token_counts`.
    """
    width = tokens.shape[1] * tokens.itemsize
    content = np.ascontiguousarray(tokens).data.cast("B")
    starts = range(0, len(content), width)
    stops = (np.array(starts) + counts * tokens.itemsize).tolist()
    return [
        hashlib.blake2b(content[start:stop], digest_size=16).digest()
        for start, stop in zip(starts, stops, strict=True)
    ]


def content_lengths(tokens: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Compute for each row its token count, and the count without the model's own padding (repeats of its final token).

    Returns int64 of shape (n, 2); texts with equal rows may share a batch.
    """
    final = tokens[np.arange(len(tokens)), np.maximum(counts - 1, 0), None]
    has_pad = counts.min(initial=tokens.shape[1]) < tokens.shape[1]
    filled = np.where(tokens == PAD, final, tokens) if has_pad else tokens
    return np.stack([counts, token_counts(filled, final)], axis=1)


def alphabetical_ranks(texts: Sequence[str], rows: np.ndarray) -> np.ndarray:
    """Return the place of each of these rows in the alphabetical order of their texts, capitals as small
    letters; int64 of shape (rows,).

    Texts that begin alike are neighbours then: a model may compute their beginnings once.

    >>> alphabetical_ranks(["a red car", "two dogs", "A red bus"], np.array([0, 1, 2])).tolist()
    [1, 2, 0]
    """
    lowered = [texts[row].lower() for row in map(int, rows)]
    ranks = np.empty(len(rows), dtype=np.int64)
    ranks[sorted(range(len(rows)), key=lowered.__getitem__)] = np.arange(len(rows))
    return ranks


def equal_length_batches(
    rows: np.ndarray, lengths: np.ndarray, max_rows: int
) -> Iterator[np.ndarray]:
    """Yield the rows, in their order, in batches of neighbours with equal lengths and at most `max_rows`."""
    for group in np.split(rows, 1 + np.flatnonzero(np.diff(lengths[rows], axis=0).any(axis=1))):
        yield from (group[start : start + max_rows] for start in range(0, len(group), max_rows))
