"""Results for one model at several training steps: metrics by step, and the step at which each case is learned or
forgotten.

The steps of a training run are the models named NAME@STEP in a question set, as `vlprobe.Callback`
names them. The model is right about a case at a step if the margin is above 0; a tie is wrong.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from vlprobe.errors import NotFound
from vlprobe.storage.store import Store
from vlprobe.types import POOLED
from vlprobe.views import estimates, runs
from vlprobe.views.rows import margins, questions
from vlprobe.views.runs import QuestionSet

OUTCOMES = ("learned", "forgotten", "always right", "never right", "unknown")
CASE_COLUMNS = ["id", "subtype", "rule", "source", "target", "outcome", "step"]
_STEP = re.compile(r"(.+)@([0-9]{1,12})")


def trainings(question_set: QuestionSet) -> dict[str, dict[int, str]]:
    """Find training runs with at least two steps. Return the model names by training run and step, ascending."""
    by_training: dict[str, dict[int, str]] = {}
    for model in question_set.models:
        if matched := _STEP.fullmatch(model):
            by_training.setdefault(matched[1], {})[int(matched[2])] = model
    return {
        name: dict(sorted(steps.items())) for name, steps in by_training.items() if len(steps) > 1
    }


def models_of(models: Collection[str], training: str) -> list[str]:
    """Return the names of the models that are steps of a training run."""
    matches = ((model, _STEP.fullmatch(model)) for model in models)
    return [model for model, matched in matches if matched and matched[1] == training]


def list_trainings(store: Store, probe: str = "") -> list[tuple[QuestionSet, str, dict[int, str]]]:
    """Return the training runs with results for at least two steps: question set, name, and the models by step.

    Args:
        probe: The probe of the question sets; "" for any.
    """
    return [
        (question_set, name, steps)
        for row in runs.question_set_rows(store)
        if probe in ("", row.probe) and sum(map(bool, map(_STEP.fullmatch, row.models))) > 1
        for question_set in [runs.question_set(store, row.case_key)]
        for name, steps in trainings(question_set).items()
    ]


def find_training(store: Store, name: str, probe: str = "") -> tuple[QuestionSet, dict[int, str]]:
    """Return the question set with the most steps of a training run, and the models by step.

    Raises:
        NotFound: No question set has at least two steps of a training run with this name.
    """
    every = list_trainings(store, probe)
    of_name = [(question_set, steps) for question_set, each, steps in every if each == name]
    if not of_name:
        names = dict.fromkeys(each for _, each, _ in every)
        raise NotFound("training run with results for at least two steps", name, names)
    return max(of_name, key=lambda found: len(found[1]))


def curves(
    question_set: QuestionSet,
    steps: Mapping[int, str],
    breakdown: str = "all",
    averaging: str = POOLED,
    unit: str = "cosine",
) -> pd.DataFrame:
    """Return each metric at each training step, overall or in slices, with 95 % intervals.

    Returns:
        metric, slice, step, value, low, high, n_items, n_cases; one row per step.
    """
    of_steps = replace(question_set, runs=tuple(map(question_set.run, steps.values())))
    table = estimates.estimates(of_steps, breakdown, averaging, unit)
    step_of = {model: step for step, model in steps.items()}
    table = table.assign(step=[step_of[model] for model in table["model"]]).dropna(subset=["value"])
    places = {name: place for place, name in enumerate(question_set.metrics)}
    table = table.assign(place=[places[name] for name in table["metric"]]).sort_values(
        ["place", "slice", "step"]
    )
    columns = ["metric", "slice", "step", "value", "low", "high", "n_items", "n_cases"]
    return table.loc[:, columns].reset_index(drop=True)


def outcomes_by_step(
    question_set: QuestionSet, steps: Mapping[int, str], kind: str
) -> pd.DataFrame:
    """For each case of a kind, return the training step at which the model learns or forgets it, if any.

    A case is learned at the step from which the model is right until the end. It is forgotten at the step from which
    the model is wrong until the end, if the model was right before.

    Returns:
        case, outcome, step; one row per case. `outcome` is one of OUTCOMES; it is "unknown" if the margin is
        unknown at any step. `step` is the step at which the case was learned or forgotten, NaN for
        other outcomes.
    """
    numbers = question_set.cases.numbers("kind = ?", [kind])
    of_steps = margins(question_set, list(steps.values()), numbers)
    is_right = of_steps > 0
    is_final = is_right == is_right[-1]
    # The first step of the last sequence of equal outcomes
    begin = len(steps) - np.cumprod(is_final[::-1], axis=0).sum(axis=0)
    outcome = np.where(
        begin > 0,
        np.where(is_right[-1], "learned", "forgotten"),
        np.where(is_right[-1], "always right", "never right"),
    )
    is_unknown = np.isnan(of_steps).any(axis=0)
    outcome = np.where(is_unknown, "unknown", outcome)
    at_step = np.array(list(steps), dtype=np.float64)[begin]
    is_change = np.isin(outcome, ["learned", "forgotten"])
    step = np.where(is_change, at_step, np.nan)
    return pd.DataFrame({"case": numbers, "outcome": outcome, "step": step})


def cases_by_step(question_set: QuestionSet, steps: Mapping[int, str], kind: str) -> pd.DataFrame:
    """Return the table of `outcomes_by_step` with the id, type and words of each case, as CASE_COLUMNS."""
    outcomes = outcomes_by_step(question_set, steps, kind)
    table = questions(question_set, outcomes["case"].tolist())
    return table.assign(outcome=outcomes["outcome"], step=outcomes["step"]).loc[:, CASE_COLUMNS]
