"""What training uses of a CLIP model of OpenCLIP, whose own class says nothing of it to a type
checker.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import torch


class ImageTower(Protocol):
    """The tower of pictures."""

    preprocess_cfg: Mapping[str, Sequence[float]]  # with mean and std, a value a channel


class TwoTowers(Protocol):
    """A module with a tower for pictures and one for texts."""

    visual: ImageTower
    logit_scale: "torch.Tensor"  # the logarithm of the scale, shape ()
    logit_bias: "torch.Tensor | None"  # shape (); None with a softmax loss

    def encode_image(self, image: "torch.Tensor", normalize: bool = False) -> "torch.Tensor":
        """Pixels of shape (n, channels, height, width) to embeddings of shape (n, dim)."""
        ...

    def encode_text(self, text: "torch.Tensor", normalize: bool = False) -> "torch.Tensor":
        """Token ids of shape (n, context) to embeddings of shape (n, dim)."""
        ...
