"""PRSM's table 1 as a figure: one row per comparison of two wordings, one mark per model, hollow marks for printed
values.
"""

import pandas as pd
import plotly.graph_objects as go

from vlprobe import views
from vlprobe.dashboard.chart import ARMS
from vlprobe.dashboard.lab.chart_panels import GUESSING, chart_of_cases
from vlprobe.dashboard.state import PageSubject, choose, quiet, view
from vlprobe.render import charts
from vlprobe.render.words import slice_order, value_label
from vlprobe.views.comparisons import BREAKDOWN
from vlprobe.views.figures import published_comparisons

MEASURES = {
    "prsm_local_10": "First 10",
    "prsm_local_100": "First 100",
    "prsm_local_1000": "First 1,000",
    "prsm_global": "Ranks of all",
}
WITHOUT = (
    "These runs are of before single comparisons were stored. Remove them under Lab and ask again "
    "to see them."
)


def ten_rows(stored: PageSubject) -> None:
    """The comparisons that table 1 names, and all versions of each kind of rewording."""
    if not view(views.comparisons.has_comparisons, stored.question_set):
        quiet(WITHOUT)
        return
    table: pd.DataFrame = pd.concat(
        [
            view(views.estimates.estimates, stored.question_set, breakdown)
            for breakdown in (BREAKDOWN, "subtype")
        ]
    ).dropna(subset=["value"])
    measures = {name: words for name, words in MEASURES.items() if name in set(table["metric"])}
    default = "prsm_local_100" if "prsm_local_100" in measures else next(iter(measures))
    metric = stored.metrics[choose("Compared are", "depth", measures, default, segments=True)]
    table = table.loc[table["metric"] == metric.name]
    rows = {name: value_label(name) for name in sorted(set(table["slice"]), key=slice_order)}
    paper = published_comparisons(metric.name)
    paper = paper.loc[paper["slice"].isin(list(rows))]
    chance = view(views.papers.chances, stored.question_set)[metric.name]

    def make() -> go.Figure:
        chances = dict.fromkeys(rows, chance)
        figure = charts.dots.dots(table, metric, "cosine", rows, stored.looks, chances)
        if len(paper):
            charts.tradeoff.beside(figure, paper, list(rows), "rate")
        return figure

    alt = f"{metric.label} of each comparison of two wordings, a mark a model."
    chart_of_cases(make, "comparisons", alt, stored, metric.kinds, BREAKDOWN)
    hollow = (
        " Hollow: what table 1 prints of CLIP, for everyone, women and men, in a larger gallery."
        if len(paper)
        else ""
    )
    quiet(
        "How to read it: right is steadier. o is the query, c1 and c2 its paraphrases, p1 to p3 and "
        "np its prefixes, a1, a2 and a12 it with one or both attributes replaced; P1, P2 and P3 are "
        f"the means over all versions. {ARMS}{GUESSING}{hollow}"
    )
