"""The filter of the URL, and the controls of *Filters*: what the rail (`explore.rail`) has no rows for."""

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from vlprobe import views
from vlprobe.dashboard.cases.choices import TIES, draw_order, pick_bucket, with_order
from vlprobe.dashboard.cases.sentence import pick_dataset, shortened, stored_kinds
from vlprobe.dashboard.folds import BETWEEN
from vlprobe.dashboard.mixed import KIND, WALL
from vlprobe.dashboard.state import (
    PageSubject,
    carry,
    choose,
    counts,
    mark_picked,
    model_labels,
    model_name,
    n_passing,
    quiet,
    report_missing,
    set_labels,
    store,
    view,
)
from vlprobe.render.wall import pattern_words
from vlprobe.render.words import movement_kinds, value_label
from vlprobe.storage import annotations
from vlprobe.views import caption_bins
from vlprobe.views.filter import (
    LURE,
    MOST_PAIRS,
    STRENGTH,
    STRENGTHS,
    Filter,
    Slice,
    lure_bins,
    parse_corners,
)
from vlprobe.views.paired_outcomes import bucket

AGREEMENTS = {"one": "exactly one model fooled", "split": "models disagree"}
WORDS_LENGTH = 200  # characters of a search in captions
SEARCHES = {"": "All", "own": "Found first, then lost to their own mixture"}
PICTURES = {"": "All cases", "here": "Only cases with pictures on this machine"}
STRONG_KIND, LURED_KIND = "flip", "t2t"
OTHER_SIDE = {"t2t": "i2t", "i2t": "t2t"}  # by the kind
SIDES = {  # by the kind of the other side, what its answer was
    "t2t": {"held": "right by the texts only", "fooled": "wrong by the texts only"},
    "i2t": {"held": "right with the picture", "fooled": "wrong with the picture"},
}
LAYOUTS = {"": "One card per picture", "every": "Every case"}
OUTCOMES = {"fooled": "Fooled", "tied": "Tied", "held": "Not fooled", "all": "All"}


@dataclass(frozen=True)
class ActiveFilter:
    """One thing that narrows the wall, and the filter without it."""

    parameter: str  # of the URL
    label: str
    without: Filter
    value: str = ""  # of several in the URL


def draw_filters(about: PageSubject) -> Filter:
    """The popover with all filters, and the filter that they make."""
    n_active = sum(name in st.query_params for name in PARAMETERS)
    label = f"Filters ({n_active})" if n_active else "Filters"
    with (
        st.popover(label, icon=":material/filter_list:", key="filters", type="tertiary"),
        st.container(key="filters_body", gap="small"),
    ):
        with st.container(key="phone_filters"):
            pick_dataset(about, "_phone")
        outcomes = st.container()
        case_filter = _questions(about)
        with outcomes:
            case_filter = _outcomes(about, case_filter)
        case_filter = with_order(about, case_filter)
        with st.container(key="phone_order"):
            draw_order(about, case_filter, "_phone")
        choose("Cards", "cards", LAYOUTS, segments=True)
        asked_sets = set_labels(view(views.runs.question_sets))
        if len(asked_sets) > 1:
            choose("Question set", "set", asked_sets, about.key, always=True)
    return case_filter


PARAMETERS = (  # what the button "Clear all filters" takes from the URL
    *("type", "rule", "tag", "words", "tagged", "outcome", "other", "bucket", "area", "cards"),
    *("pair", "lost", "bin", "caption", "pictured", "crossed", "fooled", "held", "agreement"),
)


def clear_filters() -> None:
    """Take every filter from the URL; model, kind and pictures stay."""
    mark_picked()
    for name in (*PARAMETERS, "page", "case"):
        st.query_params.pop(name, None)
    _keep_wall()


def _keep_wall() -> None:
    """Without a filter the address of searches for a picture would mean their own view."""
    if st.query_params.get("kind") == KIND:
        st.query_params[WALL] = "1"


def _questions(about: PageSubject) -> Filter:
    """Read the filters of the question from the URL, and draw those without a facet."""
    of_kind = about.question_set, about.kind
    types = linked("Type", "type", view(views.estimates.count_values, *of_kind, "subtype"))
    rules = linked("Rule", "rule", view(views.estimates.count_values, *of_kind, "rule"))
    tags = linked("Tag of the dataset", "tag", view(views.estimates.tag_values, about.question_set))
    captions = linked("Caption length and rarity", "caption", caption_bins.names())
    others = [name for name in about.models if name != about.model]
    counted = annotations.read(store(), about.key).tags
    people_tags = {name: f"{name} ({count:,})" for name, count in counted.items()}
    left, right = st.columns(2)
    with left:
        options = {"": "Any", **people_tags}
        tagged = choose(
            "My tags",
            "tagged",
            options,
            disabled=not people_tags,
            help_="Tags that people added to a case, such as wrong label: open one and press T.",
        )
    with right:
        second = _second_model(about)
    lost_to = choose("Searches", "lost", SEARCHES) if about.kind == KIND else ""
    chosen_bin = _bin(about)
    pictured = _pictured(about)
    return Filter.parse(
        about.model,
        about.kind,
        subtype=types,
        rule=rules,
        tag=tags,
        contains=st.query_params.get("words", "").strip()[:WORDS_LENGTH],
        outcome="all",
        other=second,
        tagged=tagged,
        pair=() if about.kind in movement_kinds() else chosen_pairs(),
        lost_to=lost_to,
        bin=chosen_bin,
        caption=captions,
        pictured=pictured,
        crossed=_crossed(about),
        fooled=linked("Model", "fooled", others),
        held=linked("Model", "held", others),
        agreement="".join(linked("Agreement", "agreement", AGREEMENTS)[:1]),
    )


def linked(label: str, name: str, options: Container[str]) -> tuple[str, ...]:
    """Return the values of a parameter of the URL; those that are not among the options are reported and removed."""
    values = tuple(dict.fromkeys(filter(None, st.query_params.get_all(name))))
    known = tuple(value for value in values if value in options)
    for value in values:
        if value not in known:
            report_missing(label, name, value)
    if known != values:
        set_values(name, known)
    return known


def set_values(name: str, values: Sequence[str]) -> None:
    """Write all values of a parameter into the URL."""
    st.query_params.pop(name, None)
    if values:
        st.query_params[name] = list(values)


def chosen_pairs() -> tuple[str, ...]:
    """Return the patterns that the URL names."""
    return tuple(dict.fromkeys(filter(None, st.query_params.get_all("pair"))))[:MOST_PAIRS]


def _bin(about: PageSubject) -> str:
    """A bin of what the model's answers say of the question itself, where they say it."""
    if about.kind == LURED_KIND:
        names = {str(Slice(LURE, name)): name for name in lure_bins()}
        return choose("How far shared words mislead", "bin", {"": "Any", **names})
    if about.kind == STRONG_KIND and STRENGTH in view(views.estimates.slices, about.question_set):
        names = {str(Slice(STRENGTH, name)): value_label(name) for name in STRENGTHS}
        return choose("Strength of the wrong caption", "bin", {"": "Any", **names})
    return ""


def _crossed(about: PageSubject) -> str:
    """The model's answer to the same triplet on its other side, if both sides have answers."""
    other_kind = OTHER_SIDE.get(about.kind, "")
    if other_kind not in stored_kinds(about):
        return ""
    names = {f"{other_kind}={outcome}": words for outcome, words in SIDES[other_kind].items()}
    return choose("The same triplet's other side", "crossed", {"": "Any", **names})


def _pictured(about: PageSubject) -> str:
    """Return whether cases without a picture here are left out; not asked where all have one."""
    keeps_unpictured = views.rows.keeps_unpictured(about.question_set)
    if not keeps_unpictured and "pictured" not in st.query_params:
        return ""
    return choose("Pictures", "pictured", PICTURES, segments=True)


def _second_model(about: PageSubject) -> str:
    """Another model whose answers also decide."""
    if len(about.models) < 2:
        return ""
    _read_with(about)
    label = model_labels(about.models)
    others = {name: label(name) for name in about.models if name != about.model}
    help_ = "Compares the answers of a second model to the same cases."
    return choose("Compared with", "other", {"": "Nobody", **others}, help_=help_)


def _read_with(about: PageSubject) -> None:
    """Read the parameter `with` of a Compare URL as the second model; the first of several."""
    linked = st.query_params.get("with", "")
    if not linked:
        return
    carry("with", linked)  # Compare has all of them again
    del st.query_params["with"]
    rivals = [name for name in linked.split(BETWEEN) if name in about.models]
    rivals = [name for name in rivals if name != about.model]
    if rivals and "other" not in st.query_params:
        st.query_params["other"] = rivals[0]


def _outcomes(about: PageSubject, case_filter: Filter) -> Filter:
    """Draw the filters of the fooled models: the model, or it and another one with the same questions."""
    area = parse_corners(st.query_params.get("area", "")) if case_filter.other else ()
    if area:
        quiet("Only cases in the area selected in Compare.")
        st.button("Clear the selected area", key="drop_area", on_click=drop, args=("area",))
    case_filter = replace(case_filter, within=area)
    if about.kind in movement_kinds():
        return case_filter
    if case_filter.other:
        return bucket(case_filter, pick_bucket(about, case_filter))
    return replace(case_filter, outcome=_outcome(about, case_filter))


def _outcome(stored: PageSubject, case_filter: Filter) -> str:
    counted = counts(stored, case_filter)
    options = {name: f"{word} {counted[name]:,}" for name, word in OUTCOMES.items()}
    help_ = f"{TIES} Tied: both scores are equal. Not fooled: the true one scores higher."
    run = stored.question_set.run(case_filter.model)
    if not run.is_scored:
        options = {
            name: text for name, text in options.items() if name != "tied" or run.n_orders == 2
        }
        help_ = "Fooled: the model chose the wrong caption. Not fooled: it chose the true one."
    if run.n_orders == 2:
        options["tied"] = f"In one order {counted['tied']:,}"
        help_ = (
            "The model saw each pair of captions twice, in both orders. Fooled: the model "
            "chose the wrong caption in one order or in both. Not fooled: it chose the true one in both."
        )
    return choose("Outcome", "outcome", options, "fooled", segments=True, help_=help_)


def active_filters(case_filter: Filter) -> list[ActiveFilter]:
    """Return the filters of the wall other than the model, the kind and the outcome "fooled"."""
    narrowed = (
        (
            "words",
            case_filter.contains and f"caption contains “{case_filter.contains}”",
            {"contains": ""},
        ),
        ("tagged", case_filter.tagged and f"tagged {case_filter.tagged}", {"tagged": ""}),
        ("pictured", case_filter.pictured and "with pictures on this machine", {"pictured": False}),
        ("crossed", _crossed_label(case_filter.crossed), {"crossed": None}),
        ("lost", case_filter.lost_to and "lost to its own mixture", {"lost_to": False}),
        ("area", case_filter.within and "in the selected area", {"within": ()}),
        ("bucket", _pair_label(case_filter), {"outcome": "all", "other_outcome": ""}),
        ("agreement", AGREEMENTS.get(case_filter.agreement), {"agreement": ""}),
    )
    several = [
        (
            name,
            str(value),
            label(value),
            {field: tuple(other for other in values if other != value)},
        )
        for name, field, label in SEVERAL
        for values in [getattr(case_filter, field)]
        for value in values
    ]
    return [
        *(
            ActiveFilter(name, label, replace(case_filter, **changes), value)
            for name, value, label, changes in several
        ),
        *(
            ActiveFilter(name, str(label), replace(case_filter, **changes))
            for name, label, changes in narrowed
            if label
        ),
    ]


def _crossed_label(side: Slice | None) -> str:
    return SIDES[side.name][side.value] if side else ""


def _bin_label(chosen: Slice) -> str:
    return value_label(chosen.value) if chosen.name == STRENGTH else f"lure {chosen.value}"


def _pattern_label(key: str) -> str:
    return shortened(" → ".join(filter(None, pattern_words(key))))


# Parameters of the URL with several values, their fields of a filter, and what a value is called
SEVERAL: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("fooled", "fooled", lambda model: f"{model_name(model)} fooled"),
    ("held", "held", lambda model: f"{model_name(model)} not fooled"),
    ("type", "subtype", value_label),
    ("rule", "rule", value_label),
    ("tag", "tag", ": ".join),
    ("pair", "pair", _pattern_label),
    ("bin", "bin", _bin_label),
    ("caption", "caption", lambda chosen: chosen.value),
)


def _pair_label(case_filter: Filter) -> str:
    """Return the relation of two models to the cases, as a filter."""
    if not case_filter.other or (case_filter.outcome, case_filter.other_outcome) == ("all", ""):
        return ""
    words = {
        "fooled": "fooled",
        "held": "not fooled",
        "tied": "tied",
        "all": "any answer",
        "": "any answer",
    }
    model, rival = model_name(case_filter.model), model_name(case_filter.other)
    return f"{model} {words[case_filter.outcome]}, {rival} {words[case_filter.other_outcome]}"


def drop(parameter: str, value: str = "") -> None:
    """Remove a filter, or one of its values, from the URL."""
    mark_picked()
    for name in ("page", "case"):
        st.query_params.pop(name, None)
    kept = [other for other in st.query_params.get_all(parameter) if value and other != value]
    set_values(parameter, kept)
    _keep_wall()
    if parameter == "bucket":
        st.query_params["bucket"] = "all"


def nearest_to_drop(stored: PageSubject, case_filter: Filter) -> Sequence[tuple[ActiveFilter, int]]:
    """The filter without which fewest cases pass, and how many; nothing
    where none of them helps.
    """
    narrowing = active_filters(case_filter)
    if case_filter.outcome in ("tied", "held") and not case_filter.other:
        label = f"{OUTCOMES[case_filter.outcome].lower()} only"
        narrowing.append(ActiveFilter("outcome", label, replace(case_filter, outcome="fooled")))
    helpful = [(active, n_passing(stored, active.without)) for active in narrowing]
    return sorted((pair for pair in helpful if pair[1]), key=lambda pair: pair[1])[:1]
