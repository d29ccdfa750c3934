"""Models from transformers that process a picture and a text together, and the towers that some of them have.
`hf-itm:` uses the matching head, and `hf:` uses only the cosine between the towers.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Self, cast

import numpy as np
from PIL import Image

from vlprobe.errors import InvalidInput
from vlprobe.models import frozen, hub
from vlprobe.models.frozen import FINGERPRINT_TEXTS, TorchDualEncoder
from vlprobe.models.modules import TransformersModel
from vlprobe.types import Capabilities, PairScorer

if TYPE_CHECKING:
    from torch import Tensor


class HubModel:
    """A frozen transformers model with the tokenizer and the image processor from its folder.

    Args:
        source: The name, folder and settings of the model.
        model: The model on the CPU; it is moved to the device.
    """

    architecture: str  # name of the class in transformers
    context: int  # maximum number of tokens in a text, as in the released evaluation
    unused_parts: tuple[str, ...] = ()  # parts of the architecture that are not needed here

    def __init__(self, source: hub.ModelSource, model: TransformersModel) -> None:
        self.name, self.device, self.precision = source.name, source.device, source.precision
        self._tokenizer = hub.tokenizer(source.folder)
        self._processor = hub.image_processor(source.folder)
        tokens = self.tokenize(FINGERPRINT_TEXTS).tolist()
        covered = hub.description(source, self._processor, tokens)
        self.digest = frozen.digest(covered, model)
        self._model = model.to(source.device)
        self.note = self._note()

    @property
    def module(self) -> TransformersModel:
        """The transformers model on the device, which is frozen until it is trained."""
        return self._model

    @classmethod
    def opened(cls, source: hub.ModelSource) -> Self:
        """Load the model from its folder, without its unused parts. Raises InvalidInput like `hub.load`."""
        import transformers

        may_be_missing = ("position_ids", *(f"{part}." for part in cls.unused_parts))
        architecture = getattr(transformers, cls.architecture)
        model = hub.load(source.name, architecture, source.folder, unused=may_be_missing)
        for part in cls.unused_parts:
            setattr(model, part, None)
        hub.load_tuned(source, model)
        return cls(source, model)

    def _note(self) -> str:
        """Return a note about the scores for readers."""
        return ""

    def processor_settings(self) -> dict[str, Any]:
        """Return the settings of the image processor."""
        return self._processor.to_dict()

    def facts(self) -> dict[str, str]:
        """Describe the loaded model, as a dictionary from subject to text."""
        return hub.facts(self._model, self._tokenizer, self._processor)

    def preprocess(self, image: Image.Image) -> np.ndarray:
        """Convert an RGB PIL image to float32 with shape (3, height, width)."""
        return self._processor(images=image, return_tensors="np")["pixel_values"][0]

    def tokenize(self, texts: Sequence[str]) -> np.ndarray:
        """Tokenize texts to int64 with shape (n, columns). PAD follows the end of each text."""
        return frozen.padded(self._ids(texts))

    def ids(self, texts: Sequence[str]) -> np.ndarray:
        """Tokenize texts for training, in the same way as `tokenize`."""
        return self.tokenize(texts)

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        settings = {"truncation": True, "max_length": self.context, "padding": False}
        return self._tokenizer(list(texts), **settings)["input_ids"]

    def _masked(self, ids: "Tensor") -> "tuple[Tensor, Tensor]":
        """Return token ids and the attention mask as BERT expects them."""
        is_text = ids != frozen.PAD
        filler = cast(int, self._tokenizer.pad_token_id or 0)
        return ids.masked_fill(~is_text, filler), is_text.long()

    def _text_inputs(self, tokens: np.ndarray) -> "tuple[Tensor, Tensor]":
        """Return token ids and the attention mask on the device, cut to the length of the longest text."""
        return self._masked(self._tensor(frozen.resized(tokens)))

    def _hidden(self, pixels: "Tensor") -> "Tensor":
        """Return hidden states that do not depend on a text, or the pixels if the model has no such states."""
        return pixels

    def _tensor(self, array: np.ndarray) -> "Tensor":
        import torch

        return torch.from_numpy(array).to(self.device)


class HubDualEncoder(HubModel, TorchDualEncoder):
    """A frozen transformers model that embeds pictures and texts separately."""

    def encode_images(self, pixels: np.ndarray) -> np.ndarray:
        """Convert preprocessed images to unit vectors. Several vectors of a picture share a row."""
        with frozen.arithmetic(self.device, self.precision):
            vectors = frozen.unit(self.image_features(self._tensor(pixels)))
            return vectors.reshape(len(pixels), -1)

    def encode_texts(self, tokens: np.ndarray, cut: bool = True) -> np.ndarray:
        """Convert tokens with shape (n, columns) to unit vectors with shape (n, dim). `cut=False` runs all columns
        in the context.
        """
        tokens = frozen.resized(tokens, 0 if cut and self.cuts_columns else self.context)
        with frozen.arithmetic(self.device, self.precision):
            return frozen.unit(self.text_features(self._tensor(tokens)))

    @abstractmethod
    def image_features(self, pixels: "Tensor") -> "Tensor":
        """Compute embeddings from preprocessed images on the device, with gradients during training."""

    @abstractmethod
    def text_features(self, tokens: "Tensor") -> "Tensor":
        """Compute embeddings from tokens on the device, with gradients during training."""


class Towers(HubDualEncoder):
    """The picture and text towers of a model with a matching head. Scores are cosines, and the head is not used."""

    unused_parts = ("itm_head",)
    cuts_columns = True
    dim_setting = "image_text_hidden_size"  # name of the embedding dimension in the config

    @property
    def dim(self) -> int:
        """The dimension of a text embedding."""
        return getattr(self._model.config, self.dim_setting)

    def image_features(self, pixels: "Tensor") -> "Tensor":
        """Compute embeddings from pixels on the device, with gradients during training."""
        return self._image_vectors(self._hidden(pixels))

    def text_features(self, tokens: "Tensor") -> "Tensor":
        """Compute embeddings from tokens on the device, with gradients during training."""
        return self._text_vectors(*self._masked(tokens))

    def _note(self) -> str:
        return "the cosine of its towers: its matching head is not used"

    @abstractmethod
    def _image_vectors(self, hidden: "Tensor") -> "Tensor":
        """Convert hidden states to embeddings with shape (n, image_dim) or (n, image_dim / dim, dim)."""

    @abstractmethod
    def _text_vectors(self, ids: "Tensor", mask: "Tensor") -> "Tensor":
        """Convert token ids and an attention mask to embeddings with shape (n, dim)."""

    def _hidden(self, pixels: "Tensor") -> "Tensor":
        """Return the hidden states of the vision tower, with pictures as the first dimension."""
        return self._model.vision_model(pixel_values=pixels).last_hidden_state


class ItmHead(HubModel, PairScorer):
    """A model with a matching head, which processes a picture and a text together."""

    score_type: Literal["probability", "logit"] = "probability"

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the head, which scores pairs."""
        return Capabilities(
            scores_pairs=True,
            score_type=self.score_type,
            device=self.device,
            precision=self.precision,
        )

    def encode_pictures(self, pixels: Sequence[np.ndarray]) -> Sequence:
        """Return the pictures unchanged, because a picture cannot be encoded without its text."""
        return list(pixels)

    def match(self, encoded: Sequence, tokens: np.ndarray, logits: bool = False) -> np.ndarray:
        """Return the probability that each picture matches its text, or the logit, float32 with shape (n,)."""
        with frozen.arithmetic(self.device, self.precision):
            classes = self._pair_logits(encoded, *self._text_inputs(tokens)).double().cpu()
        scores = classes[:, 1] if logits else (classes[:, 1] - classes[:, 0]).sigmoid()
        return scores.float().numpy()

    def match_logits(self, pixels: "Tensor", tokens: "Tensor") -> "Tensor":
        """Compute the log-odds that each of n pictures matches each of m texts, shape (n, m), with gradients."""
        ids, mask = self._masked(tokens)
        hidden = self._hidden(pixels).repeat_interleave(len(ids), dim=0)
        classes = self._hidden_logits(
            hidden, ids.repeat(len(pixels), 1), mask.repeat(len(pixels), 1)
        )
        return (classes[:, 1] - classes[:, 0]).view(len(pixels), len(ids))

    def _pair_logits(self, encoded: Sequence, ids: "Tensor", mask: "Tensor") -> "Tensor":
        """Compute the logits for no match and for a match from encoded pictures and texts, shape (n, 2)."""
        import torch

        hidden = torch.stack([torch.as_tensor(picture) for picture in encoded])
        return self._hidden_logits(hidden.to(self.device), ids, mask)

    def _hidden_logits(self, hidden: "Tensor", ids: "Tensor", mask: "Tensor") -> "Tensor":
        """Compute the logits for no match and for a match from hidden picture states and texts, shape (n, 2)."""
        raise NotImplementedError


class TwoSided(ItmHead, Towers):
    """A model with a matching head that also embeds pictures and texts separately."""

    unused_parts = ()

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the model, which scores pairs and embeds texts and pictures."""
        return replace(
            super().capabilities,
            embeds_texts=True,
            embeds_images=True,
            dim=self.dim,
            image_dim=self.image_dim,
        )

    def encode_pictures(self, pixels: Sequence[np.ndarray]) -> list["Tensor"]:
        """Encode each picture as the hidden states of the vision tower."""
        with frozen.arithmetic(self.device, self.precision):
            return list(self._hidden(self._tensor(np.stack(pixels))))

    def _note(self) -> str:
        return ""


class BlipTowers(Towers):
    """BLIP's contrastive towers (ITC)."""

    architecture, context = "BlipForImageTextRetrieval", 35

    def _image_vectors(self, hidden: "Tensor") -> "Tensor":
        return self._model.vision_proj(hidden[:, 0])

    def _text_vectors(self, ids: "Tensor", mask: "Tensor") -> "Tensor":
        hidden = self._model.text_encoder(ids, attention_mask=mask).last_hidden_state
        return self._model.text_proj(hidden[:, 0])


class Blip(TwoSided, BlipTowers):
    """BLIP, in which the text tower attends to the picture. The head was trained with [ENC] as the first
    token of a text.

    transformers uses [CLS] instead, as in BLIP's demo. BLIP's released retrieval code, which RoCOCO
    follows, uses [ENC].
    """

    @property
    def _enc(self) -> int | None:
        """The id of the token [ENC], or None if the vocabulary does not have it."""
        config = self._model.config.text_config
        enc = config.bos_token_id + 1  # [ENC] follows [DEC], which begins captions
        return enc if enc < config.vocab_size else None

    def _note(self) -> str:
        return "" if self._enc else "its vocabulary has no [ENC]: the matching head reads [CLS]"

    def _hidden_logits(self, hidden: "Tensor", ids: "Tensor", mask: "Tensor") -> "Tensor":
        if self._enc:
            ids = ids.clone()
            ids[:, 0] = self._enc
        out = self._model.text_encoder(
            ids,
            attention_mask=mask,
            encoder_hidden_states=hidden,
            encoder_attention_mask=hidden.new_ones(hidden.shape[:2], dtype=mask.dtype),
        )
        return self._model.itm_head(out.last_hidden_state[:, 0])


class Blip2Towers(Towers):
    """BLIP-2's contrastive towers, with one picture vector per learned query. The best vector gives the
    similarity.
    """

    architecture, context = "Blip2ForImageTextRetrieval", 35

    @property
    def image_dim(self) -> int:
        """The dimension of a picture embedding, which has one vector for each query."""
        return self.dim * self._model.config.num_query_tokens

    def _image_vectors(self, hidden: "Tensor") -> "Tensor":
        out = self._model.qformer(
            query_embeds=self._model.query_tokens.expand(len(hidden), -1, -1),
            encoder_hidden_states=hidden,
            encoder_attention_mask=hidden.new_ones(hidden.shape[:2]).long(),
            return_dict=True,
        )
        return self._model.vision_projection(out.last_hidden_state)

    def _text_vectors(self, ids: "Tensor", mask: "Tensor") -> "Tensor":
        embeds = self._model.embeddings(input_ids=ids)
        out = self._model.qformer(
            query_embeds=embeds, query_length=0, attention_mask=mask, return_dict=True
        )
        return self._model.text_projection(out.last_hidden_state[:, 0])


class Blip2(TwoSided, Blip2Towers):
    """BLIP-2, in which learned queries attend to the picture. The best query gives the similarity, and the
    mean logit over the queries gives the match.
    """

    def _hidden_logits(self, hidden: "Tensor", ids: "Tensor", mask: "Tensor") -> "Tensor":
        import torch

        queries = self._model.query_tokens.expand(len(hidden), -1, -1)
        n = queries.shape[1]
        out = self._model.qformer(
            query_embeds=self._model.embeddings(input_ids=ids, query_embeds=queries),
            query_length=n,
            attention_mask=torch.nn.functional.pad(mask, (n, 0), value=1),
            encoder_hidden_states=hidden,
            encoder_attention_mask=mask.new_ones(hidden.shape[:2]),
            return_dict=True,
        )
        return self._model.itm_head(out.last_hidden_state[:, :n]).mean(dim=1)


class BridgeTower(ItmHead):
    """BridgeTower's matching head: two towers whose layers are bridged to a cross-modal tower. The text length is the
    same as in pre-training.
    """

    architecture, context = "BridgeTowerForImageAndTextRetrieval", 50

    def _hidden_logits(self, hidden: "Tensor", ids: "Tensor", mask: "Tensor") -> "Tensor":
        return self._model(input_ids=ids, attention_mask=mask, pixel_values=hidden).logits


class BridgeTowerTowers(Towers):
    """BridgeTower's contrastive towers (ITC), which only some checkpoints have. They use the last layer of
    each tower, without the bridges.
    """

    architecture, context = "BridgeTowerForContrastiveLearning", 50
    unused_parts = ("itc_cross_modal_head",)
    dim_setting = "contrastive_hidden_size"

    @classmethod
    def opened(cls, source: hub.ModelSource) -> Self:
        """Load the towers from a folder. Raises InvalidInput, also if the folder only has the matching head."""
        if "contrastive_hidden_size" not in source.config:
            raise InvalidInput(
                f"'{source.name}' has no contrastive encoders, so it has no cosine scores. "
                f"Load its matching head as hf-itm:{source.name.partition(':')[2]}."
            )
        return super().opened(source)

    def _hidden(self, pixels: "Tensor") -> "Tensor":
        trunk = self._model.bridgetower
        tower = trunk.vision_model.visual
        hidden = tower.forward_pre(pixels)
        # Use as many layers as the text tower has, which are the bridged ones
        for block in tower.transformer.resblocks[: len(trunk.text_model.encoder.layer)]:
            hidden = block(hidden)
        return tower.forward_post(hidden)

    def _image_vectors(self, hidden: "Tensor") -> "Tensor":
        import torch

        trunk = self._model.bridgetower
        is_picture = torch.ones(len(hidden), dtype=torch.long, device=self.device)
        pooled = trunk.cross_modal_image_transform(hidden[:, 0])
        return self._model.itc_image_head(pooled + trunk.token_type_embeddings(is_picture))

    def _text_vectors(self, ids: "Tensor", mask: "Tensor") -> "Tensor":
        tower = self._model.bridgetower.text_model
        hidden = tower(input_ids=ids, attention_mask=mask).last_hidden_state
        return self._model.itc_text_head(hidden[:, 0])


class Flava(TwoSided):
    """FLAVA's matching head, a multimodal tower over the hidden states of two towers. `hf:` loads the two towers
    alone.

    The multimodal tower reads the hidden states before the last layer norm on each side. Embeddings
    come from the first token after this layer norm.
    """

    architecture, context = "FlavaForPreTraining", 77
    unused_parts = ("image_codebook", "mim_head", "mlm_head", "mmm_image_head", "mmm_text_head")
    dim_setting = "projection_dim"

    def _hidden(self, pixels: "Tensor") -> "Tensor":
        image_model = self._model.flava.image_model
        return image_model(pixels, output_hidden_states=True).hidden_states[-1]

    def _image_vectors(self, hidden: "Tensor") -> "Tensor":
        flava = self._model.flava
        return flava.image_projection(flava.image_model.layernorm(hidden)[:, 0])

    def _text_vectors(self, ids: "Tensor", mask: "Tensor") -> "Tensor":
        flava = self._model.flava
        return flava.text_projection(flava.text_model(ids, mask).last_hidden_state[:, 0])

    def _hidden_logits(self, hidden: "Tensor", ids: "Tensor", mask: "Tensor") -> "Tensor":
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


class Vilt(ItmHead):
    """ViLT, a single tower for patches and words. It gives a logit without a scale, and no separate embeddings."""

    architecture, context, score_type = "ViltForImageAndTextRetrieval", 40, "logit"

    def match(
        self, encoded: Sequence[np.ndarray], tokens: np.ndarray, logits: bool = False
    ) -> np.ndarray:
        """Return the rank head's logit for each picture and its text, float32 with shape (n,)."""
        import torch

        # transformers shuffles the patches at random, which only changes the last bits.
        with torch.random.fork_rng(devices=[]), frozen.arithmetic(self.device, self.precision):
            torch.default_generator.manual_seed(0)
            rank_logits = self._pair_logits(encoded, *self._text_inputs(tokens))
        return rank_logits[:, 0].float().cpu().numpy()

    def _pair_logits(
        self, encoded: Sequence[np.ndarray], ids: "Tensor", mask: "Tensor"
    ) -> "Tensor":
        import torch

        height, width = (max(pixels.shape[axis] for pixels in encoded) for axis in (1, 2))
        batch = torch.zeros((len(encoded), 3, height, width))
        pixel_mask = torch.zeros((len(encoded), height, width), dtype=torch.long)
        for row, pixels in enumerate(encoded):
            batch[row, :, : pixels.shape[1], : pixels.shape[2]] = torch.from_numpy(pixels)
            pixel_mask[row, : pixels.shape[1], : pixels.shape[2]] = 1
        out = self._model(
            input_ids=ids,
            attention_mask=mask,
            pixel_values=batch.to(self.device),
            pixel_mask=pixel_mask.to(self.device),
        )
        return out.logits


HEADS: dict[str, type[ItmHead]] = {
    "blip": Blip,
    "blip-2": Blip2,
    "vilt": Vilt,
    "flava": Flava,
    "bridgetower": BridgeTower,
}
TOWERS: dict[str, type[Towers]] = {
    "blip": BlipTowers,
    "blip-2": Blip2Towers,
    "bridgetower": BridgeTowerTowers,
}
