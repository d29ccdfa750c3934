"""Plug-ins as files and as installed distributions. Each test starts without any named plug-in."""

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from vlprobe.registry import plugins
from vlprobe.storage import access

EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "example"
FILES = {path.stem: path for path in (EXAMPLE / "vlprobe_colors").glob("*.py")}
TRAP = "import pathlib\npathlib.Path({mark!r}).write_text('ran')\n"  # code that must not run


@pytest.fixture(autouse=True)
def unnamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start with no plug-in allowed, and restore the setting after the test."""
    monkeypatch.setenv(access.PLUGINS, "")


Install = Callable[..., Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Return a function that writes files as a distribution that is found like an installed one."""

    def installed(
        entries: dict[str, dict[str, str]],
        texts: dict[str, str],
        distribution: str = "acme",
        version: str = "1.0",
    ) -> Path:
        folder = tmp_path / f"site-{distribution}"
        for name, text in texts.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        about = folder / f"{distribution}-{version}.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
        )
        groups = [
            f"[vlprobe.{group}]\n" + "".join(f"{name} = {value}\n" for name, value in names.items())
            for group, names in entries.items()
        ]
        (about / "entry_points.txt").write_text("\n".join(groups))
        monkeypatch.syspath_prepend(folder)
        for name in {Path(file).parts[0].removesuffix(".py") for file in texts}:
            for module in [known for known in sys.modules if known.split(".")[0] == name]:
                monkeypatch.delitem(sys.modules, module)
        importlib.invalidate_caches()
        plugins.installed.cache_clear()
        plugins.load.cache_clear()
        return folder

    yield installed
    plugins.installed.cache_clear()


@pytest.fixture
def colors(install: Install) -> Path:
    """Install the example from docs/, and return its folder."""
    texts = {
        f"vlprobe_colors/{name}.py": path.read_text(encoding="utf-8")
        for name, path in FILES.items()
    }
    entries = {
        "models": {"colors": "vlprobe_colors.model"},
        "datasets": {"swatches": "vlprobe_colors.dataset"},
        "probes": {"blank": "vlprobe_colors.probe:PROBE"},
        "rules": {"loud": "vlprobe_colors.rules"},
    }
    return install(entries, texts, "vlprobe-colors")
