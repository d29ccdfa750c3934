"""Every number that the papers print, with the number of a stored run next to it."""

import pandas as pd
import streamlit as st

from vlprobe import views
from vlprobe.dashboard import export, frame
from vlprobe.dashboard.lab.opening import pick_model
from vlprobe.dashboard.state import (
    PageSubject,
    choose,
    model_name,
    page_subject,
    paginate,
    plain,
    quiet,
    search,
    set_labels,
    view,
)
from vlprobe.render.html import printed as render_printed
from vlprobe.render.words import AVERAGED, presentations
from vlprobe.storage.store import Store
from vlprobe.types import AS_PAPER
from vlprobe.views.printed import MARKS
from vlprobe.views.published import SOURCES
from vlprobe.views.records import PrintedCell, records

PAGE_SIZE = 60
ALL = "all"


def draw_page() -> None:
    """The pickers, a summary of the table in a sentence, the table, and its download."""
    with st.container(horizontal=True, vertical_alignment="bottom", key="lab_subject"):
        papers = {
            probe: presented.title
            for probe, presented in presentations().items()
            if probe in SOURCES
        }
        paper = choose("Paper", "paper", papers, next(iter(papers)))
        stored = _stored(paper)
        model = pick_model(stored) if stored else ""
        cells = _cells(paper, stored, model)
        with st.popover("Filters", icon=":material/filter_list:", key="printed_filters"):
            tables = {str(number): f"Table {number}" for number in cells["table"].unique()}
            table = choose("Table", "table", {ALL: "All tables"} | tables, ALL)
            present = set(cells["mark"])
            marks = {name: render_printed.WORDS[name] for name in MARKS if name in present}
            mark = choose("Remarks", "remark", {ALL: "With and without"} | marks, ALL)
            contains = search("Words", "words", "Such as a model or a number's name")
    st.title("Printed numbers", anchor=False)
    _summary(paper, cells, stored, model)
    cells = _matching(cells, table, mark, contains)
    if cells.empty:
        st.info("No printed number has these words and remarks.", icon=":material/info:")
        return
    page = paginate(len(cells), PAGE_SIZE)
    page_cells = cells.iloc[PAGE_SIZE * (page - 1) : PAGE_SIZE * page]
    st.html(
        render_printed.printed(records(PrintedCell, page_cells), f"What {papers[paper]} prints")
    )
    export.download(cells, f"printed_{paper}")
    if stored:
        frame.notes(stored)


def _stored(paper: str) -> PageSubject | None:
    """The picker of question sets whose runs fill cells of the paper; None if none are stored."""
    sets = view(views.runs.question_sets)
    sets = sets.loc[sets["probe"].isin(views.printed.probes_of(paper))]
    if sets.empty:
        return None
    labels = set_labels(sets.sort_values("probe", key=lambda probe: probe != paper, kind="stable"))
    return page_subject(choose("Question set", "set", labels, next(iter(labels)), always=True))


def _cells(paper: str, stored: PageSubject | None, model: str) -> pd.DataFrame:
    if stored is None:
        return view(_printed, paper)
    return view(views.printed.beside, stored.question_set, model, paper)


def _printed(_: Store, paper: str) -> pd.DataFrame:
    return views.printed.cells(paper)


def _summary(paper: str, cells: pd.DataFrame, stored: PageSubject | None, model: str) -> None:
    source = SOURCES[paper]
    n_doubted = len(cells.loc[cells["mark"] == "doubted"])
    st.markdown(
        f"{plain(source.title)} ({source.year}) prints **{len(cells):,}** numbers; **{n_doubted:,}** "
        "of them are doubted; the reason stands beside each."
    )
    if stored is None:
        st.info("Nobody was asked the questions of this paper yet.", icon=":material/info:")
        return
    n_beside = len(cells.dropna(subset=["run"]))
    quiet(
        f"Yours: {model_name(model)}, beside the {n_beside:,} numbers that mean the same, in their "
        "unit and with the 95 % interval. The pictures are others unless you ran the paper's own, "
        "and the model is another one unless it says so. A dash: nothing of this run means the same. "
        f"{AVERAGED[AS_PAPER]}"
    )
    st.page_link(
        "pages/explore.py",
        label=f"The cases of {plain(model_name(model))}",
        icon=":material/image_search:",
        query_params={"set": stored.key, "model": model},
    )


def _matching(cells: pd.DataFrame, table: str, mark: str, contains: str) -> pd.DataFrame:
    """The cells of a table and with a mark, each `ALL` for every one, that have all words in any of
    their texts.
    """
    if table != ALL:
        cells = cells.loc[cells["table"] == int(table)]
    if mark != ALL:
        cells = cells.loc[cells["mark"] == mark]
    columns = ["dataset", "split", "model", "metric", "note"]
    texts = cells[columns].agg(" ".join, axis=1).str.lower().str.replace("_", " ")
    for word in contains.lower().replace("_", " ").split():
        texts = texts[texts.str.contains(word, regex=False)]
    return cells.loc[texts.index]
