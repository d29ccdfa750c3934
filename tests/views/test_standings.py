"""Every pair of models with one joint correction, and the first case of a talk."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest

from tests.conftest import question_set_of
from vlprobe import views
from vlprobe.registry import is_control
from vlprobe.storage.store import Store
from vlprobe.views import story
from vlprobe.views.paired_tests import compare_models, rank_models

KINDS = ("flip", "combined", "paraphrase")


@pytest.mark.parametrize("kind", KINDS)
def test_shares_match_a_loop_and_pairs_match_compare(
    filled: Store, key: str, rows: pd.DataFrame, kind: str
):
    question_set = views.runs.question_set(filled, key)
    everyone = rank_models(question_set, kind)
    of_kind = rows[rows["kind"] == kind]
    assert [one.model for one in everyone.contestants] == list(question_set.ordered_models)
    for one in everyone.contestants:
        answers = of_kind[one.model].dropna()
        moved = -answers.mean() if kind == "paraphrase" else (answers <= 0).mean()
        assert one.share == pytest.approx(moved, rel=1e-6)
    fit = [one.model for one in everyone.contestants if not is_control(one.model)]
    pairs = list(itertools.combinations(fit, 2))
    assert [(pair.baseline, pair.model) for pair in everyone.rows] == pairs
    for pair in everyone.rows:
        row = compare_models(question_set, (pair.baseline, pair.model), kind).rows[0]
        assert pair.p == pytest.approx(row.p, abs=1e-12)
        assert (pair.difference, pair.low, pair.high) == pytest.approx(
            (row.difference, row.low, row.high)
        )


def test_pairs_are_corrected_together(mixed_store: Store):
    question_set = question_set_of(mixed_store)
    everyone = rank_models(question_set, "t2i")
    p = sorted(pair.p for pair in everyone.rows)
    assert len(p) == 3
    raised = list(itertools.accumulate((min(1, (3 - i) * value) for i, value in enumerate(p)), max))
    assert sorted(pair.p_holm for pair in everyone.rows) == pytest.approx(raised)
    for pair in everyone.rows:
        forth = everyone.verdict(pair.model, pair.baseline)
        back = everyone.verdict(pair.baseline, pair.model)
        assert {forth, back} in ({"fewer", "more"}, {"tied"}, {"unknown"})
    assert everyone.verdict("control:random", "hue:1") == "unknown"


def test_shares_by_type_count_only_models_with_passed_checks(
    filled: Store, key: str, rows: pd.DataFrame
):
    question_set = views.runs.question_set(filled, key)
    everyone = rank_models(question_set, "flip")
    fit = [one.model for one in everyone.contestants if one.is_fit]
    of_kind = rows[rows["kind"] == "flip"]
    for row in everyone.shares:
        of_type = of_kind.loc[of_kind["subtype"] == row.subtype, fit].to_numpy()
        assert row.n_answers == (~np.isnan(of_type)).sum()
        assert row.share == pytest.approx((of_type <= 0).sum() / row.n_answers)
        is_few = rows.query("kind == 'flip' and subtype == @row.subtype")["item"].nunique() < 5
        assert math.isnan(row.low) if is_few else row.low <= row.share <= row.high


@pytest.mark.parametrize("kind", KINDS)
def test_a_talk_begins_with_the_cases_that_fool_most_models_one_per_picture(
    filled: Store, key: str, rows: pd.DataFrame, kind: str
):
    question_set = views.runs.question_set(filled, key)
    numbers = story.order(question_set, kind)
    models = [name for name in question_set.models if not is_control(name)]
    fooled = (rows[models] <= 0).sum(axis=1)[rows["kind"] == kind]
    best = fooled.groupby(rows["item"]).max().sort_values(ascending=False).tolist()
    assert sorted(fooled[numbers].tolist(), reverse=True) == fooled[numbers].tolist() == best
    codes = views.tables.CaseTable(filled, key).picture_codes[numbers]
    assert len(np.unique(codes)) == len(codes)


def test_another_one_cycles_through_the_cases(filled: Store, key: str):
    question_set = views.runs.question_set(filled, key)
    first = story.opener(question_set, "flip")
    assert first is not None
    opener, seen = first, []
    while opener.card.id not in seen:
        seen.append(opener.card.id)
        following = story.opener(question_set, "flip", opener.next)
        assert following is not None
        opener = following
    assert len(seen) > 2 and opener.card.id == first.card.id
    assert story.opener(question_set, "flip", "no such case") == first


def talk_of(store: Store) -> tuple[str, list[str]]:
    """Return the dataset and the models of the first question set."""
    row = views.runs.question_set_rows(store)[0]
    return row.dataset, row.models


def test_a_talk_has_a_mixture_of_its_pictures(mixed_store: Store):
    mixture = story.mixture(mixed_store, *talk_of(mixed_store))
    assert mixture is not None
    assert mixture.n_models == 3 and 1 <= mixture.n_fooled <= 3
    assert mixture.case.is_lost_to_own and mixture.case.mixture
    assert mixture.case.ranks_of(mixture.model).clean == 1
    assert 0 < mixture.n_lost <= mixture.n_found


def test_a_talk_without_mixed_pictures_has_no_mixture(filled: Store):
    assert story.mixture(filled, *talk_of(filled)) is None


@pytest.mark.parametrize("kind", KINDS)
def test_models_of_a_group_are_tied_and_others_are_not(filled: Store, key: str, kind: str):
    everyone = rank_models(views.runs.question_set(filled, key), kind)
    groups = everyone.tie_groups
    assert {model for group in groups for model in group} == {one.model for one in everyone.fit}
    for one, other in itertools.combinations([each.model for each in everyone.fit], 2):
        is_together = any({one, other} <= set(group) for group in groups)
        assert is_together == (everyone.verdict(one, other) == "tied")
