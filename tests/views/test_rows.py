"""Rows by number match a plain read of the whole file, cached or not; orders match those of `sorted`."""

import math
import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from vlprobe import views
from vlprobe.errors import InvalidInput
from vlprobe.storage import entry
from vlprobe.storage.store import Store
from vlprobe.views.tables import AnswerTable, CaseTable

ROWS = 23


@pytest.fixture
def store(tmp_path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Return a store with one run and its questions, in row groups of five."""
    monkeypatch.setattr(entry, "GROUP_ROWS", 5)
    cache = Store(tmp_path / "cache")
    cache.run("a").finish({"scores": answers(0)}, {})
    words = pa.table(
        {
            "case": range(ROWS),
            "kind": ["flip", "same"] * 11 + ["flip"],
            "texts": [[f"dog {case}"] * (case % 3) for case in range(ROWS)],
            "tags": pa.array(
                [[("place", str(case % 4))] for case in range(ROWS)],
                pa.map_(pa.string(), pa.string()),
            ),
        }
    )
    cache.cases("b").finish({"cases": words}, {})
    return cache


def answers(seed: int) -> pa.Table:
    margin = np.random.default_rng(seed).normal(size=ROWS).astype(np.float32)
    return pa.table({"case": range(ROWS), "margin": margin, "run": ["a"] * ROWS})


@pytest.mark.parametrize("few", [100, 0], ids=["from row groups", "by DuckDB"])
def test_rows_are_those_of_the_file_in_the_requested_order(store: Store, monkeypatch, few: int):
    monkeypatch.setattr(views.tables, "FEW", few)
    cases = CaseTable(store, "b")
    whole = pd.read_parquet(cases.path)
    for _ in range(2):  # once read and once from the cache
        found = cases.rows([22, 3, 99, 14, 4, -1], ("kind",))
        assert found.columns.tolist() == ["case", "texts", "tags"]
        assert found["case"].tolist() == [22, 3, 14, 4]
        for row in found.itertuples():
            assert list(row.texts) == list(whole["texts"][row.case])
            assert row.tags == dict(whole["tags"][row.case])
    assert cases.rows([], ()).columns.tolist() == whole.columns.tolist()


def test_cases_and_margins_are_by_number(store: Store):
    cases = CaseTable(store, "b")
    assert cases.numbers("kind = ?", ["same"]).tolist() == list(range(1, ROWS, 2))
    assert cases.numbers("kind = ?", ["other"]).tolist() == []
    assert AnswerTable(store, "a").margins.tolist() == answers(0)["margin"].to_pylist()


def test_a_rewritten_table_is_read_again(store: Store):
    before = AnswerTable(store, "a")
    before.margins, before.rows([3], ())
    store.run("a").finish({"scores": answers(1)}, {})
    expected = answers(1)["margin"].to_pylist()
    after = AnswerTable(store, "a")
    assert after.margins.tolist() == expected
    assert after.rows([3], ())["margin"].tolist() == expected[3:4]


def test_a_file_that_changes_while_it_is_read_is_refused_in_one_line(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    answered = AnswerTable(store, "a")
    known = views.tables._footer(answered.version)
    monkeypatch.setattr(views.tables, "_footer", lambda version: known)
    os.truncate(answered.path, 40)
    with pytest.raises(InvalidInput, match="cannot be read"):
        answered.rows([3], ())


def test_answers_in_another_order_than_the_questions_are_refused(
    store: Store,
):
    mixed = answers(0).take(pa.array([1, 0, *range(2, ROWS)]))
    store.run("c").finish({"scores": mixed}, {})
    with pytest.raises(InvalidInput, match="in a different order"):
        _ = AnswerTable(store, "c").margins


def sorted_keys(keys: np.ndarray, is_pictured: np.ndarray | None) -> np.ndarray:
    """Return the sort keys of the cases 0, 1, ..., of which these have pictures."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(views.rows, "are_pictured", lambda *_: is_pictured)
        return views.rows.pictured_first(*[None] * 3, keys)


@pytest.mark.parametrize("sort", views.filter.SORTS)
def test_a_page_is_a_slice_of_the_sorted_cases(sort: str):
    rng = np.random.default_rng(0)
    margin, other = rng.choice([-0.5, -0.0, 0.0, 0.25, 0.5, math.nan], size=(2, 200)).astype(
        np.float32
    )
    n_fooled = rng.integers(0, 4, 200)
    by = {
        "worst": lambda m, o, n: m,
        "closest": lambda m, o, n: abs(m),
        "best": lambda m, o, n: -m,
        "difference": lambda m, o, n: -abs(m - o),
        "models": lambda m, o, n: -n,
        "likeness": lambda m, o, n: n,
        "suspects_last": lambda m, o, n: n,
        "dataset": lambda m, o, n: 0.0,
    }[sort]
    keys = [by(float(m), float(o), int(n)) for m, o, n in zip(margin, other, n_fooled, strict=True)]
    known = [place for place in range(200) if not math.isnan(keys[place])]
    expected = [
        *sorted(known, key=keys.__getitem__),
        *(place for place in range(200) if math.isnan(keys[place])),
    ]
    is_pictured = rng.random(200) < 0.3
    pictures_first = sorted(expected, key=lambda place: not is_pictured[place])
    unordered = views.filter.SORTS[sort](margin, other, n_fooled)
    keys, mixed = (sorted_keys(unordered, pictured) for pictured in (None, is_pictured))
    for start, stop in ((0, 1), (0, 12), (60, 72), (130, 170), (190, 300), (200, 212), (500, 512)):
        for sort_keys, in_order in ((keys, expected), (mixed, pictures_first)):
            matches = views.cases.Matches(np.arange(200), margin, other, sort_keys)
            assert matches.order(start, stop).tolist() == in_order[start:stop]
