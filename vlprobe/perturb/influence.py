"""Measure how much each word in a caption, and each part of a picture, influences the embedding.

Source: RoCOCO, equation 1 (words), figure 8 (parts of a picture), appendix A and figure 11 (agreement between
encoders).
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from PIL import Image

from vlprobe.errors import InvalidInput
from vlprobe.perturb.tokens import TOKEN
from vlprobe.types import Edit

# Texts to float32 of shape (n, dim), rows of length 1.
Encode = Callable[[Sequence[str]], np.ndarray]
EncodeImages = Callable[[Sequence[Image.Image]], np.ndarray]
Span = tuple[int, int]
Box = tuple[int, int, int, int]  # left, top, right, bottom in pixels
# Where a word starts -> its EI score from each encoder, NaN where unknown.
Scores = Mapping[int, Sequence[float]]


def word_spans(caption: str) -> list[Span]:
    """Return the start and end of every word in a caption, without punctuation. Figure 7 colors every word."""
    return [token.span() for token in TOKEN.finditer(caption) if token.group()[0].isalnum()]


def without(caption: str, start: int, end: int) -> str:
    """Delete the characters from start to end in a caption. The gap is closed, and an initial capital is kept."""
    left, right = caption[:start], caption[end:]
    if right[:2] in ("'s", "’s"):
        right = right[2:]
    if not left or left[-1].isspace():
        if right[:1].isspace():
            right = right[1:]
        else:
            left = left[:-1]
    if not left.strip() and caption[start].isupper():
        right = right[:1].upper() + right[1:]
    return left + right


def influence(
    captions: Sequence[str],
    spans: Sequence[Sequence[Span]],
    encoders: Sequence[Encode],
) -> list[dict[int, tuple[float, ...]]]:
    """Compute how much a caption's embedding changes when one of its words is deleted. A low value marks
    a word with little effect.

    EI(w) = 1 - cos(f(C), f(C without w)). Each encoder is called once, with every distinct text.

    Args:
        captions: n captions.
        spans: For each caption, the start and end of the words to score.
        encoders: Text encoders, in the order of the scores.

    Returns:
        For each caption, by the start of a word, one score for each encoder, 0 to 2; NaN if an
        embedding is not finite.

    Raises:
        InvalidInput: an encoder returns an array with the wrong shape, or with rows that do not have length 1.
    """
    edited = [
        [without(caption, start, end) for start, end in caption_spans]
        for caption, caption_spans in zip(captions, spans, strict=True)
    ]
    texts = list(dict.fromkeys([*captions, *(text for row in edited for text in row)]))
    i = {text: row for row, text in enumerate(texts)}
    embeddings = [_checked(encode(texts), len(texts)) for encode in encoders] if texts else []
    return [
        {
            start: tuple(1.0 - float(rows[i[caption]] @ rows[i[text]]) for rows in embeddings)
            for (start, _), text in zip(caption_spans, row, strict=True)
        }
        for caption, caption_spans, row in zip(captions, spans, edited, strict=True)
    ]


def _checked(rows: np.ndarray, count: int) -> np.ndarray:
    rows = np.asarray(rows, dtype=np.float64)
    if rows.ndim != 2 or len(rows) != count:
        raise InvalidInput(
            f"The encoder returned an array of shape {rows.shape} for {count} inputs. "
            f"Expected ({count}, dim)."
        )
    lengths = np.linalg.norm(rows, axis=1)
    not_unit = np.isfinite(lengths) & (np.abs(lengths - 1) > 1e-3)
    if not_unit.any():
        raise InvalidInput(
            f"The encoder returned an embedding of length {lengths[not_unit][0]:.4g}. "
            "Expected 1; normalize it."
        )
    return rows


def _votes(scores: Scores, highest: bool) -> Counter[int]:
    votes: Counter[int] = Counter()
    for column in zip(*scores.values(), strict=True):
        finite = {
            start: score for start, score in zip(scores, column, strict=True) if np.isfinite(score)
        }
        if finite:
            best = max(finite.values()) if highest else min(finite.values())
            votes.update(start for start, score in finite.items() if score == best)
    return votes


def elected(scores: Scores, highest: bool = False) -> list[int]:
    """Return the words that the most encoders find least influential or, with `highest`, most influential. There are
    several if votes are tied.

    If several words have the same score, the encoder votes for each of them. An encoder without a finite score does not
    vote.

    Returns:
        Start positions of the words; empty if no encoder voted.
    """
    votes = _votes(scores, highest)
    most_votes = max(votes.values(), default=0)
    return [start for start in scores if most_votes and votes[start] == most_votes]


def agreement(scores: Iterable[Scores]) -> dict[int, int]:
    """Count captions by the number of encoders that agree on the least influential word (figure 11a).

    Returns:
        Number of captions, by number of encoders. Captions without a vote are left out.
    """
    votes = Counter(max(_votes(caption, highest=False).values(), default=0) for caption in scores)
    return {count: n_captions for count, n_captions in sorted(votes.items()) if count}


def agreement_by_chance(n_words: int, n_encoders: int) -> dict[int, float]:
    """Compute the probability of each number of votes for the winning word, if every encoder votes at random.

    Args:
        n_words: Number of words to choose from, 1 or more.
        n_encoders: Number of encoders with one vote each, 1 or more.

    >>> agreement_by_chance(3, 2)
    {1: 0.6666666666666666, 2: 0.3333333333333333}
    """
    # Of all ways to vote, those in which no word has more than `most`: n! times a coefficient of
    # (sum of x^j / j!, j up to `most`)^words.
    ways = [0]
    for most in range(1, n_encoders + 1):
        ways_so_far = [1] + [0] * n_encoders
        for _ in range(n_words):
            ways_so_far = [
                sum(
                    math.comb(total, votes) * ways_so_far[total - votes]
                    for votes in range(min(total, most) + 1)
                )
                for total in range(n_encoders + 1)
            ]
        ways.append(ways_so_far[n_encoders])
    every = n_words**n_encoders
    return {
        most: (ways[most] - ways[most - 1]) / every
        for most in range(1, n_encoders + 1)
        if ways[most] > ways[most - 1]
    }


def source_words(edits: Iterable[Edit]) -> dict[str, int]:
    """Count how often each word was removed from a caption; the most frequent word comes first (figure 11b)."""
    return dict(
        Counter(word for edit in edits for word in edit.source.lower().split(", ")).most_common(),
    )


def grid_cells(size: tuple[int, int], grid: int = 4) -> list[Box]:
    """Divide a picture of the given width and height into grid * grid cells, and return the cells row by row.

    Raises:
        InvalidInput: the picture has fewer pixels per side than cells.
    """
    width, height = size
    if min(size) < grid:
        raise InvalidInput(
            f"A picture of {width} x {height} pixels is too small for {grid} x {grid} "
            "cells. Use a larger picture."
        )
    xs = [round(cell * width / grid) for cell in range(grid + 1)]
    ys = [round(cell * height / grid) for cell in range(grid + 1)]
    return [
        (xs[column], ys[row], xs[column + 1], ys[row + 1])
        for row in range(grid)
        for column in range(grid)
    ]


def without_cell(image: Image.Image, cell: Box) -> Image.Image:
    """Return a copy of the picture with one grid cell blacked out."""
    copy = image.copy()
    copy.paste(0, cell)
    return copy


def occlusion_map(image: Image.Image, encode_images: EncodeImages, grid: int = 4) -> np.ndarray:
    """For each grid cell, compute the cosine similarity between a picture's embedding and its embedding with the cell
    blacked out. A low value marks a part that the model uses.

    The paper masks each part "to zeros"; here the pixels are set to zero before any
    normalization, so the cell is black.

    Args:
        image: RGB.
        encode_images: Called once, with the picture and then its grid * grid masked copies, row by
            row.
        grid: Number of cells per side.

    Returns:
        float32 of shape (grid, grid), cosines to the embedding of the whole picture, -1 to 1.

    Raises:
        InvalidInput: the picture has fewer pixels per side than cells, or the encoder returns an invalid
            array.
    """
    masked = [without_cell(image, cell) for cell in grid_cells(image.size, grid)]
    rows = _checked(encode_images([image, *masked]), len(masked) + 1)
    return (rows[1:] @ rows[0]).reshape(grid, grid).astype(np.float32)
