"""Adapter that probes a torch model during training, with its current weights."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from vlprobe.models import frozen
from vlprobe.models.frozen import TorchDualEncoder
from vlprobe.models.modules import TorchModel

if TYPE_CHECKING:
    import torch
    from PIL import Image

    Tower = Callable[[torch.Tensor], torch.Tensor]


class ModuleEncoder(TorchDualEncoder):
    """A torch module with a picture tower and a text tower. The module is not moved or changed.

    Args:
        name: The name under which results are stored.
        module: The module whose weights are part of the digest.
        encode_image: A function from preprocessed pictures with shape (n, ...) to embeddings with shape (n, dim).
        encode_text: A function from tokens with shape (n, columns) to embeddings with shape (n, dim).
        preprocess: A function from a PIL image to a tensor.
        tokenizer: A function from texts to an int64 tensor with shape (n, columns).
        version: A version of the preprocessing, the tokenizer and the towers. It is part of the digest and
            must change whenever one of them changes.
    """

    def __init__(
        self,
        name: str,
        module: "torch.nn.Module",
        encode_image: "Tower",
        encode_text: "Tower",
        preprocess: "Callable[[Image.Image], torch.Tensor]",
        tokenizer: "Callable[[list[str]], torch.Tensor]",
        version: str,
    ) -> None:
        self.name, self.note = name, "in the middle of a training"
        self._encode_image, self._encode_text = encode_image, encode_text
        self._preprocess, self._tokenizer = preprocess, tokenizer
        self.device = str(next(module.parameters()).device)
        self.digest = frozen.digest({"version": version}, cast(TorchModel, module))
        self.dim = self.encode_texts(self.tokenize(["a text"])).shape[1]

    def preprocess(self, image: "Image.Image") -> np.ndarray:
        """Convert an RGB PIL image to an array."""
        return np.asarray(self._preprocess(image))

    def encode_images(self, pixels: np.ndarray) -> np.ndarray:
        """Convert preprocessed pictures with shape (n, ...) to unit vectors with shape (n, dim)."""
        return self._units(self._encode_image, pixels)

    def tokenize(self, texts: Sequence[str]) -> np.ndarray:
        """Tokenize texts to int64 with shape (n, columns)."""
        return np.asarray(self._tokenizer(list(texts)), dtype=np.int64)

    def encode_texts(self, tokens: np.ndarray) -> np.ndarray:
        """Convert tokens with shape (n, columns) to unit vectors with shape (n, dim)."""
        return self._units(self._encode_text, tokens)

    def _units(self, tower: "Tower", batch: np.ndarray) -> np.ndarray:
        import torch

        with (
            torch.autocast(torch.device(self.device).type, enabled=False),
            frozen.arithmetic(self.device, "fp32"),
        ):
            return frozen.unit(tower(frozen.on_device(np.ascontiguousarray(batch), self.device)))
