"""Models whose weights are in the Hugging Face hub's cache on this machine."""

import json
from pathlib import Path

import pytest
from huggingface_hub import constants

from vlprobe.models import hf, open_clip


def test_models_are_listed_if_the_cache_has_their_weights(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "absent"))
    assert open_clip.cached_names() == hf.cached_names() == []
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))

    def keep(repository: str, weights: str, config: str = "") -> None:
        folder = tmp_path / f"models--{repository}" / "snapshots" / "abc"
        folder.mkdir(parents=True)
        (folder / weights).write_bytes(b"")
        (folder / "config.json").write_text(config)

    keep("timm--vit_base_patch32_clip_224.openai", "open_clip_model.safetensors")
    keep("openai--clip-vit-base-patch16", "model.safetensors", json.dumps({"model_type": "clip"}))
    keep("openai--clip-vit-large-patch14", "notes.txt", json.dumps({"model_type": "clip"}))
    keep("someone--bert", "model.safetensors", json.dumps({"model_type": "bert"}))
    keep("someone--broken", "model.safetensors", "[")
    assert open_clip.cached_names() == ["openclip:ViT-B-32/openai"]
    assert hf.cached_names() == ["hf:openai/clip-vit-base-patch16"]


def test_the_repositories_are_those_from_which_open_clip_downloads():
    package = pytest.importorskip("open_clip")
    for name, repository in zip(open_clip.NAMES, open_clip.REPOSITORIES, strict=False):
        architecture, _, tag = name.removeprefix("openclip:").partition("/")
        assert package.get_pretrained_cfg(architecture, tag)["hf_hub"] == f"{repository}/"
