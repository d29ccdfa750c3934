"""The first few candidates against a plain sort of each row."""

import numpy as np
import pytest

from vlprobe.scoring.first_few import FIRST, GalleryFronts, first_few


def sorted_row(scores: np.ndarray, is_own: np.ndarray) -> list[int]:
    """All candidates of one query: what has no score last, then by score, the own after its equals, by number."""

    def key(number: int) -> tuple:
        missing = np.isnan(scores[number])
        return bool(missing), 0.0 if missing else -scores[number], is_own[number], number

    return sorted(range(len(scores)), key=key)


@pytest.mark.parametrize("n", [3, 6, 31, 200, 1000, 1001])
@pytest.mark.parametrize("levels", [2, 9, 10**6])
def test_they_are_those_of_a_plain_sort_whatever_ties(n: int, levels: int):
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


def test_what_has_no_score_comes_last():
    scores = np.full((2, 500), np.nan, dtype=np.float32)
    scores[0, 400:403] = (0.1, 0.3, -2.0)
    few = first_few(scores, np.zeros(scores.shape, dtype=bool), 1)
    assert few.numbers[0].tolist() == [401, 400, 402, 0, 1, 2]
    assert few.numbers[1].tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("mingled", [False, True])
def test_originals_are_told_apart_wherever_they_stand(mingled: bool):
    rng = np.random.default_rng(7)
    order = rng.permutation(160) if mingled else np.arange(160)
    owner, altered = np.tile(np.arange(80), 2)[order], (np.arange(160) >= 80)[order]
    altered_of = dict(zip(owner[altered].tolist(), np.flatnonzero(altered).tolist(), strict=True))
    scores = rng.integers(0, 40, (80, 160)).astype(np.float32)
    is_own = (owner == np.arange(80)[:, None]) & ~altered
    columns = GalleryFronts(owner, altered).columns(scores, scores, is_own, np.arange(80))
    for query in range(80):
        whole = sorted_row(scores[query], is_own[query])
        assert columns["first"][query].tolist() == whole[:FIRST]
        clean = [number for number in whole if not altered[number]][:FIRST]
        assert columns["first_clean"][query].tolist() == clean
        assert columns["first_clean_scores"][query].tolist() == scores[query, clean].tolist()
        own_value = scores[query, altered_of[query]]
        assert columns["own_altered"][query] == own_value
        assert columns["own_altered_rank"][query] == 1 + (scores[query] > own_value).sum()


def test_an_item_without_altered_candidates_has_no_rank_of_one():
    owner, altered = np.array([0, 1, 1]), np.array([False, False, True])
    scores = np.array([[0.5, 0.2, 0.9], [0.1, 0.4, 0.3]], dtype=np.float32)
    is_own = (owner == np.arange(2)[:, None]) & ~altered
    columns = GalleryFronts(owner, altered).columns(scores, scores, is_own, np.arange(2))
    assert np.isnan(columns["own_altered"][0]) and np.isnan(columns["own_altered_rank"][0])
    assert (columns["own_altered"][1], columns["own_altered_rank"][1]) == (np.float32(0.3), 2)
