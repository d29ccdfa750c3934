"""The sentence above a comparison: which model with which others, on what, in which pictures.

The URL names the baseline (`model`), the others in the order of choice (`with`), the kind and the
question set. Older URLs name the baseline `base`.
"""

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from vlprobe import views
from vlprobe.dashboard.cases import sentence
from vlprobe.dashboard.folds import BETWEEN
from vlprobe.dashboard.state import (
    PageSubject,
    carry,
    mark_picked,
    model_labels,
    model_name,
    report_missing,
    view,
)
from vlprobe.registry import is_control
from vlprobe.render.html.elements import SHAPES, tag

MOST = views.paired_tests.MOST_COMPARED - 1  # models beside the baseline
# Pixels of a letter, of the rest of a tag, of the elements at the right of the picker.
LETTER, TAG, ARROW = 7.6, 58, 84
NARROWEST, WIDEST = 150, 440
OLD_CARDS, CARDS = 12, 60  # on a page of cards, before and today


def contest() -> PageSubject:
    """Return the selection of the URL, else the last one viewed. The page stops if nothing can be compared."""
    _lead_on()
    subject = sentence.subject()
    if len(subject.models) < 2:
        st.html(tag("h1", "There is nothing to compare yet."))
        st.info("Only one model ran this test. Comparing takes two.", icon=":material/info:")
        st.page_link("pages/run.py", label="Run another model", icon=":material/play_circle:")
        st.stop()
    rivals = _rivals(subject)
    st.query_params["with"] = BETWEEN.join(rivals)
    carry("with", BETWEEN.join(rivals))
    return replace(subject, rivals=tuple(rivals))


def _lead_on() -> None:
    """Rewrite an older URL: its baseline becomes a model, and its pages had fewer cards."""
    if not (base := st.query_params.get("base", "")):
        return
    st.query_params["model"] = base
    if "type" not in st.query_params:
        st.query_params["type"] = ""
    page = st.query_params.get("page", "")
    if page.isdecimal() and len(page) < 9:
        st.query_params["page"] = str(1 + OLD_CARDS * max(int(page) - 1, 0) // CARDS)
    del st.query_params["base"]


def _rivals(about: PageSubject) -> list[str]:
    """The models that the URL names, in its order; an emptied list stays empty, and one that names no other stored
    model counts as none.
    """
    candidates = [model for model in about.models if model != about.model]
    linked = st.query_params.get("with")
    listed = _split(linked if linked is not None else st.session_state.get("carried_with", ""))
    if linked is not None:
        if gone := [model for model in listed if model not in about.models]:
            report_missing("Compared with it", "with", ", ".join(gone))
        if not listed:
            return []
    rivals = [model for model in listed if model in candidates]
    return rivals[:MOST] or furthest(about)


def _split(text: str) -> list[str]:
    return list(dict.fromkeys(filter(None, text.split(BETWEEN))))


def furthest(about: PageSubject) -> list[str]:
    """Without a choice: the models that differ most from the baseline, controls only where there are no others."""
    others = view(views.showcase.furthest_models, about.question_set, about.kind, about.model)
    models = [model for model in others if not is_control(model)] or list(others)
    return models[:MOST]


def draw_sentence(subject: PageSubject) -> None:
    """The pickers with the words between them."""
    _word("Compare")
    sentence.pick_model(subject, on_change=_change_baseline)
    _word("with")
    _pick_rivals(subject)
    _word("on")
    sentence.pick_kind(subject)
    _word("in")
    sentence.pick_dataset(subject)


def _word(text: str) -> None:
    st.html(tag("p", text, class_="vp-between"), width="content")


def _pick_rivals(subject: PageSubject) -> None:
    candidates = [model for model in subject.models if model != subject.model]
    rivals = list(subject.rivals)
    st.session_state["with"] = rivals
    st.multiselect(
        "Compared with it",
        # Those that were chosen first, in their order, so that a tag has its mark.
        [*rivals, *(model for model in candidates if model not in rivals)],
        format_func=model_labels(subject.models),
        key="with",
        max_selections=MOST,
        on_change=_change_rivals,
        label_visibility="collapsed",
        placeholder="nobody yet",
        width=_width([model_name(model) for model in rivals]),
    )
    _draw_marks(rivals, subject)


def _width(names: Sequence[str]) -> int:
    """Return the width of a picker that shows these names, in pixels."""
    return int(min(max(sum(LETTER * len(name) + TAG for name in names) + ARROW, NARROWEST), WIDEST))


def _draw_marks(models: Sequence[str], stored: PageSubject) -> None:
    """Each model's mark in its tag, which shows only text."""
    rules = [
        f".st-key-with [data-tag]:nth-of-type({nth})::before "
        f'{{ content: "{SHAPES[stored.looks[model].symbol]}"; color: {stored.looks[model].css}; }}'
        for nth, model in enumerate(models, 1)
    ]
    st.html(f"<style>{' '.join(rules)}</style>")


def _change_rivals() -> None:
    mark_picked()
    st.query_params["with"] = BETWEEN.join(st.session_state["with"])
    _leave()


def _change_baseline() -> None:
    """A new baseline that was among the others changes places with the old one."""
    old, new = st.query_params.get("model", ""), st.session_state["model"]
    rivals = _split(st.query_params.get("with", ""))
    st.query_params["with"] = BETWEEN.join(rivals_of_new_baseline(rivals, old, new))
    _leave()


def rivals_of_new_baseline(rivals: Sequence[str], old: str, new: str) -> list[str]:
    """The models to compare with a new baseline: if it was one of them, the old one takes its place."""
    return [old if model == new else model for model in rivals]


def _leave() -> None:
    for name in ("other", "page", "case", "area"):
        st.query_params.pop(name, None)


def draw_nobody(subject: PageSubject) -> None:
    """Nothing is compared yet: what there is, as buttons."""
    base = subject.names[subject.model]
    st.html(tag("h1", f"Compare {base} with..."))
    st.html(tag("p", f"Choose one to {MOST} models in the list above or here:", class_="vp-quiet"))
    offered = [model for model in subject.models if model != subject.model]
    with st.container(horizontal=True, key="offered"):
        for position, model in enumerate(offered[:9]):
            st.button(model_name(model), key=f"offer_{position}", on_click=_offer, args=(model,))


def _offer(model: str) -> None:
    mark_picked()
    st.query_params["with"] = model


def carried_unit() -> str:
    """The unit of movements and gaps that the URL names."""
    return "spread" if st.query_params.get("unit") == "spread" else "cosine"
