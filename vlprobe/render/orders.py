"""Effects of the caption order on the answers of models that ran in both orders."""

from collections.abc import Sequence

import pandas as pd

from vlprobe.render.sentences import share
from vlprobe.render.words import model_name
from vlprobe.views.records import EstimateRow, records

FLIPS, BOTH = "order_flips", "right_in_both_orders"


def order_sentences(
    estimates: pd.DataFrame, names: dict[str, str], models: Sequence[str] = ()
) -> list[str]:
    """Compute how often the answer of each model changes with the order, with its interval, and in how many
    orders the model is right: one or two sentences per model that ran in both.

    Args:
        estimates: What `views.estimates.estimates` returns, of all cases.
        names: Display names of models.
        models: The models to report; all if empty.
    """
    known = estimates.loc[estimates["value"].notna()]
    rows = {(row.model, row.metric): row for row in records(EstimateRow, known)}
    sentences = []
    for model in models or dict.fromkeys(model for model, _ in rows):
        flips, both = rows.get((model, FLIPS)), rows.get((model, BOTH))
        if flips is None or both is None:
            continue
        sentences.append(
            f"{names.get(model, model_name(model))} saw the captions in both orders: "
            f"{share(flips.value)} of its answers change with the order "
            f"(95 % interval {share(flips.low)} to {share(flips.high)}). It is right in both orders "
            f"in {share(both.value)}, in one in {share(flips.value)}, in neither in "
            f"{share(max(1 - both.value - flips.value, 0.0))}."
        )
    return sentences
