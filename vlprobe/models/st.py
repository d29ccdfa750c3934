"""Text encoders of sentence-transformers: st:OWNER/NAME from the hub, st:FOLDER from a disk. They
see no pictures.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vlprobe.models import frozen, hub
from vlprobe.models.frozen import FINGERPRINT_TEXTS, pick_device
from vlprobe.types import Capabilities, TextEncoder

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

PREFIX = "st"


def names() -> list[str]:
    """Typical names; any repository or folder in the layout of sentence-transformers can be
    typed.
    """
    return [
        "st:sentence-transformers/all-MiniLM-L6-v2",
        "st:BAAI/bge-base-en-v1.5",
        "st:thenlper/gte-base",
    ]


def check_name(name: str) -> None:
    """Raises InvalidInput where the name is that of no folder and can be that of no repository."""
    hub.local_folder(name)


def load(name: str, device: str = "auto", precision: str = "fp32") -> "StEncoder":
    """The model of that name. Raises InvalidInput or MissingDependency."""
    hub.need(name, "sentence_transformers")
    device, precision = pick_device(device), frozen.check_precision(precision)
    folder = hub.find(name)
    modules = hub.read_json(folder / "modules.json", list)  # checked by `find`
    transformer = folder / modules[0]["path"]
    hub.read_config(transformer)
    import torch
    from sentence_transformers import SentenceTransformer

    with hub.opening(name):
        hub.tokenizer(transformer)
        settings = {"dtype": torch.float32, "weights_only": True}
        model = SentenceTransformer(
            str(folder),
            device="cpu",
            local_files_only=True,
            trust_remote_code=False,
            model_kwargs=settings,
        )
        # sentence-transformers does not say what was missing. A pooler is: it is not used.
        hub.load(
            name,
            type(model.transformers_model),
            transformer,
            unused=("position_ids", "pooler."),
        )
        encoder = StEncoder(name, folder, model, device, precision)
        encoder.sources = hub.sources(folder)
        return encoder


class StEncoder(TextEncoder):
    """A text encoder of sentence-transformers, frozen, with its own pooling and its default prompt
    if it has one.

    Args:
        name: What the user typed.
        folder: What describes it.
        model: On the CPU; it is moved to the device.
        device: As `pick_device` gives it.
        precision: "fp32", or "fp16" or "bf16" for autocast; embeddings are normalised in fp32 in
            any case.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        model: "SentenceTransformer",
        device: str,
        precision: str,
    ) -> None:
        self.name, self.device, self.precision = name, device, precision
        self._model = model.eval().requires_grad_(False)
        self._prompt = model.prompts.get(model.default_prompt_name or "") or None
        self.note = "a text encoder: it sees no pictures"
        if self._prompt:
            self.note += f"; every text begins with its prompt '{self._prompt}'"
        # What pooling needs beside tokens: how long the prompt is that it leaves out
        inputs = model.preprocess(["a"], prompt=self._prompt)
        self._prompt_inputs = {
            key: inputs[key] for key in ("prompt_length", "modality") if key in inputs
        }
        description = {
            "config": {
                path.relative_to(folder).as_posix(): hub.read_json(path, dict, list)
                for path in sorted(folder.rglob("*config*.json"))
                if path.name != "data_config.json"
            },
            "modules": hub.read_json(folder / "modules.json", list),
            "tokenizer": self.tokenize(FINGERPRINT_TEXTS).tolist(),
            "precision": precision,
        }
        self.digest = frozen.digest(hub.described(description), model)
        self._model.to(device)
        self.dim = self.encode_texts(self.tokenize(["a"])).shape[1]

    @property
    def capabilities(self) -> Capabilities:
        """Embeddings of texts alone."""
        return Capabilities(
            embeds_texts=True,
            dim=self.dim,
            device=self.device,
            precision=self.precision,
        )

    def facts(self) -> dict[str, str]:
        """What was built, in words."""
        return hub.facts(self._model, self._model.tokenizer, None)

    def tokenize(self, texts: Sequence[str]) -> np.ndarray:
        """Texts to int64 of shape (n, columns), PAD after the end."""
        inputs = self._model.preprocess(list(texts), prompt=self._prompt)
        masks = inputs["attention_mask"].bool()
        return frozen.padded(
            [
                ids[mask].tolist()
                for ids, mask in zip(
                    inputs["input_ids"],
                    masks,
                    strict=True,
                )
            ]
        )

    def encode_texts(self, tokens: np.ndarray) -> np.ndarray:
        """Shape (n, columns) to unit vectors of shape (n, dim)."""
        import torch

        ids = torch.from_numpy(frozen.resized(tokens)).to(self.device)
        is_text = ids != frozen.PAD
        filler = self._model.tokenizer.pad_token_id or 0
        inputs = {"input_ids": ids.masked_fill(~is_text, filler), "attention_mask": is_text.long()}
        inputs |= self._prompt_inputs
        with frozen.arithmetic(self.device, self.precision):
            return frozen.unit(self._model(inputs)["sentence_embedding"])
