"""Interfaces of OpenCLIP and transformers models for the type checker, which their classes do not declare."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol, Self

if TYPE_CHECKING:
    import torch


class TorchModel(Protocol):
    """Interface of any `torch.nn.Module`."""

    def eval(self) -> Self:
        """Switch to evaluation mode: no dropout."""
        ...

    def train(self) -> Self:
        """Switch to training mode."""
        ...

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Freezes all weights, or sets all free."""
        ...

    def to(self, device: str) -> Self:
        """Move the weights."""
        ...

    def parameters(self) -> "Iterator[torch.nn.Parameter]":
        """Return all weights."""
        ...

    def named_parameters(self) -> "Iterator[tuple[str, torch.nn.Parameter]]":
        """Return all weights with their names."""
        ...

    def modules(self) -> "Iterator[torch.nn.Module]":
        """Return the model and all of its layers."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Return all weights and buffers by name."""
        ...

    def load_state_dict(self, state_dict: "Mapping[str, Any]") -> object:
        """Replace weights and buffers. Raises RuntimeError if one is missing or misshapen."""
        ...


class ImageTower(Protocol):
    """The tower of pictures of an OpenCLIP model."""

    preprocess_cfg: dict[str, Any]  # with mean and std, a value a channel


class OpenClipModel(TorchModel, Protocol):
    """A module with a tower for pictures and one for texts; their layers depend on the
    architecture.
    """

    visual: ImageTower
    logit_scale: "torch.Tensor"  # the logarithm of the scale, shape ()
    logit_bias: "torch.Tensor | None"  # shape (); None with a softmax loss

    def encode_image(self, image: "torch.Tensor", normalize: bool = False) -> "torch.Tensor":
        """Pixels of shape (n, channels, height, width) to embeddings of shape (n, dim)."""
        ...

    def encode_text(self, text: "torch.Tensor", normalize: bool = False) -> "torch.Tensor":
        """Token ids of shape (n, context) to embeddings of shape (n, dim)."""
        ...


class TransformersModel(TorchModel, Protocol):
    """A model of transformers; its parts have the names that its architecture gives them."""

    config: Any

    def __call__(self, **inputs: object) -> Any:
        """Return the outputs, whose fields depend on the architecture."""
        ...

    def __getattr__(self, part: str) -> Any:
        """A submodule, or a method of the architecture."""
        ...
