"""Case generation in chunks of items. With many items, several processes share the work; the result is the same,
byte for byte.

Each of n processes makes every n-th chunk and writes it to a pipe. Pipes buffer little, so each process is
at most one chunk ahead of the reader, and ends when the reader ends.
"""

import contextlib
import functools
import gc
import os
import pickle
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from vlprobe.errors import InvalidInput, JobFailed, VlprobeError
from vlprobe.runs import processes
from vlprobe.types import Case, Item, Probe, Run

CHUNK_ITEMS = 200  # items whose questions are in memory at once while they are made
PAYS = 3.0  # seconds of work from which on several processes are started: they take half a second to start
COLUMNS = pa.schema(
    [
        ("id", pa.string()),
        ("item", pa.string()),
        ("item_code", pa.int32()),
        # The resampling unit; question sets from before there were clusters lack it
        ("cluster", pa.string()),
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
# The questions, and how many were dropped for each reason
Chunk = tuple[pa.RecordBatch, Mapping[str, int]]


def chunks(
    items: Sequence[Item], probe: Probe, run: Run, workers: int
) -> Generator[Chunk, None, None]:
    """Yield the cases for all items in order, CHUNK_ITEMS items at a time.

    The processes run until the generator is exhausted or closed.

    Args:
        workers: The maximum number of processes; the duration of the first chunk decides whether
            more than one is worthwhile. If the probe loads models, this process makes all cases.

    Raises:
        JobFailed: a worker process was killed. After any other failure in a worker, this process repeats the
            work and raises the same error.
    """
    starts = range(0, len(items), CHUNK_ITEMS)
    make = functools.partial(
        _make_chunk, probe.for_items(items, run.options), dict(run.options), run.seed
    )
    can_share = type(probe).__module__.startswith("vlprobe.") and not probe.loads_models(
        run.options
    )
    began = time.perf_counter()
    for number, start in enumerate(starts):
        chunk = make(items[start : start + CHUNK_ITEMS], start)
        remaining = starts[number + 1 :]
        n_processes = min(workers, os.cpu_count() or 1, len(remaining))
        expected_seconds = (time.perf_counter() - began) * len(remaining)
        yield chunk
        if not number and n_processes > 1 and expected_seconds > PAYS and can_share:
            yield from _shared(items, make, remaining, n_processes)
            return


def _make_chunk(
    probe: Probe, options: Mapping[str, object], seed: int, items: Sequence[Item], first_code: int
) -> Chunk:
    """Return the cases for a chunk of items; `first_code` is the code of the first item."""
    cases: list[Case] = []
    item_rows: list[int] = []  # for each case, the row of its item in the chunk
    dropped: Counter[str] = Counter()
    for row, item in enumerate(items):
        cases_of_item, dropped_of_item = probe.cases(item, options, seed)
        if not all(isinstance(case, Case) for case in cases_of_item):
            raise InvalidInput(f"Probe '{probe.name}' must yield vlprobe.types.Case objects.")
        cases += cases_of_item
        item_rows += [row] * len(cases_of_item)
        dropped.update(dropped_of_item)
    return _batch(items, item_rows, cases, first_code), dropped


def _batch(
    items: Sequence[Item], item_rows: Sequence[int], cases: Sequence[Case], first_code: int
) -> pa.RecordBatch:
    names = {picture: picture.name for case in cases for picture in case.images}
    # Names and tags are made once per item, not once per case
    item_row = pa.array(item_rows, pa.int32())
    columns = {
        "id": [case.id for case in cases],
        "item": pa.array([item.id for item in items], pa.string()).take(item_row),
        "item_code": pa.array(np.asarray(item_rows, dtype=np.int32) + np.int32(first_code)),
        "cluster": pa.array([item.unit for item in items], pa.string()).take(item_row),
        "group": [case.group for case in cases],
        "kind": [case.edit.kind for case in cases],
        "subtype": [case.edit.subtype for case in cases],
        "rule": [case.edit.rule for case in cases],
        "source": [case.edit.source for case in cases],
        "target": [case.edit.target for case in cases],
        "images": [[names[picture] for picture in case.images] for case in cases],
        "texts": [case.texts for case in cases],
        "roles": [case.roles for case in cases],
        "tags": pa.array(
            [list(item.tags.items()) for item in items], COLUMNS.field("tags").type
        ).take(item_row),
    }
    return pa.RecordBatch.from_pydict(columns, schema=COLUMNS)


def _shared(
    items: Sequence[Item], make: functools.partial, starts: Sequence[int], workers: int
) -> Iterator[Chunk]:
    """Yield the chunks that start at the given items, in order. Of n processes, each makes every n-th chunk."""
    with contextlib.ExitStack() as stack:
        processes_started = [_start(stack) for _ in range(workers)]
        for number, process in enumerate(processes_started):
            share = [
                (items[start : start + CHUNK_ITEMS], start) for start in starts[number::workers]
            ]
            assert process.stdin  # a pipe
            # The process ended, which is noticed when its first chunk is read
            with contextlib.suppress(BrokenPipeError):
                pickle.dump((make, share), process.stdin)
                process.stdin.close()
        sources = [_received(process) for process in processes_started]
        for number, start in enumerate(starts):
            yield next(sources[number % workers], None) or make(
                items[start : start + CHUNK_ITEMS], start
            )


def _start(stack: contextlib.ExitStack) -> subprocess.Popen[bytes]:
    """Start a process that waits for its share of the work. It is killed when the stack is closed."""
    try:
        process = processes.start(
            "vlprobe.runs.case_workers", stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
    except OSError as error:
        raise JobFailed(
            f"Cannot start a worker process ({error.strerror}). Try a lower --workers value."
        ) from None
    stack.callback(_end, process)
    return process


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    with contextlib.suppress(BrokenPipeError), process:  # closes the pipes and waits
        pass


def _received(process: subprocess.Popen[bytes]) -> Iterator[Chunk]:
    """Yield the chunks from a process until it has no more or fails. Raises JobFailed if it was killed."""
    assert process.stdout  # a pipe
    with contextlib.suppress(EOFError, pickle.UnpicklingError, OSError):
        while True:
            yield pickle.load(process.stdout)
    if process.wait() < 0:
        raise JobFailed(
            f"A worker process was killed (signal {-process.returncode}), perhaps because "
            "memory ran out. Close other programs, or try a lower --workers value."
        )


def work() -> None:
    """Generate the cases assigned to one process (main function of the worker process)."""
    # The buffer repeats short writes, as after SIGSTOP and SIGCONT
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not disturb the chunks
    try:
        _send_chunks(sys.stdin.buffer, out)
    except (VlprobeError, EOFError, BrokenPipeError):
        with contextlib.suppress(BrokenPipeError):
            out.close()  # nothing may be left to write at the exit if the parent has ended
        sys.exit(1)  # the parent repeats the failure itself, or has ended


def _send_chunks(source: BinaryIO, out: BinaryIO) -> None:
    make, share = pickle.load(source)
    gc.freeze()  # the collector need not look at the items again
    for items, start in share:
        pickle.dump(make(items, start), out)
        out.flush()


if __name__ == "__main__":
    work()
