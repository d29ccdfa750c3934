"""Sums of a run as measures: the rows that DuckDB selects from the file, from any row group."""

import numpy as np
import pyarrow as pa
import pytest

from vlprobe.errors import StoredDamage
from vlprobe.storage.entry import GROUP_ROWS
from vlprobe.storage.store import Store
from vlprobe.views import paired_tests

KEY = "a" * 16
N_ROWS = 3 * GROUP_ROWS + 5


@pytest.fixture
def sums_store(store: Store) -> Store:
    """Return a run whose first row group lacks a metric of the later ones, with weights of 0."""
    random = np.random.default_rng(3)
    metrics = np.array(["drop_rate", "recall", "rsms"])[random.integers(0, 3, N_ROWS)]
    metrics[:GROUP_ROWS] = "recall"
    columns = {
        "metric": metrics,
        "averaging": np.array(["macro", "micro"])[random.integers(0, 2, N_ROWS)],
        "item_code": np.arange(N_ROWS, dtype=np.int32),
        "total": random.normal(size=N_ROWS),
        "weight": random.integers(0, 4, N_ROWS).astype(float),
    }
    store.run(KEY).finish({"sums": pa.table(columns)}, {})
    return store


def test_measures_are_the_rows_that_duckdb_selects_in_order(sums_store: Store):
    wanted = [("recall", "micro"), ("rsms", "macro")]
    measures = paired_tests.read_measures(sums_store, KEY, wanted)
    assert list(measures) == wanted
    for (metric, averaging), measure in measures.items():
        with sums_store.cursor() as cursor:
            expected = cursor.execute(
                "SELECT total / weight AS value, weight, item_code AS item FROM read_parquet(?) "
                "WHERE metric = ? AND averaging = ? AND weight > 0",
                [sums_store.files([KEY], "sums"), metric, averaging],
            ).fetchnumpy()
        has_weight = measure.weight > 0
        assert not has_weight.all()
        for name, column in expected.items():
            np.testing.assert_array_equal(getattr(measure, name)[has_weight], column)


def test_a_metric_that_a_run_lacks_has_a_measure_without_rows(sums_store: Store):
    measure = paired_tests.read_measures(sums_store, KEY, [("group_score", "macro")])[
        "group_score", "macro"
    ]
    assert len(measure.value) == len(measure.weight) == len(measure.item) == 0


def test_sums_that_are_deleted_while_they_are_read_count_as_damage(
    monkeypatch: pytest.MonkeyPatch, sums_store: Store
):
    monkeypatch.setattr(
        sums_store, "files", lambda keys, table: [str(sums_store.root / "gone.parquet")]
    )
    with pytest.raises(StoredDamage, match="cannot be read"):
        paired_tests.read_measures(sums_store, KEY, [("recall", "macro")])
