"""Filters on the Explore page: reading them from the URL, the column with all filters, and active filters."""

import math
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import streamlit as st

from vlprobe import views
from vlprobe.case.card import card_type
from vlprobe.dashboard import case_links, embeddings
from vlprobe.dashboard.sentence import (
    TIES,
    draw_order,
    leave_cases,
    list_kinds,
    pick_bucket,
    pick_dataset,
    with_order,
)
from vlprobe.dashboard.state import (
    NAMED,
    PageSubject,
    attempt,
    carry,
    choose,
    counts,
    model_labels,
    model_name,
    n_passing,
    plain,
    quiet,
    report_missing,
    search,
    set_labels,
    store,
    view,
    write_choice,
)
from vlprobe.dashboard.widgets import BETWEEN, draw_row, press
from vlprobe.errors import InvalidInput
from vlprobe.registry import is_control
from vlprobe.render.html.elements import marked_before, tag
from vlprobe.render.sentences import capitalized, counted, halves_note, joined, shorten
from vlprobe.render.wall import excluded_text, value_text
from vlprobe.render.words import movement_kinds, tag_label, value_label
from vlprobe.storage import annotations
from vlprobe.views import caption_bins, causes
from vlprobe.views.facets import Facet
from vlprobe.views.filter import (
    LURE,
    MOST_EXCLUDED,
    MOST_PAIRS,
    STRENGTH,
    STRENGTHS,
    Filter,
    Slice,
    facet_field,
    is_ordered,
    lure_bins,
    parse_corners,
    region_cases,
    region_label,
)
from vlprobe.views.mixed.searches import KIND
from vlprobe.views.paired_outcomes import bucket

AGREEMENTS = {"one": "exactly one model fooled", "split": "models disagree"}
WORDS_LENGTH = 200  # maximum characters of a caption search
CONTAINS = (
    "Cases whose captions have all of these words, as whole words: dog does not find dogs. A star stands for any "
    'ending: dog* finds dog and dogs. Words in double quotes are a phrase: "on the sea".'
)
SEARCHES = {"": "All", "own": "Found first, then lost to its own mixture"}
STRONG_KIND, LURED_KIND = "flip", "t2t"
OTHER_SIDE = {"t2t": "i2t", "i2t": "t2t"}  # by kind
SIDES = {  # the answer on the other side of a triplet, by kind and outcome
    "t2t": {"held": "right with the texts only", "fooled": "wrong with the texts only"},
    "i2t": {"held": "right with the picture", "fooled": "wrong with the picture"},
}
OUTCOMES = {"fooled": "Fooled", "tied": "Tied", "held": "Not fooled", "all": "All"}


@dataclass(frozen=True)
class ActiveFilter:
    """One condition that narrows the cases on the wall, and the filter without that condition."""

    parameter: str  # URL parameter
    label: str
    without: Filter
    value: str = ""  # one value of a URL parameter that has several


def draw_filters(subject: PageSubject) -> Filter:
    """Draw the top of the column next to the wall: the caption search and a popover with the filters that have no
    facet. Return the combined filter.
    """
    with st.container(key="phone_filters"):
        pick_dataset(subject, "_phone")
        order = st.container()
    search("Caption contains", "words", "whole words; dog* also finds dogs", CONTAINS)
    more = st.popover("More filters", key="more_filters", type="tertiary", width="stretch")
    with more, st.container(key="filters_body", gap="small"):
        outcomes = st.container()
        case_filter = _read_filter(subject)
        with outcomes:
            case_filter = _outcomes(subject, case_filter)
        case_filter = with_order(subject, case_filter)
        group = card_type(subject.kind_presentation).group
        layouts = {"": f"One card per {group}", "every": "Every case"}
        choose("Cards", "cards", layouts, segments=True)
        labels = set_labels(view(views.runs.question_sets))
        if len(labels) > 1:
            choose("Question set", "set", labels, subject.key, always=True, on_change=leave_cases)
    with order:
        draw_order(subject, case_filter, "_phone")
    return case_filter


PARAMETERS = (  # URL parameters that "Clear all filters" removes
    *("type", "rule", "tag", "words", "tagged", "outcome", "other", "bucket", "area", "cards"),
    *("pair", "lost", "bin", "caption", "pictured", "crossed", "fooled", "held", "agreement"),
    *("slice", "unseen", "region", "not", "suspects"),
)
CLEARED = MappingProxyType({**dict.fromkeys(PARAMETERS), "outcome": "all"})  # for all cases


def clear_filters(outcome: str | None = None) -> None:
    """Remove all filters from the URL except the model and the kind, and set the outcome to `outcome`."""
    write_choice({**dict.fromkeys(PARAMETERS), "outcome": outcome})


def _read_filter(subject: PageSubject) -> Filter:
    """Read the filters from the URL, and draw pickers for the filters that have no facet."""
    of_kind = subject.question_set, subject.kind
    facets = {
        name: view(views.estimates.count_values, *of_kind, name) for name in ("subtype", "rule")
    }
    tags = view(views.estimates.tag_values, subject.question_set)
    possible = {f"{name}={value}" for name, values in facets.items() for value in values}
    possible |= {f"unseen_by={cause}" for cause in causes.LABELS} | {f"tag:{each}" for each in tags}
    possible |= {each for each in st.query_params.get_all("not") if each.startswith("pair=")}
    possible |= caption_bins.names().keys()
    others = [name for name in subject.models if name != subject.model]
    people_tags = annotations.read(store(), subject.key).cases
    possible |= {f"tagged={name}" for name in people_tags}
    second = _second_model(subject)
    pairs = tuple(dict.fromkeys(filter(None, st.query_params.get_all("pair"))))
    return Filter.parse(
        subject.model,
        subject.kind,
        subtype=linked("Type", "type", facets["subtype"]),
        rule=linked("Rule", "rule", facets["rule"]),
        tag=linked("Dataset tag", "tag", tags),
        contains=st.query_params.get("words", "").strip()[:WORDS_LENGTH],
        outcome="all",
        other=second,
        tagged=linked("My tag", "tagged", people_tags),
        pair=() if subject.kind in movement_kinds() else pairs[:MOST_PAIRS],
        lost_to=choose("Searches", "lost", SEARCHES) if subject.kind == KIND else "",
        bin=_bin(subject),
        caption=linked("Words, length, rarity or guess", "caption", caption_bins.names()),
        pictured="".join(linked("Pictures", "pictured", ("here",))[:1]),
        suspects="".join(linked("Suspect labels", "suspects", ("hide",))[:1]),
        crossed=_crossed(subject),
        fooled=linked("Model", "fooled", others),
        held=linked("Model", "held", others),
        agreement="".join(linked("Agreement", "agreement", AGREEMENTS)[:1]),
        region=_linked_regions(),
        named_slice="".join(
            linked("Slice", "slice", view(views.named_slices.applicable, subject.key)[0])[:1]
        ),
        unseen_by=linked(TITLES["unseen_by"], "unseen", causes.LABELS),
        excluded=_linked_exclusions(possible),
    )


def _linked_exclusions(possible: Container[str]) -> tuple[str, ...]:
    """Return the values that the URL excludes, at most MOST_EXCLUDED. The others are removed from the URL, so that
    a press on a facet finds a valid filter there.
    """
    values = linked("Excluded value", "not", possible)
    surplus = [value for value in values if value.startswith("pair=")][MOST_PAIRS:]
    kept = tuple(value for value in values if value not in surplus)[:MOST_EXCLUDED]
    if kept != values:
        st.query_params["not"] = list(kept)
    return kept


def linked(label: str, name: str, options: Container[str]) -> tuple[str, ...]:
    """Return the valid values of a URL parameter. Invalid values are reported and removed from the URL."""
    values = tuple(dict.fromkeys(filter(None, st.query_params.get_all(name))))
    known = tuple(value for value in values if value in options)
    for value in values:
        if value not in known:
            report_missing(label, name, value)
    if known != values:
        st.query_params.pop(name, None)
        if known:
            st.query_params[name] = list(known)
    return known


def _linked_regions() -> tuple[str, ...]:
    """Return the selection and the search that the URL names. An invalid one is reported, and removes both."""
    regions = {is_ordered(text): text for text in st.query_params.get_all("region")}
    for text in regions.values():
        try:
            region_cases(text)
        except InvalidInput:
            report_missing("Selection", "region", region_label(text))
            del st.query_params["region"]
            return ()
    return tuple(filter(None, regions.values()))


def _bin(subject: PageSubject) -> str:
    """Draw a filter by how far shared words mislead or how strong the wrong caption is; "" for other kinds."""
    if subject.kind == LURED_KIND:
        names = {str(Slice(LURE, name)): name for name in lure_bins()}
        return choose("How much shared words mislead", "bin", {"": "Any", **names})
    if subject.kind == STRONG_KIND and STRENGTH in view(
        views.estimates.slices, subject.question_set
    ):
        names = {str(Slice(STRENGTH, name)): value_label(name) for name in STRENGTHS}
        return choose("Strength of the wrong caption", "bin", {"": "Any", **names})
    return ""


def _crossed(subject: PageSubject) -> str:
    """Draw a filter by the model's answer to the other side of the same triplet, if both sides have answers."""
    other_kind = OTHER_SIDE.get(subject.kind, "")
    if other_kind not in list_kinds(subject):
        return ""
    names = {f"{other_kind}={outcome}": words for outcome, words in SIDES[other_kind].items()}
    return choose("Other version of the triplet", "crossed", {"": "Any", **names})


def _second_model(subject: PageSubject) -> str:
    """Draw a picker for a second model whose answers are filtered too. Returns "" if none is chosen.

    If the URL comes from Compare, it is the first model in the parameter `with`.
    """
    if len(subject.models) < 2:
        return ""
    if linked := st.query_params.get("with", ""):
        carry("with", linked)  # so that Compare still shows all of them
        del st.query_params["with"]
        others = {*subject.models} - {subject.model}
        rivals = [name for name in linked.split(BETWEEN) if name in others]
        if rivals and "other" not in st.query_params:
            st.query_params["other"] = rivals[0]
    label = model_labels(subject.models)
    others = {name: label(name) for name in subject.models if name != subject.model}
    help_ = "Compares with a second model's answers to the same cases."
    return choose("Compared with", "other", {"": "None", **others}, help_=help_)


def _outcomes(subject: PageSubject, case_filter: Filter) -> Filter:
    """Draw the outcome filters for one or two models, and apply them together with the selected area."""
    area = parse_corners(st.query_params.get("area", "")) if case_filter.other else ()
    if area:
        quiet("Only cases in the selected area are shown.")
        press("Clear the selected area", drop, "area", key="drop_area")
    case_filter = replace(case_filter, within=area)
    if subject.kind in movement_kinds():
        return case_filter
    if case_filter.other:
        return bucket(case_filter, pick_bucket(subject, case_filter))
    return replace(case_filter, outcome=_outcome(subject, case_filter))


def _outcome(subject: PageSubject, case_filter: Filter) -> str:
    counted = counts(subject, case_filter)
    options = {name: f"{word} {counted[name]:,}" for name, word in OUTCOMES.items()}
    options["tied"] = f"of them tied {counted['tied']:,}"
    help_ = f"{TIES} Tied: both scores are equal. Not fooled: the true one scores higher."
    run = subject.question_set.run(case_filter.model)
    if run.n_orders == 2:
        options["tied"] = f"of them in one order {counted['tied']:,}"
        help_ = (
            "The model saw each pair of captions twice, in both orders. Fooled: the model "
            "chose the wrong caption in one order or in both. Not fooled: it chose the true one in both."
        )
    elif not run.is_scored:
        del options["tied"]
        help_ = "Fooled: the model chose the wrong caption. Not fooled: it chose the true one."
    return choose("Outcome", "outcome", options, "fooled", segments=True, help_=help_)


def active_filters(case_filter: Filter) -> list[ActiveFilter]:
    """Return the wall's active filters, apart from the model, the kind and the outcome "fooled"."""
    words, crossed, named = case_filter.contains, case_filter.crossed, case_filter.named_slice
    single: tuple[tuple[str, object, dict[str, Any]], ...] = (
        ("words", words and f"caption contains “{words}”", {"contains": ""}),
        ("pictured", case_filter.pictured and "with pictures on this machine", {"pictured": False}),
        ("suspects", case_filter.suspects and "suspect labels hidden", {"suspects": False}),
        ("crossed", crossed and SIDES[crossed.name][crossed.value], {"crossed": None}),
        ("lost", case_filter.lost_to and "lost to its own mixture", {"lost_to": False}),
        ("area", case_filter.within and "in the selected area", {"within": ()}),
        ("bucket", _pair_label(case_filter), {"outcome": "all", "other_outcome": ""}),
        ("agreement", AGREEMENTS.get(case_filter.agreement), {"agreement": ""}),
        ("slice", named and f"in the slice {named}", {"named_slice": ""}),
    )
    several = []
    for name, field, label in SEVERAL:
        values = getattr(case_filter, field)
        for value in values:
            without = {field: tuple(other for other in values if other != value)}
            several.append(
                ActiveFilter(name, label(value), replace(case_filter, **without), str(value))
            )
    return several + [
        ActiveFilter(name, str(label), replace(case_filter, **without))
        for name, label, without in single
        if label
    ]


# URL parameters that can have several values, with the filter's field and a value's label
SEVERAL: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("fooled", "fooled", lambda model: f"{model_name(model)} fooled"),
    ("held", "held", lambda model: f"{model_name(model)} not fooled"),
    ("type", "subtype", partial(value_text, "subtype")),
    ("rule", "rule", partial(value_text, "rule")),
    ("tag", "tag", lambda tag: value_text(f"tag:{tag.name}", tag.value)),
    ("pair", "pair", lambda key: shorten(value_text("pair", key), NAMED)),
    (
        *("bin", "bin"),
        lambda bin_: value_label(bin_.value) if bin_.name == STRENGTH else f"lure {bin_.value}",
    ),
    ("caption", "caption", lambda chosen: chosen.value),
    (
        *("tagged", "tagged"),
        lambda name: f"{'with' if name[0] == ' ' else 'tagged'} {value_text('tagged', name)}",
    ),
    ("unseen", "unseen_by", partial(value_text, "unseen_by")),
    ("region", "region", region_label),
    ("not", "excluded", lambda each: shorten(excluded_text(*each), NAMED + len("not "))),
)


def _pair_label(case_filter: Filter) -> str:
    """Describe the outcomes that a filter requires from two models. Returns "" if it requires none."""
    outcomes = case_filter.outcome, case_filter.other_outcome
    if not case_filter.other or outcomes == ("all", ""):
        return ""
    words = {"fooled": "fooled", "held": "not fooled", "tied": "tied"}
    model, rival = (words.get(outcome, "any answer") for outcome in outcomes)
    return f"{model_name(case_filter.model)} {model}, {model_name(case_filter.other)} {rival}"


def drop(parameter: str, value: str = "") -> None:
    """Remove a filter, or one of its values, from the URL."""
    kept = [other for other in st.query_params.get_all(parameter) if value and other != value]
    write_choice({parameter: "all" if parameter in ("bucket", "outcome") else kept})


def nearest_to_drop(
    subject: PageSubject, case_filter: Filter
) -> Sequence[tuple[ActiveFilter, int]]:
    """Return the filter whose removal shows the fewest cases, but at least one, and their number, or an empty list. The
    outcome has no label.
    """
    narrowing = active_filters(case_filter)
    if case_filter.outcome != "all" and not case_filter.other:
        narrowing.append(ActiveFilter("outcome", "", replace(case_filter, outcome="all")))
    helpful = [(active, n_passing(subject, active.without)) for active in narrowing]
    return sorted((pair for pair in helpful if pair[1]), key=lambda pair: pair[1])[:1]


WIDTH = 252  # pixels
LISTED = 8  # rows of a facet, or models, shown before the user asks for all
STATES = {"fooled": "✕", "held": "✓", "any": "any"}
TITLES = {
    "tagged": "My tags",
    "subtype": "Type of edit",
    "rule": "Rule",
    "pair": "Words",
    "unseen_by": "Where the difference was missed",
    caption_bins.CHANGED: "Changed words",
    "caption_length": "Caption length",
    "word_frequency": "Rarest word",
    "text_alone": "Guess from the text alone",
}
# Session key, and key of the container of the filters: hides them on wide screens and shows them on phones
FLIPPED = "rail_flipped"


def draw_chips(case_filter: Filter) -> None:
    """Draw a button that shows or hides the filters, and one button per active filter that removes the filter."""
    active = active_filters(case_filter)
    with draw_row("chips", gap="xsmall"):
        label = f"Filters ({len(active)})" if active else "Filters"
        press(label, _flip, icon="tune", key="rail_toggle", type="tertiary")
        if active:
            press("Clear all", clear_filters, key="clear_filters", type="tertiary")
        for index, each in enumerate(active):
            press(
                *(plain(each.label), drop, each.parameter, each.value),
                icon="close",
                icon_position="right",
                key=f"chip_{index}",
                help=f"Remove the filter: {plain(each.label)}",
            )


def _flip() -> None:
    """Show the hidden filters, or hide the shown ones."""
    st.session_state[FLIPPED] = not st.session_state.get(FLIPPED)


def draw_rail(subject: PageSubject, case_filter: Filter) -> None:
    """Draw the rest of the column next to the wall: the picture search, a filter by model, and the facets."""
    embeddings.draw_search(subject)
    if subject.kind not in movement_kinds():
        _draw_models(subject, case_filter)
    _draw_slices(subject, case_filter)
    facets = view(views.facets.facets, subject.question_set, case_filter)
    if facets:
        halved = views.facets.halved_models(subject.question_set, case_filter)
        note = halves_note(list(map(model_name, halved)))
        of_asked = "Of the cases with the value that the model answered: the share that passes *Who is fooled*."
        if subject.kind in movement_kinds():
            of_asked = "The number of cases with the value that pass the other filters."
        how = "Click a value for only its cases, again for all others, again for any."
        st.caption(joined(how, plain(note)), help=of_asked)
    whole = facets  # without a choice of types, which leaves other rows of the same values empty
    if any(case_filter.values_of("subtype")):
        every = Filter(case_filter.model, case_filter.kind)
        whole = view(views.facets.facets, subject.question_set, every)
    counts_of = {facet.name: sorted(row.n_asked for row in facet.rows) for facet in whole}
    for facet in facets:
        # One value for each type of edit adds nothing
        repeats_types = counts_of.get(facet.name) == counts_of.get("subtype", [])
        may_repeat = facet.name in ("rule", caption_bins.CHANGED)
        if any(case_filter.values_of(facet.name)) or not (may_repeat and repeats_types):
            _draw_facet(case_filter, facet)
    is_guessed = subject.kind in view(caption_bins.guessed_kinds, subject.question_set)
    if is_guessed and caption_bins.TEXT_ALONE not in counts_of:
        guessed = Slice(caption_bins.TEXT_ALONE, caption_bins.VALUES[caption_bins.TEXT_ALONE][1])
        chosen = [*st.query_params.get_all("caption"), str(guessed)]
        label = "Hide cases that the text gives away"
        press(label, write_choice, {"caption": chosen}, key="hard", type="tertiary")
    shown = f"Show {counted(n_passing(subject, case_filter), 'case')}"
    press(shown, _flip, key="rail_done", type="primary", width="stretch")  # on phones


def _draw_models(subject: PageSubject, case_filter: Filter) -> None:
    rates = view(views.facets.model_rates, subject.question_set, case_filter)
    states = required_outcomes(case_filter)
    models = _listed("models", list(subject.models), [*states, subject.model])
    _draw_heading("Who is fooled", "fooled · not · any")
    if case_filter.lost_to:
        quiet("Among all searches, by any mixed picture.")
    if case_filter.suspects:
        quiet("Rates include hidden suspect labels.")
    with st.container(key="rail_models", gap=None):
        for model in models:
            look, key = subject.looks[model], f"who_{subject.models.index(model)}"
            rate = "" if math.isnan(rates[model]) else f" {100 * rates[model]:.1f}\u00a0%"
            st.html(f"<style>{marked_before(f'.st-key-{key} label', look)}</style>")
            state = states.get(model, "any")
            st.session_state[key] = state if state in STATES else None
            st.segmented_control(
                f"{plain(model_name(model))}{rate}",
                list(STATES),
                format_func=STATES.__getitem__,
                key=key,
                width="stretch",
                on_change=_choose_state,
                args=(subject, case_filter, model, key),
            )
    _draw_more("models", len(subject.models), len(models))
    rated = [model for model in subject.models if not is_control(model)]
    if len(rated) > 1:
        every = dict.fromkeys(rated, "fooled")
        options = {"all": f"all {len(rated)}", "one": "exactly one", "split": "they disagree"}
        chosen = "all" if states == every else case_filter.agreement or None
        st.session_state["agreement"] = chosen
        st.pills(
            "Models together",
            list(options),
            format_func=options.__getitem__,
            key="agreement",
            label_visibility="collapsed",
            on_change=_choose_together,
            args=(subject, case_filter, every),
        )


def _draw_slices(subject: PageSubject, case_filter: Filter) -> None:
    """Draw a row for each named slice with cases that pass the other filters. A press on a row shows only the slice."""
    named, _ = view(views.named_slices.applicable, subject.key)
    sizes = {name: n_passing(subject, replace(case_filter, named_slice=name)) for name in named}
    sizes = {name: size for name, size in sizes.items() if size or name == case_filter.named_slice}
    if not sizes:
        return
    listed = _listed("slices", list(sizes), [case_filter.named_slice])
    _draw_heading("My slices", "cases")
    with st.container(key="rows_facet_slices", gap=None):
        st.session_state["facet_slices"] = case_filter.named_slice or None
        st.pills(
            "My slices",
            listed,
            format_func=lambda name: f"{plain(name)} :gray[{sizes[name]:,}]",
            key="facet_slices",
            label_visibility="collapsed",
            width="stretch",
            on_change=lambda: write_choice({"slice": st.session_state["facet_slices"]}),
        )
    _draw_more("slices", len(sizes), len(listed))


def required_outcomes(case_filter: Filter) -> dict[str, str]:
    """Return the outcome that the filter requires from each model. Models without a requirement are left out."""
    outcomes = {case_filter.model: case_filter.outcome}
    if case_filter.other_outcome:
        outcomes[case_filter.other] = case_filter.other_outcome
    for outcome, models in (("fooled", case_filter.fooled), ("held", case_filter.held)):
        outcomes |= dict.fromkeys(models, outcome)
    return {model: outcome for model, outcome in outcomes.items() if outcome != "all"}


def _current_outcomes(case_filter: Filter) -> dict[str, str]:
    """Return the outcome that the URL requires from each model. The facets are drawn last, so a quick second press
    comes with a filter from before the first one.
    """
    if "other" not in st.query_params:
        case_filter = Filter(
            case_filter.model,
            case_filter.kind,
            outcome=st.query_params.get("outcome", "fooled"),
            fooled=tuple(st.query_params.get_all("fooled")),
            held=tuple(st.query_params.get_all("held")),
        )
    return required_outcomes(case_filter)


def _choose_state(subject: PageSubject, case_filter: Filter, model: str, key: str) -> None:
    """Require an outcome from one model. The other models keep theirs."""
    _write_states(subject, _current_outcomes(case_filter) | {model: st.session_state[key] or "any"})


def _choose_together(subject: PageSubject, case_filter: Filter, every: dict[str, str]) -> None:
    """Require that all models, exactly one or only some are fooled. The last two keep what is required from each model,
    unless that is "all".
    """
    chosen = st.session_state["agreement"]
    states = every if chosen == "all" else _current_outcomes(case_filter)
    if chosen != "all" and states == every:
        states = {subject.model: "fooled"}
    _write_states(subject, states, chosen if chosen in AGREEMENTS else "")


def _write_states(
    subject: PageSubject, states: dict[str, str], agreement: str | None = None
) -> None:
    """Write the outcome that is required from each model to the URL, and remove the comparison of two models."""
    outcome = states.get(subject.model, "any")
    changes: dict[str, str | Sequence[str] | None] = {
        "outcome": None if outcome == "fooled" else {"any": "all"}.get(outcome, outcome)
    }
    for name in ("fooled", "held"):
        changes[name] = [
            model for model, state in states.items() if state == name and model != subject.model
        ]
    if agreement is not None:
        changes["agreement"] = agreement or None
    write_choice(dict.fromkeys(("other", "bucket", "area")) | changes)


def _draw_facet(case_filter: Filter, facet: Facet) -> None:
    """Draw the rows of a facet. A press on a row requires its value, the next one excludes it, a third one frees it."""
    required, excluded = case_filter.values_of(facet.name)
    rows = {row.value: row for row in facet.rows}
    values = _listed(facet.name, list(rows), (*required, *excluded))
    title = capitalized(TITLES.get(facet.name) or value_label(facet.name.removeprefix("tag:")))
    is_movement = case_filter.kind in movement_kinds()
    _draw_heading(title, "cases" if is_movement else "of cases")
    key = f"facet_{facet.name.replace(':', '_')}"

    def text(value: str) -> str:
        row = rows[value]
        is_tag = facet.name.startswith("tag:")  # its name is the title
        label = value_text(facet.name, value)
        label = tag_label(facet.name.removeprefix("tag:"), value) if is_tag else label
        if value in excluded:
            label = f"not {label}" if is_tag else excluded_text(facet.name, value)
        count = f"{row.n_asked:,}"
        if facet.name == "tagged" and not is_movement:
            count = f"{row.n_fooled:,} of {count}"
        elif row.n_asked and not is_movement:
            count = f"{100 * row.share:.1f}\u00a0% of {count}"
        return f"{plain(label)} :gray[{count}]"

    with st.container(key=f"rows_{key}", gap=None):
        st.session_state[key] = st.session_state[f"{key}_before"] = [*required, *excluded]
        st.pills(
            title,
            values,
            selection_mode="multi",
            format_func=text,
            key=key,
            label_visibility="collapsed",
            width="stretch",
            on_change=attempt,
            args=(_choose_values, case_filter, facet.name, key),
        )
        rules = []  # a bar of 0 to 100% below each row, and the sign before a pressed one
        for place, value in enumerate(values, start=1):
            share = 0 if is_movement else 100 * rows[value].share
            sign = "⊘" if value in excluded else "✓"
            look = f'--share: {share:.1f}%; --sign: "{sign}";'
            rules.append(f".st-key-{key} button:nth-of-type({place}) {{ {look} }}")
            if not rows[value].n_asked:
                rules.append(
                    f".st-key-{key} button:nth-of-type({place}) p {{ color: var(--vp-quiet); }}"
                )
        st.html(f"<style>{' '.join(rules)}</style>")
    _draw_more(facet.name, len(rows), len(values))


def _choose_values(case_filter: Filter, name: str, key: str) -> None:
    """Require, exclude or free the value of a pressed row. A quick second press comes with a filter from before the
    first one, so the values are read from the URL.
    """
    field = facet_field(name)[0]
    parameters = {each: case_links.RENAMED.get(each, each) for each in (field, "excluded")}
    texts = {each: st.query_params.get_all(name) for each, name in parameters.items()}
    linked = Filter.parse(case_filter.model, case_filter.kind, **texts)
    required, excluded = map(list, linked.values_of(name))
    selected, before = st.session_state[key], f"{key}_before"
    pressed = [value for value in selected if value not in st.session_state[before]]
    pressed += [value for value in st.session_state[before] if value not in selected]
    st.session_state[before] = selected
    for value in pressed:
        if value in excluded:
            excluded.remove(value)
        elif value in required:
            required.remove(value)
            excluded.append(value)
        else:
            required.append(value)
    chosen = linked.with_values(name, required, excluded)
    write_choice(
        {parameter: list(map(str, getattr(chosen, each))) for each, parameter in parameters.items()}
    )


def _draw_heading(title: str, remark: str) -> None:
    st.html(f'<p class="vp-facet">{tag("b", title)} {tag("span", remark)}</p>')


def _listed(name: str, values: Sequence[str], always: Sequence[str]) -> list[str]:
    """Return the first LISTED values and those in `always`, or all values if the user asked to see them."""
    if st.session_state.get(f"listed_{name}"):
        return list(values)
    return [value for place, value in enumerate(values) if place < LISTED or value in always]


def _draw_more(name: str, n_all: int, n_listed: int) -> None:
    if n_listed < n_all:
        key, listed = f"more_{name.replace(':', '_')}", (f"listed_{name}", True)
        press(
            f"Show all {n_all:,}", st.session_state.__setitem__, *listed, key=key, type="tertiary"
        )
