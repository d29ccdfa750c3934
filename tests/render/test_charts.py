"""Figures contain the given numbers and omit unknown ones."""

import math

import numpy as np
import plotly.graph_objects as go
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.render.scenes import estimates, luminance
from vlprobe import registry, views
from vlprobe.metrics.pairwise import METRICS
from vlprobe.render import charts, numbers
from vlprobe.storage import shipped
from vlprobe.surfaces import paper

BY_NAME = {metric.name: metric for metric in METRICS}
UP = BY_NAME["positive_rate"]
NAN = math.nan
LOOKS = charts.styles.styles(["a:one", "b:two", "c:unknown"])


def marks(figure) -> dict:
    return {trace.name: trace for trace in figure.data if trace.name in LOOKS}


def test_dots_have_one_row_per_slice_and_omit_unknown_values():
    table = estimates(
        [
            ("a:one", "color", 0.9, 0.8, 1.0, 9, 20),
            ("b:two", "color", 0.7, 0.6, 0.8, 9, 20),
            ("a:one", "number", NAN, NAN, NAN, 0, 0),
            ("b:two", "number", 0.6, 0.5, 0.7, 9, 20),
        ]
    )
    figure = charts.dots.dots(table, UP, "cosine", {"color": "Color", "number": "Number"}, LOOKS)
    traces = marks(figure)
    assert list(traces["a:one"].x) == [0.9]
    assert list(traces["b:two"].x) == [0.7, 0.6]
    rows = [round(y) for y in traces["b:two"].y]
    assert rows == [0, 1]
    assert list(figure.layout.yaxis.ticktext) == ["Color", "Number"]
    assert traces["a:one"].y[0] != traces["b:two"].y[0]


def test_a_model_without_known_values_has_no_dot():
    table = estimates([("a:one", "color", NAN, NAN, NAN, 0, 0)]).astype({"slice": "str"})
    figure = charts.dots.dots(table, UP, "cosine", {"color": "Color"}, LOOKS)
    assert len(marks(figure)["a:one"].x) == 0


@given(st.floats(0, 1), st.sampled_from(["rate", "cosine", "spread"]))
def test_a_printed_number_reads_back_to_its_value(value: float, unit: str):
    text = numbers.number(value, unit)
    read = float(text.removesuffix(" %")) / (100 if unit == "rate" else 1)
    assert read == pytest.approx(value, abs=0.00051)


def test_an_unknown_number_is_a_dash_without_an_interval():
    assert numbers.number(NAN, "rate") == "-"
    assert numbers.interval(NAN, 0.5, "rate") == ""


@given(
    st.dictionaries(st.text(min_size=1, max_size=9), st.text(max_size=4), max_size=20),
    st.integers(0, 20),
)
def test_a_model_stored_later_does_not_change_the_looks_of_other_models(
    digests: dict[str, str], count: int
):
    before = dict(list(digests.items())[:count])
    looks = charts.styles.styles(digests)
    assert set(looks) == set(digests)
    assert charts.styles.styles(before) == {
        model: looks[model] for model in sorted(before, key=list(looks).index)
    }


def test_48_models_have_different_looks_and_further_models_share_them():
    assert len(set(charts.styles.styles([f"m{number}" for number in range(48)]).values())) == 48
    many = charts.styles.styles([f"m{number}" for number in range(200)])
    assert len(many) == 200
    assert set(many.values()) == set(charts.styles.PAIRS)


def test_if_two_digests_collide_the_first_stored_model_keeps_its_look():
    first, second = (
        charts.styles.styles(dict.fromkeys(names, "same")) for names in (("a", "b"), ("b", "a"))
    )
    assert first["a"] == second["b"] == charts.styles.styles({"c": "same"})["c"]
    assert len({first["a"], first["b"]}) == 2


def test_the_looks_of_bundled_models_are_fixed_and_no_other_model_has_them():
    names = [f"m{number}" for number in range(200)]
    looks = charts.styles.styles([*names, *charts.styles.SHIPPED])
    assert {model: looks[model] for model in charts.styles.SHIPPED} == dict(charts.styles.SHIPPED)
    assert not {looks[name] for name in names} & set(charts.styles.SHIPPED.values())
    assert {
        name for name in registry.names("models") if name.startswith(("demo:", "control:"))
    } <= set(looks)


def test_the_bundled_models_of_sugarcrepe_have_different_symbols(tmp_path, monkeypatch):
    monkeypatch.delenv(shipped.SETTING, raising=False)
    models = views.runs.models(shipped.opened(tmp_path))
    names = ("GPT-4V", "CLIP ViT-B/32", "CLIP_COCO", "CLIP_TROHN-Img", "CLIP_TROHN-Text")
    looks = charts.styles.styles(models)
    assert len({looks[f"published:{name}"].symbol for name in names}) == len(names)


def test_only_controls_are_grey():
    looks = charts.styles.styles(
        ["control:random", "control:constant", "control:mine", *(f"m{n}" for n in range(99))]
    )
    assert {model for model, (color, _) in looks.items() if color == charts.styles.GREY} == {
        *("control:random", "control:constant", "control:mine")
    }
    assert list(looks)[-3:] == ["control:constant", "control:mine", "control:random"]


def test_looks_are_the_same_in_another_process_and_on_another_machine():
    assert charts.styles.styles({"a": "0" * 32, "b": "1" * 32}) == {
        "a": ("#a6538a", "pentagon"),
        "b": ("#2f3b4c", "triangle-right"),
    }


def test_every_symbol_has_its_path_and_plotly_can_draw_it():
    paths = charts.styles.PATHS
    assert set(paths) == set(charts.styles.SYMBOLS) and len(set(paths.values())) == len(paths)
    # raises on unknown symbols
    go.Figure(go.Scatter(x=[0] * 11, y=[0] * 11, marker={"symbol": charts.styles.SYMBOLS}))
    assert {charts.styles.dash(look) for look in charts.styles.PAIRS} == set(charts.styles.DASHES)


@pytest.mark.parametrize("background", ["#ffffff", "#12161d"])
def test_every_color_has_enough_contrast_on_light_and_dark(background: str):
    dark_page = background != "#ffffff"
    for color in (*charts.styles.COLORS, charts.styles.GREY):
        color = charts.styles.DARK[color] if dark_page else color
        shades = (luminance(bytes.fromhex(each[1:])) for each in (color, background))
        light, dark = sorted(shades, reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 3, color


def test_a_dark_page_changes_only_the_colors():
    figure = go.Figure(
        go.Scatter(
            x=[1], y=[2], marker={"color": "#0072B2"}, error_x={"color": "#2f3b4c"}, name="#1"
        )
    )
    charts.theme.recolor(figure, charts.theme.ON_DARK)
    assert figure.data[0].marker.color == "#56b4e9" and figure.data[0].error_x.color == "#d0d6df"
    assert (list(figure.data[0].x), figure.data[0].name) == ([1], "#1")


@pytest.mark.parametrize("background", ["#ffffff", "#12161d"])
def test_a_higher_share_has_more_contrast_on_a_light_and_on_a_dark_map(background, monkeypatch):
    values = np.array([0.5, 0.0, 0.25])
    figure = charts.points.point_map(np.zeros((3, 2)), values, ["a"] * 3, "Share fooled", 0.5)
    charts.theme.inked(figure, background != "#ffffff")
    marker = figure.data[0].marker
    assert list(figure.data[0].customdata) == [[1], [2], [0]]  # the highest share is drawn last
    ends = [bytes.fromhex(color[1:]) for _, color in marker.colorscale]
    page = luminance(bytes.fromhex(background[1:]))
    low, high = (abs(luminance(color) - page) for color in ends)
    assert low < high / 2
    monkeypatch.setattr(paper, "rendered", lambda figure, suffix: figure)
    printed = paper.exported(figure, ".svg")
    assert printed.data[0].marker.colorscale[0][1] == charts.theme.LOW  # exported in light colors


def test_of_more_than_nine_models_only_the_chosen_ones_are_colored():
    names = [f"m{number}" for number in range(10)]
    looks = charts.styles.styles(names)
    shown = charts.styles.emphasised(looks, ["m3"])
    assert shown["m3"] == looks["m3"]
    assert {look.color for name, look in shown.items() if name != "m3"} == {charts.styles.GREY}
    assert [look.symbol for look in shown.values()] == [look.symbol for look in looks.values()]
    nine = charts.styles.styles(names[:9])
    assert charts.styles.emphasised(nine, []) == nine


def test_models_that_are_not_bundled_have_at_least_48_different_marks():
    assert len(set(charts.styles.PAIRS)) == len(charts.styles.PAIRS) >= 48


def test_lines_between_rows_equal_those_of_plotly_s_add_hline():
    figure, expected = go.Figure(), go.Figure()
    for one in (figure, expected):
        one.add_scatter(x=[1], y=[2])
    charts.theme.named_rows(figure, list("abcd"), 9)
    for height in (0.5, 1.5, 2.5):
        expected.add_hline(y=height, line={"color": charts.theme.QUIET, "width": 0.5})
    assert figure.layout.shapes == expected.layout.shapes


def test_models_that_exceed_the_legend_are_ordered_by_value_in_each_row():
    names = [f"a:{number}" for number in range(charts.dots.MANY + 1)]
    values = [(7 * number % len(names)) / 20 for number in range(len(names))]
    rows = [
        (model, name, value + shift, value, 1.0, 9, 9)
        for model, value in zip(names, values, strict=True)
        for name, shift in (("color", 0.0), ("number", 0.01))
    ]
    figure = charts.dots.dots(
        estimates(rows),
        UP,
        "cosine",
        {"color": "Color", "number": "Number"},
        charts.styles.styles(names),
    )
    for row in (0, 1):
        heights = {trace.x[row]: trace.y[row] for trace in figure.data if trace.name in names}
        in_order = [heights[value] for value in sorted(heights, reverse=True)]
        assert len(in_order) == len(names) and in_order == sorted(in_order)
        assert all(row - 0.5 < height < row + 0.5 for height in in_order)


def test_of_many_models_the_labeled_one_is_on_top_and_named_next_to_its_mark_in_each_row():
    models = [f"a:m{number:02}" for number in range(charts.dots.MANY + 1)]
    chosen, name = "a:m03", "<b>Third"
    table = estimates(
        [
            (model, part, place / 20, place / 20 - 0.01, place / 20 + 0.01, 5, 9)
            for place, model in enumerate(models)
            for part in "xy"
        ]
    )
    rows, styles = {"x": "Weak", "y": "Strong"}, charts.styles.styles(models)
    looks = charts.styles.emphasised(styles, [chosen])
    figure = charts.dots.dots(table, UP, "cosine", rows, looks, labels={chosen: name})
    traces = {trace.name: trace for trace in figure.data}
    assert list(traces)[len(models) - 1] == chosen
    assert {traces[model].marker.color for model in models if model != chosen} == {
        charts.styles.GREY
    }
    notes = [note for note in figure.layout.annotations if "Third" in note.text]
    assert [note.y for note in notes] == list(traces[chosen].y)
    assert {note.text for note in notes} == {"<b>&lt;b&gt;Third</b>"}
    assert all(note.xanchor == "left" and note.x == 0.16 for note in notes)  # right end of its bar
    few = charts.dots.dots(table[4:], UP, "cosine", rows, styles, labels={chosen: name})
    assert not [note for note in few.layout.annotations if "Third" in note.text]
