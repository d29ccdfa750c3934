"""Check a million rows without pictures, and index a tar file, compared with `tar t`.

    python benchmarks/tables.py [ROWS]

Prints the CPU seconds and the peak memory for each table, and the speed of indexing a tar file relative to `tar t` on
the same file, as the fastest of five runs.
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
    """Write tables with two rows per picture and no duplicate captions."""
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
    """Replace a random word in a caption."""
    words[draw.randrange(1, 10)] = draw.choice(WORDS)
    return " ".join(words)


def lint(file: Path) -> tuple[float, float, float]:
    """Return CPU seconds, clock seconds and peak MiB of `check --no-pictures` on a table."""
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
    """Return the CPU seconds of the fastest of five calls."""
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
    """Return the CPU seconds of `tar t` and of vlprobe's index, for a tar of MEMBERS files of 20 KB."""
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
    """A file with an endless sequence of zeros."""

    def read(self, n_bytes: int) -> bytes:
        """Return the requested number of zeros."""
        return bytes(n_bytes)


def main() -> None:
    """Run all measurements, and print a line for each."""
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
