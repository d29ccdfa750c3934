"""Content that a browser shows before Streamlit draws anything: the style sheet, the logo and gray placeholders.

Streamlit sends a style together with a page's elements. Browsers draw some elements before the style
arrives, and everything moves when it does: the layout shift on a hard load of Compare was .5 to 1.4.
So the style is included at the end of the document, where it takes precedence over Streamlit's own.
"""

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from vlprobe.dashboard.navigation import DARK, LIGHT, LOGO
from vlprobe.render.html.style import STYLE

if TYPE_CHECKING:
    from starlette.middleware.base import RequestResponseEndpoint
    from starlette.requests import Request
    from starlette.responses import Response

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
ADDITION = f"{STYLE}{STILL}{NAMED}".encode()


async def add_style(request: "Request", call_next: "RequestResponseEndpoint") -> "Response":
    """Middleware that adds the style to the end of an HTML document and passes on any other response unchanged."""
    from starlette.responses import Response

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
