"""What a plan of several probes saves: `python benchmarks/plan.py`.

lgip, rococo and prsm on the photographs of ../shared/data/coco_real with an untrained
openclip:ViT-B-32 (random weights of a fixed seed): each in a process and an empty cache of its own,
then all three by one `vlprobe run --probe lgip --probe rococo --probe prsm` in another empty cache.
Printed are wall and CPU seconds and the ratio of the plan to the sum; the stored results are compared to the byte.

    --limit N       only the first N pictures; 0: all 283
    --doctor        put the model to the doctor's checks, too
    --option ...    of the probes, as in `vlprobe run`
    --count         only count what goes through the model, which gives noise in place of embeddings
"""

import argparse
import hashlib
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from servers import ROOT, environment

COCO = ROOT.parent / "shared" / "data" / "coco_real"
MODEL = "openclip:ViT-B-32"
PROBES = ("lgip", "rococo", "prsm")


def measured(cache: Path, words: list[str]) -> tuple[float, float]:
    """Wall and CPU seconds of a `vlprobe run` in a process of its own, with those of its children."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "vlprobe", "--cache", str(cache), "run", *words],
        cwd=ROOT,
        env=environment(),
        check=True,
        capture_output=True,
    )
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def stored(cache: Path) -> dict[str, bytes]:
    """The tables of all runs of a cache, by key and name."""
    return {"/".join(path.parts[-2:]): path.read_bytes() for path in cache.glob("runs/*/*.parquet")}


def counted(limit: int, probes: tuple[str, ...]) -> Counter[str]:
    """How many pictures, texts and tokens of texts go through the model, batches filled up."""
    import numpy as np

    from vlprobe import registry
    from vlprobe.runs.request import Request
    from vlprobe.runs.run import execute_plan
    from vlprobe.storage.store import Store

    model = registry.load_model(MODEL, "cpu")
    counts: Counter[str] = Counter()

    def noise(rows: np.ndarray) -> np.ndarray:
        seeds = [int.from_bytes(hashlib.blake2b(row, digest_size=8).digest()) for row in rows]
        vectors = np.stack([np.random.default_rng(seed).standard_normal(512) for seed in seeds])
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)

    def images(pixels: np.ndarray) -> np.ndarray:
        counts["pictures"] += len(pixels)
        return noise(pixels)

    def texts(tokens: np.ndarray) -> np.ndarray:
        counts["texts"] += len(tokens)
        counts["tokens"] += int((tokens.argmax(axis=1) + 1).sum())  # the end has the highest id
        return noise(tokens)

    vars(model).update(encode_images=images, encode_texts=texts)
    requests = [
        Request((MODEL,), f"coco:{COCO}", probe, limit=limit, examine=False, device="cpu")
        for probe in probes
    ]
    with tempfile.TemporaryDirectory() as cache:
        execute_plan(requests, Store(Path(cache)), models={MODEL: model})
    return counts


def count(limit: int) -> None:
    """Prints a line a probe, and what a plan saves."""
    single = [counted(limit, (probe,)) for probe in PROBES]
    plan = counted(limit, PROBES)
    sums = sum(single, Counter())
    for name, counts in zip((*PROBES, "sum", "plan"), (*single, sums, plan), strict=True):
        print(f"{name:8}" + "  ".join(f"{counts[side]:9,} {side}" for side in plan))
    print(f"{'ratio':8}" + "  ".join(f"{plan[side] / sums[side]:9.2f} {side}" for side in plan))


def main() -> None:
    """Prints a line a run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--doctor", action="store_true")
    parser.add_argument("--option", action="append", default=[])
    parser.add_argument("--count", action="store_true")
    typed = parser.parse_args()
    if typed.count:
        count(typed.limit)
        return
    words = ["--model", MODEL, "--dataset", f"coco:{COCO}"]
    words += ["--limit", str(typed.limit), *([] if typed.doctor else ["--no-doctor"])]
    print(f"{'':8}{'wall s':>9}{'CPU s':>9}", flush=True)
    spent: dict[str, tuple[float, float]] = {}
    tables: dict[str, dict[str, bytes]] = {"single": {}, "plan": {}}
    for name in (*PROBES, "plan"):
        probes = PROBES if name == "plan" else (name,)
        asked = [word for probe in probes for word in ("--probe", probe)]
        options = [
            word
            for option in typed.option
            if option.partition(".")[0] in probes
            for word in ("--option", option)
        ]
        with tempfile.TemporaryDirectory() as cache:
            spent[name] = measured(Path(cache), [*words, *asked, *options])
            tables["plan" if name == "plan" else "single"] |= stored(Path(cache))
        print(f"{name:8}{spent[name][0]:9.1f}{spent[name][1]:9.1f}", flush=True)
    sums = [sum(spent[probe][clock] for probe in PROBES) for clock in (0, 1)]
    print(f"{'sum':8}{sums[0]:9.1f}{sums[1]:9.1f}")
    print(f"{'ratio':8}{spent['plan'][0] / sums[0]:9.2f}{spent['plan'][1] / sums[1]:9.2f}")
    same = tables["single"] == tables["plan"]
    print(f"{len(tables['plan'])} tables, the same bytes: {'yes' if same else 'NO'}")


if __name__ == "__main__":
    main()
