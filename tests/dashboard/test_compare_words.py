"""The words and marks of the Compare page without a store: sentences, p values, corners of a link, ties."""

import html
import math
import re

import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.dashboard.test_compare import IN_URL
from vlprobe import views
from vlprobe.dashboard.margin_map import corners
from vlprobe.render import charts, numbers
from vlprobe.render.html import compare


@pytest.mark.parametrize(
    ("text", "count"),
    [
        *[
            (IN_URL, 4),
            ("", 0),
            ("1,2;3,4", 0),
            ("1,2;3,4;5,inf", 0),
            ("1,2;3,4;5", 0),
            ("a,b;c,d;e,f", 0),
        ],
        *[(";".join(["1,2"] * 42), 0), (";".join(["1,2"] * 41), 41)],
    ],
)
def test_the_corners_of_a_url_are_all_read_or_all_rejected(text: str, count: int):
    assert len(corners(text)) == count


def row(
    metric: str, base: float, value: float, low: float, high: float, p: float, verdict: str
) -> dict:
    given = {
        "metric": metric,
        "averaging": "macro",
        "baseline": "<b>a",
        "model": "m&n",
        "base": base,
        "value": value,
    }
    return given | {
        **{"difference": value - base, "low": low, "high": high},
        **{"p": p, "p_holm": p, "verdict": verdict, "n_items": 9},
        **{
            "left_out": 0,
            "base_alone": base,
            "base_items": 9,
            "detectable": float("nan"),
            "n_answers": 0,
        },
    }


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            row("positive_rate", 0.845, 0.883, 0.021, 0.055, 0.0001, "better"),
            "88.3 % better|+3.8 points (2.1 to 5.5)|p < .001",
        ),
        (
            row("invariance_error", 0.01, 0.015, 0.004, 0.006, 0.01, "worse"),
            "0.0150 worse|+0.0050 (0.0040 to 0.0060)|p = .010",
        ),
        (
            row("positive_rate", 0.9, 0.89, -0.03, 0.01, 0.62, "tied") | {"detectable": 0.021},
            "89.0 % these are tied|-1.0 points (-3.0 to 1.0)|p = .62|80 % power: 2.1 points",
        ),
        (
            row("positive_rate", 0.9, 0.89, -0.03, 0.01, 0.62, "tied") | {"detectable": math.inf},
            "89.0 % these are tied|-1.0 points (-3.0 to 1.0)|p = .62|"
            "too few pictures to detect any difference",
        ),
    ],
)
def test_a_cell_has_the_verdict_difference_p_and_power_of_a_tie_and_escapes_names(
    given, expected: str
):
    metrics, looks = views.runs.metrics("lgip"), charts.styles.styles(["<b>a", "m&n"])
    chances = {given["metric"]: float("nan")}
    names = {name: name for name in ("<b>a", "m&n")}
    body = compare.differences(pd.DataFrame([given]), metrics, "cosine", looks, chances, names)
    assert "<b>a" not in body and "&lt;b&gt;a" in body and "m&amp;n" in body
    cell = body.replace("<br>", "|").rpartition("<td>")[2].partition("</td>")[0]
    assert html.unescape(re.sub("<[^>]*>", "", cell)) == expected


@given(st.floats(0, 1, exclude_max=False))
@example(0.04996)
@example(0.0499999999)
@example(0.05)
@example(0.0996)
def test_a_printed_p_is_never_on_the_other_side_of_the_level_of_significance(p: float):
    text = numbers.chance(p)
    sign, value = re.fullmatch(r"p ([=<]) (1|\.\d+)", text).groups()
    assert (float(value) < 0.05 or (sign, value) == ("<", ".05")) == (p < 0.05)
    assert float(value) == pytest.approx(p, abs=0.0051)


def test_a_tie_is_drawn_as_fooled():
    points = pd.DataFrame(
        {"case": range(4), "margin": [0.0, 0.1, 0.0, 0.1], "other_margin": [0.1, 0.0, 0.0, 0.1]}
        | {"subtype": "color", "source": ["<red>", "", "", ""], "target": ["blue", "", "", ""]}
    )
    looks, names = charts.styles.styles({"a": "0" * 32, "b": "1" * 32}), {"a": "a", "b": "b"}
    drawn = charts.compare.margins(points, "a", "b", looks, {"color": "Colour"}, names=names)
    assert {trace.name: len(trace.x) for trace in drawn.data} == {
        **{"neither fooled": 1, "both fooled": 1, "only a fooled": 1, "only b fooled": 1}
    }
    assert drawn.data[2].text[0] == "Colour: &lt;red&gt; → blue"
    assert drawn.data[2].marker.symbol != drawn.data[3].marker.symbol
    moved = charts.compare.margins(
        points, "a", "b", charts.styles.styles(["a", "b"]), {}, moved=True, names=names
    )
    assert [len(trace.x) for trace in moved.data] == [4]
