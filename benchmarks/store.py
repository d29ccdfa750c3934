"""The store and the dashboard's tables with 12 million answers: `python benchmarks/store.py`.

An LGIP run on a few drawn pictures is executed as usual. Its tables are then repeated, with other case numbers and
made-up margins, for eight models with 1.5 million cases each, in the store's own layout and schema (in a temporary
folder that is removed at the end). The script prints the median of seven calls after a first call:

    page            `views.failures`: the worst 24 color flips that fooled one model, and how many there are, for pages
                    1, 51, 101 ... whose rows were not read before, and for one page again
    outcomes        `views.outcomes`: how many cases of one kind fooled the model, were tied, or did not
    aggregate       SQL over every answer: cases, mean margin and share fooled for each model and kind
    estimates       `views.estimates`: the stored means and intervals of every model
    answers         `views.answers`: the answers of all models to 24 cases
    runs            `views.question_sets`: the stored question sets, which every page reads first

and Explore in `streamlit.testing`, without a browser: its first run, and a changed filter, each on choices that were
not requested before. For times in a browser, see `benchmarks/clock.py`.
"""

import argparse
import itertools
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from startup import ROOT

MODELS = 8
CASES = 1_500_000
CALLS = 7
GOALS = {"a new page": 50, "page again": 50, "aggregate": 300, "estimates": 20}


def fill(root: Path, cases: int, pictures: int = 0) -> str:
    """Write the store, and return the key of its question set. `pictures` is the number of picture files; 0 for 20."""
    import numpy as np
    import pyarrow as pa

    from vlprobe.datasets.world import items
    from vlprobe.datasets.world.renderer import render
    from vlprobe.runs.request import Request
    from vlprobe.runs.run import execute
    from vlprobe.storage.store import Store
    from vlprobe.types import Run

    data = root / "data"
    data.mkdir(parents=True)
    lines = ["image,caption"]
    for number, row in enumerate(items.read("demo")[:20]):
        render(row.scenes[0]).save(data / f"{number}.png")
        lines += [f'{data}/{number}.png,"{text}"' for text in row.captions]
    (data / "captions.csv").write_text("\n".join(lines) + "\n")
    asked = Request(
        ("control:random",),
        f"csv:{data}/captions.csv",
        "lgip",
        examine=False,
        keep_embeddings=False,
    )
    small = Store(root / "small")
    manifest = execute(asked, small)[0]
    real = small.run(manifest["key"])
    questions = small.cases(manifest["case_key"])
    store = Store(root / "cache")
    few = manifest["n_cases"]
    which = np.arange(cases) % few
    again = np.arange(cases) // few
    rng = np.random.default_rng(0)

    def repeated(table: pa.Table) -> dict[str, pa.Array]:
        taken = {}
        for name in table.column_names:
            column = table[name].combine_chunks()
            if name in (
                "id",
                "item",
                "cluster",
                "group",
            ):  # unique names for every repetition
                words = column.dictionary_encode()
                numbered = [
                    f"{word}#{time_}"
                    for time_ in range(again[-1] + 1)
                    for word in words.dictionary.to_pylist()
                ]
                codes = words.indices.to_numpy()[which] + again * len(words.dictionary)
                taken[name] = pa.DictionaryArray.from_arrays(
                    pa.array(codes), pa.array(numbered)
                ).cast(pa.string())
            elif name == "images" and pictures:
                numbers = (column_of_item[which] + 20 * again) % pictures
                names = pa.array([f"{data}/{number:05}.jpg" for number in range(pictures)])
                offsets = pa.array(np.arange(cases + 1, dtype=np.int32))
                taken[name] = pa.ListArray.from_arrays(offsets, names.take(pa.array(numbers)))
            else:
                taken[name] = column.take(pa.array(which))
        return taken | {"case": pa.array(np.arange(cases))}

    facts = questions.manifest() | {"n_cases": cases, "n_items": cases // few * 20}
    table = questions.table("cases")
    column_of_item = table["item_code"].to_numpy()
    columns = repeated(table)
    columns["item_code"] = pa.array(
        (table["item_code"].to_numpy()[which] + 20 * again).astype(np.int32)
    )
    store.cases(manifest["case_key"]).finish(
        {"cases": pa.table(columns, schema=table.schema)}, _own(facts)
    )
    table = real.table("scores")
    answered = repeated(table)
    for number in range(MODELS):
        run = replace(
            Run(**manifest["run"]), model=f"made-up:{number}", model_digest=f"{number:032d}"
        )
        scores = rng.normal(0.25, 0.05, (cases, 2)).astype(np.float32)
        margin = scores[:, 0] - scores[:, 1] + np.float32(0.02 * number)
        offsets = pa.array(np.arange(0, 2 * cases + 1, 2, dtype=np.int32))
        own = answered | {
            "margin": pa.array(margin),
            "run": pa.array([run.key]).take(pa.array(np.zeros(cases, "i4"))),
        }
        own["scores"] = pa.ListArray.from_arrays(offsets, pa.array(scores.ravel()))
        tables = {"scores": pa.table(own, schema=table.schema)}
        for name in ("estimates", "sums"):
            kept = real.table(name)
            place = kept.column_names.index("run")
            tables[name] = kept.set_column(
                place, kept.schema.field("run"), pa.array([run.key] * len(kept), kept["run"].type)
            )
        told = manifest | {
            "key": run.key,
            "run": run.__dict__,
            "n_cases": cases,
            "n_items": facts["n_items"],
            "note": "",
        }
        store.run(run.key).finish(tables, _own(told))
        print(f"\r{number + 1} of {MODELS} models written", end="", file=sys.stderr)
    print(file=sys.stderr)
    return manifest["case_key"]


def _own(facts: dict) -> dict:
    return {name: value for name, value in facts.items() if name not in ("files", "schema")}


def clock(task: Callable[[], object]) -> float:
    """Return the milliseconds that a task takes."""
    started = time.perf_counter()
    task()
    return 1000 * (time.perf_counter() - started)


def tables(root: Path, key: str) -> None:
    """Time each view, once for the first call and then for seven more calls."""
    from vlprobe import views
    from vlprobe.storage.store import Store
    from vlprobe.views.filter import Filter

    store = Store(root)
    question_set = views.runs.question_set(store, key)
    color = Filter("made-up:3", "flip", "color")
    shown = views.cases.failures(question_set, color, 2, 24)[0]["case"].tolist()
    keys = [manifest["key"] for manifest in store.runs()]

    def aggregate() -> None:
        with store.cursor() as cursor:
            cursor.execute(
                "SELECT run, kind, count(*), avg(margin), avg((margin <= 0)::INT) FROM read_parquet(?) GROUP BY ALL",
                [store.files(keys, "scores")],
            ).df()

    pages = itertools.count(1, 50)
    tasks = {
        "a new page": lambda: views.cases.failures(question_set, color, next(pages), 24),
        "page again": lambda: views.cases.failures(question_set, color, 1, 24),
        "page, any flip": lambda: views.cases.failures(question_set, Filter("made-up:4"), 1, 24),
        "page, words": lambda: views.cases.failures(
            question_set, replace(color, contains="dog"), 1, 24
        ),
        "outcomes": lambda: views.cases.outcomes(question_set, color),
        "aggregate": aggregate,
        "estimates": lambda: views.estimates.estimates(question_set),
        "estimates by subtype": lambda: views.estimates.estimates(question_set, "subtype"),
        "answers": lambda: views.rows.answers(question_set, shown),
        "choices": lambda: views.estimates.choices(question_set),
        "runs": lambda: views.runs.question_sets(store),
    }
    print(f"{'':22}{'first ms':>10}{'median ms':>11}{'goal':>7}")
    for name, task in tasks.items():
        first = clock(task)
        again = statistics.median(clock(task) for _ in range(CALLS))
        print(f"{name:22}{first:10.1f}{again:11.1f}{GOALS.get(name, ''):>7}")


def page(key: str) -> None:
    """Time Explore in Streamlit's AppTest."""
    from streamlit.testing.v1 import AppTest

    os.chdir(ROOT)
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
    app.switch_page("pages/explore.py")
    app.query_params["set"] = key
    app.query_params["model"] = "made-up:5"
    first = clock(app.run)
    if app.exception:
        sys.exit(f"The page failed: {app.exception[0].value}")
    changed = []
    for name, value in (
        ("outcome", "held"),
        ("outcome", "all"),
        ("type", "color"),
        ("outcome", "tied"),
        ("page", "7"),
    ):
        app.query_params[name] = value
        changed.append(clock(app.run))
    told("Explore", first)
    told("a changed filter", changed)


def told(name: str, took: float | list[float]) -> None:
    """Print the time of a page, or the slowest and the median of its changes."""
    if isinstance(took, float):
        print(f"{name:22}{took:10.1f}{'':11}{1000:>7}")
    else:
        print(
            f"{name:22}{max(took):10.1f}{statistics.median(took):11.1f}{300:>7}   (slowest, median)"
        )


def main() -> None:
    """Fill a temporary store, and print a line per measurement."""
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("--cases", type=int, default=CASES, help="of each of the eight models")
    asked.add_argument(
        "--kept", type=Path, help="a folder to fill once and keep, in place of a temporary one"
    )
    given = asked.parse_args()
    with tempfile.TemporaryDirectory(prefix="vlprobe-store-") as folder:
        root = given.kept or Path(folder)
        os.environ["VLPROBE_CACHE"] = str(root / "cache")  # must be set before vlprobe is imported
        made = root / "question-set"
        if not made.exists():
            key = fill(root, given.cases)
            made.write_text(key)
        key = made.read_text()
        size = sum(file.stat().st_size for file in (root / "cache").rglob("*.parquet"))
        print(f"{MODELS} models x {given.cases:,} cases, {size / 1e9:.2f} GB of Parquet")
        tables(root / "cache", key)
        page(key)


if __name__ == "__main__":
    main()
