"""The view of mixed pictures, without a browser: it shows the numbers of the views, with or without loaded models."""

import dataclasses
import functools
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from streamlit.testing.v1 import AppTest

from tests import mixing
from tests.conftest import question_set_of
from tests.dashboard.test_pages import open_page, words
from tests.dashboard.walls import card_ids, component_values, send
from vlprobe import views
from vlprobe.dashboard import mixed
from vlprobe.errors import InvalidInput
from vlprobe.runs.playground import Player
from vlprobe.storage.entry import Entry
from vlprobe.storage.memory import SingleFlightCache
from vlprobe.storage.store import Store
from vlprobe.views.mixed import searches
from vlprobe.views.runs import QuestionSet

ONE = "hue:1"


@pytest.fixture(scope="module")
def question_set(mixed_store: Store) -> QuestionSet:
    return question_set_of(mixed_store)


@pytest.fixture
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start with no model loaded and no cached answers."""
    monkeypatch.setattr(mixed, "_scores", SingleFlightCache(100))
    monkeypatch.setattr(mixed, "_refused", {})


@pytest.fixture
def at_hand(monkeypatch: pytest.MonkeyPatch, forgotten: None) -> list[str]:
    """Let the models of the store load at once; return the names of the loaded models."""
    names: list[str] = []

    def load(name: str) -> Player:
        names.append(name)
        return Player(mixing.load(name))

    monkeypatch.setattr(mixed, "loads_at_once", lambda name: True)
    monkeypatch.setattr(mixed, "load_player", load)
    return names


@pytest.fixture
def show_search(monkeypatch: pytest.MonkeyPatch, mixed_store: Store):
    return functools.partial(open_page, monkeypatch, mixed_store, "explore", kind="t2i")


def values(at: AppTest) -> dict:
    """Return the component's data."""
    ((_, given),) = component_values(at, "mixed")
    return given


def read_parameter(at: AppTest, name: str) -> str:
    """Return a parameter of the current address."""
    value = at.query_params.get(name, "")
    return value if isinstance(value, str) else value[0]


def rows(at: AppTest) -> dict[str, dict]:
    return {row["name"]: row for row in values(at)["chart"]["rows"]}


def button(at: AppTest, key: str):
    return next(each for each in at.button if each.key == key)


def test_the_first_case_loses_to_its_own_mixture_and_fools_every_model(
    show_search, mixed_store: Store, question_set: QuestionSet, at_hand: list[str]
):
    at = show_search(model=ONE)
    place = searches.place(question_set, ONE, "mix:0.8", None)
    assert values(at)["id"] == place.next
    counts = searches.counts(question_set, ONE, "mix:0.8")
    text = words(at)
    assert "A fifth of another picture is enough to lose the right one" in text
    assert f"first in {counts.n_found} of {counts.n_searches} searches" in text
    assert (
        f"push {counts.n_lost} of these out of first place, {counts.n_lost_to_own} of them behind"
        in text
    )
    assert f"case 1 of {place.n_fooling_all} that fool all three" in text
    data = values(at)
    assert data["steps"][data["start"]]["own"] == "Ranked 1st instead"
    assert data["right"]["source"] == 0 and data["sources"][0].startswith("data:image/webp;base64,")
    assert not card_ids(at)


def test_each_model_scores_the_mixtures_once_and_its_crossover_share_is_shown(
    show_search, mixed_store: Store, question_set: QuestionSet, at_hand: list[str]
):
    at = show_search(model=ONE)
    data = values(at)
    assert data["pending"] and at_hand == []
    assert {row["remark"] for row in data["chart"]["rows"]} >= {
        "fooled at 80 %; not fooled at 60 %"
    }
    assert len(data["steps"]) == 26 and data["steps"][0]["own"] == "Not tested at this share"
    at = send(at, "mixed", "ask", data["id"])
    assert sorted(set(at_hand)) == sorted(mixing.MODELS) and len(at_hand) == 4
    data = values(at)
    assert not data["pending"] and [step["share"] for step in data["steps"]][:2] == [100, 98]
    assert data["steps"][0]["own"] == "The same picture: a tie"
    for row in data["chart"]["rows"]:
        assert row["text"] == "never" or row["text"].endswith(" %")
        assert row["segments"] and not row["dots"]
    last = data["steps"][-1]
    assert last["style"] in ("true", "lie") and len(last["order"]) == 5
    assert "tests it again; in all others, 80 % of the original picture remains" in data["note"]
    again = show_search(model=ONE)  # another visitor
    assert not values(again)["pending"] and len(at_hand) == 4


def test_next_and_previous_change_the_case_in_the_address(
    show_search, mixed_store: Store, question_set: QuestionSet, at_hand: list[str]
):
    at = show_search(model=ONE)
    first = values(at)["id"]
    assert button(at, "mixed_previous").disabled
    button(at, "mixed_next").click().run()
    second = values(at)["id"]
    assert second != first and read_parameter(at, "case") == second
    number = views.rows.case_number(question_set, second)
    place = searches.place(question_set, ONE, "mix:0.8", number)
    assert (place.place, place.previous) == (2, first) and "case 2 of" in words(at)
    button(at, "mixed_previous").click().run()
    assert values(at)["id"] == first and not at.exception


def test_another_mixture_or_another_model_shows_its_own_cases(
    show_search, mixed_store: Store, question_set: QuestionSet, at_hand: list[str]
):
    at = show_search(model=ONE)
    at.selectbox("mixture").set_value("patch:0.8").run()
    place = searches.place(question_set, ONE, "patch:0.8", None)
    assert values(at)["id"] == place.next and read_parameter(at, "mixture") == "patch:0.8"
    assert "A patch of another picture over a fifth of the right one is enough" in words(at)
    boxes = values(at)["boxes"]
    assert len(boxes) == 26 and boxes[0] == [0, 0, 0, 0]
    areas = [(right - left) * (bottom - top) for left, top, right, bottom in boxes]
    assert areas == sorted(areas) and areas[-1] == pytest.approx(0.5, abs=0.03)
    at.selectbox("model").set_value("hue:2").run()
    assert read_parameter(at, "model") == "hue:2"
    assert values(at)["id"] and not at.exception


def test_all_cases_opens_exactly_these_cases_on_the_wall(
    show_search, mixed_store: Store, question_set: QuestionSet, at_hand: list[str]
):
    at = show_search(model=ONE)
    link = next(each for each in at.get("page_link") if each.proto.label == "All cases")
    query = {name: value[0] for name, value in parse_qs(link.proto.query_string).items()}
    assert query["wall"] == "1" and query["lost"] == "own"
    at = show_search(
        **{name: value for name, value in query.items() if name != "kind"}, cards="every"
    )
    ids = views.rows.questions(
        question_set, searches.order(question_set, ONE, "mix:0.8")[0].tolist()
    )["id"]
    assert sorted(card_ids(at)) == sorted(ids)
    counts_all = "Among all searches, by any mixed picture."
    assert counts_all in words(at)
    at.selectbox("lost").set_value("").run()
    assert counts_all not in words(at)
    at.query_params["case"] = ids.iloc[0]
    labels = [link.proto.label for link in at.run().get("page_link")]
    assert any("searches, by its own mixture or another" in label for label in labels)
    del at.query_params["case"]
    at.run()
    everything = views.filter.Filter(ONE, "t2i", subtype="mix:0.8")
    assert len(card_ids(at)) == views.cases.outcomes(question_set, everything)["fooled"]
    button(at, "clear_filters").click().run()
    assert card_ids(at) and read_parameter(at, "wall") == "1"
    assert component_values(at, "mixed") == []


def test_a_search_that_was_not_lost_is_described_as_such(
    show_search, mixed_store: Store, question_set: QuestionSet, at_hand: list[str]
):
    of_model = views.mixed.searches.outcomes(question_set, ONE)
    cases = {
        "still finds the right picture": of_model.is_found & ~of_model.is_lost,
        "Another mixture outranks": of_model.is_lost & ~of_model.is_own,
        "does not rank this picture first": ~of_model.is_found,
    }
    for said, chosen in cases.items():
        number = int(of_model.numbers[chosen][0])
        case_id = views.rows.questions(question_set, [number])["id"].iloc[0]
        at = show_search(model=ONE, case=case_id)
        assert values(at)["id"] == case_id and said in words(at)
        assert "not one of the" in words(at)
        assert "is enough to lose" not in words(at)


def test_a_model_that_is_not_loaded_has_results_only_at_the_shares_of_its_runs(
    show_search, forgotten: None
):
    at = show_search(model=ONE)
    data = values(at)
    assert [step["share"] for step in data["steps"]] == [80]
    assert data["steps"][0]["own"] == "Ranked 1st instead"
    assert "only the run's own mixture has a result" in data["note"]
    assert all(row["dots"] for row in data["chart"]["rows"] if not row["segments"])
    assert button(at, "mixed_load").label == "Test 1, 2, 3 on every mixture"


def test_a_click_loads_the_models_that_are_not_loaded(
    show_search, forgotten: None, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(mixed, "load_player", lambda name: Player(mixing.load(name)))
    at = show_search(model=ONE)
    button(at, "mixed_load").click().run()
    assert values(at)["pending"]
    at = send(at, "mixed", "ask", values(at)["id"])
    assert rows(at)["1"]["segments"] and len(values(at)["steps"]) == 26


def test_a_model_that_cannot_be_loaded_or_has_other_weights_is_not_scored_again(
    show_search, at_hand: list[str], monkeypatch: pytest.MonkeyPatch
):
    def load(name: str) -> Player:
        at_hand.append(name)
        if name == "hue:2":
            raise InvalidInput("gone")
        model = mixing.load(name)
        if name == "hue:3":
            model.digest = "0" * 32
        return Player(model)

    monkeypatch.setattr(mixed, "load_player", load)
    at = show_search(model=ONE)
    at = send(at, "mixed", "ask", values(at)["id"])
    assert not values(at)["pending"]
    assert rows(at)["1"]["segments"] and rows(at)["2"]["dots"] and rows(at)["3"]["dots"]
    n_loaded = len(at_hand)
    button(at, "mixed_next").click().run()
    at = send(at, "mixed", "ask", values(at)["id"])
    assert set(at_hand[n_loaded:]) == {ONE, "control:random"}


def test_a_read_only_dashboard_loads_no_heavy_model(
    show_search, forgotten: None, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("VLPROBE_READ_ONLY", "1")
    at = show_search(model=ONE)
    assert values(at)["steps"] and not [each for each in at.button if each.key == "mixed_load"]


def test_a_run_without_stored_first_candidates_asks_to_be_run_again(
    show_search, at_hand: list[str], monkeypatch: pytest.MonkeyPatch
):
    assert values(show_search(model=ONE))["strips"]
    has_table = Entry.has_table
    monkeypatch.setattr(
        Entry, "has_table", lambda self, name: name != "fronts" and has_table(self, name)
    )
    monkeypatch.setattr("vlprobe.dashboard.state._answers", SingleFlightCache(500))
    monkeypatch.setattr(mixed, "loads_at_once", lambda name: False)
    at = show_search(model=ONE)
    assert values(at)["strips"] == {}
    assert "Run it again to see them." in words(at)


def test_a_link_with_a_filter_opens_the_wall(show_search, at_hand: list[str]):
    for query in ({"outcome": "all"}, {"type": "mix:0.8"}, {"words": "dog"}, {"wall": "1"}):
        at = show_search(model=ONE, **query)
        assert component_values(at, "mixed") == [] and card_ids(at), query


def test_the_captions_remain_if_the_pictures_are_missing(
    mixed_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_hand: list[str]
):
    store = Store(shutil.copytree(mixed_store.root, tmp_path / "cache"))
    shown = functools.partial(open_page, monkeypatch, store, "explore", kind="t2i", model=ONE)
    moved = mixed_store.root.parent / "tiny"
    monkeypatch.setattr("vlprobe.dashboard.state._answers", SingleFlightCache(500))
    aside = moved.rename(tmp_path / "aside")
    try:
        monkeypatch.setattr("vlprobe.dashboard.pictures._addresses", SingleFlightCache(1000, len))
        at = shown()
        assert values(at)["sources"][:2] == ["", ""] and values(at)["query"]
        at = send(at, "mixed", "ask", values(at)["id"])
        assert not values(at)["pending"] and values(at)["steps"]
    finally:
        aside.rename(moved)


@pytest.fixture
def single_model_store(mixed_store: Store, tmp_path: Path) -> Iterator[Store]:
    """Return a store with one model."""
    store = Store(shutil.copytree(mixed_store.root, tmp_path / "cache"))
    for run in store.runs():
        if run["run"]["model"] != ONE:
            shutil.rmtree(store.root / "runs" / run["key"])
    yield store


def test_one_model_is_enough(
    single_model_store: Store, monkeypatch: pytest.MonkeyPatch, at_hand: list[str]
):
    at = open_page(monkeypatch, single_model_store, "explore", kind="t2i")
    assert "that fool 1" in words(at) and len(values(at)["chart"]["rows"]) == 1


def test_facets_of_lost_searches_count_all_searches(mixed_store: Store, question_set: QuestionSet):
    every = views.filter.Filter(ONE, "t2i", outcome="all")
    lost = dataclasses.replace(every, outcome="fooled", lost_to=True)
    of_every, of_lost = (
        {(facet.name, row.value): row for facet in facets for row in facet.rows}
        for facets in (views.facets.facets(question_set, each) for each in (every, lost))
    )
    assert {key: row.n_asked for key, row in of_lost.items()} == {
        key: row.n_asked for key, row in of_every.items()
    }
    numbers, _, _ = views.cases.passing(question_set, lost)
    assert len(numbers) > 0
    for (name, value), row in of_lost.items():
        of_value = lost.with_values(name, (value,))
        assert row.n_fooled == len(views.cases.passing(question_set, of_value)[0])


def test_a_note_explains_that_no_search_was_lost(
    single_model_store: Store, monkeypatch: pytest.MonkeyPatch, at_hand: list[str]
):
    monkeypatch.setattr(
        searches, "order", lambda *_: (searches.np.empty(0, int), searches.np.empty(0, int))
    )
    at = open_page(monkeypatch, single_model_store, "explore", kind="t2i")
    assert "No right picture is outranked by its own mixture here" in words(at)
    assert component_values(at, "mixed") == []
    link = next(each for each in at.get("page_link") if each.proto.label == "All cases")
    assert "wall=1" in link.proto.query_string and urlsplit(link.proto.page).path
