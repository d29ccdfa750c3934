"""OpenCLIP models: pretrained, from your own checkpoint, or untrained to try the pipeline.

openclip:NAME                    randomly initialised, always with the same weights; its scores
                                 mean nothing
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
import json
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

from vlprobe.errors import InvalidInput, MissingDependency, NotFound
from vlprobe.models import frozen, hub
from vlprobe.models.checkpoint import load_weights, without_draws
from vlprobe.models.folder_policy import check_folder
from vlprobe.models.modules import OpenClipModel
from vlprobe.models.open_clip_encoder import OpenClipEncoder, identity_of
from vlprobe.registry.model_memo import files_below
from vlprobe.storage import files
from vlprobe.storage.files import write_bytes

PREFIX = "openclip"
WEIGHTS_ENDINGS = (".pt", ".pth", ".ckpt", ".bin", ".safetensors")
# errors that OpenCLIP raises for a config of the wrong form
MISFITS = (TypeError, ValueError, KeyError, AttributeError)
FOLDER_WEIGHTS = (
    "open_clip_model.safetensors",
    "open_clip_pytorch_model.safetensors",
    "open_clip_pytorch_model.bin",
    "open_clip_pytorch_model.pth",
)


def names() -> list[str]:
    """Typical names; any architecture and tag that OpenCLIP knows can be typed."""
    return [
        "openclip:ViT-B-32/openai",
        "openclip:ViT-B-32/laion2b_s34b_b79k",
        "openclip:ViT-L-14/datacomp_xl_s13b_b90k",
        "openclip:ViT-B-16-SigLIP/webli",
        "openclip:ViT-B-32",
    ]


def suggestion(path: str) -> str:
    """Suggest a name for a bare path of weights; "" for any other text.

    >>> suggestion("epoch_3.pt"), suggestion("ViT-B-32@epoch_3.pt")
    ('openclip:ARCH@epoch_3.pt, such as openclip:ViT-B-32@epoch_3.pt', '')
    """
    if "@" in path or not path.lower().endswith(WEIGHTS_ENDINGS):
        return ""
    return f"{PREFIX}:ARCH@{path}, such as {PREFIX}:ViT-B-32@{path}"


def _refuse_weights_alone(name: str) -> None:
    """Raise InvalidInput if the name has a file of weights and no architecture."""
    source = name.removeprefix(f"{PREFIX}:")
    if form := suggestion(source):
        raise InvalidInput(f"'{source}' does not say its architecture. Write {form}.")


def check_name(name: str) -> None:
    """Raise InvalidInput if a folder or a checkpoint that the name has is not there."""
    _refuse_weights_alone(name)
    source, _, checkpoint = (
        name.removeprefix(f"{PREFIX}:").removeprefix("local-dir:").partition("@")
    )
    if (
        name.startswith(f"{PREFIX}:local-dir:")
        and not (files.parse_path(source) / "open_clip_config.json").is_file()
    ):
        raise InvalidInput(
            f"'{source}' holds no open_clip_config.json. Expected a folder that OpenCLIP wrote."
        )
    if checkpoint and not files.parse_path(checkpoint).is_file():
        raise InvalidInput(
            f"Checkpoint '{checkpoint}' does not exist. Expected a .safetensors or .pt file."
        )


def load(name: str, device: str = "auto", precision: str = "fp32") -> OpenClipEncoder:
    """Return the model of that name (see the top of this file). Raises NotFound, InvalidInput or
    MissingDependency.
    """
    source = name.removeprefix(f"{PREFIX}:")
    if source.startswith("local-dir:"):
        folder, _, checkpoint = source.removeprefix("local-dir:").partition("@")
        return load_folder(
            name,
            files.parse_path(folder),
            device,
            precision,
            weights=files.parse_path(checkpoint) if checkpoint else None,
        )
    _refuse_weights_alone(name)
    architecture_and_tag, _, checkpoint = source.partition("@")
    architecture, _, tag = architecture_and_tag.partition("/")
    import open_clip

    if architecture not in open_clip.list_models():
        raise NotFound(
            "OpenCLIP architecture",
            architecture,
            open_clip.list_models(),
            "Write openclip:ARCH/TAG, or openclip:ARCH@FILE for weights of your own.",
        )
    config = open_clip.get_model_config(architecture) or {}
    architecture_gelu = config.setdefault("quick_gelu", False)
    tag_config = _tag_config(architecture, tag) if tag else {}
    notes = []
    if tag:
        # A tag's weights were trained with one activation. OpenCLIP 3 builds NAME's own, and only
        # warns of a mismatch.
        config["quick_gelu"] = tag_config.get("quick_gelu", False)
    if config["quick_gelu"] != architecture_gelu:
        gelu = "QuickGELU" if config["quick_gelu"] else "GELU"
        notes.append(
            f"{gelu}, as {tag} was trained, and not the activation that {architecture} stands for"
        )
    weights = None
    if checkpoint:
        weights = files.parse_path(checkpoint)
        if not tag:
            _check_that_defaults_can_be_right(name, architecture)
            notes.append(
                f"OpenCLIP's default preprocessing and {architecture}'s activation, whatever the weights had"
            )
    elif tag:
        weights = _download(name, tag_config)
    else:
        notes.append("untrained: random weights, its scores mean nothing")
    published = not checkpoint
    return _assemble(
        name,
        architecture,
        config,
        weights,
        device,
        precision,
        "; ".join(notes),
        tag_config,
        published,
    )


def save_tuned(name: str, model: OpenClipModel, path: Path, described: dict) -> None:
    """Write a fine-tuned version of the model of that name: the name without its checkpoint, and
    @PATH, loads it.
    """
    from safetensors.torch import save

    state = {
        key: value.detach().cpu().clone().contiguous() for key, value in model.state_dict().items()
    }
    write_bytes(path, save(state, metadata={"training": json.dumps(described)}))


def load_folder(
    name: str,
    folder: Path,
    device: str = "auto",
    precision: str = "fp32",
    note: str = "",
    weights: Path | None = None,
) -> OpenClipEncoder:
    """Load a model in OpenCLIP's folder layout: open_clip_config.json next to one of FOLDER_WEIGHTS, or
    with `weights`.

    Raises InvalidInput if the folder, its config or its weights are not valid, or if one of its files requests code,
    kernels or files from another place.
    """
    check_folder(name, folder)
    path = folder / "open_clip_config.json"
    try:
        described = files.parse_json(files.read(path).decode())
    except OSError as error:
        raise InvalidInput(
            f"'{path}' cannot be read ({error.strerror}). "
            "Expected OpenCLIP's folder layout: its config beside the weights."
        ) from None
    except ValueError as error:
        raise InvalidInput(
            f"'{path}' is not JSON ({error}). Expected OpenCLIP's model config."
        ) from None
    config = described.get("model_cfg") if isinstance(described, dict) else None
    if not isinstance(config, dict) or not {"embed_dim", "vision_cfg", "text_cfg"} <= set(config):
        raise InvalidInput(
            f"'{path}' has no 'model_cfg' with embed_dim, vision_cfg and text_cfg. Save the model with OpenCLIP."
        )
    config.setdefault("quick_gelu", False)
    weights = weights or next(
        (folder / file for file in FOLDER_WEIGHTS if (folder / file).is_file()), None
    )
    if weights is None:
        raise InvalidInput(
            f"'{folder}' holds no weights. Expected one of: {', '.join(FOLDER_WEIGHTS)}."
        )
    return _assemble(name, f"local-dir:{folder}", config, weights, device, precision, note, {})


def _assemble(
    name: str,
    source: str,
    config: dict,
    weights: Path | None,
    device: str,
    precision: str,
    note: str,
    preprocess: dict,
    published: bool = False,
) -> OpenClipEncoder:
    device = frozen.pick_device(device)
    tokenizer = _tokenizer(name, source, config)
    if weights and not weights.is_file():
        raise InvalidInput(
            f"Checkpoint '{weights}' does not exist. Expected a .safetensors or .pt file."
        )
    with without_draws() if weights else contextlib.nullcontext():
        model = _build(name, source, config["quick_gelu"], preprocess)
    if weights:  # each tensor of the model, or an error
        load_weights(name, model, weights, confined=not published)
    transform = _transform(name, model)
    identity = identity_of(model, config, tokenizer, precision)
    # Hashing the 605 MB of ViT-B-32 takes 0.6 s: it is done while the encoder is tried.
    with ThreadPoolExecutor(1) as pool:
        digest = pool.submit(frozen.digest, identity, model)
        encoder = OpenClipEncoder(name, model, transform, tokenizer, "", device, precision, note)
        encoder.digest = digest.result()
    encoder.sources = _sources(source, config, weights)
    return encoder


def _sources(source: str, config: dict, weights: Path | None) -> list[Path] | None:
    """List the files that a model was loaded from; None if its tokenizer is from the hub."""
    paths = [weights] if weights else []
    if source.startswith("local-dir:"):
        return [*paths, *files_below(Path(source.removeprefix("local-dir:")))]
    if _has_tokenizer_of_hub(source, config):
        return None
    is_of_hub = weights and weights.parent.parent.name == "snapshots"
    return [*paths, *(hub.sources(weights.parent) if weights and is_of_hub else [])]


def _has_tokenizer_of_hub(source: str, config: dict) -> bool:
    """Return whether the tokenizer comes from the hub, by OpenCLIP's conditions; its default one is packaged."""
    text = config["text_cfg"]
    names_tokenizer = isinstance(text, dict) and bool(text.get("hf_tokenizer_name"))
    is_folder = source.startswith("local-dir:")
    return not is_folder and (names_tokenizer or "siglip" in source.lower())


def _tag_config(architecture: str, tag: str) -> dict:
    import open_clip

    tags = open_clip.list_pretrained_tags_by_model(architecture)
    config = open_clip.get_pretrained_cfg(architecture, tag)
    if not config:
        raise NotFound(
            f"weights for openclip:{architecture}",
            tag,
            tags,
            f"A file of your own: openclip:{architecture}@CHECKPOINT.",
        )
    return config


def _check_that_defaults_can_be_right(name: str, architecture: str) -> None:
    import open_clip
    from open_clip.transform import PreprocessCfg

    default = (
        PreprocessCfg.mean,
        (open_clip.get_model_config(architecture) or {}).get("quick_gelu", False),
    )
    tags = open_clip.list_pretrained_tags_by_model(architecture)
    for tag in tags:
        config = open_clip.get_pretrained_cfg(architecture, tag)
        if (config["mean"], config.get("quick_gelu", False)) == default:
            return
    if tags:
        raise InvalidInput(
            f"'{name}' does not say how its weights see pictures, and none of {architecture}'s "
            "published weights goes "
            "by OpenCLIP's defaults. Name the tag they belong to, "
            f"openclip:{architecture}/{tags[0]}@CHECKPOINT, "
            "or pass a folder with their config: openclip:local-dir:FOLDER."
        )


def _build(name: str, source: str, quick_gelu: bool, preprocess: dict[str, Any]) -> OpenClipModel:
    import open_clip
    import torch

    was_disabled = logging.root.manager.disable
    try:
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(0)
            # OpenCLIP logs "randomly" for a model whose weights are loaded next
            logging.disable(logging.WARNING)
            model = open_clip.create_model(
                source,
                load_weights=False,
                pretrained_text=False,
                force_preprocess_cfg=preprocess,
                quick_gelu=quick_gelu,
            )
            return cast(OpenClipModel, model)
    except (*MISFITS, AssertionError, RuntimeError, OSError, MemoryError) as error:
        reason = str(error).partition("\n")[0].rstrip(".") or type(error).__name__
        raise InvalidInput(
            f"OpenCLIP cannot build '{name}' ({reason}). Check its config."
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
            f"OpenCLIP cannot prepare pictures as the config of '{name}' says ({values}). "
            "Expected mode RGB, interpolation bicubic, bilinear or random, resize_mode shortest, "
            "longest or squash."
        ) from None


def _tokenizer(name: str, source: str, config: dict) -> Callable:
    import open_clip

    # A folder's is read from the folder, whatever `hf_tokenizer_name` names.
    folder = source.startswith("local-dir:") and Path(source.removeprefix("local-dir:"))
    names_tokenizer = isinstance(config["text_cfg"], dict) and bool(
        config["text_cfg"].get("hf_tokenizer_name")
    )
    from_hub = _has_tokenizer_of_hub(source, config)
    if (
        folder
        and names_tokenizer
        and not any(path for pattern in hub.VOCABULARIES for path in folder.glob(pattern))
    ):
        raise InvalidInput(
            f"'{name}': '{folder}' names a tokenizer of another place and holds none. "
            f"Put its files into the folder, one of: {', '.join(hub.VOCABULARIES)}."
        )
    arguments: dict[str, Any] = (
        {"trust_remote_code": False, "local_files_only": bool(folder)} if names_tokenizer else {}
    )
    try:
        with hub.no_retries_without_a_network() if from_hub else contextlib.nullcontext():
            return open_clip.get_tokenizer(source, **arguments)
    except ImportError as error:
        raise MissingDependency(
            f"The tokenizer of '{name}'", error.name or "transformers"
        ) from None
    # AssertionError: an unknown `clean` or `reduction_mask`
    except (*MISFITS, AssertionError) as error:
        reason = str(error).partition("\n")[0].rstrip(".") or type(error).__name__
        raise InvalidInput(
            f"OpenCLIP cannot build the tokenizer of '{name}' ({reason}). Check its config."
        ) from None
    except OSError:
        raise InvalidInput(
            f"The tokenizer of '{name}' is not on this machine and the Hugging Face hub cannot be "
            "reached. "
            "Load it once with a network, or pass a folder that holds its files: "
            "openclip:local-dir:FOLDER."
        ) from None


def _download(name: str, tag_config: dict) -> Path:
    import open_clip

    try:
        with hub.no_retries_without_a_network():
            return Path(open_clip.download_pretrained(tag_config))
    except (OSError, RuntimeError) as error:
        raise InvalidInput(
            f"The weights of '{name}' are not on this machine and cannot be fetched: "
            f"{str(error).partition('. ')[0]}. "
            f"Download the file elsewhere and pass it: {name}@/path/to/checkpoint."
        ) from None
