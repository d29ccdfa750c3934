"""Retrieval in blocks against a plain sort of the whole matrix."""

import numpy as np
import pytest

from vlprobe.scoring import gallery
from vlprobe.scoring.gallery import Gallery
from vlprobe.scoring.retrieval import retrieve


def draw_units(rng, n: int, dim: int = 8) -> np.ndarray:
    made = rng.normal(size=(n, dim)).astype(np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def world(seed: int = 0, items: int = 12, each: int = 3):
    rng = np.random.default_rng(seed)
    captions, altered = draw_units(rng, items * each), draw_units(rng, items * each)
    owner = np.tile(np.repeat(np.arange(items), each), 2)
    return (
        draw_units(rng, items),
        np.concatenate([captions, altered]),
        owner,
        np.repeat([False, True], items * each),
    )


def test_ranks_match_a_plain_sort():
    queries, vectors, owner, altered = world()
    found = retrieve(queries, np.arange(12), Gallery(vectors), owner, altered)
    for query in range(12):
        scores = vectors @ queries[query]
        own = scores[(owner == query) & ~altered].max()
        clean = [s for s, o, a in zip(scores, owner, altered, strict=True) if not a and o != query]
        wrong = [s for s, o, a in zip(scores, owner, altered, strict=True) if a or o != query]
        assert found.rank_clean[query] == 1 + sum(s >= own for s in clean)
        assert found.rank[query] == 1 + sum(s >= own for s in wrong)
        assert found.top_altered[query] == altered[np.argmax(scores)]
        assert found.which_altered[query] == np.argmax(np.where(altered, scores, -9))
        assert found.best_own[query] == pytest.approx(own, abs=1e-6)


def test_the_size_of_a_block_does_not_change_the_ranks(monkeypatch):
    queries, vectors, owner, altered = world(1)
    whole = retrieve(queries, np.arange(12), Gallery(vectors), owner, altered)
    monkeypatch.setattr(gallery, "BLOCK_BYTES", 1)
    single = retrieve(queries, np.arange(12), Gallery(vectors), owner, altered)
    assert (whole.rank == single.rank).all() and (whole.rank_clean == single.rank_clean).all()


def test_a_constant_model_finds_no_candidate_and_ranks_an_altered_one_first():
    _, vectors, owner, altered = world(2)
    same = np.ones_like(vectors)
    found = retrieve(same[:12], np.arange(12), Gallery(same), owner, altered)
    assert (found.rank_clean == 1 + 33).all()
    assert (found.rank == 1 + 33 + 36).all()
    assert found.top_altered.all()


def test_candidates_with_equal_embeddings_tie_to_the_bit():
    rng = np.random.default_rng(3)
    vectors = np.repeat(draw_units(rng, 40, 64), 50, axis=0)[rng.permutation(2000)]
    found = Gallery(vectors)
    assert len(found.representatives) == 40
    for _, scores in found.similarities(draw_units(rng, 30, 64)):
        assert all(len(np.unique(row)) <= 40 for row in scores)


def test_the_short_list_is_ranked_by_logit_and_cosine_above_all_others(monkeypatch):
    monkeypatch.setattr(gallery, "SHORT_LIST", 5)
    queries, vectors, owner, altered = world(4)
    logits = np.random.default_rng(5).normal(scale=9, size=(12, 72)).astype(np.float32)
    sizes = []

    def match(query: np.ndarray, candidate: np.ndarray) -> np.ndarray:
        sizes.append(len(query))
        return logits[query, candidate]

    found = retrieve(queries, np.arange(12), Gallery(vectors), owner, altered, match)
    pairs = 0
    for query in range(12):
        cosines = vectors @ queries[query]

        def ranked(candidates, cosines=cosines, query=query):
            order = sorted(candidates, key=lambda candidate: -cosines[candidate])
            listed = sorted(
                order[:5], key=lambda candidate: -(logits[query, candidate] + cosines[candidate])
            )
            return [*listed, *order[5:]], set(listed)

        ranking, listed = ranked(range(72))
        clean, listed_clean = ranked(np.flatnonzero(~altered))
        pairs += len(listed | listed_clean)
        for order, rank in ((ranking, found.rank), (clean, found.rank_clean)):
            assert rank[query] == 1 + next(
                n for n, c in enumerate(order) if owner[c] == query and not altered[c]
            )
        assert found.top_altered[query] == altered[ranking[0]]
    assert sum(sizes) == pairs  # candidates on both short lists are matched once


@pytest.mark.parametrize("alike", [0, 9])
def test_a_clean_rank_by_a_matching_head_uses_only_the_originals(monkeypatch, alike: int):
    monkeypatch.setattr(gallery, "SHORT_LIST", 4)
    queries, vectors, owner, altered = world(8)
    # altered candidates are before and after their originals
    order = np.random.default_rng(9).permutation(72)
    vectors, owner, altered = vectors[order], owner[order], altered[order]
    for copy, original in zip(
        np.flatnonzero(altered)[:alike], np.flatnonzero(~altered)[:alike], strict=True
    ):
        vectors[copy] = vectors[original]  # equal embeddings with different logits
    logits = np.random.default_rng(10).normal(scale=9, size=(12, 72)).astype(np.float32)
    both = retrieve(
        queries, np.arange(12), Gallery(vectors), owner, altered, lambda q, c: logits[q, c]
    )
    originals = np.flatnonzero(~altered)
    clean = [
        scores
        for _, scores in Gallery(vectors[originals]).similarities(
            queries, lambda q, c: logits[q, originals[c]]
        )
    ]
    for query, scores in enumerate(np.concatenate(clean)):
        own = owner[originals] == query
        assert both.rank_clean[query] == 1 + (scores[~own] >= scores[own].max()).sum()


def test_ties_at_the_end_of_the_short_list_are_included_for_any_block_size(monkeypatch):
    monkeypatch.setattr(gallery, "SHORT_LIST", 2)
    cosines = np.array([[0.5, 0.4, 0.4, 0.1], [0.1, 0.2, 0.3, 0.4]], np.float32)
    candidates = Gallery(np.eye(4, dtype=np.float32))
    ((_, found),) = candidates.similarities(cosines, lambda query, _: np.zeros(len(query)))
    assert (np.argsort(-found[1], kind="stable") == [3, 2, 1, 0]).all()
    assert found[0].tolist() == pytest.approx([0.5, 0.4, 0.4, 0.1 + 0.4 - 3])
    queries, vectors, owner, altered = world(6)
    logits = np.random.default_rng(7).normal(size=(12, 72))
    whole = retrieve(
        queries, np.arange(12), Gallery(vectors), owner, altered, lambda q, c: logits[q, c]
    )
    monkeypatch.setattr(gallery, "BLOCK_BYTES", 1)
    single = retrieve(
        queries, np.arange(12), Gallery(vectors), owner, altered, lambda q, c: logits[q, c]
    )
    assert (whole.rank == single.rank).all() and np.abs(
        whole.best_own - single.best_own
    ).max() <= 1e-6


@pytest.mark.parametrize("encoded", [7, 8192])
def test_a_gallery_in_a_file_has_the_ranks_and_ties_of_one_in_memory(monkeypatch, encoded: int):
    queries, vectors, owner, altered = world(4)
    vectors[40:60] = vectors[5:25]
    monkeypatch.setattr(gallery, "ENCODE_CHUNK", encoded)
    chunks = []
    made = Gallery.encode(
        lambda part: chunks.append(part) or vectors[part], len(vectors), 8, 32 * 1000
    )
    assert [part.stop for part in chunks] == [*range(encoded, len(vectors), encoded), len(vectors)]
    assert len(made.representatives) == len(np.unique(vectors, axis=0))
    for (_, scores), (_, expected) in zip(
        made.similarities(queries), Gallery(vectors).similarities(queries), strict=True
    ):
        assert np.abs(scores - expected).max() < 1e-6
        assert (scores[:, 40:60] == scores[:, 5:25]).all()
    found = retrieve(queries, np.arange(12), made, owner, altered)
    expected = retrieve(queries, np.arange(12), Gallery(vectors), owner, altered)
    for name in ("rank_clean", "rank", "top_altered", "which_altered"):
        assert (getattr(found, name) == getattr(expected, name)).all()


def test_a_gallery_within_its_share_of_memory_is_encoded_in_one_chunk():
    vectors = draw_units(np.random.default_rng(5), 50)
    chunks = []
    Gallery.encode(
        lambda part: chunks.append(part) or vectors[part], 50, 8, gallery.MEMORY_SHARES * 4 * 8 * 50
    )
    assert chunks == [slice(0, 50)]


def test_equal_candidates_do_not_enlarge_the_blocks():
    queries = draw_units(np.random.default_rng(6), 40)
    alike = Gallery(np.ones((5000, 8), dtype=np.float32))
    assert alike.block == Gallery(draw_units(np.random.default_rng(7), 5000)).block
    assert sum(len(scores) for _, scores in alike.similarities(queries)) == 40
