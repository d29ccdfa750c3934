"""A figure on a page: its letters dark enough to read, its words for those who cannot see it."""

import plotly.graph_objects as go
import streamlit as st

from vlprobe.dashboard.state import quiet
from vlprobe.render import charts

MOST_IN_LEGEND = 14  # names; more leave no room for the figure
ARMS = "Arms are 95 % intervals: where they overlap, the order may be chance. "


def chart(figure: go.Figure, key: str, alt: str, clickable: bool = False) -> list[dict]:
    """A figure in the page's theme, its letters dark enough to read; `alt` says it to those who
    cannot see it.

    Returns:
        The points that were clicked, where they are `clickable`.
    """
    inked(figure)
    names: set[str] = set()

    def collect(trace: go.Scatter) -> None:
        if trace.name and trace.showlegend is not False:
            names.add(str(trace.name))

    figure.for_each_trace(collect)
    is_crowded = len(names) > MOST_IN_LEGEND and figure["layout"]["showlegend"] is not False
    if is_crowded:
        figure.update_layout(showlegend=False, margin_t=20)
        quiet("Too many models for a legend: point at a mark to read which one it is.")
    config = {"displayModeBar": False, "scrollZoom": False}
    if not clickable:
        st.plotly_chart(figure, key=key, alt=alt, config=config)
        return []
    event = st.plotly_chart(
        figure, key=key, alt=alt, config=config, on_select="rerun", selection_mode="points"
    )
    return event["selection"]["points"]


def inked(figure: go.Figure) -> go.Figure:
    """The figure with letters dark enough to read in the page's theme."""
    ink = "#d5dae2" if st.context.theme.type == "dark" else "#3a4454"
    if st.context.theme.type == "dark":
        charts.theme.on_dark(figure)
    figure.update_layout(font_color=ink, legend_font_color=ink)
    figure.update_xaxes(tickfont_color=ink, title_font_color=ink)
    figure.update_yaxes(tickfont_color=ink, title_font_color=ink)
    return figure
