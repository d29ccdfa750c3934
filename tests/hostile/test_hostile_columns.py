"""Malicious Parquet files: each is refused with a one-line error, in bounded memory."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.conftest import tiers
from tests.storage.test_containers import png
from vlprobe.datasets.tables import reader
from vlprobe.errors import InvalidInput

CAPTIONS = [f"A photo of {number} dogs." for number in range(8)]
PICTURES = [png(color) for color in ("red", "green", "blue", "black")] * 2
LABELS = pa.array(["cat", "dog"] * 4).dictionary_encode()

# A child process prints for each file the one-line error or the number of rows and the picture sizes.
READ = """
import sys
from pathlib import Path
from vlprobe.datasets import table
from vlprobe.errors import VlprobeError
from vlprobe.scoring import pictures

for name in sys.argv[2:]:
    try:
        items = table.load(f"table:{name}", Path(sys.argv[1])).items
        sizes = {pictures.open_picture(item.image).size for item in items}
        print("read", len(items), *sizes, flush=True)
    except VlprobeError as error:
        print("one line:", error, flush=True)
"""


def lines_of_a_child(folder: Path, *files: Path, code: str = READ) -> list[str]:
    """Return the lines that a child process prints for the files. Check that it exits with 0."""
    command = [sys.executable, "-c", code, str(folder / "cache"), *map(str, files)]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0, (ended.returncode, ended.stderr[-2000:])
    return ended.stdout.splitlines()


def parquet(file: Path) -> bytes:
    columns = {
        "caption": pa.array(CAPTIONS),
        "image": pa.array([{"bytes": content, "path": "x"} for content in PICTURES]),
        "label": LABELS,
        "words": pa.array([caption.split() for caption in CAPTIONS]),
    }
    pq.write_table(pa.table(columns), file)
    return file.read_bytes()


def test_a_parquet_file_with_random_bytes_changed_is_read_or_refused_in_one_line(tmp_path: Path):
    content, rng = parquet(tmp_path / "good.parquet"), np.random.default_rng(0)
    files = []
    for number in range(60):
        broken = bytearray(
            content[: rng.integers(40, len(content))] if number % 4 == 0 else content
        )
        for place in rng.integers(0, len(broken), 1 + number % 5):
            broken[place] = rng.integers(256)
        files.append(tmp_path / f"{number}.parquet")
        files[-1].write_bytes(broken)
    for line in lines_of_a_child(tmp_path, *files):
        assert line.startswith(("read ", "one line: "))


@pytest.mark.parametrize("suffix", [".arrow", ".feather", ".ipc"])
def test_the_error_for_an_arrow_file_shows_how_to_convert_it_to_parquet(
    suffix: str, tmp_path: Path
):
    (tmp_path / f"x{suffix}").write_bytes(b"ARROW1")
    with pytest.raises(InvalidInput, match=r"Save it as Parquet: pandas.read_feather"):
        reader.read(tmp_path / f"x{suffix}")


CHANGES = {
    "truncated": "os.truncate(file, 9)",
    "overwritten": "file.write_bytes(os.urandom(file.stat().st_size))",
    "deleted": "file.unlink()",
}
READ_THEN_CHANGE = """
import os, sys
from pathlib import Path
from vlprobe.datasets import table
from vlprobe.datasets.tables import reader
from vlprobe.errors import VlprobeError
from vlprobe.scoring import pictures
from vlprobe.storage import containers, memo

file = Path(sys.argv[2])
columns = reader.read(file)
first = table.load(f"table:{file}", Path(sys.argv[1])).items[0]
pictures.open_picture(first.image)
remembered = containers._group(str(file), "image", 0, *memo.stamp(file))
CHANGE
print(columns.values("caption")[7], len(remembered[7]["bytes"].as_py()))
try:
    pictures.open_picture(first.image)
except VlprobeError as error:
    print("one line:", error)
"""


@pytest.mark.parametrize("change", tiers(CHANGES, ("truncated",)))
def test_a_file_that_changes_after_reading_does_not_crash_the_process(change: str, tmp_path: Path):
    parquet(tmp_path / "a.parquet")
    code = READ_THEN_CHANGE.replace("CHANGE", CHANGES[change])
    cached, error_line = lines_of_a_child(tmp_path, tmp_path / "a.parquet", code=code)
    assert cached == f"{CAPTIONS[7]} {len(PICTURES[7])}"
    assert error_line.startswith("one line: ")


READ_AND_MEASURE = """
import sys
from pathlib import Path
import pyarrow as pa
from vlprobe.datasets.tables import reader
from vlprobe.errors import VlprobeError

reader.MOST_BYTES = 100_000_000
for name in sys.argv[2:]:
    try:
        reader.read(Path(name))
        print("read")
    except VlprobeError as error:
        print(error)
print(pa.default_memory_pool().max_memory())
"""


def test_a_small_parquet_file_with_much_text_is_refused_before_decompression(tmp_path: Path):
    """Each file decompresses to 300 MB of text; 100 MB are allowed."""
    long = "x" * 1_000_000
    shared = pa.DictionaryArray.from_arrays(np.zeros(300, np.int32), [long])
    texts = {
        "text": (pa.table({"caption": shared}), {}),
        "list": (pa.table({"caption": pa.ListArray.from_arrays([0, 300], shared)}), {}),
        "delta": (
            pa.table({"caption": [f"{long}{number}" for number in range(300)]}),
            {"use_dictionary": False, "column_encoding": {"caption": "DELTA_BYTE_ARRAY"}},
        ),
    }
    files = [tmp_path / f"{name}.parquet" for name in texts]
    for file, (content, options) in zip(files, texts.values(), strict=True):
        pq.write_table(content, file, compression="zstd", **options)
        assert file.stat().st_size < 3_000
    *lines, peak = lines_of_a_child(tmp_path, *files, code=READ_AND_MEASURE)
    assert "has 300,0" in lines[0] and "bytes of text when decompressed" in lines[0]
    assert "has 300,0" in lines[1] and "in a delta encoding" in lines[2]
    assert int(peak) < 50_000_000


def test_a_parquet_file_with_mismatched_column_statistics_is_refused_in_one_line(tmp_path: Path):
    """pyarrow 26 crashes when it reads the metadata of such a column."""
    file = tmp_path / "x.parquet"
    pq.write_table(pa.table({"caption": CAPTIONS, "image": PICTURES}), file)
    content = file.read_bytes()
    optional, required = b"\x25\x02\x18\x07caption", b"\x25\x00\x18\x07caption"
    assert content.count(optional) == 1
    file.write_bytes(content.replace(optional, required))
    (line,) = lines_of_a_child(tmp_path, file)
    assert line.startswith("one line: ")
    code = READ.replace(
        'table.load(f"table:{name}", Path(sys.argv[1])).items', "read_vectors(Path(name), {})"
    )
    code = "from vlprobe.models.from_files.vectors import read_vectors\n" + code
    (line,) = lines_of_a_child(tmp_path, file, code=code)
    assert line.startswith("one line: ")


def test_a_picture_shared_by_many_rows_is_read_once(tmp_path: Path):
    """Without dictionary encoding, the pictures of this file take 300 MB."""
    content = b"BM" + bytes(1_000_000)
    shared = pa.DictionaryArray.from_arrays(np.zeros(300, np.int32), [content])
    pq.write_table(pa.table({"image": shared}), tmp_path / "x.parquet", store_schema=False)
    code = "import sys; from pathlib import Path; import pyarrow as pa; from vlprobe.storage import containers\n"
    code += "print(len(containers.read(Path(sys.argv[2]) / 'image' / '299')))\n"
    code += "print(pa.default_memory_pool().max_memory())"
    size, peak = lines_of_a_child(tmp_path, tmp_path / "x.parquet", code=code)
    assert int(size) == len(content) and int(peak) < 50_000_000


def test_a_parquet_file_with_too_many_rows_is_refused_whatever_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(reader, "MOST_ROWS", 999)
    content = pa.table({"caption": ["a"] * 1_000, "image": ["b"] * 1_000})
    pq.write_table(content, tmp_path / "x.parquet")
    with pytest.raises(InvalidInput, match=r"has 1,000 rows\. The maximum is 999"):
        reader.read(tmp_path / "x.parquet")


@pytest.mark.parametrize("text", [pa.string(), pa.large_string(), pa.string_view()])
def test_string_columns_of_every_arrow_type_are_read(text: pa.DataType, tmp_path: Path):
    """Compare the columns with the Python lists from which the file was written."""
    captions = [*CAPTIONS, None, "ü\u200b"] * 1_000
    words = [(caption or "").split() for caption in captions]
    columns = {
        "caption": pa.array(captions, text),
        "words": pa.array(words, pa.large_list(pa.large_string())),
        "said": pa.array([[{"raw": word, "n": 1} for word in row] for row in words]),
        "number": pa.array(range(len(captions))),
        "by": pa.array([{"name": "x", "n": [1]} for _ in captions]),
        "image": pa.array([b"x"] * len(captions)),
    }
    content = pa.table(columns)
    pq.write_table(content, tmp_path / "x.parquet", row_group_size=3_000)
    read = reader.read(tmp_path / "x.parquet")
    assert read.values("caption") == [caption or "" for caption in captions]
    assert read.values("words") == words == read.values("said")
    assert read.values("number") == [str(number) for number in range(len(captions))]
    assert set(read.values("by.name")) == {"x"} and read.skipped == ("by.n",)
    assert len(read.values("image")) == read.n_rows == len(captions)


def test_an_empty_parquet_table_has_its_columns_and_no_rows(tmp_path: Path):
    content = pa.table({"caption": pa.array([], pa.string()), "image": pa.array([], pa.binary())})
    pq.write_table(content, tmp_path / "x.parquet")
    read = reader.read(tmp_path / "x.parquet")
    assert read.names == {"caption", "image"} and read.n_rows == 0
    assert read.values("caption") == [] == read.values("image")
