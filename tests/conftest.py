"""Shared test helpers: a small generated dataset, stores in temporary folders, and the real data if it is available."""

import atexit
import contextlib
import csv
import gc
import json
import os
import secrets
import shutil
import socket
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

# torch reads this at its first import: two processes share two cores
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Otherwise, each process of each run compiles every test and module again, a third of the collection time.
os.environ["PYTHONDONTWRITEBYTECODE"] = ""

# Tests see only the results that they store; tests of the bundled results set the folder themselves.
os.environ["VLPROBE_SHIPPED"] = ""

# Without this, a test that does not name a cache would write into the repository.
os.environ["VLPROBE_CACHE"] = tempfile.mkdtemp(prefix="vlprobe-cache-")

import pytest
from click.testing import CliRunner, Result
from PIL import Image, ImageDraw
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import local_script_runner
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from vlprobe import views
from vlprobe.cli.main import main
from vlprobe.datasets.world import items
from vlprobe.scoring import pictures
from vlprobe.storage import entry
from vlprobe.storage.store import Store
from vlprobe.types import Picture, Run

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import pyarrow as pa

gc.disable()  # until the tests are collected: imports and collecting leave nothing to free
sys.dont_write_bytecode = False
HERE = Path(__file__).resolve().parent
atexit.register(shutil.rmtree, os.environ["VLPROBE_CACHE"], ignore_errors=True)
SHARED = HERE.parent.parent / "shared" / "data"
CAPTIONS = [
    ("red", "dog", "A red dog is sitting on a bench.", "There is a red dog on a bench."),
    ("blue", "car", "A blue car next to a tree.", "Two people look at a blue car."),
    ("green", "bus", "A green bus driving down a street.", "One green bus on the road."),
    ("black", "cat", "A black cat sitting on a table.", "The black cat is looking at three birds."),
    ("white", "boat", "A white boat floating on the water.", "There are two white boats."),
    ("brown", "horse", "A brown horse standing in a field.", "A person riding a brown horse."),
]


LONGEST = [  # started first, so that no single file is left running at the end
    "browser/test_walk.py",
    "runs/test_ray.py",
    "models/endpoint/test_served_embeddings.py",
    "dashboard/test_home.py",
    "features/test_scorecard.py",
    "faults/test_scenes.py",
    "dashboard/test_pages_run.py",
    "cli/test_main.py",
    "runs/test_run.py",
    "test_package.py",
    "views/test_papers.py",
    "runs/test_plan.py",
    "dashboard/test_photographs.py",
    "test_old_cache.py",
    "dashboard/test_present.py",
    "cli/test_served.py",
    "storage/remote/test_remote_s3.py",
    "models/test_towers.py",
    "dashboard/test_explore.py",
    "dashboard/test_pages_probes.py",
    "surfaces/test_report.py",
    "render/test_attribution.py",
    "render/test_findings.py",
    "features/test_tradeoff_tests.py",
    "surfaces/test_site.py",
    "dashboard/test_tradeoff.py",
    "hostile/test_hostile_links.py",
    "dashboard/test_explore_views.py",
    "dashboard/test_pages_playground.py",
    "test_one_number.py",
    "runs/test_case_workers.py",
    "runs/test_jobs.py",
]

TOGETHER = ("tests/browser/", "tests/models/endpoint/")  # folders that share one server


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest test files first, because `loadfile` distributes files in this order."""
    places = {HERE / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


def pytest_configure(config: pytest.Config) -> None:
    """Enable garbage collection in the process that only distributes tests."""
    if not hasattr(config, "workerinput") and config.getoption("numprocesses", None):
        gc.enable()


@pytest.fixture(scope="module", autouse=True)
def collected() -> Iterator[None]:
    """Free the garbage of each file's tests, so that a file left open in a reference cycle is an error there."""
    yield
    gc.collect()


def pytest_collection_finish() -> None:
    """Freeze the imported objects, so that garbage collection skips them and each process ends some seconds earlier.

    A test frees most objects without it: by default, it takes a tenth of a process's CPU time.
    """
    gc.freeze()
    atexit.register(gc.unfreeze)
    gc.set_threshold(50_000, 50, 100)
    gc.enable()


class Files(LoadFileScheduling):
    """Distribute test files. The files of each folder in TOGETHER form one unit, because the server that they share
    starts slowly.
    """

    def _split_scope(self, nodeid: str) -> str:
        return next((name for name in TOGETHER if nodeid.startswith(name)), "") or (
            super()._split_scope(nodeid)
        )


@pytest.hookimpl(optionalhook=True)  # without xdist, files are not distributed
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer | None) -> Files | None:
    return Files(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.fixture(scope="session", autouse=True)
def components() -> Iterator[None]:
    """Scan for components only once. AppTest otherwise scans all installed packages for each page that it opens."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            manifest_scanner,
            "scan_component_manifests",
            cache(manifest_scanner.scan_component_manifests),
        )
        yield


@pytest.fixture(scope="session", autouse=True)
def joined() -> Iterator[None]:
    """Join the thread of a page's script. AppTest otherwise looks through all events each millisecond, which is a
    tenth of the CPU time of a page.
    """
    poll = local_script_runner.require_widgets_deltas

    def join(runner: local_script_runner.LocalScriptRunner, timeout: float = 3) -> None:
        if runner._script_thread is not None:
            runner._script_thread.join(timeout)
        poll(runner, 0.1)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_script_runner, "require_widgets_deltas", join)
        yield


@pytest.fixture(scope="session", autouse=True)
def unsynced() -> Iterator[None]:
    """Leave written files to the operating system: a run syncs about nine files, at 2 to 13 ms each.

    Only a power failure would show the difference. tests/faults kills processes that sync as usual.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def impatient() -> Iterator[None]:
    """Look at a damaged table a second time at once. tests/faults has processes that write while others read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(entry, "RETRY_SECONDS", 0.0)
        yield


@pytest.fixture
def shared_data() -> Path:
    """Return the folder with real data. The test is skipped if the folder is missing."""
    if not SHARED.is_dir():
        pytest.skip(f"needs the real data in {SHARED}")
    return SHARED


def free_port() -> int:
    """Return a free port for a server that starts later.

    The port is below the range that the system assigns to connections and to requests for any port. A
    port in that range could be taken before the server uses it.
    """
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text("ascii").split()[0])
    while True:
        port = 10_000 + secrets.randbelow(first - 10_000)
        with contextlib.suppress(OSError), socket.socket() as unused:
            unused.bind(("", port))
            return port


@contextlib.contextmanager
def serving_http(handler: Callable[..., BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serve requests on a free port of this machine with a handler, and return the address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        # by default, a server looks every half second whether it should stop
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


def call(cache: Path | str, *words: str, code: int = 0) -> Result:
    """Run a command of vlprobe on a cache, and return what it printed. It has to end with this exit code."""
    result = CliRunner().invoke(main, ["--cache", str(cache), *words])
    assert result.exit_code == code, result.output
    return result


def make_tiny(folder: Path, replaced: Sequence[Mapping[str, str]] = ()) -> str:
    """Draw six pictures with two captions each, and return the dataset's name.

    If `replaced` is given, the dataset has one row for each of its entries, and the fields in an entry
    replace the drawn ones.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for number, (color, thing, *captions) in enumerate(CAPTIONS):
        image = Image.new("RGB", (64, 48), "lightgray")
        ImageDraw.Draw(image).ellipse((8 + number, 8, 40 + number, 40), fill=color)
        image.save(folder / f"{number}.png")
        rows += [
            {"image": f"{number}.png", "caption": caption, "thing": thing} for caption in captions
        ]
    if replaced:
        rows = [row | fields for row, fields in zip(rows, replaced, strict=False)]
    with (folder / "captions.csv").open("w", newline="", encoding="utf-8") as handle:
        writer = csv.DictWriter(handle, ["image", "caption", "thing"])
        writer.writeheader()
        writer.writerows(rows)
    return f"csv:{folder / 'captions.csv'}"


def make_foils(folder: Path, name: str, n: int, end: str = "") -> str:
    """Write n pictures in SugarCrepe's layout, each with the caption "K dogs" and the foil "K cats", and
    return the dataset's name.
    """
    photos = folder / "photos"
    photos.mkdir()
    rows = {}
    for k in range(n):
        Image.new("RGB", (8, 8), (20 * k, 0, 0)).save(photos / f"{k}.png")
        captions = {"caption": f"{k} dogs{end}", "negative_caption": f"{k} cats{end}"}
        rows[str(k)] = {"filename": f"{k}.png", **captions}
    (folder / f"{name}.json").write_text(json.dumps(rows))
    return f"triplets:{folder}/{name}.json@{photos}"


MADE_UP = {
    run.key: run
    for run in (Run("m", "d", "tiny", "e", "lgip", 1, ("margin@1",), seed=n) for n in range(2))
}


def facts(key: str, when: str = "2026-01-01", note: str = "") -> dict:
    """Return the manifest facts of a made-up run. The keys in MADE_UP are keys of real `Run` objects."""
    run = MADE_UP.get(key, next(iter(MADE_UP.values())))
    sizes = {"n_items": 3, "n_cases": 3, "spread": 0.1, "seconds": 1.0}
    return {"key": key, "case_key": key, "run": asdict(run), "finished": when, "note": note} | sizes


def case_key_of(store: Store, probe: str = "", dataset: str = "") -> str:
    """Return the key of the question set that pages open first: of all, of a probe, or of a dataset."""
    rows = views.runs.question_set_rows(store)
    return next(
        row.case_key for row in rows if probe in ("", row.probe) and dataset in ("", row.dataset)
    )


def question_set_of(store: Store, probe: str = "", dataset: str = "") -> views.runs.QuestionSet:
    """Return the question set that pages open first: of all, of a probe, or of a dataset."""
    return views.runs.question_set(store, case_key_of(store, probe, dataset))


def estimates_of(
    store: Store, manifest: Mapping[str, Any], *columns: str, **choices: str
) -> "pd.DataFrame":
    """Return the estimates for the question set of a run, indexed by columns (by default, the metric).

    `choices` are arguments of `views.estimates.estimates`.
    """
    question_set = views.runs.question_set(store, manifest["case_key"])
    table = views.estimates.estimates(question_set, **choices)
    return table.set_index(list(columns) or "metric")


def image_vector(model: Any, name: str) -> "np.ndarray":
    """Return a model's embedding of the picture with a name (`Picture.name`), without the run's batches and caches."""
    image = pictures.open_picture(Picture.from_name(name))
    return model.encode_images(model.preprocess(image)[None])[0]


def text_vector(model: Any, text: str) -> "np.ndarray":
    """Return a model's embedding of a text."""
    return model.encode_texts(model.tokenize([text]))[0]


def run_key_of(cache: Path, model: str) -> str:
    """Return the key of the oldest run of a model."""
    return next(run["key"] for run in Store(cache).runs() if run["run"]["model"] == model)


@pytest.fixture(scope="session")
def every_probe(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return a store in which both controls have answered a few cases of every probe."""
    from tests.probes.test_common import PROBES, make
    from vlprobe.runs.request import Request
    from vlprobe.runs.run import execute

    folder = tmp_path_factory.mktemp("every_probe")
    store = Store(folder / "cache")
    options = {"rococo": {"pictures": ["mix:0.9"], "picture_seeds": [1]}}
    for probe in PROBES:
        dataset = make(probe, folder / probe, 14)
        execute(
            Request(("control:random", "control:constant"), dataset, probe, options.get(probe, {})),
            store,
        )
    return store


@pytest.fixture(scope="session")
def dealt_store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return a store with lgip answers from three random models, two of which are defined in the tests."""
    from tests.views import conftest

    return conftest.make(tmp_path_factory.mktemp("dealt"))


@pytest.fixture(scope="session")
def mixed_store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return a store in which three models that see colors, and a control, have searched among mixed pictures."""
    from tests import mixing

    return mixing.make(tmp_path_factory.mktemp("mixed"))


def store_again(
    store: Store,
    manifest: dict,
    key: str,
    changed: "Mapping[str, pa.Table] | None" = None,
    **run: str,
) -> None:
    """Store the answers of a run again under another key.

    Args:
        store: The store with the run.
        manifest: The manifest of the run.
        key: The key for the copy.
        changed: Tables that replace the run's tables, by name.
        **run: Facts about the run that differ, such as the name of the model.
    """
    import pyarrow as pa

    entry = store.run(manifest["key"])
    tables = {name: entry.table(name) for name in ("scores", "estimates", "sums")}
    copies = {}
    for name, table in (tables | dict(changed or {})).items():
        place, field = table.schema.get_field_index("run"), table.schema.field("run")
        copies[name] = table.set_column(place, field, pa.array([key] * len(table), field.type))
    rewritten_facts = ("files", "sha256", "schema")
    facts = {name: fact for name, fact in manifest.items() if name not in rewritten_facts}
    store.run(key).finish(copies, facts | {"key": key, "run": manifest["run"] | run})


@pytest.fixture(scope="session")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return a store with lgip answers from `control:random` and from `guess`, which has the same ones, shuffled."""
    import numpy as np
    import pyarrow as pa

    from vlprobe.runs.request import Request
    from vlprobe.runs.run import execute

    folder = tmp_path_factory.mktemp("compared")
    store = Store(folder / "cache")
    manifest = execute(Request(("control:random",), make_tiny(folder / "tiny"), "lgip"), store)[0]
    answered = store.run(manifest["key"])
    tables = {name: answered.table(name) for name in ("scores", "estimates", "sums")}
    table, key = tables["scores"], "f" * 16
    kinds = np.array(table["kind"].to_pylist())
    places = np.arange(len(kinds))
    for kind in set(kinds):  # shuffle within a kind, because kinds differ in their texts
        places[kinds == kind] = np.random.default_rng(1).permutation(places[kinds == kind])
    for name in ("scores", "text_scores", "margin"):
        table = table.set_column(
            table.column_names.index(name), name, table[name].take(pa.array(places))
        )
    tables["scores"] = table
    store_again(store, manifest, key, tables, model="guess")
    return store


@pytest.fixture
def store_copy(compared: Store, tmp_path: Path) -> Store:
    """Return a copy of `compared` that a test may write to."""
    return Store(shutil.copytree(compared.root, tmp_path / "cache"))


def tiers(values: Iterable[Any], quick: Container[Any]) -> list:
    """Return the parameters of a test. Values in `quick` run in the default suite, all others in the full suite only.

    A tuple has a value for each of several parameters.
    """
    return [
        pytest.param(
            *(value if isinstance(value, tuple) else (value,)),
            marks=() if value in quick else pytest.mark.full,
        )
        for value in values
    ]


def draw_fewer(patch: pytest.MonkeyPatch, n: int) -> None:
    """Keep only the first n items of each kind in the demo datasets, so that a test draws them quickly."""
    read = items.read

    def first(dataset: str) -> list[items.DrawnItem]:
        counts: Counter[str] = Counter()
        kept = []
        for row in read(dataset):
            kind = row.id.rpartition("-")[0]
            counts[kind] += 1
            if counts[kind] <= n:
                kept.append(row)
        return kept

    patch.setattr(items, "read", first)


@pytest.fixture
def tiny(tmp_path: Path) -> str:
    """Return the name of a dataset with six pictures and twelve captions."""
    return make_tiny(tmp_path / "tiny")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Return an empty store."""
    return Store(tmp_path / "cache")


@pytest.fixture
def unspawned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write jobs to the store without starting them."""
    monkeypatch.setattr("vlprobe.runs.jobs._spawn", lambda store, job_id: None)
