"""Plotly charts that are drawn from tables of results."""

from vlprobe.render.charts import compare, dots, papers, points, repair, styles, theme, tradeoff

__all__ = ["compare", "dots", "papers", "points", "repair", "styles", "theme", "tradeoff"]
