"""The forest plot: one row per kind of edit and model; a click on a row shows its pictures below."""

import functools
import math
from dataclasses import dataclass

import streamlit as st

from vlprobe import views
from vlprobe.dashboard.components import component
from vlprobe.dashboard.state import PageSubject, mark_picked, model_name, quiet, view
from vlprobe.render import forest
from vlprobe.views.paired_tests import PairedTest, PairedTests


@dataclass(frozen=True)
class Parting:
    """The selection of pictures: the baseline against one other model, on one type of edit."""

    subtype: str  # "": all
    rival: str


def parting(contest: PageSubject, comparison: PairedTests, proof: PairedTest) -> Parting:
    """The row that the URL names, else the one that proves the heading; of another model that the URL names, the
    type of edit at which it is clearly furthest from the baseline.
    """
    rival = st.query_params.get("other", "")
    rival = rival if rival in contest.rivals else proof.model
    linked = st.query_params.get("type")
    if linked is not None and linked in comparison.subtypes:
        return Parting(linked, rival)
    row = proof if rival == proof.model else forest.first_row(comparison, rival)
    return Parting(row.subtype, rival)


def draw_forest(contest: PageSubject, comparison: PairedTests, proof: PairedTest) -> Parting:
    """The plot, with the row open that proves the heading; returns the row whose pictures are shown."""
    open_row = parting(contest, comparison, proof)
    kind = contest.kind_presentation
    if not all(math.isnan(row.difference) for row in comparison.rows):
        values = forest.values(
            comparison,
            kind,
            contest.looks,
            {model: model_name(model) for model in contest.compared},
            (open_row.subtype, open_row.rival),
            view(
                views.totals.of_questions,
                contest.question_set,
                contest.kind,
                contest.model,
            ),
        )
        component("forest")(
            key="forest", data=values, on_row_change=functools.partial(_choose, comparison)
        )
        quiet(forest.how_to_read(comparison))
    return open_row


def _choose(comparison: PairedTests) -> None:
    """The row that was pressed goes into the URL."""
    position = st.session_state["forest"].get("row")
    if not position:
        return
    group, index = (int(number) for number in position)
    subtype = comparison.subtypes[group]
    row = [row for row in comparison.rows if row.subtype == subtype][index]
    mark_picked()
    st.query_params["type"] = row.subtype
    st.query_params["other"] = row.model
    for name in ("page", "case"):
        st.query_params.pop(name, None)
