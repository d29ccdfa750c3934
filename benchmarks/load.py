"""Many users on one dashboard: how long a change takes, whether memory grows, and whether answers get mixed up.

    python benchmarks/load.py [--cache CACHE] [--sessions 100] [--minutes 2] [--think 15]

Starts `vlprobe dashboard` on loopback, on a cache with 12 million generated answers from `benchmarks/store.py`, or on
CACHE; the bundled results are shown below it. Each session acts like a browser: a websocket that opens Explore and then
requests something else, with pauses of `--think` seconds on average. Four of five changes select another model, type of
edit, outcome, order and page on Explore; one of five opens Compare, Trade-off or Home. Half of the changes are about
the cache, half about the bundled results. A change is timed from the message that is sent to the end of the script's
run, once all sessions have their first page. Every answer is checked: Explore must select the requested model, and its
heading and note must show the model's numbers of cases, which are counted here from the files without the package's
views; Compare must select the model; the other pages must send their component. No answer within a minute counts as
wrong; the session then reconnects, but gives up after ten wrong answers.

Memory is printed minute by minute. Only 127.0.0.1 is contacted. Pictures come with the answer, but no browser draws
them, so this measures only the server. The sessions share the machine with the server; their CPU time is printed.
"""

import argparse
import asyncio
import json
import os
import random
import sys
import tempfile
import time
import urllib.parse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import pyarrow.parquet as pq
import websockets
from startup import free_port, serving
from store import CASES, fill
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from vlprobe import views
from vlprobe.render.words import distinct, model_name, movement_kinds, presentations
from vlprobe.storage import shipped
from vlprobe.storage.shipped import StoreAboveShipped
from vlprobe.storage.store import Store

SORTS = ("worst", "closest", "best", "dataset")
EXPLORE, COMPARE, TRADE_OFF = "explore", "compare", "tradeoff"
OTHER_PAGES = {
    COMPARE: "",
    TRADE_OFF: "vlprobe_",
    "": "vlprobe_home",
}  # prefix of the name of a component that each page sends
OTHERS = 0.2  # share of changes on pages other than Explore
PATIENCE = 60  # seconds
WRONG = 10  # wrong answers after which a session gives up
WATCHED = 0.5  # seconds between two measurements of the server's memory
SETTLED = 5  # minutes after which memory should stop growing
Counts = dict[str, int]  # cases by outcome


@dataclass(frozen=True)
class Answered:
    """One model's answers to one question set."""

    case_key: str
    model: str
    label: str  # name of the model in pickers
    kind: str  # kind of the cases
    is_shipped: bool
    has_trade_off: bool  # if False, Trade-off says so and sends no component
    counts: dict[str, Counts]  # for each type of edit, and for all types under ""


@dataclass(frozen=True)
class Look:
    """A view that a session requests, and what the answer must show."""

    page: str
    address: dict[str, str]
    label: str  # the model's name in its picker; "" if the page has no picker
    heading: str
    note: str
    part: str  # prefix of the component that the page must send

    def missing(self, labels: list[str], parts: dict[str, str]) -> str:
        """Describe what the answer lacks; "" if it is complete.

        Args:
            labels: The labels of the models that are selected.
            parts: The values that were sent to components, as JSON, by component name.
        """
        if self.label and self.label not in labels:
            return f"asked {self.address}, and the picker has {labels} instead of {self.label}"
        if self.part and not any(name.startswith(self.part) for name in parts):
            return f"asked {self.page} {self.address}, and got no {self.part}"
        if not self.heading:
            return ""
        values = json.loads(parts.get("vlprobe_wall", "{}"))
        heading, note = values.get("heading", ""), values.get("note", "")
        if heading.startswith(self.heading) and self.note in note:
            return ""
        return f"asked {self.address}, expected '{self.heading}' and '{self.note}', not '{heading}' and '{note}'"


class Session:
    """One simulated visitor with its own websocket and its own requests."""

    opened = 0  # sessions that got their first page, or gave up waiting for it

    def __init__(self, address: str, number: int, sets: list[Answered], of: int = 1) -> None:
        self.address, self.of = address, of
        sources = (
            [one for one in sets if one.is_shipped],
            [one for one in sets if not one.is_shipped],
        )
        self.sources = [source for source in sources if source]
        self.pages: dict[str, str] = {}  # page hashes by path
        self.random = random.Random(number)
        self.first = True
        self.answers = 0
        self.seconds: list[tuple[str, float]] = []  # page and duration of each change
        self.wrong: list[str] = []

    async def visit(self, until: float, think: float) -> None:
        """Open the page and change its filters until the time is over. Reconnect if the connection is lost."""
        await asyncio.sleep(self.random.uniform(0, think))
        while len(self.wrong) < WRONG and (self.first or time.monotonic() < until):
            try:
                async with websockets.connect(
                    f"ws://{self.address}/_stcore/stream",
                    subprotocols=["streamlit"],
                    origin=f"http://{self.address}",
                    max_size=None,
                    open_timeout=PATIENCE,
                ) as socket_:
                    while self.first or time.monotonic() < until:
                        await asyncio.wait_for(self.change(socket_), PATIENCE)
                        await asyncio.sleep(self.random.expovariate(1 / think))
            except (OSError, TimeoutError, websockets.WebSocketException) as error:
                self.wrong.append(f"no answer: {type(error).__name__} {error}")
                self.answered()
                await asyncio.sleep(1)

    def answered(self) -> None:
        """Count an answer. After a session's first answer, the other sessions need not wait for it."""
        Session.opened += self.first
        self.first = False
        self.answers += 1

    async def change(self, socket_) -> None:
        """Request another view, and read the answer to its end."""
        look = self.look()
        message = BackMsg()
        message.rerun_script.query_string = urllib.parse.urlencode(look.address)
        message.rerun_script.page_name = look.page
        message.rerun_script.page_script_hash = self.pages.get(look.page, "")
        started = time.monotonic()
        await socket_.send(message.SerializeToString())
        labels: list[str] = []
        parts: dict[str, str] = {}
        while True:
            answer = ForwardMsg.FromString(await socket_.recv())
            kind = answer.WhichOneof("type")
            element = answer.delta.new_element if kind == "delta" else None
            drawn = element.WhichOneof("type") if element else ""
            if kind == "navigation":
                self.pages = {
                    page.url_pathname: page.page_script_hash for page in answer.navigation.app_pages
                }
            elif drawn == "selectbox" and element.selectbox.label in ("Model", "Baseline"):
                labels.append(element.selectbox.raw_value)
            elif drawn == "bidi_component":
                parts[element.bidi_component.component_name] = element.bidi_component.json
            elif drawn == "exception":
                self.wrong.append(element.exception.message)
            elif kind == "script_finished" and (
                answer.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY  # not if a rerun follows
            ):
                break
        if (
            not self.first and Session.opened > self.of
        ):  # the session that warms up the server is one more
            self.seconds.append((look.page, time.monotonic() - started))
        self.answered()
        if missing := look.missing(labels, parts):
            self.wrong.append(missing)

    def look(self) -> Look:
        """Choose the next view to request."""
        answered = self.random.choice(self.random.choice(self.sources))
        asked = {"set": answered.case_key, "model": answered.model}
        if not self.first and self.random.random() < OTHERS:
            page = self.random.choice(list(OTHER_PAGES))
            label = answered.label if page == COMPARE else ""
            has_part = page != TRADE_OFF or answered.has_trade_off
            return Look(page, asked, label, "", "", OTHER_PAGES[page] if has_part else "")
        subtype = self.random.choice(sorted(answered.counts))
        counts = answered.counts[subtype]
        outcome = self.random.choice(sorted(name for name, number in counts.items() if number))
        asked |= {"kind": answered.kind, "outcome": outcome, "sort": self.random.choice(SORTS)}
        asked |= {"type": subtype} if subtype else {}
        asked |= {"page": str(self.random.randint(1, 3))} if counts[outcome] > 180 else {}
        note = f" of {counts['all']:,}"
        if outcome != "fooled":
            note = f"{counts['fooled']:,}{note} believed"
        return Look(EXPLORE, asked, answered.label, f"{counts[outcome]:,} ", note, "")


def answered_sets(store: Store) -> list[Answered]:
    """Return every model and question set whose first kind can fool a model, with the counts that a page must show."""
    every = []
    for asked in views.runs.question_sets(store).itertuples():
        first = next(iter(views.runs.kinds(asked.probe)))
        if first in movement_kinds():
            continue
        has_trade_off = presentations()[asked.probe].trade_off is not None
        runs = views.runs.question_set(store, asked.case_key).runs
        labels = distinct({run.model: model_name(run.model) for run in runs})
        for run in runs:
            table = pq.read_table(
                store.files([run.key], "scores")[0], columns=["kind", "subtype", "margin"]
            ).to_pandas()
            table = table[table["kind"] == first]
            counts = {"": counted(table["margin"])}
            if table["subtype"].nunique() > 1:
                counts |= {
                    name: counted(margin)
                    for name, margin in table.groupby("subtype")["margin"]
                    if name
                }
            if len(table):
                every.append(
                    Answered(
                        asked.case_key,
                        run.model,
                        labels[run.model],
                        first,
                        run.shipped,
                        has_trade_off,
                        counts,
                    )
                )
    return every


def counted(margin: pd.Series) -> Counts:
    """Count the cases with each outcome."""
    passing = {"fooled": margin <= 0, "tied": margin == 0, "held": margin > 0}
    return {name: int(has.sum()) for name, has in passing.items()} | {"all": len(margin)}


async def run(
    address: str, process: psutil.Process, sets: list[Answered], given: argparse.Namespace
) -> tuple[list[Session], list[tuple[float, float, float]]]:
    """Run all sessions at once. Also return the time, server memory (MiB) and load, from the first pages on."""
    sessions = [Session(address, number, sets, given.sessions) for number in range(given.sessions)]
    until = time.monotonic() + 60 * given.minutes
    seen: list[tuple[float, float, float]] = []

    async def watch() -> None:
        while True:
            if Session.opened > given.sessions:
                seen.append(
                    (time.monotonic(), process.memory_info().rss / 2**20, os.getloadavg()[0])
                )
            await asyncio.sleep(WATCHED)

    watching = asyncio.create_task(watch())
    visits = asyncio.gather(*(session.visit(until, given.think) for session in sessions))
    try:
        await asyncio.wait_for(visits, 60 * given.minutes + 3 * PATIENCE)
    except TimeoutError:
        print("The sessions did not end in time and were cut off.", file=sys.stderr)
    watching.cancel()
    return sessions, seen


def main() -> None:
    """Read the command line, and fill a cache unless one is given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--sessions", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=2)
    parser.add_argument(
        "--think",
        type=float,
        default=15,
        help="seconds between two changes of a session, on average",
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if not given.cache:
            given.cache = Path(folder) / "cache"
            fill(Path(folder), CASES)
        measure(given)


def measure(given: argparse.Namespace) -> None:
    """Start the server, run the sessions, and print the results."""
    store = StoreAboveShipped(given.cache, shipped.FOLDER)
    sets = answered_sets(store)
    port = free_port()
    address = f"127.0.0.1:{port}"
    with serving(store.root, port, "--read-only") as process:
        warm = Session(address, 0, sets)
        asyncio.run(warm.visit(time.monotonic(), 0.1))
        before, own = sum(process.cpu_times()[:2]), time.process_time()
        sessions, seen = asyncio.run(run(address, process, sets, given))
        spent, own = sum(process.cpu_times()[:2]) - before, time.process_time() - own
    answers = sum(session.answers for session in sessions)
    wrong = [line for session in [warm, *sessions] for line in session.wrong]
    seconds = [one for session in sessions for one in session.seconds]
    if not seconds:
        sys.exit(
            "Nothing was changed after all sessions had a page. Give more --minutes.\n"
            + "\n".join(wrong[:5])
        )
    when, memory, load = np.array(seen).T
    print(
        f"rows            {sum(run['n_cases'] for run in store.runs()):,} scores, {len(sets)} models x question sets"
    )
    print(
        f"sessions        {given.sessions}, {given.minutes:g} minutes, a change every {given.think:g} s each"
    )
    print(f"changes         {len(seconds):,}, {len(seconds) / (when[-1] - when[0]):.1f} a second")
    print_seconds("all changes", [took for _, took in seconds])
    for page in (EXPLORE, *OTHER_PAGES):
        print_seconds(page or "home", [took for name, took in seconds if name == page])
    print(
        f"CPU a change    server {spent / answers:.3f} s, sessions {own / answers:.3f} s, first pages included"
    )
    print_memory((when - when[0]) / 60, memory)
    print(
        f"load average    {load.mean():.1f} on average, {load.max():.1f} at most, on {os.cpu_count()} cores"
    )
    print(f"wrong answers   {len(wrong)}" + "".join(f"\n  {line}" for line in wrong[:5]))


def print_seconds(name: str, seconds: list[float]) -> None:
    """Print a line with the quantiles of the seconds that changes took."""
    if seconds:
        p50, p95, p99, slowest = np.quantile(seconds, [0.5, 0.95, 0.99, 1])
        print(
            f"{name:16}p50 {p50:.2f} s   p95 {p95:.2f} s   p99 {p99:.2f} s   slowest {slowest:.2f} s"
        )


def print_memory(minutes: np.ndarray, memory: np.ndarray) -> None:
    """Print the mean memory in every minute, and the growth from minute SETTLED to the last minute."""
    by_minute = [memory[minutes.astype(int) == minute].mean() for minute in range(int(minutes[-1]))]
    if not by_minute:
        by_minute = [memory.mean()]
    print(
        "server memory   "
        + " ".join(f"{mean:,.0f}" for mean in by_minute)
        + " MiB, mean of each minute"
    )
    if len(by_minute) > SETTLED:
        grown = by_minute[-1] / by_minute[SETTLED] - 1
        print(f"                {100 * grown:+.1f} % from minute {SETTLED} to the end")


if __name__ == "__main__":
    main()
