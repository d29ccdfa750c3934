"""Every number of a question set at once: the headline numbers as a
figure, all of them as a table.
"""

from dataclasses import replace

import pandas as pd
import streamlit as st

from vlprobe import views
from vlprobe.dashboard import tables
from vlprobe.dashboard.lab import chart_panels
from vlprobe.dashboard.state import Questions, model_name, quiet, view
from vlprobe.render.html.tables import BOLD
from vlprobe.render.sentences import sentence_names
from vlprobe.render.words import AGREED, presentations

READING = (
    f"{BOLD} Below each value its 95 % interval, from resampling pictures, and n, the number of "
    f"pictures it rests on. {AGREED} Tied: cases in which right and wrong score the same; rates "
    "count them as wrong."
)


def draw_headlines(stored: Questions, averaging: str, unit: str) -> None:
    """The headline numbers, a row each; where there is a trade-off, the way to it."""
    if presentations()[stored.probe].trade_off:
        query = {"set": stored.key}
        st.page_link(
            "pages/tradeoff.py",
            label="Steady against alert, as a picture",
            icon=":material/scatter_plot:",
            query_params=query,
        )
    else:
        chart_panels.headlines(stored, averaging, unit)


def draw_table(stored: Questions, averaging: str, unit: str) -> pd.DataFrame:
    """Every metric of every model, with its interval, pictures and ties; returns what is shown."""
    estimates: pd.DataFrame = view(
        views.estimates.estimates, stored.question_set, "all", averaging, unit
    )
    leaders = view(views.leaders.leaders, stored.question_set, averaging, unit)
    names = sentence_names(stored.models, {model: model_name(model) for model in stored.models})
    tables.headline(
        estimates.replace({"model": names}),
        stored.metrics,
        unit,
        list(names.values()),
        {name: stored.looks[model] for model, name in names.items()},
        view(views.papers.chances, stored.question_set),
        {
            metric: replace(leader, models=tuple(names[model] for model in leader.models))
            for metric, leader in leaders.items()
        },
    )
    quiet(READING)
    return estimates
