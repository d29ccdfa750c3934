"""Helpers for all frozen torch models: arithmetic settings, unit vectors, padded texts, a digest of everything that
affects results, and a base class for dual encoders.
"""

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from vlprobe.errors import InvalidInput
from vlprobe.models.modules import TorchModel
from vlprobe.types import Capabilities, DualEncoder

if TYPE_CHECKING:
    import torch

PRECISIONS = ("fp32", "fp16", "bf16")
# These texts have case, accents, punctuation, digits, and more words than any context holds. Two
# tokenizers that give equal ids for all of them count as equal.
FINGERPRINT_TEXTS = (
    "",
    "A photo of TWO red cats!",
    'über_cool "naïve" café — 12',
    "one two three " * 200,
)
LENGTHS_TEXTS = (
    "",
    "a cat",
    "two red cats on a very small wooden boat in the harbour",
    "one two three " * 200,
)
# cutting columns may change a coordinate of a unit vector by at most this much
CUT_TOLERANCE = 1e-6
PAD = -1  # fills a row after its text; unlike a tokenizer's own padding, it is never a word


class TorchDualEncoder(DualEncoder):
    """A dual encoder that runs in torch on a device and returns one vector per text."""

    dim: int  # dimension of a text embedding
    device: str
    precision = "fp32"
    cuts_columns = False  # whether a short text takes less time than a long one

    @property
    def image_dim(self) -> int:
        """The dimension of a picture embedding, which is `dim` or a multiple of it."""
        return self.dim

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the encoder, which embeds texts and pictures."""
        return Capabilities(
            embeds_texts=True,
            embeds_images=True,
            dim=self.dim,
            image_dim=self.image_dim,
            device=self.device,
            precision=self.precision,
            cuts_columns=self.cuts_columns,
        )


def check_precision(precision: str) -> str:
    """Return the precision if it is one of PRECISIONS. Raises InvalidInput."""
    if precision not in PRECISIONS:
        raise InvalidInput(
            f"Unknown precision '{precision}'. Expected one of {', '.join(PRECISIONS)}."
        )
    return precision


def pick_device(name: str) -> str:
    """Return the device to run on. "auto" picks cuda, mps or cpu, in this order. Raises InvalidInput if the
    device is not available.
    """
    import torch

    has_mps = torch.backends.mps.is_available()
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "mps" if has_mps else "cpu"
    available = ["cpu", *(["mps"] if has_mps else [])]
    if torch.cuda.is_available():
        available += ["cuda", *(f"cuda:{index}" for index in range(torch.cuda.device_count()))]
    if name not in available:
        raise InvalidInput(
            f"Device '{name}' is not available here. Expected auto or one of: {', '.join(available)}."
        )
    return name


def use_threads(count: int) -> None:
    """Set the number of threads that torch uses for an operation, without importing torch."""
    if "torch" in sys.modules:
        import torch

        torch.set_num_threads(count)
    else:  # torch reads these variables when it is imported
        os.environ |= {"OMP_NUM_THREADS": str(count), "MKL_NUM_THREADS": str(count)}


@contextlib.contextmanager
def arithmetic(device: str, precision: str, small: bool = False) -> Iterator[None]:
    """Set the precision for forward passes inside the block: fp32 with the same rounding as on a CPU, or fp16 or bf16
    with autocast.

    A `small` model runs on one thread, because several threads would mostly wait for each other.
    """
    import torch

    threads = torch.get_num_threads()
    if small:
        torch.set_num_threads(1)
    if precision == "fp32":
        rounding = without_tf32()
    else:
        dtype = {"fp16": torch.float16, "bf16": torch.bfloat16}[precision]
        rounding = torch.autocast(torch.device(device).type, dtype=dtype)
    try:
        with torch.inference_mode(), rounding:
            yield
    finally:
        torch.set_num_threads(threads)


def without_tf32() -> contextlib.AbstractContextManager:
    """Return a context in which fp32 convolutions on a GPU run in fp32 instead of TF32.

    TF32, PyTorch's default on recent GPUs, would change a cosine by 1e-4 compared to a CPU.
    """
    import torch

    return torch.backends.cudnn.flags(enabled=True, allow_tf32=False)


def on_device(array: np.ndarray, device: str) -> "torch.Tensor":
    """Copy an array to a device. Copies to a GPU use pinned memory, so that they are asynchronous."""
    import torch

    tensor = torch.from_numpy(array)
    if device.startswith("cuda"):
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def unit(embeddings: "torch.Tensor") -> np.ndarray:
    """Normalize each row to length 1, in float32 regardless of the precision of the embeddings."""
    import torch

    with torch.autocast(embeddings.device.type, enabled=False):
        return torch.nn.functional.normalize(embeddings.float(), dim=-1).cpu().numpy()


def can_cut(
    encode: Callable[[np.ndarray], np.ndarray], tokens: np.ndarray, uncut: np.ndarray
) -> bool:
    """Return whether texts of several lengths keep their embeddings if columns after the end of the text are cut.

    Args:
        encode: A function that cuts columns and encodes tokens. It must run in fp32, because half precision rounds by
            more than CUT_TOLERANCE whenever a shape changes.
        tokens: The tokens of LENGTHS_TEXTS.
        uncut: The embeddings of `tokens` with all columns, shape (n, dim).
    """
    cut = np.concatenate([encode(row[None]) for row in tokens])
    return bool(np.abs(cut - uncut).max() <= CUT_TOLERANCE)


def padded(rows: Sequence[Sequence[int]], width: int = 0) -> np.ndarray:
    """Convert token ids to an int64 array that is as wide as the longest text, and at least `width`. PAD follows the
    end of each text.

    >>> padded([[5, 6], [7]], 3).tolist()
    [[5, 6, -1], [7, -1, -1]]
    """
    tokens = np.full((len(rows), max(width, 1, *map(len, rows))), PAD, dtype=np.int64)
    for row, ids in enumerate(rows):
        tokens[row, : len(ids)] = ids
    return tokens


def resized(tokens: np.ndarray, width: int = 0) -> np.ndarray:
    """Cut or pad tokens to `width` columns, or to the length of the longest text if `width` is 0.

    >>> resized(padded([[5, 6], [7]], 4)).tolist(), resized(padded([[7]]), 2).tolist()
    ([[5, 6], [7, -1]], [[7, -1]])
    """
    width = width or max(1, int((tokens != PAD).sum(axis=1).max(initial=1)))
    columns = np.full((len(tokens), width), PAD, dtype=np.int64)
    columns[:, : tokens.shape[1]] = tokens[:, :width]
    return columns


def digest(described: Mapping[str, object], model: TorchModel) -> str:
    """Compute a digest (32 hex digits) that identifies a model, from its description and the bytes of its weights.

    Args:
        described: Everything except the weights that can change a number: config, preprocessing, tokenizer and
            precision.
        model: The model, on the CPU.
    """
    import torch

    hasher = hashlib.blake2b(
        json.dumps(described, sort_keys=True, default=str).encode(), digest_size=16
    )
    for key, tensor in sorted(model.state_dict().items()):
        hasher.update(f"{key} {tuple(tensor.shape)} {tensor.dtype}\n".encode())
        hasher.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return hasher.hexdigest()
