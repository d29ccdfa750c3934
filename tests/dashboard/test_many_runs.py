"""Pages over sixty question sets with three models each: one click opens any of them, the newest is first."""

import functools
import inspect
import shutil
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import get_overloads

import pyarrow as pa
import pytest
from streamlit.navigation.page import StreamlitPage

from tests.conftest import make_tiny, tiers
from tests.dashboard.test_pages import open_page, words
from tests.dashboard.walls import card_ids, figure_of, marks_of
from vlprobe import views
from vlprobe.dashboard import navigation, state
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage import display_names, entry, shipped
from vlprobe.storage.store import Store
from vlprobe.views.leaderboard import LeaderboardColumn

N_SETS, N_TABLES = 60, 12
NEWEST = {"cases": f"{N_SETS - 1:016x}", "runs": f"{N_SETS - 1:08x}{0:08x}"}
MODELS = ("control:random", "first", "second")


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return sixty LGIP question sets on twelve tables with five seeds, each run a minute after the previous one."""
    folder = tmp_path_factory.mktemp("many")
    small, store = Store(folder / "small"), Store(folder / "cache")
    request = Request(MODELS[:1], make_tiny(folder / "tiny"), "lgip", examine=False)
    manifest = execute(request, small)[0]
    answers = small.run(manifest["key"])
    tables = {name: answers.table(name) for name in ("scores", "estimates", "sums")}
    for number in range(N_SETS):
        case_key = f"{number:016x}"
        shutil.copytree(small.cases(manifest["case_key"]).folder, store.cases(case_key).folder)
        changed = {"dataset": f"csv:/d/{number % N_TABLES}.csv", "seed": 42 + number // N_TABLES}
        for place, model in enumerate(MODELS):
            key = f"{number:08x}{place:08x}"
            facts = {name: manifest[name] for name in set(manifest) - {"files", "sha256", "schema"}}
            facts |= {"key": key, "case_key": case_key, "finished": f"2026-11-23T10:{number:02}:00"}
            facts["run"] = manifest["run"] | changed | {"model": model, "model_digest": model}
            store.run(key).finish({name: _of(table, key) for name, table in tables.items()}, facts)
    return store


def _of(table: pa.Table, key: str) -> pa.Table:
    place, field = table.schema.get_field_index("run"), table.schema.field("run")
    return table.set_column(place, field, pa.array([key] * len(table), field.type))


@pytest.fixture
def show_page(monkeypatch: pytest.MonkeyPatch, many: Store):
    return functools.partial(open_page, monkeypatch, many)


def seconds_and_seed(number: int) -> tuple[str, int]:
    """Return the expected parts of the label of a question set."""
    return f"{number % N_TABLES}.csv", 42 + number // N_TABLES


def test_explore_lists_question_sets_newest_first_with_their_differences(show_page):
    at = show_page("explore")
    picker = at.selectbox(key="set")
    assert len(set(picker.options)) == N_SETS
    for number, label in zip(reversed(range(N_SETS)), picker.options, strict=True):
        table, seed = seconds_and_seed(number)
        assert f"({table})" in label
        assert seed == 42 or f"seed {seed}" in label
    oldest = f"{0:016x}"
    picker.set_value(oldest).run()
    assert not at.exception and not at.warning
    assert at.query_params["set"] == oldest
    assert card_ids(at)


def test_another_table_on_explore_opens_its_newest_questions(show_page):
    at = show_page("explore")
    picker = at.selectbox(key="dataset")
    assert len(picker.options) == N_TABLES
    picker.set_value(f"{N_SETS - N_TABLES:016x}").run()
    assert at.query_params["set"] == f"{N_SETS - N_TABLES:016x}"


def test_the_trade_off_page_offers_every_question_set(show_page):
    at = show_page("tradeoff")
    picker = at.selectbox(key="set")
    assert len(set(picker.options)) == N_SETS
    assert "11.csv" in picker.options[0] and "seed 46" in picker.options[0]
    picker.set_value(f"{7:016x}").run()
    assert not at.exception
    assert {model for (model,) in marks_of(figure_of(at, "tradeoff"))} <= set(MODELS)


def test_run_offers_many_tables_as_one_searchable_list(show_page):
    at = show_page("run")
    picker = at.selectbox(key="run_dataset")
    tables = [label for label in picker.options if ".csv" in label]
    assert len(set(tables)) == N_TABLES
    assert "(11.csv)" in tables[0] and tables[0].endswith("csv:/d/11.csv")
    picker.set_value("csv:/d/3.csv").run()
    assert not at.exception
    assert at.selectbox(key="run_dataset").value == "csv:/d/3.csv"
    assert "Table (3.csv)" in words(at)


def test_home_parses_each_manifest_once_however_many_runs_there_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, many: Store
):
    store = Store(shutil.copytree(many.root, tmp_path / "cache"))
    n_runs = len(views.runs.run_rows(store))
    assert n_runs == N_SETS * len(MODELS)
    parsed = []
    parse = entry.parse_manifest
    monkeypatch.setattr(
        entry, "parse_manifest", lambda content: parsed.append(content) or parse(content)
    )
    at = open_page(monkeypatch, store, "home")
    assert not at.exception
    of_runs = [content for content in parsed if b'"spread"' in content]
    assert len(of_runs) < 1.2 * n_runs  # plus those of single entries, whose tables are opened


@pytest.mark.parametrize("page", tiers(["breakdown", "compare"], ["compare"]))
def test_a_page_lists_the_runs_only_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, many: Store, page: str
):
    store = Store(shutil.copytree(many.root, tmp_path / "cache"))
    listed = []
    read = Store._read_runs
    monkeypatch.setattr(Store, "_read_runs", lambda self: listed.append(self.root) or read(self))
    open_page(monkeypatch, store, page)
    assert listed.count(store.root) == 1


def test_an_answer_is_not_cached_if_a_run_ends_while_it_is_computed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, many: Store
):
    store = Store(tmp_path / "cache")
    for name in ("cases", "runs"):
        shutil.copytree(many.root / name / NEWEST[name], store.root / name / NEWEST[name])
    monkeypatch.setattr("vlprobe.storage.store.DEFAULT", store.root)
    versions = iter([store.version(), "of a run that ended after this one was looked up"])
    current = state.store()
    monkeypatch.setattr(current, "version", lambda: next(versions, "still another"))
    answered = []

    def n_runs(store: Store) -> int:
        answered.append(len(store.runs()))
        return answered[-1]

    with state.fix_store_version():
        assert state.view(n_runs) == state.view(n_runs)
    assert len(answered) == 2


def test_a_cached_view_depends_on_keyword_arguments_and_keeps_its_type(show_page):
    def double(store: Store, number: int, *, plus: int = 0) -> int:
        return 2 * number + plus

    assert (state.view(double, 4), state.view(double, 4, plus=1)) == (8, 9)
    seen_by_callers = [str(inspect.signature(each)) for each in get_overloads(state.view)]
    assert seen_by_callers and "Any" not in "".join(seen_by_callers)


def test_a_cached_answer_holds_no_snapshot_of_the_store(many, monkeypatch):
    monkeypatch.setattr(state, "store", lambda: many)

    def ask(store: Store) -> list:
        question_set = views.runs.question_set(store, views.runs.case_keys(store)[0])
        assert question_set.store is not many
        column = LeaderboardColumn(question_set, next(iter(question_set.metrics.values())), {})
        return [question_set, (question_set, column)]

    first, (second, column) = state.view(ask)
    assert {first.store, second.store, column.question_set.store} == {many}


@pytest.mark.parametrize("page", tiers(["home", "explore", "compare", "tradeoff"], ["home"]))
def test_a_page_reads_the_display_names_and_the_bundled_folders_at_most_a_few_times(
    show_page, monkeypatch, page
):
    show_page(page)
    n_calls: Counter[str] = Counter()

    def counted(module: ModuleType, name: str) -> None:
        original = getattr(module, name)

        def count(*arguments: object) -> object:
            n_calls[name] += 1
            return original(*arguments)

        monkeypatch.setattr(module, name, count)

    counted(shipped, "folders")
    counted(display_names, "read")
    show_page(page)
    assert n_calls["read"] <= 2  # the page, and the caption of a figure to export
    assert n_calls["folders"] <= 3  # all from the frame; each model name once took one more


def test_visitors_do_not_share_streamlit_s_page_objects(show_page, monkeypatch):
    given: list[list[StreamlitPage]] = []
    original = navigation.st.navigation

    def noted(pages: list[StreamlitPage], **options: str) -> StreamlitPage:
        given.append(pages)
        return original(pages, **options)

    monkeypatch.setattr(navigation.st, "navigation", noted)
    show_page("explore")
    show_page("explore")
    first, second = given[0], given[-1]
    assert [page.url_path for page in first] == [page.url_path for page in second]
    assert not {id(page) for page in first} & {id(page) for page in second}
