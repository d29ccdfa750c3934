"""Every page drawn once before anybody asks for it, one after the other, and what it says thrown
away.

So a visitor's first look at a page of a fresh server costs what the second one does: what pages
import, the opened files, the answers about the newest results and the encoded pictures are there.
It waits for visitors (`visits`). It has no lower priority: a thread that holds the interpreter and
is not given a processor would keep all others waiting.

Streamlit runs a page for a browser alone; its script runner, which does that, is asked here without
one.
"""

import asyncio
import contextlib
import threading
import time
from pathlib import Path

from streamlit import runtime
from streamlit.runtime.fragment import MemoryFragmentStorage
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.pages_manager import PagesManager
from streamlit.runtime.scriptrunner import RerunData, ScriptRunner, ScriptRunnerEvent
from streamlit.runtime.scriptrunner.script_cache import ScriptCache
from streamlit.runtime.state import SessionState

from vlprobe.dashboard import navigation, visits
from vlprobe.storage import access

APP = Path(__file__).resolve().parents[2] / "app.py"
LOADING = ("retrieval",)  # pages that ask a model: it is loaded when somebody looks
LOOK = 0.05  # seconds between two looks at whether the server is there
HEAD_START = 3.0  # seconds that the first visitor, who may be waiting for the server, has it alone


def begin() -> None:
    """Draws all pages once the server is there; returns when they are drawn. For a thread of its
    own.

    Where people have to sign in nothing is drawn: nobody has.
    """
    while not runtime.exists():
        time.sleep(LOOK)
    visits.await_first(HEAD_START)
    if not access.sign_in():
        names = [name for name in (*navigation.ROW, *navigation.BELOW) if name not in LOADING]
        for name in names:
            with contextlib.suppress(TypeError, AttributeError):  # of another version of Streamlit
                draw(name)


def draw(name: str) -> None:
    """Draws one page, by its name in `navigation`, and waits for its end."""
    # Else the first page would be looked for in the folder `pages`, as is done where no script calls `st.navigation`.
    PagesManager.uses_pages_directory = False
    loop = asyncio.new_event_loop()
    ended, scripts = threading.Event(), ScriptCache()
    runner = ScriptRunner(
        session_id=visits.AHEAD,
        main_script_path=str(APP),
        session_state=SessionState(),
        uploaded_file_mgr=MemoryUploadedFileManager("/nowhere"),
        script_cache=scripts,
        initial_rerun_data=RerunData(page_name=navigation.address(name)),
        user_info={},
        fragment_storage=MemoryFragmentStorage(),
        pages_manager=PagesManager(str(APP), scripts),
        event_loop=loop,
    )

    def note(_: object, event: ScriptRunnerEvent, **__: object) -> None:
        visits.let_pass()
        if event is ScriptRunnerEvent.SHUTDOWN:
            ended.set()

    runner.on_event.connect(note, weak=False)
    runner.start()
    ended.wait()
    loop.close()
