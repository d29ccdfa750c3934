"""Boundaries and orders, compared with plain loops, scipy and handwritten scores."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from vlprobe import registry
from vlprobe.metrics import series as metrics
from vlprobe.probes import series as probe
from vlprobe.types import Series

METRICS = {metric.name: metric for metric in metrics.METRICS}


def rows_of(cases: list[dict]) -> pd.DataFrame:
    return pd.DataFrame(cases, columns=["margin", *probe.COLUMNS]).astype(float)


def test_the_best_boundary_equals_that_of_a_plain_loop():
    rng = np.random.default_rng(0)
    for n_frames in (3, 5, 12):
        times = tuple(np.cumsum(rng.random(n_frames) + 0.1).tolist())
        true = float(rng.uniform(times[0] + 1e-9, times[-1]))
        scores = rng.random((n_frames, 2))
        sums = [scores[at, 0] + scores[at + 1, 1] for at in range(n_frames - 1)]
        best = max(range(n_frames - 1), key=sums.__getitem__)
        (place,) = [at for at in range(n_frames - 1) if times[at] < true <= times[at + 1]]
        answer = probe._boundary(Series((), times, true), scores)
        assert (answer["right_index"], answer["model_index"]) == (place, best)
        assert answer["seconds_off"] == pytest.approx(
            abs((times[best] + times[best + 1]) / 2 - true)
        )
        others = [value for at, value in enumerate(sums) if at != place]
        assert answer["margin"] == pytest.approx(sums[place] - max(others))
        assert (answer["margin"] > 0) == (place == best)


def test_of_tied_boundaries_the_farthest_from_the_truth_counts():
    series = Series((), (0.0, 1.0, 2.0, 3.0), 0.5)
    answer = probe._boundary(series, np.ones((4, 2)))
    assert (answer["margin"], answer["boundary_tied"], answer["seconds_off"]) == (0, True, 2.0)


def test_boundary_metrics_count_boundaries_within_each_distance():
    off = [0.05, 0.2, 1.2, 2.9, 9.0]
    rows = rows_of([{"margin": 1, "seconds_off": value} for value in off])
    by_hand = {
        seconds: [value <= seconds for value in off] for seconds in metrics.BOUNDARY_THRESHOLDS
    }
    for seconds, within in by_hand.items():
        value = METRICS[f"boundary_within_{seconds:g}"].value(rows)
        assert value.tolist() == within
    mean = np.mean([np.mean(within) for within in by_hand.values()])
    assert METRICS["boundary_accuracy"].value(rows).mean() == pytest.approx(mean)


def test_half_a_frame_at_five_frames_per_second_is_within_a_tenth_of_a_second():
    times = tuple(number / 5 for number in range(20))
    for index in range(1, 20):
        scores = np.zeros((20, 2))
        scores[index - 1, 0] = scores[index, 1] = 1.0
        answer = probe._boundary(Series((), times, times[index]), scores)
        assert answer["margin"] > 0
        assert METRICS["boundary_within_0.1"].value(rows_of([answer])).tolist() == [1.0]


@pytest.mark.parametrize("ties", [False, True])
def test_agreement_of_orders_equals_scipys_rank_correlation(ties):
    rng = np.random.default_rng(1)
    for n in (3, 6, 25):
        scores = rng.integers(0, 4, (n, 2)).astype(float) if ties else rng.random((n, 2))
        scores[0], scores[1] = (0, 0), (3, 3)  # no column is constant
        edit_order = tuple(rng.permutation(n).tolist())
        answer = probe._order(Series((), edit_order=edit_order), scores)
        people = -np.arange(n)
        people_edit = np.array([-edit_order.index(place) for place in range(n)])
        for name, pair in {
            "agreement": (people, scores[:, 0]),
            "agreement_edit": (people_edit, scores[:, 1]),
            "kept": (scores[:, 0], scores[:, 1]),
            "kept_people": (people, people_edit),
        }.items():
            expected = stats.spearmanr(*pair).statistic
            assert answer[name] == pytest.approx(expected, abs=1e-6), name
        assert answer["margin"] == scores[0, 0] - scores[1:, 0].max()


def test_an_edit_that_reverses_the_order_scores_1_and_one_without_effect_scores_0():
    scores = np.array([[3.0, 1.0], [2.0, 2.0], [1.0, 3.0]])
    turned = probe._order(Series((), edit_order=(2, 1, 0)), scores)
    still = probe._order(Series(()), scores[:, [0, 0]])
    rows = rows_of([turned, still])
    assert METRICS["order_moved"].value(rows).tolist() == [1, 0]
    moved_people = METRICS["order_moved_people"].value(rows)
    assert moved_people[0] == 1 and math.isnan(moved_people[1])


def test_metrics_of_the_edit_are_unknown_without_an_edit():
    rows = rows_of([probe._order(Series(()), np.array([[0.5], [0.7], [0.1]]))])
    assert METRICS["order_agreement"].value(rows).tolist() == [0.5]
    for name in ("order_moved", "order_moved_people", "order_agreement_edit"):
        assert np.isnan(METRICS[name].value(rows)).all()


def test_unknown_scores_give_no_answer():
    times = Series((), (0.0, 1.0, 2.0), 0.5)
    assert probe._boundary(times, np.full((3, 2), np.nan)) == {}
    order = probe._order(Series(()), np.array([[np.nan], [0.7], [0.1]]))
    assert math.isnan(order["margin"]) and math.isnan(order["agreement"])


def test_items_without_a_series_are_counted(tiny, tmp_path):
    item = registry.load_dataset(tiny, tmp_path).items[0]
    assert probe.PROBE.cases(item, {}, 42) == ([], {"no series of pictures": 1})
