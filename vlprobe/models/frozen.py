"""Shared parts of all frozen torch models: arithmetic, unit vectors, padded texts, a digest of everything that
affects results, and the facts of a dual encoder.
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
# Case, accents, punctuation, digits, and more words than any context holds: equal ids here, equal
# tokenizers for us.
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
# largest difference in a coordinate of a unit vector that cutting columns may make
CUT_TOLERANCE = 1e-6
PAD = -1  # no text there: unlike a tokenizer's own padding, never a word


class TorchDualEncoder(DualEncoder):
    """A dual encoder with one vector per text, on a device."""

    dim: int  # of an embedding of a text
    device: str
    precision = "fp32"
    cuts_columns = False  # whether a short text takes less time than a long one

    @property
    def image_dim(self) -> int:
        """Dimension of an embedding of a picture: `dim`, or a multiple of it."""
        return self.dim

    @property
    def capabilities(self) -> Capabilities:
        """Embeddings of both sides."""
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
    """Return the precision if it is a known one. Raises InvalidInput."""
    if precision not in PRECISIONS:
        raise InvalidInput(
            f"Unknown precision '{precision}'. Expected one of {', '.join(PRECISIONS)}."
        )
    return precision


def pick_device(name: str) -> str:
    """Return the device to run on: "auto" takes cuda, then mps, then cpu. Raises InvalidInput for one that
    is not there.
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
    """Make torch use so many threads for an operation; it is not imported for that."""
    if "torch" in sys.modules:
        import torch

        torch.set_num_threads(count)
    else:  # which torch reads when it is imported
        os.environ |= {"OMP_NUM_THREADS": str(count), "MKL_NUM_THREADS": str(count)}


@contextlib.contextmanager
def arithmetic(device: str, precision: str, small: bool = False) -> Iterator[None]:
    """Forward passes only, in fp32 as a CPU does it, or in fp16 or bf16 where autocast finds it
    safe.

    A `small` model runs on one thread: several would spend their time waiting for each other.
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
    """Compute fp32 convolutions on a GPU in fp32.

    TF32, PyTorch's default on recent GPUs, would move a cosine by 1e-4 against a CPU.
    """
    import torch

    return torch.backends.cudnn.flags(enabled=True, allow_tf32=False)


def on_device(array: np.ndarray, device: str) -> "torch.Tensor":
    """Copy the array to the device; to a GPU from pinned memory, so that the copy is asynchronous."""
    import torch

    tensor = torch.from_numpy(array)
    if device.startswith("cuda"):
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def unit(embeddings: "torch.Tensor") -> np.ndarray:
    """Rows of length 1, float32, whatever the precision of the embeddings."""
    import torch

    with torch.autocast(embeddings.device.type, enabled=False):
        return torch.nn.functional.normalize(embeddings.float(), dim=-1).cpu().numpy()


def can_cut(
    encode: Callable[[np.ndarray], np.ndarray], tokens: np.ndarray, whole: np.ndarray
) -> bool:
    """Return whether texts of several lengths have the same embeddings when columns after their end are cut.

    Args:
        encode: Cuts columns; in fp32, since half precision rounds by more than CUT_TOLERANCE whenever a shape changes.
        tokens: Of LENGTHS_TEXTS.
        whole: Their embeddings with all columns, shape (n, dim).
    """
    cut = np.concatenate([encode(row[None]) for row in tokens])
    return bool(np.abs(cut - whole).max() <= CUT_TOLERANCE)


def padded(rows: Sequence[Sequence[int]], width: int = 0) -> np.ndarray:
    """Token ids as int64, as wide as the longest text or `width`, with PAD after the end of each
    text.

    >>> padded([[5, 6], [7]], 3).tolist()
    [[5, 6, -1], [7, -1, -1]]
    """
    tokens = np.full((len(rows), max(width, 1, *map(len, rows))), PAD, dtype=np.int64)
    for row, ids in enumerate(rows):
        tokens[row, : len(ids)] = ids
    return tokens


def resized(tokens: np.ndarray, width: int = 0) -> np.ndarray:
    """Return the columns up to the end of the longest text, or `width` of them.

    >>> resized(padded([[5, 6], [7]], 4)).tolist(), resized(padded([[7]]), 2).tolist()
    ([[5, 6], [7, -1]], [[7, -1]])
    """
    width = width or max(1, int((tokens != PAD).sum(axis=1).max(initial=1)))
    columns = np.full((len(tokens), width), PAD, dtype=np.int64)
    columns[:, : tokens.shape[1]] = tokens[:, :width]
    return columns


def digest(described: Mapping[str, object], model: TorchModel) -> str:
    """Compute the 32 hex digits that identify a model, from its description and the bytes of its weights.

    Args:
        described: Config, preprocessing, tokenizer and precision: everything except the weights that can change a
        number.
        model: On the CPU.
    """
    import torch

    hasher = hashlib.blake2b(
        json.dumps(described, sort_keys=True, default=str).encode(), digest_size=16
    )
    for key, tensor in sorted(model.state_dict().items()):
        hasher.update(f"{key} {tuple(tensor.shape)} {tensor.dtype}\n".encode())
        hasher.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return hasher.hexdigest()
