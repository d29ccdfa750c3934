"""LGIP's metrics against hand-computed examples."""

import math
from collections import defaultdict

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from tests.conftest import estimates_of, text_vector
from vlprobe import registry
from vlprobe.metrics import pairwise
from vlprobe.metrics.judge import Judge
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute


def rows(*cases) -> pd.DataFrame:
    """Return rows for cases given as (item, group, kind, subtype, margin, text similarity)."""
    columns = ["item_code", "group_code", "kind", "subtype", "margin", "text_similarity"]
    table = pd.DataFrame(cases, columns=columns).assign(rule="r")
    flips = (table["kind"] == "flip").to_numpy()
    strength = np.full(len(table), np.nan)
    strength[flips] = pairwise.strength(
        table["subtype"].to_numpy()[flips], table["text_similarity"].to_numpy()[flips]
    )
    return table.assign(
        strength=strength,
        strength_bin=pairwise.strength_bins(strength, *pairwise.quartiles(strength)),
    )


def judge_rows(rows: pd.DataFrame, n_items: int = 3, tags: tuple[str, ...] = ()) -> Judge:
    judge = Judge(pairwise.METRICS, n_items, tags)
    judge.add(rows)
    return judge


def value(
    table: pd.DataFrame, metric: str, averaging: str = "macro", by: str = "all", name: str = ""
) -> pd.Series:
    line = table.query(
        "metric == @metric and averaging == @averaging and by == @by and slice == @name"
    )
    assert len(line) == 1
    return line.iloc[0]


CASES = rows(
    (0, 0, "paraphrase", "simple", -0.02, 0.9),
    (0, 0, "paraphrase", "advanced", -0.04, 0.9),
    (0, 0, "flip", "color", 0.10, 0.8),
    (0, 0, "flip", "object", -0.05, 0.6),
    (0, 1, "flip", "color", 0.0, 1.0),
    (1, 2, "flip", "number", 0.30, 0.7),
    (1, 2, "combined", "number", -0.01, 0.7),
)
FOUND = judge_rows(CASES).estimates()


def test_invariance_error_is_the_mean_change_of_the_score():
    assert value(FOUND, "invariance_error")["value"] == pytest.approx(0.03)
    assert value(FOUND, "invariance_error", by="subtype", name="advanced")[
        "value"
    ] == pytest.approx(0.04)


def test_an_erased_paraphrase_has_no_movement_and_counts_in_the_erased_share():
    cases = pd.DataFrame({"margin": [0.0, -0.1], "erased": [True, False], "text_01": [1.0, 0.9]})
    assert pairwise.invariance_error(cases).tolist() == [0.0, 0.1]
    assert pairwise.erased_share(cases).tolist() == [1.0, 0.0]
    # unknown for a model that embeds no texts
    blind = cases.assign(erased=False, text_01=math.nan)
    assert np.isnan(pairwise.erased_share(blind)).all()


def test_the_invariance_error_of_a_run_is_equation_2_over_all_paraphrases(tmp_path, store):
    """Check against a plain loop over the captions; the model's context truncates the long ones."""
    Image.new("RGB", (32, 32), "red").save(tmp_path / "1.png")
    long = "A red dog and a brown dog and a black dog and a white dog sit on a bench near a big table with a blue cat."
    (tmp_path / "captions.csv").write_text(
        f"image,caption\n1.png,A big dog on a bench.\n1.png,{long}\n"
    )
    models, dataset = ("demo:softmax", "control:constant"), f"csv:{tmp_path / 'captions.csv'}"
    manifests = execute(Request(models, dataset, "lgip", examine=False), store)
    cases = store.cases(manifests[0]["case_key"]).table("cases").to_pandas()
    cases = cases[cases["kind"] == "paraphrase"]
    model = registry.load_model("demo:softmax")
    pixels = model.preprocess(Image.open(tmp_path / "1.png"))[None]
    image = model.encode_images(pixels)[0].astype(np.float64)
    moved, erased = defaultdict(list), []
    for case in cases.itertuples():
        original, reworded = (text_vector(model, text) for text in case.texts)
        moved[case.group].append(abs(image @ original - image @ reworded))
        erased.append(np.abs(original - reworded).max() < 1e-7)
    assert 0 < sum(erased) < len(erased)
    found, pooled = (
        estimates_of(store, manifests[0], "model", "metric", averaging=averaging)["value"]
        for averaging in ("macro", "micro")
    )
    equation_2 = np.mean([np.mean(one) for one in moved.values()])
    assert found["demo:softmax", "invariance_error"] == pytest.approx(equation_2, abs=1e-6)
    assert pooled["demo:softmax", "erased_share"] == pytest.approx(np.mean(erased))
    assert (
        found["control:constant", "invariance_error"],
        found["control:constant", "erased_share"],
    ) == (0, 1)


def test_macro_and_micro_gaps_match_an_example_by_hand():
    # captions: (0.10 - 0.05) / 2 = 0.025, 0.0, 0.30 -> mean 0.108333; pooled: 0.35 / 4 = 0.0875
    assert value(FOUND, "sensitivity_gap")["value"] == pytest.approx(0.325 / 3)
    assert value(FOUND, "sensitivity_gap", "micro")["value"] == pytest.approx(0.0875)


def test_a_tie_is_a_failure_and_is_counted():
    # captions: 1/2, 0 (a tie), 1 -> 0.5
    line = value(FOUND, "positive_rate")
    assert line["value"] == pytest.approx(0.5)
    assert line["ties"] == 1
    assert line["n_cases"] == 4


def test_strength_blends_the_prior_of_the_type_with_the_distance_of_the_texts():
    found = pairwise.strength(
        np.array(["color", "number", "object", "object"]), np.array([0.8, 0.5, -2.0, 1.0])
    )
    assert found == pytest.approx([0.225, 0.525, 1.0, 0.5])


def test_strength_bins_are_split_at_the_quartiles_without_unknown_strengths():
    strengths = np.array([0.1, 0.2, 0.3, 0.4, 0.5, np.nan])
    names = pairwise.strength_bins(strengths, *pairwise.quartiles(strengths))
    assert names.tolist() == ["weak", "weak", "medium", "medium", "strong", ""]


def test_strength_weighted_means_match_a_plain_loop():
    flips = CASES[CASES["kind"] == "flip"]
    top = sum(s * g for s, g in zip(flips["strength"], flips["margin"], strict=True))
    assert value(FOUND, "weighted_gap", "micro")["value"] == pytest.approx(
        top / flips["strength"].sum()
    )
    won = sum(s for s, g in zip(flips["strength"], flips["margin"], strict=True) if g > 0)
    assert value(FOUND, "weighted_positive_rate", "micro")["value"] == pytest.approx(
        won / flips["strength"].sum()
    )


def test_combined_edits_are_measured_separately_from_plain_flips():
    assert value(FOUND, "combined_positive_rate")["value"] == 0
    assert value(FOUND, "combined_gap")["value"] == pytest.approx(-0.01)


def test_a_metric_of_a_missing_kind_is_unknown():
    found = judge_rows(CASES[CASES["kind"] == "flip"]).estimates()
    line = value(found, "invariance_error")
    assert math.isnan(line["value"])
    assert line["n_items"] == 0


def test_a_tag_with_a_different_value_for_every_item_gives_no_slices():
    many = pd.concat(
        [
            CASES.iloc[[2]].assign(**{"item_code": i, "tag:id": str(i), "tag:place": "sea"})
            for i in range(99)
        ]
    )
    found = judge_rows(many, 99, ("id", "place")).estimates()
    assert set(found["by"]) == {"all", "subtype", "rule", "strength_bin", "tag:place"}


@pytest.mark.parametrize("metric", pairwise.METRICS, ids=lambda metric: metric.name)
def test_every_metric_has_a_direction_unit_help_and_source(metric):
    assert metric.direction in ("up", "down", "none")
    assert metric.unit in ("cosine", "rate")
    assert metric.help.endswith(".")
    assert metric.source
    assert metric.name.endswith(
        {"up": ("_rate", "_gap"), "down": ("_error", "_drop"), "none": ("_share",)}[
            metric.direction
        ]
    )


@pytest.mark.parametrize("averaging", ["macro", "micro"])
def test_the_sums_of_the_items_reproduce_every_mean(averaging: str):
    found, sums = judge_rows(CASES).estimates(), judge_rows(CASES).sums()
    whole = found[(found["by"] == "all") & (found["averaging"] == averaging)].set_index("metric")
    by_metric = sums[sums["averaging"] == averaging].groupby("metric")[["total", "weight"]].sum()
    assert len(by_metric)
    for name, line in by_metric.iterrows():
        assert line["total"] / line["weight"] == pytest.approx(whole.loc[name, "value"])
        assert (
            sums.query("metric == @name and averaging == @averaging")["weight"] > 0
        ).sum() == whole.loc[name, "n_items"]
