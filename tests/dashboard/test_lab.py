"""Lab: each page begins with a finding and examples, and every mark links to its cases."""

import re
from typing import Any
from urllib.parse import parse_qs

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from tests.conftest import tiers
from tests.dashboard.test_pages import bodies
from tests.dashboard.walls import component_values, send, wall
from vlprobe import views
from vlprobe.dashboard import case_links, navigation, state
from vlprobe.render.words import movement_kinds
from vlprobe.storage import access, display_names, shipped
from vlprobe.storage.shipped import StoreAboveShipped
from vlprobe.storage.store import Store
from vlprobe.views.filter import Filter

RANDOM, CONSTANT = "control:random", "control:constant"
PAGES = {
    "breakdown": "lgip",
    "retrieval": "rococo",
    "pairs": "eqben",
    "triplets": "visla",
    "rankings": "prsm",
    "series": "series",
}


@pytest.fixture
def key(every_probe: Store) -> dict[str, str]:
    table = views.runs.question_sets(every_probe)
    return dict(zip(table["probe"].tolist(), table["case_key"].tolist(), strict=True))


def links_to_cases(at: AppTest) -> list[dict[str, list[str]]]:
    """Return the query parameters of the links to Explore."""
    protos = [link.proto for link in at.get("page_link")]
    return [parse_qs(proto.query_string) for proto in protos if proto.page == "explore"]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_begins_with_a_finding_and_examples_and_has_the_paper_s_table_in_a_fold(
    open_probe, key, page: str
):
    at = open_probe(page, set=key[PAGES[page]], model=RANDOM)
    assert not at.exception and not at.error
    assert len(at.title) == 1 and at.title[0].value
    (_, values), *_ = component_values(at, "wall")
    assert values["bare"] and 1 <= len(values["cards"]) <= 7
    folded = {expander.label for expander in at.expander}
    assert "The table" in folded or "In the format of the paper's tables" in folded


@pytest.mark.parametrize("page", tiers(navigation.BELOW, ("models", "series")))
def test_a_page_below_lab_links_back_and_has_the_name_of_its_door(open_probe, page: str):
    door = next(link for link in open_probe("lab").get("page_link") if link.proto.page == page)
    at = open_probe(page)
    back = [link.proto.page for link in at.get("page_link") if link.proto.label == "Lab"]
    (here,) = re.findall(r'aria-current="page">([^<]+)<', bodies(at))
    assert back == ["lab"] and door.proto.label == f"**{here}**"


@pytest.mark.parametrize("page", PAGES)
def test_a_row_opens_as_many_cases_as_its_label_counts(open_probe, every_probe, key, page: str):
    at = open_probe(page, set=key[PAGES[page]], model=RANDOM)
    question_set = views.runs.question_set(every_probe, key[PAGES[page]])
    links = [link.proto for link in at.get("page_link") if "**" in link.proto.label]
    addresses = links_to_cases(at)
    assert len(links) == len(addresses)
    for link, query in zip(links, addresses, strict=True):
        assert query["set"] == [question_set.key] and query["model"] == [RANDOM]
        kind = query["kind"][0]
        chosen = Filter(
            RANDOM,
            kind,
            subtype=tuple(query.get("type", [])),
            outcome="all" if kind in movement_kinds() else "fooled",
        )
        _, total = views.cases.failures(question_set, chosen)
        assert f"**{total:,}" in link.label


@pytest.mark.parametrize(
    ("page", "key_of_chart"),
    [
        ("breakdown", "dots"),
        ("retrieval", "i2t_rsms"),
        ("retrieval", "severity"),
        ("pairs", "subsets"),
        ("triplets", "triplets"),
    ],
)
def test_a_clicked_mark_opens_its_cases(
    open_probe, every_probe, key, monkeypatch, page: str, key_of_chart: str
):
    """Report a click on a mark of the figure as the browser would."""
    opened: list[dict[str, str]] = []
    monkeypatch.setattr(
        st, "switch_page", lambda file, query_params: opened.append(query_params) or None
    )
    real = st.plotly_chart

    def pressed(figure: Any, **given: Any) -> Any:
        event = real(figure, **given)
        if given.get("key") != key_of_chart:
            return event
        mark = next(trace for trace in figure.data if trace.customdata is not None)
        return {"selection": {"points": [{"customdata": list(mark.customdata[0])}]}}

    monkeypatch.setattr(st, "plotly_chart", pressed)
    at = open_probe(page, set=key[PAGES[page]], model=RANDOM)
    assert not at.exception
    (query,) = opened
    question_set = views.runs.question_set(every_probe, key[PAGES[page]])
    assert query["set"] == question_set.key and query["model"] in question_set.models
    choices = views.estimates.choices(question_set)
    of_kind = choices[(choices["kind"] == query["kind"])]
    assert query.get("type", "") in set(of_kind["subtype"])


def test_bins_of_strength_open_as_many_cases_as_the_labels_count(open_probe, every_probe, key):
    query = {"set": key["lgip"], "model": RANDOM}
    at = open_probe("breakdown", **query, metric="positive_rate", by="strength_bin")
    links = [link.proto.label for link in at.get("page_link") if "**" in link.proto.label]
    bins = [parameters["bin"][0] for parameters in links_to_cases(at)]
    assert len(links) == len(bins) == 3
    question_set = views.runs.question_set(every_probe, key["lgip"])
    for label, name in zip(links, bins, strict=True):
        counted = views.cases.outcomes(question_set, Filter.parse(RANDOM, bin=name))
        assert f"**{counted['fooled']:,} of {counted['all']:,}**" in label
        at = open_probe("explore", **query, kind="flip", bin=name)
        assert wall(at)["heading"].startswith(f"{counted['fooled']:,} ")


@pytest.mark.parametrize("by", tiers(["caption_length", "word_frequency"], ["word_frequency"]))
def test_bins_of_captions_open_as_many_cases_as_the_labels_count(open_probe, every_probe, key, by):
    query = {"set": key["lgip"], "model": RANDOM}
    at = open_probe("breakdown", **query, metric="positive_rate", by=by)
    assert not at.exception
    links = [link.proto.label for link in at.get("page_link") if "**" in link.proto.label]
    names = [parameters["caption"][0] for parameters in links_to_cases(at)]
    assert len(links) == len(names) >= 1
    question_set = views.runs.question_set(every_probe, key["lgip"])
    for label, name in zip(links, names, strict=True):
        counted = views.cases.outcomes(question_set, Filter.parse(RANDOM, caption=name))
        assert f"**{counted['fooled']:,} of {counted['all']:,}**" in label
    at = open_probe("explore", **query, kind="flip", caption=names[0])
    counted = views.cases.outcomes(question_set, Filter.parse(RANDOM, caption=names[0]))
    assert wall(at)["heading"].startswith(f"{counted['fooled']:,} ")
    assert at.button_group(key=f"facet_{by}").value == [names[0].partition("=")[2]]


def test_a_bin_of_the_lure_opens_its_triplets(open_probe, every_probe, key, monkeypatch):
    chosen = case_links.slice_filter(
        state_questions(every_probe, key["visla"], monkeypatch),
        RANDOM,
        ("t2t",),
        "lure",
        "0.25 to 0.50",
    )
    assert chosen and chosen == Filter.parse(RANDOM, "t2t", bin="lure=0.25 to 0.50")
    at = open_probe(
        "explore",
        **case_links.query(state_questions(every_probe, key["visla"], monkeypatch), chosen),
    )
    counted = views.cases.outcomes(views.runs.question_set(every_probe, key["visla"]), chosen)
    assert counted["all"] and at.selectbox(key="bin").value == "lure=0.25 to 0.50"
    assert wall(at)["heading"].startswith(f"{counted['fooled']:,} ")


def state_questions(store: Store, key: str, monkeypatch: pytest.MonkeyPatch) -> state.PageSubject:
    monkeypatch.setattr("vlprobe.storage.store.DEFAULT", store.root)
    return state.page_subject(key)


def test_a_clicked_example_opens_its_case(open_probe, key, monkeypatch):
    at = open_probe("pairs", set=key["eqben"], model=RANDOM)
    opened: list[dict[str, str]] = []
    monkeypatch.setattr(
        st, "switch_page", lambda file, query_params: opened.append(query_params) or None
    )
    case_id = wall(at)["cards"][0]["id"]
    send(at, "wall", "open", case_id)
    kind = opened[0]["kind"]
    assert opened == [{"set": key["eqben"], "model": RANDOM, "kind": kind, "case": case_id}]


@pytest.mark.full
def test_breakdown_has_no_row_of_cards_if_all_their_pictures_are_missing(
    show_page, tmp_path, monkeypatch
):
    monkeypatch.delenv(shipped.SETTING)  # photographs are bundled, too
    store = StoreAboveShipped(tmp_path / "own", shipped.PUBLISHED_FOLDER)
    keys = {row.dataset: row.case_key for row in views.runs.question_set_rows(store)}
    for dataset, n_rows in (("bundled:SugarCrepe", 1), ("bundled:VALSE", 0)):
        at = show_page(store, "breakdown", set=keys[dataset])
        assert not at.exception
        assert len(component_values(at, "wall")) == n_rows


def test_a_model_s_name_in_the_table_opens_the_cases_of_its_row(open_probe, key):
    at = open_probe(
        "breakdown", set=key["lgip"], metric="positive_rate", by="subtype", model=RANDOM
    )
    tables = [element.proto.body for element in at.get("html") if "vp-table" in element.proto.body]
    assert any(f'href="explore?set={key["lgip"]}&amp;model=' in body for body in tables)


def test_the_matrix_has_one_row_per_model_and_does_not_flag_a_failing_control(open_probe):
    at = open_probe("models")
    assert not at.exception and not at.error
    (matrix,) = [body for body in html_bodies(at) if ">Verdict<" in body]
    for name in ("Coin flip", "Always the same"):
        row = matrix.partition(name)[2].partition("</tr>")[0]
        assert "as it should" in row and "vp-fooled" not in row
        assert ">!<" in row and ">✓<" in row
    assert "is a control" in at.info[0].value and "as it should" in at.info[0].value


def test_a_warning_has_one_line_per_model_and_links_to_the_checks(open_probe, key, every_probe):
    at = open_probe("breakdown", set=key["lgip"])
    lines = at.info[-1].value.replace("\\", "").splitlines()
    assert sorted(line.partition(":")[0] for line in lines) == ["- Always the same", "- Coin flip"]
    assert all("a control, failed" in line and "as it should" in line for line in lines)
    assert "models" in {link.proto.page for link in at.get("page_link")}


def rename(at: AppTest, name: str, display: str) -> AppTest:
    at.selectbox(key="rename_stored").set_value(name)
    at.text_input(key="rename_display").set_value(display)
    next(button for button in at.button if button.label == "Rename").click().run()
    assert not at.exception
    return at


def test_a_model_is_renamed_and_an_empty_name_restores_the_default(open_probe, key, every_probe):
    try:
        rename(open_probe("models"), RANDOM, "<b>Dice</b> & co")
        at = open_probe("breakdown", set=key["lgip"])
        assert "<b>Dice</b> & co" in at.selectbox(key="model").options
        at = rename(open_probe("models"), CONSTANT, " <b>Dice</b>  & co ")
        assert "is already the name of 'control:random'" in at.error[0].value.replace("\\", "")
        at = rename(open_probe("models"), CONSTANT, "‮evil")
        assert "is not a valid display name" in at.error[0].value
    finally:
        rename(open_probe("models"), RANDOM, "")
    assert "Coin flip" in open_probe("breakdown", set=key["lgip"]).selectbox(key="model").options
    assert display_names.read(every_probe) == {}


def test_a_read_only_dashboard_does_not_offer_to_rename(open_probe, monkeypatch):
    monkeypatch.setenv(access.READ_ONLY, "1")
    at = open_probe("models")
    assert not at.exception and not [box for box in at.selectbox if box.key == "rename_stored"]


def html_bodies(at: AppTest) -> list[str]:
    return [element.proto.body for element in at.get("html")]
