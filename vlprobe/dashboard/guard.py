"""Requests that the server refuses before Streamlit sees them.

- A host name that is not in `server.allowedHosts`. A web site can give its own name the address of
  this machine (DNS rebinding); the visitor's browser then takes the dashboard for a part of that
  site. Streamlit checks the name for its websocket only, and its page says nothing about the cause.
- The page of another site. Streamlit would look up the external address of this machine on the web
  before it refuses one.
- An upload from a session whose page was not let in. Streamlit's upload address,
  `/_stcore/upload_file/SESSION/FILE`, takes a file from any connected session, and a browser is
  connected before anybody has signed in. `dashboard.access.admit` calls `allow` or `refuse` with
  each run of a page.
- Streamlit's counters of sessions and memory, which it serves without a sign-in.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from streamlit.runtime.scriptrunner import get_script_run_ctx

from vlprobe.errors import printable

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

UPLOADS = re.compile("/_stcore/upload_file(?:/([^/]*))?")
COUNTERS = "/_stcore/metrics"
NAMED = 80  # characters of a host name that an answer repeats
SESSIONS = 10_000  # admitted ones that are remembered; of more the oldest is forgotten until its page runs again
_admitted: dict[str, None] = {}  # session ids, the newest at the end


def allow() -> None:
    """Let the current session upload: its page was let in."""
    context = get_script_run_ctx()
    if context is not None:
        _admitted.setdefault(context.session_id)
        for session in list(_admitted)[:-SESSIONS]:
            _admitted.pop(session, None)


def refuse() -> None:
    """Let the current session upload no longer."""
    context = get_script_run_ctx()
    if context is not None:
        _admitted.pop(context.session_id, None)


class Guard:
    """ASGI middleware that answers 403 to the requests that this module describes.

    Args:
        app: What answers all other requests.
        hosts: Names and addresses without ports; "*.example.com" also means all names below it, "*"
            any name.
    """

    def __init__(self, app: "ASGIApp", hosts: Sequence[str]) -> None:
        self.app, self.hosts = app, hosts

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Refuse a request, or pass it on as it is."""
        from starlette.responses import PlainTextResponse

        problem = self._problem(scope) if scope["type"] in ("http", "websocket") else ""
        app = PlainTextResponse(problem, 403) if problem else self.app
        await app(scope, receive, send)

    def _problem(self, scope: "Scope") -> str:
        """Return why a request is refused, or ""."""
        from starlette.datastructures import Headers

        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        if not is_known_host(host, self.hosts):
            name = printable(host[:NAMED])
            return (
                f"This dashboard has no name '{name}'. The person who runs it can add one: "
                "vlprobe dashboard --host NAME.\n"
            )
        if origin is not None and _netloc(origin) != host.lower():
            return "Pages of other sites cannot use this dashboard.\n"
        upload = UPLOADS.search(scope["path"])
        if upload and scope.get("method") != "OPTIONS" and upload[1] not in _admitted:
            return "Sign in first.\n"
        return "Counters are not served.\n" if COUNTERS in scope["path"] else ""


def is_known_host(header: str, hosts: Sequence[str]) -> bool:
    """Return whether a Host header names one of these hosts, on any port.

    >>> is_known_host("LOCALHOST:8501", ["localhost"]), is_known_host("[::1]:8501", ["::1"])
    (True, True)
    >>> is_known_host("a.example.com", ["*.example.com"]), is_known_host("evil.com", ["*.example.com"])
    (True, False)
    """
    try:
        parts = urlsplit(f"//{header}")
        name = (parts.hostname or "").rstrip(".")
        is_host = parts.netloc == header and "@" not in header and bool(name)
        _ = parts.port
    except ValueError:  # a port that is not a number, brackets without an address
        return False
    return is_host and any(
        host in ("*", name) or (host.startswith("*.") and name.endswith(host[1:])) for host in hosts
    )


def _netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""
