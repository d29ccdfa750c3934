"""Figures and tables from the papers, redrawn from the user's runs next to the published values."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from vlprobe import views
from vlprobe.dashboard import case_links, export
from vlprobe.dashboard.access import changes
from vlprobe.dashboard.chart import ARMS, FigureMaker, chart
from vlprobe.dashboard.jobs import begin
from vlprobe.dashboard.state import PageSubject, choose, model_name, plain, quiet, view
from vlprobe.dashboard.tables import cards, show
from vlprobe.dashboard.widgets import link_page, press
from vlprobe.metrics.series import BOUNDARY_THRESHOLDS
from vlprobe.render import charts, numbers
from vlprobe.render.charts.styles import Look, Looks
from vlprobe.render.html.elements import breakable, column_heads, mark, model_label, tag
from vlprobe.render.words import slice_order, value_label
from vlprobe.runs.request import Request
from vlprobe.types import Metric
from vlprobe.views.estimates import BREAKDOWN
from vlprobe.views.figures import (
    ACCURACIES,
    DEPTHS,
    SIZE_TABLES,
    published_boundaries,
    published_comparisons,
    published_depths,
    published_severity,
    severity_steps,
)
from vlprobe.views.filter import LURE, PICTURES, SIDE_OUTCOMES, TEXTS, Filter, Slice, lure_bins
from vlprobe.views.tradeoff import published_values

GUESSING = "The dotted line is chance. "
WORD_OVERLAP = "counting shared words"
MEASURES = {"drop_rate": "Drop rate", "rsms": "Altered on top (RSMS)"}
EDITS = {
    "rand-voca": "A random word",
    "same-concept": "A word of the same concept",
    "diff-concept": "A word of another concept",
    "danger": "A misleading word (danger)",
    "mix": "Mixed pictures",
    "patch": "Patched pictures",
}
MIXTURES = ("mix", "patch")
# The demo's subset for each of EqBen's kinds in table 4
KUBRIC = {"location": "location", "counting": "number", "attribute": "color"}
SCORES = ("text_score", "image_score", "group_score", "foil_accuracy")
OVERLAPS = {
    "prsm_local_10": "First 10",
    "prsm_local_100": "First 100",
    "prsm_local_1000": "First 1,000",
    "prsm_global": "Ranks of all",
}
SIZE_AXES = {"parameters": "Parameters", "samples": "Training data"}
CROSSED_HEADS = {  # by the outcomes on the texts and on the picture
    ("fooled", "fooled"): "Both wrong",
    ("held", "fooled"): "Texts right, picture wrong",
    ("fooled", "held"): "Texts wrong, picture right",
    ("held", "held"): "Both right",
}
CROSSED_TITLE = "Each triplet, with texts only and with its picture"
MOST_NAMED = 9  # maximum number of models in a sentence
FEW = 5  # minimum number of triplets for which an accuracy is drawn


def chart_of_slices(
    make: FigureMaker,
    key: str,
    alt: str,
    subject: PageSubject,
    kinds: Sequence[str],
    slicing: str = "subtype",
) -> None:
    """Draw a figure whose marks open the cases of a slice. It may only depend on stored results and the URL."""

    def target(model: str, name: str) -> Filter | None:
        return case_links.slice_filter(subject, model, kinds, slicing, name)

    case_links.chart_of_cases(
        lambda: case_links.with_names(make(), subject.models), key, alt, subject, target
    )


def _dots(
    subject: PageSubject,
    metric: Metric,
    table: pd.DataFrame,
    key: str,
    alt: str,
    paper: pd.DataFrame | None = None,
    slicing: str = "subtype",
    title: str | None = None,
) -> bool:
    """Draw a metric with one row per slice and one mark per model. Returns whether published values were drawn too."""
    table = table.loc[table["metric"] == metric.name]
    rows = {name: value_label(name) for name in sorted(table["slice"].unique(), key=slice_order)}
    printed = pd.DataFrame() if paper is None else paper.loc[paper["slice"].isin(list(rows))]
    chance: float = view(views.papers.chances, subject.question_set)[metric.name]

    def make() -> go.Figure:
        chances = dict.fromkeys(rows, chance)
        figure = charts.dots.dots(table, metric, "cosine", rows, subject.looks, chances)
        if len(printed):
            charts.tradeoff.beside(figure, printed, list(rows), "rate")
        return figure if title is None else figure.update_xaxes(title=title, title_standoff=8)

    chart_of_slices(make, key, alt, subject, metric.kinds, slicing)
    return len(printed) > 0


def _estimates(subject: PageSubject, slicing: str, *choices: str) -> pd.DataFrame:
    """Return the estimates for a breakdown. Rows without a value are left out."""
    table = view(views.estimates.estimates, subject.question_set, slicing, *choices)
    return table.dropna(subset=["value"])


def draw_headlines(subject: PageSubject, model: str, averaging: str, unit: str) -> None:
    """Draw the headline numbers, one per row. If the probe has a trade-off, draw a link to its page."""
    presentation = subject.presentation
    query = {"set": subject.key}
    if presentation.trade_off:
        link_page("tradeoff", "Open the trade-off chart", query, icon="scatter_plot")
    if not presentation.headlines:
        return
    table = _estimates(subject, "all", averaging, unit)
    with_value = set(table["metric"])
    metrics = {name: subject.metrics[name] for name in presentation.headlines if name in with_value}
    if not metrics:
        return

    def named() -> go.Figure:
        chances = view(views.papers.chances, subject.question_set)
        styles, labels = emphasis(subject, model)
        figure = charts.dots.headlines(table, metrics, unit, styles, chances, labels)
        return case_links.with_names(figure, subject.models)

    left, right = st.columns([5, 2], gap="medium")
    with left:
        alt = "One row per metric, one mark per model; the table has the values."
        chart(named, "headlines", alt)
    with right:
        word = "What moves" if presentation.is_movement else "What fools"
        for name in subject.models:
            label = f"{word} {plain(model_name(name))}"
            link_page("explore", label, query | {"model": name}, icon="image_search")
        quiet(ARMS + GUESSING)


def emphasis(subject: PageSubject, model: str) -> tuple[Looks, dict[str, str]]:
    """Return the models' looks and the labels at marks. If there are many models, only the page's model stands out."""
    if len(subject.models) <= charts.dots.MANY:
        return subject.looks, {}
    styles = {name: style for name, style in subject.looks.items() if name in subject.models}
    return charts.styles.emphasised(styles, [model]), {model: model_name(model)}


def mentioned(subject: PageSubject, model: str, remark: str) -> None:
    """Draw one legend for several small figures. If there are many models, it names only the page's model."""
    is_crowded = len(subject.models) > charts.styles.DISTINCT
    named_models = [model] if is_crowded else subject.models
    labels = [model_label(subject.looks[name], model_name(name)) for name in named_models]
    if is_crowded:
        labels.append(f"gray: the {len(subject.models) - 1} other models")
    st.html(f'<p class="vp-small">{" &emsp; ".join([*labels, remark])}</p>')


def by_subtype(subject: PageSubject, metric: Metric) -> None:
    """Draw one metric with a row for each subtype of question, or a note if the metric was not measured."""
    table = _estimates(subject, "subtype")
    if metric.name not in set(table["metric"]):
        quiet(f"{metric.label}: not measured here.")
        return
    cards(replace(metric, label=metric.label.rpartition(": ")[2]))
    alt = f"{metric.label} by kind of question, one mark per model."
    _dots(subject, metric, table, metric.name, alt, title=numbers.WAYS[metric.direction])


def triplets(subject: PageSubject) -> None:
    """Draw VISLA's accuracies by subset, with the accuracy of counting shared words and the chance level."""
    table = _estimates(subject, "subtype")
    measured = [name for name in subject.presentation.headlines if name in set(table["metric"])]
    words = table[(table["metric"] == "words_t2t_accuracy") & (table["model"] == subject.models[0])]
    words = words.assign(metric="t2t_accuracy", model=WORD_OVERLAP)
    table = pd.concat([table[table["metric"].isin(measured)], words])
    rows, chances = {}, {}
    for name in measured:
        for subset in sorted(table.loc[table["metric"] == name, "slice"].unique()):
            of_subset = f", {value_label(subset).lower()}" if subset else ""
            rows[f"{name} {subset}"] = subject.metrics[name].label + of_subset
            chances[f"{name} {subset}"] = subject.metrics[name].chance
    if not rows:
        return
    table = table.assign(slice=table["metric"] + " " + table["slice"])
    styles = dict(subject.looks) | {WORD_OVERLAP: Look(charts.theme.QUIET, "x")}

    def make() -> go.Figure:
        metric = subject.metrics[measured[0]]
        figure = charts.dots.dots(table, metric, "cosine", rows, styles, chances)
        figure.update_xaxes(title="Accuracy · higher is better", range=[-0.02, 1.02])
        return case_links.with_names(figure, subject.models)

    def target(model: str, key: str) -> Filter | None:
        name, _, subset = key.partition(" ")
        return case_links.slice_filter(
            subject, model, subject.metrics[name].kinds, "subtype", subset
        )

    cards(*(subject.metrics[name] for name in measured))
    alt = "Accuracy by subset, one mark per model; the table has the numbers."
    case_links.chart_of_cases(make, "triplets", alt, subject, target)
    cross = (
        "The gray cross is a baseline without a model: it matches the two texts that "
        "share the most words. A model should beat it."
    )
    quiet(ARMS + GUESSING + (cross if len(words) else ""))


def severity(subject: PageSubject) -> None:
    """Draw how RoCOCO's metrics change with the strength of an alteration, and a button that runs missing strengths."""
    with st.container(horizontal=True):
        edit = choose("Alteration", "edit", EDITS, "mix")
        measure = choose("Measured by", "measure", MEASURES, "drop_rate", segments=True)
    is_mixture = edit in MIXTURES
    metric = subject.metrics[f"{'t2i' if is_mixture else 'i2t'}_{measure}"]
    steps = severity_steps(edit)
    table = view(views.figures.severity, subject.question_set, metric.name)
    table = table.loc[table["slice"].isin(steps)]
    paper = published_severity(edit, metric.name)
    across = "Words replaced in a caption"
    if is_mixture:
        across = "Share of the picture taken from another picture"
    look = subject.looks, steps, across, paper
    make = partial(charts.tradeoff.curves, table, metric, "cosine", *look)
    alt = f"{metric.label} by strength of the alteration, one line per model."
    chart_of_slices(make, "severity", alt, subject, metric.kinds)
    hollow = " Hollow gray marks: the paper's models, on COCO." if len(paper) else ""
    quiet(
        "How to read it: lower is better. The curve of a model that notices stronger alterations "
        "falls to the right; a curve that stays high means that the model is fooled at every "
        f"strength. {ARMS.strip()}{hollow}"
    )
    answered = set(table["slice"])
    missing = {name: words for name, words in steps.items() if name not in answered}
    if not missing:
        return
    measured_at = ", ".join(words for name, words in steps.items() if name in answered) or "none"
    missing_words = f"{', '.join(missing.values())} {'of the picture' if is_mixture else 'words'}"
    quiet(f"Measured at {measured_at}; not yet at {missing_words}.")
    if not changes("This dashboard cannot measure the missing strengths."):
        return
    fields = view(views.figures.request_fields, subject.question_set)
    lists = {"policies": [], "pictures": []}
    lists["pictures" if is_mixture else "policies"] = list(missing)
    fields |= {"probe": subject.probe, "options": fields["options"] | lists}
    press(
        f"Run it with {missing_words}",
        begin,
        Request(subject.models, **fields),
        icon="play_arrow",
        key="ask_severity",
    )


def deviations(subject: PageSubject, unit: str) -> None:
    """Draw the distribution of EqBen's equivariance deviation over the pairs in one subset or in all of them."""
    metric = subject.metrics["equivariance_deviation"]
    st.header("Symmetry of score changes")
    st.markdown(
        "When picture and caption both change, the score should change by the same amount in "
        "both directions. The deviation measures how much the two changes differ."
    )
    table = _estimates(subject, "subtype")
    names = sorted(table.loc[table["metric"] == metric.name, "slice"].unique(), key=slice_order)
    subsets = {"": "All", **{name: value_label(name) for name in names if name}}
    subset = choose("Subset", "subset", subsets, "")
    table = view(views.papers.deviations, subject.question_set, unit, subset)
    if table.empty:
        quiet("The deviation is unknown in this unit.")
        return
    figure = charts.dots.distribution(table, metric, unit, subject.looks)
    figure = case_links.with_names(figure, subject.models)
    chart(figure, "deviations", f"Distribution of {metric.label} over the pairs.")
    scores = view(views.estimates.estimates, subject.question_set, "subtype" if subset else "all")
    scores = scores.loc[(scores["metric"] == "group_score") & (scores["slice"] == subset)]
    group_scores = _values_in_words(scores, "value")
    if len(scores) > MOST_NAMED:
        group_scores += f"; {len(scores) - MOST_NAMED} more in the paper's table below"
    quiet(
        "How to read it: a model that responds equally to equal changes has most pairs at 0; the "
        "last bar includes all larger deviations. Compare models in spreads: in cosines, a model "
        "with a wider range deviates more only because of its range. Group scores on the same "
        f"pairs: {group_scores}."
    )


def _values_in_words(table: pd.DataFrame, column: str) -> str:
    """List the first models in a table with their rates, for use in a sentence."""
    return ", ".join(
        f"{model_name(row['model'])} {numbers.number(row[column], 'rate')}"
        for row in table.head(MOST_NAMED).to_dict("records")
    )


def subsets(subject: PageSubject) -> None:
    """Draw EqBen's scores, with one row per subset."""
    table = _estimates(subject, "subtype")
    measured = set(table["metric"])
    names = {name: subject.metrics[name].label for name in SCORES if name in measured}
    if not names:
        quiet("No model here has a score by subset.")
        return
    default = "group_score" if "group_score" in names else next(iter(names))
    is_choice = len(names) > 1
    score = choose("Measured by", "score", names, default, segments=True) if is_choice else default
    metric = subject.metrics[score]
    paper = published_values("eqben", 4, metric.name)
    paper = paper.assign(slice=paper["slice"].map(KUBRIC.get))
    cards(metric)
    alt = f"{metric.label} for each subset, one mark per model."
    has_printed = _dots(subject, metric, table, "subsets", alt, paper)
    hollow = (
        "Hollow marks: published values (EqBen's table 4: Kubric's location, counting and "
        "attribute)."
        if has_printed
        else ""
    )
    quiet(
        "How to read it: further right is better; rows that differ strongly measure different "
        f"skills. {ARMS}{GUESSING}{hollow}"
    )


def lexical(subject: PageSubject) -> None:
    """Draw how similar VISLA's captions look, and how accuracy depends on how much shared words mislead."""
    choices = view(views.estimates.choices, subject.question_set)
    of_texts = choices.loc[choices["kind"] == "t2t", "subtype"]
    if not len(of_texts):
        return  # no triplet was tested on its texts only
    subset_labels = {name: value_label(name) for name in of_texts.unique() if name}
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown("**How similar the captions look**")
        default = "spatial" if "spatial" in subset_labels else "all"
        subset = choose("Subset", "subset", {"all": "All", **subset_labels}, default)
        table = view(
            views.figures.edit_distances, subject.question_set, "" if subset == "all" else subset
        )
        if table.empty:
            quiet("No text triplets here.")
            return
        alt = "Edit distances of the three pairs of captions, as shares of the triplets."
        chart(charts.papers.edit_distances(table), "distances", alt)
        quiet(
            "How to read it: N is the wrong caption, and P1 is the true caption that looks more "
            "like N. The further right the line for P1 and P2 is, the more the two captions with "
            "the same meaning differ in wording."
        )
    with right:
        st.markdown("**How shared words affect accuracy**")
        lures = view(views.figures.lures, subject.question_set)
        lures = lures.loc[lures["n_cases"] >= FEW]
        metric = subject.metrics["t2t_accuracy"]
        steps = {name: words for name, words in lure_bins().items() if name in set(lures["slice"])}
        across = "How much shared words mislead (lure)"

        def make() -> go.Figure:
            figure = charts.tradeoff.curves(
                lures, metric, "cosine", subject.looks, steps, across, chosen=subject.model
            )
            if (even := "0.00 to 0.25") in steps and next(iter(steps)) != even:
                charts.papers.turning_point(figure, steps, even, "words mislead")
            return figure

        alt = "Text-to-text accuracy by how much shared words mislead, one line per model."
        chart_of_slices(make, "lures", alt, subject, metric.kinds, LURE)
        quiet(
            "How to read it: the lure is the word overlap of the wrong caption with a true one, "
            "minus the word overlap of the two true captions. Left of the line, word overlap "
            "gives the right answer; right of the line, it gives the wrong one. The curve of a "
            f"model that understands the captions stays level. Bins with fewer than {FEW} "
            f"triplets are left out. {ARMS}{GUESSING}"
        )


def both_sides(subject: PageSubject) -> None:
    """Draw how often each model is right with a triplet's captions alone and with its picture, with links to cases."""
    table = view(views.figures.crossed_outcomes, subject.question_set)
    if table.empty:
        return
    st.header(CROSSED_TITLE)
    by_cell = {
        (model, subset, texts, pictures): (n_cases, numbers.with_interval(share, low, high, "rate"))
        for model, subset, texts, pictures, n_cases, share, low, high, _ in table.itertuples(
            index=False
        )
    }
    outcomes = [(texts, pictures) for pictures in SIDE_OUTCOMES for texts in SIDE_OUTCOMES]
    subsets = sorted(table["slice"].unique())
    lines = []
    for subset in subsets if len(subsets) > 2 else subsets[:1]:
        for model in subject.models:
            if (model, subset, *outcomes[0]) not in by_cell:
                continue
            cells = tag("td", value_label(subset) if subset else "All")
            for texts, pictures in outcomes:
                n_cases, share = by_cell[model, subset, texts, pictures]
                words = f"{n_cases:,}"
                if n_cases:
                    crossed = Slice(TEXTS, texts)
                    of_cell = Filter(
                        model, PICTURES, subtype=subset, outcome=pictures, crossed=crossed
                    )
                    link = case_links.address(subject, of_cell).replace("&", "&amp;")
                    words = f'<a href="{link}">{words}</a>'
                cells += f"<td>{words}<br><small>{share}</small></td>"
            name = f"{mark(subject.looks[model])} {breakable(model_name(model))}"
            lines.append(f'<tr><th scope="row">{name}</th>{cells}</tr>')
    heads = column_heads(["Model", "Subset", *(CROSSED_HEADS[cell] for cell in outcomes)])
    show(CROSSED_TITLE, heads, lines)
    quiet(
        "How to read it: each triplet is evaluated twice, once with only its three texts and "
        "once with its picture, and is counted in one of the four columns. A tie counts as "
        "wrong. Below each number are its share and the 95 % interval. Click a number to see its "
        "triplets. VISLA shows examples, but no counts: figure 10 has triplets with texts wrong "
        "and picture right, and figure 9 has triplets with both wrong, in which the wrong "
        "caption is nearer than both true ones."
    )
    export.draw_menu("both_sides", table=table)


def accuracy_over_size(subject: PageSubject) -> None:
    """Draw accuracy over model size or amount of training data, for VISLA's published models and the user's models."""
    names = {name: subject.metrics[name].label for name in ACCURACIES}
    subsets = {name: value_label(name) for name in SIZE_TABLES}
    with st.container(horizontal=True):
        metric = choose("Measured by", "accuracy", names, ACCURACIES[0], segments=True)
        subset = choose("Subset of triplets", "size_subset", subsets, "generic", segments=True)
        across = choose("Over", "over", SIZE_AXES, "parameters", segments=True)
    table = view(views.figures.sizes, subject.question_set, metric, subset)
    labels = {model: model_name(model) for model in subject.models}
    chance = subject.metrics[metric].chance
    make = partial(charts.papers.sizes, table, across, subject.looks, labels, chance)
    chart(make, "sizes", f"{names[metric]} by {SIZE_AXES[across].lower()}, one mark per model.")
    unknown = table.loc[(table["source"] == "run") & table[across].isna(), "model"]
    without = f" Unknown for {', '.join(map(model_name, unknown))}." if len(unknown) else ""
    quiet(
        "How to read it: hollow gray marks are published models (VISLA, tables 2, 5, 8 and 9), "
        "evaluated on VISLA's triplets; your models are evaluated on the triplets on this page. "
        "Parameter counts of your models come from the model checks; the amount of training "
        f"data is the published figure for the same weights.{without} {GUESSING}{ARMS.strip()}"
    )


def ten_rows(subject: PageSubject) -> None:
    """Draw the comparisons of wordings in PRSM's table 1, and the mean over all wordings per kind of rewording."""
    if not view(views.estimates.has_comparisons, subject.question_set):
        quiet(
            "An older version of vlprobe made these runs and did not store the individual "
            "comparisons. To see them, remove these runs (vlprobe remove) and repeat them."
        )
        return
    table = pd.concat([_estimates(subject, breakdown) for breakdown in (BREAKDOWN, "subtype")])
    measures = {name: words for name, words in OVERLAPS.items() if name in set(table["metric"])}
    default = "prsm_local_100" if "prsm_local_100" in measures else next(iter(measures))
    metric = subject.metrics[choose("Compared are", "depth", measures, default, segments=True)]
    cards(metric)
    paper = published_comparisons(metric.name)
    alt = f"{metric.label} for each comparison of two wordings, one mark per model."
    has_printed = _dots(subject, metric, table, "comparisons", alt, paper, BREAKDOWN)
    hollow = (
        "Hollow marks: CLIP's values in table 1 (everyone, women and men), in a larger gallery."
        if has_printed
        else ""
    )
    quiet(
        "How to read it: further right is more stable. o is the query, c1 and c2 are its "
        "paraphrases, p1 to p3 are versions with a prefix, np is a version without a prefix, and "
        "a1, a2 and a12 are versions with one or both attributes replaced. P1, P2 and P3 are the "
        f"means over all versions. {ARMS}{GUESSING}{hollow}"
    )


def depths(subject: PageSubject) -> None:
    """Draw how PRSM's overlap depends on the number of top pictures compared, in one panel per kind of rewording."""
    table = view(views.figures.depths, subject.question_set)
    settings = sorted(table["setting"].unique(), key=slice_order)
    if not settings:
        quiet("This gallery is too small to compute an overlap: it has fewer than eleven pictures.")
        return
    papers = {setting: published_depths(setting) for setting in settings}
    lowest = min(min(curve["value"]) for curve in (table, *papers.values()) if len(curve))
    mentioned(subject, subject.model, "hollow: published")
    metric = subject.metrics["prsm_local_100"]
    for column, setting in zip(st.columns(len(settings)), settings, strict=True):
        curve, paper = table.loc[table["setting"] == setting], papers[setting]
        known = {*curve["slice"], *paper["slice"]}
        steps = {depth: f"{int(depth):,}" for depth in DEPTHS if depth in known}
        with column:
            st.markdown(f"**{plain(value_label(setting))}**")

            def make(curve=curve, paper=paper, steps=steps, has_legend=False) -> go.Figure:
                across = "First pictures compared"
                figure = charts.tradeoff.curves(
                    curve,
                    metric,
                    "cosine",
                    subject.looks,
                    steps,
                    across,
                    paper,
                    chosen=subject.model,
                )
                figure.update_yaxes(range=[lowest - 0.05, 1.02])
                if not has_legend:  # on the page, the models are above the panels
                    figure.update_yaxes(title="")
                    figure.update_layout(showlegend=False, height=280, margin_t=5)
                return case_links.with_names(figure, subject.models)

            alt = f"Overlap by depth, {value_label(setting)}, one line per model."

            def target(name: str, depth: str, setting: str = setting) -> Filter | None:
                return case_links.slice_filter(subject, name, metric.kinds, "subtype", setting)

            key, printed = f"depth_{setting}", partial(make, has_legend=True)
            case_links.chart_of_cases(make, key, alt, subject, target, printed=printed)
    size = view(views.papers.gallery_size, subject.question_set)
    quiet(
        "How to read it: this figure shows the numbers in the paper's table as curves. Higher is "
        "more stable. The overlap over the whole gallery is 1, so a curve rises with the share "
        "of the gallery that is compared: this gallery has "
        f"{'-' if math.isnan(size) else f'{size:,.0f}'} pictures; the paper's gallery has "
        f"170,832. {ARMS}"
    )


def boundaries(subject: PageSubject) -> None:
    """Draw EqBen's boundary accuracy over the accepted distance in seconds, with the published values from table 12."""
    table = view(views.figures.boundaries, subject.question_set)
    if table.empty:
        quiet("No video here.")
        return
    steps = {f"{seconds:g}": f"{seconds:g}" for seconds in BOUNDARY_THRESHOLDS}
    metric, across = subject.metrics["boundary_accuracy"], "Accepted distance in seconds"
    make = partial(
        charts.tradeoff.curves,
        *(table, metric, "cosine", subject.looks, steps, across, published_boundaries()),
    )
    cards(metric)
    alt = "Share of boundaries found, by accepted distance in seconds, one line per model."
    chart_of_slices(make, "boundaries", alt, subject, metric.kinds)
    quiet(
        "How to read it: higher is better, and further left is harder. Short videos are easier: "
        "if the accepted distance is as long as the video, every guess is correct. Hollow gray "
        f"marks: the models in EqBen's table 12, presumably on GEBC videos. {ARMS}"
    )


def edited_orders(subject: PageSubject) -> None:
    """Draw a sentence that says how much an edit to the query changes each model's ranking and that of people."""
    table = view(views.figures.edited_orders, subject.question_set).dropna(subset=["moved"])
    if table.empty:
        quiet("No query here has an edit.")
        return
    people = table["people"].iloc[0]
    of_people = (
        "no one ranked the candidates for the edit"
        if math.isnan(people)
        else f"people's own ranking changes by {numbers.number(people, 'rate')}"
    )
    quiet(
        "On average, a single edit to the query changes the candidate ranking by: "
        f"{_values_in_words(table, 'moved')}; {of_people}. 0 = unchanged, 100 % = reversed. A "
        "model that misses the edit keeps its ranking, as in EqBen's figure 1."
    )
