"""The page of suspect labels: each key stores a verdict at once."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.dashboard.test_pages import open_page, words
from tests.views.test_suspects import (  # noqa: F401 (fixtures)
    answered,
    dataset,
    folder,
    kind_of,
    models,
    question_set,
    store,
)
from vlprobe import views
from vlprobe.storage import annotations, shipped
from vlprobe.storage.store import Store


@pytest.fixture
def page(store: Store, monkeypatch: pytest.MonkeyPatch) -> AppTest:  # noqa: F811
    return open_page(monkeypatch, store, "suspects", accuracy="0.7")


def test_each_key_stores_its_verdict_and_opens_the_next_case(page: AppTest, store: Store):  # noqa: F811
    assert not page.exception
    questions = question_set(store)
    first, second = views.suspects.suspects(questions, kind_of(store), 0.7).suspects
    page.button("suspect_wrong").click().run()
    page.button("suspect_both").click().run()
    assert {each.case: each.tags for each in annotations.read(store, questions.key).current} == {
        first.case: ("wrong label",),
        second.case: ("both acceptable",),
    }


def test_the_same_verdict_again_removes_it(page: AppTest, store: Store):  # noqa: F811
    questions = question_set(store)
    first = views.suspects.suspects(questions, kind_of(store), 0.7).suspects[0]
    page.query_params["case"] = first.id
    page.run()
    page.button("suspect_unsure").click().run()
    page.query_params["case"] = first.id
    page.run()
    page.button("suspect_unsure").click().run()
    assert annotations.read(store, questions.key).current == ()


def test_the_open_case_is_marked_in_the_list_and_its_picture_is_above_the_verdicts(page: AppTest):
    def chosen() -> list[int]:
        return page.session_state["suspect_list"]["selection"]["rows"]

    assert chosen() == [0]
    keys = [getattr(element, "key", None) for element in page.main]
    assert keys.index("case_pictures") < keys.index("suspect_buttons")
    page.button("suspect_wrong").click().run()
    assert chosen() == [1]


def test_models_that_are_all_weak_are_explained(page: AppTest):
    page.query_params["accuracy"] = "0.95"
    page.run()
    assert not page.exception
    assert "At least two strong models are needed" in page.info[0].value


def test_published_answers_strong_models_and_the_command_for_errata_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.delenv(shipped.SETTING)
    cache = Store(tmp_path / "cache")
    page = open_page(monkeypatch, cache, "suspects")
    text = words(page)
    assert "Published by its authors, not computed here" in text
    assert "Strong models: CLIP_TROHN-Text, GPT-4V and CLIP_TROHN-Img." in text
    (command,) = [code.value for code in page.code]
    key = command.split()[3]
    assert shipped.opened(cache.root).find(key)["run"]["dataset"] == "bundled:SugarCrepe"
    before = page.dataframe[-1].value
    assert before["right, %"].tolist() == before["without, %"].tolist()
    page.button("suspect_wrong").click().run()
    after = page.dataframe[-1].value.set_index("model")
    # One of 7,512 cases fewer: 7,016 of 7,511 instead of 7,016 of 7,512.
    assert after.loc["CLIP_TROHN-Text", "right, %"] == pytest.approx(100 * 7016 / 7512)
    assert after.loc["CLIP_TROHN-Text", "without, %"] == pytest.approx(100 * 7016 / 7511)
