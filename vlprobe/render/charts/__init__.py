"""Plotly figures drawn from tables."""

from vlprobe.render.charts import compare, dots, papers, repair, styles, theme, tradeoff

__all__ = ["compare", "dots", "papers", "repair", "styles", "theme", "tradeoff"]
