"""The papers' tables, rebuilt from runs, match plain loops over the estimates and the published cells."""

import csv
import json
import math
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from tests.conftest import case_key_of, question_set_of, tiers
from vlprobe import views
from vlprobe.metrics.resampling import RESAMPLES
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.store import Store
from vlprobe.types import Estimate

RANDOM = "control:random"
UNITS = {"percent": "1e-2", "thousand": "1e-3", "billion": "1e3"}
NUMBERS = [
    (probe, table.number) for probe, tables in views.published.TABLES.items() for table in tables
]
CELLS = defaultdict(list)  # published rows by paper, table, metric and split
with (
    Path(views.published.__file__)
    .with_name("published.csv")
    .open(encoding="utf-8", newline="") as _file
):
    for _row in csv.DictReader(_file):
        CELLS[_row["paper"], _row["table"], _row["metric"], _row["split"]].append(_row)


def table_of(probe: str, number: int) -> views.published.PaperTable:
    return next(table for table in views.published.TABLES[probe] if table.number == number)


@pytest.fixture(scope="module")
def cells(every_probe: Store) -> Callable[[str, int], pd.DataFrame]:
    """Return a function from a probe and the number of a table to its cells, with a cache."""

    @cache
    def compute(probe: str, number: int) -> pd.DataFrame:
        question_set = question_set_of(every_probe, probe)
        return views.papers.remade(question_set, number)

    return compute


@pytest.mark.parametrize(("probe", "number"), NUMBERS)
def test_published_cells_match_the_paper_in_shares_and_cosines(cells, probe: str, number: int):
    found = cells(probe, number).query("source == 'published'")
    table = table_of(probe, number)
    for cell in found.itertuples():
        column = table.columns[cell.column]
        split, metric = column.split, column.printed_metric
        starts = [start for start, label in table.rows.items() if label == cell.model]
        split = f"{starts[0]}/{split}" if starts else split
        printed = [
            column.sign * float(row["value"]) * float(UNITS.get(row["unit"], 1))
            for row in CELLS.get((table.paper, str(number), metric, split), ())
            if row["dataset"] in column.datasets and (starts or row["model"] == cell.model)
        ]
        if printed:
            assert cell.value == pytest.approx(sum(printed) / len(printed))
        else:
            assert math.isnan(cell.value)
    assert found.groupby("column")["value"].count().gt(0).all()  # no column has a wrong name


@pytest.mark.parametrize(("probe", "number"), NUMBERS)
def test_cells_of_runs_are_the_estimates(every_probe: Store, cells, probe: str, number: int):
    key = case_key_of(every_probe, probe)
    found = cells(probe, number).query("source == 'run' and model == @RANDOM")
    columns = table_of(probe, number).columns
    assert len(found) == len(columns)
    estimates = {
        by: views.estimates.estimates(views.runs.question_set(every_probe, key), by, "macro")
        for by in {column.breakdown for column in columns} - {"fact"}
    }
    if any(column.breakdown == "fact" for column in columns):
        question_set = views.runs.question_set(every_probe, key)
        printed = views.papers.beside(question_set, RANDOM)
    for cell in found.itertuples():
        column = columns[cell.column]
        if column.breakdown == "fact":
            of_column = (printed["table"] == number) & (printed["metric"] == column.metric)
            millions = printed[of_column & printed["unit"].isin(["million", "count"])]["run"]
            assert cell.value == pytest.approx(millions.iloc[0], nan_ok=True)
            continue
        own = estimates[column.breakdown].query("model == @RANDOM and metric == @column.metric")
        if column.breakdown == "all":
            assert cell.value == pytest.approx(own["value"].iloc[0], nan_ok=True)
            assert cell.low == pytest.approx(own["low"].iloc[0], nan_ok=True)
        elif column.relative_to:
            values = own.set_index("slice")["value"]
            increase = values[column.slices[0]] / values[column.relative_to[0]] - 1
            assert cell.value == pytest.approx(increase, nan_ok=True)
        elif column.slices == ("*",):
            assert cell.value == pytest.approx(own["value"].mean(), nan_ok=True)
        else:
            named = own[own["slice"].isin(column.slices)]["value"]
            assert cell.value == pytest.approx(
                named.iloc[0] if len(named) else math.nan, nan_ok=True
            )


@pytest.mark.parametrize(
    ("file", "heading"),
    tiers(
        [("danger", "Danger"), ("same_concept", "Same concept"), ("mine", None)],
        [("danger", "Danger")],
    ),
)
def test_a_run_on_a_released_file_fills_the_columns_of_its_kind_of_alteration(
    store: Store, tmp_path, file, heading
):
    """Check against the stored answers; a file with another name fills only the column of the clean gallery."""
    rows = []
    for number in range(6):
        name = f"COCO_val2014_{number:012}.jpg"
        Image.new("RGB", (32, 32), (40 * number, 9, 9)).save(tmp_path / name)
        captions = [
            f"{thing} number {number}, version {v}."
            for thing in ("A dog", "A gun")
            for v in range(5)
        ]
        rows.append({"image": f"val2014/{name}", "caption": captions})
    (tmp_path / f"{file}.json").write_text(json.dumps(rows))
    request = Request(
        (RANDOM,),
        f"rococo:{tmp_path / file}.json@{tmp_path}",
        "rococo",
        {"pictures": []},
        examine=False,
    )
    manifest = execute(request, store)[0]
    answers = store.run(manifest["key"]).table("scores").to_pandas()
    clean, new = ((answers[name] == 1).mean() for name in ("rank_clean", "rank"))
    drop = (clean - new) / clean if clean else math.nan
    expected = {"i2t_r1_new": new, "i2t_rsms": answers["top_altered"].mean(), "i2t_drop_rate": drop}
    columns = table_of("rococo", 3).columns
    found = views.papers.remade(views.runs.question_set(store, manifest["case_key"]), 3).query(
        "source == 'run'"
    )
    for cell in found.itertuples():
        column = columns[cell.column]
        if column.group == "Clean gallery":
            assert cell.value == clean
        elif column.group == heading:
            assert cell.value == pytest.approx(expected[column.metric], nan_ok=True)
        else:
            assert math.isnan(cell.value)


def test_the_increase_of_advanced_rewordings_matches_means_by_caption(every_probe: Store):
    """Check LGIP's Adv % with the stored answers: the mean by caption of the movement of each rewording."""
    question_set = question_set_of(every_probe, "lgip")
    found = views.papers.remade(question_set, 4)
    (index,) = (n for n, column in enumerate(table_of("lgip", 4).columns) if column.relative_to)
    run = question_set.run(RANDOM)
    cases = every_probe.cases(question_set.key).table("cases").to_pylist()
    answers = every_probe.run(run.key).table("scores").to_pylist()
    moved: dict[str, dict[str, list[float]]] = {"simple": {}, "advanced": {}}
    unit_of, codes = {}, dict.fromkeys(case["cluster"] for case in cases)
    for case, answer in zip(cases, answers, strict=True):
        unit_of[case["group"]] = list(codes).index(case["cluster"])
        if case["kind"] == "paraphrase":
            distance = abs(answer["scores"][0] - answer["scores"][1])
            moved[case["subtype"]].setdefault(case["group"], []).append(distance)
    simple, advanced = (
        np.mean([np.mean(values) for values in by_caption.values()])
        for by_caption in moved.values()
    )
    cell = found[(found["model"] == RANDOM) & (found["column"] == index)].iloc[0]
    assert cell["value"] == pytest.approx(advanced / simple - 1, rel=1e-4)
    assert cell["low"] < cell["value"] < cell["high"]

    drawn = []
    for number in range(RESAMPLES):
        units = np.random.default_rng([run.n_units, number]).integers(run.n_units, size=run.n_units)
        times = np.bincount(units, minlength=run.n_units)
        means = [
            np.average(
                [np.mean(values) for values in by_caption.values()],
                weights=[times[unit_of[caption]] for caption in by_caption],
            )
            for by_caption in moved.values()
        ]
        drawn.append(means[1] / means[0] - 1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    assert (cell["low"], cell["high"]) == pytest.approx((low, high), rel=1e-3)


def test_an_increase_has_no_interval_if_the_stored_answers_give_another_number(
    every_probe: Store, monkeypatch
):
    """Check a run that an older version counted in another way."""
    question_set = question_set_of(every_probe, "lgip")
    (index,) = (n for n, column in enumerate(table_of("lgip", 4).columns) if column.relative_to)
    place = f"source == 'run' and model == @RANDOM and column == {index}"
    stored = views.papers.remade(question_set, 4).query(place).iloc[0]
    other, remember = Estimate(stored["value"] + 0.1, 0.0, 9.0, 5), views.tables.remember
    monkeypatch.setattr(
        "vlprobe.views.papers.remember",
        lambda key, compute: other if key[0] == "increase" else remember(key, compute),
    )
    cell = views.papers.remade(question_set, 4).query(place).iloc[0]
    assert cell["value"] == stored["value"] and cell["n_items"] == stored["n_items"]
    assert math.isnan(cell["low"]) and math.isnan(cell["high"])


def test_drop_rates_are_positive_although_the_paper_prints_them_as_negative(cells):
    found = cells("rococo", 3)
    clip = found[(found["model"] == "CLIP ViT-B/32 (zero-shot)") & (found["column"] == 2)].iloc[0]
    assert clip["value"] == pytest.approx(0.2639)


@pytest.mark.parametrize(
    ("name", "slices", "belongs"),
    [
        ("counting", ("counting", "number"), True),
        ("eqkubric_counting", ("counting", "number"), True),
        ("eqbench_ag_test", ("ag",), True),
        ("eqbench_image_test", ("ag",), False),
        ("mix:0.9", ("mix:0.9",), True),
        ("rand-voca:2", ("rand-voca",), False),
        ("anything", (), True),
    ],
)
def test_a_slice_belongs_to_a_column_by_its_name_or_a_word_of_it(
    name: str, slices: tuple, belongs: bool
):
    assert views.papers.belongs(name, slices) is belongs


@pytest.mark.parametrize("unit", ["cosine", "spread"])
def test_deviations_match_those_of_a_loop(every_probe: Store, unit: str):
    question_set = question_set_of(every_probe, "eqben")
    found = views.papers.deviations(question_set, unit, bins=5).query("model == @RANDOM")
    run = question_set.run(RANDOM)
    values = []
    for a, b, c, d in pd.read_parquet(every_probe.root / "runs" / run.key / "scores.parquet")[
        "scores"
    ].map(tuple):
        values.append(
            (abs((a - b) - (d - c)) + abs((a - c) - (d - b)))
            / (run.spread if unit == "spread" else 1)
        )
    assert found["share"].sum() == pytest.approx(1)
    for row in found.itertuples():
        last = row.right == found["right"].max()
        inside = [value for value in values if row.left <= value and (last or value < row.right)]
        assert row.share == pytest.approx(len(inside) / len(values), abs=1.01 / len(values))
    assert np.quantile(values, 0.9) <= found["right"].max() <= max(values) + 1e-6


def test_the_chance_level_of_an_overlap_depends_on_the_gallery(every_probe: Store):
    key = case_key_of(every_probe, "prsm")
    assert views.papers.gallery_size(views.runs.question_set(every_probe, key)) == 6
    known = views.papers.chances(views.runs.question_set(every_probe, key))
    assert math.isnan(known["prsm_local_10"])  # the gallery has fewer than ten other pictures
    assert known["prsm_global"] == 0
    assert views.papers.chances(question_set_of(every_probe, "eqben"))[
        "group_score"
    ] == pytest.approx(1 / 6)
