"""Functions that find, download, check and open model folders in the Hugging Face hub layout, without running their
code.

A name is PREFIX:FOLDER or PREFIX:OWNER/NAME, optionally with `@FILE` for weights that `vlprobe train` wrote. Weights
are read as plain tensors, and a folder that requires custom code is rejected. Every tensor must be present, because
transformers would only log a missing tensor and initialize it at random.
"""

import contextlib
import importlib.util
import re
import socket
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from PIL import Image

from vlprobe.errors import InvalidInput, MissingDependency, first_line
from vlprobe.models import frozen
from vlprobe.models.checkpoint import DAMAGED, fill, read_weights
from vlprobe.models.folder_policy import check_folder
from vlprobe.models.modules import TorchModel, TransformersModel
from vlprobe.registry.model_memo import files_below
from vlprobe.storage import files
from vlprobe.types import Model

if TYPE_CHECKING:
    from transformers import BaseImageProcessor, PreTrainedTokenizerBase, ProcessorMixin

Content = TypeVar("Content")
EXTRA = "'vlprobe[models]'"
SAFELY: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
DTYPES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
REPOSITORY = re.compile(r"[\w.-]+(/[\w.-]+)?")
WANTED = ("*.json", "*.jinja", "*.txt", "*.model")
# the second pattern is only used if no file matches the first
WEIGHTS = (("*.safetensors",), ("*pytorch_model*.bin",))
# One of these is the vocabulary; transformers creates an empty one if it is missing
VOCABULARIES = (
    *("tokenizer.json", "vocab.json", "vocab.txt"),
    *("spiece.model", "tokenizer.model", "*.bpe.model"),
)
UNWANTED = ("onnx/*", "openvino/*", "flax*", "tf_*", "consolidated*", "original/*")
# Entries of a config that have no effect on numbers
NOT_OF_THE_MODEL = {
    *("_name_or_path", "transformers_version", "torch_dtype", "dtype", "architectures"),
}
# Names in transformers for the activations that others call GELU or QuickGELU
ACTIVATIONS = {"GELUActivation": "GELU", "GELUTanh": "GELU", "QuickGELUActivation": "QuickGELU"}


def need(name: str, package: str) -> None:
    """Raise MissingDependency if the package that a model needs is not installed."""
    if importlib.util.find_spec(package) is None:
        raise MissingDependency(f"'{name}'", package, EXTRA)


@dataclass(frozen=True, slots=True)
class ModelSource:
    """The folder of a model, and the settings for loading it."""

    name: str  # as the user typed it
    folder: Path
    config: dict[str, Any]  # the settings in the folder
    device: str  # from `frozen.pick_device`
    # "fp32", or "fp16" or "bf16" for autocast; embeddings are always normalized in fp32
    precision: str
    checkpoint: Path | None = None  # the file of fine-tuned weights that replace the folder's

    @property
    def model_type(self) -> str:
        """The name of the model's architecture in transformers."""
        return str(self.config.get("model_type"))


def locate(
    name: str, device: str, precision: str, base: str = "", checkpoint: Path | None = None
) -> ModelSource:
    """Find the folder of a transformers model. Raises InvalidInput or MissingDependency.

    Args:
        name: The name that the user typed.
        device: The device to run on, or "auto".
        precision: "fp32", "fp16" or "bf16".
        base: The name without its options, or "" if it has no options.
        checkpoint: The file with fine-tuned weights.
    """
    need(name, "transformers")
    device, precision = frozen.pick_device(device), frozen.check_precision(precision)
    folder = find(base or name)
    config = read_json(folder / "config.json", dict)
    return ModelSource(name, folder, config, device, precision, checkpoint)


def split_checkpoint(name: str) -> tuple[str, Path | None]:
    """Split PREFIX:SOURCE@FILE into the model's name and the file with fine-tuned weights. The name of a folder that
    exists as written may contain "@". Raises InvalidInput if the file does not exist.
    """
    base, _, file = name.partition("@")
    if not file or files.parse_path(name.partition(":")[2], confined=False).is_dir():
        return name, None
    checkpoint = files.parse_path(file)
    if not checkpoint.is_file():
        raise InvalidInput(
            f"Checkpoint '{checkpoint}' does not exist. Expected a file that `vlprobe train` wrote."
        )
    return base, checkpoint


@dataclass(frozen=True, slots=True)
class HubFamily:
    """A registry family for transformers models whose names share a prefix."""

    PREFIX: str
    examples: tuple[str, ...]  # example repositories; any other repository or folder can be typed
    build: Callable[[ModelSource], Model]  # called inside `opening`
    is_tunable: bool = False  # whether PREFIX:SOURCE@FILE loads fine-tuned weights

    @property
    def NAMES(self) -> Sequence[str]:
        """Example names."""
        return [f"{self.PREFIX}:{repository}" for repository in self.examples]

    def check_name(self, name: str) -> None:
        """Raise InvalidInput if the name is not a folder and cannot be a repository."""
        local_folder(self._split(name)[0])

    def _split(self, name: str) -> tuple[str, Path | None]:
        return split_checkpoint(name) if self.is_tunable else (name, None)

    def load(self, name: str, device: str = "auto", precision: str = "fp32") -> Model:
        """Load a model by name. Raises InvalidInput or MissingDependency."""
        source = locate(name, device, precision, *self._split(name))
        with opening(name):
            model = self.build(source)
        model.sources = [*sources(source.folder), *filter(None, [source.checkpoint])]
        return model


def find(name: str) -> Path:
    """Return the folder that a name refers to. It is downloaded from the hub if it is not a local folder.

    Raises InvalidInput, also if a file in the folder requests code, kernels or files from elsewhere.
    """
    folder = local_folder(name)
    if folder is not None:
        return folder
    folder = fetch(name, name.partition(":")[2])
    check_folder(name, folder, confined=False)
    return folder


def local_folder(name: str) -> Path | None:
    """Return the local folder that a name refers to, checked as in `find`, or None for a repository on the hub.

    Raises InvalidInput, also if the name cannot be a folder or a repository.
    """
    prefix, _, source = name.partition(":")
    folder = files.parse_path(source, confined=False)  # a name of the hub is not a path
    if source and folder.is_dir():
        check_folder(name, folder)
        return folder
    if source.startswith(("/", ".", "~")) or not REPOSITORY.fullmatch(source):
        raise InvalidInput(
            f"'{name}': folder '{source}' does not exist. Expected {prefix}:FOLDER, "
            f"written by save_pretrained, or {prefix}:OWNER/NAME from the hub."
        )
    return None


def fetch(
    name: str,
    repository: str,
    weights: Sequence[tuple[str, ...]] = WEIGHTS,
    local: str = "",
) -> Path:
    """Download a repository from the hub, unless its files are in the hub's cache, and return its folder.

    Raises InvalidInput.

    Args:
        name: The name that the user typed.
        repository: OWNER/NAME.
        weights: Patterns of the weights; those after the first are only used if no file matches the ones before.
        local: What to type for a local folder instead; "": PREFIX:/path/to/folder.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled

    try:
        for patterns in weights:
            allowed = [*WANTED, *patterns]
            folder = Path(
                snapshot_download(repository, allow_patterns=allowed, ignore_patterns=[*UNWANTED])
            )
            if any(folder.rglob(patterns[0])):
                break
        return folder
    except (OSError, HfHubHTTPError, HFValidationError, OfflineModeIsEnabled) as error:
        reason = first_line(error)
        raise InvalidInput(
            f"'{repository}' of '{name}' is not on this machine and cannot be downloaded from "
            f"the hub ({reason}). Download it elsewhere and pass the folder: "
            f"{local or name.partition(':')[0] + ':/path/to/folder'}."
        ) from None


def cached_folders() -> dict[str, Path]:
    """Return the folder of each repository in the hub's cache on this machine, by OWNER/NAME. A repository with several
    revisions has one of them.
    """
    from huggingface_hub import constants

    folders = sorted(Path(constants.HF_HUB_CACHE).glob("models--*/snapshots/*"))
    return {
        folder.parent.parent.name.removeprefix("models--").replace("--", "/"): folder
        for folder in folders
    }


def sources(folder: Path) -> list[Path]:
    """List the files that a model in a folder was loaded from. In the hub cache, this includes the file that maps a
    name to a revision.
    """
    paths = files_below(folder)
    if folder.parent.name == "snapshots":
        paths += [folder.parent, *files_below(folder.parent.parent / "refs")]
    return paths


def read_json(path: Path, *kinds: type[Content]) -> Content:
    """Read a JSON file in a model folder. Raises InvalidInput if the content does not have one of the given types."""
    try:
        content = files.parse_json(files.read(path).decode())
    except OSError as error:
        raise InvalidInput(
            f"'{path}' cannot be read ({error.strerror}). Expected a model folder written by "
            "save_pretrained."
        ) from None
    except ValueError as error:
        raise InvalidInput(
            f"'{path}' is not valid JSON ({error}). Expected a model config."
        ) from None
    if not isinstance(content, kinds):
        expected = " | ".join(kind.__name__ for kind in kinds)
        raise InvalidInput(f"'{path}' contains a {type(content).__name__}. Expected a {expected}.")
    return content


@contextlib.contextmanager
def opening(name: str) -> Iterator[None]:
    """Provide a context for loading a model quietly, without changing the global random state. Errors in the files
    become one-line messages.

    Encode a first picture and a first text inside the context, so that mismatched parts are reported.
    """
    import safetensors
    import torch
    from huggingface_hub.errors import StrictDataclassError
    from transformers.utils import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    try:
        logging.set_verbosity_error()
        logging.disable_progress_bar()
        with torch.random.fork_rng(devices=[]):
            # makes unused random weights the same every time
            torch.default_generator.manual_seed(0)
            yield
    except ImportError as error:
        if error.name:
            raise MissingDependency(f"'{name}'", error.name, EXTRA) from None
        raise InvalidInput(
            f"'{name}' cannot be opened ({first_line(error)}). Install the missing "
            f"package: pip install {EXTRA}"
        ) from None
    except (*DAMAGED, OSError, safetensors.SafetensorError, StrictDataclassError) as error:
        raise InvalidInput(
            f"'{name}' cannot be opened ({first_line(error)}). Expected a folder written by "
            "save_pretrained with tokenizer, image processor and weights (.safetensors, or .bin "
            "with plain tensors); other files could run code and are rejected."
        ) from error
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


def load(
    name: str,
    architecture: Any,
    folder: Path,
    dtype: str = "float32",
    unused: Sequence[str] = ("position_ids",),
) -> TransformersModel:
    """Load a model with all of its weights on the CPU, and freeze it.

    Args:
        name: The name that the user typed.
        architecture: A model class from transformers.
        folder: The folder that `find` returned.
        dtype: The data type of the weights.
        unused: Words in the names of tensors that may be missing.

    Raises:
        InvalidInput: A tensor is missing or has the wrong shape. Inside `opening`, every other fault also
            raises this error.
    """
    import torch

    settings = {"dtype": getattr(torch, dtype), "weights_only": True, **SAFELY}
    model, loading = architecture.from_pretrained(folder, output_loading_info=True, **settings)
    missing = sorted(
        key for key in loading["missing_keys"] if not any(word in key for word in unused)
    )
    missing += [key for key, *_ in loading["mismatched_keys"]]
    if missing:
        raise InvalidInput(
            f"'{name}' is not a {architecture.__name__} checkpoint: {len(missing)} of "
            f"{len(model.state_dict())} tensors are missing ({missing[0]}). Expected a checkpoint "
            "of that architecture, including its heads."
        )
    return model.eval().requires_grad_(False)


def load_tuned(source: ModelSource, model: TransformersModel) -> None:
    """Replace a model's weights with its checkpoint, if it has one. Raises InvalidInput if they do not fit."""
    if source.checkpoint:
        fill(source.name, model, source.checkpoint, read_weights(source.checkpoint))


def image_processor(folder: Path, **settings: int) -> "BaseImageProcessor":
    """Load the model's image processor with the PIL backend that its authors used, because torchvision resizes to
    different pixels. `settings` override its own settings.
    """
    from transformers import AutoImageProcessor

    return AutoImageProcessor.from_pretrained(folder, backend="pil", **SAFELY, **settings)


def processor(folder: Path) -> "ProcessorMixin":
    """Load the processor of a model that takes pictures and texts."""
    from transformers import AutoProcessor

    return AutoProcessor.from_pretrained(folder, **SAFELY)


def has_vocabulary(folder: Path) -> bool:
    """Return whether a folder has one of the files in VOCABULARIES."""
    return any(path for pattern in VOCABULARIES for path in folder.glob(pattern))


def tokenizer(folder: Path) -> "PreTrainedTokenizerBase":
    """Load the model's own tokenizer. Raises InvalidInput if the folder has no vocabulary."""
    from transformers import AutoTokenizer

    if not has_vocabulary(folder):
        raise InvalidInput(
            f"'{folder}' has no tokenizer. Expected one of: {', '.join(VOCABULARIES)}."
        )
    return AutoTokenizer.from_pretrained(folder, **SAFELY)


def described(config: Mapping) -> dict:
    """Copy a config and omit entries, at any depth, that have no effect on numbers."""
    return {
        key: described(value) if isinstance(value, Mapping) else value
        for key, value in config.items()
        if key not in NOT_OF_THE_MODEL
    }


def description(
    source: ModelSource, processor: "BaseImageProcessor", tokens: Sequence[Sequence[int]]
) -> dict[str, object]:
    """Collect everything except the weights that can change a number, for `frozen.digest`. `tokens` are the ids for
    `FINGERPRINT_TEXTS`, one row per text.
    """
    return {
        "config": described(source.config),
        "preprocess": [type(processor).__name__, described(processor.to_dict())],
        "tokenizer": tokens,
        "precision": source.precision,
    }


def facts(
    model: TorchModel, tokenizer: object, processor: "BaseImageProcessor | None"
) -> dict[str, str]:
    """Describe a loaded model, as a dictionary from subject to text. The facts come from the modules, not the name."""
    activations = {
        type(layer).__name__ for layer in model.modules() if "GELU" in type(layer).__name__
    }
    subjects = {
        "architecture": type(model).__name__,
        "activation": " and ".join(ACTIVATIONS.get(name, name) for name in sorted(activations))
        or "no GELU",
        "tokenizer": type(tokenizer).__name__,
        "parameters": f"{sum(weights.numel() for weights in model.parameters()):,}",
    }
    if processor:
        settings = processor.to_dict()
        size = settings.get("crop_size") if settings.get("do_center_crop") else settings.get("size")
        subjects |= {
            key: ", ".join(f"{value:.4f}" for value in settings[f"image_{key}"])
            for key in ("mean", "std")
            if settings.get(f"image_{key}") is not None
        }
        filters = {resampling.value: resampling.name.lower() for resampling in Image.Resampling}
        if settings.get("resample") is not None:
            subjects["interpolation"] = filters.get(
                settings["resample"], f"unknown ({settings['resample']})"
            )
        if size and {"height", "width"} <= set(size):
            subjects["size"] = f"{size['height']} x {size['width']}"
            subjects["resizing"] = "shortest" if settings.get("do_center_crop") else "squash"
    return subjects


@contextlib.contextmanager
def no_retries_without_a_network() -> Iterator[None]:
    """Use only the local cache inside the block if the hub's host cannot be resolved. The client would retry for 46
    seconds."""
    from huggingface_hub import constants

    was_offline = constants.HF_HUB_OFFLINE
    if not urllib.request.getproxies():
        try:
            socket.getaddrinfo(urllib.parse.urlsplit(constants.ENDPOINT).hostname, 443)
        except OSError:
            constants.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = was_offline
