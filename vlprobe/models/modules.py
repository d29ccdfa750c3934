"""Types for OpenCLIP and transformers models that the type checker needs and the libraries do not declare."""

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import torch
    from torch.nn import Module as TorchModel
else:  # torch is imported when a model is loaded
    TorchModel = object


class ImageTower(Protocol):
    """The picture tower in an OpenCLIP model."""

    preprocess_cfg: dict[str, Any]  # includes mean and std, with one value per channel


class OpenClipModel(TorchModel):
    """An OpenCLIP model with a picture tower and a text tower, whose layers depend on the architecture."""

    visual: ImageTower
    logit_scale: "torch.Tensor"  # the logarithm of the scale, shape ()
    logit_bias: "torch.Tensor | None"  # shape (); None with a softmax loss

    def encode_image(self, image: "torch.Tensor", normalize: bool = False) -> "torch.Tensor":
        """Convert pixels with shape (n, channels, height, width) to embeddings with shape (n, dim)."""
        ...

    def encode_text(self, text: "torch.Tensor", normalize: bool = False) -> "torch.Tensor":
        """Convert token ids with shape (n, context) to embeddings with shape (n, dim)."""
        ...


class TransformersModel(TorchModel):
    """A transformers model, whose submodules have the names that its architecture defines."""

    config: Any

    def __call__(self, **inputs: object) -> Any:
        """Run the model and return its outputs, whose fields depend on the architecture."""
        ...

    def __getattr__(self, name: str) -> Any:
        """Return a submodule or a method of the architecture."""
        ...
