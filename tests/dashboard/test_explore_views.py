"""Explore's views: the wall, the map and the suspect labels show the same selection of cases."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qs

import numpy as np
import plotly.io
import pytest
from streamlit.testing.v1 import AppTest

from tests.conftest import case_key_of
from tests.dashboard.test_pages import bodies, words
from tests.dashboard.walls import card_ids, component_values, send, wall
from tests.views.test_suspects import (  # noqa: F401 (fixtures)
    answered,
    dataset,
    folder,
    kind_of,
    models,
    question_set,
    store,
)
from vlprobe import registry, views
from vlprobe.dashboard import decks, drawer, embeddings, state
from vlprobe.dashboard.embeddings import N_NEAREST
from vlprobe.dashboard.lab import suspects as lab_suspects
from vlprobe.dashboard.loaded import load_player
from vlprobe.dashboard.play import playground
from vlprobe.dashboard.state import model_name, plain
from vlprobe.errors import InvalidInput
from vlprobe.render.charts.points import point_map
from vlprobe.render.sentences import counted
from vlprobe.render.slides.arrangement import parse
from vlprobe.runs.exhibits import canvas as canvas_of
from vlprobe.runs.playground import words_that_matter
from vlprobe.scoring.pictures import open_picture
from vlprobe.storage import access, annotations, display_names, shipped
from vlprobe.storage.bookmarks import DECKS
from vlprobe.storage.store import Store
from vlprobe.surfaces.report import selection
from vlprobe.types import Picture
from vlprobe.views.filter import Filter, region_cases, region_label, region_text
from vlprobe.views.runs import QuestionSet

ONE, OTHER = "control:random", "guess"
FLIPS = Filter("demo:softmax", "flip")


def figure(at: AppTest):
    return plotly.io.from_json(at.get("plotly_chart")[-1].proto.spec)


def marks(at: AppTest) -> int:
    """Return the number of cases with a mark on the map."""
    return sum(len(trace.text) for trace in figure(at).data)


def test_suspects_are_those_of_the_selected_cases(show_page, store: Store):  # noqa: F811
    questions, kind = question_set(store), kind_of(store)
    ranking = views.suspects.suspects(questions, kind, 0.7)
    weakest = ranking.accuracies[-1].model
    query = {"model": weakest, "kind": kind, "view": "suspects", "accuracy": "0.7"}
    for outcome in ("all", "held"):
        passing = views.cases.passing(questions, Filter(weakest, kind, outcome=outcome))[0]
        selected = [each for each in ranking.suspects if each.case in passing]
        at = show_page(store, "explore", **query, outcome=outcome)
        (head,) = [each.value for each in at.markdown if "strong models get" in each.value]
        assert f"strong models get {counted(len(selected), 'case')} wrong" in head
        filters = plain(f"Without the filters ({model_name(weakest)} not fooled): ")
        assert (f"{filters}{counted(len(ranking.suspects), 'case')}." in head) == (
            outcome == "held"
        )
        listed = at.dataframe[0].value["wrong caption"].tolist() if selected else []
        assert listed == [each.wrong_text for each in selected]
        for row, each in zip(at.dataframe[0].value.to_dict("records"), selected, strict=False):
            assert all(
                word in each.wrong_text for word in row["changed words"].split(" → ")[1].split(", ")
            )


@pytest.fixture
def scenes_key(bundled: Store) -> str:
    """Return the key of the bundled question set about drawn scenes."""
    sets = views.runs.question_sets(bundled)
    return sets.loc[sets["probe"] == "lgip", "case_key"].iloc[0]


def test_a_failed_search_keeps_the_typed_text(show_page, bundled, scenes_key, monkeypatch):
    def fail(*_: object) -> None:
        raise InvalidInput("No such folder.")

    monkeypatch.setattr(embeddings, "show_nearest", fail)
    at = show_page(bundled, "explore", set=scenes_key, model="demo:softmax", kind="flip")
    at.text_input("shows").set_value("a boat on the sea").run()
    assert [each.value for each in at.error] == ["No such folder."]
    assert at.text_input("shows").value == "a boat on the sea"


def test_a_link_with_a_search_shows_its_text_in_the_field(show_page, bundled, scenes_key):
    searched = region_text("pictures like “a boat” by Tiny CLIP", np.arange(9), True)
    arguments = {"set": scenes_key, "model": "demo:softmax", "kind": "flip"}
    at = show_page(bundled, "explore", **arguments, region=searched)
    assert at.text_input("shows").value == "a boat"
    at.query_params["region"] = region_text("2 pictures on the map", np.arange(9))
    assert at.run().text_input("shows").value == ""


def test_a_selection_and_a_search_hold_together_and_go_one_by_one(show_page, bundled, scenes_key):
    every = Filter("demo:softmax", "flip", outcome="all")
    numbers = views.cases.passing(views.runs.question_set(bundled, scenes_key), every)[0]
    selected = region_text("2 pictures on the map", numbers[:6])
    searched = region_text("pictures like “a boat” by Tiny CLIP", numbers[3:9], True)
    query = {"set": scenes_key, "model": "demo:softmax", "kind": "flip", "outcome": "all"}
    query |= {"sort": "likeness", "cards": "every"}
    at = show_page(bundled, "explore", **query, region=[selected, searched])
    assert len(card_ids(at)) == 3 and at.text_input("shows").value == "a boat"
    assert at.selectbox(key="sort").value == "likeness"
    at.button("chip_0").click().run()
    assert "".join(at.query_params["region"]) == searched and len(card_ids(at)) == 6


@pytest.mark.full  # embeds 500 scenes
def test_a_search_by_content_finds_pictures_and_marks_them_on_the_map(
    show_page, bundled, scenes_key
):
    at = show_page(
        bundled, "explore", set=scenes_key, model="demo:softmax", kind="flip", view="map"
    )
    assert marks(at) == 500
    texts = [text.replace("<br>", " ") for trace in figure(at).data for text in trace.text]
    assert all(text.endswith(" % fooled") for text in texts)
    at.text_input("shows").set_value("a boat on the sea").run()
    region = "".join(at.query_params["region"])
    assert at.button("chip_0").label == "pictures like “a boat on the sea” by Tiny CLIP"
    assert at.selectbox(key="sort").value == "likeness"
    questions = views.runs.question_set(bundled, scenes_key)
    numbers = region_cases(region)
    tags = views.rows.questions(questions, numbers.tolist())["tags"]
    share = np.mean([case_tags["background"] == "sea" for case_tags in tags])
    every = views.estimates.tag_values_by_name(questions, "flip")
    assert "background" in every and share > 0.5  # a fifth of all pictures
    assert sum(len(trace.selectedpoints or ()) for trace in figure(at).data) == N_NEAREST
    assert "A region picked by eye can look unusual by chance" in words(at)
    at.text_input("shows").set_value("").run()
    assert "region" not in at.query_params and "sort" not in at.query_params
    at.text_input("shows").set_value("a boat on the sea").run()
    at.button("clear_filters").click().run()
    assert "region" not in at.query_params and at.text_input("shows").value == ""


def test_the_marks_of_a_map_carry_numbers_that_json_can_hold():
    values = np.array([0.5, math.nan, 0.25])
    figure = point_map(np.zeros((3, 2)), values, ["a", "b", "c"], "Share fooled", 0.5)
    sent = [trace["customdata"] for trace in json.loads(figure.to_json())["data"]]
    assert sent == [[[2], [0]], [[1]]]  # an array of bytes would come back as {"0": number}
    assert [trace.marker.opacity for trace in figure.data] == [1, 1]  # the colors of the scale


@pytest.mark.parametrize(
    "marks, label", [((0, 2), "3 pictures on the map"), ((1,), "1 picture on the map")]
)
def test_a_lasso_selects_the_cases_of_its_points_and_keeps_the_search(marks, label, monkeypatch):
    mark_of, cases = np.array([0, 1, 2, 2]), np.arange(10, 16)
    points = views.points.Points((), (), cases, np.array([0, 0, 1, 2, 3, 3]), *[np.zeros(4)] * 3)
    written = {}
    searched = region_text("pictures like “a boat” by Tiny CLIP", cases, is_ordered=True)
    before = [region_text("5 pictures on the map", cases), searched]
    address = SimpleNamespace(get_all=lambda name: before)
    monkeypatch.setattr(embeddings, "st", SimpleNamespace(query_params=address))
    monkeypatch.setattr(embeddings, "selected", lambda key: ([[mark] for mark in marks], True))
    monkeypatch.setattr(embeddings, "write_choice", written.update)
    embeddings._select("points", points, mark_of, "picture")
    inside = [
        int(case)
        for case, point in zip(cases, points.point_of, strict=True)
        if mark_of[point] in marks
    ]
    selection, kept = written["region"]
    assert region_label(selection) == label and kept == searched
    assert region_cases(selection).tolist() == inside


def test_the_mark_of_the_shown_suspect_opens_no_case(monkeypatch):
    suspects = [SimpleNamespace(id=name) for name in "ab"]
    session = {"suspect_list": {"selection": {"rows": [0]}}}
    page = SimpleNamespace(session_state=session, query_params={})
    monkeypatch.setattr(lab_suspects, "st", page)
    lab_suspects._open(SimpleNamespace(suspects=suspects), suspects[0])
    assert page.query_params == {}
    lab_suspects._open(SimpleNamespace(suspects=suspects), suspects[1])
    assert page.query_params == {"case": "a"}


def test_the_color_scale_of_shares_labels_its_upper_limit_as_or_more():
    figure = point_map(np.zeros((2, 2)), np.array([0.2, 0.7]), ["a", "b"], "Share fooled", 0.5)
    assert figure.data[0].marker.colorbar.ticktext == ("0%", "25%", "50% or more")


def test_a_damaged_selection_in_a_link_is_dropped_with_a_warning(show_page, bundled, scenes_key):
    at = show_page(
        bundled, "explore", set=scenes_key, model="demo:softmax", kind="flip", region="x~y"
    )
    assert "region" not in at.query_params and not at.exception
    assert "selection “x”" in at.warning[0].value


def test_without_an_encoder_the_map_view_explains_how_to_get_a_map(show_page, store: Store):  # noqa: F811
    at = show_page(store, "explore", view="map")
    assert any("This question set has no map yet" in each.value for each in at.info)


def test_a_case_tagged_under_one_model_says_that_another_is_not_fooled(
    show_page, bundled, scenes_key
):
    only_one = Filter("demo:softmax", "flip", held=("demo:scvc",))
    questions = views.runs.question_set(bundled, scenes_key)
    number = int(views.cases.passing(questions, only_one)[0][0])
    case_id = views.rows.questions(questions, [number])["id"].iloc[0]
    tagged = annotations.Annotation(number, case_id, ("mine",))
    annotations.write(bundled, scenes_key, tagged)
    query = {"set": scenes_key, "model": "demo:scvc", "kind": "flip", "tagged": "mine"}
    at = show_page(bundled, "explore", **query)
    assert "None of the tagged wrong captions fools Mix-tuned here." in words(at)
    assert "mine :gray[0 of 1]" in at.button_group(key="facet_tagged").options
    assert at.button("drop_nearest").label == "With any outcome: one case"
    at.button("drop_nearest").click().run()
    assert card_ids(at) == [case_id] and "of one tagged case" in wall(at)["note"]
    annotations.write(bundled, scenes_key, replace(tagged, tags=()))


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Return the bundled results and the published ones of other authors."""
    monkeypatch.delenv(shipped.SETTING)
    return shipped.StoreAboveShipped(tmp_path, shipped.PUBLISHED_FOLDER, shipped.FOLDER)


def test_the_map_of_published_answers_names_a_command_that_runs(show_page, published: Store):
    at = show_page(published, "explore", set=published_key(published), view="map")
    model = "openclip:ViT-B-32/openai"
    asked = f"--model {model} --dataset bundled:SugarCrepe+available --probe eqben"
    expected = f"vlprobe --cache {published.address} run {asked}"
    assert expected in [each.value for each in at.code]
    registry.check_name("datasets", "bundled:SugarCrepe+available")


def test_a_command_names_a_cache_other_than_the_default(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    other = Store(tmp_path / "other")
    monkeypatch.setattr(state, "store", lambda: other)
    assert state.command("runs") == f"vlprobe --cache {other.address} runs"
    # The server has its cache in VLPROBE_CACHE, which another terminal does not have
    monkeypatch.setattr(state.store_module, "DEFAULT", other.address)
    assert state.command("runs") == f"vlprobe --cache {other.address} runs"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(state, "store", lambda: Store("cache"))
    assert state.command("runs") == "vlprobe runs"


def published_key(above: Store) -> str:
    """Return the key of the published answers to SugarCrepe."""
    return case_key_of(above, dataset="bundled:SugarCrepe")


def test_try_it_keeps_the_models_of_a_case_and_is_disabled_without_one(
    show_page, published, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(playground, "names_here", lambda: [])
    monkeypatch.setattr(views.rows, "are_here", lambda names: True)
    key = published_key(published)
    questions = views.runs.question_set(published, key)
    case = views.cases.failures(questions, Filter("published:GPT-4V", "foil"))[0].iloc[0]["id"]
    at = show_page(published, "explore", set=key, case=case)
    (link,) = [
        each.proto for each in at.get("page_link") if each.proto.label.startswith("Try your")
    ]
    assert link.disabled and "Try it downloads one" in link.help
    scenes = views.runs.question_set(published, case_key_of(published, "lgip", dataset="demo"))
    case = views.cases.failures(scenes, Filter("demo:scvc", "flip"))[0].iloc[0]["id"]
    at = show_page(published, "explore", set=scenes.key, model="demo:scvc", case=case)
    (link,) = [
        each.proto for each in at.get("page_link") if each.proto.label.startswith("Try your")
    ]
    kept = parse_qs(link.query_string)["models"]
    assert not link.disabled and kept[0] == "demo:scvc" and len({*kept}) == 4


def test_a_missing_map_links_to_a_map_of_another_question_set(show_page, published):
    at = show_page(published, "explore", set=published_key(published), view="map")
    assert "Open the map of Drawn scenes" in page_labels(at)


def test_names_with_markdown_are_shown_as_typed_next_to_the_map_and_the_search(
    show_page, published
):
    at = show_page(published, "explore", set=published_key(published), view="map")
    (door,) = [link.proto for link in at.get("page_link") if "the map of" in link.proto.label]
    scenes = parse_qs(door.query_string)["set"][0]
    question_set = views.runs.question_set(published, scenes)
    for name in (question_set.runs[0].dataset, *question_set.models):
        display_names.rename(published, name, f"*{name[-3:]}* $b$")
    at = show_page(published, "explore", set=published_key(published), view="map")
    (door,) = [link.proto for link in at.get("page_link") if "the map of" in link.proto.label]
    assert door.label.startswith(r"Open the map of \*") and r"\$b\$" in door.label
    at = show_page(published, "explore", set=scenes)
    (search,) = [each for each in at.text_input if each.key == "shows"]
    assert r"(by \*" in search.label and r"\$b\$" in search.help


def test_the_explanation_of_a_failure_omits_an_unknown_rate(show_page, published, monkeypatch):
    real = views.facets.model_rates

    def rates(question_set: QuestionSet, case_filter: Filter) -> dict[str, float]:
        known = real(question_set, case_filter)
        return dict.fromkeys(known, math.nan) if case_filter.subtype else known

    monkeypatch.setattr(views.facets, "model_rates", rates)
    query = {"set": published_key(published), "model": "published:GPT-4V", "kind": "foil"}
    text = words(show_page(published, "explore", **query, case="add_att/475/0"))
    assert "one word longer" in text and "nan %" not in text and "any edit in" not in text


def n_hidden(at: AppTest) -> int:
    """Return the number of suspect labels on the button that hides them."""
    return int(at.button("hide_suspects").label.split()[1].replace(",", ""))


def test_sentence_chips_cards_and_counts_agree_on_which_models_are_fooled(show_page, published):
    model, key = "published:GPT-4V", published_key(published)
    at = show_page(published, "explore", set=key, model=model, kind="foil", cards="every")
    questions = views.runs.question_set(published, key)
    models = questions.ordered_models  # noqa: F811
    fooled = np.array([questions.answers(each).margins <= 0 for each in models])
    place = models.index(model)
    of_model, n_fooled = fooled[place], fooled.sum(axis=0)
    for group, value, verb, chip, n_cases in (
        ("agreement", "one", "is fooled by", True, np.sum(of_model & (n_fooled == 1))),
        (f"who_{place}", "any", "is fooled or not by", True, np.sum(n_fooled == 1)),
        (f"who_{place}", "held", "is not fooled by", True, np.sum(~of_model & (n_fooled == 1))),
        ("agreement", "all", "is fooled by", False, np.sum(n_fooled == 5)),
        ("agreement", "one", "is fooled by", True, np.sum(of_model & (n_fooled == 1))),
        ("agreement", None, "is fooled by", False, np.sum(of_model)),
    ):
        at.button_group(key=group).set_value(value).run()
        assert not at.exception and f">{verb}</p>" in bodies(at)
        labels = {button.label for button in at.button}
        assert ("exactly one model fooled" in labels) == chip
        assert wall(at)["heading"].startswith(f"{n_cases:,} wrong captions")
        assert "fooled by" not in wall(at)["note"]  # the share of the sentence, not of one model
        assert ("tied" in {card["verdicts"][place][0] for card in wall(at)["cards"]}) == (
            verb != "is not fooled by"
        )


def test_a_wall_of_suspect_labels_offers_to_judge_them_instead_of_hiding_all(show_page, published):
    model, key = "published:GPT-4V", published_key(published)
    at = show_page(published, "explore", set=key, model=model, kind="foil")
    at.button_group(key="agreement").set_value("all").run()
    n_cases = int(wall(at)["heading"].split()[0])
    assert at.button("hide_suspects").label == f"Judge the {n_cases} suspect labels"
    note = wall(at)["note"]
    assert "all with a suspect label" in note and f"of {n_cases} cases have a picture" in note
    at.query_params["suspects"] = "hide"
    at.run()
    assert "hidden because of their suspect labels" in bodies(at)
    del at.query_params["suspects"]
    at.run().button("hide_suspects").click().run()
    assert "suspects" in at.query_params["view"] and len(at.dataframe[0].value) == n_cases


def page_labels(at: AppTest) -> list[str]:
    """Return the labels of the page's links and buttons."""
    return [link.proto.label for link in at.get("page_link")] + [each.label for each in at.button]


@pytest.mark.full
def test_a_failure_without_a_picture_lists_other_failures_by_the_same_edit(show_page, published):
    rows = views.runs.question_set_rows(published)
    key = next(row.case_key for row in rows if row.dataset == "bundled:VALSE")
    question_set = views.runs.question_set(published, key)
    model = question_set.models[0]
    of_swaps = Filter(model, "foil", subtype=("actant-swap",))
    cards, n_cards, _ = views.wall.wall(question_set, of_swaps)
    card = next(card for card in cards if not views.rows.are_here(card.images))
    at = show_page(published, "explore", set=key, model=model, kind="foil", case=card.id)
    ((_, strip),) = [each for each in component_values(at, "wall") if each[1].get("strip")]
    assert strip["cards"] and card.id not in [each["id"] for each in strip["cards"]]
    assert f"of {n_cards - 1:,}" in words(at)
    assert "No other case has this picture" not in words(at)


def test_the_drawer_explains_a_failure_of_published_answers(show_page, published):
    model = "published:GPT-4V"
    query = {"set": published_key(published), "model": model, "kind": "foil", "sort": "models"}
    at = show_page(published, "explore", **query, case="add_att/475/0")
    text = words(at)
    assert "The label may be wrong: at least two thirds of the strong models reject it." in text
    assert "changes its answer with the order" in text and "one word longer" in text
    questions = views.runs.question_set(published, query["set"])
    table = [
        views.cases.outcomes(questions, Filter(model, "foil", subtype=subtype, outcome="all"))
        for subtype in ("add_att", ())
    ]
    shares = [100 * (each["fooled"] - each["tied"] / 2) / each["all"] for each in table]
    assert f"in {shares[0]:.1f} % of the cases, any edit in {shares[1]:.1f} %" in text
    assert "GPT-4V saw the captions in both orders" in text
    (link,) = [label for label in page_labels(at) if label.startswith("An added attribute fools")]
    assert f"in {shares[0]:.1f} % of {table[0]['all']:,} cases" in link
    assert link.endswith(" in one (counted as half)")
    rows = at.button_group(key="facet_subtype").options
    assert f"Added attribute :gray[{shares[0]:.1f}\u00a0% of {table[0]['all']:,}]" in rows
    (card,) = [card for card in wall(at)["cards"] if card["id"] == "add_att/475/0"]
    assert card["notes"] == ["one right in one order only", "⚑ suspect label"]
    n_before = n_hidden(at)
    assert "Rates include hidden suspect labels." not in words(at)
    at.button("hide_suspects").click().run()
    assert "hide" in at.query_params["suspects"]
    assert "Rates include hidden suspect labels." in words(at)
    assert not any("⚑ suspect label" in card["notes"] for card in wall(at)["cards"])
    assert wall(at)["note"].startswith("of 7,512 cases")
    at = show_page(published, "explore", **query, suspects="hide", view="suspects")
    assert len(at.dataframe[0].value) == n_before


def test_the_first_cards_have_no_suspect_label_unless_another_order_is_chosen(show_page, published):
    query = {"set": published_key(published), "model": "published:GPT-4V", "kind": "foil"}

    def flags(**more) -> list[bool]:
        cards = wall(show_page(published, "explore", **query, **more))["cards"]
        return [
            "suspect" in " ".join(card["notes"]) for card in cards if card["frames"][0]["source"]
        ]

    for shown in (flags(), flags(outcome="held")):
        assert shown and shown == sorted(shown)  # among the cards with a picture, which are first
    assert True in flags() and flags()[0] is False and flags(sort="models")[0] is True
    (first, *_) = wall(show_page(published, "explore", **query))["cards"]
    assert "one right in one order only" not in first["notes"]


def test_a_suspect_label_that_a_reviewer_accepted_is_not_hidden_or_doubted(show_page, published):
    model, case_id = "published:GPT-4V", "add_att/475/0"
    query = {"set": published_key(published), "model": model, "kind": "foil"}
    questions = views.runs.question_set(published, query["set"])
    (suspect,) = [
        each for each in views.suspects.suspects(questions, "foil").suspects if each.id == case_id
    ]
    n_before = n_hidden(show_page(published, "explore", **query))
    views.suspects.judge(questions, suspect.case, case_id, "right")
    at = show_page(published, "explore", **query, case=case_id)
    assert n_hidden(at) == n_before - 1
    assert "The label may be wrong" not in words(at)
    at = show_page(published, "explore", **query, suspects="hide")
    assert case_id in card_ids(at)


def test_a_case_is_added_to_the_slides_and_stays_open(show_page, bundled, scenes_key, monkeypatch):
    monkeypatch.setenv(access.READ_ONLY, "1")  # the deck is stored in this session only
    questions = views.runs.question_set(bundled, scenes_key)
    case_id = views.wall.wall(questions, FLIPS)[0][0].id
    at = show_page(bundled, "explore", set=scenes_key, model=FLIPS.model, kind="flip", case=case_id)
    for message in ("Added to the slides", "Already in the slides"):
        at.button("case_deck").click().run()
        assert at.toast[0].value == f"{message}."
        assert at.query_params["case"] == case_id and not at.exception
    deck = parse(json.loads(at.session_state[decks.DECK][f"{scenes_key} flip"]))
    assert deck.cases == (case_id,)


def test_selected_cards_can_be_tagged_saved_as_a_slice_added_to_the_slides_and_filtered(
    show_page, bundled, scenes_key
):
    at = show_page(bundled, "explore", set=scenes_key, model=FLIPS.model, kind="flip")
    assert wall(at)["offered"] == list(annotations.SUGGESTED)
    ids = card_ids(at)[1:4]
    sent = {"ids": [*ids, "unknown"], "act": "tag", "tag": "", "front": True}
    for each, tags in (("telling", ["telling"]), ("hard *one*", ["hard *one*", "telling"])):
        at = send(at, "wall", "chosen", sent | {"tag": each})
        assert at.toast[0].value.startswith(f"Tagged 3 cases: {plain(each)}. ")
        assert {
            each.id: list(each.tags) for each in annotations.read(bundled, scenes_key).current
        } == (dict.fromkeys(ids, tags))
    at = send(at, "wall", "chosen", sent | {"tag": "x" * 31})
    assert "is not a valid tag" in at.error[0].value
    at = send(at, "wall", "chosen", sent | {"act": "slice", "tag": "mine"})
    questions = views.runs.question_set(bundled, scenes_key)
    numbers = views.named_slices.members(questions, "mine")
    assert set(views.rows.questions(questions, numbers.tolist())["id"]) == set(ids)
    assert set(card_ids(at)) == set(ids) and at.button("chip_0").label == "in the slice mine"
    assert at.button_group(key="facet_slices").value == "mine"
    assert "mine" in at.query_params["slice"] and "column on Compare" in at.toast[0].value
    at = send(at, "wall", "chosen", sent | {"act": "deck"})
    assert at.toast[0].value.startswith("Added 3 of 3 cases to the slides. [Open the slides](")
    assert parse(json.loads(DECKS.read(bundled)[f"{scenes_key} flip"])).cases == tuple(ids)
    at = send(at, "wall", "chosen", sent | {"act": "tag", "tag": "the slice", "every": True})
    assert at.toast[0].value.startswith("Tagged 3 cases: the slice. ")
    again = {"act": "tag", "tag": "the slice"}
    at = send(at, "wall", "chosen", sent | again | {"ids": ids[:2]})
    assert at.toast[0].value == "Removed the tag the slice from 2 cases"
    at = send(at, "wall", "chosen", sent | again)  # one of three has it
    assert at.toast[0].value.startswith("Tagged 3 cases")
    for damaged in ("ids", {"ids": 3}, sent | {"ids": ["unknown"]}):
        assert not send(at, "wall", "chosen", damaged).toast
    at = send(at, "wall", "chosen", sent | {"act": "show"})
    assert card_ids(at) == ids and at.button("chip_0").label == "3 selected cases"


def test_the_cases_behind_a_selected_card_are_tagged_too(show_page, bundled, scenes_key):
    at = show_page(bundled, "explore", set=scenes_key, model=FLIPS.model, kind="flip")
    card = wall(at)["cards"][1]
    assert card["badge"] == f"+{card['cases'] - 1}"
    questions = views.runs.question_set(bundled, scenes_key)
    (shown,) = (each for each in views.wall.wall(questions, FLIPS)[0] if each.id == card["id"])
    others, n_others = views.wall.same_group(questions, FLIPS, shown.case)
    sent = {"ids": [card["id"]], "act": "tag", "tag": "telling"}
    at = send(at, "wall", "chosen", sent)
    assert at.toast[0].value.startswith(f"Tagged {card['cases']} cases: telling.")
    tagged = {each.id for each in annotations.read(bundled, scenes_key).current}
    assert tagged == {shown.id, *(each.id for each in others)} and n_others == card["cases"] - 1
    note = f"My tags: telling (all {card['cases']} cases)"
    assert wall(at)["cards"][1]["notes"] == [note]
    at = send(at, "wall", "chosen", sent | {"front": True, "tag": "odd"})
    assert wall(at)["cards"][1]["notes"] == ["My tags: odd, telling", "Other cases: telling"]
    assert at.toast[0].value.startswith("Tagged one case: odd.")
    at = show_page(bundled, "explore", set=scenes_key, kind="flip", cards="every")
    assert {each["cases"] for each in wall(at)["cards"]} == {1}


def test_more_cases_than_fit_in_a_file_cannot_be_selected_at_once(
    show_page, bundled, scenes_key, monkeypatch
):
    at = show_page(bundled, "explore", set=scenes_key, model=FLIPS.model, kind="flip")
    monkeypatch.setattr(selection, "MOST", 5)
    sent = {"ids": card_ids(at)[:1], "act": "tag", "tag": "telling", "every": True}
    at = send(at, "wall", "chosen", sent)
    assert "are too many to select at once. The maximum is 5." in at.error[0].value
    assert not annotations.read(bundled, scenes_key).current


def test_cards_of_a_search_say_why_they_are_listed(show_page, bundled, scenes_key):
    questions = views.runs.question_set(bundled, scenes_key)
    first, second = views.wall.wall(questions, FLIPS, size=2)[0]
    cases, shares = np.array([second.case, first.case]), [0.75, 0.5, 0.125]
    query = {"set": scenes_key, "model": FLIPS.model, "kind": "flip", "sort": "likeness"}
    region = region_text("pictures like “a boat” by Tiny CLIP", cases, True, shares)
    at = show_page(bundled, "explore", **query, region=region)
    shown = wall(at)
    assert [card["id"] for card in shown["cards"]] == [second.id, first.id]
    notes = [card["notes"][0] for card in shown["cards"]]
    assert notes == ["No. 1 · similarity 0.75", "No. 2 · similarity 0.50"]
    assert "(median picture 0.12)" in shown["note"]
    assert at.button("chip_0").label == "pictures like “a boat” by Tiny CLIP"
    # A damaged link names a case that does not exist
    damaged = region_text("x", np.array([999_999, first.case]), True, shares)
    at = show_page(bundled, "explore", **query, region=damaged)
    assert not at.exception
    assert wall(at)["cards"][0]["notes"][0] == "No. 1 · similarity 0.50"
    word = first.texts[0].split()[-1].strip(".")
    for card in wall(show_page(bundled, "explore", **query, words=word))["cards"]:
        assert word in card["notes"][0]


@pytest.mark.full  # embeds 500 scenes
def test_more_like_this_closes_the_case_and_shows_the_nearest_pictures(
    show_page, bundled, scenes_key
):
    questions = views.runs.question_set(bundled, scenes_key)
    card = views.wall.wall(questions, FLIPS)[0][0]
    query = {"set": scenes_key, "model": FLIPS.model, "kind": "flip", "case": card.id}
    at = show_page(bundled, "explore", **query, type="number", fooled="demo:weak")
    at.button("case_similar").click().run()
    assert "case" not in at.query_params and not at.exception
    numbers = region_cases("".join(at.query_params["region"]))
    near = views.rows.questions(questions, numbers.tolist())
    assert card.images not in list(map(tuple, near["images"]))
    assert near["images"].map(tuple).nunique() == N_NEAREST
    assert len(wall(at)["cards"]) == N_NEAREST  # whatever the filters


def test_a_drawer_explains_the_failure_of_the_model_that_must_be_fooled(
    show_page, bundled, scenes_key
):
    questions = views.runs.question_set(bundled, scenes_key)
    required = replace(FLIPS, outcome="held", fooled=("demo:weak",))
    card = views.wall.wall(questions, required)[0][0]
    query = {"set": scenes_key, "model": FLIPS.model, "kind": "flip", "outcome": "all"}
    at = show_page(bundled, "explore", **query, fooled="demo:weak", case=card.id)
    explained = words(at)
    assert f"fools {model_name('demo:weak')} in" in explained
    assert f"fools {model_name(FLIPS.model)} in" not in explained


@pytest.mark.parametrize(("n_pictures", "expected"), [(500, N_NEAREST), (20, 5), (5, 2)])
def test_a_search_keeps_at_most_a_quarter_of_the_pictures(monkeypatch, n_pictures, expected):
    every = SimpleNamespace(names=("picture",) * n_pictures)
    monkeypatch.setattr(embeddings, "_all_points", lambda subject, side: every)
    assert embeddings.count_nearest(SimpleNamespace()) == expected


@pytest.mark.full  # embeds parts of two pictures, above 7,500 searches
def test_a_mixed_picture_shows_its_parts(show_page, bundled):
    sets = views.runs.question_sets(bundled)
    key = sets.loc[sets["probe"] == "rococo", "case_key"].iloc[0]
    searched = Filter("demo:softmax", "t2i")
    questions = views.runs.question_set(bundled, key)
    card = views.wall.wall(questions, searched, size=1)[0][0]
    mixed = Picture.from_name(card.wrong_image)
    query = {"set": key, "model": searched.model, "kind": "t2i", "case": card.id}
    at = show_page(bundled, "explore", **query)
    stays = round(100 * mixed.edit.lam)
    mixture = f"Ranked 1st instead: {stays} % of the first picture, {100 - stays} % of the second"
    assert mixture in bodies(at) and f'alt="{stays} % of this picture"' in bodies(at)
    at.button("case_why").click().run()
    assert bodies(at).count("The right picture</p>") == 1  # next to its words and parts
    assert bodies(at).count("Ranked 1st instead</p>") == 1
    assert f"fools {model_name(searched.model)} in" in words(at)


def test_a_case_shows_the_words_and_parts_that_matter(show_page, bundled, scenes_key):
    questions = views.runs.question_set(bundled, scenes_key)
    card = views.wall.wall(questions, FLIPS)[0][0]
    query = {"set": scenes_key, "model": FLIPS.model, "kind": "flip", "case": card.id}
    at = show_page(bundled, "explore", **query)
    assert "vp-word" not in bodies(at)
    at.button("case_why").click().run()
    player = load_player("demo:softmax")
    canvas = canvas_of(open_picture(Picture.from_name(card.images[0])))
    for sign, caption in ((1, card.true_text), (-1, card.wrong_text)):
        falls = words_that_matter(player, canvas, caption)
        assert f">{sign * max(falls.values()):.3f}</small>" in bodies(at)
    assert "or when the part is black" in words(at)
    # Below the words and below the picture
    assert (
        bodies(at).count("for the wrong caption -") == bodies(at).count("for the true caption") == 2
    )
    assert 'alt="The margin falls most' in bodies(at)
    at.button("case_why").click().run()
    assert "vp-word" not in bodies(at)
    of_type = Filter.parse(FLIPS.model, "flip", subtype=card.subtype)
    n_fooled = views.cases.outcomes(questions, of_type)
    shares = f"{n_fooled['fooled']:,} of {n_fooled['all']:,} cases"
    (label,) = [link.proto.label for link in at.get("page_link") if shares in link.proto.label]
    assert label.startswith("A wrong") and " fools Tiny CLIP in " in label
    assert drawer._fools(SimpleNamespace(subtype="swap_obj")) == "Swapped things fool"


def test_the_explanation_of_a_rewording_mentions_no_wrong_caption(show_page, bundled, scenes_key):
    questions = views.runs.question_set(bundled, scenes_key)
    chosen = Filter(FLIPS.model, "paraphrase", outcome="all")
    card = views.wall.wall(questions, chosen)[0][0]
    query = {"set": scenes_key, "model": FLIPS.model, "kind": "paraphrase", "case": card.id}
    at = show_page(bundled, "explore", **query)
    at.button("case_why").click().run()
    assert "margin (score of" not in words(at)
    assert "embedding of the caption moves" in words(at)
    assert bodies(at).count("vp-word") >= len(card.true_text.split()[:2]) + 2
    assert 'alt="The score falls most' in bodies(at)


def test_the_explanation_with_a_model_that_is_no_encoder_asks_for_another_one(
    show_page, bundled, scenes_key, monkeypatch
):
    monkeypatch.setattr(embeddings, "may_embed", lambda name: name != FLIPS.model)
    card = views.wall.wall(views.runs.question_set(bundled, scenes_key), FLIPS)[0][0]
    query = {"set": scenes_key, "model": FLIPS.model, "kind": "flip", "case": card.id}
    at = show_page(bundled, "explore", **query)
    lacks = "needs an encoder, and Tiny CLIP cannot be used as one here. Choose another model."
    assert lacks in words(at)
    assert "Tiny CLIP" not in at.selectbox(key="case_why_model").options


def test_a_wall_of_rewordings_says_how_far_scores_move(show_page, bundled, scenes_key):
    chosen = Filter(FLIPS.model, "paraphrase", outcome="all")
    at = show_page(bundled, "explore", set=scenes_key, model=FLIPS.model, kind="paraphrase")
    questions = views.runs.question_set(bundled, scenes_key)
    numbers = views.cases.passing(questions, chosen)[0]
    moved = sorted(-views.rows.margins(questions, [FLIPS.model], numbers)[0])
    middle, far = moved[len(moved) // 2], moved[len(moved) * 9 // 10]
    assert f"half moved by at most {middle:.3f}, a tenth by more than {far:.3f}" in wall(at)["note"]
    at = show_page(bundled, "explore", set=case_key_of(bundled, probe="prsm"), kind="ranking")
    assert re.search(r"half moved by at most \d+ %, a tenth by more than \d+ %", wall(at)["note"])


def test_the_explanation_says_whether_weights_or_the_picture_are_missing(
    show_page, tmp_path, monkeypatch
):
    monkeypatch.delenv(shipped.SETTING)
    published = shipped.StoreAboveShipped(tmp_path, shipped.PUBLISHED_FOLDER)
    (row,) = [
        each
        for each in views.runs.question_set_rows(published)
        if each.dataset == "bundled:SugarCrepe" and each.probe == "eqben"
    ]
    questions = views.runs.question_set(published, row.case_key)
    chosen = Filter(questions.rated_models[0], "foil", pictured=True)
    card = views.wall.wall(questions, chosen)[0][0]
    query = {"set": questions.key, "model": chosen.model, "kind": "foil", "case": card.id}
    at = show_page(published, "explore", **query)
    assert "needs a model whose weights are on this computer. The view Map" in words(at)
    assert "case_why" not in {button.key for button in at.button}
    without = views.cases.passing(questions, Filter(chosen.model, "foil"))[0]
    hidden = views.rows.pictured(questions, "foil")
    number = next(each for each in without.tolist() if each not in hidden)
    case_id = views.rows.questions(questions, [number])["id"].iloc[0]
    at = show_page(published, "explore", **{**query, "case": case_id})
    assert "needs the picture on this computer" in words(at)
