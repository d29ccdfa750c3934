import json
from dataclasses import asdict, replace

import pytest
import torch
from safetensors.torch import load_file

from vlprobe import registry
from vlprobe.errors import InvalidInput, NotFound
from vlprobe.storage import access
from vlprobe.training import outputs, trainer
from vlprobe.training.learner import Learner
from vlprobe.training.trainer import train


class Stopped(Exception):
    pass


def stop_at(step: int):
    def progress(label, done, of):
        if label.startswith("Training") and done == step:
            raise Stopped

    return progress


def same_weights(one, other) -> bool:
    one, other = load_file(one.path), load_file(other.path)
    return all(torch.equal(one[name], other[name]) for name in one)


def other_request(straight, tmp_path, **changed):
    return replace(straight.request, output=str(tmp_path / "other.safetensors"), **changed)


def test_a_stopped_training_resumes_to_the_same_weights(straight, tmp_path):
    request = other_request(straight, tmp_path)
    with pytest.raises(Stopped):
        train(request, straight.folder, stop_at(3))
    assert not request.path.exists()
    progress = []
    train(request, straight.folder, lambda *now: progress.append(now))
    assert [done for label, done, _ in progress if label.startswith("Training")] == [4]
    assert same_weights(straight.request, request)
    assert not request.path.with_suffix(".state.pt").exists()


def test_a_killed_training_resumes_from_its_last_state_to_the_same_weights_and_log(
    straight, tmp_path, monkeypatch
):
    request, learn = other_request(straight, tmp_path), Learner.learn
    monkeypatch.setattr(trainer, "_SAVE_SHARE", 1e9)

    def killed(self, batch, step):
        # only the state of step 2 is saved
        monkeypatch.setattr(trainer, "_SAVE_EVERY", 0 if step == 1 else 1e9)
        if step == 3:
            raise Stopped
        return learn(self, batch, step)

    with monkeypatch.context() as patch:
        patch.setattr(Learner, "learn", killed)
        with pytest.raises(Stopped):
            train(request, straight.folder)
    assert [line["step"] for line in outputs.read_log(request.path)] == [0, 1, 2, 2, 3]
    with request.path.with_suffix(".jsonl").open("a") as file:
        file.write('{"step": 4, "lo')  # truncated when the process was killed
    steps = []
    monkeypatch.setattr(
        Learner, "learn", lambda self, batch, step: steps.append(step) or learn(self, batch, step)
    )
    card = train(request, straight.folder)
    assert steps == [2, 3]
    assert same_weights(straight.request, request)
    for one, two in zip(
        outputs.read_log(straight.request.path), outputs.read_log(request.path), strict=True
    ):
        timed = {"seconds": 0, "added_time": 0}
        assert {**one, **timed} == {**two, **timed}
    assert (card["digest"], card["held_out"]) == (
        straight.card["digest"],
        straight.card["held_out"],
    )


def test_the_tuned_model_has_a_separate_name_and_digest(straight):
    card, train_request = straight.card, straight.request
    tuned, start = (
        registry.load_model(card["tuned"], "cpu"),
        registry.load_model(train_request.model, "cpu"),
    )
    assert card["tuned"] == f"{train_request.model}@{train_request.path}"
    assert (tuned.digest, start.digest) == (card["digest"], card["start_digest"])
    assert tuned.digest != start.digest
    for name, before in start.module.state_dict().items():
        assert not torch.equal(before, tuned.module.state_dict()[name]), name


def test_a_tuned_model_can_be_tuned_again(straight, tmp_path):
    again = train(
        other_request(straight, tmp_path, model=straight.card["tuned"], steps=1), straight.folder
    )
    assert again["start_digest"] == straight.card["digest"]
    assert again["tuned"] == f"{straight.request.model}@{tmp_path / 'other.safetensors'}"


def test_the_card_records_the_training_of_the_weights(straight):
    card, train_request = straight.card, json.loads(json.dumps(asdict(straight.request)))
    assert json.loads(straight.request.path.with_suffix(".json").read_text()) == json.loads(
        json.dumps(card)
    )
    assert json.loads(json.dumps(card)).items() >= train_request.items()
    data = registry.load_dataset(straight.request.datasets[0], straight.folder)
    assert card["data"] == [{"name": data.name, "digest": data.digest, "items": 6}]
    assert card["held_out"]["items"] == 2


def test_the_log_has_every_step_and_the_held_out_losses(straight):
    lines = outputs.read_log(straight.request.path)
    steps = [line for line in lines if "held_out" not in line]
    assert [line["step"] for line in steps] == [1, 2, 3, 4]
    assert {"loss", "rate", "seconds", "clip", "eqsim", "sc", "consistency"} <= set(steps[0])
    judged = [line for line in lines if "held_out" in line]
    assert [line["step"] for line in judged] == [0, 2, 4]
    before, after = straight.card["held_out"]["before"], straight.card["held_out"]["after"]
    assert (judged[0]["held_out"], judged[-1]["held_out"]) == (before, after)
    assert straight.card["added_time"] == judged[0]["added_time"] > -1
    assert "added_time" not in judged[1]


def test_another_loss_and_seed_give_other_weights_with_the_same_evaluation(straight, tmp_path):
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    request = other_request(straight, tmp_path, loss="clip", seed=5)
    card = train(request, straight.folder)
    assert card["held_out"]["before"] == straight.card["held_out"]["before"]
    assert card["held_out"]["after"].keys() == straight.card["held_out"]["after"].keys()
    assert not same_weights(straight.request, request)
    assert torch.equal(state, torch.get_rng_state())
    assert torch.get_num_threads() == threads


def test_repeating_a_finished_training_returns_its_card(straight, monkeypatch):
    monkeypatch.setattr(Learner, "learn", lambda *_: pytest.fail("trained again"))
    assert train(straight.request, straight.folder) == json.loads(json.dumps(straight.card))


def test_another_request_does_not_overwrite_weights_or_resume_from_another_state(
    straight, tmp_path
):
    with pytest.raises(InvalidInput, match="belongs to another training run"):
        train(replace(straight.request, seed=1), straight.folder)
    request = other_request(straight, tmp_path)
    with pytest.raises(Stopped):
        train(request, straight.folder, stop_at(1))
    with pytest.raises(InvalidInput, match="another training run that was stopped"):
        train(replace(request, rate=0.001), straight.folder)
    request.path.with_suffix(".state.pt").write_bytes(b"damaged")
    with pytest.raises(InvalidInput, match="Delete the file"):
        train(request, straight.folder)


@pytest.mark.parametrize(
    ("suffix", "content"),
    [
        (".json", '{"my": "settings"}'),
        (".json", "notes"),
        (".json", "[1]"),
        (".jsonl", '{"a": "row of my data"}\n'),
        (".jsonl", '{"step": 0, "held_out": {}, "pinned": "of another training"}\n'),
        (".jsonl", '\n{"a": "row of my data"}\n'),
    ],
)
def test_an_unrelated_file_next_to_the_weights_is_not_overwritten(
    straight, tmp_path, suffix, content
):
    request = other_request(straight, tmp_path)
    file = request.path.with_suffix(suffix)
    file.write_text(content)
    with pytest.raises(
        InvalidInput, match=f"other{suffix}' already exists, and this training run would"
    ):
        train(request, straight.folder)
    assert file.read_text() == content
    assert not request.path.exists()


def test_files_of_a_training_killed_before_its_first_state_are_reused(
    straight, tmp_path, monkeypatch
):
    request = other_request(straight, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(trainer._Training, "_save", lambda *_: None)
        with pytest.raises(Stopped):
            train(request, straight.folder, stop_at(2))
    assert request.path.with_suffix(".jsonl").stat().st_size
    assert not request.path.with_suffix(".state.pt").exists()
    assert train(request, straight.folder)["digest"] == straight.card["digest"]
    request.path.unlink()  # the card allows the same weights to be trained again
    assert train(request, straight.folder)["digest"] == straight.card["digest"]


def test_a_link_out_of_the_root_next_to_the_weights_is_not_followed(
    straight, tmp_path, monkeypatch
):
    (tmp_path / "root").mkdir()
    (tmp_path / "elsewhere.jsonl").write_text("a log of somebody else\n")
    (tmp_path / "root" / "other.jsonl").symlink_to(tmp_path / "elsewhere.jsonl")
    monkeypatch.setenv(access.ROOTS, f"{tmp_path / 'root'}:{straight.folder}")
    with pytest.raises(InvalidInput, match="outside the folders"):
        train(other_request(straight, tmp_path / "root"), straight.folder)
    assert (tmp_path / "elsewhere.jsonl").read_text() == "a log of somebody else\n"


def test_a_training_killed_between_weights_and_card_is_completed_without_training(
    straight, tmp_path, monkeypatch
):
    request = other_request(straight, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(trainer, "write_json", lambda *_: (_ for _ in ()).throw(Stopped))
        with pytest.raises(Stopped):
            train(request, straight.folder)
    assert request.path.exists()
    monkeypatch.setattr(Learner, "learn", lambda *_: pytest.fail("trained again"))
    assert train(request, straight.folder)["digest"] == straight.card["digest"]
    assert not request.path.with_suffix(".state.pt").exists()


def test_an_unwritable_output_is_refused_before_the_training(straight, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInput, match="cannot be written"):
        train(
            replace(straight.request, output=str(tmp_path / "file" / "tuned.safetensors")),
            straight.folder,
        )
    monkeypatch.setenv(access.ROOTS, str(straight.folder))
    with pytest.raises(InvalidInput, match="outside the folders"):
        train(other_request(straight, tmp_path), straight.folder)
    monkeypatch.setenv(access.READ_ONLY, "1")
    with pytest.raises(InvalidInput, match="read-only"):
        train(straight.request, straight.folder)


def test_a_demo_model_is_tuned_to_a_small_file_that_the_demo_family_loads(straight, tmp_path):
    request = other_request(straight, tmp_path, model="demo:softmax", steps=1)
    card = train(request, straight.folder)
    assert card["tuned"] == f"demo:softmax@{request.path}"
    assert request.path.stat().st_size < 3_400_000
    start, tuned = (registry.load_model(name, "cpu") for name in ("demo:softmax", card["tuned"]))
    assert not torch.equal(start.module.text_projection, tuned.module.text_projection)
    assert torch.equal(start.module.visual.bn1.running_mean, tuned.module.visual.bn1.running_mean)
    # three of these words are in the data
    *new, unknown = start.ids(["tree", "riding", "down", "zebra"])[:, 1]
    assert not start.module.token_embedding.weight[[*new, unknown]].any()
    assert tuned.module.token_embedding.weight[new].any()
    assert not tuned.module.token_embedding.weight[unknown].any()


def test_a_demo_name_with_an_invalid_file_is_refused_in_one_line(tmp_path):
    (tmp_path / "x.safetensors").write_bytes(b"nothing")
    for name in (
        f"demo:softmax@{tmp_path / 'x.safetensors'}",
        f"demo:softmax@{tmp_path / 'gone.safetensors'}",
    ):
        with pytest.raises(InvalidInput, match="is not a checkpoint of a demo model"):
            registry.load_model(name)
    with pytest.raises(NotFound):
        registry.load_model(f"demo:other@{tmp_path / 'x.safetensors'}")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"model": "control:random"}, "cannot be fine-tuned"),
        ({"datasets": ("demo",)}, "'demo' cannot be used for training"),
        (
            {"datasets": ("demo-train", "demo-pairs:val")},
            "'demo-pairs:val' cannot be used for training",
        ),
        ({"datasets": ()}, "cannot be used for training"),
        ({"output": "tuned.pt"}, "not a .safetensors file"),
        ({"loss": "eqsim"}, "needs either clip or sigmoid"),
        ({"loss": "sigmoid"}, "no logit bias"),
        ({"freeze": "both"}, "freeze ('both')"),
        ({"precision": "int8"}, "int8"),
        ({"steps": 0}, "steps must be at least 1. Got 0"),
        ({"batch_size": 1}, "batch_size must be at least 2. Got 1"),
        ({"batch_size": 50}, "smaller --batch-size"),
        ({"rate": 0.0}, "rate (0.0)"),
        ({"margin": -1.0}, "margin (-1.0)"),
    ],
)
def test_an_invalid_training_request_is_refused_in_one_line(straight, tmp_path, wrong, message):
    with pytest.raises(InvalidInput) as error:
        train(replace(other_request(straight, tmp_path), **wrong), straight.folder)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
