"""Rates of clustered answers match exact binomial tests and plain loops, and hold their level on simulated data."""

import numpy as np
import pytest
import scipy.stats

from vlprobe.metrics import clustered


def groups_of(counts: list[tuple[int, int]]) -> clustered.GroupRates:
    """Return groups with these (events, cases), with one cluster per case."""
    group = np.repeat(np.arange(len(counts)), [n for _, n in counts])
    event = np.concatenate([np.arange(n) < k for k, n in counts])
    return clustered.group_rates(group, np.arange(len(group)), event)


def test_unclustered_cases_give_the_exact_binomial_test_and_interval():
    counts = [(0, 4), (3, 3), (7, 20), (1, 300), (175, 339)]
    groups = groups_of(counts)
    np.testing.assert_array_equal(groups.effective_sizes, [n for _, n in counts])
    low, high = clustered.rate_interval(groups)
    p = clustered.chance_of_more(groups, np.full(len(groups.n_cases), 0.125))
    for place, (k, n) in enumerate(counts):
        exact = scipy.stats.binomtest(k, n, 0.125, alternative="greater").pvalue
        assert p[place] == pytest.approx(exact if k > n / 8 else 1.0, rel=1e-9)
        interval = scipy.stats.binomtest(k, n).proportion_ci(method="exact")
        assert (low[place], high[place]) == pytest.approx((interval.low, interval.high), abs=1e-9)


def test_pictures_whose_cases_all_agree_count_once_each():
    cluster = np.repeat(np.arange(12), 5)
    event = cluster < 4
    groups = clustered.group_rates(np.zeros(60, dtype=int), cluster, event)
    assert groups.effective_sizes[0] == pytest.approx(12)
    assert (groups.n_cases[0], groups.n_events[0], groups.n_clusters[0]) == (60, 20, 12)
    expected = scipy.stats.binomtest(4, 12, 0.1, alternative="greater").pvalue
    assert clustered.chance_of_more(groups, np.array([0.1]))[0] == pytest.approx(expected, rel=1e-9)


def test_effective_sizes_match_those_of_a_plain_loop():
    rng = np.random.default_rng(5)
    group, cluster = rng.integers(0, 6, 900), rng.integers(0, 80, 900)
    event = rng.random(900) < 0.1 + 0.6 * (rng.random(80) < 0.3)[cluster]
    groups = clustered.group_rates(group, cluster, event)
    agreeing, possible = np.zeros(6), np.zeros(6)
    for code in range(6):
        rate = event[group == code].mean()
        for picture in range(80):
            members = event[(group == code) & (cluster == picture)].astype(float)
            for one in range(len(members)):
                for other in range(len(members)):
                    if one != other:
                        agreeing[code] += members[one] * members[other] - rate**2
                        possible[code] += rate * (1 - rate)
    for code in range(6):
        share = max(agreeing.sum() / possible.sum(), agreeing[code] / possible[code], 0.0)
        sizes = np.bincount(cluster[group == code])
        n_cases = sizes.sum()
        inflation = sum(n * (1 + (n - 1) * share) for n in sizes.tolist())
        assert groups.effective_sizes[code] == pytest.approx(n_cases**2 / inflation)


def test_benjamini_hochberg_matches_scipy():
    p = np.random.default_rng(1).random(200) ** 3
    np.testing.assert_allclose(
        clustered.benjamini_hochberg(p), scipy.stats.false_discovery_control(p), rtol=1e-12
    )
    assert clustered.benjamini_hochberg(np.empty(0)).tolist() == []


def draw_groups(
    rng: np.random.Generator, agreement: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw forty groups of pictures with up to five cases each, all with the rate .125; cases of a
    picture and group agree at the given rate, and always in half of the groups for 2.
    """
    sizes = rng.integers(1, 6, (40, 16)) * (rng.random((40, 16)) < rng.uniform(0.3, 1, (40, 1)))
    group = np.repeat(np.repeat(np.arange(40), 16), sizes.ravel())
    cluster = np.repeat(np.tile(np.arange(16), 40), sizes.ravel())
    shared = np.repeat(rng.random(40 * 16) < 0.125, sizes.ravel())
    share = np.where(np.arange(40) % 2, 1.0, 0.0)[group] if agreement == 2 else agreement
    together = np.repeat(rng.random(40 * 16), sizes.ravel()) < share
    return group, cluster, np.where(together, shared, rng.random(len(group)) < 0.125)


@pytest.mark.parametrize("agreement", [0.0, 0.5, 1.0, 2])
def test_without_a_pattern_the_false_discovery_rate_is_as_promised(agreement: float):
    rng = np.random.default_rng(int(10 * agreement))
    n_false = 0
    for _ in range(200):
        group, cluster, event = draw_groups(rng, agreement)
        groups = clustered.group_rates(group, cluster, event)
        p = clustered.chance_of_more(groups, np.full(len(groups.n_cases), event.mean()))
        n_false += bool((clustered.benjamini_hochberg(p) <= 0.05).any())
    assert n_false <= scipy.stats.binom.ppf(0.99, 200, 0.05)


def test_empty_groups_and_rates_of_zero_and_one_are_handled():
    empty = clustered.group_rates(np.empty(0, int), np.empty(0, int), np.empty(0, bool))
    assert len(empty.rates) == 0 and len(clustered.chance_of_more(empty, np.empty(0))) == 0
    groups = groups_of([(0, 5), (5, 5)])
    assert clustered.chance_of_more(groups, np.zeros(2)).tolist() == [1.0, 0.0]
    assert clustered.chance_of_more(groups, np.ones(2)).tolist() == [1.0, 1.0]
    low, high = clustered.rate_interval(groups)
    assert low[0] == 0 and high[1] == 1 and high[0] < 0.6 and low[1] > 0.4
