"""Types of OpenCLIP and transformers models for the type checker, which their classes do not declare."""

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import torch
    from torch.nn import Module as TorchModel
else:  # torch is imported when a model is loaded
    TorchModel = object


class ImageTower(Protocol):
    """The tower of pictures of an OpenCLIP model."""

    preprocess_cfg: dict[str, Any]  # with mean and std, a value a channel


class OpenClipModel(TorchModel):
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


class TransformersModel(TorchModel):
    """A model of transformers; its parts have the names that its architecture gives them."""

    config: Any

    def __call__(self, **inputs: object) -> Any:
        """Return the outputs, whose fields depend on the architecture."""
        ...

    def __getattr__(self, name: str) -> Any:
        """A submodule, or a method of the architecture."""
        ...
