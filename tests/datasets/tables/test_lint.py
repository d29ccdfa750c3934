import csv
import random
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from tests.conftest import call
from vlprobe.datasets import audit, table
from vlprobe.datasets.tables import lint
from vlprobe.errors import InvalidInput

TEXTS = [
    *("A red dog.", "a RED  dog.", "Two cats on a mat.", "Ein Hund schläft auf dem großen Sofa."),
    *("A bus.", "The bus is late today.", "Straße", "STRASSE", "A man rides a horse."),
]


def write(file: Path, rows: list[dict]) -> Path:
    with file.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.DictWriter(handle, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return file


@pytest.mark.parametrize("with_ids", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_checking_columns_finds_the_defects_found_in_items(
    seed: int, with_ids: bool, tmp_path: Path
):
    draw = random.Random(seed)
    rows = []
    for number in range(60):
        name = f"{draw.randrange(25)}.png"
        Image.new("L", (4, 4), int(name[:-4])).save(tmp_path / name)
        rows.append(
            {"image": name, "caption": f" {draw.choice(TEXTS)} "}
            | ({"id": number} if with_ids else {})
        )
    file = write(tmp_path / "x.csv", rows)
    name = f"table:{file}"
    assert lint.text_rows(*table._read(name, tmp_path)[1:]) is not None
    items = table.load(name, tmp_path / "cache").items
    whole = audit.check(items, tmp_path / "cache")
    expected = [finding for finding in whole if finding.name != "shared_image"]
    assert table.lint(name, tmp_path / "cache") == expected
    assert sum(finding.count for finding in expected) > 10


@pytest.mark.parametrize("numbers", [[], [3, 1, 3], [2**63 - 1, -(2**63), 0, 2**63 - 1]])
def test_distinct_handles_numbers_of_the_full_int64_range(numbers: list[int]):
    assert audit.distinct(np.array(numbers, dtype=np.int64)).tolist() == sorted(set(numbers))


FOILS = [
    *("A red cat.", "a RED  dog.", "Dog red a.", "mat on Two cats a", "Ein Hund.", "A wocriminal."),
    *("The bus is late", "A criminal rides a horse.", "criminal", "A woman rides a horse."),
]


@pytest.mark.parametrize("with_ids", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_checking_columns_of_foils_finds_the_defects_found_in_items(
    seed: int, with_ids: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    draw = random.Random(seed)
    texts = [*TEXTS, "A woman stands.", "A man stands."]
    rows = [
        {"image": f"{draw.randrange(25)}.png", "caption": caption, "negative": f" {foil} "}
        for caption in texts
        for foil in (draw.choice(FOILS), caption.replace("woman", "wocriminal"))
    ]
    rows += [  # "criminal" is often inserted as a separate word
        {"image": f"x{n}.png", "caption": f"A man {n}.", "negative": f"A criminal {n}."}
        for n in range(8)
    ]
    rows.append({"image": "1.png", "caption": "A bus is late.", "negative": "a bus is full"})
    draw.shuffle(rows)
    rows = [row | ({"id": f"k{n}"} if with_ids else {}) for n, row in enumerate(rows)]
    file = write(tmp_path / "x.csv", rows)
    _, columns, layout = table._read(f"table:{file}", tmp_path)
    assert lint.text_rows(columns, layout) is not None
    monkeypatch.setattr(audit, "BLOCK_ROWS", 7)
    of_columns = table.lint(f"table:{file}", tmp_path / "cache")
    monkeypatch.setattr(lint, "text_rows", lambda *_: None)
    of_items = table.lint(f"table:{file}", tmp_path / "cache")
    assert of_columns == of_items
    counts = {finding.name: finding.count for finding in of_columns}
    for name in ("unchanged", "glued_word", "shared_caption", "upper_case", "full_stop"):
        assert counts[name], name
    assert {finding.of for finding in of_columns} == {len(rows)}


@pytest.mark.parametrize(
    "odd",
    [
        {"negative": ""},
        {"negative": "['a cat', 'a bus']"},
        {"image": "https://x.org/1.png"},
        {"image": "1.png", "caption": "A dog 1.", "negative": "A cat 1."},
    ],
)
def test_a_table_of_foils_with_an_unusual_row_is_checked_by_items(odd: dict, tmp_path: Path):
    rows = [
        {"image": f"{n}.png", "caption": f"A dog {n}.", "negative": f"A cat {n}."} for n in range(3)
    ]
    file = write(tmp_path / "x.csv", [*rows, rows[0] | odd])
    assert lint.text_rows(*table._read(f"table:{file}", tmp_path)[1:]) is None
    assert table.lint(f"table:{file}", tmp_path / "cache")[0].of in (3, 4)


def test_a_caption_with_several_foils_is_checked_by_columns(tmp_path: Path):
    rows = [{"image": "a.png", "caption": "A dog.", "negative": f"A {n}."} for n in range(3)]
    file = write(tmp_path / "x.csv", rows)
    assert lint.text_rows(*table._read(f"table:{file}", tmp_path)[1:]) is not None
    same = write(tmp_path / "y.csv", [*rows, rows[1]])
    assert lint.text_rows(*table._read(f"table:{same}", tmp_path)[1:]) is None


def test_columns_and_items_normalize_and_split_texts_in_the_same_way():
    texts = [f"A{chr(code)}b{chr(code)} _C{chr(code)}{chr(code)}9" for code in range(0x250)]
    texts += ["A dog", "two  blanks", "tab\tand\nline", "end\n", "ı İ ß", "STRASSE"]
    column = pa.chunked_array([texts[:3], texts[3:200], texts[200:]], pa.string())
    blocks = pa.chunked_array(audit.plain_blocks(column), pa.string()).to_pylist()
    assert blocks == [audit.plain(text) for text in texts]
    by_rule = [re.findall(r"\w+", text.casefold()) for text in texts]
    assert list(map(audit.split_words, texts)) == by_rule


def test_texts_are_checked_without_pictures_and_so_are_foils(tmp_path: Path):
    rows = [
        {"image": f"{n}.jpg", "caption": "A dog.", "negative": foil}
        for n, foil in enumerate(["A cat.", "a dog", "Dog a."])
    ]
    file = write(tmp_path / "x.csv", rows)
    findings = {f.name: f.count for f in audit.check_texts(f"table:{file}", tmp_path / "cache")}
    assert (findings["unchanged"], findings["order_only"], findings["shared_caption"]) == (1, 1, 3)
    assert not (tmp_path / "cache").exists()


def test_check_without_pictures_reads_only_texts(tmp_path: Path):
    file = write(tmp_path / "x.csv", [{"image": "absent.jpg", "caption": text} for text in TEXTS])
    command = [tmp_path / "cache", "check", f"table:{file}", "--format", "csv"]
    shown = call(*command, "--no-pictures")
    assert "repeated_caption,1,1,absent.jpg" in shown.stdout
    assert "have no picture" in call(*command, code=1).stderr


def test_texts_of_other_datasets_are_checked_too(tmp_path: Path):
    Image.new("L", (4, 4)).save(tmp_path / "a.png")
    rows = [{"image": "a.png", "caption": "A dog."}, {"image": "a.png", "caption": "a dog."}]
    file = write(tmp_path / "x.csv", rows)
    findings = {f.name: f.count for f in audit.check_texts(f"csv:{file}", tmp_path / "cache")}
    assert findings == {"repeated_caption": 1, "shared_caption": 0, "not_english": 0}


def test_a_large_dataset_is_checked_on_a_reproducible_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(audit, "MOST_JUDGED", 5)
    rows = [{"image": f"{n}.jpg", "caption": f"A red dog number {n}."} for n in range(40)]
    file = write(tmp_path / "x.csv", rows)
    first, again = (table.lint(f"table:{file}", tmp_path / "cache")[2] for _ in range(2))
    assert first == again
    assert first.of == 5
    assert first.meaning.startswith("Of 40 captions, 5 were drawn")


@pytest.mark.parametrize(("text", "length"), [("  ", 0), ("x" * 20_001, 20_001)])
def test_an_empty_or_too_long_caption_is_refused_with_its_row(
    text: str, length: int, tmp_path: Path
):
    rows = [{"image": "a.jpg", "caption": "A dog."}, {"image": "b.jpg", "caption": text}]
    file = write(tmp_path / "x.csv", rows)
    with pytest.raises(
        InvalidInput, match=rf"row 2, column 'caption': the text has {length:,} characters"
    ):
        table.lint(f"table:{file}", tmp_path / "cache")


def test_a_row_without_a_foil_is_skipped_even_if_other_columns_are_invalid(tmp_path: Path):
    rows = [
        {"filename": "a.png", "caption": "A dog sits.", "negative_caption": "A cat sits."},
        {"filename": "", "caption": "A dog sits.", "negative_caption": ""},
        {"filename": "b.png", "caption": "a" * 20_001, "negative_caption": ""},
    ]
    for number in (1, 2):
        file = write(tmp_path / "x.csv", [rows[0], rows[number]])
        assert table.lint(f"table:{file}", tmp_path / "cache")
