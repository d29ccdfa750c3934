"""OpenCLIP architectures that are small enough to build in a test, registered with OpenCLIP as a user would do it."""

import functools
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import open_clip
import pytest
import torch
from PIL import Image

from vlprobe import registry
from vlprobe.types import Model

TOWER = {"context_length": 77, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 2}
VISION = {"image_size": 32, "layers": 2, "width": 32, "head_width": 16, "patch_size": 8}
ARCHITECTURES = {
    "test-tiny": {"embed_dim": 16, "vision_cfg": VISION, "text_cfg": TOWER},
    "test-wide": {"embed_dim": 24, "vision_cfg": VISION, "text_cfg": TOWER},
    "test-deep": {"embed_dim": 16, "vision_cfg": VISION, "text_cfg": {**TOWER, "layers": 3}},
    "test-large-picture": {
        "embed_dim": 16,
        "vision_cfg": {**VISION, "image_size": 64},
        "text_cfg": TOWER,
    },
    "test-custom-text": {
        "embed_dim": 16,
        "custom_text": True,
        "vision_cfg": VISION,
        "text_cfg": TOWER,
    },
    "test-eos": {
        "embed_dim": 16,
        "custom_text": True,
        "vision_cfg": VISION,
        "text_cfg": {**TOWER, "pool_type": "eos", "eos_id": 49407, "proj_bias": True},
    },
    "test-last": {
        "embed_dim": 16,
        "custom_text": True,
        "vision_cfg": VISION,
        "text_cfg": {**TOWER, "pool_type": "last", "no_causal_mask": True},
    },
    "test-class-token": {  # as in CoCa: the last token is the text's embedding
        "embed_dim": 16,
        "custom_text": True,
        "vision_cfg": VISION,
        "text_cfg": {**TOWER, "embed_cls": True},
    },
    "test-sees-ahead": {
        "embed_dim": 16,
        "custom_text": True,
        "vision_cfg": VISION,
        "text_cfg": {**TOWER, "no_causal_mask": True},
    },
}


def change_settings(file: Path, changes: dict) -> None:
    """Change settings in a JSON file."""
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def pictures(count: int) -> list[Image.Image]:
    """Return noise pictures of several sizes and shapes."""
    rng = np.random.default_rng(0)
    return [
        Image.fromarray(rng.integers(0, 255, (40 + 9 * n, 60, 3), dtype=np.uint8))
        for n in range(count)
    ]


@pytest.fixture(scope="session")
def architectures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict]:
    """Register the architectures with OpenCLIP, and return their configs by name."""
    folder = tmp_path_factory.mktemp("configs")
    for name, config in ARCHITECTURES.items():
        (folder / f"{name}.json").write_text(json.dumps(config))
    open_clip.add_model_config(folder)
    return ARCHITECTURES


@pytest.fixture
def trained(architectures: dict[str, dict]) -> Callable[..., torch.nn.Module]:
    """Return a function that builds a model with stand-ins for trained weights, which vlprobe would not draw."""

    def make(architecture: str = "test-tiny", **options: object) -> torch.nn.Module:
        torch.manual_seed(7)
        return open_clip.create_model(architecture, **options).eval()

    return make


@pytest.fixture
def reference() -> Callable[[torch.nn.Module, list[str]], np.ndarray]:
    """Return a function that encodes texts in OpenCLIP's own way: every column, one text at a time."""

    def encode(model: torch.nn.Module, texts: list[str]) -> np.ndarray:
        tokens = open_clip.tokenize(texts)
        with torch.no_grad():
            return torch.cat(
                [model.encode_text(row[None], normalize=True) for row in tokens]
            ).numpy()

    return encode


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., tuple[Path, Model]]:
    """Return a function that writes a checkpoint with a function of `tiny_hf` and loads it, each only once."""

    @functools.cache
    def make(write: Callable[[str, Path], object], prefix: str, kind: str) -> tuple[Path, Model]:
        folder = tmp_path_factory.mktemp(kind)
        write(kind, folder)
        return folder, registry.load_model(f"{prefix}:{folder}", "cpu")

    return make
