"""A figure as SVG: marks are where the figure's numbers say, texts are text, and marks lead to what they stand for."""

import re
from xml.etree import ElementTree

import plotly.graph_objects as go
import pytest

from vlprobe.render.charts.theme import arms, finished, guessing, safe
from vlprobe.render.html.figure import figure_html, ticks

NAN = float("nan")
HOSTILE = "</svg><script>window.ran=1</script> & \u202eדגם"
SVG = re.compile(r"^([\d.-]+)%$")


def figure(names=("one", "two"), rows=None) -> go.Figure:
    """Two marks on the axes from 0 to 10 and from 2 to 0, the second without an interval."""
    drawn = finished(go.Figure(), 300)
    drawn.add_scatter(
        x=[2.5, 7.5],
        y=[0.5, 1.5],
        error_x=arms([2.5, 7.5], [2.0, NAN], [4.0, NAN], "#0072b2"),
        mode="markers",
        marker={"color": "#0072b2", "symbol": ["circle", "square-open"], "size": 12},
        name=safe(names[0]),
        text=[f"<b>{safe(name)}</b><br>more" for name in names],
        customdata=[["a", name] for name in names],
    )
    drawn.update_layout(margin={"l": 60, "r": 20, "t": 30, "b": 50}, showlegend=True)
    drawn.update_xaxes(range=[0, 10], side="bottom", tickformat="+~g")
    drawn.update_yaxes(range=[2, 0], **(rows or {}))
    return drawn


def parsed(drawn: go.Figure, alternative: str = "Two marks", **named) -> ElementTree.Element:
    """The markup as elements: it is well-formed."""
    return ElementTree.fromstring(str(figure_html(drawn, alternative, **named)))


def percent(text: str) -> float:
    match = SVG.match(text)
    assert match, text
    return float(match[1])


def test_marks_and_intervals_are_at_their_numbers_at_any_width():
    root = parsed(figure())
    groups = [group for group in root.iter("g") if group.find("title") is not None]
    first, second = groups
    places = [[spot for spot in group.findall("svg")][-1] for group in groups]
    assert [percent(spot.get("x")) for spot in places] == [25, 75]
    assert [float(spot.get("y")) for spot in places] == [55, 165]  # of 220 pixels
    ends = first.find("line")
    assert (percent(ends.get("x1")), percent(ends.get("x2"))) == (20, 40)
    assert second.find("line") is None  # an unknown interval is not drawn as one of length 0
    assert [path.get("fill") for path in root.iter("path")][:2] == [
        "light-dark(#0072b2, #56b4e9)",
        "var(--vp-bg)",
    ]


def test_a_hostile_name_is_text_in_the_mark_the_legend_and_the_alternative():
    root = parsed(figure((HOSTILE, "two")), HOSTILE)
    assert not list(root.iter("script")) and root.get("aria-label") == HOSTILE
    assert next(root.iter("title")).text == f"{HOSTILE}\nmore"
    assert HOSTILE in root.find("p/span").itertext()


@pytest.mark.parametrize(
    "rows", [None, {"tickvals": [0.5, 1.5], "ticktext": ["<b>R&amp;D</b>", "b"]}]
)
def test_a_mark_leads_to_what_its_data_names_and_one_without_address_nowhere(rows):
    root = parsed(
        figure(rows=rows), link=lambda values: f"#model={values[1]}" * (values[1] == "one")
    )
    (anchor,) = root.iter("a")
    assert (anchor.get("href"), anchor.get("tabindex")) == ("#model=one", "-1")
    assert anchor.find("title").text == "one\nmore"
    assert (anchor.find("rect") is None) == (rows is None)  # a row is hit beside its mark, too
    if rows:
        assert "R&D" in [part.text for part in root.iter("tspan")]


def test_a_line_of_chance_and_a_dashed_line_with_a_gap_are_drawn():
    drawn = figure()
    guessing(drawn, "h", 1.0)
    drawn.add_scatter(
        x=[0, 5, None, 5, 10], y=[1, 1, None, 2, 2], mode="lines", line={"dash": "dash"}
    )
    dashed = [line for line in parsed(drawn).iter("line") if line.get("stroke-dasharray")]
    spans = [(percent(line.get("x1")), percent(line.get("x2"))) for line in dashed]
    assert spans[:3] == [(0, 100), (0, 50), (50, 100)]
    assert "guessing" in [part.text for part in parsed(drawn).iter("tspan")]


@pytest.mark.parametrize(
    ("low", "high", "form", "texts"),
    [
        (0.8184, 0.9211, ".0%", ["82%", "84%", "86%", "88%", "90%", "92%"]),
        (0.8841, 0.8869, ".0%", ["88.45%", "88.50%", "88.55%", "88.60%", "88.65%"]),
        (0.0037, 0.0161, "", ["0.004", "0.006", "0.008", "0.010", "0.012", "0.014", "0.016"]),
        (-14.3, 16.7, "+~g", ["−10", "−5", "0", "+5", "+10", "+15"]),
    ],
)
def test_ticks_are_round_and_as_exact_as_they_must_be(low, high, form, texts):
    drawn = figure()
    drawn.update_xaxes(range=[low, high], tickformat=form)
    axis = [part.text for part in parsed(drawn).iter("tspan")][: len(ticks(low, high))]
    assert axis == texts
