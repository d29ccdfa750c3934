"""Uploads behind a sign-in: the server that takes a file only from a session whose page was let in.

Streamlit's upload address, `/_stcore/upload_file/SESSION/FILE`, takes a file for any connected
session, and a browser is connected before anybody has signed in: that is how the page with the
button reaches it. What is sent there stays in memory for as long as the session does.
`dashboard.access.admit` knows who has signed in and may look; it calls `allow` or `refuse` with
each run of a page, and `SignedInUploads`, which stands in front of Streamlit's routes, answers 403
to everybody else before a byte of the body is read. Nobody can guess a session, and its own signed
cookie lets it in.
"""

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamlit.runtime.scriptrunner import get_script_run_ctx

from vlprobe.dashboard import process

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

UPLOADS = re.compile("/_stcore/upload_file(?:/([^/]*))?")
SESSIONS = 10_000  # admitted ones that are remembered; of more the oldest is forgotten until its page runs again
_admitted: dict[str, None] = {}  # session ids, the newest at the end


def allow() -> None:
    """This session may upload: its page was let in."""
    context = get_script_run_ctx()
    if context is not None:
        _admitted.setdefault(context.session_id)
        for session in list(_admitted)[:-SESSIONS]:
            _admitted.pop(session, None)


def refuse() -> None:
    """This session may not upload, or not any more."""
    context = get_script_run_ctx()
    if context is not None:
        _admitted.pop(context.session_id, None)


class SignedInUploads:
    """ASGI middleware: answers 403 to an upload, or to its removal, of a session that was not let
    in.
    """

    def __init__(self, app: "ASGIApp") -> None:
        self.app = app

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Passes on everything else as it is."""
        from starlette.responses import PlainTextResponse

        upload = (
            UPLOADS.search(scope["path"])
            if scope["type"] == "http" and scope["method"] != "OPTIONS"
            else None
        )
        if upload and upload[1] not in _admitted:
            await PlainTextResponse("Sign in first.", 403)(scope, receive, send)
        else:
            await self.app(scope, receive, send)


def serve(app: Path, settings: dict[str, Any]) -> None:
    """Serves the dashboard as `streamlit run` does, with the guard in front, until a signal ends
    it.

    Args:
        app: The application's file.
        settings: Of Streamlit, by name, such as server.port.
    """
    from starlette.middleware import Middleware
    from streamlit.starlette import App

    process.limit_heaps()
    process.limit_threads()
    sys.argv = [str(app)]  # Streamlit looks for its settings and modules beside what this names
    App(app, middleware=[Middleware(SignedInUploads)]).run(config=settings)


if __name__ == "__main__":
    from vlprobe.dashboard import uploads  # the module that pages import, and not this copy of it

    try:
        uploads.serve(Path(sys.argv[1]), json.loads(sys.argv[2]))
    except KeyboardInterrupt:
        process.leave(130)
    except SystemExit as end:
        process.leave(end.code)
    process.leave(0)
