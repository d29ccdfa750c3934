"""The Compare page: the scorecard of all models, or the paired differences of a few (`dashboard.compare`).

The URL names the tab (`tab`) and, for the scorecard, the question sets (`sets`), the models shown (`shown`), the
baseline (`model`), the columns (`by`) and those left out (`without`), the direction (`score`), the column that sorts
the rows (`order`), and whether intervals replace counts (`below`).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

import htpy
import streamlit as st

from vlprobe import views
from vlprobe.dashboard import case_links, compare, export, frame, sentence
from vlprobe.dashboard.navigation import address
from vlprobe.dashboard.state import (
    PageSubject,
    carried,
    carry,
    choose,
    dataset_name,
    page_subject,
    plain,
    quiet,
    renamed,
    set_labels,
    view,
    write_choice,
)
from vlprobe.dashboard.widgets import BETWEEN, draw_row, draw_styles, fold, follow_links, press
from vlprobe.features.compare.data import Scorecard
from vlprobe.render.attribution import source_line
from vlprobe.render.html.elements import ordered
from vlprobe.render.leaderboard import SOLVED, parts_of
from vlprobe.render.sentences import counted, joined, sentence_names, unbroken
from vlprobe.render.wall import narrowed
from vlprobe.render.words import movement_kinds
from vlprobe.surfaces.paper import WIDTHS, fitted_scorecard
from vlprobe.views.filter import Filter
from vlprobe.views.leaderboard import By, LeaderboardColumn

TABS = {"scorecard": "Scorecard", "differences": "Differences"}
OF_DIFFERENCES = ("with", "other", "type", "base", "open", "case", "area", "bucket")
OF_SCORECARD = ("sets", "shown", "by", "without", "score", "order", "below")
COLUMNS = {"edit": "Types of edit", "kind": "One column per test"}
MOST_SETS = 12  # question sets in one table, each of which takes up to 4 s to test
SCORES = {"fooled": "Fooled, %", "right": "Right, %"}


def draw_page() -> None:
    """Draw the tab that the URL names. A link with a choice of the differences opens them."""
    draw_styles("cases", "compare")
    default = carried("tab", TABS, "scorecard")
    for tab, names in (("scorecard", OF_SCORECARD), ("differences", OF_DIFFERENCES)):
        default = tab if st.query_params.keys() & names else default
    is_opened = "tab" not in st.query_params
    # Always in the URL: the differences write parameters that change the default
    tab = choose("View", "tab", TABS, default, segments=True, bare=True, always=True)
    carry("tab", tab)
    if tab == "differences":
        compare.draw_page()
    else:
        draw_scorecard(is_opened)


def draw_scorecard(is_opened: bool) -> None:
    """Draw the pickers, the finding, and the table of the models to show (see `sentence.shown_models`)."""
    subject = sentence.subject(is_baseline=True)
    first_set, *others = chosen_sets(subject, "kind")
    kinds = view(views.leaderboard.ranked_kinds, page_subject(first_set).question_set)
    has_tests = len(others) + len(kinds) > 1
    has_types = not all(name.endswith(".") for name in st.query_params.get_all("without"))
    default = "kind" if len(chosen_sets(subject, "edit")) > 1 and not has_types else "edit"
    by: By = "kind" if has_tests and st.query_params.get("by", default) == "kind" else "edit"
    keys = chosen_sets(subject, by)
    subjects = [page_subject(key) for key in keys[:MOST_SETS]]
    models = tuple(ordered({model for each in subjects for model in each.models}))
    with draw_row("scorecard_bar"):
        shown = sentence.pick_shown(models, is_opened)
        sentence.draw_word("on")
        tests_slot = st.container(width="content")
        sentence.draw_word("of")
        _pick_sets(subjects, by)
        sentence.draw_word("against")
        sentence.pick_model(subject, on_change=compare.change_baseline)
        st.space("stretch")
        score = "fooled"
        of_sets = [view(views.leaderboard.ranked_kinds, each.question_set) for each in subjects]
        if {*chain(*of_sets)} - movement_kinds():  # otherwise no model can be right
            score = choose("Score", "score", SCORES, "fooled", segments=True, bare=True)
        other_sets = [each.question_set for each in subjects if each.key != subject.key]
        export_slot = export.draw_share(subject, shown, other_sets)

    def columns_without(left_out: Collection[str]) -> list[LeaderboardColumn]:
        return [
            column if len(shown) == len(models) else column.narrowed(shown)
            for each in subjects
            for column in view(
                *(views.leaderboard.leaderboard, each.question_set, (), "micro", by, subject.model),
                tuple(sorted(name for name in left_out if name.startswith(each.key[:8]))),
            )
        ]

    every = Scorecard(columns_without(()), sentence_names(models, renamed()), subject.looks)
    with tests_slot:
        left_out = _pick_tests(every, by)
    columns = columns_without(left_out)
    heads = dict(zip((each.name for each in every.columns), every.heads(), strict=True))
    solved = [each.name for each in columns if each.blind < SOLVED and not each.n_types]
    place, is_reversed = _sorted_by(columns)
    scorecard = Scorecard(
        *(columns, every.names, subject.looks, subject.model),
        *(score == "right", place, is_reversed, renamed()),
        st.query_params.get("below") == "intervals",
        left_out=[heads[name] for name in left_out],
        unsolved=columns_without([*left_out, *solved]) if solved else (),
    )
    differences = partial(_differences, baseline=subject.model)
    outcome = "held" if scorecard.is_right else "fooled"
    cases = partial(_cases, subjects={each.key: each for each in subjects}, outcome=outcome)
    below = "" if scorecard.has_intervals else "intervals"
    switches = {f"Show {'95 % intervals' if below else 'counts'}": _changed(below=below)}
    if has_tests:
        other = "edit" if by == "kind" else "kind"
        switches[COLUMNS[other]] = _changed(by=other)
    parts = parts_of(columns)  # without a common model, so each has a finding and a table
    for part in parts:
        place, is_reversed = _sorted_by(part)
        card = replace(scorecard, columns=part, sort=place, is_reversed=is_reversed)
        heading, detail = map(unbroken, card.finding())
        datasets = {each.question_set.runs[0].dataset for each in part}
        name = f"{dataset_name(*datasets)}: " if len(parts) > 1 == len(datasets) else ""
        st.html(str(htpy.div(".vp-finding")[htpy.h1[name, heading], detail and htpy.p[detail]]))
        compare.draw_solved(card.note(), {each.name for each in part} & {*solved}, part[0].name)
        if part is parts[0]:
            frame.say_strangers(subject, shown, subjects[1:])
        sorts = partial(_sort, part, place, is_reversed)
        st.html(card.html(differences, cases, sorts, switches))
    if len(parts) > 1:
        quiet(
            "These question sets have no model in common, so each has its own table and its own best model."
        )
    if len(keys) > MOST_SETS:
        others = "Choose others in the list of question sets."
        quiet(f"{MOST_SETS} of {len(keys)} question sets are shown. {others}")
    follow_links()
    first, more = scorecard.reading()
    quiet(first)
    fold("reading", "How to read the table", "help", partial(quiet, more))
    for caveat in ordered(filter(None, (column.caveat for column in columns))):
        quiet(caveat)
    wide, left_out = fitted_scorecard(scorecard, "text")
    narrow, column_left_out = fitted_scorecard(scorecard, "column")
    facts = narrow.caption(), column_left_out, source_line(narrow.runs, renamed())
    export.draw_menu(
        *("scorecard", wide.figure, scorecard.table),
        *(joined(wide.caption(), left_out), scorecard.text),
        column=partial(narrow.figure, WIDTHS["column"]),
        column_caption=joined(*facts),
        notes={"text": left_out, "column": column_left_out},
        runs=scorecard.runs,
        figure_runs=wide.runs,
        slot=export_slot,
    )
    if not has_tests and len(columns) == len(every.columns):
        case_links.draw_blind(replace(subject, kind=columns[0].kind))


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

    def write(keys: Sequence[str]) -> None:
        changes = {"sets": BETWEEN.join(keys), "order": None}
        write_choice(changes | ({"set": keys[0]} if keys else {}))

    title, keys = "Question sets (one group of columns each)", [each.key for each in subjects]
    choices = "shown_sets", title, labels, keys, write, f"{by} {keys[0]}"
    with sentence.pick_several(label, *choices, max_selections=MOST_SETS):
        sentence.pick_dataset(subjects[0], f"_of_{keys[0]}")


def _pick_tests(every: Scorecard, by: By) -> list[str]:
    """Draw a popover with a tick for each column, except those that pool others, and return the columns left out. If
    none is ticked, none is left out.
    """
    heads = zip(every.columns, every.heads(), strict=True)
    options = {column.name: plain(head) for column, head in heads if not column.n_types}
    left_out = [name for name in options if name in st.query_params.get_all("without")]
    ticked = [name for name in options if name not in left_out]

    def write(names: Sequence[str]) -> None:
        write_choice({"without": [name for name in options if name not in names]})

    some = f"{len(ticked)} of " if ticked and left_out else ""
    label = some + counted(len(options), "type" if by == "edit" else "test")
    choices = "shown_tests", "Columns to show", options, ticked, write
    with sentence.pick_several(label, *choices, draw=st.pills, selection_mode="multi"):
        press("Tick none", write, [])
    return left_out if ticked else []


def _sorted_by(columns: Sequence[LeaderboardColumn]) -> tuple[int, bool]:
    """Return the number of the column that the URL names, and whether the order is reversed."""
    order = st.query_params.get("order", "")
    names = [column.name for column in columns]
    name = order.removeprefix("-")
    return (names.index(name), order.startswith("-")) if name in names else (0, False)


def _sort(columns: Sequence[LeaderboardColumn], place: int, is_reversed: bool, number: int) -> str:
    """Return the URL that sorts by a column, or reverses the order of the sorted column."""
    sign = "-" if number == place and not is_reversed else ""
    return _changed(order=sign + columns[number].name)


def _changed(**parameters: str) -> str:
    """Return the URL of this page with changed parameters."""
    linked = {name: st.query_params.get_all(name) for name in st.query_params}
    return address("compare", linked | parameters)


def _differences(column: LeaderboardColumn, model: str, baseline: str) -> str:
    """Return the URL of a model's paired difference from the baseline in a column."""
    question_set = column.question_set
    query = {"tab": "differences", "set": question_set.key, "kind": column.kind}
    is_pair = baseline in question_set.models and model != baseline
    pair = {"model": baseline, "other": model} if is_pair else {"model": model}
    query |= {name: st.query_params.get_all(name) for name in OF_SCORECARD}
    if not (column.subtype or column.pooled):
        query |= {"without": compare.left_out_elsewhere(question_set, column.kind)}
    return address("compare", query | pair | {"type": column.subtype})


def _cases(
    column: LeaderboardColumn, model: str, subjects: Mapping[str, PageSubject], outcome: str
) -> str:
    """Return the URL of the cases that fool a model in a column, or of those that do not."""
    case_filter = Filter.parse(model, column.kind, outcome=outcome, **narrowed(column.subtype))
    if column.pooled:
        case_filter = replace(case_filter, subtype=column.pooled)
    return case_links.address(subjects[column.question_set.key], case_filter)
