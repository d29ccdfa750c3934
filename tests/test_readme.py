"""The README says what is there: its tree, its commands, its metrics and its links."""

import re
from pathlib import Path

import pytest

from vlprobe import registry, views
from vlprobe.cli import main

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_path_of_the_tree_exists():
    named = re.findall(
        r"^    ((?:vlprobe|tests|pages|benchmarks|app)[\w/.*]*)  ", README, re.MULTILINE
    )
    assert len(named) > 20
    for path in named:
        assert list(ROOT.glob(path.rstrip("/"))), path


def test_every_module_of_the_package_is_in_the_tree():
    for path in (ROOT / "vlprobe").iterdir():
        if path.name.startswith("__") or path.suffix not in ("", ".py"):
            continue
        name = f"vlprobe/{path.name}"
        assert name in README, name


def test_every_command_it_shows_exists():
    block = README[README.index("## On the command line") : README.index("**Datasets**")]
    used = set(re.findall(r"^vlprobe ([\w-]+)", block, re.MULTILINE))
    assert used
    assert used <= set(main.main.commands)
    for option in set(re.findall(r" (--[\w-]+)", block)):
        known = {
            name
            for command in main.main.commands.values()
            for p in command.params
            for name in p.opts
        }
        assert option in known | {"--cache"}, option


def test_there_are_exactly_two_installing_commands_and_ci_uses_the_second():
    installing = [line for line in README.splitlines() if line.startswith("python3 -m venv")]
    assert len(installing) == 2
    assert "vlprobe dashboard" in installing[0]
    assert "pytest" in installing[1]
    assert "test command" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_the_table_names_every_metric_of_lgip():
    for name, metric in views.runs.metrics("lgip").items():
        assert f"`{name}`" in README, metric.label


def test_the_table_of_probes_is_complete():
    for name in registry.names("probes"):
        assert f"| `{name}` |" in README


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#:]+)\)", README))
def test_every_link_leads_somewhere(link: str):
    assert (ROOT / link).exists()
