"""The sentence above the wall: which model, fooled by what, in which pictures.

The URL names the question set, the model and the kind; a choice of another kind or dataset leads to
the most complete question set that has it.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import streamlit as st

from vlprobe import views
from vlprobe.dashboard.state import (
    PageSubject,
    carried,
    carry,
    choose,
    dataset_name,
    mark_picked,
    model_labels,
    model_name,
    page_subject,
    plain,
    view,
)
from vlprobe.registry import is_control, model_order
from vlprobe.render.charts.styles import Look
from vlprobe.render.html.elements import SHAPES, tag
from vlprobe.render.words import distinct, presentations

NARROWEST, WIDEST = 96, 280  # of a picker, in pixels
LETTER, FRAME = 8.1, 58  # pixels of a letter, and of the parts of a picker other than text
MARK = 18  # pixels of a mark in a picker
LINKED = ("set", "model", "kind")  # what a link names that has to be here
BETWEEN = ":"  # of the key of a set and a kind
ELSEWHERE = "In other datasets"
MOST_OTHERS = 30  # question sets whose kinds are listed
OF_PICTURES = ("tag", "tagged", "pictured")  # filters that mean something in one data set only


@dataclass(frozen=True)
class StoredSet:
    """A question set that can be picked."""

    key: str
    label: str
    dataset: str
    probe: str
    models: tuple[str, ...]


def stored_sets() -> list[StoredSet]:
    """All question sets, most complete first; labels tell apart those that look alike."""
    rows = view(views.runs.question_set_rows)
    labels = [row.label for row in rows]
    return [
        StoredSet(
            row.case_key,
            row.label if labels.count(row.label) == 1 else f"{row.label} · {row.case_key[:6]}",
            row.dataset,
            row.probe,
            tuple(row.models),
        )
        for row in rows
    ]


def subject() -> PageSubject:
    """Return the selection of the URL, else the last one viewed, else the most complete. The page stops if nothing is
    stored, or if a link names results that are not stored.
    """
    sets = stored_sets()
    if not sets:
        st.info("No results yet. Run a test first.", icon=":material/info:")
        st.page_link("pages/run.py", label="Ask a model", icon=":material/play_arrow:")
        st.stop()
    _stop_at_strangers(sets)
    keys = [candidate.key for candidate in _likely(sets)]
    stored = page_subject(_current("set", keys, keys[0]))
    model = _current("model", stored.models, most_asked(stored))
    kinds_here = stored_kinds(stored)
    kind = _current(
        "kind", kinds_here, view(views.runs.default_kind, stored.question_set, (model,))
    )
    return replace(stored, model=model, kind=kind)


def _likely(sets: Sequence[StoredSet]) -> list[StoredSet]:
    """The question sets, those first that the URL's model and kind are of."""
    model, kind = (st.query_params.get(name, "") for name in ("model", "kind"))
    return sorted(
        sets,
        key=lambda stored: (
            bool(model) and model not in stored.models,
            bool(kind) and kind not in presentations()[stored.probe].kinds,
        ),
    )


def most_asked(stored: PageSubject) -> str:
    """Return the model that answered most cases here, of all question sets; of several the first as
    pages list them.
    """
    n_cases = view(views.runs.n_cases_by_model)
    return min(
        stored.models,
        key=lambda model: (is_control(model), -n_cases.get(model, 0), model_order(model)),
    )


def _current(name: str, options: Sequence[str], default: str) -> str:
    """The URL's choice, else the one of the page before, else the default; the
    URL names it from now on.
    """
    linked = any(st.query_params.get(parameter) for parameter in LINKED)
    before = default if name == "set" and linked else carried(name, options, default)
    value = st.query_params.get(name, "")
    value = value if value in options else before
    if st.query_params.get(name) != value:
        st.query_params[name] = value
    carry(name, value)
    return value


def _stop_at_strangers(sets: Sequence[StoredSet]) -> None:
    """Stop the page at a link about results that are not here; a picker's leftovers
    are dropped without a word.
    """
    strangers = list(_strangers(sets))
    if not strangers:
        return
    if "picked" in st.session_state:
        for name, _ in strangers:
            del st.query_params[name]
        return
    about = ", ".join(f"{name} “{plain(value)}”" for name, value in strangers)
    st.html(tag("h1", "These results were not found.", class_="vp-nothing"))
    st.warning(
        f"This link refers to results that are not on this computer: {about}.",
        icon=":material/link_off:",
    )
    st.button("Show the available results", key="show_what_is_here", on_click=_forget_link)
    st.stop()


def _strangers(sets: Sequence[StoredSet]) -> Iterator[tuple[str, str]]:
    """Names of parameters of the URL, and what they name that is not stored."""
    linked = {name: st.query_params.get(name, "") for name in LINKED}
    by_key = {stored.key: stored for stored in sets}
    linked_set = by_key.get(linked["set"])
    if linked["set"] and linked_set is None:
        yield "question set", shortened(linked["set"])
    candidates = [linked_set] if linked_set else sets
    if linked["model"] and not any(linked["model"] in stored.models for stored in candidates):
        yield "model", shortened(linked["model"])
    probes = {stored.probe for stored in candidates}
    if linked["kind"] and not any(
        linked["kind"] in presentations()[probe].kinds for probe in probes
    ):
        yield "kind", shortened(linked["kind"])


def shortened(text: str, length: int = 80) -> str:
    """Return the value of a link, cut to this many characters."""
    return text if len(text) <= length else f"{text[:length]}…"


def _forget_link() -> None:
    mark_picked()
    st.query_params.clear()


def stored_kinds(stored: PageSubject) -> list[str]:
    """Return the kinds that have cases in a question set, in the probe's order."""
    return view(views.runs.stored_kinds, stored.key, stored.probe)


def draw_sentence(about: PageSubject) -> None:
    """The three pickers with the words between them."""
    kind = about.kind_presentation
    pick_model(about)
    st.html(tag("p", kind.verb, class_="vp-between"), width="content")
    pick_kind(about)
    st.html(tag("p", "in", class_="vp-between"), width="content")
    pick_dataset(about)


def pick_model(about: PageSubject, on_change: Callable[[], None] | None = None) -> None:
    """The picker of the model; `on_change` is called before the URL names the new one."""
    label = model_labels(about.models)
    models = {name: label(name) for name in about.models}
    choose(
        "Model",
        "model",
        models,
        about.model,
        always=True,
        bare=True,
        width=picker_width(models[about.model]) + MARK,
        on_change=on_change,
    )
    _draw_mark(about.looks[about.model])


def _draw_mark(look: Look) -> None:
    """The model's mark in its picker, which shows only text."""
    mark = f'content: "{SHAPES[look.symbol]}"; color: {look.css};'
    st.html(f"<style>.st-key-model .react-aria-ComboBox > div::before {{ {mark} }}</style>")


def picker_width(text: str) -> int:
    """Return the width of a picker that shows this text, in pixels."""
    return int(min(max(len(text) * LETTER + FRAME, NARROWEST), WIDEST))


def pick_kind(about: PageSubject) -> None:
    """The picker of the kind: those of this data set, then those that only others have, which are
    named together with what else the choice changes.
    """
    options = {kind: _lie(about.probe, kind) for kind in stored_kinds(about)}
    here, elsewhere = _other_kinds(about)
    options |= here
    if elsewhere:
        options |= {"": ELSEWHERE} | elsewhere
    options = distinct(options)
    st.session_state["kind"] = about.kind
    st.selectbox(
        "Kind of question",
        list(options),
        format_func=options.__getitem__,
        key="kind",
        on_change=_change_kind,
        label_visibility="collapsed",
        width=picker_width(options[about.kind]),
    )


def _other_kinds(about: PageSubject) -> tuple[dict[str, str], dict[str, str]]:
    """List the kinds of other question sets, each by the key of its set and its name.

    Returns:
        Those about the same pictures, and those about others. Of several sets of a probe about the
        same pictures one is listed: the most complete with this model, else of all.
    """
    sets = sorted(stored_sets(), key=lambda stored: about.model not in stored.models)
    nearest: dict[tuple[str, str], StoredSet] = {}
    for stored in sets:
        nearest.setdefault((stored.probe, stored.dataset), stored)
    shown = next(stored for stored in sets if stored.key == about.key)
    del nearest[shown.probe, shown.dataset]
    own = stored_kinds(about)
    kinds = [
        (stored, kind)
        for stored in list(nearest.values())[:MOST_OTHERS]
        for kind in stored_kinds(page_subject(stored.key))
        if stored.probe != shown.probe or kind not in own
    ]
    n_alike = Counter(_lie(probe, kind) for probe, kind in {(s.probe, kind) for s, kind in kinds})
    n_alike.update(_lie(shown.probe, kind) for kind in own)
    names = distinct({stored.dataset: dataset_name(stored.dataset) for stored in sets})
    here, elsewhere = {}, {}
    for stored, kind in kinds:
        label = _lie(stored.probe, kind)
        if n_alike[label] > 1:
            label = f"{label} ({presentations()[stored.probe].name})"
        others = here if stored.dataset == shown.dataset else elsewhere
        if others is elsewhere:
            label = f"{label} in {names[stored.dataset]}"
        if about.model not in stored.models:
            label = f"{label}, for {model_name(most_asked(page_subject(stored.key)))}"
        others[f"{stored.key}{BETWEEN}{kind}"] = label
    return here, elsewhere


def _lie(probe: str, kind: str) -> str:
    presentation = presentations()[probe].kind(kind)
    return presentation.lie or presentation.label


def _change_kind() -> None:
    """Go to another kind of the same question set, or to the set that has it."""
    key, between, kind = st.session_state["kind"].partition(BETWEEN)
    if not between and not key:  # the heading of the others
        return
    _leave(("type", "rule", "pair", "bucket", "outcome", "sort", "area"))
    if not between:
        st.query_params["kind"] = key
        return
    _leave(OF_PICTURES)
    st.query_params["set"] = key
    st.query_params["kind"] = kind


def pick_dataset(about: PageSubject, suffix: str = "") -> None:
    """The pictures of the question set; others lead to the most complete questions about them."""
    sets = stored_sets()
    names = distinct({stored.dataset: dataset_name(stored.dataset) for stored in sets})
    dataset = next(stored.dataset for stored in sets if stored.key == about.key)
    st.session_state[f"dataset{suffix}"] = dataset
    st.selectbox(
        "Pictures",
        list(names),
        format_func=names.__getitem__,
        key=f"dataset{suffix}",
        on_change=_change_dataset,
        args=(about.probe, suffix),
        label_visibility="visible" if suffix else "collapsed",
        width="stretch" if suffix else picker_width(names[dataset]),
    )


def _change_dataset(probe: str, suffix: str) -> None:
    dataset = st.session_state[f"dataset{suffix}"]
    candidates = [stored for stored in stored_sets() if stored.dataset == dataset]
    nearest = next((stored for stored in candidates if stored.probe == probe), candidates[0])
    _leave(("type", "rule", "pair", "area", *OF_PICTURES))
    st.query_params["set"] = nearest.key


def _leave(names: Sequence[str]) -> None:
    """Remove parameters from the URL that do not apply to another choice; the others were not set by a link."""
    mark_picked()
    for name in (*names, "page", "case"):
        st.query_params.pop(name, None)
