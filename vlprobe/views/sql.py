"""SQL queries on the tables of an export (`export_schema`), read directly from the cache.

`query` runs SQL of unknown origin, so DuckDB has no access to files: pyarrow reads them. DuckDB's settings
`allowed_paths` and `allowed_directories` also allow writing, and `WITH t AS (COPY ... TO ...) SELECT` counts as a
SELECT (DuckDB 2.0).
"""

import datetime
import io
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from vlprobe.errors import NO_MEMORY, InvalidInput
from vlprobe.storage import files
from vlprobe.storage.store import Store
from vlprobe.views import export

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow.dataset as ds

FOLDER = "sql"  # folder in the cache with the files that `init_script` writes
WHERE = "docs/sql.md lists tables and columns."


def query(store: Store, statement: str) -> "pd.DataFrame":
    """Run a SELECT on the stored results and return its rows. Lists and maps become Python lists
    and dicts, and unknown values become None or NaN.

    Raises:
        InvalidInput: The statement is not a single SELECT, DuckDB rejects it, or nothing is stored.
    """
    import duckdb
    import pandas as pd

    run_table = export.exported_runs(store)
    with duckdb.connect(":memory:") as connection:
        connection.register("runs", run_table)
        connection.register("annotations", export.annotation_rows(store, run_table))
        connection.register("slices", export.slice_rows(store, run_table))
        for name, paths in export.table_files(store, run_table).items():
            connection.register(name, _dataset(paths))
        connection.execute(
            "SET autoinstall_known_extensions=false; SET autoload_known_extensions=false; "
            "SET python_enable_replacements=false; SET temp_directory=''; "
            "SET enable_external_access=false; SET lock_configuration=true"
        )
        try:
            kinds = [each.type for each in connection.extract_statements(statement)]
            if kinds != [duckdb.StatementType.SELECT]:
                raise InvalidInput(
                    "Expected a single SELECT statement, because results are read-only here. "
                    f"{WHERE}"
                )
            rows = connection.sql(statement).project("*")  # renames columns with equal names
            cells = [list(map(_plain, row)) for row in rows.fetchall()]
            table = pd.DataFrame(cells, columns=pd.Index(rows.columns), dtype=object)
            for name, values in zip(rows.columns, zip(*cells, strict=True), strict=False):
                if None not in values:  # integers with NULL would become floats
                    table[name] = table[name].infer_objects()
            return table
        except duckdb.OutOfMemoryException:
            raise InvalidInput(NO_MEMORY) from None
        except duckdb.Error as error:
            reason = " ".join(str(error).partition("\n\nLINE")[0].split())
            raise InvalidInput(f"DuckDB rejected the query ({reason}). {WHERE}") from None


def _plain(value: object) -> object:
    """Convert a DuckDB value to a date or a value that JSON can represent. Bytes and intervals become strings."""
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, Decimal) or (isinstance(value, int) and abs(value) >= 1 << 63):
        return float(value)
    is_plain = value is None or isinstance(value, str | int | float | datetime.date)
    return value if is_plain else str(value)


def init_script(store: Store) -> Path:
    """Write an SQL script for `duckdb -init` to the cache. It creates one view per table. Return the path to the
    script.

    Raises:
        InvalidInput: Nothing is stored, or the cache cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    store.require_local_writable()
    run_table = export.exported_runs(store)
    rows = {
        "runs": pa.Table.from_pandas(run_table, preserve_index=False),
        "annotations": export.annotation_rows(store, run_table),
        "slices": export.slice_rows(store, run_table),
    }
    tables = export.table_files(store, run_table)
    folder = store.root / FOLDER
    for name, table in rows.items():
        content = io.BytesIO()
        pq.write_table(table, content)
        files.write_bytes(folder / f"{name}.parquet", content.getbuffer())
        tables[name] = {"": [str(folder / f"{name}.parquet")]}
    views = [
        f"CREATE TEMP VIEW {name} AS {export.select(name, paths)};\n"
        for name, paths in tables.items()
    ]
    files.write_bytes(folder / "init.sql", "".join(views).encode())
    return folder / "init.sql"


def _dataset(paths: dict[str, list[str]]) -> "ds.Dataset":
    """Open a table's files as one dataset with the rows of `export.select`. Columns that a file lacks become NULL."""
    import pyarrow as pa
    import pyarrow.dataset as ds
    from pyarrow.fs import LocalFileSystem

    parquet, local = ds.ParquetFileFormat(), LocalFileSystem()
    fragments = [
        parquet.make_fragment(
            path, local, partition_expression=ds.field("case_key") == key if key else None
        )
        for key, of_key in paths.items()
        for path in of_key
    ]
    schema = pa.unify_schemas(
        [fragment.physical_schema for fragment in fragments], promote_options="permissive"
    )
    if "" not in paths:
        schema = schema.insert(0, pa.field("case_key", pa.string()))
    return ds.FileSystemDataset(fragments, schema, parquet, local)
