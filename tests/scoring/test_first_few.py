"""The first few candidates against a plain sort of each row."""

import numpy as np
import pytest

from vlprobe.scoring.retrieval import FIRST, FirstFew, best_columns, best_first, padded


def sorted_row(scores: np.ndarray, is_own: np.ndarray) -> list[int]:
    """Sort all candidates of one query by score, then own ones after ties, then by number; unscored ones come last."""

    def key(number: int) -> tuple:
        missing = np.isnan(scores[number])
        return bool(missing), 0.0 if missing else -scores[number], is_own[number], number

    return sorted(range(len(scores)), key=key)


def first_few(scores: np.ndarray, is_own: np.ndarray, most_own: int) -> FirstFew:
    columns = best_columns(scores, min(FIRST + most_own, scores.shape[1]))
    shown, owned = (np.take_along_axis(values, columns, 1) for values in (scores, is_own))
    return padded(*best_first(columns, shown, owned))


@pytest.mark.parametrize("n", [3, 6, 31, 200, 1000, 1001])
@pytest.mark.parametrize("levels", [2, 9, 10**6])
def test_the_first_few_match_a_plain_sort_with_any_ties(n: int, levels: int):
    rng = np.random.default_rng(n + levels)
    scores = rng.integers(0, levels, (40, n)).astype(np.float32)
    is_own = np.zeros(scores.shape, dtype=bool)
    for row in is_own:
        row[rng.integers(0, n, 3)] = True
    few = first_few(scores, is_own, 3)
    for query in range(40):
        expected = sorted_row(scores[query], is_own[query])[:FIRST]
        assert few.numbers[query, : len(expected)].tolist() == expected
        assert few.scores[query, : len(expected)].tolist() == scores[query, expected].tolist()
        assert (few.numbers[query, len(expected) :] == -1).all()
        assert np.isnan(few.scores[query, len(expected) :]).all()


def test_candidates_without_a_score_come_last():
    scores = np.full((2, 500), np.nan, dtype=np.float32)
    scores[0, 400:403] = (0.1, 0.3, -2.0)
    few = first_few(scores, np.zeros(scores.shape, dtype=bool), 1)
    assert few.numbers[0].tolist() == [401, 400, 402, 0, 1, 2]
    assert few.numbers[1].tolist() == [0, 1, 2, 3, 4, 5]
