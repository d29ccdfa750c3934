"""The rail of Explore: who is fooled, and facets whose rows have a count, a rate and filter the wall; active filters
above the wall.
"""

import math
from collections.abc import Sequence

import streamlit as st

from vlprobe import views
from vlprobe.dashboard.explore import filters
from vlprobe.dashboard.state import (
    PageSubject,
    mark_picked,
    model_name,
    plain,
    search,
    view,
)
from vlprobe.registry import is_control
from vlprobe.render.html.elements import SHAPES, tag
from vlprobe.render.wall import pattern_words
from vlprobe.render.words import movement_kinds, value_label
from vlprobe.views.facets import Facet, FacetRow
from vlprobe.views.filter import Filter

WIDTH = 252  # pixels
LISTED = 8  # rows of a facet, and models, before the others are asked for
STATES = {"fooled": "✕", "held": "✓", "any": "any"}
TITLES = {
    "subtype": "What changed",
    "rule": "Rule",
    "pair": "Words",
    "caption_length": "Caption length",
    "word_frequency": "Rarest word",
}
PARAMETERS = {"subtype": "type", "rule": "rule", "pair": "pair"}
FLIPPED = "rail_flipped"  # in the session: hidden where it is shown, and shown on a phone


def container_key() -> str:
    """Return the key of the rail's container, by which the style sheet shows or hides it."""
    return FLIPPED if st.session_state.get(FLIPPED) else "rail"


def draw_chips(case_filter: Filter) -> None:
    """Draw the button that shows or hides the rail, and a button for each active filter, which removes it."""
    active = filters.active_filters(case_filter)
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall", key="chips"):
        st.button(
            f"Facets ({len(active)})" if active else "Facets",
            key="rail_toggle",
            icon=":material/tune:",
            type="tertiary",
            on_click=_flip,
        )
        for index, each in enumerate(active):
            st.button(
                plain(each.label),
                key=f"chip_{index}",
                icon=":material/close:",
                icon_position="right",
                help="Remove this filter",
                on_click=filters.drop,
                args=(each.parameter, each.value),
            )
        if active:
            st.button(
                "Clear all", key="clear_filters", type="tertiary", on_click=filters.clear_filters
            )


def _flip() -> None:
    st.session_state[FLIPPED] = not st.session_state.get(FLIPPED, False)


def draw_rail(about: PageSubject, case_filter: Filter) -> None:
    """Draw the search in captions, the models and the facets."""
    search("Caption contains", "words", "such as: bench")
    if about.kind not in movement_kinds():
        _draw_models(about, case_filter)
    facets = view(views.facets.facets, about.question_set, case_filter)
    for facet in facets:
        if facet.name != "rule" or case_filter.rule or not _repeats_types(facet, facets):
            _draw_facet(case_filter, facet)


def _repeats_types(rules: Facet, facets: Sequence[Facet]) -> bool:
    """Return whether each type of edit has one rule, so that rules say nothing more."""
    types = next((facet.rows for facet in facets if facet.name == "subtype"), ())
    return sorted(row.n_asked for row in types) == sorted(row.n_asked for row in rules.rows)


def _draw_models(about: PageSubject, case_filter: Filter) -> None:
    rates = view(views.facets.model_rates, about.question_set, case_filter)
    states = _states(case_filter)
    models = _listed("models", list(about.models), [*states, about.model])
    _draw_heading("Who is fooled", "fooled · not · any")
    with st.container(key="rail_models", gap=None):
        for model in models:
            look, key = about.looks[model], f"who_{about.models.index(model)}"
            rate = "" if math.isnan(rates[model]) else f" {100 * rates[model]:.1f}\u00a0%"
            mark = f'content: "{SHAPES[look.symbol]}"; color: {look.css};'
            st.html(f"<style>.st-key-{key} label::before {{ {mark} }}</style>")
            st.session_state[key] = states.get(model, "any")
            st.segmented_control(
                f"{plain(model_name(model))}{rate}",
                list(STATES),
                format_func=STATES.__getitem__,
                key=key,
                width="stretch",
                on_change=_choose_state,
                args=(about, case_filter, model, key),
            )
    _draw_more("models", len(about.models), len(models))
    rated = [model for model in about.models if not is_control(model)]
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
            args=(about, every),
        )


def _states(case_filter: Filter) -> dict[str, str]:
    """Return the outcome that each model must have; without models of which any passes."""
    outcomes = {case_filter.model: case_filter.outcome}
    if case_filter.other_outcome:
        outcomes[case_filter.other] = case_filter.other_outcome
    outcomes |= dict.fromkeys(case_filter.fooled, "fooled") | dict.fromkeys(
        case_filter.held, "held"
    )
    return {model: outcome for model, outcome in outcomes.items() if outcome in STATES}


def _choose_state(about: PageSubject, case_filter: Filter, model: str, key: str) -> None:
    states = _states(case_filter) | {model: st.session_state[key] or "any"}
    _write_states(about, states)


def _choose_together(about: PageSubject, every: dict[str, str]) -> None:
    chosen = st.session_state["agreement"]
    states = every if chosen == "all" else {about.model: "any" if chosen else "fooled"}
    _write_states(about, states, chosen if chosen in filters.AGREEMENTS else "")


def _write_states(about: PageSubject, states: dict[str, str], agreement: str | None = None) -> None:
    """Write who must be fooled into the URL; it replaces the outcomes of two models."""
    _begin()
    for name in ("other", "bucket", "area", "outcome"):
        st.query_params.pop(name, None)
    outcome = states.get(about.model, "any")
    if outcome != "fooled":
        st.query_params["outcome"] = {"any": "all"}.get(outcome, outcome)
    others = {model: state for model, state in states.items() if model != about.model}
    for name in ("fooled", "held"):
        filters.set_values(name, [model for model, state in others.items() if state == name])
    if agreement is not None:
        filters.set_values("agreement", [agreement] if agreement else [])


def _begin() -> None:
    """Begin again at the first page."""
    mark_picked()
    for name in ("page", "case"):
        st.query_params.pop(name, None)


def _draw_facet(case_filter: Filter, facet: Facet) -> None:
    chosen, _ = views.facets.without(case_filter, facet.name)
    rows = {row.value: row for row in facet.rows}
    values = _listed(facet.name, list(rows), chosen)
    title = TITLES.get(facet.name) or value_label(facet.name.removeprefix("tag:"))
    is_movement = case_filter.kind in movement_kinds()
    _draw_heading(title, "cases" if is_movement else "of asked")
    key = f"facet_{facet.name.replace(':', '_')}"
    with st.container(key=f"rows_{key}", gap=None):
        st.session_state[key] = list(chosen)
        st.pills(
            title,
            values,
            selection_mode="multi",
            format_func=lambda value: _row_text(facet.name, rows[value], is_movement),
            key=key,
            label_visibility="collapsed",
            width="stretch",
            on_change=_choose_values,
            args=(case_filter, facet.name, key, values),
        )
        shares = [rows[value].n_fooled / max(rows[value].n_asked, 1) for value in values]
        st.html(_bars(key, [] if is_movement else shares))
    _draw_more(facet.name, len(rows), len(values))


def _row_text(name: str, row: FacetRow, is_movement: bool) -> str:
    label = value_label(row.value)
    if name == "pair":
        label = " → ".join(filter(None, pattern_words(row.value)))
    count = f"{row.n_asked:,}" if is_movement else f"{row.n_fooled:,} / {row.n_asked:,}"
    return f"{plain(label)} :gray[{count}]"


def _bars(key: str, shares: Sequence[float]) -> str:
    """Return the style that draws a bar of 0 to 100 % below each row."""
    rules = (
        f".st-key-{key} button:nth-of-type({place}) {{ --share: {100 * share:.1f}%; }}"
        for place, share in enumerate(shares, start=1)
    )
    return f"<style>{' '.join(rules)}</style>"


def _choose_values(case_filter: Filter, name: str, key: str, values: Sequence[str]) -> None:
    _begin()
    chosen = views.facets.choose(case_filter, name, st.session_state[key])
    if name in PARAMETERS:
        filters.set_values(PARAMETERS[name], getattr(chosen, name))
    else:
        field, _ = views.facets.field_of(name)
        filters.set_values(field, [str(each) for each in getattr(chosen, field)])


def _draw_heading(title: str, remark: str) -> None:
    st.html(f'<p class="vp-facet">{tag("b", title)} {tag("span", remark)}</p>')


def _listed(name: str, values: Sequence[str], always: Sequence[str]) -> list[str]:
    """Return the first values and those that are always listed; all once these are asked for."""
    if st.session_state.get(f"listed_{name}"):
        return list(values)
    return [value for place, value in enumerate(values) if place < LISTED or value in always]


def _draw_more(name: str, n_all: int, n_listed: int) -> None:
    if n_listed < n_all:
        st.button(
            f"All {n_all:,}",
            key=f"more_{name.replace(':', '_')}",
            type="tertiary",
            on_click=st.session_state.__setitem__,
            args=(f"listed_{name}", True),
        )
