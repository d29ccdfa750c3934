"""Models side by side as HTML: a sentence for people who want the answer, a table for those who want the numbers."""

import html
import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import pandas as pd

from vlprobe.render.charts.compare import between, chance, signed
from vlprobe.render.charts.styles import Looks
from vlprobe.render.html.elements import breakable, mark, table, tag
from vlprobe.render.html.tables import explained
from vlprobe.render.numbers import number, unit_of
from vlprobe.render.words import AGREED, presentations, value_label
from vlprobe.types import Metric
from vlprobe.views.believed import Comparison

CSS = {"better": "vp-held", "worse": "vp-fooled"}
WORDS = {
    "better": "better",
    "worse": "worse",
    "differs": "different",
    "tied": "these are tied",
    "": "unknown",
}


def main(probe: str) -> tuple[str, ...]:
    """The metrics that say most."""
    return presentations()[probe].main_metrics


def how_to_read(compared: pd.DataFrame) -> str:
    """What stands in the table of differences, what p is, and how many pictures are left out."""
    lines = [
        "Below each value: how far it is from the baseline, with the 95 % interval of that difference from resampling "
        f"pictures. {AGREED} p: how often a difference as large comes about by luck, if the models are alike and a "
        f"fair coin exchanges their two answers to each picture; raised, because {int(compared['p'].notna().sum()):,} "
        "comparisons are made at once (Holm's method). From p = .05 up, these are tied. The interval minds its own "
        "comparison alone, so it may leave out 0 where these are tied."
    ]
    most = compared[compared["verdict"] != ""].groupby("model", sort=False)["left_out"].max()
    told = ", ".join(f"{model} up to {count:,}" for model, count in most.items() if count)
    if told:
        lines.append(
            f"Only pictures of which both models answered the same questions are compared. Left out against {told}."
        )
    return " ".join(lines)


def in_words(
    compared: pd.DataFrame,
    metrics: Mapping[str, Metric],
    unit: str,
    looks: Looks,
    main: Sequence[str],
    names: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """What the comparison says of each model, as sentences.

    Args:
        compared: What `views.compare.compare` returns.
        metrics: The probe's metrics by name.
        unit: "cosine" or "spread".
        looks: What `charts.styles` returns.
        main: The metrics that get a sentence of their own; the others are counted.
        names: What models are called, where that is not their stored name.
    """
    parts = []
    for model, rows in compared[compared["verdict"] != ""].groupby("model", sort=False):
        base = rows["baseline"].iloc[0]
        marks = mark(looks[model]), mark(looks[base])
        model, base = names.get(model, model), names.get(base, base)
        title = f"{marks[0]} {tag('strong', model)} against {marks[1]} {tag('strong', base)}"
        own = rows.set_index("metric")
        lines = [
            _sentence(own.loc[name], metrics[name], unit, model, base)
            for name in main
            if name in own.index
        ]
        body = "".join(f"<li>{line}</li>" for line in lines)
        told = f"<ul>{body}</ul>" if lines else ""
        parts.append(
            f"<section><p>{title}</p>{told}<p>{html.escape(_count(rows, model))}</p></section>"
        )
    return f'<div class="vp-compared">{"".join(parts)}</div>'


def _sentence(row: pd.Series, metric: Metric, unit: str, model: str, base: str) -> str:
    own = unit_of(metric, unit)
    label = f"<em>{html.escape(metric.label)}</em>"
    values = {model: number(row["value"], own), base: number(row["base"], own)}
    size = signed(abs(row["difference"]), own).removeprefix("+")
    if row["verdict"] == "tied":
        return (
            f"At {label} <strong>these are tied</strong>: {html.escape(values[model])} against "
            f"{html.escape(values[base])}. A difference of {size} may be chance ({chance(row['p_holm'])})."
        )
    first, second = (base, model) if row["verdict"] == "worse" else (model, base)
    verb = "differs from" if row["verdict"] == "differs" else "is better than"
    turned = -1 if row["difference"] < 0 else 1
    ends = sorted((turned * row["low"], turned * row["high"]))
    return (
        f"{tag('strong', first)} {verb} {html.escape(second)} at {label}: {html.escape(values[first])} against "
        f"{html.escape(values[second])}, a difference of {size} (95 % interval {between(*ends, own)})."
    )


def _count(rows: pd.DataFrame, model: str) -> str:
    counts = rows["verdict"].value_counts()
    told = [
        f"{word} at {counts[name]}"
        for name, word in WORDS.items()
        if name != "tied" and counts.get(name, 0)
    ]
    if counts.get("tied", 0):
        told.append(f"tied at {counts['tied']}")
    return f"Of {len(rows)} numbers, {model} is {', '.join(told)}."


def differences(
    compared: pd.DataFrame,
    metrics: Mapping[str, Metric],
    unit: str,
    looks: Looks,
    chances: Mapping[str, float],
    names: Mapping[str, str] = MappingProxyType({}),
) -> tuple[str, list[str]]:
    """A row a metric, a column a model: its value, how far it is from the baseline, and whether that may be chance.

    Args:
        compared: What `views.compare.compare` returns.
        metrics: The probe's metrics by name, in order.
        unit: "cosine" or "spread".
        looks: What `charts.styles` returns.
        chances: What guessing gets on each metric.
        names: What models are called, where that is not their stored name.

    Returns:
        The table; and the labels of metrics of which nothing is known.
    """
    base, models = compared["baseline"].iloc[0], list(dict.fromkeys(compared["model"]))
    titles = [
        f"{mark(looks[model])} {breakable(names.get(model, model))}" for model in (base, *models)
    ]
    titles[0] += f"<br>{tag('small', 'baseline')}"
    head = tag("th", "Metric", scope="col") + "".join(
        f'<th scope="col">{title}</th>' for title in titles
    )
    rows, unknown = [], []
    for name in dict.fromkeys(compared["metric"]):
        metric, own = metrics[name], compared[compared["metric"] == name]
        if own["verdict"].eq("").all():
            unknown.append(metric.label)
            continue
        told = unit_of(metric, unit)
        first = explained(metric, told, chances[name], folded=True)
        value, n = number(own["base_alone"].iloc[0], told), own["base_items"].iloc[0]
        cells = f"<td>{tag('span', value, class_='value')}<br>{tag('small', f'n = {n:,}')}</td>"
        cells += "".join(_cell(row, told) for row in own.itertuples())
        rows.append(f'<tr><th scope="row" class="vp-metric">{first}</th>{cells}</tr>')
    return table("Each model against the baseline", head, rows), unknown


def rows_table(comparison: Comparison, names: Mapping[str, str]) -> str:
    """The rows of the forest plot as a table: shares, differences, intervals and p.

    Args:
        comparison: Of two or more models.
        names: What they are called.
    """
    unit = comparison.unit
    base = names[comparison.baseline.model]
    titles = ("Kind of edit", "Model", "Lies", "Believed", f"By {base}", "Difference", "p", "")
    if comparison.is_movement:
        titles = ("Kind of edit", "Model", "Cases", "Moved", f"{base} moved", "Difference", "p", "")
    head = "".join(tag("th", title, scope="col") for title in titles)
    rows = []
    for row in comparison.rows:
        interval = between(row.low, row.high, unit)
        cells = [
            f"{row.n_lies:,}",
            number(row.value, unit),
            number(row.base, unit),
            signed(row.difference, unit) + (f" ({interval})" if interval else ""),
            chance(row.p_holm),
            WORDS.get(row.verdict, row.verdict) if row.verdict == "tied" else row.verdict,
        ]
        first = value_label(row.subtype) if row.subtype else "All"
        rows.append(
            f"<tr>{tag('th', first, scope='row')}{tag('td', names[row.model])}"
            + "".join(tag("td", cell) for cell in cells)
            + "</tr>"
        )
    return table("Differences from the baseline", head, rows)


def _cell(row: object, unit: str) -> str:
    if math.isnan(row.difference):
        return "<td>-</td>"
    value = tag("span", number(row.value, unit), class_="value")
    word = tag("span", WORDS[row.verdict], class_=f"vp-verdict {CSS.get(row.verdict, 'vp-quiet')}")
    around = between(row.low, row.high, unit)
    size = signed(row.difference, unit) + (f" ({around})" if around else "")
    lines = [size, chance(row.p_holm)]
    if row.left_out:
        lines.append(
            f"n = {row.n_items:,}, {row.left_out:,} left out; baseline there {number(row.base, unit)}"
        )
    small = "".join(f"<br>{tag('small', line)}" for line in lines)
    return f"<td>{value} {word}{small}</td>"
