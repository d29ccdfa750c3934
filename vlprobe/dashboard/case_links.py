"""Links from marks in figures, table rows and example cards to the matching cases on the Explore page."""

import contextlib
import html
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from vlprobe import views
from vlprobe.case import json
from vlprobe.case.card import CaseCard
from vlprobe.dashboard.chart import FigureMaker, chart
from vlprobe.dashboard.components import component
from vlprobe.dashboard.navigation import address as page_address
from vlprobe.dashboard.state import (
    PageSubject,
    counts,
    model_name,
    n_passing,
    plain,
    renamed,
    store,
    view,
)
from vlprobe.dashboard.widgets import link_page, open_page
from vlprobe.errors import NotFound
from vlprobe.render import home
from vlprobe.render.charts.theme import safe
from vlprobe.render.sentences import count_halves, counted
from vlprobe.render.words import movement_kinds
from vlprobe.scoring.thumbnails import addresses
from vlprobe.views import caption_bins
from vlprobe.views.filter import Filter, Slice, corners_text
from vlprobe.views.named_slices import BREAKDOWN
from vlprobe.views.unit_counts import BUCKETS

MOST_LINKS = 40  # maximum number of rows drawn as links; a table lists the rest
# Fields of a filter that are URL parameters of Explore; RENAMED has the names that differ
PARAMETERS = (
    *("model", "kind", "subtype", "rule", "tag", "bin", "caption", "crossed", "other"),
    *("fooled", "held", "agreement", "named_slice", "unseen_by", "region", "excluded"),
)
RENAMED = {"subtype": "type", "named_slice": "slice", "unseen_by": "unseen", "excluded": "not"}
BUCKET_NAMES = {outcomes: name for name, outcomes in BUCKETS.items()}
# URL parameters; several values repeat the parameter
Query = dict[str, str | tuple[str, ...] | list[str]]
Target = Callable[[str, str], Filter | None]  # called with a model and the key of a mark


def slice_filter(
    subject: PageSubject, model: str, kinds: Sequence[str], slicing: str, value: str
) -> Filter | None:
    """Build a filter for the cases in a slice that fool a model, or for all cases if the kind cannot fool a model.

    Returns None if no filter can describe the slice.

    Args:
        subject: The question set.
        model: The model whose answers are filtered.
        kinds: Kinds of cases that the slice's metric judges; the first kind that occurs in the slice is used.
        slicing: "subtype", "rule", "strength_bin", "lure", "comparison", "caption_length", "word_frequency",
            "text_alone" or "tag:NAME".
        value: The value that defines the slice.
    """
    if slicing == views.estimates.BREAKDOWN:
        slicing, value = "subtype", views.estimates.SETTINGS.get(value, value)
    if slicing == BREAKDOWN:
        return Filter(model, kinds[0], named_slice=value)
    choices = view(views.estimates.choices, subject.question_set)
    if slicing in ("subtype", "rule"):
        choices = choices.loc[choices[slicing] == value]
    kind = next((kind for kind in kinds if kind in set(choices["kind"])), "")
    if not kind or model not in subject.models:
        return None
    outcome = "all" if kind in movement_kinds() else "fooled"
    with contextlib.suppress(NotFound):  # such as a comparison, which no filter has
        return Filter(model, kind, outcome=outcome).with_values(slicing, [value])
    return None


def query(subject: PageSubject, case_filter: Filter, case_id: str = "") -> Query:
    """Return the URL parameters that make Explore show the filtered cases and, if `case_id` is given, open that case.

    A filter parameter that has several values appears once per value.
    """
    words = case_filter.words()
    parameters: Query = {RENAMED.get(name, name): words[name] for name in PARAMETERS if words[name]}
    if case_filter.kind not in movement_kinds():
        outcomes = case_filter.outcome, case_filter.other_outcome
        if case_filter.other:
            parameters["bucket"] = BUCKET_NAMES.get(outcomes, "all")
        elif case_filter.outcome != "fooled":
            parameters["outcome"] = case_filter.outcome
    if case_filter.pair:
        parameters["pair"] = case_filter.pair
    if case_filter.within:
        parameters["area"] = corners_text(case_filter.within)
    if case_id:
        parameters["case"] = case_id
    return {"set": subject.key, **parameters}


def page_query(subject: PageSubject, **query: str) -> dict[str, str]:
    """Return the URL parameters for a page about the same question set, model and kind. Empty ones are left out."""
    parameters = {"set": subject.key, "model": subject.model, "kind": subject.kind} | query
    return {name: value for name, value in parameters.items() if value}


def draw_blind(subject: PageSubject) -> None:
    """Draw the best guess without the picture, with a link to the cases that the text does not give away.

    Call it last, because the guess takes up to 3 s for 7,500 pairs and is then kept in memory.
    """
    guess = view(views.estimates.best_guess, subject.question_set, subject.kind)
    if guess is not None:
        hard = Slice(caption_bins.TEXT_ALONE, caption_bins.VALUES[caption_bins.TEXT_ALONE][1])
        label = home.blind(guess, subject.kind_presentation)
        query = page_query(subject, caption=str(hard))
        link_page("explore", label, query, help="The cases that the text does not give away")


def address(subject: PageSubject, case_filter: Filter | None) -> str:
    """Return a relative URL to the filtered cases, for use in tables, or "" if the filter is None."""
    return page_address("explore", query(subject, case_filter)) if case_filter else ""


def chart_of_cases(
    figure: FigureMaker,
    key: str,
    alt: str,
    subject: PageSubject,
    target: Target,
    **menu: Any,
) -> None:
    """Draw a figure whose marks open their cases in Explore, except marks that show published numbers.

    Args:
        figure, key, alt, menu: As for `chart.chart`.
        subject: The question set of the page.
        target: A function from a model and the key of a mark to the filter of its cases, or None for no cases.
    """
    for point in chart(figure, key, alt, clickable=True, **menu):
        clicked = point.get("customdata")
        case_filter = target(str(clicked[0]), str(clicked[1])) if clicked else None
        if case_filter is not None:
            open_page("explore", query(subject, case_filter))


def wall_values(
    described: Sequence[CaseCard],
    label: str,
    *,
    badge: bool = True,
    remarks: Mapping[int, Sequence[str]] = MappingProxyType({}),
    **values: object,
) -> dict[str, Any]:
    """Build the data for the `wall` component, which draws cards for cases.

    Args:
        described: The cases to show.
        label: A description of the cards, for screen readers.
        badge: Whether to show how many other cases use the same picture.
        remarks: Lines below the cards, by case number.
        values: Other values to pass to the component.
    """
    sources = addresses(store().root, [shot.name for card in described for shot in card.front])
    options = {"renamed": renamed(), "badge": badge}
    cards = [
        json.wall_card(
            card, sources.__getitem__, remarks=remarks.get(card.case.case, ()), **options
        )
        for card in described
    ]
    return {"label": label, "strip": False, "cards": cards, **values}


def draw_wall(
    key: str, values: Mapping[str, object], on_select: Callable[[object], None] | None = None
) -> None:
    """Draw the `wall` component. When a user presses a card, its case is written to the URL.

    Args:
        key: Key of the component.
        values: Its data, as from `wall_values`.
        on_select: Function that is called with what the user does with selected cases: their ids, an act and a tag.
            If it is None, no case can be selected.
    """

    def open_case() -> None:
        if case_id := st.session_state[key].get("open"):
            st.query_params["case"] = str(case_id)

    def select() -> None:
        if on_select and (sent := st.session_state[key].get("chosen")):
            on_select(sent)

    component("wall")(
        key=key,
        data={**values, "selects": on_select is not None},
        on_open_change=open_case,
        on_chosen_change=select,
    )


def draw_links(subject: PageSubject, filters: Mapping[str, Filter | None]) -> None:
    """Draw a link for each row, with the number of cases that it opens.

    Args:
        subject: The question set.
        filters: A filter for each row name; rows with None get no link.
    """
    rows = [(name, case_filter) for name, case_filter in filters.items() if case_filter is not None]
    if not rows:
        return
    grid = st.grid(min_column_width=260, gap="small", key="cases_of_rows")
    for name, case_filter in rows[:MOST_LINKS]:
        with grid.cell():
            label = f"{plain(name)}: **{count_text(subject, case_filter)}**"
            link_page("explore", label, query(subject, case_filter), icon="image_search")


def count_text(subject: PageSubject, case_filter: Filter) -> str:
    """Describe how many cases a link opens, such as "175 of 339", or "16 + 82 × ½ of 692" if 82 of them fool a model in
    only one of two orders. Kinds that cannot fool a model have only a total.
    """
    by_outcome = counts(subject, case_filter)
    if case_filter.kind in movement_kinds():
        return f"{by_outcome['all']:,}"
    is_halved = subject.question_set.run(case_filter.model).n_orders == 2
    n_once = by_outcome["tied"] if is_halved and case_filter.outcome == "fooled" else 0
    n_cases = count_halves(by_outcome[case_filter.outcome] - n_once, n_once)
    return f"{n_cases} of {by_outcome['all']:,}"


def share_text(subject: PageSubject, case_filter: Filter, has_share: bool = True) -> str:
    """Describe the share of the cases that pass the outcomes in a filter, as the facets do, such as "7.8 % of 2,062
    cases (69 + 185 × ½)" if 185 of the 254 cases fool a model in only one of two orders. With hidden suspect labels,
    which shares count, only the number of cases is given. Without a share, only halves are described.
    """
    weight, n_asked = view(views.facets.weigh, subject.question_set, case_filter)
    text = f"of {counted(n_asked, 'tagged case' if case_filter.tagged else 'case')}"
    if case_filter.suspects or case_filter.tagged or not n_asked:
        return text
    text = f"{100 * weight / n_asked:.1f} % {text}" if has_share else ""
    if not (halved := views.facets.halved_models(subject.question_set, case_filter)):
        return text
    if len(halved) == 1:
        n_once = round(2 * (n_passing(subject, case_filter) - weight))
        text += f" ({count_halves(n_passing(subject, case_filter) - n_once, n_once)})"
    names = " or ".join(map(model_name, halved))
    return f"{text.strip() or 'Halves'}: a case that fools {names} in one order only counts as half"


def with_names(figure: go.Figure, models: Sequence[str]) -> go.Figure:
    """Replace model names with display names in a figure's legend, labels and tooltips."""

    def rename(trace: go.Scatter) -> None:
        name = html.unescape(str(trace.name or ""))
        if name not in models:
            return
        display_name = safe(model_name(name))
        lines = trace.text if isinstance(trace.text, (tuple, list)) else ()
        bold, display_bold = f"<b>{safe(name)}</b>", f"<b>{display_name}</b>"
        texts = [str(line).replace(bold, display_bold, 1) for line in lines]
        trace.update(name=display_name, text=texts)
        if trace.hovertemplate:
            hover_text = str(trace.hovertemplate).replace(bold, display_bold, 1)
            trace.update(hovertemplate=hover_text)

    return figure.for_each_trace(rename)
