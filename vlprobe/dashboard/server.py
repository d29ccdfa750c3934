"""Streamlit's server with its pages made ready while it starts: `python -m vlprobe.dashboard.server run app.py`.

What the first page needs is imported before the server answers. Its failure is looked up in a thread of its own, in
which all pages are then drawn once (`rehearsal`): the first visitor of a fresh server waits for none of this.
"""

import contextlib
import threading

from streamlit.web import cli

from vlprobe.dashboard import frame, rehearsal  # noqa: F401 - the frame ahead of the first page
from vlprobe.dashboard.home import ready
from vlprobe.errors import VlprobeError


def main() -> None:
    """Serves; the arguments of the process are those of the command `streamlit`."""
    threading.Thread(target=_prepare, daemon=True).start()
    cli.main(prog_name="streamlit")


def _prepare() -> None:
    with contextlib.suppress(VlprobeError):  # the page says what is wrong
        ready.prepare()
    rehearsal.begin()


if __name__ == "__main__":
    main()
