"""The bundled demo models: tiny CLIP models trained on drawn scenes. They are toys, but their scores are real."""

from pathlib import Path

from vlprobe.errors import InvalidInput, NotFound, first_line
from vlprobe.models import frozen
from vlprobe.models.checkpoint import DAMAGED
from vlprobe.models.folder_policy import check_settings
from vlprobe.models.modules import TorchModel
from vlprobe.models.open_clip_encoder import OpenClipEncoder, identity_of
from vlprobe.storage.files import parse_path, require_regular

PREFIX = "demo"
# The first three were trained with CLIP's loss, with SigLIP's loss, and with CLIP's loss stopped early. The others are
# fine-tuned versions of the first: a control, then repairs.
KINDS = ("softmax", "sigmoid", "weak", "plain", "eqsim", "scvc")
NAMES = tuple(f"{PREFIX}:{kind}" for kind in KINDS)


def check_name(name: str) -> None:
    """Raise NotFound if no demo model has this name, or InvalidInput if its checkpoint is not valid."""
    _config(_path(name))


def load(name: str, device: str = "auto", precision: str = "fp32") -> OpenClipEncoder:
    """Load a bundled model by name, or a fine-tuned version with demo:NAME@CHECKPOINT.

    Raises NotFound or InvalidInput.
    """
    from vlprobe.models.demo_weights import load_checkpoint

    path, device = _path(name), frozen.pick_device(device)
    config = _config(path)
    check_settings(name, path.name, config)  # OpenCLIP builds whatever they request
    try:
        model, preprocess, tokenizer = load_checkpoint(path)
    except (*DAMAGED, MemoryError) as error:
        raise InvalidInput(
            f"'{path}' cannot be loaded as a demo model ({first_line(error)}). "
            "Expected a file that `vlprobe train` wrote."
        ) from None
    digest = frozen.digest(identity_of(model, config, tokenizer, precision), model)
    encoder = OpenClipEncoder(name, model, preprocess, tokenizer, digest, device, precision)
    encoder.sources = [path]
    return encoder


def save_tuned(name: str, model: TorchModel, path: Path, described: dict) -> None:
    """Save a fine-tuned version of a demo model, which can then be loaded as `demo:NAME@PATH`."""
    from vlprobe.models.demo_weights import save_whole

    save_whole(path, model, _config(_path(name)), described)


def _config(path: Path) -> dict:
    from safetensors import SafetensorError

    from vlprobe.models.demo_weights import config_of

    try:
        require_regular(path)  # reading from a pipe would wait forever
        return config_of(path)
    except (OSError, SafetensorError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            f"'{path}' is not a checkpoint of a demo model ({error}). "
            "Expected a file that `vlprobe train` wrote for a demo model."
        ) from None


def _path(name: str) -> Path:
    from vlprobe.models.demo_weights import FOLDER

    short, _, checkpoint = name.partition(":")[2].partition("@")
    if short not in KINDS:
        raise NotFound("model", name, NAMES)
    return parse_path(checkpoint) if checkpoint else FOLDER / f"{short}.safetensors"
