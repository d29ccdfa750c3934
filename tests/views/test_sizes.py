"""Accuracy by model size and training data: published facts from the file, parameters counted in the model."""

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest

from vlprobe import registry, views
from vlprobe.errors import NotFound
from vlprobe.render.charts.styles import styles
from vlprobe.render.html import papers
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage import shipped
from vlprobe.storage.store import Store
from vlprobe.views import figures

MODEL = "demo:weak"
with (
    Path(views.published.__file__)
    .with_name("published.csv")
    .open(encoding="utf-8", newline="") as _file
):
    ROWS = [row for row in csv.DictReader(_file) if row["paper"] == "visla"]


@pytest.fixture(scope="module")
def store() -> Store:
    return Store(shipped.FOLDER)


@pytest.fixture(scope="module")
def visla(store: Store) -> views.runs.QuestionSet:
    keys = views.runs.question_sets(store).set_index("probe")["case_key"]
    return views.runs.question_set(store, keys["visla"])


def test_a_run_has_the_parameters_of_its_model_and_the_estimated_accuracy(store, visla):
    model = registry.load_model(MODEL, "cpu")
    counted = sum(weights.numel() for weights in model._model.parameters())
    table = figures.sizes(visla, "i2t_accuracy", "spatial")
    (row,) = table[(table["source"] == "run") & (table["model"] == MODEL)].itertuples()
    assert row.parameters == pytest.approx(counted / 1e6)
    assert math.isnan(row.samples)  # no paper publishes its training data
    estimates = views.estimates.estimates(visla, "subtype")
    estimate = estimates.query(
        "model == @MODEL and metric == 'i2t_accuracy' and slice == 'spatial'"
    )
    assert (row.value, row.low, row.high) == tuple(estimate[["value", "low", "high"]].iloc[0])


@pytest.mark.parametrize(("metric", "kind"), [("t2t_accuracy", "t2t"), ("i2t_accuracy", "i2t")])
@pytest.mark.parametrize(("subset", "number"), [("generic", "8"), ("spatial", "9")])
def test_published_models_have_the_size_and_data_of_their_table(
    store, visla, metric, kind, subset, number
):
    table = figures.sizes(visla, metric, subset).query("source == 'published'")
    million = {"million": 1, "billion": 1000}

    def fact(model: str, name: str) -> float:
        for row in ROWS:
            if (row["table"], row["model"], row["metric"]) == (number, model, name):
                return float(row["value"]) * million[row["unit"]]
        return math.nan

    expected = {
        row["model"]: (
            float(row["value"]) / 100,
            fact(row["model"], "parameters"),
            fact(row["model"], "pretraining_samples"),
        )
        for row in ROWS
        if (row["table"], row["dataset"], row["split"], row["metric"])
        == (number, f"visla_{subset}", kind, metric)
    }
    facts = {row.model: (row.value, row.parameters, row.samples) for row in table.itertuples()}
    assert len(expected) >= 30
    for model, numbers in expected.items():
        assert facts[model] == pytest.approx(numbers, nan_ok=True)


def test_text_encoder_sizes_are_published_relative_to_bert_base(store, visla):
    """Check the sizes of table 2, which are relative to BERT-base with 109.5 million parameters."""
    table = figures.sizes(visla, "t2t_accuracy", "generic").set_index("model")
    (printed,) = (
        row["value"]
        for row in ROWS
        if (row["table"], row["model"], row["metric"]) == ("2", "GTE-large", "parameters")
    )
    assert table.loc["GTE-large", "parameters"] == pytest.approx(float(printed) * 109.5)
    assert table.loc["GTE-large", "samples"] != table.loc["GTE-large", "samples"]  # not published
    assert "GTE-large" not in set(figures.sizes(visla, "i2t_accuracy", "generic")["model"])


def test_facts_of_a_run_s_model_are_shown_next_to_published_ones_in_their_unit(store, visla):
    cells = views.papers.beside(visla, MODEL)
    counted = views.papers.passport_facts(store, MODEL, visla.run(MODEL).model_digest)
    facts = cells[(cells["dataset"] == "none") & (cells["table"] == 6)]
    parameters = facts[(facts["metric"] == "parameters") & (facts["unit"] == "million")]
    assert len(parameters) and (parameters["run"] == counted["parameters"]).all()
    assert (facts[facts["metric"] == "embedding_dimension"]["run"] == 128).all()
    assert facts[facts["metric"] == "pretraining_samples"]["run"].isna().all()
    relative = cells[(cells["unit"] == "times BERT-base")]["run"]
    assert len(relative) and relative.tolist() == pytest.approx(
        [counted["parameters"] / 109.5] * len(relative)
    )


def test_table_6_has_the_model_of_the_run_above_the_published_ones(store, visla):
    """Check the published values, read from the paper by hand, in millions."""
    cells = views.papers.remade(visla, 6)
    values = {name: rows["value"].tolist() for name, rows in cells.groupby(["source", "model"])}
    weights = views.papers.passport_facts(store, MODEL, visla.run(MODEL).model_digest)["parameters"]
    assert values["run", MODEL][:2] == [weights, 128]
    assert np.isnan(values["run", MODEL][2:]).all()
    printed = {
        "RoBERTa-ViT-B-32": [212, 512, 2000, np.nan],
        "ALIGN": [490, 640, 1800, np.nan],
        "XVLM-16M-Flickr": [216, 256, 16, 0.03],
        "CLIP-SVLC": [151, 512, 400, 400],
        "BLIP2": [1173, 256, 129, np.nan],
    }
    for model, row in printed.items():
        np.testing.assert_allclose(values["published", model], row, equal_nan=True)
    published = cells[cells["source"] == "published"]
    # 21 models with three facts, seven of them fine-tuned; 4M of SegCLIP's "400M+4M" is in a note
    assert published["model"].nunique() == 21 and published["value"].count() == 21 * 3 + 7
    assert "printed as 400M+4M" in set(published["note"])

    table = next(each for each in views.published.TABLES["visla"] if each.number == 6)
    drawn = papers.remade(cells, table, visla.metrics, styles(list(visla.models)))
    assert ">1,173<" in drawn.table and ">0.03<" in drawn.table and ">2,000<" in drawn.table
    assert "Parameters (million)" in drawn.table and "%" not in drawn.table
    assert drawn.remark.endswith("- = unknown.")


def test_the_training_data_of_a_published_model_is_known_by_its_weights():
    assert figures._samples("openclip:RN50/openai") == 400
    assert math.isnan(figures._samples(MODEL))


@pytest.mark.parametrize(
    ("metric", "subset"), [("pair_accuracy", "generic"), ("t2t_accuracy", "x")]
)
def test_an_unpublished_metric_or_subset_is_refused(store, visla, metric, subset):
    with pytest.raises(NotFound):
        figures.sizes(visla, metric, subset)


def test_the_command_prints_all_sizes():
    from tests.conftest import call

    store = Store(shipped.FOLDER)
    manifest = next(
        each
        for each in store.runs()
        if (each["run"]["probe"], each["run"]["model"]) == ("visla", MODEL)
    )
    words = ("show", manifest["key"], "--by", "size", "--format", "json")
    listed = json.loads(call(shipped.FOLDER, *words).stdout)
    assert {(row["metric"], row["slice"]) for row in listed} == {
        (metric, subset) for metric in figures.ACCURACIES for subset in figures.SIZE_TABLES
    }
    assert {row["source"] for row in listed} == {"run", "published"}


def test_runs_on_visla_s_released_file_names_are_found(tmp_path: Path):
    header = "filename\tcaption\tsecond positive\tnegative_caption\n"
    triplets = [
        f"{n}.jpg\tA {thing} on a bench.\tOn a bench is a {thing}.\tA bench on a {thing}.\n"
        for n, thing in enumerate(("cat", "dog", "bird", "bus", "boat", "horse"))
    ]
    results = Store(tmp_path / "cache")
    for name in ("Generic_VISLA", "Spatial_VISLA"):
        file = tmp_path / f"{name}.tsv"
        file.write_text(header + "".join(triplets), encoding="utf-8")
        (manifest,) = execute(
            Request((MODEL,), f"triplets:{file}", "visla", examine=False), results
        )
        question_set = views.runs.question_set(results, manifest["case_key"])
        (estimate,) = (
            views.estimates.estimates(question_set)
            .query("metric == 't2t_accuracy'")["value"]
            .tolist()
        )
        for subset in figures.SIZE_TABLES:
            table = figures.sizes(question_set, "t2t_accuracy", subset)
            values = table.loc[table["source"] == "run", "value"].tolist()
            assert values == ([estimate] if name.lower().startswith(subset) else [])
        assert (figures.all_sizes(question_set)["source"] == "run").sum() == 1
