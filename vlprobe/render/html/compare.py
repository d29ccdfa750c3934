"""Compare models in HTML: tables of differences."""

import math
from collections.abc import Mapping

import pandas as pd

from vlprobe.render.charts.styles import Looks
from vlprobe.render.forest import UNIT_WORDS, in_columns
from vlprobe.render.html.elements import column_heads, metric_row, model_label, table, tag
from vlprobe.render.html.tables import explained
from vlprobe.render.numbers import (
    TOO_FEW,
    between,
    chance,
    number,
    signed,
    unit_of,
)
from vlprobe.render.words import INTERVALS
from vlprobe.types import Metric
from vlprobe.types.presentation import KindPresentation
from vlprobe.views.paired_tests import DifferenceRow, PairedTest, PairedTests
from vlprobe.views.records import records

CSS = {"better": "vp-held", "worse": "vp-fooled"}
WORDS = {
    "better": "better",
    "worse": "worse",
    "differs": "different",
    "tied": "these are tied",
    "": "unknown",
}


def how_to_read(compared: pd.DataFrame) -> str:
    """Explain the table of differences: its content, how p is computed, and how many pictures are excluded."""
    rows = records(DifferenceRow, compared)
    n_compared = sum(not math.isnan(row.p) for row in rows)
    sentences = [
        "Below each value is its difference from the baseline, with a 95 % interval (resampled "
        f"by picture). {INTERVALS} p-values come from a paired permutation test by picture, "
        f"Holm-corrected for {n_compared:,} comparisons. Models are tied if p is .05 or more. "
        "Intervals are not corrected, so an interval can exclude 0 although the models are tied. "
        "Tied models also show the smallest difference that the test would have detected with 80 "
        "% power."
    ]
    left_out: dict[str, int] = {}
    for row in (row for row in rows if row.verdict):
        left_out[row.model] = max(left_out.get(row.model, 0), row.left_out)
    counts = ", ".join(f"{model} up to {count:,}" for model, count in left_out.items() if count)
    if counts:
        sentences.append(
            "Only pictures with the same questions for both models are compared; for a drop "
            "rate, only pictures for which both find the right candidate in the clean gallery. "
            f"Excluded pictures: {counts}."
        )
    return " ".join(sentences)


def differences(
    compared: pd.DataFrame,
    metrics: Mapping[str, Metric],
    unit: str,
    styles: Looks,
    chances: Mapping[str, float],
    names: Mapping[str, str],
) -> str:
    """Return a table of known metrics with a column per model: value, difference from the baseline, and p-value.

    Args:
        compared: The table that `views.paired_tests.compare_metrics` returns.
        unit: "cosine" or "spread".
        names: Display names of models.
    """
    compared_rows = records(DifferenceRow, compared)
    models = dict.fromkeys([compared_rows[0].baseline, *(row.model for row in compared_rows)])
    titles = [model_label(styles[model], names[model]) for model in models]
    titles[0] += f"<br>{tag('small', 'baseline')}"
    head = tag("th", "Metric", scope="col") + "".join(
        f'<th scope="col">{title}</th>' for title in titles
    )
    lines = []
    for name in dict.fromkeys(row.metric for row in compared_rows):
        metric = metrics[name]
        rows = [row for row in compared_rows if row.metric == name]
        if not any(row.verdict for row in rows):
            continue
        value_unit = unit_of(metric, unit)
        value = tag("span", number(rows[0].base_alone, value_unit), class_="value")
        cells = f"<td>{value}<br>{tag('small', f'n = {rows[0].base_items:,}')}</td>"
        cells += "".join(_cell(row, value_unit) for row in rows)
        lines.append(metric_row(explained(metric, value_unit, chances[name], folded=True), cells))
    return table("Each model against the baseline", head, lines)


def rows_table(comparison: PairedTests, kind: KindPresentation, names: Mapping[str, str]) -> str:
    """Return the rows of the forest plot as an HTML table: the exported columns, the verdict, and the power of ties."""
    exported, rows = in_columns(comparison, kind, names), []
    unknown = [math.isnan(row.low) for row in comparison.rows]
    exported.loc[unknown, "Difference"] += f", {TOO_FEW}"
    unit = "points" if comparison.unit == "rate" else UNIT_WORDS[comparison.unit]
    exported = exported.rename(columns={"Difference": f"Difference ({unit})"})
    for row, (title, *cells) in zip(comparison.rows, exported.to_numpy(), strict=True):
        power = _power(row, comparison.unit)
        cells.append(f"tied{power and f' ({power})'}" if row.verdict == "tied" else row.verdict)
        columns = "".join(tag("td", cell) for cell in cells)
        rows.append(f"<tr>{tag('th', title, scope='row')}{columns}</tr>")
    return table("Differences from the baseline", column_heads((*exported, "Verdict")), rows)


def _power(row: DifferenceRow | PairedTest, unit: str) -> str:
    """Name the smallest difference that a test would have detected, or return "" if it is unknown."""
    if math.isnan(row.detectable):
        return ""
    if math.isinf(row.detectable):
        return "too few pictures to detect any difference"
    return f"80 % power: {signed(row.detectable, unit).removeprefix('+')}"


def _cell(row: DifferenceRow, unit: str) -> str:
    if math.isnan(row.difference):
        return "<td>-</td>"
    value = tag("span", number(row.value, unit), class_="value")
    word = tag("span", WORDS[row.verdict], class_=f"vp-verdict {CSS.get(row.verdict, 'vp-quiet')}")
    bounds = between(row.low, row.high, unit) or f"-, {TOO_FEW}"
    lines = [
        f"{signed(row.difference, unit)} ({bounds})",
        chance(row.p_holm),
    ]
    if row.verdict == "tied" and (power := _power(row, unit)):
        lines.append(power)
    if row.left_out:
        lines.append(
            f"n = {row.n_items:,}, {row.left_out:,} left out; "
            f"baseline on these {row.n_items:,}: {number(row.base, unit)}"
        )
    small = "".join(f"<br>{tag('small', line)}" for line in lines)
    return f"<td>{value} {word}{small}</td>"
