"""Annotations and paid answers are in one folder of the cache, even if an older version stored them elsewhere."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from vlprobe.runs.edits import sheet
from vlprobe.storage import access, annotations, bookmarks, display_names, files, mine
from vlprobe.storage.annotations import Annotation
from vlprobe.storage.answer_log import FOLDER, AnswerLog, KeptAnswer
from vlprobe.storage.store import Store

KEY, EDITS = "a" * 16, "b" * 32
TAGGED = Annotation(3, "c3", ("odd",), "first")
TEXTS = ("display_names.json", "bookmarks.json")
FOLDERS = ("annotations", "verdicts", FOLDER)


def write_all(store: Store) -> None:
    annotations.write(store, KEY, TAGGED)
    line = {"judge": "Ada", "edit": "edit-1", "verdict": "right"}
    files.append_json(mine.path(store.root, "verdicts") / f"{EDITS}.jsonl", line)
    display_names.rename(store, "demo:weak", "Half")
    bookmarks.VIEWS.save(store, "worst", "kind=flip")


def read_all(store: Store) -> list:
    return [
        annotations.read(store, KEY).current,
        sheet.read_stored(store, EDITS),
        display_names.read(store),
        bookmarks.VIEWS.read(store),
    ]


@pytest.fixture
def before(store: Store) -> list:
    """Write all content where older versions wrote it, directly into the cache, and return it."""
    write_all(store)
    content = read_all(store)
    for path in list((store.root / "mine").iterdir()):
        os.rename(path, store.root / path.name)
    (store.root / "mine").rmdir()
    return content


def test_all_folders_of_the_cache_except_mine_can_be_deleted(store: Store):
    write_all(store)
    before = read_all(store)
    for path in store.root.iterdir():
        if path.name != "mine":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert read_all(store) == before and all(before)


def test_an_old_cache_is_read_and_moved_once(store: Store, before: list):
    log = AnswerLog(store.root / FOLDER / "c")  # where older versions stored answers
    log.append(["q"], "42")
    assert read_all(store) == before
    assert not [name for name in (*TEXTS, *FOLDERS[:2]) if (store.root / name).exists()]
    annotations.write(store, KEY, Annotation(5, "c5", ("even",)))
    assert [one.case for one in annotations.read(store, KEY).current] == [5, 3]


def test_files_that_an_older_version_writes_after_the_move_are_merged(store: Store):
    write_all(store)
    (store.root / "annotations").mkdir()
    later = {"case": 9, "id": "c9", "tags": ["even"], "note": ""}
    (store.root / "annotations" / f"{KEY}.jsonl").write_text(json.dumps(later) + "\n")
    (store.root / "annotations" / f"{KEY}.lock").touch()
    (store.root / "annotations" / "other.jsonl").write_text(json.dumps(later) + "\n")
    (store.root / "bookmarks.json").write_text('{"worst": "old", "best": "kind=flip&sort=best"}')
    assert [one.case for one in annotations.read(store, KEY).current] == [9, 3]
    assert bookmarks.VIEWS.read(store) == {"best": "kind=flip&sort=best", "worst": "kind=flip"}
    assert (store.root / "mine" / "annotations" / "other.jsonl").exists()
    assert not (store.root / "annotations").exists()


def test_a_damaged_file_of_an_older_version_is_not_deleted(store: Store):
    write_all(store)
    (store.root / "bookmarks.json").write_text("not JSON")
    assert bookmarks.VIEWS.read(store) == {"worst": "kind=flip"}
    assert (store.root / "bookmarks.json").read_text() == "not JSON"


@pytest.mark.parametrize("what", ["server", "disk"])
def test_an_old_cache_on_a_read_only_server_or_disk_is_read_without_moving_it(
    store: Store, before: list, monkeypatch: pytest.MonkeyPatch, what: str
):
    if what == "server":
        monkeypatch.setenv(access.READ_ONLY, "1")
    else:
        error = OSError(30, "Read-only file system")
        monkeypatch.setattr(Path, "mkdir", Mock(side_effect=error))
    assert read_all(store) == before
    assert not (store.root / "mine").exists()


def test_a_linked_folder_of_an_old_cache_is_not_moved(store: Store, before: list, tmp_path: Path):
    os.rename(store.root / "annotations", tmp_path / "shared")
    (store.root / "annotations").symlink_to(tmp_path / "shared")
    assert read_all(store) == before
    assert (store.root / "annotations").is_symlink()


def test_concurrent_moves_of_an_old_cache_lose_no_tag(store: Store):
    old = store.root / "annotations"
    old.mkdir(parents=True)
    rows = [{"case": case, "id": f"c{case}", "tags": ["old"], "note": ""} for case in range(50)]
    (old / f"{KEY}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code = (
        "import sys; from vlprobe.storage import annotations; from vlprobe.storage.store import Store\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        f"annotations.write(Store(sys.argv[1]), '{KEY}', "
        "annotations.Annotation(int(sys.argv[2]), 'new', ('new',)))"
    )
    with contextlib.ExitStack() as stack:
        writers = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", code, str(store.root), str(100 + number)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for number in range(4)
        ]
        for writer in writers:
            assert writer.stdout and writer.stdout.readline() == "ready\n"
        for writer in writers:
            assert writer.stdin
            writer.stdin.write("\n")
            writer.stdin.flush()
    assert [writer.returncode for writer in writers] == [0] * 4
    cases = {annotation.case for annotation in annotations.read(store, KEY).current}
    assert cases == {*range(50), *range(100, 104)}
    assert not old.exists()


def test_a_paid_answer_of_an_older_version_is_found(store: Store):
    log = AnswerLog(store.root / FOLDER / "c")
    log.append(["q"], "42")
    assert list(AnswerLog(mine.path(store.root, FOLDER) / "c")) == [KeptAnswer(("q",), "42")]
    log.append(["r"], "43")  # a job of the older version is still running
    assert list(AnswerLog(mine.path(store.root, FOLDER) / "c")) == [
        KeptAnswer(("q",), "42"),
        KeptAnswer(("r",), "43"),
    ]
