"""The trade-off's figures contain the given numbers at the expected places."""

import json

import pandas as pd
import pytest

from tests.render.scenes import estimates
from tests.render.test_charts import BY_NAME, LOOKS, NAN, UP, marks
from vlprobe.render import charts

DOWN = BY_NAME["invariance_error"]


def test_a_curve_goes_through_its_steps_from_left_to_right_with_intervals():
    rows = [
        ("a:one", name, value, value - 0.1, value + 0.2, 5, 9)
        for name, value in (("z", 3), ("y", 2), ("x", 1))
    ]
    rows += [("b:two", "x", NAN, NAN, NAN, 0, 0), ("a:one", "elsewhere", 9, 9, 9, 1, 1)]
    table = estimates(rows)
    printed = pd.DataFrame(
        {"model": ["p", "p", "q"], "slice": ["z", "x", "x"], "value": [0.3, 0.1, 0.2]}
    )
    steps = {"x": "Weak", "y": "Medium", "z": "Strong"}
    figure = charts.tradeoff.curves(table, UP, "cosine", LOOKS, steps, "Strength", printed)
    curve = marks(figure)["a:one"]
    assert list(curve.y) == [1, 2, 3] and [round(x) for x in curve.x] == [0, 1, 2]
    assert list(curve.error_y.arrayminus) == pytest.approx([0.1] * 3) and list(
        curve.error_y.array
    ) == pytest.approx([0.2] * 3)
    assert len(marks(figure)["b:two"].y) == 0
    hollow = [trace for trace in figure.data if trace.name == "published"]
    assert [list(trace.y) for trace in hollow] == [[0.1, 0.3], [0.2]] and [
        t.showlegend for t in hollow
    ] == [True, False]
    assert list(figure.layout.xaxis.ticktext) == ["Weak", "Medium", "Strong"]


def test_of_too_many_curves_only_the_chosen_one_has_a_color_and_intervals():
    models = [f"a:m{number}" for number in range(charts.styles.DISTINCT + 1)]
    table = estimates([(model, step, 0.5, 0.4, 0.6, 5, 9) for model in models for step in "xy"])
    styles = charts.styles.styles(models)
    steps = {"x": "Weak", "y": "Strong"}
    figure = charts.tradeoff.curves(table, UP, "cosine", styles, steps, "Strength", chosen="a:m3")
    lines = {trace.name: trace for trace in figure.data}
    assert figure.data[-1].name == "a:m3"  # drawn on top
    assert (
        lines["a:m3"].line.color == styles["a:m3"].color and lines["a:m3"].error_y.array is not None
    )
    others = [lines[model] for model in models if model != "a:m3"]
    assert {line.line.color for line in others} == {charts.styles.GREY}
    assert all(line.error_y.array is None and list(line.x) == [0, 1] for line in others)
    few = charts.tradeoff.curves(table[2:], UP, "cosine", styles, steps, "Strength", chosen="a:m3")
    assert len({line.line.color for line in few.data}) > 1


def test_published_numbers_are_hollow_marks_in_the_row_of_their_slice():
    table = estimates([("a:one", name, 0.1, 0.0, 0.2, 5, 9) for name in ("simple", "advanced")])
    names = {"simple": "Simple", "advanced": "Advanced"}
    figure = charts.dots.dots(table, DOWN, "cosine", names, LOOKS)
    printed = pd.DataFrame(
        {"model": ["p", "q"], "slice": ["advanced", "elsewhere"], "value": [0.05, 0.5]}
    )
    charts.tradeoff.beside(figure, printed, list(names), "cosine")
    hollow = figure.data[-1]
    assert list(hollow.x) == [0.05] and 0.5 < hollow.y[0] < 1.5
    assert "(published)" in hollow.text[0]


NASTY = "<b>R&D</b> %{color}"


def texts(figure) -> str:
    """Return everything that Plotly renders as text, without the `customdata` of marks."""
    spec = json.loads(figure.to_json())
    for trace in spec["data"]:
        trace.pop("customdata", None)
    return json.dumps(spec, ensure_ascii=False)


def test_names_are_escaped_in_every_figure():
    rows_of_models = {NASTY: "<i>s", "b:two": "t", "c:unknown": "t"}
    looks = charts.styles.styles(list(rows_of_models))
    table = estimates([(*row, 0.9, 0.85, 0.93, 9, 9) for row in rows_of_models.items()])
    table = table.assign(metric=UP.name)
    bins = pd.DataFrame({"model": [NASTY], "left": [0.0], "right": [1.0], "share": [1.0]})
    steps = {"<i>s": "<i>s", "t": "t"}
    curve = pd.DataFrame({"model": [NASTY], "slice": ["t"], "value": [0.5]})
    rows = charts.dots.dots(table, UP, "cosine", steps, looks)
    charts.tradeoff.beside(rows, curve, list(steps), "rate")
    figures = [
        charts.tradeoff.curves(table, UP, "cosine", looks, steps, "what grows", curve),
        charts.dots.headlines(table, {UP.name: UP}, "cosine", looks, {}),
        charts.dots.distribution(bins, UP, "cosine", looks),
        charts.papers.edit_distances(bins),
        rows,
    ]
    for figure in figures:
        text = texts(figure)
        assert "&lt;b&gt;R&amp;D&lt;/b&gt;" in text
        assert not [part for part in ("R&D", "<i>", "%{color}") if part in text]
