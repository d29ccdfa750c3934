"""Published totals of known checkpoints, and a run compared with them."""

import csv
import json
from pathlib import Path

import numpy as np
import open_clip
import pytest
from click.testing import CliRunner

from vlprobe.cli.main import main
from vlprobe.errors import NotFound
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.store import Store
from vlprobe.views import totals

SHARED = Path(__file__).parents[3] / "shared/data/real/mteb_totals.csv"
MODEL = "openclip:ViT-B-32/openai"


@pytest.mark.skipif(not SHARED.is_file(), reason="../shared/data/real is not here")
def test_the_shipped_totals_are_those_that_mteb_publishes():
    with SHARED.open() as rows:
        published = {
            (row["model"], row["task"], row["metric"]): float(row["value"])
            for row in csv.DictReader(rows)
        }
    shipped = {(row.model, row.task, row.metric): row.value for row in totals.load().itertuples()}
    assert shipped == published
    assert len({model for model, _, _ in shipped}) == 49


def test_every_checkpoint_of_openclip_that_is_named_exists_in_openclip():
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


def test_a_model_without_totals_is_one_line():
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
    # The scores solve a pair in both directions or in none: all three metrics are n_right / n.
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
