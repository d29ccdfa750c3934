"""Compare, top to bottom: the sentence, the finding, the forest, where two of the
models part, and the folds.
"""

from pathlib import Path

import htpy
import streamlit as st

from vlprobe import views
from vlprobe.dashboard import cases, frame
from vlprobe.dashboard.cases import drawer, share
from vlprobe.dashboard.compare import case_map, columns, forest, measured, sentence
from vlprobe.dashboard.play import room
from vlprobe.dashboard.state import PageSubject, model_name, n_passing, quiet, view
from vlprobe.render.findings import Verdict, order_sentences, power_of_ties, verdict
from vlprobe.render.sentences import unbroken
from vlprobe.views.paired_tests import PairedTests

STYLE = Path(__file__).with_name("style.css")


def draw_page() -> None:
    """The whole page."""
    for sheet in (cases.STYLE, STYLE):
        st.html(sheet)
    contest = sentence.contest()
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="sentence"):
        sentence.draw_sentence(contest)
        st.space("stretch")
        share_slot = st.container(key="share_slot", width="content")
    if not contest.rivals:
        sentence.draw_nobody(contest)
        return
    comparison = compared(contest)
    finding = _draw_finding(contest, comparison)
    if seen := power_of_ties(comparison):
        quiet(seen)
    frame.say_strangers(contest, contest.compared)
    table = view(views.estimates.estimates, contest.question_set)
    for line in order_sentences(table, contest.names, contest.compared):
        quiet(line)
    room.draw_human_baseline(contest, contest.compared)
    parting = forest.draw_forest(contest, comparison, finding.row)
    side_filter = columns.draw_columns(contest, comparison, parting)
    measured.draw_all_models(contest)
    measured.draw_measured(contest, comparison, parting.rival)
    in_map = case_map.draw_fold(contest, parting.rival)
    measured.draw_details(contest, comparison)
    shared = in_map or side_filter
    with share_slot:
        share.draw_share(contest, shared, n_passing(contest, shared))
    if "case" in st.query_params:
        drawer_filter = in_map or columns.filter_of_case(contest, parting)
        is_grouped = in_map is None  # the map has one card per case
        drawer.draw_case(contest, drawer_filter, sentence.CARDS, is_grouped)


def compared(contest: PageSubject) -> PairedTests:
    """The comparison that the whole page is about."""
    return view(
        views.paired_tests.compare_models,
        contest.question_set,
        contest.compared,
        contest.kind,
        sentence.carried_unit(),
    )


def _draw_finding(contest: PageSubject, comparison: PairedTests) -> Verdict:
    """The finding as the heading, and the text below it."""
    kind = contest.kind_presentation
    finding = verdict(comparison, kind, {model: model_name(model) for model in contest.compared})
    heading, detail = (unbroken(text) for text in (finding.heading, finding.detail))
    st.html(str(htpy.div(".vp-finding")[htpy.h1[heading], htpy.p[detail]]))
    return finding
