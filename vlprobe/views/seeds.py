"""The spread of numbers between draws of altered captions or mixed pictures (RoCOCO, tables 4, 6
and 7: means over three).
"""

import pandas as pd

from vlprobe.storage.store import Store
from vlprobe.types import POOLED
from vlprobe.views import estimates
from vlprobe.views.runs import QuestionSet

COLUMNS = ["model", "metric", "slice", "n_seeds", "mean", "sd", "lowest", "highest"]
SEEDED_RULE = r"^(?P<drawn>.+):seed(?P<seed>[0-9]+)$"


def spread(
    store: Store, question_set: QuestionSet, averaging: str = POOLED, unit: str = "cosine"
) -> pd.DataFrame:
    """Mean and spread over seeds of each number that was drawn with more than one.

    Args:
        store: Where results are.
        question_set: The models and their runs.
        averaging: As of `estimates`; of the numbers of each seed.
        unit: As of `estimates`.

    Returns:
        A row a model, metric and slice (a policy, or a strength of mixed pictures): n_seeds (2 or
        more), mean, sd (of one seed, n - 1 below the line), lowest, highest. Empty where nothing was
        drawn twice.
    """
    none = pd.DataFrame(columns=pd.Index(COLUMNS))
    if "rule" not in estimates.slices(store, question_set):
        return none
    table = estimates.estimates(store, question_set, "rule", averaging, unit)
    table = table.dropna(subset=["value"])
    table["drawn"] = table["slice"].str.extract(SEEDED_RULE)["drawn"]
    order = ["model", "metric", "drawn"]
    by_draw = table.dropna(subset=["drawn"]).groupby(order, sort=False)["value"]
    numbers = by_draw.agg(n_seeds="count", mean="mean", sd="std", lowest="min", highest="max")
    numbers = numbers.reset_index().rename(columns={"drawn": "slice"})
    return numbers.loc[numbers["n_seeds"] > 1, COLUMNS].reset_index(drop=True)
