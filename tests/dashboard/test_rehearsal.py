"""Pages drawn before anybody asks for them: what a visitor then waits for, and that visitors go first."""

import importlib
import itertools
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock
from urllib.parse import parse_qs

import pytest
from streamlit.components.v2.component_manager import BidiComponentManager
from streamlit.runtime import Runtime
from streamlit.runtime.caching.storage.dummy_cache_storage import MemoryCacheStorageManager
from streamlit.runtime.dataframe_source_manager import DataframeSourceManager
from streamlit.runtime.media_file_manager import MediaFileManager
from streamlit.runtime.memory_media_file_storage import MemoryMediaFileStorage
from streamlit.runtime.pages_manager import PagesManager
from threadpoolctl import threadpool_info, threadpool_limits

import vlprobe.dashboard
from tests.dashboard.test_pages import open_page
from vlprobe import views
from vlprobe.dashboard import pictures, rehearsal, state, visits
from vlprobe.dashboard import server as dashboard_server
from vlprobe.dashboard.navigation import ROW
from vlprobe.storage import access, shipped
from vlprobe.storage.application import app_file
from vlprobe.storage.memory import SingleFlightCache
from vlprobe.storage.shipped import StoreAboveShipped


@pytest.fixture(autouse=True)
def no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has looked at a page, and after the next one nothing waits."""
    monkeypatch.setattr(visits, "REST", 0.0)
    monkeypatch.setattr(visits, "_rests_until", 0.0)


@pytest.fixture
def come_along(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> StoreAboveShipped:
    """An empty cache above the results that come with vlprobe, which this process shows."""
    monkeypatch.delenv(shipped.SETTING)
    monkeypatch.setattr("vlprobe.storage.store.DEFAULT", tmp_path / "own")
    return StoreAboveShipped(tmp_path / "own", *shipped.folders())


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a page needs of a server, as Streamlit's own test has it."""
    components = BidiComponentManager()
    components.discover_and_register_components(start_file_watching=False)
    served = MagicMock(spec=Runtime)
    served.media_file_mgr = MediaFileManager(MemoryMediaFileStorage("/mock/media"))
    served.dataframe_source_mgr = DataframeSourceManager()
    served.bidi_component_registry = components
    served.cache_storage_manager = MemoryCacheStorageManager()
    monkeypatch.setattr(Runtime, "_instance", served)
    monkeypatch.setattr(PagesManager, "uses_pages_directory", None)
    monkeypatch.setattr(rehearsal, "HEAD_START", 0.0)
    yield


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the views that were looked up and not known."""
    unknown: list[str] = []

    class Counted(SingleFlightCache):
        def get(self, key: Any, compute, is_current: Callable[[], bool] = lambda: True):
            def counted():
                unknown.append(key[3].__name__)
                return compute()

            return super().get(key, counted, is_current)

    monkeypatch.setattr(state, "_answers", Counted(500))
    return unknown


def opened_after_rehearsal(monkeypatch, store, asked: list[str], name: str) -> None:
    rehearsal.draw(name)
    pictures._ahead.submit(int).result(300)  # what the page makes ready for a next press is made
    assert asked
    asked.clear()
    at = open_page(monkeypatch, store, name)
    assert not at.exception and not at.error
    assert asked == []


def test_a_page_that_was_drawn_ahead_asks_for_nothing_new(monkeypatch, come_along, server, asked):
    opened_after_rehearsal(monkeypatch, come_along, asked, "explore")


@pytest.mark.full
@pytest.mark.parametrize(
    "name", [name for name in ROW if name not in ("explore", "play", "run", "lab")]
)
def test_so_does_every_other_page(monkeypatch, come_along, server, asked, name):
    opened_after_rehearsal(monkeypatch, come_along, asked, name)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the pages that would be drawn ahead, with the choices in their addresses."""
    pages: list[str] = []

    def draw(name: str, query: str = "") -> None:
        pages.append(f"{name}?{query}".rstrip("?"))

    monkeypatch.setattr(rehearsal, "draw", draw)
    return pages


def test_all_pages_are_drawn_ahead_but_those_that_load_a_model(server, drawn):
    rehearsal.begin()
    assert drawn[: len(ROW)] == list(ROW)
    assert "breakdown" in drawn and "retrieval" not in drawn


def test_so_is_each_model_of_the_newest_results_beside_every_other(come_along, server, drawn):
    rehearsal.begin()
    choices = [parse_qs(page.partition("?")[2]) for page in drawn if "?" in page]
    (key,) = {choice["set"][0] for choice in choices}
    models = views.runs.question_set(come_along, key).models
    assert {choice["model"][0] for choice in choices if "with" not in choice} == set(models)
    pairs = [
        (choice["model"][0], rival)
        for choice in choices
        for rival in choice.get("with", [""])[0].split("|")
        if rival
    ]
    assert set(pairs) == set(itertools.permutations(models, 2))


def test_the_first_comparisons_drawn_ahead_are_those_of_a_press_of_another_baseline(
    monkeypatch, come_along, server
):
    comparisons = [parse_qs(query) for name, query in rehearsal.choices() if name == "compare"]
    n_others = len(open_page(monkeypatch, come_along, "compare").selectbox(key="model").options) - 1
    assert n_others > 1
    for choice in comparisons[:n_others]:
        at = open_page(monkeypatch, come_along, "compare")
        at.selectbox(key="model").set_value(choice["model"][0]).run()
        assert [at.query_params["with"]] == choice["with"]


def test_another_model_that_was_drawn_ahead_asks_for_nothing_new(
    monkeypatch, come_along, server, asked
):
    name, choice = next(iter(rehearsal.choices()))
    rehearsal.draw(name, choice)
    assert asked
    asked.clear()
    at = open_page(
        monkeypatch, come_along, name, **{key: value for key, (value,) in parse_qs(choice).items()}
    )
    assert not at.exception and not at.error
    assert asked == []


def test_pages_are_drawn_again_after_a_run_and_not_during_one(
    monkeypatch, come_along, server, drawn
):
    before = come_along.version()
    assert rehearsal.renewed(before) == before and not drawn
    monkeypatch.setattr(come_along.__class__, "version", lambda _: "after a run")
    monkeypatch.setattr(rehearsal.jobs, "going", lambda _: ["a job"])
    assert rehearsal.renewed(before) == before and not drawn
    monkeypatch.setattr(rehearsal.jobs, "going", lambda _: [])
    assert rehearsal.renewed(before) == "after a run"
    assert drawn[: len(ROW)] == list(ROW)


def test_the_first_visitor_has_the_server_alone(monkeypatch, server, drawn):
    monkeypatch.setattr(visits, "_n_drawn", 0)
    monkeypatch.setattr(rehearsal, "HEAD_START", 600.0)
    rehearsing = threading.Thread(target=rehearsal.begin)
    with visits.drawing():
        rehearsing.start()
        rehearsing.join(0.05)
        assert not drawn
    rehearsing.join(300)
    assert drawn


def test_nothing_is_drawn_ahead_where_people_sign_in(monkeypatch, server, drawn):
    monkeypatch.setenv(access.SIGN_IN, "*")
    rehearsal.begin()
    assert drawn == []


def test_a_page_that_nobody_looks_at_waits_while_a_visitor_s_is_drawn(monkeypatch):
    monkeypatch.setattr(visits, "PATIENCE", 600.0)
    monkeypatch.setattr(
        visits, "is_ahead", lambda: threading.current_thread() is not threading.main_thread()
    )
    passed = threading.Event()

    def work() -> None:
        visits.let_pass()
        passed.set()

    with visits.drawing():
        waiting = threading.Thread(target=work)
        waiting.start()
        visits.let_pass()  # a visitor's own page never waits
        assert not passed.is_set()
    waiting.join(300)
    assert passed.is_set()


def test_it_also_waits_a_moment_after_it_for_the_visitor_s_browser(monkeypatch):
    monkeypatch.setattr(visits, "REST", 600.0)
    monkeypatch.setattr(visits, "PATIENCE", 0.05)
    began = time.monotonic()
    visits.let_pass()
    assert visits._rests_until == 0.0  # nobody has looked at anything
    with visits.drawing():
        visits.let_pass()
    assert time.monotonic() - began < 300
    monkeypatch.setattr(visits, "is_ahead", lambda: True)
    resting = time.monotonic()
    visits.let_pass()
    assert 0.05 <= time.monotonic() - resting < 300  # and no longer than its patience


def test_a_page_that_nobody_looks_at_is_no_visit(monkeypatch):
    monkeypatch.setattr(visits, "is_ahead", lambda: True)
    monkeypatch.setattr(visits._changed, "wait", lambda *_: pytest.fail("it waits for itself"))
    with visits.drawing():
        visits.let_pass()


def test_the_server_multiplies_matrices_in_one_thread_beside_its_visitors(monkeypatch):
    def n_blas_threads() -> set[int]:
        return {info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"}

    while_serving: list[set[int]] = []
    with threadpool_limits(2, "blas"):
        before = n_blas_threads()
        monkeypatch.setattr(dashboard_server, "_prepare", lambda: None)
        monkeypatch.setattr(
            dashboard_server.App, "run", lambda _, config: while_serving.append(n_blas_threads())
        )
        monkeypatch.setattr(sys, "argv", sys.argv)
        dashboard_server.main(app_file(), {"server.allowedHosts": []})
    assert before == {2} and while_serving == [{1}]


@pytest.mark.parametrize("moved", ["streamlit.runtime.scriptrunner.script_cache", "ScriptRunner"])
def test_a_version_with_its_script_runner_elsewhere_serves_and_says_that_nothing_is_drawn_ahead(
    monkeypatch, caplog, server, moved: str
):
    if moved == "ScriptRunner":  # there, and called otherwise
        monkeypatch.setattr(rehearsal, moved, lambda session_id: None)
    else:
        for name in (moved, "streamlit.emojis", "streamlit.runtime.pages_manager"):
            monkeypatch.setitem(sys.modules, name, None)
        monkeypatch.delitem(sys.modules, rehearsal.__name__)
        monkeypatch.delattr(vlprobe.dashboard, "rehearsal")
        monkeypatch.delitem(sys.modules, dashboard_server.__name__)
    starting = importlib.import_module(dashboard_server.__name__)
    threads: list[threading.Thread] = []
    serves = threading.Event()

    def serve(_: object, config: object) -> None:
        threads.extend(thread for thread in threading.enumerate() if thread.name == starting.AHEAD)
        serves.set()

    monkeypatch.setattr(starting.App, "run", serve)
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(starting.ready, "prepare", lambda: serves.wait(300))
    starting.main(app_file(), {"server.allowedHosts": []})
    (preparing,) = threads
    preparing.join(300)
    (line,) = [record.getMessage() for record in caplog.records if record.name == starting.__name__]
    assert line.startswith("No page is drawn ahead of its first visitor")
    assert "\n" not in line and not preparing.is_alive()
