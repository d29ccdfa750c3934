"""Bundled models of the demo world: tiny CLIPs trained on drawn scenes. Toys with real scores."""

from pathlib import Path

from vlprobe.errors import InvalidInput, NotFound, first_line
from vlprobe.models.checkpoint import DAMAGED
from vlprobe.models.folder_policy import check_settings
from vlprobe.models.frozen import pick_device
from vlprobe.models.modules import TorchModel
from vlprobe.models.open_clip_encoder import OpenClipEncoder, model_digest
from vlprobe.storage.files import parse_path, require_regular

PREFIX = "demo"
_NAMES = ("softmax", "sigmoid", "weak", "plain", "eqsim", "scvc")


def names() -> list[str]:
    """Trained with CLIP's loss, SigLIP's, CLIP's stopped early; and the first fine-tuned: a
    control, then repairs.
    """
    return [f"{PREFIX}:{name}" for name in _NAMES]


def check_name(name: str) -> None:
    """Raise NotFound or InvalidInput if no model has that name, or its checkpoint is not valid."""
    _config(_path(name))


def load(name: str, device: str = "auto", precision: str = "fp32") -> OpenClipEncoder:
    """Load the bundled model of that name or, with demo:NAME@CHECKPOINT, its fine-tuned version.

    Raises NotFound or InvalidInput.
    """
    from vlprobe.models.demo_weights import load_checkpoint

    path, device = _path(name), pick_device(device)
    config = _config(path)
    check_settings(name, path.name, config)  # OpenCLIP builds whatever they request
    try:
        model, preprocess, tokenizer = load_checkpoint(path)
    except (*DAMAGED, MemoryError) as error:
        raise InvalidInput(
            f"'{path}' cannot be loaded as a demo model ({first_line(error)}). "
            "Expected a file that `vlprobe train` wrote."
        ) from None
    digest = model_digest(model, config, tokenizer, precision)
    encoder = OpenClipEncoder(name, model, preprocess, tokenizer, digest, device, precision)
    encoder.sources = [path]
    return encoder


def save_tuned(name: str, model: TorchModel, path: Path, described: dict) -> None:
    """Write a fine-tuned version of the model of that name: `demo:NAME@PATH`."""
    from vlprobe.models.demo_weights import save_whole

    save_whole(path, model, _config(_path(name)), described)


def _config(path: Path) -> dict:
    from safetensors import SafetensorError

    from vlprobe.models.demo_weights import config_of

    try:
        require_regular(path)  # a pipe would be waited for
        return config_of(path)
    except (OSError, SafetensorError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            f"'{path}' is not a checkpoint of a demo model ({error}). "
            "Expected a file that `vlprobe train` wrote from one."
        ) from None


def _path(name: str) -> Path:
    from vlprobe.models.demo_weights import FOLDER

    short, _, checkpoint = name.partition(":")[2].partition("@")
    if short not in _NAMES:
        raise NotFound("model", name, names())
    return parse_path(checkpoint) if checkpoint else FOLDER / f"{short}.safetensors"
