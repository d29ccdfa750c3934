import pytest

from vlprobe.errors import InvalidInput
from vlprobe.training import objective
from vlprobe.training.objective import Settings


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("clip", {"clip": 1}),
        ("clip+eqsim", {"clip": 1, "eqsim": 1}),
        (" 2 * sigmoid + .5*sc+0.25*vc ", {"sigmoid": 2, "sc": 0.5, "vc": 0.25}),
        ("clip+0.5*hardneg", {"clip": 1, "hardneg": 0.5}),
        ("0.1*consistency+clip+flip", {"consistency": 0.1, "clip": 1, "flip": 1}),
    ],
)
def test_a_formula_gives_the_weight_of_each_part(formula, expected):
    assert objective.weights(formula) == expected


@pytest.mark.parametrize(
    "formula", ["", "clip+", "clip+eqism", "clip+clip", "clip+0*sc", "clip-sc", "clip+1e3*sc"]
)
def test_an_invalid_formula_is_refused(formula):
    with pytest.raises(InvalidInput, match=r"not valid.*Terms: clip"):
        objective.weights(formula)


@pytest.mark.parametrize("formula", ["eqsim", "sc+vc", "clip+sigmoid"])
def test_a_formula_needs_exactly_one_retrieval_loss(formula):
    with pytest.raises(InvalidInput, match="needs either clip or sigmoid"):
        objective.weights(formula)


@pytest.mark.parametrize(
    "wrong",
    [
        {"eqsim": "v3"},
        {"scores": "logits"},
        {"close": -1},
        {"margin": -0.1},
        {"margin": float("nan")},
    ],
)
def test_invalid_loss_settings_are_refused(wrong):
    with pytest.raises(InvalidInput, match=r"Expected|at least 0"):
        objective.check(Settings(**wrong))
