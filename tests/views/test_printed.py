"""Every published cell next to a run, against the file and plain loops over the estimates."""

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
def test_the_cells_are_the_rows_of_the_file_with_the_published_digits(paper: str):
    cells = printed.cells(paper)
    rows = [row for row in ROWS if paper in ("", row["paper"])]
    assert list(cells["printed"]) == [row["value"] for row in rows]
    for name in ("paper", "dataset", "split", "model", "metric", "unit", "note"):
        assert list(cells[name]) == [row[name] for row in rows]
    assert (cells["mark"] == "doubted").tolist() == ["suspect:" in row["note"] for row in rows]
    assert cells["run"].isna().all()


@pytest.mark.parametrize(
    ("probe", "cell", "metric", "slicing", "factor"),
    [
        ("lgip", (2, "coco", "all", "positive_rate"), "positive_rate", ("all", ""), 1),
        ("eqben", (11, "eqben", "all", "avg"), "average_score", ("all", ""), 100),
        ("rococo", (4, "rococo", "mix_0.9", "t2i_drop_rate"), "t2i_drop_rate", ("subtype", "mix:0.9"), -100),
    ],
)  # fmt: skip
def test_a_run_is_matched_to_equivalent_cells_in_their_unit_and_sign(
    every_probe: Store, probe, cell, metric, slicing, factor
):
    question_set = set_of(every_probe, probe)
    cells = printed.beside(question_set, RANDOM)
    assert len(cells) == sum(row["paper"] == probe for row in ROWS)
    where = ["table", "dataset", "split", "metric"]
    beside = cells.loc[[row == cell for row in cells[where].itertuples(index=False, name=None)]]
    estimates = views.estimates.estimates(question_set, slicing[0], "macro")
    of_slice = (estimates["metric"] == metric) & (estimates["slice"] == slicing[1])
    estimate = estimates.loc[of_slice & (estimates["model"] == RANDOM)]
    assert len(beside) and len(estimate) == 1
    value, low, high = (factor * float(estimate[end].iloc[0]) for end in ("value", "low", "high"))
    assert beside["run"].tolist() == pytest.approx([value] * len(beside), nan_ok=True)
    assert beside["low"].tolist() == pytest.approx([min(low, high)] * len(beside), nan_ok=True)


def test_a_mean_over_columns_is_not_matched_to_a_run(every_probe: Store):
    cells = printed.beside(set_of(every_probe, "eqben"), RANDOM)
    table = cells.query("table == 3 and dataset != 'eqben'")
    assert len(table) and table["run"].isna().all()


def test_a_model_without_a_run_is_refused(every_probe: Store):
    with pytest.raises(NotFound, match="nobody"):
        printed.beside(set_of(every_probe, "lgip"), "nobody")


@pytest.mark.parametrize(
    ("paper", "model", "cell", "same"),
    [
        ("lgip", "openclip:ViT-B-16/openai", "CLIP ViT-B/16 (OpenAI)", True),
        ("lgip", "openclip:ViT-B-16/openai", "CLIP ViT-B/16", True),  # as in table 4
        ("lgip", "lgip:clip-vit-b-16", "CLIP ViT-L/14", False),
        ("rococo", "openclip:ViT-B-32/openai", "CLIP ViT-B/32 (zero-shot)", True),
        ("rococo", "openclip:ViT-B-32/openai", "CLIP ViT-B/32 (fine-tuned)", False),
        ("visla", "visla:rn50", "RN50", True),
        ("visla", "openclip:ViT-L-14/openai", "CLIP-ViT-L-14", True),  # as spelled in table 8
        ("visla", "demo:weak", "RN50", False),
    ],
)
def test_a_published_model_is_recognized_by_its_preset(paper, model, cell, same):
    assert (printed.plain(cell) in printed.printed_names(paper, model)) is same


@pytest.mark.parametrize("paper", views.published.SOURCES)
def test_the_note_of_a_marked_cell_gives_the_reason(paper: str):
    for row in printed.cells(paper).itertuples():
        if row.mark == "doubted":
            assert row.note.partition("suspect:")[2].strip()
        elif row.mark == "differs":
            assert "print" in row.note or "the text says" in row.note
        assert bool(row.mark) == bool(row.note)


def test_exactly_the_cells_that_the_text_contradicts_have_a_note():
    """Check the cells against sentences of section 4 of PRSM, and of section 5 and table 3's caption of LGIP."""
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
        claim = {"local_100": 0.89, "local_1000": 0.93}[metric]
        if setting == "p2" and group == "overall" and abs(value - claim) > 0.0051:
            contradicted.add(key)
        if setting != "p1" and value < values[*key[:3], f"{group}/p1/o-c1-c2", model, metric]:
            contradicted.add(key)
        other = values[*key[:3], f"male/{setting}/{versions}", model, metric]
        if setting != "p1" and group == "female" and value <= other:
            contradicted |= {key, (*key[:3], f"male/{setting}/{versions}", model, metric)}
    noted = {
        tuple(row[name] for name in names)
        for row in ROWS
        if "the text says" in row["note"] and row["paper"] in ("lgip", "prsm")
    }
    assert noted == contradicted and len(contradicted) == 31
