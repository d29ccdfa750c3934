"""Render the effects of fine-tuning: what got better, what got worse, and the table of metrics."""

import html
import math
from collections.abc import Mapping, Sequence

import pandas as pd

from vlprobe.render.charts.styles import Looks
from vlprobe.render.html.compare import CSS, WORDS
from vlprobe.render.html.elements import column_heads, mark, metric_row, table, tag
from vlprobe.render.html.tables import explained
from vlprobe.render.numbers import TOO_FEW, between, chance, interval, number, signed, unit_of
from vlprobe.types import Metric
from vlprobe.views.records import LevelRow, MoveRow, records

UNIT = "spread"
Metrics = Mapping[str, Mapping[str, Metric]]  # by probe and name
ROLES = ("Before", "Control", "After")
STEPS = {"loss": "Effect of the repair", "training": "Effect of training without the repair"}
OUTCOMES = {"better": "Gained", "worse": "Lost", "tied": "No clear change"}
AGAINST = {"loss": "after − control", "training": "control − before"}


def in_words(moves: pd.DataFrame, metrics: Metrics) -> str:
    """List the metrics that the repaired model gained and lost compared with the control, and the effect of training
    alone.

    Args:
        moves: The table that `views.repair.repair_moves` returns.
    """
    move_rows = records(MoveRow, moves)
    sections = []
    for step, title in STEPS.items():
        items = ""
        for verdict in OUTCOMES:
            rows = [row for row in move_rows if (row.step, row.verdict) == (step, verdict)]
            items += _item(rows, verdict, metrics)
        against = tag("small", f"({AGAINST[step]})", class_="vp-quiet")
        sections.append(
            f"<section><p>{tag('strong', title)} {against}</p><ul>{items}</ul></section>"
        )
    return f'<div class="vp-compared">{"".join(sections)}</div>'


def _item(rows: Sequence[MoveRow], verdict: str, metrics: Metrics) -> str:
    """Render a list item with all metrics that have the same verdict, with values for metrics that changed."""
    texts = []
    for row in rows:
        metric = metrics[row.probe][row.metric]
        if verdict == "tied":
            texts.append(metric.label)
            continue
        unit = unit_of(metric, UNIT)
        bounds = between(row.low, row.high, unit)
        size = ", ".join(filter(None, [signed(row.difference, unit), bounds]))
        suffix = " spreads" if unit == UNIT else ""
        values = f"{number(row.base, unit)} → {number(row.value, unit)}"
        texts.append(f"{metric.label} {values} ({size}{suffix})")
    body = html.escape("; ".join(texts) or "nothing")
    outcome = f'<strong class="{CSS.get(verdict, "")}">{OUTCOMES[verdict]}</strong>'
    return f"<li>{outcome} ({len(texts)}): {body}.</li>"


def numbers(
    levels: pd.DataFrame,
    moves: pd.DataFrame,
    metrics: Metrics,
    probes: Mapping[str, str],
    models: Sequence[str],
    styles: Looks,
) -> tuple[str, list[str]]:
    """Render a table with one row per metric: the values for the three models, and the two differences with p-values.

    Args:
        levels: The table that `views.repair.repair_levels` returns.
        moves: The table that `views.repair.repair_moves` returns.
        probes: Display names of the probes, in order.
        models: The three models: before, control and after.

    Returns:
        The table, and the labels of metrics for which no value is known.
    """
    level_of = {(row.probe, row.metric, row.model): row for row in records(LevelRow, levels)}
    move_rows = records(MoveRow, moves)
    move_of = {(row.probe, row.metric, row.step): row for row in move_rows}
    rows, unknown = [], []
    for probe, title in probes.items():
        body = []
        for name in dict.fromkeys(row.metric for row in move_rows if row.probe == probe):
            metric = metrics[probe][name]
            steps = [row for row in move_rows if (row.probe, row.metric) == (probe, name)]
            if not any(row.verdict for row in steps):
                unknown.append(metric.label)
                continue
            unit = unit_of(metric, UNIT)
            n_items = max(level_of[probe, name, model].n_items for model in models)
            heading = explained(metric, unit, metric.chance, folded=True)
            heading += tag("small", f"n = {n_items:,}")
            cells = "".join(_level(level_of.get((probe, name, model)), unit) for model in models)
            cells += "".join(_move(move_of[probe, name, step], unit) for step in STEPS)
            body.append(metric_row(heading, cells))
        if body:
            band = f'<th scope="rowgroup" colspan="6"><strong>{html.escape(title)}</strong></th>'
            rows += [f'<tr class="first">{band}</tr>', *body]
    titles = [
        f"{mark(styles[model])} {role}<br>{tag('small', 'value, 95 % interval')}"
        for role, model in zip(ROLES, models, strict=True)
    ]
    titles += [f"{title}<br>{tag('small', AGAINST[step])}" for step, title in STEPS.items()]
    head = tag("th", "Number", scope="col")
    head += "".join(f'<th scope="col">{title}</th>' for title in titles)
    return table("Before, control and after", head, rows), unknown


def _level(row: LevelRow | None, unit: str) -> str:
    if row is None or math.isnan(row.value):
        return "<td>-</td>"
    value = tag("span", number(row.value, unit), class_="value")
    bounds = interval(row.low, row.high, unit) or f"- ({TOO_FEW})"
    return f"<td>{value}<br>{tag('small', bounds)}</td>"


def _move(row: MoveRow, unit: str) -> str:
    if math.isnan(row.difference):
        return "<td>-</td>"
    text = "tied" if row.verdict == "tied" else WORDS[row.verdict]
    word = tag("span", text, class_=CSS.get(row.verdict, "vp-quiet"))
    left_out = f"{row.left_out:,} pictures left out" if row.left_out else ""
    bounds = between(row.low, row.high, unit) or f"- ({TOO_FEW})"
    remarks = [bounds, chance(row.p_holm), left_out]
    small = tag("small", " · ".join(filter(None, remarks)))
    value = tag("span", signed(row.difference, unit), class_="value")
    return f"<td>{value} {word}<br>{small}</td>"


def seeds(differences: pd.DataFrame, metrics: Metrics, names: Sequence[str]) -> str:
    """Render a table with one row per metric: the effect of the repair for each seed, the mean, and the standard
    deviation.

    Args:
        differences: The table that `views.repair.repair_seeds` returns.
        names: Names of the training runs, in order.
    """
    titles = ("Number", *names, "Mean", "Standard deviation")
    rows = []
    for row in differences.to_dict("records"):
        if math.isnan(row["mean"]):
            continue
        metric = metrics[row["probe"]][row["metric"]]
        unit = unit_of(metric, UNIT)
        texts = [signed(value, unit) for value in (*row["differences"], row["mean"])]
        texts.append(signed(row["sd"], unit).removeprefix("+"))
        heading = explained(metric, unit, metric.chance, folded=True)
        rows.append(metric_row(heading, "".join(tag("td", text) for text in texts)))
    return table("Effect of the repair, by seed", column_heads(titles), rows)
