"""The dashboard's server, started by `vlprobe dashboard`: `python -m vlprobe.dashboard.server APP SETTINGS`.

The modules that the first page needs are imported before the server accepts requests.
"""

import asyncio
import contextlib
import json
import signal
import sys
import webbrowser
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import streamlit as st
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from threadpoolctl import threadpool_limits

from vlprobe.dashboard import frame  # noqa: F401 - ahead of the first page
from vlprobe.dashboard.first_paint import add_style
from vlprobe.dashboard.guard import Guard

LISTENING = 0.2  # seconds after the application's start by which the server listens


def main(app: Path, settings: Mapping[str, Any]) -> None:
    """Run the dashboard's server until a signal ends the process.

    Args:
        app: The file of the Streamlit application.
        settings: Streamlit settings by name, such as "server.port". They must include "server.allowedHosts".
    """
    # With threads of their own, matrix products wait for each other: at load 5 another baseline on Compare (12 million
    # rows) took 2.2 s, and .3 s without.
    threadpool_limits(1, "blas")
    sys.argv = [str(app)]  # Streamlit looks for its settings and modules next to this file
    guard = Middleware(Guard, hosts=settings["server.allowedHosts"])
    paint = Middleware(BaseHTTPMiddleware, dispatch=add_style)
    st.App(app, middleware=[guard, paint], lifespan=_open_browser).run(config=settings)


@contextlib.asynccontextmanager
async def _open_browser(app: st.App) -> AsyncIterator[None]:
    """Open the first page in a browser, unless Streamlit is headless."""
    if not st.get_option("server.headless"):
        url = f"http://{st.get_option('browser.serverAddress')}:{st.get_option('server.port')}"
        loop = asyncio.get_running_loop()  # a text browser runs until it is closed
        loop.call_later(LISTENING, loop.run_in_executor, None, webbrowser.open, url)
    yield


if __name__ == "__main__":
    # Uvicorn raises the signal again after the shutdown. By default Python would then wait for threads of
    # pages that are being drawn, and DuckDB would print a list of leaks.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
