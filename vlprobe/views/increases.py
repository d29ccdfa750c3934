"""The relative increase of a metric on some slices of a run over others, with its interval."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from vlprobe.metrics import estimate
from vlprobe.metrics.increases import increases
from vlprobe.storage.store import Store
from vlprobe.types import Estimate, Measure
from vlprobe.views import rows as views_rows
from vlprobe.views.records import RunRow
from vlprobe.views.runs import QuestionSet


def increase(
    store: Store,
    question_set: QuestionSet,
    run: RunRow,
    metric: str,
    slices: Sequence[str],
    base: Sequence[str],
) -> Estimate:
    """Compute the share by which the mean by group of a metric on some subtypes exceeds that on others.

    Args:
        store: Where results are.
        question_set: The question set of the run.
        run: Run of one model.
        metric: Computed from only the margin, unweighted.
        slices: Names of subtypes.
        base: Names of the subtypes that they are compared with.
    """
    version = views_rows.answers_version(store, run.key)
    sides = tuple(slices), tuple(base)

    def compute() -> Estimate:
        pair = [_measure(store, question_set, run, metric, names) for names in sides]
        units = views_rows.unit_codes(store, question_set.key)
        return increases([(pair[0], pair[1])], max(run.n_units, int(units.max(initial=-1)) + 1))[0]

    return views_rows.remember(("increase", version, metric, *sides), compute)


def _measure(
    store: Store, question_set: QuestionSet, run: RunRow, metric: str, names: Sequence[str]
) -> Measure:
    """A metric's mean within each group of the cases of these subtypes."""
    judged = question_set.metrics[metric]
    numbers = views_rows.case_numbers(
        store,
        question_set.key,
        "list_contains(?, kind) AND list_contains(?, subtype)",
        [tuple(judged.kinds), tuple(names)],
    )
    margins = views_rows.margins(store, run.key)[numbers]
    value = np.where(np.isnan(margins), np.nan, judged.value(pd.DataFrame({"margin": margins})))
    groups = views_rows.group_codes(store, question_set.key)[numbers]
    items = views_rows.unit_codes(store, question_set.key)[numbers]
    return estimate.macro(value, np.ones(len(value)), groups, items)
