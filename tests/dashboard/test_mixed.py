"""The drawer of a search among mixed pictures, without a browser: it shows the numbers of the views, with or without
loaded models."""

import dataclasses
import functools
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests import mixing
from tests.conftest import question_set_of
from tests.dashboard.test_pages import bodies, open_page, words
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
def show_wall(monkeypatch: pytest.MonkeyPatch, mixed_store: Store):
    return functools.partial(open_page, monkeypatch, mixed_store, "explore", kind="t2i", model=ONE)


def first_case(question_set: QuestionSet, subtype: str = "mix:0.8") -> str:
    """Return the id of the search with the most models that lose it to its own mixture."""
    number = int(searches.order(question_set, ONE, subtype)[0][0])
    return views.rows.questions(question_set, [number])["id"].iloc[0]


@pytest.fixture
def show_search(show_wall, question_set: QuestionSet):
    return functools.partial(show_wall, case=first_case(question_set), lost="own")


def values(at: AppTest) -> dict:
    """Return the component's data."""
    ((_, given),) = component_values(at, "mixed")
    return given


def read_parameter(at: AppTest, name: str) -> str:
    """Return a parameter of the current address."""
    value = at.query_params.get(name, "")
    return value if isinstance(value, str) else value[0]


def heading(at: AppTest) -> str:
    """Return the line above the pictures of a search."""
    data = values(at)
    return data["steps"][data["start"]]["heading"]


def rows(at: AppTest) -> dict[str, dict]:
    return {row["name"]: row for row in values(at)["chart"]["rows"]}


def button(at: AppTest, key: str):
    return next(each for each in at.button if each.key == key)


def test_the_drawer_of_a_search_has_its_mixture_and_the_tags_and_notes_of_any_case(
    show_search, question_set: QuestionSet, at_hand: list[str]
):
    at = show_search()
    data = values(at)
    assert data["id"] == first_case(question_set)
    assert heading(at) == "A fifth of another picture is enough to lose the right one"
    assert data["steps"][data["start"]]["own"] == "Ranked 1st instead"
    assert data["right"]["source"] == 0 and data["sources"][0].startswith("data:image/webp;base64,")
    assert card_ids(at)
    button(at, "case_tag_2").click().run()
    assert values(at)["id"] == data["id"] and "✓ Saved" in words(at)
    assert [area.label for area in at.text_area] == ["Note"]


def test_each_model_scores_the_mixtures_once_and_its_crossover_share_is_shown(
    show_search, mixed_store: Store, question_set: QuestionSet, at_hand: list[str]
):
    at = show_search()
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
    again = show_search()  # another visitor
    assert not values(again)["pending"] and len(at_hand) == 4


def test_the_next_case_is_the_next_one_on_the_wall(show_search, at_hand: list[str]):
    at = show_search(cards="every")
    place = card_ids(at).index(values(at)["id"])
    following = card_ids(at)[place + 1]
    button(at, "case_next").click().run()
    assert values(at)["id"] == following == read_parameter(at, "case")


def test_a_patched_picture_has_boxes_and_a_link_to_a_mixture_filters_the_wall(
    show_search, show_wall, question_set: QuestionSet, at_hand: list[str]
):
    at = show_search(case=first_case(question_set, "patch:0.8"))
    assert "A patch of another picture over a fifth of the right one is enough" in heading(at)
    boxes = values(at)["boxes"]
    assert len(boxes) == 26 and boxes[0] == [0, 0, 0, 0]
    areas = [(right - left) * (bottom - top) for left, top, right, bottom in boxes]
    assert areas == sorted(areas) and areas[-1] == pytest.approx(0.5, abs=0.03)
    of_earlier_version = show_wall(mixture="patch:0.8")
    assert read_parameter(of_earlier_version, "type") == "patch:0.8"
    assert all("patch:0.8" in case_id for case_id in card_ids(of_earlier_version))


def test_the_wall_of_searches_lost_to_their_own_mixture_has_exactly_these(
    show_wall, question_set: QuestionSet, at_hand: list[str]
):
    at = show_wall(lost="own", type="mix:0.8", cards="every")
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
    assert card_ids(at) and component_values(at, "mixed") == []
    button(at, "only_own").click().run()
    assert read_parameter(at, "lost") == "own"


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
        at = show_search(case=case_id)
        assert values(at)["id"] == case_id and said in heading(at)


def test_a_model_that_is_not_loaded_has_results_only_at_the_shares_of_its_runs(
    show_search, forgotten: None
):
    at = show_search()
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
    at = show_search()
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
    at = show_search()
    at = send(at, "mixed", "ask", values(at)["id"])
    assert not values(at)["pending"]
    assert rows(at)["1"]["segments"] and rows(at)["2"]["dots"] and rows(at)["3"]["dots"]
    n_loaded = len(at_hand)
    button(at, "case_next").click().run()
    at = send(at, "mixed", "ask", values(at)["id"])
    assert set(at_hand[n_loaded:]) == {ONE, "control:random"}


def test_a_read_only_dashboard_loads_no_heavy_model(
    show_search, forgotten: None, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("VLPROBE_READ_ONLY", "1")
    at = show_search()
    assert values(at)["steps"] and not [each for each in at.button if each.key == "mixed_load"]


def test_a_run_without_stored_first_candidates_asks_to_be_run_again_and_shows_the_best_mixture(
    show_search, question_set: QuestionSet, at_hand: list[str], monkeypatch: pytest.MonkeyPatch
):
    assert values(show_search())["strips"]
    has_table = Entry.has_table
    monkeypatch.setattr(
        Entry, "has_table", lambda self, name: name != "fronts" and has_table(self, name)
    )
    monkeypatch.setattr("vlprobe.dashboard.state._answers", SingleFlightCache(500))
    monkeypatch.setattr(mixed, "loads_at_once", lambda name: False)
    at = show_search()
    assert values(at)["strips"] == {}
    assert "Run it again to see them." in words(at)
    assert "Ranked 1st instead" not in bodies(at)  # the component has its own mixture
    of_model = views.mixed.searches.outcomes(question_set, ONE)
    number = int(of_model.numbers[of_model.is_lost & ~of_model.is_own][0])
    at = show_search(case=views.rows.questions(question_set, [number])["id"].iloc[0])
    assert "Ranked 1st instead" in bodies(at)


def test_the_captions_remain_if_the_pictures_are_missing(
    mixed_store: Store,
    question_set: QuestionSet,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    at_hand: list[str],
):
    opened = {"kind": "t2i", "model": ONE, "case": first_case(question_set)}
    store = Store(shutil.copytree(mixed_store.root, tmp_path / "cache"))
    shown = functools.partial(open_page, monkeypatch, store, "explore", **opened)
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
    single_model_store: Store,
    question_set: QuestionSet,
    monkeypatch: pytest.MonkeyPatch,
    at_hand: list[str],
):
    opened = {"kind": "t2i", "case": first_case(question_set)}
    at = open_page(monkeypatch, single_model_store, "explore", **opened)
    assert len(values(at)["chart"]["rows"]) == 1


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
