"""Questions made a chunk of items at a time, by several processes where there are many: the same to the byte.

Each process is told its share, every n-th chunk, when it starts, and writes what it makes to a pipe. A pipe holds
little, so that each is one chunk ahead of who reads; and when who reads is gone, so is the pipe, and the process.
"""

import contextlib
import functools
import gc
import json
import os
import pickle
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import BinaryIO

import pyarrow as pa

from vlprobe.errors import JobFailed, VlprobeError
from vlprobe.runs import processes
from vlprobe.types import Case, Item, Probe, Run

CHUNK_ITEMS = 200  # items whose questions are in memory while they are made
PAYS = 3.0  # seconds of work from which on several processes are started: they take half a second to start
COLUMNS = pa.schema(
    [
        ("id", pa.string()),
        ("item", pa.string()),
        ("item_code", pa.int32()),
        ("cluster", pa.string()),  # the unit of resampling; sets written before there were clusters lack it
        ("group", pa.string()),
        ("kind", pa.string()),
        ("subtype", pa.string()),
        ("rule", pa.string()),
        ("source", pa.string()),
        ("target", pa.string()),
        ("images", pa.list_(pa.string())),
        ("texts", pa.list_(pa.string())),
        ("roles", pa.list_(pa.string())),
        ("tags", pa.map_(pa.string(), pa.string())),
    ]
)
Chunk = tuple[pa.RecordBatch, Mapping[str, int]]  # the questions, and how many were dropped for each reason


def chunks(items: Sequence[Item], probe: Probe, run: Run, workers: int) -> Iterator[Chunk]:
    """The questions of all items, CHUNK_ITEMS at a time and in their order.

    Close it, or leave it at its end: until then its processes are there.

    Args:
        items: Of the dataset.
        probe: Which asks.
        run: Its options and seed.
        workers: Processes at most; the first chunk tells whether more than this one are of use. Where the probe asks
            models, this one makes them all.

    Raises:
        JobFailed: one of the processes was killed. What else fails there fails here again, with the same error.
    """
    starts = range(0, len(items), CHUNK_ITEMS)
    make = functools.partial(_made, probe.for_items(items, run.options), dict(run.options), run.seed)
    shares = type(probe).__module__.startswith("vlprobe.") and not probe.loads_models(run.options)
    began = time.perf_counter()
    for number, start in enumerate(starts):
        made = make(items[start : start + CHUNK_ITEMS], start)
        left = starts[number + 1 :]
        several = min(workers, os.cpu_count() or 1, len(left))
        expected = (time.perf_counter() - began) * len(left)
        yield made
        if not number and several > 1 and expected > PAYS and shares:
            yield from _shared(items, make, left, several)
            return


def _made(probe: Probe, options: Mapping[str, object], seed: int, items: Sequence[Item], first: int) -> Chunk:
    cases: list[Case] = []
    of_item: list[int] = []  # the place of each case's item in the chunk
    dropped: Counter[str] = Counter()
    for place, item in enumerate(items):
        made, lost = probe.cases(item, options, seed)
        cases += made
        of_item += [place] * len(made)
        dropped.update(lost)
    return _batch(items, of_item, cases, first), dropped


def _batch(items: Sequence[Item], of_item: Sequence[int], cases: Sequence[Case], first: int) -> pa.RecordBatch:
    names = {picture: picture.name for case in cases for picture in case.images}
    item = pa.array(of_item, pa.int32())  # a name and a tag are made once an item, and not once a case
    columns = {
        "id": [case.id for case in cases],
        "item": pa.array([item.id for item in items], pa.string()).take(item),
        "item_code": pa.compute.add(item, pa.scalar(first, pa.int32())),
        "cluster": pa.array([item.unit for item in items], pa.string()).take(item),
        "group": [case.group for case in cases],
        "kind": [case.edit.kind for case in cases],
        "subtype": [case.edit.subtype for case in cases],
        "rule": [case.edit.rule for case in cases],
        "source": [case.edit.source for case in cases],
        "target": [case.edit.target for case in cases],
        "images": [[names[picture] for picture in case.images] for case in cases],
        "texts": [case.texts for case in cases],
        "roles": [case.roles for case in cases],
        "tags": pa.array([list(item.tags.items()) for item in items], COLUMNS.field("tags").type).take(item),
    }
    return pa.RecordBatch.from_pydict(columns, schema=COLUMNS)


def _shared(items: Sequence[Item], make: functools.partial, starts: Sequence[int], workers: int) -> Iterator[Chunk]:
    with contextlib.ExitStack() as stack:
        started = [_started(stack) for _ in range(workers)]
        for number, process in enumerate(started):
            share = [(items[start : start + CHUNK_ITEMS], start) for start in starts[number::workers]]
            with contextlib.suppress(BrokenPipeError):  # it is gone, which is found when it is asked for its first
                pickle.dump((make, share), process.stdin)
                process.stdin.close()
        sources = [_received(process) for process in started]
        for number, start in enumerate(starts):
            yield next(sources[number % workers], None) or make(items[start : start + CHUNK_ITEMS], start)


def _started(stack: contextlib.ExitStack) -> subprocess.Popen:
    # In a session of its own, so that an interrupt at the terminal reaches its maker alone.
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    try:
        process = processes.start("vlprobe.runs.case_workers", **pipes, start_new_session=True)
    except OSError as error:
        raise JobFailed(f"No process could be started to make edits ({error.strerror}). Use fewer --workers.") from None
    stack.callback(_ended, process)
    return process


def _ended(process: subprocess.Popen) -> None:
    process.kill()
    process.wait()
    process.stdout.close()
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()


def _received(process: subprocess.Popen) -> Iterator[Chunk]:
    """What a process makes, until it has no more or fails; raises JobFailed where it was killed."""
    with contextlib.suppress(pa.ArrowInvalid, OSError), pa.ipc.open_stream(process.stdout) as reader:
        while True:
            try:
                batch, told = reader.read_next_batch_with_custom_metadata()
            except StopIteration:
                break
            yield batch, json.loads(told["dropped"])
    if process.wait() < 0:
        raise JobFailed(
            f"A process that makes edits was killed (signal {-process.returncode}), perhaps for want of memory. "
            "Close what else runs here, or start it again with fewer --workers."
        )


def work() -> None:
    """Makes one process's share: what this module is when it is run."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing that prints disturbs what is sent
    try:
        _sent(sys.stdin.buffer, out)
    except (VlprobeError, EOFError, BrokenPipeError):  # it fails where this process was started, or nobody is there
        os._exit(1)


def _sent(given: BinaryIO, out: BinaryIO) -> None:
    make, share = pickle.load(given)
    gc.freeze()  # what is there stays there
    with pa.ipc.new_stream(out, COLUMNS) as writer:
        for items, start in share:
            batch, dropped = make(items, start)
            writer.write_batch(batch, custom_metadata={"dropped": json.dumps(dropped)})
            out.flush()


if __name__ == "__main__":
    work()
