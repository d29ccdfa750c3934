"""The papers' figures, drawn again from the user's runs, with the printed values next to them if there are any."""

import math
from functools import partial

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from vlprobe import views
from vlprobe.dashboard import case_links
from vlprobe.dashboard.access import changes
from vlprobe.dashboard.chart import ARMS, chart
from vlprobe.dashboard.jobs import begin
from vlprobe.dashboard.lab.chart_panels import GUESSING, chart_of_cases, mentioned
from vlprobe.dashboard.state import PageSubject, attempt, choose, model_name, plain, quiet, view
from vlprobe.metrics.series import BOUNDARY_THRESHOLDS
from vlprobe.render import charts, numbers
from vlprobe.render.words import slice_order, value_label
from vlprobe.runs.request import Request
from vlprobe.types import Metric
from vlprobe.views import bins
from vlprobe.views.bins import lure_bins
from vlprobe.views.figures import (
    DEPTHS,
    published_boundaries,
    published_depths,
    published_severity,
    severity_steps,
)
from vlprobe.views.filter import Filter
from vlprobe.views.tradeoff import published_values

MEASURES = {"drop_rate": "Drop rate", "rsms": "Altered on top (RSMS)"}
EDITS = {
    "rand-voca": "Random words",
    "same-concept": "Same concept",
    "diff-concept": "Another concept",
    "danger": "Danger words",
    "mix": "Mixed pictures",
    "patch": "Patched pictures",
}
PICTURES = ("mix", "patch")
# What EqBen's table 4 prints by kind, under the names of the demo's subsets
KUBRIC = {"location": "location", "counting": "number", "attribute": "color"}
SCORES = ("text_score", "image_score", "group_score", "foil_accuracy")
MOST_NAMED = 9  # models whose number is in a sentence
FEW = 5  # triplets; of fewer no accuracy is drawn


def severity(stored: PageSubject) -> None:
    """RoCOCO's measures over how much was altered, and a button that asks what is missing."""
    with st.container(horizontal=True):
        edit = choose("What is altered", "edit", EDITS, "mix")
        measure = choose("Measured by", "measure", MEASURES, "drop_rate", segments=True)
    metric = stored.metrics[f"{'t2i' if edit in PICTURES else 'i2t'}_{measure}"]
    steps = severity_steps(edit)
    table = view(views.figures.severity, stored.question_set, metric.name)
    table = table.loc[table["slice"].isin(steps)]
    paper = published_severity(edit, metric.name)
    across = (
        "Share of the picture taken from another"
        if edit in PICTURES
        else "Words exchanged in a caption"
    )
    looks = stored.looks
    make = partial(charts.tradeoff.curves, table, metric, "cosine", looks, steps, across, paper)
    alt = f"{metric.label} over how much was altered, a line a model."
    chart_of_cases(make, "severity", alt, stored, metric.kinds)
    hollow = " Hollow and grey: as the paper prints its models on COCO." if len(paper) else ""
    quiet(
        "How to read it: lower is better. A model that sees the alteration falls to the right, "
        "because more of it is "
        f"wrong; one that stays high takes almost anything for the original. {ARMS.strip()}{hollow}"
    )
    _missing(stored, edit, steps, set(table["slice"]))


def _missing(stored: PageSubject, edit: str, steps: dict[str, str], answered: set[str]) -> None:
    missing = {name: words for name, words in steps.items() if name not in answered}
    if not missing:
        return
    stored_words = ", ".join(words for name, words in steps.items() if name in answered) or "none"
    unit = "of the picture" if edit in PICTURES else "words"
    missing_words = ", ".join(missing.values())
    quiet(f"Measured at {stored_words}. Not asked yet: {missing_words} {unit}.")
    if not changes("The missing strengths cannot be asked here."):
        return
    request_fields = view(views.figures.request_fields, stored.question_set)
    lists = (
        {"policies": [], "pictures": list(missing)}
        if edit in PICTURES
        else {"policies": list(missing), "pictures": []}
    )
    request = Request(
        stored.models,
        **request_fields | {"probe": stored.probe, "options": request_fields["options"] | lists},
    )
    icon = ":material/play_arrow:"
    st.button(
        f"Run it with {missing_words} {unit}",
        icon=icon,
        key="ask_severity",
        on_click=attempt,
        args=(begin, request),
    )


def has_deviations(stored: PageSubject) -> bool:
    """Return whether there are cases with two pictures, and so an equivariance deviation."""
    return not view(views.papers.deviations, stored.question_set, "cosine", "").empty


def deviations(stored: PageSubject, unit: str) -> None:
    """EqBen's equivariance deviation, spread over the pairs of all subsets or of one."""
    metric = stored.metrics["equivariance_deviation"]
    st.header("Does the score change evenly")
    st.markdown(
        "When picture and caption both change, the score should change by as much one way as the "
        "other. The deviation is how much it does not."
    )
    subset = choose("Subset", "subset", _subsets(stored, metric), "")
    table = view(views.papers.deviations, stored.question_set, unit, subset)
    if table.empty:
        quiet("No deviation is known in this unit.")
        return
    chart(
        case_links.with_names(
            charts.dots.distribution(table, metric, unit, stored.looks), stored.models
        ),
        "deviations",
        f"{metric.label}, shares of the pairs.",
    )
    scores = view(views.estimates.estimates, stored.question_set, "subtype" if subset else "all")
    scores = scores.loc[(scores["metric"] == "group_score") & (scores["slice"] == subset)]
    group_scores = ", ".join(
        f"{model_name(model)} {numbers.number(value, 'rate')}"
        for model, value in scores[["model", "value"]].head(MOST_NAMED).itertuples(index=False)
    )
    if len(scores) > MOST_NAMED:
        group_scores += f", and of {len(scores) - MOST_NAMED} more in the paper's table below"
    quiet(
        "How to read it: a model that answers equally to equal changes piles up at 0; the last "
        "step has all beyond. Compare models in spreads: one that uses a wider range of cosines "
        "deviates more in cosines for that reason "
        f"alone. Group scores of the same pairs: {group_scores}."
    )


def _subsets(stored: PageSubject, metric: Metric) -> dict[str, str]:
    table = view(views.estimates.estimates, stored.question_set, "subtype").dropna(subset=["value"])
    names = sorted(table.loc[table["metric"] == metric.name, "slice"].unique(), key=slice_order)
    return {"": "All", **{name: value_label(name) for name in names if name}}


def subsets(stored: PageSubject) -> None:
    """EqBen's scores, a row a subset."""
    table = view(views.estimates.estimates, stored.question_set, "subtype").dropna(subset=["value"])
    measured = set(table["metric"])
    names = {name: stored.metrics[name].label for name in SCORES if name in measured}
    if not names:
        quiet("No model here answered in numbers that can be measured by subset.")
        return
    default = "group_score" if "group_score" in names else next(iter(names))
    is_choice = len(names) > 1
    score = choose("Measured by", "score", names, default, segments=True) if is_choice else default
    metric = stored.metrics[score]
    table = table.loc[table["metric"] == metric.name]
    rows = {name: value_label(name) for name in sorted(table["slice"].unique(), key=slice_order)}
    paper = published_values("eqben", 4, metric.name)
    paper = paper.assign(slice=paper["slice"].map(KUBRIC.get))
    paper = paper.loc[paper["slice"].isin(list(rows))]

    def make() -> go.Figure:
        chances = dict.fromkeys(rows, metric.chance)
        figure = charts.dots.dots(table, metric, "cosine", rows, stored.looks, chances)
        if len(paper):
            charts.tradeoff.beside(figure, paper, list(rows), "rate")
        return figure

    alt = f"{metric.label} of each subset, a mark a model."
    chart_of_cases(make, "subsets", alt, stored, metric.kinds)
    hollow = (
        " Hollow: what table 4 prints of Kubric's location, counting and attribute."
        if len(paper)
        else ""
    )
    quiet(
        "How to read it: right is better, and rows far apart are different skills. "
        f"{ARMS}{GUESSING}{hollow}"
    )


def lexical(stored: PageSubject, model: str) -> None:
    """VISLA's edit distances, and how accuracy follows shared words."""
    choices = view(views.estimates.choices, stored.question_set)
    subset_labels = {
        name: value_label(name)
        for name in choices.loc[choices["kind"] == "t2t", "subtype"].unique()
        if name
    }
    if "t2t" not in set(choices["kind"]):
        return  # no triplet was tested by only its texts
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown("**How alike the captions look**")
        subset = choose(
            "Subset",
            "subset",
            {"all": "All", **subset_labels},
            "spatial" if "spatial" in subset_labels else "all",
        )
        table = view(
            views.figures.edit_distances, stored.question_set, "" if subset == "all" else subset
        )
        if table.empty:
            quiet("No triplet of texts here.")
            return
        chart(
            charts.papers.edit_distances(table),
            "distances",
            "Edit distances of the three pairs of captions, in shares.",
        )
        quiet(
            "How to read it: N is the false caption, P1 the true one that looks more like it. "
            "Where the line of P1 and P2 lies to the right, what means the same looks different, "
            "and what looks alike means something else."
        )
    with right:
        st.markdown("**What shared words do to accuracy**")
        lures = view(views.figures.lures, stored.question_set)
        lures = lures.loc[lures["n_cases"] >= FEW]
        metric = stored.metrics["t2t_accuracy"]
        steps = {name: words for name, words in lure_bins().items() if name in set(lures["slice"])}
        across = "How much shared words mislead (lure)"

        def make() -> go.Figure:
            figure = charts.tradeoff.curves(
                lures, metric, "cosine", stored.looks, steps, across, chosen=model
            )
            if (even := "0.00 to 0.25") in steps and next(iter(steps)) != even:
                charts.papers.turning_point(figure, steps, even, "words mislead")
            return figure

        alt = "Text-to-text accuracy over how much the words mislead, a line a model."
        chart_of_cases(make, "lures", alt, stored, metric.kinds, bins.LURE)
        quiet(
            "How to read it: the lure is the share of words that the false caption has in common "
            "with a true one, minus that of the two true ones. Left of the line, whoever counts "
            "shared words is right, right of it wrong: a model that reads stays level, one that "
            "counts words falls there. Steps with fewer than "
            f"{FEW} triplets are left out. {ARMS}{GUESSING}"
        )


def depths(stored: PageSubject, model: str) -> None:
    """PRSM's overlap by how many first pictures are compared, a panel each kind of rewording."""
    table = view(views.figures.depths, stored.question_set)
    settings = sorted(table["setting"].unique(), key=slice_order)
    if not settings:
        quiet("This gallery is too small for an overlap: fewer than eleven pictures.")
        return
    papers = {setting: published_depths(setting) for setting in settings}
    lowest = min(
        [
            table["value"].to_numpy().min(),
            *(printed["value"].to_numpy().min() for printed in papers.values() if len(printed)),
        ]
    )
    mentioned(stored, model, "hollow: published")
    for column, setting in zip(st.columns(len(settings)), settings, strict=True):
        curve = table.loc[table["setting"] == setting]
        paper = papers[setting]
        steps = {
            depth: f"{int(depth):,}"
            for depth in DEPTHS
            if depth in {*curve["slice"], *paper["slice"]}
        }
        metric = stored.metrics["prsm_local_100"]
        with column:
            st.markdown(f"**{plain(value_label(setting))}**")
            make = partial(_depths_of, stored, model, metric, curve, steps, paper, float(lowest))
            alt = f"Overlap by depth, {value_label(setting)}, a line a model."
            points = chart(make, f"depth_{setting}", alt, clickable=True)
            case_links.open_clicked(points, stored, partial(_of_setting, stored, metric, setting))
    size = view(views.papers.gallery_size, stored.question_set)
    quiet(
        "How to read it: the paper has no figure; these are its table's numbers as curves. Up is "
        "steadier. The overlap of everything is 1, so a curve rises with the share of the gallery "
        "that is compared: a gallery of "
        f"{'-' if math.isnan(size) else f'{size:,.0f}'} pictures here, of 170,832 in the paper. "
        f"{ARMS}"
    )


def _depths_of(
    stored: PageSubject,
    model: str,
    metric: Metric,
    curve: pd.DataFrame,
    steps: dict[str, str],
    paper: pd.DataFrame,
    lowest: float,
) -> go.Figure:
    """A panel of `depths`."""
    across = "First pictures compared"
    figure = charts.tradeoff.curves(
        curve, metric, "cosine", stored.looks, steps, across, paper, chosen=model
    )
    figure.update_yaxes(title="", range=[lowest - 0.05, 1.02])
    figure.update_layout(showlegend=False, height=280, margin_t=5)
    return case_links.with_names(figure, stored.models)


def _of_setting(
    stored: PageSubject, metric: Metric, setting: str, model: str, depth: str
) -> Filter | None:
    """The cases of a kind of rewording; of every depth they are the same."""
    return case_links.slice_filter(stored, model, metric.kinds, "subtype", setting)


def boundaries(stored: PageSubject) -> None:
    """EqBen's boundary accuracy over the distance that is forgiven, with what table 12 prints."""
    table = view(views.figures.boundaries, stored.question_set)
    if table.empty:
        quiet("No video here.")
        return
    steps = {f"{seconds:g}": f"{seconds:g}" for seconds in BOUNDARY_THRESHOLDS}
    metric = stored.metrics["boundary_accuracy"]
    across, paper = "Seconds that are forgiven", published_boundaries()

    def make() -> go.Figure:
        looks = stored.looks
        return charts.tradeoff.curves(table, metric, "cosine", looks, steps, across, paper)

    alt = "Share of boundaries found over the seconds that are forgiven, a line a model."
    chart_of_cases(make, "boundaries", alt, stored, metric.kinds)
    quiet(
        "How to read it: up is better, and to the left is harder. A short video is forgiving: at the "
        "length of it every guess counts. Hollow and grey: as table 12 prints models, presumably on "
        f"videos of GEBC. {ARMS}"
    )


def edited_orders(stored: PageSubject) -> None:
    """Report in words how far an edit of the query moves the order of each model, and of people."""
    table = view(views.figures.edited_orders, stored.question_set).dropna(subset=["moved"])
    if table.empty:
        quiet("No query here has an edit.")
        return
    moved = ", ".join(
        f"{model_name(model)} {numbers.number(moved, 'rate')}"
        for model, moved in table[["model", "moved"]].head(MOST_NAMED).itertuples(index=False)
    )
    people = table["people"].iloc[0]
    theirs = (
        "nobody ranked the candidates for the edit"
        if math.isnan(people)
        else f"people's own order moves by {numbers.number(people, 'rate')}"
    )
    quiet(
        f"One edit of the query moves the order of the candidates by: {moved}; {theirs}. 0 is not at "
        "all, 100 % turned round. A model that does not see what was edited ranks as before, as "
        "EqBen's figure 1 shows."
    )
