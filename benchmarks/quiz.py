"""A class in one room of the quiz: how long a vote takes, and how soon everybody sees the answer.

    python benchmarks/quiz.py [--voters 100] [--questions 5] [--cache CACHE]

Starts a dashboard with `--quiz` on loopback, on the shipped results or on CACHE. One visitor opens a room; the others
join by its code. Each is what a browser is to the server: a websocket that looks at the room every moment, as the page
does, and votes once a question, within a few seconds of seeing it. When all have voted the host turns the question
over. A vote is timed from its message to the end of the script's run; an answer from the host's press until a voter
has it. Every vote must be counted once, and the truth must not have been sent to anybody before. Nothing but 127.0.0.1
is talked to, and no browser draws.
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
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import websockets
from servers import free_port, serving
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

PATIENCE = 120  # seconds
THINKING = 3.0  # seconds that a voter takes at most
LOOK = 1.5  # seconds between two looks, as the page has it
GOAL = 1.0  # seconds of a vote, at the 95th percentile
OPEN_HEADING = "Which caption is true?"


@dataclass
class Visitor:
    """One browser tab."""

    address: str
    query: str
    number: int
    page: str = ""
    fragment: str = ""
    component: str = ""
    buttons: dict[str, str] = field(default_factory=dict)  # widget by label
    told: dict = field(default_factory=dict)  # what the component has
    n_bytes: int = 0
    wrong: list[str] = field(default_factory=list)
    votes: list[float] = field(default_factory=list)  # seconds
    answers: list[float] = field(default_factory=list)  # seconds from the host's press
    cached: set[str] = field(default_factory=set)  # hashes of messages that a browser keeps

    async def connect(self) -> None:
        """Opens the websocket."""
        self.socket = await websockets.connect(
            f"ws://{self.address}/_stcore/stream",
            subprotocols=["streamlit"],
            origin=f"http://{self.address}",
            max_size=None,
            open_timeout=PATIENCE,
        )

    async def send(
        self, pressed: str = "", event: str = "", value: object = None, look: bool = False
    ) -> None:
        """Runs the page, a press of a button, or the fragment after what the component sent."""
        message = BackMsg()
        rerun = message.rerun_script
        rerun.query_string, rerun.page_name, rerun.page_script_hash = self.query, "play", self.page
        rerun.cached_message_hashes.extend(self.cached)
        if pressed:
            rerun.widget_states.widgets.add(id=self.buttons[pressed], trigger_value=True)
        if event:
            sent = json.dumps([{"event": event, "value": value}])
            events = f"$$STREAMLIT_INTERNAL_KEY_{self.component}__events"
            rerun.widget_states.widgets.add(id=events, json_trigger_value=sent)
        if event or look:
            rerun.fragment_id, rerun.is_auto_rerun = self.fragment, look
        await self.socket.send(message.SerializeToString())
        await asyncio.wait_for(self.read(), PATIENCE)

    async def read(self) -> None:
        """All that the server says until the run is over."""
        while True:
            content = await self.socket.recv()
            self.n_bytes += len(content)
            message = ForwardMsg.FromString(content)
            kind = message.WhichOneof("type")
            if message.metadata.cacheable:
                self.cached.add(message.hash)
            if kind == "ref_hash":
                continue  # the browser has it already
            if kind == "navigation":
                self.page = message.navigation.page_script_hash
            elif kind == "page_info_changed":
                self.query = message.page_info_changed.query_string
            elif kind == "delta":
                self.take(message)
            elif kind == "script_finished" and (
                message.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN
            ):
                return

    def take(self, message: ForwardMsg) -> None:
        """What an element says that matters here."""
        element = message.delta.new_element
        kind = element.WhichOneof("type")
        if kind == "exception":
            self.wrong.append(element.exception.message)
        elif kind == "alert" and element.alert.body:
            self.wrong.append(element.alert.body)
        elif kind == "button":
            self.buttons[element.button.label] = element.button.id
        elif kind == "bidi_component":
            self.component = element.bidi_component.id
            self.fragment = message.delta.fragment_id or self.fragment
            self.told = json.loads(element.bidi_component.json or element.bidi_component.mixed.json)
            is_told = any(caption["state"] for caption in self.told["captions"])
            if is_told and self.told["heading"] == OPEN_HEADING:
                self.wrong.append("the truth was sent before it was told")


@dataclass
class Class:
    """Everybody in the room."""

    host: Visitor
    voters: list[Visitor]
    turned_over: float = 0.0  # when the host pressed
    question: int = -1

    async def lesson(self, n_questions: int) -> None:
        """One question after the other, led by the host."""
        looking = [asyncio.create_task(self.take_part(voter)) for voter in self.voters]
        for number in range(n_questions):
            self.question = number
            while sum(len(voter.votes) > number for voter in self.voters) < len(self.voters):
                await asyncio.sleep(0.1)
            self.turned_over = time.monotonic()
            await self.host.send(event="next", value=number)
            if self.host.told["next"] == "Turn over":
                self.host.wrong.append("the question was not turned over")
            while sum(len(voter.answers) > number for voter in self.voters) < len(self.voters):
                await asyncio.sleep(0.1)
            await self.host.send(event="next", value=number)
        for task in looking:
            task.cancel()

    async def take_part(self, voter: Visitor) -> None:
        """Looks at the room every moment, votes on each question, and notes when it was told."""
        generator = random.Random(voter.number)
        await asyncio.sleep(generator.uniform(0, LOOK))
        while True:
            number = voter.told["question"]
            if voter.told["open"] and len(voter.votes) == number:
                await asyncio.sleep(generator.uniform(0, THINKING))
                started = time.monotonic()
                vote = {"question": number, "caption": generator.randrange(2)}
                await voter.send(event="vote", value=vote)
                voter.votes.append(time.monotonic() - started)
                if voter.told["heading"] != "Your vote is in.":
                    voter.wrong.append(f"after a vote: {voter.told['heading']}")
            started = time.monotonic()
            await voter.send(look=True)
            is_told = voter.told["heading"].startswith(("Right", "Wrong"))
            if is_told and len(voter.answers) == self.question:
                voter.answers.append(time.monotonic() - self.turned_over)
            await asyncio.sleep(max(0.0, LOOK - (time.monotonic() - started)))


async def measure(address: str, n_voters: int, n_questions: int) -> Class:
    """A room with so many people in it, and so many questions."""
    host = Visitor(address, "round=1&quiz=fair", -1)
    await host.connect()
    await host.send()
    await host.send(pressed="Open a room")
    code = urllib.parse.parse_qs(host.query)["room"][0]
    voters = [Visitor(address, f"room={code}", number) for number in range(n_voters)]
    for voter in voters:  # a class arrives one by one
        await voter.connect()
        await voter.send()
    together = Class(host, voters)
    await together.lesson(n_questions)
    await host.send(look=True)
    return together


def main() -> None:
    """Reads the command line, runs the class, prints what was seen."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--voters", type=int, default=100)
    parser.add_argument("--questions", type=int, default=5)
    parser.add_argument("--cache", type=Path)
    given = parser.parse_args()
    port = free_port()
    address = f"127.0.0.1:{port}"
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(given.cache or Path(folder), port, "--quiz") as process,
    ):
        started, before = time.monotonic(), sum(process.cpu_times()[:2])
        together = asyncio.run(measure(address, given.voters, given.questions))
        seconds, spent = time.monotonic() - started, sum(process.cpu_times()[:2]) - before
        memory = process.memory_info().rss / 2**20
    voters = together.voters
    wrong = [line for visitor in [together.host, *voters] for line in visitor.wrong]
    votes = np.array([second for voter in voters for second in voter.votes])
    answers = np.array([second for voter in voters for second in voter.answers])
    expected = given.voters * given.questions
    for name, values in (("vote", votes), ("answer", answers)):
        told = np.quantile(values, [0.5, 0.95, 1])
        print(f"{name:8} p50 {told[0]:.2f} s   p95 {told[1]:.2f} s   slowest {told[2]:.2f} s")
    n_bytes = sum(voter.n_bytes for voter in voters) / len(voters) / given.questions
    print(
        f"votes    {len(votes)} of {expected}; sent to a voter for each question: {n_bytes / 1e3:,.0f} kB"
    )
    print(
        f"server   {spent / seconds:.0%} of a core, {memory:,.0f} MiB; load {os.getloadavg()[0]:.1f}"
    )
    print("\n".join(dict.fromkeys(wrong[:10])) or "nothing was wrong")
    if wrong or len(votes) != expected:
        sys.exit(1)


if __name__ == "__main__":
    main()
