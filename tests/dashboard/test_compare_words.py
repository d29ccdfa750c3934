"""What the Compare page says in words and marks: sentences, p values, corners of a link, ties; no store is needed."""

import html
import re
from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from tests.dashboard.test_compare import IN_URL
from tests.dashboard.test_pages import words
from tests.views.believed_scenes import scene
from vlprobe import views
from vlprobe.dashboard.compare import corners
from vlprobe.render import charts, findings, numbers
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
def test_corners_are_read_from_a_url_or_not_at_all(text: str, count: int):
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
        **{"left_out": 0, "base_alone": base, "base_items": 9, "detectable": float("nan")},
    }


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            row("positive_rate", 0.845, 0.883, 0.021, 0.055, 0.0001, "better"),
            "m&n is better than <b>a at Positive rate: 88.3 % against 84.5 %, a difference of 3.8 points "
            "(95 % interval 2.1 to 5.5).",
        ),
        (
            row("invariance_error", 0.01, 0.015, 0.004, 0.006, 0.01, "worse"),
            "<b>a is better than m&n at Invariance error: 0.0100 against 0.0150, a difference of 0.0050 "
            "(95 % interval 0.0040 to 0.0060).",
        ),
        (
            row("positive_rate", 0.9, 0.8, -0.15, -0.05, 0.01, "worse"),
            "<b>a is better than m&n at Positive rate: 90.0 % against 80.0 %, a difference of 10.0 points "
            "(95 % interval 5.0 to 15.0).",
        ),
        (
            row("positive_rate", 0.9, 0.89, -0.03, 0.01, 0.62, "tied"),
            "At Positive rate these are tied: 89.0 % against 90.0 %. A difference of 1.0 points may be chance "
            "(p = .62).",
        ),
    ],
)
def test_a_sentence_names_the_better_one_first_and_escapes_names(given: dict, told: str):
    metrics, looks = views.runs.metrics("lgip"), charts.styles.styles(["<b>a", "m&n"])
    table = pd.DataFrame([given])
    body = compare.in_words(table, metrics, "cosine", looks, [given["metric"]])
    assert "<b>a" not in body
    at = AppTest.from_function(_said, args=(body,), default_timeout=300).run()
    assert told in words(at)
    word = {"tied": "tied at 1"}.get(given["verdict"], f"{given['verdict']} at 1")
    assert f"Of 1 numbers, m&n is {word}." in html.unescape(body)


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


@pytest.mark.parametrize(
    ("only_first", "only_second", "p", "told"),
    [
        (9, 2, 0.01, "m_one is fooled more often than two, by more than chance explains"),
        (2, 9, 0.01, "two is fooled more often than m_one, by more than chance explains"),
        (2, 9, 0.05, "These are tied: the difference may be due to chance"),
        (5, 5, 1.0, "These are tied: the difference may be due to chance"),
    ],
)
def test_who_is_fooled_more_often_is_told_against_the_other_model(
    only_first: int, only_second: int, p: float, told
):
    cases = {("", "xx"): 1, ("", "xo"): only_first, ("", "ox"): only_second, ("", "oo"): 80}
    tests = scene(cases, ("one", "two"))
    tests = replace(tests, rows=(replace(tests.rows[0], p=p),))
    sentence = findings.split(tests, "two", {"one": "m_one", "two": "two"})
    assert (
        f"{only_first} cases fool only m_one, {only_second} only two, 1 both and 80 neither."
        in sentence
    )
    assert told in sentence
    assert "than by chance" not in sentence


def _said(body: str):
    import streamlit as st

    st.html(body)


def test_ties_lie_with_the_fooled():
    points = pd.DataFrame(
        {"case": range(4), "margin": [0.0, 0.1, 0.0, 0.1], "other_margin": [0.1, 0.0, 0.0, 0.1]}
        | {"subtype": "color", "source": ["<red>", "", "", ""], "target": ["blue", "", "", ""]}
    )
    drawn = charts.compare.margins(
        points, "a", "b", charts.styles.styles(["a", "b"]), {"color": "Colour"}
    )
    assert {trace.name: len(trace.x) for trace in drawn.data} == {
        **{"neither fooled": 1, "both fooled": 1, "only a fooled": 1, "only b fooled": 1}
    }
    assert drawn.data[2].text[0] == "Colour: &lt;red&gt; → blue"
    assert drawn.data[2].marker.symbol != drawn.data[3].marker.symbol
    moved = charts.compare.margins(
        points, "a", "b", charts.styles.styles(["a", "b"]), {}, moved=True
    )
    assert [len(trace.x) for trace in moved.data] == [4]
