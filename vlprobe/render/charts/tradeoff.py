"""Line charts of a metric over increasing steps, and marks for published values next to measured ones."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from vlprobe.render.charts.styles import DISTINCT, Looks, dash, emphasised
from vlprobe.render.charts.theme import (
    QUIET,
    axis,
    finished,
    guessing,
    mean_text,
    row_arms,
    safe,
    ticks,
    wrapped,
)
from vlprobe.render.numbers import number, unit_of
from vlprobe.render.words import value_label
from vlprobe.types import Metric
from vlprobe.views.filter import SEVERITIES, STRENGTHS
from vlprobe.views.records import SliceRow, records

FAINT = 0.45  # opacity of thin lines


def curves(
    table: pd.DataFrame,
    metric: Metric,
    unit: str,
    styles: Looks,
    steps: Mapping[str, str],
    across: str,
    printed: pd.DataFrame | None = None,
    chosen: str = "",
) -> go.Figure:
    """Draw one line per model for a metric over increasing steps, such as strengths, with 95 %
    intervals.

    With more than DISTINCT models, all lines except the chosen model's are thin and gray, without
    intervals.

    Args:
        table: Columns model, slice, value, low, high, n_items, n_cases.
        unit: "cosine" or "spread".
        steps: Slices from left to right, with their display names.
        across: Title of the x axis, which names the quantity that increases.
        printed: Published values for other models, drawn as hollow marks. Columns model, slice,
            value.
        chosen: The model that the page is about.
    """
    figure = go.Figure()
    positions = {name: float(index) for index, name in enumerate(steps)}
    value_unit = unit_of(metric, unit)
    if printed is not None:
        _printed_curves(figure, printed, steps, value_unit)
    drawn_models = set(table["model"])
    models = [model for model in styles if model in drawn_models]
    styles = emphasised({model: styles[model] for model in models}, {chosen})
    is_crowded = len(models) > DISTINCT
    spacing = 0.0 if is_crowded else 0.05  # share of the distance between two steps
    for index, model in sorted(enumerate(models), key=lambda pair: pair[1] == chosen):
        is_faint = is_crowded and model != chosen
        is_drawn = table["slice"].isin(list(positions)) & table["value"].notna()
        rows = records(SliceRow, table.loc[(table["model"] == model) & is_drawn])
        rows.sort(key=lambda row: positions[row.slice])
        color, symbol = styles[model]
        offset = (index - (len(models) - 1) / 2) * spacing
        line_dash = "solid" if is_faint else dash(styles[model])
        figure.add_scatter(
            x=np.array([positions[row.slice] + offset for row in rows]),
            y=np.array([row.value for row in rows]),
            error_y=None if is_faint else row_arms(rows, color),
            mode="lines+markers",
            opacity=FAINT if is_faint else 1.0,
            line={"color": color, "width": 1 if is_faint else 2, "dash": line_dash},
            marker={"color": color, "symbol": symbol, "size": 5 if is_faint else 11},
            name=safe(model),
            text=[
                f"<b>{safe(model)}</b><br>{safe(steps[row.slice])}: {mean_text(row, value_unit)}"
                for row in rows
            ],
            customdata=[[model, row.slice] for row in rows],
            hovertemplate="%{text}<extra></extra>",
        )
    if not math.isnan(metric.chance):
        guessing(figure, metric.chance)
    figure.update_xaxes(
        title=across,
        tickvals=list(positions.values()),
        ticktext=[wrapped(text, 16) for text in steps.values()],
        range=[-0.3, len(steps) - 0.7],
        showgrid=False,
        zeroline=False,
    )
    figure.update_yaxes(title=axis(metric, unit), tickformat=ticks(metric), zeroline=False)
    return finished(figure, 360)


def by_strength(
    table: pd.DataFrame,
    metric: Metric,
    unit: str,
    looks: Looks,
    names: Mapping[str, str],
    printed: pd.DataFrame | None = None,
    chosen: str = "",
) -> go.Figure:
    """Draw the `curves` of a metric by the strength of flips or severity of changes. `table` has all metrics."""
    table = table.loc[table["metric"] == metric.name].replace({"model": dict(names)})
    every, present = (*STRENGTHS, *SEVERITIES), set(table["slice"])
    steps = {name: value_label(name) for name in every if name in present}
    styles = {name: looks[model] for model, name in names.items()}
    return curves(table, metric, unit, styles, steps, "Strength of the change", printed, chosen)


def _printed_curves(
    figure: go.Figure, printed: pd.DataFrame, steps: Mapping[str, str], unit: str
) -> None:
    """Draw published values over the steps, with one thin line and hollow marks per model."""
    order = list(steps)
    drawn = printed.loc[printed["slice"].isin(order)]
    drawn = drawn.assign(place=drawn["slice"].map(order.index)).sort_values("place", kind="stable")
    for index, model in enumerate(dict.fromkeys(printed["model"])):
        curve = drawn.loc[drawn["model"] == model]
        figure.add_scatter(
            x=curve["place"].to_numpy(np.float64),
            y=curve["value"].to_numpy(),
            mode="lines+markers",
            line={"color": QUIET, "width": 1},
            marker={"symbol": "circle-open", "size": 8, "color": QUIET, "line": {"width": 1.5}},
            opacity=0.75,
            name="published",
            legendgroup="published",
            showlegend=index == 0,
            text=[
                f"<b>{safe(model)}</b> (published)<br>{safe(steps[name])}: {number(value, unit)}"
                for name, value in zip(curve["slice"], curve["value"], strict=True)
            ],
            hovertemplate="%{text}<extra></extra>",
        )


def beside(figure: go.Figure, printed: pd.DataFrame, rows: Sequence[str], unit: str) -> None:
    """Draw hollow marks for published values in each row of a figure from `charts.dots`, below the
    other marks.

    Args:
        figure: The figure that `dots` returned.
        printed: Columns model, slice, value.
        rows: The slices in the figure, top to bottom.
        unit: Unit of the values, as in `render.numbers.number`.
    """
    drawn = printed.loc[printed["slice"].isin(list(rows))]
    figure.add_scatter(
        x=drawn["value"].to_numpy(),
        y=[rows.index(name) + 0.41 for name in drawn["slice"]],
        mode="markers",
        marker={"symbol": "circle-open", "size": 9, "color": QUIET, "line": {"width": 1.5}},
        name="published",
        text=[
            f"<b>{safe(model)}</b> (published)<br>{number(value, unit)}"
            for model, value in zip(drawn["model"], drawn["value"], strict=True)
        ],
        hovertemplate="%{text}<extra></extra>",
    )
