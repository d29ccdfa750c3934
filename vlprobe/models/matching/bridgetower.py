"""BridgeTower: two towers whose layers are bridged to a cross-modal one, which a matching head reads."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from vlprobe.errors import InvalidInput
from vlprobe.models import frozen
from vlprobe.models.matching.heads import ItmHead, Towers, scores_of_classes
from vlprobe.models.modules import TransformersModel

if TYPE_CHECKING:
    import torch


class BridgeTower(ItmHead):
    """BridgeTower's matching head. Its text is as long as in pre-training."""

    architecture, context = "BridgeTowerForImageAndTextRetrieval", 50

    def match(
        self, encoded: Sequence[np.ndarray], tokens: np.ndarray, logits: bool = False
    ) -> np.ndarray:
        """Probability that each picture fits its text, or the logit that it does; float32 of shape
        (n,).
        """
        import torch

        ids, mask = self._text_inputs(tokens)
        pixels = torch.from_numpy(np.stack(encoded)).to(self.device)
        with frozen.arithmetic(self.device, self.precision):
            out = self._model(input_ids=ids, attention_mask=mask, pixel_values=pixels)
            return scores_of_classes(out.logits, logits)


class BridgeTowerTowers(Towers):
    """BridgeTower's contrastive side (ITC), which some of its checkpoints have: the last layer of
    each tower, before anything is bridged.
    """

    architecture, context = "BridgeTowerForContrastiveLearning", 50
    unused_parts = ("itc_cross_modal_head",)

    @classmethod
    def opened(cls, name: str, folder: Path, config: dict, device: str, precision: str) -> Self:
        """Load the towers of a folder. Raises InvalidInput, also if it only has the matching head."""
        if "contrastive_hidden_size" not in config:
            raise InvalidInput(
                f"'{name}' has no contrastive side, whose cosine this would be. "
                f"Load its matching head as hf-itm:{name.partition(':')[2]}."
            )
        return super().opened(name, folder, config, device, precision)

    @property
    def dim(self) -> int:
        """Dimension of an embedding of either side."""
        return self._model.config.contrastive_hidden_size

    def _hidden(self, pixels: np.ndarray) -> "torch.Tensor":
        import torch

        tower = self._model.bridgetower.vision_model.visual
        hidden = tower.forward_pre(torch.from_numpy(pixels).to(self.device))
        # As many layers as the texts have: those that are bridged
        for block in tower.transformer.resblocks[: len(self._text_tower.encoder.layer)]:
            hidden = block(hidden)
        return tower.forward_post(hidden)

    def _image_vectors(self, hidden: "torch.Tensor") -> "torch.Tensor":
        import torch

        trunk = self._model.bridgetower
        is_picture = torch.ones(len(hidden), dtype=torch.long, device=self.device)
        pooled = trunk.cross_modal_image_transform(hidden[:, 0])
        return self._model.itc_image_head(pooled + trunk.token_type_embeddings(is_picture))

    def _text_vectors(self, ids: "torch.Tensor", mask: "torch.Tensor") -> "torch.Tensor":
        hidden = self._text_tower(input_ids=ids, attention_mask=mask).last_hidden_state
        return self._model.itc_text_head(hidden[:, 0])

    @property
    def _text_tower(self) -> TransformersModel:
        return self._model.bridgetower.text_model
