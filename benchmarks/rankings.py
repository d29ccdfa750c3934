"""PRSM's rank correlation in a gallery of 170,832 pictures, compared with scipy: `python benchmarks/rankings.py`.

A query has three versions, and its result is the mean Spearman correlation of the three rankings of the gallery. The
embeddings are random (float32, 512 dimensions, random directions; the versions of a query are near each other), and
`gallery.Gallery` computes the similarities as in the probe. In rounds of 20 queries, these methods take turns on the
same similarities:

    scipy, 3 columns     scipy.stats.spearmanr on the three columns at once, one call per query (the base of the ratio)
    scipy, 3 pairs       scipy.stats.spearmanr on two columns, three calls per query
    vlprobe, 1 thread    ranking.rank_correlation of ranking.ranked, one query after the other
    vlprobe, threads     the same for several queries at once, as in the probe
    all measures         ranking.measures: that correlation, the top 10, 100 and 1000, and the correlation of the lists

The script prints milliseconds and CPU milliseconds per query (medians over rounds), ratios, the largest difference from
scipy, and the peak memory for similarities and rankings in addition to the embeddings, from a round that is not timed.
"""

import argparse
import itertools
import os
import time
import tracemalloc
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = (
    "1"  # only the pool's threads are used
)

import numpy as np
from scipy import stats

from vlprobe.metrics import ranking
from vlprobe.scoring.gallery import Gallery

VERSIONS = 3
ROUND = 20  # queries per round
DIM = 512


def unit(vectors: np.ndarray) -> np.ndarray:
    """Scale rows to length 1."""
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def correlations(queries: Sequence[np.ndarray]) -> list[float]:
    """Compute vlprobe's rank correlation for queries, one after the other."""
    return [ranking.rank_correlation(ranking.ranked(values)) for values in queries]


def measures(queries: Sequence[np.ndarray]) -> list[dict[str, float]]:
    """Compute all measures that the probe stores for queries."""
    return [ranking.means(ranking.pair_measures(ranking.ranked(values))) for values in queries]


def shared(
    pool: ThreadPoolExecutor, task: Callable[[Sequence], list], queries: np.ndarray, threads: int
) -> list:
    """Run a task with the queries divided among threads, as the probe does."""
    return list(itertools.chain.from_iterable(pool.map(task, np.array_split(queries, threads))))


def by_columns(values: np.ndarray) -> float:
    """Compute the mean correlation with a single call to scipy."""
    return float(stats.spearmanr(values.T).statistic[np.triu_indices(VERSIONS, 1)].mean())


def by_pairs(values: np.ndarray) -> float:
    """Compute the mean correlation with one call to scipy per pair."""
    return float(
        np.mean(
            [
                stats.spearmanr(values[i], values[j]).statistic
                for i, j in combinations(range(VERSIONS), 2)
            ]
        )
    )


def timed(task: Callable[[], list]) -> tuple[np.ndarray, list]:
    """Run a task; return milliseconds and CPU milliseconds per query, and the result."""
    started = np.array([time.perf_counter(), time.process_time()])
    found = task()
    return 1000 * (np.array([time.perf_counter(), time.process_time()]) - started) / ROUND, found


def memory(gallery: Gallery, queries: np.ndarray, pool: ThreadPoolExecutor, threads: int) -> float:
    """Return the peak memory in MiB while queries are searched and ranked in blocks."""
    tracemalloc.start()
    for _, block in gallery.similarities(queries):
        whole = len(block) // VERSIONS
        shared(pool, measures, block[: whole * VERSIONS].reshape(whole, VERSIONS, -1), threads)
    return tracemalloc.get_traced_memory()[1] / 2**20


def main() -> None:
    """Print a line per method."""
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("--queries", type=int, default=400)
    asked.add_argument("--candidates", type=int, default=170_832)
    asked.add_argument("--threads", type=int, default=2)
    given = asked.parse_args()
    rng = np.random.default_rng(0)
    gallery = Gallery(unit(rng.standard_normal((given.candidates, DIM), dtype=np.float32)))
    spent: dict[str, list[np.ndarray]] = {}
    furthest = 0.0
    with ThreadPoolExecutor(given.threads) as pool:
        for _ in range(max(1, given.queries // ROUND)):
            meant = rng.standard_normal((ROUND, 1, DIM), dtype=np.float32)
            queries = meant + 0.5 * rng.standard_normal((ROUND, VERSIONS, DIM), dtype=np.float32)
            made, blocks = timed(
                lambda queries=queries: list(gallery.similarities(unit(queries.reshape(-1, DIM))))
            )
            values = np.concatenate([block for _, block in blocks]).reshape(ROUND, VERSIONS, -1)
            ways: dict[str, Callable[[], list]] = {
                f"vlprobe, {given.threads} threads": lambda values=values: shared(
                    pool, correlations, values, given.threads
                ),
                "vlprobe, 1 thread": lambda values=values: correlations(values),
                f"all measures, {given.threads} threads": lambda values=values: shared(
                    pool, measures, values, given.threads
                ),
                "scipy, 3 columns": lambda values=values: list(map(by_columns, values)),
                "scipy, 3 pairs": lambda values=values: list(map(by_pairs, values)),
            }
            found = {}
            for name, task in ways.items():
                took, found[name] = timed(task)
                spent.setdefault(name, []).append(took)
            spent.setdefault("similarities", []).append(made)
            theirs = np.array(found["scipy, 3 columns"])
            for name in list(ways)[:2]:
                furthest = max(furthest, float(np.abs(np.array(found[name]) - theirs).max()))
        del blocks, values, ways
        most = memory(gallery, np.tile(queries.reshape(-1, DIM), (10, 1)), pool, given.threads)
    medians = {name: np.median(times, axis=0) for name, times in spent.items()}
    rounds = len(spent["similarities"])
    print(
        f"{given.candidates:,} candidates, {VERSIONS} versions, {rounds} rounds of {ROUND} queries"
    )
    print(
        f"{'':26}{'ms a query':>11}{'CPU ms':>8}{'scipy, 3 columns =':>20}{'in CPU':>9}{'scipy, 3 pairs =':>18}"
    )
    for name, took in medians.items():
        wall, cpu = medians["scipy, 3 columns"] / took
        pairs = medians["scipy, 3 pairs"][0] / took[0]
        print(f"{name:26}{took[0]:11.2f}{took[1]:8.2f}{wall:18.1f} x{cpu:7.1f} x{pairs:16.1f} x")
    print(f"largest difference from scipy: {furthest:.1e}")
    print(f"memory beside the embeddings of the gallery: {most:.0f} MiB")


if __name__ == "__main__":
    main()
