"""The sentence above the trade-off: which models, in which pictures.

The URL names the question set (`set`), the models that are shown where not all are (`shown`), and
the model whose worst mistake is pinned beside the picture (`model`).
"""

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from vlprobe import views
from vlprobe.dashboard import frame
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
    quiet,
    report_missing,
    set_labels,
    view,
)
from vlprobe.render.html.elements import tag
from vlprobe.render.sentences import count_word, every_model, listed
from vlprobe.render.words import presentations

BETWEEN = "|"  # names in the URL
NUMBERS = "pages/breakdown.py"
LETTER, FRAME = 8.1, 58  # pixels of a letter, and of the parts of a picker other than text


def probes_with_trade_off() -> list[str]:
    """Names of probes that have two sides to be good at."""
    return [name for name, presentation in presentations().items() if presentation.trade_off]


def subject() -> PageSubject:
    """Return the selection of the URL, else the last one viewed; its question set has only the shown models.

    Without results, draw a button and stop the page.
    """
    probes = probes_with_trade_off()
    table = view(views.runs.question_sets)
    keys = table.loc[table["probe"].isin(probes), "case_key"].tolist()
    linked = st.query_params.get("set", "")
    if linked in set(table["case_key"]) - set(keys):
        _lead_on(linked, keys)
    if not keys:
        st.html(tag("h1", "Which model is steady, and which is alert?"))
        frame.begin(probes[0])
    stored = page_subject(linked if linked in keys else carried("set", keys, keys[0]))
    listed = [name for name in st.query_params.get("shown", "").split(BETWEEN) if name]
    models = tuple(model for model in stored.models if model in listed) or stored.models
    runs = tuple(run for run in stored.question_set.runs if run.model in models)
    return replace(stored, question_set=replace(stored.question_set, runs=runs), models=models)


def _lead_on(linked: str, keys: Sequence[str]) -> None:
    """An address of a question set without two sides; stops the page.

    That of the overview, which showed all probes and opens the numbers, leads to them.
    """
    if "numbers" in st.query_params.get("open", ""):
        st.switch_page(NUMBERS, query_params=st.query_params.to_dict())
    stored = page_subject(linked)
    name = f"“{stored.presentation.name}”"
    weighed = listed([f"“{presentations()[probe].name}”" for probe in probes_with_trade_off()])
    st.title("These questions have no trade-off.", anchor=False)
    quiet(
        f"{name} asks one thing. A trade-off shows who stays steady when a caption is only reworded, and who is alert "
        f"when it is made wrong. {weighed} asks both."
    )
    with st.container(horizontal=True):
        query = {"set": linked}
        st.page_link(NUMBERS, label="What fools these models", query_params=query)
        if keys:
            query = {"set": keys[0]}
            st.page_link("pages/tradeoff.py", label="A trade-off that is here", query_params=query)
    st.stop()


def draw_sentence(about: PageSubject) -> None:
    """Both pickers with the words between them."""
    _word("How steady and how alert are")
    _pick_models(about)
    _word("in")
    options = _options()
    longest = options.get(about.key, "")
    choose(
        "Pictures",
        "set",
        options,
        about.key,
        always=True,
        bare=True,
        width=int(min(LETTER * len(longest) + FRAME, 320)),
    )


def _word(text: str) -> None:
    st.html(tag("p", text, class_="vp-between"), width="content")


def _options() -> dict[str, str]:
    """Question sets that have a trade-off, by the names of their pictures and, if these are alike, the difference."""
    table = view(views.runs.question_sets)
    rows = table.loc[table["probe"].isin(probes_with_trade_off())]
    names = [dataset_name(dataset) for dataset in rows["dataset"]]
    return {
        key: name if names.count(name) == 1 else label
        for name, (key, label) in zip(names, set_labels(rows).items(), strict=True)
    }


def _pick_models(about: PageSubject) -> None:
    everyone, models = page_subject(about.key).models, about.models
    label = f"{count_word(len(models))} of {count_word(len(everyone))} models"
    if len(models) == len(everyone):
        label = every_model(len(everyone))
    if len(everyone) == 1:
        label = model_name(everyone[0])
    with st.popover(label, key="shown_models"):
        st.session_state["shown"] = list(models)
        st.multiselect(
            "Models in the picture",
            list(everyone),
            format_func=model_labels(everyone),
            key="shown",
            on_change=_change_models,
            args=(everyone,),
        )
        if len(models) < len(everyone):
            st.button("Show all", key="show_all", on_click=_show_all)


def _change_models(everyone: Sequence[str]) -> None:
    """Write the chosen models into the URL; all, and none, do not count as a choice."""
    mark_picked()
    picked_models = st.session_state["shown"]
    if len(picked_models) in (0, len(everyone)):
        st.query_params.pop("shown", None)
    else:
        st.query_params["shown"] = BETWEEN.join(picked_models)


def _show_all() -> None:
    mark_picked()
    st.query_params.pop("shown", None)


def pinned(about: PageSubject, default: str) -> str:
    """The model whose worst mistake is shown: that of the URL, else the last one viewed, else `default`."""
    linked = st.query_params.get("model", "")
    if linked in about.models:
        carry("model", linked)
        return linked
    if linked and linked not in page_subject(about.key).models:
        report_missing("Model", "model", linked)
        del st.query_params["model"]
    return carried("model", about.models, default or about.models[0])


def pin(model: str) -> None:
    """Put a model that was pressed into the URL."""
    mark_picked()
    carry("model", model)
    st.query_params["model"] = model
