"""All stored results as one portable DuckDB file."""

import uuid
from pathlib import Path

from vlprobe.errors import InvalidInput
from vlprobe.registry import load_probe
from vlprobe.storage.store import Store
from vlprobe.views.runs import runs


def export(store: Store, output: Path) -> int:
    """Writes cases, scores, estimates, runs and the probes' side tables as tables of one DuckDB
    file; returns how many scores.

    The file is written by a connection of its own: the store's can only read the cache folder.
    """
    import duckdb

    stored = runs(store)
    if stored.empty:
        raise InvalidInput(
            "Nothing is stored yet, so there is nothing to export. Run a probe first: vlprobe run --help."
        )
    if output.exists():
        raise InvalidInput(f"'{output}' exists. Name a new file, or delete that one first.")
    keys = stored["key"].tolist()
    growing = output.with_name(f".{output.name}.{uuid.uuid4().hex}.tmp")
    try:
        with duckdb.connect(str(growing)) as connection:
            connection.execute("CREATE TABLE runs AS SELECT * FROM stored")
            side_tables = {
                name for probe in stored["probe"].unique() for name in load_probe(probe).side_tables
            }
            for name in ("scores", "estimates", *sorted(side_tables)):
                having = [key for key in keys if store.run(key).has_table(name)]
                files = store.files(having, name)
                if not files:
                    continue
                connection.execute(
                    f"CREATE TABLE {name} AS SELECT * FROM read_parquet(?, union_by_name=true)",
                    [files],
                )
            for position, key in enumerate(stored["case_key"].unique()):
                verb = "INSERT INTO cases" if position else "CREATE TABLE cases AS"
                files = store.files([key], "cases")
                connection.execute(
                    f"{verb} SELECT ? AS case_key, * FROM read_parquet(?)",
                    [key, files],
                )
            count = connection.execute("SELECT count(*) FROM scores").fetchall()[0][0]
        growing.replace(output)
        return count
    except (duckdb.IOException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise InvalidInput(
            f"Cannot write '{output}' ({reason}). Choose another place or free some space."
        ) from None
    finally:
        growing.unlink(missing_ok=True)
