"""Nobody is named best where the order may be chance, where guessing does as well, or who knows nothing."""

import html
import math
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dashboard.test_pages import bodies, open_page, words
from tests.dashboard.walls import component_values
from tests.views.conftest import MODELS
from vlprobe import views
from vlprobe.models.doctor import examine as doctor_examine
from vlprobe.render.words import model_name
from vlprobe.storage.store import Store
from vlprobe.views.leaders import Contender, Leader, leader

NAN = math.nan
A, B, C = (
    Contender("a", 0.90, 0.85, 0.95),
    Contender("b", 0.70, 0.62, 0.78),
    Contender("c", 0.55, 0.45, 0.65),
)
NEAR = Contender("near", 0.86, 0.80, 0.92)  # its interval overlaps a's
CONTROL = Contender("control:random", 0.99, 0.98, 1.0, credible=False)


@pytest.mark.parametrize(
    ("contenders", "direction", "chance", "expected"),
    [
        ([A, B, C], "up", 0.5, Leader("leads", ("a",))),
        ([C, B, A], "up", 0.5, Leader("leads", ("a",))),
        ([A, NEAR, C], "up", 0.5, Leader("tied", ("a", "near"))),
        ([A, B], "down", NAN, Leader("leads", ("b",))),
        ([A, NEAR], "down", NAN, Leader("tied", ("near", "a"))),
        ([A, B], "up", NAN, Leader("leads", ("a",))),
        ([A, B], "none", NAN, Leader("unknown")),
        ([], "up", 0.5, Leader("unknown")),
        ([A], "up", 0.5, Leader("alone", ("a",))),
        ([C], "up", 0.5, Leader("chance", ("c",))),
        ([A, B], "up", 0.97, Leader("chance", ("a",))),
        ([A, B], "down", 0.6, Leader("chance", ("b",))),
        ([A, B], "down", 0.99, Leader("leads", ("b",))),
        ([C, Contender("d", 0.52, 0.44, 0.6)], "up", 0.5, Leader("chance", ("c",))),
        # Whoever knows nothing neither leads nor keeps others from leading.
        ([A, B, CONTROL], "up", 0.5, Leader("leads", ("a",))),
        ([CONTROL, A], "up", 0.5, Leader("alone", ("a",))),
        ([CONTROL, Contender("x", 0.9, 0.8, 0.95, credible=False)], "up", 0.5, Leader("unknown")),
        # The best value is not above chance, a steadier one is: these two are tied.
        ([Contender("wide", 0.7, 0.4, 0.9), B], "up", 0.5, Leader("tied", ("b", "wide"))),
        # What is unknown neither leads nor is led.
        ([Contender("a", NAN, NAN, NAN), B], "up", 0.5, Leader("alone", ("b",))),
        ([Contender("a", 0.9, NAN, NAN), B], "up", 0.5, Leader("tied", ("b", "a"))),
        (
            [Contender("a", 0.9, NAN, NAN), Contender("b", 0.1, NAN, NAN)],
            "up",
            NAN,
            Leader("tied", ("a", "b")),
        ),
        ([Contender("a", 0.9, NAN, NAN)], "up", 0.5, Leader("chance", ("a",))),
        # Equal values, and intervals that only touch.
        ([Contender("b", 1, 1, 1), Contender("a", 1, 1, 1)], "up", 0.5, Leader("tied", ("a", "b"))),
        (
            [Contender("a", 0.8, 0.7, 0.9), Contender("b", 0.6, 0.5, 0.7)],
            "up",
            NAN,
            Leader("tied", ("a", "b")),
        ),
    ],
)
def test_who_is_named_best(
    contenders: list[Contender], direction: str, chance: float, expected: Leader
):
    assert leader(contenders, direction, chance) == expected


@pytest.mark.parametrize(("better", "state"), [(True, "leads"), (False, "tied"), (None, "tied")])
def test_a_paired_comparison_decides_where_there_is_one(better: bool | None, state: str):
    assert (
        leader([A, NEAR], "up", 0.5, lambda *pair: better if pair == ("a", "near") else None).state
        == state
    )


intervals = st.tuples(*[st.floats(0, 1)] * 3).map(sorted)


@given(
    st.lists(st.tuples(intervals, st.booleans()), max_size=5),
    st.sampled_from(["up", "down"]),
    st.floats(0, 1),
)
def test_who_leads_is_credible_above_chance_and_apart_from_every_credible_other(
    values, direction: str, chance: float
):
    contenders = [
        Contender(str(place), value, low, high, credible)
        for place, ((low, value, high), credible) in enumerate(values)
    ]
    found = leader(contenders, direction, chance)
    able = {str(place): range_ for place, (range_, credible) in enumerate(values) if credible}
    leads = [
        name
        for name, (low, _, high) in able.items()
        if (low > chance if direction == "up" else high < chance)
        and len(able) > 1
        and all(
            low > other[2] if direction == "up" else high < other[0]
            for elsewhere, other in able.items()
            if elsewhere != name
        )
    ]
    assert ([found.models[0]] if found.state == "leads" else []) == leads


def test_the_front_holds_who_is_ahead_of_every_credible_other_on_one_side():
    points = pd.DataFrame(
        [
            ("steady", 1.0, 0.9, 1.1, 0.70, 0.66, 0.74),
            ("alert", 2.0, 1.9, 2.1, 0.90, 0.86, 0.94),
            ("beaten", 3.0, 2.9, 3.1, 0.80, 0.76, 0.84),
            ("control:random", 0.1, 0.0, 0.2, 0.99, 0.98, 1.0),
            ("unknown", 0.1, 0.0, 0.2, NAN, NAN, NAN),
        ],
        columns=["model", "x", "x_low", "x_high", "y", "y_low", "y_high"],
        index=list("vwxyz"),
    )
    trusted = {"steady", "alert", "beaten", "unknown"}
    names = points["model"]
    assert set(names[views.leaders.pareto_front(points, trusted, 0.5)]) == {"steady", "alert"}
    assert set(names[views.leaders.pareto_front(points, trusted, 0.8)]) == {"alert"}
    tied = points.assign(x_high=4.0, y_low=0.5)
    assert not views.leaders.pareto_front(tied, trusted, NAN).any()
    assert list(views.leaders.pareto_front(points[:0], trusted, 0.5)) == []


def test_controls_and_models_that_fail_the_check_of_chance_are_not_credible(
    tmp_path: Path, filled: Store, key: str
):
    assert views.leaders.credible_models(filled, views.runs.question_set(filled, key)) == set(
        MODELS[:2]
    )
    store = Store(shutil.copytree(filled.root, tmp_path / "cache"))
    run = next(one["run"] for one in store.runs() if one["run"]["model"] == MODELS[0])
    for name, digest in (
        ("r1_back", run["dataset_digest"]),
        ("text_batch", run["dataset_digest"]),
        ("r1_back", "e" * 9),
    ):
        shutil.rmtree(store.root / "models", ignore_errors=True)
        examine(store, run["model_digest"], digest, name)
        guessing = name == "r1_back" and digest == run["dataset_digest"]
        assert (
            MODELS[0] in views.leaders.credible_models(store, views.runs.question_set(store, key))
        ) is not guessing


def examine(store: Store, model: str, dataset: str, failed: str) -> None:
    check = doctor_examine.Check(failed, "It does.", False, 0.1, 0.5, "It does not.")
    found = doctor_examine.Examination("m", model, "d", dataset, {}, (check,), (), "2026-01-01")
    doctor_examine.write_json(
        store.root / "models" / f"{model}-{dataset}.json", doctor_examine._plain(found)
    )


def test_leaders_of_a_store_are_those_of_its_intervals_and_paired_comparisons(
    filled: Store, key: str
):
    found = views.leaders.leaders(filled, views.runs.question_set(filled, key))
    metrics = views.runs.metrics("lgip")
    assert set(found) == set(metrics)
    table = views.estimates.estimates(filled, views.runs.question_set(filled, key)).set_index(
        ["metric", "model"]
    )
    for name, own in found.items():
        if own.state in ("leads", "tied"):
            best, *rivals = own.models
            assert set(own.models) <= set(MODELS[:2])
            values = {model: table.loc[(name, model), "value"] for model in MODELS[:2]}
            paired = views.compare.compare(
                filled,
                views.runs.question_set(filled, key),
                (best, *(set(MODELS[:2]) - {best})),
                only=(name,),
            )
            assert (own.state == "tied") == bool(rivals)
            if own.state == "tied" and paired["verdict"].iloc[0]:
                assert paired["verdict"].iloc[0] != "worse"
            else:
                assert values[best] == (max if metrics[name].direction == "up" else min)(
                    values.values()
                )
    assert {own.state for own in found.values()} <= {"leads", "tied", "chance", "unknown"}
    assert found["positive_rate"].state in ("chance", "tied")  # both draw their embeddings by lot


def test_only_the_metrics_that_are_asked_for_are_compared(filled: Store, key: str):
    whole = views.compare.compare(
        filled, views.runs.question_set(filled, key), MODELS[:2]
    ).set_index("metric")
    only = views.compare.compare(
        filled, views.runs.question_set(filled, key), MODELS[:2], only=("positive_rate",)
    ).set_index("metric")
    assert list(only.index) == ["positive_rate"]
    assert only.loc["positive_rate", "p"] == whole.loc["positive_rate", "p"]


def test_an_untrained_model_and_controls_are_crowned_nowhere(monkeypatch, filled: Store, key: str):
    question_set = views.runs.question_set(filled, key)
    leaders = views.leaders.leaders(filled, question_set)
    numbers = bodies(open_page(monkeypatch, filled, "breakdown", set=key))
    bold = len(re.findall('<strong class="value">', numbers))
    assert bold == sum(leader.state == "leads" for leader in leaders.values())
    at = open_page(monkeypatch, filled, "tradeoff", set=key)
    finding = html.unescape(re.findall(r"<h1>(.*?)</h1>", bodies(at))[0])
    assert model_name(MODELS[2]) not in finding
    if leaders["positive_rate"].state == "chance":
        assert "No model is more alert than guessing" in words(at)
    ((_, picture),) = component_values(at, "tradeoff")
    front = views.tradeoff.trade_off(filled, question_set, "positive_rate").query("front")
    assert bool(picture["front"]) == (len(front) > 1)
    assert MODELS[2] not in set(front["model"])
