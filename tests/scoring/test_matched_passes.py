"""A gallery that a matching head ranks in shares, against whole rows of similarities."""

import functools
from typing import Any

import numpy as np
import pytest

from vlprobe.scoring import gallery, short_list
from vlprobe.scoring.gallery import Gallery
from vlprobe.scoring.matched_passes import MatchedSearch
from vlprobe.scoring.passes import Search, Share
from vlprobe.scoring.retrieval import both_passes, clean_ranks, ranks

N, ITEMS, WIDTH = 60, 15, 6


@pytest.fixture(params=["all alike", "few alike"])
def search(request, monkeypatch) -> Search:
    """Queries against products of 7 candidates; many cosines are equal, and rows stand several times."""
    monkeypatch.setattr(short_list, "SHORT_LIST", 6)
    monkeypatch.setattr(gallery, "PRODUCT_BYTES", 7 * 4 * WIDTH)
    monkeypatch.setattr(gallery, "PRODUCT_CANDIDATES", 7)
    monkeypatch.setattr(gallery, "BLOCK_BYTES", 9 * 4 * 7)  # 9 queries of a product, 1 whole row
    rng = np.random.default_rng(5)
    if request.param == "all alike":
        vectors = rng.integers(-1, 2, (N, WIDTH)).astype(np.float32)
        queries = rng.integers(-1, 2, (20, WIDTH)).astype(np.float32)
    else:
        vectors, queries = (rng.standard_normal((n, WIDTH), dtype=np.float32) for n in (N, 20))
        vectors[40:50] = vectors[:10]
    owner, altered = np.arange(N) % ITEMS, np.arange(N) >= 2 * ITEMS
    return Search(queries, rng.integers(0, ITEMS, 20), Gallery(vectors), owner, altered)


def logit(asked: list[tuple[int, int]], query: np.ndarray, candidate: np.ndarray) -> np.ndarray:
    """Few values, so that many pairs tie; of the candidate's number, not of its vector."""
    asked += zip(query.tolist(), candidate.tolist(), strict=True)
    return ((query * 7 + candidate * 5) % 4).astype(np.float32) / 3


def in_shares(search: MatchedSearch, n: int) -> list[Any]:
    before: list[Any] = []
    for stage in search.stages:
        shares = [
            stage.answer(before, Share(number, n, products))
            for number, products in enumerate(search.gallery.shares(n))
        ]
        one_by_one = functools.reduce(
            lambda one, other, stage=stage: stage.merged([one, other]), shares
        )
        together = stage.merged(shares[::-1])
        assert contents(one_by_one) == contents(together), stage.name
        before.append(one_by_one)
    return before


def contents(answer) -> list[tuple]:
    if hasattr(answer, "__slots__"):
        answer = [getattr(answer, name) for name in answer.__slots__]
    return [(array.dtype, array.shape, array.tobytes()) for array in map(np.asarray, answer)]


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 7])
def test_shares_give_the_bytes_of_whole_rows_and_match_each_pair_once(search, n):
    assert search.gallery.n_products > 3
    whole, shared = [], []
    expected = both_passes(search, functools.partial(logit, whole))
    *_, best, counts = in_shares(MatchedSearch(search, functools.partial(logit, shared)), n)
    assert sorted(shared) == sorted(whole)
    assert contents(best) == contents(expected[0])
    for name in ("originals_level", "altered_level", "clean_level", "above", "clean_above"):
        assert getattr(counts, name).tolist() == getattr(expected[1], name).tolist()
    found, wanted = ranks(search, best, counts), ranks(search, *expected)
    assert contents(found) == contents(wanted)
    assert len(set(wanted.rank.tolist())) > 2


def test_a_gallery_in_which_nothing_is_altered_is_ranked_in_shares_too(search):
    clean = Search(
        search.queries, search.query_item, search.gallery, search.owner, np.zeros(N, dtype=bool)
    )
    match = functools.partial(logit, [])
    *_, best, counts = in_shares(MatchedSearch(clean, match), 3)
    assert contents(clean_ranks(clean, best, counts)) == contents(
        clean_ranks(clean, *both_passes(clean, match))
    )
