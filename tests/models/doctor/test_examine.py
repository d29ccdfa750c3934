"""A healthy model passes every check. Models that are broken in one way fail the check for it."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import open_clip
import pytest
import torch
from open_clip.tokenizer import SimpleTokenizer
from open_clip.transform import PreprocessCfg, image_transform_v2
from PIL import Image

from tests.conftest import call
from vlprobe.models import controls
from vlprobe.models.doctor import checks, examine, passport
from vlprobe.models.doctor.checks import Check
from vlprobe.models.open_clip_encoder import OpenClipEncoder

TEXT = {"context_length": 16, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 2}
VISION = {"image_size": 32, "layers": 2, "width": 32, "head_width": 16, "patch_size": 8}
TINY = {"embed_dim": 16, "vision_cfg": VISION, "text_cfg": TEXT}
SIGLIP = {  # a text tower that looks at every column and pools the last one
    **TINY,
    "custom_text": True,
    "text_cfg": {**TEXT, "pool_type": "last", "no_causal_mask": True},
}
RESNET = {
    **TINY,
    "vision_cfg": {"image_size": 64, "layers": [1, 1, 1, 1], "width": 8, "patch_size": None},
}
STATED = {  # the preprocessing that OpenCLIP's table lists for published weights
    "url": "",
    "hf_hub": "",
    "mean": (0.48145466, 0.4578275, 0.40821073),
    "std": (0.26862954, 0.26130258, 0.27577711),
    "interpolation": "bicubic",
    "resize_mode": "shortest",
    "quick_gelu": True,
}
TOKENIZER = SimpleTokenizer(context_length=16)


def build(config: dict, quick: bool = False) -> torch.nn.Module:
    """Build OpenCLIP's model of a config with fixed random weights and OpenCLIP's default preprocessing."""
    torch.manual_seed(5)
    kind = open_clip.CustomTextCLIP if config.get("custom_text") else open_clip.CLIP
    model = kind(
        **{name: value for name, value in config.items() if name != "custom_text"}, quick_gelu=quick
    )
    open_clip.model.set_model_preprocess_cfg(model, {**vars(PreprocessCfg(size=32)), "mode": "RGB"})
    return model


@pytest.fixture(scope="module")
def weights(data: SimpleNamespace) -> dict:
    """Train weights with QuickGELU until they have memorized the pictures."""
    model = build(TINY, quick=True)
    model.token_embedding.weight.requires_grad_(False).mul_(50)
    seen = image_transform_v2(PreprocessCfg(size=32), is_train=False)
    pixels = torch.stack([seen(Image.open(item.image.path)) for item in data.items])
    tokens = TOKENIZER([item.captions[0] for item in data.items])
    optimizer = torch.optim.Adam([one for one in model.parameters() if one.requires_grad], lr=3e-3)
    for _ in range(60):
        left, right, scale = model(pixels, tokens)
        logits = scale * left @ right.T
        labels = torch.arange(len(logits))
        loss = torch.nn.functional.cross_entropy(
            logits, labels
        ) + torch.nn.functional.cross_entropy(logits.T, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Register the architecture "squares" and its weights with the tag "byheart" in OpenCLIP."""
    (tmp_path / "squares.json").write_text(json.dumps({**TINY, "quick_gelu": True}))
    configs = open_clip.factory._MODEL_CONFIGS.copy()
    open_clip.add_model_config(tmp_path)
    monkeypatch.setitem(open_clip.pretrained._PRETRAINED, "squares", {"byheart": STATED})
    yield
    open_clip.factory._MODEL_CONFIGS = configs


Make = Callable[..., OpenClipEncoder]


@pytest.fixture
def make(weights: dict, published: None) -> Make:
    """Return a function that makes the trained model, healthy by default."""

    def encoder(
        quick: bool = True,
        cfg: dict | None = None,
        name: str = "openclip:squares/byheart@file",
        **changed: object,
    ) -> OpenClipEncoder:
        model = build(TINY, quick)
        model.load_state_dict(
            weights | {key: value for key, value in changed.items() if key in weights}
        )
        transform = image_transform_v2(PreprocessCfg(**{"size": 32, **(cfg or {})}), is_train=False)
        return OpenClipEncoder(
            name,
            model,
            transform,
            TOKENIZER,
            "a" * 32,
            "cpu",
            str(changed.get("precision", "fp32")),
        )

    return encoder


def outcomes(model: object, data: SimpleNamespace, cache: Path) -> dict[str, Check]:
    return {check.name: check for check in examine.examine(model, data, cache).checks}


def failed(checks: dict[str, Check]) -> set[str]:
    return {name for name, check in checks.items() if check.passed is False}


def test_a_healthy_model_passes_every_check(make: Make, data, tmp_path):
    checks_by_name = outcomes(make(), data, tmp_path)
    assert {name: check.passed for name, check in checks_by_name.items()} == dict.fromkeys(
        checks_by_name, True
    )
    assert checks_by_name["matched_auc"].value > 0.9
    assert checks_by_name["r1_forth"].limit == pytest.approx(1 / 32)
    assert not any(examine.warnings(examine.Store(tmp_path)).values())


def test_the_command_exits_with_0_if_no_check_fails(make: Make, data, tmp_path, monkeypatch):
    monkeypatch.setattr("vlprobe.registry.load_model", lambda *given: make())
    monkeypatch.setattr("vlprobe.registry.load_dataset", lambda *given: data)
    for how in ("table", "json"):
        call(tmp_path, "doctor", "control:random", "--format", how)


def test_the_passport_lists_the_architecture_and_the_measured_behavior(make: Make):
    facts = passport.read_passport(make())
    assert facts["architecture"] == "CLIP + VisionTransformer + Transformer"
    assert facts["activation"] == "QuickGELU"
    assert facts["tokenizer"] == "SimpleTokenizer"
    assert (facts["letter case"], facts["punctuation"]) == ("folded", "kept")
    assert facts["context length"] == "16 tokens"
    assert facts["padding"] == "always to 16 tokens, 0 on the right"
    assert facts["mean"] == "0.4815, 0.4578, 0.4082"
    assert facts["std"] == "0.2686, 0.2613, 0.2758"
    assert facts["size"] == "32 x 32"
    assert (facts["interpolation"], facts["resizing"]) == ("bicubic", "shortest")
    assert facts["parameters"] == f"{sum(one.numel() for one in build(TINY).parameters()):,}"
    assert f"torch {torch.__version__}" in facts["versions"]


def test_a_wrong_activation_fails_the_activation_check(make: Make, data, tmp_path):
    check = outcomes(make(quick=False), data, tmp_path)["activation"]
    assert check.passed is False
    assert check.detail == "Built with GELU; published with QuickGELU."


def test_unknown_weights_are_not_checked_for_activation_and_preprocessing(
    make: Make,
):
    model = make(quick=False, name="openclip:squares@file")
    for check in (checks.activation(model), checks.preprocessing(model)):
        assert (check.passed, check.detail) == (None, checks.UNKNOWN_WEIGHTS)


def test_swapped_mean_and_std_fail_the_preprocessing_check(make: Make, data, tmp_path):
    swapped = {"mean": STATED["std"], "std": STATED["mean"]}
    check = outcomes(make(cfg=swapped), data, tmp_path)["preprocessing"]
    assert check.passed is False
    assert check.value == pytest.approx(0.48145466 - 0.26862954, abs=1e-3)
    assert "mean is 0.2686, 0.2613, 0.2758" in check.detail
    assert "0.4815, 0.4578, 0.4082" in check.detail


def test_a_wrong_image_size_fails_the_preprocessing_check(make: Make):
    check = checks.preprocessing(make(cfg={"size": 48}))
    assert check.passed is False
    assert "size is 48 x 48, published as 32 x 32" in check.detail


def test_a_wrong_interpolation_fails_the_preprocessing_check(make: Make, monkeypatch):
    monkeypatch.setitem(STATED, "interpolation", "bilinear")
    check = checks.preprocessing(make())
    assert check.passed is False
    assert check.detail == "interpolation is bicubic, published as bilinear"


def test_nan_weights_fail_only_the_finite_check_and_skip_dependent_checks(
    make: Make, data, tmp_path
):
    checks_by_name = outcomes(make(text_projection=torch.full((32, 16), math.nan)), data, tmp_path)
    assert failed(checks_by_name) == {"finite"}
    assert checks_by_name["finite"].value == 32
    assert {
        checks_by_name[name].passed for name in ("text_batch", "matched_auc", "r1_forth", "r1_back")
    } == {None}
    assert checks_by_name["image_batch"].passed is True


def test_a_constant_model_has_an_auc_of_one_half_and_ranks_nothing_first(data, tmp_path):
    checks_by_name = outcomes(controls.load("control:constant"), data, tmp_path)
    assert failed(checks_by_name) == {"matched_auc", "r1_forth", "r1_back"}
    assert checks_by_name["matched_auc"].value == 0.5
    assert checks_by_name["r1_forth"].value == checks_by_name["r1_back"].value == 0


def test_a_random_model_fails_the_auc_check(data, tmp_path):
    assert "matched_auc" in failed(outcomes(controls.load("control:random"), data, tmp_path))


def untrained(config: dict, size: int = 32) -> OpenClipEncoder:
    transform = image_transform_v2(PreprocessCfg(size=size), is_train=False)
    return OpenClipEncoder("x", build(config), transform, TOKENIZER, "b" * 32, "cpu")


def pad_to_the_longest(texts: list[str]) -> torch.Tensor:
    tokens = TOKENIZER(texts)
    return tokens[:, : int((tokens != 0).sum(dim=1).max())]


def test_siglip_fails_the_text_check_if_texts_are_padded_to_the_longest_of_a_batch(data):
    model = untrained(SIGLIP)
    assert checks.text_batch(model, data.items).passed is True
    assert passport.read_passport(model)["padding"] == "always to 16 tokens, 0 on the right"
    model._tokenizer = pad_to_the_longest
    check = checks.text_batch(model, data.items)
    assert check.passed is False
    assert check.value > 0.05
    assert passport.read_passport(model)["padding"] == "to the longest text of a batch"


def test_padding_that_the_text_tower_ignores_passes_the_text_check(make: Make, data):
    model = make()
    model._tokenizer = pad_to_the_longest
    assert checks.text_batch(model, data.items).passed is True


def test_a_model_in_training_mode_fails_the_image_check(data):
    model = untrained(RESNET, size=64)
    assert checks.image_batch(model, data.items).passed is True
    model._model.visual.train()
    assert checks.image_batch(model, data.items).passed is False


def test_half_precision_has_a_separate_tolerance(make: Make, data):
    check = checks.text_batch(make(precision="bf16"), data.items)
    assert (check.passed, check.limit) == (True, 2e-2)


def test_an_examination_lists_the_edits_that_the_tokenizer_erases(make: Make, tmp_path, data):
    items = [
        replace(
            data.items[0],
            captions=("A dog, a cat.", "plain words " * 9 + "here"),
            foils=("a DOG, a cat.",),
        )
    ]
    examination = examine.examine(
        make(), SimpleNamespace(name="one", digest="1" * 32, items=items), tmp_path
    ).erased
    assert [(row.rule, row.role, row.reason, row.count, row.of) for row in examination] == [
        ("lower case", "same", "letter case", 1, 1),
        ("one more word", "different", "context limit", 1, 2),
        ("foil", "different", "letter case", 1, 1),
    ]


def test_progress_never_decreases_and_its_exception_stops_the_examination(
    make: Make, data, tmp_path
):
    progress = []
    examine.examine(
        make(), data, tmp_path, lambda label, done, total: progress.append(done / total)
    )
    assert progress == sorted(progress) and progress[0] >= 0 and progress[-1] <= 1

    with pytest.raises(KeyboardInterrupt):
        examine.examine(make(), data, tmp_path / "other", Mock(side_effect=KeyboardInterrupt))
    assert not (tmp_path / "other").exists()
