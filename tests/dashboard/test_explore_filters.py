"""Later filters of Explore: local pictures, the second model of a comparison, guesses without the picture."""

from pathlib import Path

import numpy as np
import pytest

from tests.conftest import make_tiny
from tests.dashboard.walls import values_of, wall
from vlprobe import views
from vlprobe.dashboard import state
from vlprobe.metrics import blind
from vlprobe.render.slides.deck import slides
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.memory import SingleFlightCache
from vlprobe.storage.shipped import StoreAboveShipped
from vlprobe.storage.store import Store
from vlprobe.views import caption_bins, tables

ONE, OTHER = "control:random", "guess"


@pytest.fixture
def unpictured(tmp_path: Path) -> Store:
    """Return results on captions of twelve pictures, of which three have no file."""
    name = make_tiny(tmp_path / "tiny")
    store = Store(tmp_path / "cache")
    execute(Request((ONE,), name, "lgip", examine=False), store)
    return store


def test_a_click_hides_the_cases_without_a_picture(show_page, unpictured, tmp_path):
    for number in range(3):
        (tmp_path / "tiny" / f"{number}.png").unlink()
    at = show_page(unpictured, "explore", outcome="all", cards="every")
    everything = wall(at)
    assert "have a picture on this machine" in everything["note"]
    n_pictured = int(everything["note"].split(" · ")[-1].split(" of ")[0].replace(",", ""))
    at.button(key="only_pictured").click().run()
    assert at.query_params["pictured"] in ("here", ["here"])
    here = wall(at)
    assert "only_pictured" not in {button.key for button in at.button}
    assert here["heading"].startswith(f"{n_pictured:,} ")
    assert at.button(key="chip_0").label == "with pictures on this machine"
    assert {card["frames"][0]["name"] for card in here["cards"]} == {"3.png", "4.png", "5.png"}
    assert all(card["frames"][0]["source"] for card in here["cards"])
    at.button(key="clear_filters").click().run()
    assert "pictured" not in at.query_params


def test_a_facet_that_repeats_the_types_of_edit_stays_hidden_after_a_choice_of_a_type(
    show_page, unpictured
):
    facets = {"facet_subtype", "facet_rule"}
    for chosen in ({}, {"type": "color"}):
        at = show_page(unpictured, "explore", kind="flip", outcome="all", **chosen)
        assert facets & {group.key for group in at.button_group} == {"facet_subtype"}


def test_a_wall_without_pictures_counts_0_cases_with_a_picture(show_page, unpictured, tmp_path):
    for number in range(6):
        (tmp_path / "tiny" / f"{number}.png").unlink()
    note = wall(show_page(unpictured, "explore", outcome="all", cards="every"))["note"]
    assert note.endswith(" have a picture on this machine") and " · 0 of " in note


def test_compare_shows_cases_with_a_picture_before_those_without(show_page, tmp_path):
    name = make_tiny(tmp_path / "tiny") + "+unpictured"
    store, models = Store(tmp_path / "cache"), (ONE, "control:constant")
    execute(Request(models, name, "lgip", examine=False), store)
    for number in range(3):
        (tmp_path / "tiny" / f"{number}.png").unlink()
    at = show_page(store, "compare", model=models[1], **{"with": models[0]})
    cards = values_of(at, "left_cards")["cards"]
    have_pictures = [all(frame["source"] for frame in card["frames"]) for card in cards]
    assert have_pictures[0] and not have_pictures[-1]
    assert have_pictures == sorted(have_pictures, reverse=True)


def test_the_filter_by_picture_is_hidden_if_every_case_has_a_picture(show_page, unpictured):
    at = show_page(unpictured, "explore")
    assert "pictured" not in {group.key for group in at.get("button_group")}


def test_explore_and_compare_share_the_second_model_of_a_comparison(show_page, compared: Store):
    at = show_page(compared, "explore", model=ONE, **{"with": OTHER})
    assert at.query_params["other"] == OTHER
    assert "with" not in at.query_params
    assert at.selectbox(key="other").value == OTHER
    at.selectbox(key="other").set_value("").run()
    assert at.selectbox(key="other").value == ""
    at.query_params.clear()
    at.query_params["tab"] = "differences"
    at.switch_page("pages/compare.py").run()
    assert at.query_params["with"] == OTHER


@pytest.mark.parametrize("rivals", ["nobody", ONE, "|", f"nobody|{OTHER}"])
def test_the_first_listed_model_with_results_becomes_the_second_model(show_page, compared, rivals):
    at = show_page(compared, "explore", model=ONE, **{"with": rivals})
    assert at.query_params.get("other", "") == (OTHER if OTHER in rivals else "")
    assert not at.error


def clear_cache(monkeypatch: pytest.MonkeyPatch, answers: SingleFlightCache | None = None) -> None:
    """Replace the cache of page answers by an empty one or by `answers`."""
    monkeypatch.setattr(tables, "_cache", answers or SingleFlightCache(1 << 29, tables._bytes))
    monkeypatch.setattr(state, "_answers", SingleFlightCache(1000))


@pytest.fixture(scope="module")
def guesses() -> SingleFlightCache:
    """Return a cache for the answers that pages compute with the guess of `guessed`."""
    return SingleFlightCache(1 << 29, tables._bytes)


@pytest.fixture
def guessed(
    monkeypatch: pytest.MonkeyPatch, bundled: StoreAboveShipped, guesses: SingleFlightCache
) -> StoreAboveShipped:
    """Return the bundled results, with the shorter caption as the guess without the picture."""
    letters = lambda texts: np.array([len(text) for text in texts], dtype=float)  # noqa: E731
    guess = lambda true, wrong, unit: {blind.LENGTH: letters(wrong) - letters(true)}  # noqa: E731
    monkeypatch.setattr(blind, "margins", guess)
    clear_cache(monkeypatch, guesses)
    return bundled


def test_one_click_shows_only_the_cases_that_the_text_does_not_give_away(show_page, guessed):
    at = show_page(guessed, "explore", cards="every", outcome="all")
    of_text = at.query_params["kind"], at.query_params["set"]
    at.button(key="hard").click().run()
    assert not at.exception and "hard" not in {button.key for button in at.button}
    pills = at.button_group(key="facet_text_alone")
    assert len(pills.proto.options) == 2
    cases = guessed.cases(str(of_text[1])).table("cases").to_pylist()
    pairs = [case["texts"] for case in cases if case["kind"] == of_text[0]]
    n_hard = sum(len(wrong) <= len(true) for true, wrong in pairs)
    assert wall(at)["heading"].startswith(f"{n_hard:,} ")


def test_above_the_limit_of_pairs_the_button_for_cases_beyond_text_is_hidden(
    show_page, guessed, monkeypatch
):
    clear_cache(monkeypatch)
    monkeypatch.setattr(caption_bins, "MOST_PAIRS", 2)
    at = show_page(guessed, "explore", cards="every", outcome="all")
    assert not at.exception and "hard" not in {button.key for button in at.button}
    row = next(row for row in views.runs.question_set_rows(guessed) if row.probe == "lgip")
    question_set = views.runs.question_set(guessed, row.case_key)
    assert caption_bins.guessed_kinds(question_set) == frozenset()
    assert caption_bins.TEXT_ALONE not in views.estimates.slices(question_set)


def test_home_ends_with_the_best_guess_without_the_picture(show_page, guessed):
    row = next(row for row in views.runs.question_set_rows(guessed) if row.probe == "lgip")
    at = show_page(guessed, "home", set=row.case_key, kind="flip")
    lines = [link.proto.label for link in at.get("page_link")]
    assert [
        line
        for line in lines
        if line.startswith("Without the picture, the best guess by length prefers")
    ], lines


def test_slides_have_a_bar_for_the_guess_without_the_picture(guessed):
    row = next(row for row in views.runs.question_set_rows(guessed) if row.probe == "lgip")
    question_set = views.runs.question_set(guessed, row.case_key)
    story = views.story.story(question_set, "flip")
    (better,) = [slide for slide in slides(story) if slide.id == "better"]
    assert story.guess is not None
    wrong = 1 - story.guess.accuracy.value
    *_, last = better.bars
    assert (last.model, last.text) == ("No picture", f"{100 * wrong:.1f} %")
    assert last.remark == "best guess by length"
    assert last.end / better.bars[0].end == pytest.approx(
        wrong / story.standings.fit[0].share, rel=1e-6
    )
