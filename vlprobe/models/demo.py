"""The demo world's own models: tiny CLIPs trained on drawn scenes, shipped with the package. Toys with real scores."""

from pathlib import Path

from vlprobe.errors import NotFound
from vlprobe.models.frozen import pick_device
from vlprobe.models.open_clip_encoder import OpenClipEncoder, model_digest

PREFIX = "demo"
_NAMES = ("softmax", "sigmoid", "weak")


def names() -> list[str]:
    """Trained with CLIP's loss, with SigLIP's loss, and with CLIP's loss but stopped early."""
    return [f"{PREFIX}:{name}" for name in _NAMES]


def load(name: str, device: str = "auto", precision: str = "fp32") -> OpenClipEncoder:
    """The shipped model of that name. Raises NotFound or InvalidInput."""
    from vlprobe.demo.checkpoints import config_of, load_checkpoint

    path = _path(name)
    device = pick_device(device)
    model, preprocess, tokenizer = load_checkpoint(path)
    digest = model_digest(model, config_of(path), tokenizer, precision)
    return OpenClipEncoder(name, model, preprocess, tokenizer, digest, device, precision)


def export_local_dir(name: str, folder: Path) -> None:
    """Writes OpenCLIP's folder layout: `openclip:local-dir:FOLDER` and plain OpenCLIP load it. Raises NotFound."""
    from vlprobe.demo import checkpoints

    checkpoints.export_local_dir(_path(name), folder)


def _path(name: str) -> Path:
    from vlprobe.demo.checkpoints import FOLDER

    short = name.partition(":")[2]
    if short not in _NAMES:
        raise NotFound("model", name, names())
    return FOLDER / f"{short}.safetensors"
