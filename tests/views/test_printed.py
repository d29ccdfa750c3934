"""Every printed cell beside a run, compared with the file read by hand and with plain loops over the estimates."""

import csv
from pathlib import Path

import pytest

from vlprobe import views
from vlprobe.errors import NotFound
from vlprobe.storage.store import Store
from vlprobe.views import papers as printed

RANDOM = "control:random"
with (
    Path(views.published.__file__)
    .with_name("published.csv")
    .open(encoding="utf-8", newline="") as _file
):
    ROWS = list(csv.DictReader(_file))


def set_of(store: Store, probe: str) -> views.runs.QuestionSet:
    keys = views.runs.question_sets(store).set_index("probe")["case_key"]
    return views.runs.question_set(store, keys[probe])


@pytest.mark.parametrize("paper", ["", *views.published.SOURCES])
def test_the_cells_are_the_rows_of_the_file_with_the_digits_of_the_print(paper: str):
    found = printed.cells(paper)
    rows = [row for row in ROWS if paper in ("", row["paper"])]
    assert list(found["printed"]) == [row["value"] for row in rows]
    for name in ("paper", "dataset", "split", "model", "metric", "unit", "note"):
        assert list(found[name]) == [row[name] for row in rows]
    assert (found["mark"] == "doubted").tolist() == ["suspect:" in row["note"] for row in rows]
    assert found["run"].isna().all()


@pytest.mark.parametrize(
    ("probe", "cell", "metric", "slicing", "factor"),
    [
        ("lgip", (2, "coco", "all", "positive_rate"), "positive_rate", ("all", ""), 1),
        ("eqben", (11, "eqben", "all", "avg"), "average_score", ("all", ""), 100),
        ("rococo", (4, "rococo", "mix_0.9", "t2i_drop_rate"), "t2i_drop_rate", ("subtype", "mix:0.9"), -100),
    ],
)  # fmt: skip
def test_a_run_stands_beside_the_cells_that_mean_the_same_in_their_unit_and_sign(
    every_probe: Store, probe, cell, metric, slicing, factor
):
    question_set = set_of(every_probe, probe)
    found = printed.beside(every_probe, question_set, RANDOM)
    assert len(found) == sum(row["paper"] == probe for row in ROWS)
    where = ["table", "dataset", "split", "metric"]
    beside = found.loc[[row == cell for row in found[where].itertuples(index=False, name=None)]]
    estimates = views.estimates.estimates(every_probe, question_set, slicing[0], "macro")
    of_slice = (estimates["metric"] == metric) & (estimates["slice"] == slicing[1])
    estimate = estimates.loc[of_slice & (estimates["model"] == RANDOM)]
    assert len(beside) and len(estimate) == 1
    value, low, high = (factor * float(estimate[end].iloc[0]) for end in ("value", "low", "high"))
    assert beside["run"].tolist() == pytest.approx([value] * len(beside), nan_ok=True)
    assert beside["low"].tolist() == pytest.approx([min(low, high)] * len(beside), nan_ok=True)


def test_a_mean_over_columns_stands_beside_none_of_them(every_probe: Store):
    found = printed.beside(every_probe, set_of(every_probe, "eqben"), RANDOM)
    table = found.query("table == 3 and dataset != 'eqben'")
    assert len(table) and table["run"].isna().all()


def test_a_model_that_was_not_asked_is_refused(every_probe: Store):
    with pytest.raises(NotFound, match="nobody"):
        printed.beside(every_probe, set_of(every_probe, "lgip"), "nobody")


@pytest.mark.parametrize(
    ("paper", "model", "cell", "same"),
    [
        ("lgip", "openclip:ViT-B-16/openai", "CLIP ViT-B/16 (OpenAI)", True),
        ("lgip", "openclip:ViT-B-16/openai", "CLIP ViT-B/16", True),  # as table 4 has it
        ("lgip", "lgip:clip-vit-b-16", "CLIP ViT-L/14", False),
        ("rococo", "openclip:ViT-B-32/openai", "CLIP ViT-B/32 (zero-shot)", True),
        ("rococo", "openclip:ViT-B-32/openai", "CLIP ViT-B/32 (fine-tuned)", False),
        ("visla", "visla:rn50", "RN50", True),
        ("visla", "openclip:ViT-L-14/openai", "CLIP-ViT-L-14", True),  # as table 8 spells it
        ("visla", "demo:weak", "RN50", False),
    ],
)
def test_the_printed_model_is_known_by_its_preset(paper, model, cell, same):
    assert (printed.plain(cell) in printed.printed_names(paper, model)) is same


@pytest.mark.parametrize("paper", views.published.SOURCES)
def test_each_mark_has_its_reason_in_the_note(paper: str):
    for row in printed.cells(paper).itertuples():
        if row.mark == "doubted":
            assert row.note.partition("suspect:")[2].strip()
        elif row.mark == "differs":
            assert "print" in row.note or "the text says" in row.note
        assert bool(row.mark) == bool(row.note)


def test_cells_that_the_text_contradicts_say_so_and_no_others_do():
    """Sentences of section 4 of PRSM, of section 5 and the caption of table 3 of LGIP, held against the cells."""
    names = ("paper", "table", "dataset", "split", "model", "metric")
    values = {tuple(row[name] for name in names): float(row["value"]) for row in ROWS}
    contradicted = set()
    for key, value in values.items():
        paper, number, dataset, split, model, metric = key
        if paper == "lgip" and metric == "invariance_increase" and value < 0:
            contradicted.add(key)
        if (paper, number, split) == ("lgip", "3", "combined"):
            simple = "positive_rate" if metric.endswith("rate") else "sensitivity_gap"
            if value > values[paper, "2", dataset, "all", model, simple]:
                contradicted.add(key)
        if paper != "prsm" or metric == "n":
            continue
        group, setting, versions = split.split("/")
        if metric == "global" and value >= 0.04:
            contradicted.add(key)
        if metric == "global":
            continue
        said = {"local_100": 0.89, "local_1000": 0.93}[metric]
        if setting == "p2" and group == "overall" and abs(value - said) > 0.0051:
            contradicted.add(key)
        if setting != "p1" and value < values[*key[:3], f"{group}/p1/o-c1-c2", model, metric]:
            contradicted.add(key)
        other = values[*key[:3], f"male/{setting}/{versions}", model, metric]
        if setting != "p1" and group == "female" and value <= other:
            contradicted |= {key, (*key[:3], f"male/{setting}/{versions}", model, metric)}
    said_so = {
        tuple(row[name] for name in names)
        for row in ROWS
        if "the text says" in row["note"] and row["paper"] in ("lgip", "prsm")
    }
    assert said_so == contradicted and len(contradicted) == 31
