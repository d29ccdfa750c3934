"""The forest plot for a comparison, with one row per type of edit and model.

Only models that passed their checks set the range of the axis, so a control does not stretch it.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from vlprobe.case.card import wrong_captions
from vlprobe.render.attribution import with_source
from vlprobe.render.charts.styles import Look, Looks
from vlprobe.render.charts.theme import QUIET, arms, finished, safe, wrapped
from vlprobe.render.findings import verdict
from vlprobe.render.leaderboard import solved_note
from vlprobe.render.numbers import TOO_FEW, chance_cell, number, power
from vlprobe.render.sentences import (
    capitalized,
    count_halves,
    counted,
    halves_note,
    joined,
    sentence_names,
    shortened,
)
from vlprobe.render.words import WRONG_SUBTYPES, edit_title, value_label, wrong
from vlprobe.types.presentation import KindPresentation
from vlprobe.views.named_slices import PREFIX
from vlprobe.views.paired_tests import PairedTest, PairedTests
from vlprobe.views.runs import QuestionSet
from vlprobe.views.totals import Total

MINUS = "−"
PADDING = 0.05  # share of the width, on both sides
LEAST_WIDTH = 0.01  # minimum width of the axis in shares, in case all marks are at zero
LANE = 24  # height of a row in pixels
END = 8  # pixels: half the height of an interval's end, and the width of a mark, which may be wider than the interval
MARGINS = {"l": 134, "r": 88, "t": 84, "b": 72}  # pixels
LEGEND_LINE = 20  # pixels
NO_ARROW = {"showarrow": False}
TOTALS = "totals"  # the group of published totals; no type of edit has this name
TOTALS_SOURCE = "mteb, CC0"


def frame(comparison: PairedTests) -> tuple[float, float]:
    """Return both ends of the axis. It includes zero and the intervals of all models that passed their checks."""
    fit = {contestant.model for contestant in comparison.rivals if contestant.is_fit}
    rows = [row for row in comparison.rows if row.model in fit] or list(comparison.rows)
    ends = [
        value
        for row in rows
        for value in (row.low, row.high, row.difference)
        if not math.isnan(value)
    ]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    least = LEAST_WIDTH * (1 if comparison.unit == "rate" else 0.1)
    if high - low < least:
        low, high = low - least / 2, high + least / 2
    padding = PADDING * (high - low)
    return low - padding, high + padding


def signed(value: float, unit: str) -> str:
    """Format a difference with its sign: shares in percentage points, cosines unchanged.

    >>> signed(-0.0658, "rate"), signed(0.05, "rate"), signed(0.0012, "cosine"), signed(math.nan, "rate")
    ('−6.6', '+5.0', '+0.0012', '-')
    """
    text = number(abs(value), "rate" if unit == "rate" else "cosine").removesuffix(" %")
    sign = (MINUS if value < 0 else "+") if text.strip("0.-") else ""
    return f"{sign}{text}"


def in_words(row: PairedTest, comparison: PairedTests) -> str:
    """Return the verdict for one row in two or three words, such as "1.7 points fewer" or "tied"."""
    if row.verdict == "unknown":
        return "not known"
    if row.verdict == "tied":
        return "tied, corrected" if only_uncorrected(row) else "tied"
    points = " points" if comparison.unit == "rate" else ""
    word = "less" if row.verdict == "fewer" and comparison.is_movement else row.verdict
    return f"{signed(abs(row.difference), comparison.unit).removeprefix('+')}{points} {word}"


def only_uncorrected(row: PairedTest) -> bool:
    """Return whether a row counts as tied only because of the correction: its uncorrected interval excludes 0."""
    return row.verdict == "tied" and (row.low > 0 or row.high < 0)


def row_title(subtype: str, kind: KindPresentation) -> str:
    """Return the title for a group of rows, such as "Wrong number", or "Any wrong word" for all wrong captions."""
    return shortened(edit_title(subtype)) if subtype else capitalized(part_title("", kind))


def part_title(subtype: str, kind: KindPresentation) -> str:
    """Return the title for a group of rows, in the form used within a sentence. Unknown types of edit are quoted."""
    if subtype:
        title, label = wrong(subtype), value_label(subtype)
        is_known = title.lower() != label.lower() or subtype in WRONG_SUBTYPES
        return shortened(title) if is_known else f"“{shortened(label)}”"
    lie = kind.wrong_side
    article, _, noun = lie.partition(" ")
    return f"any {noun}" if article in ("a", "an", "another") and noun else f"any: {lie}"


def describe_shared(
    row: PairedTest, comparison: PairedTests, names: Mapping[str, str], kind: KindPresentation
) -> str:
    """Describe how many cases fool each model, both models or neither, and how many only one of them answered."""
    if comparison.is_movement or not row.n_lies:
        return ""
    counts = zip((row.only_base, row.only_model), row.halves, strict=True)
    base, model = (count_halves(row.both + n - n_once, n_once) for n, n_once in counts)
    left_out = f"{row.n_left_out:,} were answered by only one of the two models."
    return joined(
        f"{names[comparison.baseline.model]} is fooled by {base} of {row.n_lies:,} {wrong_captions(kind)} and "
        f"{names[row.model]} by {model}: a difference of {signed(row.difference, comparison.unit)} points.",
        f"{row.both:,} fool both models, and {row.neither:,} fool neither.",
        left_out if row.n_left_out else "",
    )


def forest_figure(
    comparison: PairedTests,
    kind: KindPresentation,
    looks: Looks,
    renamed: Mapping[str, str],
    totals: Sequence[Total] = (),
    address: Callable[[str, str], str] | None = None,
) -> go.Figure:
    """Draw the forest plot: a group of rows for each type of edit, and in it each model's difference from the baseline
    with a 95 % interval.

    A mark is filled if the difference is clear. The `customdata` of a mark is [subtype, model].

    Args:
        renamed: Display names of models, by stored name.
        totals: Published totals that correspond to the first group of rows. They do not stretch the axis.
        address: Function that returns the URL for a subtype and a model, or for a subtype and "". If it is given, a
            click anywhere in a row selects it, and titles and differences are links.
    """
    names = sentence_names([contestant.model for contestant in comparison.contestants], renamed)
    figure, (low, high) = go.Figure(), frame(comparison)
    scale = 100 if comparison.unit == "rate" else 1
    lanes = _lanes(comparison, bool(totals))
    if address:
        figure.add_bar(
            orientation="h",
            base=scale * low,
            x=[scale * (high - low)] * len(comparison.rows),
            y=[lanes[row.subtype, row.model] for row in comparison.rows],
            width=1,
            customdata=[[row.subtype, row.model] for row in comparison.rows],
            marker_color="rgba(0,0,0,0)",
            hoverinfo="none",
            showlegend=False,
        )
    for rival in comparison.rivals:
        of_rival = [row for row in comparison.rows if row.model == rival.model]
        for is_dashed in (False, True):
            rows = [row for row in of_rival if only_uncorrected(row) is is_dashed]
            if rows:
                heights = [lanes[row.subtype, row.model] for row in rows]
                texts = [safe(row_in_full(row, comparison, names, kind)) for row in rows]
                _draw_rows(figure, rows, heights, texts, looks[rival.model], scale, is_dashed)
                is_first = not is_dashed or len(rows) == len(of_rival)
                figure.data[-1].update(name=safe(names[rival.model]), showlegend=is_first)
    annotations = []  # set all at once, because each `add_annotation` call checks all of them again
    for row in comparison.rows:
        outside = "‹ " if row.difference < low else "› " if row.difference > high else ""
        text = f"{outside}{signed(row.difference, comparison.unit)}, tied"
        text += "*" * only_uncorrected(row)  # explained by `how_to_read`
        if row.verdict == "unknown":
            text = f"{outside}not known"
        elif _is_clear(row):
            text = f"<b>{text.removesuffix(', tied')}</b>"
        if address:
            text = _link(address(row.subtype, row.model), text)
        place = {"xref": "paper", "x": 1, "xanchor": "left", "xshift": 10}
        annotations.append(NO_ARROW | place | {"y": lanes[row.subtype, row.model], "text": text})
    figure.update_layout(annotations=annotations)
    titles = {}
    for subtype in comparison.subtypes:
        title = f"<b>{wrapped(row_title(subtype, kind), 18)}</b>"
        if address:
            title = _link(address(subtype, ""), title)
        titles[subtype] = f"{title}<br>{wrapped(_count(comparison, subtype, kind), 22)}"
    if totals:
        n_drawn = _draw_totals(figure, totals, comparison, lanes[TOTALS, ""])
        titles[TOTALS] = f"<b>Published totals</b><br>{n_drawn} of {len(totals)} in view"
    _draw_axes(figure, comparison, names[comparison.baseline.model], lanes, titles)
    if address:
        corner = {"xref": "paper", "x": 0, "yref": "paper", "y": 1, "yanchor": "bottom"}
        figure.add_annotation(NO_ARROW | corner, xanchor="left", yshift=62, text=CLICK)
    return figure


def _link(address: str, text: str) -> str:
    """Return a link for Plotly, which encodes addresses once more except for these signs."""
    for code, sign in (("%3A", ":"), ("%7C", "|"), ("%2F", "/")):
        address = address.replace(code, sign)
    return f'<a href="{address}" target="_self">{text}</a>'


def without_legend(figure: go.Figure) -> go.Figure:
    """Remove the legend of a forest plot, and the room for it, for a page that names the models next to the plot."""
    layout: Any = figure.layout
    height = layout.height - layout.margin.b + LEGEND_LINE
    return figure.update_layout(showlegend=False, height=height, margin_b=LEGEND_LINE)


def _draw_rows(
    figure: go.Figure,
    rows: Sequence[PairedTest],
    heights: Sequence[float],
    texts: Sequence[str],
    look: Look,
    scale: float,
    is_dashed: bool,
) -> None:
    """Draw one model's marks and intervals. Dashed lines are intervals of rows that are tied only after correction."""
    values, lows, highs = (
        [scale * value for value in ends]
        for ends in zip(*((row.difference, row.low, row.high) for row in rows), strict=True)
    )
    if is_dashed:
        figure.add_scatter(
            x=[end for low, high in zip(lows, highs, strict=True) for end in (low, high, None)],
            y=[end for height in heights for end in (height, height, None)],
            mode="lines+markers",
            line={"color": look.color, "width": 1.8, "dash": "2px,2px"},
            opacity=0.5,  # also in print, where a short interval has room for hardly a dash
            marker={"symbol": "line-ns", "size": 2 * END, "opacity": 1}
            | {"line": {"color": look.color, "width": 1.8}},
            unselected={"marker": {"opacity": 1}},
            hoverinfo="skip",
            showlegend=False,
        )
    figure.add_scatter(
        x=values,
        y=list(heights),
        error_x=None if is_dashed else arms(values, lows, highs, look.color) | {"width": END},
        mode="markers",
        marker={
            "color": look.color,
            "symbol": [look.symbol if _is_clear(row) else f"{look.symbol}-open" for row in rows],
            "size": END,
            "line": {"width": 2, "color": look.color},
        },
        customdata=[[row.subtype, row.model] for row in rows],
        text=[text.replace(": ", "<br>", 1) for text in texts],
        hovertemplate="%{text}<extra></extra>",
        unselected={"marker": {"opacity": 1}},
    )


def _is_clear(row: PairedTest) -> bool:
    return row.verdict in ("fewer", "more")


def _lanes(comparison: PairedTests, has_totals: bool) -> dict[tuple[str, str], float]:
    """Return the y position of each row, by subtype and model. Rows are LANE pixels apart, from 0 downward."""
    lanes: dict[tuple[str, str], float] = {}
    models = [rival.model for rival in comparison.rivals]
    top = 0.0
    for subtype in comparison.subtypes:
        height = max(len(models), 2) + 0.8
        for index, model in enumerate(models):
            lanes[subtype, model] = top + height / 2 + index - (len(models) - 1) / 2
        top += height
    if has_totals:
        lanes[TOTALS, ""] = top + (max(len(models), 2) + 0.8) / 2
    return lanes


def _draw_totals(
    figure: go.Figure, totals: Sequence[Total], comparison: PairedTests, height: float
) -> int:
    """Draw rings for published totals, as differences from the baseline. Return how many of them are visible."""
    low, high = frame(comparison)
    differences = {total: total.fooled - comparison.baseline.share for total in totals}
    drawn = {total: value for total, value in differences.items() if low <= value <= high}
    figure.add_scatter(
        x=[100 * value for value in drawn.values()],
        y=[height] * len(drawn),
        mode="markers",
        marker={"symbol": "circle-open", "size": 11, "color": QUIET, "line": {"width": 1.5}},
        name=f"published totals ({TOTALS_SOURCE})",
        showlegend=False,  # the row has its name
        text=[
            f"<b>{safe(total.model)}</b><br>fooled by {100 * total.fooled:.1f} %, published total ({TOTALS_SOURCE})"
            for total in drawn
        ],
        hovertemplate="%{text}<extra></extra>",
        unselected={"marker": {"opacity": 1}},
        cliponaxis=False,  # a ring at the end of the axis is whole
    )
    return len(drawn)


def describe_totals(totals: Sequence[Total]) -> str:
    """Describe the rings: how many totals of whom they are, and the lowest and the highest one."""
    lowest = sorted(totals, key=lambda total: total.fooled)
    first, *_, last = [f"{total.model} ({number(total.fooled, 'rate')})" for total in lowest * 2]
    between = f"from {first} to {last}" if lowest[1:] else first
    models = counted(len(totals), "other model")
    return f"rings: published totals of {models} ({TOTALS_SOURCE}), {between}"


def _draw_axes(
    figure: go.Figure,
    comparison: PairedTests,
    base: str,
    lanes: Mapping[tuple[str, str], float],
    titles: Mapping[str, str],
) -> None:
    """Draw the axis of differences, a title to the left of each group, and a band behind each group."""
    unit = comparison.unit
    of_group: dict[str, list[float]] = {}
    for (subtype, _), height in lanes.items():
        of_group.setdefault(subtype, []).append(height)
    middles = {subtype: sum(values) / len(values) for subtype, values in of_group.items()}
    n_models = len(comparison.rivals)
    half = (max(n_models, 2) + 0.8) / 2
    bottom = max(middles.values()) + half
    # On a narrow page, each model has a line of the legend
    margins = MARGINS | {"b": max(MARGINS["b"], LEGEND_LINE * (n_models + 2))}
    finished(figure, round(LANE * bottom) + margins["t"] + margins["b"])
    band = {"type": "rect", "xref": "paper", "x0": -5, "x1": 6, "layer": "below"}
    band |= {"line": {"color": QUIET, "width": 0.5}, "fillcolor": "rgba(0,0,0,0)"}
    figure.update_layout(
        margin=margins | {"autoexpand": False},
        hoverdistance=80,
        legend={"y": 0, "yanchor": "top", "x": 0, "xref": "container"},
        shapes=[band | {"y0": each - half, "y1": each + half} for each in middles.values()],
    )
    word = "moves" if comparison.is_movement else "fooled"
    top = NO_ARROW | {"yref": "paper", "y": 1, "yanchor": "bottom"}
    figure.add_annotation(**top, x=0, yshift=42, text=f"<b>← {word} less | {word} more →</b>")
    in_unit = "Points" if unit == "rate" else "Difference"
    corner = {"xanchor": "right", "xshift": -8, "align": "right", "yshift": 4, "xref": "paper"}
    text = f"{in_unit} against<br>{wrapped(base, 18)}"
    figure.add_annotation(**top, **corner, x=0, text=text)
    scale = 100 if unit == "rate" else 1
    figure.update_xaxes(
        range=[scale * end for end in frame(comparison)],
        side="top",
        tickformat="+~g",
        labelalias={"+0": "0"},
        zeroline=True,
        zerolinecolor=QUIET,
        zerolinewidth=1.5,
        automargin=False,
    )
    figure.update_yaxes(
        range=[bottom, 0],
        tickvals=list(middles.values()),
        ticktext=list(titles.values()),
        showgrid=False,
        zeroline=False,
        automargin=False,
        fixedrange=True,
    )


def _count(comparison: PairedTests, subtype: str, kind: KindPresentation) -> str:
    """Return the number of wrong captions in the rows of a subtype, or the range if rows have different numbers."""
    counts = {row.n_lies for row in comparison.rows if row.subtype == subtype}
    ends = dict.fromkeys((min(counts), max(counts)))
    return f"{' to '.join(f'{count:,}' for count in ends)} {wrong_captions(kind)}"


def row_in_full(
    row: PairedTest, comparison: PairedTests, names: Mapping[str, str], kind: KindPresentation
) -> str:
    """Describe a row in a sentence: verdict, difference, interval, both models' shares, and the number of cases."""
    unit = comparison.unit
    counts = f"; {row.n_lies:,} {wrong_captions(kind)}, {row.n_pictures:,} pictures"
    verdict = f"{row_title(row.subtype, kind)}, {names[row.model]}: {in_words(row, comparison)}"
    if math.isnan(row.difference):
        return verdict + counts
    between = f", difference {signed(row.difference, unit)}"
    if not math.isnan(row.low):
        between += f", 95 % interval {signed(row.low, unit)} to {signed(row.high, unit)}"
    else:
        between += f", no interval ({TOO_FEW})"
    base = names[comparison.baseline.model]
    shown_unit = "rate" if unit == "rate" else "cosine"
    value, base_value = (number(each, shown_unit) for each in (row.value, row.base))
    detectable = f". {power([row.detectable], unit)}".rstrip(". ") if row.verdict == "tied" else ""
    return f"{verdict}{between} ({value}, {base} {base_value}){counts}{detectable}"


def in_columns(
    comparison: PairedTests, kind: KindPresentation, names: Mapping[str, str]
) -> pd.DataFrame:
    """Return the rows of the forest plot in words, for a paper: type, model, both values (with the number of cases, of
    which some may count as half), difference and p.
    """
    unit = comparison.unit

    def share(value: float, n_cases: int) -> str:
        count = "" if comparison.is_movement else f"{n_cases * value:,.1f}".removesuffix(".0")
        return number(value, unit) + (f" ({count})" if count and n_cases else "")

    def plain(value: float) -> str:
        return signed(value, unit).replace(MINUS, "-")

    rows = []
    for row in comparison.rows:
        between = "" if math.isnan(row.low) else f" ({plain(row.low)} to {plain(row.high)})"
        rows.append(
            {
                "Type": row_title(row.subtype, kind),
                "Model": names[row.model],
                "Moves" if comparison.is_movement else "Fooled": share(row.value, row.n_lies),
                names[comparison.baseline.model]: share(row.base, row.n_lies),
                "Difference": plain(row.difference) + between,
                f"p ({comparison.correction})": chance_cell(row.p_holm),
                "Cases": f"{row.n_lies:,}",
            }
        )
    return pd.DataFrame(rows)


def solved_rows(comparison: PairedTests, kind: KindPresentation) -> str:
    """Name the rows that can be solved without the picture, or return ""."""
    rows = {row_title(each, kind): comparison.solved.get(each, 1.0) for each in comparison.subtypes}
    return solved_note(rows, "rows")


def rows_text(
    comparison: PairedTests,
    question_set: QuestionSet,
    kind: KindPresentation,
    renamed: Mapping[str, str],
    how: str,
) -> str:
    """Format the rows of the forest plot as "latex" or "markdown", with a note on the tests and the sources. `renamed`
    has the display names that users gave to models, by stored name.
    """
    runs = [question_set.run(contestant.model) for contestant in comparison.contestants]
    names = sentence_names([run.model for run in runs], renamed)
    twice = [names[run.model] for run in runs if run.n_orders == 2]
    unit = "points" if comparison.unit == "rate" else UNIT_WORDS[comparison.unit]
    family = correction((row.subtype, row.n_tests) for row in comparison.rows)
    caption = (
        f"Differences from {names[comparison.baseline.model]} in {unit}, with 95 % intervals "
        f"of each comparison and {comparison.correction}-adjusted p-values."
    )
    details = joined(
        "Intervals: resampled by picture. p: paired permutation test by picture (McNemar's exact test if each "
        f"picture has one answer){family and f', {family}'}.",
        "" if comparison.is_movement else "In parentheses: the number of cases.",
        halves_note(twice),
        solved_rows(comparison, kind),
    )
    table = in_columns(comparison, kind, names)
    return with_source(table, how, runs, renamed, None, caption, details, "differences")


CLICK = "Click a row for its pictures."  # above a plot whose rows can be clicked


def how_to_read(comparison: PairedTests) -> str:
    """Return the explanation that is shown below the forest plot."""
    method = correction((row.subtype, row.n_tests) for row in comparison.rows)
    return joined(
        f"Filled: clear difference (p < .05{method and f', {method}'}). Hollow: no clear difference.",
        "Lines: 95 % intervals of each comparison.",
        "Dashed and pale (*): the interval excludes 0, but the difference is not significant after correction."
        if any(map(only_uncorrected, comparison.rows))
        else "",
        "" if comparison.unit == "rate" else f"In {UNIT_WORDS[comparison.unit]}.",
        f"{comparison.n_more_subtypes:,} rarer types of edit are not shown."
        if comparison.n_more_subtypes
        else "",
        "Named slices are corrected separately."
        if any(row.subtype.startswith(PREFIX) for row in comparison.rows)
        else "",
    )


def correction(tests: Iterable[tuple[str, int]]) -> str:
    """Name the tests for which p-values are corrected, given subtypes and the number of tests in their family.

    >>> correction([("", 10), ("number", 70), ("color", 70)])
    'corrected for every pair of models, shown or not: 10 tests on the total, 70 on types of edit'
    """
    sizes: dict[str, int] = {}
    for subtype, n_tests in tests:
        where = "types of edit" if subtype else "the total"
        if not subtype.startswith(PREFIX):
            sizes[where] = max(n_tests, sizes.get(where, 0))
    if max(sizes.values(), default=0) < 2:
        return ""
    (first, n_first), *others = sizes.items()
    words = [
        f"{counted(n_first, 'test')} on {first}",
        *(f"{n:,} on {where}" for where, n in others),
    ]
    return f"corrected for every pair of models, shown or not: {', '.join(words)}"


def caption(
    comparison: PairedTests, kind: KindPresentation, renamed: Mapping[str, str], dataset: str
) -> str:
    """Return the facts for the caption of the forest plot: the finding, the models, the cases and the method."""
    names = sentence_names([each.model for each in comparison.contestants], renamed)
    baseline, *rivals = names.values()
    finding = verdict(comparison, kind, renamed)
    compared = f"Compared with {baseline} on {dataset}: {', '.join(rivals)}."
    return joined(finding.heading, compared, how_to_read(comparison), solved_rows(comparison, kind))


UNIT_WORDS = {"cosine": "cosines", "spread": "the model's own spreads"}
