"""The structure of the package: import direction, no circles, simple functions, thin pages."""

import ast
import functools
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import get_args

import pytest

from tests.conftest import LONGEST
from vlprobe.types.presentation import CardBody

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = sorted((ROOT / "vlprobe").rglob("*.py"))
PAGES = sorted((ROOT / "pages").glob("*.py"))
FLOORS = [  # a file imports from its package and from earlier lines, never from later ones
    ("errors",),
    ("types",),
    ("perturb", "storage"),
    ("registry", "metrics"),
    ("scoring",),
    ("datasets",),
    ("probes",),
    ("models",),
    ("training",),
    ("runs", "views"),
    ("words",),
    ("case", "render"),
    ("features.data",),  # the data that a feature shows, for every surface
    ("surfaces",),
    ("dashboard",),
    ("features",),  # a feature's Streamlit page
    ("cli",),
    ("__main__", "__init__"),
]
FLOOR = {name: floor for floor, names in enumerate(FLOORS) for name in names}
SOURCES = [*PACKAGE, *PAGES, ROOT / "app.py"]


@functools.cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a file. It is cached, because the tests inspect each file many times; do not change
    it.
    """
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def imports(path: Path) -> list[tuple[str, bool]]:
    """Return the absolute names that a file imports at run time, and whether each import is at the top of the
    module.
    """
    body = [
        node
        for node in parsed(path).body
        if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))
    ]
    top = set(map(id, body))
    names = []
    for node in ast.walk(ast.Module(body, [])):
        if isinstance(node, ast.Import):
            names += [(alias.name, id(node) in top) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [(f"{node.module}.{alias.name}", id(node) in top) for alias in node.names]
    return names


def package_of(name: str) -> str:
    """Return the entry in FLOORS for a dotted name: its package in `vlprobe/`, or `features.data` for the data of a
    feature.
    """
    parts = name.removeprefix("vlprobe.").split(".")
    return "features.data" if parts[0] == "features" and "data" in parts[2:3] else parts[0]


def place(path: Path) -> str:
    """Return the path of a file relative to the repository."""
    return path.relative_to(ROOT).as_posix()


def test_no_file_imports_ray_at_the_top_of_the_module():
    top = {name.partition(".")[0] for path in PACKAGE for name, at_top in imports(path) if at_top}
    assert "ray" not in top


def test_packages_import_downwards_only():
    upwards = []
    for path in PACKAGE:
        package = package_of(".".join(path.relative_to(ROOT / "vlprobe").with_suffix("").parts))
        for name, _ in imports(path):
            if name.startswith("vlprobe.") and not name.startswith("vlprobe.__version__"):
                imported = package_of(name)
                if {imported, package} == {"case", "render"}:
                    continue  # cases use words and elements of render; home and slides use cases
                if imported != package and FLOOR[imported] >= FLOOR[package]:
                    upwards.append(f"{place(path)} may not import {name}")
    assert upwards == []


def modules() -> dict[str, Path]:
    """Return the dotted names of all files of the package."""
    parts = {path: list(path.relative_to(ROOT).with_suffix("").parts) for path in PACKAGE}
    return {
        ".".join(names[:-1] if names[-1] == "__init__" else names): path
        for path, names in parts.items()
    }


def imported_files(path: Path, files_by_module: dict[str, Path]) -> set[str]:
    """Return the modules of vlprobe that a file imports anywhere, including imports for the type checker."""
    targets = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            targets |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                targets.add(full if full in files_by_module else node.module)
    return targets & files_by_module.keys()


def test_only_two_files_depend_on_the_body_of_a_case():
    """One file selects data by the body, another draws it; no other file reads the body or names a card."""
    bodies = set(get_args(CardBody))
    choosing = set()
    for path in PACKAGE:
        for node in ast.walk(parsed(path)):
            is_read = isinstance(node, ast.Attribute) and re.search(
                r"(kind|presentation)(\(.*\))?\.body$", ast.unparse(node)
            )
            keys = node.keys if isinstance(node, ast.Dict) else []
            is_table = {key.value for key in keys if isinstance(key, ast.Constant)} >= bodies
            is_card = (
                isinstance(node, ast.Call)
                and ast.unparse(node.func) == "isinstance"
                and ast.unparse(node.args[1]).endswith("Card")
            )
            if is_read or is_table or is_card:
                choosing.add(place(path))
    assert choosing == {"vlprobe/views/bodies.py", "vlprobe/case/card.py"}


def test_no_files_import_each_other_in_a_circle():
    known = modules()
    pending = {
        name: imported_files(path, known) - {name, "vlprobe"} for name, path in known.items()
    }
    while free := {name for name, targets in pending.items() if not targets & pending.keys()}:
        pending = {name: targets for name, targets in pending.items() if name not in free}
    assert not pending, "files that import each other in a circle, and what imports them"


def test_the_package_root_has_at_most_20_entries():
    entries = {path.name for path in (ROOT / "vlprobe").iterdir()}
    assert len(entries - {"__init__.py", "__main__.py", "py.typed", "__pycache__"}) <= 20


def test_at_most_three_files_of_a_folder_share_a_prefix():
    families = {}
    for path in PACKAGE:
        prefix, _, rest = path.stem.partition("_")
        if rest and prefix:
            families[path.parent, prefix] = sorted(path.parent.glob(f"{prefix}_*.py"))
    assert [
        f"{list(map(place, family))} belong into a folder"
        for family in families.values()
        if len(family) > 3
    ] == []


def test_the_dashboard_imports_only_documented_modules_of_streamlit():
    public = {
        "streamlit",
        "streamlit.components.v2",
        "streamlit.components.v2.types",
        "streamlit.delta_generator",
        "streamlit.errors",
    }
    modules_of_streamlit = set()
    for node in (node for path in [*PACKAGE, *PAGES] for node in ast.walk(parsed(path))):
        if isinstance(node, ast.Import):
            modules_of_streamlit |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules_of_streamlit.add(node.module)
    imported = {name for name in modules_of_streamlit if name.split(".")[0] == "streamlit"}
    assert "streamlit" in imported and imported <= public


def test_only_the_dashboard_and_the_pages_of_features_import_streamlit():
    importing = {
        path.relative_to(ROOT / "vlprobe").parts[0]
        for path in PACKAGE
        if any(name.split(".")[0] == "streamlit" for name, _ in imports(path))
    }
    assert "dashboard" in importing and importing <= {"dashboard", "features"}


@pytest.mark.parametrize(
    "part",
    [
        "cli/main",
        "registry/__init__",
        "registry/plugins",
        "types/nouns",
        "types/protocols",
        "types/options",
        "errors",
        "storage/store",
    ],
)
def test_the_command_line_starts_without_heavy_libraries(part: str):
    names = {name.split(".")[0] for name, top in imports(ROOT / "vlprobe" / f"{part}.py") if top}
    assert not names & {"torch", "open_clip", "streamlit", "plotly", "pandas", "duckdb"}


def test_no_module_has_a_generic_name():
    drawers = {"utils", "util", "helpers", "common", "base", "misc", "core"}
    assert [place(path) for path in PACKAGE if path.stem in drawers] == []


def test_only_one_file_may_skip_html_escaping():
    unescaped = {
        path.relative_to(ROOT / "vlprobe").as_posix()
        for path in PACKAGE
        if any(name.startswith("markupsafe") for name, _ in imports(path))
    }
    assert unescaped == {"render/html/elements.py"}


def test_no_function_branches_more_than_fifteen_times():
    ruff = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--select",
        "C901",
        "--config",
        "lint.mccabe.max-complexity=15",
    ]
    checked = subprocess.run(
        [*ruff, "--output-format=concise", *map(str, SOURCES)], capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout


def test_the_type_checker_checks_every_file():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    assert settings["pyright"]["include"] == ["vlprobe", "app.py", "pages"]
    assert not settings["pyright"].keys() & {"ignore", "exclude"}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_is_at_most_60_lines_and_imports_no_data_layer(path: Path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
    ours = [name for name, _ in imports(path) if name.startswith("vlprobe")]
    assert {name.split(".")[0] for name, _ in imports(path)} <= {"streamlit", "vlprobe"}
    assert all(
        name.startswith(
            ("vlprobe.dashboard.", "vlprobe.features.", "vlprobe.render.", "vlprobe.views")
        )
        for name in ours
    )
    assert not re.search(r"\bselect\b.+\bfrom\b", text, re.IGNORECASE)


def test_there_are_pages_to_check():
    assert PAGES


def test_the_top_level_has_only_the_agreed_entries():
    entries = {
        path.name
        for path in ROOT.iterdir()
        if not path.name.startswith(".") and not path.name.endswith(".egg-info")
    }
    fixed = {"app.py", "README.md", "pages", "vlprobe", "tests", "requirements.txt", "cache"}
    beside = {
        "pyproject.toml",
        "setup.py",
        "LICENSE",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "benchmarks",
        "docs",
        "tools",
        "properdocs.yml",
        "CITATION.cff",
    }
    beside |= {"requirements-models.txt", "requirements-ray.txt"}
    assert entries - {"__pycache__", "build", "venv"} <= fixed | beside


def test_every_test_file_in_longest_exists():
    assert [name for name in LONGEST if not (ROOT / "tests" / name).is_file()] == []


def test_every_file_of_the_package_is_in_its_wheel():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "setuptools"
    ]
    carried = {
        path
        for glob in settings["package-data"]["vlprobe"]
        for path in (ROOT / "vlprobe").glob(glob)
    }
    listed = subprocess.run(
        ["git", "ls-files", "vlprobe"], cwd=ROOT, capture_output=True, text=True
    )
    tracked = {ROOT / name for name in listed.stdout.splitlines()} or set(
        (ROOT / "vlprobe").rglob("*.*")
    )
    beside = {path for path in tracked if path.suffix not in (".py", ".pyc") and path.is_file()}
    assert ROOT / "vlprobe" / "py.typed" in beside
    assert beside <= carried


def test_no_two_classes_share_a_name():
    homes: dict[str, list[str]] = {}
    for path in PACKAGE:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}
