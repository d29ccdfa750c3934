"""A healthy model passes every check; models broken on purpose, each in one way, fail the one that is about it."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import open_clip
import pytest
import torch
from click.testing import CliRunner
from open_clip.tokenizer import SimpleTokenizer
from open_clip.transform import PreprocessCfg, image_transform_v2
from PIL import Image

from vlprobe.cli import main
from vlprobe.models import controls
from vlprobe.models.doctor import checks, examine, passport
from vlprobe.models.doctor.checks import Check
from vlprobe.models.open_clip_encoder import OpenClipEncoder

TEXT = {"context_length": 16, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 2}
VISION = {"image_size": 32, "layers": 2, "width": 32, "head_width": 16, "patch_size": 8}
TINY = {"embed_dim": 16, "vision_cfg": VISION, "text_cfg": TEXT}
SIGLIP = {
    **TINY,
    "custom_text": True,
    "text_cfg": {**TEXT, "pool_type": "last", "no_causal_mask": True},
}
RESNET = {
    **TINY,
    "vision_cfg": {"image_size": 64, "layers": [1, 1, 1, 1], "width": 8, "patch_size": None},
}
STATED = {  # what OpenCLIP's table would say of weights that somebody has published
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
    """OpenCLIP's model of that config, always with the same weights, with OpenCLIP's default preprocessing."""
    torch.manual_seed(5)
    kind = open_clip.CustomTextCLIP if config.get("custom_text") else open_clip.CLIP
    model = kind(
        **{name: value for name, value in config.items() if name != "custom_text"}, quick_gelu=quick
    )
    open_clip.model.set_model_preprocess_cfg(model, {**vars(PreprocessCfg(size=32)), "mode": "RGB"})
    return model


@pytest.fixture(scope="module")
def weights(data: SimpleNamespace) -> dict:
    """Weights that know the pictures by heart, trained with QuickGELU."""
    model = build(TINY, quick=True)
    model.token_embedding.weight.requires_grad_(False).mul_(50)
    seen = image_transform_v2(PreprocessCfg(size=32), is_train=False)
    pixels = torch.stack([seen(Image.open(item.image.path)) for item in data.items])
    tokens = TOKENIZER([item.captions[0] for item in data.items])
    optimizer = torch.optim.Adam([one for one in model.parameters() if one.requires_grad], lr=3e-3)
    for _ in range(60):
        left, right, scale = model(pixels, tokens)
        logits = scale * left @ right.T
        own = torch.arange(len(logits))
        loss = torch.nn.functional.cross_entropy(logits, own) + torch.nn.functional.cross_entropy(
            logits.T, own
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """OpenCLIP knows the architecture "squares", and weights of it with the tag "byheart"."""
    (tmp_path / "squares.json").write_text(json.dumps({**TINY, "quick_gelu": True}))
    configs = open_clip.factory._MODEL_CONFIGS.copy()
    open_clip.add_model_config(tmp_path)
    monkeypatch.setitem(open_clip.pretrained._PRETRAINED, "squares", {"byheart": STATED})
    yield
    open_clip.factory._MODEL_CONFIGS = configs


Make = Callable[..., OpenClipEncoder]


@pytest.fixture
def make(weights: dict, published: None) -> Make:
    """Makes the trained model, healthy where nothing else is said."""

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
    found = outcomes(make(), data, tmp_path)
    assert {name: check.passed for name, check in found.items()} == dict.fromkeys(found, True)
    assert found["matched_auc"].value > 0.9
    assert found["r1_forth"].limit == pytest.approx(1 / 32)
    assert not any(examine.warnings(examine.Store(tmp_path)).values())


def test_the_command_exits_with_0_if_no_check_fails(make: Make, data, tmp_path, monkeypatch):
    monkeypatch.setattr("vlprobe.registry.load_model", lambda *given: make())
    monkeypatch.setattr("vlprobe.registry.load_dataset", lambda *given: data)
    for how in ("table", "json"):
        words = ["--cache", str(tmp_path), "doctor", "control:random", "--format", how]
        assert CliRunner().invoke(main.main, words, catch_exceptions=False).exit_code == 0


def test_the_passport_says_what_was_built_and_what_experiments_show(make: Make):
    found = passport.read_passport(make())
    assert found["architecture"] == "CLIP + VisionTransformer + Transformer"
    assert found["activation"] == "QuickGELU"
    assert found["tokenizer"] == "SimpleTokenizer"
    assert (found["letter case"], found["punctuation"]) == ("folded", "kept")
    assert found["context length"] == "16 tokens"
    assert found["padding"] == "always to 16 tokens, 0 on the right"
    assert found["mean"] == "0.4815, 0.4578, 0.4082"
    assert found["std"] == "0.2686, 0.2613, 0.2758"
    assert found["size"] == "32 x 32"
    assert (found["interpolation"], found["resizing"]) == ("bicubic", "shortest")
    assert found["parameters"] == f"{sum(one.numel() for one in build(TINY).parameters()):,}"
    assert f"torch {torch.__version__}" in found["versions"]


def test_the_wrong_activation_is_caught_by_the_table(make: Make, data, tmp_path):
    check = outcomes(make(quick=False), data, tmp_path)["activation"]
    assert check.passed is False
    assert check.detail == "Built with GELU; published with QuickGELU."


def test_weights_that_no_table_knows_are_judged_neither_by_activation_nor_by_preprocessing(
    make: Make,
):
    model = make(quick=False, name="openclip:squares@file")
    for check in (checks.activation(model), checks.preprocessing(model)):
        assert (check.passed, check.detail) == (None, checks.UNKNOWN_WEIGHTS)


def test_swapped_mean_and_std_are_caught(make: Make, data, tmp_path):
    swapped = {"mean": STATED["std"], "std": STATED["mean"]}
    check = outcomes(make(cfg=swapped), data, tmp_path)["preprocessing"]
    assert check.passed is False
    assert check.value == pytest.approx(0.48145466 - 0.26862954, abs=1e-3)
    assert (
        "mean is 0.2686, 0.2613, 0.2758" in check.detail
        and "0.4815, 0.4578, 0.4082" in check.detail
    )


def test_another_size_is_caught(make: Make):
    check = checks.preprocessing(make(cfg={"size": 48}))
    assert check.passed is False
    assert "size is 48 x 48, published as 32 x 32" in check.detail


def test_declared_resizing_that_is_not_the_published_one_is_caught(make: Make, monkeypatch):
    monkeypatch.setitem(STATED, "interpolation", "bilinear")
    check = checks.preprocessing(make())
    assert check.passed is False
    assert check.detail == "interpolation is bicubic, published as bilinear"


def test_weights_that_are_not_numbers_are_caught_and_nothing_else_is_judged_from_them(
    make: Make, data, tmp_path
):
    found = outcomes(make(text_projection=torch.full((32, 16), math.nan)), data, tmp_path)
    assert failed(found) == {"finite"}
    assert found["finite"].value == 32
    assert {
        found[name].passed for name in ("text_batch", "matched_auc", "r1_forth", "r1_back")
    } == {None}
    assert found["image_batch"].passed is True


def test_a_constant_model_has_an_auc_of_one_half_and_is_first_nowhere(data, tmp_path):
    found = outcomes(controls.load("control:constant"), data, tmp_path)
    assert failed(found) == {"matched_auc", "r1_forth", "r1_back"}
    assert found["matched_auc"].value == 0.5
    assert found["r1_forth"].value == found["r1_back"].value == 0


def test_a_random_model_is_not_taken_for_one_that_knows_something(data, tmp_path):
    assert "matched_auc" in failed(outcomes(controls.load("control:random"), data, tmp_path))


def siglip(tokenizer: Callable) -> OpenClipEncoder:
    """A text tower that looks at every column and pools the last one."""
    transform = image_transform_v2(PreprocessCfg(size=32), is_train=False)
    return OpenClipEncoder("siglip", build(SIGLIP), transform, tokenizer, "b" * 32, "cpu")


def to_the_longest(texts: list[str]) -> torch.Tensor:
    tokens = TOKENIZER(texts)
    return tokens[:, : int((tokens != 0).sum(dim=1).max())]


def test_siglip_padded_to_the_longest_of_a_batch_is_caught_and_padded_to_its_length_is_not(data):
    model = siglip(TOKENIZER)
    assert checks.text_batch(model, data.items).passed is True
    assert passport.read_passport(model)["padding"] == "always to 16 tokens, 0 on the right"
    model._tokenizer = to_the_longest
    check = checks.text_batch(model, data.items)
    assert check.passed is False
    assert check.value > 0.05
    assert passport.read_passport(model)["padding"] == "to the longest text of a batch"
    padding = [passport.read_passport(siglip(t))["padding"] for t in (to_the_longest, TOKENIZER)]
    assert padding == ["to the longest text of a batch", "always to 16 tokens, 0 on the right"]


def test_the_text_check_is_blind_to_padding_that_the_tower_cannot_see(make: Make, data):
    model = make()
    model._tokenizer = to_the_longest
    assert checks.text_batch(model, data.items).passed is True


def test_a_model_left_in_training_mode_is_caught(data):
    model = OpenClipEncoder(
        "resnet",
        build(RESNET),
        image_transform_v2(PreprocessCfg(size=64), is_train=False),
        TOKENIZER,
        "c" * 32,
        "cpu",
    )
    assert checks.image_batch(model, data.items).passed is True
    model._model.visual.train()
    assert checks.image_batch(model, data.items).passed is False


def test_half_precision_is_held_to_its_own_limit(make: Make, data):
    check = checks.text_batch(make(precision="bf16"), data.items)
    assert (check.passed, check.limit) == (True, 2e-2)


def test_plain_edits_of_the_captions_say_what_the_tokenizer_would_undo(make: Make, tmp_path, data):
    items = [
        replace(
            data.items[0],
            captions=("A dog, a cat.", "plain words " * 9 + "here"),
            foils=("a DOG, a cat.",),
        )
    ]
    found = examine.examine(
        make(), SimpleNamespace(name="one", digest="1" * 32, items=items), tmp_path
    ).erased
    assert [(row.rule, row.role, row.reason, row.count, row.of) for row in found] == [
        ("lower case", "same", "letter case", 1, 1),
        ("one more word", "different", "context limit", 1, 2),
        ("foil", "different", "letter case", 1, 1),
    ]


def test_progress_rises_and_stops_the_examination_when_it_raises(make: Make, data, tmp_path):
    told = []
    examine.examine(make(), data, tmp_path, lambda label, done, total: told.append(done / total))
    assert told == sorted(told) and told[0] >= 0 and told[-1] <= 1

    def stop(label: str, done: float, total: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        examine.examine(make(), data, tmp_path / "other", stop)
    assert not (tmp_path / "other").exists()
