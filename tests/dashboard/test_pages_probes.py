"""The pages on each probe's cases and papers, on a small store with all five probes."""

import html
import json
import math
import re

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from tests.conftest import tiers
from tests.dashboard.test_pages import PROBES, bodies, open_page, words
from tests.dashboard.walls import card_ids, component_values, figure_of
from vlprobe import registry, views
from vlprobe.dashboard.navigation import PAGE_SIZE
from vlprobe.render import numbers
from vlprobe.render.numbers import interval
from vlprobe.render.words import model_name
from vlprobe.runs import jobs
from vlprobe.runs.request import Request
from vlprobe.storage.store import Store

RANDOM, CONSTANT = "control:random", "control:constant"
KINDS = [
    ("lgip", "flip"),
    ("lgip", "combined"),
    ("lgip", "paraphrase"),
    ("rococo", "i2t"),
    ("rococo", "t2i"),
    ("eqben", "pair"),
    ("visla", "t2t"),
    ("visla", "i2t"),
    ("prsm", "ranking"),
]


@pytest.fixture
def key(every_probe: Store) -> dict[str, str]:
    return dict(views.runs.question_sets(every_probe).set_index("probe")["case_key"])


@pytest.mark.parametrize("probe", tiers(registry.names("probes"), ("eqben", "lgip", "pictures")))
def test_breakdown_shows_every_known_metric_of_a_probe_and_names_the_unknown_ones(
    open_probe, every_probe, key, probe: str
):
    at = open_probe("breakdown", set=key[probe])
    assert not at.error
    assert registry.load_probe(probe).presentation.sentence in [
        element.value for element in at.markdown
    ]
    charts = [element.key for element in at.get("plotly_chart")]
    text = words(at)
    known = views.runs.metrics(probe)
    table = views.estimates.estimates(views.runs.question_set(every_probe, key[probe]))
    presentation = registry.load_probe(probe).presentation
    measured = set(table.dropna(subset=["value"])["metric"]) & set(presentation.headlines)
    assert ("headlines" in charts) == bool(measured)
    for row in table.dropna(subset=["value"]).itertuples():
        unit = numbers.unit_of(known[row.metric], "cosine")
        assert (
            numbers.number(row.value, unit)
            + numbers.interval(row.low, row.high, unit)
            + f"n = {row.n_items}"
            in text
            or math.isnan(row.low)  # fewer than five pictures have no interval
        )
    for name in set(known) - set(table.loc[table["n_items"] > 0, "metric"]):
        assert known[name].label in text


@pytest.mark.parametrize(
    ("probe", "unit", "average"),
    [("lgip", True, True), ("eqben", True, False), ("visla", False, False)],
)
def test_switches_are_shown_only_if_they_change_the_numbers(
    open_probe, key, probe: str, unit: bool, average: bool
):
    at = open_probe("breakdown", set=key[probe])
    keys = {element.key for element in at.get("button_group")}
    assert ("unit" in keys, "average" in keys) == (unit, average)


@pytest.mark.parametrize("page", tiers(PROBES, ("retrieval", "triplets")))
def test_a_paper_s_table_has_the_runs_and_the_printed_rows(open_probe, every_probe, key, page: str):
    at = open_probe(page)
    assert not at.error
    assert at.selectbox(key="set").value == key[PROBES[page]]
    table = views.published.TABLES[PROBES[page]][0]
    text = words(at)
    for cell in views.papers.remade(
        views.runs.question_set(every_probe, key[PROBES[page]]), table.number
    ).itertuples():
        if not math.isnan(cell.value):
            metric = views.runs.metrics(PROBES[page])[table.columns[cell.column].metric]
            unit = numbers.unit_of(metric, "cosine")
            assert numbers.number(cell.value, unit).removesuffix(" %") in text
        name = model_name(cell.model) if cell.source == "run" else html.unescape(cell.model)
        assert name in text
        assert cell.note in text
    assert text.index("Your runs") < text.index("Published")


def test_the_trade_off_of_lgip_shows_table_2_and_published_marks_unless_hidden(open_probe, key):
    at = open_probe("tradeoff", set=key["lgip"], open="paper")
    assert "CLIP ViT-B/16 (OpenAI)" in words(at)
    drawn = json.dumps(figure_of(at, "tradeoff"))
    assert "(published, on other pictures)" in drawn or "as published" in words(at)
    at = open_probe("tradeoff", set=key["lgip"], printed="hidden")
    assert "(published" not in json.dumps(figure_of(at, "tradeoff"))
    assert "SigLIP" not in words(at)


@pytest.mark.parametrize("page", tiers(PROBES, ("pairs",)))
def test_one_click_starts_the_probe_of_the_page_with_the_demo_models(
    monkeypatch, store: Store, page: str
):
    begun: list[Request] = []
    monkeypatch.setattr(jobs, "start", lambda request, store: begun.append(request) or "")
    at = open_page(monkeypatch, store, page)
    at.button(key="demo").click().run()
    assert begun[0].probe == PROBES[page]
    assert begun[0].dataset == registry.load_probe(PROBES[page]).dataset
    assert all(name.startswith("demo:") for name in begun[0].models)


FIRST_KINDS = dict(reversed(KINDS)).items()  # of each probe


@pytest.mark.parametrize(("probe", "kind"), tiers(KINDS, FIRST_KINDS))
def test_cards_use_the_probe_s_name_of_the_kind_and_open(
    open_probe, every_probe, key, probe: str, kind: str
):
    chosen = views.filter.Filter(RANDOM, kind, outcome="all")
    question_set = views.runs.question_set(every_probe, key[probe])
    expected, _ = views.cases.failures(question_set, chosen, 1, PAGE_SIZE)
    parameters = {
        "set": key[probe],
        "kind": kind,
        "model": RANDOM,
        "outcome": "all",
        "cards": "every",
    }
    at = open_probe("explore", **parameters, case=expected["id"].iloc[0])
    assert not at.error
    presentation = registry.load_probe(probe).presentation
    assert at.selectbox(key="kind").label == "Kind of question"
    assert at.selectbox(key="kind").value == kind
    offered = at.selectbox(key="kind").options
    for stored_kind in dict.fromkeys(views.estimates.choices(question_set)["kind"]):
        lie = presentation.kind(stored_kind).lie
        assert lie in offered or f"{lie} ({presentation.name})" in offered
    assert card_ids(at) == expected["id"].tolist()[: len(card_ids(at))]
    assert len(card_ids(at)) >= min(len(expected), 30)
    assert presentation.kind(kind).label in words(at)
    queries = [values["query"] for _, values in component_values(at, "mixed")]
    assert expected["texts"].iloc[0][0] in (queries or words(at))
    assert bool(queries) == (kind == "t2i")


@pytest.mark.parametrize(("probe", "kind"), tiers(KINDS, FIRST_KINDS))
def test_ties_and_unknown_answers_have_cards(open_probe, key, probe: str, kind: str):
    at = open_probe("failures", set=key[probe], kind=kind, model=CONSTANT, outcome="all")
    assert not at.error
    assert "nan" not in words(at)


def details(open_probe, question_set, kind: str, case_id: str, model: str = RANDOM) -> AppTest:
    """Open Explore with this case in the drawer."""
    query = {"set": question_set, "kind": kind, "model": model, "outcome": "all"}
    return open_probe("explore", **query, case=case_id)


def some_cases(every_probe: Store, question_set: str, kind: str, count: int = 3) -> pd.DataFrame:
    """Return the first cases of a kind, with the answers of the random control."""
    cases, _ = views.cases.failures(
        views.runs.question_set(every_probe, question_set),
        views.filter.Filter(RANDOM, kind, outcome="all"),
        1,
        count,
    )
    answers = views.rows.answers(
        views.runs.question_set(every_probe, question_set), cases["case"].tolist()
    ).query("model == @RANDOM")
    return cases[["case", "id"]].merge(answers, on="case")


def test_a_pair_shows_its_matrix_and_the_comparisons_that_pass(open_probe, every_probe, key):
    for answer in some_cases(every_probe, key["eqben"], "pair").itertuples():
        at = details(open_probe, key["eqben"], "pair", answer.id)
        (table,) = re.findall(r'<table class="vp-scores vp-matrix">.*?</table>', bodies(at))
        s11, s12, s21, s22 = answer.scores
        assert re.findall(r">(-?\d\.\d{3})<", table) == [f"{score:.3f}" for score in answer.scores]
        held = [s11 > s12, s22 > s21, s11 > s21, s22 > s12]
        assert re.findall("(passed|failed)</td>", table) == [
            "passed" if one else "failed" for one in held
        ]


def test_a_search_shows_the_rank_and_the_first_candidate(open_probe, every_probe, key):
    lost = 0
    for kind in ("i2t", "t2i"):
        for answer in some_cases(every_probe, key["rococo"], kind).itertuples():
            at = details(open_probe, key["rococo"], kind, answer.id)
            text = words(at)
            lost += bool(answer.top_altered)
            assert f"<td>{answer.rank:,}</td>" in bodies(at)
            if kind == "i2t":
                assert ("✕ Ranked 1st" in text) == bool(answer.top_altered)
                assert answer.top in text
    assert lost


def test_triplets_show_three_cosines(open_probe, every_probe, key):
    for answer in some_cases(every_probe, key["visla"], "t2t").itertuples():
        text = words(details(open_probe, key["visla"], "t2t", answer.id))
        one, two, three = answer.text_scores
        assert f"P1, P2{one:.3f}" in text
        assert f"{two:.3f}" in text
        assert f"{three:.3f}" in text


def test_rankings_move_and_do_not_fool_a_model(open_probe, every_probe, key):
    answer = next(some_cases(every_probe, key["prsm"], "ranking").itertuples())
    at = details(open_probe, key["prsm"], "ranking", answer.id)
    assert "Fooled" not in words(at) and "fooled" not in words(at)
    assert "moved by" in words(at)
    strips = re.findall(r'<div class="vp-strip">(.*?)</div>', bodies(at))
    assert strips
    assert all(strip.count("data:image/") == 5 for strip in strips)
    assert "outcome" not in {element.key for element in at.get("button_group")}


def test_a_probe_s_page_offers_only_its_question_sets(open_probe, every_probe, key):
    at = open_probe("pairs", set=key["lgip"])
    assert at.selectbox(key="set").options == [
        "Pairs (pairs.json) · Near-identical pairs (EqBen) · 14 pictures"
    ]


def test_triplets_have_both_answers_in_a_table_whose_numbers_open_them(
    open_probe, every_probe, key
):
    at = open_probe("triplets", set=key["visla"], model=RANDOM)
    assert not at.error and "Texts wrong, picture right" in words(at)
    question_set = views.runs.question_set(every_probe, key["visla"])
    table = views.figures.crossed_outcomes(question_set)
    row = next(row for row in table.itertuples() if row.model == RANDOM and row.n_cases)
    assert f"({interval(row.low, row.high, 'rate')})" in words(at)
    explored = open_probe(
        "explore",
        set=key["visla"],
        model=RANDOM,
        kind="i2t",
        outcome=row.pictures,
        crossed=f"t2t={row.texts}",
        cards="every",
    )
    assert not explored.error
    assert explored.selectbox(key="crossed").value == f"t2t={row.texts}"
    assert len(card_ids(explored)) == row.n_cases
