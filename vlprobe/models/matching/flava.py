"""FLAVA: two towers, and a multimodal one over their hidden states with a matching head on top."""

from typing import TYPE_CHECKING

import numpy as np

from vlprobe.models.matching.heads import TwoSided

if TYPE_CHECKING:
    import torch


class Flava(TwoSided):
    """FLAVA's matching head. Its towers by themselves are loaded as `hf:`.

    The multimodal tower reads the hidden states before the last layer norm of each side; embeddings
    are of the first token after it.
    """

    architecture, context = "FlavaForPreTraining", 77
    unused_parts = ("image_codebook", "mim_head", "mlm_head", "mmm_image_head", "mmm_text_head")

    @property
    def dim(self) -> int:
        """Dimension of an embedding of either side."""
        return self._model.config.projection_dim

    def _hidden(self, pixels: np.ndarray) -> "torch.Tensor":
        import torch

        return self._model.flava.image_model(
            torch.from_numpy(pixels).to(self.device), output_hidden_states=True
        ).hidden_states[-1]

    def _image_vectors(self, hidden: "torch.Tensor") -> "torch.Tensor":
        flava = self._model.flava
        return flava.image_projection(flava.image_model.layernorm(hidden)[:, 0])

    def _text_vectors(self, ids: "torch.Tensor", mask: "torch.Tensor") -> "torch.Tensor":
        flava = self._model.flava
        return flava.text_projection(flava.text_model(ids, mask).last_hidden_state[:, 0])

    def _pair_logits(
        self, hidden: "torch.Tensor", ids: "torch.Tensor", mask: "torch.Tensor"
    ) -> "torch.Tensor":
        import torch

        flava = self._model.flava
        text_hidden = flava.text_model(ids, mask, output_hidden_states=True).hidden_states[-1]
        both = [flava.image_to_mm_projection(hidden), flava.text_to_mm_projection(text_hidden)]
        n_before = hidden.shape[1] + int(flava.multimodal_model.use_cls_token)
        out = flava.multimodal_model(
            torch.cat(both, dim=1),
            attention_mask=torch.nn.functional.pad(mask, (n_before, 0), value=1),
        )
        return self._model.itm_head(out.last_hidden_state)
