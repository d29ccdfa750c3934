"""Adapter for a torch model in training, with its current weights."""

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
    """A module with a tower for pictures and one for texts. It is neither moved nor changed.

    Args:
        name: By which its results are kept.
        module: Its weights are in the digest.
        encode_image: Shape (n, ...) of preprocessed pictures to (n, dim).
        encode_text: Shape (n, columns) of tokens to (n, dim).
        preprocess: A PIL image to a tensor.
        tokenizer: Texts to an int64 tensor of shape (n, columns).
        version: Names the preprocessing, the tokenizer and the towers: it must change with each of
            them, and is in the digest.
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
        """An RGB PIL image to an array."""
        return np.asarray(self._preprocess(image))

    def encode_images(self, pixels: np.ndarray) -> np.ndarray:
        """Shape (n, ...) to unit vectors of shape (n, dim)."""
        return self._units(self._encode_image, pixels)

    def tokenize(self, texts: Sequence[str]) -> np.ndarray:
        """Texts to int64 of shape (n, columns)."""
        return np.asarray(self._tokenizer(list(texts)), dtype=np.int64)

    def encode_texts(self, tokens: np.ndarray) -> np.ndarray:
        """Shape (n, columns) to unit vectors of shape (n, dim)."""
        return self._units(self._encode_text, tokens)

    def _units(self, tower: "Tower", batch: np.ndarray) -> np.ndarray:
        import torch

        with (
            torch.autocast(torch.device(self.device).type, enabled=False),
            frozen.arithmetic(self.device, "fp32"),
        ):
            return frozen.unit(tower(frozen.on_device(np.ascontiguousarray(batch), self.device)))
