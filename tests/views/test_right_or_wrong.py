"""Answers that are only right or wrong are counted and have no margin. One model was run in both orders."""

import csv
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import htpy
import numpy as np
import pytest

from tests.conftest import question_set_of
from tests.datasets.test_pairs import valse
from vlprobe import views
from vlprobe.case import html
from vlprobe.case import json as case_json
from vlprobe.case.card import bars as model_bars
from vlprobe.case.card import case_card, outcome
from vlprobe.errors import InvalidInput
from vlprobe.models import scores
from vlprobe.render import wall
from vlprobe.render.charts.styles import styles
from vlprobe.render.findings import verdict
from vlprobe.render.slides.case import case_slides
from vlprobe.render.words import presentations
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.store import Store
from vlprobe.views.filter import Filter
from vlprobe.views.records import AnswerRow
from vlprobe.views.runs import QuestionSet

N = 60
GENERATOR = np.random.default_rng(7)
FIRST, SECOND, ONCE = GENERATOR.random((3, N)) < [[0.8], [0.6], [0.7]]
SCORES = np.round(GENERATOR.random((N, 2)), 3)
SUBSETS = ("existence", "plurals")


def write(file: Path, rows: list[dict]) -> str:
    with file.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return f"scores:{file}"


def keys() -> list[str]:
    return [f"{SUBSETS[number % 2]}/k{number}" for number in range(N)]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write questions on missing pictures, and the files of answers."""
    folder = tmp_path_factory.mktemp("right_or_wrong")
    (folder / "valse").mkdir()
    for part, subset in enumerate(SUBSETS):
        rows = {
            f"k{number}": valse(image_file=f"p{number // 4}.png", foil=f"A man sleeps {number}.")
            for number in range(part, N, 2)
        }
        (folder / "valse" / f"{subset}.json").write_text(json.dumps(rows))
    return folder


@pytest.fixture(scope="module")
def names(data: Path) -> dict[str, str]:
    """Return the models: one with both orders, one with one order, and one with scores."""
    twice = [
        {"case": key, "correct_first": first, "correct_second": second}
        for key, first, second in zip(keys(), FIRST, SECOND, strict=True)
    ]
    once = [{"case": key, "correct": int(right)} for key, right in zip(keys(), ONCE, strict=True)]
    scored = [
        {"case": key, "c0_i0": caption, "c1_i0": foil}
        for key, (caption, foil) in zip(keys(), SCORES, strict=True)
    ]
    return {
        "twice": f"{write(data / 'twice.csv', twice)}+verdict+as=Asked twice",
        "once": f"{write(data / 'once.csv', once)}+verdict+as=Asked once",
        "scored": f"{write(data / 'scored.csv', scored)}+probability+as=Scored",
    }


@pytest.fixture(scope="module")
def store(data: Path, names: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(tmp_path_factory.mktemp("right_or_wrong") / "cache")
    dataset = f"pairs:{data / 'valse'}@{data}+unpictured"
    execute(Request(tuple(names.values()), dataset, "eqben"), store)
    return store


@pytest.fixture(scope="module")
def question_set(store: Store) -> QuestionSet:
    return question_set_of(store)


def case_numbers(store: Store, question_set: QuestionSet) -> dict[int, int]:
    """Return the case number of each question."""
    table = views.rows.questions(question_set, range(N))
    return {
        int(item.rpartition("k")[2]): int(case)
        for item, case in zip(table["item"], table["case"], strict=True)
    }


def test_a_run_stores_its_type_of_score_and_the_number_of_orders(question_set, names):
    facts = {run.model: (run.score_type, run.n_orders, run.is_scored) for run in question_set.runs}
    assert facts == {
        names["twice"]: ("verdict", 2, False),
        names["once"]: ("verdict", 1, False),
        names["scored"]: ("probability", 1, True),
    }
    assert len(question_set.runs) == 3  # metrics of the order do not separate them
    assert question_set.is_scored
    assert not any(run.older for run in question_set.runs)
    assert "both orders" in question_set.run(names["twice"]).note
    assert "both orders" not in question_set.run(names["once"]).note


def test_the_headline_of_a_model_with_both_orders_is_their_mean(store, question_set, names):
    table = views.estimates.estimates(question_set, "all", "micro").set_index(["model", "metric"])
    value = table["value"]
    expected = {
        "foil_accuracy": (FIRST.mean() + SECOND.mean()) / 2,
        "right_in_both_orders": (FIRST & SECOND).mean(),
        "order_flips": (FIRST != SECOND).mean(),
        "right_true_first": FIRST.mean(),
        "right_wrong_first": SECOND.mean(),
    }
    for metric, number in expected.items():
        assert value[names["twice"], metric] == pytest.approx(number)
    flips = table.loc[(names["twice"], "order_flips")]
    assert flips["low"] < flips["value"] < flips["high"]
    assert flips["n_items"] == 15  # pictures
    assert value[names["once"], "foil_accuracy"] == pytest.approx(ONCE.mean())
    assert (names["once"], "order_flips") not in value.dropna()
    assert table["ties"][names["twice"], "foil_accuracy"] == 0
    assert np.isnan(table["value"][names["once"], "equivariance_deviation"])
    for subset, start in zip(SUBSETS, (0, 1), strict=True):
        sliced = views.estimates.estimates(question_set, "subtype", "micro").set_index(
            ["model", "metric", "slice"]
        )
        assert sliced["value"][names["twice"], "order_flips", subset] == pytest.approx(
            (FIRST != SECOND)[start::2].mean()
        )


def test_shares_count_both_answers_and_buckets_count_either_failure(store, question_set, names):
    compared = views.paired_tests.compare_models(
        question_set, (names["twice"], names["once"]), "foil"
    )
    row = compared.row(names["once"])
    wrong = 2 * N - FIRST.sum() - SECOND.sum()
    assert (compared.baseline.n_lies, compared.baseline.n_believed) == (2 * N, wrong)
    assert compared.baseline.share == row.base == pytest.approx(wrong / (2 * N))
    assert compared.baseline.n_tied == 0
    assert row.value == pytest.approx(1 - ONCE.mean())
    assert row.difference == pytest.approx(row.value - row.base)
    assert (row.n_lies, row.n_left_out) == (N, 0)
    fooled_either = ~(FIRST & SECOND)
    buckets = Counter(zip(fooled_either.tolist(), (~ONCE).tolist(), strict=True))
    assert (row.only_base, row.only_model) == (buckets[True, False], buckets[False, True])
    assert (row.both, row.neither) == (buckets[True, True], buckets[False, False])
    turned = views.paired_tests.compare_models(
        question_set, (names["once"], names["twice"]), "foil"
    ).row(names["twice"])
    assert (turned.base, turned.value) == (row.value, row.base)
    assert turned.difference == pytest.approx(-row.difference)
    numbers = verdict(compared, presentations()["eqben"].kind("foil"))
    assert f"{100 * row.base:.1f} %" in numbers.detail
    (count,) = [
        sum(
            count.n_believed
            for count in views.showcase.lie_counts(question_set, "foil")
            if count.model == names["twice"]
        )
    ]
    assert count == wrong


def test_shares_by_type_of_edit_count_each_model_once_per_case(store, question_set):
    ranked = views.paired_tests.rank_models(question_set, "foil")
    n_fooled = 1 - (FIRST + 0.0 + SECOND) / 2 + ~ONCE + (SCORES[:, 0] <= SCORES[:, 1])
    assert {row.subtype for row in ranked.shares} == set(SUBSETS)
    for row in ranked.shares:
        expected = n_fooled[SUBSETS.index(row.subtype) :: 2].sum()
        assert row.n_answers == 3 * N / 2  # three models
        assert row.share == pytest.approx(expected / row.n_answers)


def test_each_answered_case_counts_once_in_the_leaderboard(data, names, store, tmp_path):
    answered = 40
    twice = [
        {"case": key, "correct_first": first, "correct_second": second}
        for key, first, second in zip(keys(), FIRST, SECOND, strict=True)
    ]
    partly = f"{write(tmp_path / 'partly.csv', twice[:answered])}+verdict+partial+as=Partly"
    of_partly = Store(tmp_path / "cache")
    dataset = f"pairs:{data / 'valse'}@{data}+unpictured"
    execute(Request((partly, names["twice"]), dataset, "eqben", examine=False), of_partly)
    question_set = question_set_of(of_partly)
    columns = views.leaderboard.leaderboard(question_set, by="edit")
    table = views.leaderboard.table(columns).set_index(["model", "subtype"])
    assert table["n_cases"][partly].tolist() == [answered, *[answered / 2] * len(SUBSETS)]
    assert table["n_cases"][names["twice"]].tolist() == [N, *[N / 2] * len(SUBSETS)]
    assert table["value"][partly, ""] == pytest.approx(
        1 - (FIRST[:answered].mean() + SECOND[:answered].mean()) / 2
    )
    assert table["n_fooled"][partly, ""] == (~(FIRST & SECOND)[:answered]).sum()


def test_a_quiz_gives_half_a_point_to_an_answer_that_changes_with_the_order(
    store, question_set, names
):
    quiz = views.quiz.quiz_round(question_set, "foil", "fair")
    shares = dict(zip(quiz.models, quiz.shares, strict=True))
    assert shares[names["twice"]] == pytest.approx((FIRST.mean() + SECOND.mean()) / 2)
    assert shares[names["once"]] == pytest.approx(ONCE.mean())


@pytest.mark.parametrize("outcome", ["fooled", "all"])
def test_cases_can_be_sorted_by_the_number_of_fooled_models(store, question_set, names, outcome):
    fails = ~(FIRST & SECOND) + (~ONCE).astype(int) + (SCORES[:, 0] <= SCORES[:, 1]).astype(int)
    number_of = case_numbers(store, question_set)
    by_case = {number_of[question]: int(count) for question, count in enumerate(fails)}
    passing = {number_of[q] for q in range(N) if outcome == "all" or not (FIRST & SECOND)[q]}
    chosen = Filter(names["twice"], "foil", outcome=outcome, sort="models")
    cards, _, n_cases = views.wall.wall(question_set, chosen, 1, N, grouped=False)
    assert n_cases == len(passing)
    expected = sorted(passing, key=lambda case: (-by_case[case], case))
    assert [card.case for card in cards] == expected
    table, _ = views.cases.failures(question_set, chosen, 1, N)
    assert table["case"].tolist() == expected
    heads, _, _ = views.wall.wall(question_set, chosen, 1, N)
    for card in heads:
        of_picture = [each.case for each in cards if each.images == card.images]
        assert by_case[card.case] == max(by_case[case] for case in of_picture)


def a_card(
    store: Store, question_set: QuestionSet, model: str, question: int
) -> views.wall.WallCard:
    number = case_numbers(store, question_set)[question]
    (card,) = views.wall.cards(question_set, Filter(model, "foil"), [number])
    return card


def test_no_text_about_an_answer_without_a_score_has_a_margin(store, question_set, names):
    kind = presentations()["eqben"].kind("foil")
    looks = styles(views.runs.models(store))
    changed, both = (
        int(np.flatnonzero(chosen)[0]) for chosen in (FIRST != SECOND, ~FIRST & ~SECOND)
    )
    for question, word in ((changed, "right in one order only"), (both, "chose the wrong caption")):
        card = a_card(store, question_set, names["twice"], question)
        unscored = [answer for answer in card.verdicts if not answer.is_scored]
        assert {answer.model for answer in unscored} == {names["twice"], names["once"]}
        bars = {bar.model: bar for bar in model_bars(case_card(card, kind)).lines}
        assert (bars[names["twice"]].word, bars[names["twice"]].size) == (word, "")
        assert bars[names["twice"]].width == bars[names["once"]].width == 0.0
        assert bars[names["scored"]].size.startswith("by ")
        assert "cannot tell" not in case_json.tooltip(unscored)
        headline = str(html.verdict(kind, card.margin, card.is_scored))
        assert "by " not in headline
        assert word.lower() in headline.lower() or question == changed
    card = a_card(store, question_set, names["twice"], changed)
    described = case_card(card, kind)
    assert (described.loser.style, described.loser.label) == ("tie", "Chosen in one order")
    assert ("tied", "right in one order only") in case_json.legend([described])
    verdict = next(each for each in card.verdicts if each.model == names["twice"])
    box = case_json.box(described, verdict, "GPT", looks, str)
    assert box["label"] == "GPT is right in one order only"
    assert wall.heading(kind, "tied", 5, 3, is_scored=False).startswith(
        "5 wrong captions chosen in one of two orders"
    )
    only_choices = replace(card, verdicts=tuple(v for v in card.verdicts if not v.is_scored))
    assert model_bars(case_card(only_choices, kind)).title == ""
    talk = views.story.story(question_set, "foil")
    talk = replace(talk, models=(names["twice"], names["once"]))
    slides = case_slides(talk.models, only_choices, kind, {name: name for name in talk.models})
    bars_slide = slides[-1]
    assert "Each model has a scale" not in bars_slide.note and bars_slide.notes == ()
    assert not any("cannot decide" in slide.title for slide in slides)
    words = {bar.text for bar in bars_slide.bars}
    assert words <= {"fooled", "not fooled", "right in one order only"}


def test_the_table_of_a_case_names_the_chosen_caption(store, question_set, names):
    kind = presentations()["eqben"].kind("foil")
    assert outcome(kind, 1.0, False) == ("true", "chose the true caption")
    assert outcome(kind, -1.0, False) == ("lie", "chose the wrong caption")
    assert outcome(kind, 0.0, False) == ("tie", "right in one order only")
    assert outcome(kind, 0.0) == ("tie", "cannot tell")
    number = case_numbers(store, question_set)[0]
    answers = views.rows.answer_rows(question_set, [number], (names["once"],))
    answer = answers[number][names["once"]]
    assert isinstance(answer, AnswerRow) and not answer.is_scored
    card = case_card(a_card(store, question_set, names["once"], 0), kind, {names["once"]: answer})
    looks = styles(views.runs.models(store))
    verdict = html.verdict(kind, answer.margin, answer.is_scored)
    drawn = str(htpy.fragment[verdict, html.numbers(card, [names["once"]], looks)])
    assert "1.000" not in drawn and "margin" not in drawn
    assert "chose the true caption" in drawn or "chose the wrong caption" in drawn


BAD = {
    "scores without a scale": (
        [{"case": "existence/k0", "correct": 1}], "", r"has verdicts \(right or wrong\).*\+verdict"
    ),
    "an answer that is neither": (
        [{"case": "existence/k0", "correct": "maybe"}], "+verdict", r"line 2: 'maybe' in 'correct' is not true or false"
    ),
    "scores in place of answers": (
        [{"case": "existence/k0", "c0_i0": 0.3, "c1_i0": 0.4}], "+verdict", "neither 0 nor 1"
    ),
    "a matrix": ([{"case": "existence/k0", "correct": 1}], "+verdict+matrix", "requires a file with one answer"),
    "two scales": ([{"case": "existence/k0", "correct": 1}], "+verdict+cosine", "Choose one"),
}  # fmt: skip


@pytest.mark.parametrize("fault", BAD)
def test_a_file_that_is_not_right_or_wrong_is_refused_in_one_line(fault, tmp_path):
    rows, options, message = BAD[fault]
    with pytest.raises(InvalidInput, match=message) as error:
        scores.load(f"{write(tmp_path / 'bad.csv', rows)}{options}")
    assert "\n" not in str(error.value)


def test_an_answer_in_one_order_only_counts_as_missing(data, tmp_path, store):
    rows = [
        {"case": key, "correct_first": True, "correct_second": "" if number == 3 else True}
        for number, key in enumerate(keys())
    ]
    name = f"{write(tmp_path / 'half.csv', rows)}+verdict"
    dataset = f"pairs:{data / 'valse'}@{data}+unpictured"
    with pytest.raises(InvalidInput, match=r"lacks 2 of 120 required scores .*plurals/k3/0_c0_i0"):
        execute(Request((name,), dataset, "eqben"), store)
