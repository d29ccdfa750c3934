"""Models from transformers that compare pictures and texts, from the hub (OWNER/NAME) or from disk (FOLDER).

    hf:OWNER/NAME        dual encoders; for a model with a matching head and towers, the cosine between the towers
    hf-itm:OWNER/NAME    image-text matching heads, which process a picture and a text together
    @FILE after either   weights that `vlprobe train` wrote, instead of the model's own weights

The heads of BLIP, BLIP-2, FLAVA and BridgeTower return the probability of a match, and ViLT's returns a logit. BLIP,
BLIP-2 and FLAVA also embed both sides, which is used to short-list a gallery.

SigLIP pools the last column, even if it is padding, and its other columns attend to padding. Texts are therefore padded
to the training length, never to the longest text in a batch. SigLIP 2 was trained on lowercase text, but not every
tokenizer for it folds case, so texts are converted to lowercase here.
"""

import contextlib
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from PIL import Image

from vlprobe.errors import InvalidInput
from vlprobe.models import frozen, hub
from vlprobe.models.frozen import LENGTHS_TEXTS
from vlprobe.models.heads import HEADS, TOWERS, HubDualEncoder, ItmHead, Towers
from vlprobe.models.modules import TransformersModel

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Kind:
    """The properties of an architecture that its config does not contain."""

    architecture: str  # name of the class in transformers
    # padding comes after everything that a causal tower attends to, is masked out, or is part of the text
    pads: Literal["after", "masked", "seen"]
    context: int = 0  # text columns that it was trained with; 0: as many as it has positions
    # whether it silently reads the first column if a text has no end-of-text id
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


class HfEncoder(HubDualEncoder):
    """A frozen dual encoder from transformers.

    Columns after the end of the longest text in a batch are skipped if a check on texts of several lengths confirms
    that the embeddings stay the same.

    Args:
        source: The name, folder and settings of the model.
        model: The model on the CPU; it is moved to the device.
        kind: The properties of its architecture.
    """

    def __init__(self, source: hub.ModelSource, model: TransformersModel, kind: Kind) -> None:
        self.kind = kind
        text = model.config.text_config
        n_positions = text.max_position_embeddings
        self.context = min(kind.context or n_positions, n_positions)
        super().__init__(source, model)
        self.precision = "fp32"
        tokens = self.tokenize(LENGTHS_TEXTS)
        if kind.needs_end and not (tokens == text.eos_token_id).any(axis=1).all():
            raise InvalidInput(
                f"The tokenizer of '{self.name}' does not end texts with token "
                f"{text.eos_token_id}, which the model pools. Use the tokenizer that the "
                "model was trained with."
            )
        uncut = self.encode_texts(tokens, cut=False)
        self.dim = uncut.shape[1]
        vectors = self.encode_images(self.preprocess(Image.new("RGB", (64, 64)))[None])
        if vectors.shape[1] != self.dim:
            raise InvalidInput(
                f"'{self.name}' has {vectors.shape[1]}-dimensional image embeddings and "
                f"{self.dim}-dimensional text embeddings. Both must have the same dimension."
            )
        self.cuts_columns = kind.pads != "seen"
        self.cuts_columns = self.cuts_columns and frozen.can_cut(self.encode_texts, tokens, uncut)
        self.precision = source.precision

    @property
    def _lowers(self) -> bool:
        """Whether texts are converted to lowercase before tokenization."""
        tokenizer = type(self._tokenizer).__name__
        return self.kind.pads == "seen" and ("Gemma" in tokenizer or "Siglip2" in tokenizer)

    def _note(self) -> str:
        return "texts are lower-cased, as SigLIP 2 was trained" if self._lowers else ""

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

    def image_features(self, tensor: "Tensor") -> "Tensor":
        """Compute embeddings from preprocessed images on the device, with gradients during training."""
        inputs = {"pixel_values": tensor}
        if tensor.ndim == 3:
            mask, shapes = tensor[:, :, -3].long(), tensor[:, 0, -2:].long()
            inputs = {
                "pixel_values": tensor[:, :, :-3],
                "pixel_attention_mask": mask,
                "spatial_shapes": shapes,
            }
        return _pooled(self._model.get_image_features(**inputs))

    def tokenize(self, texts: Sequence[str]) -> np.ndarray:
        """Tokenize texts to int64 with shape (n, columns), with PAD after the end of each text. If the model sees
        padding, the shape is (n, context).
        """
        ids = self._ids([text.lower() for text in texts] if self._lowers else texts)
        if self.kind.pads != "seen":
            return frozen.padded(ids)
        tokens = frozen.padded(ids, self.context)
        return np.where(tokens == frozen.PAD, self._tokenizer.pad_token_id or 0, tokens)

    def text_features(self, ids: "Tensor") -> "Tensor":
        """Compute embeddings from tokens on the device, with gradients during training."""
        inputs = {"input_ids": ids}
        if self.kind.pads == "after":
            # CLIP finds the end of text as the first or highest id; 0 is neither.
            inputs["input_ids"] = ids.clamp(min=0)
        elif self.kind.pads == "masked":
            inputs["input_ids"], inputs["attention_mask"] = self._masked(ids)
        return _pooled(self._model.get_text_features(**inputs))


def _pooled(output: Any) -> "Tensor":
    """Return the pooled output. FLAVA projects every token, but its contrastive loss only compares the first one."""
    pooled = output.pooler_output
    return pooled[:, 0] if pooled.ndim == 3 else pooled


def _dual_encoder(source: hub.ModelSource) -> "HfEncoder | Towers":
    if source.model_type in TOWERS:
        towers = TOWERS[source.model_type].opened(source)
        towers.encode_images(towers.preprocess(Image.new("RGB", (64, 64)))[None])
        towers.encode_texts(towers.tokenize(["a"]))
        return towers
    kind = KINDS.get(source.model_type)
    if kind is None:
        is_head = source.model_type in HEADS
        raise InvalidInput(
            f"'{source.name}' has model type '{source.model_type}', which is not supported. "
            f"Supported types: {', '.join([*KINDS, *TOWERS])}."
            + (f" Load it as hf-itm:{source.name.partition(':')[2]}." if is_head else "")
        )
    import transformers

    model = hub.load(source.name, getattr(transformers, kind.architecture), source.folder)
    hub.load_tuned(source, model)
    return HfEncoder(source, model, kind)


def _matching_head(source: hub.ModelSource) -> ItmHead:
    if source.model_type not in HEADS:
        raise InvalidInput(
            f"'{source.name}' has model type '{source.model_type}', which is not a supported "
            f"matching head. Supported types: {', '.join(HEADS)}. If it is a dual encoder, "
            f"load it as hf:{source.name.partition(':')[2]}."
        )
    head = HEADS[source.model_type].opened(source)
    pictures = head.encode_pictures([head.preprocess(Image.new("RGB", (64, 64)))])
    head.match(pictures, head.tokenize(["a"]))
    return head


FAMILIES = (
    hub.HubFamily(
        "hf",
        (
            "openai/clip-vit-base-patch32",
            "google/siglip-base-patch16-224",
            "google/siglip2-base-patch16-224",
            "kakaobrain/align-base",
            "BAAI/AltCLIP",
            "facebook/flava-full",
            "facebook/metaclip-2-worldwide-huge-quickgelu",
            "Salesforce/blip-itm-base-coco",
            "BridgeTower/bridgetower-large-itm-mlm-itc",
        ),
        _dual_encoder,
        is_tunable=True,
    ),
    hub.HubFamily(
        "hf-itm",
        (
            "Salesforce/blip-itm-base-coco",
            "Salesforce/blip-itm-large-coco",
            "Salesforce/blip2-itm-vit-g",
            "dandelin/vilt-b32-finetuned-coco",
            "facebook/flava-full",
            "BridgeTower/bridgetower-base-itm-mlm",
            "BridgeTower/bridgetower-large-itm-mlm-itc",
        ),
        _matching_head,
        is_tunable=True,
    ),
)


def cached_names() -> list[str]:
    """List the dual encoders whose weights are in the hub's cache on this machine; [] without transformers."""
    names = list[str]()
    if importlib.util.find_spec("transformers") is None:
        return names
    for repository, folder in hub.cached_folders().items():
        with contextlib.suppress(InvalidInput):
            config = hub.read_json(folder / "config.json", dict)
            has_weights = any(next(folder.glob(of), None) for (of,) in hub.WEIGHTS)
            if has_weights and config.get("model_type") in KINDS:
                names.append(f"hf:{repository}")
    return names
