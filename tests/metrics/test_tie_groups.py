"""Groups of tied models: cliques that cover exactly the ties, against all subsets of a few models."""

import itertools

import numpy as np
import pytest

from vlprobe.metrics.tie_groups import group_letters, tie_groups


def random_ties(models: list[str], seed: int) -> set[frozenset[str]]:
    rng = np.random.default_rng(seed)
    return {frozenset(pair) for pair in itertools.combinations(models, 2) if rng.random() < 0.5}


@pytest.mark.parametrize("seed", range(12))
def test_two_models_share_a_letter_exactly_if_they_are_tied(seed: int):
    models = list("ABCDEFGH")
    tied = random_ties(models, seed)
    letters = group_letters(tie_groups(models, tied))
    assert set(letters) == set(models)
    for pair in itertools.combinations(models, 2):
        one, other = (set(letters[model]) for model in pair)
        assert bool(one & other) == (frozenset(pair) in tied)


@pytest.mark.parametrize("seed", range(12))
def test_no_group_can_be_extended(seed: int):
    models = list("ABCDEFG")
    tied = random_ties(models, seed)

    def is_group(members: tuple[str, ...]) -> bool:
        return all(frozenset(pair) in tied for pair in itertools.combinations(members, 2))

    subsets = [
        members
        for n in range(1, 8)
        for members in itertools.combinations(models, n)
        if is_group(members)
    ]
    largest = [one for one in subsets if not any(set(one) < set(other) for other in subsets)]
    groups = tie_groups(models, tied)
    assert set(groups) <= set(largest) and len(groups) == len(set(groups))


def test_a_chain_of_ties_is_not_one_group():
    chain = {frozenset(pair) for pair in ("AB", "BC", "CD")}
    assert tie_groups("ABCD", chain) == [("A", "B"), ("B", "C"), ("C", "D")]


def test_ties_among_neighbors_of_200_models_form_the_fewest_groups():
    models = [f"m{number:03}" for number in range(200)]
    tied = {
        frozenset((models[one], models[other]))
        for one, other in itertools.combinations(range(200), 2)
        if other - one <= 20
    }
    groups = tie_groups(models, tied)
    assert groups == [tuple(models[start : start + 21]) for start in range(180)]
    letters = group_letters(groups)  # more groups than letters, so numbers
    assert (letters["m000"], letters["m001"], letters["m199"]) == ("1", "1 2", "180")
