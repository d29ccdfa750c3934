import copy
import math
import time

import numpy as np
import pytest
import torch

from vlprobe.errors import InvalidInput
from vlprobe.training.batches import Batch
from vlprobe.training.learner import Learner, keep_scale, optimizer, schedule
from vlprobe.training.objective import PARTS, Settings

EVERYTHING = {"clip": 1.0, "eqsim": 0.5, "sc": 0.3, "vc": 0.2, "consistency": 2.0, "flip": 0.7}


@pytest.fixture
def batch() -> Batch:
    """Return a batch of six rows with every alteration that a loss can use."""
    rng = np.random.default_rng(0)
    mixed, corrupted, reworded, flipped = (
        np.array(rows) for rows in ([0, 2, 5], range(6), [1, 2, 3, 4], [0, 4])
    )
    tokens = np.zeros((6 + 6 + 4 + 2, 32), np.int64)
    tokens[:, :5] = rng.integers(1, 400, (18, 5))
    tokens[:, 5] = 511
    pixels = rng.normal(size=(6 + 3, 3, 16, 16)).astype(np.float32)
    return Batch(
        6,
        pixels,
        tokens,
        mixed,
        corrupted,
        reworded,
        flipped,
        np.array(["color", "object"], dtype=object),
    )


def learner(model, weights=EVERYTHING, **options) -> Learner:
    return Learner(
        copy.deepcopy(model),
        weights,
        Settings(),
        **{"rate": 0.01, "decay": 0.1, "warm_up": 0, "steps": 9} | options,
    )


def train_steps(small, batch, steps=2, **options) -> dict[str, torch.Tensor]:
    made = learner(small, **options)
    for step in range(steps):
        made.learn(batch, step)
    return {name: value.detach().clone() for name, value in made.model.named_parameters()}


def test_a_step_changes_every_weight(small, batch):
    after = train_steps(small, batch, 1)
    for name, before in small.named_parameters():
        assert not torch.equal(before, after[name]), name


@pytest.mark.parametrize("piece", [1, 4, 7])
def test_pieces_give_the_gradients_of_the_whole_batch(small, batch, piece):
    whole, pieces = learner(small), learner(small, piece=piece)
    reports = [one.learn(batch, 0) for one in (whole, pieces)]
    assert reports[0] == pytest.approx(reports[1], rel=1e-5, abs=1e-6)
    for (name, one), other in zip(
        whole.model.named_parameters(), pieces.model.parameters(), strict=True
    ):
        assert torch.allclose(one.grad, other.grad, rtol=1e-3, atol=1e-6), name


@pytest.mark.parametrize("piece", [0, 4])
@pytest.mark.parametrize("tower", ["image", "text"])
def test_a_frozen_tower_does_not_change_and_the_other_learns(small, batch, tower, piece):
    after = train_steps(small, batch, freeze=tower, piece=piece)
    for name, before in small.named_parameters():
        tower_of_weight = "image" if name.startswith("visual.") else "text"
        assert torch.equal(before, after[name]) == (
            tower_of_weight == tower and not name.startswith("logit_")
        ), name


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_learning_lowers_the_loss_in_every_precision(small, batch, precision):
    made = learner(small, {"clip": 1.0}, rate=0.003, steps=40, precision=precision)
    reports = [made.learn(batch, step)["loss"] for step in range(40)]
    assert reports[0] > 1.5
    assert reports[-1] < 0.5
    assert all(value.dtype == torch.float32 for value in made.model.parameters())


def test_the_loss_is_the_weighted_sum_of_its_parts(small, batch):
    reports = learner(small).learn(batch, 0)
    assert reports["loss"] == pytest.approx(
        sum(weight * reports[name] for name, weight in EVERYTHING.items()), rel=1e-5
    )
    assert set(reports) == {*EVERYTHING, "loss", "rate"}


def test_evaluation_reports_every_part_and_changes_no_weight(small, batch):
    made = learner(small, {"clip": 1.0})
    losses_by_part = made.judge(batch, PARTS.keys())
    assert set(losses_by_part) == {*EVERYTHING, "hardneg"}
    assert all(
        torch.equal(one, other)
        for one, other in zip(small.parameters(), made.model.parameters(), strict=True)
    )


def test_dropout_and_batch_norm_are_off_during_training(small, batch):
    made = learner(small)
    made.learn(batch, 0)
    assert not any(part.training for part in made.model.modules())


def test_a_nan_loss_stops_training_without_changing_weights(small, batch):
    batch.pixels[0] = np.nan
    made = learner(small)
    with pytest.raises(InvalidInput, match="nan at step 3"):
        made.learn(batch, 3)
    assert all(
        torch.equal(one, other)
        for one, other in zip(small.parameters(), made.model.parameters(), strict=True)
    )


def test_the_sigmoid_loss_needs_a_bias(small):
    with pytest.raises(InvalidInput, match="no logit bias"):
        learner(small, {"sigmoid": 1.0})


def test_the_learning_rate_warms_up_and_decays_along_half_a_cosine():
    rates = [schedule(step, 100, 10) for step in range(101)]
    assert rates[:10] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert rates[55] == pytest.approx(0.5)
    assert rates[100] == pytest.approx(0)
    assert schedule(0, 5, 0) == 1


def test_the_learning_rate_of_a_step_is_reported_and_used(small, batch):
    made = learner(small, {"clip": 1.0}, steps=8)
    rate = made.learn(batch, 4)["rate"]
    assert rate == pytest.approx(0.005)
    assert {group["lr"] for group in made.optimizer.param_groups} == {rate}


def test_weight_decay_applies_to_tables_and_not_to_biases_gains_and_the_scale(small):
    decays, does_not = optimizer(small, 1e-3, 0.1).param_groups
    assert (decays["weight_decay"], does_not["weight_decay"]) == (0.1, 0)
    assert min(value.ndim for value in decays["params"]) == 2
    assert any(value is small.logit_scale for value in does_not["params"])
    assert len(decays["params"]) + len(does_not["params"]) == len(list(small.parameters()))


def test_the_scale_stays_below_100_unless_it_started_above(small, batch):
    scale = torch.nn.Parameter(torch.tensor(9.0))
    keep_scale(scale, 100)
    assert scale.item() == pytest.approx(math.log(100))
    small.logit_scale.data.fill_(math.log(117))
    made = learner(small, {"clip": 1.0}, rate=1e-9)
    made.learn(batch, 0)
    assert made.model.logit_scale.exp().item() == pytest.approx(117, rel=1e-3)


def test_the_time_of_added_loss_terms_is_measured_against_the_batch_without_them(
    small, batch, monkeypatch
):
    made = learner(small)
    before = {name: value.clone() for name, value in made.model.state_dict().items()}
    seconds = iter(
        # for each pair: start, end of the pass without the terms, end of the full pass; the first pair warms up
        [0, 9, 9.5, *(10, 12, 15), *(20, 22, 24.2), *(30, 32, 34.4), *(40, 42, 44.6), *(50, 52, 59)]
    )
    seen, order = [], []
    zeros, original = torch.zeros, made._backward

    def backward(*arguments):
        seen.append((len(arguments[0].tokens), {*arguments[1]}))
        original(*arguments)
        order.append("backward")

    monkeypatch.setattr(time, "perf_counter", lambda: order.append("clock") or next(seconds))
    monkeypatch.setattr(torch, "zeros", lambda *a, **k: order.append("wait") or zeros(*a, **k))
    monkeypatch.setattr(made, "_backward", backward)
    assert made.added_time(batch) == pytest.approx(0.3)  # the median of .5, .1, .2, .3 and 2.5
    assert seen == [(6, {"clip"}), (18, set(EVERYTHING))] * 6
    after = [
        tuple(order[place + 1 : place + 3])
        for place, each in enumerate(order)
        if each == "backward"
    ]
    assert after == [("wait", "clock")] * 12  # waits for the GPU before reading the clock
    assert all(torch.equal(value, before[name]) for name, value in made.model.state_dict().items())
    assert math.isnan(learner(small, {"clip": 1.0}).added_time(batch))
