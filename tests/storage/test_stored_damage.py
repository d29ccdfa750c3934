"""Damage to stored files is an error with fields; code reads the fields and never parses the message."""

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
REDACTING = {"storage/file_systems.py"}  # removes credentials from the message of another library


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


def test_the_message_is_the_problem_followed_by_the_remedy():
    assert str(StoredDamage("'a' is damaged.")) == (
        "'a' is damaged. Run `vlprobe verify --repair`, then the same run again: "
        "damaged files are recomputed."
    )
    assert str(StoredDamage("'a' is damaged.", remedy="")) == "'a' is damaged."
    assert isinstance(StoredDamage("'a' is damaged."), InvalidInput)


def matched_errors(source: str) -> Iterator[str]:
    """Yield calls of regular expressions in Python source on variables that are named like errors."""
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
def test_matching_the_text_of_an_error_is_detected(line: str):
    assert list(matched_errors(line)) == [line]


def test_no_module_matches_the_text_of_an_error_with_a_regular_expression():
    matched = {
        (path.relative_to(PACKAGE).as_posix(), call)
        for path in PACKAGE.rglob("*.py")
        for call in matched_errors(path.read_text())
    }
    assert {(name, call) for name, call in matched if name not in REDACTING} == set()
