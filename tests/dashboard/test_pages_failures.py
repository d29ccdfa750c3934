"""The Failures page, without a browser: two models side by side, the next case, tags, notes, saved views, exports."""

import functools
import shutil
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.dashboard.test_pages import open_page, words
from vlprobe import views
from vlprobe.dashboard import cards, state
from vlprobe.storage import annotations, bookmarks
from vlprobe.storage import store as store_module
from vlprobe.storage.annotations import Annotation
from vlprobe.storage.store import Store
from vlprobe.views.paired_outcomes import bucket

ONE, OTHER = "control:random", "guess"


@pytest.fixture
def own(compared: Store, tmp_path: Path) -> Store:
    """A copy that a test may write to."""
    return Store(shutil.copytree(compared.root, tmp_path / "cache"))


@pytest.fixture
def key(compared: Store) -> str:
    return views.runs.question_sets(compared)["case_key"].iloc[0]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch):
    return functools.partial(open_page, monkeypatch)


def opened(at: AppTest) -> list[int]:
    return [
        int(button.key.removeprefix("open_")) for button in at.button if button.label == "Details"
    ]


def press(at: AppTest, label: str) -> AppTest:
    next(button for button in at.button if button.label == label).click().run()
    assert not at.exception, at.exception[0].message
    return at


def test_what_a_page_does_to_a_table_stays_its_own(
    compared: Store, key: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(store_module, "DEFAULT", compared.root)
    asked = views.runs.question_set(compared, key)
    first, total = state.view(views.cases.failures, asked, views.filter.Filter(ONE))
    expected = first["margin"].tolist()
    first["margin"] = 0.0
    first.insert(0, "more", 1)
    again, _ = state.view(views.cases.failures, asked, views.filter.Filter(ONE))
    assert again["margin"].tolist() == expected and "more" not in again
    counts = state.view(views.cases.outcomes, asked, views.filter.Filter(ONE))
    assert counts["fooled"] == total
    counts["fooled"] = -1
    assert state.view(views.cases.outcomes, asked, views.filter.Filter(ONE))["fooled"] == total


@pytest.mark.parametrize("name", ["only_first", "only_second"])
def test_beside_another_model_the_buckets_are_counted_and_shown(
    shown, compared: Store, key: str, name: str
):
    at = shown(compared, "failures", model=ONE, other=OTHER, bucket=name)
    chosen = bucket(views.filter.Filter(ONE, other=OTHER, sort="difference"), name)
    expected, total = views.cases.failures(
        compared, views.runs.question_set(compared, key), chosen, 1, cards.SIZE
    )
    assert opened(at) == expected["case"].tolist()
    counts = views.cases.outcomes(compared, views.runs.question_set(compared, key), chosen)
    assert counts[chosen.outcome] == total
    assert any(option.endswith(f" {total:,}") for option in at.get_by_key("bucket").options)


def test_a_card_has_both_margins_and_how_far_they_are_apart(shown, compared: Store, key: str):
    at = shown(compared, "failures", model=ONE, other=OTHER, bucket="all")
    case = opened(at)[0]
    said = (
        views.cases.answers(compared, views.runs.question_set(compared, key), [case])
        .set_index("model")["margin"]
        .astype(float)
    )
    text = words(at)
    for margin in said[[ONE, OTHER]]:
        assert f"{margin:+.3f}" in text
    assert f"Difference, first minus second{said[ONE] - said[OTHER]:+.3f}" in text
    counts = views.cases.outcomes(
        compared, views.runs.question_set(compared, key), views.filter.Filter(ONE)
    )
    assert f"**{counts['fooled']:,}** times of **{counts['all']:,}**" in at.markdown[-1].value


def test_next_goes_on_over_the_end_of_a_page_and_previous_back(shown, compared: Store, key: str):
    chosen = views.filter.Filter(ONE, outcome="all")
    pages = [
        views.cases.failures(
            compared, views.runs.question_set(compared, key), chosen, page, cards.SIZE
        )[0]["id"].tolist()
        for page in (1, 2)
    ]
    total = views.cases.outcomes(compared, views.runs.question_set(compared, key), chosen)["all"]
    at = shown(compared, "failures", model=ONE, outcome="all", case=pages[0][-1])
    assert f"{cards.SIZE} of {total:,}" in words(at)
    press(at, "Next")
    assert pages[1][0] in at.query_params["case"]
    assert "2" in at.query_params["page"]
    assert f"{cards.SIZE + 1} of {total:,}" in words(at)
    press(at, "Previous")
    assert pages[0][-1] in at.query_params["case"]
    assert f"{cards.SIZE} of {total:,}" in words(at)
    at = shown(compared, "failures", model=ONE, outcome="all", case=pages[0][0])
    off = {
        button.label: button.disabled
        for button in at.button
        if button.label in ("Previous", "Next")
    }
    assert off == {"Previous": True, "Next": False}


def test_a_case_that_does_not_pass_opens_all_the_same(shown, compared: Store, key: str):
    other = views.cases.failures(
        compared,
        views.runs.question_set(compared, key),
        views.filter.Filter(ONE, "paraphrase", outcome="all"),
    )[0].iloc[0]
    at = shown(compared, "failures", model=ONE, case=other["id"])
    assert "Not among the cases that pass the filters" in words(at)
    assert other["rule"] in words(at)
    assert not at.error
    assert "no such case" in shown(compared, "failures", model=ONE, case="../<b>").info[-1].value


def test_a_tag_and_a_note_are_kept_and_shown_and_filter(shown, own: Store, key: str):
    first = views.cases.failures(own, views.runs.question_set(own, key), views.filter.Filter(ONE))[
        0
    ].iloc[0]
    at = shown(own, "failures", model=ONE, case=first["id"])
    tags = next(widget for widget in at.multiselect if widget.label == "Your tags")
    tags.set_value(["ambiguous"])
    at.text_area[0].set_value("**Look** <script>alert(1)</script>")
    press(at, "Keep")
    said = annotations.read(own, key).current
    assert said == (
        Annotation(
            int(first["case"]), first["id"], ("ambiguous",), "**Look** <script>alert(1)</script>"
        ),
    )
    at = shown(own, "failures", model=ONE, tagged="ambiguous")
    assert opened(at) == [first["case"]]
    assert "**Look** <script>alert(1)</script>" in words(at)
    annotations.write(own, key, Annotation(int(first["case"]), first["id"]))
    second = views.cases.failures(own, views.runs.question_set(own, key), views.filter.Filter(ONE))[
        0
    ].iloc[1]
    annotations.write(own, key, Annotation(int(second["case"]), second["id"], ("ambiguous",)))
    assert opened(at.run()) == [second["case"]]  # what another process tags is seen at once


def test_what_is_too_much_is_said_in_the_drawer(
    shown, own: Store, key: str, monkeypatch: pytest.MonkeyPatch
):
    first = views.cases.failures(own, views.runs.question_set(own, key), views.filter.Filter(ONE))[
        0
    ].iloc[0]
    at = shown(own, "failures", model=ONE, case=first["id"])
    monkeypatch.setattr(annotations, "NOTE_LENGTH", 3)
    at.text_area[0].set_value("too long")
    press(at, "Keep")
    assert "has 8 letters" in at.error[0].value
    assert annotations.read(own, key).current == ()


def test_a_read_only_dashboard_shows_notes_and_has_no_button(
    shown, own: Store, key: str, monkeypatch
):
    first = views.cases.failures(own, views.runs.question_set(own, key), views.filter.Filter(ONE))[
        0
    ].iloc[0]
    annotations.write(own, key, Annotation(int(first["case"]), first["id"], ("odd",), "A note."))
    path = own.root / "annotations" / f"{key}.jsonl"
    path.write_bytes(b"{\n" + path.read_bytes())
    bookmarks.save(own, "mine", "kind=flip")
    monkeypatch.setenv("VLPROBE_READ_ONLY", "1")
    at = shown(own, "failures", model=ONE, case=first["id"])
    assert "A note." in words(at)
    assert f"{key}.jsonl, line 1" in at.warning[0].value.replace("\\", "")
    assert not {"Keep", "Save", "Remove"} & {button.label for button in at.button}


def test_a_view_is_saved_and_removed(shown, own: Store):
    at = shown(own, "failures", model=ONE, kind="combined", page="2", words="bench")
    at.text_input(key="view_name").set_value("Benches *")
    press(at, "Save")
    saved = bookmarks.read(own)["Benches *"]
    assert "kind=combined" in saved
    assert "words=bench" in saved
    assert "page" not in saved
    press(at, "Remove")
    assert bookmarks.read(own) == {}


def test_exports_are_offered_with_what_they_hold(shown, compared: Store, key: str):
    at = shown(compared, "failures", model=ONE)
    total = views.cases.outcomes(
        compared, views.runs.question_set(compared, key), views.filter.Filter(ONE)
    )["fooled"]
    assert f"All {total:,} cases" in words(at)
    labels = {element.proto.label for element in at.get("download_button")}
    assert {"CSV", "JSON"} <= labels
    overview = shown(compared, "overview")
    assert "Download as a report" in {
        element.proto.label for element in overview.get("download_button")
    }
