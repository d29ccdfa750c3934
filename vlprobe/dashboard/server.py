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
from urllib.parse import quote

import streamlit as st
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import Response
from threadpoolctl import threadpool_limits

from vlprobe.dashboard import frame  # noqa: F401 - ahead of the first page
from vlprobe.dashboard.guard import Guard
from vlprobe.dashboard.navigation import DARK, LIGHT, LOGO
from vlprobe.render.html.style import STYLE

# Streamlit sends a style together with a page's elements. Browsers draw some elements before the style arrives, and
# everything moves when it does: the layout shift on a hard load of Compare was .5 to 1.4. So the style is included at
# the end of the document, where it takes precedence over Streamlit's own.
END = b"</body>"
CONDITIONS = (b"accept-encoding", b"if-none-match", b"if-modified-since", b"range")
VALIDATORS = ("content-length", "etag", "last-modified", "accept-ranges")


def _logo(colors: dict[str, str]) -> str:
    return f'url("data:image/svg+xml,{quote(LOGO.format(**colors))}")'


STILL = f"""<style>
:root {{ color-scheme: light dark; --vp-logo: {_logo(LIGHT)}; --vp-left: max(24px, (100vw - 1280px) / 2 + 40px); }}
@media (prefers-color-scheme: dark) {{ :root {{ --vp-logo: {_logo(DARK)}; }} }}
html {{ background: var(--vp-bg); }}
body:not(:has([data-testid="stHeaderLogo"]))::before {{ content: "vlprobe"; position: fixed; z-index: 999991; top: 0;
  left: var(--vp-left); padding-left: 35px; background: var(--vp-logo) 0 50% no-repeat; color: var(--vp-ink);
  font: 700 19px/58px "Source Sans", sans-serif; letter-spacing: -.01em; pointer-events: none; }}
body:not(:has([data-testid="stMain"] [data-testid="stElementContainer"] > :not([data-testid="stSkeleton"])))::after {{
  content: ""; position: fixed; z-index: 1; top: 76px; bottom: 40px; left: var(--vp-left); right: var(--vp-left);
  background: linear-gradient(var(--vp-mat) 0 0) 0 0 / min(420px, 100%) 40px no-repeat,
    linear-gradient(var(--vp-mat) 0 0) 0 64px / 100% 100% no-repeat; pointer-events: none; }}
@media (min-width: 641px) {{ :root {{ --vp-left: max(40px, (100vw - 1280px) / 2 + 40px); }} }}
</style>"""
# The button that opens the menu on a phone shows "Menu". Streamlit names it "Expand sidebar", without a setting.
NAMED = """<script>new MutationObserver(() =>
  document.querySelector('[data-testid="stExpandSidebarButton"]')?.setAttribute("aria-label", "Menu")
).observe(document.body, { childList: true, subtree: true })</script>"""
# Streamlit otherwise looks for its server below the page, too: two requests with 404 on each load.
BASE = """<script>window.__streamlit = { BACKEND_BASE_URL: new URL(".", location.href).href }</script>"""
# Streamlit keeps a chosen theme for one path only, without a setting. Before its script reads the theme of this path,
# the one that was chosen last on any page replaces it; the background has it before the page is drawn.
THEME = """<script>try {
  const key = `stActiveTheme-${location.pathname}-v2`, shared = "vlprobe-theme", set = Storage.prototype.setItem;
  const schemes = { '"Dark"': "dark", '"Light"': "light" };
  const paint = (theme) => (document.documentElement.style.colorScheme = schemes[theme] || "");
  const chosen = localStorage.getItem(shared);
  if (chosen) localStorage.setItem(key, chosen);
  paint(chosen);
  Storage.prototype.setItem = function (name, value) {
    set.call(this, name, value);
    if (name !== key) return;
    set.call(this, shared, value);
    paint(value);
  };
} catch {}  // a browser that keeps nothing
</script>"""
ADDITION = f"{STYLE}{STILL}{NAMED}{BASE}{THEME}".encode()


async def add_style(request: Request, call_next: RequestResponseEndpoint) -> Response:
    """Middleware that adds the style, logo and placeholders to an HTML document, and passes on all other responses."""
    if "text/html" not in request.headers.get("accept", ""):
        return await call_next(request)
    # Without these headers, the response is the whole document, uncompressed, and never "not modified".
    request.scope["headers"] = [
        field for field in request.scope["headers"] if field[0] not in CONDITIONS
    ]
    response: Any = await call_next(request)
    if not response.headers.get("content-type", "").startswith("text/html"):
        return response
    document = b"".join([part async for part in response.body_iterator])
    headers = {name: text for name, text in response.headers.items() if name not in VALIDATORS}
    return Response(document.replace(END, ADDITION + END, 1), response.status_code, headers)


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
