"""Convert one model's metrics to the `model-index` format of a Hugging Face model card."""

import math
from collections.abc import Mapping, Sequence

from vlprobe import __version__
from vlprobe.errors import printable
from vlprobe.render.words import dataset_name, model_name
from vlprobe.types import Metric
from vlprobe.views.records import EstimateRow, RunRow

TASK = "other"  # the Hub has no task for these questions


def model_index(runs: Sequence[tuple[RunRow, Sequence[EstimateRow], Mapping[str, Metric]]]) -> str:
    """Return a model's metrics as YAML, to be pasted between the two `---` lines of a model card.

    Local paths are removed from names. Unknown values are omitted, because the format cannot express them.

    Args:
        runs: At least one run of the model. Each has its estimates over all cases, and its probe's metrics by name.
    """
    from huggingface_hub import EvalResult, ModelCardData

    results = [
        EvalResult(
            task_type=TASK,
            task_name=f"vlprobe {run.probe}",
            dataset_type=run.dataset.partition(":")[0],
            dataset_name=f"{printable(dataset_name(run.dataset))} ({run.n_items:,} items{run.options})",
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
        for run, estimates, metrics in runs
        for row in estimates
        if not math.isnan(row.value)
    ]
    card = ModelCardData(model_name=printable(model_name(runs[0][0].model)), eval_results=results)
    return card.to_yaml()
