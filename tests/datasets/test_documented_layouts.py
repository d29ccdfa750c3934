"""The example files in docs/data.md are read as described, and the reference lists every column of their readers."""

import re
from pathlib import Path

import pytest
from PIL import Image

from vlprobe.datasets import frames, orders, queries

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "data.md").read_text("utf-8")
FILES = dict(re.findall(r"^### `(\w+):.*?^```csv\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE))
CAPTIONS = {
    "frames": [
        ("a man holds an empty glass", "a man pours water into a glass"),
        ("a man pours water into a glass", "a man drinks a glass of water"),
    ],
    "orders": [("a cup on the left of a plate", "a cup on the right of a plate")],
    "queries": [("a young doctor", "a doctor who is young", "a youthful doctor")],
}


@pytest.mark.parametrize("reader", [frames, orders, queries])
def test_the_example_file_of_each_reader_gives_the_documented_items(reader, tmp_path: Path):
    text = FILES[reader.PREFIX]
    (tmp_path / "file.csv").write_text(text, "utf-8")
    for number, name in enumerate(sorted(set(re.findall(r"\w+\.jpg", text)))):
        Image.new("RGB", (32, 32), (40 * number, 90, 30)).save(tmp_path / name)
    items = reader.load(f"{reader.PREFIX}:{tmp_path}/file.csv", tmp_path / "cache").items
    assert [item.captions + item.foils for item in items] == CAPTIONS[reader.PREFIX]


def test_the_boundaries_in_the_frames_example_are_found(tmp_path: Path):
    (tmp_path / "file.csv").write_text(FILES["frames"], "utf-8")
    for number in range(3):
        Image.new("RGB", (32, 32), (80 * number, 90, 30)).save(tmp_path / f"k{number}.jpg")
    loaded = frames.load(f"frames:{tmp_path}/file.csv+boundaries", tmp_path / "cache")
    assert [item.series and item.series.boundary for item in loaded.items] == [0.4, 0.9]


@pytest.mark.parametrize(
    ("prefix", "columns"),
    [
        ("frames", {*frames.REQUIRED, *frames.OPTIONAL}),
        ("orders", {*orders.COLUMNS}),
        ("queries", {"query", "caption", "version"}),
    ],
)
def test_the_reference_lists_every_column_of_a_reader(prefix: str, columns: set[str]):
    reference = (DOCS / "reference" / "columns.md").read_text("utf-8")
    section = reference.partition(f"### `{prefix}:`\n")[2].partition("\n### ")[0]
    assert columns <= set(re.findall(r"\w+", section))
