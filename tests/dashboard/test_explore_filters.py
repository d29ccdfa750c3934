"""Filters of Explore that came after the wall: pictures that are here, and the second model of a comparison."""

from pathlib import Path

import pytest

from tests.conftest import make_tiny
from tests.dashboard.walls import values_of, wall
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.store import Store

ONE, OTHER = "control:random", "guess"


@pytest.fixture
def unpictured(tmp_path: Path) -> Store:
    """Answers to captions of twelve pictures, of which three are not here."""
    name = make_tiny(tmp_path / "tiny")
    store = Store(tmp_path / "cache")
    execute(Request((ONE,), name, "lgip", examine=False), store)
    return store


def test_cases_without_a_picture_are_left_out_where_that_is_asked(shown, unpictured, tmp_path):
    for number in range(3):
        (tmp_path / "tiny" / f"{number}.png").unlink()
    at = shown(unpictured, "explore", outcome="all", cards="every")
    everything = wall(at)
    assert "have a picture on this machine" in everything["note"]
    n_pictured = int(everything["note"].split(" · ")[-1].split(" of ")[0].replace(",", ""))
    at.button(key="only_pictured").click().run()
    assert at.query_params["pictured"] in ("here", ["here"])
    here = wall(at)
    assert "only_pictured" not in {button.key for button in at.button}
    assert here["heading"].startswith(f"{n_pictured:,} ")
    assert "with pictures on this machine" in here["note"]
    assert {card["frames"][0]["name"] for card in here["cards"]} == {"3.png", "4.png", "5.png"}
    assert all(card["frames"][0]["source"] for card in here["cards"])
    at.button(key="clear_filters").click().run()
    assert "pictured" not in at.query_params


def test_compare_shows_cases_with_a_picture_before_those_without(shown, tmp_path):
    name = make_tiny(tmp_path / "tiny") + "+unpictured"
    store, models = Store(tmp_path / "cache"), (ONE, "control:constant")
    execute(Request(models, name, "lgip", examine=False), store)
    for number in range(3):
        (tmp_path / "tiny" / f"{number}.png").unlink()
    at = shown(store, "compare", model=models[1], **{"with": models[0]})
    cards = values_of(at, "left_cards")["cards"]
    have_pictures = [all(frame["source"] for frame in card["frames"]) for card in cards]
    assert have_pictures[0] and not have_pictures[-1]
    assert have_pictures == sorted(have_pictures, reverse=True)


def test_where_every_case_has_a_picture_nobody_is_asked(shown, unpictured):
    at = shown(unpictured, "explore")
    assert "pictured" not in {group.key for group in at.get("button_group")}


def test_the_second_model_of_a_comparison_is_kept(shown, compared: Store):
    at = shown(compared, "explore", model=ONE, **{"with": OTHER})
    assert at.query_params["other"] == OTHER
    assert "with" not in at.query_params
    assert at.selectbox(key="other").value == OTHER
    at.selectbox(key="other").set_value("").run()
    assert at.selectbox(key="other").value == ""
    at.query_params.clear()
    at.switch_page("pages/compare.py").run()
    assert at.query_params["with"] == OTHER


@pytest.mark.parametrize("rivals", ["nobody", ONE, "|", f"nobody|{OTHER}"])
def test_of_several_models_the_first_that_was_asked_is_the_second(shown, compared, rivals):
    at = shown(compared, "explore", model=ONE, **{"with": rivals})
    assert at.query_params.get("other", "") == (OTHER if OTHER in rivals else "")
    assert not at.error
