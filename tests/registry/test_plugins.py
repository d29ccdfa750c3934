"""Plug-ins (models, datasets, probes and rules): listed without being imported, and imported only when named."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.conftest import call, make_tiny, tiers
from tests.dashboard.test_pages import open_page
from tests.registry.conftest import EXAMPLE, FILES, TRAP, Install
from vlprobe import registry, views
from vlprobe.cli import main
from vlprobe.errors import InvalidInput, NotFound, VlprobeError
from vlprobe.registry import plugins
from vlprobe.runs import case_workers
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage import access
from vlprobe.storage.store import Store

ASK = ("run", "--no-doctor", "--format", "json")


def listed(cache: Path, collection: str) -> dict[str, str]:
    rows = json.loads(call(cache, "list", collection, "--format", "json").stdout)
    return {next(iter(row.values())): row["from"] for row in rows}


def test_listing_names_plugins_and_imports_none(install: Install, tmp_path: Path):
    mark = str(tmp_path / "mark")
    groups = ("models", "datasets", "probes", "rules")
    install({group: {"trap": "trap"} for group in groups}, {"trap.py": TRAP.format(mark=mark)})
    for group in groups:
        assert listed(tmp_path, group)["trap"] == "acme 1.0"
    assert "trap" not in sys.modules and not os.path.exists(mark)
    assert "demo:softmax" in listed(tmp_path, "models")


@pytest.mark.parametrize("group", ["models", "datasets", "probes", "rules"])
@pytest.mark.parametrize("name", ["trap", "trap:large", "py:FILE", "py:FILE:large", "py:trap"])
def test_a_plugin_that_was_not_named_is_refused_without_importing_it(
    install: Install, tmp_path: Path, group: str, name: str
):
    mark = str(tmp_path / "mark")
    folder = install({group: {"trap": "trap"}}, {"trap.py": TRAP.format(mark=mark)})
    name = name.replace("FILE", str(folder / "trap.py"))
    tries = {
        "models": lambda: registry.load_model(name),
        "datasets": lambda: registry.load_dataset(name, tmp_path),
        "probes": lambda: registry.load_probe(name),
        "rules": lambda: registry.load_rules(name),
    }
    with pytest.raises(InvalidInput, match="was not allowed at startup"):
        tries[group]()
    if group != "probes":
        with pytest.raises(InvalidInput, match="Restart with --plugin"):
            registry.check_name(group, name)
    assert "trap" not in sys.modules and not os.path.exists(mark)


def test_a_refused_plugin_name_does_not_reveal_whether_the_file_exists(tmp_path: Path):
    for name in ("py:/etc/passwd", "py:/no/such/file.py", "py:a\0b.py", "py:" + "x" * 5000 + ".py"):
        with pytest.raises(InvalidInput, match="is code from outside vlprobe"):
            registry.load_model(name)


def test_a_plugin_name_typed_in_a_command_is_allowed(colors: Path, tmp_path: Path):
    cache = tmp_path / "cache"
    call(cache, *ASK, "--model", "colors", "--dataset", "swatches:3", "--option", "rules=loud")
    (manifest,) = Store(cache).runs()
    assert manifest["run"]["model"] == "colors" and manifest["run"]["dataset"] == "swatches:3"
    assert manifest["n_cases"] == 3 * 2
    rows = views.runs.runs(Store(cache))
    assert rows["note"].tolist() == ["an example that knows only colors"]


def test_plugin_files_are_used_by_their_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(EXAMPLE / "vlprobe_colors")
    cache = tmp_path / "cache"
    words = ["--model", "py:model.py", "--dataset", "py:dataset.py:2", "--option"]
    call(cache, *ASK, *words, "rules=py:rules.py")
    run = Store(cache).runs()[0]["run"]
    assert run["model"] == f"py:{FILES['model']}"
    assert run["dataset"] == f"py:{FILES['dataset']}:2"
    assert run["options"]["rules"] == f"py:{FILES['rules']}"


def test_a_probe_plugin_is_run_and_shown_and_skipped_if_it_is_not_named(
    colors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    cache = tmp_path / "cache"
    words = ("--model", "colors", "--dataset", "swatches")
    call(cache, *ASK, "--probe", "blank", *words)
    call(cache, *ASK, *words)
    manifest = next(row for row in Store(cache).runs() if row["run"]["probe"] == "blank")
    by_hand = views.estimates.estimates(views.runs.question_set(Store(cache), manifest["case_key"]))
    # red, green and blue beat a text without a color; white has no direction and does not
    assert by_hand["value"].tolist() == [0.75]
    monkeypatch.setenv(access.PLUGINS, "")
    shown = call(cache, "show", "--format", "json")
    assert [row["probe"] for row in json.loads(shown.stdout)] == ["lgip"]
    assert "Left out: 'blank' is a plug-in of vlprobe-colors 1.0" in shown.stderr
    assert "--plugin blank" in call(cache, "show", manifest["key"], code=1).stderr
    assert "beats_blank" in call(cache, "--plugin", "blank", "show", manifest["key"]).stdout


def test_perturb_writes_the_edits_of_plugin_rules(colors: Path, tmp_path: Path):
    words = ("perturb", "swatches:1", "--rules", "loud", "--format", "edits")
    rows = [json.loads(line) for line in call(tmp_path / "cache", *words).stdout.splitlines()]
    assert [row["text"] for row in rows] == [
        "A RED SQUARE IS ON THE WALL.",
        "A red square is not on the wall.",
    ]


def test_a_package_of_several_files_is_one_plugin(tmp_path: Path):
    folder = tmp_path / "package"
    folder.mkdir()
    shutil.copy(FILES["model"], folder / "inner.py")
    (folder / "__init__.py").write_text("from .inner import load\n")
    plugins.allow(f"py:{folder}")
    before = registry.load_model(f"py:{folder}").digest
    with (folder / "inner.py").open("a") as handle:
        handle.write("# more\n")
    plugins.load.cache_clear()
    assert registry.load_model(f"py:{folder}").digest != before


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing", "No plug-in named 'nothing'"),
        ("py:/no/such.py", "is neither a file nor a folder with an __init__.py"),
        ("py:no_such_module", "names the module 'no_such_module', which is not installed here"),
        ("py:", "does not name a plug-in"),
        ("py:a\nb.py", "does not name a plug-in"),
    ],
)
def test_a_missing_plugin_is_refused_at_startup(tmp_path: Path, name: str, message: str):
    for words in (("list", "models"), ("dashboard",)):
        place = ["--plugin", name, *words] if words[0] == "list" else [*words, "--plugin", name]
        result = CliRunner().invoke(main.main, place)
        assert result.exit_code == 1 and message in result.output, result.output


def test_a_plugin_name_with_a_line_break_does_not_allow_a_second_plugin(
    monkeypatch: pytest.MonkeyPatch,
):
    for name in ("a\npy:/evil.py", "py:/a\npy:/evil.py"):
        with pytest.raises((VlprobeError, AssertionError)):
            registry.allow_typed(name)
            plugins.allow(name)
            assert "evil" in os.environ[access.PLUGINS]
    assert not plugins.named()


def test_child_processes_inherit_the_allowed_plugins(tmp_path: Path):
    plugins.allow(f"py:{FILES['model']}")
    code = "from vlprobe import registry; print(registry.names('models')[-1])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert printed.stdout.strip() == f"py:{FILES['model']}", printed.stderr


def test_allowed_plugins_are_listed_among_the_names(colors: Path):
    before = {group: registry.names(group) for group in registry.NOUNS}
    for name in ("colors", "swatches", "blank", "loud"):
        plugins.allow(name)
    added = [set(registry.names(group)) - set(before[group]) for group in registry.NOUNS]
    assert added == [{"colors"}, {"swatches"}, {"blank"}, {"loud"}]


def test_an_unknown_name_is_refused_with_an_installed_plugin_as_suggestion(colors: Path):
    with pytest.raises(NotFound, match="Did you mean 'colors'"):
        registry.load_model("colours")


def test_the_plugin_docs_show_the_tested_files():
    page = (EXAMPLE.parent / "plugins.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```(?:python|toml)\n(.*?)```", page, re.DOTALL)
    shown = [
        FILES[name].read_text(encoding="utf-8") for name in ("model", "dataset", "rules", "probe")
    ]
    assert blocks == [*shown, (EXAMPLE / "pyproject.toml").read_text(encoding="utf-8")]
    assert max(sum(map(bool, map(str.strip, text.splitlines()))) for text in shown) <= 20


@pytest.mark.parametrize("kind", ["probe", pytest.param("rules", marks=pytest.mark.full)])
def test_several_processes_make_the_same_cases_with_plugins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
):
    """Rules run in every process, which inherits the allowed plug-ins; the cases of a probe plug-in are made in one
    process.
    """
    monkeypatch.setattr(case_workers, "CHUNK_ITEMS", 2)
    monkeypatch.setattr(case_workers, "PAYS", 0.0)
    name, tiny = f"py:{FILES[kind]}", make_tiny(tmp_path / "tiny")
    plugins.allow(name)
    probe, options = (name, {}) if kind == "probe" else ("lgip", {"rules": name})
    keys = []
    for workers in (1, 2):
        store = Store(tmp_path / f"cache{workers}")
        request = Request(("control:random",), tiny, probe, options, workers=workers, examine=False)
        (manifest,) = execute(request, store)
        entry = store.cases(manifest["case_key"])
        keys.append((manifest["key"], entry.table_path("cases").read_bytes()))
    assert keys[0] == keys[1]


OTHERS = ["home", "present", "compare", "tradeoff", "lab", "run", "breakdown", "models"]


@pytest.mark.parametrize("page", tiers(["explore", *OTHERS], ("explore",)))
def test_pages_show_the_runs_of_an_allowed_probe_plugin(
    colors: Path, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str
):
    for name in ("colors", "swatches", "blank"):
        plugins.allow(name)
    request = Request(("colors", "control:random"), "swatches", "blank", examine=False)
    manifests = execute(request, store)
    at = open_page(monkeypatch, store, page, set=manifests[0]["case_key"])
    assert not at.exception and not at.error, at.error
    monkeypatch.setenv(access.PLUGINS, "")
    copied = Store(shutil.copytree(store.root, tmp_path / "copied"))  # not cached in memory
    at = open_page(monkeypatch, copied, page)
    assert not at.exception, at.exception


def test_only_names_typed_by_a_user_allow_a_plugin():
    """Code that serves a page or reads a job or a stored run must not call the functions that allow plug-ins."""
    root = EXAMPLE.parents[1] / "vlprobe"
    naming = re.compile(r"\b(allow_typed|require_plugin|plugins\.allow|plugins\.require)\(")
    callers = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if naming.search(path.read_text(encoding="utf-8"))
    }
    assert callers == {"registry/__init__.py", "cli/arguments.py", "surfaces/notebook/interface.py"}
    importing = "vlprobe.surfaces.notebook"
    for path in [
        *root.rglob("*.py"),
        *(root.parent / "pages").glob("*.py"),
        root.parent / "app.py",
    ]:
        if "notebook" not in path.parts and path != root / "__init__.py":
            assert importing not in path.read_text(encoding="utf-8"), path


@pytest.mark.full
def test_the_example_plugin_installs_and_runs_from_a_separate_folder(tmp_path: Path):
    project, site = tmp_path / "project", tmp_path / "site"
    shutil.copytree(EXAMPLE, project)
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--no-index", "--target", str(site), str(project)], check=True)
    root = str(EXAMPLE.parents[1])
    options = {"capture_output": True, "text": True, "cwd": tmp_path}
    options["env"] = os.environ | {"PYTHONPATH": f"{site}{os.pathsep}{root}"}
    command = [sys.executable, "-m", "vlprobe", "--cache", str(tmp_path / "cache")]
    run_words = ["run", "--model", "colors", "--dataset", "swatches", "--format", "csv"]
    for words in ([], ["--option", "rules=loud"], ["--probe", "blank"]):
        ended = subprocess.run([*command, *run_words, *words], **options)
        assert ended.returncode == 0 and ended.stdout.count("\n") > 1, ended.stderr
    listed = subprocess.run([*command, "list", "probes"], **options)
    assert "blank vlprobe-colors 1.0" in re.sub(" +", " ", listed.stdout)
