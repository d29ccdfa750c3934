"""Malicious embeddings and score matrices: a one-line error names the file and the row."""

import json
import os
import pickle
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.hostile.files import Trap, archive, header, lines, parquet, refused, saved
from vlprobe import registry
from vlprobe.errors import InvalidInput
from vlprobe.storage import access

UNIT = np.eye(3, dtype=np.float32)
LONG = UNIT * np.array([[1], [1], [5]])
HOLED = np.where(np.arange(9).reshape(3, 3) == 5, np.nan, UNIT)
GOOD = {"id": "a", "embedding": [1, 0]}
WRITTEN = parquet(id=["a", "b"], embedding=[[1.0, 0.0], [0.0, 1.0]])
ZIPPED = archive(texts=saved(UNIT), pictures=saved(UNIT))
FILES = {
    "objects in an array": ("a.npy", saved(np.array([Trap()], dtype=object)), "Python objects"),
    "objects in an archive": ("a.npz", archive(texts=saved(np.array([[Trap()]], dtype=object))), "Object arrays"),
    "a pickle with another name": ("a.npy", pickle.dumps(Trap()), "cannot be read as numbers"),
    "ten gigabytes in a hundred bytes": ("a.npy", header("(2, 10000, 62500)"), "greater than file size"),
    "more than any number": ("a.npy", header("(2, 99999999999, 99999999999)"), "cannot be read as numbers"),
    "a negative shape": ("a.npy", header("(2, -1, 2)") + bytes(64), "negative dimensions"),
    "a header without an end": ("a.npy", header("(1, ("), "cannot be read as numbers"),
    "words in place of numbers": ("a.npy", saved(np.array([["a"]])), "contains <U1 values of shape (1, 1)"),
    "one side alone": ("a.npy", saved(UNIT), "of shape (3, 3). Expected (2, n, dim)"),
    "gigabytes in an archive": (
        "a.npz",
        archive(texts=header("(40000000, 8)") + bytes(64)),
        "EOF: reading array data",
    ),
    "an archive that is none": ("a.npz", b"PK\x03\x04", "cannot be read as numbers"),
    "an archive that is cut": ("a.npz", ZIPPED[: len(ZIPPED) // 2], "cannot be read as numbers"),
    "an archive of other arrays": ("a.npz", archive(x=saved(UNIT)), "contains x. Expected 'pictures' and 'texts'"),
    "another width": (
        "a.npz",
        archive(texts=saved(UNIT), pictures=saved(np.eye(4))),
        "has 4-dimensional image and 3-dimensional text embeddings",
    ),
    "ids of another length": (
        "a.npz",
        archive(texts=saved(UNIT), text_ids=saved(np.array(["a"]))),
        "has 1 ids for 3 rows",
    ),
    "ids that are none": ("a.npz", archive(texts=saved(UNIT), text_ids=saved(UNIT)), "'text_ids' has type float32"),
    "ids twice": (
        "a.npz",
        archive(texts=saved(UNIT), text_ids=saved(np.array(["a", "a", "b"]))),
        "'a' more than once",
    ),
    "not normalised": ("a.npz", archive(texts=saved(LONG)), "row 2: the vector has length 5. Expected 1: normalize"),
    "not normalised, by name": (
        "a.npz",
        archive(texts=saved(LONG), text_ids=saved(np.array(["a", "b", "the third"]))),
        "row 2 ('the third'): the vector has length 5",
    ),
    "NaN among numbers": ("a.npz", archive(texts=saved(HOLED)), "row 1: a number in the vector is NaN"),
    "an infinite number": ("a.npz", archive(texts=saved(np.array([[np.inf, 0]]))), "row 0: a number in the vector"),
    "no direction": ("a.npz", archive(texts=saved(np.zeros((2, 2)))), "row 0: the vector is all zeros"),
    "no rows of numbers": ("a.npz", archive(texts=saved(np.zeros(3))), "Expected one vector per row"),
    "Parquet that is cut": ("a.parquet", WRITTEN[: len(WRITTEN) // 2], "is not a valid table"),
    "no Parquet": ("a.parquet", b"PAR1PAR1", "is not a valid table"),
    "words for vectors": ("a.parquet", parquet(id=["a"], embedding=["x"]), "is not a valid table"),
    "vectors of two lengths": (
        "a.parquet",
        parquet(id=["a", "b"], embedding=[[1.0], [1.0, 0.0]]),
        "row 1: the vectors differ in dimension (1, 2)",
    ),
    "a key that is none": (
        "a.parquet",
        parquet(id=pa.array([None], pa.string()), embedding=[[1.0]]),
        "row 0: the key is empty",
    ),
    "no columns of use": ("a.parquet", parquet(x=[1]), "has the columns x. Expected an id and an embedding"),
    "a vector that is none": ("a.jsonl", lines(GOOD, GOOD | {"embedding": "high"}), "row 1: 'high' is not a vector"),
    "a truth in a vector": ("a.jsonl", lines(GOOD | {"embedding": [True, 0]}), "is not a vector"),
    "a list in a vector": ("a.jsonl", lines(GOOD | {"embedding": [[1], 0]}), "is not a vector"),
    "a giant in a vector": ("a.jsonl", b'{"id": "a", "embedding": [1' + b"0" * 400 + b"]}", "is not a vector"),
    "rows of two lengths": (
        "a.jsonl",
        lines(GOOD, {"id": "b", "embedding": [1, 0, 0]}),
        "the vectors differ in dimension (2, 3)",
    ),
    "no object": ("a.jsonl", lines(GOOD, 3), "row 2, is not a JSON object"),
    "a key twice": ("a.jsonl", lines(GOOD, GOOD), "'a' more than once"),
    "nested too deeply": ("a.jsonl", b"[" * 100_000, "nested too deeply"),
    "nested too deeply inside": (
        "a.jsonl",
        json.dumps({"id": "a", "embedding": "[" * 100_000}).encode(),
        "[[[[' is not a vector",
    ),
    "a table without rows": ("a.csv", b"id,embedding\n", "contains no vectors"),
    "a table of nothing": ("a.csv", b"", "has the columns none"),
    "fields that are missing": ("a.csv", b"id,e0,e1\na,1\n", "Expected 3 columns, got 2: a,1"),
    "a word for a number": ("a.csv", b"id,e0,e1\na,1,0\nb,x,0\n", "Row #3: CSV conversion error"),
    "numbers with a gap": ("a.csv", b"id,e0,e2\na,1,0\n", "Expected an id and an embedding"),
    "duplicate column names": ("a.csv", b"id,e0,E0\na,1,0\n", "duplicate column names"),
    "no UTF-8": ("a.csv", b"id,e0\n\xff,1\n", "is not UTF-8"),
    "an ending of nobody": ("a.pkl", pickle.dumps(Trap()), "has an unknown file extension"),
}  # fmt: skip


@pytest.mark.parametrize("what", FILES)
def test_malformed_embeddings_are_refused_with_an_error_that_names_the_file(
    what: str, tmp_path: Path
):
    name, content, expected = FILES[what]
    (tmp_path / name).write_bytes(content)
    message = refused(f"embeddings:{tmp_path / name}")
    assert expected in message and name in message


MATRICES = {
    "objects": (saved(np.array([[Trap()]], dtype=object)), "Python objects"),
    "ten gigabytes": (header("(40000, 31250)"), "greater than file size"),
    "three dimensions": (saved(np.zeros((2, 2, 2))), "Expected a score for each picture"),
    "an infinite score": (
        saved(np.array([[0, 1], [np.inf, 0]])),
        "row 1, column 0: the score is inf. Expected a finite number",
    ),
}


@pytest.mark.parametrize("what", MATRICES)
def test_a_malformed_score_matrix_is_refused_in_one_line(what: str, tmp_path: Path):
    content, expected = MATRICES[what]
    (tmp_path / "scores.npy").write_bytes(content)
    assert expected in refused(f"scores:{tmp_path}")
    assert expected in refused(f"scores:{tmp_path}/scores.npy+matrix")


def test_a_score_outside_its_scale_is_refused_with_its_row_and_column(tmp_path: Path):
    np.save(tmp_path / "scores.npy", np.array([[0.5, 7]]))
    message = refused(f"scores:{tmp_path}+probability")
    assert "row 0, column 1: the score is 7. Expected a probability" in message


NAMES = {
    "nothing": ("embeddings:", "does not name a file"),
    "no file": ("embeddings:gone.npz", "cannot be read"),
    "a folder of other things": ("embeddings:/tmp", "has no texts.npy"),
    "a device": ("embeddings:/dev/zero", "unknown file extension"),
    "an option of nobody": ("embeddings:FILE+cosine", "'cosine' in .* is not a valid option"),
    "a column that is not there": ("embeddings:FILE+vector=sim", "has the columns id, e0"),
    "no matrix": ("scores:FILE+matrix", "is not a score matrix"),
}


@pytest.mark.parametrize("what", NAMES)
def test_an_invalid_name_of_imported_answers_is_refused_in_one_line(what: str, tmp_path: Path):
    name, expected = NAMES[what]
    (tmp_path / "a.csv").write_text("id,e0\na,1\n")
    with pytest.raises(InvalidInput, match=expected):
        model = name.replace("FILE", str(tmp_path / "a.csv"))
        registry.check_name("models", model)
        registry.load_model(model)


def test_a_pipe_and_a_link_that_leaves_the_roots_are_not_opened(tmp_path: Path, monkeypatch):
    os.mkfifo(tmp_path / "texts.npz")
    assert "Not a regular file" in refused(f"embeddings:{tmp_path}/texts.npz")
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    np.save(outside / "texts.npy", UNIT)
    np.save(outside / "scores.npy", UNIT)
    (inside / "texts.npy").symlink_to(outside / "texts.npy")
    (inside / "scores.npy").symlink_to(outside / "scores.npy")
    monkeypatch.setenv(access.ROOTS, str(inside))
    names = [
        f"embeddings:{inside}",
        f"embeddings:{outside}",
        f"scores:{inside}",
        f"scores:{outside}+matrix",
    ]
    for name in names:
        assert "outside the folders" in refused(name)
    monkeypatch.delenv(access.ROOTS)
    monkeypatch.setenv(access.READ_ONLY, "1")
    for name in (f"embeddings:{outside}", f"scores:{outside}"):
        assert "read-only" in refused(name)


def test_a_large_embedding_file_is_read_in_blocks(tmp_path: Path):
    shape = (200_000, 64)
    array = np.lib.format.open_memmap(tmp_path / "texts.npy", "w+", np.float32, shape)
    array[:] = 1 / 8
    array.flush()
    del array
    tracemalloc.start()
    model = registry.load_model(f"embeddings:{tmp_path}")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert model.capabilities.dim == 64
    assert peak < 40 << 20  # the file has 49 MiB and is read in blocks of 16 MiB
