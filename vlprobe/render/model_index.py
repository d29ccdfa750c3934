"""Numbers of one model as the `model-index` of a model card on the Hugging Face hub."""

import math
from collections.abc import Sequence

from vlprobe import __version__
from vlprobe.errors import printable
from vlprobe.render.words import dataset_name, model_name
from vlprobe.types import Metric
from vlprobe.views.records import EstimateRow, RunRow

TASK = "other"  # the hub has no task of its own for these questions


def model_index(run: RunRow, estimates: Sequence[EstimateRow], metrics: dict[str, Metric]) -> str:
    """The block as YAML, to be pasted between the two lines `---` of a model card.

    Paths of this machine are in no name; unknown numbers are left out, since the format has no word
    for them.

    Args:
        run: Run of the model.
        estimates: Its numbers over all cases.
        metrics: Metrics of the probe, by name.
    """
    from huggingface_hub import EvalResult, ModelCardData

    data_name = printable(dataset_name(run.dataset))
    results = [
        EvalResult(
            task_type=TASK,
            task_name=f"vlprobe {run.probe}",
            dataset_type=run.dataset.partition(":")[0],
            dataset_name=f"{data_name} ({run.n_items:,} items{run.options})",
            metric_type=row.metric,
            metric_name=metrics[row.metric].label,
            metric_value=round(row.value, 4),
            metric_args={
                "averaging": row.averaging,
                "interval_95": [
                    None if math.isnan(bound) else round(bound, 4) for bound in (row.low, row.high)
                ],
                "items": row.n_items,
                "cases": row.n_cases,
                "vlprobe": __version__,
                "run": run.key,
            },
        )
        for row in estimates
        if not math.isnan(row.value)
    ]
    card = ModelCardData(model_name=printable(model_name(run.model)), eval_results=results)
    return card.to_yaml()
