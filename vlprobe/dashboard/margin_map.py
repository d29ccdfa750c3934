"""A scatter plot of two models' margins, with one mark per case. Selecting an area filters the cases.

The URL names the selected area (`area`, its corners) and the tool that selects it (`tool`).
"""

import math
from functools import partial

import pandas as pd
import streamlit as st

from vlprobe.dashboard.chart import inked
from vlprobe.dashboard.export import draw_menu
from vlprobe.dashboard.state import PageSubject, choose, counts, quiet, write_choice
from vlprobe.dashboard.widgets import BETWEEN, press
from vlprobe.render import charts
from vlprobe.render.words import edit_title, movement_kinds
from vlprobe.views.filter import Filter, corners_text, parse_corners

CORNERS = 40  # maximum number of corners of a lasso, so that links do not get too long
TOOLS = {"box": "Box", "lasso": "Lasso"}
HOW_TO_READ = (
    "How to read it: each mark is a case. {first} is right on cases to the right of the vertical line, and {second} "
    "on cases above the horizontal line. So the top left shows what only {first} gets wrong, and the bottom right "
    "what only {second} gets wrong. Drag over marks to see their cases."
)
HOW_TO_READ_MOVED = (
    "How to read it: each mark is a case, and its margin is how far the score moved. 0 is best. These cases "
    "cannot fool a model. Drag over marks to see their cases."
)


def draw_map(subject: PageSubject, points: pd.DataFrame, n_cases: int, case_filter: Filter) -> None:
    """Draw the margins of a model and of the first model it is compared with.

    Args:
        subject: The subject, with at least one model to compare with.
        points: The marks, with the columns case, margin, other_margin, subtype, source and target.
        n_cases: Number of cases that have both margins.
        case_filter: The filter for the cases in the selected area, or for all cases.
    """
    base, rival, kind = subject.model, subject.rivals[0], subject.kind
    names, is_moved = subject.names, kind in movement_kinds()
    left, right = st.columns([5, 2], gap="medium")
    with right:
        tool = choose("Selection tool", "tool", TOOLS, "box", segments=True)
        how = HOW_TO_READ_MOVED if is_moved else HOW_TO_READ
        quiet(how.format(first=names[base], second=names[rival]))
        if n_cases > len(points):
            quiet(
                f"The plot shows {len(points):,} of {n_cases:,} cases, chosen at random. "
                "Selecting an area selects all cases in it."
            )
        if case_filter.within:
            n_inside = counts(subject, case_filter)["all"]
            words = f"<strong>{n_inside:,}</strong> of {n_cases:,} cases are in the selected area."
            st.html(f'<p class="vp-marked">{words}</p>')
            press("Clear the area", write_choice, {"area": None}, icon="ink_eraser", key="unmark")
    with left:
        words = {name: edit_title(name) for name in points["subtype"].unique()}
        look = subject.looks, words, case_filter.within, tool, is_moved
        figure = charts.compare.margins(points, base, rival, *look, names=names)
        # Use a new key for each area, so that only the URL's area is drawn and none is left over from the mouse.
        key = BETWEEN.join([base, rival, kind, tool, st.query_params.get("area", "")])
        drawn = inked(figure)
        with st.container(key="margins"):
            st.plotly_chart(
                drawn,
                key=key,
                alt=f"Margins of {names[base]} against {names[rival]}, one mark per case.",
                config={"displayModeBar": False, "scrollZoom": False},
                on_select=partial(_mark, key),
                selection_mode=("box", "lasso"),
            )
        draw_menu("margins", drawn, points)


def corners(text: str) -> tuple[tuple[float, float], ...]:
    """Parse corners from a URL in the form x,y;x,y;... The result is empty if they are invalid or too many."""
    parsed = parse_corners(text)
    return parsed if len(parsed) <= CORNERS + 1 else ()


def _mark(key: str) -> None:
    """Write the selected area to the URL: the corners of a box, or up to CORNERS points of a lasso."""
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
    write_choice({"area": corners_text(drawn), "bucket": None})
