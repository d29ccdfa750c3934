"""The figure of the trade-off: marks show their numbers, real models set the frame, and names do not overlap."""

import html
import json
import math
import random
from dataclasses import replace
from itertools import combinations

import pytest

from tests.conftest import tiers
from vlprobe.features.tradeoff import data as tradeoff
from vlprobe.metrics.pairwise import METRICS
from vlprobe.render.charts.names import LETTER, LINE, NARROW, WIDTHS
from vlprobe.render.charts.styles import DARK, styles
from vlprobe.render.charts.theme import QUIET, page_figures
from vlprobe.surfaces.paper import print_style
from vlprobe.views.paired_tests import Leader
from vlprobe.views.records import PointRow, PrintedRow

NAN = math.nan
BY_NAME = {metric.name: metric for metric in METRICS}
REAL = [
    PointRow("one", 0.010, 0.008, 0.013, 0.90, 0.85, 0.93, 50, 50),
    PointRow("two", 0.020, 0.015, 0.022, 0.95, 0.91, 0.97, 50, 50),
]
CONTROL = PointRow("control:random", 0.14, 0.13, 0.15, 0.50, 0.48, 0.52, 50, 50)
UNKNOWN = PointRow("three", NAN, NAN, NAN, 0.5, 0.4, 0.6, 0, 50)
PUBLISHED = [
    PrintedRow("Near ViT-B/16 (OpenAI)", 0.012, 0.92, "table 3 prints more"),
    PrintedRow("Low", 0.012, 0.46, ""),
    PrintedRow("Lower ViT-L", 0.058, 0.65, ""),
    PrintedRow("Far", 0.058, 0.92, ""),
]
NAMES = {"one": "One", "two": "Two", "three": "Three", "control:random": "Coin flip"}
HOSTILE = "</script><img src=x onerror=alert(1)> %{x}"


def of(points, published=(), front=(), chance=0.5) -> tradeoff.TradeOffData:
    return tradeoff.TradeOffData(
        *(BY_NAME["invariance_error"], BY_NAME["positive_rate"], "cosine", tuple(points)),
        *(frozenset(front), frozenset({"one", "two", "three"}), tuple(published), chance),
        *(Leader("unknown"), Leader("unknown")),
    )


def figure(data: tradeoff.TradeOffData, names=NAMES, named=()):
    return tradeoff.trade_off_figure(data, styles(names), names, named)


def traces(tradeoff_plot, model: str):
    return next(trace for trace in tradeoff_plot.data if trace.customdata == ([model],))


def test_a_mark_has_its_numbers_intervals_model_and_hover_text():
    drawn = figure(of(REAL))
    for point in REAL:
        trace = traces(drawn, point.model)
        assert (trace.x[0], trace.y[0]) == (point.x, point.y)
        for bars, value, low, high in (
            (trace.error_x, point.x, point.x_low, point.x_high),
            (trace.error_y, point.y, point.y_low, point.y_high),
        ):
            assert value + bars.array[0] == pytest.approx(high)
            assert value - bars.arrayminus[0] == pytest.approx(low)
        for words in (NAMES[point.model], "50 pictures", f"{100 * point.y_low:.1f} to"):
            assert words in trace.text[0]


def test_the_x_axis_is_reversed_only_if_lower_is_better():
    drawn = figure(of(REAL))
    left, right = drawn.layout.xaxis.range
    assert left > right
    up = replace(of(REAL), down=BY_NAME["positive_rate"])
    left, right = figure(up).layout.xaxis.range
    assert left < right


def test_only_real_models_set_the_frame_which_contains_their_intervals():
    real, crowd = figure(of(REAL)), figure(of([*REAL, CONTROL, UNKNOWN], PUBLISHED))
    assert crowd.layout.xaxis.range == real.layout.xaxis.range
    assert crowd.layout.yaxis.range == real.layout.yaxis.range
    (high_x, low_x), (low_y, high_y) = real.layout.xaxis.range, real.layout.yaxis.range
    for point in REAL:
        assert low_x < point.x_low and point.x_high < high_x
        assert low_y < point.y_low and point.y_high < high_y
    drawn = [trace.customdata[0][0] for trace in crowd.data if trace.customdata]
    assert drawn == ["one", "two"]


def test_marks_outside_the_frame_are_named_with_side_and_numbers():
    notes = tradeoff.edge_notes(of([*REAL, CONTROL], PUBLISHED), NAMES)
    assert [note.replace("\u00a0", " ") for note in notes] == [
        "↓ below the chart: Coin flip 50.0 % (control) · Low, Lower L, as published, 46.0 to 65.0 %",
        "← left of the chart: Far, as published, 0.0580",
        "○ published: 1 Near B/16",
    ]
    assert tradeoff.edge_notes(of(REAL), NAMES) == []


def test_a_published_model_is_an_unselectable_ring_with_its_note_as_hover_text():
    drawn = figure(of(REAL, PUBLISHED))
    (rings,) = [trace for trace in drawn.data if trace.name == tradeoff.PUBLISHED]
    assert rings.customdata is None and list(rings.x) == [0.012]
    assert list(rings.text) == ["1"] and rings.meta.endswith(": 1\u00a0Near B/16")
    (hover,) = rings.hovertext
    assert "Near ViT-B/16 (OpenAI)" in hover and "table 3 prints more" in hover


def test_controls_set_the_frame_if_no_other_model_is_shown():
    assert traces(figure(of([CONTROL])), CONTROL.model).y[0] == 0.5


def test_the_line_of_the_front_joins_two_models_or_more():
    lines = [trace for trace in figure(of(REAL, front={"one"})).data if trace.mode == "lines"]
    assert lines == []
    drawn = figure(of(REAL, front={"one", "two"}))
    (line,) = [trace for trace in drawn.data if trace.mode == "lines"]
    assert list(zip(line.x, line.y, strict=True)) == [(point.x, point.y) for point in REAL]


def test_a_model_with_too_few_pictures_has_no_interval_and_a_note_explains_it():
    few = [PointRow("one", 0.01, NAN, NAN, 0.9, NAN, NAN, 4, 4)]
    text = traces(figure(of(few)), "one").text[0]
    assert text.count("(-, fewer than 5 pictures)") == 2
    assert tradeoff.arms_note(of(few)) == "No 95 % intervals: fewer than 5 pictures."
    assert tradeoff.arms_note(of(REAL)) == "Lines are 95 % intervals."


def test_guessing_is_a_line_if_it_is_inside_the_frame():
    assert not figure(of(REAL)).layout.shapes
    assert not figure(of(REAL, chance=NAN)).layout.shapes
    (line,) = figure(of([CONTROL])).layout.shapes
    assert line.y0 == line.y1 == 0.5


def test_without_a_known_model_the_figure_is_empty():
    for points in ([UNKNOWN], []):
        drawn = figure(of(points))
        assert not any(trace.customdata for trace in drawn.data)
        assert tradeoff.alternative(of(points), NAMES).startswith("These models have no values")
    assert tradeoff.described(of([UNKNOWN]), UNKNOWN, "Three") == "Three: not tested on both axes."


def test_the_frame_of_a_rate_ends_near_100_percent():
    (high_x, low_x), (low, high) = (
        axis.range
        for axis in (
            figure(of([PointRow("one", 0.0, 0.0, 0.0, 1.0, 1.0, 1.0)])).layout.xaxis,
            figure(of([PointRow("one", 0.0, 0.0, 0.0, 1.0, 1.0, 1.0)])).layout.yaxis,
        )
    )
    assert low_x == 0.0 < high_x
    assert 0.9 < low < 1.0 < high < 1.01


def test_a_hostile_name_stays_text_in_the_figure():
    drawn = figure(of(REAL), NAMES | {"one": HOSTILE})
    values = str(drawn.to_json())
    assert "<img" not in values and "%{x}" not in values
    for theme in ("light", "dark"):
        page = json.dumps(page_figures(drawn, "", str)[theme])
        assert "<img" not in page and "</script" not in page
        assert html.escape(HOSTILE[9:35]) in page


def test_a_page_outside_streamlit_gets_both_themes_and_no_unknown_number():
    pages = page_figures(figure(of([*REAL, UNKNOWN], PUBLISHED)), "", str)
    color = styles(NAMES)["one"].color
    light, dark = (json.dumps(pages[theme], allow_nan=False).lower() for theme in ("light", "dark"))
    assert color in light and color not in dark and DARK[color] in dark


def boxes(tradeoff_plot, width: int) -> list[tuple[str, tuple[float, float, float, float]]]:
    """Return the names of a figure and the boxes that they cover in a plot of this width, in pixels."""
    plot = (
        tradeoff_plot.layout.height - tradeoff_plot.layout.margin.t - tradeoff_plot.layout.margin.b
    )
    (left, right), (bottom, top) = (
        tradeoff_plot.layout.xaxis.range,
        tradeoff_plot.layout.yaxis.range,
    )
    found = []
    for note in tradeoff_plot.layout.annotations:
        if note.xref == "paper" or (note.name and width == WIDTHS[NARROW]):
            continue
        x = width * (note.x - left) / (right - left) + note.ax
        y = plot * (note.y - bottom) / (top - bottom) - note.ay
        wide = LETTER * len(note.text.removeprefix("<b>").removesuffix("</b>"))
        found.append((note.text, (x - wide / 2, y - LINE / 2, x + wide / 2, y + LINE / 2)))
    return found


@pytest.mark.parametrize("spread", [1, 0.3, 0.1])
@pytest.mark.parametrize("seed", tiers(range(6), (0, 1)))
def test_names_overlap_neither_each_other_nor_the_edge_at_any_width(seed: int, spread: float):
    draws = random.Random(seed)
    points = []
    for place in range(9):
        x, y = 0.01 + spread * draws.gauss(0, 0.003), 0.88 + spread * draws.gauss(0, 0.02)
        points.append(PointRow(f"m{place}", x, x - 4e-4, x + 4e-4, y, y - 0.01, y + 0.01, 9, 9))
    names = {point.model: f"Pair-tuned {number}" for number, point in enumerate(points)}
    data = replace(of(points, PUBLISHED), fit=frozenset(names))
    drawn = figure(data, names)
    for width in WIDTHS:
        placed = boxes(drawn, width)
        in_legend = [trace for trace in drawn.data if trace.customdata and trace.showlegend]
        assert len(placed) + len(in_legend) == len(points) or width == WIDTHS[NARROW]
        for note in drawn.layout.annotations:
            if note.xref == "paper" or note.arrowcolor != QUIET:
                continue  # without a leader line
            x = width * (note.x - drawn.layout.xaxis.range[0])
            x /= drawn.layout.xaxis.range[1] - drawn.layout.xaxis.range[0]
            bottom, top = drawn.layout.yaxis.range
            plot = drawn.layout.height - drawn.layout.margin.t - drawn.layout.margin.b
            y = plot * (note.y - bottom) / (top - bottom)
            for text, box in placed:
                on_line = [(x + t * note.ax, y - t * note.ay) for t in (0.2, 0.4, 0.6, 0.8)]
                crossed = [box[0] < a < box[2] and box[1] < b < box[3] for a, b in on_line]
                assert text == note.text or width == WIDTHS[NARROW] or not any(crossed)
        for (name, one), (other, two) in combinations(placed, 2):
            across = min(one[2], two[2]) - max(one[0], two[0])
            along = min(one[3], two[3]) - max(one[1], two[1])
            assert min(across, along) < 1, (name, other, width)
        assert all(box[0] >= -3 and box[2] <= width + 3 for _, box in placed)


def test_of_many_models_only_the_named_ones_have_names_and_colors():
    points = [replace(REAL[0], model=f"m{place}", y=0.8 + place / 100) for place in range(12)]
    names = {point.model: f"Model {point.model}" for point in points}
    data = replace(of(points), fit=frozenset(names))
    drawn = figure(data, names, {"m3"})
    texts = [note.text for note in drawn.layout.annotations if note.xref != "paper"]
    in_legend = [trace.name for trace in drawn.data if trace.customdata and trace.showlegend]
    assert [*texts, *in_legend] == ["Model m3"]  # no room for its name between the other marks
    colors = {
        trace.customdata[0][0]: trace.marker.color for trace in drawn.data if trace.customdata
    }
    assert len(set(colors.values())) == 2 and colors["m3"] != colors["m4"]


def test_the_legend_below_the_plot_names_published_models_and_unlabeled_marks():
    data = of(REAL, [PUBLISHED[0], replace(PUBLISHED[0], model="Second", y=0.921)])
    drawn = figure(data)
    assert (drawn.layout.legend.yref, drawn.layout.legend.y) == ("container", 0)
    assert tradeoff.edge_notes(data, NAMES)[-1] == "○ published: 1\u00a0Near B/16, 2\u00a0Second"
    for note in drawn.layout.annotations:
        if note.xref != "paper":
            note.name = tradeoff.WIDE_ONLY
    column = print_style(drawn, "column")
    assert {note.xref for note in column.layout.annotations} == {"paper"}
    names = [trace.name for trace in column.data if trace.showlegend is not False]
    assert {*names} == {"One", "Two", "published"}  # whose names are in the caption
    assert "1\u00a0Near B/16" in tradeoff.caption(data, NAMES)
    assert any("1\u00a0Near B/16" in trace.name for trace in print_style(drawn).data)
    lines = [line for name in names for line in name.split("<br>")]
    assert max(map(len, lines)) * 7 < column.layout.width - 40
    assert column.layout.margin.b >= 64 + 20  # a line has the three names
