"""Plug-in names in everything that other people can write: links, forms, job files, stored runs, settings in a model
folder. None of them runs code unless the person who started vlprobe allowed that plug-in.
"""

import json
import shutil
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.conftest import make_tiny, tiers
from tests.dashboard.test_pages import open_form, open_page, words
from tests.dashboard.test_pages_run import choose_probe, requests
from tests.registry.conftest import FILES, TRAP
from tests.runs.test_jobs import wait
from vlprobe import registry, views
from vlprobe.cli import main, serve
from vlprobe.errors import InvalidInput, VlprobeError
from vlprobe.registry import plugins
from vlprobe.runs import jobs, ray_executor
from vlprobe.runs.request import Request
from vlprobe.storage import access
from vlprobe.storage.store import Store

REFUSED = "is code from outside vlprobe, and it was not allowed at startup"


class Trap:
    """A plug-in file that creates a marker file when it runs."""

    def __init__(self, folder: Path) -> None:
        self.mark, self.file = folder / "ran", folder / "trap.py"
        self.file.write_text(TRAP.format(mark=str(self.mark)))

    @property
    def name(self) -> str:
        return f"py:{self.file}"


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Trap]:
    """Create a trap, and check after the test that its code has not run."""
    monkeypatch.setenv(access.PLUGINS, "")
    made = Trap(tmp_path)
    yield made
    assert not made.mark.exists()


@pytest.mark.parametrize(
    ("page", "parameter"),
    tiers(
        [
            *(("home", "set"), ("explore", "model"), ("compare", "with"), ("tradeoff", "model")),
            *(("try", "models"), ("models", "model"), ("repair", "before"), ("present", "model")),
        ],
        [("explore", "model"), ("try", "models")],
    ),
)
def test_a_plugin_name_in_a_link_runs_nothing(
    every_probe: Store, trap: Trap, monkeypatch: pytest.MonkeyPatch, page: str, parameter: str
):
    at = open_page(monkeypatch, every_probe, page, **{parameter: trap.name})
    buttons = [button for button in at.button if button.key == f"load_{trap.name}"]
    assert len(buttons) == (page == "try")
    for button in buttons:
        button.click().run()
        assert REFUSED in at.error[0].value.replace("\\", "")
    assert not at.exception


@pytest.mark.parametrize("field", ["models", "dataset", "rules", "gallery"])
def test_the_run_form_refuses_the_name_of_a_plugin(
    store: Store,
    trap: Trap,
    unspawned: None,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    field: str,
):
    at = open_form(monkeypatch, store)
    models, data = ["control:random"], make_tiny(tmp_path / "tiny")
    if field == "gallery":
        choose_probe(at, "prsm").run()
    if field in ("rules", "gallery"):
        key = "run_lgip_rules" if field == "rules" else "run_prsm_gallery"
        at.selectbox(key=key).options.append(trap.name)  # typed
        at.selectbox(key=key).set_value(trap.name)
    at.multiselect(key="run_models").set_value([trap.name] if field == "models" else models)
    at.text_input(key="run_own").set_value(trap.name if field == "dataset" else data).run()
    assert REFUSED in at.error[0].value.replace("\\", "")
    assert at.button(key="start").disabled and requests(store) == []


def test_the_run_form_accepts_plugins_that_were_allowed_at_startup(
    store: Store, unspawned: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    named = {kind: f"py:{path}" for kind, path in FILES.items()}
    monkeypatch.setenv(
        access.PLUGINS, "\n".join(named[kind] for kind in ("model", "dataset", "probe"))
    )
    monkeypatch.setenv(
        access.ROOTS, str(tmp_path)
    )  # a plug-in allowed at startup may be outside these folders
    at = open_page(monkeypatch, store, "run")
    assert named["model"] in at.multiselect(key="run_models").options
    assert f"run_probe_{named['probe']}" in [box.key for box in at.checkbox]
    at.multiselect(key="run_models").set_value([named["model"]])
    at.text_input(key="run_own").set_value(f"{named['dataset']}:2").run()
    assert not at.error
    at.button(key="start").click().run()
    (request,) = requests(store)
    assert request.models == (named["model"],) and request.dataset == f"{named['dataset']}:2"


JOBS = {
    "models": lambda name, tiny: Request((name,), tiny, "lgip"),
    "dataset": lambda name, tiny: Request(("control:random",), name, "lgip"),
    "probe": lambda name, tiny: Request(("control:random",), tiny, name),
    "rules": lambda name, tiny: Request(("control:random",), tiny, "lgip", {"rules": name}),
    "gallery": lambda name, tiny: Request(("control:random",), tiny, "prsm", {"gallery": name}),
}


@pytest.mark.parametrize("field", JOBS)
def test_a_plugin_name_in_a_job_file_runs_no_code(
    store: Store, trap: Trap, tmp_path: Path, field: str
):
    job_id = jobs.write(JOBS[field](trap.name, make_tiny(tmp_path / "tiny")), store)
    assert jobs.work(str(store.root), job_id) == 1
    assert REFUSED in jobs.read(store, job_id).error


def test_resuming_a_job_on_the_command_line_runs_no_plugin_code(
    store: Store, trap: Trap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    job_id = jobs.write(JOBS["models"](trap.name, make_tiny(tmp_path / "tiny")), store)
    words_typed = ["--cache", str(store.root), "jobs", "--resume", job_id]
    jobs.write_json(store.root / "jobs" / job_id / "status.json", {"state": "failed"})
    monkeypatch.setattr(jobs, "_spawn", lambda store, job_id: jobs.work(str(store.root), job_id))
    assert CliRunner().invoke(main.main, words_typed).exit_code == 0
    assert REFUSED in jobs.read(store, job_id).error


@pytest.mark.parametrize("spawned", [False, pytest.param(True, marks=pytest.mark.full)])
def test_a_job_inherits_the_allowed_plugins_of_its_server(
    store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, spawned: bool
):
    monkeypatch.setenv(access.PLUGINS, f"py:{FILES['rules']}")
    job_request = JOBS["rules"](f"py:{FILES['rules']}", make_tiny(tmp_path / "tiny"))
    if spawned:
        job = wait(store, jobs.start(job_request, store))
    else:
        job_id = jobs.write(job_request, store)
        jobs.work(str(store.root), job_id)
        job = jobs.read(store, job_id)
    assert job.state == "done", job.error


def test_ray_workers_have_the_allowed_plugins_of_the_calling_process(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.delenv(access.PLUGINS, raising=False)
    assert ray_executor.worker_environment(1)[access.PLUGINS] == ""
    monkeypatch.setenv(access.PLUGINS, "py:a\nmine")
    assert ray_executor.worker_environment(1)[access.PLUGINS] == "py:a\nmine"


def test_a_server_allows_only_the_plugins_of_its_command_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv(access.PLUGINS, "")
    started = []
    monkeypatch.setattr(serve, "_become", lambda command, folder, env: started.append(env))
    monkeypatch.chdir(FILES["model"].parent)
    words = ["--cache", str(tmp_path / "cache"), "dashboard"]
    assert CliRunner().invoke(main.main, words).exit_code == 0
    assert CliRunner().invoke(main.main, [*words, "--plugin", "py:model.py"]).exit_code == 0
    assert [env[access.PLUGINS] for env in started] == ["", f"py:{FILES['model']}"]


def test_a_plugin_name_in_a_stored_run_runs_no_code(
    every_probe: Store, trap: Trap, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    store = Store(shutil.copytree(every_probe.root, tmp_path / "copy"))
    path = sorted((store.root / "runs").glob("*/manifest.json"))[0]
    manifest = json.loads(path.read_text())
    manifest["run"]["probe"] = trap.name
    manifest.pop("sha256")  # so that the changed manifest is not detected by its checksum
    path.write_text(json.dumps(manifest))
    assert trap.name not in set(views.runs.runs(store)["probe"])
    commands = ["show"], ["show", manifest["key"]], ["failures", manifest["key"]], ["verify"]
    for typed in (*commands, ["report", str(tmp_path / "report.html")], ["jobs"]):
        outcome = CliRunner().invoke(main.main, ["--cache", str(store.root), *typed])
        assert REFUSED in outcome.output or typed[0] not in ("show", "failures")
    for page in ("home", "explore", "lab", "run"):
        at = open_page(monkeypatch, store, page)
        assert not at.exception and "evil" not in words(at)


def test_a_plugin_name_in_the_settings_of_a_model_folder_runs_no_code(trap: Trap, tmp_path: Path):
    folder = tmp_path / "model"
    folder.mkdir()
    settings = {"model_type": "clip", "auto_map": {"AutoModel": trap.name}, "plugin": trap.name}
    (folder / "config.json").write_text(json.dumps(settings))
    (folder / "open_clip_config.json").write_text(json.dumps({"model_cfg": settings}))
    for name in (f"hf:{folder}", f"openclip:local-dir:{folder}", f"st:{folder}"):
        with pytest.raises(VlprobeError):
            registry.load_model(name, "cpu")


def test_an_allowed_plugin_opens_no_file_outside_of_the_roots(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """The plug-in was allowed at startup; a visitor types the part after its name."""
    monkeypatch.setenv(access.PLUGINS, "")
    plugins.allow(f"py:{FILES['dataset']}")
    monkeypatch.setenv(access.ROOTS, str(tmp_path))
    assert registry.load_dataset(f"py:{FILES['dataset']}:1", tmp_path).items
    for rest in ("/etc/passwd", "../x", "~", "1:/etc"):
        with pytest.raises(InvalidInput, match="outside the folders"):
            registry.load_dataset(f"py:{FILES['dataset']}:{rest}", tmp_path)


def test_a_job_stores_the_request_unchanged(store: Store, tmp_path: Path):
    job_request = JOBS["models"](f"py:{FILES['model']}", "demo")
    assert asdict(jobs.read(store, jobs.write(job_request, store)).request) == asdict(job_request)
