"""Charts on Compare: two models' margins, and who did not see the difference in each model's failures."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from vlprobe.render.charts.styles import BLUE, GREEN, ORANGE, PURPLE, Looks
from vlprobe.render.charts.theme import QUIET, finished, named_rows, safe
from vlprobe.views.causes import LABELS

BOTH_FOOLED = "#D13B4A"  # red on white and on near-black


def margins(
    points: pd.DataFrame,
    x_model: str,
    y_model: str,
    styles: Looks,
    subtypes: Mapping[str, str],
    area: Sequence[tuple[float, float]] = (),
    tool: str = "box",
    moved: bool = False,
    *,
    names: Mapping[str, str],
) -> go.Figure:
    """Plot the margins of two models against each other, one mark per case.

    The color and shape of a mark show which of the models is fooled.

    Args:
        points: The table that `views.paired_outcomes.scatter` returns.
        subtypes: Plain words for the stored names of edit types.
        area: Corners of the area that the user marked.
        tool: The selection tool for dragging: "box" or "lasso".
        moved: Whether the margin is how far a score moved. No model can be fooled then, and all marks look the same.
        names: Display names of models.
    """
    figure = go.Figure()
    x, y = points["margin"].to_numpy(), points["other_margin"].to_numpy()
    texts = _hover_texts(points, subtypes)
    x_color, x_symbol = styles[x_model]
    y_color, y_symbol = styles[y_model]
    x_name, y_name = names[x_model], names[y_model]
    groups = [
        ((x > 0) & (y > 0), "neither fooled", QUIET, "circle"),
        ((x <= 0) & (y <= 0), "both fooled", BOTH_FOOLED, "x"),
        ((x <= 0) & (y > 0), f"only {x_name} fooled", x_color, x_symbol),
        ((x > 0) & (y <= 0), f"only {y_name} fooled", y_color, y_symbol),
    ]
    if moved:
        groups = [(np.ones(len(x), dtype=bool), "a case", QUIET, "circle")]
    hover_margins = f"{safe(x_name)}: %{{x:.3f}}<br>{safe(y_name)}: %{{y:.3f}}"
    for mask, label, color, symbol in groups:
        figure.add_scattergl(
            x=x[mask],
            y=y[mask],
            mode="markers",
            marker={"color": color, "symbol": symbol, "size": 7, "opacity": 0.75},
            name=safe(label),
            showlegend=not moved,
            text=texts[mask],
            hovertemplate=f"%{{text}}<br>{hover_margins}<extra></extra>",
        )
    if area:
        path = " L ".join(f"{x},{y}" for x, y in area)
        outline = {"color": QUIET, "width": 2, "dash": "dash"}
        figure.add_shape(
            type="path", path=f"M {path} Z", line=outline, fillcolor="rgba(138, 148, 163, .2)"
        )
    word = "moved (0: not at all)" if moved else "margin"
    zero_line = {"zeroline": True, "zerolinecolor": QUIET, "zerolinewidth": 2}
    figure.update_xaxes(title=f"{safe(x_name)} · {word}", **zero_line)
    figure.update_yaxes(title=f"{safe(y_name)} · {word}", **zero_line)
    finished(figure, 480)
    figure.update_layout(
        dragmode="lasso" if tool == "lasso" else "select", newselection={"line": {"color": QUIET}}
    )
    return figure


def _hover_texts(points: pd.DataFrame, subtypes: Mapping[str, str]) -> np.ndarray:
    """Return the hover text for each mark: the type of edit and the replaced words. Shape (len(points),)."""
    texts = []
    for row in points.to_dict("records"):
        words = ""
        source, target, subtype = row["source"], row["target"], row["subtype"]
        if source or target:
            words = f"{source or '(nothing)'} → {target or '(nothing)'}"
        edit = ": ".join(filter(None, [subtypes.get(subtype, subtype), words]))
        texts.append(safe(edit or f"case {row['case']}"))
    return np.array(texts, dtype=object)


def causes(counts: pd.DataFrame, names: Mapping[str, str]) -> go.Figure:
    """Draw one stacked bar per model: the shares of its failures by who did not see the difference.

    Args:
        counts: The table that `views.causes.counts` returns.
        names: Display names of models.
    """
    by_model = counts.pivot(index="model", columns="cause", values=["n_fooled", "n_cases"])
    by_model = by_model.loc[counts["model"].unique()]
    n_fooled, n_cases = by_model["n_fooled"], by_model["n_cases"]
    figure = go.Figure()
    for cause, color in zip(LABELS, (BLUE, ORANGE, PURPLE, GREEN, QUIET), strict=True):
        if not n_fooled[cause].any():
            continue
        shares = n_fooled[cause] / n_fooled.sum(axis=1).clip(lower=1)
        of_all = n_cases[cause] / n_cases.sum(axis=1)
        figure.add_bar(
            x=shares,
            y=np.arange(len(shares)),
            orientation="h",
            marker_color=color,
            name=LABELS[cause],
            text=[f"{share:.0%}" for share in shares],
            textposition="inside",
            insidetextanchor="middle",
            customdata=[[model, cause] for model in shares.index],
            hovertext=[
                f"<b>{safe(names[model])}</b><br>{LABELS[cause]}<br>{n_fooled.at[model, cause]:,} of "
                f"{n_fooled.loc[model].sum():,} failures ({shares[model]:.1%})<br>"
                f"of all cases: {of_all[model]:.1%}"
                for model in shares.index
            ],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    named_rows(figure, [names[model] for model in n_fooled.index], 26)
    figure.update_xaxes(title="Share of failures", tickformat=".0%", range=[0, 1])
    finished(figure, 130 + 34 * len(n_fooled))
    return figure.update_layout(barmode="stack", bargap=0.35, legend_traceorder="normal")
