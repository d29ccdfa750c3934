"""Exact against approximate search of a gallery past memory: `python benchmarks/gallery.py [--full]`.

Candidates are made up: float32, 512 dimensions, about middles that are drawn by lot, so that lists of neighbours are
there to be found; a query lies near a candidate. Real embeddings have other neighbourhoods: a run prints its recall.
Both searches read the candidates from a file (a run of 2 GiB gives a gallery 64 MiB), on one thread:

    exact          the ten best of all similarities that `gallery.Gallery` makes
    approximate    `ApproximateGallery.search` of the 110 best, similarities made exactly

Printed are seconds to build, milliseconds a query, the most resident memory beside what there was before, and the
recall on 256 queries. 200,000 candidates; with --full 1,000,000 too.
"""

import argparse
import os
import threading
import time
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import faiss  # noqa: F401 - loaded before memory is looked at
import numpy as np

from vlprobe.scoring.approximate_gallery import ApproximateGallery
from vlprobe.scoring.gallery import Gallery

DIM, MIDDLES, MEMORY, LOOKED_UP = 512, 2000, 2 << 30, 110
EXACT, ASKED, MEASURED = 128, 4096, 256  # queries


def unit(vectors: np.ndarray) -> np.ndarray:
    """Rows of length 1."""
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def candidates(part: slice) -> np.ndarray:
    """The candidates of these numbers, the same in whatever slice of whole thousands."""
    middles = unit(np.random.default_rng(0).standard_normal((MIDDLES, DIM), dtype=np.float32))
    found = []
    for start in range(part.start // 1000 * 1000, part.stop, 1000):
        rng = np.random.default_rng([1, start])
        own = rng.standard_normal((1000, DIM), dtype=np.float32) * (1.2 / np.sqrt(DIM))
        found.append(unit(middles[rng.integers(0, MIDDLES, 1000)] + own.astype(np.float32)))
    first = part.start // 1000 * 1000
    return np.concatenate(found)[part.start - first : part.stop - first]


class Watch:
    """Seconds, and the most memory that was resident meanwhile beside what was before, MiB."""

    def __enter__(self) -> "Watch":
        self.before = self.most = resident()
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._look)
        self.thread.start()
        self.started = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self.started
        self.done.set()
        self.thread.join()

    def _look(self) -> None:
        while not self.done.wait(0.02):
            self.most = max(self.most, resident())

    @property
    def grown(self) -> float:
        """MiB at the most."""
        return self.most - self.before


def resident() -> float:
    """Memory of this process, MiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def measure(n: int) -> None:
    """Prints what both searches of so many candidates take."""
    near = candidates(slice(0, 5000))[:ASKED]
    noise = np.random.default_rng(2).standard_normal(near.shape, dtype=np.float32) * np.float32(
        0.6 / np.sqrt(DIM)
    )
    queries = unit(near + noise)
    with Watch() as filed:
        gallery = Gallery.encode(candidates, n, DIM, MEMORY)
    with Watch() as exact:
        for _, values in gallery.similarities(queries[:EXACT]):
            np.argpartition(-values, 9, axis=1)[:, :10]
    with Watch() as built:
        nearest = ApproximateGallery(gallery, 100, MEMORY, 1)
    with Watch() as asked:
        nearest.search(queries, LOOKED_UP)
    first, ten = nearest.recall(queries[:MEASURED]).mean(axis=0)
    ms = 1000 * exact.seconds / EXACT, 1000 * asked.seconds / len(queries)
    print(
        f"{n:,} candidates of {DIM} numbers ({4 * n * DIM / 2**30:.2f} GiB in a file, written in {filed.seconds:.1f} s)"
    )
    print(f"  exact        {ms[0]:8.2f} ms a query  {exact.grown:6.0f} MiB")
    print(
        f"  approximate  {ms[1]:8.2f} ms a query  {asked.grown:6.0f} MiB   {ms[0] / ms[1]:.1f} times as fast"
    )
    print(f"  lists        built in {built.seconds:.1f} s with {built.grown:.0f} MiB")
    print(
        f"  recall       first {100 * first:.1f} %, first 10 {100 * ten:.1f} % ({MEASURED} queries)"
    )


def main() -> None:
    """Measures the sizes that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--full", action="store_true", help="1,000,000 candidates too: 4 GiB of disk"
    )
    for n in (200_000, 1_000_000)[: 1 + parser.parse_args().full]:
        measure(n)


if __name__ == "__main__":
    main()
