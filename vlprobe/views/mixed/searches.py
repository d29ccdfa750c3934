"""Picture searches lost to a mixture: their number and order."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pandas as pd

from vlprobe import registry
from vlprobe.storage.store import Store
from vlprobe.views import rows as views_rows
from vlprobe.views.mixed.outcomes import KIND, outcomes, strength
from vlprobe.views.rows import AnswerTable, CaseTable
from vlprobe.views.runs import QuestionSet


@dataclass(frozen=True, slots=True)
class SearchCounts:
    """Numbers of searches that one model finds and loses at one strength."""

    n_searches: int
    n_found: int
    n_lost: int
    n_lost_to_own: int


@dataclass(frozen=True, slots=True)
class Place:
    """Position of a search among the searches lost to their own mixture, most fooled models first.
    Neighbors are ids of cases, "" if there is none.
    """

    place: int  # from 1; 0: it is not among them
    total: int
    n_models: int  # controls are not counted
    n_fooling_all: int  # the first so many fool all of these models
    previous: str
    next: str


def strengths(store: Store, question_set: QuestionSet) -> tuple[str, ...]:
    """List the mixtures of the question set: blends before patches, weakest first."""
    with store.cursor() as cursor:
        rows = cursor.execute(
            "SELECT DISTINCT subtype FROM read_parquet(?) WHERE kind = ?",
            [store.files([question_set.key], "cases"), KIND],
        ).fetchall()
    return tuple(sorted((row[0] for row in rows), key=_mildest_first))


def _mildest_first(subtype: str) -> tuple[str, float]:
    kind, lam = strength(subtype)
    return kind, -lam


def counts(store: Store, question_set: QuestionSet, model: str, subtype: str) -> SearchCounts:
    """Count how many searches of one strength a model finds and loses."""
    of_model = outcomes(store, question_set, model)
    asked = np.isin(of_model.numbers, _numbers(store, question_set, subtype))
    columns = (asked, of_model.is_found, of_model.is_lost, of_model.is_own)
    return SearchCounts(*(int(np.count_nonzero(asked & column)) for column in columns))


def _numbers(store: Store, question_set: QuestionSet, subtype: str) -> np.ndarray:
    condition = "kind = ? AND subtype = ?"
    return CaseTable(store, question_set.key).numbers(condition, [KIND, subtype])


def order(
    store: Store, question_set: QuestionSet, model: str, subtype: str, counted: Collection[str] = ()
) -> tuple[np.ndarray, np.ndarray]:
    """Return the searches that a model loses to their own mixture, most fooled models first; among
    equals, each picture appears once before any repeats.

    Args:
        subtype: Strength of the mixtures.
        counted: Models to count; empty: all except controls.

    Returns:
        Case numbers, and the number of counted models that lose each.
    """
    of_model = outcomes(store, question_set, model)
    is_chosen = of_model.is_own & np.isin(of_model.numbers, _numbers(store, question_set, subtype))
    numbers = of_model.numbers[is_chosen]
    n_fooled = np.zeros(len(numbers), dtype=np.int64)
    for name in counted or real_models(question_set):
        other = outcomes(store, question_set, name)
        n_fooled += np.isin(numbers, other.numbers[other.is_own])
    table = pd.DataFrame(
        {
            "number": numbers,
            "n_fooled": n_fooled,
            "margin": AnswerTable(store, question_set.run(model).key).margins_of(numbers),
            "picture": of_model.pictures[is_chosen],
        }
    )
    table = table.sort_values(["n_fooled", "margin", "number"], ascending=[False, True, True])
    again = table.groupby(["n_fooled", "picture"]).cumcount()
    table = table.assign(again=again).sort_values(
        ["n_fooled", "again", "margin", "number"], ascending=[False, True, True, True]
    )
    return table["number"].to_numpy(), table["n_fooled"].to_numpy()


def real_models(question_set: QuestionSet) -> tuple[str, ...]:
    """Return the models that are not controls; all models if there are only controls."""
    models = question_set.ordered_models
    return tuple(name for name in models if not registry.is_control(name)) or models


def place(
    store: Store, question_set: QuestionSet, model: str, subtype: str, case: int | None
) -> Place:
    """Return the position of a search and its neighbors; without a case, the first search is next."""
    numbers, n_fooled = order(store, question_set, model, subtype)
    n_models = len(real_models(question_set))
    at = int(np.flatnonzero(numbers == case)[0]) if case in numbers else -1
    beside = {"previous": at - 1, "next": at + 1}
    known = {name: int(numbers[to]) for name, to in beside.items() if 0 <= to < len(numbers)}
    ids = views_rows.questions(store, question_set, list(known.values()))["id"].tolist()
    id_of = dict(zip(known, ids, strict=True))
    return Place(
        place=at + 1,
        total=len(numbers),
        n_models=n_models,
        n_fooling_all=int(np.count_nonzero(n_fooled == n_models)),
        previous=id_of.get("previous", ""),
        next=id_of.get("next", ""),
    )
