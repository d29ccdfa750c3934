"""Charts on a page, with readable text colors and alternative text."""

from collections.abc import Callable, Sequence
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from vlprobe.dashboard.export import draw_menu
from vlprobe.dashboard.state import query, quiet, store, view
from vlprobe.render import charts
from vlprobe.storage import display_names
from vlprobe.storage.memory import SingleFlightCache
from vlprobe.storage.store import Store

MOST_IN_LEGEND = 14  # maximum number of names; more would leave no room for the figure
ARMS = "Lines are 95 % intervals; where they overlap, the order may be due to chance. "

TOOLBAR = [["lasso2d", "select2d"], ["zoomIn2d", "zoomOut2d", "resetScale2d"], ["toImage"]]
FigureMaker = Callable[[], go.Figure]
_figures = SingleFlightCache(
    100
)  # 100 kB each; saves 30 ms (Breakdown) to 180 ms (Rankings) when a page reruns


def chart(
    figure: go.Figure | FigureMaker,
    key: str,
    alt: str,
    clickable: bool = False,
    printed: FigureMaker | None = None,
    **menu: Any,
) -> list[dict]:
    """Draw a figure on the page in colors that fit the theme, with a description for screen readers.

    Args:
        figure: The figure, or a function that makes it. The function's result is cached, so it may depend only on
            stored results and the URL.
        key: Key of the figure, unique across all pages.
        alt: A description of the figure for screen readers.
        clickable: Whether users can click the points.
        printed: A function that makes the figure for the *Export* menu, if it differs.
        menu: Other arguments of `draw_menu`.

    Returns:
        The points that were clicked, if the figure is `clickable`.
    """
    if isinstance(figure, go.Figure):
        ready, is_crowded = _finished(figure)
    else:
        ready, is_crowded = _figures.get((key, *_circumstances()), lambda: _finished(figure()))
    if is_crowded:
        quiet("There are too many models for a legend. Hover over a mark to see its model.")
    config = {"displayModeBar": False, "scrollZoom": False}
    selects: dict[str, Any] = {"on_select": "rerun", "selection_mode": "points"}
    selects = selects if clickable else {}
    event: Any = st.plotly_chart(ready, key=key, alt=alt, config=config, **selects)
    draw_menu(key, printed or ready, caption=alt, **menu)
    return event["selection"]["points"] if clickable else []


def selectable_chart(
    figure: FigureMaker,
    key: str,
    alt: str,
    on_select: Callable[[], None],
    carried: str = "",
    printed: FigureMaker | None = None,
    has_tools: bool = True,
    **menu: Any,
) -> go.Figure:
    """Draw a figure and return it. Users can select marks by a click and, with the toolbar, by a box or a lasso.

    Args:
        figure: A function that makes the figure. Its result is cached, so it may depend only on stored results,
            the URL and `carried`.
        key: Key of the figure, unique across all pages; pass it to `selected` to read the selection.
        alt: A description of the figure for screen readers.
        on_select: Function that is called after a selection, before the page is drawn again.
        carried: Any other values that the figure depends on, such as a choice on another page that is not in the URL.
        printed: A function that makes the figure for the *Export* menu, if it differs.
        has_tools: Whether there is a toolbar to zoom and select.
        menu: Other arguments of `draw_menu`.
    """
    ready, _ = _figures.get((key, carried, *_circumstances()), lambda: _finished(figure()))
    config = {
        "displayModeBar": has_tools,
        "displaylogo": False,
        "scrollZoom": False,
        "modeBarButtons": TOOLBAR,
        "toImageButtonOptions": {"format": "svg", "filename": f"vlprobe_{key}"},
    }
    modes = ("points", "box", "lasso") if has_tools else "points"
    selects: Any = {"on_select": on_select, "selection_mode": modes}
    st.plotly_chart(ready, key=key, alt=alt, config=config, **selects)
    draw_menu(key, printed or ready, **menu)
    return ready


def selected(key: str) -> tuple[list[Sequence], bool]:
    """Return the `customdata` of the marks selected in a `selectable_chart`, and whether a box or lasso was used."""
    selection = st.session_state[key]["selection"]
    marks = [point["customdata"] for point in selection["points"] if point.get("customdata")]
    return marks, bool(selection["box"] or selection["lasso"])


def _circumstances() -> tuple[object, ...]:
    """Return the values that a cached figure depends on: stored results, display names, the URL and the theme."""
    names_version = display_names.version(store())
    return store().address, view(Store.version), names_version, st.context.theme.type, query()


def _finished(figure: go.Figure) -> tuple[go.Figure, bool]:
    """Apply the page's theme to a figure. Returns the figure, and whether it has too many names for a legend."""
    inked(figure)
    traces: Any = figure.data
    names = {trace.name for trace in traces if trace.name and trace.showlegend is not False}
    is_crowded = len(names) > MOST_IN_LEGEND and figure["layout"]["showlegend"] is not False
    if is_crowded:
        figure.update_layout(showlegend=False, margin_t=20)
    return figure, is_crowded


def inked(figure: go.Figure) -> go.Figure:
    """Set a figure's text colors so that they are readable in the page's theme."""
    return charts.theme.inked(figure, st.context.theme.type == "dark")
