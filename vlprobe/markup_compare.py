"""Models side by side as HTML: a sentence for people who want the answer, a table for those who want the numbers."""

import html
import math
from collections.abc import Mapping, Sequence

import pandas as pd

from vlprobe.charts import Looks, number, unit_of
from vlprobe.charts_compare import between, chance, signed
from vlprobe.markup import breakable, mark, table, tag
from vlprobe.markup_tables import ARROWS
from vlprobe.types import Metric

CSS = {"better": "vp-held", "worse": "vp-fooled"}
WORDS = {"better": "better", "worse": "worse", "differs": "different", "tied": "these are tied", "": "unknown"}


def in_words(
    compared: pd.DataFrame, metrics: Mapping[str, Metric], unit: str, looks: Looks, main: Sequence[str]
) -> str:
    """What the comparison says of each model, as sentences.

    Args:
        compared: What `views_compare.compare` returns.
        metrics: The probe's metrics by name.
        unit: "cosine" or "spread".
        looks: What `charts.styles` returns.
        main: The metrics that get a sentence of their own; the others are counted.
    """
    parts = []
    for model, rows in compared[compared["verdict"] != ""].groupby("model", sort=False):
        base = rows["baseline"].iloc[0]
        title = f"{mark(looks[model])} {tag('strong', model)} against {mark(looks[base])} {tag('strong', base)}"
        own = rows.set_index("metric")
        lines = [_sentence(own.loc[name], metrics[name], unit, model, base) for name in main if name in own.index]
        body = "".join(f"<li>{line}</li>" for line in lines)
        told = f"<ul>{body}</ul>" if lines else ""
        parts.append(f"<section><p>{title}</p>{told}<p>{html.escape(_count(rows, model))}</p></section>")
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
    told = [f"{word} at {counts[name]}" for name, word in WORDS.items() if name != "tied" and counts.get(name, 0)]
    if counts.get("tied", 0):
        told.append(f"tied at {counts['tied']}")
    return f"Of {len(rows)} numbers, {model} is {', '.join(told)}."


def differences(
    compared: pd.DataFrame, metrics: Mapping[str, Metric], unit: str, looks: Looks
) -> tuple[str, list[str]]:
    """A row a metric, a column a model: its value, how far it is from the baseline, and whether that may be chance.

    Args:
        compared: What `views_compare.compare` returns.
        metrics: The probe's metrics by name, in order.
        unit: "cosine" or "spread".
        looks: What `charts.styles` returns.

    Returns:
        The table; and the labels of metrics of which nothing is known.
    """
    base, models = compared["baseline"].iloc[0], list(dict.fromkeys(compared["model"]))
    names = [f"{mark(looks[base])} {breakable(base)}<br>{tag('small', 'baseline')}"]
    names += [f"{mark(looks[model])} {breakable(model)}" for model in models]
    head = tag("th", "Metric", scope="col") + "".join(f'<th scope="col">{name}</th>' for name in names)
    rows, unknown = [], []
    for name in dict.fromkeys(compared["metric"]):
        metric, own = metrics[name], compared[compared["metric"] == name]
        if own["verdict"].eq("").all():
            unknown.append(metric.label)
            continue
        told = unit_of(metric, unit)
        first = f"{tag('span', metric.label)}<br>{tag('small', ARROWS[metric.direction])}"
        value = number(own["base"].iloc[0], told)
        cells = f"<td>{tag('span', value, class_='value')}<br>{tag('small', f'n = {own.n_items.max():,}')}</td>"
        cells += "".join(_cell(row, told) for row in own.itertuples())
        rows.append(f'<tr><th scope="row" class="vp-metric">{first}</th>{cells}</tr>')
    return table("Each model against the baseline", head, rows), unknown


def _cell(row: object, unit: str) -> str:
    if math.isnan(row.difference):
        return "<td>-</td>"
    value = tag("span", number(row.value, unit), class_="value")
    word = tag("span", WORDS[row.verdict], class_=f"vp-verdict {CSS.get(row.verdict, 'vp-quiet')}")
    around = between(row.low, row.high, unit)
    size = signed(row.difference, unit) + (f" ({around})" if around else "")
    return f"<td>{value} {word}<br>{tag('small', size)}<br>{tag('small', chance(row.p_holm))}</td>"
