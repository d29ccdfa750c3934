"""Lines of an edits file are matched to pictures by file name and captions, and by folders if these are equal."""

import json
from pathlib import Path

import pytest

from vlprobe.errors import InvalidInput
from vlprobe.probes.lgip import PROBE
from vlprobe.types import Item, Picture


def write_options(file: Path, lines: list[tuple[str, str, str]]) -> dict:
    """Write a file with a line for each (image path, caption, paraphrase), and return the probe's options."""
    rows = [
        {"image_path": path, "orig_captions": [caption], "same_caps": {"0": [paraphrase]}}
        for path, caption, paraphrase in lines
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return dict(PROBE.pin({**PROBE.defaults, "edits": str(file)}, file.parent))


def paraphrase(folder: str, caption: str, chosen: dict) -> str:
    item = Item(folder, Picture(Path("/data") / folder / "1.jpg"), (caption,))
    ((case,), _) = PROBE.cases(item, chosen, seed=42)
    return case.texts[1]


@pytest.mark.parametrize(
    "lines",
    [
        [("cats/1.jpg", "A cat.", "One cat."), ("dogs/1.jpg", "A dog.", "One dog.")],
        [("x/cats/1.jpg", "A pet.", "Pet 1."), ("x/dogs/1.jpg", "A pet.", "Pet 2.")],
    ],
    ids=["captions", "folders"],
)
def test_equal_file_names_are_distinguished_by_captions_or_folders(
    tmp_path: Path, lines: list[tuple[str, str, str]]
):
    chosen = write_options(tmp_path / "edits", lines)
    (_, cat, of_cat), (_, dog, of_dog) = lines
    folder = lines[0][0].removesuffix("/1.jpg")
    assert paraphrase("dogs", dog, chosen) == of_dog
    assert paraphrase(folder, cat, chosen) == of_cat


def test_indistinguishable_lines_are_refused_unless_they_are_equal(tmp_path: Path):
    chosen = write_options(
        tmp_path / "edits", [("1.jpg", "A pet.", "Pet 1."), ("1.jpg", "A pet.", "Pet 2.")]
    )
    with pytest.raises(InvalidInput, match="2 different lines for item 'dogs'"):
        paraphrase("dogs", "A pet.", chosen)
    twice = write_options(
        tmp_path / "same", [("1.jpg", "A pet.", "Pet 1."), ("1.jpg", "A pet.", "Pet 1.")]
    )
    assert paraphrase("dogs", "A pet.", twice) == "Pet 1."
