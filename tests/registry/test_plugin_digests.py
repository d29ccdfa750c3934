"""The digest of a plug-in covers its code and version, and is part of the key of every run with it."""

import shutil
from pathlib import Path

from tests.conftest import make_tiny
from tests.registry.conftest import EXAMPLE
from vlprobe.registry import plugins
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.store import Store


def digest(tmp_path: Path, name: str = "m", version: str = "1.0", **texts: str) -> str:
    root = tmp_path / name
    shutil.rmtree(root, ignore_errors=True)
    for stem, text in texts.items():
        path = root / f"{stem.replace('__', '/', 1) if '/' not in stem else stem}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return plugins.code_digest(root, version)


def test_the_digest_covers_every_source_file_and_the_version(tmp_path: Path):
    base = digest(tmp_path, a="1", deep__b="2")
    assert base == digest(tmp_path, "elsewhere", a="1", deep__b="2")
    others = [
        digest(tmp_path, a="1", deep__b="3"),
        digest(tmp_path, a="1", deep__c="2"),
        digest(tmp_path, a="1"),
        digest(tmp_path, a="2", deep__b="1"),
        digest(tmp_path, version="1.1", a="1", deep__b="2"),
    ]
    assert len({base, *others}) == 6
    digest(tmp_path, a="1", deep__b="2")
    (tmp_path / "m" / "notes.txt").write_text("no code")
    (tmp_path / "m" / "__pycache__").mkdir()
    (tmp_path / "m" / "__pycache__" / "a.pyc").write_bytes(b"x")
    assert plugins.code_digest(tmp_path / "m", "1.0") == base


def keys(folder: Path, cache: Path) -> set[str]:
    """Return the keys of runs with the model, dataset, probe and rules in these files."""
    plugins.load.cache_clear()
    every = {name: f"py:{folder / name}.py" for name in ("model", "dataset", "probe", "rules")}
    for name in every.values():
        plugins.allow(name)
    tiny = make_tiny(cache.parent / "tiny")
    requests = [
        Request((every["model"],), tiny, "lgip", {"k_same": 1}, limit=1, examine=False),
        Request(("control:random",), every["dataset"], "lgip", limit=1, examine=False),
        Request(("control:random",), tiny, every["probe"], limit=1, examine=False),
        Request(
            ("control:random",), tiny, "lgip", {"rules": every["rules"]}, limit=1, examine=False
        ),
    ]
    return {execute(request, Store(cache))[0]["key"] for request in requests}


def test_a_changed_line_of_a_plugin_changes_the_key_of_every_run(tmp_path: Path):
    folder = tmp_path / "mine"
    shutil.copytree(EXAMPLE / "vlprobe_colors", folder)
    before = keys(folder, tmp_path / "cache")
    assert len(before) == 4 and keys(folder, tmp_path / "cache") == before
    for path in folder.glob("*.py"):  # same length, within the same second
        path.write_text(path.read_text().replace('"""A', '"""B').replace('"""E', '"""F'))
        path.write_text(path.read_text().replace('"""P', '"""Q'))
    assert not keys(folder, tmp_path / "cache") & before
