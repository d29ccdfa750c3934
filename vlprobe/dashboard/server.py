"""The server of the dashboard: `python -m vlprobe.dashboard.server APP SETTINGS`, as `vlprobe dashboard`
starts it.

What the first page needs is imported before the server answers. Its failure is looked up in a
thread of its own, in which all pages are then drawn once (`rehearsal`): the first visitor of a
fresh server waits for none of this. The pages are those of `navigation` from the first visitor on.

What this asks of Streamlit's insides may stand elsewhere in another version: the server then starts
all the same, and its log says in a line that no page is drawn ahead.
"""

import asyncio
import contextlib
import inspect
import json
import logging
import sys
import threading
import webbrowser
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import streamlit
from starlette.middleware import Middleware
from streamlit.starlette import App

from vlprobe.dashboard import (
    frame,  # noqa: F401 - ahead of the first page
    process,
)
from vlprobe.dashboard.guard import Guard
from vlprobe.dashboard.home import ready
from vlprobe.errors import VlprobeError, printable

LOG = logging.getLogger(__name__)
AHEAD = "ahead of visitors"  # the thread
LISTENING = 0.2  # seconds after the start of the application in which the server listens


def main(app: Path, settings: Mapping[str, Any]) -> None:
    """Serve the dashboard until a signal ends it.

    Args:
        app: The application's file.
        settings: Streamlit's, by name, such as "server.port"; with "server.allowedHosts".
    """
    process.limit_heaps()
    with contextlib.suppress(ImportError):
        from streamlit import emojis  # noqa: F401 - compiled ahead of the first page, whose icon is one
    with contextlib.suppress(ImportError):
        from streamlit.runtime.pages_manager import PagesManager

        # Else Streamlit looks into the folder of pages until one was drawn: an address of before is not there.
        PagesManager.uses_pages_directory = False
    process.limit_threads()
    threading.Thread(target=_prepare, name=AHEAD, daemon=True).start()
    inspect.stack()  # Streamlit looks at it with its first element; Python then looks at every module, and remembers
    sys.argv = [str(app)]  # Streamlit looks for its settings and modules next to this file
    guard = Middleware(Guard, hosts=settings["server.allowedHosts"])
    App(app, middleware=[guard], lifespan=_open_browser).run(config=settings)


@contextlib.asynccontextmanager
async def _open_browser(app: App) -> AsyncIterator[None]:
    """Open the first page in a browser, unless Streamlit is headless: it has no screen, or a setting
    says so.
    """
    option = streamlit.get_option
    if not option("server.headless"):
        url = f"http://{option('browser.serverAddress')}:{option('server.port')}"
        loop = asyncio.get_running_loop()  # a browser of a terminal ends when it is closed
        loop.call_later(LISTENING, loop.run_in_executor, None, webbrowser.open, url)
    yield


def _prepare() -> None:
    with contextlib.suppress(VlprobeError):  # the page says what is wrong
        ready.prepare()
    try:
        from vlprobe.dashboard import rehearsal

        rehearsal.begin()
        process.keep_what_is_loaded()
        rehearsal.keep_up()
    except (ImportError, AttributeError, TypeError) as error:
        reason = printable(str(error))
        LOG.warning(
            "No page is drawn ahead of its first visitor with this version of Streamlit: %s", reason
        )


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), json.loads(sys.argv[2]))
    except KeyboardInterrupt:
        process.leave(130)
    except SystemExit as end:
        process.leave(end.code)
    process.leave(0)
