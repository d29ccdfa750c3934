"""A million rows linted without their pictures, and a tar gone through, beside `tar t`.

    python benchmarks/tables.py [ROWS]

Prints seconds of work (of one core) and the highest memory of each, and the speed of the index of a tar
as a multiple of `tar t`'s on the same file, the fastest of five.
"""

import random
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from vlprobe.storage import containers

MEMBERS = 100_000
WORDS = ("red", "blue", "dog", "cat", "horse", "sitting", "near", "under", "the", "bench", "street")


def write_tables(folder: Path, n_rows: int) -> list[Path]:
    """Two rows a picture, no two captions alike."""
    draw = random.Random(1)
    captions = [f"A {' '.join(draw.choices(WORDS, k=9))} number {n}." for n in range(n_rows)]
    table = pa.table({"image": [f"{n // 2:09d}.jpg" for n in range(n_rows)], "caption": captions})
    pyarrow.parquet.write_table(table, folder / "rows.parquet")
    pyarrow.csv.write_csv(table, folder / "rows.csv")
    foils = [_foil(caption.split(), draw) for caption in captions]
    table = table.append_column("negative", [foils])
    pyarrow.parquet.write_table(table, folder / "foils.parquet")
    return [folder / name for name in ("rows.parquet", "rows.csv", "foils.parquet")]


def _foil(words: list[str], draw: random.Random) -> str:
    """The caption with one of its words drawn anew."""
    words[draw.randrange(1, 10)] = draw.choice(WORDS)
    return " ".join(words)


def lint(file: Path) -> tuple[float, float, float]:
    """Seconds of work, seconds by the clock, and MiB of `check --no-pictures`."""
    program = (
        "import resource, sys; from vlprobe.cli.main import main\n"
        "try: main(['--cache', sys.argv[2], 'check', '--no-pictures', sys.argv[1]])\n"
        "finally: print('peak', resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    )
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-c", program, f"table:{file}", str(file.parent / "cache")]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    work = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return work, time.perf_counter() - start, float(shown.rsplit("peak", 1)[1])


def fastest(act) -> float:
    """Seconds of work of the fastest of five."""
    seconds = []
    for _ in range(5):
        start = time.process_time() + sum(_children())
        act()
        seconds.append(time.process_time() + sum(_children()) - start)
    return min(seconds)


def _children() -> tuple[float, float]:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime, usage.ru_stime


def index_of_tar(folder: Path) -> tuple[float, float]:
    """Seconds of work of `tar t`, and of our index, of a tar of MEMBERS files of 20 KB."""
    file = folder / "shard.tar"
    with tarfile.open(file, "w", format=tarfile.USTAR_FORMAT) as tar:
        for number in range(MEMBERS):
            entry = tarfile.TarInfo(f"{number:09d}.jpg")
            entry.size = 20_000
            tar.addfile(entry, Zeros())
    silent = {"stdout": subprocess.DEVNULL}
    return (
        fastest(lambda: subprocess.run(["tar", "tf", str(file)], check=True, **silent)),
        fastest(lambda: (containers._members.cache_clear(), containers.members(file))),
    )


class Zeros:
    """A file of zeros without an end."""

    def read(self, n_bytes: int) -> bytes:
        """That many."""
        return bytes(n_bytes)


def main() -> None:
    """Prints all."""
    n_rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as name:
        for file in write_tables(Path(name), n_rows) if n_rows else ():
            work, clock, peak = lint(file)
            print(
                f"{n_rows:,} rows of {file.name}: {work:.1f} s of work, {clock:.1f} s, {peak:.0f} MiB"
            )
        theirs, ours = index_of_tar(Path(name))
        print(
            f"{MEMBERS:,} members: tar t {theirs:.2f} s, index {ours:.2f} s: {theirs / ours:.2f} x its speed"
        )


if __name__ == "__main__":
    main()
