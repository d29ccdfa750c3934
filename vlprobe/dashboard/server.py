"""Streamlit's server with its pages made ready while it starts: `python -m vlprobe.dashboard.server
run app.py`.

What the first page needs is imported before the server answers. Its failure is looked up in a
thread of its own, in which all pages are then drawn once (`rehearsal`): the first visitor of a
fresh server waits for none of this. The pages are those of `navigation` from the first visitor on.

What this asks of Streamlit's insides may stand elsewhere in another version: the server then starts
all the same, and its log says in a line that no page is drawn ahead.
"""

import contextlib
import inspect
import logging
import threading

from streamlit.web import cli

from vlprobe.dashboard import (
    frame,  # noqa: F401 - ahead of the first page
    process,
)
from vlprobe.dashboard.home import ready
from vlprobe.errors import VlprobeError, printable

LOG = logging.getLogger(__name__)
AHEAD = "ahead of visitors"  # the thread


def main() -> None:
    """Serves; the arguments of the process are those of the command `streamlit`."""
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
    cli.main(prog_name="streamlit")


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
        main()
    except SystemExit as end:
        process.leave(end.code)
