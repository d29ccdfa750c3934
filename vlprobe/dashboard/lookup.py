"""The search field above every page. It finds papers, tests, metrics and symbols, models, datasets, pages,
documentation and words of captions.
"""

import contextlib
import re

import streamlit as st

from vlprobe import views
from vlprobe.dashboard.components import component
from vlprobe.dashboard.lab.documentation import titles
from vlprobe.dashboard.navigation import BELOW, ROW
from vlprobe.dashboard.state import (
    dataset_name,
    model_labels,
    n_passing,
    page_subject,
    plain,
    quiet,
    set_labels,
    view,
)
from vlprobe.dashboard.widgets import draw_row, open_page, press
from vlprobe.datasets.tables.layouts import LAYOUTS
from vlprobe.errors import VlprobeError
from vlprobe.render.html import tables
from vlprobe.render.html.elements import column_heads, table, tag
from vlprobe.render.sentences import counted
from vlprobe.render.symbols import SYMBOLS, heading
from vlprobe.render.words import presentations
from vlprobe.storage import access, annotations
from vlprobe.views.filter import Filter
from vlprobe.views.published import SOURCES

Target = tuple[str, dict[str, str]]  # a page and its URL parameters
PAGES = {
    "rococo": "retrieval",
    "eqben": "pairs",
    "visla": "triplets",
    "prsm": "rankings",
    "series": "series",
}
# Symbols with an entry of their own: the field ranks long texts lower, so that PR would find Present first
SHORT = {**SYMBOLS, "i2t_r1": "R@K", "i2t_rsms": "RSMS"}
WORDS_LENGTH, SHORTEST = 200, 3  # characters of typed words that are looked up in captions
MOST_DATASETS = 3  # with such captions
LOSSES = ("EqSim · EqBen's fine-tuning loss", "SC+VC (SCVC) · RoCOCO's fine-tuning loss")
KEYS = {
    "/": "search",
    "?": "this list",
    "← → Esc": "in a case: previous (or K), next (or J), leave the zoom or close",
    "1 2 3 4": f"in a case: {', '.join(annotations.SUGGESTED)}",
    "T Z D": "in a case: other tags and a note, zoom, add to the deck",
    "L P": "in a case: copy link, Try it",
    "↑ ↓ ← → Enter": "on the wall: move, open",
    "X": "on the wall: select a case (or Ctrl+click), then tag, export, save as a slice",
    "Shift+↑ ↓ ← →": "on the wall: select a range (or Shift+click)",
    "Ctrl+A Esc": "on the wall: select all cards, none",
    "+ - [": "on Explore: larger pictures, smaller pictures, show or hide filters",
    "1 2 F": "in the quiz: choose a caption (also on Home with “Guess first”), full screen",
    "← → B Esc": "on slides: previous, next, black screen, end",
    "Y W B U": "on Suspect labels: choose a verdict",
}


def draw() -> None:
    """Draw the search button, with a search field and the keyboard shortcuts. Choosing an entry opens its page."""
    every = targets()
    if chosen := st.session_state.pop("looked_up", None):
        st.session_state["n_opened"] = st.session_state.get("n_opened", 0) + 1
        st.session_state.pop("typed_words", None)
        page, query = chosen if isinstance(chosen, tuple) else every[chosen]
        open_page(page, query)
    with st.popover("Search", icon=":material/search:", type="tertiary", key="lookup"):
        _draw_captions()
        st.selectbox(
            "Search papers, symbols, tests, models, datasets and pages",
            list(every),
            index=None,
            placeholder="Such as RoCOCO, PR or Winoground",
            key="lookup_field",
            on_change=_choose,
        )
        rows = [
            f"<tr>{tag('th', keys, scope='row')}{tag('td', use)}</tr>" for keys, use in KEYS.items()
        ]
        keys = table("Keys", column_heads(("Keys", "What they do")), rows, "vp-prose")
        st.html(f'<div class="vp-keys">{keys}</div>')
    component("lookup")(key="lookup_keys", data={"n_opened": st.session_state.get("n_opened", 0)})


def _choose() -> None:
    st.session_state["looked_up"] = st.session_state["lookup_field"]
    st.session_state["lookup_field"] = None


@st.fragment
def _draw_captions() -> None:
    """Draw a button for each dataset with captions that contain the typed words. It opens their cases in Explore."""
    if isinstance(st.session_state.get("looked_up"), tuple):
        st.rerun()
    component("typed")(key="lookup_typed", on_typed_change=_keep_typed)
    text = st.session_state.get("typed_words", "")
    with draw_row("caption_hits", gap="xsmall"):
        hits = _captions_with(text) if text else []
        none = f"No caption contains “{text}”." if text else "Type a word to find captions, too."
        none += " To compare models, choose them on Compare." * (" vs" in text.lower())
        quiet(f"Captions with “{text}”:" if hits else none)
        for dataset, n_cases, query in hits:
            label = f"{counted(n_cases, 'case')} in {plain(dataset)}"
            choice = st.session_state.__setitem__, "looked_up", ("explore", query)
            press(label, *choice, key=f"captions {query['set']}")


def _keep_typed() -> None:
    text = str(st.session_state["lookup_typed"].get("typed") or "").strip()[:WORDS_LENGTH]
    st.session_state["typed_words"] = text if len(text) >= SHORTEST else ""


def _captions_with(text: str) -> list[tuple[str, int, dict[str, str]]]:
    """Return the name of each dataset with captions that contain the words of a text, the number of their cases, and
    the URL parameters for Explore. The page's question set is first.
    """
    shown = st.query_params.get("set", "")
    rows = sorted(view(views.runs.question_set_rows), key=lambda row: row.case_key != shown)
    hits = {}
    for row in rows:
        if row.dataset in hits or len(hits) == MOST_DATASETS:
            continue
        with contextlib.suppress(VlprobeError):  # damaged results: their own page says so
            subject = page_subject(row.case_key)
            kind = view(views.runs.default_kind, subject.question_set)
            model = view(views.runs.default_model, tuple(row.models))
            query = {"set": row.case_key, "kind": kind, "words": text, "outcome": "all"}
            if n_cases := n_passing(subject, Filter(model, kind, contains=text, outcome="all")):
                hits[row.dataset] = dataset_name(row.dataset), n_cases, query
    return list(hits.values())


def targets() -> dict[str, Target]:
    """Map the text of each search entry to the page that it opens."""
    sets = view(views.runs.question_sets)
    first = dict(sets.drop_duplicates("probe")[["probe", "case_key"]].to_numpy().tolist())
    shown, entries = presentations(), {}
    for probe, presentation in shown.items():
        page, query = _probe_page(probe, first)
        entries[f"{presentation.name} · test"] = page, query
        for name, metric in tables.metrics(probe).items():
            text = f"{heading(metric)} · {presentation.name}"
            if name in presentation.main_metrics or not query:
                choice = {"kind": metric.kinds[0]}
                if page == "tradeoff":
                    sides = presentation.trade_off
                    choice = {"up": name} if sides and name in sides.ups else {}
                entries[text] = page, query | choice
            else:
                entries[text] = "breakdown", query | {"metric": name}
            if name in SHORT:
                entries.setdefault(f"{SHORT[name]} · {paper_name(probe)}", entries[text])
    for paper, source in SOURCES.items():
        text = f"{paper_name(paper)} · paper: {source.title}, {source.year}"
        entries[text] = "published", {"paper": paper}
        entries[f"{paper_name(paper)} · test"] = _probe_page(paper, first)
    entries |= dict.fromkeys(LOSSES, ("repair", {}))
    for key, label in set_labels(sets).items():
        entries[label] = "explore", {"set": key}
    rows = view(views.runs.question_set_rows)
    # The first set of a model is the most complete one, so it is written last
    keys = {model: row.case_key for row in reversed(rows) for model in row.models}
    label_of = model_labels(keys)
    for model, key in keys.items():
        entries[f"{label_of(model)} · model"] = "explore", {"set": key, "model": model}
    for layout in LAYOUTS:
        entries[f"Table layout: {layout.name}"] = "docs", {"page": "reference/columns"}
    left_out = {*PAGES.values(), *(["run"] if access.read_only() else [])}
    entries |= {
        f"{title} · page": (name, {})
        for name, title in {**ROW, **BELOW}.items()
        if name not in left_out
    }
    return entries | {
        f"{title} · documentation": ("docs", {"page": name}) for name, title in titles().items()
    }


def paper_name(probe: str) -> str:
    """Return the name in parentheses after a test's name, which is that of its paper."""
    return re.sub(r".*\((.*)\)", r"\1", presentations()[probe].name)


def _probe_page(probe: str, first: dict[str, str]) -> Target:
    """Return the page for a test, with the test's first question set. If the test never ran, return its own page or, if
    it has none, Run or Lab.
    """
    trade_off = "tradeoff" if presentations()[probe].trade_off else "explore"
    if probe in first:
        return PAGES.get(probe, trade_off), {"set": first[probe]}
    return PAGES.get(probe, "lab" if access.read_only() else "run"), {}
