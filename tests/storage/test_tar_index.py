import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.storage.test_containers import write_tar
from vlprobe.datasets.tables import shards
from vlprobe.storage import memo, tar_index, tars


@pytest.fixture(autouse=True)
def of_all_sizes_and_times(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(memo, "SETTLED_NS", -(10**18))
    monkeypatch.setattr(tar_index, "FEWEST", 1)
    monkeypatch.setattr(tars, "_indexes", {})


def scans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tars that are gone through from now on."""
    scanned, scan = [], tars._members
    monkeypatch.setattr(
        tars, "_members", lambda file, *rest: scanned.append(file) or scan(file, *rest)
    )
    return scanned


def again(file: Path, cache: Path) -> dict[str, tars.Member]:
    """As another process asks."""
    tars._indexes.clear()
    return tars.members(file, cache)


def test_another_process_reads_the_kept_index_until_the_tar_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    file = write_tar(tmp_path / "x.tar", {"ü.jpg": b"a" * 700, "b.txt": b"bb"})
    cache = tmp_path / "cache"
    first = tars.members(file, cache)
    scanned = scans(monkeypatch)
    assert list(again(file, cache).items()) == list(first.items())
    assert tars.read(file, "ü.jpg") == b"a" * 700
    assert not scanned
    changed = os.stat(file).st_mtime_ns
    write_tar(file, {"c.jpg": b"a" * 700, "d.txt": b"bb"})
    os.utime(file, ns=(changed, changed))
    assert list(again(file, cache)) == ["c.jpg", "d.txt"]
    assert scanned == [str(file)]


def test_a_table_of_a_tar_keeps_its_index_for_a_process_that_is_started_anew(tmp_path: Path):
    file = write_tar(tmp_path / "x.tar", {"1.jpg": b"x", "1.txt": b"A dog."})
    rows = shards.rows_of(file, tmp_path / "cache")
    program = (
        "import sys; from pathlib import Path; from vlprobe.storage import tars\n"
        "tars._members = None\n"
        "print(list(tars.members(Path(sys.argv[1]), Path(sys.argv[2]))))"
    )
    command = [sys.executable, "-c", program, str(file), str(tmp_path / "cache")]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert shown.strip() == "['1.jpg', '1.txt']"
    assert rows[0]["caption"] == "A dog."


@pytest.mark.parametrize(
    "change",
    [
        lambda kept: kept.write_text("{"),
        lambda kept: kept.write_text('{"stamp": 3, "names": 4}'),
        lambda kept: kept.write_text(kept.read_text().replace("512", "-512")),
        lambda kept: kept.write_text(kept.read_text().replace("512", "51200000")),
        lambda kept: kept.write_text(kept.read_text().replace('"a.jpg"', '"a.jpg", "b.jpg"')),
        lambda kept: kept.write_text(kept.read_text().replace('"a.jpg"', "7")),
        lambda kept: kept.chmod(0o666),
    ],
)
def test_an_index_that_is_damaged_or_of_others_is_not_believed(
    change, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    file = write_tar(tmp_path / "x.tar", {"a.jpg": b"abc"})
    expected = tars.members(file, tmp_path)
    (kept,) = (tmp_path / tar_index.FOLDER).iterdir()
    change(kept)
    scanned = scans(monkeypatch)
    assert again(file, tmp_path) == expected
    assert scanned


def test_a_tar_of_this_moment_and_one_that_verify_reads_are_gone_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    file = write_tar(tmp_path / "x.tar", {"a.jpg": b"abc"})
    monkeypatch.setattr(memo, "SETTLED_NS", 10**15)
    tars.members(file, tmp_path)
    assert not (tmp_path / tar_index.FOLDER).exists()
    monkeypatch.setattr(memo, "SETTLED_NS", -(10**18))
    again(file, tmp_path)
    scanned = scans(monkeypatch)
    with memo.reading_all():
        again(file, tmp_path)
    assert scanned


def test_all_indexes_together_are_bounded_and_the_oldest_goes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    names = [f"{number}.tar" for number in range(4)]
    for number, name in enumerate(names):
        file = write_tar(tmp_path / name, {"a.jpg": b"abc"})
        tars.members(file, tmp_path)
        kept = tar_index._path(file, tmp_path)
        os.utime(kept, (number, number))
        monkeypatch.setattr(tar_index, "MOST_BYTES", int(2.5 * kept.stat().st_size))
    exist = [tar_index._path(tmp_path / name, tmp_path).exists() for name in names]
    assert exist == [False, False, True, True]


def test_a_folder_that_cannot_be_written_changes_nothing(tmp_path: Path):
    file = write_tar(tmp_path / "x.tar", {"a.jpg": b"abc"})
    cache = tmp_path / "a file"
    cache.write_text("no folder")
    assert list(tars.members(file, cache)) == ["a.jpg"]
    assert list(again(file, cache)) == ["a.jpg"]
