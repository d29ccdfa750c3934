"""Streamlit's server with Home made ready while it starts: `python -m vlprobe.dashboard.server run app.py`.

What the first page needs is imported before the server answers, and its failure looked up in a thread of its own: the
first visitor of a fresh server waits for neither.
"""

import contextlib
import threading

from streamlit.web import cli

from vlprobe.dashboard import frame  # noqa: F401 - imported ahead of the first page
from vlprobe.dashboard.home import ready
from vlprobe.errors import VlprobeError


def main() -> None:
    """Serves; the arguments of the process are those of the command `streamlit`."""
    threading.Thread(target=_prepare, daemon=True).start()
    cli.main(prog_name="streamlit")


def _prepare() -> None:
    with contextlib.suppress(VlprobeError):  # the page says what is wrong
        ready.prepare()


if __name__ == "__main__":
    main()
