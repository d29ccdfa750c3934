"""What hostile input shares: a limit on its time, and folders that may not be read, watched by a hook."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import make_tiny
from vlprobe.storage import access

SECONDS = 30


@pytest.fixture(autouse=True)
def no_hang() -> Iterator[None]:
    """Ends a test that waits for ever, wherever it waits."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"still going after {SECONDS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


# ROOT/open may be read; ROOT/closed and its sibling by name ROOT/open@closed may not
PATHS = {
    "a folder": "ROOT/closed",
    "a file": "ROOT/closed/captions.csv",
    "weights": "ROOT/closed/weights.safetensors",
    "a file that is not there": "ROOT/closed/nothing.json",
    "up and down": "ROOT/open/../closed",
    "up from the working folder": "../closed",
    "a sibling whose name goes on after an @": "ROOT/open@closed",
    "a file of that sibling": "ROOT/open@closed/captions.csv",
    "a link to a folder": "ROOT/open/link",
    "a file behind a link": "ROOT/open/link/captions.csv",
    "a link to a file": "ROOT/open/link.safetensors",
    "a link in the working folder": "link",
    "a link to a file there": "link.safetensors",
    "a file behind a link there": "link/captions.csv",
    "a home": "~",
}


OPENING = ("open", "os.listdir", "os.scandir")  # events of the interpreter
AUDIT: dict[str, object] = {"folders": (), "opened": []}


def _note(event: str, arguments: tuple) -> None:
    if event in OPENING and AUDIT["folders"] and isinstance(arguments[0], str | bytes | os.PathLike):
        path = os.path.realpath(os.fsdecode(arguments[0]))
        if path.startswith(AUDIT["folders"]):
            AUDIT["opened"].append(path)


@pytest.fixture(scope="session")
def auditing() -> None:
    """A hook of the interpreter, which cannot be taken out again; it notes nothing while no folder is watched."""
    sys.addaudithook(_note)


@pytest.fixture
def root(tmp_path: Path, auditing: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Data and weights that load, in a folder that may be read and in two that may not; nothing is limited yet.

    At the end nothing in these two was opened, and nothing of them was listed.
    """
    from vlprobe.models import demo
    from vlprobe.models.demo_weights import FOLDER

    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    weights = (FOLDER / "weak.safetensors").read_bytes()
    for name in ("open", "closed", "open@closed"):
        make_tiny(tmp_path / name)
        (tmp_path / name / "weights.safetensors").write_bytes(weights)
    (tmp_path / "open" / "link").symlink_to(tmp_path / "closed")
    (tmp_path / "open" / "link.safetensors").symlink_to(tmp_path / "closed" / "weights.safetensors")
    (tmp_path / "open" / "circle").symlink_to(tmp_path / "open" / "circle")
    demo.export_local_dir("demo:weak", tmp_path / "open" / "model")
    monkeypatch.chdir(tmp_path / "open")
    AUDIT.update(folders=(str(tmp_path / "closed"), str(tmp_path / "open@closed")), opened=[])
    yield tmp_path
    opened, AUDIT["folders"] = AUDIT["opened"], ()
    assert opened == []


def limit(monkeypatch: pytest.MonkeyPatch, root: Path, read_only: bool) -> None:
    roots = [] if read_only else [root / "open", root / "cache"]
    for name, value in access.settings(read_only, roots).items():
        monkeypatch.setenv(name, value)


def written(template: str, path: str, root: Path) -> str:
    names = {"PATH": path, "TABLE": "ROOT/open/captions.csv", "FOLDER": "ROOT/open", "MODEL": "ROOT/open/model"}
    for word, value in names.items():
        template = template.replace(word, value)
    return template.replace("ROOT", str(root))
