"""Approximate search against plain loops over the whole gallery, and runs that are told by their note."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from PIL import Image

from vlprobe import registry
from vlprobe.cli import main
from vlprobe.errors import InvalidInput, MissingDependency
from vlprobe.metrics import ranking, retrieval
from vlprobe.probes import prsm_ranking
from vlprobe.render.html import cases
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.scoring import approximate_gallery
from vlprobe.scoring import nearest as scoring_nearest
from vlprobe.scoring import retrieval as retrieval_ranks
from vlprobe.scoring.approximate_gallery import ApproximateGallery
from vlprobe.scoring.gallery import Gallery
from vlprobe.types import Run
from vlprobe.types.options import parse_options
from vlprobe.views.records import AnswerRow

faiss = pytest.importorskip("faiss", reason="needs faiss-cpu of requirements-ray.txt")
MEMORY = 1 << 30
OPTIONS = {"policies": ["same-concept"], "pictures": ["mix:0.8"], "picture_seeds": [1]}


def unit(made: np.ndarray) -> np.ndarray:
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def world(n: int = 900, each: int = 3, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Queries, their items, candidates of which some are alike, whose each is, and whether it was altered."""
    rng = np.random.default_rng(seed)
    middles = rng.normal(size=(30, 16))
    vectors = unit(middles[rng.integers(0, 30, 2 * n)] + rng.normal(size=(2 * n, 16)))
    vectors[n : n + 40] = vectors[:40]  # altered, and the same to the model
    vectors[100:120] = vectors[200:220]  # originals of two items that are the same
    owner = np.tile(np.arange(n) // each, 2)
    queries = unit(vectors[np.arange(0, n, each)] + rng.normal(scale=0.15, size=(n // each, 16)))
    return queries, np.arange(n // each), vectors, owner, np.repeat([False, True], n)


def pictures(folder: Path, n: int, alike: int = 1) -> str:
    """So many pictures of noise, some alike, with two captions each; the dataset's name."""
    lines = ["image,caption"]
    for number in range(n):
        noise = np.random.default_rng(number // alike).integers(0, 255, (8, 8, 3), dtype=np.uint8)
        Image.fromarray(noise).save(folder / f"{number}.png")
        lines += [
            f"{number}.png,A dog beside {number} cars.",
            f"{number}.png,There are {number} cars and a dog.",
        ]
    (folder / "captions.csv").write_text("\n".join(lines))
    return f"csv:{folder / 'captions.csv'}"


@pytest.fixture
def few_lists(monkeypatch):
    """Lists for galleries of any size, of which a query is compared with four."""
    monkeypatch.setattr(scoring_nearest, "EXACT_LIMIT", 0)
    monkeypatch.setattr(approximate_gallery, "MIN_PROBED_LISTS", 4)


@pytest.mark.parametrize(
    "memory", [MEMORY, 32 * 4 * 16 * 100], ids=["in memory", "in files, 100 rows at once"]
)
@pytest.mark.parametrize("apart", [False, True], ids=["among all", "among the altered"])
def test_recall_is_that_of_a_plain_loop(few_lists, memory: int, apart: bool):
    queries, _, vectors, _, altered = world()
    queries = queries[:60]
    made = Gallery.encode(lambda part: vectors[part], len(vectors), 16, memory)
    nearest = ApproximateGallery(made, 10, memory, 2)
    among = nearest.rows_holding(altered) if apart else None
    measured = nearest.recall(queries, among)
    rows, _ = nearest.search(queries, 10, among)
    for query, own, (first, ten) in zip(queries, rows, measured, strict=True):
        scores = {
            row.tobytes(): float(row @ query) for row in (vectors[altered] if apart else vectors)
        }
        truth = sorted(scores, key=scores.get, reverse=True)[:10]
        found = {
            vectors[np.flatnonzero(nearest.row_of == row)[0]].tobytes() for row in own.tolist()
        }
        assert first == (truth[0] in found)
        assert ten == pytest.approx(len(found & set(truth)) / 10)
    assert 0.6 < measured[:, 1].mean() < 1


def test_recall_is_measured_at_every_depth_and_is_that_of_a_plain_loop(few_lists):
    queries, _, vectors, _, _ = world()
    nearest = ApproximateGallery(Gallery(vectors), 120, MEMORY, 2)
    depths = (1, 10, 100)
    measured = nearest.recall(queries[:40], None, depths)
    rows, _ = nearest.search(queries[:40], 120)
    for query, own, shares in zip(queries, rows, measured, strict=False):
        scores = {row.tobytes(): float(row @ query) for row in vectors}
        truth = sorted(scores, key=scores.get, reverse=True)
        found = {
            vectors[np.flatnonzero(nearest.row_of == row)[0]].tobytes() for row in own.tolist()
        }
        assert shares.tolist() == pytest.approx(
            [len(found & set(truth[:depth])) / depth for depth in depths]
        )
    assert (measured[:, 2] < measured[:, 1]).any() and measured[:, 2].mean() < 0.99


def test_a_prsm_run_tells_the_recall_of_every_overlap_that_it_shows(few_lists, store, tmp_path):
    asked = Request(
        ("control:random",), pictures(tmp_path, 150), "prsm", {"approximate": 110}, examine=False
    )
    manifest = execute(asked, store)[0]
    rows = store.run(manifest["key"]).table("scores").to_pandas()
    assert (
        rows["local_100"].notna().any()
        and rows["local_1000"].isna().all()
        and "found_1000" not in rows
    )
    shares = [100 * rows[f"found_{depth}"].mean() for depth in (100, 10, 1)]
    assert (
        "approximate, 110 candidates looked up: {:.1f} % of the true first 100, {:.1f} % of the true first 10 and "
        "{:.1f} % of the true first were found".format(*shares)
        in manifest["note"]
    )


def test_what_is_found_has_its_exact_similarity_the_best_first_and_only_of_those_that_count(
    few_lists,
):
    queries, _, vectors, _, altered = world()
    nearest = ApproximateGallery(Gallery(vectors), 10, MEMORY, 1)
    among = np.bincount(nearest.row_of[altered], minlength=nearest.row_of.max() + 1) > 0
    rows, values = nearest.search(queries, 12, among)
    candidates, known = nearest.dense_similarities(rows, values)
    for query, own, row in zip(queries, values, known, strict=True):
        assert (np.diff(own) <= 0).all()
        there = row > -np.inf
        np.testing.assert_allclose(
            row[there], vectors[candidates[there]] @ query, rtol=0, atol=1e-6
        )
        assert set(row[there]) == set(own)
    assert all(among[nearest.row_of[candidates]])
    assert (np.diff(candidates) > 0).all()


def test_lists_that_hold_too_few_of_those_that_count_are_not_all_that_is_read(few_lists):
    queries, _, vectors, _, _ = world()
    nearest = ApproximateGallery(Gallery(vectors), 10, MEMORY, 1)
    among = np.zeros(nearest.row_of.max() + 1, dtype=bool)
    among[[3, 700, 1500]] = True
    rows, values = nearest.search(queries[:5], 10, among)
    assert (np.sort(rows[:, :3]) == [3, 700, 1500]).all()
    assert (rows[:, 3:] == -1).all() and np.isneginf(values[:, 3:]).all()
    assert (nearest.recall(queries[:5], among) == 1).all()


def test_all_candidates_looked_up_give_the_exact_numbers(few_lists, monkeypatch):
    monkeypatch.setattr(approximate_gallery, "MIN_PROBED_LISTS", 10**6)
    queries, item, vectors, owner, altered = world(300)
    exact = retrieval_ranks.retrieve(queries, item, Gallery(vectors), owner, altered)
    nearest = ApproximateGallery(Gallery(vectors), len(vectors), MEMORY, 2)
    found = scoring_nearest.retrieve(queries, item, nearest, owner, altered)
    names = ("rank_clean", "rank", "top_altered", "which_altered", "first_clean", "first")
    for name in (*names, "own_altered_rank"):
        assert (getattr(found, name) == getattr(exact, name)).all(), name
    assert exact.top_altered[:5].any()  # ties with what was altered are among them
    for name in ("best_own", "best_altered", "first_clean_scores", "first_scores", "own_altered"):
        np.testing.assert_allclose(getattr(found, name), getattr(exact, name), rtol=0, atol=1e-6)
    assert (nearest.recall(queries) == 1).all()


@pytest.mark.parametrize("k", [10, 40])
def test_a_rank_is_exact_or_unknown_and_then_beyond_k(few_lists, monkeypatch, k: int):
    monkeypatch.setattr(approximate_gallery, "MIN_PROBED_LISTS", 10**6)
    _, item, vectors, owner, altered = world(seed=3)
    queries = unit(
        np.random.default_rng(4).normal(size=(len(item), 16)) + vectors[::3][: len(item)]
    )
    exact = retrieval_ranks.retrieve(queries, item, Gallery(vectors), owner, altered)
    found = scoring_nearest.retrieve(
        queries, item, ApproximateGallery(Gallery(vectors), k, MEMORY, 1), owner, altered
    )
    for name in ("rank_clean", "rank"):
        ours, true = getattr(found, name), getattr(exact, name)
        unknown = np.isnan(ours)
        assert unknown.any() and (true[unknown] > k).all()
        assert (ours[~unknown] == true[~unknown]).all()
        assert (
            not unknown[true <= k].any()
            if name == "rank_clean"
            else unknown[np.isnan(found.rank_clean)].all()
        )
    ranks = [
        pd.DataFrame({"rank": one.rank, "rank_clean": one.rank_clean}) for one in (found, exact)
    ]
    for depth in (1, 5, 10):
        assert (
            retrieval.recall(ranks[0], "rank", depth) == retrieval.recall(ranks[1], "rank", depth)
        ).all()
    assert (retrieval.drop(ranks[0]) == retrieval.drop(ranks[1])).all()
    assert (found.top_altered == exact.top_altered).all() and (
        found.which_altered == exact.which_altered
    ).all()


def test_what_is_missed_can_only_improve_a_rank(few_lists, monkeypatch):
    monkeypatch.setattr(approximate_gallery, "MIN_PROBED_LISTS", 2)
    _, item, vectors, owner, altered = world(seed=3)
    queries = unit(
        np.random.default_rng(4).normal(size=(len(item), 16)) + vectors[::3][: len(item)]
    )
    exact = retrieval_ranks.retrieve(queries, item, Gallery(vectors), owner, altered)
    found = scoring_nearest.retrieve(
        queries, item, ApproximateGallery(Gallery(vectors), 10, MEMORY, 1), owner, altered
    )
    for name in ("rank_clean", "rank"):
        ours, true = getattr(found, name), getattr(exact, name)
        unknown = np.isnan(ours)
        assert (
            (ours[~unknown] <= true[~unknown]).all()
            and (ours < true).any()
            and (true[unknown] > 10).all()
        )


def test_a_constant_model_finds_nothing_here_either(few_lists):
    _, item, vectors, owner, altered = world(120)
    same = np.ones_like(vectors) / 4
    nearest = ApproximateGallery(Gallery(same), 10, MEMORY, 1)
    found = scoring_nearest.retrieve(same[: len(item)], item, nearest, owner, altered)
    assert (
        (found.rank_clean == 1 + 117).all()
        and (found.rank == 1 + 117 + 120).all()
        and found.top_altered.all()
    )


def test_overlaps_of_the_first_are_those_of_whole_rankings_where_they_are_known():
    rng = np.random.default_rng(5)
    whole = np.round(rng.normal(size=(3, 400)) + rng.normal(size=400), 1).astype(
        np.float32
    )  # with ties
    exact = ranking.means(ranking.pair_measures(ranking.Ranker()(whole)))
    for k in (11, 101, 150, 400):
        least = -np.sort(-whole, axis=1)[:, k - 1, None]
        pairs, order = ranking.first_pair_measures(
            np.where(whole >= least, whole, -np.inf).astype(np.float32)
        )
        measured = ranking.means(pairs)
        assert (order[:, :5] == ranking.Ranker()(whole).order[:, :5]).all()
        assert np.isnan(measured["global"]) and np.isnan(measured["global_idlist"])
        for depth in (10, 100):
            border = -np.sort(-whole, axis=1)[:, depth - 1, None]
            name = f"local_{depth}"
            known = depth < k and (border > least).all()
            assert measured[name] == pytest.approx(exact[name] if known else np.nan, nan_ok=True)
    assert known


def test_a_second_run_on_other_threads_writes_the_same_bytes(few_lists):
    queries, _, vectors, _, _ = world()
    before = faiss.omp_get_max_threads()
    found = []
    for threads in (1, 2):
        faiss.omp_set_num_threads(threads)
        found.append(ApproximateGallery(Gallery(vectors), 10, MEMORY, threads).search(queries, 10))
    assert faiss.omp_get_max_threads() == 2  # those of others are as they were
    faiss.omp_set_num_threads(before)
    assert all(one.tobytes() == other.tobytes() for one, other in zip(*found, strict=True))


@pytest.mark.parametrize(
    ("probe", "expected"),
    [
        ("rococo", ("61828277d753c308", "9906cdd5eba8c0a1")),
        ("prsm", ("328691c8c2700f45", "eb3340bf002ca919")),
    ],
)
def test_an_exact_run_has_the_key_that_it_had_before_there_was_another(
    probe: str, expected, tmp_path
):
    loaded = registry.load_probe(probe)
    metrics = tuple(f"{metric.name}@1" for metric in loaded.metrics)
    keys = []
    for given in ({}, {"approximate": 0}, {"approximate": 10}):
        options = loaded.pin(parse_options(loaded.options, given, "Probe"), tmp_path)
        run = Run("m", "d", "data", "dd", loaded.name, 1, metrics, dict(options))
        keys.append((run.key, run.case_key))
    assert keys[0] == keys[1] == expected
    assert not set(keys[2]) & set(expected)


def test_too_few_candidates_and_a_missing_faiss_are_refused_in_a_line(tiny, store, monkeypatch):
    with pytest.raises(InvalidInput, match=r"'approximate' is '9'. Expected 0 \(exact\), or 10"):
        execute(Request(("control:random",), tiny, "prsm", {"approximate": 9}), store)
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MissingDependency, match=r"'faiss-cpu'.*vlprobe\[scale\]"):
        execute(Request(("control:random",), tiny, "rococo", OPTIONS | {"approximate": 10}), store)


def test_a_model_that_looks_at_pairs_is_refused():
    encoder = type(
        "Looking",
        (),
        {"scores_pairs": True, "image_dim": 8, "dim": 8, "model": type("M", (), {"name": "x"})},
    )
    made = Gallery(unit(np.random.default_rng(0).normal(size=(20, 8))))
    with pytest.raises(
        InvalidInput, match=r"Model 'x' compares .* Leave out the option 'approximate'"
    ):
        scoring_nearest.searchable(made, 10, encoder)
    assert scoring_nearest.searchable(made, 0, encoder) is made


def test_a_small_gallery_is_searched_exactly_and_says_so(tiny, store):
    manifest = execute(
        Request(("control:random",), tiny, "prsm", {"approximate": 10}, examine=False), store
    )[0]
    assert (
        "not approximate: all galleries are so small that they are searched exactly"
        in manifest["note"]
    )
    assert manifest["note"].startswith(registry.load_model("control:random").note)
    rows = store.run(manifest["key"]).table("scores").to_pandas()
    assert rows["global"].notna().all() and rows["looked_up"].isna().all()


def test_a_run_tells_its_recall_and_leaves_open_what_it_does_not_know(
    few_lists, store, monkeypatch, tmp_path
):
    monkeypatch.setattr(approximate_gallery, "MIN_PROBED_LISTS", 2)
    data = pictures(tmp_path, 30)
    asked = Request(
        ("control:random",), data, "rococo", OPTIONS | {"approximate": 10}, examine=False
    )
    manifest = execute(asked, store)[0]
    rows = store.run(manifest["key"]).table("scores").to_pandas()
    assert (
        rows["rank"].isna().any()
        and (rows["looked_up"] == 10).all()
        and rows["margin"].notna().all()
    )
    for kind, own in rows.groupby("kind"):
        known = own["found_10"].dropna()
        assert f"{kind}: {100 * known.mean():.1f} % of the true first 10 and" in manifest["note"]
        assert f"({len(known)} queries measured)" in manifest["note"]
        assert f"; of the altered {100 * own['altered_10'].mean():.1f} % and" in manifest["note"]
    assert (rows["altered_10"] != rows["found_10"]).any()
    assert "can only improve ranks, so the true R@K is this or lower" in manifest["note"]
    lost = AnswerRow(0, "", 0.0, (), rows[rows["rank"].isna()].iloc[0].to_dict())
    assert cases._rank_text(lost).startswith("rank more than 10")
    ranked = execute(
        Request(("control:random",), data, "prsm", {"approximate": 10}, examine=False), store
    )[0]
    rows = store.run(ranked["key"]).table("scores").to_pandas()
    assert rows["global"].isna().all() and rows["local_10"].notna().all()
    np.testing.assert_allclose(rows["margin"], rows["local_10"] - 1, atol=1e-6)
    assert (
        f"approximate, 10 candidates looked up: {100 * rows['found_10'].mean():.1f} %"
        in ranked["note"]
    )
    assert "altered" not in ranked["note"] and "R@K" not in ranked["note"]
    shown = CliRunner().invoke(main.main, ["--cache", str(store.root), "show", ranked["key"]])
    assert f"Note on control:random: {ranked['note']}" in shown.stderr


def test_all_margins_of_a_prsm_run_are_of_the_same_overlap_whatever_ties(
    few_lists, store, tmp_path
):
    data = pictures(tmp_path, 150, alike=3)  # so that 40 that are looked up can be more than 100
    asked = Request(("control:random",), data, "prsm", {"approximate": 40}, examine=False)
    rows = store.run(execute(asked, store)[0]["key"]).table("scores").to_pandas()
    assert rows["local_100"].notna().any() and (rows["looked_up"] == 40).all()
    np.testing.assert_allclose(rows["margin"], rows["local_10"] - 1, atol=1e-6)
    assert [prsm_ranking.margin_measure(6000, k) for k in (0, 10, 99, 100)] == [
        "local_100",
        "local_10",
        "local_10",
        "local_100",
    ]


def test_the_sample_is_chosen_by_id_and_all_of_a_few():
    ids = [f"case {number}" for number in range(20_000)]
    chosen = scoring_nearest.measures_recall(ids, 42, len(ids))
    assert abs(chosen.sum() - 256) < 60
    assert (scoring_nearest.measures_recall(ids[::-1], 42, len(ids)) == chosen[::-1]).all()
    assert scoring_nearest.measures_recall(ids[:200], 42, 200).all()
