"""The fine-tuned demo models: their cards say how they came to be, and each does what it was tuned for."""

import json
import re
import shlex
from dataclasses import fields

import pytest

from vlprobe import registry
from vlprobe.cli_train import train
from vlprobe.demo.checkpoints import FOLDER
from vlprobe.demo.measure import measure
from vlprobe.training.request import TrainRequest

REPAIRED = ("plain", "eqsim")


def card(name: str) -> dict:
    """What the training wrote beside the weights."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", REPAIRED)
def test_a_card_is_of_the_file_beside_it_and_of_the_model_it_began_from(name: str):
    assert registry.load_model(f"demo:{name}", "cpu").digest == card(name)["digest"]
    assert registry.load_model("demo:softmax", "cpu").digest == card(name)["start_digest"]


@pytest.mark.parametrize("name", REPAIRED)
def test_the_recipe_in_the_model_card_asks_for_what_was_done(name: str):
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    recipe = re.search(rf"^vlprobe train (.+ --output {name}\.safetensors)$", text, re.MULTILINE)
    assert recipe
    given = train.make_context("train", shlex.split(recipe[1])).params
    done = card(name)
    for field in fields(TrainRequest):
        asked = given[field.name]
        assert (list(asked) if field.name == "datasets" else asked or done[field.name]) == done[field.name], field.name


def test_they_differ_in_their_loss_alone():
    made = ("output", "tuned", "pinned", "digest", "held_out", "seconds")
    alike = [{key: value for key, value in card(name).items() if key not in (*made, "loss")} for name in REPAIRED]
    assert all(one == alike[0] for one in alike)
    assert len({card(name)["loss"] for name in REPAIRED}) == len(REPAIRED)


def test_eqsim_moves_less_when_a_caption_is_only_reworded_than_the_control_does():
    control, tuned = (measure(FOLDER / f"{name}.safetensors", "val", 24) for name in ("plain", "eqsim"))
    assert tuned["e_inv"] < 0.8 * control["e_inv"]
