"""A demo model in OpenCLIP's folder layout, which `openclip:local-dir:FOLDER` and OpenCLIP itself can load."""

import json
from pathlib import Path

from safetensors.torch import save_file

from vlprobe.models.demo_weights import FOLDER, read


def export_local_dir(name: str, folder: Path) -> None:
    """Write the model demo:NAME into a folder."""
    model_config, state = read(FOLDER / f"{name.partition(':')[2]}.safetensors")
    folder.mkdir(parents=True, exist_ok=True)
    described = {"model_cfg": model_config, "preprocess_cfg": {"size": 64}}
    (folder / "open_clip_config.json").write_text(json.dumps(described), encoding="utf-8")
    save_file(state, folder / "open_clip_model.safetensors")
