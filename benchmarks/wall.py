"""Explore's wall with 12 million answers and photographs: `python benchmarks/wall.py [--pictures 20000]`.

Uses the store from `benchmarks/store.py` (eight models x 1.5 million cases of LGIP), with the given number of distinct
JPEGs of 640 x 480 (a drawn scene with noise, each file with different bytes) and 60 of 24 megapixels. Each part runs in
its own process, as in a fresh server, and is timed for first and for repeated requests.

    wall            `views.wall.wall`: one card per picture, 60 on a page, with the results of eight models
    changed filter  the wall for another outcome, type, model or kind that was not requested before
    neighbours      `views.wall.neighbors`: the cases that the drawer's arrows lead to
    patterns        `views.patterns.patterns`: all word pairs, tested by picture
    thumbnails      60 data addresses: stored, in memory, made now, made of 24 megapixels; and a run's time per picture
"""

import argparse
import io
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from store import CASES, fill

PAGE = 60
GOALS = {
    "wall, a changed filter": 300,
    "patterns, another model": 500,
    "60 thumbnails, stored": 300,
}


def photographs(folder: Path, count: int, size: tuple[int, int], name: str) -> None:
    """Write JPEGs that take as long to open as photographs; a comment makes the bytes of each file unique."""
    import numpy as np
    from PIL import Image

    from vlprobe.datasets.world import items
    from vlprobe.datasets.world.renderer import render

    rng = np.random.default_rng(0)
    drawn = []
    for row in items.read("demo")[:20]:
        image = render(row.scenes[0]).resize(size)
        grain = rng.normal(0, 12, (size[1], size[0], 3))
        pixels = np.clip(np.asarray(image) + grain, 0, 255).astype(np.uint8)
        buffer = io.BytesIO()
        Image.fromarray(pixels).save(buffer, "JPEG", quality=80)
        drawn.append(buffer.getvalue())
    for number in range(count):
        content = drawn[number % len(drawn)]
        comment = f"{number:012}".encode()
        segment = b"\xff\xfe" + (len(comment) + 2).to_bytes(2, "big") + comment
        (folder / f"{name}{number:05}.jpg").write_bytes(content[:2] + segment + content[2:])


def clock(task: Callable[[], object]) -> tuple[float, float]:
    """Return the milliseconds that a task takes by the clock, and in CPU time."""
    started, worked = time.perf_counter(), time.process_time()
    task()
    return 1000 * (time.perf_counter() - started), 1000 * (time.process_time() - worked)


def print_times(name: str, *took: tuple[float, float], of: int = 1) -> None:
    """Print the median and the slowest clock time, and the median CPU time, which depends less on other processes."""
    by_clock, by_processor = zip(*took, strict=True)
    numbers = statistics.median(by_clock), max(by_clock), statistics.median(by_processor)
    print(
        f"{name:34}{''.join(f'{number / of:10.0f}' for number in numbers)}{GOALS.get(name, ''):>7}"
    )


def walls(root: Path) -> None:
    """Time the views behind the wall."""
    from vlprobe import views
    from vlprobe.storage.store import Store
    from vlprobe.views.filter import Filter

    store = Store(root / "cache")
    question_set = views.runs.question_set(store, (root / "question-set").read_text())
    plain = Filter("made-up:3")

    def wall(chosen: Filter) -> tuple:
        return views.wall.wall(question_set, chosen, 1, PAGE)

    print_times("wall, first in a process", clock(lambda: wall(plain)))
    print_times("wall, again", *(clock(lambda: wall(plain)) for _ in range(5)))
    changes = (
        {"outcome": "held"},
        {"subtype": "number"},
        {"model": "made-up:5"},
        {"kind": "combined"},
        {"outcome": "all"},
        {"sort": "closest"},
        {"other": "made-up:2", "other_outcome": "held"},
    )
    print_times(
        "wall, a changed filter", *(clock(lambda c=c: wall(replace(plain, **c))) for c in changes)
    )
    print_times("wall, a word", clock(lambda: wall(replace(plain, contains="dog"))))
    cards, n_pictures, n_cases = wall(plain)
    print(f"{'':34}{n_cases:,} cases of {n_pictures:,} pictures")
    print_times(
        "neighbors",
        *(
            clock(lambda card=card: views.wall.neighbors(question_set, plain, card.case))
            for card in cards[:5]
        ),
    )
    print_times(
        "patterns, first in a process",
        clock(lambda: views.patterns.patterns(question_set, plain.model, plain.kind)),
    )
    print_times(
        "patterns, another model",
        *(
            clock(lambda n=n: views.patterns.patterns(question_set, f"made-up:{n}", plain.kind))
            for n in (0, 1, 2, 4, 5)
        ),
    )
    everything = views.patterns.candidates(question_set, plain.model, plain.kind)
    print(f"{'':34}{len(everything)} patterns with enough answers")
    key = everything[0].key
    print_times("wall of a pattern", clock(lambda: wall(replace(plain, pair=(key,)))))


def thumbnails(root: Path) -> None:
    """Time sixty thumbnails for each way of getting them: stored, in memory, or newly made."""
    from vlprobe.scoring import pictures
    from vlprobe.scoring import thumbnails as small
    from vlprobe.storage import thumbnails as stored
    from vlprobe.types import Picture

    data, cache = root / "data", root / "cache"
    names = [f"{data}/{number:05}.jpg" for number in range(3 * PAGE)]
    large = [f"{data}/large{number:05}.jpg" for number in range(PAGE)]
    used = [Picture(Path(name)) for name in names[PAGE : 2 * PAGE]]
    contents = [pictures.read(picture) for picture in used]
    print_times(
        "a run, a picture",
        clock(lambda: list(map(small.keep, [cache] * PAGE, used, contents))),
        of=PAGE,
    )
    stored_names, made_names = names[PAGE : 2 * PAGE], names[2 * PAGE :]
    small.digests_of(cache, [Path(name) for name in stored_names])  # as when a dataset is read
    print_times("60 thumbnails, stored", clock(lambda: small.addresses(cache, stored_names)))
    print_times("60 thumbnails, in memory", clock(lambda: small.addresses(cache, stored_names)))
    print_times("60 thumbnails, made now", clock(lambda: small.addresses(cache, made_names)))
    print_times("60 of 24 megapixels, made now", clock(lambda: small.addresses(cache, large)))
    sizes = [path.stat().st_size for path in stored.paths(cache)]
    print(f"{'':34}{statistics.mean(sizes):,.0f} bytes each, at most {max(sizes):,}")
    for path in stored.paths(cache):
        path.unlink()


def main() -> None:
    """Fill a temporary store, and time each part in a fresh process."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=CASES, help="of each of the eight models")
    parser.add_argument("--pictures", type=int, default=20_000)
    parser.add_argument("--kept", type=Path, help="a folder to fill once and keep")
    parser.add_argument("--part", choices=("walls", "thumbnails"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.part:
        {"walls": walls, "thumbnails": thumbnails}[arguments.part](arguments.kept)
        return
    with tempfile.TemporaryDirectory(prefix="vlprobe-wall-") as folder:
        root = arguments.kept or Path(folder)
        if not (root / "question-set").exists():
            (root / "question-set").write_text(fill(root, arguments.cases, arguments.pictures))
            n_photographs = max(arguments.pictures, 3 * PAGE)  # `thumbnails` uses 3 * PAGE
            with ThreadPoolExecutor(2) as pool:
                for task in (
                    pool.submit(photographs, root / "data", n_photographs, (640, 480), ""),
                    pool.submit(photographs, root / "data", PAGE, (6000, 4000), "large"),
                ):
                    task.result()
        print(f"8 models x {arguments.cases:,} cases, {arguments.pictures:,} pictures")
        print(f"{'':34}{'ms':>10}{'slowest':>10}{'cpu ms':>10}{'goal':>7}")
        for part in ("walls", "thumbnails"):
            subprocess.run(
                [sys.executable, __file__, "--part", part, "--kept", str(root)],
                check=True,
                env=os.environ,
            )


if __name__ == "__main__":
    main()
