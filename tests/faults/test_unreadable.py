"""Files that only their owner may read: one line names them, everything else is shown, and they are never deleted."""

import contextlib
import ctypes
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from streamlit.testing.v1 import AppTest

from tests.conftest import make_tiny, tiers
from tests.dashboard.test_pages import open_page
from vlprobe import views
from vlprobe.cli.main import main
from vlprobe.errors import InvalidInput
from vlprobe.models.doctor import examine
from vlprobe.runs import jobs
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.store import Store

LINUX_CAPABILITY_VERSION_3 = 0x20080522
DAC_OVERRIDE, DAC_READ_SEARCH = (
    1 << 1,
    1 << 2,
)  # privileges of root: read, write and search anything
MODELS = ("control:random", "control:constant")


@pytest.fixture(scope="module")
def shared() -> Iterator[Store]:
    """Return a cache with two runs and their model checks, in a folder that every user can read."""
    root = Path(tempfile.mkdtemp(prefix="vlprobe-"))
    root.chmod(0o755)
    tiny, store = make_tiny(root / "tiny"), Store(root / "cache")
    execute(Request(MODELS, tiny, "lgip", limit=1), store)
    jobs.write(Request(MODELS, tiny, "lgip"), store)
    for path in (root, *root.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    yield store
    shutil.rmtree(root)


class _Capabilities(ctypes.Structure):
    """One half of the argument of `capset`: 32 capabilities as bits."""

    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


@contextlib.contextmanager
def without_root_privileges() -> Iterator[None]:
    """Drop root's privilege to read everything, so that file modes apply inside the block."""
    if os.geteuid():
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header, before = (ctypes.c_uint32 * 2)(LINUX_CAPABILITY_VERSION_3, 0), (_Capabilities * 2)()
    if libc.capget(header, before):
        raise OSError(ctypes.get_errno(), "capget")
    without = (_Capabilities * 2)(*before)
    without[0] = _Capabilities(
        before[0].effective & ~(DAC_OVERRIDE | DAC_READ_SEARCH),
        before[0].permitted,
        before[0].inheritable,
    )
    if libc.capset(header, without):  # for this thread and the threads that it starts
        raise OSError(ctypes.get_errno(), "capset")
    try:
        yield
    finally:
        if libc.capset(header, before):
            raise OSError(ctypes.get_errno(), "capset")


@contextlib.contextmanager
def unreadable_path(path: Path) -> Iterator[None]:
    """Make a file or folder unreadable for everyone."""
    mode = stat.S_IMODE(path.stat().st_mode)
    path.chmod(0)
    try:
        with without_root_privileges():
            yield
    finally:
        path.chmod(mode)


@contextlib.contextmanager
def made_folder(path: Path) -> Iterator[None]:
    """Replace a file by a folder."""
    aside = path.with_name("aside")
    path.rename(aside)
    path.mkdir()
    try:
        yield
    finally:
        path.rmdir()
        aside.rename(path)


def stopped(at: AppTest) -> list[str]:
    """Return the errors that stopped a page. It can show other errors, such as a failed model check."""
    return [one.value for one in at.error if one.icon == ":material/error:"]


def command(store: Store, *given: str) -> Result:
    return CliRunner().invoke(main, ["--cache", str(store.root), *given], catch_exceptions=False)


def run_folder(store: Store, model: str) -> Path:
    return (
        store.root
        / "runs"
        / next(one["key"] for one in store.runs() if one["run"]["model"] == model)
    )


@pytest.mark.parametrize(
    ("unreadable", "name"),
    tiers(
        [(unreadable_path, "manifest.json"), (made_folder, "manifest.json"), (unreadable_path, "")],
        [(unreadable_path, "manifest.json")],
    ),
)
def test_an_unreadable_run_is_reported_and_the_others_are_shown(
    shared, monkeypatch, unreadable, name
):
    folder = run_folder(shared, "control:random")
    path = folder / name if name else folder
    with unreadable(path):
        shown = command(shared, "show")
        assert shown.exit_code == 0
        assert "control:constant" in shown.stdout and "control:random" not in shown.stdout
        assert [str(path) in line for line in shown.stderr.splitlines() if "Left out" in line] == [
            True
        ]
        outcome = command(shared, "show", folder.name)
        assert (outcome.exit_code, outcome.stderr.count("\n")) == (1, 1)
        assert "cannot be read" in outcome.stderr
        for page in ("overview", "failures", "compare", "models", "run"):
            at = open_page(monkeypatch, shared, page)
            assert [
                one
                for one in at.warning
                if folder.name in one.value and "cannot be read" in one.value
            ], page
            assert not stopped(at), page
    assert len(shared.runs()) == 2


@pytest.mark.parametrize("unreadable", [unreadable_path, made_folder])
def test_an_unreadable_examination_is_reported_and_the_others_are_shown(
    shared, monkeypatch, unreadable
):
    path = next(shared.root.glob("models/*.json"))
    with unreadable(path):
        shown = command(shared, "show")
        assert all(model in shown.stdout for model in MODELS)
        assert [path.name in line for line in shown.stderr.splitlines() if "Left out" in line] == [
            True
        ]
        assert len(examine.load(shared)) == 1
        at = open_page(monkeypatch, shared, "models")
        assert [one for one in at.warning if path.stem[:8] in one.value]
        assert not stopped(at)
    assert len(examine.load(shared)) == 2


@pytest.mark.parametrize(
    "content",
    tiers(
        [
            "{}",
            "[]",
            "null",
            "5",
            '{"schema": 1}',
            '{"schema": 1, "passport": 5, "checks": [], "erased": []}',
        ],
        ("{}", "null"),
    ),
)
def test_an_examination_with_wrong_fields_stops_no_page(shared, monkeypatch, content):
    path = next(shared.root.glob("models/*.json"))
    sound = path.read_bytes()
    path.write_text(content)
    try:
        at = open_page(monkeypatch, shared, "models")
        assert not stopped(at)
        assert "vlprobe verify" in str(views.runs.unread(shared)[0])
        assert [one for one in at.warning if "is damaged" in one.value]
        assert len(views.runs.runs(shared)) == 2
    finally:
        path.write_bytes(sound)


PLACES = [
    *(
        "runs/*/manifest.json",
        "runs/*/scores.parquet",
        "cases/*/manifest.json",
        "models/*.json",
        "jobs/*/request.json",
    ),
    *("embeddings/*/texts/*.npy", "runs/*", "jobs/*", "runs", "models", "embeddings/*"),
]


@pytest.mark.parametrize("place", PLACES)
def test_repair_deletes_nothing_that_only_its_owner_can_read(shared, place):
    path = next(path for path in sorted(shared.root.glob(place)) if not path.name.startswith("."))
    files = sorted(one for one in shared.root.rglob("*") if one.is_file())
    os.chmod(shared.root, 0o777)
    with unreadable_path(path):
        looked = command(shared, "verify")
        mended = command(shared, "verify", "--repair")
    os.chmod(shared.root, 0o755)
    assert looked.exit_code == mended.exit_code == 1
    assert looked.stdout.splitlines() == [
        f"{path}: it cannot be read (Permission denied); ask its owner for access; not deleted"
    ]
    assert files == sorted(one for one in shared.root.rglob("*") if one.is_file())
    assert command(shared, "verify").exit_code == 0


@pytest.mark.parametrize(
    "place", ["runs/*/manifest.json", "runs/*/scores.parquet", "models/*.json"]
)
def test_repair_deletes_a_folder_in_place_of_a_file(shared, tmp_path, place):
    shutil.copytree(shared.root, tmp_path / "cache")
    store = Store(tmp_path / "cache")
    path = next(store.root.glob(place))
    path.unlink()
    path.mkdir()
    assert [
        str(path) in line for line in command(store, "verify", "--repair").stdout.splitlines()
    ] == [True]
    assert not path.exists()
    assert command(store, "verify").exit_code == 0


def test_unreadable_jobs_are_reported_and_the_others_are_listed(shared):
    mine = jobs.write(Request(("control:random",), "demo", "lgip"), shared)
    for path in (shared.root / "jobs" / mine).iterdir():
        path.chmod(0o644)
    other = next(job.id for job in jobs.jobs(shared) if job.id != mine)
    with unreadable_path(shared.root / "jobs" / other):
        listed = command(shared, "jobs")
        assert mine in listed.stdout and other not in listed.stdout
        assert f"{other}/request.json' cannot be read (Permission denied)" in listed.stderr
        with pytest.raises(InvalidInput, match="cannot be read"):
            jobs.read(shared, other)
    shutil.rmtree(shared.root / "jobs" / mine)
