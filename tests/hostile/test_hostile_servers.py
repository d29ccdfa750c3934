"""No link, form, job file or stored run sends a request to a server that was not allowed at startup."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from click.testing import CliRunner
from streamlit.testing.v1 import AppTest

from tests.conftest import make_tiny, tiers
from tests.dashboard.test_pages import open_form, open_page
from tests.dashboard.test_pages_run import requests
from vlprobe import registry
from vlprobe.cli import main, serve
from vlprobe.errors import InvalidInput
from vlprobe.runs import jobs, ray_executor
from vlprobe.runs.request import Request
from vlprobe.storage import access
from vlprobe.storage.store import Store

REFUSED = "was not allowed at startup"


def error_text(at: AppTest) -> str:
    """Return the error messages of a page without Markdown escapes."""
    return " ".join(error.value for error in at.error).replace("\\", "")


class Bell(HTTPServer):
    """A server that counts requests."""

    rung = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


@pytest.fixture
def bell() -> Iterator[Bell]:
    class Ring(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            Bell.rung += 1
            self.send_error(404)

        do_GET = do_POST

    Bell.rung = 0
    server = Bell(("127.0.0.1", 0), Ring)
    Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def unlisted_model(bell: Bell, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a model on a server that is not allowed; another server is allowed."""
    monkeypatch.setenv(access.APIS, "https://api.example.com/v1")
    return f"http:{bell.url}#m+chat"


OTHER_PAGES = [
    *(("explore", "model"), ("compare", "with"), ("tradeoff", "model"), ("models", "model")),
    *(("repair", "before"), ("retrieval", "model"), ("run", "model"), ("home", "model")),
]


@pytest.mark.parametrize(
    ("page", "parameter"),
    tiers([("try", "models"), *OTHER_PAGES], [("try", "models")]),
)
def test_a_link_sends_no_request_to_a_server(
    page: str,
    parameter: str,
    every_probe: Store,
    unlisted_model: str,
    monkeypatch: pytest.MonkeyPatch,
    bell: Bell,
):
    for named in ("", bell.url):  # only a started run sends requests, even to an allowed server
        monkeypatch.setenv(access.APIS, named)
        query = {parameter: unlisted_model}
        at = open_page(monkeypatch, every_probe, page, **query)
        for button in [button for button in at.button if button.key == f"load_{unlisted_model}"]:
            button.click().run()
            assert REFUSED in error_text(at) or "only available in runs" in error_text(at)
        assert not at.exception
    assert Bell.rung == 0


def test_the_run_form_accepts_only_servers_that_were_allowed_at_startup(
    store: Store,
    unspawned: None,
    unlisted_model: str,
    bell: Bell,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    data = make_tiny(tmp_path / "tiny")
    monkeypatch.setenv(access.ROOTS, str(tmp_path))  # an address is not a path
    at = open_form(monkeypatch, store)
    at.multiselect(key="run_models").set_value([unlisted_model])
    at.text_input(key="run_own").set_value(data).run()
    assert REFUSED in error_text(at)
    assert at.button(key="start").disabled and requests(store) == []
    monkeypatch.setenv(access.APIS, bell.url)
    at.text_input(key="run_max_cost").set_value("1.50").run()
    assert "requires --price" in error_text(at)
    at.text_input(key="run_price").set_value("2.5/10").run()
    assert not at.error and any(
        bell.url.removesuffix("/v1") in html.proto.body for html in at.get("html")
    )
    at.button(key="start").click().run()
    (request,) = requests(store)
    assert request.models == (unlisted_model,) and (request.price, request.max_cost) == (
        "2.5/10",
        "1.50",
    )
    assert Bell.rung == 0


@pytest.mark.parametrize(
    ("probe", "options"), [("lgip", {}), ("rococo", {"policies": ["same-concept"]})]
)
def test_a_job_file_sends_no_request_to_a_server(
    store: Store, unlisted_model: str, tmp_path: Path, probe: str, options: dict
):
    tiny = make_tiny(tmp_path / "tiny")
    job_request = Request((unlisted_model,), tiny, probe, options)
    if probe == "rococo":
        job_request = Request(
            ("control:random",), tiny, probe, options | {"influence": [unlisted_model]}
        )
    job_id = jobs.write(job_request, store)
    assert jobs.work(str(store.root), job_id) == 1
    assert REFUSED in jobs.read(store, job_id).error and Bell.rung == 0


def test_a_dashboard_allows_only_the_servers_of_its_command_line_and_passes_them_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    started = []
    monkeypatch.setenv(access.APIS, "")
    monkeypatch.setattr(serve, "_become", lambda command, folder, env: started.append(env))
    words = ["--cache", str(tmp_path / "cache"), "dashboard"]
    assert CliRunner().invoke(main.main, words).exit_code == 0
    typed = ["--api", "HTTPS://Api.example.com/v1/", "--api", "http://127.0.0.1:8000#one"]
    assert CliRunner().invoke(main.main, [*words, *typed]).exit_code == 0
    named = "https://api.example.com/v1\nhttp://127.0.0.1:8000#one"
    assert [env[access.APIS] for env in started] == ["", named]
    monkeypatch.setenv(access.APIS, named)
    assert ray_executor.worker_environment(1)[access.APIS] == named
    registry.check_name("models", "http:https://api.example.com/v1#any")
    registry.check_name("models", "http:http://127.0.0.1:8000#one+chat")
    with pytest.raises(InvalidInput, match=REFUSED):
        registry.check_name("models", "http:http://127.0.0.1:8000#two")
    outcome = CliRunner().invoke(main.main, [*words, "--api", "https://me:secret@a.example.com"])
    assert outcome.exit_code == 1 and "secret" not in outcome.output


def test_a_command_may_send_requests_to_the_server_in_its_arguments(
    monkeypatch: pytest.MonkeyPatch, store: Store, tmp_path: Path, bell: Bell
):
    monkeypatch.setenv(access.APIS, "")
    words = ["--cache", str(store.root), "run", "--dataset", make_tiny(tmp_path / "tiny")]
    outcome = CliRunner().invoke(main.main, [*words, "--model", f"http:{bell.url}#m+chat"])
    assert outcome.exit_code == 1 and "the first request: status 404" in outcome.output
    assert Bell.rung == 1
