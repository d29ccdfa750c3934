"""Every page, command and function defaults to the most complete comparison, not to the newest run."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import vlprobe
from tests.conftest import make_tiny, store_again, tiers
from tests.dashboard.test_pages import open_page
from vlprobe import views
from vlprobe.cli.main import main
from vlprobe.dashboard.present import ABOUT
from vlprobe.errors import InvalidInput
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage import shipped
from vlprobe.storage.shipped import StoreAboveShipped
from vlprobe.storage.store import Store
from vlprobe.surfaces.report import report
from vlprobe.surfaces.site import bundle
from vlprobe.surfaces.site.subject import Limits

CONTROL = "control:random"


def ask(store: Store, dataset: str, limit: int, *models: str, examine: bool = False) -> str:
    """Run a control on the first pictures, store its answers also under these names, and return the
    key of the question set.
    """
    (manifest,) = execute(Request((CONTROL,), dataset, "lgip", limit=limit, examine=examine), store)
    for number, model in enumerate(models):
        digest = manifest["run"]["model_digest"] if examine else model
        key = f"{limit:02d}{number:014d}"
        store_again(store, manifest, key, model=model, model_digest=digest)
    return manifest["case_key"]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, list[str]]:
    """Return a set of six pictures with two models; then newer ones: three pictures with one model, five with
    two models that failed their checks, two with only a control. The keys have this order.
    """
    folder = tmp_path_factory.mktemp("default")
    store, tiny = Store(folder / "cache"), make_tiny(folder / "tiny")
    keys = [
        ask(store, tiny, 6, "first", "second"),
        ask(store, tiny, 3, "first"),
        ask(store, tiny, 5, "guess", "other guess", examine=True),
        ask(store, tiny, 2),
    ]
    for path in (store.root / "models").glob("*.json"):  # too few pictures for a real check to fail
        examination = json.loads(path.read_text())
        examination["checks"][0]["passed"] = False
        path.write_text(json.dumps(examination))
    return store, keys


def test_the_most_complete_comparison_is_first_without_counting_controls_and_failed_models(filled):
    store, (complete, smaller, failed, control_only) = filled
    finished = {row.case_key: row.finished for row in views.runs.run_rows(store)}
    assert finished[control_only] == max(finished.values())  # the newest, and listed last
    listed = views.runs.question_sets(store)["case_key"].tolist()
    assert listed == [complete, smaller, failed, control_only]


@pytest.mark.parametrize(
    "page",
    tiers(["home", "explore", "compare", "tradeoff", "present", "breakdown"], ("home", "compare")),
)
def test_every_page_opens_on_the_most_complete_set(
    filled, monkeypatch: pytest.MonkeyPatch, page: str
):
    store, (complete, *_) = filled
    at = open_page(monkeypatch, store, page)
    assert not at.exception
    linked = at.query_params["set"] if "set" in at.query_params else at.selectbox(key="set").value
    assert linked in (complete, [complete])


@pytest.fixture(scope="module")
def with_bundled(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return two bundled models and two that the user later ran on the same questions: "own b", then "own a"."""
    folder = tmp_path_factory.mktemp("with_bundled")
    tiny = make_tiny(folder / "tiny")
    ask(Store(folder / "bundled"), tiny, 3, "first", "second")
    ask(Store(folder / "own"), tiny, 3, "own b", "own a")
    return StoreAboveShipped(folder / "own", folder / "bundled")


@pytest.mark.parametrize("page", ["explore", "compare", "breakdown"])
def test_pages_select_the_model_that_the_user_ran_last_among_bundled_ones(
    with_bundled: Store, monkeypatch: pytest.MonkeyPatch, page: str
):
    at = open_page(monkeypatch, with_bundled, page)
    assert not at.exception
    assert at.selectbox(key="model").value == "own a"


def test_without_bundled_results_the_model_with_most_cases_is_selected_and_controls_come_last(
    filled, with_bundled: Store
):
    store, _ = filled
    assert views.runs.default_model(with_bundled, ("first", "own b", CONTROL)) == "own b"
    assert views.runs.default_model(with_bundled, ("second", "first", CONTROL)) == "first"
    assert views.runs.default_model(store, (CONTROL, "second", "first")) == "first"
    assert views.runs.default_model(store, (CONTROL,)) == CONTROL


def test_a_chosen_set_stays_the_choice_on_the_next_page(filled, monkeypatch: pytest.MonkeyPatch):
    store, (_, smaller, *_) = filled
    at = open_page(monkeypatch, store, "present")
    kind = views.runs.default_kind(views.runs.question_set(store, smaller))
    at.selectbox(key=ABOUT).set_value(f"{smaller} {kind}").run()
    at.switch_page("pages/breakdown.py").run()
    assert at.query_params["set"] in (smaller, [smaller])


def test_report_site_and_python_use_the_most_complete_set(
    filled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    store, (complete, *_) = filled
    assert vlprobe.results(cache=store.root).question_set.key == complete
    monkeypatch.setattr(report, "report", lambda question_set: question_set.key)
    result = CliRunner().invoke(
        main, ["--cache", str(store.root), "report", str(tmp_path / "report.html")]
    )
    assert result.exit_code == 0, result.output
    assert (tmp_path / "report.html").read_text() == complete
    published = []

    def record(question_sets: list[views.runs.QuestionSet], limits: Limits, space: bool) -> None:
        published.extend(question_set.key for question_set in question_sets)
        raise InvalidInput("Nothing is written.")

    monkeypatch.setattr(bundle, "site", record)
    CliRunner().invoke(main, ["--cache", str(store.root), "site", str(tmp_path / "site")])
    assert published == [complete]


def test_the_user_s_results_come_before_bundled_ones_unless_they_are_of_controls_only(
    tmp_path: Path,
):
    store, tiny = Store(tmp_path / "cache"), make_tiny(tmp_path / "tiny")
    control_only = ask(store, tiny, 2)
    above = StoreAboveShipped(store.root, shipped.FOLDER)
    listed = views.runs.question_sets(above)["case_key"].tolist()
    assert listed[-1] == control_only
    compared = ask(store, tiny, 3, "first")
    listed = views.runs.question_sets(above)["case_key"].tolist()
    assert listed[0] == compared and listed[-1] == control_only
