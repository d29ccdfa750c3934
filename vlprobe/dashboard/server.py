"""Streamlit's server with its pages made ready while it starts: `python -m vlprobe.dashboard.server
run app.py`.

What the first page needs is imported before the server answers. Its failure is looked up in a
thread of its own, in which all pages are then drawn once (`rehearsal`): the first visitor of a
fresh server waits for none of this. The pages are those of `navigation` from the first visitor on.
"""

import contextlib
import inspect
import threading

from streamlit import emojis  # noqa: F401 - compiled ahead of the first page, whose icon is one
from streamlit.runtime.pages_manager import PagesManager
from streamlit.web import cli

from vlprobe.dashboard import frame, rehearsal  # noqa: F401 - the frame ahead of the first page
from vlprobe.dashboard.home import ready
from vlprobe.errors import VlprobeError


def main() -> None:
    """Serves; the arguments of the process are those of the command `streamlit`."""
    # Else Streamlit looks into the folder of pages until one was drawn: an address of before is not there.
    PagesManager.uses_pages_directory = False
    threading.Thread(target=_prepare, daemon=True).start()
    inspect.stack()  # Streamlit looks at it with its first element; Python then looks at every module, and remembers
    cli.main(prog_name="streamlit")


def _prepare() -> None:
    with contextlib.suppress(VlprobeError):  # the page says what is wrong
        ready.prepare()
    rehearsal.begin()
    rehearsal.keep_up()


if __name__ == "__main__":
    main()
