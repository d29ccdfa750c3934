"""A served dashboard: access before a sign-in, and its end."""

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.web.server.starlette.starlette_app_utils import (
    create_signed_value,
    generate_xsrf_token_string,
)
from websockets.sync.client import ClientConnection, connect

from tests.conftest import free_port

ROOT = Path(__file__).resolve().parents[2]
COOKIE_SECRET = secrets.token_hex()
PROVIDER = f"""
[auth]
redirect_uri = "http://localhost:8501/oauth2callback"
cookie_secret = "{COOKIE_SECRET}"
client_id = "vlprobe"
client_secret = "none"
server_metadata_url = "https://localhost/.well-known/openid-configuration"
"""


@dataclass
class Served:
    """A dashboard and its address."""

    process: subprocess.Popen
    port: int
    log: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def wait(self) -> "Served":
        deadline = time.monotonic() + 300  # a busy machine
        while True:
            assert self.process.poll() is None and time.monotonic() < deadline, self.log.read_text()
            with (
                contextlib.suppress(OSError),
                urllib.request.urlopen(f"{self.url}/_stcore/health", timeout=5),
            ):
                return self
            time.sleep(0.05)


@contextlib.contextmanager
def serving(folder: Path, *options: str, **variables: str) -> Iterator[Served]:
    """Serve a separate dashboard with a new home and an empty cache, and end only the process started here."""
    port, log = free_port(), folder / "log.txt"
    command = [sys.executable, "-m", "vlprobe", "--cache", str(folder / "cache"), "dashboard"]
    environment = {"HOME": str(folder), "STREAMLIT_SERVER_HEADLESS": "true", "OMP_NUM_THREADS": "1"}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--port", str(port), *options],
            cwd=ROOT,
            env=os.environ | environment | variables,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield Served(process, port, log)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Serve a dashboard that admits one person and has a provider."""
    folder = tmp_path_factory.mktemp("guarded")
    (folder / ".streamlit").mkdir()
    (folder / ".streamlit" / "secrets.toml").write_text(PROVIDER)
    with serving(folder, "--sign-in", "ada@example.org") as served:
        yield served.wait()


@dataclass
class Visitor:
    """A browser's session: its id, and the headers of each request."""

    session: str
    headers: dict[str, str]


@contextlib.contextmanager
def visiting(served: Served, email: str = "") -> Iterator[Visitor]:
    """Yield a visitor whose first page is drawn; with an email, signed in as by the provider."""
    token = generate_xsrf_token_string()
    cookies = [f"_streamlit_xsrf={token}"]
    if email:
        claims = {
            "email": email,
            "email_verified": True,
            "is_logged_in": True,
            "origin": served.url,
        }
        value = create_signed_value(COOKIE_SECRET, "_streamlit_user", json.dumps(claims)).decode()
        cookies.append(f"_streamlit_user={value}")
    headers = {"Cookie": "; ".join(cookies), "X-Xsrftoken": token}
    with connect(
        f"ws://127.0.0.1:{served.port}/_stcore/stream",
        origin=served.url,
        subprotocols=["streamlit", token],
        additional_headers=headers,
        max_size=None,
        open_timeout=300,  # a busy machine
        ping_interval=None,
    ) as socket_:
        yield Visitor(load_first_page(socket_), headers)


def load_first_page(connection: ClientConnection) -> str:
    """Request the first page; return the session's id once the page has arrived."""
    request = BackMsg()
    request.rerun_script.query_string = ""
    connection.send(request.SerializeToString())
    session = ""
    while True:
        message = ForwardMsg.FromString(connection.recv(timeout=300))
        if message.WhichOneof("type") == "new_session":
            session = message.new_session.initialize.session_id
        elif message.WhichOneof("type") == "script_finished":
            return session


def upload(served: Served, visitor: Visitor, session: str = "") -> int:
    """Upload a small file; return the status of the server's answer."""
    boundary = uuid.uuid4().hex
    head = 'Content-Disposition: form-data; name="file"; filename="a.png"'
    body = f"--{boundary}\r\n{head}\r\n\r\nx\r\n--{boundary}--\r\n"
    request = urllib.request.Request(
        f"{served.url}/_stcore/upload_file/{session or visitor.session}/{uuid.uuid4()}",
        body.encode(),
        visitor.headers | {"Content-Type": f"multipart/form-data; boundary={boundary}"},
        method="PUT",
    )
    return answer_of(request)[0]


def answer_of(request: urllib.request.Request) -> tuple[int, str]:
    """Return the status and the text of a server's answer."""
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.mark.parametrize(
    ("email", "status"), [("", 403), ("eve@example.net", 403), ("ada@example.org", 204)]
)
def test_a_visitor_who_is_not_admitted_cannot_upload(guarded, email, status):
    with visiting(guarded, email) as visitor:
        assert upload(guarded, visitor) == status


def test_an_unknown_session_cannot_upload(guarded):
    with visiting(guarded) as visitor:
        assert upload(guarded, visitor, str(uuid.uuid4())) == 403
        assert upload(guarded, visitor, "a/../b") == 403


def status_and_text(served: Served, path: str, **headers: str) -> tuple[int, str]:
    return answer_of(urllib.request.Request(f"{served.url}{path}", headers=headers))


def test_a_site_whose_name_resolves_to_this_machine_is_refused(guarded):
    evil = f"evil.example:{guarded.port}"
    for path in ("/", "/run", "/_stcore/host-config", "/_stcore/health"):
        status, text = status_and_text(guarded, path, Host=evil)
        assert status == 403 and "dashboard --host NAME" in text
    assert status_and_text(guarded, "/", Host=f"localhost:{guarded.port}")[0] == 200
    for host in (evil, "evil.example", f"localhost@evil.example:{guarded.port}", "127.0.0.1.a.org"):
        assert not opens_websocket(guarded, host, f"http://{host}")
    for host in ("127.0.0.1", "localhost", "[::1]"):
        assert opens_websocket(guarded, f"{host}:{guarded.port}", f"http://{host}:{guarded.port}")


def test_a_page_of_another_site_is_refused_and_the_external_address_is_not_looked_up(guarded):
    host = f"127.0.0.1:{guarded.port}"
    for origin in (
        "http://evil.example",
        "null",
        "http://127.0.0.1:1",
        f"http://{host}.evil.example",
    ):
        assert not opens_websocket(guarded, host, origin)
        assert status_and_text(guarded, "/_stcore/health", Origin=origin)[0] == 403
    assert "external IP" not in guarded.log.read_text()


def opens_websocket(served: Served, host: str, origin: str) -> bool:
    """Return whether Streamlit's websocket opens for a browser that sends these headers."""
    with socket.create_connection(("127.0.0.1", served.port), timeout=120) as connection:
        headers = {
            "Host": host,
            "Origin": origin,
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Protocol": "streamlit",
        }
        lines = [f"{name}: {value}" for name, value in headers.items()]
        request = "\r\n".join(["GET /_stcore/stream HTTP/1.1", *lines, "", ""])
        connection.sendall(request.encode())
        return b" 101 " in connection.recv(4096).partition(b"\r\n")[0]


def test_the_metrics_of_the_server_are_not_served(guarded):
    assert status_and_text(guarded, "/_stcore/metrics")[0] == 403
    assert status_and_text(guarded, "/_stcore/health")[0] == 200


@pytest.fixture
def unguarded(tmp_path: Path) -> Iterator[Served]:
    """Serve a dashboard without a sign-in, whose environment sets the number of heaps."""
    with serving(tmp_path, MALLOC_ARENA_MAX="5") as served:
        yield served.wait()


def test_without_sign_in_all_visitors_can_upload_and_a_signal_ends_the_dashboard(
    unguarded, guarded
):
    with visiting(unguarded) as visitor:
        assert upload(unguarded, visitor) == 204
    if Path("/proc/self/environ").exists():  # two heaps unless the environment sets another number
        for each, expected in ((guarded, b"2"), (unguarded, b"5")):
            variables = Path(f"/proc/{each.process.pid}/environ").read_bytes().split(b"\0")
            assert b"MALLOC_ARENA_MAX=" + expected in variables
    check_end(unguarded, signal.SIGTERM)


UNDER_NOHUP = pytest.mark.skipif(
    signal.getsignal(signal.SIGHUP) == signal.SIG_IGN, reason="nohup: what it starts ignores SIGHUP"
)


@UNDER_NOHUP
@pytest.mark.full
def test_a_closed_terminal_ends_the_guarded_dashboard_and_frees_its_port(tmp_path):
    with serving(tmp_path, "--sign-in", "*") as served:
        served.wait()
        check_end(served, signal.SIGHUP)
        assert "Traceback" not in served.log.read_text()


def test_the_browser_opens_the_first_page_and_ctrl_c_ends_the_server(tmp_path):
    script = tmp_path / "browser"
    opened = tmp_path / "opened"
    fetch = "import sys, urllib.request as r; print(sys.argv[1], r.urlopen(sys.argv[1]).status)"
    script.write_text(f'#!/bin/sh\n{sys.executable} -c "{fetch}" "$1" > {opened}\n')
    script.chmod(0o755)
    browser = {"STREAMLIT_SERVER_HEADLESS": "false", "BROWSER": str(script)}
    with serving(tmp_path, "--sign-in", "*", **browser) as served:
        served.wait()
        deadline = time.monotonic() + 120
        while not (opened.exists() and opened.read_text()) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert opened.read_text().split() == [served.url, "200"]
        check_end(served, signal.SIGINT)
        assert "Traceback" not in served.log.read_text()


def check_end(served: Served, number: signal.Signals) -> None:
    """Signal the started process; check that it ends and that its port is free again."""
    served.process.send_signal(number)
    served.process.wait(timeout=120)
    with socket.socket() as again:
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind(("127.0.0.1", served.port))
