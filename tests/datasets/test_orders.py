"""Human orders are read as written, and invalid orders are refused in one line."""

import json
from pathlib import Path

import pytest
from PIL import Image

from vlprobe.datasets import orders
from vlprobe.errors import InvalidInput

NAMES = ["a.png", "b.png", "c.png", "d.png"]
ROW = {
    "query": "a house right of a road",
    "edit": "a house left of a road",
    "candidates": NAMES,
    "edit_candidates": ["d.png", "c.png", "a.png", "b.png"],
    "who": "five students",
}


def write(folder: Path, rows: list[dict], name: str = "people.jsonl") -> str:
    for number, file in enumerate(NAMES):
        Image.new("RGB", (4, 4), (number, 0, 0)).save(folder / file)
    if name.endswith(".jsonl"):
        (folder / name).write_text("\n".join(map(json.dumps, rows)))
    else:
        columns = list(rows[0])
        cells = [
            ["|".join(value) if isinstance(value, list) else value for value in row.values()]
            for row in rows
        ]
        lines = ["\t".join(line) for line in [columns, *cells]]
        (folder / name).write_text("\n".join(lines))
    return f"orders:{folder / name}"


@pytest.mark.parametrize("name", ["people.jsonl", "people.tsv"])
def test_an_order_has_a_query_an_edit_and_candidates_from_best_to_worst(tmp_path, name):
    (item,) = orders.load(write(tmp_path, [ROW], name), tmp_path).items
    assert (item.captions, item.foils) == ((ROW["query"],), (ROW["edit"],))
    assert [picture.path.name for picture in item.series.pictures] == NAMES
    assert item.series.edit_order == (3, 2, 0, 1)
    assert (item.image.path.name, item.foil_image) == ("a.png", None)
    assert item.tags == {"subset": "people", "who": "five students"}


def test_a_changed_order_changes_the_digest(tmp_path):
    digests = set()
    for change in ({}, {"candidates": NAMES[::-1]}, {"edit_candidates": NAMES}, {"edit": "b"}):
        digests.add(orders.load(write(tmp_path, [ROW | change]), tmp_path).digest)
    assert len(digests) == 4


def test_the_edit_of_an_order_is_optional(tmp_path):
    row = {"query": "a house", "candidates": NAMES[:3]}
    (item,) = orders.load(write(tmp_path, [row]), tmp_path).items
    assert (item.foils, item.series.edit_order) == ((), ())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"edit_candidates": [*NAMES[:3], "x.png"]}, "'x.png' is not a candidate of the query"),
        ({"edit_candidates": NAMES[:3]}, "the candidate 'd.png' is missing"),
        ({"edit_candidates": [*NAMES, "a.png"]}, "a candidate occurs twice"),
        ({"edit": ""}, "the edit is missing"),
        ({"candidates": ["a.png", "b.png"]}, "at least 3 different picture names"),
        ({"candidates": ["a.png", "b.png", "a.png"]}, "at least 3 different picture names"),
        ({"query": ""}, "Expected a query"),
        ({"candidates": [*NAMES, "gone.png"], "edit_candidates": []}, "gone.png"),
    ],
)
def test_an_order_with_unknown_or_missing_candidates_is_refused_in_one_line(
    tmp_path, change, message
):
    with pytest.raises(InvalidInput, match=message) as caught:
        orders.load(write(tmp_path, [ROW | change]), tmp_path)
    assert "\n" not in str(caught.value)


def test_rows_without_pictures_can_be_skipped(tmp_path):
    rows = [ROW, ROW | {"candidates": [*NAMES, "gone.png"], "edit_candidates": []}]
    dataset = orders.load(f"{write(tmp_path, rows)}@{tmp_path}+available", tmp_path)
    assert [item.id for item in dataset.items] == ["people/1"]
    assert "1 of 2 rows have no picture" in dataset.notes[0]
