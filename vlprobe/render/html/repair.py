"""What a fine-tuning changed as HTML: what was gained, what was lost, and the numbers."""

import html
import math
from collections.abc import Mapping, Sequence

import pandas as pd

from vlprobe.render.charts.compare import between, chance, signed
from vlprobe.render.charts.styles import Looks
from vlprobe.render.html.compare import CSS, WORDS
from vlprobe.render.html.elements import breakable, mark, table, tag
from vlprobe.render.html.tables import explained
from vlprobe.render.numbers import interval, number, unit_of
from vlprobe.types import Metric

UNIT = "spread"
Metrics = Mapping[str, Mapping[str, Metric]]  # by probe and name
ROLES = ("Before", "Control", "After")
STEPS = {"loss": "What the loss did", "training": "What training alone did"}
TOLD = {"better": "Gained", "worse": "Lost", "tied": "Moved no more than by chance"}
AGAINST = {"loss": "after − control", "training": "control − before"}


def in_words(moves: pd.DataFrame, metrics: Metrics) -> str:
    """What the loss gained and lost against the control, cost as plain as gain, and what training alone did.

    Args:
        moves: What `views_repair.repair_moves` returns.
        metrics: The probes' metrics.
    """
    parts = []
    for step, title in STEPS.items():
        own = moves[(moves["step"] == step) & (moves["verdict"] != "")]
        lines = "".join(_line(own[own["verdict"] == word], word, metrics) for word in TOLD)
        head = (
            f"<p>{tag('strong', title)} {tag('small', f'({AGAINST[step]})', class_='vp-quiet')}</p>"
        )
        parts.append(f"<section>{head}<ul>{lines}</ul></section>")
    return f'<div class="vp-compared">{"".join(parts)}</div>'


def _line(rows: pd.DataFrame, word: str, metrics: Metrics) -> str:
    told = []
    for row in rows.itertuples():
        metric = metrics[row.probe][row.metric]
        unit = unit_of(metric, UNIT)
        size = ", ".join(
            filter(None, [signed(row.difference, unit), between(row.low, row.high, unit)])
        )
        values = f" {number(row.base, unit)} → {number(row.value, unit)} ({size}{' spreads' if unit == UNIT else ''})"
        told.append(metric.label + ("" if word == "tied" else values))
    body = html.escape("; ".join(told) or "nothing")
    return (
        f'<li><strong class="{CSS.get(word, "")}">{TOLD[word]}</strong> ({len(told)}): {body}.</li>'
    )


def numbers(
    levels: pd.DataFrame,
    moves: pd.DataFrame,
    metrics: Metrics,
    probes: Mapping[str, str],
    models: Sequence[str],
    looks: Looks,
) -> tuple[str, list[str]]:
    """A row a number: its value in the three models, and the two differences with their chance.

    Args:
        levels: What `views_repair.repair_levels` returns.
        moves: What `views_repair.repair_moves` returns.
        metrics: The probes' metrics.
        probes: What the probes are called, in order.
        models: Before, control and after.
        looks: What `charts.styles` returns.

    Returns:
        The table; and the labels of numbers of which nothing is known.
    """
    head = tag("th", "Number", scope="col") + "".join(
        f'<th scope="col">{mark(looks[model])} {role}<br>{tag("small", "value, 95 % interval")}</th>'
        for role, model in zip(ROLES, models, strict=True)
    )
    head += "".join(
        f'<th scope="col">{STEPS[step]}<br>{tag("small", AGAINST[step])}</th>' for step in STEPS
    )
    known = {(row.probe, row.metric, row.model): row for row in levels.itertuples()}
    apart = {(row.probe, row.metric, row.step): row for row in moves.itertuples()}
    rows, unknown = [], []
    for probe, name in probes.items():
        own = moves[moves["probe"] == probe]
        body = []
        for metric in dict.fromkeys(own["metric"]):
            told, unit = metrics[probe][metric], unit_of(metrics[probe][metric], UNIT)
            if own.loc[own["metric"] == metric, "verdict"].eq("").all():
                unknown.append(told.label)
                continue
            n = f"n = {max(known[probe, metric, model].n_items for model in models):,}"
            first = explained(told, unit, told.chance, folded=True) + tag("small", n)
            cells = "".join(_level(known.get((probe, metric, model)), unit) for model in models)
            cells += "".join(_move(apart[probe, metric, step], unit) for step in STEPS)
            body.append(f'<tr><th scope="row" class="vp-metric">{first}</th>{cells}</tr>')
        if body:
            band = f'<th scope="rowgroup" colspan="6"><strong>{html.escape(name)}</strong></th>'
            rows += [f'<tr class="first">{band}</tr>', *body]
    return table("Before, control and after", head, rows), unknown


def _level(row: object | None, unit: str) -> str:
    if row is None or math.isnan(row.value):
        return "<td>-</td>"
    value = tag("span", number(row.value, unit), class_="value")
    return f"<td>{value}<br>{tag('small', interval(row.low, row.high, unit))}</td>"


def _move(row: object, unit: str) -> str:
    if math.isnan(row.difference):
        return "<td>-</td>"
    word = tag(
        "span",
        "tied" if row.verdict == "tied" else WORDS[row.verdict],
        class_=CSS.get(row.verdict, "vp-quiet"),
    )
    around = between(row.low, row.high, unit)
    missing = f"{row.left_out:,} pictures left out" if row.left_out else ""
    small = " · ".join(filter(None, [around, chance(row.p_holm), missing]))
    return f"<td>{tag('span', signed(row.difference, unit), class_='value')} {word}<br>{tag('small', small)}</td>"


def seeds(table_: pd.DataFrame, metrics: Metrics, names: Sequence[str]) -> str:
    """A row a number: what the loss did in each of several trainings, their mean and their spread.

    Args:
        table_: What `views_repair.repair_seeds` returns.
        metrics: The probes' metrics.
        names: What the trainings are called, in order.
    """
    titles = ("Number", *names, "Mean", "Standard deviation")
    rows = []
    for row in table_.dropna(subset=["mean"]).itertuples():
        metric = metrics[row.probe][row.metric]
        unit = unit_of(metric, UNIT)
        told = [signed(value, unit) for value in (*row.differences, row.mean)]
        told.append(signed(row.sd, unit).removeprefix("+"))
        first = explained(metric, unit, metric.chance, folded=True)
        rows.append(
            f'<tr><th scope="row" class="vp-metric">{first}</th>{"".join(tag("td", one) for one in told)}</tr>'
        )
    head = "".join(tag("th", title, scope="col") for title in titles)
    return table("What the loss did, by seed", head, rows)


def held_out(
    table_: pd.DataFrame, weights: Mapping[str, float], meanings: Mapping[str, str]
) -> str:
    """A row a part of the loss, trained or not: on what is held out, at the start and now; empty before the first.

    Args:
        table_: What `views_repair.losses` returns.
        weights: Of the parts that are trained.
        meanings: All parts in words.
    """
    own = table_[table_["side"] == "held out"]
    if own.empty:
        return ""
    titles = ("Part of the loss", "Weight", "At the start", f"At step {own['step'].max():,}")
    head = "".join(tag("th", title, scope="col") for title in titles)
    rows = []
    for part in sorted(own["part"].unique(), key=lambda part: part not in weights):
        known = own[own["part"] == part].sort_values("step")["value"]
        weight = f"{weights[part]:g}" if part in weights else "not trained"
        first = f"{tag('span', part)}<br>{tag('small', meanings[part])}"
        cells = "".join(
            tag("td", text) for text in (weight, f"{known.iloc[0]:.4f}", f"{known.iloc[-1]:.4f}")
        )
        rows.append(f'<tr><th scope="row" class="vp-metric">{first}</th>{cells}</tr>')
    return table("Losses on what is held out", head, rows)


def trainings(rows: Sequence[Sequence[str]]) -> str:
    """A row a training: state, when, what it was tuned from, loss, steps, seed and rate, losses on what is held out."""
    titles = (
        "State",
        "Started",
        "From",
        "Loss",
        "Steps",
        "Seed, rate",
        "Held out: start → now, ↓ lower is better",
    )
    head = "".join(tag("th", title, scope="col") for title in titles)
    body = [
        f"<tr>{tag('th', row[0], scope='row')}{''.join(f'<td>{breakable(text)}</td>' for text in row[1:])}</tr>"
        for row in rows
    ]
    return table("Trainings", head, body)
