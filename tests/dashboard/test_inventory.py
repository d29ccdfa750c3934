"""Every item of the first thirteen pages still exists, at its old or its new place."""

import csv
import html
import json
import re
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.conftest import make_tiny
from tests.dashboard.inventory import LEAST, ROWS, VIEWS, Row, View
from vlprobe.dashboard.navigation import page_file
from vlprobe.runs import jobs
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage import access, shipped
from vlprobe.storage.store import Store
from vlprobe.training.request import TrainRequest

ROOT = Path(__file__).resolve().parents[2]
OLD = ROOT / "tests" / "old_cache"
LOG = [
    {"step": 0, "held_out": {"clip": 2.0, "eqsim": 0.5, "flip": 0.25}},
    {"step": 1, "loss": 1.75, "clip": 1.5, "eqsim": 0.25, "rate": 1e-5, "seconds": 0.5},
    {"step": 2, "held_out": {"clip": 1.0, "eqsim": 0.375, "flip": 0.3}},
]


@dataclass
class Seen:
    """The contents of a view: names by kind, and all its words."""

    names: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    texts: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def has(self, row: Row) -> bool:
        if row.kind in ("text", "tooltip", "option", "code", "alt"):
            key, _, part = row.name.rpartition("/") if row.kind == "option" else ("", "", row.name)
            return any(part in text for text in self.texts[f"{row.kind}{key}"])
        return row.name in self.names[row.kind]


def plain(text: str) -> str:
    """Return the words without HTML elements, marks of models and Markdown characters."""
    text = re.sub(r"<(\w+) aria-hidden[^>]*>.*?</\1>", "", text, flags=re.DOTALL)
    text = html.unescape(re.sub(r"<[^>]+>", "", re.sub(r"<(br|/p|/t[dh]|/li)[^>]*>", " ", text)))
    return re.sub(r"\s+", " ", re.sub(r"\\(?=\W)|\*\*", "", text)).strip()


def looked(at: AppTest) -> Seen:
    """Return all contents of a page."""
    seen, nodes = Seen(), [at._tree]
    while nodes:
        node = nodes.pop()
        nodes += list(getattr(node, "children", {}).values())
        proto = getattr(node, "proto", None)
        if proto is None or "<style" in str(getattr(proto, "body", "")):
            continue
        kind = {"subheader": "header", "plotly_chart": "chart"}.get(node.type, node.type)
        kind = {"bidi_component": "component"}.get(kind, kind)
        inner = getattr(proto, "popover", proto) if kind == "popover" else proto
        inner = getattr(proto, "dialog", proto) if kind == "dialog" else inner
        words = [
            str(getattr(inner, name, "") or "")
            for name in ("label", "title", "body", "component_name")
        ]
        key = re.sub(r"^\$\$(ID|GENERATED)-[0-9a-f]+-", "", str(getattr(proto, "id", "")))
        for word in filter(None, [*words, key, str(getattr(node, "key", "") or "")]):
            seen.names[kind].add(plain(word))
        seen.texts["text"] += [plain(word) for word in words if word]
        if kind == "component":
            seen.texts["text"].append(plain(str(proto)))
        seen.texts["tooltip"].append(plain(str(getattr(proto, "help", ""))))
        seen.texts["alt"].append(plain(str(getattr(proto, "alt", ""))))
        seen.texts["alt"] += [plain(one.alt) for one in getattr(proto, "imgs", ())]
        seen.texts["code"].append(str(getattr(proto, "code_text", "")))
        seen.texts["text"].append(plain(str(getattr(proto, "placeholder", ""))))
        for option in getattr(proto, "options", ()):
            label = option if isinstance(option, str) else str(getattr(option, "content", ""))
            seen.texts[f"option{node.key}"].append(plain(label))
        if kind == "dataframe":
            seen.names["column"] |= {*map(str, node.value.columns), str(node.value.index.name)}
        body = str(getattr(proto, "body", ""))
        seen.texts["alt"] += [plain(text) for text in re.findall(r' alt="([^"]*)"', body)]
        heads = re.findall(r'<th(?=[^>]*scope="col)[^>]*>(.*?)</th>', body, re.DOTALL)
        seen.names["column"] |= {plain(part) for head in heads for part in head.split("<br>")}
    return seen


def write_job(store: Store, number: int, request: Request | TrainRequest, state: str) -> None:
    """Write a job as its process leaves it on disk."""
    folder, now = store.root / "jobs" / f"{number:x}", time.time()
    folder.mkdir(parents=True)
    (folder / "request.json").write_text(json.dumps(asdict(request) | {"created": now}))
    status = {"state": state, "label": "Asking demo:weak", "done": 2, "total": 4}
    status |= {"started": now - 10, "updated": now}
    (folder / "status.json").write_text(json.dumps(status))
    (folder / "log.txt").write_text("")
    if isinstance(request, TrainRequest):
        request.path.parent.mkdir(parents=True, exist_ok=True)
        request.path.with_suffix(".jsonl").write_text("\n".join(map(json.dumps, LOG)))
        request.path.touch()


def make_ranked_store(folder: Path) -> Store:
    """Return a store with rankings of sixteen pictures; a figure needs at least eleven."""
    make_tiny(folder)
    for path in OLD.glob("*.png"):
        shutil.copy(path, folder)
    with (OLD / "captions.csv").open() as old, (folder / "captions.csv").open("a") as both:
        rows = [(row["image"], row["caption"], "") for row in csv.DictReader(old)]
        csv.writer(both).writerows(rows)
    store = Store(folder / "cache")
    dataset = f"csv:{folder / 'captions.csv'}"
    execute(Request(("control:random",), dataset, "prsm", examine=False), store)
    return store


@pytest.fixture(scope="session")
def opened(
    tmp_path_factory: pytest.TempPathFactory, filled: Store
) -> Iterator[Callable[[str], Seen]]:
    """Return a function that gives the contents of a view and opens each view once."""
    folder = tmp_path_factory.mktemp("inventory")
    shutil.copytree(OLD, folder / "old")
    old = Store(folder / "old" / "stored")
    write_job(old, 1, Request(("demo:weak",), "demo", "eqben"), "running")
    for number, state in ((2, "running"), (3, "done")):
        output = str(old.root / "trained" / f"{number}.safetensors")
        train = TrainRequest("demo:softmax", ("demo-train",), output, "clip+eqsim", 4, device="cpu")
        write_job(old, number, train, state)
    stores = {
        "old": old,
        "empty": Store(folder / "none"),
        "shipped": Store(folder / "none"),
        "repaired": filled,
    }
    stores["ranked"] = make_ranked_store(folder / "ranked")
    known: dict[str, Seen] = {}

    def show(view: View) -> Seen:
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder / "old")
            patch.setattr("vlprobe.storage.store.DEFAULT", stores[view.cache].root)
            patch.setattr(
                jobs,
                "_reason_of_death",
                lambda folder: "" if len(folder.name) == 1 else "It is gone.",
            )
            if view.cache == "shipped":
                patch.setenv("VLPROBE_SHIPPED", str(shipped.FOLDER))
            if view.read_only:
                patch.setattr(access, "read_only", lambda: True)
            at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=300)
            for name, value in view.query.items():
                at.query_params[name] = value
            at.switch_page(str(ROOT / page_file(view.page))).run()
            if view.press:
                at.button(key=view.press).click().run()
            assert not at.exception, at.exception[0].message
            return looked(at)

    def show_once(name: str) -> Seen:
        if name not in known:
            known[name] = show(VIEWS[name])
        return known[name]

    yield show_once


@pytest.mark.full  # the other files of this folder open each page
@pytest.mark.parametrize("name", VIEWS)
def test_a_view_shows_every_item_in_its_inventory(opened: Callable[[str], Seen], name: str):
    rows = [row for row in ROWS if row.view == name]
    assert rows, "no row needs this view: remove it"
    seen = opened(name)
    missing = [f"{row.what}: {row.kind} '{row.name}'" for row in rows if not seen.has(row)]
    assert missing == []


def test_no_line_was_removed():
    assert len(ROWS) >= LEAST


def test_every_page_of_the_first_dashboard_is_in_the_inventory():
    pages = ["overview", "run", "failures", "playground", "compare", "repair", "breakdown"]
    pages += ["tradeoff", "retrieval", "pairs", "triplets", "rankings", "models"]
    assert sorted({row.page for row in ROWS} - {"every page", "series"}) == sorted(pages)


def test_a_line_that_has_not_moved_names_a_view_of_its_old_page():
    wrong = [row for row in ROWS if row.status == "old" and row.page not in row.view]
    assert [row for row in wrong if row.page != "every page"] == []
