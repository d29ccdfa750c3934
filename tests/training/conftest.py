"""A model that trains in milliseconds: OpenCLIP's classes with one narrow layer, in a folder as OpenCLIP writes it."""

import json
from dataclasses import dataclass
from pathlib import Path

import open_clip
import pytest
import torch
from open_clip.tokenizer import SimpleTokenizer
from safetensors.torch import save_file

from tests.conftest import make_tiny
from vlprobe.models import open_clip as family
from vlprobe.training.trainer import TrainRequest, train

CONFIG = {
    "embed_dim": 8,
    "vision_cfg": {"image_size": 16, "layers": 1, "width": 16, "head_width": 8, "patch_size": 8},
    "text_cfg": {"context_length": 32, "vocab_size": 49408, "width": 8, "heads": 2, "layers": 1},
}
EVERYTHING = "clip+0.5*eqsim+0.2*sc+0.2*vc+consistency+flip"


def built(words: int) -> torch.nn.Module:
    """Build the model for a vocabulary of the given size, always with the same weights."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        return open_clip.model.CLIP(
            **{**CONFIG, "text_cfg": {**CONFIG["text_cfg"], "vocab_size": words}}
        )


@pytest.fixture
def small() -> torch.nn.Module:
    """Return a model with 512 tokens; the last token ends a text."""
    return built(512)


@dataclass(frozen=True)
class Straight:
    """An uninterrupted training run: its request, its model card, and the folder with its data and files."""

    request: TrainRequest
    card: dict
    folder: Path


@pytest.fixture(scope="module")
def one_tokenizer():
    """Build OpenCLIP's tokenizer only once, because it takes longer than all steps of a training run here."""
    with pytest.MonkeyPatch.context() as patch:
        made = SimpleTokenizer(context_length=32)
        patch.setattr(family, "_tokenizer", lambda *_: made)
        yield


@pytest.fixture(scope="module")
def straight(tmp_path_factory, one_tokenizer) -> Straight:
    """Train four steps with every loss, on four of six pictures, without an interruption."""
    folder = tmp_path_factory.mktemp("straight")
    place = folder / "small"
    place.mkdir()
    preprocess = {"size": 16, "mean": [0.4, 0.5, 0.6], "std": [0.2, 0.3, 0.4]}
    described = {"model_cfg": CONFIG, "preprocess_cfg": preprocess}
    (place / "open_clip_config.json").write_text(json.dumps(described))
    save_file(built(49408).state_dict(), place / "open_clip_model.safetensors")
    request = TrainRequest(
        f"openclip:local-dir:{place}",
        (make_tiny(folder / "tiny"),),
        str(folder / "tuned.safetensors"),
        loss=EVERYTHING,
        steps=4,
        batch_size=4,
        rate=0.003,
        warm_up=2,
        curriculum=True,
        validate_every=2,
        device="cpu",
        threads=1,
    )
    return Straight(request, train(request, folder), folder)
