"""The shape of the house: which way imports point, how long files are, how thin pages are."""

import ast
import re
from pathlib import Path

import pytest

from tests.conftest import LONGEST

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = sorted((ROOT / "vlprobe").rglob("*.py"))
PAGES = sorted((ROOT / "pages").glob("*.py"))
LAYERS = [
    ("errors", "types", "kept"),
    ("perturb", "access", "processes", "options"),
    ("files",),
    ("estimate", "registry", "pictures", "published", "remote"),
    ("judge", "embeddings", "check"),
    ("scoring", "gallery"),
    ("metrics",),
    ("demo",),
    ("datasets", "models"),
    ("training",),
    ("probes",),
    ("store",),
    ("doctor", "annotations", "bookmarks", "cluster"),
    ("runner", "views", "verify", "play"),
    ("jobs", "charts", "ui_words", "ui_style"),
    ("markup",),
    ("report",),
    ("ui", "cli"),
    ("__main__",),
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def imports(path: Path) -> list[tuple[str, bool]]:
    """Absolute names that a file imports at run time, and whether it does so at the top of the module."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    tree.body = [
        node for node in tree.body if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))
    ]
    top = set(map(id, tree.body))
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, id(node) in top) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [(f"{node.module}.{alias.name}", id(node) in top) for alias in node.names]
    return found


def layer(name: str) -> str:
    """The part of vlprobe that a module or a path belongs to; `ui_cards` is part of `ui`."""
    part = name.removeprefix("vlprobe.").split(".")[0]
    return part if part in LEVEL else part.split("_")[0]


@pytest.mark.parametrize("path", PACKAGE, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_one_way(path: Path):
    parts = path.relative_to(ROOT / "vlprobe").with_suffix("").parts
    if parts == ("__init__",):
        return
    own = layer(parts[0])
    for name, _ in imports(path):
        if name.startswith("vlprobe.") and not name.startswith("vlprobe.__version__"):
            used = layer(name)
            assert used == own or LEVEL[used] < LEVEL[own], f"{own} may not import {name}"


@pytest.mark.parametrize("path", PACKAGE, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_ui_imports_streamlit(path: Path):
    names = {name.split(".")[0] for name, _ in imports(path)}
    if layer(path.relative_to(ROOT / "vlprobe").parts[0].removesuffix(".py")) != "ui":
        assert "streamlit" not in names


@pytest.mark.parametrize("part", ["cli", "registry", "types", "errors", "store"])
def test_the_command_line_starts_without_heavy_libraries(part: str):
    names = {name.split(".")[0] for name, top in imports(ROOT / "vlprobe" / f"{part}.py") if top}
    assert not names & {"torch", "open_clip", "streamlit", "plotly", "pandas", "duckdb"}


@pytest.mark.parametrize(
    "path", [*PACKAGE, *PAGES, *sorted((ROOT / "tests").rglob("*.py"))], ids=lambda path: str(path.relative_to(ROOT))
)
def test_no_file_is_longer_than_400_lines(path: Path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


@pytest.mark.parametrize("path", PACKAGE, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_is_a_drawer_for_odds_and_ends(path: Path):
    assert path.stem not in {"utils", "util", "helpers", "common", "base", "misc", "core"}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_is_thin(path: Path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
    assert {name.split(".")[0] for name, _ in imports(path)} <= {"streamlit", "vlprobe"}
    assert {name for name, _ in imports(path) if name.startswith("vlprobe")} <= {"vlprobe.ui", "vlprobe.charts"}
    assert not re.search(r"\bselect\b.+\bfrom\b", text, re.IGNORECASE)


def test_there_is_a_page():
    assert PAGES


def test_the_top_level_is_what_the_user_fixed():
    shown = {
        path.name for path in ROOT.iterdir() if not path.name.startswith(".") and not path.name.endswith(".egg-info")
    }
    fixed = {"app.py", "README.md", "pages", "vlprobe", "tests", "requirements.txt", "cache"}
    beside = {
        "pyproject.toml",
        "LICENSE",
        "CHANGELOG.md",
        "benchmarks",
        "requirements-models.txt",
        "requirements-ray.txt",
    }
    assert shown - {"__pycache__", "build", "venv"} <= fixed | beside


def test_the_longest_files_of_tests_are_there():
    assert [name for name in LONGEST if not (ROOT / "tests" / name).is_file()] == []
