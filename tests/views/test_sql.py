"""`vlprobe sql`: the tables of an export, read where they are stored; a query neither writes nor reads other files."""

import json
import re
import shutil
from pathlib import Path

import duckdb
import numpy as np
import pytest

from tests.conftest import call
from vlprobe import views
from vlprobe.storage import annotations, shipped
from vlprobe.storage.annotations import Annotation
from vlprobe.storage.store import Store
from vlprobe.views.export_schema import TABLES

ROOT = Path(__file__).resolve().parents[2]
DOCS = (ROOT / "docs" / "sql.md").read_text("utf-8")
QUERIES = re.findall(r"```sql\n(.*?)```", DOCS, re.DOTALL)


@pytest.fixture(scope="module")
def store(every_probe: Store, tmp_path_factory) -> Store:
    """Return results of every probe in a folder with a quote and a space in its name; one case has a tag."""
    copied = Store(
        shutil.copytree(every_probe.root, tmp_path_factory.mktemp("a 'quoted' one") / "c")
    )
    annotations.write(
        copied, copied.runs()[0]["case_key"], Annotation(0, "first", ("odd",), "note")
    )
    questions = views.runs.question_set(copied, copied.runs()[0]["case_key"])
    views.named_slices.save(questions, "Two", {"contains": "a"}, np.array([0, 2]))
    return copied


@pytest.fixture(scope="module")
def exported(store: Store, tmp_path_factory):
    """Return the same results from `vlprobe export`, as a second computation."""
    file = tmp_path_factory.mktemp("exported") / "all.duckdb"
    views.export.export(store, file)
    with duckdb.connect(str(file), read_only=True) as connection:
        yield connection


@pytest.fixture(scope="module")
def shell(store: Store):
    """Return the database that `duckdb -init` opens."""
    with duckdb.connect() as connection:
        connection.execute(views.sql.init_script(store).read_text("utf-8"))
        yield connection


def rows_of(connection: duckdb.DuckDBPyConnection, statement: str) -> list[str]:
    return printed(connection.execute(statement).fetchall())


def printed(rows: list) -> list[str]:
    """Return sorted rows as text; NULL and NaN are both unknown."""
    return sorted(repr([*row]).replace("None", "nan") for row in rows)


def test_the_docs_have_ten_queries():
    assert len(QUERIES) == len(set(QUERIES)) == 10


@pytest.mark.parametrize("statement", QUERIES)
def test_a_query_of_the_docs_returns_the_rows_of_an_export(store, exported, shell, statement):
    rows = views.sql.query(store, statement).astype(object).to_numpy().tolist()
    assert rows
    if "LIMIT" not in statement:  # among equal rows, the last one is undefined
        assert printed(rows) == rows_of(exported, statement) == rows_of(shell, statement)


@pytest.mark.parametrize("table", [*TABLES])
def test_each_table_has_the_rows_and_columns_of_an_export(store, exported, shell, table):
    statement = f"SELECT * FROM {table}"
    answered = views.sql.query(store, statement)
    assert list(answered) == [column[0] for column in exported.execute(statement).description]
    rows = printed(answered.astype(object).to_numpy().tolist())
    assert rows and rows == rows_of(exported, statement) == rows_of(shell, statement)


def test_the_command_prints_json_and_a_table_and_marks_bundled_results(
    store, tmp_path, monkeypatch
):
    monkeypatch.setenv(shipped.SETTING, str(store.root))
    statement = "SELECT bundled, count(*) AS n, sum(n_cases) AS n_cases FROM runs GROUP BY ALL"
    printed = json.loads(call(tmp_path, "sql", statement, "--format", "json").stdout)
    assert [(row["bundled"], row["n"]) for row in printed] == [(True, len(store.runs()))]
    assert call(tmp_path, "sql", statement).stdout.splitlines()[0].split() == [
        "bundled",
        "n",
        "n_cases",
    ]
    assert "no rows" in call(tmp_path, "sql", "SELECT * FROM runs WHERE false").stderr


def test_values_without_a_json_type_are_printed(store):
    statement = """SELECT '\\xff'::BLOB AS a, 1.5 AS a, 1e30::HUGEINT AS b, INTERVAL 1 DAY AS c,
        [{'x': '\\xff'::BLOB}] AS d,
        DATE '2020-01-02' AS e, 'NaN'::DOUBLE AS f, NULL AS g, 7::HUGEINT AS h"""
    (row,) = json.loads(call(store.root, "sql", statement, "--format", "json").stdout)
    assert list(row) == ["a", "a_1", "b", "c", "d", "e", "f", "g", "h"]
    assert (row["a_1"], row["b"], row["f"], row["g"], row["h"]) == (1.5, 1e30, None, None, 7)
    assert row["e"].startswith("2020-01-02") and "x" in row["d"][0]


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("DROP VIEW runs", "Expected a single SELECT"),
        ("CREATE TABLE t AS SELECT 1", "Expected a single SELECT"),
        ("SELECT 1; SELECT 2", "Expected a single SELECT"),
        ("COPY runs TO 'OUTPUT'", "Expected a single SELECT"),
        ("EXPLAIN ANALYZE COPY runs TO 'OUTPUT'", "Expected a single SELECT"),
        ("ATTACH 'OUTPUT'", "Expected a single SELECT"),
        ("SET enable_external_access = true", "Expected a single SELECT"),
        ("INSTALL httpfs", "Expected a single SELECT"),
        ("/* nothing */", "Expected a single SELECT"),
        ("WITH t AS (COPY (SELECT 1) TO 'OUTPUT') SELECT * FROM t", "disabled"),
        (
            "WITH t AS (COPY (SELECT 1) TO 'SCORES' (USE_TMP_FILE false)) SELECT * FROM t",
            "disabled",
        ),
        ("WITH t AS (DELETE FROM runs RETURNING *) SELECT * FROM t", "DuckDB rejected"),
        ("SELECT * FROM read_parquet('SCORES')", "disabled"),
        ("SELECT * FROM 'SCORES'", "disabled"),
        ("SELECT * FROM read_text('/etc/passwd')", "disabled"),
        ("SELECT * FROM read_csv('http://localhost/x')", "DuckDB rejected"),
        ("SELECT * FROM glob('/*')", "disabled"),
        ("SELECT * FROM query('COPY runs TO ''OUTPUT''')", "DuckDB rejected"),
        ("SELECT getenv('HOME')", "DuckDB rejected"),
        ("SELECT * FROM store", "Table with name store does not exist"),  # a variable of the caller
        ("SELECT * FROM runz", 'Did you mean "runs"'),
        ("SELEC 1", "syntax error"),
    ],
)
def test_sql_that_writes_or_reads_files_is_refused_in_one_line(store, tmp_path, statement, said):
    entry = store.run(store.runs()[0]["key"])
    scores = entry.table_path("scores")
    before = scores.read_bytes()
    quoted = str(scores).replace("'", "''")
    statement = statement.replace("OUTPUT", str(tmp_path / "out")).replace("SCORES", quoted)
    (line,) = call(store.root, "sql", statement, code=1).stderr.splitlines()
    assert line.startswith("Error: ") and said in line and "docs/sql.md" in line
    assert list(tmp_path.iterdir()) == [] and scores.read_bytes() == before


def test_init_writes_views_that_cannot_be_changed(store, shell):
    path = Path(call(store.root, "sql", "--init").stdout.removesuffix("\n"))
    assert path == store.root / "sql" / "init.sql"
    for statement in ("DELETE FROM scores", "INSERT INTO runs SELECT * FROM runs"):
        with pytest.raises(duckdb.Error):
            shell.execute(statement)
    assert call(store.root, "verify").stderr.endswith("All checksums match.\n")


def test_a_column_that_only_some_runs_have_is_null_in_others(store):
    table = views.sql.query(
        store,
        "SELECT probe, count(rank) AS n FROM scores JOIN runs ON run = key GROUP BY ALL ORDER BY ALL",
    )
    counts = dict(table.itertuples(index=False))
    assert counts.pop("rococo") > 0 and set(counts.values()) == {0}


def test_a_missing_statement_an_empty_store_and_a_read_only_cache_are_one_line_each(
    store, tmp_path, monkeypatch
):
    assert "Pass either a SQL statement or --init" in call(tmp_path, "sql", code=2).stderr
    assert (
        "Pass either a SQL statement or --init"
        in call(tmp_path, "sql", "FROM runs", "--init", code=2).stderr
    )
    assert "There are no stored results yet" in call(tmp_path, "sql", "FROM runs", code=1).stderr
    monkeypatch.setenv("VLPROBE_READ_ONLY", "1")
    assert "read-only" in call(store.root, "sql", "--init", code=1).stderr
    assert call(store.root, "sql", "FROM runs").stdout
