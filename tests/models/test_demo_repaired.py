"""The fine-tuned demo models: their cards document the training, and each improves what it was tuned for."""

import json
import re
import shlex
from dataclasses import fields

import pytest

from tools.measure import measure
from tools.world.captions import captions
from tools.world.scenes import distinct
from vlprobe import registry
from vlprobe.cli.train import train
from vlprobe.datasets.world.renderer import render
from vlprobe.models.demo_weights import FOLDER, load_checkpoint
from vlprobe.training.request import TrainRequest

REPAIRED = ("plain", "eqsim", "scvc")


def card(name: str) -> dict:
    """Return the JSON file that the training wrote next to the weights."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", REPAIRED)
def test_a_card_has_the_digests_of_its_weights_and_of_the_start_model(name: str):
    assert registry.load_model(f"demo:{name}", "cpu").digest == card(name)["digest"]
    assert registry.load_model("demo:softmax", "cpu").digest == card(name)["start_digest"]


@pytest.mark.parametrize("name", REPAIRED)
def test_the_command_in_the_model_card_has_the_settings_of_the_training(name: str):
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    recipe = re.search(rf"^vlprobe train (.+ --output {name}\.safetensors)$", text, re.MULTILINE)
    assert recipe
    given = train.make_context("train", shlex.split(recipe[1])).params
    done = {"eqsim": TrainRequest.eqsim} | card(name)  # the only variant when they were trained
    for field in fields(TrainRequest):
        setting = given[field.name]
        assert (list(setting) if field.name == "datasets" else setting or done[field.name]) == done[
            field.name
        ], field.name


def test_the_three_fine_tuned_models_differ_only_in_their_loss():
    made = ("output", "tuned", "pinned", "digest", "held_out", "seconds")
    alike = [
        {key: value for key, value in card(name).items() if key not in (*made, "loss")}
        for name in REPAIRED
    ]
    assert alike[0] == alike[1] == alike[2]
    assert len({card(name)["loss"] for name in REPAIRED}) == 3


@pytest.mark.full  # 3 s; the weights are shipped
def test_eqsim_has_a_lower_invariance_error_than_the_control():
    control, tuned = (
        measure(FOLDER / f"{name}.safetensors", "val", 24) for name in ("plain", "eqsim")
    )
    assert tuned["e_inv"] < 0.8 * control["e_inv"]


@pytest.mark.full  # 2 s; the weights are shipped
def test_scvc_separates_mixed_from_true_pictures_more_than_the_control():
    import torch

    scenes = distinct("val", 48)
    drawn = [render(scene) for scene in scenes]
    gaps = {}
    for name in ("plain", "scvc"):
        model, transform, tokenize = load_checkpoint(FOLDER / f"{name}.safetensors")
        pixels = torch.stack([transform(picture) for picture in drawn])
        # mixing commutes with the scaling of channels
        mixed = 0.9 * pixels + 0.1 * pixels.roll(1, dims=0)
        with torch.inference_mode():
            texts = model.encode_text(
                tokenize([captions(scene)[0] for scene in scenes]), normalize=True
            )
            true, false = (model.encode_image(side, normalize=True) for side in (pixels, mixed))
        gaps[name] = float(((true - false) * texts).sum(dim=1).mean())
    assert gaps["scvc"] > 2 * gaps["plain"]
