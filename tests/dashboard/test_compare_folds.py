"""The folds of Compare: every number with its interval and p, the scatter, the cases of a marked area."""

import html
import json
import math
from functools import partial

import pytest
from streamlit.testing.v1 import AppTest

from tests.dashboard.test_compare import (
    ALL,
    AREA,
    IN_URL,
    NAMES,
    one,
)
from tests.dashboard.test_pages import bodies, open_page, words
from tests.dashboard.walls import values_of
from tests.views.conftest import MODELS
from vlprobe import views
from vlprobe.dashboard import compare, margin_map
from vlprobe.metrics.tie_groups import group_letters
from vlprobe.render import numbers
from vlprobe.render.html import compare as compare_tables
from vlprobe.storage.store import Store


def figure(at: AppTest) -> dict:
    return json.loads(at.get("plotly_chart")[-1].proto.spec)


def read_cases(at: AppTest) -> list[str]:
    return [card["id"] for card in values_of(at, "map_cards").get("cards", [])]


def list_expected_cases(store: Store, key: str, chosen: views.filter.Filter) -> list[str]:
    table, _ = views.cases.failures(views.runs.question_set(store, key), chosen, 1, compare.CARDS)
    return table["id"].tolist()


def mark(at: AppTest, box: list | None = None, lasso: list | None = None) -> AppTest:
    """Select an area of the scatter as dragging does."""
    element = at.get("plotly_chart")[-1]
    states = at._tree.get_widget_states()
    widget = states.widgets.add()
    widget.id = element.proto.id
    drawn = {"points": [], "point_indices": [], "box": box or [], "lasso": lasso or []}
    widget.string_value = json.dumps({"selection": drawn})
    return at._run(states)


def test_the_table_has_the_numbers_of_the_view(show_compare, filled: Store, key: str):
    average, unit = "micro", "spread"
    at = show_compare(**ALL, average=average, unit=unit, open="measured")
    assert not at.error
    text = words(at)
    for row in views.paired_tests.compare_metrics(
        views.runs.question_set(filled, key), MODELS, average, unit
    ).itertuples():
        shown_unit = numbers.unit_of(views.runs.metrics("lgip")[row.metric], unit)
        size = f"{numbers.signed(row.difference, shown_unit)} ({numbers.between(row.low, row.high, shown_unit)})"
        cell = f"{numbers.number(row.value, shown_unit)} {compare_tables.WORDS[row.verdict]}{size}"
        # The plot has the complement of this metric, with the interval to cite
        is_in_plot = row.metric == "positive_rate"
        assert (cell + numbers.chance(row.p_holm) in text) is not is_in_plot
    compared = views.paired_tests.compare_models(
        views.runs.question_set(filled, key), MODELS, "flip"
    )
    for row in compared.rows:
        assert numbers.chance_cell(row.p_holm) in text
        assert numbers.signed(row.difference, "rate").removesuffix(" points") in text


def test_every_metric_shows_its_unit_direction_chance_level_meaning_and_source(
    show_compare, filled: Store
):
    overview = show_compare.func(*show_compare.args[:1], filled, "breakdown")
    for text in (words(show_compare(**ALL, open="measured")), words(overview)):
        for metric in views.runs.metrics("lgip").values():
            source = html.unescape(f"{metric.help} Source: {metric.source}.")
            assert source in text or metric.name == "positive_rate"
    assert "Positive rate (PR)in % · ↑ higher is better · guessing gets 50 %" in text


def test_excluded_pictures_are_counted_and_the_baseline_has_a_separate_n(
    monkeypatch, partial_answers: Store
):
    query = {"open": "measured"}
    text = words(
        open_page(
            monkeypatch, partial_answers, "compare", model="partial", **query, **{"with": MODELS[0]}
        )
    )
    assert f"Excluded pictures: {MODELS[0]} up to 3." in text
    assert "n = 3, 3 left out; baseline on these 3: " in text
    assert "n = 4" in text  # of the baseline, which also answered half of a picture
    assert "although the models are tied" in text
    whole = words(
        open_page(
            monkeypatch, partial_answers, "compare", model=MODELS[0], **query, **{"with": "partial"}
        )
    )
    assert "n = 6" in whole


def test_a_fold_is_computed_only_if_the_url_lists_it_as_open(show_compare):
    at = show_compare(**ALL)
    assert [chart.key for chart in at.get("plotly_chart")] == ["forest"]
    assert "Holm" not in words(at)
    at = show_compare(**ALL, open="map|details")
    assert len(at.get("plotly_chart")) == 2
    keys = {button.key for button in at.get("download_button")}
    assert {"forest.csv", "forest.svg", "margins.tex", "margins.pdf"} <= keys
    assert len(show_compare(**ALL, area=IN_URL).get("plotly_chart")) == 2


def test_the_scatter_groups_the_cases_by_the_fooled_models(show_compare, filled: Store, key: str):
    at = show_compare(**ALL, open="measured|map")
    row = views.paired_tests.compare_models(
        views.runs.question_set(filled, key), MODELS[:2], "flip"
    ).rows[0]
    traces = {trace["name"]: trace["x"] for trace in figure(at)["data"]}
    points, total = views.paired_outcomes.scatter(
        views.runs.question_set(filled, key), *MODELS[:2], "flip"
    )
    assert list(traces) == [
        "neither fooled",
        "both fooled",
        f"only {NAMES[0]} fooled",
        f"only {NAMES[1]} fooled",
    ]
    text = words(at)
    first, second = points["margin"] <= 0, points["other_margin"] <= 0
    assert ((first & ~second).sum(), (second & ~first).sum()) == (row.only_base, row.only_model)
    assert ((first & second).sum(), (~first & ~second).sum()) == (row.both, row.neither)
    assert len(points) == total
    assert f"The plot shows {len(points)}" not in text


def test_the_scatter_draws_a_sample_of_many_cases_and_shows_its_size(show_compare, monkeypatch):
    monkeypatch.setattr(
        views.paired_outcomes, "scatter", partial(views.paired_outcomes.scatter, limit=20)
    )
    at = show_compare(**ALL, kind="combined", open="map")
    assert "The plot shows 20 of" in words(at)


def test_a_marked_box_fills_the_gallery_with_every_case_inside(
    show_compare, filled: Store, key: str
):
    at = mark(
        show_compare(**ALL, open="map"),
        box=[{"xref": "x", "yref": "y", "x": [-0.1, 0.3], "y": [-0.1, 0.05]}],
    )
    assert one(at, "area") == IN_URL
    chosen = views.filter.Filter(
        MODELS[0], "flip", outcome="all", sort="difference", other=MODELS[1], within=AREA
    )
    counts = views.paired_outcomes.buckets(views.runs.question_set(filled, key), chosen)
    assert (
        0
        < counts["all"]
        < views.paired_outcomes.scatter(views.runs.question_set(filled, key), *MODELS[:2], "flip")[
            1
        ]
    )
    assert f"{counts['all']} of" in words(at)
    assert read_cases(at) == list_expected_cases(filled, key, chosen)
    assert figure(at)["layout"]["shapes"][0]["path"].startswith("M -0.1,-0.1 L 0.3,-0.1")
    at.button(key="unmark").click().run()
    assert "area" not in at.query_params
    assert "shapes" not in figure(at)["layout"]


def test_a_lasso_is_thinned_to_the_corners_that_fit_into_a_link(show_compare):
    turns = [2 * math.pi * step / 300 for step in range(300)]
    lasso = {
        "x": [0.3 * math.cos(turn) for turn in turns],
        "y": [0.3 * math.sin(turn) for turn in turns],
    }
    at = mark(show_compare(**ALL, tool="lasso", page="2", bucket="both_fooled"), lasso=[lasso])
    corners = views.filter.parse_corners(one(at, "area"))
    assert 30 <= len(corners) <= margin_map.CORNERS
    assert all(math.hypot(*corner) == pytest.approx(0.3, abs=1e-4) for corner in corners)
    assert not {"page", "bucket"} & set(at.query_params)
    assert figure(at)["layout"]["dragmode"] == "lasso"


def test_a_link_to_a_bucket_shows_the_cases_in_which_only_that_model_is_fooled(
    show_compare, filled: Store, key: str
):
    at = show_compare(**ALL, bucket="only_second", area=IN_URL)
    turned = tuple((y, x) for x, y in AREA)
    chosen = views.filter.Filter(
        MODELS[1],
        "flip",
        sort="difference",
        other=MODELS[0],
        other_outcome="held",
        within=turned,
        outcome="fooled",
    )
    assert list_expected_cases(filled, key, chosen)
    assert read_cases(at) == list_expected_cases(filled, key, chosen)


def test_the_scorecard_lists_all_models_with_intervals_and_letters_for_ties(
    show_compare,
    filled: Store,
    key: str,
):
    at = show_compare(tab="scorecard")
    assert not at.error and "Models that share a letter are tied." in words(at)
    tests = views.paired_tests.rank_models(views.runs.question_set(filled, key), "flip")
    for each in tests.contestants:
        share = numbers.number(each.share, "rate")
        interval = numbers.interval(each.low, each.high, "rate")
        assert f'title="{share}; 95 % interval {interval}; fooled by' in bodies(at)
    letters = {letter for group in group_letters(tests.tie_groups).values() for letter in group}
    assert all(f"<sup>{letter}" in bodies(at) for letter in letters)
    assert "opens this view" in words(at) or "works only on this computer" in words(at)
