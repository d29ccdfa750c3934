"""Tables of metrics as HTML, with intervals, readable by screen readers."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import pandas as pd

from vlprobe import views
from vlprobe.render import numbers as render_numbers
from vlprobe.render import symbols
from vlprobe.render.charts.styles import Looks
from vlprobe.render.html.elements import column_heads, metric_row, model_label, table, tag
from vlprobe.render.words import INTERVALS, movement_kinds
from vlprobe.types import Metric
from vlprobe.views.paired_tests import Leader
from vlprobe.views.records import EstimateRow, records
from vlprobe.views.runs import QuestionFacts

READING = (
    "Bold: significantly better than every other model. No model is bold if models are tied or "
    "none is above chance; controls and models that failed a check are never bold. Below each "
    "value are its 95 % interval, from resampling pictures, and n, the number of pictures. "
    f"{INTERVALS} Tied: cases in which the right and the wrong candidate have the same score; "
    "rates count them as wrong."
)
ARROWS = {"up": "↑", "down": "↓", "none": ""}


def metrics(probe: str) -> dict[str, Metric]:
    """Return a probe's metrics by name. If several metrics have the same label, the kind of question is added to it."""
    by_name = views.runs.metrics(probe)
    labels = [metric.label for metric in by_name.values()]
    kinds = views.runs.kinds(probe)
    return {
        name: replace(metric, label=f"{kinds[metric.kinds[0]].partition(':')[0]}: {metric.label}")
        if labels.count(metric.label) > 1
        else metric
        for name, metric in by_name.items()
    }


def scale_text(metric: Metric, unit: str, chance: float) -> str:
    """Describe a metric's scale in one line: the unit, the better direction, and the value for guessing.

    >>> from vlprobe import registry
    >>> rates = [metric for metric in registry.load_probe("lgip").metrics if metric.unit == "rate"]
    >>> scale_text(next(rate for rate in rates if rate.name == "positive_rate"), "rate", 0.5)
    'in % · ↑ higher is better · guessing gets 50 %'
    """
    unit_text = {"rate": "in %", "spread": "in spreads"}.get(unit, unit)
    direction = f"{ARROWS[metric.direction]} {render_numbers.WAYS[metric.direction]}".strip()
    chance_text = f"{100 * chance:.3g} %" if unit == "rate" else f"{chance:g}"
    guessing = "" if math.isnan(chance) else f"guessing gets {chance_text}"
    return " · ".join(filter(None, (unit_text, direction, guessing)))


def explained(metric: Metric, unit: str, chance: float, folded: bool) -> str:
    """Return the row heading for a metric: name, scale (see `scale_text`), meaning, source, and a worked example.

    Args:
        unit: The unit that `render.numbers.unit_of` returns for the metric.
        chance: The value for guessing, or NaN if it is not defined.
        folded: Whether the meaning is hidden until the reader opens it.
    """
    line = f" Example: {symbols.example(metric)}." if symbols.example(metric) else ""
    meaning = tag("small", f"{metric.help} Source: {metric.source}.{line}")
    meaning = (
        f"<details><summary><small>What it is</small></summary>{meaning}</details>"
        if folded
        else f"<br>{meaning}"
    )
    scale = tag("small", scale_text(metric, unit, chance))
    return f"<span>{symbols.heading(metric, is_html=True)}</span><br>{scale}{meaning}"


def headline(
    numbers: pd.DataFrame,
    metrics: Mapping[str, Metric],
    unit: str,
    models: Mapping[str, str],
    styles: Looks,
    chances: Mapping[str, float],
    leaders: Mapping[str, Leader] = MappingProxyType({}),
    folded: bool = False,
) -> tuple[str, list[str]]:
    """Return a table with one row per metric and one column per model: value, 95 % interval, n, and ties.

    Args:
        numbers: Estimates that `views.estimates.estimates` returns for the whole question set.
        unit: "cosine" or "spread".
        models: Display names of models by their stored names, in column order.
        leaders: The result of `views.paired_tests.leaders`. A leading model is set in bold.
        folded: Whether the meaning of each metric is hidden, as in `explained`.

    Returns:
        The table, and the labels of metrics for which no model has a value.
    """
    estimates = {(row.model, row.metric): row for row in records(EstimateRow, numbers)}
    head = tag("th", "Metric", scope="col")
    head += "".join(
        f'<th scope="col">{model_label(styles[model], name)}</th>' for model, name in models.items()
    )
    rows, unmeasured = [], []
    for name, metric in metrics.items():
        if not any(row.n_items for row in estimates.values() if row.metric == name):
            unmeasured.append(metric.label)
            continue
        value_unit = render_numbers.unit_of(metric, unit)
        leader = leaders.get(name)
        best = leader.models[0] if leader and leader.state == "leads" else ""
        has_ties = not set(metric.kinds) <= movement_kinds()
        cells = "".join(
            _cell(estimates.get((model, name)), value_unit, model == best, has_ties)
            for model in models
        )
        rows.append(metric_row(explained(metric, value_unit, chances[name], folded), cells))
    return table("Headline numbers of each model", head, rows), unmeasured


def _cell(estimate: EstimateRow | None, unit: str, is_best: bool, has_ties: bool) -> str:
    if estimate is None or math.isnan(estimate.value):
        return f"<td>-<br><small>n = {estimate.n_items if estimate else 0:,}</small></td>"
    value = tag(
        "strong" if is_best else "span", render_numbers.number(estimate.value, unit), class_="value"
    )
    counts = f"n = {estimate.n_items:,}"
    if estimate.ties and has_ties:
        counts += f" · {estimate.ties:,} tied"
    interval = render_numbers.interval(estimate.low, estimate.high, unit)
    small = f"{interval or f'- ({render_numbers.TOO_FEW})'}<br>{counts}"
    return f"<td>{value}<br><small>{small}</small></td>"


def facts(questions: QuestionFacts) -> str:
    """Render the facts about a question set: dropped edits with reasons, defects in the dataset,
    and notes.

    Args:
        questions: The facts that `views.runs.facts` returns.
    """
    dropped = sorted(questions["dropped"].items(), key=lambda pair: -pair[1])
    defects = [
        (defect["meaning"], f"{defect['count']:,} of {defect['of']:,}")
        for defect in questions["findings"]
    ]
    tables = [
        _counts(
            "Excluded, because it would not be a fair question",
            [(reason, f"{count:,}") for reason, count in dropped],
        ),
        _counts("Problems found in the data; keep them in mind when you read scores", defects),
    ]
    return "".join([*tables, *(tag("p", note) for note in questions["notes"])])


def _counts(title: str, rows: Sequence[tuple[str, str]]) -> str:
    body = [f"<tr>{tag('th', text, scope='row')}{tag('td', count)}</tr>" for text, count in rows]
    return table(title, column_heads((title, "Times")), body or ["<tr><td>Nothing</td></tr>"])
