"""What a finished `vlprobe run` costs when it is asked for again: `python benchmarks/again.py`.

    demo      demo:softmax on the 500 drawn pictures
    photos    an untrained openclip:ViT-B-32 (605 MB of weights) on the pictures of ../shared/data/coco_real

Each is run once, then again in new processes: a round that is not counted, and `--repeat` that are.
Printed are wall and CPU seconds of the whole process, the fastest and the median, and whether torch
was imported. `--verify` reads all files; `--code FOLDER` measures another checkout, such as one
of before.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from servers import ROOT, environment

COCO = ROOT.parent / "shared" / "data" / "coco_real"
QUESTIONS = {
    "demo": ("--model", "demo:softmax"),
    "photos": ("--model", "openclip:ViT-B-32", "--dataset", f"coco:{COCO}", "--limit", "50"),
}


def seconds(code: Path, words: list[str]) -> tuple[float, float, bool]:
    """Wall and CPU seconds of a command in a process of its own, and whether it imported torch."""
    script = (
        "import atexit, sys; from vlprobe.cli.main import main; "
        "atexit.register(lambda: print('torch' in sys.modules, file=sys.stderr)); main()"
    )
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    ended = subprocess.run(
        [sys.executable, "-c", script, *words],
        cwd=code,
        env=environment(PYTHONPATH=str(code)),
        check=True,
        capture_output=True,
        text=True,
    )
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return wall, cpu, "True" in ended.stderr.splitlines()


def main() -> None:
    """Prints a line a question."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--code", type=Path, default=ROOT)
    parser.add_argument("--verify", action="store_true")
    parser.add_argument("questions", nargs="*", default=list(QUESTIONS))
    typed = parser.parse_args()
    print(f"{'':8}{'wall s':>8}{'median':>8}{'CPU s':>8}{'median':>8}  torch")
    for name in typed.questions:
        with tempfile.TemporaryDirectory() as cache:
            words = ["--cache", cache, "run", *QUESTIONS[name]]
            seconds(typed.code, words)
            words += ["--verify"] * typed.verify
            seconds(typed.code, words)
            rounds = [seconds(typed.code, words) for _ in range(typed.repeat)]
        walls, cpus, torch = zip(*rounds, strict=True)
        print(
            f"{name:8}{min(walls):8.2f}{statistics.median(walls):8.2f}"
            f"{min(cpus):8.2f}{statistics.median(cpus):8.2f}  {'yes' if any(torch) else 'no'}"
        )


if __name__ == "__main__":
    main()
