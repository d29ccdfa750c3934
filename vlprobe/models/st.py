"""Models from sentence-transformers: st:OWNER/NAME from the hub, or st:FOLDER from disk. Most embed only texts.
Models that also embed pictures are dual encoders.

    +prompt=TEXT        the instruction that every text begins with, which is all text after the equals sign, including
                        plus signs; \\n is a new line, and \\s is a blank in case trailing blanks get lost
    +prompt_name=NAME   the instruction with this name in the model's settings
    +adapter=SOURCE     a LoRA adapter of peft, a folder or OWNER/NAME, which is merged into the model
    +pooling=MODE       last, mean or cls, for a model in the layout of transformers, which has no modules.json

A prompt comes last. A text takes the place of {} in +prompt=TEXT, if there is one.

Without either option, the model's default prompt is used, if there is one. `+prompt=` means no prompt. A model with a
chat template receives the instruction as its system message. Pictures always use the default prompt.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from PIL import Image

from vlprobe.errors import InvalidInput
from vlprobe.models import adapters, frozen, hub
from vlprobe.models.frozen import FINGERPRINT_TEXTS
from vlprobe.models.modules import TransformersModel
from vlprobe.storage import files
from vlprobe.types import Capabilities, DualEncoder, TextEncoder

if TYPE_CHECKING:
    import torch
    from sentence_transformers import SentenceTransformer

PREFIX = "st"
NAMES = (  # examples: any repository or folder in the sentence-transformers layout can be typed
    "st:sentence-transformers/all-MiniLM-L6-v2",
    "st:BAAI/bge-base-en-v1.5",
    "st:thenlper/gte-base",
    "st:Qwen/Qwen3-Embedding-0.6B+prompt_name=query",
    "st:sentence-transformers/clip-ViT-B-32",
)
OPTIONS = re.compile(
    r"(?P<model>.*?)(?:\+adapter=(?P<adapter>[^+]+))?(?:\+pooling=(?P<pooling>last|mean|cls))?"
    r"(?:\+(?P<kind>prompt|prompt_name)=(?P<value>.*))?",
    re.DOTALL,
)
POOLING = {"last": "lasttoken", "mean": "mean", "cls": "cls"}  # as in sentence-transformers
ESCAPES = {"\\n": "\n", "\\s": " "}
SIZES = ("min_pixels", "max_pixels")  # settings that are passed on to an image processor


class StName(NamedTuple):
    """The parts of a model's name."""

    model: str  # with the prefix
    adapter: str = ""
    pooling: str = ""  # a key of POOLING
    prompt: tuple[str, str] | None = None  # kind and value


def check_name(name: str) -> None:
    """Raise InvalidInput if the name is not a folder and cannot be a repository, or its option is not valid."""
    options = _parsed(name)
    hub.local_folder(options.model)
    if options.adapter:
        adapters.local_folder(name, options.adapter)


def load(name: str, device: str = "auto", precision: str = "fp32") -> "StEncoder":
    """Load a sentence-transformers model by name. Raises InvalidInput or MissingDependency."""
    options = _parsed(name)
    hub.need(name, "sentence_transformers")
    if options.adapter:
        hub.need(name, "peft")
    device, precision = frozen.pick_device(device), frozen.check_precision(precision)
    folder = hub.find(options.model)
    adapter = adapters.find(name, options.adapter) if options.adapter else None
    model_source = hub.ModelSource(name, folder, {}, device, precision)
    modules = _modules(name, folder, options.pooling)
    transformer = folder / modules[0]["path"]
    hub.read_json(transformer / "config.json", dict)

    with hub.opening(name):
        hub.tokenizer(transformer)
        model = _open(folder, options.pooling)
        # sentence-transformers does not report missing tensors. A pooler may be missing, because it is not used.
        hub.load(
            name, type(model.transformers_model), transformer, unused=("position_ids", "pooler.")
        )
        sources = hub.sources(folder)
        if adapter:
            base = cast(TransformersModel, model.transformers_model)
            sources += adapters.merge(name, base, adapter)
        prompt = _instruction(name, model, options.prompt)
        if model.supports("image"):
            _use_pil(model, transformer)
            encoder = StDualEncoder(model_source, model, prompt, modules)
        else:
            encoder = StEncoder(model_source, model, prompt, modules)
        encoder.sources = sources
        return encoder


def _modules(name: str, folder: Path, pooling: str) -> list:
    """Return the content of modules.json, which `find` checked, or an equivalent for a model with the given pooling."""
    if pooling:
        if (folder / "modules.json").exists():
            raise InvalidInput(
                f"'{name}' sets a pooling, but modules.json in '{folder}' already defines one. "
                "Remove the option."
            )
        return [{"path": ""}, {"pooling": pooling}]
    if not (folder / "modules.json").exists() and (folder / "config.json").exists():
        raise InvalidInput(
            f"'{folder}' has the layout of transformers and no modules.json. Choose how token "
            f"vectors are pooled into one vector: +pooling={', '.join(POOLING)}."
        )
    return hub.read_json(folder / "modules.json", list)


def _open(folder: Path, pooling: str) -> "SentenceTransformer":
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    settings = {"dtype": torch.float32, "weights_only": True}
    if not pooling:
        return SentenceTransformer(str(folder), device="cpu", model_kwargs=settings, **hub.SAFELY)
    transformer = Transformer(
        str(folder),
        model_kwargs=settings | hub.SAFELY,
        config_kwargs=dict(hub.SAFELY),
        processor_kwargs=dict(hub.SAFELY),
    )
    mode: Any = POOLING[pooling]
    modules: list[Any] = [transformer, Pooling(transformer.get_embedding_dimension(), mode)]
    return SentenceTransformer(modules=modules, device="cpu")


def _parsed(name: str) -> StName:
    """Split a name into its parts. The name of a folder that exists as written may contain a plus sign.

    >>> _parsed("st:a/b").model, _parsed("st:a/b+adapter=c/d+prompt=Say: a+b")[1:]
    ('st:a/b', ('c/d', '', ('prompt', 'Say: a+b')))
    """
    prefix, _, text = name.partition(":")
    if "+" not in text or files.parse_path(text, confined=False).is_dir():
        return StName(name)
    match = OPTIONS.fullmatch(text)
    model = match["model"] if match else text
    is_known = "+" not in model or files.parse_path(model, confined=False).is_dir()
    if not match or not is_known or not (match["value"] or "").isprintable():
        raise InvalidInput(
            f"{name!r} has an unknown option. Expected {prefix}:MODEL, then +adapter=SOURCE, "
            f"+pooling={'|'.join(POOLING)}, and +prompt=TEXT (\\n for a new line) or "
            "+prompt_name=NAME, in this order."
        )
    prompt = (match["kind"], match["value"]) if match["kind"] else None
    return StName(f"{prefix}:{model}", match["adapter"] or "", match["pooling"] or "", prompt)


def _instruction(
    name: str, model: "SentenceTransformer", option: tuple[str, str] | None
) -> str | None:
    """Return the instruction that all texts begin with, or None for the model's default. Raises InvalidInput."""
    if option is None:
        return None
    kind, value = option
    if kind == "prompt":
        for escape, meaning in ESCAPES.items():
            value = value.replace(escape, meaning)
        return value
    prompt = model.prompts.get(value)
    if not prompt:
        others = ", ".join(key for key, text in model.prompts.items() if text)
        raise InvalidInput(
            f"The config of '{name}' has no prompt '{value}'. Expected "
            f"{f'one of: {others}' if others else '+prompt=TEXT (the config has no prompts)'}."
        )
    return prompt


def _use_pil(model: "SentenceTransformer", folder: Path) -> None:
    """Make the model prepare pictures with PIL, as in `hub.image_processor`. Keep the sizes from its settings."""
    settings = {
        key: value
        for file in folder.glob("sentence_*_config.json")
        for key, value in (hub.read_json(file, dict).get("processor_kwargs") or {}).items()
        if key in SIZES
    }
    processor = hub.image_processor(folder, **settings)
    if not hasattr(model.processor, "image_processor"):
        raise InvalidInput(
            f"'{folder}' claims to embed both pictures and texts but has no processor for "
            "both. Expected a folder written by SentenceTransformer.save."
        )
    model.processor.image_processor = processor


class StEncoder(TextEncoder):
    """A frozen text encoder from sentence-transformers, with its own pooling.

    Args:
        model_source: The name, folder and settings of the model.
        model: The model on the CPU; it is moved to the device.
        prompt: The instruction for every text, or None for the model's default prompt, if it has one.
        modules: The return value of `_modules`.
    """

    def __init__(
        self,
        model_source: hub.ModelSource,
        model: "SentenceTransformer",
        prompt: str | None,
        modules: list,
    ) -> None:
        self.name, folder = model_source.name, model_source.folder
        self.device, self.precision = model_source.device, model_source.precision
        self._model = model.eval().requires_grad_(False)
        self._default_prompt = model.prompts.get(model.default_prompt_name or "") or None
        self._prompt = self._default_prompt if prompt is None else prompt or None
        self._suffix = ""
        if prompt and "{}" in prompt:
            self._prompt, _, self._suffix = prompt.partition("{}")
        self._check_prompts()
        self.note = self._note()
        # Pooling also needs the length of the prompt that it excludes
        inputs = self._text_features(["a"])
        self._prompt_inputs = {
            key: inputs[key] for key in ("prompt_length", "modality") if key in inputs
        }
        description = {
            "config": {
                path.relative_to(folder).as_posix(): hub.read_json(path, dict, list)
                for path in sorted(folder.rglob("*config*.json"))
                if path.name != "data_config.json"
            },
            "modules": modules,
            "tokenizer": self.tokenize(FINGERPRINT_TEXTS).tolist(),
            "precision": model_source.precision,
        }
        if prompt is not None:
            # Earlier versions put such a prompt before the text, with its braces
            description["prompt"] = [self._prompt, self._suffix] if "{}" in prompt else prompt
        if model.truncate_dim:  # only if set, because earlier digests do not include it
            description["truncate_dim"] = model.truncate_dim
        self.digest = frozen.digest(hub.described(description | self._picture_description()), model)
        self._model.to(model_source.device)
        self.dim = self.encode_texts(self.tokenize(["a"])).shape[1]
        self._try_pictures()

    def _try_pictures(self) -> None:
        """Embed a picture to learn what the model takes. Raises InvalidInput if its dimension is not that of texts."""

    def _check_prompts(self) -> None:
        """Raise InvalidInput for a prompt that sentence-transformers would download or open as a picture."""
        from sentence_transformers.base.modality import infer_modality

        for prompt in filter(None, (self._prompt, self._default_prompt)):
            if infer_modality(prompt) != "text":
                raise InvalidInput(
                    f"The prompt '{prompt[:80]}' of '{self.name}' looks like the path or URL of "
                    "a picture. Expected text."
                )

    def _note(self) -> str:
        """Return a note about the scores for readers."""
        prompt = f"; every text begins with its prompt '{self._prompt}'" if self._prompt else ""
        ending = f" and ends with '{self._suffix}'" if self._suffix else ""
        return f"a text encoder: it sees no pictures{prompt}{ending}"

    def _picture_description(self) -> dict[str, object]:
        """Describe how pictures are preprocessed."""
        return {}

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the encoder, which embeds only texts."""
        return Capabilities(
            embeds_texts=True, dim=self.dim, device=self.device, precision=self.precision
        )

    def facts(self) -> dict[str, str]:
        """Describe the loaded model, as a dictionary from subject to text."""
        return hub.facts(self._model, self._model.tokenizer, None)

    def tokenize(self, texts: Sequence[str]) -> np.ndarray:
        """Tokenize texts to int64 with shape (n, columns). PAD follows the end of each text."""
        inputs = self._text_features(texts)
        masks = inputs["attention_mask"].bool()
        return frozen.padded(
            [ids[mask].tolist() for ids, mask in zip(inputs["input_ids"], masks, strict=True)]
        )

    def encode_texts(self, tokens: np.ndarray) -> np.ndarray:
        """Convert tokens with shape (n, columns) to unit vectors with shape (n, dim)."""
        import torch

        ids = torch.from_numpy(frozen.resized(tokens)).to(self.device)
        is_text = ids != frozen.PAD
        filler = self._model.tokenizer.pad_token_id or 0
        inputs = {"input_ids": ids.masked_fill(~is_text, filler), "attention_mask": is_text.long()}
        inputs |= self._prompt_inputs
        return self._embedded(inputs)

    def _text_features(self, texts: Sequence[str]) -> Mapping:
        # In a dictionary, a text that looks like the address of a picture is still treated as text.
        return self._model.preprocess(
            [{"text": text + self._suffix} for text in texts], prompt=self._prompt
        )

    def _embedded(self, features: "dict[str, torch.Tensor]") -> np.ndarray:
        with frozen.arithmetic(self.device, self.precision):
            vectors = self._model(features)["sentence_embedding"]
            return frozen.unit(vectors[:, : self._model.truncate_dim])


class StDualEncoder(StEncoder, DualEncoder):
    """A sentence-transformers model that embeds pictures and texts.

    If the model takes only the pixels of a picture, pictures are encoded in batches. A model with a chat template, or
    with a number of patches that depends on the size, receives one picture at a time, so that neighbors in a batch
    cannot change an embedding.
    """

    def _try_pictures(self) -> None:
        blank = Image.new("RGB", (64, 64))
        features = self._picture_features(blank)
        self._takes_pixels_alone = set(features) == {"pixel_values", "modality"}
        self._modality = features["modality"]
        vectors = self.encode_images(self.preprocess(blank)[None])
        if vectors.shape[1] != self.dim:
            raise InvalidInput(
                f"'{self.name}' has {vectors.shape[1]}-dimensional image embeddings and "
                f"{self.dim}-dimensional text embeddings. Both must have the same dimension."
            )

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the encoder, which embeds texts and pictures."""
        return replace(super().capabilities, embeds_images=True, image_dim=self.dim)

    def _note(self) -> str:
        return f"every text begins with its prompt '{self._prompt}'" if self._prompt else ""

    def _picture_description(self) -> dict[str, object]:
        processor = self._model.processor.image_processor
        return {"preprocess": [type(processor).__name__, processor.to_dict()]}

    def facts(self) -> dict[str, str]:
        """Describe the loaded model, as a dictionary from subject to text."""
        processor = self._model.processor.image_processor
        return hub.facts(self._model, self._model.tokenizer, processor)

    def preprocess(self, image: Image.Image) -> np.ndarray:
        """Convert an RGB PIL image to float32 with shape (3, height, width), or to uint8 with shape
        (height, width, 3) if the model takes more than pixels.
        """
        if self._takes_pixels_alone:
            return self._picture_features(image)["pixel_values"][0].numpy()
        return np.asarray(image)

    def encode_images(self, pixels: np.ndarray) -> np.ndarray:
        """Convert preprocessed images, with shape (n, ...) or as n arrays with different shapes, to unit vectors with
        shape (n, dim).
        """
        import torch

        if self._takes_pixels_alone:
            tensor = torch.from_numpy(pixels).to(self.device)
            return self._embedded({"pixel_values": tensor, "modality": self._modality})
        rows: list[np.ndarray] = []
        for index, picture in enumerate(pixels):
            if index and np.array_equal(picture, pixels[index - 1]):  # a batch is padded like this
                rows.append(rows[-1])
                continue
            features = self._picture_features(Image.fromarray(picture))
            moved = {
                key: value.to(self.device) if isinstance(value, torch.Tensor) else value
                for key, value in features.items()
            }
            rows.append(self._embedded(moved)[0])
        return np.stack(rows)

    def _picture_features(self, image: Image.Image) -> Mapping:
        return self._model.preprocess([{"image": image}], prompt=self._default_prompt)
