"""Growth of a run's time and memory with the size of its dataset: `python benchmarks/growth.py [--full]`.

Each size runs in its own process on a generated dataset: captions of drawn scenes, five per picture, and small pictures
that differ in their bytes. The default model costs almost nothing, so the time shows what everything around a model
costs. The script prints seconds, CPU seconds (steadier on a shared machine), the CPU seconds of the main process (the
rest are edits, which several processes make), the peak memory of the main process, the same without the memory of the
libraries and the model, and the exponents of growth between the first and the last size: 1 means in proportion, 0 means
no growth.
"""

import argparse
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SIZES = (250, 1000, 4000)
FULL = (1000, 4000, 10_000, 40_000)


def make(folder: Path, n: int) -> str:
    """Write a dataset with n pictures, and return its name. Items after the 500 drawn scenes repeat them with other
    bytes and changed captions.
    """
    import io

    from vlprobe.datasets.world import items
    from vlprobe.datasets.world.renderer import render

    drawn = items.read("demo")[:n]
    shown, written = [], [row.captions for row in drawn]
    for row in drawn[:50]:
        buffer = io.BytesIO()
        render(row.scenes[0]).resize((64, 64)).save(buffer, format="PNG")
        shown.append(buffer.getvalue())
    content: dict[str, list] = {"images": [], "annotations": []}
    (folder / "images").mkdir(parents=True)
    (folder / "annotations").mkdir()
    for number in range(n):
        name = f"{number:06d}.png"
        (folder / "images" / name).write_bytes(
            shown[number % len(shown)] + number.to_bytes(8)
        )  # appended after the last PNG chunk
        content["images"].append({"id": number, "file_name": name, "width": 64, "height": 64})
        for place, caption in enumerate(written[number % len(written)]):
            text = (
                f"{caption.rstrip('.')} on day {number // len(written)}."
                if number >= len(written)
                else caption
            )
            content["annotations"].append(
                {"id": 5 * number + place, "image_id": number, "caption": text}
            )
    (folder / "annotations" / "captions_made.json").write_text(json.dumps(content))
    return f"coco:{folder}"


def child(arguments: argparse.Namespace) -> None:
    """Run one size in this process, and print its time and memory as JSON."""
    from vlprobe import registry
    from vlprobe.runs.request import Request
    from vlprobe.runs.run import execute
    from vlprobe.storage.store import Store

    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        dataset = make(Path(folder) / "data", arguments.child)
        registry.load_model(arguments.model)
        before = _peak()
        request = Request((arguments.model,), dataset, arguments.probe, examine=False)
        started, busy, alone = time.perf_counter(), _busy(), time.process_time()
        manifest = execute(request, Store(Path(folder) / "cache"))[0]
        took = {
            "seconds": time.perf_counter() - started,
            "cpu": _busy() - busy,
            "own": time.process_time() - alone,
        }
    print(json.dumps(took | {"cases": manifest["n_cases"], "before": before, "peak": _peak()}))


def _busy() -> float:
    """Return the CPU seconds so far of this process and of its child processes that have ended."""
    return sum(
        sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )


def _peak() -> float:
    """Return the peak memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Print one line per size, then the exponents."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help=f"{FULL} items in place of {SIZES}")
    parser.add_argument("--sizes", type=int, nargs="+", help="items, in rising order")
    parser.add_argument("--model", default="control:random")
    parser.add_argument("--probe", default="lgip")
    parser.add_argument(
        "--folder", default=tempfile.gettempdir(), help="where data is made for the time of the run"
    )
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments)
        return
    sizes = arguments.sizes or (FULL if arguments.full else SIZES)
    print(f"probe {arguments.probe}, model {arguments.model}")
    titles = ("CPU s", "main s", "cases/s", "peak MiB", "own MiB")
    print(
        f"{'items':>8} {'cases':>10} {'seconds':>9} {' '.join(f'{title:>9}' for title in titles)}"
    )
    found = []
    for size in sizes:
        options = [
            "--model",
            arguments.model,
            "--probe",
            arguments.probe,
            "--folder",
            arguments.folder,
        ]
        told = subprocess.run(
            [sys.executable, __file__, "--child", str(size), *options],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout
        one = json.loads(told.splitlines()[-1])
        found.append((one["cpu"], one["peak"] - one["before"]))
        times = f"{one['seconds']:9.1f} {one['cpu']:9.1f} {one['own']:9.1f} {one['cases'] / one['seconds']:9,.0f}"
        print(
            f"{size:8,} {one['cases']:10,} {times} {one['peak']:9,.0f} {found[-1][1]:9,.0f}",
            flush=True,
        )
    if len(found) > 1:
        spread = math.log(sizes[-1] / sizes[0])
        time_grows, memory_grows = (
            math.log(last / max(first, 1)) / spread
            for first, last in zip(found[0], found[-1], strict=True)
        )
        print(f"CPU time grows as items^{time_grows:.2f}, own memory as items^{memory_grows:.2f}")


if __name__ == "__main__":
    main()
