"""Image-text matching heads of transformers: hf-itm:OWNER/NAME from the hub, hf-itm:FOLDER from a
disk.

A head looks at a picture and a text together. BLIP and BLIP-2 say with which probability they
belong together, and also embed both sides, which is what a gallery is short-listed by; ViLT gives a
logit and has no embeddings.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from PIL import Image

from vlprobe.errors import InvalidInput
from vlprobe.models import frozen, hub
from vlprobe.models.frozen import FINGERPRINT_TEXTS, pick_device
from vlprobe.models.modules import TransformersModel
from vlprobe.types import Capabilities, DualEncoder, PairScorer

if TYPE_CHECKING:
    import torch

PREFIX = "hf-itm"


def names() -> list[str]:
    """Typical names; any repository or folder that holds a head of KINDS can be typed."""
    return [
        "hf-itm:Salesforce/blip-itm-base-coco",
        "hf-itm:Salesforce/blip-itm-large-coco",
        "hf-itm:Salesforce/blip2-itm-vit-g",
        "hf-itm:dandelin/vilt-b32-finetuned-coco",
    ]


def check_name(name: str) -> None:
    """Raises InvalidInput where the name is that of no folder and can be that of no repository."""
    hub.local_folder(name)


def load(name: str, device: str = "auto", precision: str = "fp32") -> "ItmHead":
    """The model of that name. Raises InvalidInput or MissingDependency."""
    hub.need(name, "transformers")
    device, precision = pick_device(device), frozen.check_precision(precision)
    folder = hub.find(name)
    config = hub.read_config(folder)
    model_type = str(config.get("model_type"))
    kind = KINDS.get(model_type)
    if kind is None:
        raise InvalidInput(
            f"'{name}' is a model of type '{model_type}'. Expected a head of: {', '.join(KINDS)}. "
            f"Dual encoders are loaded as hf:{name.partition(':')[2]}."
        )
    import transformers

    with hub.opening(name):
        model = hub.load(name, getattr(transformers, kind.architecture), folder)
        head = kind(name, folder, model, config, device, precision)
        head.match(
            head.encode_pictures([head.preprocess(Image.new("RGB", (64, 64)))]),
            head.tokenize(["a"]),
        )
    return head


class ItmHead(PairScorer):
    """A head of transformers, frozen: what the three heads share."""

    architecture: str  # class of transformers
    context: int  # tokens of a text, as in the released evaluation
    score_type: Literal["probability", "logit"] = "probability"

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
        description = {
            "config": hub.described(config),
            "preprocess": [
                type(self._processor).__name__,
                hub.described(self._processor.to_dict()),
            ],
            "tokenizer": self.tokenize(FINGERPRINT_TEXTS).tolist(),
            "precision": precision,
        }
        self.digest = frozen.digest(description, model)
        self._model = model.to(device)
        self.note = self._note()

    def _note(self) -> str:
        """What a reader of its scores must know."""
        return ""

    @property
    def capabilities(self) -> Capabilities:
        """Scores of pairs."""
        return Capabilities(
            scores_pairs=True,
            score_type=self.score_type,
            device=self.device,
            precision=self.precision,
        )

    def facts(self) -> dict[str, str]:
        """What was built, in words."""
        return hub.facts(self._model, self._tokenizer, self._processor)

    def preprocess(self, image: Image.Image) -> np.ndarray:
        """An RGB PIL image to float32 of shape (3, height, width)."""
        return self._processor(images=image, return_tensors="np")["pixel_values"][0]

    def tokenize(self, texts: Sequence[str]) -> np.ndarray:
        """Texts to int64 of shape (n, columns), PAD after the end."""
        encoded = self._tokenizer(
            list(texts),
            truncation=True,
            max_length=self.context,
            padding=False,
        )
        return frozen.padded(encoded["input_ids"])

    def _text_inputs(self, tokens: np.ndarray) -> tuple["torch.Tensor", "torch.Tensor"]:
        """Ids and attention mask as BERT wants them, on the device."""
        import torch

        ids = torch.from_numpy(frozen.resized(tokens)).to(self.device)
        is_text = ids != frozen.PAD
        return ids.masked_fill(~is_text, self._tokenizer.pad_token_id or 0), is_text.long()


class _TwoSided(ItmHead, DualEncoder):
    """A head with embeddings of each side beside it."""

    @property
    def dim(self) -> int:
        """Of an embedding of a text."""
        return self._model.config.image_text_hidden_size

    @property
    def image_dim(self) -> int:
        """Of an embedding of a picture."""
        return self.dim

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

    def encode_images(self, pixels: np.ndarray) -> np.ndarray:
        """Shape (n, 3, height, width) to unit vectors, of several in a row to one row."""
        with frozen.arithmetic(self.device, self.precision):
            return frozen.unit(self._image_vectors(self._hidden(pixels))).reshape(len(pixels), -1)

    def encode_texts(self, tokens: np.ndarray) -> np.ndarray:
        """Shape (n, columns) to unit vectors of shape (n, dim)."""
        with frozen.arithmetic(self.device, self.precision):
            return frozen.unit(self._text_vectors(*self._text_inputs(tokens)))

    def encode_pictures(self, pixels: Sequence[np.ndarray]) -> list["torch.Tensor"]:
        """Each picture as the hidden states of the vision tower."""
        with frozen.arithmetic(self.device, self.precision):
            return list(self._hidden(np.stack(pixels)))

    def match(
        self,
        encoded: Sequence["torch.Tensor"],
        tokens: np.ndarray,
        logits: bool = False,
    ) -> np.ndarray:
        """Probability that each picture fits its text, or the logit that it does; float32 of shape
        (n,).
        """
        import torch

        with frozen.arithmetic(self.device, self.precision):
            pair_logits = (
                self._pair_logits(
                    torch.stack(list(encoded)),
                    *self._text_inputs(tokens),
                )
                .double()
                .cpu()
            )
        scores = pair_logits[:, 1] if logits else (pair_logits[:, 1] - pair_logits[:, 0]).sigmoid()
        return scores.float().numpy()

    @abstractmethod
    def _image_vectors(self, hidden: "torch.Tensor") -> "torch.Tensor":
        """Hidden states of pictures to embeddings of shape (n, image_dim), or (n, image_dim / dim,
        dim).
        """

    @abstractmethod
    def _text_vectors(self, ids: "torch.Tensor", mask: "torch.Tensor") -> "torch.Tensor":
        """Ids and attention mask to embeddings of shape (n, dim)."""

    @abstractmethod
    def _pair_logits(
        self,
        hidden: "torch.Tensor",
        ids: "torch.Tensor",
        mask: "torch.Tensor",
    ) -> "torch.Tensor":
        """Hidden states of pictures beside texts to logits of no match and of a match, shape (n,
        2).
        """

    def _hidden(self, pixels: np.ndarray) -> "torch.Tensor":
        import torch

        return self._model.vision_model(
            pixel_values=torch.from_numpy(pixels).to(self.device)
        ).last_hidden_state


class Blip(_TwoSided):
    """BLIP: the text tower looks at the picture. Its head was trained with [ENC] in place of a
    text's first token.

    transformers leaves [CLS] there, as BLIP's demo does; BLIP's released retrieval, which RoCOCO
    follows, does not.
    """

    architecture, context = "BlipForImageTextRetrieval", 35

    @property
    def _enc(self) -> int | None:
        """The id of [ENC], where the vocabulary has it."""
        config = self._model.config.text_config
        enc = config.bos_token_id + 1  # [DEC], which begins captions, and then [ENC]
        return enc if enc < config.vocab_size else None

    def _note(self) -> str:
        return "" if self._enc else "its vocabulary has no [ENC]: the matching head reads [CLS]"

    def _image_vectors(self, hidden: "torch.Tensor") -> "torch.Tensor":
        return self._model.vision_proj(hidden[:, 0])

    def _text_vectors(self, ids: "torch.Tensor", mask: "torch.Tensor") -> "torch.Tensor":
        return self._model.text_proj(
            self._model.text_encoder(
                ids,
                attention_mask=mask,
            ).last_hidden_state[:, 0]
        )

    def _pair_logits(
        self,
        hidden: "torch.Tensor",
        ids: "torch.Tensor",
        mask: "torch.Tensor",
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


class Blip2(_TwoSided):
    """BLIP-2: learned queries look at the picture; the best of them is the similarity, their mean
    logit the match.
    """

    architecture, context = "Blip2ForImageTextRetrieval", 35

    @property
    def image_dim(self) -> int:
        """Of an embedding of a picture: one vector for each query."""
        return self.dim * self._model.config.num_query_tokens

    def _image_vectors(self, hidden: "torch.Tensor") -> "torch.Tensor":
        queries = self._model.query_tokens.expand(len(hidden), -1, -1)
        mask = hidden.new_ones(hidden.shape[:2]).long()
        out = self._model.qformer(
            query_embeds=queries,
            encoder_hidden_states=hidden,
            encoder_attention_mask=mask,
            return_dict=True,
        )
        return self._model.vision_projection(out.last_hidden_state)

    def _text_vectors(self, ids: "torch.Tensor", mask: "torch.Tensor") -> "torch.Tensor":
        embeds = self._model.embeddings(input_ids=ids)
        out = self._model.qformer(
            query_embeds=embeds,
            query_length=0,
            attention_mask=mask,
            return_dict=True,
        )
        return self._model.text_projection(out.last_hidden_state[:, 0])

    def _pair_logits(
        self,
        hidden: "torch.Tensor",
        ids: "torch.Tensor",
        mask: "torch.Tensor",
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


class Vilt(ItmHead):
    """ViLT: one tower for patches and words, and a logit without a scale; no embedding of either
    alone.
    """

    architecture, context, score_type = "ViltForImageAndTextRetrieval", 40, "logit"

    def encode_pictures(self, pixels: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The pictures as they are: nothing is known of one before its text is."""
        return list(pixels)

    def match(
        self,
        encoded: Sequence[np.ndarray],
        tokens: np.ndarray,
        logits: bool = False,
    ) -> np.ndarray:
        """The rank head's logit of each picture and its text, float32 of shape (n,)."""
        import torch

        height, width = (max(pixels.shape[axis] for pixels in encoded) for axis in (1, 2))
        batch = torch.zeros((len(encoded), 3, height, width))
        mask = torch.zeros((len(encoded), height, width), dtype=torch.long)
        for row, pixels in enumerate(encoded):
            batch[row, :, : pixels.shape[1], : pixels.shape[2]] = torch.from_numpy(pixels)
            mask[row, : pixels.shape[1], : pixels.shape[2]] = 1
        ids, text_mask = self._text_inputs(tokens)
        # transformers draws the order of the patches by lot, which moves nothing but the last bits.
        with torch.random.fork_rng(devices=[]), frozen.arithmetic(self.device, self.precision):
            torch.default_generator.manual_seed(0)
            out = self._model(
                input_ids=ids,
                attention_mask=text_mask,
                pixel_values=batch.to(self.device),
                pixel_mask=mask.to(self.device),
            )
        return out.logits[:, 0].float().cpu().numpy()


KINDS: dict[str, type[ItmHead]] = {"blip": Blip, "blip-2": Blip2, "vilt": Vilt}
