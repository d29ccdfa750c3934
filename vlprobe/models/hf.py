"""Dual encoders of transformers: hf:OWNER/NAME from the hub, hf:FOLDER from a disk. For a model with a matching head
and towers, this is the cosine of the towers; hf-itm: is the head.

SigLIP pools the last column, even if it is padding, and its other columns attend to padding: texts are padded to the
training length, never to the longest of a batch. SigLIP 2 was trained on lower-case text; not every tokenizer that
comes with it folds case, so it happens here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from PIL import Image

from vlprobe.errors import InvalidInput
from vlprobe.models import frozen, hub
from vlprobe.models.description import description
from vlprobe.models.frozen import (
    CUT_TOLERANCE,
    FINGERPRINT_TEXTS,
    LENGTHS_TEXTS,
    TorchDualEncoder,
    pick_device,
)
from vlprobe.models.matching.blip import Blip2Towers, BlipTowers
from vlprobe.models.matching.bridgetower import BridgeTowerTowers
from vlprobe.models.matching.heads import Towers
from vlprobe.models.modules import TransformersModel

if TYPE_CHECKING:
    import torch

PREFIX = "hf"


@dataclass(frozen=True, slots=True)
class Kind:
    """Properties of an architecture that its config does not contain."""

    architecture: str  # class of transformers
    # after all that a causal tower looks at; masked out; part of the text
    pads: Literal["after", "masked", "seen"]
    context: int = 0  # columns of text that it was trained with; 0: as many as it has positions
    # whether it reads the first column, without a word, of a text that has no end-of-text id
    needs_end: bool = False


KINDS = {
    "clip": Kind("CLIPModel", "after"),
    "siglip": Kind("SiglipModel", "seen"),
    "siglip2": Kind("Siglip2Model", "seen"),
    "align": Kind("AlignModel", "masked", 64),
    "altclip": Kind("AltCLIPModel", "masked", 77),
    "flava": Kind("FlavaModel", "masked", 77),
    "chinese_clip": Kind("ChineseCLIPModel", "masked", 52),
    "metaclip_2": Kind("MetaClip2Model", "after", needs_end=True),
}
TOWERS: dict[str, type[Towers]] = {
    "blip": BlipTowers,
    "blip-2": Blip2Towers,
    "bridgetower": BridgeTowerTowers,
}
ELSEWHERE = {"vilt": "hf-itm"}


def names() -> list[str]:
    """Typical names; any repository or folder that holds one of KINDS or TOWERS can be typed."""
    return [
        "hf:openai/clip-vit-base-patch32",
        "hf:google/siglip-base-patch16-224",
        "hf:google/siglip2-base-patch16-224",
        "hf:kakaobrain/align-base",
        "hf:BAAI/AltCLIP",
        "hf:facebook/flava-full",
        "hf:facebook/metaclip-2-worldwide-huge-quickgelu",
        "hf:Salesforce/blip-itm-base-coco",
        "hf:BridgeTower/bridgetower-large-itm-mlm-itc",
    ]


def check_name(name: str) -> None:
    """Raise InvalidInput if the name is that of no folder and can be that of no repository."""
    hub.local_folder(name)


def load(name: str, device: str = "auto", precision: str = "fp32") -> "HfEncoder | Towers":
    """Return the model of that name. Raises InvalidInput or MissingDependency."""
    hub.need(name, "transformers")
    device, precision = pick_device(device), frozen.check_precision(precision)
    folder = hub.find(name)
    config = hub.read_config(folder)
    model_type = str(config.get("model_type"))
    if model_type in TOWERS:
        with hub.opening(name):
            towers = TOWERS[model_type].opened(name, folder, config, device, precision)
            towers.encode_images(towers.preprocess(Image.new("RGB", (64, 64)))[None])
            towers.encode_texts(towers.tokenize(["a"]))
        towers.sources = hub.sources(folder)
        return towers
    kind = KINDS.get(model_type)
    if kind is None:
        prefix = ELSEWHERE.get(model_type)
        raise InvalidInput(
            f"'{name}' is a model of type '{model_type}'. "
            f"Expected one of: {', '.join([*KINDS, *TOWERS])}."
            + (f" Load it as {prefix}:{name.partition(':')[2]}." if prefix else "")
        )
    import transformers

    with hub.opening(name):
        model = hub.load(name, getattr(transformers, kind.architecture), folder)
        encoder = HfEncoder(name, folder, model, kind, config, device, precision)
        encoder.sources = hub.sources(folder)
        return encoder


class HfEncoder(TorchDualEncoder):
    """A dual encoder of transformers, frozen.

    Columns after the end of the longest text of a batch are skipped if a check on texts of several lengths confirms
    that the embeddings stay the same.

    Args:
        name: The name that the user typed.
        folder: The folder of its tokenizer and image processor.
        model: On the CPU; it is moved to the device.
        kind: Its architecture.
        config: The settings in its folder.
        device: The return value of `pick_device`.
        precision: "fp32", or "fp16" or "bf16" for autocast; embeddings are normalised in fp32 in
            any case.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        model: TransformersModel,
        kind: Kind,
        config: dict,
        device: str,
        precision: str,
    ) -> None:
        self.name, self.device, self.kind = name, device, kind
        self._tokenizer, self._processor = hub.tokenizer(folder), hub.image_processor(folder)
        text = model.config.text_config
        self.context = min(
            kind.context or text.max_position_embeddings, text.max_position_embeddings
        )
        tokenizer = type(self._tokenizer).__name__
        self.lowers = kind.pads == "seen" and ("Gemma" in tokenizer or "Siglip2" in tokenizer)
        self.note = "texts are lower-cased, as SigLIP 2 was trained" if self.lowers else ""
        tokens = self.tokenize(FINGERPRINT_TEXTS).tolist()
        covered = description(config, self._processor, tokens, precision)
        self.digest = frozen.digest(covered, model)
        self._model = model.to(device)
        # Whether columns can be cut is a property of the tower, so it is judged in fp32: half
        # precision rounds by more than the tolerance whenever a shape changes.
        self.precision = "fp32"
        tokens = self.tokenize(LENGTHS_TEXTS)
        if kind.needs_end and not (tokens == text.eos_token_id).any(axis=1).all():
            raise InvalidInput(
                f"The tokenizer of '{name}' does not end a text with the id {text.eos_token_id}, at which "
                "its model reads it. Expected the tokenizer that the model was trained with."
            )
        whole = self.encode_texts(tokens, cut=False)
        self.dim = whole.shape[1]
        vectors = self.encode_images(self.preprocess(Image.new("RGB", (64, 64)))[None])
        if vectors.shape[1] != self.dim:
            raise InvalidInput(
                f"'{name}' embeds pictures in {vectors.shape[1]} numbers and texts in {self.dim}."
            )
        self.cuts_columns = kind.pads != "seen"
        if self.cuts_columns:
            alone = np.concatenate([self.encode_texts(row[None]) for row in tokens])
            self.cuts_columns = bool(np.abs(alone - whole).max() <= CUT_TOLERANCE)
        self.precision = precision

    def facts(self) -> dict[str, str]:
        """Describe what was built, by subject."""
        return hub.facts(self._model, self._tokenizer, self._processor)

    def preprocess(self, image: Image.Image) -> np.ndarray:
        """Convert an RGB PIL image to float32: (3, height, width), or patches with their positions (SigLIP 2)."""
        inputs = self._processor(images=image, return_tensors="np")
        pixels = inputs["pixel_values"][0]
        if "spatial_shapes" not in inputs:
            return pixels
        shapes = np.broadcast_to(inputs["spatial_shapes"][0], (len(pixels), 2))
        return np.concatenate(
            [pixels, inputs["pixel_attention_mask"][0][:, None], shapes], axis=1, dtype=np.float32
        )

    def encode_images(self, pixels: np.ndarray) -> np.ndarray:
        """Preprocessed images to unit vectors of shape (n, dim)."""
        import torch

        tensor = torch.from_numpy(pixels).to(self.device)
        inputs = {"pixel_values": tensor}
        if tensor.ndim == 3:
            mask, shapes = tensor[:, :, -3].long(), tensor[:, 0, -2:].long()
            inputs = {
                "pixel_values": tensor[:, :, :-3],
                "pixel_attention_mask": mask,
                "spatial_shapes": shapes,
            }
        with frozen.arithmetic(self.device, self.precision):
            return frozen.unit(_pooled(self._model.get_image_features(**inputs)))

    def tokenize(self, texts: Sequence[str]) -> np.ndarray:
        """Texts to int64 of shape (n, columns), PAD after the end; of shape (n, context) where pads
        are seen.
        """
        texts = [text.lower() for text in texts] if self.lowers else list(texts)
        ids = self._tokenizer(texts, truncation=True, max_length=self.context, padding=False)[
            "input_ids"
        ]
        if self.kind.pads != "seen":
            return frozen.padded(ids)
        tokens = frozen.padded(ids, self.context)
        return np.where(tokens == frozen.PAD, self._tokenizer.pad_token_id or 0, tokens)

    def encode_texts(self, tokens: np.ndarray, cut: bool = True) -> np.ndarray:
        """Shape (n, columns) to unit vectors of shape (n, dim); `cut=False` runs all columns of the
        context.
        """
        import torch

        tokens = frozen.resized(tokens, 0 if cut and self.cuts_columns else self.context)
        ids = torch.from_numpy(tokens).to(self.device)
        inputs = {"input_ids": ids}
        if self.kind.pads == "after":
            # CLIP finds the end of text as the first or highest id; 0 is neither.
            inputs["input_ids"] = ids.clamp(min=0)
        elif self.kind.pads == "masked":
            is_text = ids != frozen.PAD
            inputs = {
                "input_ids": ids.masked_fill(~is_text, self._tokenizer.pad_token_id or 0),
                "attention_mask": is_text.long(),
            }
        with frozen.arithmetic(self.device, self.precision):
            return frozen.unit(_pooled(self._model.get_text_features(**inputs)))


def _pooled(output: Any) -> "torch.Tensor":
    """FLAVA projects every token; its contrastive loss compares only the first."""
    pooled = output.pooler_output
    return pooled[:, 0] if pooled.ndim == 3 else pooled
