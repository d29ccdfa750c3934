"""Malicious score files: a one-line error, in bounded memory."""

import pickle
from pathlib import Path

import numpy as np
import pytest

from tests.hostile.files import Trap, archive, header, lines, parquet, refused, saved
from vlprobe import registry
from vlprobe.errors import InvalidInput
from vlprobe.models import score_table
from vlprobe.models.from_files import arrays, tables

GOOD = {"label": "a_c0_i0", "score": 0.5}
FILES = {
    "objects in an array": ("a.npy", saved(np.array([Trap()], dtype=object)), "Python objects"),
    "objects in an archive": (
        "a.npz",
        archive(scores=saved(np.array([[Trap()]], dtype=object))),
        "Object arrays cannot be loaded",
    ),
    "a pickle with another name": ("a.npy", pickle.dumps(Trap()), "cannot be read as numbers"),
    "an array of more than there is": ("a.npy", header("(9, 9)"), "cannot be read as numbers"),
    "an array of more than fits": ("a.npy", header("(2000000, 2000000)"), "greater than file size"),
    "a negative shape": ("a.npy", header("(-1, 2)") + bytes(64), "negative dimensions"),
    "a header without an end": ("a.npy", header("(1, ("), "cannot be read as numbers"),
    "words in place of numbers": ("a.npy", saved(np.array([["a"]])), "Expected shape"),
    "one number": ("a.npy", saved(np.array(1.0)), "Expected shape"),
    "an infinite number": ("a.npy", saved(np.array([[1, np.inf]])), "item 0: a score is infinite"),
    "an archive that is none": ("a.npz", b"PK\x03\x04", "cannot be read as numbers"),
    "an archive of other arrays": ("a.npz", archive(x=saved(np.eye(2))), "contains x. Expected"),
    "ids of another length": (
        "a.npz",
        archive(scores=saved(np.eye(2)), ids=saved(np.array(["a"]))),
        "for 2 items",
    ),
    "ids twice": (
        "a.npz",
        archive(scores=saved(np.eye(2)), ids=saved(np.array(["a", "a"]))),
        "'a' more than once",
    ),
    "no Parquet": ("a.parquet", b"PAR1PAR1", "is not a valid table"),
    "lists in Parquet": ("a.parquet", parquet(label=[["a"]], score=[[1]]), "has the columns none"),
    "an infinite field": (
        "a.parquet",
        parquet(label=["a_c0_i0"], score=[float("inf")]),
        "row 1: 'score' is infinite",
    ),
    "a label of no form": ("a.jsonl", lines(GOOD, GOOD | {"label": "a"}), "row 2: 'a' is not a valid label"),
    "a caption of no room": (
        "a.jsonl",
        lines(*(GOOD | {"label": f"{n}_c99999_i99999"} for n in range(9))),
        "The maximum is 50,000,000 scores",
    ),
    "a number of many digits": ("a.jsonl", lines(GOOD | {"label": "a_c123456_i0"}), "is not a valid label"),
    "a score twice": ("a.jsonl", lines(GOOD, GOOD), "row 2: 'a_c0_i0' has more than one score"),
    "a text for a score": ("a.jsonl", lines(GOOD | {"score": "high"}), "'high' in 'score' is not"),
    "a truth for a score": ("a.jsonl", lines(GOOD | {"score": True}), "'True' in 'score' is not"),
    "a list for a score": ("a.jsonl", lines(GOOD | {"score": [1]}), "is not a number"),
    "a giant for a score": ("a.jsonl", b'{"label": "a_c0_i0", "score": 1' + b"0" * 400 + b"}", "is not a number"),
    "no object": ("a.jsonl", lines(GOOD, 3), "row 2, is not a JSON object"),
    "no label": ("a.jsonl", lines({"score": 1}), "has the columns score"),
    "an empty label": ("a.jsonl", lines(GOOD | {"label": None}), "row 1: 'label' is empty"),
    "the same name twice": ("a.jsonl", lines({"Score": 1, **GOOD}), "duplicate column names"),
    "nested too deeply": ("a.jsonl", b"[" * 100_000, "nested too deeply"),
    "too many names": ("a.jsonl", lines({str(n): n for n in range(10_001)}), "10,001 different keys"),
    "a table without rows": ("a.csv", b"label,score\n", "has the columns none"),
    "no UTF-8": ("a.csv", b"label,score\n\xff,1\n", "is not UTF-8"),
    "a line that is none": ("a.csv", b"label,score\na_c0_i0,x\n", "line 2: 'x' in 'score'"),
    "a caption that is none": ("a.csv", b"case,caption,image,score\na,-1,0,1\n", "'-1' in 'caption' is not a number"),
    "a case twice": ("a.csv", b"case,c0_i0\na,1\na,2\n", "'a' more than once"),
    "an ending of nobody": ("a.pkl", pickle.dumps(Trap()), "has an unknown file extension"),
}  # fmt: skip


@pytest.mark.parametrize("what", FILES)
def test_a_malformed_score_file_is_refused_in_one_line(what: str, tmp_path: Path):
    name, content, expected = FILES[what]
    (tmp_path / name).write_bytes(content)
    assert expected in refused(f"scores:{tmp_path / name}")


NAMES = {
    "nothing": ("scores:", "does not name a file"),
    "no file": ("scores:gone.csv", "cannot be read"),
    "a folder": ("scores:/tmp", "unknown file extension"),
    "a folder that ends so": ("scores:FOLDER", "cannot be read|Is a directory"),
    "a device": ("scores:/dev/zero", "unknown file extension"),
    "an option of nobody": ("scores:FILE+best", "'best' in .* is not a valid option"),
    "two scales": ("scores:FILE+cosine+logit", "several scales: cosine and logit"),
    "a column that is not there": ("scores:FILE+score=sim", "but no 'sim'"),
    "a wrong scale": (
        "scores:FILE+probability",
        "1 of 1 scores in .* are outside the range of a probability",
    ),
    "a cosine that is none": ("scores:FILE+cosine", "are outside the range of a cosine"),
    "columns of an array": ("scores:ARRAY+score=x", "has no columns to map"),
}


@pytest.mark.parametrize("what", NAMES)
def test_an_invalid_name_of_imported_answers_is_refused_in_one_line(what: str, tmp_path: Path):
    name, expected = NAMES[what]
    (tmp_path / "a.csv").write_text("label,score\na_c0_i0,7\n")
    np.save(tmp_path / "a.npy", np.eye(2))
    (tmp_path / "b.csv").mkdir()
    for word, file in (("FILE", "a.csv"), ("ARRAY", "a.npy"), ("FOLDER", "b.csv")):
        name = name.replace(word, str(tmp_path / file))
    with pytest.raises(InvalidInput, match=expected):
        registry.load_model(name)


def test_a_score_file_above_the_size_limit_is_refused(tmp_path: Path, monkeypatch):
    for name, limit in (("a.csv", "MAX_TEXT_BYTES"), ("a.npy", "MAX_BYTES")):
        monkeypatch.setattr(arrays, limit, 10 << 20)
        with (tmp_path / name).open("wb") as handle:
            handle.truncate((10 << 20) + 1)
        with pytest.raises(InvalidInput, match=r"is 10 MiB\. The maximum is 10 MiB"):
            registry.load_model(f"scores:{tmp_path / name}")


def test_an_npz_archive_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch):
    (tmp_path / "a.npz").write_bytes(archive(scores=bytes(20 << 20)))
    monkeypatch.setattr(arrays, "MAX_BYTES", 10 << 20)
    with pytest.raises(InvalidInput, match="unpacks to more than 10 MiB"):
        registry.load_model(f"scores:{tmp_path / 'a.npz'}")


def test_a_score_table_with_too_many_rows_is_refused(tmp_path: Path, monkeypatch):
    (tmp_path / "a.parquet").write_bytes(parquet(label=["a_c0_i0"] * 9, score=[1.0] * 9))
    monkeypatch.setattr(tables, "MAX_ROWS", 8)
    with pytest.raises(InvalidInput, match="declares 9 rows"):
        registry.load_model(f"scores:{tmp_path / 'a.parquet'}")
    assert score_table.MAX_ROWS > 8
