"""The tables of the papers made again: a user's runs in the columns that a paper prints, above the
rows that it prints.

A cell of a user's run is filled only where it means the same as the published one: the same metric
on the same kind of question. The pictures are others unless somebody ran the paper's own.
"""

import functools
import math
import re
from collections.abc import Mapping

import numpy as np
import pandas as pd

from vlprobe import registry
from vlprobe.metrics import pairs
from vlprobe.storage.store import Store
from vlprobe.types import AS_PAPER
from vlprobe.views import estimates, increases, seeds
from vlprobe.views import runs as views_runs
from vlprobe.views.paper_tables import ALL_SLICES, TABLES, Column, PaperTable
from vlprobe.views.records import EstimateRow, records
from vlprobe.views.released_files import by_released_file
from vlprobe.views.runs import QuestionSet

ROW_COLUMNS = ["source", "model", "column", "value", "low", "high", "n_items", "ties", "note"]
SPREAD_COLUMNS = ["sd", "n_seeds"]
HISTOGRAM_QUANTILE = 0.995  # of deviations; the last bin has all beyond
SCALE = {"percent": 0.01}  # of published units; rates are shares here
SAME_INCREASE = 1e-6  # increases that differ by less are of the same answers
MIXED = "Asked about kinds of edit beside the paper's: as a whole no number of the paper."
Cell = tuple[str, str, int, float, float, float, int, int, str]  # ROW_COLUMNS


def remade(store: Store, question_set: QuestionSet, number: int) -> pd.DataFrame:
    """A paper's table with the runs of one question set above what is published.

    Args:
        store: Where results are.
        question_set: Question set of the paper's probe.
        number: The table's number in the paper.

    Returns:
        source ("run" or "published"), model, column (index in `columns`), value, low, high,
        n_items, ties, note; sd and n_seeds (over how many draws; NaN and 0 with fewer than two); in
        the order of the rows. A run without the kind of question of a column has no value there: NaN.
    """
    table = _table(question_set.probe, number)
    cells = pd.DataFrame(
        run_cells(store, question_set, table) + _published_cells(question_set.probe, number),
        columns=pd.Index(ROW_COLUMNS),
    )
    return _with_spread(store, question_set, table, cells)


def _with_spread(
    store: Store, question_set: QuestionSet, table: PaperTable, cells: pd.DataFrame
) -> pd.DataFrame:
    """The cells with the spread of the runs' numbers over seeds."""
    drawn = seeds.spread(store, question_set, AS_PAPER)
    keys = zip(drawn["model"], drawn["metric"], drawn["slice"], strict=True)
    spread_of = dict(zip(keys, zip(drawn["sd"], drawn["n_seeds"], strict=True), strict=True))
    spreads = []
    for source, model, index in zip(cells["source"], cells["model"], cells["column"], strict=True):
        column = table.columns[index]
        slice_name = column.slices[0] if column.breakdown == "subtype" and column.slices else ""
        key = (model, column.metric, slice_name)
        spreads.append(spread_of.get(key, (math.nan, 0)) if source == "run" else (math.nan, 0))
    columns = pd.DataFrame(spreads, columns=pd.Index(SPREAD_COLUMNS), index=cells.index)
    return pd.concat([cells, columns], axis=1)


def _table(probe: str, number: int) -> PaperTable:
    return next(table for table in TABLES[probe] if table.number == number)


def run_cells(store: Store, question_set: QuestionSet, table: PaperTable) -> list[Cell]:
    """The cells of the stored runs, controls last, as remade returns them."""
    stored = {"all", *estimates.slices(store, question_set)}
    by_breakdown = {
        breakdown: estimates.estimates(store, question_set, breakdown, AS_PAPER)
        if breakdown in stored
        else pd.DataFrame(columns=pd.Index(estimates.COLUMNS))
        for breakdown in {column.breakdown for column in table.columns}
    }
    metrics, by_file = question_set.metrics, None
    if any(column.released for column in table.columns):
        by_file = by_released_file(store, question_set, by_breakdown["subtype"])
    mixed = estimates.mixed_kinds(store, question_set)
    cells = []
    for model in sorted(
        question_set.models,
        key=lambda name: (registry.is_control(name), registry.natural_order(name)),
    ):
        for index, column in enumerate(table.columns):
            if column.breakdown == "all" and mixed.intersection(metrics[column.metric].kinds):
                cells.append(("run", model, index, math.nan, math.nan, math.nan, 0, 0, MIXED))
                continue
            rows = _known(by_breakdown[column.breakdown], model, column.metric)
            if column.relative_to:
                cells.append(
                    ("run", model, index, *_increase(store, question_set, rows, column), "")
                )
            elif column.released and by_file is not None:
                of_file = _known(by_file, model, column.metric)
                of_file = of_file.loc[of_file["file"] == column.released]
                cells.append(("run", model, index, *_whole(of_file), ""))
            else:
                cells.append(("run", model, index, *_of_column(rows, column), ""))
    return cells


_Numbers = tuple[float, float, float, int, int]  # value, low, high, n_items, ties
_UNKNOWN: _Numbers = (math.nan, math.nan, math.nan, 0, 0)


def _of_column(rows: pd.DataFrame, column: Column) -> _Numbers:
    """Return the value of a column from the estimates of its model, metric and breakdown.

    A mean of slices has no interval.
    """
    if column.slices == (ALL_SLICES,):
        slices = records(EstimateRow, rows)
        value = float(np.mean([row.value for row in slices])) if slices else math.nan
        counts = sum(row.n_items for row in slices), sum(row.ties for row in slices)
        return value, math.nan, math.nan, *counts
    return _whole(rows.loc[[belongs(name, column.slices) for name in rows["slice"]]])


def _increase(
    store: Store, question_set: QuestionSet, rows: pd.DataFrame, column: Column
) -> _Numbers:
    """Return the value of a column that is relative to another slice, from the estimates of its model and metric;
    unknown where either slice is.

    The interval comes from the stored answers. A run of an older version may have counted them
    otherwise: where they do not give the number of its estimates, there is none.
    """
    of_slice, base = (
        records(EstimateRow, rows.loc[rows["slice"].isin(names)])
        for names in (column.slices, column.relative_to)
    )
    if len(of_slice) != 1 or len(base) != 1 or not base[0].value:
        return _UNKNOWN
    value = of_slice[0].value / base[0].value - 1
    n_items = min(of_slice[0].n_items, base[0].n_items)
    run = question_set.run(of_slice[0].model)
    drawn = increases.increase(
        store, question_set, run, column.metric, column.slices, column.relative_to
    )
    if not math.isclose(drawn.value, value, abs_tol=SAME_INCREASE):
        return value, math.nan, math.nan, n_items, 0
    return value, drawn.low, drawn.high, n_items, 0


def _whole(rows: pd.DataFrame) -> _Numbers:
    """The numbers of one estimate; unknown where there are several or none."""
    estimate_rows = records(EstimateRow, rows)
    if len(estimate_rows) != 1:
        return _UNKNOWN
    row = estimate_rows[0]
    return row.value, row.low, row.high, row.n_items, row.ties


def _known(table: pd.DataFrame, model: str, metric: str) -> pd.DataFrame:
    """The estimates of one model and metric that are not NaN."""
    return table.loc[(table["model"] == model) & (table["metric"] == metric)].dropna(
        subset=["value"]
    )


def belongs(name: str, slices: tuple[str, ...]) -> bool:
    """Return whether a slice has one of the names, or a word of its name is one: a file
    `eqkubric_counting` is `counting`.
    """
    return (
        not slices
        or name in slices
        or bool(set(re.split("[^a-z0-9]+", name.lower())) & set(slices))
    )


def rescaled(cells: pd.DataFrame) -> pd.Series:
    """The values of published cells in the units of this program: shares instead of per cents."""
    scales = np.array([SCALE.get(unit, 1.0) for unit in cells["unit"]], dtype=np.float64)
    return pd.Series(cells["value"].to_numpy() * scales, index=cells.index)


# 43 ms for a table of LGIP, and what is printed does not change.
@functools.cache
def _published_cells(probe: str, number: int) -> list[Cell]:
    """The cells that the paper prints."""
    table = _table(probe, number)
    published = views_runs.published(table.paper or probe)
    published = published.loc[published["table"] == table.number]
    cells = []
    for split_start, label in table.rows.items() or [("", "")]:
        for model in dict.fromkeys(published["model"]):
            of_model = published.loc[published["model"] == model]
            for index, column in enumerate(table.columns):
                value, note = _published_value(of_model, column, split_start)
                cells.append(
                    ("published", label or model, index, value, math.nan, math.nan, 0, 0, note)
                )
    return cells


def _published_value(of_model: pd.DataFrame, column: Column, split_start: str) -> tuple[float, str]:
    """Return the printed value of a model in a column, and its note; NaN where the paper has no cell for it."""
    dataset, split, metric = column.published
    split = f"{split_start}/{split}" if split_start else split
    datasets = column.datasets or (dataset,)
    is_cell = (
        (of_model["metric"] == metric)
        & (of_model["split"] == split)
        & of_model["dataset"].isin(datasets)
    )
    cells = of_model.loc[is_cell]
    if len(cells) != len(datasets):
        return math.nan, ""
    return column.sign * float(rescaled(cells).mean()), "; ".join(
        dict.fromkeys(filter(None, cells["note"]))
    )


def deviations(
    store: Store, question_set: QuestionSet, unit: str = "cosine", subset: str = "", bins: int = 40
) -> pd.DataFrame:
    """Return the histogram of EqBen's equivariance deviation over the pairs (of a subset), in bins that all models
    share.

    Returns:
        model, left, right, share (of the model's pairs; the last bin has all beyond); empty without
        two pictures.
    """
    by_model = {}
    for run in question_set.runs:
        with store.cursor() as cursor:
            rows = cursor.execute(
                "SELECT scores[1] AS score_0, scores[2] AS score_1, scores[3] AS score_2, scores[4] AS score_3 "
                "FROM read_parquet(?) WHERE kind = 'pair' AND (? = '' OR subtype = ?)",
                [store.files([run.key], "scores"), subset, subset],
            ).df()
        values = pairs.equivariance_deviation(rows) / (
            (run.spread or math.nan) if unit == "spread" else 1.0
        )
        by_model[run.model] = values[~np.isnan(values)]
    pooled = np.concatenate([*by_model.values(), [0.0]])
    edges = np.linspace(0, np.quantile(pooled, HISTOGRAM_QUANTILE) or 1.0, bins + 1)
    return histograms({model: values for model, values in by_model.items() if len(values)}, edges)


def histograms(values_by_name: Mapping[str, np.ndarray], edges: np.ndarray) -> pd.DataFrame:
    """Shares of values in bins: model (the name), left, right, share; the last bin has all beyond.

    Args:
        values_by_name: Each of shape (n,), n > 0.
        edges: Edges of the bins, rising, shape (bins + 1,).
    """
    columns = ["model", "left", "right", "share"]
    tables = []
    for name, values in values_by_name.items():
        counts = np.histogram(np.minimum(values, edges[-1]), edges)[0]
        bins = {"left": edges[:-1], "right": edges[1:], "share": counts / len(values)}
        tables.append(pd.DataFrame({"model": name, **bins}))
    return (
        pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=pd.Index(columns))
    )


def gallery_size(store: Store, question_set: QuestionSet) -> float:
    """Count the pictures in the galleries of PRSM's queries; NaN where galleries differ in size."""
    with store.cursor() as cursor:
        rows = cursor.execute(
            "SELECT min(gallery_size), max(gallery_size) FROM read_parquet(?)",
            [store.files([question_set.runs[0].key], "scores")],
        ).fetchall()
    smallest, largest = rows[0]
    return float(smallest) if smallest == largest else math.nan


def chances(store: Store, question_set: QuestionSet) -> dict[str, float]:
    """Return the value of guessing on each metric of a question set, by name; NaN where that is not defined."""
    levels = {name: metric.chance for name, metric in question_set.metrics.items()}
    if question_set.probe == "prsm":
        size = gallery_size(store, question_set)
        depths = {
            name: int(name.rpartition("_")[2]) for name in levels if name.startswith("prsm_local_")
        }
        levels |= {
            name: depth / size if depth < size else math.nan for name, depth in depths.items()
        }
    return levels
