"""Sign-in and the read-only mode on the pages."""

from pathlib import Path

import pytest

from tests.conftest import tiers
from tests.dashboard.test_pages import open_page, words
from tests.dashboard.walls import card_ids, component_values
from vlprobe import views
from vlprobe.storage import access
from vlprobe.storage.store import Store
from vlprobe.surfaces.report import selection


def test_sign_in_is_off_by_default(every_probe: Store, monkeypatch: pytest.MonkeyPatch):
    at = open_page(monkeypatch, every_probe, "home")
    assert component_values(at, "home")
    assert not [button for button in at.button if button.key in ("sign_in", "sign_out")]


@pytest.mark.parametrize("page", tiers(["home", "failures", "run"], ("home", "run")))
def test_a_visitor_who_has_not_signed_in_sees_only_the_sign_in_button(
    every_probe: Store, page: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(access.SIGN_IN, "*")
    at = open_page(monkeypatch, every_probe, page)
    assert [button.key for button in at.button] == ["sign_in"]
    assert "every_probe" not in words(at)
    assert len(at.title) == 1


def test_a_sign_in_without_a_provider_fails_with_an_error(
    every_probe: Store, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(access.SIGN_IN, "*")
    at = open_page(monkeypatch, every_probe)
    at.button(key="sign_in").click().run()
    assert "Sign-in failed" in at.error[0].value
    assert [button.key for button in at.button] == ["sign_in"]


@pytest.mark.parametrize(
    ("user", "seen"),
    [
        ({"is_logged_in": True, "email": "ada@example.org", "email_verified": True}, True),
        ({"is_logged_in": True, "email": "ada@example.org", "email_verified": False}, False),
        ({"is_logged_in": True, "email": "ada@example.org", "email_verified": "false"}, False),
        ({"is_logged_in": True, "email": "ada@example.org"}, False),
        ({"is_logged_in": True, "email": "eve@example.net", "email_verified": True}, False),
        ({"is_logged_in": False, "email": "ada@example.org"}, False),
    ],
)
def test_only_the_listed_people_can_sign_in(
    every_probe: Store, user: dict, seen: bool, monkeypatch: pytest.MonkeyPatch
):
    from streamlit.testing.v1 import AppTest

    monkeypatch.setenv(access.SIGN_IN, "ada@example.org")
    monkeypatch.setattr("vlprobe.storage.store.DEFAULT", every_probe.root)
    at = AppTest.from_file(str(Path(__file__).resolve().parents[2] / "app.py"), default_timeout=300)
    at.user = user
    at.run()
    assert not at.exception
    assert bool(component_values(at, "home")) is seen


def test_a_read_only_dashboard_shows_results_but_cannot_start_a_run(
    every_probe: Store, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(access.READ_ONLY, "1")
    at = open_page(monkeypatch, every_probe, "run")
    assert not at.button
    assert not at.text_input
    assert "read-only" in words(at)
    at = open_page(monkeypatch, every_probe, "home")
    assert component_values(at, "home")
    assert not at.error


def test_a_read_only_dashboard_without_results_offers_no_demo(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(access.READ_ONLY, "1")
    for page in ("home", "pairs"):
        at = open_page(monkeypatch, store, page)
        assert not at.button
        assert "read-only" in words(at)


def test_a_read_only_dashboard_shows_the_details_of_a_case_and_only_the_names_of_its_pictures(
    every_probe: Store, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(access.READ_ONLY, "1")
    key = views.runs.question_sets(every_probe).query("probe == 'lgip'")["case_key"].iloc[0]
    chosen = views.filter.Filter("control:random", "flip")
    row = views.cases.failures(views.runs.question_set(every_probe, key), chosen)[0].iloc[0]
    at = open_page(
        monkeypatch, every_probe, "failures", set=key, model="control:random", case=row["id"]
    )
    assert "Tags and notes cannot be changed here" in words(at)
    assert any("vlprobe failures" in code.value for code in at.code)
    folder = str(Path(row["images"][0]).parent)
    assert folder not in words(at)
    assert folder not in selection.as_json(views.runs.question_set(every_probe, key), chosen)


def test_a_damaged_list_of_saved_views_does_not_hide_the_cards(
    every_probe: Store, monkeypatch: pytest.MonkeyPatch
):
    file = every_probe.root / "mine" / "bookmarks.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text("[" * 100_000)
    try:
        at = open_page(monkeypatch, every_probe, "failures")
    finally:
        file.unlink()
    assert "is damaged" in at.error[0].value
    assert card_ids(at)


def test_a_link_names_every_model_that_was_chosen(
    every_probe: Store, monkeypatch: pytest.MonkeyPatch
):
    from streamlit.testing.v1 import AppTest

    def page() -> None:
        import streamlit as st

        from vlprobe.dashboard import state

        st.code(state.query("page"))

    at = AppTest.from_function(page, default_timeout=300)
    at.query_params["models"] = ["demo:weak", "demo:softmax"]
    at.query_params["page"] = "3"
    assert at.run().code[0].value == "models=demo%3Aweak&models=demo%3Asoftmax"
