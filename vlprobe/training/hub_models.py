"""Adapter that lets a `Learner` train transformers models, either their towers or a matching head on all pairs."""

import math
from typing import Any

import numpy as np
import torch

from vlprobe.errors import InvalidInput
from vlprobe.models.heads import HubDualEncoder, HubModel, ItmHead

FIRST_SCALE = 1 / 0.07  # CLIP's and BLIP's first logit scale, for a model that has none


class Trainable(torch.nn.Module):
    """A loaded transformers model that can be fine-tuned.

    Args:
        encoder: The model, as `registry.load_model` returns it.

    Raises:
        InvalidInput: The model has neither towers with one vector per input nor a head with two classes.
    """

    def __init__(self, encoder: HubModel) -> None:
        super().__init__()
        self.model = encoder.module
        self._encoder: Any = encoder
        self.has_head = isinstance(encoder, ItmHead)
        is_trained = (
            encoder.score_type == "probability"
            if isinstance(encoder, ItmHead)
            else isinstance(encoder, HubDualEncoder) and encoder.image_dim == encoder.dim
        )
        if not is_trained:
            raise InvalidInput(
                f"'{encoder.name}' cannot be fine-tuned. Expected towers with one vector per picture, "
                "or a matching head with two classes (BLIP, BLIP-2, FLAVA, BridgeTower)."
            )
        scale = getattr(self.model, "logit_scale", None)
        if scale is None:
            scale = torch.nn.Parameter(torch.tensor(math.log(FIRST_SCALE), device=encoder.device))
        self.logit_scale, self.logit_bias = scale, getattr(self.model, "logit_bias", None)

    def encode_image(self, pixels: torch.Tensor) -> torch.Tensor:
        """Convert pixels with shape (n, 3, height, width) to embeddings with shape (n, dim)."""
        return self._encoder.image_features(pixels)

    def encode_text(self, tokens: torch.Tensor) -> torch.Tensor:
        """Convert token ids with shape (n, columns) to embeddings with shape (n, dim)."""
        return self._encoder.text_features(tokens)

    def match(self, pixels: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """Compute the log-odds that each of n pictures matches each of m texts, shape (n, m)."""
        return self._encoder.match_logits(pixels, tokens)

    @property
    def normal(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The mean and standard deviation used in preprocessing, shape (3, 1, 1), or None if the model has none."""
        settings = self._encoder.processor_settings()
        mean, std = settings.get("image_mean"), settings.get("image_std")
        if mean is None or std is None:
            return None
        mean, std = np.array([mean, std], np.float32)[..., None, None]
        return mean, std
