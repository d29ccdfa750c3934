"""Published totals of known checkpoints, and their comparison with a run."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import open_clip
import pytest
from click.testing import CliRunner

from tests.conftest import case_key_of, make_foils, tiers
from vlprobe import views
from vlprobe.cli.main import main
from vlprobe.dashboard.compare import rows_table
from vlprobe.errors import NotFound
from vlprobe.render import forest
from vlprobe.render.charts import styles
from vlprobe.render.words import presentations
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage import shipped
from vlprobe.storage.store import Store
from vlprobe.surfaces import paper
from vlprobe.views import totals

SHARED = Path(__file__).parents[3] / "shared/data/real/mteb_totals.csv"
MODEL = "openclip:ViT-B-32/openai"


@pytest.mark.skipif(not SHARED.is_file(), reason="../shared/data/real is not here")
def test_the_bundled_totals_are_those_that_mteb_publishes():
    with SHARED.open() as rows:
        published = {
            (row["model"], row["task"], row["metric"]): float(row["value"])
            for row in csv.DictReader(rows)
        }
    shipped = {(row.model, row.task, row.metric): row.value for row in totals.load().itertuples()}
    assert shipped == published
    assert len({model for model, _, _ in shipped}) == 49


def test_every_named_checkpoint_exists_in_openclip():
    known = {f"{arch}/{tag}" for arch, tag in open_clip.list_pretrained()}
    assert set(totals.OPENCLIP) <= known
    assert set(totals.OPENCLIP.values()) <= set(totals.load()["model"])


@pytest.mark.parametrize(
    "name",
    [
        MODEL,
        "hf:openai/clip-vit-base-patch32",
        "openai/clip-vit-base-patch32",
        "eqben:clip-vit-b-32",
        "rococo-clip:vit-b-32",
    ],
)
def test_a_checkpoint_is_found_by_each_of_its_names(name: str):
    assert totals.published_name(name) == "openai/clip-vit-base-patch32"


def test_the_command_lists_the_totals_of_a_checkpoint():
    result = CliRunner().invoke(main, ["list", "published", "--model", MODEL, "--format", "json"])
    rows = {(row["task"], row["metric"]): row["value"] for row in json.loads(result.output)}
    assert [rows["Winoground", metric] for metric in ("text_acc", "image_acc", "accuracy")] == [
        31.25,
        11.25,
        9.0,
    ]


def test_a_model_without_totals_is_refused_in_one_line():
    with pytest.raises(NotFound, match="No model with published totals named 'demo:weak'"):
        totals.of_model("demo:weak")
    assert CliRunner().invoke(main, ["list", "models", "--model", MODEL]).exit_code == 2


def winoground(folder: Path, n: int, right: np.ndarray) -> tuple[str, str]:
    """Write n pairs in Winoground's layout, and scores that solve those where `right` is true."""
    (folder / "photos").mkdir(parents=True)
    from PIL import Image

    for k in range(n):  # pairs that share a picture would be one cluster
        Image.new("RGB", (4, 4), (k % 256, k // 256, 0)).save(folder / f"photos/a{k}.png")
        Image.new("RGB", (4, 4), (k % 256, k // 256, 255)).save(folder / f"photos/b{k}.png")
    rows = [
        {
            "id": k,
            "image_0": f"a{k}",
            "image_1": f"b{k}",
            "caption_0": f"a dog sees {k} cats",
            "caption_1": f"{k} cats see a dog",
        }
        for k in range(n)
    ]
    (folder / "winoground.jsonl").write_text("\n".join(map(json.dumps, rows)))
    scores = np.array(
        [[[0.9, 0.1], [0.1, 0.9]] if solved else [[0.1, 0.9], [0.9, 0.1]] for solved in right]
    )
    np.save(folder / "scores.npy", scores)
    return f"pairs:{folder}/winoground.jsonl@{folder}/photos", f"scores:{folder}/scores.npy"


@pytest.mark.parametrize(
    ("n", "n_right", "expected"), [(400, 40, True), (400, 200, False), (100, 10, None)]
)
def test_a_run_on_all_of_winoground_is_compared_with_the_published_totals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n: int, n_right: int, expected: bool | None
):
    right = np.arange(n) % (n // n_right) == 0
    dataset, scores = winoground(tmp_path / "data", n, right)
    store = Store(tmp_path / "cache")
    execute(Request((scores,), dataset, "eqben"), store)
    # The scores solve a pair in both directions or not at all, so all three metrics are n_right / n.
    table = totals.load()
    table.loc[table["task"] == "Winoground", "value"] = 0.1
    monkeypatch.setattr(totals, "load", lambda: table)
    monkeypatch.setattr(totals, "published_name", lambda model: "openai/clip-vit-base-patch32")
    comparisons = totals.compare(store, scores)
    assert [comparison.agrees for comparison in comparisons] == (
        [] if expected is None else [expected]
    )
    for comparison in comparisons:
        share = f"{100 * right.mean():.2f}"
        assert comparison.sentence.startswith("Winoground 10.00 / 10.00 / 10.00 published")
        assert f"yours {share} / {share} / {share}: " in comparison.sentence
        assert ("within sampling error" in comparison.sentence) == expected


def test_sugarcrepe_as_foil_sets_is_compared_with_the_published_totals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv(shipped.SETTING)
    store = shipped.opened(tmp_path / "cache")
    key = case_key_of(store, dataset="bundled:SugarCrepe")
    (comparison,) = totals.compare(store, "published:CLIP ViT-B/32", key)
    # 5,754 of 7,511 by mteb; 5,751 of the 7,512 bundled questions by the authors of BiVLC.
    assert comparison.sentence == (
        "SugarCrepe 76.61 published (mteb results (CC0)); by the answers of Miranda et al., BiVLC "
        "76.56: within sampling error"
    )
    assert totals.compare(store, "published:CLIP_COCO", key) == []  # not a checkpoint in mteb
    run = views.runs.question_set(store, key).run("published:CLIP ViT-B/32")
    result = CliRunner().invoke(main, ["--cache", str(tmp_path / "cache"), "show", run.key])
    assert "SugarCrepe 76.61 published" in result.output


@pytest.fixture
def bundled_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Return a function from a dataset to its question set in the bundled results."""
    monkeypatch.delenv(shipped.SETTING)
    store = shipped.opened(tmp_path / "cache")
    keys = {row.dataset: row.case_key for row in views.runs.question_set_rows(store)}
    return lambda dataset: views.runs.question_set(store, keys[dataset])


def test_totals_are_shown_only_with_equivalent_questions(bundled_set):
    model = "published:CLIP ViT-B/32"
    rows = totals.of_questions(bundled_set("bundled:SugarCrepe"), "foil", model)
    with totals._CSV.open(encoding="utf-8") as file:
        expected = {
            row["model"]: 1 - float(row["value"])
            for row in csv.DictReader(file)
            if (row["task"], row["metric"]) == ("SugarCrepe", "text_acc")
        }
    assert {row.model: row.fooled for row in rows} == pytest.approx(expected)
    assert [row.fooled for row in rows] == sorted(expected.values()) and len(rows) == 42
    valse = totals.of_questions(bundled_set("bundled:VALSE"), "foil", "published:X-VLM 16M")
    pairs = totals.of_questions(bundled_set("demo-pairs"), "pair", "demo:softmax")
    assert valse == pairs == ()
    assert totals.of_questions(bundled_set("bundled:SugarCrepe"), "pair", model) == ()


def test_a_pair_of_winoground_is_compared_by_its_group_score(tmp_path: Path):
    right = np.arange(400) % 10 == 0
    dataset, scores = winoground(tmp_path / "data", 400, right)
    store = Store(tmp_path / "cache")
    execute(Request((scores,), dataset, "eqben"), store)
    (row,) = views.runs.question_set_rows(store)
    question_set = views.runs.question_set(store, row.case_key)
    rows = {each.model: each.fooled for each in totals.of_questions(question_set, "pair", scores)}
    assert len(rows) == 49
    assert rows["openai/clip-vit-base-patch32"] == pytest.approx(0.91)


@pytest.mark.parametrize(
    ("probe", "kind"), tiers([("visla", "i2t-pair"), ("eqben", "foil")], [("visla", "i2t-pair")])
)
def test_sugarcrepe_has_totals_for_each_probe_on_its_full_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, probe: str, kind: str
):
    folder = tmp_path / "SugarCrepe"
    folder.mkdir()
    dataset = make_foils(folder, "add_att", 6)
    (tmp_path / "scores.json").write_text(json.dumps([[0.2, 0.1]] * 6))
    model = f"scores:{tmp_path}/scores.json"
    store = Store(tmp_path / "cache")
    (manifest,) = execute(Request((model,), dataset, probe), store)
    question_set = views.runs.question_set(store, manifest["case_key"])
    assert totals.of_questions(question_set, kind, model) == ()  # only 6 of 7,511 questions
    (sugarcrepe,) = (each for each in totals.BENCHMARKS if each.task == "SugarCrepe")
    whole = replace(sugarcrepe, sizes=frozenset({6}))
    monkeypatch.setattr(totals, "BENCHMARKS", (whole,))
    assert len(totals.of_questions(question_set, kind, model)) == 42


def test_compare_marks_the_published_totals_that_fit_on_its_axis(bundled_set):
    models = ("published:CLIP ViT-B/32", "published:CLIP_COCO", "published:CLIP_TROHN-Text")
    questions = bundled_set("bundled:SugarCrepe")
    comparison = views.paired_tests.compare_models(questions, models, "foil")
    rows = totals.of_questions(questions, "foil", models[0])
    kind = presentations()["eqben"].kind("foil")
    looks = styles.styles(list(models))
    figure = forest.forest_figure(comparison, kind, looks, {}, rows)
    plain = forest.forest_figure(comparison, kind, looks, {})
    assert all(trace.customdata for trace in plain.data if trace.mode == "markers")
    assert figure.layout.xaxis.range == plain.layout.xaxis.range  # totals do not extend the axis
    (rings,) = [trace for trace in figure.data if trace.name == "published totals (mteb, CC0)"]
    marks = dict(zip(rings.text, rings.x, strict=True))
    text = "<b>openai/clip-vit-base-patch32</b><br>fooled by 23.4 %, published total (mteb, CC0)"
    # The total of the same checkpoint is within a tenth of a point of the baseline's zero line.
    assert abs(marks[text]) < 0.1
    names = {model: model for model in questions.models}
    table = rows_table(comparison, kind, names, rows)  # lists every total
    assert len(table) == len(comparison.rows) + 42 and set(table["n_cases"].dropna() % 1) == {0}
    of_checkpoint = table.set_index("model_name").loc["openai/clip-vit-base-patch32"]
    assert f"{100 * of_checkpoint['value']:.1f}" == "23.4"
    assert "of 42 other models (mteb, CC0), from " in forest.describe_totals(rows)
    printed = paper.print_style(figure, "column")  # as tall as a page
    assert printed.layout.height <= paper.PAGE[1]
    assert all(trace.marker.size <= paper.MARK for trace in printed.data)
    assert rings.cliponaxis is False  # a ring at the end of the axis is not clipped
    low, high = figure.layout.xaxis.range
    assert low <= min(rings.x) and max(rings.x) <= high
    assert figure.layout.yaxis.ticktext[-1] == (
        f"<b>Published totals</b><br>{len(rings.x)} of 42 in view"
    )
