"""A byte that is lost or turned is told by a checksum, named in one line, and made anew when asked for."""

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
    """The exit code of `vlprobe verify`, and the damages that it names."""
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
    """A dataset, and a store with one examined run on it. Whoever harms it, mends it."""
    folder = tmp_path_factory.mktemp("made")
    tiny, store = make_tiny(folder / "tiny"), Store(folder / "cache")
    execute(request(tiny), store)
    return tiny, store


@pytest.fixture
def copied(examined_run: tuple[str, Store], store: Store) -> Store:
    """A copy of it that is not mended."""
    shutil.copytree(examined_run[1].root, store.root)
    return store


def harm(path: Path, how: str) -> None:
    """Half of the file is lost, or one bit in the middle is turned, at a time that tells nothing."""
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
def test_damage_anywhere_is_named_in_one_line(examined_run, place, how):
    store = examined_run[1]
    path = next(store.root.glob(place))
    kept = path.read_bytes()
    harm(path, how)
    code, lines = verify(store)
    path.write_bytes(kept)
    assert (code, len(lines)) == (1, 1)
    assert lines[0].startswith(f"{path}: ")
    assert verify(store) == (0, [])


def test_what_was_damaged_is_made_anew_by_the_same_run(examined_run, copied):
    tiny, whole = examined_run
    for place in PLACES:
        if "manifest" not in place:
            harm(next(copied.root.glob(place)), "flipped")
    code, lines = verify(copied, "--repair")
    assert (code, len(lines)) == (0, 6)
    assert verify(copied) == (0, [])
    assert copied.runs() == []
    execute(request(tiny), copied)
    assert forks.results(copied.root) == forks.results(whole.root)


@pytest.mark.parametrize("kind", ["cases", "runs"])
def test_questions_or_answers_alone_are_made_anew(examined_run, copied, kind):
    tiny, whole = examined_run
    harm(next(copied.root.glob(f"{kind}/*/*.parquet")), "truncated")
    assert verify(copied, "--repair")[0] == 0
    execute(request(tiny), copied)
    assert forks.results(copied.root) == forks.results(whole.root)


@pytest.mark.parametrize(
    "place", ["runs/*/scores.parquet", "runs/*/manifest.json", "cases/*/cases.parquet"]
)
def test_a_page_never_shows_a_damaged_number_but_one_line(copied, place):
    manifest = copied.runs()[0]
    chosen = views.filter.Filter(model="control:random", contains="a", outcome="all")
    assert views.cases.failures(
        copied, views.runs.question_set(copied, manifest["case_key"]), chosen
    )[1]
    harm(next(copied.root.glob(place)), "flipped")
    with pytest.raises(InvalidInput, match="vlprobe verify --repair") as caught:
        views.cases.failures(copied, views.runs.question_set(copied, manifest["case_key"]), chosen)
    assert "\n" not in str(caught.value)


def test_a_table_that_is_gone_is_said_so(copied):
    manifest = copied.runs()[0]
    next(copied.root.glob("runs/*/estimates.parquet")).unlink()
    with pytest.raises(InvalidInput, match=r"estimates\.parquet' cannot be read \(No such file"):
        views.estimates.estimates(copied, views.runs.question_set(copied, manifest["case_key"]))
    assert "it is missing" in verify(copied)[1][0]


def test_a_damaged_embedding_gives_no_score(examined_run, copied):
    harm(next(copied.root.glob("embeddings/*/images/*.npy")), "flipped")
    with pytest.raises(InvalidInput, match="vlprobe verify --repair"):
        execute(request(examined_run[0], seed=7, examine=False), copied)


@pytest.mark.parametrize("how", ["truncated", "flipped"])
def test_a_damaged_part_is_named_in_the_log_and_made_anew(
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
    harm(part, how)
    assert verify(copied)[1] == [f"{part}: its checksum differs"]
    with caplog.at_level(logging.WARNING):
        execute(request(examined_run[0]), copied)
    assert f"{part.name}' is damaged and will be recomputed" in caplog.text
    assert copied.run(manifest["key"]).table("scores").equals(scores)


def test_what_a_killed_writer_left_goes_when_nobody_can_be_writing_it(copied):
    fresh, old = (copied.root / "runs" / f".scores.parquet.{name}.tmp" for name in ("fresh", "old"))
    for path in (fresh, old):
        path.write_bytes(b"half a table")
    os.utime(old, (time.time() - 7200, time.time() - 7200))
    code, lines = verify(copied, "--repair")
    assert (code, len(lines)) == (0, 1)
    assert fresh.exists()
    assert not old.exists()


def test_what_people_said_is_never_removed(copied):
    path = copied.root / "mine" / "annotations" / "abc.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("not JSON\n")
    code, lines = verify(copied, "--repair")
    assert code == 1
    assert "human verdicts cannot be recreated" in lines[0]
    assert path.read_text() == "not JSON\n"


def test_a_run_under_a_name_that_is_not_its_own_is_named(copied):
    folder = next(copied.root.glob("runs/*/"))
    manifest = json.loads((folder / "manifest.json").read_text())
    folder.rename(folder.with_name("f" * 16))
    assert f"it has another key ({manifest['key']})" in verify(copied)[1][0]


def test_a_damaged_examination_is_named(examined_run, copied):
    path = next(copied.root.glob("models/*.json"))
    path.write_text("{}")
    assert "vlprobe verify --repair" in str(views.runs.unread(copied)[0])
    assert len(views.runs.runs(copied)) == 1
    assert verify(copied, "--repair")[0] == 0
    assert "Check" not in views.runs.runs(copied)["note"][0]
    execute(request(examined_run[0]), copied)
    assert list(copied.root.glob("models/*.json")) == [path]
