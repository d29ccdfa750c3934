"""Shared parts of transformers heads that process a picture and a text together, and of the towers that some of them
have: `hf-itm:` uses the head, `hf:` only the cosine of the towers.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

import numpy as np
from PIL import Image

from vlprobe.models import frozen, hub
from vlprobe.models.description import description
from vlprobe.models.frozen import FINGERPRINT_TEXTS, TorchDualEncoder
from vlprobe.models.modules import TransformersModel
from vlprobe.types import Capabilities, PairScorer

if TYPE_CHECKING:
    import torch


class HubModel:
    """A model of transformers, frozen, with the tokenizer and the image processor of its folder.

    Args:
        name: The name that the user typed.
        folder: The folder of its tokenizer and image processor.
        model: On the CPU; it is moved to the device.
        config: The settings in its folder.
        device: The return value of `pick_device`.
        precision: "fp32", or "fp16" or "bf16" for autocast; embeddings are normalised in fp32 in
            any case.
    """

    architecture: str  # class of transformers
    context: int  # tokens of a text, as in the released evaluation
    unused_parts: tuple[str, ...] = ()  # of the architecture, that answer no question here

    def __init__(
        self,
        name: str,
        folder: Path,
        model: TransformersModel,
        config: dict,
        device: str,
        precision: str,
    ) -> None:
        self.name, self.device, self.precision = name, device, precision
        self._tokenizer, self._processor = hub.tokenizer(folder), hub.image_processor(folder)
        tokens = self.tokenize(FINGERPRINT_TEXTS).tolist()
        covered = description(config, self._processor, tokens, precision)
        self.digest = frozen.digest(covered, model)
        self._model = model.to(device)
        self.note = self._note()

    @classmethod
    def opened(cls, name: str, folder: Path, config: dict, device: str, precision: str) -> Self:
        """Return the model of a folder, without its unused parts. Raises InvalidInput, as `hub.load`."""
        import transformers

        may_be_missing = ("position_ids", *(f"{part}." for part in cls.unused_parts))
        architecture = getattr(transformers, cls.architecture)
        model = hub.load(name, architecture, folder, unused=may_be_missing)
        for part in cls.unused_parts:
            setattr(model, part, None)
        return cls(name, folder, model, config, device, precision)

    def _note(self) -> str:
        """Note for readers of its scores."""
        return ""

    def facts(self) -> dict[str, str]:
        """Describe what was built, by subject."""
        return hub.facts(self._model, self._tokenizer, self._processor)

    def preprocess(self, image: Image.Image) -> np.ndarray:
        """An RGB PIL image to float32 of shape (3, height, width)."""
        return self._processor(images=image, return_tensors="np")["pixel_values"][0]

    def tokenize(self, texts: Sequence[str]) -> np.ndarray:
        """Texts to int64 of shape (n, columns), PAD after the end."""
        encoded = self._tokenizer(
            list(texts), truncation=True, max_length=self.context, padding=False
        )
        return frozen.padded(encoded["input_ids"])

    def _text_inputs(self, tokens: np.ndarray) -> tuple["torch.Tensor", "torch.Tensor"]:
        """Ids and attention mask as BERT wants them, on the device."""
        import torch

        ids = torch.from_numpy(frozen.resized(tokens)).to(self.device)
        is_text = ids != frozen.PAD
        return ids.masked_fill(~is_text, self._tokenizer.pad_token_id or 0), is_text.long()


class Towers(HubModel, TorchDualEncoder):
    """A tower for pictures and one for texts, of a model that has more: its cosine, and no head."""

    unused_parts = ("itm_head",)
    cuts_columns = True

    @property
    def dim(self) -> int:
        """Dimension of an embedding of a text."""
        return self._model.config.image_text_hidden_size

    def encode_images(self, pixels: np.ndarray) -> np.ndarray:
        """Shape (n, 3, height, width) to unit vectors, of several in a row to one row."""
        with frozen.arithmetic(self.device, self.precision):
            return frozen.unit(self._image_vectors(self._hidden(pixels))).reshape(len(pixels), -1)

    def encode_texts(self, tokens: np.ndarray) -> np.ndarray:
        """Shape (n, columns) to unit vectors of shape (n, dim)."""
        with frozen.arithmetic(self.device, self.precision):
            return frozen.unit(self._text_vectors(*self._text_inputs(tokens)))

    def _note(self) -> str:
        return "the cosine of its towers: its matching head is not asked"

    @abstractmethod
    def _image_vectors(self, hidden: "torch.Tensor") -> "torch.Tensor":
        """Hidden states of pictures to embeddings of shape (n, image_dim), or (n, image_dim / dim,
        dim).
        """

    @abstractmethod
    def _text_vectors(self, ids: "torch.Tensor", mask: "torch.Tensor") -> "torch.Tensor":
        """Ids and attention mask to embeddings of shape (n, dim)."""

    def _hidden(self, pixels: np.ndarray) -> "torch.Tensor":
        """Hidden states of the vision tower, pictures first."""
        import torch

        return self._model.vision_model(
            pixel_values=torch.from_numpy(pixels).to(self.device)
        ).last_hidden_state


class ItmHead(HubModel, PairScorer):
    """A head that looks at a picture and a text together."""

    score_type: Literal["probability", "logit"] = "probability"

    @property
    def capabilities(self) -> Capabilities:
        """Scores of pairs."""
        return Capabilities(
            scores_pairs=True,
            score_type=self.score_type,
            device=self.device,
            precision=self.precision,
        )

    def encode_pictures(self, pixels: Sequence[np.ndarray]) -> Sequence:
        """Return the pictures unchanged: a picture cannot be encoded without its text."""
        return list(pixels)


class TwoSided(ItmHead, Towers):
    """A head that also has embeddings of each side."""

    unused_parts = ()

    @property
    def capabilities(self) -> Capabilities:
        """Scores of pairs, and embeddings of both sides."""
        return replace(
            super().capabilities,
            embeds_texts=True,
            embeds_images=True,
            dim=self.dim,
            image_dim=self.image_dim,
        )

    def encode_pictures(self, pixels: Sequence[np.ndarray]) -> list["torch.Tensor"]:
        """Each picture as the hidden states of the vision tower."""
        with frozen.arithmetic(self.device, self.precision):
            return list(self._hidden(np.stack(pixels)))

    def match(
        self, encoded: Sequence["torch.Tensor"], tokens: np.ndarray, logits: bool = False
    ) -> np.ndarray:
        """Probability that each picture fits its text, or the logit that it does; float32 of shape
        (n,).
        """
        import torch

        with frozen.arithmetic(self.device, self.precision):
            return scores_of_classes(
                self._pair_logits(torch.stack(list(encoded)), *self._text_inputs(tokens)), logits
            )

    def _note(self) -> str:
        return ""

    @abstractmethod
    def _pair_logits(
        self, hidden: "torch.Tensor", ids: "torch.Tensor", mask: "torch.Tensor"
    ) -> "torch.Tensor":
        """Compute logits of no match and of a match from hidden states of pictures and texts, shape (n, 2)."""


def scores_of_classes(pair_logits: "torch.Tensor", logits: bool) -> np.ndarray:
    """Logits of no match and of a match, shape (n, 2), to the probability of a match, or its logit;
    float32 of shape (n,).
    """
    pair_logits = pair_logits.double().cpu()
    scores = pair_logits[:, 1] if logits else (pair_logits[:, 1] - pair_logits[:, 0]).sigmoid()
    return scores.float().numpy()
