"""A plug-in that raises, has the wrong interface or has the name of a built-in: the one-line error names it."""

import os
from pathlib import Path

import pytest

from tests.conftest import call, make_tiny
from tests.registry.conftest import FILES, TRAP, Install
from vlprobe import registry

ASK = ("run", "--no-doctor", "--format", "json")


BAD = {
    "raises": ("1 / 0", "raised ZeroDivisionError while it was imported (bad.py, line 1)"),
    "exits": ("raise SystemExit(3)", "raised SystemExit while it was imported"),
    "is no Python": ("def (", "raised SyntaxError"),
    "has nothing": ("", "does not implement vlprobe's models. Expected load(name, device, precision)"),
    "is a dataset": ("def load(name, cache): ...", "does not implement vlprobe's models"),
    "load raises": ("def load(name, device, precision):\n  {}['x']", "raised KeyError in load (bad"),
    "gives nothing": ("def load(name, device, precision): return None", "raised AttributeError in"),
    "no capability": (
        "from vlprobe.types import Capabilities\nclass M: digest, capabilities = 'a', Capabilities()\n"
        "def load(name, device, precision): return M()",
        "without any capability",
    ),
    "promises too much": (
        "from vlprobe.types import Capabilities\nclass M: digest = 'a'; capabilities = "
        "Capabilities(embeds_texts=True)\ndef load(name, device, precision): return M()",
        "declares embeds_texts but has no tokenize",
    ),
    "no digest": ("class M: digest = capabilities = None\ndef load(name, device, precision): return M", "digest"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_an_invalid_model_plugin_is_refused_in_one_line_that_names_it(tmp_path: Path, case: str):
    text, message = BAD[case]
    path = tmp_path / "bad.py"
    path.write_text(text + "\n")
    tiny = make_tiny(tmp_path / "tiny")
    result = call(tmp_path / "cache", *ASK, "--model", f"py:{path}", "--dataset", tiny, code=1)
    assert message in result.stderr and f"Plug-in 'py:{path}' (bad.py)" in result.stderr
    assert len(result.stderr.strip().splitlines()[-1:]) == 1 and "Traceback" not in result.stderr


BROKEN = {
    "model": (
        "return _unit(pixels",
        "return 1 / 0 or (pixels",
        "ZeroDivisionError in encode_images",
    ),
    "dataset": ("items.append(Item(", "items.append((", "Plug-in 'py:PATH' (dataset.py)"),
    "probe": ('item.captions[0], "A', 'item.nothing, "A', "AttributeError in cases"),
    "probe's metric": (
        'rows["margin"], 0)',
        'rows["no"], 0)',
        "raised KeyError in <lambda> (probe",
    ),
    "rules": (
        "yield caption.upper(), Edit",
        "yield caption, 3, Edit",
        "returned an invalid edit for item",
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_plugin_code_that_fails_during_a_run_is_reported_in_one_line(tmp_path: Path, kind: str):
    old, new, message = BROKEN[kind]
    kind = kind.partition("'")[0]
    path = tmp_path / f"{kind}.py"
    text = FILES[kind].read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    words = {
        "model": ["--model", f"py:{path}"],
        "dataset": ["--dataset", f"py:{path}"],
        "probe": ["--probe", f"py:{path}"],
        "rules": ["--option", f"rules=py:{path}"],
    }[kind]
    if kind != "model":
        words += ["--model", "control:random"]
    if kind != "dataset":
        words += ["--dataset", make_tiny(tmp_path / "tiny")]
    result = call(tmp_path / "cache", *ASK, *words, code=1)
    assert message.replace("PATH", str(path)) in result.stderr
    assert "Traceback" not in result.stderr


def test_a_plugin_with_the_name_of_a_built_in_is_reported_and_never_used(
    install: Install, tmp_path: Path
):
    mark = str(tmp_path / "mark")
    shadows = {"models": "demo", "datasets": "csv", "probes": "lgip", "rules": "strict"}
    entries = {group: {name: "trap"} for group, name in shadows.items()}
    install(entries, {"trap.py": TRAP.format(mark=mark)})
    for group, name in shadows.items():
        result = call(tmp_path, "list", group)
        line = f"Left out: Plug-in '{name}' (acme 1.0) has the name of one of vlprobe's {group}"
        assert line in result.stderr
        result = call(tmp_path, "--plugin", name, "list", group, code=1)
        assert "has the name of one of" in result.stderr
    assert registry.load_probe("lgip").version and not os.path.exists(mark)


def test_two_distributions_with_one_name_are_refused(install: Install, tmp_path: Path):
    install({"models": {"twice": "one"}}, {"one.py": ""}, "acme")
    install({"models": {"twice": "two"}}, {"two.py": ""}, "other")
    tiny = make_tiny(tmp_path / "tiny")
    result = call(tmp_path, *ASK, "--model", "twice", "--dataset", tiny, code=1)
    assert "is provided by several packages: acme 1.0, other 1.0" in result.stderr
