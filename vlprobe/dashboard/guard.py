"""Requests that the server refuses before they reach Streamlit.

- Requests for a host name that is not in `server.allowedHosts`. A website can give its own name the
  address of this machine (DNS rebinding), so that the visitor's browser treats the dashboard as a part of
  that site. Streamlit checks the name only for its websocket, and its page does not explain the cause.
- Requests from the pages of another site. Streamlit would look up this machine's external address on the
  web before it refuses one.
- Uploads from visitors who were not admitted. Streamlit's upload address,
  `/_stcore/upload_file/SESSION/FILE`, accepts a file from any connected session, and a browser connects
  before anyone has signed in. `dashboard.access.admit` calls `allow` or `refuse` each time a page
  runs; visitors are identified by the cookies in which Streamlit stores the sign-in.
- Requests for Streamlit's counters of sessions and memory, which it serves without a sign-in.
"""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import streamlit as st

from vlprobe.errors import printable

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

UPLOADS = "/_stcore/upload_file"
COUNTERS = "/_stcore/metrics"
SIGN_IN_COOKIE = re.compile(r"_streamlit_user(_\d+)?")  # long cookies are split and numbered
NAMED = 80  # maximum characters of a host name in a response
# Maximum number of admitted visitors to remember; beyond it, the oldest is forgotten until its page reruns
VISITORS = 10_000
_admitted: dict[frozenset[tuple[str, str]], None] = {}  # sign-in cookies, newest last


def allow() -> None:
    """Allow uploads from the current visitor, who was admitted to the page."""
    _admitted.setdefault(_sign_in(st.context.cookies))
    for visitor in list(_admitted)[:-VISITORS]:
        _admitted.pop(visitor, None)


def refuse() -> None:
    """Stop allowing uploads from the current visitor."""
    _admitted.pop(_sign_in(st.context.cookies), None)


def _sign_in(cookies: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    """Return the sign-in cookies, or an empty set if the visitor has not signed in."""
    return frozenset(item for item in cookies.items() if SIGN_IN_COOKIE.fullmatch(item[0]))


class Guard:
    """ASGI middleware that rejects the requests described in this module with status 403.

    Args:
        app: The application that answers all other requests.
        hosts: Names and addresses without ports; "*.example.com" also matches all names below it, and "*"
            matches any name.
    """

    def __init__(self, app: "ASGIApp", hosts: Sequence[str]) -> None:
        self.app, self.hosts = app, hosts

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Reject a request, or pass it on to the application unchanged."""
        from starlette.responses import PlainTextResponse

        problem = self._problem(scope) if scope["type"] in ("http", "websocket") else ""
        app = PlainTextResponse(problem, 403) if problem else self.app
        await app(scope, receive, send)

    def _problem(self, scope: "Scope") -> str:
        """Return the reason why a request is rejected, or "" if it is accepted."""
        from starlette.requests import HTTPConnection

        request = HTTPConnection(scope)
        headers = request.headers
        host, origin = headers.get("host", ""), headers.get("origin")
        if not is_known_host(host, self.hosts):
            name = printable(host[:NAMED])
            return (
                f"This dashboard does not accept the host name '{name}'. The person who runs it "
                "can allow this name with vlprobe dashboard --host NAME.\n"
            )
        if origin is not None and _netloc(origin) != host.lower():
            return "Other websites cannot use this dashboard.\n"
        is_upload = UPLOADS in scope["path"] and scope.get("method") != "OPTIONS"
        if is_upload and _sign_in(request.cookies) not in _admitted:
            return "Sign in first.\n"
        return "Usage statistics are disabled.\n" if COUNTERS in scope["path"] else ""


def is_known_host(header: str, hosts: Sequence[str]) -> bool:
    """Return whether a Host header names one of the given hosts, on any port.

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
