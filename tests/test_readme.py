"""README and docs/ match the code: trees, commands, metrics and links. The documentation site builds from them."""

import datetime
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import click
import pytest
import yaml
from packaging.requirements import Requirement

from tests.conftest import call
from tools import reference
from tools.train_demo import main as train_demo
from vlprobe import __version__, registry, views
from vlprobe.cli import main
from vlprobe.dashboard import navigation

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted(path for path in DOCS.rglob("*.md") if path.parent.name not in ("demo", "example")),
]
README = (ROOT / "README.md").read_text(encoding="utf-8")
LAYOUT = (DOCS / "layout.md").read_text(encoding="utf-8")
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`\n]+)`")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
SESSION = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
PLACEHOLDERS = {"COMMAND", "NAME"}  # placeholders for a command's name in sentences
OF_OTHERS = {"ray", "export", "docker", "duckdb", "hf"}  # programs whose arguments are not checked


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


SESSIONS = [page for page in PAGES if SESSION.search(text_of(page))]


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


def parts(line: str) -> Iterator[list[str]]:
    """Split a shell line into commands, each a list of words, without comments and output redirection."""
    words = shlex.split(re.split(r"\s+#\s", line)[0])
    command: list[str] = []
    for word in [*words, "&&"]:
        if word in ("&&", "|"):
            yield command
            command = []
        else:
            command.append(word)


def shell_commands() -> list:
    """Return a test parameter for each command of each shell block, with the name of its page as id."""
    commands = []
    for page in PAGES:
        for block in SHELL.findall(text_of(page)):
            for line in block.splitlines():
                if line.split(" #")[0].strip() and not line.startswith("#"):
                    commands += [
                        pytest.param(command, id=f"{page_id(page)}: {line[:60]}")
                        for command in parts(line)
                    ]
    return commands


def parse(words: list[str]) -> None:
    """Parse a command like the command line without running it. Raises click.ClickException."""
    group = main.main
    with group.make_context("vlprobe", list(words)) as context:
        name, command, rest = group.resolve_command(
            context, [*getattr(context, "_protected_args", ()), *context.args]
        )
        assert command, name
        with command.make_context(name, rest, parent=context):
            pass


@pytest.mark.parametrize("command", shell_commands())
def test_every_shown_command_is_valid(command: list[str]):
    program = Path(command[0]).name
    if ">" in command:
        command = command[: command.index(">")]
    if program == "vlprobe":
        parse(command[1:])
    elif program == "pip":
        check_pip(command)
    elif program in ("python", "python3"):
        check_python(command[1:])
    elif program == "properdocs":
        assert command[1] == "build" and (ROOT / "properdocs.yml").is_file()
    else:
        assert program in OF_OTHERS, program


def check_pip(words: list[str]) -> None:
    """Check that the requirements files and extras of a pip command exist."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    files = [words[n + 1] for n, word in enumerate(words) if word == "-r"]
    assert all((ROOT / name).is_file() for name in files), files
    named = re.findall(r"(?:^|\s)(?:vlprobe|\.)\[([\w,]+)\]", " ".join(words))
    assert {extra for names in named for extra in names.split(",")} <= set(
        project["optional-dependencies"]
    )


def check_python(words: list[str]) -> None:
    """Check that a script of the repository exists, or that a module is pytest, venv, http.server or a tool with valid
    options.
    """
    if words[:2] == ["-m", "tools.train_demo"]:
        train_demo.make_context("train_demo", words[2:]).close()
    elif words[0] == "-m":
        assert words[1] in ("pytest", "venv", "http.server")
        words = words[2:]
    ours = [word for word in words if word.startswith(("benchmarks/", "tests/"))]
    assert all((ROOT / word).exists() for word in ours), ours


def test_parsing_refuses_an_unknown_option_or_command():
    with pytest.raises(click.NoSuchOption):
        parse(["run", "--model", "demo:weak", "--no-such"])
    with pytest.raises(click.UsageError):
        parse(["no-such-command"])


def options_of(command: click.Command) -> set[str]:
    return {name for p in command.params for name in (*p.opts, *p.secondary_opts)}


KNOWN = options_of(main.main).union(*(options_of(c) for c in main.main.commands.values()))


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_command_named_in_a_sentence_exists_with_its_options(page: Path):
    for code in CODE.findall(FENCED.sub("", text_of(page))):
        words = code.split()
        if words[0] != "vlprobe" or len(words) == 1:
            continue
        names = [w for w in words[1:] if w in main.main.commands or w in PLACEHOLDERS]
        options = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert names or options <= {"--help", "--version"}, code
        command = main.main.commands.get(names[0]) if names else None
        known = options_of(command) | options_of(main.main) if command else KNOWN
        assert options <= known | {"--help"}, code


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_the_shown_syntax_of_a_command_has_only_existing_options(page: Path):
    for name, rest in re.findall(r"^    vlprobe ([\w-]+) (.+)$", text_of(page), re.MULTILINE):
        known = options_of(main.main.commands[name])
        assert set(re.findall(r"--[\w-]+", rest)) <= known, name


@pytest.mark.full
def test_the_first_run_in_getting_started_works(tmp_path: Path):
    section = text_of(DOCS / "start.md").partition("## The first run")[2]
    commands = [line for line in SHELL.findall(section)[0].splitlines() if "dashboard" not in line]
    assert len(commands) == 3
    for line in commands:
        words = next(parts(line))[1:]
        words += ["--limit", "8"] if words[0] == "run" else []
        outcome = call(tmp_path, *words)
        assert outcome.output, (line, outcome.output)


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_file_named_in_a_sentence_exists(page: Path):
    named = re.findall(r"`((?:vlprobe|docs|tests|benchmarks|pages|\.ci)/[\w./-]+)`", text_of(page))
    missing = [name for name in named if not (ROOT / name).exists()]
    assert not missing, missing


def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", FENCED.sub("", text_of(page)), re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings
    }


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_link_is_https_or_leads_to_a_file_with_the_anchor(page: Path):
    for link in LINK.findall(FENCED.sub("", text_of(page))):
        if ":" in link.partition("#")[0]:
            address = urlsplit(link)
            assert address.scheme == "https" and "." in address.netloc, link
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.is_file() and target.is_relative_to(ROOT), link
        assert not anchor or anchor in anchors(target), link


def test_every_page_is_linked_from_the_readme_in_two_steps():
    for page in PAGES[3:]:
        assert page == DOCS / "index.md" or reaches(ROOT / "README.md", page), page


def reaches(start: Path, page: Path, steps: int = 2) -> bool:
    """Return whether at most `steps` links lead from one page to another."""
    links = {
        (start.parent / link.partition("#")[0]).resolve()
        for link in LINK.findall(text_of(start))
        if ":" not in link
    }
    nearer = [link for link in links if link.suffix == ".md" and link.is_file()]
    return page in links or (steps > 1 and any(reaches(link, page, steps - 1) for link in nearer))


def test_the_tour_names_every_page_and_each_picture_is_used_and_small():
    tour = text_of(DOCS / "tour.md").lower()
    assert [
        title
        for title in (*navigation.ROW.values(), *navigation.BELOW.values())
        if title.lower() not in tour
    ] == []
    files = sorted((DOCS / "pictures").iterdir())
    assert [file.name for file in files if f"(pictures/{file.name})" not in tour] == []
    assert sum(file.stat().st_size for file in files if file.suffix == ".webp") < 2_000_000


def test_the_readme_has_at_most_130_lines():
    assert len(README.splitlines()) <= 130


@pytest.mark.parametrize("page", SESSIONS, ids=page_id)
def test_the_shown_output_of_a_command_is_its_actual_output(page: Path, tmp_path, monkeypatch):
    monkeypatch.delenv("VLPROBE_SHIPPED", raising=False)
    for session in SESSION.findall(text_of(page)):
        for part in session.split("$ vlprobe ")[1:]:
            line, _, printed = part.partition("\n")
            outcome = call(tmp_path, *shlex.split(line))
            assert printed and outcome.stdout.startswith(printed), (line, outcome.stdout)


def test_the_readme_and_the_guides_show_command_output():
    assert {page.name for page in SESSIONS} >= {"README.md", "explore.md", "compare.md"}


def test_every_path_of_the_tree_exists():
    named = re.findall(
        r"^    ((?:vlprobe|tests|pages|benchmarks|app)[\w/.*]*)  ", LAYOUT, re.MULTILINE
    )
    assert len(named) > 20
    for path in named:
        assert list(ROOT.glob(path.rstrip("/"))), path


def test_every_module_of_the_package_is_in_the_tree():
    for path in (ROOT / "vlprobe").iterdir():
        if path.name.startswith("__") or path.suffix not in ("", ".py"):
            continue
        name = f"vlprobe/{path.name}"
        assert name in LAYOUT, name


def test_every_command_of_the_command_line_is_shown_in_an_example():
    named = {
        word
        for page in PAGES
        for block in SHELL.findall(text_of(page))
        for word in re.findall(r"\bvlprobe(?: --cache \S+)? ([a-z][\w-]+)", block)
    }
    assert set(main.main.commands) <= named


def test_every_family_of_datasets_and_models_is_documented():
    page = text_of(DOCS / "data.md") + text_of(DOCS / "model.md")
    names = [*registry.names("datasets"), *registry.names("models")]
    assert len({name.partition(":")[0] for name in names}) > 15
    named = set(re.findall(r"[`|]([a-z][\w-]*)[:`]", page))
    assert {name.partition(":")[0] for name in names} - named - set(presets()) == set()


def presets() -> set[str]:
    """Return the prefixes of preset names."""
    table = tomllib.loads((ROOT / "vlprobe" / "models" / "presets.toml").read_text("utf-8"))
    return set(table)


def test_every_documented_environment_variable_is_read_by_the_code():
    documented = set(re.findall(r"`(VLPROBE_\w+)`", text_of(DOCS / "start.md")))
    sources = "".join(path.read_text("utf-8") for path in (ROOT / "vlprobe").rglob("*.py"))
    assert len(documented) >= 4
    assert [name for name in documented if f'"{name}"' not in sources] == []


def test_the_readme_has_two_install_commands_and_ci_uses_the_second():
    installing = [line for line in README.splitlines() if line.startswith("python3 -m venv")]
    assert len(installing) == 2
    assert "vlprobe dashboard" in installing[0]
    assert "pytest" in installing[1]
    assert "test command" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert all(line in text_of(DOCS / "start.md") for line in installing)


def test_the_citation_and_the_changelog_have_the_current_version():
    citation = yaml.safe_load(text_of(ROOT / "CITATION.cff"))
    assert citation["version"] == __version__
    section = re.search(r"^## (\S+) \((\d+) (\w+) (\d+)\)$", text_of(PAGES[2]), re.MULTILINE)
    assert section and section[1] == __version__
    date = datetime.datetime.strptime(" ".join(section.groups()[1:]), "%d %B %Y").date()
    assert citation["date-released"] == date


def test_the_citation_has_the_required_fields_and_a_paper_for_each_probe():
    citation = yaml.safe_load(text_of(ROOT / "CITATION.cff"))
    assert citation["cff-version"] == "1.2.0" and citation["message"] and citation["title"]
    assert citation["authors"] == [{"name": "vlprobe contributors"}]
    for paper in citation["references"]:
        assert paper["title"] and paper["type"] == "article"
        assert all({"family-names", "given-names"} == set(author) for author in paper["authors"])
    notes = " ".join(paper["notes"] for paper in citation["references"])
    assert [name for name in registry.names("probes") if not re.search(rf"\b{name}\b", notes)] == []


def test_the_tables_of_probes_are_complete():
    for name in registry.names("probes"):
        assert f"| `{name}` |" in README
        assert f"| `{name}` |" in text_of(DOCS / "index.md")


def test_the_reference_pages_match_the_code():
    folder = DOCS / "reference"
    written = {path.name: text_of(path) for path in folder.iterdir()}
    assert written == reference.pages(), "run: python -m tools.reference"


def test_the_reference_is_unchanged_after_parsing_a_command_without_its_group():
    with pytest.raises(click.exceptions.Exit):
        main.main.commands["verify"].make_context("verify", ["-h"])
    assert reference.pages()["commands.md"] == text_of(DOCS / "reference" / "commands.md")


@pytest.mark.parametrize("probe", registry.names("probes"))
def test_the_reference_lists_every_metric_with_unit_direction_and_chance(probe: str):
    section = text_of(DOCS / "reference" / "metrics.md").partition(f"\n## {probe}\n")[2]
    rows = re.findall(
        r"^\| `(\w[\w.]*)` \| .+ \| (\w+) \| (higher|lower|-) \| (\S+) \| .+ \|$",
        section.partition("\n## ")[0],
        re.MULTILINE,
    )
    better = {"up": "higher", "down": "lower", "none": "-"}
    metrics = views.runs.metrics(probe)
    assert [name for name, *_ in rows] == list(metrics)
    for name, unit, direction, chance in rows:
        metric = metrics[name]
        assert (unit, direction) == (metric.unit, better[metric.direction]), name
        value = float("nan") if chance == "-" else float(chance)
        assert value == pytest.approx(metric.chance, abs=5e-4, nan_ok=True), name


def test_the_documentation_site_builds_without_warnings_and_loads_no_external_files(tmp_path: Path):
    if not find_spec("properdocs"):
        pytest.skip("properdocs is not installed: pip install -r requirements.txt")
    command = [
        sys.executable,
        "-m",
        "properdocs",
        "build",
        "--strict",
        "-d",
        str(tmp_path / "site"),
    ]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    for page in PAGES[3:]:
        html = text_of((tmp_path / "site" / page.relative_to(DOCS)).with_suffix(".html"))
        assert not re.findall(r"(?:src=|<link[^>]+href=)\"(?:https?:)?//[^\"]+", html), page


def test_the_install_guide_keeps_the_cpu_builds_of_pytorch():
    """`pip` keeps a CPU build if every requirement allows it; without torchvision, pip replaces torch."""
    command = "pip install -q torch torchvision --index-url https://download.pytorch.org/whl/cpu"
    assert command in text_of(DOCS / "start.md") and "docs/start.md#size" in README
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    requirements = [Requirement(line) for line in project["dependencies"]]
    requirements += [Requirement(line) for line in metadata.requires("open_clip_torch") or []]
    for requirement in requirements:
        if requirement.name in ("torch", "torchvision"):
            build = metadata.version(requirement.name).partition("+")[0] + "+cpu"
            assert build in requirement.specifier
    assert {"torch", "torchvision"} <= {requirement.name for requirement in requirements}
