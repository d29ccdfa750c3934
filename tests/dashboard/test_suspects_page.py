"""The page of suspect labels: a verdict per key, stored at once."""

import pytest
from streamlit.testing.v1 import AppTest

from tests.dashboard.test_pages import open_page
from tests.views.test_suspects import dataset, kind_of, models, question_set, store  # noqa: F401
from vlprobe import views
from vlprobe.storage import annotations
from vlprobe.storage.store import Store


@pytest.fixture
def page(store: Store, monkeypatch: pytest.MonkeyPatch) -> AppTest:  # noqa: F811
    return open_page(monkeypatch, store, "suspects", accuracy="0.7")


def test_each_key_stores_its_verdict_and_opens_the_next_case(page: AppTest, store: Store):  # noqa: F811
    assert not page.exception
    asked = question_set(store)
    first, second = views.suspects.suspects(store, asked, kind_of(store), 0.7).suspects
    page.button("suspect_wrong").click().run()
    page.button("suspect_both").click().run()
    assert {each.case: each.tags for each in annotations.read(store, asked.key).current} == {
        first.case: ("label wrong",),
        second.case: ("both acceptable",),
    }


def test_the_same_verdict_again_removes_it(page: AppTest, store: Store):  # noqa: F811
    asked = question_set(store)
    first = views.suspects.suspects(store, asked, kind_of(store), 0.7).suspects[0]
    page.query_params["case"] = first.id
    page.run()
    page.button("suspect_unsure").click().run()
    page.query_params["case"] = first.id
    page.run()
    page.button("suspect_unsure").click().run()
    assert annotations.read(store, asked.key).current == ()


def test_models_that_are_all_weak_are_explained(page: AppTest):
    page.query_params["accuracy"] = "0.95"
    page.run()
    assert not page.exception
    assert "Two strong models are needed" in page.info[0].value
