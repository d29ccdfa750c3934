"""Outcomes of a model's searches for a picture among mixed ones.

A search succeeds if the right picture ranks first among the unmixed pictures. It is lost to its own
mixture if the mixture ranks first once mixtures are added.
"""

import json
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
import pandas as pd

from vlprobe.probes import rococo_galleries
from vlprobe.storage.store import Store
from vlprobe.views.rows import AnswerTable, CaseTable, remembered
from vlprobe.views.runs import QuestionSet

KIND = "t2i"  # of the cases: searches for a picture


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The outcomes of one model's searches for a picture; arrays of equal length, one entry per
    search.
    """

    numbers: np.ndarray  # of the cases, rising
    is_found: np.ndarray  # bool: the right picture comes first without mixtures
    is_lost: np.ndarray  # bool: it was found, and is not first among mixtures
    is_own: np.ndarray  # bool: it was found, and its own mixture comes first instead
    pictures: np.ndarray  # int, equal where the right picture is the same

    @property
    def nbytes(self) -> int:
        """Size in memory (bytes)."""
        arrays = (self.numbers, self.is_found, self.is_lost, self.is_own, self.pictures)
        return sum(array.nbytes for array in arrays)


def strength(subtype: str) -> tuple[Literal["mix", "patch"], float]:
    """Return the kind and the remaining share.

    >>> strength("mix:0.9")
    ('mix', 0.9)
    """
    kind, _, lam = subtype.partition(":")
    return cast(Literal["mix", "patch"], kind), float(lam)


def outcomes(store: Store, question_set: QuestionSet, model: str) -> Outcomes:
    """Return the outcomes of a model's searches for a picture."""
    run_key = question_set.run(model).key
    return _outcomes(CaseTable(store, question_set.key), AnswerTable(store, run_key))


@remembered
def _outcomes(cases: CaseTable, answers: AnswerTable) -> Outcomes:
    """Decide by the first stored candidate; if a run has none, by the best mixture's path."""
    if "rank_clean" not in answers.columns:  # of a probe without searches
        return Outcomes(*(np.empty(0, dtype) for dtype in (np.int32, bool, bool, bool, np.int32)))
    store = cases.store
    has_fronts = store.run(answers.key).has_table(rococo_galleries.TABLE)
    tables = [[cases.path], [answers.path]]
    first, join = "NULL::BOOLEAN", ""
    if has_fronts:
        first = "f.whole_items[1] = c.item AND f.whole_altered[1]"
        join = 'LEFT JOIN read_parquet(?) AS f USING ("case")'
        tables.append(store.files([answers.key], rococo_galleries.TABLE))
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
    unknown = np.asarray(is_first.isna()) & np.asarray(columns["is_fooled"], bool)
    is_own = np.asarray(is_first.fillna(False), dtype=bool)
    if unknown.any():
        tops, images = (
            np.asarray(columns[name], dtype=object)[unknown] for name in ("top", "image")
        )
        paths = {top: _mixed_path(top) for top in set(tops)}
        is_own[unknown] = [paths[top] == image for top, image in zip(tops, images, strict=True)]
    return Outcomes(
        numbers=np.asarray(columns["number"], dtype=np.int32),
        is_found=is_found,
        is_lost=is_found & ~np.asarray(columns["stays"], dtype=bool),
        is_own=is_found & is_own,
        pictures=pd.factorize(np.asarray(columns["image"], dtype=object))[0].astype(np.int32),
    )


def _mixed_path(name: str) -> str:
    """The path of the mixed picture, in the form of `Picture.name`; "" of one that is not."""
    return json.loads(name)["path"] if name.startswith("{") else ""
