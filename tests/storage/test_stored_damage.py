"""Damage to what is stored is an error with fields: whoever handles it reads those, not its English."""

import ast
import copy
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

import vlprobe
from vlprobe.errors import REPAIR, InvalidInput, StoredDamage

PACKAGE = Path(vlprobe.__file__).parent
MATCHING = {"search", "match", "fullmatch", "findall", "finditer", "split", "sub", "subn"}
REDACTING = {"storage/file_systems.py"}  # takes credentials out of another library's message


@pytest.mark.parametrize("remedy", [REPAIR, "Start it anew.", ""])
@pytest.mark.parametrize(
    "problem", ["'a' is damaged.", "'a\nb\x1b[31m' is gone.", "x" * 9000, "\x1b" * 9000]
)
def test_damage_survives_pickling_and_copying(remedy, problem):
    error = StoredDamage(problem, remedy)
    assert str(error).isprintable()
    assert len(str(error)) < 8000
    assert str(error).endswith(remedy)
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(twin) is StoredDamage
        assert (str(twin), twin.problem, twin.remedy) == (str(error), error.problem, remedy)


def test_the_line_is_the_problem_and_then_the_remedy():
    assert str(StoredDamage("'a' is damaged.")) == (
        "'a' is damaged. Run `vlprobe verify --repair`, then the same run again: "
        "damaged files are recomputed."
    )
    assert str(StoredDamage("'a' is damaged.", remedy="")) == "'a' is damaged."
    assert isinstance(StoredDamage("'a' is damaged."), InvalidInput)


def matched_errors(source: str) -> Iterator[str]:
    """Calls of regular expressions, in Python source, on what is named as an error."""
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in MATCHING
            and any(
                isinstance(name, ast.Name) and name.id.endswith(("error", "exception", "problem"))
                for argument in node.args
                for name in ast.walk(argument)
            )
        ):
            yield ast.unparse(node)


@pytest.mark.parametrize(
    "line", ["re.sub(COMMAND, PRESS, error)", "WORD.search(str(error))", "re.match('a', problem)"]
)
def test_an_error_that_is_matched_is_noticed(line: str):
    assert list(matched_errors(line)) == [line]


def test_no_module_matches_the_text_of_an_error_by_a_regular_expression():
    matched = {
        (path.relative_to(PACKAGE).as_posix(), call)
        for path in PACKAGE.rglob("*.py")
        for call in matched_errors(path.read_text())
    }
    assert {(name, call) for name, call in matched if name not in REDACTING} == set()
