"""VISLA's accuracies over what a model is: how many parameters it has, and how many pairs it was
trained on.

Parameters of a run's model are those of its passport, its training samples are those that a paper prints of the same
weights; what neither tells is NaN.
"""

import math

import pandas as pd

from vlprobe.errors import NotFound
from vlprobe.storage.store import Store
from vlprobe.views import estimates, printed, runs
from vlprobe.views.papers import SCALE, belongs
from vlprobe.views.records import EstimateRow, records
from vlprobe.views.runs import QuestionSet

COLUMNS = ["source", "model", "parameters", "samples", "value", "low", "high", "note"]
ACCURACIES = ("t2t_accuracy", "i2t_accuracy")
TABLES = {"generic": (8, 2), "spatial": (9, 2)}  # with accuracies: of models that see, of texts
FACTS = {2: 5}  # tables whose models' parameters another one has, too


def sizes(store: Store, question_set: QuestionSet, metric: str, subset: str) -> pd.DataFrame:
    """An accuracy of a subset, of the runs of a question set and of the models that VISLA prints.

    Args:
        store: Where results are.
        question_set: Of VISLA.
        metric: One of ACCURACIES.
        subset: One of TABLES.

    Returns:
        source ("run" or "published"), model, parameters and samples (millions, of weights and of
        pairs of pre-training; NaN if unknown), value, low, high (shares), note.
    """
    for name, names in ((metric, ACCURACIES), (subset, TABLES)):
        if name not in names:
            raise NotFound("choice", name, names)
    by_subtype = estimates.estimates(store, question_set, "subtype").dropna(subset=["value"])
    # VISLA's own files are Generic_VISLA.tsv and Spatial_VISLA.tsv.
    of_metric = by_subtype.loc[by_subtype["metric"] == metric]
    of_subset = of_metric.loc[[belongs(name, (subset,)) for name in of_metric["slice"]]]
    rows = []
    for row in records(EstimateRow, of_subset):
        digest = question_set.run(row.model).model_digest
        rows.append(
            (
                *("run", row.model, printed.passport_facts(store, row.model, digest)["parameters"]),
                *(_samples(row.model), row.value, row.low, row.high, ""),
            )
        )
    columns = pd.Index(COLUMNS)
    return pd.DataFrame([*rows, *_published(metric, subset)], columns=columns)


def all_sizes(store: Store, question_set: QuestionSet) -> pd.DataFrame:
    """`sizes` of every accuracy and subset one below the other, with the columns metric and slice."""
    tables = [
        sizes(store, question_set, metric, subset).assign(metric=metric, slice=subset)
        for metric in ACCURACIES
        for subset in TABLES
    ]
    return pd.concat(tables, ignore_index=True)


def _published(metric: str, subset: str) -> list[tuple]:
    """The printed cells of an accuracy, with what the same tables print of the models' size and data."""
    cells = runs.published("visla")
    rows = []
    for number in TABLES[subset]:
        of_tables = cells.loc[cells["table"].isin([number, FACTS.get(number, number)])]
        facts = of_tables.loc[of_tables["dataset"] == "none"]
        is_accuracy = (
            (cells["table"] == number)
            & (cells["dataset"] == f"visla_{subset}")
            & (cells["metric"] == metric)
        )
        for cell in cells.loc[is_accuracy].to_dict("records"):
            of_model = facts.loc[facts["model"] == cell["model"]]
            value = cell["value"] * SCALE[cell["unit"]]
            size, data = (_fact(of_model, name) for name in ("parameters", "pretraining_samples"))
            rows.append(
                ("published", cell["model"], size, data, value, math.nan, math.nan, cell["note"])
            )
    return rows


def _fact(of_model: pd.DataFrame, name: str) -> float:
    """A printed fact in millions; NaN where the tables have none."""
    cells = of_model.loc[(of_model["metric"] == name) & (of_model["split"] == "all")]
    for cell in cells.to_dict("records"):
        return cell["value"] * printed.MILLIONS.get(cell["unit"], math.nan)
    return math.nan


def _samples(model: str) -> float:
    """Millions of pairs that VISLA prints of a model of the same weights; NaN where it prints none."""
    names = printed.printed_names("visla", model)
    cells = runs.published("visla")
    facts = cells.loc[[printed.plain(name) in names for name in cells["model"]]]
    return _fact(facts, "pretraining_samples")
