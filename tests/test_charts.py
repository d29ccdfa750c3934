"""Figures hold the numbers that they were given, and nothing that is unknown."""

import math

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlprobe import charts
from vlprobe.metrics.pairwise import METRICS

BY_NAME = {metric.name: metric for metric in METRICS}
DOWN, UP = BY_NAME["invariance_error"], BY_NAME["positive_rate"]
NAN = math.nan
POINTS = pd.DataFrame(
    [
        ("a:one", 0.01, 0.008, 0.013, 50, 0.9, 0.85, 0.93, 50, True),
        ("b:two", 0.02, 0.015, 0.022, 50, 0.95, 0.91, 0.97, 50, True),
        ("c:unknown", NAN, NAN, NAN, 0, 0.5, 0.4, 0.6, 50, False),
    ],
    columns=["model", "x", "x_low", "x_high", "x_n", "y", "y_low", "y_high", "y_n", "front"],
)
LOOKS = charts.styles(["a:one", "b:two", "c:unknown"])


def marks(figure) -> dict:
    return {trace.name: trace for trace in figure.data if trace.name in LOOKS}


def test_each_known_model_is_one_mark_with_its_interval_both_ways():
    found = marks(charts.trade_off(POINTS, DOWN, UP, "cosine", LOOKS))
    assert set(found) == {"a:one", "b:two"}
    one = found["a:one"]
    assert (one.x[0], one.y[0]) == (0.01, 0.9)
    assert one.error_x.array[0] == pytest.approx(0.003)
    assert one.error_x.arrayminus[0] == pytest.approx(0.002)
    assert one.error_y.array[0] == pytest.approx(0.03)
    assert one.error_y.arrayminus[0] == pytest.approx(0.05)


def test_the_front_is_drawn_from_left_to_right_through_its_models_only():
    lines = [trace for trace in charts.trade_off(POINTS[::-1], DOWN, UP, "cosine", LOOKS).data if trace.mode == "lines"]
    assert [list(line.x) for line in lines] == [[0.01, 0.02]]
    alone = POINTS.assign(front=[True, False, False])
    assert not [trace for trace in charts.trade_off(alone, DOWN, UP, "cosine", LOOKS).data if trace.mode == "lines"]


def test_the_axes_hold_every_interval_and_say_which_way_is_better():
    figure = charts.trade_off(POINTS, DOWN, UP, "spread", LOOKS)
    assert figure.layout.xaxis.range[0] == 0
    assert figure.layout.xaxis.range[1] > 0.022
    assert figure.layout.yaxis.range[0] < 0.5
    assert figure.layout.yaxis.range[1] >= 1
    assert "lower is better" in figure.layout.xaxis.title.text
    assert "in spreads" in figure.layout.xaxis.title.text
    assert "higher is better" in figure.layout.yaxis.title.text


def test_no_model_at_all_gives_an_empty_chart_and_no_error():
    assert marks(charts.trade_off(POINTS[:0], DOWN, UP, "cosine", LOOKS)) == {}
    assert marks(charts.trade_off(POINTS[2:], DOWN, UP, "cosine", LOOKS)) == {}


def test_many_models_are_named_in_a_legend_instead_of_beside_their_marks():
    many = pd.concat([POINTS[:1].assign(model=f"m{number}") for number in range(9)])
    looks = charts.styles([f"m{number}" for number in range(9)])
    figure = charts.trade_off(many, DOWN, UP, "cosine", looks)
    assert all(trace.showlegend for trace in figure.data if trace.name in looks)


def test_marks_in_a_crowd_are_named_in_a_legend_and_a_pair_beside_each_other():
    crowd = pd.concat([POINTS[:1].assign(model=f"m{number}", y=0.9 + 0.01 * number) for number in range(3)])
    looks = charts.styles(["m0", "m1", "m2"])
    figure = charts.trade_off(crowd, DOWN, UP, "cosine", looks)
    assert all(trace.showlegend for trace in figure.data if trace.name in looks)
    figure = charts.trade_off(crowd[:2], DOWN, UP, "cosine", looks)
    places = {trace.name: trace.textposition for trace in figure.data if trace.name in looks}
    assert places["m0"].startswith("bottom")
    assert places["m1"].startswith("top")


def test_dots_are_one_row_a_slice_and_leave_out_what_is_unknown():
    table = pd.DataFrame(
        [
            ("a:one", "color", 0.9, 0.8, 1.0, 9, 20),
            ("b:two", "color", 0.7, 0.6, 0.8, 9, 20),
            ("a:one", "number", NAN, NAN, NAN, 0, 0),
            ("b:two", "number", 0.6, 0.5, 0.7, 9, 20),
        ],
        columns=["model", "slice", "value", "low", "high", "n_items", "n_cases"],
    )
    figure = charts.dots(table, UP, "cosine", {"color": "Colour", "number": "Number"}, LOOKS)
    found = marks(figure)
    assert list(found["a:one"].x) == [0.9]
    assert list(found["b:two"].x) == [0.7, 0.6]
    rows = [round(y) for y in found["b:two"].y]
    assert rows == [0, 1]
    assert list(figure.layout.yaxis.ticktext) == ["Colour", "Number"]
    assert found["a:one"].y[0] != found["b:two"].y[0]


def test_a_model_of_which_nothing_is_known_has_no_dot():
    table = pd.DataFrame(
        [("a:one", "color", NAN, NAN, NAN, 0, 0)],
        columns=["model", "slice", "value", "low", "high", "n_items", "n_cases"],
    ).astype({"slice": "str"})
    figure = charts.dots(table, UP, "cosine", {"color": "Colour"}, LOOKS)
    assert len(marks(figure)["a:one"].x) == 0


@given(st.floats(0, 1), st.sampled_from(["rate", "cosine", "spread"]))
def test_a_number_reads_back_to_what_it_was(value: float, unit: str):
    text = charts.number(value, unit)
    read = float(text.removesuffix(" %")) / (100 if unit == "rate" else 1)
    assert read == pytest.approx(value, abs=0.00051)


def test_what_is_unknown_is_a_dash_and_has_no_interval():
    assert charts.number(NAN, "rate") == "-"
    assert charts.interval(NAN, 0.5, "rate") == ""


def test_models_keep_their_looks_and_no_two_of_fifty_share_them():
    models = [f"m{number}" for number in range(50)]
    looks = charts.styles(models)
    assert len(set(looks.values())) == 50
    assert charts.styles(models[:3])["m2"] == looks["m2"]


def _luminance(color: str) -> float:
    parts = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("background", ["#ffffff", "#12161d"])
def test_every_colour_stands_out_on_light_and_dark(background: str):
    for color in charts.COLORS:
        light, dark = sorted((_luminance(color), _luminance(background)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 3, color


def test_long_names_are_broken_and_lose_no_letter():
    name = "openclip:ViT-B-32/laion2b_s34b_b79k"
    figure = charts.trade_off(POINTS[:1].assign(model=name), DOWN, UP, "cosine", charts.styles([name]))
    label = marks_named(figure, name)
    assert "<br>" in label
    assert label.replace("<br>", "") == name


def marks_named(figure, name: str) -> str:
    return next(trace.text[0] for trace in figure.data if trace.name == name)
