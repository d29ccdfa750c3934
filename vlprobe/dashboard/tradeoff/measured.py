"""The controls *How it is measured*: its pickers, and the folds with every number."""

import streamlit as st

from vlprobe import views
from vlprobe.dashboard import export, frame, papers, tables
from vlprobe.dashboard.folds import fold
from vlprobe.dashboard.state import Questions, address, choose, quiet, view
from vlprobe.dashboard.tradeoff import by_kind
from vlprobe.dashboard.tradeoff.picture import Measured
from vlprobe.dashboard.tradeoff.sentence import Field
from vlprobe.render.html.elements import tag
from vlprobe.render.words import presentations

PRINTED = {"shown": "Shown", "hidden": "Hidden"}
PRINTED_HELP = (
    "What the paper prints of nine models on COCO: other pictures, so a rough comparison only."
)
HOW_TO_READ = (
    "How to read it: right is steadier, up is more alert, so the top right corner is ideal. The "
    "lines through a mark are 95 % intervals: where they overlap, the order may be chance. The "
    "dashed line joins the models that no other model beats on both counts: each is ahead of every "
    "other on one of them by more than the intervals; controls and models that may be guessing are "
    "left out. Real models set the frame; what lies outside of it is named at its edge. On a "
    "dotted line a model only guesses."
)
FOLDS = {
    "kinds": ("By kind of lie", ":material/grid_view:"),
    "numbers": ("The numbers", ":material/function:"),
    "paper": ("Beside the paper", ":material/menu_book:"),
    "details": ("Details", ":material/data_object:"),
}


def draw_measured(about: Field) -> Measured:
    """The popover with all that changes the picture, and what was chosen."""
    stored = about.questions
    sides = views.tradeoff.trade_off_sides(stored.probe)
    with st.popover(
        "How it is measured", icon=":material/function:", key="measured", type="tertiary"
    ):
        st.markdown(presentations()[stored.probe].sentence)
        names = {name: stored.metrics[name].label for name in sides.ups}
        up = choose("Alert, measured by", "up", names, sides.ups[0], segments=True)
        unit = frame.unit(stored)
        averaging = frame.averaging(stored)
        shows_printed = _pick_printed(stored, unit)
        down, alert = stored.metrics[sides.down], stored.metrics[up]
        for metric in (down, alert):
            tables.explain(metric)
        quiet(HOW_TO_READ)
        quiet(
            "Hollow: as the paper prints it, on other pictures. A lie is believed where it scores "
            "at least as high as the truth."
        )
    return Measured(down, alert, averaging, unit, shows_printed)


def _pick_printed(stored: Questions, unit: str) -> bool:
    """Return whether the paper's models are shown, which give only cosines; they
    never stretch the frame. Beside kinds of edit that the paper does not ask they are hidden at first.
    """
    if unit != "cosine":
        return False
    default = "hidden" if view(views.estimates.mixed_kinds, stored.question_set) else "shown"
    picked = choose(
        "Published models", "printed", PRINTED, default, segments=True, help_=PRINTED_HELP
    )
    return picked == "shown"


def draw_share(about: Field, measured: Measured) -> None:
    """The popover with the link and the files."""
    stored = about.questions
    with st.popover("Share", icon=":material/ios_share:", key="share", type="tertiary"):
        st.html(tag("p", "Link", class_="vp-part"))
        quiet("Works wherever this dashboard runs with the same results.")
        st.code(address(), language=None, wrap_lines=True)
        st.html(tag("p", "Files", class_="vp-part"))
        with st.container(horizontal=True):
            export.download(
                view(
                    views.tradeoff.trade_off_by_type,
                    stored.question_set,
                    measured.up.name,
                    measured.averaging,
                    measured.unit,
                ),
                "tradeoff",
            )
            export.report_button(stored)


def draw_folds(about: Field, measured: Measured) -> None:
    """Draw the data behind the picture."""
    stored = about.questions
    with fold("kinds", *FOLDS["kinds"]) as is_open:
        if is_open:
            by_kind.draw_kinds(about, measured)
    with fold("numbers", *FOLDS["numbers"]) as is_open:
        if is_open:
            export.download(
                tables.all_numbers(stored, measured.averaging, measured.unit), "numbers"
            )
    if stored.probe == "lgip":
        with fold("paper", *FOLDS["paper"]) as is_open:
            if is_open:
                papers.paper(stored)
    with fold("details", *FOLDS["details"]) as is_open:
        if is_open:
            frame.notes(stored)
            tables.about(stored.question_set)
