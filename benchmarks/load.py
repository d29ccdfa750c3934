"""Many people at once on one dashboard: how long a changed filter takes, whether memory grows, whether answers mix.

    python benchmarks/load.py [--cache CACHE] [--sessions 50] [--minutes 2] [--think 15]

Starts a dashboard on loopback, on a cache of 12 million made-up answers as `benchmarks/store.py` makes it, or on CACHE.
Each session is what a browser is to the server: a websocket that opens the Failures page and then, with pauses of
`--think` seconds on average, asks for it again with another model, type of edit, outcome, order and page. A change is
timed from the message that is sent to the end of the script's run, once all sessions have their first page. Every
answer is checked: its sentence must name the model that this session asked for, and give its number of cases, counted
here from the files without the package's views. No answer within a minute is a wrong one; the session comes again, but
not after ten wrong ones.

Nothing but 127.0.0.1 is talked to. Pictures are not fetched, and no browser draws: this is the server's part. The
sessions share the machine with the server; what they take of it is printed.
"""

import argparse
import asyncio
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import pyarrow.parquet as pq
import websockets
from store import CASES, fill
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from vlprobe import views
from vlprobe.storage.store import Store

ROOT = Path(__file__).resolve().parent.parent
SORTS = ("worst", "closest", "best", "dataset")
PATIENCE = 60  # seconds
WRONG = 10  # answers after which a session gives up
WATCHED = 0.5  # seconds between two looks at the server's memory
Counts = dict[
    str, dict[str, int]
]  # of each type of edit, and of all of them under "": cases by outcome


class Session:
    """One visitor: its own websocket, its own questions."""

    opened = 0  # sessions that were answered, or gave up waiting for their first page

    def __init__(
        self, address: str, number: int, sets: list[tuple[str, str, Counts]], of: int = 1
    ) -> None:
        self.address, self.sets, self.of, self.page = address, sets, of, ""
        self.random = random.Random(number)
        self.first = True
        self.answers = 0
        self.seconds: list[float] = []
        self.wrong: list[str] = []

    async def visit(self, until: float, think: float) -> None:
        """Opens the page and changes its filters until the time is over; comes again when the connection is lost."""
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
        """One more; the first one tells the others that they need not wait for this session any more."""
        Session.opened += self.first
        self.first = False
        self.answers += 1

    async def change(self, socket_) -> None:
        """Asks for another view, and reads the answer to its end."""
        asked, expected = self.question()
        message = BackMsg()
        message.rerun_script.query_string = urllib.parse.urlencode(asked)
        message.rerun_script.page_name = "explore"
        message.rerun_script.page_script_hash = self.page
        started = time.monotonic()
        await socket_.send(message.SerializeToString())
        said = ""
        while True:
            answer = ForwardMsg.FromString(await socket_.recv())
            kind = answer.WhichOneof("type")
            if kind == "navigation":
                self.page = answer.navigation.page_script_hash
            elif kind == "delta" and answer.delta.new_element.WhichOneof("type") == "markdown":
                said += answer.delta.new_element.markdown.body.replace("\\", "") + "\n"
            elif kind == "delta" and answer.delta.new_element.WhichOneof("type") == "exception":
                self.wrong.append(answer.delta.new_element.exception.message)
            elif kind == "script_finished" and (
                answer.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY  # not for a rerun
            ):
                break
        if (
            not self.first and Session.opened > self.of
        ):  # one more than there are: the one that warms the server
            self.seconds.append(time.monotonic() - started)
        self.answered()
        if expected not in said:
            self.wrong.append(f"asked {asked}, and not told '{expected}'")

    def question(self) -> tuple[dict[str, str], str]:
        """What an address says, and what the page must say to it."""
        key, model, counts = self.random.choice(self.sets)
        subtype = self.random.choice(sorted(counts))
        own = counts[subtype]
        outcome = self.random.choice(sorted(name for name, number in own.items() if number))
        asked = {"set": key, "model": model, "outcome": outcome, "sort": self.random.choice(SORTS)}
        asked |= {"type": subtype} if subtype else {}
        asked |= {"page": str(self.random.randint(1, 3))} if own[outcome] > 36 else {}
        return asked, f"{model} was fooled **{own['fooled']:,}** times of **{own['all']:,}**"


def questions(store: Store) -> list[tuple[str, str, Counts]]:
    """Question set, model and the counts that its page must show, for every run of flips or comparisons."""
    found = []
    for asked in views.runs.question_sets(store).itertuples():
        first = next(iter(views.runs.kinds(asked.probe)))
        if first in ("paraphrase", "ranking"):
            continue
        for run in views.runs.question_set(store, asked.case_key).runs:
            table = pq.read_table(
                store.files([run.key], "scores")[0], columns=["kind", "subtype", "margin"]
            ).to_pandas()
            table = table[table["kind"] == first]
            counts = {"": counted(table["margin"])}
            counts |= {
                name: counted(margin) for name, margin in table.groupby("subtype")["margin"] if name
            }
            if len(table):
                found.append((asked.case_key, run.model, counts))
    return found


def counted(margin: pd.Series) -> dict[str, int]:
    """How many cases have each outcome."""
    told = {"fooled": margin <= 0, "tied": margin == 0, "held": margin > 0}
    return {name: int(has.sum()) for name, has in told.items()} | {"all": len(margin)}


async def run(
    address: str, process: psutil.Process, sets: list, given: argparse.Namespace
) -> tuple[list[Session], list[tuple[float, float, float]]]:
    """All sessions at once; from the first pages on the time, the server's resident memory and the machine's load."""
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
    """Reads the command line, and makes a cache unless one is given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--sessions", type=int, default=50)
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
    """Starts the server, runs the sessions, prints what was seen."""
    store = Store(given.cache)
    sets = questions(store)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless", "true"]
    server = subprocess.Popen(
        [*command, "--server.port", address.rpartition(":")[2]],
        cwd=ROOT,
        env=os.environ | {"VLPROBE_CACHE": str(store.root)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        process = psutil.Process(server.pid)
        listening(process)
        warm = Session(address, 0, sets)
        asyncio.run(warm.visit(time.monotonic(), 0.1))
        before, own = sum(process.cpu_times()[:2]), time.process_time()
        sessions, seen = asyncio.run(run(address, process, sets, given))
        spent, own = sum(process.cpu_times()[:2]) - before, time.process_time() - own
    finally:
        server.terminate()
        server.wait()
    seconds = np.array([one for session in sessions for one in session.seconds])
    wrong = [line for session in [warm, *sessions] for line in session.wrong]
    if not len(seconds):
        sys.exit(
            "No filter was changed after all sessions had a page. Give more --minutes.\n"
            + "\n".join(wrong[:5])
        )
    told = np.quantile(seconds, [0.5, 0.95, 0.99, 1])
    when, memory, load = np.array(seen).T
    answers = sum(session.answers for session in sessions)
    print(
        f"rows            {sum(run['n_cases'] for run in store.runs()):,} scores, {len(sets)} models x question sets"
    )
    print(
        f"sessions        {given.sessions}, {given.minutes:g} minutes, a change every {given.think:g} s each"
    )
    print(f"changes         {len(seconds):,}, {len(seconds) / (when[-1] - when[0]):.1f} a second")
    print(
        "filter change   p50 {:.2f} s   p95 {:.2f} s   p99 {:.2f} s   slowest {:.2f} s".format(
            *told
        )
    )
    print(
        f"CPU a change    server {spent / answers:.3f} s, sessions {own / answers:.3f} s, first pages included"
    )
    parts = np.array_split(memory, 3)
    print(
        "server memory   "
        + "   ".join(f"{part.mean():,.0f} MiB" for part in parts)
        + "   (mean of each third)"
    )
    print(
        f"load average    {load.mean():.1f} on average, {load.max():.1f} at most, on {os.cpu_count()} cores"
    )
    print(f"wrong answers   {len(wrong)}" + "".join(f"\n  {line}" for line in wrong[:5]))


def listening(process: psutil.Process) -> None:
    """Until the server takes connections."""
    until = time.monotonic() + PATIENCE
    while not any(one.status == psutil.CONN_LISTEN for one in process.net_connections()):
        if time.monotonic() > until:
            sys.exit("The dashboard did not start.")
        time.sleep(0.2)


if __name__ == "__main__":
    main()
