import json
from dataclasses import asdict, replace

import pytest
import torch
from safetensors.torch import load_file

from vlprobe import registry
from vlprobe.errors import InvalidInput, NotFound
from vlprobe.training import trainer
from vlprobe.training.learner import Learner
from vlprobe.training.trainer import TrainRequest, train

EVERYTHING = "clip+0.5*eqsim+0.2*sc+0.2*vc+consistency+flip"


class Stopped(Exception):
    pass


@pytest.fixture
def request_(folder, tiny, tmp_path) -> TrainRequest:
    return TrainRequest(
        folder,
        (tiny,),
        str(tmp_path / "tuned.safetensors"),
        loss=EVERYTHING,
        steps=6,
        batch_size=4,
        rate=0.003,
        warm_up=2,
        curriculum=True,
        validate_every=2,
        device="cpu",
        threads=1,
    )


def weights(path) -> dict[str, torch.Tensor]:
    return load_file(path)


def equal(one, other) -> bool:
    return all(torch.equal(one[name], other[name]) for name in one)


def test_a_stopped_training_goes_on_to_the_same_weights(request_, tmp_path):
    def stop(label, done, of):
        if label.startswith("Training") and done == 3:
            raise Stopped

    train(request_, tmp_path)
    other = replace(request_, output=str(tmp_path / "stopped.safetensors"))
    with pytest.raises(Stopped):
        train(other, tmp_path, stop)
    assert not other.path.exists()
    told = []
    train(other, tmp_path, lambda *now: told.append(now))
    assert [done for label, done, _ in told if label.startswith("Training")] == [4, 5, 6]
    assert equal(weights(request_.path), weights(other.path))
    assert not (tmp_path / "stopped.state.pt").exists()


def test_a_killed_training_goes_on_from_its_last_state_to_the_same_weights_and_log(request_, tmp_path, monkeypatch):
    straight = train(request_, tmp_path)
    other = replace(request_, output=str(tmp_path / "killed.safetensors"))
    learn = Learner.learn
    with monkeypatch.context() as patch:
        patch.setattr(trainer, "_SAVE_EVERY", 0)

        def killed(self, batch, step):
            if step == 2:
                patch.setattr(trainer, "_SAVE_EVERY", 1e9)
            if step == 5:
                raise Stopped
            return learn(self, batch, step)

        patch.setattr(Learner, "learn", killed)
        with pytest.raises(Stopped):
            train(other, tmp_path)
    assert [line["step"] for line in trainer.log(other.path)] == [0, 1, 2, 2, 3, 4, 4, 5]
    with (tmp_path / "killed.jsonl").open("a") as file:
        file.write('{"step": 6, "lo')  # cut off when the process was killed
    card = train(other, tmp_path)
    assert equal(weights(request_.path), weights(other.path))
    for one, two in zip(trainer.log(request_.path), trainer.log(other.path), strict=True):
        assert {**one, "seconds": 0} == {**two, "seconds": 0}
    assert card["digest"] == straight["digest"]
    assert card["held_out"] == straight["held_out"]


def test_the_tuned_model_is_probed_under_a_name_of_its_own(request_, tmp_path):
    card = train(request_, tmp_path)
    tuned, start = registry.load_model(card["tuned"], "cpu"), registry.load_model(request_.model, "cpu")
    assert card["tuned"] == f"{request_.model}@{request_.path}"
    assert (tuned.digest, start.digest) == (card["digest"], card["start_digest"])
    assert tuned.digest != start.digest
    for name, before in start.module.state_dict().items():
        assert not torch.equal(before, tuned.module.state_dict()[name]), name


def test_a_tuned_model_can_be_tuned_again(request_, tmp_path):
    first = train(request_, tmp_path)
    again = train(replace(request_, model=first["tuned"], output=str(tmp_path / "again.safetensors")), tmp_path)
    assert again["start_digest"] == first["digest"]
    assert again["tuned"] == f"{request_.model}@{tmp_path / 'again.safetensors'}"


def test_the_card_says_how_the_weights_were_made(request_, tiny, tmp_path):
    card = train(request_, tmp_path)
    assert json.loads(request_.path.with_suffix(".json").read_text()) == json.loads(json.dumps(card))
    assert {**card, **json.loads(json.dumps(asdict(request_)))} == {**card, "datasets": [tiny]}
    data = registry.load_dataset(tiny, tmp_path)
    assert card["data"] == [{"name": tiny, "digest": data.digest, "items": 6}]
    assert card["held_out"]["items"] == 2


def test_the_log_has_every_step_and_the_held_out_losses(request_, tmp_path):
    card = train(request_, tmp_path)
    lines = trainer.log(request_.path)
    steps = [line for line in lines if "held_out" not in line]
    assert [line["step"] for line in steps] == [1, 2, 3, 4, 5, 6]
    assert {"loss", "rate", "seconds", "clip", "eqsim", "sc", "consistency"} <= set(steps[0])
    judged = [line for line in lines if "held_out" in line]
    assert [line["step"] for line in judged] == [0, 2, 4, 6]
    assert (judged[0]["held_out"], judged[-1]["held_out"]) == (card["held_out"]["before"], card["held_out"]["after"])


def test_what_is_held_out_is_judged_alike_whatever_is_trained(request_, tmp_path):
    plain = replace(request_, output=str(tmp_path / "plain.safetensors"), loss="clip", seed=5)
    cards = [train(one, tmp_path) for one in (request_, plain)]
    assert cards[0]["held_out"]["before"] == cards[1]["held_out"]["before"]
    assert set(cards[1]["held_out"]["after"]) >= {"clip", "eqsim", "sc", "consistency"}


def test_the_same_request_again_answers_at_once(request_, tmp_path, monkeypatch):
    card = train(request_, tmp_path)
    monkeypatch.setattr(Learner, "learn", lambda *_: pytest.fail("trained again"))
    assert train(request_, tmp_path) == json.loads(json.dumps(card))


def test_another_request_does_not_overwrite_weights_nor_go_on_from_anothers_state(request_, tmp_path):
    train(request_, tmp_path)
    with pytest.raises(InvalidInput, match="from another training"):
        train(replace(request_, seed=1), tmp_path)

    def stop(label, done, of):
        if done == 2:
            raise Stopped

    other = replace(request_, output=str(tmp_path / "other.safetensors"))
    with pytest.raises(Stopped):
        train(other, tmp_path, stop)
    with pytest.raises(InvalidInput, match="another training that was stopped"):
        train(replace(other, rate=0.001), tmp_path)
    (tmp_path / "other.state.pt").write_bytes(b"damaged")
    with pytest.raises(InvalidInput, match="Delete it"):
        train(other, tmp_path)


def test_the_seed_changes_the_weights(request_, tmp_path):
    train(request_, tmp_path)
    other = replace(request_, seed=1, output=str(tmp_path / "other.safetensors"))
    train(other, tmp_path)
    assert not equal(weights(request_.path), weights(other.path))


def test_training_leaves_the_threads_and_the_random_numbers_of_others_alone(request_, tmp_path):
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    train(request_, tmp_path)
    assert torch.equal(state, torch.get_rng_state())
    assert torch.get_num_threads() == threads


def test_a_demo_model_is_tuned_to_a_small_file_that_the_demo_family_loads(request_, tmp_path):
    demo = replace(request_, model="demo:softmax", steps=2)
    card = train(demo, tmp_path)
    assert card["tuned"] == f"demo:softmax@{demo.path}"
    assert demo.path.stat().st_size < 3_400_000
    start, tuned = (registry.load_model(name, "cpu").module for name in ("demo:softmax", card["tuned"]))
    assert not torch.equal(start.text_projection, tuned.text_projection)
    assert torch.equal(start.visual.bn1.running_mean, tuned.visual.bn1.running_mean)
    unknown = registry.load_model("demo:softmax", "cpu").tokenize(["zebra"])[0, 1]
    assert not tuned.token_embedding.weight[unknown].any()


def test_a_demo_name_with_a_file_that_is_none_is_refused_in_one_line(tmp_path):
    (tmp_path / "x.safetensors").write_bytes(b"nothing")
    for name in (f"demo:softmax@{tmp_path / 'x.safetensors'}", f"demo:softmax@{tmp_path / 'gone.safetensors'}"):
        with pytest.raises(InvalidInput, match="no checkpoint of a demo model"):
            registry.load_model(name)
    with pytest.raises(NotFound):
        registry.load_model(f"demo:other@{tmp_path / 'x.safetensors'}")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"model": "control:random"}, "cannot be trained"),
        ({"datasets": ("demo",)}, "'demo' is no data to train on"),
        ({"datasets": ("demo-train", "demo-pairs:val")}, "'demo-pairs:val' is no data"),
        ({"datasets": ()}, "no data to train on"),
        ({"output": "tuned.pt"}, "not a .safetensors file"),
        ({"loss": "eqsim"}, "needs clip or sigmoid"),
        ({"loss": "sigmoid"}, "no logit bias"),
        ({"freeze": "both"}, "freeze is 'both'"),
        ({"precision": "int8"}, "int8"),
        ({"steps": 0}, "steps is 0. Expected 1 or more"),
        ({"batch_size": 1}, "batch_size is 1"),
        ({"batch_size": 50}, "smaller --batch-size"),
        ({"rate": 0.0}, "rate is 0.0"),
        ({"margin": -1.0}, "margin -1.0"),
    ],
)
def test_what_cannot_be_trained_is_refused_in_one_line(request_, tmp_path, wrong, said):
    with pytest.raises(InvalidInput) as error:
        train(replace(request_, **wrong), tmp_path)
    assert said in str(error.value)
    assert "\n" not in str(error.value)
