"""Jobs of the Run page, without a browser: what starts one, what becomes of it, and what cannot start."""

import functools
import time
from pathlib import Path

import pytest

from tests.conftest import make_tiny
from tests.dashboard.test_pages import CONSTANT, RANDOM, open_page, words
from vlprobe.runs import jobs
from vlprobe.runs.request import Request
from vlprobe.storage.store import Store


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch):
    return functools.partial(open_page, monkeypatch)


def test_a_bad_job_in_the_url_is_one_line(shown, compared: Store):
    at = shown(compared, "run", job="nonsense")
    assert "No job named" in at.error[0].value
    assert at.button(key="start")


def test_start_is_off_until_something_is_chosen(shown, compared: Store):
    at = shown(compared, "run")
    assert at.button(key="start").disabled
    at.multiselect(key="run_models").set_value([RANDOM]).run()
    assert not at.button(key="start").disabled
    at.multiselect(key="run_lgip_kinds").set_value([]).run()
    assert at.button(key="start").disabled


def test_start_makes_a_job_of_what_was_chosen(shown, compared: Store, tiny: str, monkeypatch):
    begun: list[Request] = []
    monkeypatch.setattr(jobs, "start", lambda request, store: begun.append(request) or "")
    at = shown(compared, "run")
    at.multiselect(key="run_models").set_value([RANDOM, CONSTANT])
    at.selectbox(key="run_lgip_rules").set_value("paper")
    at.number_input(key="run_limit").set_value(5)
    at.text_input(key="run_own").set_value(f" {tiny} ")
    at.run()
    at.button(key="start").click().run()
    assert begun[0].models == (RANDOM, CONSTANT)
    assert begun[0].options["rules"] == "paper"
    assert begun[0].limit == 5
    assert begun[0].dataset == tiny


def test_a_job_that_cannot_start_is_one_line(shown, compared: Store, monkeypatch):
    from vlprobe.errors import InvalidInput

    def refuse(request, store):
        raise InvalidInput("Cannot write *here*.")

    monkeypatch.setattr(jobs, "start", refuse)
    at = shown(compared, "run")
    at.multiselect(key="run_models").set_value([RANDOM]).run()
    at.button(key="start").click().run()
    assert at.error[0].value == r"Cannot write \*here\*."
    assert not at.exception


def test_a_finished_job_links_to_its_results_and_a_failed_one_can_go_on(shown, tmp_path: Path):
    store = Store(tmp_path / "cache")
    job_id = jobs.start(
        Request((CONSTANT,), make_tiny(tmp_path / "tiny"), "lgip", device="cpu"), store
    )
    bad = jobs.start(Request((CONSTANT,), "csv:/nowhere.csv", "lgip", device="cpu"), store)
    deadline = time.monotonic() + 60
    while (
        not all(jobs.read(store, one).ended for one in (job_id, bad))
        and time.monotonic() < deadline
    ):
        time.sleep(0.1)
    at = shown(store, "run", job=job_id)
    assert "Done" in words(at)
    assert [link.proto.label for link in at.get("page_link")] == [
        "See the numbers",
        "See the failures",
    ]
    at = shown(store, "run", job=bad)
    assert "nowhere.csv" in at.error[0].value
    assert any(button.label == "Resume" for button in at.button)
