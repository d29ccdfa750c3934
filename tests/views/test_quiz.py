"""Questions of the quiz match a loop over stored cases, and people are compared on the same questions."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from vlprobe import views
from vlprobe.metrics import estimate
from vlprobe.storage.store import Store
from vlprobe.types import Picture
from vlprobe.views import quiz
from vlprobe.views.quiz import Ballot
from vlprobe.views.runs import QuestionSet

MODELS = ("dealt:1", "dealt:2")


@pytest.fixture(scope="module")
def question_set(filled: Store, key: str) -> QuestionSet:
    return views.runs.question_set(filled, key)


@pytest.fixture(scope="module")
def sets(every_probe: Store) -> dict[str, QuestionSet]:
    table = views.runs.question_sets(every_probe)
    return {
        probe: views.runs.question_set(every_probe, case_key)
        for probe, case_key in zip(table["probe"], table["case_key"], strict=True)
    }


def test_the_quiz_uses_only_kinds_with_a_true_and_a_wrong_caption_for_a_picture(sets):
    kinds = {probe: quiz.quiz_kinds(probe) for probe in sets}
    assert kinds["lgip"] == ("flip", "combined")
    assert kinds["rococo"] == kinds["prsm"] == ()
    assert "pair" in kinds["eqben"] and "foil" in kinds["eqben"] and "i2t" in kinds["visla"]
    assert "t2t" not in kinds["visla"]


@pytest.mark.parametrize("draw", ["hard", "fair"])
def test_a_question_has_its_case_s_captions_and_every_model_s_verdict(
    filled: Store, question_set: QuestionSet, rows: pd.DataFrame, draw: quiz.Draw
):
    drawn = quiz.quiz_round(question_set, "flip", draw, seed=3)
    assert drawn.models == MODELS and len(drawn.questions) > 3
    cases = pd.read_parquet(filled.root / "cases" / question_set.key / "cases.parquet")
    cases = cases.set_index("case")
    margins = rows.set_index("case")
    for question in drawn.questions:
        true, lie = cases.loc[question.case, "texts"]
        assert question.captions[question.true_index] == true
        assert question.captions[1 - question.true_index] == lie
        for caption, segments in zip(question.captions, question.segments, strict=True):
            assert "".join(text for text, _ in segments).split() == caption.split()
            assert any(differs for _, differs in segments)
        for verdict in question.verdicts:
            margin = margins.loc[question.case, verdict.model]
            assert verdict.margin == pytest.approx(margin, abs=1e-7)
            assert (verdict.verdict == "held") == (margin > 0)
        assert question.n_fooled == sum(margins.loc[question.case, list(MODELS)] <= 0)
    flips = rows[rows["kind"] == "flip"]
    assert drawn.n_cases == len(flips)
    assert drawn.shares == pytest.approx([(flips[name] > 0).mean() for name in MODELS])


def test_hard_questions_fooled_two_thirds_of_the_models_on_different_pictures(
    filled: Store, question_set: QuestionSet
):
    drawn = quiz.quiz_round(question_set, "flip", "hard", seed=1, count=3)
    assert drawn.n_fooled == math.ceil(2 / 3 * 2) == 2 and len(drawn.questions) == 3
    assert all(question.n_fooled >= 2 for question in drawn.questions)
    pictures = [question.picture for question in drawn.questions]
    assert len(set(pictures)) == len(pictures)


def test_a_round_with_too_few_hard_questions_lowers_the_required_number_of_models(
    filled: Store, question_set: QuestionSet
):
    six = quiz.quiz_round(question_set, "flip", "hard", seed=1, count=6)
    assert len(six.questions) == 6 and six.n_fooled == 1
    assert min(question.n_fooled for question in six.questions) == 1
    hard = quiz.quiz_round(question_set, "flip", "hard", seed=1, count=3).questions
    n_hard = sum(question.n_fooled == 2 for question in six.questions)
    assert n_hard >= len(hard)  # these stay


def test_a_round_about_few_pictures_has_their_hardest_cases():
    fooled, pictures = np.array([3, 1, 3, 1, 2, 1]), np.array([0, 0, 1, 1, 2, 2])
    for seed in range(20):
        generator = np.random.default_rng(seed)
        positions = quiz._hard(np.arange(6), pictures, fooled, 3, (), generator, 10)
        assert sorted(positions.tolist()) == [0, 2, 4]


def test_the_same_seed_gives_the_same_questions_in_the_same_order(
    filled: Store, question_set: QuestionSet
):
    again = [quiz.quiz_round(question_set, "flip", "fair", seed=5) for _ in range(2)]
    other = quiz.quiz_round(question_set, "flip", "fair", seed=6)
    assert again[0] == again[1] != other


def test_the_true_caption_is_first_half_of_the_time_and_cases_are_drawn_uniformly(
    filled: Store, question_set: QuestionSet, rows: pd.DataFrame
):
    drawn = [quiz.quiz_round(question_set, "flip", "fair", seed) for seed in range(60)]
    questions = [question for each in drawn for question in each.questions]
    assert np.mean([question.true_index for question in questions]) == pytest.approx(0.5, abs=0.08)
    counts = pd.Series([question.case for question in questions]).value_counts()
    n_cases = int((rows["kind"] == "flip").sum())
    assert len(counts) == n_cases  # every case is drawn
    expected = len(questions) / n_cases
    # chi square, mean n_cases - 1
    assert ((counts - expected) ** 2 / expected).sum() < 1.5 * n_cases


def test_the_quiz_margin_of_a_case_compares_only_the_two_shown_captions(
    every_probe: Store, sets: dict[str, QuestionSet]
):
    for probe, kind in (("eqben", "pair"), ("visla", "i2t")):
        of_probe = sets[probe]
        cases = pd.read_parquet(every_probe.root / "cases" / of_probe.key / "cases.parquet")
        numbers = cases.loc[cases["kind"] == kind, "case"].to_numpy()[:6]
        models = ("control:random",)
        margins = quiz.quiz_margins(of_probe, kind, models, numbers)
        scores = pd.read_parquet(
            every_probe.root / "runs" / of_probe.run(models[0]).key / "scores.parquet"
        ).set_index("case")["scores"]
        lies = [list(cases["roles"][number]).index("different") for number in numbers]
        expected = [
            scores[number][0] - scores[number][lie]
            for number, lie in zip(numbers, lies, strict=True)
        ]
        assert margins[0] == pytest.approx(expected, abs=1e-6)


def test_controls_take_no_part_in_the_quiz(every_probe: Store, sets: dict[str, QuestionSet]):
    drawn = quiz.quiz_round(sets["lgip"], "flip", "fair")
    assert drawn.models == () and drawn.questions and not drawn.questions[0].verdicts
    hard = quiz.quiz_round(sets["lgip"], "flip", "hard")
    assert hard.questions == ()


def test_a_missing_picture_is_not_used_in_the_quiz(
    filled: Store, question_set: QuestionSet, monkeypatch: pytest.MonkeyPatch
):
    gone = quiz.quiz_round(question_set, "flip", "fair", seed=2).questions[0].picture
    is_file = Path.is_file
    monkeypatch.setattr(Path, "is_file", lambda path: str(path) != gone and is_file(path))
    assert Picture.from_name(gone).path.exists()
    for seed in range(8):
        drawn = quiz.quiz_round(question_set, "flip", "fair", seed)
        assert gone not in [question.picture for question in drawn.questions]


def ballots(rows: pd.DataFrame, right: float, n_people: int = 20) -> list[Ballot]:
    """Return one ballot per person and flip, right at the given rate."""
    flips = rows[rows["kind"] == "flip"]
    codes = np.unique(flips["item"], return_inverse=True)[1]
    coins = np.random.default_rng(0).random((n_people, len(flips)))
    return [
        Ballot(person, int(case), int(code), bool(coins[person, place] < right))
        for person in range(n_people)
        for place, (case, code) in enumerate(zip(flips["case"], codes, strict=True))
    ]


def test_people_are_compared_with_each_model_on_the_same_questions(
    filled: Store, question_set: QuestionSet, rows: pd.DataFrame
):
    answers = ballots(rows, 0.95)
    baseline = quiz.human_baseline(question_set, "flip", answers, MODELS)
    flips = rows[rows["kind"] == "flip"]
    assert (baseline.n_people, baseline.n_cases) == (20, len(flips))
    assert baseline.n_votes == len(answers) and baseline.n_pictures == len(set(flips["item"]))
    right = np.mean([ballot.is_right for ballot in answers])
    assert baseline.right.value == pytest.approx(right)
    for model in baseline.models:
        rate = (flips[model.model] > 0).mean()
        assert model.rate == pytest.approx(rate)
        assert model.difference.value == pytest.approx(right - rate)
        assert model.verdict == "better" and model.difference.low > 0
    p_values = [model.difference.p for model in baseline.models]
    assert [model.p_holm for model in baseline.models] == pytest.approx(estimate.holm(p_values))


def test_people_who_guess_are_tied_with_models_that_guess(
    filled: Store, question_set: QuestionSet, rows: pd.DataFrame
):
    baseline = quiz.human_baseline(question_set, "flip", ballots(rows, 0.5), MODELS)
    assert {model.verdict for model in baseline.models} == {"tied"}


def test_only_a_person_s_first_vote_on_a_case_counts(
    filled: Store, question_set: QuestionSet, rows: pd.DataFrame
):
    answers = ballots(rows, 0.7)
    changed = [dataclasses.replace(ballot, is_right=not ballot.is_right) for ballot in answers]
    baselines = [
        quiz.human_baseline(question_set, "flip", votes, MODELS)
        for votes in (answers, answers + changed)
    ]
    assert baselines[0] == baselines[1]


def test_people_are_compared_only_from_thirty_cases(filled: Store, question_set: QuestionSet, rows):
    answers = ballots(rows, 0.9)
    baseline = quiz.human_baseline(question_set, "flip", answers, MODELS)
    assert baseline.n_cases == 28 and not baseline.says_something
    assert not dataclasses.replace(baseline, n_cases=29).says_something
    assert dataclasses.replace(baseline, n_cases=30).says_something
    none = quiz.human_baseline(question_set, "flip", [], MODELS)
    assert none.n_cases == 0 and math.isnan(none.right.value) and not none.says_something
    assert {model.verdict for model in none.models} == {""}
