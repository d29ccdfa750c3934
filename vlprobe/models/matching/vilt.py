"""ViLT: a logit without a scale for a picture with a text."""

from collections.abc import Sequence

import numpy as np

from vlprobe.models import frozen
from vlprobe.models.matching.heads import ItmHead


class Vilt(ItmHead):
    """ViLT: one tower for patches and words, and a logit without a scale; no separate embeddings."""

    architecture, context, score_type = "ViltForImageAndTextRetrieval", 40, "logit"

    def match(
        self, encoded: Sequence[np.ndarray], tokens: np.ndarray, logits: bool = False
    ) -> np.ndarray:
        """Return the rank head's logit of each picture and its text, float32 of shape (n,)."""
        import torch

        height, width = (max(pixels.shape[axis] for pixels in encoded) for axis in (1, 2))
        batch = torch.zeros((len(encoded), 3, height, width))
        mask = torch.zeros((len(encoded), height, width), dtype=torch.long)
        for row, pixels in enumerate(encoded):
            batch[row, :, : pixels.shape[1], : pixels.shape[2]] = torch.from_numpy(pixels)
            mask[row, : pixels.shape[1], : pixels.shape[2]] = 1
        ids, text_mask = self._text_inputs(tokens)
        # transformers shuffles the patches at random, which only changes the last bits.
        with torch.random.fork_rng(devices=[]), frozen.arithmetic(self.device, self.precision):
            torch.default_generator.manual_seed(0)
            out = self._model(
                input_ids=ids,
                attention_mask=text_mask,
                pixel_values=batch.to(self.device),
                pixel_mask=mask.to(self.device),
            )
        return out.logits[:, 0].float().cpu().numpy()
