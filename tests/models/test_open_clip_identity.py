"""The identity of an OpenCLIP model: weights, activation, preprocessing and precision; and model folders."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import open_clip
import pytest
import safetensors.torch
import torch
from open_clip import pretrained
from PIL import Image

from vlprobe.errors import InvalidInput
from vlprobe.models import frozen
from vlprobe.models import open_clip as family
from vlprobe.models.open_clip_encoder import identity_of

TEXTS = [
    "a cat",
    "Two red buses are parked in front of a large brick building.",
    "A man rides a horse.",
]
TAGS = {
    "sharp": {
        "mean": (0.5, 0.5, 0.5),
        "std": (0.5, 0.5, 0.5),
        "resize_mode": "squash",
        "quick_gelu": True,
    }
}


pytestmark = pytest.mark.usefixtures("architectures")


@pytest.fixture
def weights(tmp_path: Path, trained: Callable) -> Path:
    safetensors.torch.save_file(trained().state_dict(), tmp_path / "w.safetensors")
    return tmp_path / "w.safetensors"


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch, weights: Path) -> None:
    """Register `test-tiny/sharp` as published weights with QuickGELU; the architecture has GELU."""
    tags = {tag: {**config, "file": str(weights)} for tag, config in TAGS.items()}
    monkeypatch.setitem(pretrained._PRETRAINED, "test-tiny", tags)


@pytest.fixture
def folder(tmp_path: Path, weights: Path, architectures: dict) -> Path:
    """Write a folder in OpenCLIP's layout with custom preprocessing."""
    folder = tmp_path / "folder"
    folder.mkdir()
    described = {
        "model_cfg": architectures["test-tiny"],
        "preprocess_cfg": {"mean": [0, 0, 0], "std": [1, 1, 1]},
    }
    (folder / "open_clip_config.json").write_text(json.dumps(described))
    shutil.copy(weights, folder / "open_clip_model.safetensors")
    return folder


def texts_of(model: family.OpenClipEncoder) -> np.ndarray:
    return model.encode_texts(model.tokenize(TEXTS))


def test_a_tag_sets_the_activation_and_preprocessing_of_its_weights(
    published: None, trained: Callable, reference: Callable
):
    model = family.load("openclip:test-tiny/sharp", "cpu")
    quick = trained(force_quick_gelu=True)
    np.testing.assert_allclose(texts_of(model), reference(quick, TEXTS), atol=1e-6)
    assert np.abs(texts_of(model) - reference(trained(), TEXTS)).max() > 1e-4
    white = model.preprocess(Image.new("RGB", (50, 40), "white"))
    np.testing.assert_allclose(white, 1, atol=1e-6)  # (1 - mean) / std, both 0.5 for this tag
    assert "QuickGELU, as sharp was trained" in model.note


def test_a_tag_with_a_file_has_the_digest_of_the_downloaded_tag(published: None, weights: Path):
    downloaded = family.load("openclip:test-tiny/sharp", "cpu")
    passed = family.load(f"openclip:test-tiny/sharp@{weights}", "cpu")
    assert downloaded.digest == passed.digest


def test_published_weights_in_the_hub_cache_are_loaded_even_if_outside_of_the_roots(
    published: None, weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("VLPROBE_ROOTS", str(tmp_path / "elsewhere"))
    assert family.load("openclip:test-tiny/sharp", "cpu").digest
    with pytest.raises(InvalidInput, match="outside the folders"):
        family.load(f"openclip:test-tiny/sharp@{weights}", "cpu")


def test_a_file_without_a_tag_is_refused_if_all_published_tags_override_the_defaults(
    published: None, weights: Path
):
    with pytest.raises(
        InvalidInput, match="Name the tag of the weights, openclip:test-tiny/sharp@CHECKPOINT"
    ):
        family.load(f"openclip:test-tiny@{weights}", "cpu")


def test_the_note_of_a_file_without_a_tag_lists_the_assumptions(weights: Path):
    model = family.load(f"openclip:test-tiny@{weights}", "cpu")
    assert "default preprocessing and test-tiny's activation" in model.note


def test_the_digest_depends_on_weights_architecture_preprocessing_and_precision(
    trained: Callable, architectures: dict
):
    def model_digest(model: torch.nn.Module, *settings) -> str:
        return frozen.digest(identity_of(model, *settings), model)

    model = trained()
    tokenizer = open_clip.get_tokenizer("test-tiny")
    config = architectures["test-tiny"]
    same = model_digest(trained(), config, tokenizer, "fp32")
    assert model_digest(model, config, tokenizer, "fp32") == same
    cleaning = open_clip.SimpleTokenizer(clean="whitespace")
    others = {
        model_digest(model, config, tokenizer, "fp16"),
        model_digest(model, {**config, "quick_gelu": True}, tokenizer, "fp32"),
        model_digest(model, config, cleaning, "fp32"),
    }
    model.visual.preprocess_cfg["mean"] = (0, 0, 0)
    others.add(model_digest(model, config, tokenizer, "fp32"))
    model = trained()
    with torch.no_grad():
        model.ln_final.bias[0] += 1e-7
    others.add(model_digest(model, config, tokenizer, "fp32"))
    assert len({same, *others}) == 6


def test_a_folder_is_loaded_with_the_preprocessing_in_its_config(
    folder: Path, trained: Callable, reference: Callable
):
    model = family.load(f"openclip:local-dir:{folder}", "cpu")
    np.testing.assert_allclose(texts_of(model), reference(trained(), TEXTS), atol=1e-6)
    np.testing.assert_allclose(model.preprocess(Image.new("RGB", (50, 40), "white")), 1, atol=1e-6)
    assert model.note == "" and model.cuts_columns


def test_each_defect_of_an_open_clip_folder_is_refused_in_one_line(folder: Path):
    config = folder / "open_clip_config.json"

    def refuses(what: str) -> None:
        with pytest.raises(InvalidInput, match=what) as error:
            family.load(f"openclip:local-dir:{folder}", "cpu")
        assert "\n" not in str(error.value)

    good = json.loads(config.read_text())
    bad = {**good["model_cfg"], "text_cfg": {**good["model_cfg"]["text_cfg"], "no_such_option": 1}}
    config.write_text(json.dumps({"model_cfg": bad}))
    refuses("OpenCLIP cannot build .*no_such_option")
    config.write_text(json.dumps({"model_cfg": {**good["model_cfg"], "embed_dim": 24}}))
    refuses("does not fit .* of another shape")
    config.write_text(json.dumps({"preprocess_cfg": {}}))
    refuses("has no 'model_cfg'")
    config.write_text('{"model_cfg": ')
    refuses("cannot be read as JSON .*column")
    config.write_text(json.dumps(good))
    (folder / "open_clip_model.safetensors").unlink()
    refuses("has no weights. Expected one of: open_clip_model.safetensors")
    config.unlink()
    refuses("cannot be read .*No such file")


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_is_close_to_full_and_gives_unit_vectors(precision: str, weights: Path):
    full = family.load(f"openclip:test-tiny@{weights}", "cpu")
    half = family.load(f"openclip:test-tiny@{weights}", "cpu", precision)
    assert half.digest != full.digest and half.cuts_columns
    pixels = full.preprocess(Image.new("RGB", (40, 40), "red"))[None]
    pairs = [
        (texts_of(half), texts_of(full)),
        (half.encode_images(pixels), full.encode_images(pixels)),
    ]
    for own, exact in pairs:
        assert own.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(own, axis=1), 1, atol=1e-6)
        assert 1e-6 < np.abs(own - exact).max() < 0.02


def test_the_error_for_an_unknown_precision_or_device_lists_the_valid_ones():
    with pytest.raises(
        InvalidInput, match=r"Unknown precision 'fp8'. Expected one of fp32, fp16, bf16"
    ):
        family.load("openclip:test-tiny", "cpu", "fp8")
    with pytest.raises(
        InvalidInput, match=r"Device 'toaster' is not available here. Expected auto or one of: cpu"
    ):
        family.load("openclip:test-tiny", "toaster")
    with pytest.raises(InvalidInput, match="Device 'cuda:99' is not available here"):
        family.load("openclip:test-tiny", "cuda:99")


def test_the_model_is_in_eval_mode_without_gradients():
    model = family.load("openclip:test-tiny", "cpu")
    assert not model._model.training
    assert not any(parameter.requires_grad for parameter in model._model.parameters())


@pytest.mark.parametrize(
    ("part", "key", "value", "reason"),
    [
        ("preprocess_cfg", "interpolation", "nearest", "interpolation 'nearest'"),
        ("preprocess_cfg", "interpolation", ["bicubic"], "interpolation"),
        ("preprocess_cfg", "interpolation", 3, "interpolation 3"),
        ("preprocess_cfg", "resize_mode", "stretch", "resize_mode 'stretch'"),
        ("preprocess_cfg", "mode", "CMYK", "mode 'CMYK'"),
        ("text_cfg", "clean", "shout", "Invalid clean function"),
        ("text_cfg", "clean", ["lower"], "clean"),
        ("text_cfg", "clean", None, "clean"),
    ],
)
def test_unsupported_preprocessing_or_text_cleaning_is_refused_in_one_line(
    folder: Path, part: str, key: str, value, reason
):
    config = folder / "open_clip_config.json"
    described = json.loads(config.read_text())
    if part == "text_cfg":
        described["model_cfg"]["text_cfg"]["tokenizer_kwargs"] = {key: value}
    else:
        described["preprocess_cfg"][key] = value
    config.write_text(json.dumps(described))
    with pytest.raises(InvalidInput, match=reason) as refused:
        family.load(f"openclip:local-dir:{folder}", "cpu")
    assert "\n" not in str(refused.value)
