"""Time of each page and command on a cache with 1,000 runs and 40 models: `python benchmarks/many_runs.py [--browser]`.

The cache contains the bundled results, stored again under other keys in a temporary folder or in `--kept FOLDER`: ten
question sets with 40 models each, and two hundred with three models each, on made-up tables with their own seeds.
Estimates are shifted slightly, so that 40 models do not share six points. The pictures are the bundled ones.

The script times each page as a browser requests it, over a websocket: first five seconds after a fresh server answers
and before any other request, then as the median of five later requests, with the bytes of the answer. It also times
`vlprobe show` and `list`. With --browser, it times the pages in Chromium, too, with `benchmarks/clock.py`.
"""

import argparse
import asyncio
import hashlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import websockets
from playwright.sync_api import sync_playwright
from startup import ROOT, environment, serving
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from vlprobe.storage import shipped
from vlprobe.storage.store import Store
from vlprobe.types import Run

ARCHITECTURES = (
    "RN50",
    "ViT-B-32",
    "ViT-B-16",
    "ViT-L-14",
    "ViT-L-14-336",
    "ViT-H-14",
    "ConvNeXt-L",
    "SigLIP-B",
)
TRAININGS = (
    "openai",
    "laion400m_e32",
    "laion2b_s34b_b79k",
    "datacomp_xl",
    "fine-tuned on negatives",
)
TABLES = (
    "birds",
    "kitchen",
    "market",
    "museum",
    "office",
    "parks",
    "products",
    "roads",
    "rooms",
    "ships",
    "sports",
    "trains",
)
SHIPPED_PROBES = ("lgip", "rococo", "eqben", "visla", "prsm")
WIDE = 10  # question sets with answers from all models
NARROW, FEW = 200, 3  # other question sets, and the number of models for each
GOAL = 1000  # milliseconds
BEGUN = datetime(2026, 10, 1, tzinfo=UTC)


def fill(root: Path) -> None:
    """Write the cache."""
    source, store = Store(shipped.FOLDER), Store(root)
    models = [f"made-up:{name}/{training}" for training in TRAININGS for name in ARCHITECTURES]
    manifests = {
        probe: [manifest for manifest in source.runs() if manifest["run"]["probe"] == probe]
        for probe in SHIPPED_PROBES
    }
    n_stored = 0
    for number in range(WIDE + NARROW):
        probe = SHIPPED_PROBES[number % len(SHIPPED_PROBES)]
        place = number // len(SHIPPED_PROBES)
        dataset = f"csv:/data/{TABLES[place % len(TABLES)]}.csv"
        seed = 42 + place // len(TABLES)
        few = [models[(number + 7 * place) % len(models)] for place in range(FEW)]
        for model in models if number < WIDE else few:
            manifest = manifests[probe][models.index(model) % len(manifests[probe])]
            finished = BEGUN + timedelta(minutes=7 * n_stored)
            store_again(source, store, manifest, model, dataset, seed, finished)
            n_stored += 1
            print(f"\r{n_stored} runs", end="", file=sys.stderr)
    print(file=sys.stderr)


def store_again(
    source: Store,
    store: Store,
    manifest: dict,
    model: str,
    dataset: str,
    seed: int,
    finished: datetime,
) -> None:
    """Store the answers of a bundled run as the answers of another model to another dataset's questions."""
    run = replace(
        Run(**manifest["run"]),
        model=model,
        model_digest=digits(model),
        dataset=dataset,
        dataset_digest=digits(dataset),
        seed=seed,
    )
    unwritten = ("files", "schema", "sha256")
    if not (store.cases(run.case_key).folder / "manifest.json").exists():
        questions = source.cases(manifest["case_key"])
        facts = {name: fact for name, fact in questions.manifest().items() if name not in unwritten}
        store.cases(run.case_key).finish({"cases": questions.table("cases")}, facts)
    answers = source.run(manifest["key"])
    names = [Path(line["name"]).stem for line in manifest["files"]]
    tables = {name: answers.table(name) for name in names}
    tables["estimates"] = moved(tables["estimates"], int(digits(model)[:8], 16))
    for name, table in tables.items():
        place = table.schema.get_field_index("run")
        if place >= 0:
            keys = (
                pa.array([run.key])
                .take(pa.array(np.zeros(len(table), "i4")))
                .cast(table.schema.field(place).type)
            )
            tables[name] = table.set_column(place, table.schema.field(place), keys)
    facts = {name: fact for name, fact in manifest.items() if name not in unwritten}
    facts |= {
        "key": run.key,
        "case_key": run.case_key,
        "run": run.record(),
        "finished": finished.isoformat(),
    }
    store.run(run.key).finish(tables, facts)


def digits(name: str) -> str:
    """Return a made-up digest for a name, the same in every process."""
    return hashlib.sha256(name.encode()).hexdigest()[:32]


def moved(estimates: pa.Table, seed: int) -> pa.Table:
    """Return the estimates scaled down by up to a tenth, as if they came from another model."""
    factor = 1 - np.random.default_rng(seed).random() / 10
    for name in ("value", "low", "high"):
        place = estimates.schema.get_field_index(name)
        estimates = estimates.set_column(
            place, estimates.schema.field(place), pa.array(estimates[name].to_numpy() * factor)
        )
    return estimates


PAGES = (
    "",
    "explore",
    "compare",
    "tradeoff",
    "try",
    "present",
    "run",
    "lab",
    "models",
    "repair",
    "breakdown",
)
REPEATS = 5
PORT = 8594
REST = 5  # seconds until a fresh server is quiet
TITLES = {
    "": "Home",
    "explore": "Explore",
    "compare": "Compare",
    "tradeoff": "Trade-off",
    "run": "Run",
    "lab": "Lab",
}


@dataclass
class Visit:
    """One browser's connection to the server."""

    socket: websockets.ClientConnection
    server: psutil.Process

    async def look(self, page: str) -> tuple[float, float, int]:
        """Request a page, and return milliseconds by the clock, CPU milliseconds of the server, and bytes."""
        message = BackMsg()
        message.rerun_script.page_name = page
        before, began, size = sum(self.server.cpu_times()[:2]), time.perf_counter(), 0
        await self.socket.send(message.SerializeToString())
        while True:
            received = await self.socket.recv()
            size += len(received)
            answer = ForwardMsg.FromString(received)
            if answer.WhichOneof("type") == "delta" and answer.delta.new_element.HasField(
                "exception"
            ):
                sys.exit(f"{page}: {answer.delta.new_element.exception.message}")
            if answer.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY and answer.HasField(
                "script_finished"
            ):
                break
        took = 1000 * (time.perf_counter() - began)
        return took, 1000 * (sum(self.server.cpu_times()[:2]) - before), size


async def looks(cache: Path, page: str) -> None:
    """Print a line for one page: the first request to a fresh server, and the median of later requests."""
    with serving(cache, PORT) as server:
        await asyncio.sleep(REST)
        async with websockets.connect(
            f"ws://127.0.0.1:{PORT}/_stcore/stream",
            subprotocols=["streamlit"],
            origin=f"http://127.0.0.1:{PORT}",
            max_size=None,
        ) as socket:
            visit = Visit(socket, server)
            first = await visit.look(page)
            later = [await visit.look(page) for _ in range(REPEATS)]
    again, cpu, size = (statistics.median(numbers) for numbers in zip(*later, strict=True))
    over = "" if max(first[0], again) < GOAL else "   over the goal"
    print(
        f"{page or 'home':12}{first[0]:9,.0f}{first[1]:9,.0f}{again:9,.0f}{cpu:9,.0f}{size / 1024:9,.0f}{over}",
        flush=True,
    )


def commands(cache: Path) -> None:
    """Time the listing commands, and print a line for each."""
    for command in (["show"], ["show", Store(cache).runs()[-1]["key"]], ["list", "models"]):
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "vlprobe", "--cache", str(cache), *command],
            cwd=ROOT,
            env=environment(),
            capture_output=True,
            text=True,
            check=True,
        )
        took = 1000 * (time.perf_counter() - began)
        print(
            f"vlprobe {' '.join(command):24}{took:9,.0f} ms, {len(done.stdout.splitlines()):,} lines"
        )


def in_chromium(cache: Path, titles: Sequence[str]) -> None:
    """Time the same pages in Chromium with `benchmarks/clock.py`."""
    import clock

    with tempfile.TemporaryDirectory(prefix="vlprobe-many-") as folder, sync_playwright() as driver:
        browser = driver.chromium.launch_persistent_context(
            folder,
            executable_path=shutil.which("chromium"),
            args=clock.FLAGS,
            viewport={"width": 1280, "height": 900},
        )
        browser.add_init_script(clock.WATCH)
        clock.pages(browser, cache, list(titles))
        browser.close()
    if clock.late:
        print("Above its goal:", *clock.late, sep="\n  ")


def main() -> None:
    """Print a line per page and command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kept", type=Path, help="a folder to fill once and keep")
    parser.add_argument("--browser", action="store_true")
    parser.add_argument("--only", nargs="+", choices=PAGES, default=PAGES, metavar="PAGE")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="vlprobe-many-") as folder:
        cache = (given.kept or Path(folder)) / "cache"
        if not (cache / "runs").exists():
            fill(cache)
        print(f"{'ms':12}{'first':>9}{'CPU':>9}{'again':>9}{'CPU':>9}{'KiB':>9}   goal {GOAL:,}")
        for page in given.only:
            asyncio.run(looks(cache, page))
        commands(cache)
        if given.browser:
            in_chromium(cache, [TITLES[page] for page in given.only if page in TITLES])


if __name__ == "__main__":
    main()
