"""Many people at once on one dashboard: how long a changed filter takes, whether memory grows, whether answers mix.

    python benchmarks/load.py [--cache CACHE] [--sessions 50] [--minutes 2] [--think 15]

Starts a dashboard on loopback, on a cache of 12 million made-up answers as `benchmarks/store.py` makes it, or on CACHE.
Each session is what a browser is to the server: a websocket that opens the Failures page and then, with pauses of
`--think` seconds on average, asks for it again with another model, outcome, sort and page. A change takes from the
message that is sent to the end of the script's run, and counts once all sessions have their first page. Every answer is
checked: its sentence must name the model that this session asked for, and give the number of cases that the view gives.

Nothing but 127.0.0.1 is talked to. Pictures are not fetched, and no browser draws: this is the server's part.
"""

import argparse
import asyncio
import itertools
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
from pathlib import Path

import numpy as np
import psutil
import websockets
from store import CASES, fill
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from vlprobe import views
from vlprobe.store import Store

ROOT = Path(__file__).resolve().parent.parent
SORTS = ("worst", "closest", "best", "dataset")


class Session:
    """One visitor: its own websocket, its own questions."""

    opened = 0  # how many have their first page

    def __init__(self, address: str, number: int, sets: list[tuple[str, str, dict]], of: int = 1) -> None:
        self.of = of
        self.address, self.sets, self.page = address, sets, ""
        self.random = random.Random(number)
        self.seconds: list[float] = []
        self.wrong: list[str] = []

    async def visit(self, until: float, think: float) -> None:
        """Opens the page and changes its filters until the time is over."""
        await asyncio.sleep(self.random.uniform(0, think))
        async with websockets.connect(
            f"ws://{self.address}/_stcore/stream",
            subprotocols=["streamlit"],
            origin=f"http://{self.address}",
            max_size=None,
            open_timeout=60,
        ) as socket_:
            first = True
            while first or time.monotonic() < until:
                await self.change(socket_, first)
                first = False
                await asyncio.sleep(self.random.expovariate(1 / think))

    async def change(self, socket_, first: bool) -> None:
        """Asks for another view, and reads the answer to its end."""
        key, model, counts = self.random.choice(self.sets)
        outcome = self.random.choice(sorted(counts))
        asked = {"set": key, "model": model, "outcome": outcome, "sort": self.random.choice(SORTS)}
        if counts[outcome] > 36:
            asked["page"] = str(self.random.randint(1, 3))
        message = BackMsg()
        message.rerun_script.query_string = urllib.parse.urlencode(asked)
        message.rerun_script.page_name = "failures"
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
            elif kind == "script_finished":
                break
        if first:
            Session.opened += 1
        elif Session.opened > self.of:  # one more than there are sessions: the one that warms the server
            self.seconds.append(time.monotonic() - started)
        expected = f"{model} was fooled **{counts['fooled']:,}** times of **{counts['all']:,}**"
        if expected not in said:
            self.wrong.append(f"asked {asked}, and not told '{expected}'")


def questions(store: Store) -> list[tuple[str, str, dict]]:
    """Question set, model and the counts that its page must show, for every run of flips or comparisons."""
    found = []
    for asked in views.question_sets(store).itertuples():
        first = next(iter(views.kinds(asked.probe)))
        for model in asked.models:
            counts = views.outcomes(store, asked.case_key, views.Filter(model, kind=first))
            if counts["all"] and first not in ("paraphrase", "ranking"):
                found.append((asked.case_key, model, {name: n for name, n in counts.items() if n}))
    return found


async def run(address: str, process: psutil.Process, sets: list, given: argparse.Namespace) -> tuple[list, list]:
    """All sessions at once; the server's resident memory twice a second."""
    sessions = [Session(address, number, sets, given.sessions) for number in range(given.sessions)]
    until = time.monotonic() + 60 * given.minutes
    memory: list[tuple[float, float]] = []

    async def watch() -> None:
        for _ in itertools.count():
            memory.append((time.monotonic(), process.memory_info().rss / 2**20))
            await asyncio.sleep(0.5)

    watching = asyncio.create_task(watch())
    await asyncio.gather(*(session.visit(until, given.think) for session in sessions))
    watching.cancel()
    return sessions, memory


def main() -> None:
    """Reads the command line, and makes a cache unless one is given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--sessions", type=int, default=50)
    parser.add_argument("--minutes", type=float, default=2)
    parser.add_argument("--think", type=float, default=15, help="seconds between two changes of a session, on average")
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
        while not re.search("LISTEN", str(psutil.Process(server.pid).net_connections())):
            time.sleep(0.2)
        warm = Session(address, 0, sets)
        asyncio.run(warm.visit(time.monotonic(), 0.1))
        before = sum(psutil.Process(server.pid).cpu_times()[:2])
        sessions, memory = asyncio.run(run(address, psutil.Process(server.pid), sets, given))
        spent = sum(psutil.Process(server.pid).cpu_times()[:2]) - before
    finally:
        server.terminate()
        server.wait()
    seconds = np.array([one for session in sessions for one in session.seconds])
    wrong = [line for session in sessions for line in session.wrong]
    told = np.quantile(seconds, [0.5, 0.95, 0.99])
    thirds = np.array_split(np.array([mebibytes for _, mebibytes in memory]), 3)
    print(f"rows            {sum(run['n_cases'] for run in store.runs()):,} scores, {len(sets)} models x question sets")
    print(f"sessions        {given.sessions}, {given.minutes:g} minutes, a change every {given.think:g} s each")
    print(f"server          {spent / max(len(seconds), 1):.2f} CPU s a change, first pages included")
    print(f"changes         {len(seconds):,}, {len(seconds) / (60 * given.minutes):.1f} a second")
    print(f"filter change   p50 {told[0]:.2f} s   p95 {told[1]:.2f} s   p99 {told[2]:.2f} s")
    print("server memory   " + "   ".join(f"{part.mean():,.0f} MiB" for part in thirds) + "   (mean of each third)")
    print(f"wrong answers   {len(wrong)}" + "".join(f"\n  {line}" for line in wrong[:5]))


if __name__ == "__main__":
    main()
