"""Figures hold the numbers that they were given, and nothing that is unknown."""

import math

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlprobe import charts
from vlprobe.metrics.pairwise import METRICS

BY_NAME = {metric.name: metric for metric in METRICS}
UP = BY_NAME["positive_rate"]
NAN = math.nan
LOOKS = charts.styles(["a:one", "b:two", "c:unknown"])


def marks(figure) -> dict:
    return {trace.name: trace for trace in figure.data if trace.name in LOOKS}


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
