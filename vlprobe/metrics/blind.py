"""Measure how often the true caption can be guessed without seeing the picture.

A benchmark of true and wrong captions measures vision only if the texts do not give away the answer. Three methods
guess the true caption in each pair: by length (the caption with fewer words), by words, and with a small classifier
that also uses word pairs and length. The last two are linear models on the difference of the two texts, trained on
other pictures (cross-validation by picture).

Source: TsT (arXiv 2511.04655), which trains on the texts of the test set in k folds. The features and the folds by
picture are ours.
"""

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vlprobe.errors import InvalidInput
from vlprobe.metrics import estimate
from vlprobe.types import Estimate, Measure

if TYPE_CHECKING:
    from scipy.sparse import csr_array

FEWEST_PICTURES = 50
FOLDS = 5
GRADIENT = 0.02  # the fit ends when no partial derivative of the loss is larger
LENGTH, WORDS, CLASSIFIER = "length", "words", "classifier"
METHODS = {
    LENGTH: "Picks the caption with fewer words.",
    WORDS: "Uses a classifier on single words, trained on the captions of other pictures.",
    CLASSIFIER: (
        "Uses a classifier on words, word pairs and length, trained on the captions of other "
        "pictures."
    ),
}
SHORT_METHODS = {  # for "the best guess ..."
    LENGTH: "by length",
    WORDS: "from single words",
    CLASSIFIER: "from words and length",
}
_WORD = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]")


class Pair(NamedTuple):
    """A true and a wrong caption for the same picture."""

    picture: str  # identifies the picture
    subset: str  # "" if the dataset has no subsets
    true: str
    wrong: str


@dataclass(frozen=True, slots=True)
class BlindAccuracy:
    """Share of pairs in which a method guesses the true caption without seeing the picture. A tie is a failure."""

    method: str  # one of METHODS
    subset: str  # "" for all pairs
    accuracy: Estimate
    n_pairs: int
    n_tied: int


def check_pairs(pairs: Sequence[Pair]) -> list[BlindAccuracy]:
    """Compute the accuracy of each method on all pairs and on each subset, with 95 % intervals by picture.

    Models are trained on the pairs of all subsets.

    Raises:
        InvalidInput: There are fewer than FEWEST_PICTURES pictures.
    """
    codes: dict[str, int] = {}
    unit = np.array([codes.setdefault(pair.picture, len(codes)) for pair in pairs], dtype=np.int64)
    by_method = margins([pair.true for pair in pairs], [pair.wrong for pair in pairs], unit)
    subset = np.array([pair.subset for pair in pairs])
    selected = [("", np.ones(len(pairs), dtype=bool))]
    selected += [(name, subset == name) for name in sorted(set(subset.tolist()) - {""})]
    measures = [
        Measure((margin[rows] > 0).astype(np.float64), np.ones(rows.sum()), unit[rows])
        for _, rows in selected
        for margin in by_method.values()
    ]
    accuracies = iter(estimate.estimates(measures, len(codes), are_rates=True))
    return [
        BlindAccuracy(
            method, name, next(accuracies), int(rows.sum()), int((margin[rows] == 0).sum())
        )
        for name, rows in selected
        for method, margin in by_method.items()
    ]


def margins(true: Sequence[str], wrong: Sequence[str], unit: np.ndarray) -> dict[str, np.ndarray]:
    """Compute how strongly each method prefers the true caption of each pair.

    Args:
        true: The true caption of each pair.
        wrong: The wrong caption of each pair.
        unit: Code of each pair's picture, starting at 0, shape (n,). No picture is in both the training and the
            test pairs.

    Returns:
        A float64 array of shape (n,) per method: above 0 if the guess is right, 0 for a tie.

    Raises:
        InvalidInput: There are fewer than FEWEST_PICTURES pictures.
    """
    n_pictures = len(np.unique(unit))
    if n_pictures < FEWEST_PICTURES:
        raise InvalidInput(
            f"A blind check needs wrong captions for at least {FEWEST_PICTURES} pictures, "
            f"to train on some and test on others. Found {n_pictures}."
        )
    lengths = np.array([len(text.split()) for text in wrong], dtype=np.float64)
    lengths -= [len(text.split()) for text in true]
    return {
        LENGTH: lengths,
        WORDS: _cross_validated(true, wrong, unit, _words),
        CLASSIFIER: _cross_validated(true, wrong, unit, _features),
    }


def _words(text: str) -> Iterator[str]:
    return iter(set(_WORD.findall(text.casefold())))


def _features(text: str) -> Iterator[str]:
    words = _WORD.findall(text.casefold())
    yield from set(words)
    bounded = ["^", *words, "$"]
    yield from {f"{first} {second}" for first, second in itertools.pairwise(bounded)}
    yield from ["a word more"] * len(words)


def _cross_validated(
    true: Sequence[str],
    wrong: Sequence[str],
    unit: np.ndarray,
    features: Callable[[str], Iterator[str]],
) -> np.ndarray:
    """Score each pair with a logistic regression that was trained on other pictures: float64 of shape (n,)."""
    differences, n_features = _feature_differences(true, wrong, features)
    fold = np.random.default_rng(unit.max() + 1).permutation(unit.max() + 1)[unit] % FOLDS
    margin = np.zeros(len(unit))
    for number in range(FOLDS):
        is_tested = fold == number
        weights = _logistic_regression(differences[np.flatnonzero(~is_tested)], n_features)
        margin[is_tested] = differences[np.flatnonzero(is_tested)] @ weights
    return margin


def _feature_differences(
    true: Sequence[str], wrong: Sequence[str], features: Callable[[str], Iterator[str]]
) -> tuple["csr_array", int]:
    """Count features in both captions of each pair, and subtract. Return the differences, of shape (n, n_features), and
    n_features.
    """
    from scipy.sparse import csr_array

    codes: dict[str, int] = {}
    rows, columns, values = [], [], []
    for row, (of_true, of_wrong) in enumerate(zip(true, wrong, strict=True)):
        counted = Counter(features(of_true))
        counted.subtract(features(of_wrong))
        for name, count in counted.items():
            if count:
                rows.append(row)
                columns.append(codes.setdefault(name, len(codes)))
                values.append(float(count))
    return csr_array((values, (rows, columns)), shape=(len(true), len(codes))), len(codes)


def _logistic_regression(differences: "csr_array", n_features: int) -> np.ndarray:
    """Fit weights that score true captions higher than wrong ones: float64 of shape (n_features,).

    Minimizes `sum(log(1 + exp(-x w))) + w w / 2`, scikit-learn's loss with C = 1 and no intercept. scipy is a
    dependency already, scikit-learn is not.
    """
    from scipy.optimize import minimize
    from scipy.special import expit
    from threadpoolctl import threadpool_limits

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        margin = differences @ weights
        value = np.logaddexp(0, -margin).sum() + weights @ weights / 2
        return value, weights - differences.T @ expit(-margin)

    # Beside other work (load 6, two cores, profiled), scipy's own threads took 24 s for 7,500 pairs, one takes 1.5 s
    with threadpool_limits(1, "blas"):
        return minimize(
            loss, np.zeros(n_features), jac=True, method="L-BFGS-B", options={"gtol": GRADIENT}
        ).x
