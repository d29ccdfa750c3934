"""The Repair page: how fine-tuning changes the results on every probe, compared with a control, and a form to
fine-tune a model.

The page opens with models whose authors published their answers, if these are stored. The URL names the
three models (`before`, `control`, `after`), the job that runs them (`job`) and the open training (`training`).
"""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from vlprobe import registry, views
from vlprobe.case import html
from vlprobe.case.card import wrong_captions
from vlprobe.dashboard import case_links, frame
from vlprobe.dashboard.access import changes
from vlprobe.dashboard.chart import ARMS, chart
from vlprobe.dashboard.export import draw_menu
from vlprobe.dashboard.jobs import span, watched
from vlprobe.dashboard.lab import papers
from vlprobe.dashboard.lab.training import PROBES, other_seeds, probe_all, trained
from vlprobe.dashboard.run.progress import panel
from vlprobe.dashboard.sentence import list_kinds
from vlprobe.dashboard.state import (
    PageSubject,
    choose,
    model_name,
    page_subject,
    plain,
    quiet,
    store,
    view,
)
from vlprobe.dashboard.widgets import link_page, press
from vlprobe.models import published
from vlprobe.models.published import PREFIX
from vlprobe.render import charts
from vlprobe.render.charts.styles import Looks
from vlprobe.render.html import repair, tables
from vlprobe.render.html.elements import ordered
from vlprobe.render.html.repair import UNIT, Metrics
from vlprobe.render.numbers import unit_of
from vlprobe.render.wall import side_filter
from vlprobe.render.words import SHIPPED_MODELS, movement_kinds, presentations
from vlprobe.runs import jobs
from vlprobe.runs.jobs import Job
from vlprobe.scoring.thumbnails import addresses
from vlprobe.training.objective import RETRIEVAL
from vlprobe.views.filter import Filter
from vlprobe.views.repair import Numbers, training_differences

NUMBERS: Numbers = tuple(
    (probe, (*presentation.retrieval_metrics, *presentation.main_metrics))
    for probe, presentation in presentations().items()
)
SEEDS = 9  # shipped models are numbered: demo:eqsim, demo:eqsim-2, ...
Three = tuple[str, str, str]  # before, control, after
HELP = {
    "before": "The model from which the other two were fine-tuned.",
    "control": "Fine-tuned without the repair, because more training also changes a model.",
    "after": "Fine-tuned with the repair.",
}
FIRST = {"before": "demo:softmax", "control": "demo:plain", "after": "demo:eqsim"}
_CLIP = (f"{PREFIX}:CLIP ViT-B/32", f"{PREFIX}:CLIP_COCO")
PUBLISHED: dict[str, Three] = {
    "CLIP, hard negative texts": (*_CLIP, f"{PREFIX}:CLIP_TROHN-Text"),
    "CLIP, hard negative texts and pictures": (*_CLIP, f"{PREFIX}:CLIP_TROHN-Img"),
}

FIRST_LISTS = 6  # number of captions


def repaired() -> Three:
    """Draw pickers for the original, control and repaired models, and example buttons. Returns the picked names."""
    tuned = trained()
    shipped = [name for name in registry.names("models") if name.startswith("demo:")]
    names = list(dict.fromkeys([*shipped, *tuned, *ordered(view(views.runs.models))]))
    published_here = {
        label: three for label, three in PUBLISHED.items() if set(three) <= set(names)
    }
    first = FIRST
    if published_here:
        first = dict(zip(HELP, next(iter(published_here.values())), strict=True))
        examples = published_here | {"Tiny CLIP, EqSim": tuple(FIRST.values())}
        with st.container(horizontal=True, key="repair_examples"):
            for label, three in examples.items():
                # A link to the same page would have no effect
                press(label, st.query_params.update, dict(zip(HELP, three, strict=True)))
    newest = {
        "before": "",
        "control": _first(tuned, plain_=True),
        "after": _first(tuned, plain_=False),
    }
    picked = []
    for column, (role, help_) in zip(st.columns(3), HELP.items(), strict=True):
        default = first[role] if first[role] in names else newest[role]
        options = {} if default else {"": "None yet: fine-tune one below"}
        options |= {name: display_name(name) for name in names}
        with column:
            picked.append(
                choose(role.capitalize(), role, options, default, always=True, help_=help_)
            )
            publication = published.publication(picked[-1])
            about = SHIPPED_MODELS.get(picked[-1], ("", ""))[1]
            if publication or about:
                quiet(f"{publication.about}." if publication else about)
    return picked[0], picked[1], picked[2]


def _first(tuned: dict[str, str], plain_: bool) -> str:
    """Return the newest model fine-tuned with a plain loss or, if `plain_` is false, with another loss; "" if none."""
    return next((name for name, loss in tuned.items() if (loss in RETRIEVAL) is plain_), "")


def _is_published(models: Three) -> bool:
    """Return whether one of the models only has published answers, so that it cannot be run on more questions."""
    return any(name.startswith(f"{PREFIX}:") for name in models)


def short(name: str) -> str:
    """Return a model name without the folders in its checkpoint path.

    >>> short("demo:softmax@/a/b/tuned.safetensors")
    'demo:softmax@tuned.safetensors'
    """
    model, separator, path = name.partition("@")
    return model + separator + path.rpartition("/")[2]


def display_name(name: str) -> str:
    """Return a model's display name or, if it has none, its stored name without folders."""
    plain_name = model_name(name)
    return short(name) if "@" in name and plain_name == name.partition(":")[2] else plain_name


def changed(models: Three) -> None:
    """Draw how the three models' results differ, and a button that computes missing results."""
    if len(set(models)) < 3 or "" in models:
        st.info(
            "Three models are needed: the model before training, a control trained equally long "
            "without the repair, and the repaired model. Fine-tune them below, or choose three "
            "different ones.",
            icon=":material/info:",
        )
        return
    if differ := training_differences(*models):
        st.warning(
            "The training runs differ in more than just the repair, so some of the changes may "
            f"have other causes. {plain('; '.join(differ))}.",
            icon=":material/warning:",
        )
    keys = view(views.repair.repair_sets, models)
    _ask(models, [probe for probe in PROBES if probe not in keys])
    if not keys:
        return
    metrics = {probe: tables.metrics(probe) for probe in PROBES}
    with st.spinner("Comparing the three models by picture", show_time=False):
        moves = view(views.repair.repair_moves, *models, NUMBERS)
        levels = view(views.repair.repair_levels, models, NUMBERS)
    _draw_repaired(models)
    _draw_first_lists(models[0], models[2])
    with st.expander("Gains and losses by word", key="repair_in_words"):
        st.html(repair.in_words(moves, metrics))
        draw_menu("repair_gains", table=moves)
    styles = charts.styles.styles(view(views.runs.models))
    roles = zip(repair.ROLES, models, strict=True)
    names = {model: f"{role}: {display_name(model)}" for role, model in roles}
    _figures(levels, metrics, names, styles)
    quiet(
        "How to read it: ↑ higher is better, ↓ lower is better. Each row shows, from top to "
        "bottom, the model before training, the control and the repaired model. The effect of "
        "the repair is the distance from the control's mark to the repaired model's mark. "
        f"{ARMS}The differences in the table are paired by picture, so they can be significant "
        "even where lines overlap."
    )
    body, unknown = repair.numbers(levels, moves, metrics, PROBES, models, styles)
    st.html(body)
    draw_menu("repair_numbers", table=levels)
    tests = len(moves["p"].dropna())
    quiet(
        "Differences of rates are in points. Differences of cosines are in spreads, because "
        "training changes the range of a model's cosines; a spread is how much a model's "
        "similarity varies over mismatched pictures and captions. Better and worse mean p < .05, "
        f"corrected for {tests} differences (Holm's method). Pictures for which the two models "
        "answered different cases are excluded. "
        + (f"Unknown for these models: {', '.join(unknown)}." if unknown else "")
    )
    if not _is_published(models):
        _draw_seeds(models, metrics)


def _draw_repaired(models: Three) -> None:
    """Draw how many cases fool only the original model or only the repaired model, and examples of repaired cases."""
    original, _, tuned = models
    repaired = _most_repaired(original, tuned)
    if repaired is None:
        quiet("Every case that fooled the original model still fools the repaired one.")
        return
    subject, counts = repaired
    kind, names = subject.kind_presentation, [plain(model_name(name)) for name in (original, tuned)]
    st.markdown(
        f"**{counts['only_first']:,} {wrong_captions(kind)} fooled {names[0]} and do not fool "
        f"{names[1]}.** The opposite is true for {counts['only_second']:,}. Both numbers "
        "include the effect of training itself."
    )
    frame.say_strangers(subject, models)
    of_two = side_filter(subject.kind, original, tuned, "")
    wall = view(views.wall.wall, subject.question_set, of_two, 1, papers.N_EXAMPLES, True)
    label = f"Repaired: {wrong_captions(kind)} that fooled only {model_name(original)}"
    parameters = case_links.query(subject, of_two)
    papers.draw_cards(wall[0], kind, label, parameters, "repaired_examples")
    with st.container(horizontal=True):
        link_page("explore", f"All {counts['only_first']:,}", parameters, icon="image_search")
        link_page("breakdown", "By type of edit", {"set": subject.key}, icon="bar_chart")


def _most_repaired(original: str, tuned: str) -> tuple[PageSubject, dict[str, int]] | None:
    """Return the question set and kind, answered by both models, in which repaired cases outnumber broken ones most,
    with the numbers of these cases.
    """
    repaired: list[tuple[PageSubject, dict[str, int]]] = []
    for key in view(views.repair.repair_sets, (original, tuned)).values():
        subject = page_subject(key)
        for kind in (each for each in list_kinds(subject) if each not in movement_kinds()):
            of_both = Filter(original, kind, other=tuned)
            counts = view(views.paired_outcomes.buckets, subject.question_set, of_both)
            if counts["only_first"]:
                repaired.append((replace(subject, model=original, kind=kind), counts))
    return max(
        repaired, key=lambda each: each[1]["only_first"] - each[1]["only_second"], default=None
    )


def _draw_first_lists(original: str, tuned: str) -> None:
    """Draw captions whose top five search results changed, if both models answered the same searches."""
    key = view(views.repair.repair_sets, (original, tuned)).get("rococo")
    if not key:
        return
    question_set = view(views.runs.question_set, key)
    lists = view(views.figures.first_lists, question_set, original, tuned, FIRST_LISTS)
    with st.expander("Top five before and after", key="first_lists"):
        if not lists:
            quiet("The repair did not change the top five of any search.")
            return
        picture_of = view(views.figures.gallery_pictures, question_set)
        shown = {picture_of[item] for row in lists for item in (*row.original, *row.tuned)}
        source = addresses(store().root, shown)
        names = [model_name(model) for model in (original, tuned)]
        for row in lists:
            st.html(str(html.first_lists(row, picture_of, source.__getitem__, names)))
        quiet(
            "Each caption is the query of a search in a gallery without altered pictures. "
            "Captions whose own picture (solid frame) rose most come first. A dashed frame marks "
            "a picture that is new in the list. The captions were selected because their lists "
            "changed, so they do not show how often lists change."
        )


def _draw_seeds(models: Three, metrics: Metrics) -> None:
    """Draw how the effect of the repair varies between training seeds, and a button that runs missing probes."""
    others = _other_seeds(models)
    st.subheader("Other seeds")
    if not others:
        quiet(
            "The intervals above apply to these weights and reflect only the sampling of "
            "pictures. Another seed gives different weights and different results. To see the "
            "mean and spread here, fine-tune the control and the repair with a second and a "
            "third seed."
        )
        return
    pairs = (models[1:], *others)
    everyone = tuple(dict.fromkeys(name for pair in pairs for name in pair))
    missing = tuple(
        probe
        for probe in view(views.repair.repair_sets, models)
        if probe not in view(views.repair.repair_sets, everyone)
    )
    if missing and not _going(everyone) and changes("The other seeds have not been run yet."):
        seed_models = tuple(name for name in everyone if name not in models)
        label = f"Run the other {'seeds' if len(others) > 1 else 'seed'} too"
        press(label, probe_all, seed_models, missing, icon="play_arrow", key="ask_seeds")
    table = view(views.repair.repair_seeds, pairs, NUMBERS)
    if len(table):
        heads = [f"Training {number}" for number in range(1, len(pairs) + 1)]
        st.html(repair.seeds(table, metrics, heads))
        draw_menu("repair_seeds", table=table)
        quiet(
            "Each value is the repaired model minus the control (after − control), on the same "
            "questions, in training runs that differ only in the seed. The standard deviation is "
            "that of a single training run: a smaller difference may come from the seed, not "
            "from the repair."
        )


def _other_seeds(models: Three) -> list[tuple[str, str]]:
    """Return the other pairs of control and repaired models that differ from the chosen pair only in the seed."""
    _, control, tuned = models
    available = {*registry.names("models"), *view(views.runs.models)}
    numbered = [(f"{control}-{number}", f"{tuned}-{number}") for number in range(2, SEEDS + 1)]
    return [pair for pair in numbered if set(pair) <= available] + other_seeds(control, tuned)


def _figures(levels: pd.DataFrame, metrics: Metrics, names: dict[str, str], styles: Looks) -> None:
    """Draw one figure with all rates, and a separate figure for each metric that has another unit."""
    with_value = levels.dropna(subset=["value"])
    rows = {
        (probe, name): (f"{tables.ARROWS[metric.direction]} {metric.label}", unit_of(metric, UNIT))
        for probe, name in dict.fromkeys(
            zip(with_value["probe"], with_value["metric"], strict=True)
        )
        for metric in [metrics[probe][name]]
    }
    rates = {pair: row for pair, row in rows.items() if row[1] == "rate"}
    if rates:
        alt = "One row per number, with marks for before, control and after. The table has the numbers."
        figure = partial(charts.repair.dumbbells, levels, rates, names, styles)
        chart(figure, "repair_rates", alt)
    others = {pair: row for pair, row in rows.items() if pair not in rates}
    for column, (pair, row) in zip(st.columns(len(others) or 1), others.items(), strict=False):

        def small(pair: tuple[str, str] = pair, row: tuple[str, str] = row) -> go.Figure:
            figure = charts.repair.dumbbells(levels, {pair: row}, names, styles)
            return figure.update_layout(showlegend=not rates, margin_t=10, height=150)

        alt = f"{row[0]}: marks for before, control and after, as above."
        with column:
            chart(small, f"repair_{pair[1]}", alt)


def _ask(models: Three, missing: list[str]) -> None:
    """Draw the progress of the job that runs the models, or a button that runs the probes that some of them lack."""
    if _is_published(models):
        if missing:
            quiet(
                "The authors published answers to only one question set, so the table has only "
                "the rates for that set."
            )
        return
    everyone = (*models, *(name for pair in _other_seeds(models) for name in pair))
    going = _going(everyone)
    job = watched()
    if job is None or not _asks(job, everyone) or job.state == "done":
        job = going[-1] if going else None
    if job is not None:
        panel(job)
        waiting = len([waiting_job for waiting_job in going if waiting_job.id != job.id])
        if waiting:
            quiet(f"{waiting} more such {'job is' if waiting == 1 else 'jobs are'} waiting.")
    if not missing or going:
        return
    names = plain(", ".join(PROBES[probe] for probe in missing))
    text = f"Tests that at least one of the three models has not been run on: {names}."
    st.info(text, icon=":material/info:")
    if changes("These tests have not been run."):
        look = {"icon": "play_arrow", "type": "primary", "key": "ask_missing"}
        press("Run the missing tests", probe_all, models, tuple(missing), **look)
        quiet(_work(models, missing))


def _going(models: tuple[str, ...]) -> list[Job]:
    return [job for job in jobs.jobs(store()) if _asks(job, models) and not job.ended]


def _asks(job: Job, models: tuple[str, ...]) -> bool:
    return bool(job.requests) and set(job.models) <= set(models)


def _work(models: Three, missing: list[str]) -> str:
    """Estimate how long the missing runs take, based on stored runs of demo models on the same questions."""
    runs = view(views.runs.run_rows)
    total = 0.0
    for probe in missing:
        dataset = registry.load_probe(probe).dataset
        earlier = [
            run
            for run in runs
            if run.probe == probe and run.dataset == dataset and run.model.startswith("demo:")
        ]
        n_answered = len({run.model for run in earlier} & set(models))
        seconds = np.nanmedian([run.seconds for run in earlier]) if earlier else math.nan
        total += float(seconds) * (len(models) - n_answered)
    if math.isnan(total):
        return "Time unknown: these tests have not been run here yet."
    return f"About {span(total)}, judging by earlier runs of the demo models on this machine."
