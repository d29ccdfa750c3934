"""The fold *Case by case*: the margins of two models as a scatter, and the cases of a marked area.

The URL names the marked area (`area`, its corners), the bucket, the order and the page, so that a
link reopens the same cards.
"""

import functools
import math

import streamlit as st

from vlprobe import views
from vlprobe.dashboard.cases import choices
from vlprobe.dashboard.chart import inked
from vlprobe.dashboard.compare import columns
from vlprobe.dashboard.compare.sentence import CARDS
from vlprobe.dashboard.components import component
from vlprobe.dashboard.folds import BETWEEN, fold
from vlprobe.dashboard.state import (
    PageSubject,
    choose,
    mark_picked,
    n_passing,
    page_number,
    paginate,
    quiet,
    view,
)
from vlprobe.render import charts
from vlprobe.render.html.elements import tag
from vlprobe.render.words import movement_kinds, value_label
from vlprobe.views.filter import Filter, parse_corners
from vlprobe.views.paired_outcomes import bucket

CORNERS = 40  # of a lasso: as many as a link can bear
TOOLS = {"box": "Box", "lasso": "Lasso"}
PARAMETERS = ("area", "bucket", "tool", "sort")  # of the URL, that only this fold has
HOW_TO_READ = (
    "How to read it: each mark is a case. Right of the vertical line {first} is right, above the "
    "horizontal line {second} is. So the top left shows what only {first} gets wrong, and the bottom right what "
    "only {second} gets wrong. Drag over marks to see their cases below."
)
HOW_TO_READ_MOVED = (
    "How to read it: each mark is a case, and its margin is how far the score moved. 0 is best; no model is fooled. "
    "Drag over marks to see their cases below."
)


def draw_fold(contest: PageSubject, rival: str) -> Filter | None:
    """The fold; where it is open, the filter of the cases in it. Answers that are right or wrong
    only have no margins to draw.
    """
    runs = [contest.question_set.run(model) for model in (contest.model, rival)]
    if not all(run.is_scored for run in runs):
        return None
    with fold("map", "Case by case", ":material/scatter_plot:", PARAMETERS) as is_open:
        if not is_open:
            return None
        case_filter = _draw_margins(contest, rival)
        _draw_cards(contest, case_filter)
        return case_filter


def _draw_margins(contest: PageSubject, rival: str) -> Filter:
    """The scatter of two models' margins, and the filter of the cases that are marked."""
    base, kind = contest.model, contest.kind
    names, is_moved = contest.names, kind in movement_kinds()
    area = corners(st.query_params.get("area", ""))
    case_filter = choices.with_order(
        contest, Filter(base, kind, outcome="all", other=rival, within=area)
    )
    points, total = view(views.paired_outcomes.scatter, contest.question_set, base, rival, kind)
    left, right = st.columns([5, 2], gap="medium")
    with right:
        tool = choose("Select an area with a", "tool", TOOLS, "box", segments=True)
        how = HOW_TO_READ_MOVED if is_moved else HOW_TO_READ
        quiet(how.format(first=names[base], second=names[rival]))
        if total > len(points):
            quiet(
                f"Drawn: {len(points):,} of {total:,} cases, chosen at random. Selecting "
                "an area finds all cases in it."
            )
        if area:
            inside = view(views.paired_outcomes.buckets, contest.question_set, case_filter)["all"]
            st.html(
                f'<p class="vp-marked"><strong>{inside:,}</strong> of {total:,} cases are in the '
                "selected area.</p>"
            )
            st.button(
                "Clear the area", key="unmark", icon=":material/ink_eraser:", on_click=_unmark
            )
    with left:
        words = {name: value_label(name) for name in points["subtype"].unique()}
        figure = charts.compare.margins(
            points, base, rival, contest.looks, words, area, tool, is_moved, names
        )
        # A new key for each area: the area of the URL is drawn, none is left over from the mouse.
        key = BETWEEN.join([base, rival, kind, tool, st.query_params.get("area", "")])
        with st.container(key="margins"):
            st.plotly_chart(
                inked(figure),
                key=key,
                alt=f"Margins of {names[base]} against {names[rival]}, one mark per case. "
                "The picker below leads to the same cases.",
                config={"displayModeBar": False, "scrollZoom": False},
                on_select=functools.partial(_mark, key),
                selection_mode=("box", "lasso"),
            )
    return (
        case_filter if is_moved else bucket(case_filter, choices.pick_bucket(contest, case_filter))
    )


def corners(text: str) -> tuple[tuple[float, float], ...]:
    """The corners that a URL names: x,y;x,y;... Nothing where it is not
    that, or too many for a link.
    """
    parsed = parse_corners(text)
    return parsed if len(parsed) <= CORNERS + 1 else ()


def _draw_cards(contest: PageSubject, case_filter: Filter) -> None:
    """A page of the cases that are marked, each on a card."""
    n_cases = n_passing(contest, case_filter)
    with st.container(horizontal=True, vertical_alignment="bottom", key="map_bar"):
        st.html(tag("p", f"{n_cases:,} {'case' if n_cases == 1 else 'cases'}"), width="content")
        st.space("stretch")
        choices.draw_order(contest, case_filter)
    if not n_cases:
        quiet("No case is here. Choose others above, or clear the area.")
        return
    page = page_number(n_cases, CARDS)
    cards, _, _ = view(views.wall.wall, contest.question_set, case_filter, page, CARDS, False)
    values = columns.card_values(
        contest, case_filter, cards, "The cases of this choice", badge=False
    )
    component("wall")(
        key="map_cards",
        data=values,
        on_open_change=functools.partial(columns.open_case, "map_cards"),
    )
    if n_cases > CARDS:
        paginate(n_cases, CARDS)


def _mark(key: str) -> None:
    """Write the drawn area into the URL: a box by its corners, a lasso by a limited number of its points."""
    selection = st.session_state[key]["selection"]
    if selection["lasso"]:
        xs, ys = selection["lasso"][-1]["x"], selection["lasso"][-1]["y"]
        step = math.ceil(len(xs) / CORNERS)
        drawn = list(zip(xs[::step], ys[::step], strict=True))
    elif selection["box"]:
        (x, to_x), (y, to_y) = selection["box"][-1]["x"], selection["box"][-1]["y"]
        drawn = [(x, y), (to_x, y), (to_x, to_y), (x, to_y)]
    else:
        return
    mark_picked()
    st.query_params["area"] = ";".join(f"{x:.5f},{y:.5f}" for x, y in drawn)
    for name in ("bucket", "page"):
        st.query_params.pop(name, None)


def _unmark() -> None:
    mark_picked()
    for name in ("area", "page"):
        st.query_params.pop(name, None)
