"""The current code reads a cache that commit 52b9ca1 wrote: numbers, pictures, views, tags, jobs, stopped runs.

`old_cache/README.md` describes how it was made. A new version of a probe or metric gives the same request another key;
the results stored under the old key stay visible.
"""

import json
import math
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from click.testing import CliRunner
from streamlit.testing.v1 import AppTest

from tests.conftest import call
from tests.dashboard.walls import card_ids, wall
from vlprobe import registry, views
from vlprobe.cli.main import main
from vlprobe.dashboard.navigation import page_file
from vlprobe.errors import InvalidInput
from vlprobe.models.doctor import examine
from vlprobe.models.open_clip_encoder import OpenClipEncoder
from vlprobe.runs import answers as runs_answers
from vlprobe.runs import jobs, verify
from vlprobe.runs import run as runs_run
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.scoring import pictures
from vlprobe.storage import annotations, bookmarks
from vlprobe.storage.store import Store
from vlprobe.types import Picture, Run

FOLDER = Path(__file__).resolve().parent / "old_cache"
ROOT = FOLDER.parent.parent
EXPECTED = json.loads((FOLDER / "expected.json").read_text("utf-8"))
STOPPED = EXPECTED["stopped"]
JOBS = EXPECTED["jobs"]
DESCRIBED = ("note", "options")  # columns with prose, whose wording may change


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Return a copy of the cache. The paths of its datasets and pictures are relative to the working folder."""
    shutil.copytree(FOLDER, tmp_path / "old")
    monkeypatch.chdir(tmp_path / "old")
    return Store("stored")


def printed(*words: str) -> list[dict]:
    """Run a command and return its JSON output."""
    outcome = call("stored", *words, "--format", "json")
    return json.loads(outcome.stdout)


def are_same(value: object, expected: object) -> bool:
    """Return whether two values are equal, for numbers to the ten printed digits."""
    if isinstance(value, float) and isinstance(expected, float | int):
        return math.isclose(value, expected, rel_tol=1e-9, abs_tol=1e-10)
    return value == expected


def differing(
    rows: Sequence[Mapping], expected: Sequence[Mapping], names: Sequence[str]
) -> list[str]:
    """Return the differences from the expected rows, matched by the columns in `names`; additional columns are
    ignored.
    """
    row_of = {tuple(row[name] for name in names): row for row in rows}
    wrong = []
    for row in expected:
        key = tuple(row[name] for name in names)
        wrong += [
            f"{key} {column}: {row_of.get(key, {}).get(column)}, and was {value}"
            for column, value in row.items()
            if column not in DESCRIBED and not are_same(row_of.get(key, {}).get(column), value)
        ]
    return wrong


def stored_run(key: str) -> dict:
    return next(row for row in EXPECTED["runs"] if row["key"] == key)


def entries(store: Store) -> dict[str, bytes]:
    """Return the contents of all files of questions and runs by path."""
    paths = [*store.root.glob("cases/*/*"), *store.root.glob("runs/*/*")]
    return {str(path): path.read_bytes() for path in paths if path.is_file()}


def answers(store: Store, manifest: Mapping) -> dict[str, float]:
    """Return the margin of each case of a run by case id."""
    ids = store.cases(manifest["case_key"]).table("cases", ["id"])["id"].to_pylist()
    return dict(
        zip(
            ids,
            store.run(manifest["key"]).table("scores", ["margin"])["margin"].to_pylist(),
            strict=True,
        )
    )


class Scorers:
    """Record the cases that a probe's scorer scores."""

    def __init__(self, probe: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cases: list[int] = []
        scorer = registry.load_probe(probe).scorer

        def counted(*arguments, **named):
            score = scorer(*arguments, **named)

            def counting(table):
                self.cases += table["case"].to_pylist()
                return score(table)

            return counting

        monkeypatch.setattr(registry.load_probe(probe), "scorer", counted)


def test_all_runs_are_listed_with_their_model_dataset_and_probe(old):
    rows = printed("show")
    assert differing(rows, EXPECTED["runs"], ["key"]) == []
    assert {row["probe"] for row in rows} == {"lgip", "rococo", "prsm", "eqben", "visla"}


def test_the_key_of_a_stored_run_is_unchanged(old):
    for manifest in old.runs():
        run = Run(**manifest["run"] | {"metrics": tuple(manifest["run"]["metrics"])})
        assert (run.key, run.case_key) == (manifest["key"], manifest["case_key"])


@pytest.mark.parametrize("words", EXPECTED["numbers"])
def test_the_shown_numbers_of_a_stored_run_are_unchanged(old, words):
    stored = EXPECTED["numbers"][words]
    assert (
        stored
        and differing(
            printed("show", "--averaging", "macro", *words.split(" ")),  # the default until 0.2
            stored,
            ["key", "metric", "averaging", "slice"],
        )
        == []
    )


@pytest.mark.parametrize("key", EXPECTED["failures"])
def test_the_worst_cases_are_unchanged_and_their_pictures_are_found(old, key):
    stored = EXPECTED["failures"][key]
    if stored_run(key)["probe"] in (
        "rococo",
        "visla",
    ):  # 0.3 prints the true caption and the caption that won
        stored = [
            {name: value for name, value in row.items() if name not in ("original", "edited")}
            for row in stored
        ]
    rows = printed("failures", key, "--size", "4", "--outcome", "all")
    assert stored and differing(rows, stored, ["id"]) == []
    assert [row["id"] for row in rows] == [row["id"] for row in stored]
    case_key = stored_run(key)["case_key"]
    kind = next(iter(views.runs.kinds(stored_run(key)["probe"])))
    table, total = views.cases.failures(
        views.runs.question_set(old, case_key),
        views.filter.Filter(stored_run(key)["model"], kind, outcome="all"),
        size=1000,
    )
    assert total == len(table) >= len(rows)
    for names in table["images"]:
        for name in names:
            assert pictures.open_picture(Picture.from_name(name)).size == (56, 56)


def test_saved_views_are_read_and_their_question_sets_and_models_exist(old):
    known = bookmarks.VIEWS.read(old)
    assert known == EXPECTED["bookmarks"] and len(known) == 3
    for query in map(parse_qs, known.values()):
        if "set" in query:
            table, total = views.cases.failures(
                views.runs.question_set(old, query["set"][0]),
                views.filter.Filter(
                    query["model"][0], query["kind"][0], outcome="all", sort="best"
                ),
            )
            assert total and table["margin"].is_monotonic_decreasing


def test_tags_and_notes_are_on_their_original_cases(old):
    assert len(EXPECTED["annotations"]) == 2
    for case_key, stored in EXPECTED["annotations"].items():
        notes = annotations.read(old, case_key)
        assert notes.damaged == ()
        assert [(one.case, one.id, list(one.tags), one.note) for one in notes.current] == [
            (one["case"], one["id"], one["tags"], one["note"]) for one in stored
        ]
        assert views.rows.questions(
            views.runs.question_set(old, case_key), [one.case for one in notes.current]
        )["id"].tolist() == [one["id"] for one in stored]
        model = views.runs.question_set(old, case_key).models[0]
        tagged = views.filter.Filter(model, kind="", outcome="all", tagged="größe")
        assert (
            views.cases.failures(views.runs.question_set(old, case_key), tagged)[1]
            == sum("größe" in one["tags"] for one in stored)
            == 1
        )


def test_a_new_run_reuses_stored_embeddings_and_encodes_no_picture(old, monkeypatch):
    def refuse(*_):
        raise AssertionError("a picture was encoded")

    monkeypatch.setattr(OpenClipEncoder, "encode_images", refuse)
    request = Request(
        ("demo:softmax",), "pairs:pairs.json", "eqben", seed=7, workers=1, examine=False
    )
    margins = answers(old, execute(request, old)[0])
    stored = next(
        run
        for run in old.runs()
        if (run["run"]["model"], run["run"]["probe"]) == ("demo:softmax", "eqben")
    )
    # Texts are encoded again; another processor can round them differently.
    assert margins == pytest.approx(answers(old, stored), abs=1e-6) and len(margins) == 5


def test_the_stored_examination_of_a_model_is_read(old):
    examination = examine.load(old)[0]
    assert dict(examination.passport)["name"] == "demo:softmax"
    outcomes = {check.name: check.passed for check in examination.checks}
    assert outcomes["finite"] and outcomes["text_batch"] and len(outcomes) == 8


def test_verify_finds_no_damage_in_the_old_cache(old):
    assert verify.damages(old) == []


def stopped_request() -> Request:
    """Return the request of the stopped run, without the cluster address that requests had in version 0.2."""
    fields = {name: value for name, value in STOPPED["request"].items() if name != "ray_address"}
    return Request(**fields | {"models": tuple(fields["models"])})


def test_stored_jobs_have_their_original_state(old):
    done = jobs.read(old, JOBS["done"])
    assert (done.state, list(done.keys)) == ("done", JOBS["keys"])
    assert old.run(done.keys[0]).complete
    not_begun = jobs.read(old, JOBS["not_begun"])
    assert not_begun.ended and "never started" in not_begun.error
    assert not_begun.request == stopped_request()
    assert [job.id for job in jobs.jobs(old)] == [JOBS["not_begun"], JOBS["done"]]


def test_a_stopped_run_resumes_without_scoring_its_finished_parts_again(old, monkeypatch):
    run = Run(**STOPPED["run"] | {"metrics": tuple(STOPPED["run"]["metrics"])})
    assert run.key == STOPPED["key"] and sorted(old.run(run.key).parts()) == STOPPED["parts"]
    # Use the stored versions instead of the current ones, because this tests how parts are stored and found.
    prepare = runs_run.prepare
    monkeypatch.setattr(runs_run, "prepare", lambda *given: prepare(*given)._replace(run=run))
    monkeypatch.setattr(runs_answers, "PART_CASES", STOPPED["part_cases"])
    scored = Scorers(run.probe, monkeypatch)
    manifest = execute(stopped_request(), old)[0]
    finished = len(STOPPED["parts"]) * STOPPED["part_cases"]
    assert scored.cases == list(range(finished, STOPPED["n_cases"])) != []
    uninterrupted = {row["id"]: row["margin"] for row in STOPPED["answers"]}
    assert answers(old, manifest) == pytest.approx(uninterrupted, abs=1e-9)
    shown = {
        row["metric"]: row["value"] for row in printed("show", run.key) if row["key"] == run.key
    }
    current = {metric.name: metric.version for metric in registry.load_probe(run.probe).metrics}
    for row in STOPPED["whole"]:
        if f"{row['metric']}@{current.get(row['metric'])}" in run.metrics:
            assert are_same(shown[row["metric"]], row["value"]), row["metric"]


def test_a_job_that_never_started_runs_with_the_current_versions_and_changes_no_old_run(
    old, monkeypatch
):
    monkeypatch.setattr(runs_answers, "PART_CASES", STOPPED["part_cases"])
    before = {path: content for path, content in entries(old).items() if STOPPED["key"] not in path}
    scored = Scorers(STOPPED["run"]["probe"], monkeypatch)
    assert jobs.work(old.address, JOBS["not_begun"]) == 0
    job = jobs.read(old, JOBS["not_begun"])
    assert job.state == "done" and len(job.keys) == 1
    if job.keys[0] == STOPPED["key"]:
        assert (
            len(scored.cases) == STOPPED["n_cases"] - len(STOPPED["parts"]) * STOPPED["part_cases"]
        )
    else:  # a version has risen since: all cases are scored again, and the finished parts of the old run are unchanged
        assert scored.cases == list(range(old.find(job.keys[0])["n_cases"]))
        assert sorted(old.run(STOPPED["key"]).parts()) == STOPPED["parts"]
    assert before.items() <= entries(old).items()
    assert {job.keys[0], *(row["key"] for row in EXPECTED["runs"])} == {
        row["key"] for row in printed("show")
    }


@pytest.mark.parametrize("page", ["breakdown", "failures"])
def test_a_saved_view_opens_an_old_question_set_on_a_page(old, monkeypatch, page):
    monkeypatch.setattr("vlprobe.storage.store.DEFAULT", old.root)
    query = parse_qs(EXPECTED["bookmarks"]["lgip: best first"])
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=300)
    for name, values in query.items():
        app.query_params[name] = values[0]
    app.switch_page(str(ROOT / page_file(page))).run()
    assert not app.exception, app.exception[0].message
    assert not app.error
    shown = " ".join(element.proto.body for element in app.get("html"))
    if page == "failures":
        table, _ = views.cases.failures(
            views.runs.question_set(old, query["set"][0]),
            views.filter.Filter(query["model"][0], outcome="all", sort="best"),
            size=500,
        )
        best = table.drop_duplicates("item")["id"].tolist()
        assert card_ids(app) == best[: len(card_ids(app))] != []
        assert all(card["frames"][0]["source"] for card in wall(app)["cards"])
        assert "missing or damaged" not in shown
    else:
        assert "Tiny CLIP" in shown


def test_a_run_with_the_removed_approximate_option_is_shown_but_cannot_be_repeated(
    old, monkeypatch
):
    store = Store("approximate")
    manifest = store.run(store.runs()[0]["key"]).manifest()
    options = manifest["run"]["options"]
    assert options["approximate"] == 10
    question_set = views.runs.question_set(store, manifest["case_key"])
    table = views.estimates.estimates(question_set).set_index("metric")
    assert table.loc["i2t_r1_new", "value"] == pytest.approx(
        store.run(manifest["key"]).table("scores").to_pandas()["rank"].eq(1).mean()
    )
    words = ["--cache", "approximate", "show", "--format", "json"]
    shown = CliRunner().invoke(main, words)
    assert shown.exit_code == 0 and "10 candidates looked up" in shown.stderr + shown.stdout
    monkeypatch.setattr("vlprobe.storage.store.DEFAULT", store.root)
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=300)
    at.query_params["set"] = manifest["case_key"]
    at.query_params["outcome"] = "all"
    at.switch_page(str(ROOT / page_file("failures"))).run()
    assert not at.exception and not at.error and card_ids(at)
    with pytest.raises(InvalidInput, match=r"'approximate' was removed\. .*exactly"):
        execute(Request(("control:random",), "csv:captions.csv", "rococo", options), store)
    ran = CliRunner().invoke(
        main,
        "run --probe rococo --probe prsm --model control:random --dataset csv:captions.csv --option approximate=10",
    )
    assert ran.exit_code == 1 and ran.stderr.strip().splitlines()[-1].startswith(
        "Error: Option 'approximate' was"
    )
