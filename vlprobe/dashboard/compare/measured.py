"""The folds *How it is measured* and *Details*: every number with its interval
and p, and the question set.
"""

import functools
import math
from dataclasses import asdict

import pandas as pd
import streamlit as st

from vlprobe import views
from vlprobe.dashboard import frame, tables
from vlprobe.dashboard.folds import fold
from vlprobe.dashboard.state import PageSubject, quiet, store, view
from vlprobe.render import charts
from vlprobe.render.html import compare
from vlprobe.render.words import AVERAGED, movement_kinds
from vlprobe.surfaces.report.selection import defused
from vlprobe.types import AS_PAPER, POOLED
from vlprobe.views.believed import Comparison
from vlprobe.views.compare import SIGNIFICANCE
from vlprobe.views.paired_outcomes import PairedOutcomes

MEASURED = (
    "Every lie counts once in the plot above: a model's share is what it believes of the lies that "
    "both models answered. Pictures are resampled as a whole, and p asks how often a difference as "
    "large comes about when the two models' answers to each picture are exchanged by a fair coin. "
    "It is raised for all rows of the plot (Holm's method)."
)


def draw_measured(contest: PageSubject, comparison: Comparison, rival: str) -> None:
    """The fold with units, averaging, every number with its interval and p."""
    with fold("measured", "How it is measured", ":material/function:") as is_open:
        if is_open:
            _draw_numbers(contest, comparison, rival)


def draw_details(contest: PageSubject, comparison: Comparison) -> None:
    """The fold with notes, the questions and the files."""
    with fold("details", "Details", ":material/data_object:") as is_open:
        if is_open:
            frame.notes(contest)
            tables.about(contest.question_set)
            _draw_downloads(contest, comparison)


def _draw_numbers(contest: PageSubject, comparison: Comparison, rival: str) -> None:
    with st.container(horizontal=True):
        unit = frame.unit(contest)
        averaging = frame.averaging(contest)
    quiet(MEASURED)
    _draw_rows(contest, comparison)
    if contest.kind not in movement_kinds():
        outcomes = view(
            views.paired_outcomes.paired_outcomes,
            contest.question_set,
            contest.model,
            rival,
            contest.kind,
        )
        names = contest.names
        quiet(parted_in_words(outcomes, names[contest.model], names[rival]))
    table = view(views.compare.compare, contest.question_set, contest.compared, averaging, unit)
    st.subheader("The numbers", anchor=False)
    quiet(AVERAGED[averaging])
    if not any(table["verdict"]):
        st.info("Nothing is known of these models on the same questions.")
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
        quiet(f"Not asked here, or unknown for these models: {', '.join(unknown)}.")


def _draw_rows(contest: PageSubject, comparison: Comparison) -> None:
    """The rows of the plot as a table, with p."""
    st.html(compare.rows_table(comparison, contest.names))


def parted_in_words(outcomes: PairedOutcomes, baseline: str, rival: str) -> str:
    """Compute how often only one of the two is fooled, and whether that may be chance."""
    only_first, only_second = outcomes.counts["only_first"], outcomes.counts["only_second"]
    if math.isnan(outcomes.p):
        return ""
    worse, better = (rival, baseline) if outcomes.difference < 0 else (baseline, rival)
    split = f"{worse} is fooled more often than {better}, by more than chance explains"
    if outcomes.p >= SIGNIFICANCE:
        split = "These are tied: a split as uneven may be chance"
    how = "each case decided by a fair coin (McNemar's exact test)"
    if not outcomes.independent:
        how = "each picture's answers exchanged as a whole by a fair coin (randomization test)"
    ties = [
        f"{name} {count:,}"
        for name, count in ((baseline, outcomes.tied_first), (rival, outcomes.tied_second))
        if count
    ]
    remarks = f" Ties, which count as fooled: {', '.join(ties)}." if ties else ""
    if outcomes.unknown:
        remarks += f" Unknown, and in none of these counts: {outcomes.unknown:,}."
    return (
        f"{only_first:,} cases fool only {baseline}, {only_second:,} only {rival}, "
        f"{outcomes.counts['both_fooled']:,} both and {outcomes.counts['both_held']:,} neither. "
        f"{split} ({charts.compare.chance(outcomes.p)} for this comparison alone; {how}).{remarks}"
    )


def _draw_downloads(contest: PageSubject, comparison: Comparison) -> None:
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
            help="The rows of the plot with their counts, intervals and p.",
        )


def _metrics_csv(contest: PageSubject) -> str:
    unit = "spread" if st.query_params.get("unit") == "spread" else "cosine"
    averaging = AS_PAPER if st.query_params.get("average") == AS_PAPER else POOLED
    table = views.compare.compare(store(), contest.question_set, contest.compared, averaging, unit)
    return table.map(defused).to_csv(index=False)


def rows_csv(comparison: Comparison) -> str:
    """The rows of the plot, a column a field."""
    table = pd.DataFrame(
        [
            {"baseline": comparison.baseline.model, "kind": comparison.kind} | asdict(row)
            for row in comparison.rows
        ]
    )
    return table.map(defused).to_csv(index=False)
