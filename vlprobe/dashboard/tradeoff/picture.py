"""The picture: one mark per model, the list of models, and the worst mistake of the one that is looked at."""

import functools
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from vlprobe import views
from vlprobe.dashboard import case_links
from vlprobe.dashboard.components import component
from vlprobe.dashboard.navigation import page_file
from vlprobe.dashboard.pictures import large_picture
from vlprobe.dashboard.state import PageSubject, counts, store, view
from vlprobe.dashboard.tradeoff.sentence import pin, pinned
from vlprobe.registry import is_control
from vlprobe.render import findings, tradeoff
from vlprobe.render.charts.styles import DISTINCT, emphasised
from vlprobe.render.html.elements import tag
from vlprobe.render.sentences import joined
from vlprobe.render.words import AVERAGED
from vlprobe.scoring.thumbnails import addresses
from vlprobe.types import AS_PAPER, Metric
from vlprobe.views.filter import Filter
from vlprobe.views.records import PointRow, PrintedRow, records
from vlprobe.views.wall import WallCard

LARGE = 680  # pixels a side of the pinned picture, twice its size on the page


@dataclass(frozen=True)
class Measured:
    """The metrics of both sides."""

    down: Metric
    up: Metric
    averaging: str
    unit: str
    shows_printed: bool


def points_of(about: PageSubject, measured: Measured) -> pd.DataFrame:
    """Return the rows of `views.tradeoff.trade_off` for the shown models."""
    stored = about.question_set
    return view(
        views.tradeoff.trade_off, stored, measured.up.name, measured.averaging, measured.unit
    )


def draw_finding(about: PageSubject, measured: Measured) -> findings.Finding:
    """The finding as the heading, and the numbers that it rests on."""
    stored = about.question_set
    leaders = view(views.paired_tests.leaders, stored, measured.averaging, measured.unit)
    sides = findings.Sides(
        _ordered(about, measured),
        leaders[measured.down.name],
        leaders[measured.up.name],
        view(views.paired_tests.fit_models, stored),
        about.names,
        (_unit(measured.down, measured), _unit(measured.up, measured)),
        (measured.down.label.lower(), measured.up.label.lower()),
    )
    finding = findings.trade_off(sides)
    detail = joined(finding.detail, AVERAGED[AS_PAPER] if measured.averaging == AS_PAPER else "")
    st.html(
        f'<div class="vp-finding">{tag("h1", finding.heading)}'
        f"{tag('p', detail) if detail else ''}</div>"
    )
    return finding


def _unit(metric: Metric, measured: Measured) -> str:
    return "rate" if metric.unit == "rate" else measured.unit


def _ordered(about: PageSubject, measured: Measured) -> list[PointRow]:
    """The points, the most alert first, controls last."""
    rows = records(PointRow, points_of(about, measured))
    return sorted(rows, key=lambda row: (is_control(row.model), -row.y if row.y == row.y else 9e9))


def draw_picture(about: PageSubject, measured: Measured, best: str) -> None:
    """The component with all that is in it."""
    model = pinned(about, best)
    points, table = _ordered(about, measured), points_of(about, measured)
    stored = about.question_set
    plane = tradeoff.plane(
        [point for point in points if point.x == point.x and point.y == point.y],
        view(views.paired_tests.fit_models, stored),
        _unit(measured.down, measured),
        _unit(measured.up, measured),
    )
    printed: list[PrintedRow] = []
    if measured.shows_printed:
        printed = records(PrintedRow, views.tradeoff.published_trade_off(measured.up.name))
    front = set(table.loc[table["front"].astype(bool), "model"])
    chances = view(views.papers.chances, stored)
    model_styles = {name: about.looks[name] for name in about.models}
    styles = emphasised(model_styles, {model, best})
    labelled = set(about.models) if len(about.models) <= DISTINCT else {model, best}
    values = tradeoff.picture_data(
        points, front, printed, plane, styles, about.names, chances[measured.up.name], labelled
    )
    values |= {
        "pinned": model,
        "list": "Models: a press shows the worst mistake of one",
        "examples": _examples(about, measured, model),
    }
    component("tradeoff", "placing")(
        key="tradeoff",
        data=values,
        on_pin_change=_pin,
        on_open_change=functools.partial(_remember, about),
    )
    if target := st.session_state.pop("tradeoff_open", None):
        st.switch_page(page_file("explore"), query_params=target)


def _pin() -> None:
    if model := st.session_state["tradeoff"].get("pin"):
        pin(str(model))


def _remember(about: PageSubject) -> None:
    """Remember the page to open after the run: a callback cannot change the page."""
    model = st.session_state["tradeoff"].get("open")
    if model in about.models:
        query = case_links.query(about, lies(about, str(model)))
        st.session_state["tradeoff_open"] = query


def kind_of_lie(metric: Metric) -> str:
    """The kind of cases that "alert" is measured on."""
    return metric.kinds[0]


def lies(about: PageSubject, model: str, subtype: str = "") -> Filter:
    """The lies that a model believes, of one type or of all."""
    sides = about.presentation.trade_off
    kind = kind_of_lie(about.metrics[sides.ups[0]]) if sides else ""
    return Filter(model, kind, subtype)


def _examples(about: PageSubject, measured: Measured, model: str) -> dict[str, dict]:
    """The worst mistake of each model; of many models, of those that are looked at."""
    models = about.models if len(about.models) <= DISTINCT else (model,)
    kind = kind_of_lie(measured.up)
    cards: dict[str, WallCard] = {}
    for name in models:
        wall_cards, _, _ = view(views.wall.wall, about.question_set, Filter(name, kind), 1, 1, True)
        if wall_cards:
            cards[name] = wall_cards[0]
    small = addresses(store().root, [card.images[0] for card in cards.values() if card.images])
    examples = {}
    for name in models:
        n_cases = counts(about, Filter(name, kind))["fooled"]
        card = cards.get(name)
        source = small.get(card.images[0], "") if card and card.images else ""
        if card and card.images and name == model:
            source = large_picture(card.images[0], LARGE) or source
        examples[name] = tradeoff.example_data(card, n_cases, source)
    return examples
