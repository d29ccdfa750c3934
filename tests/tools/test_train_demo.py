import json

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from open_clip.transform import PreprocessCfg, image_transform_v2
from safetensors import safe_open
from safetensors.torch import load_file

from tools import train_demo as training
from tools.train_demo import batches, config, draw_lessons, token_ids
from tools.world.scenes import draw
from vlprobe.datasets.world.renderer import render
from vlprobe.errors import InvalidInput
from vlprobe.models.demo_weights import CONTEXT, build, tokenizer


@pytest.fixture(scope="module")
def few():
    return draw_lessons(24, lambda *_: None)


@pytest.fixture
def batches_of_8(monkeypatch):
    """Use batches of 8 scenes, so that three steps draw 24."""
    monkeypatch.setattr(training, "BATCH", 8)


def train_quickly(tmp_path, name, loss="softmax", seed=0):
    path = tmp_path / f"{name}.safetensors"
    return training.train(loss, 3, seed, 1, path), load_file(path)


@pytest.mark.parametrize("loss", ["softmax", "sigmoid"])
def test_three_training_steps_give_a_finite_loss_and_change_every_weight(
    loss, batches_of_8, tmp_path
):
    summary, state = train_quickly(tmp_path, "a", loss)
    assert np.isfinite(summary["final_loss"])
    made = config(loss)
    made["text_cfg"]["vocab_size"] = len(token_ids())
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        before = build(made).state_dict()
    assert set(before) | {"token_ids"} == set(state)
    # Gains and shifts that start at 1 or 0 can round back to it in half precision; entire tables cannot.
    for key, value in before.items():
        if value.ndim >= 2:
            assert not torch.equal(value.half(), state[key]), key


@pytest.mark.full
def test_the_same_seed_gives_the_same_weights_and_another_seed_others(batches_of_8, tmp_path):
    (_, first), (_, again), (_, other) = (
        train_quickly(tmp_path, name, seed=seed) for name, seed in (("a", 0), ("b", 0), ("c", 1))
    )
    assert all(torch.equal(first[key], again[key]) for key in first)
    assert not torch.equal(first["text_projection"], other["text_projection"])


def test_training_does_not_change_the_global_random_state_and_threads(batches_of_8, tmp_path):
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    train_quickly(tmp_path, "a")
    assert torch.equal(state, torch.get_rng_state())
    assert torch.get_num_threads() == threads


@pytest.mark.full
def test_training_reduces_the_loss_below_chance(batches_of_8, monkeypatch, tmp_path):
    monkeypatch.setattr(training, "SCENES", 24)
    last = training.train("softmax", 40, 0, 1, tmp_path / "x")["final_loss"]
    assert last < np.log(8)


def test_a_checkpoint_records_its_training_and_progress_reports_both_stages(batches_of_8, tmp_path):
    path, progress = tmp_path / "a.safetensors", []
    summary = training.train("softmax", 3, 0, 1, path, lambda *now: progress.append(now))
    with safe_open(path, framework="pt") as file:
        assert json.loads(file.metadata()["training"]) == summary
    assert [summary[name] for name in ("loss", "steps", "seed", "scenes")] == ["softmax", 3, 0, 24]
    assert [stage for stage, *_ in progress] == sorted(stage for stage, *_ in progress)
    assert progress[-1] == ("training", 3, 3)


@pytest.mark.parametrize(
    ("loss", "steps", "message"), [("triplet", 3, "softmax, sigmoid"), ("softmax", 0, "at least 1")]
)
def test_an_invalid_training_request_is_refused_in_one_line(loss, steps, message, tmp_path):
    with pytest.raises(InvalidInput, match=message):
        training.train(loss, steps, 0, 1, tmp_path / "a.safetensors")


def test_an_unwritable_output_file_is_refused_before_the_training(tmp_path, monkeypatch):
    monkeypatch.setattr(training, "draw_lessons", lambda *_: pytest.fail("worked before it looked"))
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInput, match="cannot be written"):
        training.train("softmax", 3, 0, 1, tmp_path / "file" / "a.safetensors")


def test_no_training_caption_is_truncated_or_has_a_token_without_a_row(few):
    end = len(token_ids()) - 1
    assert few.tokens.min() == 0
    assert (few.tokens == end).sum(axis=2).min() == 1
    assert few.tokens.argmax(axis=2).max() < CONTEXT - 1


def test_training_pictures_equal_the_preprocessed_pictures(few):
    transform = image_transform_v2(PreprocessCfg(size=64), is_train=False)
    mean, std = (
        torch.tensor(values)
        for values in (transform.transforms[-1].mean, transform.transforms[-1].std)
    )
    for index in (0, 7):
        seen = transform(render(draw("train", index))).permute(1, 2, 0)
        assert np.array_equal(np.rint(((seen * std + mean) * 255).numpy()), few.pixels[index])


def test_each_epoch_has_every_scene_once_with_one_of_its_captions(few):
    owner = {row.tobytes(): scene for scene, rows in enumerate(few.tokens) for row in rows}
    seen = [owner[row.tobytes()] for _, tokens in batches(few, 6, 8, seed=5) for row in tokens]
    assert sorted(seen[:24]) == sorted(seen[24:]) == list(range(24))
    assert seen[:24] != seen[24:]


def test_batches_shift_and_brighten_pictures_but_never_mirror_them(few):
    owner = {row.tobytes(): scene for scene, rows in enumerate(few.tokens) for row in rows}
    pixels, tokens = next(batches(few, 24, 1, seed=5))

    def distance(picture, scene):
        middle = picture[8:-8, 8:-8]
        moved = (scene[8 + y : 56 + y, 8 + x : 56 + x] for y in range(-3, 4) for x in range(-3, 4))
        return min(np.abs(middle / middle.mean() - other / other.mean()).mean() for other in moved)

    for picture, row in zip(pixels, tokens, strict=True):
        scene = few.pixels[owner[row.tobytes()]] / 255
        assert distance(picture, scene) < distance(picture, scene[:, ::-1])


def test_the_token_rows_cover_the_tokens_of_numbers_colors_and_objects():
    words = "two buses and a single orange puppy, partly hidden by people."
    assert set(tokenizer()([words])[0].tolist()) <= set(token_ids())


def test_the_command_writes_the_checkpoint_and_prints_its_path(batches_of_8, tmp_path):
    path = tmp_path / "a.safetensors"
    options = ["--loss", "sigmoid", "--steps", "2", "--threads", "1", "--output", str(path)]
    result = CliRunner().invoke(training.main, options)
    assert result.exit_code == 0
    assert result.stdout == f"{path}\n"
    assert load_file(path)["logit_bias"].ndim == 0
