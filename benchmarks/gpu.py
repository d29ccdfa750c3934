"""Time pictures and captions on a GPU: the model, the encoder with files, a whole run, and a plain PyTorch loop.

`python benchmarks/gpu.py --pictures 4000 --models openclip:ViT-B-32 openclip:ViT-L-14`. Weights are random if none are
downloaded, because the time does not depend on them. The photographs are crops of the bundled ones, JPEGs of 640 x 480.
"""

import argparse
import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from vlprobe import registry
from vlprobe.models.frozen import TorchDualEncoder
from vlprobe.runs.profile import Profile
from vlprobe.runs.request import Progress, Request
from vlprobe.runs.run import execute
from vlprobe.scoring.encoder import CachedEncoder
from vlprobe.storage.store import Store
from vlprobe.types import Picture

PHOTOGRAPHS = Path(__file__).parents[1] / "vlprobe/storage/published_results/photographs"
WORDS = [
    "two",
    "red",
    "dogs",
    "and",
    "a",
    "small",
    "black",
    "cat",
    "sit",
    "on",
    "the",
    "old",
    "bench",
]


def seconds(call: Callable[[], object]) -> float:
    """Return the seconds that a call takes until the GPU has finished."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    call()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def matrix_rate(precision: str) -> float:
    """Return the FLOP/s for the product of two 8192 x 8192 matrices, as the median of five products."""
    dtype = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}[precision]
    one, other = (torch.randn(8192, 8192, device="cuda", dtype=dtype) for _ in range(2))
    torch.mm(one, other)
    return 2 * 8192**3 / float(np.median([seconds(lambda: torch.mm(one, other)) for _ in range(5)]))


def make_photographs(folder: Path, count: int) -> list[Path]:
    """Write JPEG files of 640 x 480: resized random crops of the bundled photographs."""
    rng = np.random.default_rng(0)
    sources = [Image.open(path).convert("RGB") for path in sorted(PHOTOGRAPHS.glob("*.jpg"))]
    paths = [folder / f"{number}.jpg" for number in range(count)]
    for number, path in enumerate(paths):
        source = sources[number % len(sources)]
        left, top = rng.integers(0, 80, 2).tolist()
        box = (left, top, source.width - 80 + left, source.height - 80 + top)
        source.resize((640, 480), Image.Resampling.BILINEAR, box).save(path, quality=90)
    return paths


def flops(model, pixels: np.ndarray, tokens: np.ndarray) -> tuple[float, float]:
    """Return the floating-point operations for one picture and for one text, as counted by PyTorch."""
    from torch.utils.flop_counter import FlopCounterMode

    counts = []
    for encode, rows in ((model.encode_images, pixels[:8]), (model.encode_texts, tokens[:8])):
        with FlopCounterMode(display=False) as counter:
            encode(rows)
        counts.append(counter.get_total_flops() / 8)
    return counts[0], counts[1]


def plain_loop(model, paths: list[Path], precision: str, workers: int) -> None:
    """Encode the pictures as a short script would: with a PyTorch DataLoader and the model."""

    class Photographs(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return len(paths)

        def __getitem__(self, row: int) -> np.ndarray:
            return model.preprocess(Image.open(paths[row]).convert("RGB"))

    loader = torch.utils.data.DataLoader(
        Photographs(), batch_size=256, num_workers=workers, pin_memory=True
    )
    dtype = {"fp32": None, "fp16": torch.float16, "bf16": torch.bfloat16}[precision]
    autocast = torch.autocast("cuda", dtype) if dtype else contextlib.nullcontext()
    with torch.inference_mode(), autocast:
        for pixels in loader:
            model.module.encode_image(pixels.to("cuda", non_blocking=True), normalize=True).cpu()


def rows(name: str, precision: str, paths: list[Path], root: Path) -> Iterator[tuple[str, float]]:
    """Yield the name of each measurement, and its rate per second, share, or seconds."""
    model = registry.load_model(name, "cuda", precision)
    if not isinstance(model, TorchDualEncoder):
        raise SystemExit(f"{name} is not a dual encoder of PyTorch.")
    pixels = np.stack([model.preprocess(Image.open(path).convert("RGB")) for path in paths[:256]])
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, 10)) for _ in range(16_384)]
    tokens = model.tokenize(texts[:1024])
    model.encode_images(pixels)
    model.encode_texts(tokens)
    rate, (picture, text) = matrix_rate(precision), flops(model, pixels, tokens)
    per_second = 256 / min(seconds(lambda: model.encode_images(pixels)) for _ in range(5))
    yield "pictures/s, model", per_second
    yield "  share of the matrix rate", per_second * picture / rate
    per_second = 1024 / min(seconds(lambda: model.encode_texts(tokens)) for _ in range(5))
    yield "texts/s, model", per_second
    yield "  share of the matrix rate", per_second * text / rate
    for workers in sorted({1, 4, os.cpu_count() or 1}):
        encoder = CachedEncoder(model, batch_size=256, workers=workers)
        yield (
            f"pictures/s, files, {workers} threads",
            len(paths) / seconds(lambda e=encoder: e.images([Picture(path) for path in paths])),
        )
    encoder = CachedEncoder(model, batch_size=256)
    yield "texts/s, tokenized", len(texts) / seconds(lambda: encoder.texts(texts))
    workers = os.cpu_count() or 1
    yield (
        f"pictures/s, plain loop, {workers} processes",
        len(paths) / seconds(lambda: plain_loop(model, paths, precision, workers)),
    )
    table = root / "captions.csv"
    lines = [f"{path.name},{' '.join(rng.choice(WORDS, 10))}." for path in paths]
    table.write_text("\n".join(["image,caption", *lines]) + "\n")
    for probe in ("lgip", "rococo"):
        store = Store(Path(tempfile.mkdtemp(dir=root)))
        request = Request((name,), f"csv:{table}", probe, device="cuda", precision=precision)
        clock = Profile(Progress())
        yield (
            f"seconds, run of {probe}",
            seconds(lambda r=request, s=store, c=clock: execute(r, s, c)),
        )
        print(clock.report(), flush=True)


def main() -> None:
    """Print a row for each measurement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", type=int, default=4000)
    parser.add_argument("--models", nargs="+", default=["openclip:ViT-B-32"])
    parser.add_argument("--precisions", nargs="+", default=["fp32", "bf16"])
    arguments = parser.parse_args()
    print(torch.cuda.get_device_name(), torch.__version__, os.cpu_count(), "cores")
    with tempfile.TemporaryDirectory() as folder:
        paths = make_photographs(Path(folder), arguments.pictures)
        for name in arguments.models:
            for precision in arguments.precisions:
                for what, value in rows(name, precision, paths, Path(folder)):
                    print(f"{name} {precision:5} {what:40} {value:12.4g}", flush=True)


if __name__ == "__main__":
    main()
