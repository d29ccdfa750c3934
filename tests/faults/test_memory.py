"""A batch that does not fit in device memory is halved; the scores stay the same, and the log reports the new size."""

import logging
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tools.train_demo import vocabulary
from vlprobe import registry
from vlprobe.errors import InvalidInput
from vlprobe.scoring.encoder import CachedEncoder
from vlprobe.types import Capabilities, PairScorer, Picture

CPU = "[enforce fail at alloc_cpu.cpp:121] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate"
ERRORS = {
    "CUDA": torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
    "CPU": RuntimeError(f"{CPU} 34359738368 bytes. Error code 12 (Cannot allocate memory)"),
    "Windows": RuntimeError(
        "[enforce fail at alloc_cpu.cpp:80] DefaultCPUAllocator: not enough memory: you tried"
    ),
    "MPS": RuntimeError("MPS backend out of memory (MPS allocated: 17.94 GB)"),
    "cuBLAS": RuntimeError(
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"
    ),
    "NumPy": MemoryError("Unable to allocate 12.0 GiB for an array with shape (1, 2)"),
}


class Small:
    """A model on a device whose memory fits only a few inputs."""

    def __init__(self, name: str, most: int, error: Exception) -> None:
        self.model, self.most, self.error = registry.load_model(name), most, error
        self.batch_sizes: list[int] = []

    def __getattr__(self, name: str):
        return getattr(self.model, name)

    def encode_images(self, pixels: np.ndarray) -> np.ndarray:
        return self._bounded(self.model.encode_images, pixels)

    def encode_texts(self, tokens: np.ndarray) -> np.ndarray:
        return self._bounded(self.model.encode_texts, tokens)

    def _bounded(self, encode, batch: np.ndarray) -> np.ndarray:
        self.batch_sizes.append(len(batch))
        if len(batch) > self.most:
            raise self.error
        return encode(batch)


@pytest.fixture(scope="module")
def thirteen_pictures(tmp_path_factory: pytest.TempPathFactory) -> list[Picture]:
    folder = tmp_path_factory.mktemp("shown")
    for number in range(13):
        Image.new("RGB", (40, 30), (number * 19, 255 - number * 19, 90)).save(
            folder / f"{number}.png"
        )
    return [Picture(folder / f"{number}.png") for number in range(13)]


TEXTS = [f"{word} on a blue table" for word in sorted(vocabulary())[:29]]


def test_a_batch_that_does_not_fit_is_halved_until_it_fits_with_the_same_scores(
    thirteen_pictures, caplog
):
    small = CachedEncoder(model := Small("demo:weak", 3, ERRORS["CUDA"]), batch_size=7)
    whole = CachedEncoder(model.model, batch_size=7)
    with caplog.at_level(logging.WARNING):
        images, texts = small.images(thirteen_pictures), small.texts(TEXTS)
    assert (
        np.abs(images @ texts.T - whole.images(thirteen_pictures) @ whole.texts(TEXTS).T).max()
        <= 1e-6
    )
    assert "Out of memory with a batch of 7 images; using 3 from now on." in caplog.text
    assert "Out of memory with a batch of 28 texts; using 14 from now on." in caplog.text
    assert model.batch_sizes[:4] == [7, 3, 3, 1]  # later batches start with the size that fits
    assert (
        sum(batch_sizes > 3 for batch_sizes in model.batch_sizes) == 1 + 3
    )  # 7 images; 28, 14 and 7 texts


@pytest.mark.parametrize("kind", ERRORS)
def test_the_batch_is_halved_for_the_out_of_memory_error_of_every_device(kind):
    small, whole = Small("control:random", 3, ERRORS[kind]), registry.load_model("control:random")
    embeddings = CachedEncoder(small).texts(TEXTS)
    assert (embeddings == whole.encode_texts(whole.tokenize(TEXTS))).all()
    assert small.batch_sizes[:3] == [32, 16, 8]


def test_a_model_that_runs_out_of_memory_at_batch_size_1_is_refused(thirteen_pictures):
    with pytest.raises(
        InvalidInput, match="runs out of device memory during images even at batch size 1"
    ):
        CachedEncoder(Small("control:random", 0, ERRORS["CUDA"])).images(thirteen_pictures)


def test_other_errors_of_a_model_are_raised_unchanged(thirteen_pictures):
    with pytest.raises(RuntimeError, match="size mismatch"):
        CachedEncoder(Small("control:random", 0, RuntimeError("size mismatch"))).images(
            thirteen_pictures
        )


class Heads(PairScorer):
    """A pair-scoring model with memory for two pictures or three pairs."""

    name, digest = "heads", "0" * 32
    capabilities = Capabilities(scores_pairs=True, score_type="logit")

    def preprocess(self, image: Image.Image) -> np.ndarray:
        return np.asarray(image, dtype=np.float32)

    def encode_pictures(self, pixels) -> list[np.ndarray]:
        if len(pixels) > 2:
            raise ERRORS["CUDA"]
        return [own.mean(axis=(0, 1)) for own in pixels]

    def tokenize(self, texts) -> np.ndarray:
        return np.array([[len(text)] for text in texts], dtype=np.int64)

    def match(self, seen, tokens: np.ndarray, logits: bool = False) -> np.ndarray:
        if len(seen) > 3:
            raise ERRORS["CUDA"]
        return np.array(
            [one[0] / length for one, (length,) in zip(seen, tokens, strict=True)], dtype=np.float32
        )


def test_batches_of_pairs_are_halved_too(thirteen_pictures: list[Picture], tmp_path: Path):
    texts = ["a", "bb", "ccc"]
    left, right = np.repeat(np.arange(13), 3), np.tile(np.arange(3), 13)
    embeddings = CachedEncoder(Heads(), batch_size=16).pairs(thirteen_pictures, texts, left, right)
    red = np.array([number * 19 for number in range(13)], dtype=np.float32)
    assert np.allclose(embeddings, red[left] / (right + 1))
