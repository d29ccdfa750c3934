"""A model is best only if the order is significant, it is above guessing, and it passed its checks."""

import html
import math
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import make_tiny, question_set_of
from tests.dashboard.test_pages import bodies, open_page
from tests.dashboard.walls import figure_of
from tests.views.conftest import MODELS
from vlprobe import views
from vlprobe.models.doctor import examine as doctor_examine
from vlprobe.render.words import model_name
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.files import write_json
from vlprobe.storage.store import Store
from vlprobe.views.paired_tests import Leader, leader

NAN = math.nan


class Contender(NamedTuple):
    """The fields of an estimate that `leader` reads, and whether the model passed its checks."""

    model: str
    value: float
    low: float
    high: float
    credible: bool = True


A, B, C = (
    Contender("a", 0.90, 0.85, 0.95),
    Contender("b", 0.70, 0.62, 0.78),
    Contender("c", 0.55, 0.45, 0.65),
)
NEAR = Contender("near", 0.86, 0.80, 0.92)  # its interval overlaps a's
CONTROL = Contender("control:random", 0.99, 0.98, 1.0, credible=False)


def ordered_by(*models: str):
    """Return a paired test in which each model is better than all that follow, and tied with others."""
    return lambda model, rival: (
        model in models and rival in models and models.index(model) < models.index(rival)
    )


A_FIRST, B_FIRST = ordered_by("a", "b", "c"), ordered_by("b", "a")


def untested(model: str, rival: str) -> bool:
    return False


def find_leader(
    contenders: Sequence[Contender],
    direction: str,
    chance: float,
    is_better: Callable[[str, str], bool],
) -> Leader:
    """Return the leader among the models that passed their checks, after the paired tests."""
    fit = [contender for contender in contenders if contender.credible]
    first = leader(fit, direction, chance)  # type: ignore[arg-type]
    return first.without({rival for rival in first.models[1:] if is_better(first.models[0], rival)})


@pytest.mark.parametrize(
    ("contenders", "direction", "chance", "is_better", "expected"),
    [
        ([A, B, C], "up", 0.5, A_FIRST, Leader("leads", ("a",))),
        ([C, B, A], "up", 0.5, A_FIRST, Leader("leads", ("a",))),
        ([A, NEAR, C], "up", 0.5, A_FIRST, Leader("tied", ("a", "near"))),
        ([A, NEAR], "up", 0.5, ordered_by("a", "near"), Leader("leads", ("a",))),
        ([A, B], "down", NAN, B_FIRST, Leader("leads", ("b",))),
        ([A, NEAR], "down", NAN, B_FIRST, Leader("tied", ("near", "a"))),
        ([A, B], "up", NAN, A_FIRST, Leader("leads", ("a",))),
        ([A, B], "none", NAN, A_FIRST, Leader("unknown")),
        ([], "up", 0.5, untested, Leader("unknown")),
        ([A], "up", 0.5, untested, Leader("alone", ("a",))),
        ([C], "up", 0.5, untested, Leader("chance", ("c",))),
        ([A, B], "up", 0.97, A_FIRST, Leader("chance", ("a",))),
        ([A, B], "down", 0.6, B_FIRST, Leader("chance", ("b",))),
        ([A, B], "down", 0.99, B_FIRST, Leader("leads", ("b",))),
        ([C, Contender("d", 0.52, 0.44, 0.6)], "up", 0.5, A_FIRST, Leader("chance", ("c",))),
        # Intervals that do not overlap do not replace a test.
        ([A, B, C], "up", 0.5, untested, Leader("tied", ("a", "b", "c"))),
        ([A, B, C], "up", 0.5, ordered_by("a", "b"), Leader("tied", ("a", "c"))),
        # A model that failed its checks neither leads nor prevents others from leading.
        ([A, B, CONTROL], "up", 0.5, A_FIRST, Leader("leads", ("a",))),
        ([CONTROL, A], "up", 0.5, untested, Leader("alone", ("a",))),
        (
            [CONTROL, Contender("x", 0.9, 0.8, 0.95, credible=False)],
            "up",
            0.5,
            untested,
            Leader("unknown"),
        ),
        # The best value is not above chance, but one with a narrower interval is: the two are tied.
        ([Contender("wide", 0.7, 0.4, 0.9), B], "up", 0.5, untested, Leader("tied", ("b", "wide"))),
        # An unknown value neither leads nor is beaten.
        ([Contender("a", NAN, NAN, NAN), B], "up", 0.5, untested, Leader("alone", ("b",))),
        ([Contender("a", 0.9, NAN, NAN), B], "up", 0.5, untested, Leader("tied", ("b", "a"))),
        # Without intervals no model can be compared with guessing.
        ([Contender("a", 0.9, NAN, NAN)], "up", 0.5, untested, Leader("unknown")),
        ([Contender("a", 0.9, NAN, NAN)], "up", NAN, untested, Leader("alone", ("a",))),
    ],
)
def test_the_leader_is_decided_by_intervals_chance_and_paired_tests(
    contenders: list[Contender], direction: str, chance: float, is_better, expected: Leader
):
    assert find_leader(contenders, direction, chance, is_better) == expected


intervals = st.tuples(*[st.floats(0, 1)] * 3).map(sorted)


@given(
    st.lists(st.tuples(intervals, st.booleans()), max_size=5),
    st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4))),
    st.sampled_from(["up", "down"]),
    st.floats(0, 1),
)
def test_a_leader_is_credible_above_chance_and_better_than_every_credible_rival(
    values, wins: set[tuple[int, int]], direction: str, chance: float
):
    contenders = [
        Contender(str(place), value, low, high, credible)
        for place, ((low, value, high), credible) in enumerate(values)
    ]
    found = find_leader(
        contenders, direction, chance, lambda model, rival: (int(model), int(rival)) in wins
    )
    able = {place: range_ for place, (range_, credible) in enumerate(values) if credible}
    sure = [
        place
        for place, (low, _, high) in able.items()
        if (low > chance if direction == "up" else high < chance)
    ]
    if found.state != "leads":
        return
    best = int(found.models[0])
    assert best in sure and len(able) > 1
    assert all((best, rival) in wins for rival in able if rival != best)
    top = max if direction == "up" else min
    assert able[best][1] == top(able[place][1] for place in sure)


def test_the_front_has_the_models_that_beat_every_credible_rival_on_one_axis():
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
    ).assign(x_n=50, y_n=50)
    trusted = {"steady", "alert", "beaten", "unknown"}
    lower, higher = ordered_by("steady", "alert", "beaten"), ordered_by("alert", "beaten", "steady")

    def front(chance: float, on_x=lower, on_y=higher) -> set[str]:
        is_front = views.paired_tests.pareto_front(points, trusted, chance, on_x, on_y)
        return set(points["model"][is_front])

    assert front(0.5) == {"steady", "alert"}
    assert front(0.8) == {"alert"}
    assert front(NAN, untested, untested) == set()
    assert front(0.5, lower, untested) == {"steady"}
    assert list(views.paired_tests.pareto_front(points[:0], trusted, 0.5, lower, higher)) == []


def test_on_two_pictures_no_model_leads_or_is_on_the_front(tmp_path: Path):
    """Check two pictures: the intervals were apart, and a model led although the paired test gives p = .5."""
    steady, alert = "control:random", "control:constant"
    store = Store(tmp_path / "cache")
    execute(Request((steady, alert), make_tiny(tmp_path / "tiny"), "lgip", limit=2), store)
    question_set = question_set_of(store)
    with pytest.MonkeyPatch.context() as patch:
        for module in (views.paired_tests, views.tradeoff):
            patch.setattr(module, "fit_models", lambda *given: {steady, alert})
        leaders = views.paired_tests.leaders(question_set)
        front = views.tradeoff.trade_off(question_set, "positive_rate")["front"]
    table = views.estimates.estimates(question_set).set_index(["metric", "model"])
    errors = table.loc["invariance_error"]
    assert errors["value"].nunique() == 2 and set(errors["n_items"]) == {2}
    assert errors[["low", "high"]].isna().all().all()
    assert leaders["invariance_error"].state == "tied"
    assert {found.state for found in leaders.values()} <= {"tied", "unknown"}
    assert not front.any()


def test_controls_and_models_that_fail_the_check_against_chance_are_not_credible(
    tmp_path: Path, filled: Store, key: str
):
    assert views.paired_tests.fit_models(views.runs.question_set(filled, key)) == set(MODELS[:2])
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
            MODELS[0] in views.paired_tests.fit_models(views.runs.question_set(store, key))
        ) is not guessing


def examine(store: Store, model: str, dataset: str, failed: str) -> None:
    check = doctor_examine.Check(failed, "It does.", False, 0.1, 0.5, "It does not.")
    found = doctor_examine.Examination("m", model, "d", dataset, {}, (check,), (), "2026-01-01")
    content = {"schema": doctor_examine.SCHEMA, **asdict(found), "passport": []}
    write_json(store.root / "models" / f"{model}-{dataset}.json", content)


def test_leaders_of_a_store_are_those_of_its_paired_tests(filled: Store, key: str):
    leaders = views.paired_tests.leaders(views.runs.question_set(filled, key))
    metrics = views.runs.metrics("lgip")
    assert set(leaders) == set(metrics)
    table = views.estimates.estimates(views.runs.question_set(filled, key)).set_index(
        ["metric", "model"]
    )
    for name, named in leaders.items():
        if named.state in ("leads", "tied"):
            best, *rivals = named.models
            assert set(named.models) <= set(MODELS[:2])
            values = {model: table.loc[(name, model), "value"] for model in MODELS[:2]}
            paired = views.paired_tests.compare_metrics(
                views.runs.question_set(filled, key),
                (best, *(set(MODELS[:2]) - {best})),
                only=(name,),
            )
            assert (named.state == "tied") == bool(rivals)
            if named.state == "tied":
                assert paired["verdict"].iloc[0] != "worse"
            else:
                assert paired["verdict"].iloc[0] == "worse"
                assert values[best] == (max if metrics[name].direction == "up" else min)(
                    values.values()
                )
    assert {named.state for named in leaders.values()} <= {"leads", "tied", "chance", "unknown"}
    assert leaders["positive_rate"].state in ("chance", "tied")  # both have random embeddings


def test_only_the_requested_metrics_are_compared(filled: Store, key: str):
    whole = views.paired_tests.compare_metrics(
        views.runs.question_set(filled, key), MODELS[:2]
    ).set_index("metric")
    only = views.paired_tests.compare_metrics(
        views.runs.question_set(filled, key), MODELS[:2], only=("positive_rate",)
    ).set_index("metric")
    assert list(only.index) == ["positive_rate"]
    assert only.loc["positive_rate", "p"] == whole.loc["positive_rate", "p"]


def test_untrained_models_and_controls_are_never_the_best(monkeypatch, filled: Store, key: str):
    question_set = views.runs.question_set(filled, key)
    leaders = views.paired_tests.leaders(question_set)
    numbers = bodies(open_page(monkeypatch, filled, "breakdown", set=key))
    bold = len(re.findall('<strong class="value">', numbers))
    assert bold == sum(leader.state == "leads" for leader in leaders.values())
    at = open_page(monkeypatch, filled, "tradeoff", set=key)
    finding = html.unescape(re.findall(r"<h1>(.*?)</h1>", bodies(at))[0])
    assert model_name(MODELS[2]) not in finding
    if leaders["positive_rate"].state == "chance":
        assert "is better than guessing" in finding
    lines = [trace for trace in figure_of(at, "tradeoff")["data"] if trace["mode"] == "lines"]
    front = views.tradeoff.trade_off(question_set, "positive_rate").query("front")
    assert bool(lines) == (len(front) > 1)
    assert MODELS[2] not in set(front["model"])
