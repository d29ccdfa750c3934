"""A model that is trained in milliseconds: OpenCLIP's classes, one narrow layer, in a folder as OpenCLIP writes it."""

import json

import open_clip
import pytest
import torch
from safetensors.torch import save_file

CONFIG = {
    "embed_dim": 8,
    "vision_cfg": {"image_size": 16, "layers": 1, "width": 16, "head_width": 8, "patch_size": 8},
    "text_cfg": {"context_length": 32, "vocab_size": 49408, "width": 8, "heads": 2, "layers": 1},
}


@pytest.fixture
def small() -> torch.nn.Module:
    """The model, its weights always the same."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        return open_clip.model.CLIP(**CONFIG)


@pytest.fixture
def folder(small, tmp_path) -> str:
    """Its name: openclip:local-dir:FOLDER."""
    place = tmp_path / "small"
    place.mkdir()
    preprocess = {"size": 16, "mean": [0.4, 0.5, 0.6], "std": [0.2, 0.3, 0.4]}
    described = {"model_cfg": CONFIG, "preprocess_cfg": preprocess}
    (place / "open_clip_config.json").write_text(json.dumps(described))
    save_file(small.state_dict(), place / "open_clip_model.safetensors")
    return f"openclip:local-dir:{place}"
