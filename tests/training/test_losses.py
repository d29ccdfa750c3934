"""Losses compared with hand-computed matrices and plain loops, and gradients compared with finite differences."""

import math

import numpy as np
import open_clip.loss
import pytest
import torch
from torch.nn.functional import normalize

from vlprobe.training import losses

S = torch.tensor([[0.9, 0.4, 0.1], [0.2, 0.7, 0.3], [0.1, 0.0, 0.8]], dtype=torch.float64)


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def units(n: int, seed: int) -> torch.Tensor:
    return normalize(random(n, 5, seed=seed), dim=-1)


def is_close(loss: torch.Tensor, expected: float) -> bool:
    return loss.shape == () and loss.item() == pytest.approx(expected, abs=1e-12)


def test_the_contrastive_loss_is_the_mean_of_both_cross_entropies():
    def entropy(rows: list[list[float]]) -> float:
        return np.mean([math.log(sum(map(math.exp, row))) - row[i] for i, row in enumerate(rows)])

    expected = (entropy(S.tolist()) + entropy(S.T.tolist())) / 2
    assert is_close(losses.contrastive(S), expected)


@pytest.mark.parametrize("n", [2, 7])
def test_both_retrieval_losses_equal_those_of_open_clip(n):
    images, texts, scale, bias = units(n, 1), units(n, 2), torch.tensor(9.0), torch.tensor(-3.0)
    cosines = images @ texts.T
    assert is_close(
        losses.contrastive(scale * cosines), open_clip.loss.ClipLoss()(images, texts, scale).item()
    )
    theirs = open_clip.loss.SigLipLoss()(images, texts, scale, bias).item()
    assert is_close(losses.sigmoid(scale * cosines + bias), theirs)


def test_eqsim_of_two_pairs_equals_the_value_by_hand():
    two = S[:2, :2]  # s11 .9, s12 .4, s21 .2, s22 .7
    assert losses.eqsim_v1(two)[0, 1].item() == pytest.approx((0.4 - 0.2) ** 2)
    text, image = (0.9 - 0.4) - (0.7 - 0.2), (0.9 - 0.2) - (0.7 - 0.4)
    assert losses.eqsim_v2(two)[0, 1].item() == pytest.approx(text**2 + image**2)
    assert is_close(losses.eqsim(two, k=2), text**2 + image**2)
    assert is_close(losses.eqsim(two, k=0), 0.04)


def test_the_margin_applies_to_each_pair_and_each_equation():
    assert torch.allclose(
        losses.eqsim_v1(S, 0.05), torch.tensor([[0, 0, 0], [0, 0, 0.04], [0, 0.04, 0]]).double()
    )
    # text: (.5 - .5)^2 = 0, image: (.7 - .3)^2 = .16
    assert losses.eqsim_v2(S, 0.06)[0, 1].item() == pytest.approx(0.10)
    assert losses.eqsim_v2(S, 0.2)[0, 1].item() == 0


def test_eqsim_is_symmetric_with_a_zero_diagonal():
    scores = random(6, 6)
    for pairs in (losses.eqsim_v1(scores), losses.eqsim_v2(scores)):
        assert torch.allclose(pairs, pairs.T)
        assert not pairs.diagonal().any()


def test_v2_is_stricter_than_v1():
    fair = torch.tensor([[0.9, 0.3], [0.3, 0.5]]).double()
    assert not losses.eqsim_v1(fair).any()
    assert losses.eqsim_v2(fair)[0, 1].item() == pytest.approx(2 * 0.4**2)
    even = torch.tensor([[0.9, 0.3], [0.3, 0.9]]).double()
    assert not losses.eqsim_v2(even).any()


def test_the_close_pairs_are_the_nearest_texts_and_the_nearest_pictures():
    # nearest other text of each picture: 1, 2, 0; nearest other picture of each text: 1, 0, 1
    assert losses.close_pairs(S, 2).tolist() == [
        [False, True, True],
        [True, False, True],
        [True, True, False],
    ]
    apart = torch.tensor([[0, 9, 1, 0], [8, 0, 0, 0], [0, 0, 0, 7], [1, 0, 6, 0]]).double()
    pairs = {(0, 1), (1, 0), (2, 3), (3, 2)}
    assert {tuple(pair) for pair in losses.close_pairs(apart, 2).nonzero().tolist()} == pairs
    assert {tuple(pair) for pair in losses.close_pairs(apart, 1).nonzero().tolist()} == pairs


@pytest.mark.parametrize("variant", losses.EQSIM_VARIANTS)
@pytest.mark.parametrize("k", [0, 1, 3, 8, 100])
def test_each_variant_applies_v1_and_v2_to_its_pairs(k, variant):
    scores, margin = random(9, 9, seed=3), 0.3
    s = scores.numpy()
    texts = {
        (i, int(j))
        for i in range(9)
        for j in [j for j in np.argsort(-s[i]) if j != i][: (k + 1) // 2]
    }
    pictures = {
        (i, int(j)) for i in range(9) for j in [j for j in np.argsort(-s[:, i]) if j != i][: k // 2]
    }
    v1, v2 = [], []
    for i in range(9):
        for j in range(i + 1, 9):
            close = bool({(i, j), (j, i)} & (texts | pictures))
            text, image = (
                (s[i, i] - s[i, j]) - (s[j, j] - s[j, i]),
                (s[i, i] - s[j, i]) - (s[j, j] - s[i, j]),
            )
            if variant in ("v1", "v1+v2-close") or (variant == "hybrid" and not close):
                v1.append(max((s[i, j] - s[j, i]) ** 2 - margin, 0))
            if variant == "v2" or (close and variant != "v1"):
                v2.append(max(text**2 - margin, 0) + max(image**2 - margin, 0))
    expected = sum(np.mean(pairs) for pairs in (v1, v2) if pairs)
    assert is_close(losses.eqsim(scores, k, margin, variant), expected)


def test_eqsim_is_the_hybrid_variant_by_default():
    scores = random(9, 9, seed=3)
    assert losses.eqsim(scores, 3) == losses.eqsim(scores, 3, 0.0, "hybrid")
    assert len({losses.eqsim(scores, 3, 0.0, v).item() for v in losses.EQSIM_VARIANTS}) == 5


@pytest.mark.parametrize("k", [0, 2, 6, 100])
def test_hard_negatives_are_the_highest_scoring_mismatches_of_each_row_and_column(k):
    s = random(7, 7, seed=4).numpy()

    def entropy(rows: np.ndarray) -> float:
        lost = []
        for i, row in enumerate(rows):
            others = sorted((score for j, score in enumerate(row) if j != i), reverse=True)[:k]
            lost.append(math.log(sum(map(math.exp, [row[i], *others]))) - row[i])
        return float(np.mean(lost))

    loss = losses.hard_negatives(torch.from_numpy(s), k)
    assert is_close(loss, (entropy(s) + entropy(s.T)) / 2)
    if k >= 6:
        assert loss.item() == pytest.approx(losses.contrastive(torch.from_numpy(s)).item())


def test_the_loss_of_a_corrupted_caption_uses_its_picture_and_its_caption():
    altered = torch.tensor([[1.0, 0.0], [0.6, 0.8]])
    images = torch.tensor([[0.0, 1.0], [0.6, 0.8]])
    texts = torch.tensor([[0.8, 0.6], [0.0, 1.0]])
    assert losses.corrupted(altered, images, texts).item() == pytest.approx(
        ((0 + 0.8) / 2 + (1 + 0.8) / 2) / 2
    )


def test_consistency_is_the_invariance_error():
    images, texts, paraphrases = units(4, 1), units(4, 2), units(4, 3)
    moved = [
        abs(float(i @ t) - float(i @ p)) for i, t, p in zip(images, texts, paraphrases, strict=True)
    ]
    assert is_close(losses.consistency(images, texts, paraphrases), np.mean(moved))
    assert is_close(losses.consistency(images, texts, texts), 0)


def test_a_flip_with_an_equal_score_costs_log_two_and_weights_select_rows():
    images, texts, flips, scale = units(3, 1), units(3, 2), units(3, 3), torch.tensor(7.0)
    assert is_close(losses.discrimination(images, texts, texts, scale, torch.ones(3)), math.log(2))
    gaps = ((images * texts).sum(1) - (images * flips).sum(1)).tolist()
    expected = (math.log1p(math.exp(-7 * gaps[0])) + 3 * math.log1p(math.exp(-7 * gaps[2]))) / 4
    assert is_close(
        losses.discrimination(images, texts, flips, scale, torch.tensor([1.0, 0.0, 3.0])), expected
    )


def test_the_flip_loss_has_no_gradient_for_the_scale():
    scale = torch.tensor(7.0, requires_grad=True)
    images = units(3, 1).requires_grad_()
    losses.discrimination(images, units(3, 2), units(3, 3), scale, torch.ones(3)).backward()
    assert images.grad.any()
    assert scale.grad is None


def test_flip_strengths_are_half_the_prior_and_half_the_distance():
    texts = torch.tensor([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    flips = torch.tensor([[1.0, 0.0], [0.6, 0.8], [-1.0, 0.0]])
    found = losses.strengths(np.array(["color", "number", "object"]), texts, flips)
    assert found == pytest.approx([0.125, 0.5 * 0.55 + 0.5 * 0.4, 1.0])


def test_the_curriculum_starts_with_the_weakest_flips_and_ends_with_all():
    strength = np.array([0.5, 0.1, 0.9, 0.3, 0.7])
    assert losses.curriculum(strength, 0).tolist() == [0, 1, 0, 1, 0]
    assert losses.curriculum(strength, 0.25).tolist() == [1, 1, 0, 1, 0]
    assert (
        losses.curriculum(strength, 0.5).tolist()
        == losses.curriculum(strength, 1).tolist()
        == [1] * 5
    )
    counted = [losses.curriculum(strength, done).sum() for done in np.linspace(0, 1, 21)]
    assert counted == sorted(counted)
    assert losses.curriculum(np.array([0.4]), 0).tolist() == [1]


@pytest.mark.parametrize(
    ("loss", "shapes"),
    [
        (losses.contrastive, [(4, 4)]),
        (losses.sigmoid, [(4, 4)]),
        (lambda s: losses.eqsim(s, 3, 0.1), [(5, 5)]),
        (lambda s: losses.eqsim(s.softmax(dim=1), 2, 0.001), [(5, 5)]),
        (lambda s: losses.eqsim(s, 3, 0.1, "v1+v2-close"), [(5, 5)]),
        (lambda s: losses.hard_negatives(s, 2), [(5, 5)]),
        (losses.corrupted, [(4, 3)] * 3),
        (losses.consistency, [(4, 3)] * 3),
        (
            lambda i, t, f: losses.discrimination(i, t, f, torch.tensor(3.0), torch.arange(4.0)),
            [(4, 3)] * 3,
        ),
    ],
)
def test_gradients_equal_finite_differences(loss, shapes):
    given = [random(*shape, seed=seed + 5).requires_grad_() for seed, shape in enumerate(shapes)]
    assert torch.autograd.gradcheck(loss, given)
