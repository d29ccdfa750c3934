"""Outcomes, counts and order of picture searches in galleries that contain mixed pictures.

A search succeeds if the right picture ranks first among the unmixed pictures. It is lost to its own
mixture if a mixture of the right picture ranks first once mixtures are added.
"""

import json
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pandas as pd

from vlprobe.probes import rococo_galleries
from vlprobe.probes.rococo import parse_strength
from vlprobe.views.runs import QuestionSet
from vlprobe.views.tables import AnswerTable, CaseTable, remembered

KIND = "t2i"  # kind of the cases that are picture searches


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The outcomes of one model's picture searches, as arrays with one entry per search."""

    numbers: np.ndarray  # case numbers, ascending
    is_found: np.ndarray  # bool: the right picture ranks first without mixtures
    is_lost: np.ndarray  # bool: found, but not first once mixtures are added
    is_own: np.ndarray  # bool: found, but its own mixture ranks first instead
    pictures: np.ndarray  # int, equal for searches with the same right picture


def outcomes(question_set: QuestionSet, model: str) -> Outcomes:
    """Return the outcomes of all picture searches in a model's run."""
    run_key = question_set.run(model).key
    return outcomes_of(question_set.cases, AnswerTable(question_set.store, run_key))


@remembered
def outcomes_of(cases: CaseTable, answers: AnswerTable) -> Outcomes:
    """Compute the outcomes of picture searches from a model's stored answers, using the first
    stored candidate.

    If the run stored no candidates, the path of the best mixture is used instead.
    """
    if "rank_clean" not in answers.columns:  # the run's probe has no searches
        return Outcomes(*(np.empty(0, dtype) for dtype in (np.int32, bool, bool, bool, np.int32)))
    store = cases.store
    has_fronts = store.run(answers.key).has_table(rococo_galleries.TABLE)
    tables = [[cases.path], [answers.path]]
    first, join = "NULL::BOOLEAN", ""
    if has_fronts:
        first = "f.whole_items[1] = c.item AND f.whole_altered[1]"
        join = 'LEFT JOIN read_parquet(?) AS f USING ("case")'
        tables.append(store.files([answers.key], rococo_galleries.TABLE))
    columns = store.fetch_table(
        'SELECT "case" AS number, coalesce(s.rank_clean = 1, false) AS is_found, '
        "coalesce(s.rank = 1, false) AS stays, coalesce(s.margin <= 0, false) AS is_fooled, "
        f"{first} AS is_first, s.top AS top, c.images[1] AS image "
        f'FROM read_parquet(?) AS c JOIN read_parquet(?) AS s USING ("case") {join} '
        f"WHERE c.kind = '{KIND}' ORDER BY number",
        tables,
    )
    is_found = np.asarray(columns["is_found"], dtype=bool)
    is_first = pd.array(columns["is_first"].to_numpy(), dtype="boolean")
    unknown = np.asarray(is_first.isna()) & np.asarray(columns["is_fooled"], bool)
    is_own = np.asarray(is_first.fillna(False), dtype=bool)
    if unknown.any():
        tops, images = (
            np.asarray(columns[name], dtype=object)[unknown] for name in ("top", "image")
        )
        # The path of a mixed picture, in the form of `Picture.name`
        paths = {top: json.loads(top)["path"] if top[:1] == "{" else "" for top in set(tops)}
        is_own[unknown] = [paths[top] == image for top, image in zip(tops, images, strict=True)]
    return Outcomes(
        numbers=np.asarray(columns["number"], dtype=np.int32),
        is_found=is_found,
        is_lost=is_found & ~np.asarray(columns["stays"], dtype=bool),
        is_own=is_found & is_own,
        pictures=pd.factorize(np.asarray(columns["image"], dtype=object))[0].astype(np.int32),
    )


@dataclass(frozen=True, slots=True)
class SearchCounts:
    """Counts of the picture searches that a model finds and loses at one mixing strength."""

    n_found: int
    n_lost: int
    n_lost_to_own: int


def strengths(question_set: QuestionSet) -> tuple[str, ...]:
    """Return the subtypes of mixtures in the question set, blends before patches and weakest first."""
    rows = question_set.store.fetch_rows(
        "SELECT DISTINCT subtype FROM read_parquet(?) WHERE kind = ?",
        [[question_set.cases.path], KIND],
    )
    by_strength = {subtype: parse_strength(subtype) for (subtype,) in rows}
    return tuple(
        sorted(by_strength, key=lambda name: (by_strength[name][0], -by_strength[name][1]))
    )


def counts(question_set: QuestionSet, model: str, subtype: str) -> SearchCounts:
    """Count the picture searches that a model finds and loses at one mixing strength."""
    of_model = outcomes(question_set, model)
    has_strength = np.isin(of_model.numbers, _numbers(question_set, subtype))
    columns = (of_model.is_found, of_model.is_lost, of_model.is_own)
    return SearchCounts(*(int(np.count_nonzero(has_strength & column)) for column in columns))


def _numbers(question_set: QuestionSet, subtype: str) -> np.ndarray:
    condition = "kind = ? AND subtype = ?"
    return question_set.cases.numbers(condition, [KIND, subtype])


def order(
    question_set: QuestionSet, model: str, subtype: str, counted: Collection[str] = ()
) -> tuple[np.ndarray, np.ndarray]:
    """Return the searches that a model loses to their own mixture, sorted by the number of fooled
    models (highest first). Among equals, each picture appears once before any picture repeats.

    Args:
        counted: Models to consider; empty means all except controls.

    Returns:
        Case numbers, and the number of counted models that lose each search.
    """
    of_model = outcomes(question_set, model)
    is_chosen = of_model.is_own & np.isin(of_model.numbers, _numbers(question_set, subtype))
    numbers = of_model.numbers[is_chosen]
    n_fooled = np.zeros(len(numbers), dtype=np.int64)
    for name in counted or question_set.rated_models:
        other = outcomes(question_set, name)
        n_fooled += np.isin(numbers, other.numbers[other.is_own])
    table = pd.DataFrame(
        {
            "number": numbers,
            "n_fooled": n_fooled,
            "margin": question_set.answers(model).margins_of(numbers),
            "picture": of_model.pictures[is_chosen],
        }
    )
    table = table.sort_values(["n_fooled", "margin", "number"], ascending=[False, True, True])
    again = table.groupby(["n_fooled", "picture"]).cumcount()
    table = table.assign(again=again).sort_values(
        ["n_fooled", "again", "margin", "number"], ascending=[False, True, True, True]
    )
    return table["number"].to_numpy(), table["n_fooled"].to_numpy()
