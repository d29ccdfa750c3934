"""The check of stored results: the page names damaged files in plain words, and a click rebuilds them."""

import html
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from streamlit.testing.v1 import AppTest

from tests.conftest import make_tiny
from tests.dashboard.test_pages import bodies, open_page, words
from tests.faults import forks
from tests.faults.test_damage import damage_file
from vlprobe.dashboard import state, widgets
from vlprobe.dashboard.lab import page
from vlprobe.errors import REPAIR, InvalidInput, StoredDamage
from vlprobe.runs import jobs
from vlprobe.runs import verify as runs_verify
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage import access
from vlprobe.storage.files import write_json
from vlprobe.storage.mirror import MIRROR
from vlprobe.storage.store import Store


@pytest.fixture(scope="module")
def verified_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Request, Store]:
    folder = tmp_path_factory.mktemp("verified")
    store = Store(folder / "cache")
    request = Request(
        ("control:random", "control:constant"),
        make_tiny(folder / "<tiny>"),
        "lgip",
        {"k_same": 2},
        limit=2,
    )
    execute(request, store)
    return request, store


@pytest.fixture
def copied(verified_run: tuple[Request, Store], store: Store) -> Store:
    shutil.copytree(verified_run[1].root, store.root)
    return store


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """Return the requests of the jobs to start without running them; a child process would take seconds."""
    requests: list[Request] = []
    monkeypatch.setattr(
        jobs, "write", lambda request, store: requests.append(request) or f"ab{len(requests)}"
    )
    monkeypatch.setattr(jobs, "resume", lambda store, job_id: None)
    return requests


def open_check(monkeypatch: pytest.MonkeyPatch, store: Store) -> AppTest:
    at = open_page(monkeypatch, store, "lab")
    at.button(key="check_stored").click().run()
    assert not at.exception
    return at


def links_to_lab(at: AppTest) -> list[str]:
    """Return the labels of the page's links to Lab, without the link back; other links may open cases."""
    links = [link.proto for link in at.get("page_link")]
    return [link.label for link in links if link.page == "lab" and link.label != "Lab"]


def run_of(store: Store, model: str) -> Path:
    return next(
        store.run(one["key"]).folder for one in store.runs() if one["run"]["model"] == model
    )


def test_matching_checksums_are_reported(monkeypatch, verified_run):
    at = open_check(monkeypatch, verified_run[1])
    assert re.fullmatch(r"\d\d \w+, \d\d:\d\d: all checksums match\.", at.success[0].value)
    assert not [button for button in at.button if button.key == "mend_stored"]


def test_damaged_files_are_named_and_removed_and_a_new_run_restores_the_results(
    monkeypatch, verified_run, copied, started
):
    request, whole = verified_run
    damaged = run_of(copied, "control:constant") / "scores.parquet"
    damage_file(damaged, "flipped")
    damage_file(next(copied.root.glob("embeddings/*/texts/*.npy")), "truncated")
    at = open_check(monkeypatch, copied)
    assert at.warning[0].value.endswith(": 2 stored files are damaged.")
    assert 'data-title="Repair"' in bodies(at)  # a narrow screen shows no table head
    text = words(at)
    assert f"Answers of control:constant to {request.dataset} · lgip" in text
    assert "scores.parquet" in text
    assert "<tiny>" not in "".join(element.proto.body for element in at.get("html"))
    assert "1 run will start again" in text
    at.button(key="mend_stored").click().run()
    assert not at.exception
    assert [(one.models, one.dataset, one.options["k_same"], one.limit) for one in started] == [
        (("control:constant",), request.dataset, 2, 2)
    ]
    assert not damaged.exists()
    assert "2 files removed" in at.success[0].value
    assert runs_verify.damages(copied) == []
    execute(started[0], copied)
    execute(request, copied)
    assert forks.results(copied.root) == forks.results(whole.root)


def test_a_damaged_question_set_is_rebuilt_for_all_its_models_in_one_job(
    monkeypatch, verified_run, copied, started
):
    damage_file(next(copied.root.glob("cases/*/cases.parquet")), "truncated")
    at = open_check(monkeypatch, copied)
    assert f"Questions of {verified_run[0].dataset} · lgip" in words(at)
    at.button(key="mend_stored").click().run()
    assert [sorted(one.models) for one in started] == [["control:constant", "control:random"]]


def test_a_damaged_manifest_shows_a_link_to_the_repair_button(
    monkeypatch, verified_run, copied, started
):
    manifest = run_of(copied, "control:random") / "manifest.json"
    text = manifest.read_text()
    manifest.write_text(text.replace('"n_cases": ', '"n_cases": 1'))
    at = open_page(monkeypatch, copied, "breakdown")
    assert "is damaged" in at.warning[0].value
    assert "press 'Check stored results'" in at.warning[0].value
    assert "verify" not in at.warning[0].value
    assert links_to_lab(at) == ["Check stored results and compute them again"]
    at = open_check(monkeypatch, copied)
    assert "Answers of control:random to" in words(at)  # its key identifies the run
    at.button(key="mend_stored").click().run()
    assert [one.models for one in started] == [("control:random",)]
    manifest.write_text("{")
    at = open_check(monkeypatch, copied)
    assert "the run that made it is unknown" in words(at)
    at.button(key="mend_stored").click().run()
    assert len(started) == 1
    assert not at.error


def test_a_file_name_that_contains_the_command_is_not_treated_as_damage(monkeypatch):
    named = InvalidInput(f"'{REPAIR}' is not a readable path. Check the name.")
    assert widgets.error_text(named) == str(named)
    assert widgets.error_text(StoredDamage(f"'{REPAIR}' is damaged.")) == (
        f"'{REPAIR}' is damaged. {widgets.PRESS}"
    )
    links: list[str] = []
    monkeypatch.setattr(widgets.st, "page_link", lambda page, **_: links.append(page))
    widgets.way_out(named)
    assert links == []
    widgets.way_out(StoredDamage("'a' is damaged."))
    assert links == ["pages/lab.py"]


def test_a_job_stopped_by_damage_names_the_repair_button(monkeypatch, verified_run, copied):
    def stop(request: Request, store: Store, report: object) -> list[str]:
        raise StoredDamage("'scores.parquet' is damaged.")

    monkeypatch.setattr(jobs, "_work", stop)
    job_id = jobs.write(verified_run[0], copied)
    assert jobs.work(copied.address, job_id) == 1
    assert jobs.read(copied, job_id).error == f"'scores.parquet' is damaged. {REPAIR}"
    at = open_page(monkeypatch, copied, "run", job=job_id)
    assert at.error[0].value == state.plain(f"'scores.parquet' is damaged. {widgets.PRESS}")


def test_a_file_restored_after_the_check_is_not_removed(monkeypatch, copied, started):
    damaged = run_of(copied, "control:random") / "sums.parquet"
    kept = damaged.read_bytes()
    damage_file(damaged, "truncated")
    at = open_check(monkeypatch, copied)
    damaged.write_bytes(kept)
    at.button(key="mend_stored").click().run()
    assert damaged.read_bytes() == kept
    assert started == []


def test_a_second_click_keeps_the_work_of_the_first_click_s_job(monkeypatch, copied, started):
    run = run_of(copied, "control:random")
    (run / "scores.parquet").unlink()
    first, second = open_check(monkeypatch, copied), open_check(monkeypatch, copied)
    first.button(key="mend_stored").click().run()
    copied.run(run.name).write_part("0-1", pa.table({"x": [1]}))
    second.button(key="mend_stored").click().run()
    assert (run / "parts" / "0-1.parquet").exists()
    assert len(started) == 1
    assert "Nothing was removed" in second.success[0].value


def test_a_stale_click_keeps_the_files_that_another_machine_restored_in_a_bucket(
    monkeypatch, tmp_path, verified_run, started
):
    monkeypatch.setenv(MIRROR, str(tmp_path / "mirror"))
    store = Store(f"memory://{tmp_path.name}")
    request = replace(verified_run[0], models=("control:random",))
    execute(request, store)
    remote = store.mirror
    remote.remove([name for name in remote.names("runs") if "scores" in name])
    stale_damages = tuple(runs_verify.damages(store))
    assert [widgets.why for widgets in stale_damages] == ["it is missing"]
    runs_verify.repair(list(stale_damages))
    execute(request, store)
    whole = remote.names("index")
    monkeypatch.setattr(page, "store", lambda: store)

    def press(damages: tuple) -> None:
        from vlprobe.dashboard.lab import page

        page._mend(damages)

    at = AppTest.from_function(press, args=(stale_damages,), default_timeout=300).run()
    assert not at.exception
    assert "Nothing was removed" in at.session_state[page.MENDED]
    assert remote.names("index") == whole
    assert started == []


def test_runs_of_a_queued_job_are_not_removed(monkeypatch, verified_run, copied):
    run = run_of(copied, "control:random")
    (run / "scores.parquet").unlink()
    at = open_check(monkeypatch, copied)
    job_id = jobs.write(verified_run[0], copied)
    write_json(copied.root / "jobs" / job_id / "status.json", {"state": "queued"})
    at.button(key="mend_stored").click().run()
    assert (run / "manifest.json").exists()
    assert [job.id for job in jobs.jobs(copied)] == [job_id]
    assert "1 file was not changed, because a job is running the same tests" in at.success[0].value


def test_runs_that_cannot_be_started_are_named_and_can_be_resumed(
    monkeypatch, verified_run, copied
):
    execute(replace(verified_run[0], models=("control:random",), limit=1), copied)
    for path in copied.root.glob("runs/*/scores.parquet"):
        path.unlink()
    at = open_check(monkeypatch, copied)

    def refuse(store: Store, job_id: str) -> None:
        raise InvalidInput(f"Job '{job_id}' cannot be started (no memory).")

    monkeypatch.setattr(jobs, "resume", refuse)
    at.button(key="mend_stored").click().run()
    known = {job.id: job for job in jobs.jobs(copied)}
    assert sorted(job.request.limit for job in known.values()) == [1, 2]
    for job_id in known:
        assert f"vlprobe --cache {copied.root} jobs --resume {job_id}" in at.error[0].value.replace(
            "\\", ""
        )
    assert at.query_params["job"] in known
    assert "being rebuilt" not in at.success[0].value


def test_no_file_is_removed_if_the_job_cannot_be_written(monkeypatch, copied):
    run = run_of(copied, "control:random")
    (run / "scores.parquet").unlink()
    at = open_check(monkeypatch, copied)

    def full(request: Request, store: Store) -> str:
        raise InvalidInput("Cannot write the job (no space).")

    monkeypatch.setattr(jobs, "write", full)
    at.button(key="mend_stored").click().run()
    assert "no space" in at.error[0].value
    assert (run / "manifest.json").exists()


def test_embeddings_of_an_older_version_are_not_called_damaged(monkeypatch, copied):
    new = next(copied.root.glob("embeddings/*/texts/*.npy"))
    new.rename(new.with_name(f"{new.stem[:24]}.npy"))
    at = open_check(monkeypatch, copied)
    assert not at.warning
    assert "1 stored file is from an older version of vlprobe" in " ".join(
        one.value for one in at.info
    )


def test_repair_never_deletes_annotations(monkeypatch, copied, started):
    file = copied.root / "mine" / "annotations" / f"{copied.runs()[0]['case_key']}.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("<b>half of a li\n")
    at = open_check(monkeypatch, copied)
    assert "Tags and notes" in html.unescape(words(at))
    assert not [button for button in at.button if button.key == "mend_stored"]


def test_a_read_only_dashboard_offers_no_check_and_no_repair(monkeypatch, copied):
    monkeypatch.setenv(access.READ_ONLY, "1")
    damage_file(run_of(copied, "control:random") / "manifest.json", "truncated")
    assert not open_page(monkeypatch, copied, "run").button
    assert not open_page(monkeypatch, copied, "lab").button
    at = open_page(monkeypatch, copied, "breakdown")
    assert "is damaged" in at.warning[0].value
    assert not links_to_lab(at)
