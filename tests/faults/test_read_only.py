"""A read-only cache: all results can be viewed, and every action that would write fails with a one-line error."""

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
    """Return a dataset and a filled store that is read-only even for root: by a mount, or by file modes for other
    users."""
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


def test_the_sealed_cache_cannot_be_written(sealed):
    with pytest.raises(OSError, match=r"Read-only|Permission"):
        (sealed[1].root / "file").write_text("x")


def test_every_number_and_case_can_be_read_in_a_read_only_cache(sealed):
    _, store = sealed
    key = store.runs()[0]["case_key"]
    assert len(views.runs.runs(store)) == 1
    assert len(views.estimates.estimates(views.runs.question_set(store, key))) > 0
    assert (
        views.cases.failures(
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
def test_every_reading_command_works_on_a_read_only_cache(sealed, words):
    tiny, store = sealed
    placeholders = {"KEY": store.runs()[0]["key"], "DATASET": tiny}
    done = command(store, *(placeholders.get(word, word) for word in words))
    assert done.exit_code == 0, done.output


def test_perturb_works_on_a_new_dataset_with_a_read_only_cache(sealed, tmp_path):
    assert command(sealed[1], "perturb", make_tiny(tmp_path / "other")).exit_code == 0


def test_the_failures_and_run_pages_open_on_a_read_only_cache(sealed, monkeypatch):
    shown = functools.partial(open_page, monkeypatch)
    for page in ("failures", "run"):
        assert not shown(sealed[1], page).error


def test_a_stored_run_is_returned_and_the_store_is_unchanged(sealed):
    tiny, store = sealed
    before = {path: path.stat().st_mtime_ns for path in store.root.rglob("*")}
    done = command(store, "run", "--model", "control:random", "--dataset", tiny, "--format", "csv")
    assert done.exit_code == 0, done.output
    assert store.runs()[0]["key"] in done.stdout
    assert {path: path.stat().st_mtime_ns for path in store.root.rglob("*")} == before


@pytest.mark.parametrize("what", ["run", "start", "annotate", "resume", "doctor", "repair"])
def test_every_action_that_would_write_fails_in_one_line(sealed, what):
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
        message = str(caught.value)
    else:
        words = {
            "doctor": ["doctor", "control:constant", "--dataset", tiny],
            "repair": ["verify", "--repair"],
        }[what]
        done = command(store, *words)
        assert done.exit_code == 2
        message = done.stderr.strip().splitlines()[-1]
    assert "Cannot write" in message
    assert "\n" not in message


def test_the_sealed_store_has_no_temporary_files_and_no_jobs(sealed):
    root: Path = sealed[1].root
    assert not list(root.rglob("*.tmp"))
    assert not (root / "jobs").exists()
