"""Results of a training at several steps, on the Fine-tuning page: a metric by step, and when cases are learned."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import pandas as pd
import streamlit as st

from vlprobe import views
from vlprobe.case.card import wrong_captions
from vlprobe.dashboard.chart import chart
from vlprobe.dashboard.export import draw_menu
from vlprobe.dashboard.state import choose, dataset_name, plain, quiet, store, view
from vlprobe.dashboard.widgets import link_page
from vlprobe.render import charts
from vlprobe.render.words import movement_kinds, presentations
from vlprobe.storage.store import Store
from vlprobe.surfaces import paper
from vlprobe.views.runs import QuestionSet

HOW = (
    "A case is learned at the step from which the model stays right until the last step. It is "
    "forgotten at the step from which the model stays wrong until the last step, if the model "
    "was right before. A tie counts as wrong."
)


def draw_steps() -> None:
    """Draw a training with results for at least two steps, if there is one: the models named NAME@STEP."""
    trainings = {
        f"{question_set.key[:8]}.{name}": (question_set, steps)
        for question_set, name, steps in view(views.training_steps.list_trainings)
    }
    if not trainings:
        return
    st.header("By training step")
    labels = {key: _label(key, question_set) for key, (question_set, _) in trainings.items()}
    chosen = next(iter(trainings))
    if len(trainings) > 1:
        chosen = choose("Training", "steps", labels, chosen)
    question_set, steps = trainings[chosen]
    runs = tuple(question_set.run(model) for model in steps.values())
    figure, facts = view(paper.steps, replace(question_set, runs=runs))
    chart(figure, "training_steps", facts)
    quiet(facts)
    kinds = [
        kind
        for kind in view(views.leaderboard.ranked_kinds, question_set)
        if kind not in movement_kinds()
    ]
    if kinds:
        _draw_cases(question_set, steps, kinds)


def _label(key: str, question_set: QuestionSet) -> str:
    test = presentations()[question_set.probe].name
    return f"{key.partition('.')[2]}: {test}, {dataset_name(question_set.runs[0].dataset)}"


def _draw_cases(question_set: QuestionSet, steps: Mapping[int, str], kinds: Sequence[str]) -> None:
    """Draw how many cases of a kind are learned and forgotten at each step."""
    kind = kinds[0]
    if len(kinds) > 1:
        labels = {name: question_set.presentation.kind(name).label for name in kinds}
        kind = choose("Kind of case", "steps_kind", labels, kind)
    table = view(_outcomes, question_set, tuple(steps.items()), kind)
    counts = table["outcome"].value_counts()
    outcomes = [
        f"{counts[name]:,} {name}" for name in views.training_steps.OUTCOMES if name in counts
    ]
    cases = wrong_captions(question_set.presentation.kind(kind))
    st.markdown(f"**{len(table):,} {plain(cases)}:** {', '.join(outcomes)}.")
    alt = "Bars: cases learned at each training step, and below the line, cases forgotten."
    chart(charts.repair.learned(table, list(steps)), "training_cases", alt)
    quiet(HOW)
    cases_table = partial(views.training_steps.cases_by_step, store(), question_set, steps, kind)
    draw_menu("training_outcomes", table=cases_table)
    parameters = {"set": question_set.key, "model": list(steps.values())[-1], "kind": kind}
    link_page(
        "explore", "Cases that fool the model at the last step", parameters, icon="image_search"
    )


def _outcomes(
    store: Store, question_set: QuestionSet, steps: tuple[tuple[int, str], ...], kind: str
) -> pd.DataFrame:
    return views.training_steps.outcomes_by_step(store, question_set, dict(steps), kind)
