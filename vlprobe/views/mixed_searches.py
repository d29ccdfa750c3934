"""Searches for a picture that a mixture wins: how many there are, and in which order they are shown.

A search is found where its right picture comes first among the pictures as they are, and lost to its
own mixture where that comes first of all once mixtures are among them.
"""

import os
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
import pandas as pd

from vlprobe import registry
from vlprobe.probes import rococo_fronts
from vlprobe.storage.memory import SingleFlightCache
from vlprobe.storage.store import Store
from vlprobe.types import Picture
from vlprobe.views import cases as views_cases
from vlprobe.views import rows as views_rows
from vlprobe.views.runs import QuestionSet

KIND = "t2i"  # of the cases: searches for a picture
KEPT_BYTES = 64 << 20  # of outcomes of whole runs
_outcomes = SingleFlightCache(KEPT_BYTES, lambda outcomes: outcomes.nbytes)


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What one model did in every search for a picture; arrays of one length, by the search."""

    numbers: np.ndarray  # of the cases, rising
    is_found: np.ndarray  # bool: the right picture comes first without mixtures
    is_lost: np.ndarray  # bool: it was found, and is not first among mixtures
    is_own: np.ndarray  # bool: it was found, and its own mixture comes first instead
    pictures: np.ndarray  # int, equal where the right picture is the same

    @property
    def nbytes(self) -> int:
        """Its size in memory."""
        arrays = (self.numbers, self.is_found, self.is_lost, self.is_own, self.pictures)
        return sum(array.nbytes for array in arrays)


@dataclass(frozen=True, slots=True)
class SearchCounts:
    """How often one model's searches are found and lost, of one strength."""

    n_searches: int
    n_found: int
    n_lost: int
    n_lost_to_own: int


@dataclass(frozen=True, slots=True)
class Place:
    """Where a search stands among those that are lost to their own mixture, those that fool most
    models first; ids of cases, "" where there is none.
    """

    place: int  # from 1; 0: it is not among them
    total: int
    n_models: int  # controls are not counted
    n_fooling_all: int  # the first so many fool all of these models
    previous: str
    next: str


def strength(subtype: str) -> tuple[Literal["mix", "patch"], float]:
    """Kind and share that stays.

    >>> strength("mix:0.9")
    ('mix', 0.9)
    """
    kind, _, lam = subtype.partition(":")
    return cast(Literal["mix", "patch"], kind), float(lam)


def strengths(store: Store, question_set: QuestionSet) -> tuple[str, ...]:
    """The mixtures that were asked about: blends before patches, those that change least first."""
    with store.cursor() as cursor:
        rows = cursor.execute(
            "SELECT DISTINCT subtype FROM read_parquet(?) WHERE kind = ?",
            [store.files([question_set.key], "cases"), KIND],
        ).fetchall()
    return tuple(sorted((row[0] for row in rows), key=_mildest_first))


def _mildest_first(subtype: str) -> tuple[str, float]:
    kind, lam = strength(subtype)
    return kind, -lam


def outcomes(store: Store, question_set: QuestionSet, model: str) -> Outcomes:
    """What a model did in every search for a picture."""
    run_key = question_set.run(model).key
    changed = os.stat(store.files([run_key], "scores")[0]).st_mtime_ns
    return _outcomes.get(
        (store.address, run_key, question_set.key, changed),
        lambda: _read_outcomes(store, question_set.key, run_key),
    )


def _read_outcomes(store: Store, case_key: str, run_key: str) -> Outcomes:
    """By the first candidate that is stored; where a run has none, by the best mixture's path."""
    has_fronts = store.run(run_key).has_table(rococo_fronts.TABLE)
    tables = [store.files([case_key], "cases"), store.files([run_key], "scores")]
    first, join = "NULL::BOOLEAN", ""
    if has_fronts:
        first = "f.whole_items[1] = c.item AND f.whole_altered[1]"
        join = 'LEFT JOIN read_parquet(?) AS f USING ("case")'
        tables.append(store.files([run_key], rococo_fronts.TABLE))
    with store.cursor() as cursor:
        columns = cursor.execute(
            'SELECT "case" AS number, coalesce(s.rank_clean = 1, false) AS is_found, '
            "coalesce(s.rank = 1, false) AS stays, coalesce(s.margin <= 0, false) AS is_fooled, "
            f"{first} AS is_first, s.top AS top, c.images[1] AS image "
            f'FROM read_parquet(?) AS c JOIN read_parquet(?) AS s USING ("case") {join} '
            f"WHERE c.kind = '{KIND}' ORDER BY number",
            tables,
        ).fetchnumpy()
    is_found = np.asarray(columns["is_found"], dtype=bool)
    is_first = pd.array(columns["is_first"], dtype="boolean")
    unknown = np.asarray(is_first.isna())
    is_own = np.asarray(is_first.fillna(False), dtype=bool)
    if unknown.any():
        tops, images = (
            np.asarray(columns[name], dtype=object)[unknown] for name in ("top", "image")
        )
        paths = {top: _mixed_path(top) for top in set(tops)}
        is_of_own = [paths[top] == image for top, image in zip(tops, images, strict=True)]
        is_own[unknown] = np.array(is_of_own) & np.asarray(columns["is_fooled"], bool)[unknown]
    return Outcomes(
        numbers=np.asarray(columns["number"], dtype=np.int32),
        is_found=is_found,
        is_lost=is_found & ~np.asarray(columns["stays"], dtype=bool),
        is_own=is_found & is_own,
        pictures=pd.factorize(np.asarray(columns["image"], dtype=object))[0].astype(np.int32),
    )


def _mixed_path(name: str) -> str:
    """The path of the picture that is mixed; "" of one that is not."""
    picture = Picture.from_name(name)
    return str(picture.path) if picture.edit else ""


def counts(store: Store, question_set: QuestionSet, model: str, subtype: str) -> SearchCounts:
    """How many searches of one strength a model finds and loses."""
    of_model = outcomes(store, question_set, model)
    asked = np.isin(of_model.numbers, _numbers(store, question_set, subtype))
    columns = (asked, of_model.is_found, of_model.is_lost, of_model.is_own)
    return SearchCounts(*(int(np.count_nonzero(asked & column)) for column in columns))


def _numbers(store: Store, question_set: QuestionSet, subtype: str) -> np.ndarray:
    condition = "kind = ? AND subtype = ?"
    return views_rows.case_numbers(store, question_set.key, condition, [KIND, subtype])


def order(
    store: Store, question_set: QuestionSet, model: str, subtype: str
) -> tuple[np.ndarray, np.ndarray]:
    """The searches that a model loses to their own mixture: those that fool most models first, and
    of these every picture once before one comes again, the worst of it first.

    Returns:
        Numbers of cases; and how many models lose each, controls not counted.
    """
    of_model = outcomes(store, question_set, model)
    is_chosen = of_model.is_own & np.isin(of_model.numbers, _numbers(store, question_set, subtype))
    numbers = of_model.numbers[is_chosen]
    n_fooled = np.zeros(len(numbers), dtype=np.int64)
    for name in real_models(question_set):
        other = outcomes(store, question_set, name)
        n_fooled += np.isin(numbers, other.numbers[other.is_own])
    table = pd.DataFrame(
        {
            "number": numbers,
            "n_fooled": n_fooled,
            "margin": views_cases.margins_of(store, question_set.run(model).key, numbers),
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
    """The models that are no controls; all, where there are no others."""
    models = question_set.ordered_models
    return tuple(name for name in models if not registry.is_control(name)) or models


def place(
    store: Store, question_set: QuestionSet, model: str, subtype: str, case: int | None
) -> Place:
    """Where a search stands, and its neighbours; without a case, the first is next."""
    numbers, n_fooled = order(store, question_set, model, subtype)
    n_models = len(real_models(question_set))
    at = int(np.flatnonzero(numbers == case)[0]) if case in numbers else -1
    beside = {"previous": at - 1, "next": at + 1}
    known = {name: int(numbers[to]) for name, to in beside.items() if 0 <= to < len(numbers)}
    ids = views_cases.questions(store, question_set, list(known.values()))["id"].tolist()
    id_of = dict(zip(known, ids, strict=True))
    return Place(
        place=at + 1,
        total=len(numbers),
        n_models=n_models,
        n_fooling_all=int(np.count_nonzero(n_fooled == n_models)),
        previous=id_of.get("previous", ""),
        next=id_of.get("next", ""),
    )
