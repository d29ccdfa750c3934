"""The folds *All models*, *How it is measured* and *Details*: groups of ties, every number with its
interval and p, and the question set.
"""

import functools

import streamlit as st

from vlprobe import views
from vlprobe.dashboard import frame, tables
from vlprobe.dashboard.folds import fold
from vlprobe.dashboard.state import PageSubject, quiet, renamed, store, view
from vlprobe.render.findings import split
from vlprobe.render.html import compare
from vlprobe.render.html.scorecard import how_to_read, scorecard
from vlprobe.render.sentences import sentence_names
from vlprobe.render.words import AVERAGED, movement_kinds
from vlprobe.surfaces.report.selection import defused
from vlprobe.types import AS_PAPER, POOLED
from vlprobe.views.paired_tests import PairedTests

MEASURED = (
    "Each wrong caption counts once in the plot above; a model's share is of those that both models answered. "
    "Intervals resample pictures. p-values: paired permutation test by picture (McNemar's exact test where each "
    "picture has one answer), Holm-corrected for all rows."
)


def draw_all_models(contest: PageSubject) -> None:
    """The fold with all models of the question set, and brackets around those that are tied."""
    models = contest.question_set.models
    label = f"All {len(models)} models: which are tied"
    with fold("all_models", label, ":material/leaderboard:") as is_open:
        if is_open:
            tests = view(views.paired_tests.rank_models, contest.question_set, contest.kind)
            names = sentence_names(models, renamed())
            guess = view(views.estimates.best_guess, contest.question_set, contest.kind)
            st.html(scorecard(tests, contest.kind_presentation, contest.looks, names, guess))
            quiet(how_to_read(tests))


def draw_measured(contest: PageSubject, comparison: PairedTests, rival: str) -> None:
    """The fold with units, averaging, every number with its interval and p."""
    with fold("measured", "How it is measured", ":material/function:") as is_open:
        if is_open:
            _draw_numbers(contest, comparison, rival)


def draw_details(contest: PageSubject, comparison: PairedTests) -> None:
    """The fold with notes, the questions and the files."""
    with fold("details", "Details", ":material/data_object:") as is_open:
        if is_open:
            frame.notes(contest)
            tables.about(contest.question_set)
            _draw_downloads(contest, comparison)


def _draw_numbers(contest: PageSubject, comparison: PairedTests, rival: str) -> None:
    with st.container(horizontal=True):
        unit = frame.unit(contest)
        averaging = frame.averaging(contest)
    quiet(MEASURED)
    st.html(compare.rows_table(comparison, contest.names))
    if contest.kind not in movement_kinds():
        quiet(split(comparison, rival, contest.names))
    table = view(
        views.paired_tests.compare_metrics, contest.question_set, contest.compared, averaging, unit
    )
    st.subheader("The numbers", anchor=False)
    quiet(AVERAGED[averaging])
    if not any(table["verdict"]):
        st.info("These models have no answers to the same questions.")
        return
    main = contest.presentation.main_metrics
    st.html(compare.in_words(table, contest.metrics, unit, contest.looks, main, contest.names))
    chances = view(views.papers.chances, contest.question_set)
    body, unknown = compare.differences(
        table, contest.metrics, unit, contest.looks, chances, contest.names
    )
    st.html(body)
    quiet(compare.how_to_read(table))
    if unknown:
        quiet(f"Not measured here, or unknown for these models: {', '.join(unknown)}.")


def _draw_downloads(contest: PageSubject, comparison: PairedTests) -> None:
    """The numbers as CSV: those of the plot, and every metric."""
    with st.container(horizontal=True):
        st.download_button(
            "Download as CSV",
            functools.partial(_metrics_csv, contest),
            "vlprobe_compare.csv",
            "text/csv",
            icon=":material/download:",
            on_click="ignore",
            help="Every metric of each model against the baseline.",
        )
        st.download_button(
            "The plot as CSV",
            functools.partial(rows_csv, comparison),
            "vlprobe_compare_rows.csv",
            "text/csv",
            icon=":material/download:",
            on_click="ignore",
            help="The rows of the plot with counts, intervals and p-values.",
        )


def _metrics_csv(contest: PageSubject) -> str:
    unit = "spread" if st.query_params.get("unit") == "spread" else "cosine"
    averaging = AS_PAPER if st.query_params.get("average") == AS_PAPER else POOLED
    table = views.paired_tests.compare_metrics(
        store(), contest.question_set, contest.compared, averaging, unit
    )
    return table.map(defused).to_csv(index=False)


def rows_csv(comparison: PairedTests) -> str:
    """The rows of the plot, a column a field."""
    table = comparison.table()
    table.insert(0, "baseline", comparison.baseline.model)
    table.insert(1, "kind", comparison.kind)
    return table.map(defused).to_csv(index=False)
