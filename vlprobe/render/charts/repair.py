"""Charts about fine-tuning: metrics before, in the control and after fine-tuning, and losses and cases learned by
training step.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from vlprobe.render.charts.styles import Looks
from vlprobe.render.charts.theme import QUIET, finished, named_rows, row_arms, safe, wrapped
from vlprobe.render.numbers import with_interval
from vlprobe.views.records import LevelRow, records

TRAINING, HELD_OUT = "#0072B2", "#D55E00"
LEARNED, FORGOTTEN = TRAINING, HELD_OUT
Rows = Mapping[tuple[str, str], tuple[str, str]]  # (probe, metric) to (label, unit)


def dumbbells(
    levels: pd.DataFrame, rows: Rows, names: Mapping[str, str], styles: Looks
) -> go.Figure:
    """Draw one row per metric, with the values before, in the control and after, joined by a line, and 95 % intervals.

    Args:
        levels: The table that `views.repair.repair_levels` returns.
        rows: The rows to draw, from top to bottom. All must have the same unit.
        names: The three models (before, control, after), with their names for the legend.
    """
    heights = {pair: height for height, pair in enumerate(rows)}
    offsets = {model: 0.24 * (index - 1) for index, model in enumerate(names)}
    drawn = [
        level
        for level in records(LevelRow, levels)
        if (level.probe, level.metric) in heights and not math.isnan(level.value)
    ]
    figure = go.Figure()
    joins: list[tuple[float | None, float | None]] = []
    for pair, height in heights.items():
        ends = [
            (level.value, height + offsets[level.model])
            for level in drawn
            if (level.probe, level.metric) == pair
        ]
        if ends:
            joins += [*sorted(ends, key=lambda end: end[1]), (None, None)]
    figure.add_scatter(
        x=[x for x, _ in joins],
        y=[y for _, y in joins],
        mode="lines",
        line={"color": QUIET, "width": 1.5},
        hoverinfo="skip",
        showlegend=False,
    )
    for model, name in names.items():
        marks = [level for level in drawn if level.model == model]
        color, symbol = styles[model]
        figure.add_scatter(
            x=np.array([level.value for level in marks]),
            y=np.array([heights[level.probe, level.metric] + offsets[model] for level in marks]),
            error_x=row_arms(marks, color),
            mode="markers",
            marker={"color": color, "symbol": symbol, "size": 10},
            name=safe(name),
            text=[_hover(level, *rows[level.probe, level.metric], name) for level in marks],
            hovertemplate="%{text}<extra></extra>",
        )
    named_rows(figure, [label for label, _ in rows.values()], 26)
    unit = next(iter(rows.values()))[1]
    figure.update_xaxes(title="" if unit == "rate" else "In spreads", zeroline=False)
    figure.update_xaxes(tickformat=".4~%" if unit == "rate" else "")
    return finished(figure, 110 + 54 * len(rows))


def _hover(level: LevelRow, label: str, unit: str, name: str) -> str:
    value = with_interval(level.value, level.low, level.high, unit)
    return f"<b>{safe(name)}</b><br>{label}<br>{value}<br>{level.n_items:,} pictures"


def losses(table: pd.DataFrame, terms: Mapping[str, str], n_steps: int) -> go.Figure:
    """Draw one panel per loss term, each with its own scale: a line for training batches, and marks for held-out data.

    Args:
        table: The table that `views.repair.loss_curves` returns.
        terms: The loss terms to draw, from top to bottom, with their display names.
        n_steps: Total number of training steps.
    """
    figure = make_subplots(
        rows=len(terms), cols=1, shared_xaxes=True, vertical_spacing=0.28 / len(terms)
    )
    for panel, (term, title) in enumerate(terms.items(), 1):
        for side, color, mode in (
            ("training", TRAINING, "lines"),
            ("held out", HELD_OUT, "lines+markers"),
        ):
            logged = table.loc[(table["part"] == term) & (table["side"] == side)]
            figure.add_scatter(
                x=logged["step"],
                y=logged["value"],
                mode=mode,
                line={"color": color, "width": 1.5 if mode == "lines" else 2.5},
                marker={"symbol": "diamond", "size": 9},
                name="each training batch" if side == "training" else "held out",
                legendgroup=side,
                showlegend=panel == 1,
                hovertemplate=f"step %{{x}}, {side}: %{{y:.4f}}<extra></extra>",
                row=panel,
                col=1,
            )
        place = {"x": 0, "y": 1.02, "xref": "x domain", "yref": "y domain", "row": panel, "col": 1}
        around = {"xanchor": "left", "yanchor": "bottom", "showarrow": False, "align": "left"}
        figure.add_annotation(text=wrapped(title, 44), **place, **around)
    figure.update_xaxes(range=[-0.02 * n_steps, 1.02 * n_steps], zeroline=False)
    figure.update_xaxes(title="Step", row=len(terms), col=1)
    figure.update_yaxes(rangemode="tozero", zeroline=False, nticks=5)
    finished(figure, 110 + 170 * len(terms))
    return figure.update_layout(legend={"y": 1, "yref": "container", "yanchor": "top"}, margin_t=70)


def learned(table: pd.DataFrame, steps: Sequence[int]) -> go.Figure:
    """Draw how many cases a model learns at each training step, and below the line, how many it forgets.

    Args:
        table: The table that `views.training_steps.outcomes_by_step` returns.
        steps: The training steps, ascending.
    """
    figure = go.Figure()
    for outcome, color, sign in (("learned", LEARNED, 1), ("forgotten", FORGOTTEN, -1)):
        at_step = table.loc[table["outcome"] == outcome, "step"].value_counts()
        counts = [int(at_step.get(step, 0)) for step in steps]
        figure.add_bar(
            x=[f"{step:,}" for step in steps],
            y=[sign * count for count in counts],
            marker_color=color,
            name=outcome,
            text=[f"{count:,}" if count else "" for count in counts],
            hovertext=[
                f"Step {step:,}: {n:,} {outcome}" for step, n in zip(steps, counts, strict=True)
            ],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    figure.update_xaxes(title="Training step", type="category")
    figure.update_yaxes(title="Cases", zeroline=True, zerolinecolor=QUIET, showticklabels=False)
    return finished(figure, 300).update_layout(barmode="relative", bargap=0.4)
