"""Models of transformers that process a picture and a text together, and the towers that some of them have: `hf-itm:`
uses the matching head, `hf:` only the cosine of the towers.
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
    import torch


class HubModel:
    """A model of transformers, frozen, with the tokenizer and the image processor of its folder.

    Args:
        source: Its name, folder and settings.
        model: On the CPU; it is moved to the device.
    """

    architecture: str  # class of transformers
    context: int  # tokens of a text, as in the released evaluation
    unused_parts: tuple[str, ...] = ()  # of the architecture, that answer no question here

    def __init__(self, source: hub.ModelSource, model: TransformersModel) -> None:
        self.name, self.device, self.precision = source.name, source.device, source.precision
        self._tokenizer = hub.tokenizer(source.folder)
        self._processor = hub.image_processor(source.folder)
        tokens = self.tokenize(FINGERPRINT_TEXTS).tolist()
        covered = hub.description(source.config, self._processor, tokens, source.precision)
        self.digest = frozen.digest(covered, model)
        self._model = model.to(source.device)
        self.note = self._note()

    @property
    def module(self) -> TransformersModel:
        """The model as transformers built it, on the device; frozen until it is trained."""
        return self._model

    @classmethod
    def opened(cls, source: hub.ModelSource) -> Self:
        """Return the model of a folder, without its unused parts. Raises InvalidInput, as `hub.load`."""
        import transformers

        may_be_missing = ("position_ids", *(f"{part}." for part in cls.unused_parts))
        architecture = getattr(transformers, cls.architecture)
        model = hub.load(source.name, architecture, source.folder, unused=may_be_missing)
        for part in cls.unused_parts:
            setattr(model, part, None)
        hub.load_tuned(source, model)
        return cls(source, model)

    def _note(self) -> str:
        """Note for readers of its scores."""
        return ""

    def processor_settings(self) -> dict[str, Any]:
        """Return the settings of the image processor."""
        return self._processor.to_dict()

    def facts(self) -> dict[str, str]:
        """Describe what was built, by subject."""
        return hub.facts(self._model, self._tokenizer, self._processor)

    def preprocess(self, image: Image.Image) -> np.ndarray:
        """An RGB PIL image to float32 of shape (3, height, width)."""
        return self._processor(images=image, return_tensors="np")["pixel_values"][0]

    def tokenize(self, texts: Sequence[str]) -> np.ndarray:
        """Texts to int64 of shape (n, columns), PAD after the end."""
        return frozen.padded(self._ids(texts))

    def ids(self, texts: Sequence[str]) -> np.ndarray:
        """Tokenize texts for training, as `tokenize` does."""
        return self.tokenize(texts)

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        settings = {"truncation": True, "max_length": self.context, "padding": False}
        return self._tokenizer(list(texts), **settings)["input_ids"]

    def _masked(self, ids: "torch.Tensor") -> tuple["torch.Tensor", "torch.Tensor"]:
        """Ids and attention mask as BERT expects them."""
        is_text = ids != frozen.PAD
        filler = cast(int, self._tokenizer.pad_token_id or 0)
        return ids.masked_fill(~is_text, filler), is_text.long()

    def _text_inputs(self, tokens: np.ndarray) -> tuple["torch.Tensor", "torch.Tensor"]:
        """Ids and attention mask of the columns up to the longest text, on the device."""
        return self._masked(self._tensor(frozen.resized(tokens)))

    def _hidden(self, pixels: "torch.Tensor") -> "torch.Tensor":
        """Hidden states that do not depend on a text; the pixels themselves if there are none."""
        return pixels

    def _tensor(self, array: np.ndarray) -> "torch.Tensor":
        import torch

        return torch.from_numpy(array).to(self.device)


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
            vectors = frozen.unit(self.image_features(self._tensor(pixels)))
            return vectors.reshape(len(pixels), -1)

    def image_features(self, pixels: "torch.Tensor") -> "torch.Tensor":
        """Pixels on the device to embeddings, with gradients while the model is trained."""
        return self._image_vectors(self._hidden(pixels))

    def text_features(self, tokens: "torch.Tensor") -> "torch.Tensor":
        """Tokens on the device to embeddings, with gradients while the model is trained."""
        return self._text_vectors(*self._masked(tokens))

    def encode_texts(self, tokens: np.ndarray) -> np.ndarray:
        """Shape (n, columns) to unit vectors of shape (n, dim)."""
        with frozen.arithmetic(self.device, self.precision):
            return frozen.unit(self._text_vectors(*self._text_inputs(tokens)))

    def _note(self) -> str:
        return "the cosine of its towers: its matching head is not used"

    @abstractmethod
    def _image_vectors(self, hidden: "torch.Tensor") -> "torch.Tensor":
        """Hidden states to embeddings of shape (n, image_dim), or (n, image_dim / dim, dim)."""

    @abstractmethod
    def _text_vectors(self, ids: "torch.Tensor", mask: "torch.Tensor") -> "torch.Tensor":
        """Ids and attention mask to embeddings of shape (n, dim)."""

    def _hidden(self, pixels: "torch.Tensor") -> "torch.Tensor":
        """Hidden states of the vision tower, pictures first."""
        return self._model.vision_model(pixel_values=pixels).last_hidden_state


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

    def match(self, encoded: Sequence, tokens: np.ndarray, logits: bool = False) -> np.ndarray:
        """Probability that each picture fits its text, or the logit that it does; float32 of shape (n,)."""
        with frozen.arithmetic(self.device, self.precision):
            classes = self._pair_logits(encoded, *self._text_inputs(tokens)).double().cpu()
        scores = classes[:, 1] if logits else (classes[:, 1] - classes[:, 0]).sigmoid()
        return scores.float().numpy()

    def match_logits(self, pixels: "torch.Tensor", tokens: "torch.Tensor") -> "torch.Tensor":
        """Compute the log-odds of a match of n pictures with m texts on the device, shape (n, m), with gradients."""
        ids, mask = self._masked(tokens)
        hidden = self._hidden(pixels).repeat_interleave(len(ids), dim=0)
        classes = self._hidden_logits(
            hidden, ids.repeat(len(pixels), 1), mask.repeat(len(pixels), 1)
        )
        return (classes[:, 1] - classes[:, 0]).view(len(pixels), len(ids))

    def _pair_logits(
        self, encoded: Sequence, ids: "torch.Tensor", mask: "torch.Tensor"
    ) -> "torch.Tensor":
        """Compute logits of no match and of a match from encoded pictures and texts, shape (n, 2)."""
        import torch

        hidden = torch.stack([torch.as_tensor(picture) for picture in encoded])
        return self._hidden_logits(hidden.to(self.device), ids, mask)

    def _hidden_logits(
        self, hidden: "torch.Tensor", ids: "torch.Tensor", mask: "torch.Tensor"
    ) -> "torch.Tensor":
        """Compute logits of no match and of a match from hidden states of pictures and texts, shape (n, 2)."""
        raise NotImplementedError


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
            return list(self._hidden(self._tensor(np.stack(pixels))))

    def _note(self) -> str:
        return ""


class BlipTowers(Towers):
    """BLIP's contrastive towers (ITC)."""

    architecture, context = "BlipForImageTextRetrieval", 35

    def _image_vectors(self, hidden: "torch.Tensor") -> "torch.Tensor":
        return self._model.vision_proj(hidden[:, 0])

    def _text_vectors(self, ids: "torch.Tensor", mask: "torch.Tensor") -> "torch.Tensor":
        hidden = self._model.text_encoder(ids, attention_mask=mask).last_hidden_state
        return self._model.text_proj(hidden[:, 0])


class Blip(TwoSided, BlipTowers):
    """BLIP: the text tower looks at the picture. Its head was trained with [ENC] in place of a
    text's first token.

    transformers leaves [CLS] there, as BLIP's demo does; BLIP's released retrieval, which RoCOCO
    follows, does not.
    """

    @property
    def _enc(self) -> int | None:
        """Id of [ENC], if the vocabulary has it."""
        config = self._model.config.text_config
        enc = config.bos_token_id + 1  # [DEC], which begins captions, and then [ENC]
        return enc if enc < config.vocab_size else None

    def _note(self) -> str:
        return "" if self._enc else "its vocabulary has no [ENC]: the matching head reads [CLS]"

    def _hidden_logits(
        self, hidden: "torch.Tensor", ids: "torch.Tensor", mask: "torch.Tensor"
    ) -> "torch.Tensor":
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
    """BLIP-2's contrastive side: a vector for each learned query, of which the best is the
    similarity.
    """

    architecture, context = "Blip2ForImageTextRetrieval", 35

    @property
    def image_dim(self) -> int:
        """Dimension of an embedding of a picture: one vector for each query."""
        return self.dim * self._model.config.num_query_tokens

    def _image_vectors(self, hidden: "torch.Tensor") -> "torch.Tensor":
        out = self._model.qformer(
            query_embeds=self._model.query_tokens.expand(len(hidden), -1, -1),
            encoder_hidden_states=hidden,
            encoder_attention_mask=hidden.new_ones(hidden.shape[:2]).long(),
            return_dict=True,
        )
        return self._model.vision_projection(out.last_hidden_state)

    def _text_vectors(self, ids: "torch.Tensor", mask: "torch.Tensor") -> "torch.Tensor":
        embeds = self._model.embeddings(input_ids=ids)
        out = self._model.qformer(
            query_embeds=embeds, query_length=0, attention_mask=mask, return_dict=True
        )
        return self._model.text_projection(out.last_hidden_state[:, 0])


class Blip2(TwoSided, Blip2Towers):
    """BLIP-2: learned queries look at the picture; the best of them is the similarity, their mean
    logit the match.
    """

    def _hidden_logits(
        self, hidden: "torch.Tensor", ids: "torch.Tensor", mask: "torch.Tensor"
    ) -> "torch.Tensor":
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
    """BridgeTower's matching head: two towers whose layers are bridged to a cross-modal one. Its text is as long as in
    pre-training.
    """

    architecture, context = "BridgeTowerForImageAndTextRetrieval", 50

    def _hidden_logits(
        self, hidden: "torch.Tensor", ids: "torch.Tensor", mask: "torch.Tensor"
    ) -> "torch.Tensor":
        return self._model(input_ids=ids, attention_mask=mask, pixel_values=hidden).logits


class BridgeTowerTowers(Towers):
    """BridgeTower's contrastive side (ITC), which some of its checkpoints have: the last layer of
    each tower, before anything is bridged.
    """

    architecture, context = "BridgeTowerForContrastiveLearning", 50
    unused_parts = ("itc_cross_modal_head",)

    @classmethod
    def opened(cls, source: hub.ModelSource) -> Self:
        """Load the towers of a folder. Raises InvalidInput, also if it only has the matching head."""
        if "contrastive_hidden_size" not in source.config:
            raise InvalidInput(
                f"'{source.name}' has no contrastive encoders, so it has no cosine scores. "
                f"Load its matching head as hf-itm:{source.name.partition(':')[2]}."
            )
        return super().opened(source)

    @property
    def dim(self) -> int:
        """Dimension of an embedding of either side."""
        return self._model.config.contrastive_hidden_size

    def _hidden(self, pixels: "torch.Tensor") -> "torch.Tensor":
        trunk = self._model.bridgetower
        tower = trunk.vision_model.visual
        hidden = tower.forward_pre(pixels)
        # As many layers as the texts have: those that are bridged
        for block in tower.transformer.resblocks[: len(trunk.text_model.encoder.layer)]:
            hidden = block(hidden)
        return tower.forward_post(hidden)

    def _image_vectors(self, hidden: "torch.Tensor") -> "torch.Tensor":
        import torch

        trunk = self._model.bridgetower
        is_picture = torch.ones(len(hidden), dtype=torch.long, device=self.device)
        pooled = trunk.cross_modal_image_transform(hidden[:, 0])
        return self._model.itc_image_head(pooled + trunk.token_type_embeddings(is_picture))

    def _text_vectors(self, ids: "torch.Tensor", mask: "torch.Tensor") -> "torch.Tensor":
        tower = self._model.bridgetower.text_model
        hidden = tower(input_ids=ids, attention_mask=mask).last_hidden_state
        return self._model.itc_text_head(hidden[:, 0])


class Flava(TwoSided):
    """FLAVA's matching head: a multimodal tower over the hidden states of two towers, which by themselves are loaded
    as `hf:`.

    The multimodal tower reads the hidden states before the last layer norm of each side; embeddings
    are of the first token after it.
    """

    architecture, context = "FlavaForPreTraining", 77
    unused_parts = ("image_codebook", "mim_head", "mlm_head", "mmm_image_head", "mmm_text_head")

    @property
    def dim(self) -> int:
        """Dimension of an embedding of either side."""
        return self._model.config.projection_dim

    def _hidden(self, pixels: "torch.Tensor") -> "torch.Tensor":
        image_model = self._model.flava.image_model
        return image_model(pixels, output_hidden_states=True).hidden_states[-1]

    def _image_vectors(self, hidden: "torch.Tensor") -> "torch.Tensor":
        flava = self._model.flava
        return flava.image_projection(flava.image_model.layernorm(hidden)[:, 0])

    def _text_vectors(self, ids: "torch.Tensor", mask: "torch.Tensor") -> "torch.Tensor":
        flava = self._model.flava
        return flava.text_projection(flava.text_model(ids, mask).last_hidden_state[:, 0])

    def _hidden_logits(
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


class Vilt(ItmHead):
    """ViLT: one tower for patches and words, and a logit without a scale; no separate embeddings."""

    architecture, context, score_type = "ViltForImageAndTextRetrieval", 40, "logit"

    def match(
        self, encoded: Sequence[np.ndarray], tokens: np.ndarray, logits: bool = False
    ) -> np.ndarray:
        """Return the rank head's logit of each picture and its text, float32 of shape (n,)."""
        import torch

        # transformers shuffles the patches at random, which only changes the last bits.
        with torch.random.fork_rng(devices=[]), frozen.arithmetic(self.device, self.precision):
            torch.default_generator.manual_seed(0)
            rank_logits = self._pair_logits(encoded, *self._text_inputs(tokens))
        return rank_logits[:, 0].float().cpu().numpy()

    def _pair_logits(
        self, encoded: Sequence[np.ndarray], ids: "torch.Tensor", mask: "torch.Tensor"
    ) -> "torch.Tensor":
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
