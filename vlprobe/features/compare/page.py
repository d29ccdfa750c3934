"""The Compare page: the scorecard of all models, or the paired differences of a few (`dashboard.compare`).

The URL names the tab (`tab`) and, for the scorecard, the question sets (`sets`), the models shown (`shown`), the
baseline (`model`), the columns (`by`), the direction (`score`), the column that sorts the rows (`order`), and whether
intervals replace counts (`below`).
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from itertools import chain

import htpy
import streamlit as st

from vlprobe import views
from vlprobe.dashboard import case_links, compare, export, frame, sentence
from vlprobe.dashboard.navigation import address
from vlprobe.dashboard.state import (
    PageSubject,
    choose,
    dataset_name,
    page_subject,
    quiet,
    renamed,
    set_labels,
    view,
    write_choice,
)
from vlprobe.dashboard.widgets import BETWEEN, draw_row, draw_styles, follow_links, link_page
from vlprobe.features.compare.data import Scorecard
from vlprobe.render.html.elements import ordered
from vlprobe.render.sentences import counted, joined, sentence_names, unbroken
from vlprobe.render.wall import narrowed
from vlprobe.render.words import movement_kinds
from vlprobe.storage import access
from vlprobe.surfaces.paper import WIDTHS, column_scorecard
from vlprobe.views.filter import Filter
from vlprobe.views.leaderboard import By, LeaderboardColumn
from vlprobe.views.records import QuestionSetRow

TABS = {"scorecard": "Scorecard", "differences": "Differences"}
OF_DIFFERENCES = ("with", "other", "type", "base", "open", "case", "area", "bucket")
OF_SCORECARD = ("sets", "shown", "by", "score", "order", "below")
COLUMNS = {"edit": "Types of edit", "kind": "All tests"}
MOST_SETS = 12  # question sets in one table, each of which takes up to 4 s to test
OWN_COLUMN = (
    "To decide by the types of edit that matter to you, exclude the others in Explore, select a "
    "card, press Select all, and save the cases as a slice: it is a column here, with its own intervals and tests."
)
SCORES = {"fooled": "Fooled, %", "right": "Right, %"}


def draw_page() -> None:
    """Draw the tab that the URL names. A link with a choice of the differences opens them."""
    draw_styles("cases", "compare")
    is_linked = any(name in st.query_params for name in OF_DIFFERENCES)
    default = "differences" if is_linked else "scorecard"
    is_opened = "tab" not in st.query_params
    # Always in the URL: the differences write parameters that change the default
    tab = choose("View", "tab", TABS, default, segments=True, bare=True, always=True)
    if tab == "differences":
        compare.draw_page()
    else:
        draw_scorecard(is_opened)


def draw_scorecard(is_opened: bool) -> None:
    """Draw the pickers, the finding, and the table of the models to show (see `sentence.shown_models`)."""
    subject = sentence.subject()
    first, *others = chosen_sets(subject, "kind")
    kinds = view(views.leaderboard.ranked_kinds, page_subject(first).question_set)
    has_tests = len(others) + len(kinds) > 1
    by: By = "kind" if has_tests and st.query_params.get("by") == "kind" else "edit"
    keys = chosen_sets(subject, by)
    subjects = [page_subject(key) for key in keys[:MOST_SETS]]
    models = tuple(ordered({model for each in subjects for model in each.models}))
    with draw_row("scorecard_bar"):
        shown = sentence.pick_shown(models, is_opened)
        sentence.draw_word("on")
        _pick_sets(subjects, by)
        sentence.draw_word("compared with")
        sentence.pick_model(subject, on_change=compare.change_baseline)
        st.space("stretch")
        if has_tests:
            choose("Columns", "by", COLUMNS, "edit", segments=True, bare=True)
        elif row := with_many_tests(chosen_sets(subject, "edit")):
            label, other = f"All tests on {dataset_name(row.dataset)}", "Results of other models"
            query = {"set": row.case_key, "by": "kind"}
            link_page("compare", label, query, "table_chart", help=other)
        score = "fooled"
        of_sets = [view(views.leaderboard.ranked_kinds, each.question_set) for each in subjects]
        if {*chain(*of_sets)} - movement_kinds():  # otherwise no model can be right
            score = choose("Score", "score", SCORES, "fooled", segments=True, bare=True)
        export_slot = export.draw_share(subject, shown, is_one_set=len(keys) == 1)
    columns = [
        column if len(shown) == len(models) else column.narrowed(shown)
        for each in subjects
        for column in view(
            views.leaderboard.leaderboard, each.question_set, (), "micro", by, subject.model
        )
    ]
    place, is_reversed = _sorted_by(columns)
    scorecard = Scorecard(
        *(columns, sentence_names(models, renamed()), subject.looks, subject.model),
        *(score == "right", place, is_reversed, renamed()),
        st.query_params.get("below") == "intervals",
    )
    heading, detail = map(unbroken, scorecard.finding())
    st.html(str(htpy.div(".vp-finding")[htpy.h1[heading], detail and htpy.p[detail]]))
    frame.say_strangers(subject, shown, subjects[1:])
    if len(keys) > MOST_SETS:
        others = "Choose others in the list of question sets."
        quiet(f"{MOST_SETS} of {len(keys)} question sets are shown. {others}")
    differences = partial(_differences, baseline=subject.model)
    outcome = "held" if scorecard.is_right else "fooled"
    cases = partial(_cases, subjects={each.key: each for each in subjects}, outcome=outcome)
    switch = _changed(below="" if scorecard.has_intervals else "intervals")
    sorts = partial(_sort, columns, place, is_reversed)
    st.html(scorecard.html(differences, cases, sorts, switch))
    follow_links()
    if note := scorecard.note():
        st.warning(note, icon=":material/info:")
    quiet(scorecard.reading())
    subtypes = tuple(column.subtype for column in columns)
    for named in view(views.named_slices.of_columns, subtypes):
        if named.caveat:
            quiet(named.caveat)
    if by == "edit" and not access.read_only():
        quiet(OWN_COLUMN)
        query = {"set": subject.key, "model": subject.model, "kind": subject.kind}
        link_page("explore", "Choose the cases of a column", query | {"outcome": "all"}, "add")
    files = scorecard.figure, scorecard.table, scorecard.caption(), scorecard.text
    narrow, left_out = column_scorecard(scorecard)
    column = partial(narrow.figure, WIDTHS["column"])
    export.draw_menu(
        *("scorecard", *files),
        column=column,
        column_caption=joined(narrow.caption(), left_out),
        column_note=left_out,
        runs=scorecard.runs,
        slot=export_slot,
    )


def with_many_tests(shown: Collection[str]) -> QuestionSetRow | None:
    """Return the first question set that shares a model with another one and is not shown; None if there is none."""
    rows = view(views.runs.question_set_rows)
    n_tests = Counter(model for row in rows for model in row.models)
    others = (row for row in rows if row.case_key not in shown)
    return next((row for row in others if any(n_tests[model] > 1 for model in row.models)), None)


def chosen_sets(subject: PageSubject, by: str) -> list[str]:
    """Return the keys of the question sets in the URL.

    The default is the selected one, and for columns that are tests, also those that share a model with it.
    """
    rows = {row.case_key: row.models for row in view(views.runs.question_set_rows)}
    linked = [key for key in st.query_params.get("sets", "").split(BETWEEN) if key in rows]
    if linked or by == "edit":
        return linked or [subject.key]
    alike = [key for key, models in rows.items() if {*models} & {*subject.models}]
    return [subject.key, *(key for key in alike if key != subject.key)]


def _pick_sets(subjects: Sequence[PageSubject], by: By) -> None:
    labels = set_labels(view(views.runs.question_sets))
    label = dataset_name(subjects[0].question_set.runs[0].dataset)
    if len(subjects) > 1:
        label = counted(len(subjects), "question set")

    def change() -> None:
        keys = st.session_state[key]
        changes = {"sets": BETWEEN.join(keys), "order": None}
        write_choice(changes | ({"set": keys[0]} if keys else {}))

    # In a closed popover, the browser keeps the former selection and would send it as a choice
    key = f"sets_{by}_{subjects[0].key}"
    with st.popover(label, key="shown_sets"):
        st.session_state[key] = [each.key for each in subjects]
        st.multiselect(
            "Question sets (one group of columns each)",
            list(labels),
            format_func=labels.__getitem__,
            key=key,
            max_selections=MOST_SETS,
            on_change=change,
        )


def _name(column: LeaderboardColumn) -> str:
    """Return the name of a column in the URL."""
    return f"{column.question_set.key[:8]}.{column.kind}.{column.subtype}"


def _sorted_by(columns: Sequence[LeaderboardColumn]) -> tuple[int, bool]:
    """Return the number of the column that the URL names, and whether the order is reversed."""
    order = st.query_params.get("order", "")
    names = [_name(column) for column in columns]
    name = order.removeprefix("-")
    return (names.index(name), order.startswith("-")) if name in names else (0, False)


def _sort(columns: Sequence[LeaderboardColumn], place: int, is_reversed: bool, number: int) -> str:
    """Return the URL that sorts by a column, or reverses the order of the sorted column."""
    sign = "-" if number == place and not is_reversed else ""
    return _changed(order=sign + _name(columns[number]))


def _changed(**parameters: str) -> str:
    """Return the URL of this page with changed parameters."""
    return address("compare", st.query_params.to_dict() | parameters)


def _differences(column: LeaderboardColumn, model: str, baseline: str) -> str:
    """Return the URL of a model's paired difference from the baseline in a column."""
    question_set = column.question_set
    query = {"tab": "differences", "set": question_set.key, "kind": column.kind}
    is_pair = baseline in question_set.models and model != baseline
    pair = {"model": baseline, "with": model, "other": model} if is_pair else {"model": model}
    query |= {name: st.query_params[name] for name in OF_SCORECARD if name in st.query_params}
    return address("compare", query | pair | {"type": column.subtype})


def _cases(
    column: LeaderboardColumn, model: str, subjects: Mapping[str, PageSubject], outcome: str
) -> str:
    """Return the URL of the cases that fool a model in a column, or of those that do not."""
    case_filter = Filter.parse(model, column.kind, outcome=outcome, **narrowed(column.subtype))
    return case_links.address(subjects[column.question_set.key], case_filter)
