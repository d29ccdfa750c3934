"""Estimates from blocks, against those from all cases at once and a plain loop."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from vlprobe.metrics import estimate, judge
from vlprobe.metrics.judge import Judge
from vlprobe.metrics.resampling import resample_counts
from vlprobe.types import Metric, zero_margin

RATE = Metric(
    name="rate",
    version=1,
    label="",
    help="",
    unit="rate",
    direction="up",
    chance=0.5,
    source="",
    kinds=("flip",),
    value=lambda rows: (rows["margin"] > 0).to_numpy(float),
)
GAP = Metric(
    "gap",
    *(1, "", "", "cosine", "up", 0.0, "", ("flip", "pair")),
    lambda rows: rows["margin"].to_numpy(float),
    lambda rows: rows["strength"].to_numpy(float),
    ("micro",),
)


def cases(n_items: int = 40, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    item = np.sort(rng.integers(0, n_items, 400))
    rows = pd.DataFrame({"item_code": item, "group_code": 3 * item + rng.integers(0, 3, 400)})
    margin = rng.choice([-0.1, 0.0, 0.2, np.nan], 400)
    return rows.assign(
        kind=rng.choice(["flip", "pair", "other"], 400),
        subtype=rng.choice(["color", "object", ""], 400),
        rule=[f"rule {number % 7}" for number in item],
        margin=margin,
        strength=np.where(rng.random(400) < 0.1, np.nan, rng.random(400)),
        **{"tag:many": [str(number) for number in rng.integers(0, 3 * judge.MAX_SLICES, 400)]},
    )


def judge_blocks(blocks: list[pd.DataFrame], n_items: int = 40) -> Judge:
    found = Judge([RATE, GAP], n_items, ["many"])
    for block in blocks:
        found.add(block)
    return found


@pytest.mark.parametrize("cuts", [[1, 2, 3], [20], list(range(1, 40))])
def test_blocks_that_are_cut_between_items_change_no_number(cuts: list[int]):
    rows = cases()
    blocks = [
        block for _, block in rows.groupby(np.searchsorted(cuts, rows["item_code"], side="right"))
    ]
    assert len(blocks) > 1
    whole, parts = judge_blocks([rows]), judge_blocks(blocks)
    pd.testing.assert_frame_equal(whole.estimates(), parts.estimates(), rtol=1e-12)
    pd.testing.assert_frame_equal(whole.sums(), parts.sums(), rtol=1e-12)


def test_an_item_that_occurs_again_in_a_later_block_counts_once():
    rows = cases(6)
    # one group per case, so that blocks can be cut anywhere
    rows["group_code"] = np.arange(len(rows))
    whole, parts = judge_blocks([rows], 6), judge_blocks([rows[start::5] for start in range(5)], 6)
    pd.testing.assert_frame_equal(whole.estimates(), parts.estimates(), rtol=1e-12)
    assert whole.estimates()["n_items"].max() == 6


def test_every_estimate_matches_a_plain_loop():
    rows = cases()
    found = judge_blocks([rows]).estimates().set_index(["metric", "averaging", "by", "slice"])
    assert "tag:many" not in found.index.get_level_values("by")
    known = rows.dropna(subset="margin")
    for by, name in (("all", ""), ("subtype", "color"), ("rule", "rule 3")):
        chosen = known if by == "all" else known[known[by] == name]
        flips = chosen[chosen["kind"] == "flip"]
        won = (flips["margin"] > 0).astype(float)
        assert found.loc[("rate", "micro", by, name), "value"] == pytest.approx(won.mean())
        grouped = won.groupby(flips["group_code"]).mean()
        assert found.loc[("rate", "macro", by, name), "value"] == pytest.approx(grouped.mean())
        assert found.loc[("rate", "macro", by, name), "n_items"] == flips["item_code"].nunique()
        assert found.loc[("gap", "micro", by, name), "n_cases"] == len(
            chosen[chosen["kind"].isin(["flip", "pair"])].dropna(subset="strength")
        ) + len(
            rows[
                rows["margin"].isna()
                & rows["kind"].isin(["flip", "pair"])
                & (rows["strength"] > 0)
                & ((rows[by] == name) if by != "all" else True)
            ]
        )
        counted = rows[(rows["kind"] == "flip") & ((rows[by] == name) if by != "all" else True)]
        assert found.loc[("rate", "micro", by, name), "n_cases"] == len(counted)
        assert found.loc[("rate", "micro", by, name), "ties"] == (counted["margin"] == 0).sum()
        both = chosen[chosen["kind"].isin(["flip", "pair"])].dropna(subset="strength")
        expected = np.average(both["margin"], weights=both["strength"])
        assert found.loc[("gap", "micro", by, name), "value"] == pytest.approx(expected)


def test_the_interval_is_that_of_resampled_items():
    rows = cases().query("kind == 'flip'").dropna(subset="margin")
    line = (
        judge_blocks([rows])
        .estimates()
        .query("metric == 'rate' and averaging == 'micro' and by == 'all'")
        .iloc[0]
    )
    won, n_cases = (
        np.bincount(rows["item_code"], weights, 40)
        for weights in ((rows["margin"] > 0).astype(float), np.ones(len(rows)))
    )
    counts = resample_counts(40, 0, estimate.RESAMPLES).astype(float)
    variance = np.var((counts @ won) / (counts @ n_cases))
    assert 0 < line["low"] < line["value"] < line["high"] < 1
    assert (line["low"], line["high"]) == pytest.approx(
        estimate.rate_interval(line["value"], float(variance), line["n_items"])
    )


def test_a_case_without_weight_is_neither_counted_nor_tied():
    rows = cases().dropna(subset="margin").query("kind == 'flip'")
    rows["strength"] = np.where(rows["subtype"] == "color", np.nan, rows["strength"])
    tied_gap = replace(GAP, tied=zero_margin)
    found = Judge([tied_gap], 40, [])
    found.add(rows)
    whole = found.estimates().set_index(["by", "slice"])
    counted = rows[rows["strength"] > 0]
    assert whole.loc[("all", ""), "n_cases"] == len(counted)
    assert whole.loc[("all", ""), "ties"] == (counted["margin"] == 0).sum()
    assert whole.loc[("subtype", "color"), ["n_cases", "ties", "n_items"]].tolist() == [0, 0, 0]


def test_a_metric_with_equal_subset_weights_resamples_the_mean_of_each_subset():
    """Check easy and hard subsets of other sizes; the number of draws from each subset adds no error."""
    rng = np.random.default_rng(15)
    sizes = {"easy": 30, "hard": 170, "medium": 100}
    subset = np.repeat(list(sizes), list(sizes.values()))
    right = rng.random(300) < np.repeat([0.9, 0.05, 0.5], list(sizes.values()))
    order = rng.permutation(300)
    rows = pd.DataFrame({"subtype": subset, "margin": np.where(right, 1.0, -1.0)}).iloc[order]
    rows = rows.assign(kind="flip", rule="", item_code=np.arange(300), group_code=np.arange(300))
    even = replace(
        RATE,
        weight=lambda rows: 1 / rows["subtype"].map(sizes).to_numpy(float),
        averaging=("micro",),
        even_over="subtype",
    )
    blocks = [rows[:100], rows[100:]]
    found, fixed = Judge([even], 300, []), Judge([replace(even, even_over="")], 300, [])
    for block in blocks:
        found.add(block)
        fixed.add(block)
    line, of_fixed = (
        judge.estimates().set_index(["by", "slice"]).loc[("all", "")] for judge in (found, fixed)
    )
    assert line["value"] == pytest.approx(of_fixed["value"])
    assert line["value"] == pytest.approx(np.mean([right[subset == s].mean() for s in sizes]))
    # Second computation: the standard error of a mean of independent means.
    error = np.sqrt(sum(right[subset == s].var(ddof=1) / n for s, n in sizes.items())) / 3
    assert line["high"] - line["low"] == pytest.approx(2 * 1.96 * error, rel=0.08)
    assert of_fixed["high"] - of_fixed["low"] > 1.25 * 2 * 1.96 * error


def test_a_slice_with_too_many_values_is_dropped_in_any_block():
    rows = cases()
    names = judge_blocks([rows[: len(rows) // 8]]).estimates()["by"].unique()
    assert "tag:many" in names
    assert (
        "tag:many"
        not in judge_blocks([rows[: len(rows) // 8], rows[len(rows) // 8 :]])
        .estimates()["by"]
        .unique()
    )


def test_a_rate_that_can_be_negative_has_the_interval_of_its_resampled_means():
    values = np.tile([-1.0, 1.0, 0.5, -0.5], 10)  # at a mean of 0, Wilson divides by 0
    signed = replace(RATE, signed=True, value=lambda rows: rows["margin"].to_numpy(float))
    rows = pd.DataFrame({"item_code": np.arange(40), "group_code": np.arange(40), "kind": "flip"})
    rows = rows.assign(subtype="", rule="", margin=values, strength=1.0)
    found = Judge([signed], 40, [])
    found.add(rows)
    row = found.estimates().query("by == 'all' and averaging == 'micro'").iloc[0]
    means = resample_counts(40, 0, estimate.RESAMPLES) @ values / 40
    assert row.value == 0.0
    assert [row.low, row.high] == pytest.approx(np.quantile(means, [0.025, 0.975]), abs=1e-6)
