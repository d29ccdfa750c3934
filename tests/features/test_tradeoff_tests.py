"""Each test with two properties has its trade-off, with its own axes and the numbers of the views."""

import math
import re

import pytest

from tests.dashboard.test_pages import bodies, open_page
from tests.features.test_tradeoff_data import boxes
from vlprobe import views
from vlprobe.features.tradeoff.data import (
    HEIGHT,
    MARGINS,
    figure_table,
    in_columns,
    short_name,
    trade_off_data,
    trade_off_figure,
    trade_offs_by_type,
)
from vlprobe.render.charts.names import LETTER, LINE, NARROW, WIDTHS
from vlprobe.render.charts.styles import styles
from vlprobe.render.sentences import sentence_names
from vlprobe.render.text_tables import formatted
from vlprobe.storage.shipped import FOLDER
from vlprobe.storage.store import Store

STORE = Store(FOLDER)
AXES = {
    ("visla", ""): ("t2t_accuracy", "i2t_accuracy"),
    ("rococo", ""): ("i2t_drop_rate", "i2t_r1"),
    ("rococo", "t2i_r1"): ("t2i_drop_rate", "t2i_r1"),
    ("eqben", ""): ("equivariance_deviation", "group_score"),
}


def question_set(probe: str) -> views.runs.QuestionSet:
    rows = views.runs.question_set_rows(STORE)
    return views.runs.question_set(STORE, next(r.case_key for r in rows if r.probe == probe))


@pytest.mark.parametrize(("probe", "up"), AXES)
def test_marks_have_the_estimates_and_the_better_side_is_right(probe: str, up: str):
    questions = question_set(probe)
    trade_off = trade_off_data(STORE, questions, up)
    x, y = AXES[probe, up]
    assert (trade_off.down.name, trade_off.up.name) == (x, y)
    table = views.estimates.estimates(STORE, questions).set_index(["metric", "model"])["value"]
    for point in trade_off.points:
        assert (point.x, point.y) == pytest.approx((table[x, point.model], table[y, point.model]))
    names = sentence_names(questions.models, {})
    figure = trade_off_figure(trade_off, styles(questions.models), names)
    left, right = figure.layout.xaxis.range
    assert (left > right) == (questions.metrics[x].direction == "down")
    heading = trade_off.finding(names).heading
    assert "rewording" not in heading + trade_off.finding(names).detail
    if trade_off.lowest.state == trade_off.highest.state == "leads":
        assert "highest" in heading
    assert "r@1" not in heading + trade_off.finding(names).detail
    assert trade_off.printed == ()  # no paper prints both axes


def test_only_sets_with_both_axes_are_offered_and_others_say_what_they_lack(monkeypatch):
    keys = views.tradeoff.sets_with_trade_off(STORE)
    probes = {row.probe for row in views.runs.question_set_rows(STORE) if row.case_key in keys}
    assert probes == {"lgip", "rococo", "eqben", "visla"}
    at = open_page(monkeypatch, STORE, "tradeoff", set=question_set("visla").key)
    assert not at.exception
    assert at.selectbox(key="trade_off_of").value == "visla"
    assert "lookalikes rejected with the picture" in str(at.get("plotly_chart")[0].proto.spec)
    at.selectbox(key="trade_off_of").set_value("eqben").run()
    assert at.query_params["set"] == question_set("eqben").key and not at.exception
    at = open_page(monkeypatch, STORE, "tradeoff", set=question_set("prsm").key)
    assert "measures one thing" in bodies(at)


def test_every_mark_has_a_name_that_no_interval_and_no_other_text_crosses():
    questions = question_set("lgip")
    drawn = trade_off_data(STORE, questions)
    names = sentence_names(questions.models, {})
    figure = trade_off_figure(drawn, styles(questions.models), names)
    rings = [ring for ring in drawn.printed if not drawn.side(ring)]
    expected = {*names.values(), *(short_name(ring.model) for ring in rings)}
    (left, right), (bottom, top) = figure.layout.xaxis.range, figure.layout.yaxis.range
    height = HEIGHT - MARGINS["t"] - MARGINS["b"]
    for width in WIDTHS:
        placed = boxes(figure, width)
        if width != WIDTHS[NARROW]:
            assert {re.sub("</?b>", "", text) for text, _ in placed} == expected
        for text, (x0, y0, x1, y1) in placed:
            assert x1 < width - LETTER * len("better") or y1 < height - LINE + 1, text
            for point in drawn.points:
                x = width * (point.x - left) / (right - left)
                y = height * (point.y - bottom) / (top - bottom)
                low, high = (
                    height * (end - bottom) / (top - bottom) for end in (point.y_low, point.y_high)
                )
                assert not (x0 < x < x1 and low < y1 and y0 < high), (text, point.model, width)
                near, far = (
                    width * (end - left) / (right - left) for end in (point.x_high, point.x_low)
                )
                assert not (y0 < y < y1 and near < x1 and x0 < far), (text, point.model, width)


def test_panels_by_type_share_the_axes_of_the_test():
    questions = question_set("visla")
    by_type = trade_offs_by_type(STORE, questions, trade_off_data(STORE, questions))
    assert {"spatial", "generic"} == set(by_type)
    assert len({each.frame for each in by_type.values()}) == 1
    assert not any(math.isnan(point.x) for each in by_type.values() for point in each.points)


def test_the_table_to_export_has_each_mark_of_the_figure_with_the_names_of_its_metrics():
    questions = question_set("lgip")
    names = {model: f"Name of {model}" for model in questions.models}
    drawn = trade_off_data(STORE, questions)
    table = figure_table(STORE, questions, drawn, names)
    whole = table.loc[table["type"] == "all"].set_index("model")
    assert drawn.printed and set(whole["source"]) == {"run", "published"}
    for point in (*drawn.points, *drawn.printed):
        values = whole.loc[point.model, ["positive_rate", "invariance_error"]].tolist()
        assert values == pytest.approx([point.y, point.x], nan_ok=True)
    first = drawn.points[0]
    assert whole.loc[first.model, "name"] == names[first.model]
    words = in_columns(STORE, questions, drawn, names)
    assert len(words) == len(table) and list(words)[:2] == ["Type", "Model"]
    assert words.loc[0, "Positive rate"].startswith(f"{100 * first.y:.1f} % (")
    assert (
        words["Invariance error"].str.endswith("(published)").sum()
        == (table["source"] == "published").sum()
    )
    assert str(int(first.y_n)) in formatted(table, "csv").splitlines()[1].split(",")
    assert f" {first.y_n:.0f} " in formatted(table, "latex").splitlines()[5]
    assert set(table["type"]) == {"all", *trade_offs_by_type(STORE, questions, drawn)}
