"""Elements shared by Lab's pages, such as a paper's table filled from the user's runs, and the Printed numbers page."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import pandas as pd
import pyarrow.compute as pc
import streamlit as st

from vlprobe import views
from vlprobe.case.card import card_type, case_card
from vlprobe.dashboard import case_links, export, frame, sentence
from vlprobe.dashboard.components import component
from vlprobe.dashboard.state import (
    PageSubject,
    choose,
    counts,
    model_name,
    page_subject,
    pick_question_set,
    plain,
    quiet,
    search,
    set_labels,
    store,
    view,
)
from vlprobe.dashboard.widgets import link_page, open_page
from vlprobe.probes import released_layout
from vlprobe.render.html import papers
from vlprobe.render.wall import rate_text
from vlprobe.render.words import (
    AVERAGED,
    edit_title,
    movement_kinds,
    presentations,
    slice_order,
    value_label,
)
from vlprobe.types import AS_PAPER, Picture, Reader
from vlprobe.types.presentation import KindPresentation
from vlprobe.views.filter import Filter
from vlprobe.views.papers import MARKS
from vlprobe.views.published import SOURCES, TABLES, PaperTable
from vlprobe.views.records import PrintedCell, records
from vlprobe.views.rows import are_here
from vlprobe.views.wall import WallCard

N_EXAMPLES = 7  # cards; they fill one row at 1280 pixels
N_BESIDE = 6  # cards with two pictures side by side; they fill two rows


def cases_of(model: str, kind: str) -> Filter:
    """Return a filter for the cases that fool a model, or for all cases if the kind cannot fool a model."""
    return Filter(model, kind, outcome="all" if kind in movement_kinds() else "fooled")


def pick(probe: str = "") -> PageSubject:
    """Draw a picker for the question sets of one probe or of all. If there are none, draw how to run the probe."""
    sets = view(views.runs.question_sets)
    if probe:
        if probe not in set(sets["probe"]):
            st.title(presentations()[probe].name, anchor=False)
        return frame.begin(probe)
    if sets.empty:
        st.title("Where does a number come from?", anchor=False)
        sentence.subject()  # says that there are no results, and stops the page
    return pick_question_set()


def pick_model(subject: PageSubject, paper: str = "") -> str:
    """Draw a picker for the model whose cases are shown. The default is one that a paper's tables have, if any."""
    names = {name: model_name(name) for name in subject.models}
    alike = [name for name in names if paper and views.papers.printed_names(paper, name)]
    default = alike[0] if alike else view(views.runs.default_model, subject.models)
    return choose("Model", "model", names, default, always=True)


def begin(probe: str) -> PageSubject:
    """Draw the top of a probe's page: pickers for the question set, the model and the kind, the main finding, the
    probe's description, example cards, and a link to the cases for each type of edit.
    """
    with st.container(horizontal=True, key="lab_subject"):
        subject = pick(probe)
        model = pick_model(subject)
        kinds = sentence.list_kinds(subject)
        lies = {name: subject.presentation.kind(name).lie or name for name in kinds}
        kind = view(views.runs.default_kind, subject.question_set, (model,))
        if len(kinds) > 1:
            kind = choose("Fooled by", "kind", lies, kind, always=True)
    subject = replace(subject, model=model, kind=kind)
    st.title(plain(finding(subject)), anchor=False)
    frame.sentence(subject, kind)
    frame.say_strangers(subject)
    draw_examples(subject, cases_of(model, kind))
    choices = view(views.estimates.choices, subject.question_set)
    subtypes = choices.loc[choices["kind"] == kind, "subtype"].unique()
    filters = {
        edit_title(name): case_links.slice_filter(subject, model, (kind,), "subtype", name)
        for name in sorted(subtypes, key=slice_order)
        if name
    }
    if len(filters) > 1:
        case_links.draw_links(subject, filters)
    return subject


def finding(subject: PageSubject) -> str:
    """Return a heading that says what fools the model, and how often."""
    kind = subject.kind_presentation
    text = f"{model_name(subject.model)} {kind.verb} {kind.lie}"
    if kind.is_movement:
        return text
    counted = counts(subject, cases_of(subject.model, subject.kind))
    n_orders = subject.question_set.run(subject.model).n_orders
    return f"{text}, {rate_text(counted, n_orders)}" if counted["all"] else text


def draw_examples(subject: PageSubject, case_filter: Filter) -> None:
    """Draw cards for the first cases that pass a filter, one per picture. Pressing a card opens its case in Explore.
    Draws nothing if none of their pictures is on this machine.
    """
    kind = subject.presentation.kind(case_filter.kind)
    n_cards = N_BESIDE if card_type(kind).is_neutral else N_EXAMPLES
    cards, n_pictures, _ = view(
        views.wall.wall, subject.question_set, case_filter, 1, n_cards, True
    )
    is_text = not cards or not cards[0].images
    if not cards or not (is_text or any(are_here(card.images[:1]) for card in cards)):
        return  # seven texts in place of pictures would push the numbers down
    label = f"{len(cards)} of {n_pictures:,} examples"
    draw_cards(cards, kind, label, case_links.query(subject, case_filter), "examples")


def draw_cards(
    cards: Sequence[WallCard], kind: KindPresentation, label: str, query: case_links.Query, key: str
) -> None:
    """Draw a row of cards. Pressing a card opens its case in Explore, with `query` as the other URL parameters."""
    values = case_links.wall_values([case_card(card, kind) for card in cards], label, bare=True)
    # Streamlit reports a click only if a callback is set
    component("wall")(key=key, data=values, on_open_change=lambda: None)
    opened = st.session_state[key].get("open") if key in st.session_state else None
    if opened in [card.id for card in cards]:
        open_page("explore", {**query, "case": str(opened)})


OPENS = "Click a point for its cases."
ALL = "all"
MOST_IN_VIEW = 16  # rows of a table that are shown without scrolling


@contextmanager
def how_it_is_measured() -> Iterator[None]:
    """Open the expander that explains what the numbers are, their unit and how to read them."""
    with st.expander("How it is measured", icon=":material/straighten:", key="how_measured"):
        yield


def end(subject: PageSubject, name: str) -> None:
    """Draw the bottom of a page: an expander with the paper's table, notes on models, and question set details."""
    with st.expander(
        "In the format of the paper's tables", icon=":material/table_chart:", key="paper_table"
    ):
        table = draw_table(subject)
        export.draw_menu(
            f"{name}_table", table=view(views.papers.remade, subject.question_set, table.number)
        )
    frame.draw_details(subject)


def draw_table(subject: PageSubject) -> PaperTable:
    """Draw a picker for the paper's tables and the chosen table, filled from the user's runs. Returns the table."""
    by_number = {str(table.number): table for table in TABLES[subject.probe]}
    number = next(iter(by_number))
    if len(by_number) > 1:
        names = {name: f"Table {name}: {table.title}" for name, table in by_number.items()}
        number = choose("Table in the paper", "table", names, number)
    table = by_number[number]
    remade = papers.remade(
        view(views.papers.remade, subject.question_set, table.number),
        table,
        subject.metrics,
        subject.looks,
        {model: model_name(model) for model in subject.models},
    )
    st.html(remade.table)
    quiet(remade.remark)
    _draw_notes(remade.notes)
    return table


def _draw_notes(notes: Sequence[str]) -> None:
    """Draw numbered notes on printed numbers in an expander, unless there are no notes."""
    if notes:
        with st.expander(f"Notes on the printed numbers ({len(notes)})"):
            st.html(papers.numbered(notes))


def draw_altered_file(subject: PageSubject) -> None:
    """Draw a picker for a policy and seed, and a button that downloads the altered captions in RoCOCO's layout."""
    choices = view(views.estimates.choices, subject.question_set)
    rules = list(dict.fromkeys(choices.loc[choices["kind"] == "i2t", "rule"]))
    if not rules:
        quiet("No caption is altered in these questions.")
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        labels = {name: value_label(name) for name in rules}
        rule = choose("Altered captions", "altered", labels, rules[0])
        export.file_button(
            "Download (RoCOCO format)",
            partial(altered_captions, partial(store().cases(subject.key).blocks, "cases"), rule),
            f"{released_layout.file_names([rule])[rule]}.json",
            "application/json",
            key="altered_file",
            help="A JSON list of `image` and `caption` entries: five or six captions of the "
            "picture, then five altered ones. The dataset `rococo:FILE@PICTURES` and any "
            "program that reads RoCOCO's own files can read it.",
        )
    quiet(
        "Pictures that have fewer than five captions, more than six captions, or a caption that "
        "could not be altered do not fit this layout and are left out. To write the mixed "
        "pictures too, run vlprobe perturb DATASET FOLDER --probe rococo."
    )


def altered_captions(cases: Reader, rule: str) -> bytes:
    """Build the file with one rule's altered captions in RoCOCO's layout. Called when the user clicks the download."""
    names = {
        name
        for block in cases(["kind", "images"])
        for images in block.filter(pc.field("kind") == "i2t")["images"].to_pylist()
        for name in images
    }
    _, name_of = released_layout.image_names(map(Picture.from_name, sorted(names)))
    layouts = released_layout.layouts(cases, name_of, rule)
    return layouts.get(rule, released_layout.ReleasedLayout()).encoded()


def draw_printed_numbers() -> None:
    """Draw the Printed numbers page: pickers, a summary, and a table of a paper's numbers next to those from a run."""
    with st.container(horizontal=True, vertical_alignment="bottom", key="lab_subject"):
        titles = {
            probe: presented.title
            for probe, presented in presentations().items()
            if probe in SOURCES
        }
        paper = choose("Paper", "paper", titles, next(iter(titles)))
        subject = _pick_run_set(paper)
        model = pick_model(subject, paper) if subject else ""
        cells = (
            view(views.papers.beside, subject.question_set, model, paper)
            if subject
            else views.papers.cells(paper)
        )
        with st.popover("Filters", icon=":material/filter_list:", key="printed_filters"):
            numbers = {str(number): f"Table {number}" for number in cells["table"].unique()}
            table = choose("Table", "table", {ALL: "All tables"} | numbers, ALL)
            present = set(cells["mark"])
            marks = {name: papers.REMARKS[name] for name in MARKS if name in present}
            mark = choose("Remarks", "remark", {ALL: "All"} | marks, ALL)
            contains = search("Words", "words", "Such as a model or a metric")
    st.title("Printed numbers", anchor=False)
    _summarize(paper, cells, subject, model)
    cells = _matching(cells, table, mark, contains)
    if cells.empty:
        st.info("No printed number matches these filters.", icon=":material/info:")
        return
    hidden = {} if subject else dict.fromkeys(("This run", "95 % interval"))
    st.dataframe(
        papers.printed(records(PrintedCell, cells)),
        hide_index=True,
        key="printed_numbers",
        height=640 if len(cells) > MOST_IN_VIEW else "content",
        column_config=hidden
        | {
            "Table": st.column_config.NumberColumn(width=60, pinned=True),
            "Model": st.column_config.TextColumn(width=180),
            "Measured": st.column_config.TextColumn(width=180),
            "Remark": st.column_config.TextColumn(width="large"),
        },
    )
    _draw_notes([note.removeprefix("suspect: ") for note in cells["note"].unique() if note])
    export.draw_menu(f"printed_{paper}", table=cells)
    if subject:
        frame.notes(subject)


def _pick_run_set(paper: str) -> PageSubject | None:
    """Draw a picker for question sets whose runs fill cells in the paper's tables. Returns None if none are stored."""
    sets = view(views.runs.question_sets)
    sets = sets.loc[sets["probe"].isin(views.papers.probes_of(paper))]
    if sets.empty:
        return None
    labels = set_labels(sets.sort_values("probe", key=lambda probe: probe != paper, kind="stable"))
    return page_subject(choose("Question set", "set", labels, next(iter(labels)), always=True))


def _summarize(paper: str, cells: pd.DataFrame, subject: PageSubject | None, model: str) -> None:
    """Draw how many numbers a paper prints, how many of them are doubtful, and how many the run measured too."""
    source = SOURCES[paper]
    n_doubted = len(cells.loc[cells["mark"] == "doubted"])
    st.markdown(
        f"{plain(source.title)} ({source.year}): **{len(cells):,}** printed numbers, **{n_doubted:,}** of them "
        "doubtful (see Remark)."
    )
    if subject is None:
        st.info("This paper's tests have not been run yet.", icon=":material/info:")
        return
    name, n_beside = model_name(model), len(cells.dropna(subset=["run"]))
    is_printed = True in set(cells["same_weights"])
    quiet(
        f"{name} {'has rows here (“Same weights”)' if is_printed else 'is another model'}. It has a number with "
        f"the same meaning and unit for {n_beside:,} of them. The pictures differ unless you ran the paper's "
        f"dataset. Empty cells were not measured in this run. {AVERAGED[AS_PAPER]}"
    )
    query = {"set": subject.key, "model": model}
    link_page("explore", f"The cases of {plain(name)}", query, icon="image_search")


def _matching(cells: pd.DataFrame, table: str, mark: str, contains: str) -> pd.DataFrame:
    """Return the cells that match a table and a mark (ALL matches any) and contain all words in `contains`."""
    if table != ALL:
        cells = cells.loc[cells["table"] == int(table)]
    if mark != ALL:
        cells = cells.loc[cells["mark"] == mark]
    columns = ["dataset", "split", "model", "metric", "note"]
    texts = cells[columns].agg(" ".join, axis=1).str.lower().str.replace("_", " ")
    for word in contains.lower().replace("_", " ").split():
        texts = texts[texts.str.contains(word, regex=False)]
    return cells.loc[texts.index]
