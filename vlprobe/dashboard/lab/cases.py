"""From a mark, a row or an example of Lab to its cases in Explore, with exactly those filters."""

import html
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import urlencode

import plotly.graph_objects as go
import streamlit as st

from vlprobe import views
from vlprobe.dashboard.navigation import page_file
from vlprobe.dashboard.state import Questions, counts, model_name, plain, view
from vlprobe.registry import is_control
from vlprobe.render.charts.theme import safe
from vlprobe.render.words import movement_kinds
from vlprobe.views.filter import Filter

MOST_LINKS = 40  # rows that are links; a table has the rest
PARAMETERS = {  # of Explore's address, by the fields of a filter
    "model": "model",
    "kind": "kind",
    "subtype": "type",
    "rule": "rule",
    "tag": "tag",
}
Target = Callable[[str, str], Filter | None]  # of a model and the key of a mark


def first_model(models: Sequence[str]) -> str:
    """What is shown without a choice: no control, where there is a model."""
    return next((name for name in models if not is_control(name)), models[0])


def slice_filter(
    asked: Questions, model: str, kinds: Sequence[str], by: str, value: str
) -> Filter | None:
    """The lies of a slice that a model believes, or all its cases where nobody is fooled; None where no filter says it.

    Args:
        asked: The question set.
        model: Whose answers.
        kinds: Of the cases that the slice's metric judges; the first that the slice has is taken.
        by: "subtype", "rule" or "tag:NAME".
        value: The slice.
    """
    known = view(views.estimates.choices, asked.question_set)
    if by in ("subtype", "rule"):
        known = known[known[by] == value]
    kind = next((kind for kind in kinds if (known["kind"] == kind).any()), "")
    if not kind or model not in asked.models:
        return None
    outcome = "all" if kind in movement_kinds() else "fooled"
    if by == "subtype":
        return Filter(model, kind, subtype=value, outcome=outcome)
    if by == "rule":
        return Filter(model, kind, rule=value, outcome=outcome)
    if by.startswith("tag:"):
        return Filter(model, kind, tag=f"{by.removeprefix('tag:')}={value}", outcome=outcome)
    return None


def query(asked: Questions, chosen: Filter, case_id: str = "") -> dict[str, str]:
    """What the address of Explore says of these cases, and of one that is open."""
    named = {
        parameter: getattr(chosen, name)
        for name, parameter in PARAMETERS.items()
        if getattr(chosen, name)
    }
    if chosen.outcome != "fooled" and chosen.kind not in movement_kinds():
        named["outcome"] = chosen.outcome
    if case_id:
        named["case"] = case_id
    return {"set": asked.key, **named}


def address(asked: Questions, chosen: Filter | None) -> str:
    """A link to these cases, for tables; "" without a filter."""
    return f"explore?{urlencode(query(asked, chosen))}" if chosen else ""


def open_clicked(points: Sequence[Mapping], asked: Questions, target: Target) -> None:
    """A clicked mark opens its cases; a mark of a paper has none."""
    for point in points:
        clicked = point.get("customdata")
        chosen = target(str(clicked[0]), str(clicked[1])) if clicked else None
        if chosen is not None:
            st.switch_page(page_file("explore"), query_params=query(asked, chosen))


def draw_links(asked: Questions, chosen: Mapping[str, Filter | None]) -> None:
    """A link a row, with how many cases it opens.

    Args:
        asked: The question set.
        chosen: Filters by what their rows are called; None has no link.
    """
    rows = [(name, found) for name, found in chosen.items() if found is not None][:MOST_LINKS]
    if not rows:
        return
    grid = st.grid(min_column_width=260, gap="small", key="cases_of_rows")
    for name, found in rows:
        with grid.cell():
            st.page_link(
                page_file("explore"),
                label=f"{plain(name)}: **{count_text(asked, found)}**",
                icon=":material/image_search:",
                query_params=query(asked, found),
            )


def count_text(asked: Questions, chosen: Filter) -> str:
    """How many cases a link opens, and of how many: "175 of 339"; of movements how many there are."""
    counted = counts(asked, chosen)
    if chosen.kind in movement_kinds():
        return f"{counted['all']:,}"
    return f"{counted[chosen.outcome]:,} of {counted['all']:,}"


def with_names(figure: go.Figure, models: Sequence[str]) -> go.Figure:
    """The figure with models' plain names in its legend and beside its marks."""
    for trace in figure.data:
        stored = html.unescape(str(trace.name or ""))
        if stored not in models:
            continue
        shown = safe(model_name(stored))
        text = trace.text if isinstance(trace.text, (tuple, list)) else ()
        trace.update(
            name=shown,
            text=[
                str(line).replace(f"<b>{safe(stored)}</b>", f"<b>{shown}</b>", 1) for line in text
            ],
        )
    return figure
