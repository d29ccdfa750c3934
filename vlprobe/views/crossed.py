"""Joint outcomes of the text side (t2t) and the picture side (i2t) of each triplet.

VISLA's figure 9 shows triplets that a model gets wrong in both ways (in the paper the wrong caption
is closer than both true ones; here closer than one of them), and its figure 10 shows triplets that
a model gets wrong only with texts. The ids of a case and its counterpart of the other kind differ
only in the kind at the end.
"""

import itertools
from typing import NamedTuple

import numpy as np
import pandas as pd

from vlprobe.metrics import estimate, estimate_cache
from vlprobe.storage.store import Store
from vlprobe.views.rows import AnswerTable, CaseTable
from vlprobe.views.runs import QuestionSet

TEXTS, PICTURES = "t2t", "i2t"
OUTCOMES = ("fooled", "held")
COLUMNS = ["model", "slice", "texts", "pictures", "n_cases", "share", "low", "high", "n_items"]


class Crossing(NamedTuple):
    """Paired case numbers of two kinds for the same triplets: int64 of shape (n,) each."""

    texts: np.ndarray
    pictures: np.ndarray
    subtypes: list[str]


def crossing(store: Store, question_set: QuestionSet) -> Crossing:
    """Return the triplets of a question set that have both sides, in the order of the question set."""
    with store.cursor() as cursor:
        table = cursor.execute(
            'SELECT left_."case" AS texts, right_."case" AS pictures, left_.subtype AS subtype '
            "FROM read_parquet($files) AS left_ JOIN read_parquet($files) AS right_ "
            "ON left_.kind = 't2t' AND right_.kind = 'i2t' AND left_.item = right_.item "
            'AND left_.id[:-4] = right_.id[:-4] ORDER BY left_."case"',
            {"files": store.files([question_set.key], "cases")},
        ).df()
    texts, pictures = (table[name].to_numpy(np.int64) for name in ("texts", "pictures"))
    return Crossing(texts, pictures, table["subtype"].tolist())


def crossed_outcomes(store: Store, question_set: QuestionSet) -> pd.DataFrame:
    """Count how many triplets each model gets right on both sides, on one side and on neither.

    Returns:
        model, slice (a subset; "": all), texts and pictures ("held" or "fooled", a tie is a
        failure), n_cases, share (of the triplets of the slice with two known answers), low and high
        (95 % over resampled items, as for every rate), n_items; models that answered only one side
        have no row.
    """
    both = crossing(store, question_set)
    subtypes = np.array(both.subtypes, dtype=object)
    names = ["", *sorted({name for name in both.subtypes if name})]
    units = CaseTable(store, question_set.key).unit_codes
    item = units[both.texts]
    table, measures = [], []
    for run in question_set.runs:
        margins = AnswerTable(store, run.key).margins
        sides = margins[both.texts], margins[both.pictures]
        is_known = ~(np.isnan(sides[0]) | np.isnan(sides[1]))
        for name in names:
            of_slice = is_known & (subtypes == name) if name else is_known
            n_slice = int(of_slice.sum())
            if not n_slice:
                continue
            for texts, pictures in itertools.product(OUTCOMES, repeat=2):
                cell = of_slice.copy()
                for outcome, side in zip((texts, pictures), sides, strict=True):
                    cell &= side <= 0 if outcome == "fooled" else side > 0
                n_cases = int(cell.sum())
                table.append((run.model, name, texts, pictures, n_cases, n_cases / n_slice))
                value = cell[of_slice].astype(np.float64)
                measures.append(estimate.micro(value, np.ones(n_slice), item[of_slice]))
    n_items = max([int(units.max(initial=-1)) + 1, *(run.n_units for run in question_set.runs)])
    intervals = estimate_cache.estimates(measures, n_items, are_rates=True)
    rows = [
        (*row, interval.low, interval.high, interval.n_items)
        for row, interval in zip(table, intervals, strict=True)
    ]
    return pd.DataFrame(rows, columns=pd.Index(COLUMNS))
