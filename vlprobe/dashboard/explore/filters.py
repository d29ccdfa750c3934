"""The controls of *Filters*: every field of `views.filter.Filter`, each with a URL parameter."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import streamlit as st

from vlprobe import views
from vlprobe.dashboard.cases.choices import TIES, draw_order, pick_bucket, with_order
from vlprobe.dashboard.cases.sentence import pick_dataset, shortened, stored_kinds
from vlprobe.dashboard.explore.patterns import chosen_pairs
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
    search,
    set_labels,
    store,
    view,
)
from vlprobe.render.wall import pattern_words
from vlprobe.render.words import movement_kinds, value_label
from vlprobe.storage import annotations
from vlprobe.views import caption_bins, crossed
from vlprobe.views.filter import LURE, STRENGTH, STRENGTHS, Filter, Slice, lure_bins, parse_corners
from vlprobe.views.paired_outcomes import bucket

SEARCHES = {"": "All", "own": "Found first, then lost to their own mixture"}
PICTURES = {"": "All cases", "here": "Only with a picture here"}
STRONG_KIND, LURED_KIND = "flip", "t2t"
OTHER_SIDE = {crossed.TEXTS: crossed.PICTURES, crossed.PICTURES: crossed.TEXTS}  # by the kind
SIDES = {  # by the kind of the other side, what its answer was
    crossed.TEXTS: {"held": "right by the texts only", "fooled": "wrong by the texts only"},
    crossed.PICTURES: {"held": "right with the picture", "fooled": "wrong with the picture"},
}
LAYOUTS = {"": "One card per picture", "every": "Every case"}
OUTCOMES = {"fooled": "Fooled", "tied": "Tied", "held": "Not fooled", "all": "All"}


@dataclass(frozen=True)
class ActiveFilter:
    """One thing that narrows the wall, and the filter without it."""

    parameter: str  # of the URL
    label: str
    without: Filter


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
        case_filter = _words_and_tags(about)
        with outcomes:
            case_filter = _outcomes(about, case_filter)
        case_filter = with_order(about, case_filter)
        with st.container(key="phone_order"):
            draw_order(about, case_filter, "_phone")
        choose("Cards", "cards", LAYOUTS, segments=True)
        asked_sets = set_labels(view(views.runs.question_sets))
        if len(asked_sets) > 1:
            choose("Question set", "set", asked_sets, about.key, always=True)
        if n_active:
            st.button("Clear all filters", key="clear_filters", on_click=clear_filters)
    return case_filter


PARAMETERS = (  # what the button "Clear all filters" takes from the URL
    *("type", "rule", "tag", "words", "tagged", "outcome", "other", "bucket", "area", "cards"),
    *("pair", "lost", "bin", "caption", "pictured", "crossed"),
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


def _words_and_tags(about: PageSubject) -> Filter:
    """Draw the filters of the question: its type and rule, its words, its tags."""
    of_kind = about.question_set, about.kind
    left, right = st.columns(2)
    with left:
        types = view(views.estimates.subtype_counts, *of_kind)
        subtype = _any("Type", "type", types, "The changed part: a colour, a number, an object …")
    with right:
        rules = view(views.estimates.rule_counts, *of_kind, subtype)
        rule = _any("Rule", "rule", rules, "The rule that changed the caption, by its stored name.")
    tags = {
        value: value.replace("=", ": ", 1)
        for value in view(views.estimates.tag_values, about.question_set)
    }
    with left:
        tag = choose(
            "Tag of the dataset",
            "tag",
            {"": "Any", **tags},
            disabled=not tags,
            help_="Tags of a picture from a column of the dataset.",
        )
    with right:
        contains = search("Caption contains", "words", "such as: bench")
    counted = annotations.read(store(), about.key).tags
    people_tags = {name: f"{name} ({count:,})" for name, count in counted.items()}
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
    names = caption_bins.names()
    caption = choose("Caption length and rarity", "caption", {"": "Any", **names})
    pictured = _pictured(about)
    return Filter.parse(
        about.model,
        about.kind,
        subtype=subtype,
        rule=rule,
        tag=tag,
        contains=contains,
        outcome="all",
        other=second,
        tagged=tagged,
        pair=() if about.kind in movement_kinds() else chosen_pairs(),
        lost_to=lost_to,
        bin=chosen_bin,
        caption=caption,
        pictured=pictured,
        crossed=_crossed(about),
    )


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
    keeps_unpictured = views.cases.keeps_unpictured(about.question_set)
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
    help_ = (
        "Another model's answers to the same cases: who of the two is fooled, and how far apart "
        "they are."
    )
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
        quiet("Only cases in the area that was marked in Compare.")
        st.button("Take the area away", key="drop_area", on_click=drop, args=("area",))
    case_filter = replace(case_filter, within=area)
    if about.kind in movement_kinds():
        return case_filter
    if case_filter.other:
        return bucket(case_filter, pick_bucket(about, case_filter))
    return replace(case_filter, outcome=_outcome(about, case_filter))


def _any(label: str, name: str, n_cases: dict[str, int], help_: str) -> str:
    """A picker with "any" first; each choice says how many cases it has."""
    options = {
        value: f"{value_label(value)} ({count:,})" for value, count in n_cases.items() if value
    }
    return choose(label, name, {"": "Any", **options}, help_=help_)


def _outcome(stored: PageSubject, case_filter: Filter) -> str:
    counted = counts(stored, case_filter)
    options = {name: f"{word} {counted[name]:,}" for name, word in OUTCOMES.items()}
    help_ = f"{TIES} Tied: exactly as high. Not fooled: the true one scores higher."
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
    """Return the filters of the wall other than the model, the kind and the outcome "fooled", in the order of the
    popover.
    """
    narrowed = (
        ("type", case_filter.subtype and value_label(case_filter.subtype), {"subtype": ""}),
        ("rule", case_filter.rule and value_label(case_filter.rule), {"rule": ""}),
        ("tag", case_filter.tag and ": ".join(case_filter.tag), {"tag": None}),
        (
            "words",
            case_filter.contains and f"caption contains “{case_filter.contains}”",
            {"contains": ""},
        ),
        ("tagged", case_filter.tagged and f"tagged {case_filter.tagged}", {"tagged": ""}),
        ("pair", _pattern_label(case_filter), {"pair": ()}),
        ("bin", case_filter.bin and _bin_label(case_filter.bin), {"bin": None}),
        ("caption", case_filter.caption and case_filter.caption.value, {"caption": None}),
        ("pictured", case_filter.pictured and "with a picture here", {"pictured": False}),
        (
            "crossed",
            _crossed_label(case_filter.crossed),
            {"crossed": None},
        ),
        ("lost", case_filter.lost_to and "lost to its own mixture", {"lost_to": False}),
        ("area", case_filter.within and "in the marked area", {"within": ()}),
        ("bucket", _pair_label(case_filter), {"outcome": "all", "other_outcome": ""}),
    )
    return [
        ActiveFilter(parameter, str(label), replace(case_filter, **changes))
        for parameter, label, changes in narrowed
        if label
    ]


def _crossed_label(side: Slice | None) -> str:
    return SIDES[side.name][side.value] if side else ""


def _bin_label(chosen: Slice) -> str:
    return value_label(chosen.value) if chosen.name == STRENGTH else f"lure {chosen.value}"


def _pattern_label(case_filter: Filter) -> str:
    """The patterns that are switched on."""
    words = [" → ".join(filter(None, pattern_words(key))) for key in case_filter.pair]
    return shortened(" or ".join(words))


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


def drop(parameter: str) -> None:
    """Take one filter from the URL."""
    mark_picked()
    for name in (parameter, "page", "case"):
        st.query_params.pop(name, None)
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
