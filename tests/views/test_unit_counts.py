"""Counts by type and unit of resampling match plain loops over the cases, in SQL's order."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest

from tests.views.believed_scenes import count
from tests.views.conftest import MODELS
from vlprobe import views
from vlprobe.storage.store import Store
from vlprobe.views.unit_counts import unit_counts


def count_by_loop(rows: pd.DataFrame, models: Sequence[str], kind: str) -> pd.DataFrame:
    """Return the counts by loops, sorted as by SQL."""
    of_kind = rows[rows["kind"] == kind]
    margins = {f"margin_{place}": of_kind[model] for place, model in enumerate(models)}
    counted = count(
        pd.DataFrame({"subtype": of_kind["subtype"], "unit": of_kind["item"], **margins})
    )
    return counted.sort_values(["subtype", "n_cases", "unit"], ignore_index=True)


@pytest.mark.parametrize("kind", ["flip", "combined", "paraphrase"])
def test_counts_and_their_order_match_a_loop(
    filled: Store, key: str, rows: pd.DataFrame, kind: str
):
    question_set = views.runs.question_set(filled, key)
    runs = [question_set.run(model) for model in MODELS[:3]]
    counted = pd.DataFrame(dict(unit_counts(filled, key, runs, kind, with_movements=True)))
    by_loop = count_by_loop(rows, MODELS[:3], kind)
    assert len(counted) and set(counted.columns) == set(by_loop.columns)
    names = sorted(rows["item"].unique())
    assert [names[place] for place in counted["unit"]] == by_loop["unit"].tolist()
    for name in by_loop.columns.drop("unit"):
        if "moved" in name:
            assert counted[name].to_numpy() == pytest.approx(by_loop[name].to_numpy(), abs=1e-6)
        else:
            assert counted[name].tolist() == by_loop[name].tolist(), name


def test_a_pair_has_the_same_counts_in_either_order_and_no_movements_by_default(
    filled: Store, key: str, rows: pd.DataFrame
):
    question_set = views.runs.question_set(filled, key)
    for models in (MODELS[:3], MODELS[2::-1]):
        runs = [question_set.run(model) for model in models]
        counted = unit_counts(filled, key, runs, "flip")
        by_loop = count_by_loop(rows, models, "flip")
        assert set(counted) == {name for name in by_loop.columns if "moved" not in name}
        for name in set(counted) - {"unit"}:
            assert list(counted[name]) == by_loop[name].tolist(), name


def test_a_kind_without_cases_has_no_row(filled: Store, key: str):
    question_set = views.runs.question_set(filled, key)
    runs = [question_set.run(model) for model in MODELS[:2]]
    counted = unit_counts(filled, key, runs, "not asked")
    assert not len(counted["unit"]) and "both_fooled_1" in counted
    assert counted["answered_0"].dtype == np.int64
