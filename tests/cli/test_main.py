"""The command line: data on stdout, one line for an error, and repeated commands return cached results."""

import io
import json
import shutil
import subprocess
import sys

import duckdb
import pandas as pd
import pytest
from click.testing import CliRunner

import vlprobe
from tests.conftest import call, make_tiny
from vlprobe import registry
from vlprobe.cli import main
from vlprobe.errors import InvalidInput
from vlprobe.storage import memo
from vlprobe.views.published import SOURCES


def rows_of(cache, *words: str, code: int = 0) -> list[dict]:
    """Return the rows that a command prints as JSON."""
    return json.loads(call(cache, *words, "--format", "json", code=code).stdout)


def frame_of(cache, *words: str) -> pd.DataFrame:
    """Return the table that a command prints as CSV."""
    return pd.read_csv(io.StringIO(call(cache, *words, "--format", "csv").stdout))


@pytest.fixture(scope="module")
def first_run(tmp_path_factory):
    """Return a cache with one run of each control, the printed table, and the command."""
    folder = tmp_path_factory.mktemp("first_run")
    models = ["--model", "control:random", "--model", "control:constant"]
    words = ["run", *models, "--dataset", make_tiny(folder / "tiny"), "--format", "csv"]
    return folder / "cache", pd.read_csv(io.StringIO(call(folder / "cache", *words).stdout)), words


@pytest.fixture
def ran(first_run, tmp_path):
    """Return the first run in a cache that a test may change."""
    cache, table, words = first_run
    return shutil.copytree(cache, tmp_path / "cache"), table, words


def test_a_run_prints_the_numbers_of_each_model(ran):
    _, table, _ = ran
    assert set(table["model"]) == {"control:random", "control:constant"}
    constant = table[
        (table["model"] == "control:constant") & (table["metric"] == "positive_rate")
    ].iloc[0]
    assert (constant["value"], constant["ties"]) == (0, constant["n_cases"])


def test_repeating_a_command_prints_the_same_table(ran):
    cache, table, words = ran
    pd.testing.assert_frame_equal(pd.read_csv(io.StringIO(call(cache, *words).stdout)), table)


def test_progress_goes_to_stderr_and_data_to_stdout(tiny, tmp_path):
    result = call(
        tmp_path, "run", "--model", "control:random", "--dataset", tiny, "--format", "json"
    )
    assert json.loads(result.stdout)[0]["metric"] == "invariance_error"
    assert "control:random on" in result.stderr


def test_show_lists_runs_and_breaks_one_down(ran):
    cache, table, _ = ran
    runs = rows_of(cache, "show")
    assert {run["key"] for run in runs} == set(table["key"])
    by = frame_of(cache, "show", runs[0]["key"][:6], "--by", "subtype")
    assert set(by["slice"]) >= {"color", "number", "object", "simple"}


def test_long_notes_are_cut_to_a_line_with_the_command_for_the_full_notes(ran):
    cache, _, _ = ran
    run_of_model = {run["model"]: run for run in rows_of(cache, "show")}["control:constant"]
    note = run_of_model["note"]
    assert note.count("Check '") >= 3 and len(note) > 500
    table = call(cache, "show")
    assert max(map(len, table.stdout.splitlines())) < 400
    assert "…" in table.stdout
    assert table.stderr.splitlines()[-1].endswith("vlprobe show --format json")
    run = table.stdout.splitlines()[1].split()[0]
    again = ("run", "--model", "control:constant", "--dataset", run_of_model["dataset"])
    for command in (("show", run), again):
        lines = call(cache, *command).stderr.splitlines()
        note_line = next(line for line in lines if line.startswith("Note on control:constant: "))
        text = note_line.removeprefix("Note on control:constant: ").removesuffix("…")
        assert text == note[: len(note_line) - 27]
        assert len(note_line) < 240
        assert "To read the full notes: vlprobe show --format json" in lines


def test_the_unit_spread_divides_cosines_and_keeps_rates(ran):
    cache, table, _ = ran
    key = table[table["model"] == "control:random"]["key"].iloc[0]
    spread = {run["key"]: run["spread"] for run in rows_of(cache, "show")}[key]
    in_spread = frame_of(cache, "show", key, "--unit", "spread")
    one, other = (t[t["key"] == key].set_index("metric")["value"] for t in (table, in_spread))
    assert other["sensitivity_gap"] == pytest.approx(one["sensitivity_gap"] / spread, rel=1e-6)
    assert other["positive_rate"] == pytest.approx(one["positive_rate"])


def test_failures_are_listed_worst_first_and_page_by_page(ran):
    cache, table, _ = ran
    key = table[table["model"] == "control:random"]["key"].iloc[0]
    pages = [frame_of(cache, "failures", key, "--size", "3", "--page", str(n)) for n in (1, 2)]
    margins = pd.concat(pages)["margin"]
    assert margins.is_monotonic_increasing
    assert (margins <= 0).all()
    assert not set(pages[0]["id"]) & set(pages[1]["id"])


def test_perturb_writes_lgips_json_lines_without_a_model(tiny, tmp_path):
    lines = call(tmp_path, "perturb", tiny).stdout.splitlines()
    assert len(lines) == 6
    first = json.loads(lines[0])
    assert first["orig_captions"][0] == "A red dog is sitting on a bench."
    assert set(first["same_caps"]) == {"0", "1"}
    out = tmp_path / "out.jsonl"
    call(tmp_path, "perturb", tiny, "--limit", "2", "--output", str(out))
    assert len(out.read_text(encoding="utf-8").splitlines()) == 2


def test_perturb_writes_only_the_chosen_kinds(tiny, tmp_path):
    out = tmp_path / "out.jsonl"
    chosen = ("--kind", "negation", "--kind", "case", "--format", "edits", "--output", str(out))
    call(tmp_path, "perturb", tiny, *chosen)
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert {(row["subtype"], row["meaning"]) for row in rows} == {
        ("negation", "different"),
        ("case", "same"),
    }
    assert "kind of edit" in call(tmp_path, "perturb", tiny, "--kind", "none", code=1).stderr


def test_show_breaks_numbers_down_by_the_caption(ran):
    cache, _, _ = ran
    key = rows_of(cache, "show")[0]["key"]
    lines = call(cache, "show", key, "--by", "word_frequency", "--format", "csv").stdout
    assert "Rarest word in" in lines


def test_export_writes_one_file_that_duckdb_opens(ran, tmp_path):
    cache, _, _ = ran
    out = tmp_path / "all.duckdb"
    call(cache, "export", str(out))
    with duckdb.connect(str(out), read_only=True) as connection:
        query = 'SELECT count(DISTINCT run), count(*) FROM scores JOIN cases USING ("case")'
        runs, scores = connection.execute(query).fetchall()[0]
        assert runs == 2
        assert connection.execute("SELECT count(*) FROM scores").fetchall() == [(scores,)]
    assert "exists" in call(cache, "export", str(out), code=1).stderr


@pytest.mark.parametrize("what", ["models", "datasets", "probes", "metrics"])
def test_list_prints_the_available_names(tmp_path, what):
    listed = rows_of(tmp_path, "list", what)
    assert listed
    expected = {
        "models": "demo:softmax",
        "datasets": "demo",
        "probes": "lgip",
        "metrics": "positive_rate",
    }[what]
    assert expected in [next(iter(row.values())) for row in listed]


def test_list_published_has_the_published_numbers_and_those_of_a_run(ran):
    cache, table, _ = ran
    key = table.query("model == 'control:random'")["key"].iloc[0]
    numbers = call(cache, "show", key, "--averaging", "macro", "--format", "json").stdout
    rate = next(
        row for row in json.loads(numbers) if (row["key"], row["metric"]) == (key, "positive_rate")
    )
    words = ("list", "published", "--paper", "lgip", "--table", "2", "--format", "json")
    cells = json.loads(call(cache, *words, "--key", rate["key"]).stdout)
    assert len(cells) == 27 and {cell["table"] for cell in cells} == {2}
    for cell in cells:
        assert cell["run_of"].startswith("control:random on ")
        if cell["metric"] == "positive_rate":
            assert cell["run"] == pytest.approx(rate["value"])
    newest = json.loads(call(cache, *words).stdout)
    assert {cell["run_of"].partition(" ")[0] for cell in newest} <= {
        "control:random",
        "control:constant",
    }


def test_list_published_can_be_filtered_by_a_mark_and_needs_no_run(tmp_path):
    doubted = rows_of(tmp_path, "list", "published", "--mark", "doubted")
    assert {cell["paper"] for cell in doubted} == set(SOURCES)
    assert all("suspect:" in cell["note"] and cell["run"] is None for cell in doubted)
    printed = call(tmp_path, "list", "published", "--paper", "prsm").stdout
    assert "0.642" in printed


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("list", "models", "--paper", "lgip"), "list published"),
        (("list", "published", "--key", "0" * 16), "No stored run"),
        (("list", "published", "--paper", "prsm", "--key", "KEY"), "used the probe 'lgip'"),
    ],
)
def test_list_published_refuses_invalid_options_in_one_line(ran, words, said):
    cache, table, _ = ran
    words = [table["key"].iloc[0] if word == "KEY" else word for word in words]
    result = CliRunner().invoke(main.main, ["--cache", str(cache), *words])
    assert result.exit_code and said in result.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "--model", "demo:softmaxx", "--dataset", "TINY"), "Did you mean 'demo:softmax'"),
        (
            ("run", "--model", "control:random", "--dataset", "csv:/no/such/file.csv"),
            "does not exist",
        ),
        (
            ("run", "--model", "control:random", "--dataset", "TINY", "--option", "rules=papre"),
            "'papre'",
        ),
        (("show", "ffff"), "No stored run or model named 'ffff'"),
        (("failures", "ffff"), "No stored run or model named 'ffff'"),
        (("jobs", "--cancel", "nope"), "No job named 'nope'"),
        (("export", "x.duckdb"), "There are no stored results yet"),
    ],
)
def test_an_error_is_one_line_with_exit_code_1(tiny, tmp_path, words, said):
    result = call(tmp_path, *(tiny if word == "TINY" else word for word in words), code=1)
    lines = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert len(lines) == 1
    assert said in lines[0]
    assert "Traceback" not in result.output


def test_every_command_has_help():
    for name, command in main.main.commands.items():
        assert command.help, name
        assert CliRunner().invoke(main.main, [name, "--help"]).exit_code == 0


def test_results_of_several_probes_are_exported_together_and_each_lists_its_failures(
    ran, tiny, tmp_path
):
    cache, _, _ = ran
    words = ["--model", "control:random", "--dataset", tiny, "--no-doctor"]
    mixed = ["--option", "pictures=mix:0.9", "--option", "picture_seeds=1"]
    call(cache, "run", "--probe", "rococo", *words, *mixed)
    call(cache, "run", "--probe", "prsm", *words)
    out = tmp_path / "several.duckdb"
    call(cache, "export", str(out))
    with duckdb.connect(str(out), read_only=True) as connection:
        assert connection.execute("SELECT count(DISTINCT probe) FROM runs").fetchall() == [(3,)]
        assert connection.execute("SELECT count(rank) > 0 FROM scores").fetchall() == [(True,)]
    for run in rows_of(cache, "show"):
        listed = call(cache, "failures", run["key"], "--outcome", "all", "--format", "csv").stdout
        assert len(listed.splitlines()) > 1, run["probe"]


def test_an_unknown_slice_and_an_invalid_tag_are_named_in_the_error(ran):
    cache, table, _ = ran
    key = table["key"].iloc[0]
    assert "nonsense" in call(cache, "show", key, "--by", "nonsense", code=1).stderr
    assert "broken" in call(cache, "failures", key, "--tag", "broken", code=1).stderr


def test_an_option_that_is_set_twice_is_refused(tiny, tmp_path):
    twice = ("--option", "policies=danger", "--option", "policies=rand-voca")
    words = ("run", "--model", "control:random", "--dataset", tiny, "--probe", "rococo", *twice)
    message = "'policies' is set more than once. Set it once; separate several values with commas"
    assert message in call(tmp_path, *words, code=2).stderr


def test_a_finished_run_needs_no_torch_and_verify_loads_the_model(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(memo, "SETTLED_NS", -(10**18))  # trusts the new files of pictures at once
    words = ["run", "--model", "demo:weak", "--dataset", tiny, "--format", "csv", "--threads", "1"]
    first = call(tmp_path, *words).stdout
    script = (
        "import atexit, sys; from vlprobe.cli.main import main; "
        "atexit.register(lambda: print('torch' in sys.modules, file=sys.stderr)); main()"
    )
    command = [sys.executable, "-c", script, "--cache", str(tmp_path), *words]
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert again.stdout == first
    assert again.stderr.splitlines()[0] == f"Reading {tiny}"
    assert again.stderr.splitlines()[-1] == "False"
    assert "Loading" not in again.stderr
    loads: list[str] = []
    real = registry.load_model
    monkeypatch.setattr(
        registry, "load_model", lambda name, *rest: loads.append(str(name)) or real(name, *rest)
    )
    assert call(tmp_path, *words).stdout == first
    assert loads == []
    assert call(tmp_path, *words, "--verify").stdout == first
    assert loads == ["demo:weak"]
    call(tmp_path, *words, "--device", "mps", code=1)  # loading fails without this device


def test_a_run_with_deleted_questions_or_examination_is_completed(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(memo, "SETTLED_NS", -(10**18))
    words = ["run", "--model", "demo:weak", "--dataset", tiny, "--format", "csv"]
    first = call(tmp_path, *words).stdout
    for pattern in ("models/*.json", "cases/*/manifest.json", "runs/*/manifest.json"):
        (file,) = tmp_path.glob(pattern)
        file.unlink()
        assert call(tmp_path, *words).stdout == first
        assert file.exists(), pattern


def test_both_answers_to_a_triplet_are_shown_and_filtered(every_probe):
    manifest = next(
        each
        for each in every_probe.runs()
        if each["run"]["probe"] == "visla" and each["run"]["model"] == "control:random"
    )
    cache, key = every_probe.root, manifest["key"]
    table = rows_of(cache, "show", key, "--by", "crossed")
    (cell,) = (
        row
        for row in table
        if (row["model"], row["slice"], row["texts"], row["pictures"])
        == ("control:random", "", "fooled", "held")
    )
    words = ("failures", key, "--kind", "i2t", "--outcome", "held", "--crossed", "t2t=fooled")
    listed = rows_of(cache, *words)
    assert len(listed) == cell["n_cases"]
    assert "t2t=fooled" in call(cache, *words[:-1], "words", code=1).stderr


def test_a_cluster_address_without_the_executor_ray_is_refused(tiny, tmp_path):
    words = ("run", "--model", "demo:weak", "--dataset", tiny, "--ray-address", "10.0.0.7:6379")
    assert "--ray-address needs --executor ray." in call(tmp_path, *words, code=2).stderr
    assert not list((tmp_path / "runs").glob("*"))
    with pytest.raises(InvalidInput, match="needs executor='ray'"):
        vlprobe.run("demo:weak", tiny, cache=tmp_path, ray_address="10.0.0.7:6379")
