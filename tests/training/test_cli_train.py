import json
from dataclasses import replace

import click
from click.testing import CliRunner

from vlprobe.cli import main


def words(straight) -> list[str]:
    asked = straight.request
    found = [
        "--cache",
        str(straight.folder),
        "train",
        "--model",
        asked.model,
        "--dataset",
        asked.datasets[0],
    ]
    found += [
        "--output",
        asked.output,
        "--loss",
        asked.loss,
        "--steps",
        "4",
        "--batch-size",
        "4",
        "--rate",
        "0.003",
    ]
    return [
        *found,
        "--warm-up",
        "2",
        "--curriculum",
        "--device",
        "cpu",
        "--threads",
        "1",
        "--format",
        "json",
    ]


def test_the_command_prints_what_was_held_out_before_and_after_and_the_name_to_probe(straight):
    result = CliRunner().invoke(main.main, words(straight))
    assert result.exit_code == 0, result.output
    rows = {row["part"]: row for row in json.loads(result.stdout)}
    for name, after in straight.card["held_out"]["after"].items():
        assert abs(rows[name]["after"] - after) < 1e-6
    assert {name: row["weight"] for name, row in rows.items()}["eqsim"] == 0.5
    assert f"Probe it as {straight.card['tuned']}" in result.stderr
    assert f"cost {100 * straight.card['added_time']:+.0f} % a step" in result.stderr


def test_the_ablation_of_eqben_is_asked_for_by_options(straight, tmp_path):
    asked = words(straight)
    asked[asked.index("--output") + 1] = str(tmp_path / "own.safetensors")
    asked[asked.index("--loss") + 1] = "clip+hardneg+eqsim"
    asked[asked.index("--steps") + 1] = "1"
    result = CliRunner().invoke(main.main, [*asked, "--eqsim", "v1+v2-close", "--close", "0"])
    assert result.exit_code == 0, result.output
    rows = {row["part"]: row for row in json.loads(result.stdout)}
    assert rows["hardneg"]["weight"] == 1
    assert rows["hardneg"]["before"] == 0 < rows["clip"]["before"]  # beside no mismatch at all
    assert json.loads((tmp_path / "own.json").read_text())["eqsim"] == "v1+v2-close"


def test_what_was_trained_before_the_variants_keeps_its_name(straight):
    recipe = straight.request.recipe()
    assert "eqsim" not in recipe
    assert recipe == {name: getattr(straight.request, name) for name in recipe}
    assert replace(straight.request, eqsim="v2").recipe() == recipe | {"eqsim": "v2"}


def test_what_cannot_be_trained_is_one_line(straight):
    result = CliRunner().invoke(main.main, [*words(straight), "--dataset", "demo"])
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1].startswith("Error: 'demo' cannot be used for training")


def test_every_part_of_the_request_is_an_option():
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
