"""A cache that cannot be written: all of it can be looked at, and what would write says so in one line."""

import functools
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.conftest import make_tiny
from tests.dashboard.test_pages import open_page
from vlprobe import views
from vlprobe.cli.main import main
from vlprobe.errors import InvalidInput
from vlprobe.models.doctor import examine
from vlprobe.runs import jobs
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage import annotations
from vlprobe.storage.store import Store


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Store]]:
    """A dataset and a filled store that nobody can write to, not even root: by a mount, or by its modes."""
    folder = tmp_path_factory.mktemp("sealed")
    tiny, root = make_tiny(folder / "tiny"), folder / "cache"
    execute(Request(("control:random",), tiny, "lgip"), Store(root))
    if os.geteuid():
        for path in (root, *root.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        yield tiny, Store(root)
        for path in (root, *root.rglob("*")):
            path.chmod(0o755)
        return
    if not shutil.which("mount") or _mount("--bind", str(root), str(root)):
        pytest.skip("root writes whatever the modes say, and this machine does not let us mount")
    try:
        if _mount("-o", "remount,bind,ro", str(root)):
            pytest.skip("this machine lets us mount, but not read-only")
        yield tiny, Store(root)
    finally:
        subprocess.run(["umount", str(root)], check=True)


def _mount(*words: str) -> int:
    return subprocess.run(["mount", *words], capture_output=True).returncode


def command(store: Store, *words: str):
    return CliRunner().invoke(main, ["--cache", str(store.root), *words], catch_exceptions=False)


def test_nothing_can_be_written_there(sealed):
    with pytest.raises(OSError, match=r"Read-only|Permission"):
        (sealed[1].root / "file").write_text("x")


def test_every_number_and_case_can_be_looked_at(sealed):
    _, store = sealed
    key = store.runs()[0]["case_key"]
    assert len(views.runs.runs(store)) == 1
    assert len(views.estimates.estimates(store, views.runs.question_set(store, key))) > 0
    assert (
        views.cases.failures(
            store,
            views.runs.question_set(store, key),
            views.filter.Filter(model="control:random", outcome="all"),
        )[1]
        > 0
    )
    assert examine.load(store)
    assert jobs.jobs(store) == []
    assert annotations.read(store, key).current == ()


@pytest.mark.parametrize(
    "words",
    [["show"], ["failures", "KEY"], ["show", "KEY"], ["jobs"], ["verify"], ["check", "DATASET"]],
    ids=" ".join,
)
def test_every_command_that_looks_works(sealed, words):
    tiny, store = sealed
    given = {"KEY": store.runs()[0]["key"], "DATASET": tiny}
    done = command(store, *(given.get(word, word) for word in words))
    assert done.exit_code == 0, done.output


def test_a_new_picture_is_no_obstacle_to_a_look_at_its_dataset(sealed, tmp_path):
    assert command(sealed[1], "perturb", make_tiny(tmp_path / "other")).exit_code == 0


def test_the_pages_of_failures_and_of_runs_answer(sealed, monkeypatch):
    shown = functools.partial(open_page, monkeypatch)
    for page in ("failures", "run"):
        assert not shown(sealed[1], page).error


def test_a_run_that_is_stored_is_answered_and_leaves_the_store_as_it_was(sealed):
    tiny, store = sealed
    before = {path: path.stat().st_mtime_ns for path in store.root.rglob("*")}
    done = command(store, "run", "--model", "control:random", "--dataset", tiny, "--format", "csv")
    assert done.exit_code == 0, done.output
    assert store.runs()[0]["key"] in done.stdout
    assert {path: path.stat().st_mtime_ns for path in store.root.rglob("*")} == before


@pytest.mark.parametrize("what", ["run", "start", "annotate", "resume", "doctor", "repair"])
def test_what_would_write_says_so_in_one_line(sealed, what):
    tiny, store = sealed
    request = Request(("control:constant",), tiny, "lgip")
    key = store.runs()[0]["case_key"]
    do = {
        "run": lambda: execute(request, store),
        "start": lambda: jobs.start(request, store),
        "annotate": lambda: annotations.write(
            store, key, annotations.Annotation(0, "0", ("telling",))
        ),
        "resume": lambda: jobs.resume(store, "abc"),
    }
    if what in do:
        with pytest.raises(InvalidInput, match="Cannot write") as caught:
            do[what]()
        said = str(caught.value)
    else:
        words = {
            "doctor": ["doctor", "control:constant", "--dataset", tiny],
            "repair": ["verify", "--repair"],
        }[what]
        done = command(store, *words)
        assert done.exit_code == 2
        said = done.stderr.strip().splitlines()[-1]
    assert "Cannot write" in said
    assert "\n" not in said


def test_the_store_is_as_it_was(sealed):
    root: Path = sealed[1].root
    assert not list(root.rglob("*.tmp"))
    assert not (root / "jobs").exists()
