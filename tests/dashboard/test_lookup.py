"""The search above every page finds papers, symbols, tests and data sets; cards explain a symbol where it is shown."""

import dataclasses
import math

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from tests.dashboard.test_pages import bodies
from tests.dashboard.walls import send_to
from tests.test_worked_examples import METRIC, by_hand
from vlprobe import registry, views
from vlprobe.dashboard import lookup
from vlprobe.dashboard.lookup import KEYS
from vlprobe.errors import InvalidInput
from vlprobe.render import symbols
from vlprobe.render.charts.theme import axis
from vlprobe.render.html.tables import explained
from vlprobe.types import Metric
from vlprobe.views.filter import Filter


def matching_options(at: AppTest, word: str) -> list[str]:
    return [option for option in at.selectbox(key="lookup_field").options if word in option]


def metric(probe: str, name: str) -> Metric:
    return next(each for each in registry.load_probe(probe).metrics if each.name == name)


@pytest.mark.parametrize(
    ("word", "page", "says"),
    [
        ("(LGIP) · test", "tradeoff", "set"),
        ("(RoCOCO) · test", "retrieval", "set"),
        ("(EqBen) · test", "pairs", "set"),
        ("(VISLA) · test", "triplets", "set"),
        ("(PRSM) · test", "rankings", "set"),
        ("RoCOCO · paper", "published", "paper"),
        ("(PR)", "tradeoff", "up"),
        ("(E_inv)", "tradeoff", "set"),
        ("(E_sens)", "tradeoff", "up"),
        ("caption: Altered on top (RSMS)", "retrieval", "kind"),
        ("caption: Drop rate (DR)", "retrieval", "set"),
        ("caption: R@10, altered", "breakdown", "metric"),
        ("Text score", "pairs", "set"),
        ("(I2T)", "triplets", "set"),
        ("(global)", "breakdown", "metric"),
        ("EqSim", "repair", ""),
        ("SC+VC", "repair", ""),
        ("EqBen · test", "pairs", "set"),
        ("PR · LGIP", "tradeoff", "up"),
        ("R@K · RoCOCO", "breakdown", "metric"),
        ("RSMS · RoCOCO", "retrieval", "kind"),
        ("layout: sugarcrepe", "docs", "page"),
        ("layout: valse", "docs", "page"),
        ("winoground", "docs", "page"),
        ("· model", "explore", "model"),
        ("2602.23906", "", ""),
        ("MMRB", "", ""),
    ],
)
def test_a_search_opens_the_page_of_its_result(open_probe, monkeypatch, word, page, says):
    opened: list[tuple[str, dict[str, str]]] = []
    monkeypatch.setattr(
        st, "switch_page", lambda file, query_params: opened.append((file, query_params))
    )
    at = open_probe("models")
    at.selectbox(key="lookup_field").set_value(matching_options(at, word)[0]).run()
    ((file, query),) = opened
    assert not page or file == f"pages/{page}.py"
    assert not says or query[says]
    assert at.selectbox(key="lookup_field").value is None


def test_a_metric_found_by_the_search_is_selected_on_its_page(open_probe, monkeypatch):
    at = open_probe("models")
    (gap,) = matching_options(at, "(E_sens)")
    opened: list[dict[str, str]] = []
    with monkeypatch.context() as patch:
        patch.setattr(st, "switch_page", lambda file, query_params: opened.append(query_params))
        at.selectbox(key="lookup_field").set_value(gap).run()
    at = open_probe("tradeoff", **opened[0])
    assert at.segmented_control(key="up").value == "sensitivity_gap"


def test_typed_words_are_found_in_captions_and_open_their_cases(show_page, bundled, monkeypatch):
    key = next(row.case_key for row in views.runs.question_set_rows(bundled) if row.probe == "lgip")
    at = show_page(bundled, "compare", set=key)
    at = send_to(at, "lookup_typed", "typed", "sea nosuchword")
    assert "No caption contains “sea nosuchword”." in bodies(at)
    assert "To compare models" not in bodies(at)
    at = send_to(at, "lookup_typed", "typed", "Tiny CLIP vs Pair-tuned")
    assert "”. To compare models, choose them on Compare." in bodies(at)
    at = send_to(at, "lookup_typed", "typed", "the sea")
    every = Filter("demo:softmax", "flip", outcome="all", contains="the sea")
    n_cases = len(views.cases.passing(views.runs.question_set(bundled, key), every)[0])
    button = at.button(key=f"captions {key}")
    assert button.label == f"{n_cases:,} cases in Drawn scenes"
    opened: list[dict[str, str]] = []
    monkeypatch.setattr(st, "switch_page", lambda file, query_params: opened.append(query_params))
    button.click().run()
    query = {"set": key, "kind": "flip", "words": "the sea", "outcome": "all"}
    assert opened == [query]


def test_the_search_skips_damaged_results(show_page, bundled, monkeypatch):
    key = next(row.case_key for row in views.runs.question_set_rows(bundled) if row.probe == "lgip")

    def n_passing(subject, case_filter):
        if subject.key == key:
            raise InvalidInput("damaged")
        return 3

    at = show_page(bundled, "compare")
    monkeypatch.setattr(lookup, "n_passing", n_passing)
    at = send_to(at, "lookup_typed", "typed", "the sea")
    assert not at.exception
    labels = [button.label for button in at.button if str(button.key).startswith("captions ")]
    assert labels and not any(key in str(button.key) for button in at.button)


def test_the_keyboard_shortcuts_are_listed_below_the_search(open_probe):
    text = bodies(open_probe("models"))
    assert all(f"{keys}</th><td>{use}" in text for keys, use in KEYS.items())


@pytest.mark.parametrize("name", symbols.SYMBOLS)
def test_every_symbol_has_a_worked_example_that_a_test_computes(name: str):
    probe = next(
        probe
        for probe in registry.names("probes")
        if name in {each.name for each in registry.load_probe(probe).metrics}
    )
    of_symbol = metric(probe, name)
    assert symbols.formula_page(of_symbol) == f"numbers/{probe}"
    lines = {f"{arithmetic} = {value}" for _, arithmetic, value in by_hand(probe)}
    assert symbols.example(of_symbol) in lines
    letter, _, index = symbols.SYMBOLS[name].partition("_")
    shown = f"{letter}<sub>{index}</sub>" if index else letter
    assert f"({shown})" in axis(of_symbol, "cosine")


def test_the_symbol_of_a_metric_has_a_subscript_in_tables():
    of_gap = metric("lgip", "sensitivity_gap")
    shown = explained(of_gap, "cosine", math.nan, False)
    assert "(E<sub>sens</sub>)" in shown and "&lt;sub" not in shown
    named = dataclasses.replace(of_gap, label="<b>Gap</b>")
    assert "&lt;b&gt;Gap" in explained(named, "cosine", math.nan, False)


def test_an_example_belongs_to_its_metric():
    rows = {METRIC.sub(r"\1", name): f"{line} = {value}" for name, line, value in by_hand("lgip")}
    assert symbols.example(metric("lgip", "positive_rate")) == rows["positive_rate, micro"]
    heading = explained(metric("lgip", "positive_rate"), "rate", 0.5, folded=True)
    assert rows["positive_rate, micro"] in heading and "Positive rate (PR)" in heading


def test_a_card_has_the_sentence_the_example_and_a_link_to_the_formula(open_probe, every_probe):
    sets = views.runs.question_sets(every_probe).set_index("probe")["case_key"]
    at = open_probe("tradeoff", set=sets["lgip"])
    texts = [block.value for block in at.markdown]
    card = next(text for text in texts if text.startswith("**Positive rate (PR)"))
    of_card = metric("lgip", "positive_rate")
    assert of_card.help in card and "`(1 + 0 + 0 + 1) / 4` = .500" in card
    assert "(docs?page=numbers/lgip)" in card
