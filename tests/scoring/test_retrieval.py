"""Retrieval over the products of a gallery against a plain loop over every candidate."""

import tracemalloc

import numpy as np
import pytest

from vlprobe.scoring import gallery
from vlprobe.scoring.gallery import Gallery
from vlprobe.scoring.retrieval import FIRST, RetrievalRanks, retrieve

WIDTH = 6


@pytest.fixture
def small_products(monkeypatch):
    """Use products of 13 candidates and 5 queries, also for galleries that fit into memory."""
    monkeypatch.setattr(gallery, "PRODUCT_BYTES", 4 * WIDTH * 13)
    monkeypatch.setattr(gallery, "PRODUCT_CANDIDATES", 13)
    monkeypatch.setattr(gallery, "BLOCK_BYTES", 4 * 13 * 5)
    monkeypatch.setattr(gallery, "ENCODE_CHUNK", 7)


def world(seed: int, whole_numbers: bool = True):
    """Return queries, their items, shuffled candidates, the owner of each, and whether it was altered.

    With whole numbers, products are exact in any order of summation, and most candidates tie.
    """
    rng = np.random.default_rng(seed)
    n_items, each = int(rng.integers(2, 30)), int(rng.integers(1, 5))
    shape = (2 * n_items * each, WIDTH)
    vectors = rng.integers(-1, 2, shape) if whole_numbers else rng.normal(size=shape)
    vectors[rng.integers(0, len(vectors), len(vectors) // 4)] = vectors[0]
    owner = np.tile(np.repeat(np.arange(n_items), each), 2)
    altered = np.repeat([False, True], n_items * each)
    stays = ~altered | (rng.random(len(owner)) < 0.7)
    stays[-1] = True
    order = rng.permutation(np.flatnonzero(stays))
    queries = rng.integers(-1, 2, (23, WIDTH)) if whole_numbers else rng.normal(size=(23, WIDTH))
    items = rng.integers(0, n_items, 23)
    return (
        queries.astype(np.float32),
        items,
        vectors.astype(np.float32)[order],
        owner[order],
        altered[order],
    )


def content(answer: RetrievalRanks) -> dict[str, tuple]:
    arrays = {name: np.asarray(getattr(answer, name)) for name in answer.__slots__}
    return {name: (values.dtype, values.tobytes()) for name, values in arrays.items()}


def check_query(answer: RetrievalRanks, query: int, values, item: int, owner, altered) -> None:
    """Check one query's numbers against loops over its exact similarities."""
    numbers = range(len(values))
    own = [n for n in numbers if owner[n] == item and not altered[n]]
    best = max(values[n] for n in own)
    originals = [n for n in numbers if not altered[n]]
    false_ones = [n for n in numbers if altered[n]]
    if not false_ones:
        false_ones = [n for n in numbers if n not in own]
    rivals = [n for n in numbers if n not in own]
    assert answer.best_own[query] == best
    assert answer.rank[query] == 1 + sum(values[n] >= best for n in rivals)
    assert answer.rank_clean[query] == 1 + sum(values[n] >= best for n in rivals if not altered[n])
    assert answer.least_rank[query] == 1 + sum(values[n] > best for n in numbers)
    assert answer.least_rank_clean[query] == 1 + sum(values[n] > best for n in originals)
    top = max(values[n] for n in false_ones)
    against = max(values[n] for n in originals) if altered.any() else best
    assert answer.best_altered[query] == top
    assert answer.which_altered[query] == next(n for n in false_ones if values[n] == top)
    assert answer.top_altered[query] == (top >= against)
    assert answer.top_tied[query] == (top == against)
    for few, scores, among in (
        (answer.first, answer.first_scores, numbers),
        (answer.first_clean, answer.first_clean_scores, originals),
    ):
        expected = sorted(among, key=lambda n: (-values[n], n in own, n))[:FIRST]
        assert few[query, : len(expected)].tolist() == expected
        assert scores[query, : len(expected)].tolist() == [values[n] for n in expected]
        assert (few[query, len(expected) :] == -1).all()
        assert np.isnan(scores[query, len(expected) :]).all()
    mine = [values[n] for n in numbers if altered[n] and owner[n] == item]
    if not mine:
        assert np.isnan(answer.own_altered[query]) and np.isnan(answer.own_altered_rank[query])
    else:
        assert answer.own_altered[query] == max(mine)
        assert answer.own_altered_rank[query] == 1 + sum(values[n] > max(mine) for n in numbers)


@pytest.mark.parametrize("seed", range(12))
def test_a_gallery_of_many_products_matches_a_loop_over_all_candidates(small_products, seed: int):
    queries, items, vectors, owner, altered = world(seed)
    if seed % 4 == 3:
        altered = np.zeros_like(altered)
        answer = retrieve(queries, items, Gallery(vectors), owner)
    else:
        answer = retrieve(queries, items, Gallery(vectors), owner, altered)
    values = queries.astype(np.int64) @ vectors.astype(np.int64).T
    for query, item in enumerate(items.tolist()):
        check_query(answer, query, values[query].tolist(), item, owner, altered)


@pytest.mark.parametrize("whole_numbers", [True, False])
def test_memory_and_a_file_give_the_same_bytes(small_products, whole_numbers: bool):
    for seed in range(4):
        queries, items, vectors, owner, altered = world(seed, whole_numbers)
        on_disk = Gallery.encode(lambda chunk, of=vectors: of[chunk], len(vectors), WIDTH, 1)
        whole = content(retrieve(queries, items, Gallery(vectors), owner, altered))
        assert content(retrieve(queries, items, on_disk, owner, altered)) == whole
        clean = content(retrieve(queries, items, on_disk, owner))
        assert content(retrieve(queries, items, Gallery(vectors), owner)) == clean


def test_equal_candidates_in_different_products_tie_to_the_bit(small_products):
    rng = np.random.default_rng(0)
    vectors = np.repeat(rng.normal(size=(40, WIDTH)).astype(np.float32), 5, axis=0)
    vectors = vectors[rng.permutation(200)]
    candidates = Gallery(vectors)
    assert candidates.n_products == 4
    queries = rng.normal(size=(9, WIDTH)).astype(np.float32)
    scores = np.concatenate([rows for _, rows in candidates.similarities(queries)])
    assert np.abs(scores - queries @ vectors.T).max() < 1e-5
    for row in scores:
        assert len(np.unique(row)) == 40


@pytest.mark.full  # 2 s; the tests above check its ranks
def test_a_gallery_of_many_products_is_ranked_in_the_memory_of_one(monkeypatch):
    width, n = 64, 40_000
    monkeypatch.setattr(gallery, "PRODUCT_BYTES", 1 << 18)
    monkeypatch.setattr(gallery, "PRODUCT_CANDIDATES", 1024)
    monkeypatch.setattr(gallery, "BLOCK_BYTES", 1 << 18)
    monkeypatch.setattr(gallery, "ENCODE_CHUNK", 1024)

    def encode(chunk: slice) -> np.ndarray:
        rows = np.random.default_rng(chunk.start).normal(size=(chunk.stop - chunk.start, width))
        return rows.astype(np.float32)

    owner, altered = np.arange(n) // 2, np.arange(n) % 2 == 1
    queries, items = encode(slice(0, 300)), np.arange(300) * 66
    tracemalloc.start()
    try:
        candidates = Gallery.encode(encode, n, width, 1)
        answer = retrieve(queries, items, candidates, owner, altered)
        n_most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert candidates.n_products == 40
    assert n_most < 4 * n * width / 2 < 300 * n * 4, "the gallery or the matrix was held"
    assert answer.rank_clean.min() >= 1 and answer.rank.max() <= n
