"""A search at every share of its mixture, against a gallery that is built and ranked again at each share."""

from dataclasses import replace

import numpy as np
import pytest

from tests import mixing
from tests.conftest import question_set_of, tiers
from vlprobe import registry
from vlprobe.perturb import mix
from vlprobe.scoring import mixtures, pictures
from vlprobe.scoring.mixtures import SHARES, ShareScores, Turn
from vlprobe.storage.store import Store
from vlprobe.types import Picture
from vlprobe.views.mixed import case as views_case
from vlprobe.views.mixed import searches, shares
from vlprobe.views.mixed.case import MixedCase
from vlprobe.views.mixed.shares import OWN, ModelTurn, Standing
from vlprobe.views.runs import QuestionSet

ONE = "hue:1"


@pytest.fixture(scope="module")
def question_set(mixed_store: Store) -> QuestionSet:
    return question_set_of(mixed_store)


def score_all_shares(case: MixedCase, model: str = ONE) -> ShareScores:
    images = [pictures.open_picture(Picture.from_name(name)) for name in (case.right, case.partner)]
    assert case.edit is not None
    made = mixtures.pictures_by_share(*images, case.edit)
    return mixtures.share_scores(mixing.load(model), case.caption, made)


def rank_again(store: Store, question_set: QuestionSet, case: MixedCase, share: int) -> dict:
    """Return the scores of all candidates, with the own mixture at one share and the others as in the run."""
    items = registry.load_dataset(question_set.runs[0].dataset, store.root).items
    paths = {item.id: item.image.path for item in items if item.image}
    kind, lam, seed = case.rule.split(":")
    number = int(seed.removeprefix("seed"))
    edits = mix.picture_edits(paths, kind, float(lam), number)
    if share < 100:
        edits[case.item] = mix.picture_edits(paths, kind, share / 100, number)[case.item]
    model = mixing.load(ONE)
    text = model.encode_texts(model.tokenize([case.caption]))[0]
    scores = {}
    for item, path in paths.items():
        for is_mixture, picture in ((False, Picture(path)), (True, Picture(path, edits[item]))):
            if is_mixture and item == case.item and share == 100:
                picture = Picture(path)
            pixels = model.preprocess(pictures.open_picture(picture))
            scores[item, is_mixture] = float(model.encode_images(pixels[None])[0] @ text)
    return scores


@pytest.mark.parametrize("subtype", tiers(["mix:0.8", "patch:0.8"], ("mix:0.8",)))
def test_ranks_and_the_first_five_match_a_gallery_with_another_mixture(
    mixed_store: Store, question_set: QuestionSet, subtype: str
):
    numbers = searches.outcomes(question_set, ONE).numbers
    chosen = [*searches.order(question_set, ONE, subtype)[0][:2], *numbers[::17]]
    for number in map(int, chosen):
        case = views_case.mixed_case(question_set, number, ONE)
        standings = shares.standings(case, ONE, case.fronts, score_all_shares(case))
        assert [standing.share for standing in standings] == list(SHARES)
        assert case.fronts is not None
        beside = shares.others(case.fronts, case.item)
        for standing in standings[::5]:
            scores = rank_again(mixed_store, question_set, case, standing.share)
            right, own = scores[case.item, False], scores[case.item, True]
            if standing.share < 100 and abs(right - own) < 1e-6:
                continue
            assert standing.is_won == (right > own + 1e-9)
            above = sum(
                score >= right - 1e-7
                for name, score in scores.items()
                if name != (case.item, False)
            )
            assert standing.right_rank == 1 + above
            by_score = sorted(scores, key=lambda name: -scores[name])
            if standing.share < 100:
                named = [
                    (case.item, True) if at == OWN else (beside[at].item, beside[at].is_mixture)
                    for at in standing.order
                ]
                # Of two candidates with equal scores up to rounding, either may be first.
                assert len(set(named)) == 5
                assert [scores[name] for name in named] == pytest.approx(
                    [scores[name] for name in by_score[:5]], abs=1e-6
                )
                places = [
                    place
                    for place, name in enumerate(by_score, 1)
                    if abs(scores[name] - own) < 1e-6
                ]
                assert standing.own_rank in (places if places[-1] <= 5 else [*places, 0])


def test_the_stored_answer_is_used_at_its_share(mixed_store: Store, question_set: QuestionSet):
    number = int(searches.order(question_set, ONE, "mix:0.8")[0][0])
    case = views_case.mixed_case(question_set, number, ONE)
    wrong = ShareScores(0.5, (0.5, *[0.1] * 25))  # as if the picture won everywhere
    standings = {
        standing.share: standing for standing in shares.standings(case, ONE, case.fronts, wrong)
    }
    assert (standings[80].is_won, standings[80].own_rank) == (False, 1)
    assert standings[80].right_rank == case.ranks_of(ONE).with_mixtures
    assert standings[82].is_won and standings[82].right_rank == case.ranks_of(ONE).with_mixtures - 1
    turn = shares.model_turn(ONE, wrong, {80: False}, 80)
    assert turn.turn == Turn(78, 3) and turn.wins[SHARES.index(80)] is False


def test_without_a_model_only_the_run_s_share_is_known(
    mixed_store: Store, question_set: QuestionSet
):
    number = int(searches.order(question_set, ONE, "mix:0.8")[0][0])
    case = views_case.mixed_case(question_set, number, ONE)
    (standing,) = shares.standings(case, ONE, case.fronts, None)
    assert (standing.share, standing.is_won, standing.own_rank) == (80, False, 1)
    older = replace(case, fronts=None)
    assert shares.standings(older, ONE, None, None) == (
        Standing(80, False, case.ranks_of(ONE).with_mixtures, 1, ()),
    )
    unknown = replace(older, is_lost_to_own=False)
    assert shares.standings(unknown, ONE, None, None)[0].is_won is None
    turn = shares.model_turn(ONE, None, {80: False, 60: True}, 80)
    known = {share: won for share, won in zip(SHARES, turn.wins, strict=True) if won is not None}
    assert turn.turn is None and known == {80: False, 60: True}


def test_without_stored_first_candidates_ranks_still_follow_the_shares(
    mixed_store: Store, question_set: QuestionSet
):
    number = int(searches.order(question_set, ONE, "mix:0.8")[0][0])
    case = views_case.mixed_case(question_set, number, ONE)
    scores = score_all_shares(case)
    known = shares.standings(case, ONE, case.fronts, scores)
    older = shares.standings(replace(case, fronts=None), ONE, None, scores)
    assert [standing.is_won for standing in older] == [standing.is_won for standing in known]
    assert [standing.right_rank for standing in older] == [each.right_rank for each in known]
    assert all(standing.order == () for standing in older)


def test_models_are_sorted_by_the_share_at_which_they_see_the_difference():
    wins = (None,) * 26
    turns = [
        ModelTurn("not asked", wins, None),
        ModelTurn("never", wins, Turn(0, 0)),
        ModelTurn("late", wins, Turn(60, 1)),
        ModelTurn("soon", wins, Turn(90, 1)),
    ]
    ordered = [each.model for each in shares.by_turn(turns)]
    assert ordered == ["soon", "late", "never", "not asked"]


def test_recomputed_scores_match_those_of_the_run(mixed_store: Store, question_set: QuestionSet):
    for number in searches.order(question_set, ONE, "mix:0.8")[0][:5].tolist():
        case = views_case.mixed_case(question_set, number, ONE)
        scores = score_all_shares(case)
        assert case.fronts is not None
        assert scores.right == pytest.approx(case.ranks_of(ONE).score, abs=1e-6)
        at_run = scores.mixtures[SHARES.index(80)]
        assert at_run == pytest.approx(case.fronts.own_score, abs=1e-6)
        assert np.isfinite(scores.mixtures).all()
