"""The fold *By kind of lie*: the trade-off by type of edit, by strength of a lie, by kind of rewording."""

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from vlprobe import views
from vlprobe.dashboard import case_links
from vlprobe.dashboard.chart import ARMS, chart
from vlprobe.dashboard.navigation import page_file
from vlprobe.dashboard.state import PageSubject, plain, quiet, view
from vlprobe.dashboard.tradeoff.picture import Measured, lies
from vlprobe.perturb.kinds import edits as kind_edits
from vlprobe.registry import is_control
from vlprobe.render import charts, numbers
from vlprobe.render.charts.styles import Looks
from vlprobe.render.html.elements import mark
from vlprobe.render.sentences import listed
from vlprobe.render.words import value_label
from vlprobe.views.bins import STRENGTH, STRENGTHS
from vlprobe.views.filter import Filter
from vlprobe.views.tradeoff import COMBINED, TYPES, published_by_type, published_values

KINDS = {
    name: value_label(name) if name in kind_edits.LIES else f"{value_label(name)} flips"
    for name in TYPES
} | {COMBINED: "Flips of a reworded caption"}
WORDINGS = {
    "simple": "Simple rewordings",
    "advanced": "Advanced rewordings",
    **{name: value_label(name) for name in kind_edits.REWORDINGS},
}
MOST_PANELS = 4  # beside each other
HOW_PANELS = (
    "How to read it: right is steadier and up is more alert, on the same axes in every panel, so a "
    "type whose marks lie lower is harder. How steady a model is does not depend on the type of "
    "flip: marks only move up and down. A press on a mark opens the lies of that type that the "
    "model believes."
)
HOW_STRENGTH = (
    "How to read it: a model that understands what it reads rises to the right. Strength is half a "
    "prior of the type (colour below number below object), half the distance of the two captions "
    "to the model itself; weak is its lowest quarter, strong its highest. A press on a mark opens "
    "its lies. "
)
HOW_WORDINGS = (
    "How to read it: left is steadier. Simple: a frame around the caption, such as 'a photo of'; "
    "advanced: another word for the same, or another order of the sentence. Letter case, punctuation "
    "and typos, where they were asked, leave every word what it is. "
)


def draw_kinds(about: PageSubject, measured: Measured) -> None:
    """All three figures."""
    names = about.names
    _draw_panels(about, measured, names)
    left, right = st.columns(2, gap="large")
    with left:
        st.subheader("Weak and strong flips", anchor=False)
        _draw_strength(about, measured, names)
    with right:
        st.subheader("Simple and advanced rewordings", anchor=False)
        _draw_wordings(about, measured, names)


def _looks(about: PageSubject, names: Mapping[str, str]) -> Looks:
    """The looks of the shown models by their plain names, as the figures show them."""
    return {names[model]: about.looks[model] for model in about.models}


def _draw_panels(about: PageSubject, measured: Measured, names: Mapping[str, str]) -> None:
    """The trade-off once for each type of edit, on the same axes, each with links to its cases."""
    points = view(
        views.tradeoff.trade_off_by_type,
        about.question_set,
        measured.up.name,
        measured.averaging,
        measured.unit,
    )
    if points.dropna(subset=["x"]).empty:
        quiet("These models were not asked about rewordings and flips both.")
        return
    paper = published_by_type(measured.up.name) if measured.shows_printed else None
    real = points.loc[~points["model"].map(is_control).astype(bool)]
    ranges = charts.tradeoff.shared(real if len(real) else points, measured.up)
    legend = " &emsp; ".join(
        f"{mark(about.looks[model])} {charts.theme.safe(names[model])}" for model in about.models
    )
    st.html(
        "<p "
        f'class="vp-small">{legend}{" &emsp; hollow: published" if paper is not None else ""}</p>'
    )
    types = [kind for kind in KINDS if kind in set(points["type"])]
    for start in range(0, len(types), MOST_PANELS):
        row = types[start : start + MOST_PANELS]
        for column, kind in zip(st.columns(len(row)), row, strict=True):
            with column:
                st.markdown(f"**{KINDS[kind]}**")
                _draw_panel(about, measured, names, kind, points, paper, ranges)
    quiet(HOW_PANELS)


def _draw_panel(
    about: PageSubject,
    measured: Measured,
    names: Mapping[str, str],
    kind: str,
    points: pd.DataFrame,
    paper: pd.DataFrame | None,
    ranges: charts.tradeoff.Ranges,
) -> None:
    of_kind = points.loc[points["type"] == kind]
    figure = charts.tradeoff.panel(
        of_kind,
        measured.down,
        measured.up,
        measured.unit,
        about.looks,
        ranges,
        None if paper is None else paper.loc[paper["type"] == kind],
        names,
    )
    alt = f"{KINDS[kind]}: a mark a model, as in the large figure."
    open_clicked(about, chart(figure, f"type_{kind}", alt, True), kind)
    with st.popover("Failures", icon=":material/image_search:", width="stretch"):
        for model in about.models:
            query = case_links.query(about, lies_of_kind(about, model, kind))
            st.page_link(page_file("explore"), label=plain(names[model]), query_params=query)


def open_clicked(about: PageSubject, points: Sequence[Mapping], kind: str) -> None:
    """A clicked mark of a model opens what fools it; printed marks have no cases."""
    models = [str(point["customdata"][0]) for point in points if point.get("customdata")]
    if models:
        query = case_links.query(about, lies_of_kind(about, models[0], kind))
        st.switch_page(page_file("explore"), query_params=query)


def lies_of_kind(about: PageSubject, model: str, kind: str) -> Filter:
    """The lies of a type that a model believes."""
    return Filter(model, COMBINED) if kind == COMBINED else lies(about, model, kind)


def _draw_strength(about: PageSubject, measured: Measured, names: Mapping[str, str]) -> None:
    """Draw the positive rate of a model on weak, medium and strong flips."""
    stored = about.question_set
    if "strength_bin" not in view(views.estimates.slices, stored):
        quiet("No flip was asked, so there is no strength to speak of.")
        return
    table = view(
        views.estimates.estimates, stored, "strength_bin", measured.averaging, measured.unit
    )
    table = table.loc[table["metric"] == measured.up.name].replace({"model": dict(names)})
    paper = published_values("lgip", 5, measured.up.name) if measured.shows_printed else None
    steps = {name: value_label(name) for name in STRENGTHS}
    figure = charts.tradeoff.curves(
        table,
        measured.up,
        measured.unit,
        _looks(about, names),
        steps,
        "How strong the flip is",
        paper,
        names.get(st.query_params.get("model", ""), ""),
    )
    alt = f"{measured.up.label} for weak, medium and strong flips, a line a model."
    points = chart(figure, "strength", alt, True)
    stored_names = {plain_name: model for model, plain_name in names.items()}

    def target(plain_name: str, name: str) -> Filter | None:
        model = stored_names.get(plain_name, "")
        return case_links.slice_filter(about, model, measured.up.kinds, STRENGTH, name)

    case_links.open_clicked(points, about, target)
    quiet(HOW_STRENGTH + ARMS.strip())


def _draw_wordings(about: PageSubject, measured: Measured, names: Mapping[str, str]) -> None:
    """Draw the movement of the score under simple and under advanced rewordings."""
    down = measured.down
    table = view(
        views.estimates.estimates,
        about.question_set,
        "subtype",
        measured.averaging,
        measured.unit,
    )
    table = table.loc[table["metric"] == down.name].dropna(subset=["value"])
    rows = {name: words for name, words in WORDINGS.items() if name in set(table["slice"])}
    if not rows:
        quiet("No rewording was asked.")
        return
    controls = [model for model in about.models if is_control(model)]
    left_out = controls if len(controls) < len(about.models) else []
    table = table.loc[~table["model"].isin(left_out)].replace({"model": dict(names)})
    figure = charts.dots.dots(table, down, measured.unit, rows, _looks(about, names))
    if measured.shows_printed:
        unit = numbers.unit_of(down, measured.unit)
        charts.tradeoff.beside(figure, published_values("lgip", 4, down.name), list(rows), unit)
    alt = f"{down.label} of simple and advanced rewordings, a mark a model."
    chart(figure, "wordings", alt)
    squeezed = (
        " Not drawn, since it would squeeze the others: "
        f"{listed([names[model] for model in left_out])}."
    )
    quiet(HOW_WORDINGS + ARMS.strip() + (squeezed if left_out else ""))
