"""Map of pictures or captions in two dimensions, colored by how often they fool models."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from vlprobe.render.charts.theme import HIGH, LOW, QUIET, finished, wrapped

LETTERS = 60  # of a line in a tooltip


def point_map(
    places: np.ndarray,
    values: np.ndarray,
    texts: Sequence[str],
    title: str,
    most: float,
    inside: np.ndarray | None = None,
    sizes: np.ndarray | None = None,
) -> go.Figure:
    """Plot one mark per picture, caption or hexagon. A mark's number is its `customdata`.

    Args:
        places: Shape (n, 2).
        values: Values for the color scale from 0 to `most`, shape (n,); marks with NaN are gray.
        texts: Text of each mark's tooltip.
        title: Title of the color scale.
        most: Value of the strongest color. Up to 1, the values are shares.
        inside: Whether each mark is in the selected region; None if none is selected.
        sizes: Number of points in each hexagon, or None if each mark is one point.
    """
    figure = go.Figure()
    known = ~np.isnan(values)
    diameter = np.full(len(places), 9.0) if sizes is None else 7 + 9 * np.sqrt(sizes / sizes.max())
    scale = {"colorscale": [[0, LOW], [1, HIGH]], "cmin": 0, "cmax": most, "showscale": True}
    bar = {"title": {"text": title, "side": "right"}, "thickness": 10, "len": 0.6}
    bar["tickformat"] = ".0%" if most <= 1 else ""
    if most < 1:
        bar |= {"tickvals": [0, most / 2, most], "ticktext": [f"{n:.0%}" for n in (0, most / 2)]}
        bar["ticktext"].append(f"{most:.0%} or more")
    for group, colors in ((known, scale | {"colorbar": bar}), (~known, {})):
        numbers = np.flatnonzero(group)
        # The highest values are drawn last, above the others
        numbers = numbers[np.argsort(values[numbers], kind="stable")]
        line = scale | {"colorscale": [[0, QUIET], [1, HIGH]], "color": values[numbers]}
        del line["showscale"]
        figure.add_scattergl(
            x=places[numbers, 0],
            y=places[numbers, 1],
            mode="markers",
            marker={
                "color": values[numbers] if colors else QUIET,
                "symbol": "circle" if sizes is None else "hexagon",
                "size": diameter[numbers],
                "opacity": 1,  # by default, marks of several sizes are paler than the color bar
                "line": {"width": 1, **(line if colors else {"color": QUIET})},
                **colors,
            },
            # Lists: the browser sends a row of an array to the server as {"0": number}
            customdata=numbers[:, None].tolist(),
            text=[wrapped(texts[int(number)], LETTERS) for number in numbers],
            hovertemplate="%{text}<extra></extra>",
            selectedpoints=None if inside is None else np.flatnonzero(inside[numbers]).tolist(),
            unselected={"marker": {"opacity": 0.25}},
            showlegend=False,
        )
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
    finished(figure, 480)
    return figure.update_layout(dragmode="lasso", newselection={"line": {"color": QUIET}})
