"""Throughput against workers: `python benchmarks/scale.py [--workers N] [--model NAME] [--items N] [--repeats N]`.

The same questions answered by one process, then by 1, 2, ... workers of a Ray cluster on this machine, each with one
thread. Embeddings and answers are dropped in between; the questions are made once, before. "Start" ends with the first
finished part: it has the workers and their models in it, and the similarity spread. "Cases/s" is what follows, to the
last part; "all" is the whole run, judging included. The files of every run must be the same to the byte.
"""

import argparse
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import ray
import torch

from vlprobe.runs import answers, ray_cluster
from vlprobe.runs import questions as runs_questions
from vlprobe.runs.request import Progress, Request
from vlprobe.runs.run import execute
from vlprobe.storage.store import Store


class Clock(Progress):
    """When how many cases were scored, a part at a time."""

    def __init__(self, label: str, sizes: set[int]) -> None:
        self.label, self.sizes, self.seen = label, sizes, [(0.0, 0)]

    def update(self, label: str, done: float, total: float) -> None:
        """Keeps each rise by the size of a part."""
        if label == self.label and done - self.seen[-1][1] in self.sizes:
            self.seen.append((time.perf_counter(), int(done)))


def measured(request: Request, store: Store) -> tuple[float, float, float, dict[str, str]]:
    """Seconds until the first part, cases/s from there, seconds in all, and the checksums of what was written."""
    for folder in ("runs", "embeddings"):
        shutil.rmtree(store.root / folder, ignore_errors=True)
    cases = store.cases(next((store.root / "cases").iterdir()).name)
    sizes = {last - first for first, last in runs_questions.part_ranges(cases, answers.PART_CASES)}
    if len(runs_questions.part_ranges(cases, answers.PART_CASES)) < 2:
        raise SystemExit(
            f"All cases are one part of {answers.PART_CASES}, which tells no rate. Raise --items or lower --part."
        )
    clock = Clock(f"{request.models[0]} on {request.dataset}", sizes)
    started = time.perf_counter()
    manifest = execute(request, store, clock)[0]
    whole = time.perf_counter() - started
    (first, done), (last, total) = clock.seen[1], clock.seen[-1]
    return (
        first - started,
        (total - done) / (last - first),
        whole,
        {f["name"]: f["sha256"] for f in manifest["files"]},
    )


def main() -> None:
    """Prints a line for this process and one for each number of workers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--model", default="demo:softmax")
    parser.add_argument("--probe", default="lgip")
    parser.add_argument("--items", type=int, default=100)
    parser.add_argument("--part", type=int, default=256, help="cases of a part")
    parser.add_argument("--repeats", type=int, default=1)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    answers.PART_CASES = asked.part
    own = {
        "dataset": "demo",
        "probe": asked.probe,
        "limit": asked.items,
        "examine": False,
        "workers": 1,
    }
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        questions = execute(Request(("control:random",), **own), store)[0]
        print(
            f"{asked.model}, {asked.probe}: {questions['n_items']:,} items, {questions['n_cases']:,} cases"
        )
        print(f"{'':>12} {'start, s':>9} {'cases/s':>9} {'ratio':>6} {'all, s':>7}")
        alone = 0.0
        expected: dict[str, str] = {}
        for workers in range(asked.workers + 1):
            request = Request((asked.model,), executor="ray" if workers else "local", **own)
            found = []
            for _ in range(asked.repeats):
                if workers:
                    ray.init(
                        num_cpus=workers,
                        include_dashboard=False,
                        log_to_driver=False,
                        logging_level="ERROR",
                    )
                try:
                    found.append(measured(request, store))
                finally:
                    ray.shutdown()
            expected = expected or found[0][3]
            if any(one[3] != expected for one in found):
                raise SystemExit(f"{workers} workers wrote other bytes than this process")
            start, rate, whole = (
                statistics.median(one[place] for one in found) for place in range(3)
            )
            alone = alone or rate
            name = f"{workers} worker{'s' if workers > 1 else ''}" if workers else "this process"
            print(f"{name:>12} {start:>9.1f} {rate:>9,.0f} {rate / alone:>6.2f} {whole:>7.1f}")


if __name__ == "__main__":
    for name, value in ray_cluster.QUIET.items():
        os.environ.setdefault(name, value)
    ray_cluster.allow(ray_cluster.LOCAL)
    main()
