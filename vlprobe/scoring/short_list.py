"""A query's short-list: its best candidates by cosine, which a model that looks at pairs ranks again."""

from collections.abc import Callable

import numpy as np

SHORT_LIST = 256  # candidates a query that a matching head looks at: BLIP's released k

# Numbers of queries and of candidates, each of shape (n,), to the logit of each pair
Match = Callable[[np.ndarray, np.ndarray], np.ndarray]


def reranked(cosines: np.ndarray, match: Match) -> np.ndarray:
    """A query's SHORT_LIST best candidates by the head's logit plus the cosine, all others below
    these.

    Candidates that tie with the last of the short-list are on it. The others keep the order of
    their cosines.

    Args:
        cosines: Shape (queries, candidates).
        match: Gives the logit of a query and a candidate.

    Returns:
        Float64 of the same shape.

    Source: the released retrieval of BLIP, which RoCOCO follows; there the others all score -100.
    """
    listed = short_listed(cosines)
    logits = np.zeros_like(cosines)
    logits[listed] = match(*np.nonzero(listed))
    return raised(cosines, listed, logits)


def short_listed(cosines: np.ndarray) -> np.ndarray:
    """Mark the SHORT_LIST best candidates of each query, including ties with the last of them; the same shape."""
    k = min(SHORT_LIST, cosines.shape[1])
    return cosines >= np.partition(cosines, -k, axis=1)[:, -k, None]


def raised(cosines: np.ndarray, listed: np.ndarray, logits: np.ndarray) -> np.ndarray:
    """Cosine plus logit on the short-list, float64; below its lowest, in the order of their
    cosines, all others.
    """
    scores = cosines.astype(np.float64)
    scores[listed] += logits[listed]
    lowest = np.where(listed, scores, np.inf).min(axis=1, keepdims=True)
    return np.where(listed, scores, scores + lowest - 3)  # cosines differ by 2 at most
