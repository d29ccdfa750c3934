"""Every page, without a browser: it shows the numbers of the views, and data are never interpreted as Markdown."""

import html
import re
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from tests.conftest import case_key_of, make_tiny, question_set_of, tiers
from tests.dashboard.walls import card_ids, component_values, figure_of, wall
from vlprobe import registry, views
from vlprobe.dashboard.navigation import page_file
from vlprobe.dashboard.widgets import BETWEEN
from vlprobe.render import numbers
from vlprobe.render.words import model_name, presentations
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.store import Store

ROOT = Path(__file__).resolve().parents[2]
PROBES = {
    "retrieval": "rococo",
    "pairs": "eqben",
    "triplets": "visla",
    "rankings": "prsm",
    "series": "series",
}
PAGES = ["home", "run", "failures", "compare", "breakdown", *PROBES]
RANDOM, CONSTANT = "control:random", "control:constant"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Store:
    folder = tmp_path_factory.mktemp("pages")
    store = Store(folder / "cache")
    execute(Request((RANDOM, CONSTANT), make_tiny(folder / "tiny"), "lgip"), store)
    return store


def open_page(
    monkeypatch: pytest.MonkeyPatch, store: Store, name: str = "home", **query: str
) -> AppTest:
    """Open a page on a store, with these parameters in the URL."""
    monkeypatch.setattr("vlprobe.storage.store.DEFAULT", store.root)
    monkeypatch.chdir(ROOT)
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=300)
    for key, value in query.items():
        at.query_params[key] = value
    at.switch_page(page_file(name)).run()
    assert not at.exception, at.exception[0].message
    return at


def open_form(monkeypatch: pytest.MonkeyPatch, store: Store) -> AppTest:
    """Open the Run page with all options unfolded."""
    folds = ["machine", *(f"how_{name}" for name in registry.names("probes"))]
    return open_page(monkeypatch, store, "run", open=BETWEEN.join(folds))


def bodies(at: AppTest) -> str:
    """Return the page's HTML, without its style."""
    return " ".join(
        element.proto.body for element in at.get("html") if "<style>" not in element.proto.body
    )


def words(at: AppTest) -> str:
    """Return the text of the page's HTML."""
    return html.unescape(re.sub(r"<[^>]+>", "", bodies(at)))


@pytest.mark.parametrize("page", PAGES)
def test_a_page_opens_on_an_empty_store(show_page, store: Store, page: str):
    at = show_page(store, page)
    assert not at.exception
    assert not at.error
    if page == "home":
        assert [button.label for button in at.button] == ["Run the demo"]
    elif page == "run":
        assert "No earlier run was started from this page" in words(at)
    elif page in PROBES:
        assert [button.label for button in at.button] == ["Run it on the demo data"]
        assert at.code[0].value.endswith(f"--probe {PROBES[page]}")
    else:
        assert at.info[0].value == "No results yet. Run a test first."


@pytest.mark.parametrize("page", PAGES)
def test_a_page_opens_on_results(show_page, filled: Store, page: str):
    at = show_page(filled, page)
    assert not at.exception
    assert not at.error
    if page == "failures":
        assert "wrong captions preferred" in wall(at)["heading"]
    elif page == "run":
        assert at.title[0].value == "Run a test"
    elif page == "breakdown":
        assert at.title[0].value == "Where does the number for Always the same come from?"
    elif page in PROBES:
        assert at.title[0].value == presentations()[PROBES[page]].name
    elif page == "home":
        assert component_values(at, "home")
    elif page == "compare":
        assert bodies(at).count("<h1>") == 1
    else:
        assert at.title[0].value == page.capitalize()


@pytest.mark.parametrize("page", tiers(PAGES, ("home", "compare")))
def test_a_link_to_a_page_on_a_fresh_server_gets_the_frame(monkeypatch, filled: Store, page: str):
    monkeypatch.setattr("vlprobe.storage.store.DEFAULT", filled.root)
    at = AppTest.from_file(str(ROOT / page_file(page)), default_timeout=300)
    monkeypatch.setattr("vlprobe.dashboard.frame.main", lambda: entered.append(page))
    entered: list[str] = []
    at.run()
    assert not at.exception
    assert entered == [page]
    assert not at.title


def test_the_overview_opens_at_its_former_path_with_a_link_s_parameters(monkeypatch, filled: Store):
    monkeypatch.setattr("vlprobe.storage.store.DEFAULT", filled.root)
    monkeypatch.chdir(ROOT)
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=300)
    pages: list[str] = []
    navigation = st.navigation
    monkeypatch.setattr(
        st,
        "navigation",
        lambda every, **how: pages.extend(p.url_path for p in every) or navigation(every, **how),
    )
    at._page_hash = calc_hash("overview")  # Streamlit's name for the page at /overview
    at.query_params["average"] = "micro"
    at.run()
    assert not at.exception
    assert {"", "overview", "tradeoff"} <= set(pages)
    assert figure_of(at, "tradeoff")
    assert at.query_params["average"] in ("micro", ["micro"])
    assert "The numbers" in [expander.label for expander in at.expander]


@pytest.mark.parametrize(("average", "unit"), [("macro", "cosine"), ("micro", "spread")])
@pytest.mark.parametrize(("page", "fold"), [("breakdown", ""), ("tradeoff", "numbers")])
def test_the_numbers_are_those_of_the_views(
    show_page, filled: Store, average: str, unit: str, page: str, fold: str
):
    at = show_page(filled, page, average=average, unit=unit, open=fold)
    text = words(at)
    for row in views.estimates.estimates(
        question_set_of(filled), "all", average, unit
    ).itertuples():
        shown_unit = numbers.unit_of(views.runs.metrics("lgip")[row.metric], unit)
        assert (
            numbers.number(row.value, shown_unit)
            + numbers.interval(row.low, row.high, shown_unit)
            + f"n = {row.n_items}"
            in text
        )


def test_notes_of_untrained_models_are_shown(show_page, filled: Store):
    for at in (show_page(filled, "breakdown"), show_page(filled, "tradeoff", open="details")):
        assert "random embeddings" in at.info[0].value


def test_a_changed_picker_is_written_to_the_url_and_shows_the_first_page(show_page, filled: Store):
    at = show_page(filled, "failures", kind="combined", outcome="all", page="2")
    at.selectbox(key="kind").set_value("paraphrase").run()
    assert at.query_params["kind"] == "paraphrase"
    assert "page" not in at.query_params
    at.selectbox(key="kind").set_value("flip").run()
    assert at.query_params["kind"] == "flip"


def test_a_link_reopens_exactly_that_view(show_page, filled: Store, monkeypatch):
    monkeypatch.setattr("vlprobe.dashboard.explore.PAGE_SIZE", 12)
    query = {
        "model": RANDOM,
        "kind": "combined",
        "type": "color",
        "outcome": "all",
        "sort": "best",
        "page": "2",
        "cards": "every",
    }
    at = show_page(filled, "failures", **query)
    chosen = views.filter.Filter(RANDOM, "combined", "color", outcome="all", sort="best")
    expected, total = views.cases.failures(question_set_of(filled), chosen, 2, 12)
    assert total > 12
    assert card_ids(at) == expected["id"].tolist()
    for card, texts in zip(wall(at)["cards"], expected["texts"], strict=True):
        assert card["name"].endswith(texts[0])


def test_invalid_url_parameters_fall_back_to_stored_results(show_page, filled: Store):
    at = show_page(
        filled, "failures", page="-3", outcome="x", sort="y", case="z", tag="q", cards="w"
    )
    assert not at.error
    assert at.selectbox(key="model").value == CONSTANT  # the first by name
    assert card_ids(at)


def test_a_link_to_missing_results_shows_only_a_warning(show_page, filled: Store):
    at = show_page(filled, "failures", set="../..", model="no*pe", kind="<b>", sort="up")
    warning = at.warning[0].value
    assert warning == (
        "This link refers to results that are not on this computer: question set “../..”, "
        r"model “no\*pe”, kind “\<b\>”."
    )
    assert not card_ids(at) and [box.key for box in at.selectbox] == ["lookup_field"]
    at.button(key="show_what_is_here").click().run()
    assert not at.warning and card_ids(at)
    assert at.query_params["model"] == CONSTANT
    assert len(show_page(filled, "failures", model="x" * 5000).warning[0].value) < 300


def test_after_a_choice_unknown_results_in_the_address_are_dropped(show_page, filled: Store):
    at = show_page(filled, "failures")
    at.session_state["picked"] = True
    at.query_params["set"] = "gone"
    at.run()
    assert not at.exception and card_ids(at)
    assert at.query_params["set"] != "gone"


def test_a_link_to_stored_results_and_a_changed_picker_show_no_warning(show_page, filled: Store):
    key = case_key_of(filled)
    at = show_page(
        filled, "failures", set=key, model=RANDOM, kind="flip", type="color", other=CONSTANT
    )
    assert not at.warning
    at.selectbox(key="kind").set_value("paraphrase").run()  # which has no such type
    assert at.selectbox(key="kind").value == "paraphrase"
    assert not at.warning
    at.selectbox(key="model").set_value(CONSTANT).run()  # a model is not compared with itself
    assert not at.warning
    at.selectbox(key="sort").set_value("best").run()
    assert not at.warning


def test_the_outcome_counts_match_those_of_the_view(show_page, filled: Store):
    at = show_page(filled, "failures", model=RANDOM)
    counts = views.cases.outcomes(question_set_of(filled), views.filter.Filter(RANDOM))
    options = at.get_by_key("outcome").options if hasattr(at, "get_by_key") else []
    labels = {"held": "Not fooled", "tied": "of them tied"}
    assert [
        f"{labels.get(name, name.capitalize())} {count:,}" for name, count in counts.items()
    ] == list(options)
    assert f"{counts['fooled']:,} wrong captions preferred" in wall(at)["heading"]
    assert f"% of {counts['all']:,}" in wall(at)["note"]


def test_details_open_from_the_url_and_name_the_command(show_page, filled: Store):
    first = views.cases.failures(question_set_of(filled), views.filter.Filter(RANDOM))[0].iloc[1]
    at = show_page(filled, "failures", model=RANDOM, case=first["id"])
    assert first["rule"] in words(at)
    commands = [code.value for code in at.code if code.value.startswith("vlprobe failures")]
    assert len(commands) == 1
    run = views.runs.runs(filled).query("model == @RANDOM")["key"].iloc[0]
    assert run[:8] in commands[0]


def test_a_search_without_results_explains_why_and_offers_to_drop_it(show_page, filled: Store):
    at = show_page(filled, "failures", words="zebra crossing in space")
    assert "No questions match these filters." in words(at)
    total = views.cases.outcomes(
        question_set_of(filled),
        views.filter.Filter(CONSTANT),
    )["fooled"]
    button = at.button(key="drop_nearest")
    assert (
        button.label
        == f"Without the filter caption contains “zebra crossing in space”: {total:,} cases"
    )
    button.click().run()
    assert "words" not in at.query_params and card_ids(at)
    at = show_page(filled, "failures", words="*a* $b$")
    assert r"“\*a\* \$b\$”" in at.button(key="drop_nearest").label
    assert "a minus excludes no word" not in words(at)
    at = show_page(filled, "failures", words="dog -frisbee")
    assert "Each word of the search must occur in a caption" in words(at)
    assert "a minus excludes no word" in words(at)


def test_a_missing_picture_is_a_line_and_not_an_error(show_page, tmp_path: Path):
    store = Store(tmp_path / "cache")
    execute(Request((CONSTANT,), make_tiny(tmp_path / "gone"), "lgip", limit=1), store)
    for path in (tmp_path / "gone").glob("*.png"):
        path.unlink()
    at = show_page(store, "failures")
    assert not at.error
    (frame,) = wall(at)["cards"][0]["frames"]
    assert (frame["source"], frame["name"]) == ("", "0.png")
    assert wall(at)["cards"][0]["name"].endswith(frame["text"])
    assert re.search(r"0 of \d+ cases have a picture on this machine", wall(at)["note"])
    at = show_page(store, "failures", case=card_ids(at)[0])
    assert "0.png is missing or damaged" in words(at)


BREAKDOWNS = [
    (by, averaging)
    for by in ("subtype", "rule", "strength_bin", "tag:thing")
    for averaging in ("macro", "micro")
]


@pytest.mark.parametrize(("by", "averaging"), tiers(BREAKDOWNS, BREAKDOWNS[::3]))
def test_the_breakdown_shows_the_numbers_of_the_views(
    show_page, filled: Store, by: str, averaging: str
):
    at = show_page(filled, "breakdown", metric="positive_rate", by=by, average=averaging)
    table = views.estimates.estimates(question_set_of(filled), by, averaging).query(
        "metric == 'positive_rate'"
    )
    assert len(table)
    text = words(at)
    for row in table.itertuples():
        cells = numbers.number(row.value, "rate") + (
            numbers.interval(row.low, row.high, "rate")
            or ("- (fewer than 5 pictures)" if row.n_items else "-")
        )
        assert model_name(row.model) + cells + f"{row.n_items}{row.n_cases}{row.ties}" in text


def test_a_slice_that_a_model_lacks_is_a_dash_with_n_0():
    at = AppTest.from_function(_one_slice_missing, default_timeout=300).run()
    assert not at.exception
    assert "b--000" in words(at)


def _one_slice_missing():
    import dataclasses
    from types import SimpleNamespace

    import pandas as pd

    from vlprobe import views
    from vlprobe.dashboard import tables
    from vlprobe.render import charts
    from vlprobe.views.records import EstimateRow

    subject = SimpleNamespace(models=["a", "b"], looks=charts.styles.styles(["a", "b"]))
    table = pd.DataFrame(
        [("a", "k", "positive_rate", "macro", "color", 0.5, 0.4, 0.6, 3, 9, 0)],
        columns=[field.name for field in dataclasses.fields(EstimateRow)],
    )
    metric = views.runs.metrics("lgip")["positive_rate"]
    tables.slices(subject, table, metric, "cosine", {"color": "Colour"}, lambda *_: "")


def test_dropped_cases_are_counted_next_to_the_numbers(show_page, filled: Store):
    at = show_page(filled, "breakdown")
    dropped = views.runs.facts(question_set_of(filled))["dropped"]
    assert dropped
    text = words(at)
    for reason, count in dropped.items():
        assert f"{reason}{count:,}" in text
