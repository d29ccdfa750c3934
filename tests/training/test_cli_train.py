import itertools
import json
from dataclasses import replace

import click

from tests.conftest import call
from vlprobe.cli import main


def words(straight, **changed: object) -> list[str]:
    train_request = straight.request
    options: dict[str, object] = {
        name: getattr(train_request, name)
        for name in ("model", "output", "loss", "steps", "batch_size", "rate", "warm_up", "threads")
    }
    options |= {"dataset": train_request.datasets[0], "device": "cpu", "format": "json"} | changed
    listed = [(f"--{name.replace('_', '-')}", str(value)) for name, value in options.items()]
    return ["train", "--curriculum", *itertools.chain.from_iterable(listed)]


def test_train_prints_held_out_losses_before_and_after_and_the_model_name(straight):
    result = call(straight.folder, *words(straight))
    rows = {row["part"]: row for row in json.loads(result.stdout)}
    for name, after in straight.card["held_out"]["after"].items():
        assert abs(rows[name]["after"] - after) < 1e-6
    assert {name: row["weight"] for name, row in rows.items()}["eqsim"] == 0.5
    assert f"Probe it as {straight.card['tuned']}" in result.stderr
    assert f"cost {100 * straight.card['added_time']:+.0f} % a step" in result.stderr


def test_the_ablation_of_eqben_is_selected_by_options(straight, tmp_path):
    changed = {"output": tmp_path / "own.safetensors", "loss": "clip+hardneg+eqsim", "steps": 1}
    train_request = words(straight, **changed, eqsim="v1+v2-close", close=0)
    result = call(straight.folder, *train_request)
    rows = {row["part"]: row for row in json.loads(result.stdout)}
    assert rows["hardneg"]["weight"] == 1
    assert rows["hardneg"]["before"] == 0 < rows["clip"]["before"]  # without any mismatched pairs
    assert json.loads((tmp_path / "own.json").read_text())["eqsim"] == "v1+v2-close"


def test_the_recipe_of_the_default_variant_is_unchanged(straight):
    recipe = straight.request.recipe()
    assert "eqsim" not in recipe
    assert recipe == {name: getattr(straight.request, name) for name in recipe}
    assert replace(straight.request, eqsim="v2").recipe() == recipe | {"eqsim": "v2"}


def test_a_dataset_that_cannot_be_trained_on_is_refused_in_one_line(straight):
    result = call(straight.folder, *words(straight), "--dataset", "demo", code=1)
    assert result.stderr.splitlines()[-1].startswith("Error: 'demo' cannot be used for training")


def test_every_field_of_the_training_request_is_an_option():
    from dataclasses import fields

    from vlprobe.training.request import TrainRequest

    command = main.main.commands["train"]
    assert isinstance(command, click.Command)
    assert {field.name for field in fields(TrainRequest)} == {
        param.name for param in command.params
    } - {"how"}
    for param in command.params:
        if param.name in ("device", "steps", "rate", "close", "scores", "precision"):
            assert param.default == getattr(TrainRequest, param.name)
