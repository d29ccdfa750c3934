"""Explore, without a browser: the sentence, filters, the wall, the next case, tags, notes, saved views, exports."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
import streamlit as st
from click.testing import CliRunner
from streamlit.testing.v1 import AppTest

from tests.conftest import case_key_of, tiers
from tests.dashboard.test_pages import ROOT, bodies, words
from tests.dashboard.walls import card_ids, component_values, send, wall
from vlprobe import views
from vlprobe.cli import main
from vlprobe.dashboard import case_links, filters, state
from vlprobe.dashboard.navigation import PAGE_SIZE
from vlprobe.render.html.elements import ordered
from vlprobe.render.sentences import shorten
from vlprobe.render.words import value_label
from vlprobe.storage import annotations, bookmarks, shipped
from vlprobe.storage import store as store_module
from vlprobe.storage.annotations import Annotation
from vlprobe.storage.bookmarks import SLICES
from vlprobe.storage.shipped import StoreAboveShipped
from vlprobe.storage.store import Store
from vlprobe.views.paired_outcomes import bucket
from vlprobe.views.pattern_groups import pattern_groups

SHIPPED_LGIP = "caca69741f742f8b"

ONE, OTHER = "control:random", "guess"
SIZE = 12  # cards on a page, so that few cases are several pages


@pytest.fixture
def key(compared: Store) -> str:
    return case_key_of(compared)


def press(at: AppTest, label: str) -> AppTest:
    next(button for button in at.button if button.label == label).click().run()
    assert not at.exception, at.exception[0].message
    return at


def test_a_page_that_changes_a_table_does_not_change_the_cached_one(
    compared: Store, key: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(store_module, "DEFAULT", compared.root)
    question_set = views.runs.question_set(compared, key)
    first, total = state.view(views.cases.failures, question_set, views.filter.Filter(ONE))
    expected = first["margin"].tolist()
    first["margin"] = 0.0
    first.insert(0, "more", 1)
    again, _ = state.view(views.cases.failures, question_set, views.filter.Filter(ONE))
    assert again["margin"].tolist() == expected and "more" not in again
    counts = state.view(views.cases.outcomes, question_set, views.filter.Filter(ONE))
    assert counts["fooled"] == total
    counts["fooled"] = -1
    assert (
        state.view(views.cases.outcomes, question_set, views.filter.Filter(ONE))["fooled"] == total
    )


@pytest.mark.parametrize("name", ["only_first", "only_second"])
def test_with_a_second_model_each_bucket_is_counted_and_shown(
    show_page, compared: Store, key: str, name: str
):
    at = show_page(compared, "explore", model=ONE, other=OTHER, bucket=name, cards="every")
    chosen = bucket(views.filter.Filter(ONE, other=OTHER, sort="difference"), name)
    expected, total = views.cases.failures(
        views.runs.question_set(compared, key), chosen, 1, PAGE_SIZE
    )
    assert card_ids(at) == expected["id"].tolist()
    assert not any(card["badge"] for card in wall(at)["cards"])  # every case has a card
    counts = views.cases.outcomes(views.runs.question_set(compared, key), chosen)
    assert counts[chosen.outcome] == total
    assert any(option.endswith(f" {total:,}") for option in at.get_by_key("bucket").options)


def test_the_drawer_shows_both_margins_and_their_difference(show_page, compared: Store, key: str):
    at = show_page(compared, "explore", model=ONE, other=OTHER, bucket="all")
    at = send(at, "wall", "open", card_ids(at)[0])
    question_set = views.runs.question_set(compared, key)
    case = views.rows.case_number(question_set, card_ids(at)[0])
    assert case is not None
    margins = views.rows.answers(question_set, [case]).set_index("model")["margin"].astype(float)
    text = words(at)
    for margin in margins[[ONE, OTHER]]:
        assert f"{margin:+.3f}" in text
    assert f"Difference (first minus second){margins[ONE] - margins[OTHER]:+.3f}" in text


def test_the_heading_counts_lies_and_pictures(show_page, compared: Store, key: str):
    at = show_page(compared, "explore", model=ONE)
    question_set = views.runs.question_set(compared, key)
    counts = views.cases.outcomes(question_set, views.filter.Filter(ONE))
    _, n_pictures, n_cases = views.wall.wall(question_set, views.filter.Filter(ONE))
    assert counts["fooled"] == n_cases
    heading = wall(at)["heading"]
    assert heading == f"{n_cases:,} wrong captions preferred, on {n_pictures:,} pictures"
    assert (
        f"{100 * counts['fooled'] / counts['all']:.1f} % of {counts['all']:,}" in wall(at)["note"]
    )


def test_next_and_previous_cross_the_end_of_a_page(
    show_page, compared: Store, key: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("vlprobe.dashboard.explore.PAGE_SIZE", SIZE)
    chosen = views.filter.Filter(ONE, outcome="all")
    pages = [
        views.cases.failures(views.runs.question_set(compared, key), chosen, page, SIZE)[0][
            "id"
        ].tolist()
        for page in (1, 2)
    ]
    total = views.cases.outcomes(views.runs.question_set(compared, key), chosen)["all"]
    at = show_page(compared, "explore", model=ONE, outcome="all", cards="every", case=pages[0][-1])
    assert f"Case {SIZE} of {total:,}" in words(at)
    press(at, "Next")
    assert pages[1][0] in at.query_params["case"]
    assert "2" in at.query_params["page"]
    assert f"{SIZE + 1} of {total:,}" in words(at)
    press(at, "Previous")
    assert pages[0][-1] in at.query_params["case"]
    assert f"{SIZE} of {total:,}" in words(at)
    at = show_page(compared, "explore", model=ONE, outcome="all", cards="every", case=pages[0][0])
    off = {
        button.label: button.disabled
        for button in at.button
        if button.label in ("Previous", "Next")
    }
    assert off == {"Previous": True, "Next": False}


def test_a_case_that_fails_the_filters_opens_with_a_note(show_page, compared: Store, key: str):
    other = views.cases.failures(
        views.runs.question_set(compared, key),
        views.filter.Filter(ONE, "paraphrase", outcome="all"),
    )[0].iloc[0]
    at = show_page(compared, "explore", model=ONE, case=other["id"])
    assert "Not among the cases that pass the filters" in words(at)
    assert value_label(other["rule"]) in words(at) and value_label(other["rule"]) != other["rule"]
    assert not at.error
    assert (
        "This case is not in the question set"
        in show_page(compared, "explore", model=ONE, case="../<b>").info[-1].value
    )


def test_a_card_shows_the_tags_of_the_cases_behind_it(show_page, store_copy: Store, key: str):
    question_set, fooled = views.runs.question_set(store_copy, key), views.filter.Filter(ONE)
    cards, _, _ = views.wall.wall(question_set, fooled)
    place, front = next((place, card) for place, card in enumerate(cards) if card.more)
    behind = views.wall.same_group(question_set, fooled, front.case)[0][0]
    annotations.write(store_copy, key, Annotation(front.case, front.id, ("seen",)))
    annotations.write(store_copy, key, Annotation(behind.case, behind.id, ("telling",), "Look"))
    at = show_page(store_copy, "explore", model=ONE)
    notes = wall(at)["cards"][place]["notes"]
    assert notes == ["My tags: seen", "Other cases: telling, ✎ note"]
    at = show_page(store_copy, "explore", model=ONE, cards="every")
    notes = {card["id"]: card["notes"] for card in wall(at)["cards"]}
    own = ["My tags: telling · ✎ note"]
    assert (notes[front.id], notes[behind.id]) == (["My tags: seen"], own)


def test_a_tag_and_a_note_are_stored_when_entered_and_can_be_filtered_by(
    show_page, store_copy: Store, key: str
):
    first = views.cases.failures(
        views.runs.question_set(store_copy, key), views.filter.Filter(ONE)
    )[0].iloc[0]
    at = show_page(store_copy, "explore", model=ONE, case=first["id"])
    tags = next(widget for widget in at.multiselect if widget.label == "My tags")
    tags.set_value(["ambiguous"]).run()
    at.text_area[0].set_value("**Look** <script>alert(1)</script>").run()
    assert "✓ Saved" in words(at)
    stored = annotations.read(store_copy, key).current
    assert stored == (
        Annotation(
            int(first["case"]), first["id"], ("ambiguous",), "**Look** <script>alert(1)</script>"
        ),
    )
    at = show_page(store_copy, "explore", model=ONE, tagged="ambiguous")
    assert card_ids(at) == [first["id"]]
    assert wall(at)["cards"][0]["notes"] == ["My tags: ambiguous · ✎ note"]
    assert at.button(key="chip_0").label == "tagged ambiguous"
    for value, label in ((" note", "with a note"), (" any", "with any tag")):
        at = show_page(store_copy, "explore", model=ONE)
        group = at.button_group(key="facet_tagged")
        rows = [f"{name} :gray[1 of 1]" for name in ("any tag", "a note", "ambiguous")]
        assert list(group.options) == rows
        group.set_value([value]).run()
        assert card_ids(at) == [first["id"]] and at.button(key="chip_0").label == label
        excluded = {" note": "no note", " any": "no tag"}[value]
        at.button_group(key="facet_tagged").set_value([]).run()  # a third click would clear it
        assert at.button(key="chip_0").label == excluded
        assert f"{excluded} :gray[1 of 1]" in at.button_group(key="facet_tagged").options
    at = show_page(store_copy, "explore", model=ONE, tagged="ambiguous", case=first["id"])
    assert at.text_area[0].value == "**Look** <script>alert(1)</script>"
    annotations.write(store_copy, key, Annotation(int(first["case"]), first["id"]))
    second = views.cases.failures(
        views.runs.question_set(store_copy, key), views.filter.Filter(ONE)
    )[0].iloc[1]
    annotations.write(
        store_copy, key, Annotation(int(second["case"]), second["id"], ("ambiguous",))
    )
    del at.query_params["case"]
    assert card_ids(at.run()) == [second["id"]]  # a tag of another process is shown at once


def test_a_note_that_is_too_long_shows_an_error_in_the_drawer_and_is_not_stored(
    show_page, store_copy: Store, key: str, monkeypatch: pytest.MonkeyPatch
):
    first = views.cases.failures(
        views.runs.question_set(store_copy, key), views.filter.Filter(ONE)
    )[0].iloc[0]
    at = show_page(store_copy, "explore", model=ONE, case=first["id"])
    monkeypatch.setattr(annotations, "NOTE_LENGTH", 3)
    at.text_area[0].set_value("too long").run()
    assert "has 8 characters" in at.error[0].value
    assert "✓ Saved" not in words(at) and at.text_area[0].value == ""
    assert annotations.read(store_copy, key).current == ()


def test_a_saved_tag_keeps_the_note_of_another_person_and_can_be_undone(
    show_page, store_copy: Store, key: str
):
    question_set = views.runs.question_set(store_copy, key)
    first = views.cases.failures(question_set, views.filter.Filter(ONE))[0].iloc[0]
    case = int(first["case"])
    at = show_page(store_copy, "explore", model=ONE, case=first["id"])
    annotations.write(store_copy, key, Annotation(case, first["id"], (), "By another person."))
    next(field for field in at.multiselect if field.label == "My tags").set_value(["odd"]).run()
    stored = annotations.read(store_copy, key).current
    assert stored == (Annotation(case, first["id"], ("odd",), "By another person."),)
    assert at.text_area[0].value == "By another person."
    press(at, "Undo")
    assert annotations.read(store_copy, key).current == (replace(stored[0], tags=()),)
    assert not [button for button in at.button if button.label in ("Undo", "Keep")]


def test_a_read_only_dashboard_shows_notes_and_has_no_button(
    show_page, store_copy: Store, key: str, monkeypatch
):
    first = views.cases.failures(
        views.runs.question_set(store_copy, key), views.filter.Filter(ONE)
    )[0].iloc[0]
    annotations.write(
        store_copy, key, Annotation(int(first["case"]), first["id"], ("odd",), "A note.")
    )
    path = store_copy.root / "mine" / "annotations" / f"{key}.jsonl"
    path.write_bytes(b"{\n" + path.read_bytes())
    bookmarks.VIEWS.save(store_copy, "mine", "kind=flip")
    monkeypatch.setenv("VLPROBE_READ_ONLY", "1")
    at = show_page(store_copy, "explore", model=ONE, case=first["id"])
    assert "A note." in words(at)
    assert f"{key}.jsonl, line 1" in at.warning[0].value.replace("\\", "")
    assert not {"Undo", "Save", "Remove"} & {button.label for button in at.button}


def test_a_view_is_saved_and_removed(show_page, store_copy: Store):
    at = show_page(store_copy, "explore", model=ONE, kind="combined", page="2", words="bench")
    press(at, "Save")  # without a name
    assert "Type a name first." in words(at) and not at.error
    at.text_input(key="view_name").set_value("Benches *")
    press(at, "Save")
    saved = bookmarks.VIEWS.read(store_copy)["Benches *"]
    assert "kind=combined" in saved
    assert "words=bench" in saved
    assert "page" not in saved
    press(at, "Remove")
    assert bookmarks.VIEWS.read(store_copy) == {}


def test_a_slice_is_saved_opened_by_its_link_refused_once_changed_and_removed(
    show_page, store_copy: Store, key: str
):
    question_set = views.runs.question_set(store_copy, key)
    words_filter = views.filter.Filter(ONE, contains="bench")
    numbers, _, _ = views.cases.passing(question_set, words_filter)
    at = show_page(store_copy, "explore", model=ONE, words="bench")
    at.text_input(key="slice_name").set_value("Benches *")
    press(at, "Save slice")
    named, refusals = views.named_slices.applicable(store_copy, key)
    assert named["Benches *"].tolist() == numbers.tolist() and not refusals
    at = show_page(store_copy, "explore", model=ONE, slice="Benches *", outcome="all")
    assert any("in the slice Benches" in button.label for button in at.button)
    ids = views.rows.questions(question_set, numbers.tolist())["id"]
    assert card_ids(at) and set(card_ids(at)) <= set(ids)
    content = json.loads(SLICES.read(store_copy)["Benches *"])
    content["digests"][ids[0]] = "0" * 12
    SLICES.save(store_copy, "Old", json.dumps(content))
    at = show_page(store_copy, "explore", model=ONE)
    assert "have changed" in at.warning[0].value
    SLICES.remove(store_copy, "Old")
    at = show_page(store_copy, "explore", model=ONE)
    press(at, "Remove")
    assert views.named_slices.read(store_copy) == {}


def test_exports_are_offered_with_their_number_of_cases(show_page, compared: Store, key: str):
    at = show_page(compared, "explore", model=ONE)
    total = views.cases.outcomes(views.runs.question_set(compared, key), views.filter.Filter(ONE))[
        "fooled"
    ]
    assert f"All {total:,} cases" in words(at)
    labels = {element.proto.label for element in at.get("download_button")}
    assert {"CSV", "JSON"} <= labels
    numbers = show_page(compared, "breakdown")
    assert "Download as a report" in {
        element.proto.label for element in numbers.get("download_button")
    }


def chips(at: AppTest) -> list[str]:
    """Return the labels of the active filters above the wall."""
    return [button.label for button in at.button if str(button.key).startswith("chip_")]


def test_clicks_on_a_facet_row_require_exclude_and_clear_it(show_page, compared: Store, key: str):
    at = show_page(compared, "explore", model=ONE, cards="every")
    file = compared.files([key], "cases")[0]
    answers = compared.files([views.runs.question_set(compared, key).run(ONE).key], "scores")[0]
    margins = duckdb.execute(f'SELECT "case", margin FROM \'{answers}\' ORDER BY "case"').df()
    ids = duckdb.execute(f'SELECT "case", id, subtype, kind FROM \'{file}\' ORDER BY "case"').df()
    is_fooled = (margins["margin"] <= 0) & (ids["kind"] == "flip")
    first, second = at.button_group(key="facet_subtype").proto.options[:2]
    values = [name for name in sorted(set(ids["subtype"][ids["kind"] == "flip"])) if name]
    one, two = values[:2]
    for pressed, required, excluded in (
        ([one], [one], []),
        ([one, two], [one, two], []),
        ([two], [two], [one]),
        ([one], [], [one, two]),
        ([two], [], [two]),
        ([], [], []),
    ):
        at.button_group(key="facet_subtype").set_value(pressed).run()
        assert not at.exception
        is_chosen = ids["subtype"].isin(required or values) & ~ids["subtype"].isin(excluded)
        assert sorted(card_ids(at)) == sorted(ids["id"][is_fooled & is_chosen])
        assert len(chips(at)) == len(required) + len(excluded)
        rows = [option.content for option in at.button_group(key="facet_subtype").proto.options]
        assert sum(row.startswith("not ") for row in rows) == len(excluded)
        assert set(at.button_group(key="facet_subtype").value) == {*required, *excluded}
    assert "% of " in first.content and "% of " in second.content
    assert "type" not in at.query_params and "not" not in at.query_params


def test_quick_clicks_on_rows_before_a_redraw_all_count(
    monkeypatch: pytest.MonkeyPatch,
):
    link, before = st.query_params, views.filter.Filter(ONE)
    link.clear()
    for key in ("a", "b"):
        monkeypatch.setitem(st.session_state, f"{key}_before", [])

    def press(name: str, key: str, *selected: str) -> dict[str, list[str]]:
        st.session_state[key] = list(selected)
        filters._choose_values(before, name, key)
        return {each: link.get_all(each) for each in ("tag", "not") if each in link}

    assert press("tag:scene", "a", "sea") == {"tag": ["scene=sea"]}
    both = {"tag": ["scene=sea", "size=big"]}
    assert press("tag:size", "b", "big") == both  # another facet of the same field
    assert press("tag:scene", "a") == {"tag": both["tag"][1:], "not": ["tag:scene=sea"]}
    assert press("tag:scene", "a", "sky")["not"] == ["tag:scene=sea"]  # the page shows none yet
    assert press("tag:scene", "a", "sky", "sea") == {"tag": [*both["tag"][1:], "scene=sky"]}


def test_a_link_that_excludes_too_many_values_is_cut_to_the_limit_and_shows_the_wall(
    show_page, compared: Store, monkeypatch: pytest.MonkeyPatch
):
    pairs = [f"pair=a>b{number}" for number in range(101)]
    at = show_page(compared, "explore", model=ONE, cards="every", **{"not": pairs})
    assert wall(at)["cards"] and not at.error and not at.exception
    assert at.query_params["not"] == pairs[:100]
    monkeypatch.setattr(filters, "MOST_EXCLUDED", 2)
    at = show_page(compared, "explore", model=ONE, cards="every", **{"not": pairs[:3]})
    assert wall(at)["cards"] and at.query_params["not"] == pairs[:2]


def test_an_excluded_value_is_in_the_link_until_removed(show_page, compared: Store, key: str):
    question_set = views.runs.question_set(compared, key)
    excluded = views.filter.Filter.parse(ONE, "flip", excluded=["subtype=color"])
    link = case_links.query(state.PageSubject(question_set, (ONE,), {}), excluded)
    at = show_page(compared, "explore", cards="every", **link)
    assert sorted(card_ids(at)) == sorted(ids_of(compared, question_set, excluded))
    assert chips(at) == ["not Wrong color"]
    at.button(key="chip_0").click().run()
    assert "not" not in at.query_params
    at = show_page(compared, "explore", cards="every", **{**link, "not": ["subtype=taste", "x"]})
    text = at.warning[0].value
    assert "excluded value “subtype=taste”, excluded value “x”" in text
    assert not chips(at)


def test_each_model_must_or_must_not_be_fooled(show_page, compared: Store, key: str):
    question_set = views.runs.question_set(compared, key)
    models = ordered(question_set.models)
    at = show_page(compared, "explore", model=ONE, cards="every")
    keys = {button.key for button in at.get("button_group")}
    assert {f"who_{place}" for place in range(len(models))} <= keys
    for verdict, chosen in (
        ("held", views.filter.Filter(ONE, "flip", held=(OTHER,))),
        ("fooled", views.filter.Filter(ONE, "flip", fooled=(OTHER,))),
        ("any", views.filter.Filter(ONE, "flip")),
    ):
        index = models.index(OTHER)
        at.button_group(key=f"who_{index}").set_value(verdict).run()
        assert not at.exception
        assert sorted(card_ids(at)) == sorted(ids_of(compared, question_set, chosen))
        n_all = views.cases.outcomes(question_set, chosen.any_outcome())["all"]
        assert (f" % of {n_all:,} cases" in wall(at)["note"]) == (verdict != "any")
    index = models.index(ONE)
    for verdict, outcome in (("held", "held"), ("any", "all"), ("fooled", "fooled")):
        at.button_group(key=f"who_{index}").set_value(verdict).run()
        chosen = views.filter.Filter(ONE, "flip", outcome=outcome)
        assert len(card_ids(at)) == len(ids_of(compared, question_set, chosen)[:60])


def test_any_remains_when_the_next_model_is_clicked_before_a_redraw(
    show_page, compared: Store, key: str
):
    models = ordered(views.runs.question_set(compared, key).models)
    at = show_page(compared, "explore", model=ONE, cards="every")
    at.query_params["outcome"] = "all"  # the first click; its page was not drawn
    at.button_group(key=f"who_{models.index(OTHER)}").set_value("fooled").run()
    assert "".join(at.query_params["outcome"]) == "all"
    assert "".join(at.query_params["fooled"]) == OTHER


def test_compare_warns_of_a_slice_of_one_model_s_failures(show_page, store_copy: Store, key: str):
    question_set = views.runs.question_set(store_copy, key)
    for outcome in ("fooled", "held", "all"):
        chosen = views.filter.Filter(ONE, "flip", outcome=outcome)
        numbers = views.cases.passing(question_set, chosen)[0]
        views.named_slices.save(question_set, f"of {outcome}", chosen.words(), numbers)
    text = words(show_page(store_copy, "compare", model=ONE, **{"with": OTHER}, kind="flip"))
    assert "The slice 'of fooled' was selected by" in text
    assert "The slice 'of held' was selected by" in text
    assert "The slice 'of all'" not in text


def test_numbers_of_a_slice_that_was_selected_by_answers_have_a_warning(
    show_page, store_copy: Store, key: str
):
    question_set = views.runs.question_set(store_copy, key)
    plain = views.filter.Filter(ONE, "flip", outcome="all")
    numbers = views.cases.passing(question_set, plain)[0]
    for name, chosen in (("plain", plain), ("split", replace(plain, agreement="split"))):
        views.named_slices.save(question_set, name, chosen.words(), numbers)
    warning = "The slice 'split' was selected by an area of a map or by models' answers"
    for query in ({"with": OTHER, "kind": "flip"}, {}):
        text = words(show_page(store_copy, "compare", set=key, model=ONE, **query))
        assert warning in text and "The slice 'plain'" not in text
    run = question_set.runs[0].key
    for command in (["show", run, "--by", "slice"], ["leaderboard", "--set", key, "--by", "edit"]):
        ran = CliRunner().invoke(main.main, ["--cache", str(store_copy.root), *command])
        assert not ran.exit_code, ran.output
        assert warning in ran.stderr and "'plain'" not in ran.stderr


def ids_of(store: Store, question_set, chosen) -> list[str]:
    """Return the ids of the cases that pass the filter."""
    return views.cases.failures(question_set, chosen, 1, 10_000)[0]["id"].tolist()


def test_rewordings_have_no_fooled_models(show_page, compared: Store):
    at = show_page(compared, "explore", kind="paraphrase")
    assert not [group for group in at.get("button_group") if str(group.key).startswith("who_")]


def test_a_pattern_in_a_link_filters_the_wall_until_removed(show_page, compared: Store, key: str):
    question_set = views.runs.question_set(compared, key)
    groups = pattern_groups(views.tables.CaseTable(compared, key), "lgip", "flip")
    for pair in groups.keys:
        chosen = views.filter.Filter(ONE, pair=(pair,))
        expected, _, n_cases = views.wall.wall(question_set, chosen, 1, 60, grouped=False)
        if n_cases:
            break
    at = show_page(compared, "explore", model=ONE, pair=pair, cards="every")
    assert card_ids(at) == [card.id for card in expected]
    assert len(chips(at)) == 1
    at = show_page(compared, "explore", model=ONE, pair="no>such</script>")
    assert "No questions match these filters." in words(at)
    at.button(key="drop_nearest").click().run()
    assert "pair" not in at.query_params and card_ids(at)


def test_the_drawer_shows_where_else_the_same_words_fool_the_model(show_page, tmp_path: Path):
    store = Store(shutil.copytree(ROOT / "tests/old_cache/stored", tmp_path / "cache"))
    key = "e9a732220766c19d"
    question_set = views.runs.question_set(store, key)
    every = views.wall.wall(question_set, views.filter.Filter(ONE), grouped=False)[0]
    for card in every:
        pair = views.patterns.pattern_of(question_set, "flip", card.case)
        alike = views.filter.Filter(ONE, pair=(pair,))
        cards, n_pictures, _ = views.wall.wall(question_set, alike)
        if n_pictures > 1:
            break
    at = show_page(store, "explore", set=key, model=ONE, case=card.id)
    strip = next(values for _, values in component_values(at, "wall") if values["strip"])
    others = [other.id for other in cards if other.images != card.images]
    assert [other["id"] for other in strip["cards"]] == others[:4] != []
    counts = views.cases.outcomes(question_set, alike)
    assert f"fooled in {counts['fooled']:,} of {counts['all']:,}" in words(at)
    at = send(at, "wall", "open", others[0], place=1)
    assert at.query_params["case"] == others[0]


@pytest.mark.parametrize(
    ("query", "outcome"),
    [({"outcome": "tied"}, "all"), ({"outcome": "held", "words": "no such word"}, "held")],
)
def test_an_empty_result_offers_to_drop_the_nearest_filter(
    show_page, compared: Store, key: str, query: dict[str, str], outcome: str
):
    at = show_page(compared, "explore", model=ONE, **query)
    question_set = views.runs.question_set(compared, key)
    counts = views.cases.outcomes(question_set, views.filter.Filter(ONE))
    assert not card_ids(at) and not at.get("pagination")
    button = at.button(key="drop_nearest")
    assert button.label.endswith(f": {counts[outcome]:,} cases")
    button.click().run()
    assert not at.exception
    assert len(card_ids(at)) > 0


def test_filters_are_in_the_address_and_one_click_clears_them(show_page, compared: Store, key: str):
    at = show_page(compared, "explore", model=ONE)
    table = views.estimates.choices(views.runs.question_set(compared, key))
    flips = table[table["kind"] == "flip"].iloc[0]
    at.button_group(key="facet_subtype").set_value([flips["subtype"]]).run()
    at.selectbox(key="sort").set_value("closest").run()
    at.text_input(key="words").set_value("a").run()
    at.selectbox(key="other").set_value(OTHER).run()
    assert not at.exception
    shown_now = dict(at.query_params)
    assert {"type", "words", "other", "sort"} <= set(shown_now)
    assert len(chips(at)) >= 2
    at.button(key="clear_filters").click().run()
    assert not {"type", "words", "other"} & set(at.query_params) and not chips(at)
    assert at.query_params["kind"] == "flip"


def test_a_picture_s_other_wrong_captions_are_listed_and_open(show_page, compared: Store, key: str):
    question_set = views.runs.question_set(compared, key)
    cards, _, _ = views.wall.wall(question_set, views.filter.Filter(ONE))
    card = next(card for card in cards if card.more)
    at = show_page(compared, "explore", model=ONE, case=card.id)
    every = views.filter.Filter(ONE, outcome="all")  # the filters hide those that do not fool it
    same, n_same = views.wall.same_group(question_set, every, card.case)
    assert n_same > card.more
    assert (
        f"{n_same} more wrong captions for this picture, regardless of filters, clearest first"
        in bodies(at)
    )
    siblings = [button for button in at.button if str(button.key).startswith("case_sibling")]
    assert len(siblings) == len(same)
    siblings[0].click().run()
    assert at.query_params["case"] == same[0].id


def test_other_cases_of_a_picture_that_replace_the_same_words_are_listed_by_their_caption(
    show_page, bundled: Store
):
    question_set = views.runs.question_set(bundled, SHIPPED_LGIP)
    every = views.filter.Filter("demo:weak", outcome="all")
    for card in views.wall.wall(question_set, every)[0]:
        near, _ = views.wall.same_group(question_set, every, card.case)
        changes = [(other.source, other.target) for other in near]
        repeated = [
            other for other, words in zip(near, changes, strict=True) if changes.count(words) > 1
        ]
        if repeated:
            break
    query = {"set": SHIPPED_LGIP, "model": "demo:weak", "outcome": "all", "case": card.id}
    at = show_page(bundled, "explore", **query)
    for other in repeated:
        label = at.button(key=f"case_sibling_{other.case}").label
        assert label.replace("**", "").startswith(state.plain(shorten(other.wrong_text, 60)))
        assert "**" in label  # around the words that differ from the true caption
    query |= {"case": "demo-00194/1/7"}  # another true caption has the words of the open case, too
    labels = [each.label for each in show_page(bundled, "explore", **query).button]
    assert any(each.startswith("One purple **horse** beside five red boats") for each in labels)


@pytest.mark.parametrize("name", tiers(["explore", "compare"], ("compare",)))
def test_all_cases_of_a_pattern_are_opened_on_explore_from_every_drawer(
    show_page, monkeypatch, tmp_path: Path, name: str
):
    monkeypatch.delenv(shipped.SETTING)
    shipped_store = StoreAboveShipped(tmp_path / "own", shipped.FOLDER)
    stored = views.runs.question_set(shipped_store, SHIPPED_LGIP)
    fooled = views.filter.Filter("demo:weak", "flip")
    cards, _, _ = views.wall.wall(stored, fooled)
    keys = [views.patterns.pattern_of(stored, "flip", card.case) for card in cards]
    key = max(filter(None, keys), key=keys.count)
    n_believed = views.cases.outcomes(stored, replace(fooled, pair=(key,)))["fooled"]
    address = {"set": SHIPPED_LGIP, "model": "demo:weak", "kind": "flip"}
    at = show_page(shipped_store, name, **address, case=cards[keys.index(key)].id)
    at.button(key="case_pattern_all").click().run()
    assert not at.exception
    assert at.query_params["pair"] == key and "case" not in at.query_params
    assert f"{n_believed:,} " in words(at)


def test_one_click_tags_the_case_and_undo_reverts_the_last_change(
    show_page, store_copy: Store, key: str
):
    at = show_page(store_copy, "explore", model=ONE)
    at = send(at, "wall", "open", card_ids(at)[0])
    press(at, "wrong label")
    press(at, "telling")
    (stored,) = annotations.read(store_copy, key).current
    assert set(stored.tags) == {"wrong label", "telling"}
    press(at, "wrong label")  # the second click removes it
    assert annotations.read(store_copy, key).current[0].tags == ("telling",)
    press(at, "Undo")
    assert set(annotations.read(store_copy, key).current[0].tags) == {"wrong label", "telling"}
    assert "1 2 3 4" in words(at)
