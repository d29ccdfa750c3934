"""Steady against alert: the scatter, and the same taken apart by type of edit, strength and wording (LGIP)."""

import pandas as pd
import streamlit as st

from vlprobe import views
from vlprobe.dashboard.chart_panels import ARMS, chart, headlines, links
from vlprobe.dashboard.state import Questions, choose, plain, quiet, view
from vlprobe.dashboard.tables import reading
from vlprobe.registry import is_control
from vlprobe.render import charts, numbers
from vlprobe.render.html.elements import breakable, mark
from vlprobe.render.words import presentations, value_label
from vlprobe.views.tradeoff import (
    COMBINED,
    TYPES,
    published_by_type,
    published_trade_off,
    published_values,
)

HOW_TO_READ = (
    "How to read it: left is steadier, up is more alert, so the top left corner is ideal. The arms are 95 % intervals: "
    "where they overlap, the order may be chance. The dashed line joins the models that no other model beats on both "
    "counts: each is ahead of every other on one of them by more than the arms; controls and models that may be "
    "guessing are left out. On the dotted line a model only guesses. A click on a mark opens what fools that model."
)
PRINTED = {"hidden": "Hidden", "shown": "Shown"}
FAR = 3.0  # printed values so many times larger would squeeze one's own into a corner
KINDS = {name: f"{value_label(name)} flips" for name in TYPES} | {
    COMBINED: "Flips of a reworded caption"
}
STRENGTHS = ("weak", "medium", "strong")
WORDINGS = ("simple", "advanced")


def headline_figure(asked: Questions, averaging: str, unit: str) -> None:
    """The picture of the headline numbers: the trade-off where the probe has one, else a row a number."""
    if presentations()[asked.probe].trade_off:
        trade_off(asked, averaging, unit)
    else:
        headlines(asked, averaging, unit)


def trade_off(asked: Questions, averaging: str, unit: str) -> tuple[str, bool]:
    """The scatter beside what it says; returns what "alert" is measured by, and whether printed numbers are shown."""
    sides = presentations()[asked.probe].trade_off
    down, ups = sides.down, sides.ups
    names = {name: asked.metrics[name].label for name in ups}
    left, right = st.columns([5, 2], gap="medium")
    with left:
        with st.container(horizontal=True):
            up = choose("Alert, measured by", "up", names, ups[0], segments=True)
            points = view(views.tradeoff.trade_off, asked.question_set, up, averaging, unit)
            hollow = _printed(points, up, unit)
        figure = charts.tradeoff.trade_off(
            points, asked.metrics[down], asked.metrics[up], unit, asked.looks, hollow
        )
        alt = "A mark a model: invariance error against sensitivity. The table has the numbers."
        _opens(chart(figure, "trade_off", alt, chosen=True), asked)
    with right:
        leaders = view(views.leaders.leaders, asked.question_set, averaging, unit)
        reading(
            points,
            asked.metrics[down],
            asked.metrics[up],
            unit,
            leaders,
            view(views.papers.chances, asked.question_set),
        )
        links(asked)
        quiet(HOW_TO_READ)
        if hollow is not None:
            quiet("Hollow: as the paper prints it, on other pictures.")
    return up, hollow is not None


def _printed(points: pd.DataFrame, up: str, unit: str) -> pd.DataFrame | None:
    """The paper's models, if they are to be shown; without a choice they are, where that leaves room for one's own.

    Controls do not count as one's own: what they score says nothing of the range of real models.
    """
    if unit != "cosine":
        return None
    found = published_trade_off(up)
    models = points[~points["model"].map(is_control).astype(bool)]
    near = all(
        found[axis].max() <= FAR * models[axis].max()
        and models[axis].max() <= FAR * found[axis].max()
        for axis in ("x", "y")
    )
    help_ = (
        "What the paper prints of nine models on COCO: other pictures, so a rough comparison only."
    )
    asked = choose(
        "Published models",
        "printed",
        PRINTED,
        "shown" if near else "hidden",
        segments=True,
        help_=help_,
    )
    return found if asked == "shown" else None


def _opens(points: list[dict], asked: Questions, subtype: str = "") -> None:
    """A clicked mark of a model opens what fools it; printed marks have no cases."""
    models = [str(point["customdata"][0]) for point in points if point.get("customdata")]
    if models:
        st.switch_page("pages/explore.py", query_params=_failures(asked, models[0], subtype))


def _failures(asked: Questions, model: str, subtype: str) -> dict[str, str]:
    given = {"set": asked.key, "model": model}
    if subtype == COMBINED:
        return given | {"kind": COMBINED}
    return given | {"type": subtype} if subtype else given


def types(asked: Questions, up: str, averaging: str, unit: str, hollow: bool) -> None:
    """The trade-off once more for each type of edit, on the same axes, each with links to its failures."""
    down = asked.metrics[presentations()[asked.probe].trade_off.down]
    points = view(views.tradeoff.trade_off_by_type, asked.question_set, up, averaging, unit)
    if points.dropna(subset=["x"]).empty:
        quiet("These models were not asked about rewordings and flips both.")
        return
    paper = published_by_type(up) if hollow else None
    everything = points if paper is None else pd.concat([points, paper])
    ranges = charts.tradeoff.shared(everything, asked.metrics[up])
    mentioned(asked, "hollow: published" if hollow else "")
    shown = [kind for kind in KINDS if kind in set(points["type"])]
    for place, kind in zip(st.columns(len(shown)), shown, strict=True):
        with place:
            st.markdown(f"**{KINDS[kind]}**")
            own = points[points["type"] == kind]
            printed_here = None if paper is None else paper[paper["type"] == kind]
            figure = charts.tradeoff.panel(
                own, down, asked.metrics[up], unit, asked.looks, ranges, printed_here
            )
            chosen = chart(
                figure,
                f"type_{kind}",
                f"{KINDS[kind]}: a mark a model, as in the large figure.",
                True,
            )
            _opens(chosen, asked, kind)
            with st.popover("Failures", icon=":material/image_search:", width="stretch"):
                for model in asked.models:
                    to = _failures(asked, model, kind)
                    st.page_link("pages/explore.py", label=plain(model), query_params=to)
    quiet(
        f"How to read it: up is the {asked.metrics[up].label.lower()}, on the same axes in every panel, so a type "
        "whose marks lie lower is harder. How steady a model is does not depend on the type of flip: marks only move "
        "up and down."
    )


def mentioned(asked: Questions, more: str = "") -> None:
    """Which mark is which model, once for several small figures."""
    names = [f"{mark(asked.looks[model])} {breakable(model)}" for model in asked.models]
    st.html(f'<p class="vp-small">{" &emsp; ".join([*names, more])}</p>')


def strength(asked: Questions, up: str, averaging: str, unit: str, hollow: bool) -> None:
    """How alert a model is to weak, medium and strong flips."""
    metric = asked.metrics[up]
    if "strength_bin" not in view(views.estimates.slices, asked.question_set):
        quiet("No flip was asked, so there is no strength to speak of.")
        return
    table = view(views.estimates.estimates, asked.question_set, "strength_bin", averaging, unit)
    table = table[table["metric"] == up]
    paper = published_values("lgip", 5, up) if hollow else None
    steps = {name: value_label(name) for name in STRENGTHS}
    figure = charts.tradeoff.curves(
        table, metric, unit, asked.looks, steps, "How strong the flip is", paper
    )
    chart(figure, "strength", f"{metric.label} for weak, medium and strong flips, a line a model.")
    quiet(
        "How to read it: a model that understands what it reads rises to the right. Strength is half a prior of the "
        "type (colour below number below object), half the distance of the two captions to the model itself; weak is "
        f"its lowest quarter, strong its highest. {ARMS.strip()}"
    )


def wordings(asked: Questions, averaging: str, unit: str, hollow: bool) -> None:
    """How far the score moves under simple and under advanced rewordings."""
    down = asked.metrics[presentations()[asked.probe].trade_off.down]
    table = view(views.estimates.estimates, asked.question_set, "subtype", averaging, unit)
    table = table[(table["metric"] == down.name)].dropna(subset=["value"])
    names = {
        name: f"{value_label(name)} rewordings" for name in WORDINGS if name in set(table["slice"])
    }
    if not names:
        quiet("No rewording was asked.")
        return
    figure = charts.dots.dots(table, down, unit, names, asked.looks)
    if hollow:
        charts.tradeoff.beside(
            figure, published_values("lgip", 4, down.name), list(names), numbers.unit_of(down, unit)
        )
    chart(figure, "wordings", f"{down.label} of simple and advanced rewordings, a mark a model.")
    quiet(
        "How to read it: left is steadier. Simple: a frame around the caption, such as 'a photo of'; advanced: another "
        f"word for the same, or another order of the sentence. {ARMS.strip()}"
    )
