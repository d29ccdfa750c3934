"""Pickers for model, kind of question and dataset, arranged as a sentence above the cards, and the order of the cards.

The URL names the question set, the model and the kind. Choosing another kind or dataset opens the most
complete question set that has it.
"""

import datetime
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from vlprobe import views
from vlprobe.dashboard.state import (
    NAMED,
    PageSubject,
    carried,
    carry,
    choose,
    dataset_name,
    model_labels,
    model_name,
    page_subject,
    pick,
    plain,
    ranked_models,
    view,
    write_choice,
)
from vlprobe.dashboard.widgets import BETWEEN as CHOICES
from vlprobe.dashboard.widgets import link_page, press
from vlprobe.render import wall
from vlprobe.render.html.elements import marked_before, tag
from vlprobe.render.sentences import count_word, every_model, shorten
from vlprobe.render.words import distinct, movement_kinds, presentations, probe_name, with_keys
from vlprobe.views.filter import SUSPECTS_LAST, Filter, ordered_region
from vlprobe.views.records import QuestionSetRow

NARROWEST, WIDEST = 96, 280  # width of a picker in pixels
LETTER, FRAME = 8.1, 58  # width in pixels of a letter, and of a picker without its text
MARK = 18  # width in pixels of a mark in a picker
# URL parameters whose values must be stored here, and their names in messages
LINKED = {"set": "question set", "model": "model", "kind": "kind"}
BETWEEN = ":"  # separates the key of a question set and a kind
MOST_OTHERS = 30  # maximum number of question sets whose kinds are listed
# Filters that hold numbers, causes or facets of one kind's cases
OF_CASES = ("region", "unseen", "not")
OF_PICTURES = ("tag", "tagged", "pictured")  # filters that apply to one dataset only


def subject(is_baseline: bool = False) -> PageSubject:
    """Return the question set, model and kind in the URL, or else the last ones viewed or the defaults. If there are no
    results, the page stops.

    Args:
        is_baseline: Whether the default model is the best one of those shown, as others are compared with it.
    """
    sets = view(views.runs.question_set_rows)
    if not sets:
        st.info("No results yet. Run a test first.", icon=":material/info:")
        link_page("run", "Run a test", icon="play_arrow")
        st.stop()
    _stop_at_strangers(sets)
    model, kind = (st.query_params.get(name, "") for name in ("model", "kind"))
    # First those that match the URL's model and kind
    likely = sorted(
        sets,
        key=lambda row: (
            bool(model) and model not in row.models,
            bool(kind) and kind not in presentations()[row.probe].kinds,
        ),
    )
    keys = [candidate.case_key for candidate in likely]
    questions = page_subject(_current("set", keys, keys[0]))
    kinds_here = list_kinds(questions)
    default = view(views.runs.default_model, questions.models)
    if is_baseline:
        kind = kind if kind in kinds_here else carried("kind", kinds_here, "")
        kind = kind or view(views.runs.default_kind, questions.question_set)
        ranked = ranked_models(replace(questions, kind=kind))
        shown = st.query_params.get("shown") or st.session_state.get("carried_shown", "")
        default = next((model for model in ranked if model in shown.split(CHOICES)), ranked[0])
    st.session_state["default_model"] = default
    model = _current("model", questions.models, default)
    kind = _current(
        "kind", kinds_here, view(views.runs.default_kind, questions.question_set, (model,))
    )
    return replace(questions, model=model, kind=kind)


def _current(name: str, options: Sequence[str], default: str) -> str:
    """Return the choice in the URL, else the one on the previous page, else the default. Writes it to the URL."""
    linked = any(st.query_params.get(parameter) for parameter in LINKED)
    fallback = default if name == "set" and linked else carried(name, options, default)
    value = st.query_params.get(name, "")
    value = value if value in options else fallback
    if st.query_params.get(name) != value:
        st.query_params[name] = value
    carry(name, value)
    return value


def _stop_at_strangers(sets: Sequence[QuestionSetRow]) -> None:
    """Stop the page if its link names results that are not stored here. If the user has used a picker, drop the
    unknown values from the URL instead.
    """
    strangers = list(_strangers(sets))
    if not strangers:
        return
    if "picked" in st.session_state:
        for name, _ in strangers:
            del st.query_params[name]
        return
    unknown = ", ".join(
        f"{LINKED[name]} “{plain(shorten(value, NAMED))}”" for name, value in strangers
    )
    st.html(tag("h1", "These results were not found.", class_="vp-nothing"))
    st.warning(
        f"This link refers to results that are not on this computer: {unknown}.",
        icon=":material/link_off:",
    )
    forget = write_choice, dict.fromkeys(st.query_params)
    press("Show the available results", *forget, key="show_what_is_here")
    st.stop()


def _strangers(sets: Sequence[QuestionSetRow]) -> Iterator[tuple[str, str]]:
    """Yield the URL parameter and its value for each question set, model or kind that is not stored here."""
    linked = {name: st.query_params.get(name, "") for name in LINKED}
    by_key = {row.case_key: row for row in sets}
    linked_set = by_key.get(linked["set"])
    if linked["set"] and linked_set is None:
        yield "set", linked["set"]
    candidates = [linked_set] if linked_set else sets
    if linked["model"] and not any(linked["model"] in row.models for row in candidates):
        yield "model", linked["model"]
    probes = {row.probe for row in candidates}
    if linked["kind"] and not any(
        linked["kind"] in presentations()[probe].kinds for probe in probes
    ):
        yield "kind", linked["kind"]


def list_kinds(subject: PageSubject) -> list[str]:
    """Return the kinds of cases in a question set, in the order that the probe defines."""
    return view(views.runs.list_kinds, subject.key, subject.probe)


def draw_word(text: str) -> None:
    """Draw a word between two pickers in a sentence."""
    st.html(tag("p", text, class_="vp-between"), width="content")


def draw_sentence(subject: PageSubject) -> DeltaGenerator:
    """Draw the pickers for model, kind and dataset, with a word between the last two. Return the place of the verb."""
    pick_model(subject)
    verb = st.container(key="verb", width="content")
    pick_kind(subject)
    draw_word("in")
    pick_dataset(subject)
    return verb


def draw_verb(subject: PageSubject, outcome: str) -> None:
    """Draw the words between model and kind. They depend on the outcome that the cards require from the model."""
    verbs = {
        "held": "is not fooled by",
        "tied": "is fooled by a tie with",
        "all": "is fooled or not by",
    }
    if subject.question_set.run(subject.model).n_orders == 2:
        verbs["tied"] = "is fooled in one order by"
    is_movement = subject.kind in movement_kinds()
    verb = subject.kind_presentation.verb
    draw_word(verb if is_movement else verbs.get(outcome, verb))


def pick_model(subject: PageSubject, on_change: Callable[[], None] | None = None) -> None:
    """Draw the model picker. `on_change` is called before a new model is written to the URL."""
    label, look = model_labels(subject.models), subject.looks[subject.model]
    models = {name: label(name) for name in subject.models}
    width = picker_width(models[subject.model]) + MARK
    settings: dict[str, Any] = {"always": True, "bare": True, "width": width}
    choose("Model", "model", models, subject.model, on_change=on_change, **settings)
    # Draw the model's mark in its picker, because a picker can only show text
    rule = marked_before(".st-key-model .react-aria-ComboBox > div", look)
    st.html(f"<style>{rule}</style>")


def shown_models(every: Sequence[str], is_opened: bool = False) -> tuple[str, ...]:
    """Return the models that the URL names or, if the page is opened without a choice, those shown on the page before.
    If there are none, return all.
    """
    linked = st.query_params.get("shown", "")
    names = linked or (st.session_state.get("carried_shown", "") if is_opened else "")
    models = tuple(model for model in every if model in names.split(CHOICES))
    if models:
        st.query_params["shown"] = names
        carry("shown", names)
    return models or tuple(every)


def pick_shown(every: Sequence[str], is_opened: bool = False) -> tuple[str, ...]:
    """Draw a popover with a picker for the models that the page shows, and return them (see `shown_models`)."""
    models = shown_models(every, is_opened)
    label = f"{count_word(len(models))} of {count_word(len(every))} models"
    if len(models) == len(every):
        label = every_model(len(every)) if every[1:] else model_name(every[0])
    options = dict(zip(every, map(model_labels(every), every), strict=True))
    write = partial(show_models, every=every)
    pick_several(label, "shown_models", "Models to show", options, models, write)
    return models


def pick_several(
    label: str,
    key: str,
    title: str,
    options: Mapping[str, str],
    chosen: Collection[str],
    write: Callable[[list[str]], None],
    salt: str = "",
    draw: Callable[..., Any] = st.multiselect,
    **settings: Any,
) -> DeltaGenerator:
    """Draw a popover with a picker for several of the options, and return it. A choice is passed to `write`.

    In a closed popover, the browser keeps the former selection and would send it as a choice. So the picker is another
    one if the options or the `salt` change.
    """
    picker_key = f"{key}_{zlib.crc32(CHOICES.join([*options, salt]).encode()):x}"
    settings |= {"key": picker_key, "format_func": options.__getitem__}
    popover = st.popover(label, key=key)
    with popover:
        st.session_state[picker_key] = list(chosen)
        draw(
            title, list(options), on_change=lambda: write(st.session_state[picker_key]), **settings
        )
        if not salt and len(chosen) < len(options):
            press("Show all", write, list(options), key=f"{key}_all")
    return popover


def show_models(models: Collection[str], every: Collection[str]) -> None:
    """Write the models to show to the URL, also as the choice of Compare's differences. If all or none are selected,
    remove the choice from the URL.
    """
    shown = CHOICES.join(models) if len(models) not in (0, len(every)) else ""
    carry("shown", shown)
    if "with" in st.query_params:
        carry("with", "")
    write_choice({"shown": shown or None, "with": None})


def picker_width(text: str) -> int:
    """Return the width in pixels that a picker needs to show the given text."""
    return int(min(max(len(text) * LETTER + FRAME, NARROWEST), WIDEST))


def pick_kind(subject: PageSubject) -> None:
    """Draw the picker for kinds of questions: first those in this question set, then those in other question sets."""
    options = {kind: _lie(subject.probe, kind) for kind in list_kinds(subject)}
    on_dataset, elsewhere = _other_kinds(subject)
    options = distinct(options | on_dataset | elsewhere)
    width = picker_width(options[subject.kind])
    pick("Kind of question", "kind", options, subject.kind, _change_kind, bare=True, width=width)


def _other_kinds(subject: PageSubject) -> tuple[dict[str, str], dict[str, str]]:
    """Return labels for the kinds in other question sets. The keys combine the key of a question set and a kind.

    Returns:
        The kinds on the same dataset, and the kinds on other datasets. For each probe and dataset, only the most
        complete question set is considered, preferably one with the selected model.
    """
    sets = sorted(
        view(views.runs.question_set_rows), key=lambda row: subject.model not in row.models
    )
    nearest: dict[tuple[str, str], QuestionSetRow] = {}
    for row in sets:
        nearest.setdefault((row.probe, row.dataset), row)
    shown = next(row for row in sets if row.case_key == subject.key)
    del nearest[shown.probe, shown.dataset]
    own_kinds = list_kinds(subject)
    kinds = [
        (row, kind)
        for row in list(nearest.values())[:MOST_OTHERS]
        for kind in view(views.runs.list_kinds, row.case_key, row.probe)
        if row.probe != shown.probe or kind not in own_kinds
    ]
    n_alike = Counter(_lie(probe, kind) for probe, kind in {(s.probe, kind) for s, kind in kinds})
    n_alike.update(_lie(shown.probe, kind) for kind in own_kinds)
    names = distinct({row.dataset: dataset_name(row.dataset) for row in sets})
    on_dataset, elsewhere = {}, {}
    for row, kind in kinds:
        label = _lie(row.probe, kind)
        if n_alike[label] > 1:
            label = f"{label} ({probe_name(row.probe, row.dataset)})"
        others = on_dataset if row.dataset == shown.dataset else elsewhere
        if others is elsewhere:
            label = f"{label} in {names[row.dataset]}"
        if subject.model not in row.models:
            model = view(views.runs.default_model, tuple(row.models))
            label = f"{label}, for {model_name(model)}"
        others[f"{row.case_key}{BETWEEN}{kind}"] = label
    return on_dataset, elsewhere


def _lie(probe: str, kind: str) -> str:
    return presentations()[probe].kind(kind).wrong_side


def _change_kind() -> None:
    """Switch to the picked kind and, if needed, to the question set that contains it."""
    key, between, kind = st.session_state["kind"].partition(BETWEEN)
    left = dict.fromkeys(("type", "rule", "pair", "bucket", "outcome", "sort", "area", *OF_CASES))
    if between:
        sets = st.query_params["set"], key
        before, after = (view(views.runs.question_set, each).runs[0].dataset for each in sets)
        if before != after:
            name = plain(dataset_name(after))
            st.session_state["toast"] = f"The pictures are now {name}, which has such questions."
        write_choice(left | dict.fromkeys(OF_PICTURES) | {"set": key, "kind": kind})
    else:
        write_choice(left | {"kind": key})


def leave_cases() -> None:
    """Remove the filters that hold cases, causes or facets of the current question set from the URL."""
    for name in OF_CASES:
        st.query_params.pop(name, None)


def pick_dataset(subject: PageSubject, suffix: str = "") -> None:
    """Draw the dataset picker. It lists the most complete question set on each dataset, with this test if there is one;
    then the user's own set and the bundled one are two entries.
    """
    sets = view(views.runs.question_set_rows)
    names = distinct({row.dataset: dataset_name(row.dataset) for row in sets})
    alike = [row for row in reversed(sets) if row.probe == subject.probe]
    of_test = {(row.dataset, row.shipped): row.case_key for row in alike}
    of_others = {row.dataset: row.case_key for row in reversed(sets)}
    for dataset, _ in of_test:
        of_others.pop(dataset, None)
    keys = {subject.key, *of_test.values(), *of_others.values()}
    offered = [row for row in sets if row.case_key in keys]
    n_alike = Counter(row.dataset for row in offered)
    labels = with_keys(
        {
            row.case_key: names[row.dataset] + _of_run(row) * (n_alike[row.dataset] > 1)
            for row in offered
        }
    )
    look = {} if suffix else {"bare": True, "width": picker_width(labels[subject.key])}
    key, change = f"dataset{suffix}", (_change_dataset, suffix)
    pick("Pictures", key, labels, subject.key, *change, **look)


def _of_run(row: QuestionSetRow) -> str:
    """Tell a question set from others on its dataset, such as " (your run, 27 Nov)"."""
    if row.shipped:
        return " (bundled)"
    try:
        day = datetime.datetime.fromisoformat(row.finished).astimezone()
    except (ValueError, OverflowError):  # a manifest in a shared cache may have any text
        return " (your run)"
    return f" (your run, {day.day} {day:%b})"


def _change_dataset(suffix: str) -> None:
    left = dict.fromkeys(("sets", "type", "rule", "pair", "area", *OF_CASES, *OF_PICTURES))
    write_choice(left | {"set": st.session_state[f"dataset{suffix}"]})


TIES = (
    "Fooled: the wrong caption or picture scores at least as high as the true one; a tie counts "
    "as fooled."
)


def pick_bucket(subject: PageSubject, case_filter: Filter) -> str:
    """Draw a filter by which of two models is fooled. By default, only the first; all if an area is selected."""
    counted = view(views.paired_outcomes.buckets, subject.question_set, case_filter)
    model, second = (plain(model_name(name)) for name in (case_filter.model, case_filter.other))
    options = {
        "all": f"All {counted['all']:,}",
        "only_first": f"Only {model} fooled {counted['only_first']:,}",
        "only_second": f"Only {second} fooled {counted['only_second']:,}",
        "both_fooled": f"Both fooled {counted['both_fooled']:,}",
        "both_held": f"Neither fooled {counted['both_held']:,}",
    }
    fullest = next(
        name for name in ("only_first", "only_second", "all") if counted[name] or name == "all"
    )
    default = "all" if case_filter.within else fullest
    return choose("Cases", "bucket", options, default, segments=True, help_=TIES)


def orders(subject: PageSubject, case_filter: Filter) -> dict[str, str]:
    """Return the orders in which cards can be sorted, the default first. Orders by margin need scores."""
    is_movement = case_filter.kind in movement_kinds()
    models = filter(None, (case_filter.model, case_filter.other))
    is_scored = all(subject.question_set.run(model).is_scored for model in models)
    single = wall.orders(is_movement, is_scored)
    of_kind = subject.question_set, case_filter.kind
    if not case_filter.suspects and view(views.suspects.has_suspects, *of_kind):
        single = {SUSPECTS_LAST: "Suspect labels last"} | single
    if ordered_region(case_filter.region):
        single |= {"likeness": "Most similar pictures first"}
    if case_filter.other and (is_movement or is_scored):
        return {"difference": "Largest difference first"} | single
    return single


def with_order(subject: PageSubject, case_filter: Filter) -> Filter:
    """Return a copy of the filter with the order that the URL names, or the default order."""
    possible = orders(subject, case_filter)
    order = st.query_params.get("sort", "")
    return replace(case_filter, sort=order if order in possible else next(iter(possible)))


def draw_order(subject: PageSubject, case_filter: Filter, suffix: str = "") -> None:
    """Draw the picker for the order of the cards. Which orders it offers depends on the other filters."""
    possible = orders(subject, case_filter)
    look: dict[str, Any] = {"suffix": suffix}
    if not suffix:
        look = {"bare": True, "width": picker_width(possible[case_filter.sort])}
    choose("Order", "sort", possible, next(iter(possible)), **look)
