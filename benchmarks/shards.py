"""Exact retrieval over a gallery that no process holds: `python benchmarks/shards.py [--candidates N ...]`.

Candidates are made up (float32, 512 numbers, random directions), every other one altered, and go to a file as they are
made; 1,000 queries lie near a candidate each. Each size is a process of its own, on one thread:

    rank        both passes over all products, in one share
    4 shares    the same in four shares whose answers are merged, the bytes compared; with --check, of the first size
    rankings    whole rankings of 30 queries in three versions, spilled to a file, as PRSM's rank correlation takes them

Printed are seconds and CPU seconds, the ratio to the size before, the most memory that was resident in the process
(everything in it: interpreter, libraries, and the making of the candidates), and the spill's traffic. 250,000 to
2,000,000 candidates: 4.1 GB of disk in the folder for temporary files.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

from vlprobe.metrics import ranking
from vlprobe.scoring import gallery as scoring_gallery
from vlprobe.scoring.gallery import Gallery
from vlprobe.scoring.passes import Search, merged_best, merged_counts
from vlprobe.scoring.retrieval import ranks, retrieve
from vlprobe.scoring.vector_file import VectorFile

DIM, QUERIES, RANKED, VERSIONS, MEMORY = 512, 1000, 30, 3, 2 << 30
SIZES = (250_000, 500_000, 1_000_000, 2_000_000)


def unit(vectors: np.ndarray) -> np.ndarray:
    """Rows of length 1."""
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def candidates(chunk: slice) -> np.ndarray:
    """The candidates of these numbers; a chunk always begins at the same places."""
    rng = np.random.default_rng([1, chunk.start])
    return unit(rng.standard_normal((chunk.stop - chunk.start, DIM), dtype=np.float32))


def clock() -> np.ndarray:
    """Seconds and CPU seconds until now."""
    return np.array([time.perf_counter(), time.process_time()])


def most_resident() -> float:
    """The most memory that this process had resident until now, MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class Spill(VectorFile):
    """A file of rows that tells its traffic when it goes."""

    written = read = 0

    def __del__(self) -> None:
        Spill.written += self.bytes_written
        Spill.read += self.bytes_read


def ranked_whole(gallery: Gallery, near: np.ndarray) -> float:
    """The mean rank correlation of queries, each in some versions."""
    rng = np.random.default_rng(3)
    noise = rng.standard_normal((RANKED, VERSIONS, DIM), dtype=np.float32) / np.float32(DIM**0.5)
    versions = unit((near[:RANKED, None] + noise).reshape(-1, DIM))
    rows = np.zeros((0, gallery.n), dtype=np.float32)
    ranker, correlations = ranking.Ranker(), []
    for _, scores in gallery.similarities(versions):
        rows = np.concatenate([rows, scores])
        while len(rows) >= VERSIONS:
            correlations.append(ranking.rank_correlation(ranker(rows[:VERSIONS])))
            rows = rows[VERSIONS:]
    return float(np.mean(correlations))


def measure(n: int, check: bool) -> dict[str, float]:
    """What one size takes, in this process."""
    begin = clock()
    gallery = Gallery.encode(candidates, n, DIM, MEMORY)
    written = clock() - begin
    owner, altered = np.arange(n) // 2, np.arange(n) % 2 == 1
    items = np.random.default_rng(2).integers(0, n // 2, QUERIES)
    near = np.concatenate([gallery._rows[2 * item : 2 * item + 1] for item in items.tolist()])
    noise = np.random.default_rng(4).standard_normal(near.shape, dtype=np.float32)
    queries = unit(near + noise * np.float32(4 / DIM**0.5))
    begin = clock()
    answer = retrieve(queries, items, gallery, owner, altered)
    took = clock() - begin
    line = {"n": n, "written": written[0], "rank": took[0], "rank_cpu": took[1]}
    line |= {"products": gallery.n_products, "recall_1": float((answer.rank == 1).mean())}
    line["resident"] = most_resident()
    if check:
        begin = clock()
        search = Search(queries, items, gallery, owner, altered)
        best = merged_best([search.best_own(share) for share in gallery.shares(4)])
        merged = merged_counts([search.counts(best, share) for share in gallery.shares(4)])
        line["shares"], line["shares_cpu"] = clock() - begin
        answers = (answer, ranks(search, best, merged))
        for name in answer.__slots__:
            first, second = (np.asarray(getattr(one, name)).tobytes() for one in answers)
            if first != second:
                raise SystemExit(f"Four shares give another {name} than one.")
    scoring_gallery.VectorFile = Spill
    begin = clock()
    line["correlation"] = ranked_whole(gallery, near)
    line["rankings"], line["rankings_cpu"] = clock() - begin
    line |= {"spilled": Spill.written, "read": Spill.read, "resident_rankings": most_resident()}
    return line


def main() -> None:
    """Prints a line a size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--candidates", type=int, nargs="+", default=SIZES)
    parser.add_argument("--check", action="store_true", help="four shares of the first size, too")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.alone:
        print(json.dumps(measure(asked.candidates[0], asked.check)))
        return
    before: dict[str, float] = {}
    for n in asked.candidates:
        command = [sys.executable, __file__, "--alone", "--candidates", str(n)]
        command += ["--check"] * (asked.check and not before)
        said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        line = json.loads(said.stdout)
        times = {
            name: line[name] / before[name]
            for name in ("rank", "rank_cpu", "rankings_cpu")
            if before
        }
        print(
            f"{n:,} candidates of {DIM} numbers in {line['products']} products, written in {line['written']:.1f} s"
        )
        print(
            f"  rank       {line['rank']:7.1f} s, CPU {line['rank_cpu']:7.1f} s, R@1 {100 * line['recall_1']:.1f} %, "
            f"{line['resident']:,.0f} MiB resident"
            + "".join(f", {name} x{ratio:.2f}" for name, ratio in times.items())
        )
        if "shares" in line:
            print(
                f"  4 shares   {line['shares']:7.1f} s, CPU {line['shares_cpu']:7.1f} s, the same bytes"
            )
        print(
            f"  rankings   {line['rankings']:7.1f} s, CPU {line['rankings_cpu']:7.1f} s for {RANKED} queries in "
            f"{VERSIONS} versions: {line['spilled'] / 2**20:,.0f} MiB spilled, {line['read'] / 2**20:,.0f} read again, "
            f"{line['resident_rankings']:,.0f} MiB resident",
            flush=True,
        )
        before = line


if __name__ == "__main__":
    main()
