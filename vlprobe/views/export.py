"""Export of all stored results for other programs, as one DuckDB file or a folder of Parquet or CSV
files.

The tables are `runs`, `cases`, `scores`, `estimates`, `annotations` (people's tags and notes),
`slices` (cases saved under a name), and any tables that probes store with their scores. Every export
includes the descriptions of `export_schema`: as the tables `schema_about` and `schema_columns` in a
DuckDB file, and as `schema.json` in a folder.
"""

import csv
import json
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from vlprobe import __version__
from vlprobe.errors import NO_MEMORY, InvalidInput
from vlprobe.registry import load_probe
from vlprobe.storage import annotations
from vlprobe.storage.annotations import Annotation
from vlprobe.storage.files import require_space
from vlprobe.storage.spreadsheets import defused
from vlprobe.storage.store import Store
from vlprobe.views import named_slices
from vlprobe.views.export_schema import SCHEMA_VERSION, meaning
from vlprobe.views.runs import run_rows, runs

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import pyarrow as pa

Form = Literal["duckdb", "parquet", "csv"]
BATCH_ROWS = 20_000  # rows of a CSV file that are in memory at a time


def export(store: Store, output: Path, form: Form = "duckdb", with_bundled: bool = True) -> int:
    """Write all stored results to a new file or folder, and return the number of scores written.

    The files are written through a separate DuckDB connection, because the store's own connection
    can only read the cache folder. Nothing appears at `output` until the export is complete.

    Args:
        output: A file (duckdb) or a folder (parquet, csv) that does not exist yet.

    Raises:
        InvalidInput: nothing is stored, or only bundled results are; `output` exists or cannot be
            written; or there is not enough disk space.
    """
    import duckdb

    run_table = exported_runs(store, with_bundled)
    if output.exists() or output.is_symlink():
        raise InvalidInput(
            f"'{output}' already exists. Choose another "
            f"{'file' if form == 'duckdb' else 'folder'} or delete it first."
        )
    files = table_files(store, run_table)
    growing = output.with_name(f".{output.name}.{uuid.uuid4().hex}.tmp")
    try:
        paths = [path for by_key in files.values() for paths in by_key.values() for path in paths]
        require_space(output, sum(Path(path).stat().st_size for path in paths))
        if form != "duckdb":
            growing.mkdir()
        with duckdb.connect(str(growing) if form == "duckdb" else ":memory:") as connection:
            connection.register("run_table", run_table)
            connection.register("annotation_table", annotation_rows(store, run_table))
            connection.register("slice_table", slice_rows(store, run_table))
            queries = {
                "runs": "SELECT * FROM run_table",
                **{name: select(name, paths) for name, paths in files.items()},
                "annotations": "SELECT * FROM annotation_table",
                "slices": "SELECT * FROM slice_table",
            }
            _write(connection, queries, growing, form, ", ".join(sorted(set(run_table["probe"]))))
            count = connection.execute(f"SELECT count(*) FROM ({queries['scores']})").fetchall()
        growing.replace(output)
        return count[0][0]
    except duckdb.OutOfMemoryException:
        raise InvalidInput(NO_MEMORY) from None
    except (duckdb.IOException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise InvalidInput(
            f"Cannot write '{output}' ({reason}). Choose another path or free some space."
        ) from None
    finally:
        if growing.is_dir():
            shutil.rmtree(growing, ignore_errors=True)
        growing.unlink(missing_ok=True)


def exported_runs(store: Store, with_bundled: bool = True) -> "pd.DataFrame":
    """Return the table `runs` for an export. Raises InvalidInput if the table would be empty."""
    table = runs(store).assign(bundled=[row.shipped for row in run_rows(store)])
    if not with_bundled:
        table = table.loc[~table["bundled"]]
    if table.empty:
        raise InvalidInput(
            "There are no stored results yet, so there is nothing to export. Run a probe first: "
            "vlprobe run --help."
            if with_bundled
            else "Only bundled results are stored. Remove --no-bundled to export them."
        )
    return table


def table_files(store: Store, run_table: "pd.DataFrame") -> dict[str, dict[str, list[str]]]:
    """Return the Parquet files to export, by table name and then by question set key ("" for tables about runs)."""
    keys = run_table["key"].tolist()
    side_tables = {
        name for probe in run_table["probe"].unique() for name in load_probe(probe).side_tables
    }
    files = {}
    for name in ("scores", "estimates", *sorted(side_tables)):
        having = [key for key in keys if store.run(key).has_table(name)]
        if paths := store.files(having, name):
            files[name] = {"": paths}
    files["cases"] = {
        key: store.files([key], "cases") for key in run_table["case_key"].unique().tolist()
    }
    return files


def annotation_rows(store: Store, run_table: "pd.DataFrame") -> "pa.Table":
    """Return people's tags and notes for an export, one row per case in the question sets of the given runs."""
    import pyarrow as pa

    rows = [
        {"case_key": key, **asdict(annotation)}
        for key in run_table["case_key"].unique()
        for annotation in annotations.read(store, key).current
    ]
    types = {"case": pa.int64(), "tags": pa.list_(pa.string())}
    names = ("case_key", *Annotation.__dataclass_fields__)
    return pa.Table.from_pylist(
        rows, pa.schema([(name, types.get(name, pa.string())) for name in names])
    )


def slice_rows(store: Store, run_table: "pd.DataFrame") -> "pa.Table":
    """Return the saved slices for an export, one row per slice and case in the question sets of the given runs."""
    import pyarrow as pa

    text = pa.string()
    columns = {"name": text, "case_key": text, "case": pa.int64(), "id": text}
    rows = named_slices.rows(store, run_table["case_key"].unique().tolist())
    return pa.Table.from_pylist(rows, pa.schema({**columns, "digest": text, "filter": text}))


def select(name: str, files: dict[str, list[str]]) -> str:
    """Build the SQL query that reads one export table. Columns that an earlier version did not write become NULL."""
    return " UNION ALL BY NAME ".join(
        f"SELECT {f'{_quoted(key)} AS case_key, ' if name == 'cases' else ''}* "
        f"FROM read_parquet([{', '.join(map(_quoted, paths))}], union_by_name=true)"
        for key, paths in files.items()
    )


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _write(
    connection: "duckdb.DuckDBPyConnection",
    queries: dict[str, str],
    target: Path,
    form: Form,
    probes: str,
) -> None:
    """Write each query's result as a table of the export, and add descriptions of all columns."""
    columns = []
    for table, query in queries.items():
        described = connection.execute(f"DESCRIBE {query}").fetchall()
        columns += [
            (table, name, kind, meaning(table, name, probes)) for name, kind, *_ in described
        ]
        if form == "duckdb":
            connection.execute(f"CREATE TABLE {table} AS {query}")
        elif form == "parquet":
            path = _quoted(str(target / f"{table}.parquet"))
            connection.execute(f"COPY ({query}) TO {path} (FORMAT parquet, COMPRESSION zstd)")
        else:
            _write_csv(connection, query, target / f"{table}.csv", described)
    versions = {"schema": str(SCHEMA_VERSION), "vlprobe": __version__}
    if form == "duckdb":
        connection.execute("CREATE TABLE schema_about (name VARCHAR, value VARCHAR)")
        connection.executemany("INSERT INTO schema_about VALUES (?, ?)", list(versions.items()))
        connection.execute(
            'CREATE TABLE schema_columns ("table" VARCHAR, "column" VARCHAR, type VARCHAR, meaning VARCHAR)'
        )
        connection.executemany("INSERT INTO schema_columns VALUES (?, ?, ?, ?)", columns)
        return
    fields = ("table", "column", "type", "meaning")
    described = {**versions, "columns": [dict(zip(fields, row, strict=True)) for row in columns]}
    (target / "schema.json").write_text(json.dumps(described, indent=1) + "\n", encoding="utf-8")


def _write_csv(
    connection: "duckdb.DuckDBPyConnection", query: str, path: Path, described: list[tuple]
) -> None:
    """Write a query's result as CSV: lists and maps as JSON, unknown values empty, and spreadsheet formulas escaped."""
    cells = [
        f'CAST(to_json("{name}") AS VARCHAR) AS "{name}"' if kind[-1] in "])" else f'"{name}"'
        for name, kind, *_ in described
    ]
    rows = connection.execute(f"SELECT {', '.join(cells)} FROM ({query})")
    with path.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle)
        writer.writerow([name for name, *_ in described])
        while batch := rows.fetchmany(BATCH_ROWS):
            writer.writerows(map(_cells, batch))


def _cells(row: tuple) -> Iterator[object]:
    """Yield the CSV cells for a row. NULL and NaN both mean unknown and become empty cells."""
    return ("" if value is None or value != value else defused(value) for value in row)
