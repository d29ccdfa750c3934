"""Adapter for OpenCLIP models that embeds pictures and texts as unit vectors, and computes a digest of the model."""

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from vlprobe.models import frozen, tower_blocks
from vlprobe.models.frozen import TorchDualEncoder
from vlprobe.models.modules import OpenClipModel

if TYPE_CHECKING:
    import torch


# How many inputs go through a tower at once on a CPU; larger batches are not faster. The outputs of a block
# for more pictures are too large for malloc to keep, and cost page faults each time.
CPU_TEXTS = 128
CPU_PICTURES = 16


class OpenClipEncoder(TorchDualEncoder):
    """A frozen OpenCLIP model as a DualEncoder.

    A causal text tower that pools at the end-of-text token cannot see the columns after it. These columns
    are cut if a check on texts of several lengths confirms that the embeddings stay the same.

    Args:
        name: The name that the user typed.
        model: The model that `open_clip.create_model` returned; it is moved to the device.
        preprocess: OpenCLIP's inference transform, from a PIL image to a tensor.
        tokenizer: A function from texts to an int64 tensor with shape (n, context).
        digest: The digest of `identity_of` and the weights.
        device: "cpu", "cuda", "cuda:1" or "mps".
        precision: "fp32", or "fp16" or "bf16" for autocast. Embeddings are always normalized in fp32.
        note: A note for readers of the scores, such as that the model is untrained.
    """

    def __init__(
        self,
        name: str,
        model: OpenClipModel,
        preprocess: Callable,
        tokenizer: Callable,
        digest: str,
        device: str,
        precision: str = "fp32",
        note: str = "",
    ) -> None:
        frozen.check_precision(precision)
        self.name = name
        self.digest = digest
        self.note = note
        self.device = device
        self._model = model.eval().requires_grad_(False).to(device)
        self._transform = preprocess
        self._edits, self._levels = _split_transform(preprocess)
        self._tokenizer = tokenizer
        self._canonical = self._unlearned()
        self._small = (
            device == "cpu" and sum(weight.numel() for weight in model.parameters()) < 5_000_000
        )
        self.precision = "fp32"
        tokens = self.tokenize(frozen.LENGTHS_TEXTS)
        uncut = self.encode_texts(tokens, cut=False)
        self.dim = uncut.shape[1]
        self.cuts_columns = self._pools_at_the_end_of_text()
        self.cuts_columns = self.cuts_columns and frozen.can_cut(self.encode_texts, tokens, uncut)
        self.precision = precision

    @property
    def module(self) -> OpenClipModel:
        """The OpenCLIP model on the device, which is frozen until it is trained."""
        return self._model

    def preprocess(self, image: Image.Image) -> np.ndarray:
        """Convert an RGB PIL image to float32 with shape (3, height, width)."""
        if self._levels is None:
            return self._transform(image).numpy()
        for edit in self._edits:
            image = edit(image)
        levels = np.asarray(image)
        pixels = np.empty((3, *levels.shape[:2]), dtype=np.float32)
        for channel, values in enumerate(self._levels):
            np.take(values, levels[:, :, channel], out=pixels[channel], mode="clip")
        return pixels

    def encode_images(self, pixels: np.ndarray) -> np.ndarray:
        """Convert pixels with shape (n, 3, height, width) to unit vectors with shape (n, dim)."""
        import torch

        with self._arithmetic():
            given = frozen.on_device(pixels, self.device)
            if self._is_plain and tower_blocks.pools_first_row(self._model.visual):
                encoded = [
                    tower_blocks.encode_images(self._model.visual, piece)
                    for piece in given.split(CPU_PICTURES)
                ]
                return frozen.unit(torch.cat(encoded))
            return frozen.unit(self._model.encode_image(given))

    def tokenize(self, texts: Sequence[str]) -> np.ndarray:
        """Tokenize texts to int64 with shape (n, context). All tokens that the model never learned become one token."""
        tokens = self.ids(texts)
        return tokens if self._canonical is None else self._canonical[tokens]

    def ids(self, texts: Sequence[str]) -> np.ndarray:
        """Tokenize texts to int64 with shape (n, context) and keep the original token ids, so that a model in training
        can learn new words.
        """
        return self._tokenizer(list(texts)).numpy()

    def unlearned(self, words: Sequence[str]) -> np.ndarray:
        """Return, for each word, whether it has a token that the model never learned, bool with shape (n,)."""
        if self._canonical is None:
            return np.zeros(len(words), dtype=bool)
        nothing = np.bincount(self._canonical).argmax()  # replaces all unlearned tokens
        return (self.tokenize(words) == nothing).any(axis=1)

    def encode_texts(self, tokens: np.ndarray, cut: bool = True) -> np.ndarray:
        """Convert tokens with shape (n, context) to unit vectors with shape (n, dim). `cut=False` runs all columns."""
        with self._arithmetic():
            if cut and self.cuts_columns:
                return self._encode_cut(tokens)
            return frozen.unit(self._model.encode_text(frozen.on_device(tokens, self.device)))

    @property
    def _is_plain(self) -> bool:
        """Whether the model runs on a CPU in fp32, for which `tower_blocks` has faster code."""
        return self.device == "cpu" and self.precision == "fp32"

    def _arithmetic(self) -> contextlib.AbstractContextManager:
        return frozen.arithmetic(self.device, self.precision, self._small)

    def facts(self) -> dict[str, str]:
        """Describe the model, as a dictionary from subject to text. The facts come from the modules, not the name."""
        layers = [owner.gelu for owner in self._gelus()] or list(self._model.modules())
        activations = {name for layer in layers if (name := type(layer).__name__).endswith("GELU")}
        return {
            "architecture": " + ".join(
                type(module).__name__
                for module in (
                    self._model,
                    self._model.visual,
                    getattr(self._tower, "transformer", self._tower),
                )
            ),
            "activation": " and ".join(sorted(activations)) or "neither GELU nor QuickGELU",
            "tokenizer": " of ".join(
                type(tokenizer).__name__
                for tokenizer in (getattr(self._tokenizer, "tokenizer", None), self._tokenizer)
                if tokenizer
            ),
            "parameters": f"{sum(weights.numel() for weights in self._model.parameters()):,}",
            **_preprocessing(self._model.visual.preprocess_cfg),
        }

    def published(self) -> dict[str, str]:
        """Return the facts in OpenCLIP's table for the tag in the model's name, or an empty dictionary if there is
        no tag.
        """
        import open_clip

        architecture_and_tag = self.name.removeprefix("openclip:").partition("@")[0]
        architecture, _, tag = architecture_and_tag.partition("/")
        config = open_clip.get_pretrained_cfg(architecture, tag)
        if not config:
            return {}
        architecture_config = open_clip.get_model_config(architecture) or {}
        size = architecture_config["vision_cfg"]["image_size"]
        subjects = _preprocessing({**config, "size": size})
        if self._gelus():
            subjects["activation"] = "QuickGELU" if config.get("quick_gelu") else "GELU"
        return subjects

    def _gelus(self) -> list[Any]:
        """Return the layers whose activation OpenCLIP chooses, without layers from other libraries."""
        owners = (module for module in self._model.modules() if hasattr(module, "gelu"))
        return [owner for owner in owners if type(owner.gelu).__name__.endswith("GELU")]

    def _unlearned(self) -> np.ndarray | None:
        """Build a table that maps each token to its id, and all tokens with a zero embedding to the first such token.

        Two texts that differ only in such tokens are the same to the model, so they must tie in any batch.
        """
        table = getattr(self._tower, "token_embedding", None)
        if table is None:
            return None
        # token 0 is padding in some towers
        nothing = np.flatnonzero((table.weight[1:] == 0).all(dim=1).cpu().numpy()) + 1
        canonical = np.arange(table.num_embeddings)
        canonical[nothing[1:]] = nothing[0] if len(nothing) else 0
        return canonical if len(nothing) > 1 else None

    @property
    def _tower(self) -> Any:
        return getattr(self._model, "text", self._model)

    @property
    def _pool(self) -> str:
        return getattr(self._tower, "text_pool_type", getattr(self._tower, "pool_type", ""))

    def _pools_at_the_end_of_text(self) -> bool:
        is_causal = getattr(self._tower, "attn_mask", None) is not None
        has_class = getattr(self._tower, "cls_emb", None) is not None
        return is_causal and not has_class and self._pool in ("argmax", "eos")

    def _encode_cut(self, tokens: np.ndarray) -> np.ndarray:
        import torch

        # The end of each text is found on the CPU, because the device would have to wait for the
        # answer.
        if self._pool == "argmax":  # the end of text has the highest id
            end = tokens.argmax(axis=1)
        else:
            eos = getattr(self._tower, "text_eos_id", getattr(self._tower, "eos_id", None))
            end = (tokens == eos).argmax(axis=1)
        shares = self._is_plain and tower_blocks.shares_beginnings(self._tower)
        order = np.lexsort((*(tokens.T[::-1] if shares else ()), end))
        step = CPU_TEXTS if self.device == "cpu" else len(tokens)
        batches = [order[start : start + step] for start in range(0, len(order), step)]
        encode = partial(tower_blocks.encode_texts, self._tower) if shares else self._encode_to_end
        pieces = []
        for rows in batches:
            cut = np.ascontiguousarray(tokens[rows, : int(end[rows].max()) + 1])
            pieces.append(encode(cut, end[rows]))
        encoded = torch.cat(pieces)
        vectors = np.empty(tuple(encoded.shape), dtype=np.float32)
        vectors[order] = frozen.unit(encoded)
        return vectors

    def _encode_to_end(self, tokens: np.ndarray, end: np.ndarray) -> "torch.Tensor":
        import torch

        tower = self._tower
        ids, columns = frozen.on_device(tokens, self.device), tokens.shape[1]
        x = tower.token_embedding(ids) + tower.positional_embedding[:columns]
        x = tower.ln_final(tower.transformer(x, attn_mask=tower.attn_mask[:columns, :columns]))
        x = x[torch.arange(len(x), device=x.device), frozen.on_device(end, self.device)]
        if isinstance(tower.text_projection, torch.nn.Linear):
            return tower.text_projection(x)
        return x if tower.text_projection is None else x @ tower.text_projection


def _split_transform(transform: Callable) -> tuple[list[Callable], np.ndarray | None]:
    """Split OpenCLIP's transform into the steps that edit a PIL image and a lookup table for normalized pixel values.

    A lookup gives the same bits faster: 16 cores feed a GPU 541 instead of 472 pictures/s (benchmarks/RESULTS.md).

    Returns:
        The steps, and the values for levels 0 to 255 in each channel, float32 with shape (3, 256), or None if the
        transform ends with other steps.
    """
    steps = getattr(transform, "transforms", [])
    if [type(step).__name__ for step in steps[-2:]] != ["MaybeToTensor", "Normalize"]:
        return [], None
    ramp = np.repeat(np.arange(256, dtype=np.uint8)[None, :, None], 3, axis=2)
    pixels = steps[-1](steps[-2](Image.fromarray(ramp)))
    return steps[:-2], pixels.numpy()[:, 0]


def _preprocessing(config: dict) -> dict[str, str]:
    size = config["size"]
    height, width = (size, size) if isinstance(size, int) else size
    return {
        "mean": ", ".join(f"{value:.4f}" for value in config["mean"]),
        "std": ", ".join(f"{value:.4f}" for value in config["std"]),
        "interpolation": config["interpolation"],
        "resizing": config["resize_mode"],
        "size": f"{height} x {width}",
    }


def identity_of(
    model: OpenClipModel, config: dict, tokenizer: Callable, precision: str
) -> dict[str, object]:
    """Return everything except the weights that can change an embedding: config, preprocessing, tokenizer, precision.

    Args:
        model: The model that `open_clip.create_model` returned.
        config: OpenCLIP's model config. The weights do not determine GELU or QuickGELU, or the number of heads.
        tokenizer: The tokenizer, which is identified by its output for a few characteristic texts.
        precision: The precision of the encoder.
    """
    return {
        "config": config,
        "preprocess": model.visual.preprocess_cfg,
        "tokenizer": tokenizer(list(frozen.FINGERPRINT_TEXTS)).tolist(),
        "precision": precision,
    }
