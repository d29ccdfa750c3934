"""A tie is a case that only equality loses: each metric's ties are recounted as cases won by >= and lost by >."""

import operator
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from tests.conftest import question_set_of
from vlprobe import views
from vlprobe.metrics import pairs, retrieval, triplets
from vlprobe.metrics.judge import Judge
from vlprobe.scoring.gallery import Gallery
from vlprobe.scoring.retrieval import retrieve
from vlprobe.storage.store import Store

N = 400


def ties(metrics: tuple, rows: pd.DataFrame) -> dict[str, int]:
    judge = Judge(metrics, N, [])
    judge.add(
        rows.assign(
            item_code=np.arange(len(rows)), group_code=np.arange(len(rows)), subtype="", rule=""
        )
    )
    found = judge.estimates()
    return found[found["by"] == "all"].groupby("metric")["ties"].first().to_dict()


def count_lost(rows: pd.DataFrame, wins: Callable) -> int:
    """Count the cases for which `wins(row, above)` differs between "at least" and "above"."""
    return sum(wins(row, operator.ge) != wins(row, operator.gt) for row in rows.itertuples())


def check_ties(metrics: tuple, rows: pd.DataFrame, expected: dict[str, Callable]) -> dict[str, int]:
    """Compare the ties of each metric with the cases lost by equality, and return the ties of all metrics."""
    found = ties(metrics, rows)
    assert {name: found[name] for name in expected} == {
        name: count_lost(rows, wins) for name, wins in expected.items()
    }
    return found


def test_a_tie_of_pairs_is_counted_for_its_metric():
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 5, (N, 4)) / 4
    rows = pd.DataFrame(scores, columns=[f"score_{n}" for n in range(4)])
    orders = rng.integers(0, 5, (N, 2)) / 4
    rows = rows.assign(kind="pair", subset_size=N, order_12=orders[:, 0], order_21=orders[:, 1])
    rows["margin"] = np.float32(pairs.margins(rows))
    text = lambda r, above: above(r.score_0, r.score_1) and above(r.score_3, r.score_2)  # noqa: E731
    image = lambda r, above: above(r.score_0, r.score_2) and above(r.score_3, r.score_1)  # noqa: E731
    expected = {
        "text_score": text,
        "image_score": image,
        "group_score": lambda r, above: text(r, above) and image(r, above),
        "average_score": lambda r, above: text(r, above) + image(r, above),
        "matched_12": lambda r, above: above(r.order_12, 0.5),
        "matched_21": lambda r, above: above(r.order_21, 0.5),
        "matched_both": lambda r, above: above(r.order_12, 0.5) and above(r.order_21, 0.5),
    }
    found = check_ties(pairs.METRICS, rows, expected)
    assert len(set(found.values())) > 4
    assert found["equivariance_deviation"] == 0  # has no winner, because 0 is the aim


@pytest.mark.parametrize("probability", [True, False])
def test_a_tie_of_foils_is_counted_for_its_metric(probability: bool):
    scores = np.random.default_rng(1).integers(0, 5, (N, 2)) / 4
    rows = pd.DataFrame(scores, columns=["score_0", "score_1"]).assign(
        margin=np.float32(scores[:, 0] - scores[:, 1]), kind="foil", probability=probability
    )
    rows = rows.assign(subset_size=1, captions_are_weaker=False)
    expected = {
        "foil_accuracy": lambda r, above: above(r.score_0, r.score_1),
        "caption_accepted": lambda r, above: probability and above(r.score_0, 0.5),
        "foil_rejected": lambda r, above: probability and above(0.5, r.score_1),
        "judged_rightly": lambda r, above: (
            probability and (above(r.score_0, 0.5), above(0.5, r.score_1))
        ),
        "weaker_side": lambda r, above: probability and above(0.5, r.score_1),
    }
    check_ties(pairs.METRICS, rows, expected)


def test_a_tie_of_triplets_is_counted_for_its_metric():
    rng = np.random.default_rng(2)
    names = ["text_01", "text_02", "text_12", "overlap_01", "overlap_02", "overlap_12"]
    texts = pd.DataFrame(rng.integers(0, 4, (N, 6)) / 4, columns=names).assign(kind="t2t")
    texts["margin"] = texts["text_01"] - np.maximum(texts["text_02"], texts["text_12"])
    shown = pd.DataFrame(
        rng.integers(0, 4, (N, 3)) / 4, columns=["score_0", "score_1", "score_2"]
    ).assign(kind="i2t")
    shown["margin"] = np.minimum(shown["score_0"], shown["score_1"]) - shown["score_2"]
    expected = {
        "t2t_accuracy": lambda r, above: (
            above(r.text_01, r.text_02) and above(r.text_01, r.text_12)
        ),
        "t2t_p1_n": lambda r, above: above(r.text_01, r.text_12),
        "t2t_p2_n": lambda r, above: above(r.text_01, r.text_02),
        "words_t2t_accuracy": lambda r, above: (
            above(r.overlap_01, r.overlap_02) and above(r.overlap_01, r.overlap_12)
        ),
    }
    check_ties(triplets.METRICS, texts, expected)
    expected = {
        "i2t_accuracy": lambda r, above: (
            above(r.score_0, r.score_2) and above(r.score_1, r.score_2)
        ),
        "i2t_p1_n": lambda r, above: above(r.score_0, r.score_2),
        "i2t_p2_n": lambda r, above: above(r.score_1, r.score_2),
    }
    check_ties(triplets.METRICS, shown, expected)


def test_a_tie_of_retrieval_is_counted_for_its_metric():
    rng = np.random.default_rng(3)
    # few directions, so that many candidates tie
    queries = rng.integers(-1, 2, (100, 8)).astype(np.float32)
    vectors = np.concatenate([queries, rng.integers(-1, 2, (200, 8)).astype(np.float32)])
    vectors[200:300:2] = queries[::2]  # altered captions that equal the first caption
    owner, altered = np.tile(np.arange(100), 3), np.repeat([False, False, True], 100)
    candidates = Gallery(vectors)
    found = retrieve(queries, np.arange(100), candidates, owner, altered)
    arrays = {name: np.asarray(getattr(found, name), float) for name in found.__slots__}
    rows = pd.DataFrame({name: values for name, values in arrays.items() if values.ndim == 1})
    counted = ties(
        retrieval.METRICS, rows.assign(kind="i2t", margin=found.best_own - found.best_altered)
    )
    scores, expected = queries @ vectors.T, dict.fromkeys(counted, 0)
    for query, values in enumerate(scores):
        mine = (owner == query) & ~altered
        hits = {}
        for beats in (operator.ge, operator.gt):  # counted against the own candidate
            before = beats(values, values[mine].max()) & ~mine
            hits |= {(k, "", beats): (before & ~altered).sum() < k for k in (1, 5, 10)}
            hits |= {(k, "_new", beats): before.sum() < k for k in (1, 5, 10)}
        for k, suffix in ((k, suffix) for k in (1, 5, 10) for suffix in ("", "_new")):
            expected[f"i2t_r{k}{suffix}"] += (
                hits[k, suffix, operator.ge] != hits[k, suffix, operator.gt]
            )
        lost = hits[1, "_new", operator.ge] != hits[1, "_new", operator.gt]
        expected["i2t_drop_rate"] += bool(hits[1, "", operator.ge] and lost)
        expected["i2t_rsms"] += values[altered].max() == values[~altered].max()
    assert {name: count for name, count in counted.items() if name.startswith("i2t")} == {
        name: count for name, count in expected.items() if name.startswith("i2t")
    }
    assert counted["i2t_r1"] > 0 and counted["i2t_drop_rate"] > 0


def test_word_overlaps_tie_equally_for_every_model(every_probe: Store):
    found = views.estimates.estimates(question_set_of(every_probe, "visla")).set_index(
        ["metric", "model"]
    )["ties"]
    assert found["words_t2t_accuracy"].nunique() == 1
    assert found["t2t_accuracy", "control:constant"] == 14
