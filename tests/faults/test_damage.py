"""A checksum detects a lost or changed byte; one line names the file, and the next run recreates it."""

import json
import logging
import os
import shutil
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.conftest import make_tiny
from tests.faults import forks
from vlprobe import views
from vlprobe.cli.main import main
from vlprobe.errors import InvalidInput
from vlprobe.runs import answers, questions
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.store import Store


def verify(store: Store, *options: str) -> tuple[int, list[str]]:
    """Return the exit code of `vlprobe verify` and the lines that it prints."""
    done = CliRunner().invoke(
        main, ["--cache", str(store.root), "verify", *options], catch_exceptions=False
    )
    return done.exit_code, done.stdout.splitlines()


def request(tiny: str, **changes) -> Request:
    return Request(
        **{"models": ("control:random",), "dataset": tiny, "probe": "lgip", "limit": 2} | changes
    )


@pytest.fixture(scope="module")
def examined_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Store]:
    """Return a dataset and a store with one run and its model checks. A test that damages it must restore it."""
    folder = tmp_path_factory.mktemp("made")
    tiny, store = make_tiny(folder / "tiny"), Store(folder / "cache")
    execute(request(tiny), store)
    return tiny, store


@pytest.fixture
def copied(examined_run: tuple[str, Store], store: Store) -> Store:
    """Return a copy of this store, which a test need not restore."""
    shutil.copytree(examined_run[1].root, store.root)
    return store


def damage_file(path: Path, how: str) -> None:
    """Truncate the file to half or flip one bit in the middle, and change its time by only one nanosecond."""
    status, data = path.stat(), bytearray(path.read_bytes())
    if how == "truncated":
        del data[len(data) // 2 :]
    else:
        data[len(data) // 2] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))


PLACES = [
    *(
        "runs/*/scores.parquet",
        "runs/*/estimates.parquet",
        "runs/*/sums.parquet",
        "runs/*/manifest.json",
    ),
    *("cases/*/cases.parquet", "cases/*/manifest.json"),
    *("embeddings/*/images/*.npy", "embeddings/*/texts/*.npy"),
]


@pytest.mark.parametrize("how", ["truncated", "flipped"])
@pytest.mark.parametrize("place", PLACES)
def test_verify_names_each_damaged_file_in_one_line(examined_run, place, how):
    store = examined_run[1]
    path = next(store.root.glob(place))
    content = path.read_bytes()
    damage_file(path, how)
    code, lines = verify(store)
    path.write_bytes(content)
    assert (code, len(lines)) == (1, 1)
    assert lines[0].startswith(f"{path}: ")
    assert verify(store) == (0, [])


def test_repeating_a_run_recreates_all_damaged_files(examined_run, copied):
    tiny, whole = examined_run
    for place in PLACES:
        if "manifest" not in place:
            damage_file(next(copied.root.glob(place)), "flipped")
    code, lines = verify(copied, "--repair")
    assert (code, len(lines)) == (0, 6)
    assert verify(copied) == (0, [])
    assert copied.runs() == []
    execute(request(tiny), copied)
    assert forks.results(copied.root) == forks.results(whole.root)


@pytest.mark.parametrize("kind", ["cases", "runs"])
def test_repeating_a_run_recreates_damaged_questions_or_answers(examined_run, copied, kind):
    tiny, whole = examined_run
    damage_file(next(copied.root.glob(f"{kind}/*/*.parquet")), "truncated")
    assert verify(copied, "--repair")[0] == 0
    execute(request(tiny), copied)
    assert forks.results(copied.root) == forks.results(whole.root)


@pytest.mark.parametrize(
    "place", ["runs/*/scores.parquet", "runs/*/manifest.json", "cases/*/cases.parquet"]
)
def test_a_damaged_table_raises_a_one_line_error_instead_of_showing_numbers(copied, place):
    manifest = copied.runs()[0]
    chosen = views.filter.Filter(model="control:random", contains="a", outcome="all")
    assert views.cases.failures(views.runs.question_set(copied, manifest["case_key"]), chosen)[1]
    damage_file(next(copied.root.glob(place)), "flipped")
    with pytest.raises(InvalidInput, match="vlprobe verify --repair") as caught:
        views.cases.failures(views.runs.question_set(copied, manifest["case_key"]), chosen)
    assert "\n" not in str(caught.value)


def test_a_missing_table_is_reported(copied):
    manifest = copied.runs()[0]
    next(copied.root.glob("runs/*/estimates.parquet")).unlink()
    with pytest.raises(InvalidInput, match=r"estimates\.parquet' cannot be read \(No such file"):
        views.estimates.estimates(views.runs.question_set(copied, manifest["case_key"]))
    assert "it is missing" in verify(copied)[1][0]


def test_a_damaged_embedding_is_refused_by_a_run(examined_run, copied):
    damage_file(next(copied.root.glob("embeddings/*/images/*.npy")), "flipped")
    with pytest.raises(InvalidInput, match="vlprobe verify --repair"):
        execute(request(examined_run[0], seed=7, examine=False), copied)


@pytest.mark.parametrize("how", ["truncated", "flipped"])
def test_a_damaged_part_is_named_in_the_log_and_recomputed(
    examined_run, copied, monkeypatch, caplog, how
):
    monkeypatch.setattr(answers, "PART_CASES", 16)
    manifest = copied.runs()[0]
    entry = copied.run(manifest["key"])
    scores = entry.table("scores")
    (entry.folder / "manifest.json").unlink()
    first = questions.part_ranges(copied.cases(manifest["case_key"]), 16)[0]
    given = scores.drop_columns(["run", "case", "item", "kind", "subtype", "rule", "strength_bin"])
    entry.write_part("{:09d}-{:09d}".format(*first), given.slice(*first))
    part = next(entry.folder.glob("parts/*.parquet"))
    damage_file(part, how)
    assert verify(copied)[1] == [f"{part}: its checksum differs"]
    with caplog.at_level(logging.WARNING):
        execute(request(examined_run[0]), copied)
    assert f"{part.name}' is damaged and will be recomputed" in caplog.text
    assert copied.run(manifest["key"]).table("scores").equals(scores)


def test_repair_deletes_old_temporary_files_and_keeps_recent_ones(copied):
    fresh, old = (copied.root / "runs" / f".scores.parquet.{name}.tmp" for name in ("fresh", "old"))
    for path in (fresh, old):
        path.write_bytes(b"half a table")
    os.utime(old, (time.time() - 7200, time.time() - 7200))
    code, lines = verify(copied, "--repair")
    assert (code, len(lines)) == (0, 1)
    assert fresh.exists()
    assert not old.exists()


def test_repair_never_deletes_annotations(copied):
    path = copied.root / "mine" / "annotations" / "abc.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("not JSON\n")
    code, lines = verify(copied, "--repair")
    assert code == 1
    assert "human verdicts cannot be recreated" in lines[0]
    assert path.read_text() == "not JSON\n"


def test_verify_names_a_run_folder_whose_name_is_not_its_key(copied):
    folder = next(copied.root.glob("runs/*/"))
    manifest = json.loads((folder / "manifest.json").read_text())
    folder.rename(folder.with_name("f" * 16))
    assert f"it has another key ({manifest['key']})" in verify(copied)[1][0]


def test_a_damaged_examination_is_reported_repaired_and_recreated(examined_run, copied):
    path = next(copied.root.glob("models/*.json"))
    path.write_text("{}")
    assert "vlprobe verify --repair" in str(views.runs.unread(copied)[0])
    assert len(views.runs.runs(copied)) == 1
    assert verify(copied, "--repair")[0] == 0
    assert "Check" not in views.runs.runs(copied)["note"][0]
    execute(request(examined_run[0]), copied)
    assert list(copied.root.glob("models/*.json")) == [path]
