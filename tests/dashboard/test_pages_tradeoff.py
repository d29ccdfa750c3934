"""The Trade-off page on a small store: its numbers, its links, and what a click opens."""

from functools import partial

import pandas as pd
import pytest

from tests.dashboard.test_pages import open_page
from vlprobe import views
from vlprobe.dashboard import tradeoff
from vlprobe.dashboard.state import Questions
from vlprobe.storage.store import Store
from vlprobe.views.runs import QuestionSet


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, every_probe: Store):
    return partial(open_page, monkeypatch, every_probe, "tradeoff")


@pytest.fixture
def key(every_probe: Store) -> str:
    return views.runs.question_sets(every_probe).set_index("probe").loc["lgip", "case_key"]


@pytest.mark.parametrize(
    "given", [{}, {"unit": "spread", "up": "sensitivity_gap"}, {"printed": "shown"}]
)
def test_every_part_is_there_and_nothing_breaks(shown, key, given):
    at = shown(set=key, **given)
    assert not at.error and not at.exception
    charts = [element.key for element in at.get("plotly_chart")]
    assert charts[0] == "trade_off" and {
        "type_color",
        "type_combined",
        "strength",
        "wordings",
    } <= set(charts)


def test_a_panel_s_links_lead_to_the_failures_of_that_type():
    asked = Questions(QuestionSet("k", "lgip", ()), ("a", "b"), {})
    assert tradeoff._failures(asked, "a", "") == {"set": "k", "model": "a"}
    assert tradeoff._failures(asked, "a", "color") == {"set": "k", "model": "a", "type": "color"}
    assert tradeoff._failures(asked, "b", "combined") == {
        "set": "k",
        "model": "b",
        "kind": "combined",
    }


def test_a_click_opens_the_failures_of_the_model_and_a_printed_mark_opens_nothing(monkeypatch):
    opened = []
    monkeypatch.setattr(
        tradeoff.st, "switch_page", lambda page, query_params: opened.append((page, query_params))
    )
    asked = Questions(QuestionSet("k", "lgip", ()), ("a", "b"), {})
    tradeoff._opens([], asked)
    tradeoff._opens([{"curve_number": 0, "x": 1.0}], asked)
    assert not opened
    tradeoff._opens([{"curve_number": 1, "customdata": ["b"]}], asked, "number")
    assert opened == [("pages/explore.py", {"set": "k", "model": "b", "type": "number"})]


@pytest.mark.parametrize("models", [["demo:softmax", "demo:weak"], []])
def test_a_control_does_not_switch_published_models_on(monkeypatch, models: list[str]):
    """Printed invariance errors reach .058: beside models at .0002 they would fill the chart, control or not."""
    monkeypatch.setattr(tradeoff, "choose", lambda label, name, options, default, **_: default)
    rows = [(model, 0.0002, 0.85) for model in models]
    for controls in ([], [("control:random", 0.15, 0.5)]):
        points = pd.DataFrame([*rows, *controls], columns=["model", "x", "y"])
        assert tradeoff._printed(points, "positive_rate", "cosine") is None
    near = pd.DataFrame([("demo:softmax", 0.03, 0.85), *controls], columns=["model", "x", "y"])
    assert len(tradeoff._printed(near, "positive_rate", "cosine")) == 9
