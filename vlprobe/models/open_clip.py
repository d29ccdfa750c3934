"""OpenCLIP models: pretrained, from your own checkpoint, or untrained to try the pipeline.

openclip:NAME                    randomly initialized, always with the same weights; the scores are
                                 meaningless
openclip:NAME/TAG                OpenCLIP's published weights, downloaded once by OpenCLIP
openclip:NAME/TAG@CHECKPOINT     the same weights from a local file, with TAG's preprocessing
                                 and activation
openclip:NAME@CHECKPOINT         your own weights, with OpenCLIP's default preprocessing and
                                 NAME's activation
openclip:local-dir:FOLDER        OpenCLIP's own folder layout: open_clip_config.json next to the
                                 weights
openclip:local-dir:FOLDER@CHECKPOINT    the same with other weights, such as a fine-tuned version
"""

import contextlib
import importlib.util
import json
import logging
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from vlprobe.errors import InvalidInput, MissingDependency, NotFound, first_line
from vlprobe.models import frozen, hub
from vlprobe.models.checkpoint import load_weights, without_draws
from vlprobe.models.folder_policy import check_folder
from vlprobe.models.modules import OpenClipModel
from vlprobe.models.open_clip_encoder import OpenClipEncoder, identity_of
from vlprobe.registry import natural_order
from vlprobe.registry.model_memo import files_below
from vlprobe.storage import files
from vlprobe.storage.files import write_bytes

PREFIX = "openclip"
NAMES = (  # examples: any architecture and tag that OpenCLIP knows can be typed
    "openclip:ViT-B-32/openai",
    "openclip:ViT-B-32/laion2b_s34b_b79k",
    "openclip:ViT-L-14/datacomp_xl_s13b_b90k",
    "openclip:ViT-B-16-SigLIP/webli",
    "openclip:ViT-B-32",
)
REPOSITORIES = (  # of the first names on the hub
    "timm/vit_base_patch32_clip_224.openai",
    "laion/CLIP-ViT-B-32-laion2B-s34B-b79K",
    "laion/CLIP-ViT-L-14-DataComp.XL-s13B-b90K",
    "timm/ViT-B-16-SigLIP",
)
WEIGHTS_ENDINGS = (".pt", ".pth", ".ckpt", ".bin", ".safetensors")
# errors that OpenCLIP raises for a malformed config
MISFITS = (TypeError, ValueError, KeyError, AttributeError)
FOLDER_WEIGHTS = (
    "open_clip_model.safetensors",
    "open_clip_pytorch_model.safetensors",
    "open_clip_pytorch_model.bin",
    "open_clip_pytorch_model.pth",
)


def suggestion(path: str) -> str:
    """Suggest a model name for a path to weights that was typed without a prefix. Return "" for any other text.

    >>> suggestion("epoch_3.pt"), suggestion("ViT-B-32@epoch_3.pt")
    ('openclip:ARCH@epoch_3.pt, such as openclip:ViT-B-32@epoch_3.pt', '')
    """
    if "@" in path or not path.lower().endswith(WEIGHTS_ENDINGS):
        return ""
    return f"{PREFIX}:ARCH@{path}, such as {PREFIX}:ViT-B-32@{path}"


@dataclass(frozen=True, slots=True)
class OpenClipName:
    """The parsed name of an OpenCLIP model, which has either a folder or an architecture."""

    text: str
    folder: Path | None
    architecture: str
    tag: str
    checkpoint: Path | None

    @property
    def source(self) -> str:
        """The name that OpenCLIP expects, without tag and checkpoint."""
        return f"local-dir:{self.folder}" if self.folder else self.architecture


def _parse(name: str) -> OpenClipName:
    """Parse the name of an OpenCLIP model. Raises InvalidInput if it names weights without an architecture."""
    source = name.removeprefix(f"{PREFIX}:")
    if form := suggestion(source):
        raise InvalidInput(f"'{source}' does not name an architecture. Write {form}.")
    base, _, file = source.partition("@")
    checkpoint = files.parse_path(file) if file else None
    if base.startswith("local-dir:"):
        folder = files.parse_path(base.removeprefix("local-dir:"))
        return OpenClipName(name, folder, "", "", checkpoint)
    architecture, _, tag = base.partition("/")
    return OpenClipName(name, None, architecture, tag, checkpoint)


def check_name(name: str) -> None:
    """Raise NotFound for an unknown architecture, or InvalidInput for a folder without a config or a checkpoint that
    does not exist.
    """
    parsed = _parse(name)
    if not parsed.folder:
        _require_architecture(parsed.architecture)
    if parsed.folder and not (parsed.folder / "open_clip_config.json").is_file():
        raise InvalidInput(
            f"'{parsed.folder}' has no open_clip_config.json. Expected a folder written by "
            "OpenCLIP."
        )
    if parsed.checkpoint:
        _require_file(parsed.checkpoint)


def _require_architecture(architecture: str) -> None:
    """Raise NotFound unless OpenCLIP has a config for an architecture. Its package is not imported: 3 s with torch."""
    # Without the function while another thread imports the package
    if list_models := getattr(sys.modules.get("open_clip"), "list_models", None):
        known = list_models()
    else:
        package = importlib.util.find_spec("open_clip")
        folders = package.submodule_search_locations or () if package else ()
        files_of = (Path(folder, "model_configs").glob("*.json") for folder in folders)
        known = sorted((path.stem for paths in files_of for path in paths), key=natural_order)
    if known and architecture not in known:
        hint = "Write openclip:ARCH/TAG, or openclip:ARCH@FILE for your own weights."
        raise NotFound("OpenCLIP architecture", architecture, known, hint)


def _require_file(checkpoint: Path) -> None:
    if not checkpoint.is_file():
        raise InvalidInput(
            f"Checkpoint '{checkpoint}' does not exist. Expected a .safetensors or .pt file."
        )


def load(name: str, device: str = "auto", precision: str = "fp32") -> OpenClipEncoder:
    """Load an OpenCLIP model by name (see the module's docstring for the forms). Raises NotFound, InvalidInput or
    MissingDependency.
    """
    parsed = _parse(name)
    find = _folder_content if parsed.folder else _published_content
    config, preprocess, weights, note = find(parsed)
    device = frozen.pick_device(device)
    tokenizer = _tokenizer(parsed, config)
    if weights:
        _require_file(weights)
    with without_draws() if weights else contextlib.nullcontext():
        model = _build(parsed, config["quick_gelu"], preprocess)
    if weights:  # loads every tensor or raises an error; published weights are in the hub's cache
        load_weights(name, model, weights, confined=bool(parsed.folder or parsed.checkpoint))
    transform = _transform(name, model)
    identity = identity_of(model, config, tokenizer, precision)
    # Hashing the 605 MB of ViT-B-32 takes 0.6 s, so it runs in parallel with the checks of the encoder.
    with ThreadPoolExecutor(1) as pool:
        digest = pool.submit(frozen.digest, identity, model)
        encoder = OpenClipEncoder(name, model, transform, tokenizer, "", device, precision, note)
        encoder.digest = digest.result()
    encoder.sources = _sources(parsed, config, weights)
    return encoder


def _published_content(parsed: OpenClipName) -> tuple[dict, dict, Path | None, str]:
    """Return OpenCLIP's config for the architecture and its config for the tag, the weights, which are downloaded if
    they have a tag, and a note for readers of the scores. Raises NotFound or InvalidInput.
    """
    import open_clip

    architecture, tag = parsed.architecture, parsed.tag
    _require_architecture(architecture)
    config = open_clip.get_model_config(architecture) or {}
    config.setdefault("quick_gelu", False)
    if not tag and not parsed.checkpoint:
        return config, {}, None, "untrained (random weights); its scores are meaningless"
    if not tag:
        _check_that_defaults_can_be_right(parsed, config["quick_gelu"])
        note = (
            f"OpenCLIP's default preprocessing and {architecture}'s activation, regardless "
            "of the weights"
        )
        return config, {}, parsed.checkpoint, note
    tag_config = open_clip.get_pretrained_cfg(architecture, tag)
    if not tag_config:
        raise NotFound(
            f"weights for openclip:{architecture}",
            tag,
            open_clip.list_pretrained_tags_by_model(architecture),
            f"To load your own file, write openclip:{architecture}@CHECKPOINT.",
        )
    # A tag's weights were trained with one activation. OpenCLIP 3 builds the activation of NAME
    # and only warns about a mismatch.
    gelu, note = tag_config.get("quick_gelu", False), ""
    if gelu != config["quick_gelu"]:
        note = (
            f"{'QuickGELU' if gelu else 'GELU'}, as {tag} was trained, instead of the "
            f"activation of {architecture}"
        )
    config["quick_gelu"] = gelu
    return config, tag_config, parsed.checkpoint or _download(parsed.text, tag_config), note


def _folder_content(parsed: OpenClipName) -> tuple[dict, dict, Path, str]:
    """Return the config in a folder with OpenCLIP's layout, no config for a tag, the weights, and no note.

    Raises InvalidInput, also if `check_folder` rejects the folder.
    """
    assert parsed.folder
    check_folder(parsed.text, parsed.folder)
    path = parsed.folder / "open_clip_config.json"
    config = hub.read_json(path, dict).get("model_cfg")
    if not isinstance(config, dict) or not {"embed_dim", "vision_cfg", "text_cfg"} <= set(config):
        raise InvalidInput(
            f"'{path}' has no 'model_cfg' with embed_dim, vision_cfg and text_cfg. Save the model with OpenCLIP."
        )
    config.setdefault("quick_gelu", False)
    candidates = (parsed.folder / file for file in FOLDER_WEIGHTS)
    weights = parsed.checkpoint or next((file for file in candidates if file.is_file()), None)
    if weights is None:
        raise InvalidInput(
            f"'{parsed.folder}' has no weights. Expected one of: {', '.join(FOLDER_WEIGHTS)}."
        )
    return config, {}, weights, ""


def cached_names() -> list[str]:
    """List the example models whose weights are in the hub's cache on this machine."""
    folders = hub.cached_folders()
    return [
        name
        for name, repository in zip(NAMES, REPOSITORIES, strict=False)
        if repository in folders
        and any((folders[repository] / file).is_file() for file in FOLDER_WEIGHTS)
    ]


def save_tuned(name: str, model: OpenClipModel, path: Path, described: dict) -> None:
    """Save a fine-tuned version of a model. It can be loaded under the model's name, with @PATH as its
    checkpoint.
    """
    from safetensors.torch import save

    state = {
        key: value.detach().cpu().clone().contiguous() for key, value in model.state_dict().items()
    }
    write_bytes(path, save(state, metadata={"training": json.dumps(described)}))


def _sources(parsed: OpenClipName, config: dict, weights: Path | None) -> list[Path] | None:
    """List the files that a model was loaded from. Return None if its tokenizer is from the hub."""
    paths = [weights] if weights else []
    if parsed.folder:
        return [*paths, *files_below(parsed.folder)]
    if _has_tokenizer_of_hub(parsed, config):
        return None
    is_of_hub = weights and weights.parent.parent.name == "snapshots"
    return [*paths, *(hub.sources(weights.parent) if weights and is_of_hub else [])]


def _names_tokenizer(config: dict) -> bool:
    text = config["text_cfg"]
    return isinstance(text, dict) and bool(text.get("hf_tokenizer_name"))


def _has_tokenizer_of_hub(parsed: OpenClipName, config: dict) -> bool:
    """Return whether OpenCLIP downloads the tokenizer from the hub. The default tokenizer is part of its package."""
    is_siglip = "siglip" in parsed.architecture.lower()
    return not parsed.folder and (_names_tokenizer(config) or is_siglip)


def _check_that_defaults_can_be_right(parsed: OpenClipName, quick_gelu: bool) -> None:
    import open_clip
    from open_clip.transform import PreprocessCfg

    architecture = parsed.architecture
    tags = open_clip.list_pretrained_tags_by_model(architecture)
    configs = [open_clip.get_pretrained_cfg(architecture, tag) for tag in tags]
    known = [(config["mean"], config.get("quick_gelu", False)) for config in configs]
    if known and (PreprocessCfg.mean, quick_gelu) not in known:
        raise InvalidInput(
            f"'{parsed.text}' does not specify how to preprocess pictures, and no published weights "
            f"of {architecture} use OpenCLIP's defaults. Name the tag of the weights, "
            f"openclip:{architecture}/{tags[0]}@CHECKPOINT, or pass a folder with their "
            "config: openclip:local-dir:FOLDER."
        )


def _build(parsed: OpenClipName, quick_gelu: bool, preprocess: dict[str, Any]) -> OpenClipModel:
    import open_clip
    import torch

    was_disabled = logging.root.manager.disable
    try:
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(0)
            # OpenCLIP warns about random weights, but the weights are loaded afterward
            logging.disable(logging.WARNING)
            model = open_clip.create_model(
                parsed.source,
                load_weights=False,
                pretrained_text=False,
                force_preprocess_cfg=preprocess,
                quick_gelu=quick_gelu,
            )
            return cast(OpenClipModel, model)
    except (*MISFITS, AssertionError, RuntimeError, OSError, MemoryError) as error:
        raise InvalidInput(
            f"OpenCLIP cannot build '{parsed.text}' ({first_line(error)}). Check the "
            "model's config."
        ) from error
    finally:
        logging.disable(was_disabled)


def _transform(name: str, model: OpenClipModel) -> Callable:
    from open_clip.transform import PreprocessCfg, image_transform_v2

    config = model.visual.preprocess_cfg
    try:
        return cast(Callable, image_transform_v2(PreprocessCfg(**config), is_train=False))
    except (*MISFITS, AssertionError):
        values = ", ".join(
            f"{key} {config.get(key)!r}" for key in ("mode", "interpolation", "resize_mode", "size")
        )
        raise InvalidInput(
            f"OpenCLIP does not support the preprocessing in the config of '{name}' ({values}). "
            "Expected mode RGB, interpolation bicubic, bilinear or random, resize_mode shortest, "
            "longest or squash."
        ) from None


def _tokenizer(parsed: OpenClipName, config: dict) -> Callable:
    import open_clip

    folder, name = parsed.folder, parsed.text
    arguments: dict[str, Any] = {}
    if _names_tokenizer(config):
        # A folder's tokenizer is read from the folder, whatever `hf_tokenizer_name` says.
        arguments = {"trust_remote_code": False, "local_files_only": bool(folder)}
        if folder and not hub.has_vocabulary(folder):
            raise InvalidInput(
                f"'{name}': '{folder}' refers to a tokenizer that is not in the folder. "
                f"Add one of its files: {', '.join(hub.VOCABULARIES)}."
            )
    from_hub = _has_tokenizer_of_hub(parsed, config)
    try:
        with hub.no_retries_without_a_network() if from_hub else contextlib.nullcontext():
            return open_clip.get_tokenizer(parsed.source, **arguments)
    except ImportError as error:
        raise MissingDependency(
            f"The tokenizer of '{name}'", error.name or "transformers"
        ) from None
    # AssertionError: an unknown `clean` or `reduction_mask`
    except (*MISFITS, AssertionError) as error:
        raise InvalidInput(
            f"OpenCLIP cannot build the tokenizer of '{name}' ({first_line(error)}). Check "
            "the tokenizer's config."
        ) from None
    except OSError:
        raise InvalidInput(
            f"The tokenizer of '{name}' is not on this machine and the Hugging Face hub cannot be reached. "
            "Load it once while online, or pass a folder that contains its files: "
            "openclip:local-dir:FOLDER."
        ) from None


def _download(name: str, tag_config: dict) -> Path:
    import open_clip

    try:
        with hub.no_retries_without_a_network():
            return Path(open_clip.download_pretrained(tag_config))
    except (OSError, RuntimeError) as error:
        raise InvalidInput(
            f"The weights of '{name}' are not on this machine and cannot be downloaded: "
            f"{str(error).partition('. ')[0]}. "
            f"Download the file elsewhere and pass it: {name}@/path/to/checkpoint."
        ) from None
