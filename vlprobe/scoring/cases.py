"""Functions that score cases: they turn a slice of the case table into a slice of the score table."""

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
import pandas as pd
import pyarrow as pa

from vlprobe.types import Encoder, Picture, answers_cases, looks_up

Scorer = Callable[[pa.Table], pa.Table]


def pair_matcher(
    encoder: Encoder, images: Sequence[Picture], texts: Sequence[str], query_side: str
) -> Callable[[np.ndarray, np.ndarray], np.ndarray] | None:
    """Return a function that computes the logit for a query and a candidate, if the model is a PairScorer that
    short-lists by cosine. Return None for other models.

    Args:
        encoder: The model.
        images: The pictures, which are either the queries or the candidates.
        texts: The texts, which are the other side.
        query_side: Which side holds the queries, "images" or "texts".
    """
    if not (encoder.scores_pairs and encoder.embeds_images):
        return None

    def match(query: np.ndarray, candidate: np.ndarray) -> np.ndarray:
        left, right = (query, candidate) if query_side == "images" else (candidate, query)
        return encoder.pairs(images, texts, left, right, logits=True)

    return match


def case_scorer(
    encoder: Encoder, margins: Callable[[pd.DataFrame], np.ndarray], *, has_twins: bool = False
) -> Scorer:
    """Return a function that scores cases by comparing their pictures and texts with each other.

    Scores that the model cannot compute are NaN: scores of pictures if it has no image input, text
        cosines if it has no text embeddings, and margins that need such scores.

    Args:
        encoder: The model.
        margins: A function that takes rows with `kind`, `subtype`, `rule` and the columns from
            `score_columns` (grouped by image, with the texts in order for each image). It returns
            the score of the expected winner minus the score of the expected loser.
        has_twins: Whether two pictures of a case are twins that captions tell apart.

    Returns:
        A function that takes cases and returns a table with `scores` (float32, n_images * n_texts per case),
        `text_scores` (cosines between the texts, in the order 01, 02, 12), `erased` (whether the model cannot tell the
        first two texts apart, so that it cannot see the edit), `margin` and, with `has_twins` and a model that embeds
        pictures, `picture_similarity` (cosine of the two pictures, NaN if a case has one).
    """

    def score(cases: pa.Table) -> pa.Table:
        images, image_of, n_images = distinct_strings(cases["images"])
        texts, text_of, n_texts = distinct_strings(cases["texts"])
        first_image, first_text = _starts(n_images), _starts(n_texts)
        pictures = [Picture.from_name(name) for name in images]
        if encoder.embeds_texts:
            encoder.texts(
                [texts[code] for code in dict.fromkeys(text_of[first_text].tolist())], keep=True
            )
            text_vectors = encoder.texts(texts)
        n_pairs = n_images * n_texts
        row = np.repeat(np.arange(len(n_pairs)), n_pairs)
        within = np.arange(len(row)) - _starts(n_pairs)[row]
        left = image_of[first_image[row] + within // n_texts[row]]
        right = text_of[first_text[row] + within % n_texts[row]]
        twins = None
        if answers_cases(encoder.model):
            values = encoder.model.answers(cases)
        elif encoder.scores_pairs:
            values = encoder.pairs(pictures, texts, left, right)
        elif looks_up(encoder.model) and encoder.model.capabilities.has_matrix:
            values = encoder.model.paired(
                encoder.images(pictures)[left], encoder.texts(texts)[right]
            )
        elif encoder.embeds_images:
            vectors = encoder.images(pictures)
            values = cosines(vectors, left, text_vectors, right)
            two = np.flatnonzero(n_images == 2)
            first = first_image[two]
            twins = np.full(len(n_images), np.nan, dtype=np.float32)
            twins[two] = cosines(vectors, image_of[first], vectors, image_of[first + 1])
        else:
            values = np.full(len(left), np.nan, dtype=np.float32)
        scores = _columns(row, within, values, len(n_pairs))
        widest = int(n_texts.max())
        text_scores = np.full((len(n_texts), widest * (widest - 1) // 2), np.nan, dtype=np.float32)
        erased = np.zeros(len(n_texts), dtype=bool)
        if encoder.embeds_texts:
            for size in np.unique(n_texts).tolist():
                rows = n_texts == size
                for column, (i, j) in enumerate(combinations(range(size), 2)):
                    one, other = (text_of[first_text[rows] + place] for place in (i, j))
                    text_scores[rows, column] = cosines(text_vectors, one, text_vectors, other)
            two = np.flatnonzero(n_texts > 1)
            one, other = (text_of[first_text[two] + place] for place in (0, 1))
            erased[two] = (text_vectors[one] == text_vectors[other]).all(axis=1)
        elif (
            answers_cases(encoder.model) and (read := encoder.model.text_answers(cases)) is not None
        ):
            n_columns = min(text_scores.shape[1], read.shape[1])
            text_scores[:, :n_columns] = read[:, :n_columns]
        table = pa.table(
            {
                "scores": _lists(scores, n_pairs),
                "text_scores": _lists(text_scores, n_texts * (n_texts - 1) // 2),
                "erased": pa.array(erased),
            }
        )
        if has_twins and twins is not None:
            table = table.append_column("picture_similarity", pa.array(twins))
        answers = cases.select(["kind", "subtype", "rule"]).to_pandas()
        answers = answers.assign(**score_columns(table))
        return table.append_column("margin", pa.array(margins(answers).astype(np.float32)))

    return score


def score_columns(table: pa.Table) -> dict[str, np.ndarray]:
    """Flatten the lists in a score table into numbered columns (`score_0`, `score_1`..., `text_01`, `text_02`...).
    Columns that are already flat are kept.

    If a case has fewer texts than the widest one, its remaining columns are NaN. Columns with text cosines are named
    after their two texts if the cases in the table have at most three texts, or if all have the same number of texts.
    """
    columns = {}
    for name in table.column_names:
        if not pa.types.is_list(table[name].type):
            columns[name] = table[name].to_numpy()
            continue
        lists = table[name].combine_chunks()
        lengths = lists.value_lengths().to_numpy()
        row = np.repeat(np.arange(len(lengths)), lengths)
        values = _columns(
            row,
            np.arange(len(row)) - _starts(lengths)[row],
            lists.flatten().to_numpy(),
            len(lengths),
        )
        if name == "scores":
            columns |= {f"score_{column}": values[:, column] for column in range(values.shape[1])}
        else:
            n_texts = round((1 + np.sqrt(1 + 8 * values.shape[1])) / 2)
            pairs = combinations(range(n_texts), 2)
            columns |= {f"text_{i}{j}": values[:, column] for column, (i, j) in enumerate(pairs)}
    return columns


def distinct_strings(column: pa.ChunkedArray) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return the distinct strings in a list column, an index into them for each entry, and the number of
    entries per row.
    """
    lists = column.combine_chunks()
    encoded = lists.flatten().dictionary_encode()
    return (
        encoded.dictionary.to_pylist(),
        encoded.indices.to_numpy(),
        lists.value_lengths().to_numpy(),
    )


def cosines(
    left: np.ndarray, left_row: np.ndarray, right: np.ndarray, right_row: np.ndarray
) -> np.ndarray:
    """Compute the dot product of each pair of rows. The order of summation does not depend on neighboring rows, so
    equal vectors give bitwise equal scores.
    """
    products = np.empty(len(left_row), dtype=np.float32)
    for start in range(0, len(left_row), 8192):
        chunk = slice(start, start + 8192)
        products[chunk] = np.einsum("nd,nd->n", left[left_row[chunk]], right[right_row[chunk]])
    return products


def _starts(lengths: np.ndarray) -> np.ndarray:
    return np.cumsum(lengths) - lengths


def _columns(row: np.ndarray, within: np.ndarray, values: np.ndarray, n_rows: int) -> np.ndarray:
    columns = np.full((n_rows, int(within.max(initial=-1)) + 1), np.nan, dtype=np.float32)
    columns[row, within] = values
    return columns


def _lists(columns: np.ndarray, lengths: np.ndarray) -> pa.ListArray:
    inside = np.arange(columns.shape[1]) < lengths[:, None]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(columns[inside]))
