"""Jobs of the Run page, without a browser: starting one, its progress and its end, and rejected starts."""

import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import make_tiny
from tests.dashboard.test_pages import CONSTANT, RANDOM, words
from vlprobe import views
from vlprobe.dashboard.navigation import page_file
from vlprobe.dashboard.run import progress
from vlprobe.dashboard.state import plain
from vlprobe.render.words import presentations
from vlprobe.runs import jobs
from vlprobe.runs.jobs import Job
from vlprobe.runs.request import PlanRequest, Progress, Request
from vlprobe.runs.run import execute
from vlprobe.storage.files import write_json
from vlprobe.storage.store import Store
from vlprobe.views.changes import changed_words


def test_a_bad_job_in_the_url_is_one_line(show_page, compared: Store):
    at = show_page(compared, "run", job="nonsense")
    assert "No job named" in at.error[0].value
    assert at.button(key="start")


def test_start_is_disabled_until_a_model_and_a_kind_are_chosen(show_page, compared: Store):
    at = show_page(compared, "run", open="how_lgip|machine")
    assert at.button(key="start").disabled
    at.multiselect(key="run_models").set_value([RANDOM]).run()
    assert not at.button(key="start").disabled
    at.button_group(key="run_lgip_kinds").set_value([]).run()
    assert at.button(key="start").disabled


def test_start_creates_the_job_that_was_chosen(show_page, compared: Store, tiny: str, monkeypatch):
    begun: list[Request] = []
    monkeypatch.setattr(jobs, "start", lambda request, store: begun.append(request) or "")
    at = show_page(compared, "run", open="how_lgip|machine")
    at.multiselect(key="run_models").set_value([RANDOM, CONSTANT])
    at.selectbox(key="run_lgip_rules").set_value("paper")
    at.number_input(key="run_limit").set_value(5)
    path = tiny.partition(":")[2]
    at.text_input(key="run_own").set_value(f" {path} ")
    at.run()
    at.button(key="start").click().run()
    assert begun[0].models == (RANDOM, CONSTANT)
    assert begun[0].options["rules"] == "paper"
    assert begun[0].limit == 5
    assert begun[0].dataset == f"table:{path}"  # the reader for a path without a prefix


def test_a_job_that_cannot_start_is_one_line(show_page, compared: Store, monkeypatch):
    from vlprobe.errors import InvalidInput

    def refuse(request, store):
        raise InvalidInput("Cannot write *here*.")

    monkeypatch.setattr(jobs, "start", refuse)
    at = show_page(compared, "run")
    at.multiselect(key="run_models").set_value([RANDOM]).run()
    at.button(key="start").click().run()
    assert at.error[0].value == r"Cannot write \*here\*."
    assert not at.exception


def test_a_finished_job_links_to_results_and_a_failed_one_can_resume(show_page, tmp_path: Path):
    store = Store(tmp_path / "cache")
    job_id = jobs.write(
        Request((CONSTANT,), make_tiny(tmp_path / "tiny"), "lgip", device="cpu"), store
    )
    bad = jobs.write(Request((CONSTANT,), "csv:/nowhere.csv", "lgip", device="cpu"), store)
    assert [jobs.work(str(store.root), one) for one in (job_id, bad)] == [0, 1]
    at = show_page(store, "run", job=job_id)
    assert "Done" in words(at)
    assert [link.proto.label for link in at.get("page_link")] == [
        "See the cases",
        "See the numbers",
    ]
    at = show_page(store, "run", job=bad)
    assert "nowhere.csv" in at.error[0].value
    assert any(button.label == "Resume" for button in at.button)


def write_job(store: Store, models: tuple[str, ...], state: str, **facts: object) -> str:
    """Write the files of a job in this state; this process runs it."""
    job_id = jobs.write(Request(models, "demo", "lgip", device="cpu"), store)
    folder = store.root / "jobs" / job_id
    write_json(folder / "status.json", {"state": state, "updated": time.time(), **facts})
    return job_id


@pytest.fixture
def alive(monkeypatch: pytest.MonkeyPatch, compared: Store) -> Iterator[None]:
    """Treat every job's process as alive. Jobs in the shared store are removed afterwards."""
    monkeypatch.setattr(jobs, "_reason_of_death", lambda folder: "")
    yield
    shutil.rmtree(compared.root / "jobs", ignore_errors=True)


def test_a_running_job_is_shown_at_the_bottom_of_every_page_and_can_be_stopped_there(
    show_page, compared: Store, alive: None
):
    job_id = write_job(
        compared, (RANDOM, CONSTANT), "running", label=f"{CONSTANT}: edits", done=2.0, total=4.0
    )
    at = show_page(compared, "lab")
    (link,) = [link for link in at.get("page_link") if link.proto.label == "Show"]
    assert link.proto.page == "run" and job_id in link.proto.query_string
    at.button(key="stop_under_way").click().run()
    assert (compared.root / "jobs" / job_id / "cancel").exists()
    assert at.button(key="stop_under_way").disabled
    at = show_page(compared, "run", job=job_id)
    assert at.get("progress")[-1].proto.text == plain(
        progress.in_one_line(jobs.read(compared, job_id))
    )
    assert "No earlier run was started from this page" in words(at)
    assert not [button for button in at.button if button.key == "stop_under_way"]
    assert at.button(key=f"cancel_{job_id}")


def test_a_queued_job_shows_all_its_models_as_waiting_and_names_the_device(
    show_page, compared: Store, alive: None
):
    job_id = write_job(compared, (RANDOM, CONSTANT), "queued", label="Waiting for cpu")
    job = jobs.read(compared, job_id)
    assert [progress.model_state(job, place)[0] for place in range(2)] == ["waiting"] * 2
    assert "Waiting for cpu. " in words(show_page(compared, "run", job=job_id))


def test_each_model_of_a_job_is_done_running_or_waiting(show_page, compared: Store, alive: None):
    models = ("demo:softmax", RANDOM, CONSTANT)
    job_id = write_job(compared, models, "running", label=f"{RANDOM}: edits", done=1.0, total=4.0)
    job = jobs.read(compared, job_id)
    states = [progress.model_state(job, place) for place in range(3)]
    assert states == [("done", 1.0), ("running", 0.25), ("waiting", 0.0)]
    assert progress.overall_fraction(job) == pytest.approx(1.25 / 3)


def test_the_finished_parts_of_a_run_show_how_often_the_model_was_fooled_so_far(
    show_page, compared: Store, alive: None
):
    (row,) = [row for row in views.runs.run_rows(compared) if row.model == RANDOM]
    cases, scores = (
        compared.cases(row.case_key).table("cases").to_pandas(),
        compared.run(row.key).table("scores"),
    )
    n_fooled = int(((cases["kind"] == "flip") & (scores["margin"].to_numpy() <= 0))[:40].sum())
    n_asked = int((cases["kind"] == "flip")[:40].sum())
    compared.run(row.key).write_part("000000000-000000040", scores.slice(0, 40))
    keys = {"run_key": row.key, "case_key": row.case_key}
    job_id = write_job(compared, (RANDOM,), "running", label=RANDOM, done=1.0, total=4.0, **keys)
    try:
        at = show_page(compared, "run", job=job_id)
        assert f"so far fooled by {n_fooled} of {n_asked} wrong captions" in words(at)
        is_fooled = (cases["kind"] == "flip") & (scores["margin"].to_numpy() <= 0)
        last = cases["texts"][is_fooled[:40].to_numpy().nonzero()[0][-1]]
        images = [image for grid in at.get("image") for image in grid.proto.imgs]
        captions = [image.caption for image in images if image.caption]  # the dataset's have none
        removed, inserted = changed_words(*last[:2])
        assert [plain(f"Last fooled: {removed} → {inserted}")] == captions
    finally:
        shutil.rmtree(compared.run(row.key).folder / "parts")


def test_a_model_s_result_is_shown_as_soon_as_it_is_done(show_page, compared: Store, alive: None):
    dataset = views.runs.run_rows(compared)[0].dataset
    job_id = jobs.write(Request((RANDOM, "demo:weak"), dataset, "lgip", device="cpu"), compared)
    folder = compared.root / "jobs" / job_id
    write_json(
        folder / "status.json",
        {"state": "running", "label": "demo:weak: edits", "updated": time.time()},
    )
    at = show_page(compared, "run", job=job_id)
    (row,) = [
        row for row in views.runs.run_rows(compared) if row.model == RANDOM and row.probe == "lgip"
    ]
    counted = views.cases.outcomes(
        views.runs.question_set(compared, row.case_key),
        views.filter.Filter(RANDOM, "flip"),
    )
    text = words(at)
    assert f"fooled by {counted['fooled']} of {counted['all']} wrong captions" in text
    assert "See the cases" in [link.proto.label for link in at.get("page_link")]


def test_an_earlier_run_opens_below_its_row(show_page, compared: Store, alive: None):
    job_id = write_job(compared, (RANDOM,), "failed", label=RANDOM)
    at = show_page(compared, "run")
    at.button(key=f"open_{job_id}").click().run()
    assert at.query_params["job"] in (job_id, [job_id])
    text = words(at)
    assert text.count("Failed") == 2 and text.index(" tests") < text.index("Failed")


def test_only_running_and_queued_jobs_are_unfinished(store: Store, alive: None):
    ids = {
        state: write_job(store, (RANDOM,), state)
        for state in ("running", "queued", "done", "failed")
    }
    assert {job.id for job in jobs.unfinished_jobs(store)} == {ids["running"], ids["queued"]}
    (store.root / "jobs" / ids["queued"] / "status.json").write_text("[")
    assert {job.id for job in jobs.unfinished_jobs(store)} == {ids["running"]}


def test_each_probe_of_a_plan_shows_its_state_and_links_to_its_failures(
    show_page, tmp_path: Path, alive: None
):
    store = Store(tmp_path / "cache")
    dataset = make_tiny(tmp_path / "tiny")
    execute(Request((RANDOM,), dataset, "lgip", device="cpu", examine=False), store)
    requests = [Request((RANDOM, CONSTANT), dataset, probe) for probe in ("lgip", "rococo", "prsm")]
    job_id = jobs.write(PlanRequest(tuple(requests)), store)
    folder = store.root / "jobs" / job_id
    status = {"state": "running", "label": RANDOM, "done": 1.0, "total": 2.0, "probe": "rococo"}
    status |= {"left_out": ["prsm: It has no words."]}
    write_json(folder / "status.json", status)
    at = show_page(store, "run", job=job_id)
    text = words(at)
    names = [presentations()[request.probe].name for request in requests]
    first, second, third = names
    assert f"{first}, {second}, {third}" in text
    assert f"{first} · " in text and "fooled by" in text
    assert f"{second} · Scoring" in text
    assert f"{third} · left out" in text and "Left out prsm: It has no words." in text
    assert f"{first} · waiting" in text  # for the other model
    job = jobs.read(store, job_id)
    assert progress.overall_fraction(job) == pytest.approx((1 + 1 / 2) / 3 / 2)
    assert [link.proto.label for link in at.get("page_link")][:2] == [
        f"See the cases · {first}",
        "See the numbers",
    ]
    execute(Request((RANDOM,), dataset, "rococo", device="cpu", examine=False), store)
    write_json(folder / "status.json", status | {"state": "done", "probe": ""})
    links = [link.proto.label for link in show_page(store, "run", job=job_id).get("page_link")]
    assert links[:2] == [f"See the cases · {first}", f"See the cases · {second}"]
    write_json(folder / "status.json", status)
    at = show_page(store, "retrieval", job=job_id)  # the page of one of its probes shows it too
    assert f"{second} · Scoring" in words(at)


def test_a_limit_on_pictures_is_an_upper_limit(show_page, compared: Store, alive: None):
    job_id = jobs.write(Request((RANDOM,), "demo", "lgip", device="cpu", limit=1000), compared)
    assert "(at most 1,000 pictures)" in words(show_page(compared, "run", job=job_id))


def end_job(store: Store, job_id: str, **facts: object) -> None:
    """End a waiting job."""
    write_json(
        store.root / "jobs" / job_id / "status.json", {"updated": time.time(), "label": "", **facts}
    )


def test_a_finished_job_is_announced_on_any_page_until_its_link_is_followed_or_it_is_dismissed(
    show_page, compared: Store, alive: None
):
    (row,) = [row for row in views.runs.run_rows(compared) if row.model == RANDOM]
    job_id = write_job(compared, (RANDOM,), "running", label=RANDOM, done=1.0, total=4.0)
    at = show_page(compared, "lab")
    assert not [button for button in at.button if button.label == "Dismiss"]
    end_job(compared, job_id, state="done", keys=[row.key])
    at.run()
    counted = views.cases.outcomes(
        views.runs.question_set(compared, row.case_key),
        views.filter.Filter(RANDOM, "flip"),
    )
    assert (
        f"Done: Coin flip is fooled by {counted['fooled']} of {counted['all']} wrong captions."
        in words(at)
    )
    (link,) = [link for link in at.get("page_link") if link.proto.label == "See them"]
    assert link.proto.page == "explore" and row.case_key in link.proto.query_string
    at.switch_page(page_file("published")).run()
    assert "Done: Coin flip" in words(at)
    at.query_params["job"] = job_id  # as after a click on the link
    assert "Done: Coin flip" not in words(at.run())
    del at.query_params["job"]
    assert "Done: Coin flip" not in words(at.run())


def test_run_announces_the_end_of_its_job_because_the_panel_may_be_out_of_view(
    show_page, compared: Store, alive: None
):
    (row,) = [row for row in views.runs.run_rows(compared) if row.model == RANDOM]
    job_id = write_job(compared, (RANDOM,), "running", label=RANDOM, done=1.0, total=4.0)
    at = show_page(compared, "run", job=job_id)
    end_job(compared, job_id, state="done", keys=[row.key])
    at.run()
    assert "Done: Coin flip is fooled by" in words(at)
    assert "Done: Coin flip is fooled by" in words(at.run())
    at.button(key=f"dismiss_{job_id}").click().run()
    assert not [button for button in at.button if button.label == "Dismiss"]


def test_a_failed_job_is_announced_with_its_reason_and_dismissed(
    show_page, compared: Store, alive: None
):
    job_id = write_job(compared, (RANDOM,), "running", label=RANDOM)
    at = show_page(compared, "lab")
    end_job(compared, job_id, state="failed", error="The disk is full.")
    assert "The disk is full." in words(at.run())
    (link,) = [link for link in at.get("page_link") if link.proto.label == "Show"]
    assert link.proto.page == "run" and job_id in link.proto.query_string
    at.button(key=f"dismiss_{job_id}").click().run()
    assert "The disk is full." not in words(at)


def test_a_canceled_job_is_not_announced_to_the_person_who_canceled_it(
    show_page, compared: Store, alive: None
):
    job_id = write_job(compared, (RANDOM,), "running", label=RANDOM)
    at = show_page(compared, "lab")
    end_job(compared, job_id, state="cancelled")
    at.run()
    assert not [button for button in at.button if button.label == "Dismiss"]


def test_visiting_another_page_keeps_the_progress_and_form(show_page, compared: Store, alive: None):
    job_id = write_job(compared, (RANDOM,), "running", label=RANDOM, done=1.0, total=4.0)
    at = show_page(compared, "run", job=job_id)
    at.checkbox(key="run_model_demo:weak").check()
    at.checkbox(key="run_probe_visla").check()
    at.multiselect(key="run_models").set_value([CONSTANT, "openclip:one/two"])
    at.text_input(key="run_own").set_value("csv:/a/b.csv").run()
    at.switch_page(page_file("lab"))
    del at.query_params["job"]
    at.run().switch_page(page_file("run")).run()
    assert at.button(key=f"cancel_{job_id}")
    assert not [button for button in at.button if button.key == "stop_under_way"]
    assert at.checkbox(key="run_model_demo:weak").value
    assert not at.checkbox(key="run_model_demo:softmax").value
    assert at.checkbox(key="run_probe_visla").value
    assert at.multiselect(key="run_models").value == [CONSTANT, "openclip:one/two"]
    assert at.text_input(key="run_own").value == "csv:/a/b.csv"
    assert at.radio(key="run_dataset").value is None
    at.radio(key="run_dataset").set_value("").run()
    assert at.text_input(key="run_own").value == ""


def test_a_finished_run_is_listed_as_an_earlier_run_while_its_progress_is_shown(
    show_page, compared: Store, alive: None
):
    (row,) = [row for row in views.runs.run_rows(compared) if row.model == RANDOM]
    job_id = write_job(compared, (RANDOM,), "done", label="Done", keys=[row.key])
    at = show_page(compared, "run", job=job_id)
    earlier = words(at).partition("See the numbers")[2] or words(at)
    assert "No earlier run was started" not in words(at)
    assert earlier.count("Done Coin flip") == 1


class Labels(Progress):
    """A list of the progress that a run reports."""

    def __init__(self) -> None:
        self.updates: list[tuple[str, float, float]] = []

    def update(self, label: str, done: float, total: float) -> None:
        """Append one report."""
        self.updates.append((label, done, total))


def test_every_stage_of_a_run_has_a_readable_label_with_the_number_of_pictures_read(tmp_path: Path):
    labels = Labels()
    dataset = make_tiny(tmp_path / "tiny")
    request = Request(("demo:weak",), dataset, "lgip", device="cpu")
    execute(request, Store(tmp_path / "cache"), labels)
    stages = [
        progress.stage(
            Job(id="a", request=request, state="running", label=label, done=done, total=total)
        )
        for label, done, total in labels.updates
    ]
    assert not [line for line in stages if "demo:" in line or dataset in line or "(" in line]
    assert {"Loading the model", "Reading the data", "Scoring", "Computing intervals"} <= set(
        stages
    )
    counted = [re.fullmatch(r"Reading pictures (\d+) of (\d+)", line) for line in stages]
    assert [match for match in counted if match and match[1] == match[2]]
