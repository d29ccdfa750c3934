"""Where the difference was missed: the facet of Explore, the bars of Compare and the sentence of the drawer."""

import json
from dataclasses import replace

import pytest

from tests.conftest import case_key_of
from tests.dashboard.test_pages import words
from tests.dashboard.walls import wall
from tests.views.test_causes import MODEL, Towers, write_pairs
from vlprobe import views
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage import shipped
from vlprobe.storage.shipped import StoreAboveShipped
from vlprobe.storage.store import Store

SECOND = "towers:2"


@pytest.fixture(scope="module")
def two_towers(tmp_path_factory: pytest.TempPathFactory) -> Store:
    folder = tmp_path_factory.mktemp("two-towers")
    data, _ = write_pairs(folder / "pairs")
    models = {name: Towers(name) for name in (MODEL, SECOND)}
    request = Request(tuple(models), data, "eqben", examine=False)
    execute(request, store := Store(folder / "cache"), models=models)
    return store


def test_a_row_of_the_facet_filters_the_wall_and_its_chip_removes_the_filter(show_page, two_towers):
    at = show_page(two_towers, "explore", model=MODEL, cards="every")
    pills = at.button_group(key="facet_unseen_by")
    assert [option.content.replace("\\:", ":") for option in pills.proto.options] == [
        "Captions look alike to the text encoder :gray[100.0\u00a0% of 10]",
        "Pictures look alike to the image encoder :gray[100.0\u00a0% of 10]",
        "Neither: they are matched wrongly :gray[50.0\u00a0% of 20]",
    ]
    pills.set_value(["words"]).run()
    assert at.query_params["unseen"] in ("words", ["words"])
    assert wall(at)["heading"].startswith("10 ")
    at.button(key="chip_0").click().run()
    assert "unseen" not in at.query_params and wall(at)["heading"].startswith("30 ")


def test_compare_draws_a_bar_per_model_with_shares_of_failures(show_page, two_towers):
    at = show_page(two_towers, "compare", model=MODEL, **{"with": SECOND}, open="causes")
    assert not at.exception
    figure = json.loads(at.get("plotly_chart")[-1].proto.spec)
    assert [(trace["name"], trace["text"]) for trace in figure["data"]] == [
        ("Captions look alike to the text encoder", ["33%", "33%"]),
        ("Pictures look alike to the image encoder", ["33%", "33%"]),
        ("Neither: they are matched wrongly", ["33%", "33%"]),
    ]
    assert {tuple(mark) for mark in figure["data"][0]["customdata"]} == {
        *((name, "words") for name in (MODEL, SECOND))
    }


def test_compare_offers_the_bars_only_if_a_compared_model_has_two_towers(
    show_page, tmp_path, monkeypatch
):
    monkeypatch.delenv(shipped.SETTING, raising=False)
    store = StoreAboveShipped(tmp_path, shipped.PUBLISHED_FOLDER, shipped.FOLDER)
    keys = case_key_of(store, dataset="bundled:SugarCrepe"), case_key_of(store, "lgip")
    for key, is_offered in zip(keys, (False, True), strict=True):
        at = show_page(store, "compare", set=key, tab="differences")
        titles = [each.label for each in at.expander]
        assert any("difference was missed" in title for title in titles) == is_offered


def test_the_drawer_names_the_tower_that_hardly_moved(show_page, two_towers):
    (row,) = views.runs.question_set_rows(two_towers)
    question_set = views.runs.question_set(two_towers, row.case_key)
    chosen = views.filter.Filter(MODEL, "pair", unseen_by=("words",))
    case = views.cases.failures(question_set, chosen)[0]["id"].iloc[0]
    assert "The captions look alike to" in words(
        show_page(two_towers, "explore", model=MODEL, case=case)
    )
    chosen = replace(chosen, unseen_by=("match",), outcome="held")
    case = views.cases.failures(question_set, chosen)[0]["id"].iloc[0]
    at = show_page(two_towers, "explore", model=MODEL, case=case, outcome="all")
    assert "look alike to" not in words(at).partition("Neither: they are matched wrongly")[0]
