"""The controls *How it is measured*: its pickers, and the folds with every number."""

import streamlit as st

from vlprobe import views
from vlprobe.dashboard import export, frame, tables
from vlprobe.dashboard.folds import fold
from vlprobe.dashboard.lab import papers
from vlprobe.dashboard.state import PageSubject, address, choose, quiet, view
from vlprobe.dashboard.tradeoff import by_kind
from vlprobe.dashboard.tradeoff.picture import Measured
from vlprobe.render.html.elements import tag

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


def draw_measured(about: PageSubject) -> Measured:
    """The popover with all that changes the picture, and what was chosen."""
    sides = views.tradeoff.trade_off_sides(about.probe)
    with st.popover(
        "How it is measured", icon=":material/function:", key="measured", type="tertiary"
    ):
        st.markdown(about.presentation.sentence)
        names = {name: about.metrics[name].label for name in sides.ups}
        up = choose("Alert, measured by", "up", names, sides.ups[0], segments=True)
        unit = frame.unit(about)
        averaging = frame.averaging(about)
        shows_printed = _pick_printed(about, unit)
        down, alert = about.metrics[sides.down], about.metrics[up]
        for metric in (down, alert):
            tables.explain(metric)
        quiet(HOW_TO_READ)
        quiet(
            "Hollow: as the paper prints it, on other pictures. A lie is believed where it scores "
            "at least as high as the truth."
        )
    return Measured(down, alert, averaging, unit, shows_printed)


def _pick_printed(stored: PageSubject, unit: str) -> bool:
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


def draw_share(about: PageSubject, measured: Measured) -> None:
    """The popover with the link and the files."""
    with st.popover("Share", icon=":material/ios_share:", key="share", type="tertiary"):
        st.html(tag("p", "Link", class_="vp-part"))
        quiet("Works wherever this dashboard runs with the same results.")
        st.code(address(), language=None, wrap_lines=True)
        st.html(tag("p", "Files", class_="vp-part"))
        with st.container(horizontal=True):
            export.download(
                view(
                    views.tradeoff.trade_off_by_type,
                    about.question_set,
                    measured.up.name,
                    measured.averaging,
                    measured.unit,
                ),
                "tradeoff",
            )
            export.report_button(about)


def draw_folds(about: PageSubject, measured: Measured) -> None:
    """Draw the data behind the picture."""
    with fold("kinds", *FOLDS["kinds"]) as is_open:
        if is_open:
            by_kind.draw_kinds(about, measured)
    with fold("numbers", *FOLDS["numbers"]) as is_open:
        if is_open:
            export.download(tables.all_numbers(about, measured.averaging, measured.unit), "numbers")
    if about.probe == "lgip":
        with fold("paper", *FOLDS["paper"]) as is_open:
            if is_open:
                papers.draw_table(about)
    with fold("details", *FOLDS["details"]) as is_open:
        if is_open:
            frame.notes(about)
            tables.about(about.question_set)
