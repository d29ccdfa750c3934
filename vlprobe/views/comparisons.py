"""PRSM's measures for each comparison in its table 1, such as o-c1, the query against its first
paraphrase.
"""

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from vlprobe.metrics import estimate
from vlprobe.probes.prsm_ranking import COMPARISONS, MEASURES, NAMES, TABLE
from vlprobe.storage.store import Store
from vlprobe.views.rows import CaseTable
from vlprobe.views.runs import QuestionSet

BREAKDOWN = "comparison"
PROBE = "prsm"
SETTINGS = {  # by the name of a comparison, whose versions it compares
    "-".join(pair): setting for setting, pairs in COMPARISONS.items() for pair in pairs
}
_COLUMNS = ["model", "key", "metric", "averaging", "slice", "value", "low", "high"]
COLUMNS = [*_COLUMNS, "n_items", "n_cases", "ties"]


def has_comparisons(store: Store, question_set: QuestionSet) -> bool:
    """Return whether any run of the question set stored comparisons; older runs did not."""
    return question_set.probe == PROBE and any(
        store.run(run.key).has_table(TABLE) for run in question_set.runs
    )


def comparisons(store: Store, question_set: QuestionSet, tag: str = "") -> pd.DataFrame:
    """Compute the mean and interval of every comparison in the question set, for each model.

    Each query counts once, regardless of its number of versions; queries of one unit are resampled
    together.

    Args:
        question_set: A question set of PRSM.
        tag: "", or NAME=VALUE to use only queries whose item has this tag.

    Returns:
        The columns of `views.estimates.estimates`, where `slice` is the comparison; runs that did
        not store comparisons have no row.
    """
    units = CaseTable(store, question_set.key).unit_codes
    counted = np.ones(len(units), dtype=bool)
    if tag:
        name, _, value = tag.partition("=")
        numbers = CaseTable(store, question_set.key).numbers("tags[?] = ?", [name, value])
        counted = np.isin(np.arange(len(units)), numbers)
    table = []
    for run in question_set.runs:
        if store.run(run.key).has_table(TABLE):
            table += _of_run(store, run.key, run.model, units, counted)
    return pd.DataFrame(table, columns=pd.Index(COLUMNS))


def _of_run(
    store: Store, key: str, model: str, units: np.ndarray, counted: np.ndarray
) -> list[tuple]:
    """The rows of one run.

    Args:
        key: Key of the run.
        units: Codes of the units of resampling, by the number of the case.
        counted: The cases that count, in the same format.
    """
    columns = ["case", "comparison", *(f"comparison_{measure}" for measure in MEASURES)]
    lists = pq.read_table(store.files([key], TABLE)[0], columns=columns).to_pandas()
    flat = lists.dropna(subset=["comparison"]).explode(columns[1:]).dropna(subset=["comparison"])
    flat = flat.loc[counted[flat["case"].to_numpy()]]
    n_units = int(units.max()) + 1
    rows = []
    for name in [name for name in NAMES if (flat["comparison"] == name).any()]:
        of_name = flat.loc[flat["comparison"] == name]
        item = units[of_name["case"].to_numpy()]
        for measure in MEASURES:
            value = of_name[f"comparison_{measure}"].to_numpy(np.float64)
            mean = estimate.micro(value, np.ones(len(value)), item)
            (interval,) = estimate.estimates([mean], n_units, measure.startswith("local"))
            numbers = (interval.value, interval.low, interval.high, interval.n_items, len(value), 0)
            rows += [
                (model, key, f"prsm_{measure}", averaging, name, *numbers)
                for averaging in ("macro", "micro")
            ]
    return rows


def grouped_by(store: Store, question_set: QuestionSet) -> str:
    """Return the tag that restricted each query to the pictures of its own group; "" if all queries
    ranked all pictures.
    """
    run = store.run(question_set.runs[0].key).manifest()["run"]
    return str(run["options"].get("group", ""))
