"""The bundled results on the command line, with an empty cache."""

import json
import shutil

import duckdb
import pytest

from tests.cli.test_compare import keys
from tests.conftest import call
from vlprobe.storage import display_names, shipped
from vlprobe.storage.shipped import StoreAboveShipped
from vlprobe.storage.store import Store


@pytest.fixture
def below(compared, tmp_path, monkeypatch):
    """Return a cache with LGIP answers of control:random and of guess, set as the bundled results."""
    folder = shutil.copytree(compared.root, tmp_path / "below")
    monkeypatch.setenv(shipped.SETTING, str(folder))
    return folder


@pytest.mark.parametrize(
    "words",
    [
        ("show", "--format", "csv"),
        ("show", "guess-key", "--format", "csv"),
        ("failures", "guess-key", "--outcome", "all", "--format", "csv"),
        ("compare", "control:random", "guess"),
        ("gate", "guess", "--against=control:random", "--max-drop=positive_rate=1", "--format=csv"),
        ("list", "published", "--paper", "lgip", "--format", "csv"),
    ],
)
def test_an_empty_cache_shows_the_bundled_results(words, below, tmp_path, monkeypatch):
    words = [keys(below)["guess"] if word == "guess-key" else word for word in words]
    answer = call(tmp_path / "empty", *words)
    assert (answer.stdout + answer.stderr).strip()
    monkeypatch.setenv(shipped.SETTING, "")
    assert answer.stdout == call(below, *words).stdout
    if words[0] in ("compare", "gate", "failures"):
        call(tmp_path / "empty", *words, code=2 if words[0] == "gate" else 1)
    assert not (tmp_path / "empty").exists()


def test_show_counts_the_bundled_runs(below, tmp_path):
    assert "2 of these runs are bundled with vlprobe" in call(tmp_path / "empty", "show").stderr
    assert "bundled with vlprobe" not in call(below, "show").stderr


def test_a_report_and_an_export_include_bundled_results(below, tmp_path):
    call(tmp_path / "empty", "report", str(tmp_path / "out.html"))
    assert "guess" in (tmp_path / "out.html").read_text()
    call(tmp_path / "empty", "export", str(tmp_path / "all.duckdb"))
    with duckdb.connect(str(tmp_path / "all.duckdb"), read_only=True) as database:
        rows = {str(row) for row in database.execute("SELECT * FROM runs").fetchall()}
    assert len(rows) == 2


def test_a_user_s_run_replaces_the_bundled_one_with_its_key_until_it_is_removed(below, tmp_path):
    user_cache = shutil.copytree(below, tmp_path / "own")
    assert "bundled with vlprobe" not in call(user_cache, "show").stderr
    key = keys(user_cache)["guess"]
    call(user_cache, "remove", key, "--yes")
    answer = call(user_cache, "show", "--format", "json")
    assert key in {row["key"] for row in json.loads(answer.stdout)}
    assert "1 of these runs are bundled with vlprobe" in answer.stderr
    assert (
        "is bundled with vlprobe and cannot be removed"
        in call(user_cache, "remove", key, code=1).stderr
    )


def test_bundled_results_can_be_neither_removed_nor_renamed(below, tmp_path):
    empty = tmp_path / "empty"
    for words, line in (
        (("remove", keys(below)["guess"], "--yes"), "bundled with vlprobe"),
        (("rename", "guess", "Ours"), "only appears in the bundled results"),
    ):
        refusal = call(empty, *words, code=1).stderr
        assert line in refusal and "Traceback" not in refusal
    assert len(keys(below)) == 2
    assert not display_names.read(Store(empty)) and not display_names.read(Store(below))


def test_the_folder_of_bundled_results_can_be_used_as_the_cache(below):
    assert not isinstance(shipped.opened(below), StoreAboveShipped)
    assert isinstance(shipped.opened(below.parent / "own"), StoreAboveShipped)


def test_shells_complete_bundled_models(below, tmp_path):
    from click.shell_completion import get_completion_class

    from vlprobe.cli.main import main

    completion = get_completion_class("bash")(main, {}, "vlprobe", "_VLPROBE_COMPLETE")
    words = ["--cache", str(tmp_path / "empty"), "compare"]
    assert [item.value for item in completion.get_completions(words, "gu")] == ["guess"]
