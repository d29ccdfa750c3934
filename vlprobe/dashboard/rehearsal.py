"""Every page drawn once before anybody asks for it, one after the other, and what it says thrown
away; then those that a choice of models changes, once for each choice; and all again after a run.

So a visitor's first look at a page of a fresh server costs what the second one does: what pages
import, the opened files, the answers about the first results and the encoded pictures are there.
It waits for visitors (`visits`). It has no lower priority: a thread that holds the interpreter and
is not given a processor would keep all others waiting.

Streamlit runs a page for a browser alone; its script runner, which does that, is asked here without
one.
"""

import asyncio
import contextlib
import itertools
import threading
import time
from collections.abc import Iterator, Sequence
from urllib.parse import urlencode

from streamlit import runtime
from streamlit.runtime.fragment import MemoryFragmentStorage
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.pages_manager import PagesManager
from streamlit.runtime.scriptrunner import RerunData, ScriptRunner, ScriptRunnerEvent
from streamlit.runtime.scriptrunner.script_cache import ScriptCache
from streamlit.runtime.state import SessionState

from vlprobe import views
from vlprobe.dashboard import navigation, visits
from vlprobe.dashboard.cases.sentence import Subject, most_asked
from vlprobe.dashboard.compare.sentence import BETWEEN, MOST, furthest, rivals_of_new_baseline
from vlprobe.dashboard.state import Questions, questions, store, view
from vlprobe.errors import VlprobeError
from vlprobe.runs import jobs
from vlprobe.storage import access
from vlprobe.storage.application import app_file
from vlprobe.views.records import QuestionSetRow

APP = app_file()
LOADING = ("retrieval",)  # pages that ask a model: it is loaded when somebody looks
LOOK = 0.05  # seconds between two looks at whether the server is there
HEAD_START = 3.0  # seconds that the first visitor, who may be waiting for the server, has it alone
EVERY = 5.0  # seconds between two looks at whether a run has ended
MOST_MODELS = 9  # of which every choice is drawn, the latest first


def begin() -> None:
    """Draws all pages once the server is there; returns when they are drawn. For a thread of its
    own.

    Where people have to sign in nothing is drawn: nobody has.

    Raises:
        AttributeError, TypeError: this version of Streamlit has another script runner.
    """
    while not runtime.exists():
        time.sleep(LOOK)
    visits.await_first(HEAD_START)
    if not access.sign_in():
        draw_all()


def keep_up() -> None:
    """Draws all pages again whenever there are other results and no run is going on; does not
    return.
    """
    version = ""
    while not access.sign_in():
        with contextlib.suppress(VlprobeError):  # the page says what is wrong
            version = renewed(version) if version else store().version()
        time.sleep(EVERY)


def renewed(version: str) -> str:
    """Draws all pages if the store is of another version than this and no run is going on; the
    version that is drawn.
    """
    current = store().version()
    if current != version and not jobs.going(store()):
        draw_all()
        return current
    return version


def draw_all() -> None:
    """Draws the pages in the row at the top, then the choices of models of the first results, then
    the pages that Lab leads to, which fewer people open.
    """
    for name in navigation.ROW:
        draw(name)
    for name, query in choices():
        draw(name, query)
    for name in navigation.BELOW:
        if name not in LOADING:
            draw(name)


def choices() -> Iterator[tuple[str, str]]:
    """Names of pages and choices in their addresses: in turn each model of the first results and
    each as the baseline that is chosen on Compare; then each beside all others.
    """
    sets: list[QuestionSetRow] = []
    with contextlib.suppress(VlprobeError):
        sets = views.runs.question_set_rows(store())
    for row in sets[:1]:
        models = row.models[:MOST_MODELS]
        of_explore = [("explore", {"model": model}) for model in models]
        of_compare = [
            ("compare", {"model": model, "with": BETWEEN.join(rivals)})
            for model, rivals in _contests(questions(row.case_key), models)
        ]
        for pair in itertools.zip_longest(of_explore, of_compare):
            for name, subject in filter(None, pair):
                yield name, urlencode({"set": row.case_key} | subject)


def _contests(stored: Questions, models: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Baselines and the models beside them: first what a press of Compare's first picker leads to."""
    baseline = most_asked(stored)
    kind = view(views.kinds.default_kind, stored.question_set, (baseline,))
    rivals = furthest(Subject(stored, baseline, kind))
    if len(stored.models) > 1:
        yield from (
            (model, rivals_of_new_baseline(rivals, baseline, model))
            for model in models
            if model != baseline
        )
    for start in range(0, len(models) - 1, MOST):
        for model in models:
            others = [name for name in models if name != model]
            yield model, others[start : start + MOST]


def draw(name: str, query: str = "") -> None:
    """Draws one page, by its name in `navigation` and the choices in its address, and waits for its
    end.
    """
    # Else the first page would be looked for in the folder `pages`, as is done where no script calls `st.navigation`.
    PagesManager.uses_pages_directory = False
    ended, scripts = threading.Event(), ScriptCache()

    def note(_: object, event: ScriptRunnerEvent, **__: object) -> None:
        visits.let_pass()
        if event is ScriptRunnerEvent.SHUTDOWN:
            ended.set()

    with contextlib.closing(asyncio.new_event_loop()) as loop:
        runner = ScriptRunner(
            session_id=visits.AHEAD,
            main_script_path=str(APP),
            session_state=SessionState(),
            uploaded_file_mgr=MemoryUploadedFileManager("/nowhere"),
            script_cache=scripts,
            initial_rerun_data=RerunData(page_name=navigation.address(name), query_string=query),
            user_info={},
            fragment_storage=MemoryFragmentStorage(),
            pages_manager=PagesManager(str(APP), scripts),
            event_loop=loop,
        )
        runner.on_event.connect(note, weak=False)
        runner.start()
        ended.wait()
