"""The trade-off's tables contain the estimates of both metrics and the published values."""

import math

import pytest

from tests.conftest import case_key_of, make_tiny
from vlprobe import views
from vlprobe.errors import NotFound
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.store import Store


@pytest.fixture
def case_key(every_probe: Store) -> str:
    return case_key_of(every_probe, "lgip")


def are_equal(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))


def test_the_trade_off_has_the_estimates_of_both_metrics(every_probe: Store, case_key: str):
    points = views.tradeoff.trade_off(
        views.runs.question_set(every_probe, case_key), "positive_rate"
    ).set_index("model")
    table = views.estimates.estimates(views.runs.question_set(every_probe, case_key)).set_index(
        ["model", "metric"]
    )
    assert len(points) == 2
    for model in points.index:
        assert are_equal(points.loc[model, "x"], table.loc[(model, "invariance_error"), "value"])
        assert points.loc[model, "y_low"] == table.loc[(model, "positive_rate"), "low"]
        assert points.loc[model, "y_n"] == table.loc[(model, "positive_rate"), "n_items"]
    with pytest.raises(NotFound, match="positive_rate"):
        views.tradeoff.trade_off(views.runs.question_set(every_probe, case_key), "invariance_error")


def test_a_metric_without_cases_is_unknown_in_the_trade_off(store: Store, tmp_path):
    execute(
        Request(
            ("control:random",), make_tiny(tmp_path / "tiny"), "lgip", {"kinds": ["flip"]}, limit=3
        ),
        store,
    )
    key = case_key_of(store)
    points = views.tradeoff.trade_off(views.runs.question_set(store, key), "positive_rate")
    assert math.isnan(points["x"].iloc[0])
    assert not points["front"].any()
    assert (
        views.tradeoff.trade_off_by_type(views.runs.question_set(store, key), "positive_rate")["x"]
        .isna()
        .all()
    )


def test_a_control_is_never_on_the_front(every_probe: Store, case_key: str):
    assert not views.tradeoff.trade_off(
        views.runs.question_set(every_probe, case_key), "positive_rate"
    )["front"].any()


@pytest.mark.parametrize(
    "up, combined",
    [("positive_rate", "combined_positive_rate"), ("sensitivity_gap", "combined_gap")],
)
@pytest.mark.parametrize("unit", ["cosine", "spread"])
def test_by_type_y_is_the_estimate_of_the_type_and_x_that_of_all_cases(
    every_probe, case_key, up, combined, unit
):
    points = views.tradeoff.trade_off_by_type(
        views.runs.question_set(every_probe, case_key), up, "macro", unit
    )
    whole = views.estimates.estimates(
        views.runs.question_set(every_probe, case_key), "all", "macro", unit
    ).set_index(["model", "metric"])
    parts = views.estimates.estimates(
        views.runs.question_set(every_probe, case_key), "subtype", "macro", unit
    ).set_index(["model", "metric", "slice"])
    assert {"color", "combined"} <= set(points["type"])
    for row in points.itertuples():
        assert are_equal(row.x, whole.loc[(row.model, "invariance_error"), "value"])
        known = (row.model, combined) if row.type == "combined" else (row.model, up, row.type)
        estimate = (whole if row.type == "combined" else parts).loc[known]
        assert are_equal(row.y, estimate["value"]) and are_equal(row.y_low, estimate["low"])
        assert row.y_n == estimate["n_items"]


def test_the_published_trade_off_is_table_2():
    points = views.tradeoff.published_trade_off("sensitivity_gap").set_index("model")
    assert len(points) == 9
    assert points.loc["CLIP ViT-B/16 (OpenAI)", ["x", "y"]].tolist() == [0.008, 0.024]
    assert "suspect" in points.loc["SigLIP base-p16-224", "note"]


def test_published_types_have_the_model_s_overall_invariance_error_as_x():
    points = views.tradeoff.published_by_type("positive_rate").set_index(["type", "model"])
    assert points.loc[("number", "EVA02-CLIP L/14"), ["x", "y"]].tolist() == [0.005, 0.75]
    assert points.loc[("combined", "EVA02-CLIP L/14"), "y"] == 0.9
    gaps = views.tradeoff.published_by_type("sensitivity_gap").set_index(["type", "model"])
    assert gaps.loc[("object", "SigLIP base-p16-224"), "y"] == -0.017
    assert not points["x"].isna().any() and not gaps["x"].isna().any()


def test_published_percentages_are_converted_to_shares():
    points = views.tradeoff.published_values("prsm", 1, "local_100")
    table = views.published.load().query("paper == 'prsm' and metric == 'local_100'")
    factor = {"percent": 0.01, "share": 1.0}
    assert points["value"].tolist() == [row.value * factor[row.unit] for row in table.itertuples()]
