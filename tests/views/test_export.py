"""`vlprobe export` writes the same rows in three formats, with a schema that describes them."""

import csv
import json
import re
import shutil
from collections import namedtuple
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from tests.conftest import call, tiers
from vlprobe import views
from vlprobe.errors import InvalidInput
from vlprobe.storage import annotations, shipped
from vlprobe.storage.annotations import Annotation
from vlprobe.storage.bookmarks import SLICES
from vlprobe.storage.spreadsheets import defused
from vlprobe.storage.store import Store
from vlprobe.views.export import Form
from vlprobe.views.export_schema import SCHEMA_VERSION, TABLES

ROOT = Path(__file__).resolve().parents[2]
DOCS = (ROOT / "docs" / "publish.md").read_text("utf-8")
COLUMNS = (ROOT / "docs" / "reference" / "columns.md").read_text("utf-8")
OLD = ROOT / "tests" / "old_cache"
NAMES = {"runs", "cases", "scores", "estimates", "fronts", "comparisons", "annotations", "slices"}
ANNOTATIONS = (
    Annotation(0, "first", ("=1+1", "wrong label"), 'A "note",\non two lines.'),
    Annotation(1, "second", ("wrong label",)),
)


@pytest.fixture(scope="module")
def exports(every_probe: Store, tmp_path_factory) -> dict[Form, Path]:
    """Export every probe's answers in all formats, into a folder with a quote in its name."""
    folder = tmp_path_factory.mktemp("an 'export'")
    forms: tuple[Form, ...] = ("duckdb", "parquet", "csv")
    places: dict[Form, Path] = {form: folder / form for form in forms}
    key = every_probe.runs()[0]["case_key"]
    for annotation in ANNOTATIONS:
        annotations.write(every_probe, key, annotation)
    questions = views.runs.question_set(every_probe, key)
    views.named_slices.save(questions, "=Two", {"contains": "a"}, np.array([0, 2]))
    counts = {views.export.export(every_probe, place, form) for form, place in places.items()}
    stored = sum(manifest["n_cases"] for manifest in every_probe.runs())
    assert counts == {stored}
    SLICES.remove(every_probe, "=Two")
    for annotation in ANNOTATIONS:  # other tests use the same results
        annotations.write(every_probe, key, Annotation(annotation.case, annotation.id))
    return places


@pytest.mark.parametrize("table", sorted(NAMES))
def test_parquet_and_csv_have_the_rows_of_the_duckdb_file(exports, table):
    with duckdb.connect(str(exports["duckdb"]), read_only=True) as connection:
        cursor = connection.execute(f"SELECT * FROM {table}")
        names = [column[0] for column in cursor.description]
        expected = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    rows = pq.read_table(exports["parquet"] / f"{table}.parquet").to_pylist()
    for row in rows:
        row |= {"tags": dict(row["tags"])} if table == "cases" else {}
    assert len(rows) == len(expected) > 0
    assert sorted(map(repr, rows)) == sorted(map(repr, expected))
    with (exports["csv"] / f"{table}.csv").open(newline="", encoding="utf-8") as handle:
        lines = list(csv.DictReader(handle))
    assert len(lines) == len(expected) and list(lines[0]) == list(expected[0])
    for line, row in zip(lines[:50], rows[:50], strict=True):
        for name, value in row.items():
            if value is None or value != value:
                assert line[name] == ""
            elif isinstance(value, str):
                assert line[name] == defused(value)
            elif isinstance(value, list) and value and isinstance(value[0], str):
                assert json.loads(line[name]) == value


def test_tags_and_notes_are_exported_with_their_cases(exports):
    with duckdb.connect(str(exports["duckdb"]), read_only=True) as connection:
        query = """SELECT written.tags, written.note, len(cases.texts) > 0
            FROM annotations written JOIN cases USING (case_key, "case") ORDER BY written."case" """
        rows = connection.execute(query).fetchall()
    assert rows == [(list(one.tags), one.note, True) for one in ANNOTATIONS]


def test_an_export_without_tags_has_an_empty_table_of_them(every_probe, tmp_path):
    views.export.export(every_probe, tmp_path / "none.duckdb")
    with duckdb.connect(str(tmp_path / "none.duckdb"), read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM annotations").fetchall() == [(0,)]
        connection.execute('SELECT case_key, "case", id, tags[1], note FROM annotations')


def test_every_column_of_an_export_is_in_its_schema_and_in_the_docs(exports):
    schema = json.loads((exports["parquet"] / "schema.json").read_text())
    assert schema == json.loads((exports["csv"] / "schema.json").read_text())
    assert schema["schema"] == str(SCHEMA_VERSION) and f"version {SCHEMA_VERSION}" in DOCS
    with duckdb.connect(str(exports["duckdb"]), read_only=True) as connection:
        listed = connection.execute("SELECT * FROM schema_columns").fetchall()
        query = "SELECT table_name, column_name FROM information_schema.columns"
        columns = {row for row in connection.execute(query).fetchall() if "schema_" not in row[0]}
    assert [tuple(row.values()) for row in schema["columns"]] == listed
    assert {row[:2] for row in listed} == columns
    assert {row[0] for row in listed} == NAMES
    assert all(row[3] for row in listed)
    documented = {
        (table, column)
        for table, text in re.findall(r"### `(\w+)`\n(.*?)(?=\n### |\Z)", COLUMNS, re.DOTALL)
        for column in re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
    }
    assert documented == {(table, column) for table, names in TABLES.items() for column in names}
    assert documented <= columns  # every documented column exists


def test_the_query_in_the_docs_counts_how_often_models_are_fooled(exports, every_probe):
    query = re.search(r"```sql\n(.*?)```", DOCS, re.DOTALL)
    assert query
    with duckdb.connect(str(exports["duckdb"]), read_only=True) as connection:
        rows = connection.execute(query[1]).fetchall()
    key = next(run["key"] for run in every_probe.runs() if run["run"]["probe"] == "lgip")
    model = every_probe.find(key)["run"]["model"]
    scores = every_probe.run(key).table("scores").to_pandas().query("kind == 'flip'")
    expected = (scores["margin"] <= 0).groupby(scores["subtype"]).mean()
    assert {row[1]: row[2] for row in rows if row[0] == model} == pytest.approx(expected.to_dict())


def test_every_query_of_the_docs_runs(exports, every_probe, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "all.duckdb").symlink_to(exports["duckdb"])
    queries = re.findall(r"```sql\n(.*?)```", DOCS, re.DOTALL)
    assert len(queries) == 3
    with duckdb.connect(str(exports["duckdb"]), read_only=True) as connection:
        for query in queries:
            assert connection.execute(query).fetchall(), query
    for block in re.findall(r"```python\n(.*?)```", DOCS, re.DOTALL):
        scope: dict[str, object] = {}
        exec(compile(block, "docs/publish.md", "exec"), scope)
        groups = scope["groups"]
        assert isinstance(groups, pd.DataFrame)
        for key, n_groups in groups.itertuples(index=False):
            assert every_probe.cases(key).table("cases").to_pandas()["group"].nunique() == n_groups


def test_the_docs_name_every_column_that_is_a_reserved_word_of_sql(exports):
    reserved = set()
    with duckdb.connect(str(exports["duckdb"]), read_only=True) as connection:
        for table, names in TABLES.items():
            for name in names:
                try:
                    connection.execute(f"SELECT {name} FROM {table} LIMIT 1")
                except duckdb.ParserException:
                    reserved.add(name)
    (sentence,) = (line for line in DOCS.splitlines() if "need double quotes" in line)
    assert set(re.findall(r'`"(\w+)"`', sentence)) == reserved


@pytest.mark.parametrize("form", tiers(["duckdb", "parquet", "csv"], ("duckdb",)))
def test_bundled_results_are_marked_and_can_be_left_out(every_probe, tmp_path, monkeypatch, form):
    own_root = tmp_path / "own"
    kept = next(run for run in every_probe.runs() if run["run"]["probe"] == "eqben")
    for folder, key in (("runs", kept["key"]), ("cases", kept["case_key"])):
        shutil.copytree(every_probe.root / folder / key, own_root / folder / key)
    monkeypatch.setenv(shipped.SETTING, str(every_probe.root))
    every = {run["key"] for run in every_probe.runs()}
    for words, keys in (((), every), (("--no-bundled",), {kept["key"]})):
        out = tmp_path / f"out{len(words)}"
        call(own_root, "export", str(out), "--format", form, *words)
        runs, scores, cases = (_table(out, form, name) for name in ("runs", "scores", "cases"))
        assert set(runs["key"]) == set(scores["run"]) == keys
        assert set(cases["case_key"]) == {
            run["case_key"] for run in every_probe.runs() if run["key"] in keys
        }
        bundled = dict(zip(runs["key"], runs["bundled"], strict=True))
        assert {key for key in keys if not bundled[key]} == {kept["key"]}
    answer = call(tmp_path / "empty", "export", str(tmp_path / "none"), "--no-bundled", code=1)
    assert "Only bundled results are stored" in answer.stderr


def _table(out: Path, form: str, name: str) -> pd.DataFrame:
    if form == "duckdb":
        with duckdb.connect(str(out), read_only=True) as connection:
            return connection.execute(f"SELECT * FROM {name}").df()
    return getattr(pd, f"read_{form}")(out / f"{name}.{form}")


def test_a_cell_that_a_spreadsheet_would_execute_is_escaped(every_probe, tmp_path):
    store = Store(shutil.copytree(every_probe.root, tmp_path / "cache"))
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE t AS SELECT '=1+1' AS text, ['=2'] AS texts, 'NaN'::DOUBLE AS n"
    )
    described = connection.execute("DESCRIBE t").fetchall()
    views.export._write_csv(connection, "SELECT * FROM t", tmp_path / "t.csv", described)
    assert (tmp_path / "t.csv").read_text().splitlines() == ["text,texts,n", '\'=1+1,"[""=2""]",']
    assert store.runs()


@pytest.mark.parametrize("form", ["duckdb", "parquet", "csv"])
def test_an_export_without_disk_space_leaves_no_file(every_probe, tmp_path, monkeypatch, form):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10**9, 10**9 - 1000, 1000))
    with pytest.raises(
        InvalidInput, match=r"Not enough disk space .* at least .* MB, but only 0 MB are free"
    ):
        views.export.export(every_probe, tmp_path / "out", form)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("form", ["duckdb", "parquet", "csv"])
def test_a_failed_export_leaves_no_file(every_probe, tmp_path, monkeypatch, form):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(views.export, "meaning", full)
    with pytest.raises(InvalidInput, match="free some space"):
        views.export.export(every_probe, tmp_path / "out", form)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("form", ["duckdb", "parquet", "csv"])
def test_an_existing_file_or_folder_is_never_overwritten(every_probe, tmp_path, form):
    (tmp_path / "out").mkdir()
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("out", "file", "link"):
        answer = call(every_probe.root, "export", str(tmp_path / name), "--format", form, code=1)
        assert "exists" in answer.stderr and answer.stderr.count("\n") == 1
    assert (tmp_path / "file").read_text() == "mine" and not (tmp_path / "nowhere").exists()
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize("form", tiers(["duckdb", "parquet", "csv"], ("duckdb",)))
def test_results_of_an_earlier_version_are_exported_completely(tmp_path, monkeypatch, form):
    shutil.copytree(OLD, tmp_path / "old")
    monkeypatch.chdir(tmp_path / "old")
    store = Store("stored")
    call("stored", "export", str(tmp_path / "out"), "--format", form)
    if form == "duckdb":
        with duckdb.connect(str(tmp_path / "out"), read_only=True) as connection:
            table = connection.execute("SELECT * FROM scores").df()
            older = connection.execute("SELECT older FROM runs").df()["older"]
    elif form == "parquet":
        table, older = (
            pd.read_parquet(tmp_path / "out" / f"{name}.parquet") for name in ("scores", "runs")
        )
        older = older["older"]
    else:
        table, older = (
            pd.read_csv(tmp_path / "out" / f"{name}.csv") for name in ("scores", "runs")
        )
        older = older["older"].fillna("")
    counts = {run["key"]: run["n_cases"] for run in store.runs()}
    assert table["run"].value_counts().to_dict() == counts
    assert older.str.startswith("older version").any()
    for key in counts:
        expected = store.run(key).table("scores").to_pandas().set_index("case")["margin"]
        margins = table.loc[table["run"] == key].set_index("case")["margin"]
        pd.testing.assert_series_equal(
            margins.sort_index(), expected.sort_index(), check_dtype=False, rtol=1e-6
        )


def test_a_run_in_another_format_is_skipped_with_advice(every_probe, tmp_path):
    store = Store(shutil.copytree(every_probe.root, tmp_path / "cache"))
    key = store.runs()[0]["key"]
    path = store.root / "runs" / key / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["sha256"]
    path.write_text(json.dumps(manifest | {"schema": 1}))
    answer = call(store.root, "export", str(tmp_path / "out.duckdb"))
    line = next(line for line in answer.stderr.splitlines() if key in line)
    assert line.startswith("Left out: ") and "format 1" in line and "Repeat the run" in line
    assert "format 1" in call(store.root, "show", key[:10], code=1).stderr
