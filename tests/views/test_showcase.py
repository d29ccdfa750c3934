"""The failures and counts of Home match a loop over the stored rows."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from tests.conftest import make_tiny, question_set_of
from tests.datasets.test_pairs import valse
from tests.views.conftest import MODELS, Dealt
from vlprobe import registry, views
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.store import Store
from vlprobe.views.filter import Filter

DEALT = MODELS[:2]


@pytest.fixture
def question_set(filled: Store, key: str) -> views.runs.QuestionSet:
    return views.runs.question_set(filled, key)


def test_controls_are_not_rated_if_other_models_have_results(filled, question_set, every_probe):
    assert question_set.rated_models == DEALT
    known = question_set_of(every_probe, "lgip")
    rated = known.rated_models
    others = [name for name in known.models if not registry.is_control(name)]
    assert set(rated) == set(others or known.models)


def test_each_picture_is_shown_once_with_the_number_of_fooled_models(
    filled, question_set, rows: pd.DataFrame
):
    flips = rows[rows["kind"] == "flip"]
    expected: dict[str, int] = {}
    for _, row in flips.iterrows():
        fooled = sum(row[model] <= 0 for model in DEALT)
        expected[row["item"]] = max(expected.get(row["item"], 0), fooled)
    shown = views.showcase.showcases(question_set, "flip", DEALT[0])
    items = [one.card.item for one in shown]
    assert sorted(items) == sorted(item for item, fooled in expected.items() if fooled)
    for one in shown:
        assert one.n_fooled == expected[one.card.item]
        assert one.n_models == len(DEALT)
        margins = rows.set_index("case").loc[one.card.case]
        assert one.n_fooled == sum(margins[model] <= 0 for model in DEALT)
    counts = [one.n_fooled for one in shown]
    assert counts == sorted(counts, reverse=True)


def test_above_the_limit_of_pictures_it_is_unknown_which_are_local(tmp_path, monkeypatch):
    name = make_tiny(tmp_path / "tiny") + "+unpictured"
    store = Store(tmp_path / "cache")
    models = {each: Dealt(each) for each in DEALT}
    execute(Request(DEALT, name, "lgip", examine=False), store, models=models)
    question_set = views.runs.question_set(store, store.read_runs()[0][0]["case_key"])
    monkeypatch.setattr(views.rows, "MOST_FILES", 2)
    every = Filter(DEALT[0], "flip", outcome="all")
    numbers = views.cases.passing(question_set, every)[0]
    assert views.rows.are_pictured(question_set, "flip", numbers) is None
    assert 0 < len(views.rows.sampled(question_set, "flip")) < len(numbers)
    drawn = views.quiz.quiz_round(question_set, "flip", "fair")
    assert drawn.n_cases == drawn.n_all > 0


def test_if_some_pictures_are_missing_only_local_ones_are_shown(tmp_path):
    name = make_tiny(tmp_path / "tiny") + "+unpictured"
    store = Store(tmp_path / "cache")
    execute(Request(("control:constant",), name, "lgip", examine=False), store)
    question_set = views.runs.question_set(store, store.read_runs()[0][0]["case_key"])

    def displayed_pictures() -> tuple[set[str], set[str]]:
        """Return the pictures of Home's failures, and of the examples of a page of Lab."""
        cases = views.showcase.showcases(question_set, "flip", "control:constant")
        first = Filter("control:constant", "flip")
        cards, _, _ = views.wall.wall(question_set, first, 1, 3)
        return tuple(
            {Path(name).name for card in cards for name in card.images}
            for cards in ([one.card for one in cases], cards)
        )

    for number in range(3):
        (tmp_path / "tiny" / f"{number}.png").unlink()
    assert displayed_pictures() == ({"3.png", "4.png", "5.png"},) * 2
    for number in range(3, 6):
        (tmp_path / "tiny" / f"{number}.png").unlink()
    failures, examples = displayed_pictures()
    assert failures == {f"{number}.png" for number in range(6)} and len(examples) == 3


def test_consecutive_failures_differ_in_type_if_possible(filled, question_set):
    shown = views.showcase.showcases(question_set, "flip", DEALT[0])
    for place in range(1, len(shown)):
        before, one = shown[place - 1], shown[place]
        alike = {other.card.subtype for other in shown[place:] if other.n_fooled == one.n_fooled}
        assert one.card.subtype != before.card.subtype or alike == {before.card.subtype}


def test_the_order_of_failures_depends_on_the_seed_only(filled, question_set):
    orders = [
        [one.card.id for one in views.showcase.showcases(question_set, "flip", DEALT[0], seed)]
        for seed in (1, 1, 2, 3, 4)
    ]
    assert orders[0] == orders[1]
    assert any(order != orders[0] for order in orders[2:])
    few = views.showcase.showcases(question_set, "flip", DEALT[0], 1, count=2)
    assert len(few) == 2


def test_lies_are_counted_by_type_and_model(filled, question_set):
    counts = views.showcase.lie_counts(question_set, "flip")
    for run in question_set.runs:
        table = filled.run(run.key).table("scores").to_pandas()
        flips = table[table["kind"] == "flip"]
        for subtype, group in flips.groupby("subtype"):
            (one,) = [
                count for count in counts if (count.model, count.subtype) == (run.model, subtype)
            ]
            believed = sum(margin <= 0 for margin in group["margin"])
            assert (one.n_lies, one.n_believed) == (len(group), believed)
            assert math.isnan(one.moved)
            outcomes = views.cases.outcomes(
                question_set, Filter(run.model, "flip", subtype=str(subtype), outcome="all")
            )
            assert (outcomes["fooled"], outcomes["all"]) == (one.n_believed, one.n_lies)


def test_rewordings_never_count_as_fooled(filled, question_set):
    counts = views.showcase.lie_counts(question_set, "paraphrase")
    assert counts and all(one.n_believed == 0 for one in counts)
    (run,) = [run for run in question_set.runs if run.model == DEALT[0]]
    table = filled.run(run.key).table("scores").to_pandas()
    moved = -table[table["kind"] == "paraphrase"]["margin"]
    of_model = [one for one in counts if one.model == DEALT[0]]
    mean = sum(one.moved * one.n_lies for one in of_model) / sum(one.n_lies for one in of_model)
    assert mean == pytest.approx(moved.mean(), abs=1e-6)


def test_the_number_of_fooling_pictures_is_that_of_the_wall(filled, question_set):
    for model in DEALT:
        _, n_pictures, _ = views.wall.wall(question_set, Filter(model, "flip"))
        found = views.showcase.n_fooling_pictures(question_set, "flip", model)
        assert found == n_pictures > 0


def test_the_first_kind_of_each_probe_has_failures_with_pictures(every_probe):
    first = {}
    for row in views.runs.question_sets(every_probe).itertuples():
        question_set = views.runs.question_set(every_probe, row.case_key)
        kinds = views.showcase.kinds(question_set)
        first[row.probe] = kinds[0]
        assert set(kinds) <= set(views.runs.kinds(row.probe))
        shown = views.showcase.showcases(question_set, kinds[0], "control:random")
        assert shown, row.probe
        assert len({one.card.item for one in shown}) == len(shown)
    assert first == {
        "lgip": "flip",
        "rococo": "i2t",
        "eqben": "pair",
        "visla": "i2t",
        "prsm": "ranking",
        "series": "order",
        "pictures": "picture-change",
        "halftruths": "half-truth",
        "hardpositives": "hard-positive",
    }


@pytest.fixture(scope="module")
def half_answered(tmp_path_factory: pytest.TempPathFactory) -> views.runs.QuestionSet:
    """Return the results of two score files on three foils; each file lacks the score of a different foil."""
    folder = tmp_path_factory.mktemp("half")
    rows = {str(number): valse(image_file=f"{number}.png") for number in range(3)}
    (folder / "valse.json").write_text(json.dumps(rows), encoding="utf-8")
    models = []
    for name, lines in (("one", "0,0.9,0.1\n1,0.2,0.7\n"), ("two", "1,0.3,0.1\n2,0.8,0.1\n")):
        (folder / f"{name}.csv").write_text(f"case,c0_i0,c1_i0\n{lines}", encoding="utf-8")
        models.append(f"scores:{folder / name}.csv+partial")
    store = Store(folder / "cache")
    dataset = f"pairs:{folder / 'valse.json'}+unpictured"
    execute(Request(tuple(models), dataset, "eqben", examine=False), store)
    return views.runs.question_set(store, store.read_runs()[0][0]["case_key"])


def test_a_case_without_an_answer_is_not_counted_among_the_lies(half_answered):
    counts = views.showcase.lie_counts(half_answered, "foil")
    assert sorted((count.n_lies, count.n_believed) for count in counts) == [(2, 0), (2, 1)]
    for run in half_answered.runs:  # DuckDB reads a single file by other rules than several files
        single = replace(half_answered, runs=(run,))
        (count,) = views.showcase.lie_counts(single, "foil")
        assert count.n_lies == 2


def test_only_cases_that_both_models_answered_are_points_of_a_scatter(half_answered):
    points, total = views.paired_outcomes.scatter(half_answered, *half_answered.models, "foil")
    assert total == len(points) == 1
