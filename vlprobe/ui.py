"""What pages share. A page begins with `ui.enter()` and then says, top to bottom, what it shows.

To add a page: a file in `pages/`, and a line in PAGES.
"""

import contextvars

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from vlprobe import __version__, charts
from vlprobe.errors import VlprobeError
from vlprobe.types import Metric
from vlprobe.ui_cards import cards, summary
from vlprobe.ui_filters import filters, named
from vlprobe.ui_jobs import demo_button, form, panel, past, watched
from vlprobe.ui_state import Questions, choose, plain, questions, quiet, store, tag, view
from vlprobe.ui_style import STYLE
from vlprobe.ui_tables import about, explain, headline, reading, slices
from vlprobe.views import TRADE_OFFS

__all__ = [
    "about",
    "cards",
    "explain",
    "filters",
    "form",
    "headline",
    "past",
    "questions",
    "quiet",
    "slices",
    "summary",
    "view",
]

PAGES = {
    "overview": ("Overview", ":material/scatter_plot:"),
    "run": ("Run", ":material/play_circle:"),
    "failures": ("Failures", ":material/image_search:"),
    "breakdown": ("Breakdown", ":material/bar_chart:"),
}
WELCOME = """<div class="vp-card vp-welcome">
<p>vlprobe shows where models that match pictures with captions are fooled. It asks questions such as: does a picture
of a red dog fit the true caption better than the wrong one?</p>
<p class="vp-caption"><small>True caption</small><br>A <del>red</del> dog is sitting on a bench.</p>
<p class="vp-caption"><small>Made wrong: colour</small><br>A <ins>blue</ins> dog is sitting on a bench.</p>
<p>The demo asks three tiny models about 500 drawn pictures. It needs no network and takes about a minute.</p>
</div>"""
UNITS = {"cosine": "Cosine", "spread": "Spreads"}
AVERAGING = {"macro": "Macro", "micro": "Micro"}
BY = {"subtype": "Type of edit", "strength_bin": "Strength of the flip", "rule": "Rule"}
HOW_TO_READ = (
    "How to read it: left is steadier, up is more alert, so the top left corner is ideal. The arms are 95 % intervals: "
    "where they overlap, the order may be chance. The dashed line joins the models that no other model beats on both "
    "counts. On the dotted line a model only guesses."
)
_framed = contextvars.ContextVar("framed", default=False)


def main() -> None:
    """The frame around every page."""
    st.set_page_config(page_icon="🔎", layout="wide")
    pages = [
        st.Page(f"pages/{name}.py", title=title, icon=icon, default=name == "overview")
        for name, (title, icon) in PAGES.items()
    ]
    page = st.navigation(pages)
    st.set_page_config(page_title=f"{page.title} · vlprobe")
    st.html(STYLE)
    st.sidebar.html(tag("p", f"vlprobe {__version__} · results in {store().root}", class_="vp-quiet"))
    token = _framed.set(True)
    try:
        if problem := st.session_state.pop("problem", ""):
            st.error(plain(problem), icon=":material/error:")
        page.run()
    except VlprobeError as error:
        st.error(plain(str(error)), icon=":material/error:")
    finally:
        _framed.reset(token)


def enter() -> None:
    """Begins a page. One that was reached without the frame (a link to a fresh server) gets the frame first."""
    if not _framed.get():
        main()
        st.stop()


def first_start() -> None:
    """With nothing stored: what this is, and one button. Shows the job that the URL names, above everything else."""
    job = watched()
    if job is not None and job.state != "done":
        panel(job)
    if view("runs").empty:
        if job is None:
            st.html(WELCOME)
            demo_button()
            st.page_link("pages/run.py", label="Or run your own models and pictures", icon=":material/tune:")
        st.stop()


def chart(figure: go.Figure, key: str, alt: str) -> None:
    """A figure in the page's theme, its letters dark enough to read; `alt` says it to those who cannot see it."""
    ink = "#d5dae2" if st.context.theme.type == "dark" else "#3a4454"
    figure.update_layout(font_color=ink, legend_font_color=ink)
    figure.update_xaxes(tickfont_color=ink, title_font_color=ink)
    figure.update_yaxes(tickfont_color=ink, title_font_color=ink)
    st.plotly_chart(figure, key=key, alt=alt, config={"displayModeBar": False, "scrollZoom": False})


def unit(metric: Metric | None = None) -> str:
    """Cosines as they are, or in the model's own spread; not asked where the metric is a rate."""
    if metric is not None and metric.unit == "rate":
        return "cosine"
    help_ = (
        "Models use different ranges of cosines. In spreads, each gap is divided by how much the model's similarity "
        "varies over pictures and captions that do not belong together, so that models can be compared."
    )
    return choose("Unit of gaps", "unit", UNITS, "cosine", segments=True, help_=help_)


def averaging(metric: Metric | None = None) -> str:
    """Macro or micro; not asked where the metric has one of them only."""
    if metric is not None and len(metric.averaging) == 1:
        return metric.averaging[0]
    help_ = "Macro: the mean of each caption first, so that every caption counts once. Micro: all edits pooled."
    return choose("Average", "average", AVERAGING, "macro", segments=True, help_=help_)


def metric(asked: Questions) -> Metric:
    """One of the probe's metrics."""
    options = {key: own.label for key, own in asked.metrics.items()}
    return asked.metrics[choose("Metric", "metric", options, next(iter(options)))]


def trade_off(asked: Questions, averaging: str, unit: str) -> None:
    """The scatter of steady against alert, beside what it says; nothing for probes that do not ask both."""
    if asked.probe not in TRADE_OFFS:
        return
    down, ups = TRADE_OFFS[asked.probe]
    names = {name: asked.metrics[name].label for name in ups}
    left, right = st.columns([5, 2], gap="medium")
    with left:
        up = choose("Alert, measured by", "up", names, ups[0], segments=True)
        points = view("trade_off", asked.key, up, averaging, unit)
        figure = charts.trade_off(points, asked.metrics[down], asked.metrics[up], unit, asked.looks)
        chart(figure, "trade_off", "A mark a model: invariance error against sensitivity. The table has the numbers.")
    with right:
        reading(points, asked.metrics[down], asked.metrics[up], unit)
        links(asked)
        quiet(HOW_TO_READ)


def by(asked: Questions) -> str:
    """What to take the numbers apart by."""
    options = {name: BY.get(name) or f"Tag: {name.removeprefix('tag:')}" for name in view("slices", asked.key)}
    return choose("Taken apart by", "by", options, next(iter(options)))


def sliced(asked: Questions, metric: Metric, by: str, averaging: str, unit: str) -> pd.DataFrame:
    """The estimates of one metric, a row a model and slice. Without any, says so and stops the page."""
    table = view("estimates", asked.key, by, averaging, unit)
    table = table[table["metric"] == metric.name]
    if table.empty:
        st.info(f"{metric.label} does not come in these parts. Take it apart by something else.")
        st.stop()
    return table


def slice_names(table: pd.DataFrame) -> dict[str, str]:
    """The slices of a table in words; weak, medium and strong in that order, the rest by name."""
    order = {"weak": 0, "medium": 1, "strong": 2}
    return {name: named(name) for name in sorted(table["slice"].unique(), key=lambda name: (order.get(name, 9), name))}


def watched_job() -> None:
    """The job that the URL names."""
    job = watched()
    if job is not None:
        panel(job)


def notes(asked: Questions) -> None:
    """What to know before believing a model's numbers, such as that it was never trained."""
    stored = view("runs")
    own = stored[(stored["case_key"] == asked.key) & (stored["note"] != "")].drop_duplicates("model")
    if len(own):
        lines = [f"- {plain(row.model)}: {plain(row.note)}" for row in own.itertuples()]
        st.info("\n".join(lines), icon=":material/info:")


def download(table: pd.DataFrame, name: str) -> None:
    """The table that is shown, as CSV."""
    st.download_button(
        "Download as CSV", table.to_csv(index=False), f"vlprobe_{name}.csv", "text/csv", icon=":material/download:"
    )


def links(asked: Questions) -> None:
    """From a model to what fools it."""
    for model in asked.models:
        st.page_link(
            "pages/failures.py",
            label=f"What fools {plain(model)}",
            icon=":material/image_search:",
            query_params={"set": asked.key, "model": model},
        )
