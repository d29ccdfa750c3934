"""RoCOCO's numbers by the released file that they are of: its four files are four question sets, and one table."""

import re
from collections.abc import Collection, Iterator

import pandas as pd

from vlprobe.probes.rococo import RELEASED
from vlprobe.storage.store import Store
from vlprobe.types import AS_PAPER
from vlprobe.views import estimates, versions
from vlprobe.views import runs as views_runs
from vlprobe.views.paper_tables import TABLES
from vlprobe.views.runs import QuestionSet

TAG = "subset"  # of an item: the stem of the file that it is from


def by_released_file(
    store: Store, question_set: QuestionSet, by_subtype: pd.DataFrame
) -> pd.DataFrame | None:
    """RoCOCO's numbers by the released file that they are of; None where captions were altered here.

    Beside the file of the question set stand the other files that the same models answered about the
    same pictures with the same options: of each the most complete.

    Args:
        store: Where results are.
        question_set: Question set of the probe rococo.
        by_subtype: Its estimates by subtype. All captions of a released file have the subtype
            "released"; which file it is, its tag `subset` says.

    Returns:
        What `estimates` returns, and `file`: the name as the paper's column has it, "" of any other
        file.
    """
    own_table = _by_file(store, question_set, by_subtype)
    if own_table is None:
        return None
    digests = {run.model: run.model_digest for run in question_set.runs}
    tables, files_of = [own_table], {model: set(own_table["file"]) for model in digests}
    for sibling in _siblings(store, question_set):
        table = _by_file(store, sibling, estimates.estimates(store, sibling, "subtype", AS_PAPER))
        if table is None:
            continue
        same = {run.model for run in sibling.runs if digests.get(run.model) == run.model_digest}
        for model in same:
            of_model = table.loc[table["model"] == model]
            new_files = set(of_model["file"]) - files_of[model]
            files_of[model] |= new_files
            tables.append(of_model.loc[of_model["file"].isin(list(new_files))])
    return pd.concat(tables, ignore_index=True)


def _by_file(
    store: Store, question_set: QuestionSet, by_subtype: pd.DataFrame
) -> pd.DataFrame | None:
    policies = set(by_subtype["slice"][by_subtype["metric"] == "i2t_r1_new"])
    if policies != {RELEASED} or f"tag:{TAG}" not in estimates.slices(store, question_set):
        return None
    by_file = estimates.estimates(store, question_set, f"tag:{TAG}", AS_PAPER)
    names = [
        column.released for table in TABLES["rococo"] for column in table.columns if column.released
    ]
    return by_file.assign(file=[file_of(stem, names) for stem in by_file["slice"]])


def _siblings(store: Store, question_set: QuestionSet) -> Iterator[QuestionSet]:
    """Yield the other question sets about the same pictures, asked and answered in the same way, the
    most complete first.
    """
    key = question_set.key
    identity = _identity(store, question_set)
    for row in views_runs.question_set_rows(store):
        same = row.probe == question_set.probe and row.n_items == question_set.runs[0].n_items
        if not same or row.case_key == key:
            continue
        sibling = views_runs.question_set(store, row.case_key)
        if _identity(store, sibling) == identity:
            yield sibling


def _identity(store: Store, question_set: QuestionSet) -> tuple[object, ...]:
    """The key that two files' question sets share if they belong in one table: their options and pictures."""
    run = store.run(question_set.runs[0].key).manifest()["run"]
    with store.cursor() as cursor:
        items = cursor.execute(
            "SELECT DISTINCT item FROM read_parquet(?) WHERE kind = 'i2t' ORDER BY item",
            [store.files([question_set.runs[0].key], "scores")],
        ).fetchall()
    options = tuple(run["options"].get(name) for name in ("normalise", "approximate"))
    return versions.version(run), options, tuple(items)


def file_of(stem: str, names: Collection[str]) -> str:
    """Return the released file that a file's name without its ending means; "" if it is none or not certain.

    >>> names = ["rand_voca", "danger"]
    >>> [file_of(stem, names) for stem in ("danger", "RoCOCO-Rand-Voca", "danger_rand_voca", "endangered")]
    ['danger', 'rand_voca', '', '']
    """
    words = f"_{'_'.join(re.split('[^a-z0-9]+', stem.lower()))}_"
    matching = {name for name in names if f"_{name}_" in words}
    return matching.pop() if len(matching) == 1 else ""
