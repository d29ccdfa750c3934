"""Runs of an older version remain visible and marked, and no view compares them with runs of another version."""

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

from tests.conftest import case_key_of, make_tiny, question_set_of
from tests.dashboard.test_pages import open_page
from vlprobe import views
from vlprobe.cli.main import main
from vlprobe.errors import NotFound
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.store import Store
from vlprobe.surfaces.report import report

TODAY = ("control:random", "control:constant")
VETERANS = ("veteran", "elder")  # run with an older version of the metrics


def older_copy(store: Store, manifest: dict, key: str, model: str, finished: str) -> None:
    """Copy a run as if it had the metrics before the last change of the first one."""
    tables = {
        name: own.drop("run").append_column("run", pa.array([key] * len(own)))
        for name, own in (
            (name, store.run(manifest["key"]).table(name))
            for name in ("scores", "estimates", "sums")
        )
    }
    moved, *others = manifest["run"]["metrics"]
    run = manifest["run"] | {"model": model, "metrics": [f"{moved.partition('@')[0]}@0", *others]}
    facts = {
        name: value for name, value in manifest.items() if name not in ("schema", "files", "sha256")
    }
    store.run(key).finish(tables, facts | {"key": key, "run": run, "finished": finished})


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return LGIP and RoCOCO runs: both current controls; older ones of two other models and the first control."""
    folder = tmp_path_factory.mktemp("versions")
    store = Store(folder / "cache")
    options = {
        "lgip": {},
        "rococo": {"policies": [], "pictures": ["mix:0.9"], "picture_seeds": [1]},
    }
    for place, (probe, chosen) in enumerate(options.items()):
        request = Request(TODAY, make_tiny(folder / "tiny"), probe, chosen, examine=False)
        manifest = execute(request, store)[0]
        for number, model in enumerate((*VETERANS, TODAY[0])):
            # a later finish does not make its version newer
            finished = "2026-01-01" if number else "2099-01-01"
            older_copy(store, manifest, f"{place}{number}" * 8, model, finished)
    return store


@pytest.fixture
def only_older(mixed: Store, tmp_path: Path) -> Store:
    """Return only the veterans' answers to LGIP."""
    store, key = Store(tmp_path / "cache"), case_key_of(mixed, "lgip")
    shutil.copytree(mixed.root / "cases" / key, store.root / "cases" / key)
    for run in ("00" * 8, "01" * 8):
        shutil.copytree(mixed.root / "runs" / run, store.root / "runs" / run)
    return store


def test_every_run_is_listed_and_older_ones_are_marked(mixed: Store):
    table = views.runs.runs(mixed)
    assert len(table) == 10
    assert table.loc[table["older"] == "", "model"].value_counts().to_dict() == dict.fromkeys(
        TODAY, 2
    )
    moved = views.runs.runs(mixed).set_index("key").loc["00" * 8, "older"]
    assert moved == "older version: invariance_error@0"


def test_no_table_of_a_question_set_has_runs_of_two_versions(mixed: Store):
    for row in views.runs.question_sets(mixed).itertuples():
        key = row.case_key
        assert set(row.models) == set(TODAY)
        assert views.runs.OLDER not in row.label
        assert set(views.runs.question_set(mixed, key).models) == set(TODAY)
        assert set(views.estimates.estimates(views.runs.question_set(mixed, key))["model"]) == set(
            TODAY
        )
        assert set(views.rows.answers(views.runs.question_set(mixed, key), [0])["model"]) == set(
            TODAY
        )
        remade = views.papers.remade(
            views.runs.question_set(mixed, key), views.published.TABLES[row.probe][0].number
        )
        assert set(remade.loc[remade["source"] == "run", "model"]) == set(TODAY)
        shown = {run.key for run in views.runs.question_set(mixed, key).runs}
        assert not shown & {f"{place}{number}" * 8 for place in range(2) for number in range(3)}


def test_a_model_of_an_older_version_is_compared_with_no_other(mixed: Store):
    key = case_key_of(mixed, "lgip")
    for call in (
        views.paired_tests.compare_metrics,
        lambda questions, models: views.paired_outcomes.scatter(questions, *models, "flip"),
    ):
        with pytest.raises(NotFound, match="veteran"):
            call(views.runs.question_set(mixed, key), (TODAY[0], "veteran"))
    with pytest.raises(NotFound, match="veteran"):
        views.paired_tests.compare_models(
            views.runs.question_set(mixed, key), (TODAY[0], "veteran"), "flip"
        )
    assert views.repair.repair_sets(mixed, (TODAY[0], "veteran")) == {}
    assert views.repair.repair_sets(mixed, TODAY).keys() == {"lgip", "rococo"}
    paired = views.filter.Filter("veteran", outcome="all", other=TODAY[1], other_outcome="held")
    with pytest.raises(NotFound, match="control:constant"):
        views.cases.failures(views.runs.question_set(mixed, key, model="veteran"), paired)


def test_a_curve_of_severity_has_one_version(mixed: Store):
    table = views.figures.severity(question_set_of(mixed, "rococo"), "t2i_r1")
    assert set(table["model"]) <= set(TODAY)
    assert len(table) == len(table.drop_duplicates(["model", "slice"])) > 0


def test_a_run_of_an_older_version_can_still_be_shown(mixed: Store):
    key = case_key_of(mixed, "lgip")
    table = views.estimates.estimates(views.runs.question_set(mixed, key, version_of="00" * 8))
    assert set(table["model"]) == {*VETERANS, TODAY[0]}
    assert set(table["key"]) == {"00" * 8, "01" * 8, "02" * 8}
    cases, total = views.cases.failures(
        views.runs.question_set(mixed, key, model="veteran"),
        views.filter.Filter("veteran", outcome="all"),
    )
    assert total > 0 and len(cases)
    for run, others in (
        ("00" * 8, TODAY[1:]),
        (views.runs.question_set(mixed, key).runs[0].key, VETERANS),
    ):
        result = CliRunner().invoke(main, ["--cache", str(mixed.root), "show", run])
        assert result.exit_code == 0
        assert not any(name in result.stdout for name in others)
        assert ("veteran was run with an older version: invariance_error@0" in result.stderr) == (
            run == "00" * 8
        )


def test_show_marks_older_runs(mixed: Store):
    result = CliRunner().invoke(main, ["--cache", str(mixed.root), "show"])
    assert result.stdout.count("older version: ") == 6


def test_a_report_and_a_page_name_the_older_runs_that_they_omit(mixed: Store, monkeypatch):
    key = case_key_of(mixed, "lgip")
    text = report.report(views.runs.question_set(mixed, key))
    assert (
        f"Run {'00' * 8} of veteran is not listed with these runs (older version: invariance_error@0)"
        in text
    )
    assert text.count("veteran") == 1
    page = open_page(monkeypatch, mixed, "breakdown", set=key)
    assert any(
        "not listed with these runs" in one.value and "veteran" in one.value for one in page.warning
    )


def test_older_runs_are_shown_and_marked_if_no_newer_run_exists(only_older: Store):
    (row,) = views.runs.question_sets(only_older).itertuples()
    assert set(row.models) == set(VETERANS)
    assert row.label.endswith(" · older version")
    assert set(
        views.estimates.estimates(views.runs.question_set(only_older, row.case_key))["model"]
    ) == set(VETERANS)
    assert len(
        views.paired_tests.compare_metrics(
            views.runs.question_set(only_older, row.case_key), VETERANS
        )
    )
    notes = views.runs.version_notes(views.runs.question_set(only_older, row.case_key))
    assert len(notes) == 2 and all("was run with an older version" in note for note in notes)
