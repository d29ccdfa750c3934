"""Human verdicts on edits: a blind sheet with validated input, agreement, disputes, and a file without the wrong
edits.
"""

import csv
import io
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from vlprobe.cli.main import main
from vlprobe.runs.edits.sheet import MAJORITY, open_edits
from vlprobe.storage import files, mine
from vlprobe.storage.store import Store

ROWS = [
    {"caption": f"Caption {n // 4}.", "text": f"Edit {n}.", "meaning": meaning, "maker": "m"}
    for n, meaning in enumerate(["same", "different"] * 10)
]


@pytest.fixture
def edits(tmp_path: Path) -> Path:
    path = tmp_path / "edits.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS), "utf-8")
    return path


def call(*words: object, code: int = 0):
    outcome = CliRunner().invoke(main, list(map(str, words)))
    assert outcome.exit_code == code, outcome.output
    return outcome


def sheet(edits: Path, name: str, *words: str) -> list[dict]:
    out = edits.with_name(name)
    call("sheet", edits, out, *words)
    return list(csv.DictReader(io.StringIO(out.read_text("utf-8-sig"))))


def fill_sheet(edits: Path, stem: str, verdict_of: dict[str, str], **more: str) -> Path:
    """Write a sheet as filled in by a judge, with verdicts by the text of the edit."""
    path = edits.with_name(f"{stem}.csv")
    rows = sheet(edits, f"{stem}-empty.csv")
    with path.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.DictWriter(handle, [*rows[0], *more])
        writer.writeheader()
        for row in rows:
            writer.writerow(row | more | {"verdict": verdict_of.get(row["edit"], "")})
    return path


def intended(**others: str) -> dict[str, str]:
    return {row["text"]: row["meaning"] for row in ROWS} | {
        f"Edit {number[1:]}.": word for number, word in others.items()
    }


def test_a_sheet_is_shuffled_by_the_seed_and_does_not_reveal_the_intended_meaning(edits: Path):
    whole, again = sheet(edits, "1.csv"), sheet(edits, "2.csv")
    assert list(whole[0]) == ["id", "caption", "edit", "verdict", "note"] and whole == again
    assert {row["edit"] for row in whole} == {row["text"] for row in ROWS}
    order = [row["edit"] for row in whole]
    assert order != [row["text"] for row in ROWS]
    assert [row["edit"] for row in sheet(edits, "3.csv", "--seed", "1")] != order
    assert sheet(edits, "4.csv", "--sample", "7") == whole[:7]
    assert "same" not in edits.with_name("1.csv").read_text("utf-8").partition("\n")[2]
    assert "may contain verdicts" in call("sheet", edits, edits.with_name("1.csv"), code=1).stderr


def test_a_sheet_escapes_formulas_and_is_still_matched_to_its_edits(tmp_path: Path):
    edits = tmp_path / "edits.jsonl"
    edits.write_text('{"caption": "=1+1", "text": "@cmd", "meaning": "same"}\n')
    row = sheet(edits, "s.csv")[0]
    assert (row["caption"], row["edit"]) == ("'=1+1", "'@cmd")
    path = fill_sheet(edits, "Ann", {"'@cmd": "d"})
    table = pd.read_json(io.StringIO(call("verdicts", edits, path, "--format", "json").stdout))
    assert table["as_intended"].tolist() == [0, 0]


def test_agreement_is_counted_by_judge_and_meaning(edits: Path):
    ann = fill_sheet(edits, "Ann", intended(e0="different", e1="unsure", e2="b"))
    ben = fill_sheet(edits, "Ben", intended(e0="different", e3="same"))
    outcome = call("verdicts", edits, ann, ben, "--format", "json")
    table = pd.read_json(io.StringIO(outcome.stdout)).set_index(["judge", "intended"])
    assert table.loc[("Ann", "all"), "as_intended"] == pytest.approx(17 / 20)
    assert table.loc[("Ann", "same"), "as_intended"] == pytest.approx(8 / 10)
    assert table.loc[("Ben", "different"), "as_intended"] == pytest.approx(9 / 10)
    assert table.loc[("Ann", "all"), ["unsure", "broken"]].tolist() == [1, 1]
    row = table.loc[("Ann", "all")]
    assert row["low"] < row["as_intended"] < row["high"]
    # by majority: both judges disagree with the intended meaning of 0; for 1, 2 and 3, one of two disagrees, which is a
    # tie
    assert table.loc[(MAJORITY, "all"), "as_intended"] == pytest.approx(16 / 20)
    voices = [
        intended(e0="different", e1="unsure", e2="broken"),
        intended(e0="different", e3="same"),
    ]
    names = [[v[row["text"]] for row in ROWS] for v in voices]
    # as if each label were drawn from all 40 without replacement
    drawn = Counter(names[0] + names[1])
    differ = 1 - sum(n * (n - 1) for n in drawn.values()) / (40 * 39)
    alpha = 1 - np.mean([a != b for a, b in zip(*names, strict=True)]) / differ
    assert f"Krippendorff's alpha between 2 judges: {alpha:.2f}" in outcome.stderr
    assert "4 disputes" in outcome.stderr


def test_alpha_is_computed_for_three_judges_with_missing_verdicts(edits: Path):
    half = {text: word for text, word in intended().items() if int(text[5:-1]) < 10}
    paths = [
        fill_sheet(edits, "Ann", intended(e0="unsure")),
        fill_sheet(edits, "Ben", intended(e1="same")),
        fill_sheet(edits, "Eve", half),
    ]
    assert "Krippendorff's alpha between 3 judges: 0.8" in call("verdicts", edits, *paths).stderr


def test_disputes_are_listed_with_the_verdict_of_each_judge(edits: Path):
    paths = [
        fill_sheet(edits, "Ann", intended(e4="different")),
        fill_sheet(edits, "one file", intended(e4="unsure"), judge="Ben"),
    ]
    outcome = call("verdicts", edits, *paths, "--disputes", "--format", "json")
    assert json.loads(outcome.stdout) == [
        {
            "caption": "Caption 1.",
            "edit": "Edit 4.",
            "intended": "same",
            "subtype": "",
            "verdicts": "Ann: different, Ben: unsure",
        }
    ]


def test_edits_judged_wrong_are_removed_and_the_other_lines_are_unchanged(edits: Path):
    verdict_of = {
        f"Edit {n}.": word for n, word in enumerate(["different", "different", "unsure", "b"])
    }
    ann, ben = fill_sheet(edits, "Ann", verdict_of), fill_sheet(edits, "Ben", {"Edit 0.": "same"})
    out = edits.with_name("right.jsonl")
    outcome = call("verdicts", edits, ann, ben, "--output", out)
    lines = edits.read_text().splitlines()
    # 0: one against one; 1 as intended; 2 unsure; 3 broken; the others have no verdict
    assert out.read_text().splitlines() == [lines[1], lines[2], *lines[4:]]
    assert "2 edits left out" in outcome.stderr
    assert "exists" in call("verdicts", edits, ann, "--output", out, code=1).stderr


def test_verdicts_stored_by_an_earlier_version_are_used_if_no_sheet_is_named(
    edits: Path, tmp_path: Path
):
    cache, judged = tmp_path / "cache", open_edits(str(edits))
    assert "edits have no verdicts" in call("--cache", cache, "verdicts", edits, code=1).stderr
    ids = [edit.id for edit in judged.edits[:4]]
    path = mine.path(Store(cache).root, "verdicts") / f"{judged.digest}.jsonl"
    for edit, verdict in [*((edit, "same") for edit in ids), (ids[0], "broken"), (ids[2], "")]:
        files.append_json(path, {"judge": "Ann", "edit": edit, "verdict": verdict, "when": ""})
    outcome = call("--cache", cache, "verdicts", edits, "--format", "json")
    table = pd.read_json(io.StringIO(outcome.stdout)).set_index(["judge", "intended"])
    assert table.loc[("Ann", "all"), ["edits", "as_intended", "broken"]].tolist() == [3, 0, 1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("id,verdict\nffffffffffff,same\n", "row 2, column 'id': "),
        ("id,verdict\nID,sane\n", "row 2, column 'verdict': 'sane'"),
        (
            "id,verdict\nID,same\nID,different\n",
            "row 3, column 'id': 'bad' already judged this edit in row 2",
        ),
        ("id;note\nID;x\n", "no column 'verdict'"),
        ("", "no column 'id'"),
        (b"\xff\xfe", "not UTF-8"),
        ('id,verdict\n"' + "x" * 200_000, "not valid CSV"),
    ],
)
def test_an_invalid_sheet_is_refused_in_one_line(edits: Path, text: str | bytes, words: str):
    path = edits.with_name("bad.csv")
    content = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(content.replace(b"ID", open_edits(str(edits)).edits[0].id.encode()))
    outcome = call("verdicts", edits, path, code=1)
    assert words in outcome.stderr and outcome.stderr.count("\n") == 1


def test_overlapping_sheets_of_one_judge_are_refused(edits: Path):
    ann = fill_sheet(edits, "Ann", {"Edit 0.": "same"})
    other = fill_sheet(edits, "other", {"Edit 0.": "same"}, judge="Ann")
    assert "on the same edit" in call("verdicts", edits, ann, other, code=1).stderr


def test_a_sheet_with_semicolons_is_read(edits: Path):
    path = edits.with_name("Ann.csv")
    path.write_text(f"id;edit;verdict\n{open_edits(str(edits)).edits[1].id};x, y;D\n")
    outcome = call("verdicts", edits, path, "--format", "json")
    assert json.loads(outcome.stdout)[0]["as_intended"] == 1
