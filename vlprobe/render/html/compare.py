"""Models side by side as HTML: sentences for those who want the answer, a table for the numbers."""

import html
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from types import MappingProxyType

import pandas as pd

from vlprobe.render.charts.styles import Looks
from vlprobe.render.html.elements import column_heads, mark, metric_row, model_label, table, tag
from vlprobe.render.html.tables import explained
from vlprobe.render.numbers import TOO_FEW, between, chance, number, power, signed, unit_of
from vlprobe.render.sentences import joined
from vlprobe.render.words import INTERVALS, value_label
from vlprobe.types import Metric
from vlprobe.views.paired_tests import DifferenceRow, PairedTests
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
    """Return the explanation of the table of differences: its content, p, and how many pictures are left out."""
    n_compared = sum(not math.isnan(row.p) for row in records(DifferenceRow, compared))
    sentences = [
        "Below each value: its difference from the baseline with a 95 % interval (resampled by "
        f"picture). {INTERVALS} p: paired permutation test by picture, Holm-corrected for "
        f"{n_compared:,} comparisons. Models are tied if p is .05 or more. Intervals are not "
        "corrected, so one can exclude 0 although the pair counts as tied."
    ]
    left_out: dict[str, int] = {}
    for row in _judged(compared):
        left_out[row.model] = max(left_out.get(row.model, 0), row.left_out)
    counts = ", ".join(f"{model} up to {count:,}" for model, count in left_out.items() if count)
    if counts:
        sentences.append(
            "Only pictures with the same questions for both models are compared; for a "
            "drop rate, only those for which both find the right candidate in the clean "
            f"gallery. Excluded: {counts}."
        )
    return " ".join(sentences)


def _judged(compared: pd.DataFrame) -> list[DifferenceRow]:
    """The rows of metrics that both models have; models in order of their first row."""
    rows = [row for row in records(DifferenceRow, compared) if row.verdict]
    order = list(dict.fromkeys(row.model for row in rows))
    return sorted(rows, key=lambda row: order.index(row.model))


def in_words(
    compared: pd.DataFrame,
    metrics: Mapping[str, Metric],
    unit: str,
    styles: Looks,
    main_metrics: Sequence[str],
    names: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Return the result of the comparison for each model, as sentences.

    Args:
        compared: What `views.paired_tests.compare_metrics` returns.
        metrics: The probe's metrics by name.
        unit: "cosine" or "spread".
        styles: What `charts.styles` returns.
        main_metrics: Those that get a sentence of their own; the others are counted.
        names: Display names of models, if different from their stored names.
    """
    sections = []
    for model, model_rows in groupby(_judged(compared), key=attrgetter("model")):
        rows = {row.metric: row for row in model_rows}
        baseline = next(iter(rows.values())).baseline
        marks = mark(styles[model]), mark(styles[baseline])
        pair = names.get(model, model), names.get(baseline, baseline)
        title = f"{marks[0]} {tag('strong', pair[0])} against {marks[1]} {tag('strong', pair[1])}"
        sentences = "".join(
            f"<li>{_sentence(rows[name], metrics[name], unit, *pair)}</li>"
            for name in main_metrics
            if name in rows
        )
        items = f"<ul>{sentences}</ul>" if sentences else ""
        count = html.escape(_count([row.verdict for row in rows.values()], pair[0]))
        sections.append(f"<section><p>{title}</p>{items}<p>{count}</p></section>")
    return f'<div class="vp-compared">{"".join(sections)}</div>'


def _sentence(row: DifferenceRow, metric: Metric, unit: str, model: str, baseline: str) -> str:
    value_unit = unit_of(metric, unit)
    label = f"<em>{html.escape(metric.label)}</em>"
    values = {model: number(row.value, value_unit), baseline: number(row.base, value_unit)}
    size = signed(abs(row.difference), value_unit).removeprefix("+")
    if row.verdict == "tied":
        return (
            f"At {label} <strong>these are tied</strong>: {html.escape(values[model])} against "
            f"{html.escape(values[baseline])}. "
            f"A difference of {size} may be chance ({chance(row.p_holm)}). "
            f"{power([row.detectable], value_unit)}".strip()
        )
    leading, trailing = (baseline, model) if row.verdict == "worse" else (model, baseline)
    verb = "differs from" if row.verdict == "differs" else "is better than"
    sign = -1 if row.difference < 0 else 1
    low, high = sorted((sign * row.low, sign * row.high))
    return (
        f"{tag('strong', leading)} {verb} {html.escape(trailing)} at {label}: "
        f"{html.escape(values[leading])} against {html.escape(values[trailing])}, "
        f"a difference of {size} (95 % interval {between(low, high, value_unit)})."
    )


def _count(verdicts: Sequence[str], model: str) -> str:
    """Compute how often each verdict was given, ties last."""
    counts = Counter(verdicts)
    phrases = [
        f"{word} at {counts[name]}"
        for name, word in WORDS.items()
        if name != "tied" and counts[name]
    ]
    if counts["tied"]:
        phrases.append(f"tied at {counts['tied']}")
    return f"Of {len(verdicts)} numbers, {model} is {', '.join(phrases)}."


def differences(
    compared: pd.DataFrame,
    metrics: Mapping[str, Metric],
    unit: str,
    styles: Looks,
    chances: Mapping[str, float],
    names: Mapping[str, str] = MappingProxyType({}),
) -> tuple[str, list[str]]:
    """One row per metric, one column per model: its value, its distance from the baseline, and its p.

    Args:
        compared: What `views.paired_tests.compare_metrics` returns.
        metrics: The probe's metrics by name, in order.
        unit: "cosine" or "spread".
        styles: What `charts.styles` returns.
        chances: What guessing gets on each metric.
        names: Display names of models, if different from their stored names.

    Returns:
        The table; and the labels of metrics of which nothing is known.
    """
    compared_rows = records(DifferenceRow, compared)
    models = dict.fromkeys([compared_rows[0].baseline, *(row.model for row in compared_rows)])
    titles = [model_label(styles[model], names.get(model, model)) for model in models]
    titles[0] += f"<br>{tag('small', 'baseline')}"
    head = tag("th", "Metric", scope="col") + "".join(
        f'<th scope="col">{title}</th>' for title in titles
    )
    lines, unknown = [], []
    for name in dict.fromkeys(row.metric for row in compared_rows):
        metric = metrics[name]
        rows = [row for row in compared_rows if row.metric == name]
        if not any(row.verdict for row in rows):
            unknown.append(metric.label)
            continue
        value_unit = unit_of(metric, unit)
        value = tag("span", number(rows[0].base_alone, value_unit), class_="value")
        cells = f"<td>{value}<br>{tag('small', f'n = {rows[0].base_items:,}')}</td>"
        cells += "".join(_cell(row, value_unit) for row in rows)
        lines.append(metric_row(explained(metric, value_unit, chances[name], folded=True), cells))
    return table("Each model against the baseline", head, lines), unknown


def rows_table(comparison: PairedTests, names: Mapping[str, str]) -> str:
    """The rows of the forest plot as a table: shares, differences, intervals and p.

    Args:
        comparison: Of two or more models.
        names: Their display names.
    """
    unit, base = comparison.unit, names[comparison.baseline.model]
    titles = ("Wrong captions", "Preferred", f"By {base}")
    if comparison.is_movement:
        titles = ("Cases", "Moved", f"{base} moved")
    cells: dict[str, str] = {}  # by the title of the column
    rows = []
    for row in comparison.rows:
        interval = "" if math.isnan(row.difference) else _bounds(row.low, row.high, unit)
        values = (f"{row.n_lies:,}", number(row.value, unit), number(row.base, unit))
        cells = {
            "Model": names[row.model],
            **dict(zip(titles, values, strict=True)),
            "Difference": signed(row.difference, unit) + (f" ({interval})" if interval else ""),
            "p": chance(row.p_holm),
            "": joined(WORDS["tied"] + ".", power([row.detectable], unit))
            if row.verdict == "tied"
            else row.verdict,
        }
        kind = value_label(row.subtype) if row.subtype else "All"
        columns = "".join(tag("td", cell) for cell in cells.values())
        rows.append(f"<tr>{tag('th', kind, scope='row')}{columns}</tr>")
    return table("Differences from the baseline", column_heads(("Kind of edit", *cells)), rows)


def _bounds(low: float, high: float, unit: str) -> str:
    """The interval of a known difference, or the reason why there is none."""
    return between(low, high, unit) or f"-, {TOO_FEW}"


def _cell(row: DifferenceRow, unit: str) -> str:
    if math.isnan(row.difference):
        return "<td>-</td>"
    value = tag("span", number(row.value, unit), class_="value")
    word = tag("span", WORDS[row.verdict], class_=f"vp-verdict {CSS.get(row.verdict, 'vp-quiet')}")
    lines = [
        f"{signed(row.difference, unit)} ({_bounds(row.low, row.high, unit)})",
        chance(row.p_holm),
    ]
    if row.left_out:
        lines.append(
            f"n = {row.n_items:,}, {row.left_out:,} left out; "
            f"baseline there {number(row.base, unit)}"
        )
    small = "".join(f"<br>{tag('small', line)}" for line in lines)
    return f"<td>{value} {word}{small}</td>"
