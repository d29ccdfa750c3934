"""The forest plot: one row per kind of edit and model; a click on a row shows its pictures below."""

import math
from dataclasses import dataclass

import streamlit as st

from vlprobe import views
from vlprobe.dashboard.chart import selectable_chart, selected
from vlprobe.dashboard.folds import BETWEEN
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
    if all(math.isnan(row.difference) for row in comparison.rows):
        return open_row
    kind, baseline = contest.kind_presentation, contest.model
    totals = view(views.totals.of_questions, contest.question_set, contest.kind, baseline)
    renamed = {model: model_name(model) for model in contest.compared}
    selectable_chart(
        lambda: forest.forest_figure(comparison, kind, contest.looks, renamed, totals),
        "forest",
        f"How far each model is from {contest.names[baseline]}, by kind of edit. The pickers below choose a row.",
        _choose,
        BETWEEN.join((contest.key, contest.kind, *contest.compared)),
    )
    place = comparison.subtypes.index(open_row.subtype)
    st.html(
        f'<style>.st-key-forest .shapelayer path[data-index="{place}"] {{ fill: var(--vp-press-tint) !important; '
        "fill-opacity: 1 !important; }</style>"
    )
    quiet(forest.how_to_read(comparison))
    return open_row


def draw_row_picker(contest: PageSubject, comparison: PairedTests, open_row: Parting) -> None:
    """Draw pickers of the row whose pictures are shown, to do from the keyboard what a click on the plot does."""
    kind = contest.kind_presentation
    st.session_state["row_type"], st.session_state["row_model"] = open_row.subtype, open_row.rival

    def show() -> None:
        show_row(st.session_state["row_type"], st.session_state["row_model"])

    for label, options, name, key in (
        ("Kind of change", comparison.subtypes, lambda of: forest.row_title(of, kind), "row_type"),
        ("Compared with", contest.rivals, contest.names.__getitem__, "row_model"),
    ):
        st.selectbox(
            label,
            list(options),
            format_func=name,
            key=key,
            on_change=show,
            label_visibility="collapsed",
            width=220,
        )


def _choose() -> None:
    rows, _ = selected("forest")
    if rows:
        show_row(str(rows[0][0]), str(rows[0][1]))


def show_row(subtype: str, rival: str) -> None:
    """Write the row whose pictures are shown into the URL."""
    mark_picked()
    st.query_params["type"] = subtype
    st.query_params["other"] = rival
    for name in ("page", "case"):
        st.query_params.pop(name, None)
