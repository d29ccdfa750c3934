"""Trade-off, without a browser: the finding, the picture, what a press pins and opens, the folds, hostile names."""

import html
import json
import re
import shutil
from functools import partial
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.conftest import make_tiny
from tests.dashboard.test_pages import open_page, words
from tests.dashboard.walls import component_values, send
from tests.views.conftest import MODELS, filled  # noqa: F401 (fixture)
from vlprobe import views
from vlprobe.dashboard import case_links
from vlprobe.dashboard.state import PageSubject
from vlprobe.dashboard.tradeoff import by_kind, picture
from vlprobe.perturb.kinds import edits as kind_edits
from vlprobe.render import numbers
from vlprobe.render.words import model_name, value_label
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage import display_names
from vlprobe.storage.store import Store
from vlprobe.views.filter import Filter

FIRST, SECOND, CONTROL = MODELS
HOSTILE = "</script><img src=x onerror=alert(1)>"


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, filled: Store):  # noqa: F811
    return partial(open_page, monkeypatch, filled, "tradeoff")


@pytest.fixture
def key(filled: Store) -> str:  # noqa: F811
    return views.runs.question_sets(filled)["case_key"].iloc[0]


def drawn(at: AppTest) -> dict:
    """What the picture was given."""
    ((_, data),) = component_values(at, "tradeoff")
    return data


def heading(at: AppTest) -> str:
    body = next(one.proto.body for one in at.get("html") if "vp-finding" in one.proto.body)
    return html.unescape(re.findall(r"<h1>(.*?)</h1>", body)[0])


@pytest.mark.parametrize(
    ("query", "up", "unit", "average"),
    [
        ({}, "positive_rate", "cosine", "micro"),
        ({"unit": "spread", "up": "sensitivity_gap"}, "sensitivity_gap", "spread", "micro"),
        ({"average": "macro", "printed": "hidden"}, "positive_rate", "cosine", "macro"),
    ],
)
def test_each_mark_has_the_numbers_of_the_views(
    shown,
    filled: Store,  # noqa: F811
    key: str,
    query: dict,
    up: str,
    unit: str,
    average: str,
):
    at = shown(set=key, **query)
    assert not at.error and heading(at)
    table = views.tradeoff.trade_off(
        filled, views.runs.question_set(filled, key), up, average, unit
    ).set_index("model")
    marks = {mark["model"]: mark for mark in drawn(at)["marks"]}
    assert set(marks) == set(MODELS)
    for model, mark in marks.items():
        row = table.loc[model]
        y_unit = "rate" if up == "positive_rate" else unit
        assert mark["value"] == numbers.number(row["y"], y_unit)
        for value, low, high, of in (
            ("x", "x_low", "x_high", unit),
            ("y", "y_low", "y_high", y_unit),
        ):
            assert numbers.number(row[value], of) in mark["label"]
            assert numbers.interval(row[low], row[high], of) in mark["label"]
    assert drawn(at)["marks"][-1]["model"] == CONTROL
    assert bool(drawn(at)["rings"] or "as printed" in json.dumps(drawn(at)["edges"])) == (
        unit == "cosine" and "printed" not in query
    )


def test_a_press_pins_a_model_and_its_worst_mistake_and_the_link_has_it(
    shown,
    filled: Store,  # noqa: F811
    key: str,
):
    at = send(shown(set=key), "tradeoff", "pin", SECOND)
    assert at.query_params["model"] in (SECOND, [SECOND])
    data = drawn(at)
    assert data["pinned"] == SECOND
    question_set = views.runs.question_set(filled, key)
    (worst, *_), _, _ = views.wall.wall(filled, question_set, Filter(SECOND, "flip"), 1, 1)
    example = data["examples"][SECOND]
    assert "".join(run for run, _ in example["lines"][0][1]) == worst.true_text
    assert "".join(run for run, _ in example["lines"][1][1]) == worst.wrong_text
    assert example["source"].startswith("data:image/webp;base64,")
    assert set(data["examples"]) == set(MODELS)
    assert drawn(shown(set=key, model=SECOND))["pinned"] == SECOND


def test_the_button_opens_as_many_lies_as_it_says(
    shown,
    filled: Store,  # noqa: F811
    key: str,
    monkeypatch: pytest.MonkeyPatch,
):
    opened: list[tuple[str, dict]] = []
    monkeypatch.setattr(
        picture.st, "switch_page", lambda page, query_params: opened.append((page, query_params))
    )
    at = shown(set=key)
    said = drawn(at)["examples"][FIRST]["press"]
    send(at, "tradeoff", "open", FIRST)
    assert opened == [("pages/explore.py", {"set": key, "model": FIRST, "kind": "flip"})]
    chosen = Filter(FIRST, "flip")
    count = views.cases.outcomes(filled, views.runs.question_set(filled, key), chosen)["fooled"]
    assert said == f"See the {count:,} lies it believes"
    send(shown(set=key), "tradeoff", "open", "nobody")
    assert len(opened) == 1


def test_some_models_can_be_shown_alone(shown, key: str):
    at = shown(set=key, shown=f"{FIRST}|{SECOND}")
    assert {mark["model"] for mark in drawn(at)["marks"]} == {FIRST, SECOND}
    assert at.multiselect(key="shown").value == [FIRST, SECOND]
    at.button(key="show_all").click().run()
    assert "shown" not in at.query_params
    assert len(drawn(at)["marks"]) == len(MODELS)
    at.multiselect(key="shown").set_value([SECOND]).run()
    assert at.query_params["shown"] in (SECOND, [SECOND])
    assert [mark["model"] for mark in drawn(at)["marks"]] == [SECOND]
    assert drawn(at)["pinned"] == SECOND
    at.multiselect(key="shown").set_value([]).run()
    assert len(drawn(at)["marks"]) == len(MODELS)


def test_a_link_to_a_model_that_is_not_here_says_so_and_shows_what_is(shown, key: str):
    at = shown(set=key, model="nobody", shown="nobody|else")
    assert "model “nobody”" in at.warning[0].value.replace("\\", "")
    assert drawn(at)["pinned"] in MODELS and len(drawn(at)["marks"]) == len(MODELS)


def test_an_address_of_the_overview_about_another_probe_leads_to_its_numbers(
    monkeypatch: pytest.MonkeyPatch, every_probe: Store
):
    sets = views.runs.question_sets(every_probe).set_index("probe")["case_key"]
    # `navigation` adds what opens the numbers.
    at = open_page(monkeypatch, every_probe, "overview", set=sets["eqben"], open="numbers")
    assert at.selectbox(key="metric").options and not component_values(at, "tradeoff")
    assert at.selectbox(key="set").value == sets["eqben"]


def test_a_link_about_questions_without_two_sides_says_so_and_what_is_here(
    monkeypatch: pytest.MonkeyPatch, every_probe: Store
):
    sets = views.runs.question_sets(every_probe).set_index("probe")["case_key"]
    at = open_page(monkeypatch, every_probe, "tradeoff", set=sets["eqben"])
    assert not at.exception and not component_values(at, "tradeoff")
    assert [title.value for title in at.title] == ["These questions have no trade-off."]
    links = {link.proto.label: link.proto.query_string for link in at.get("page_link")}
    assert sets["eqben"] in links["What fools these models"]
    assert sets["lgip"] in links["A trade-off that is here"]


def test_controls_alone_are_no_finding(monkeypatch: pytest.MonkeyPatch, every_probe: Store):
    at = open_page(monkeypatch, every_probe, "tradeoff")
    assert heading(at) == "These are controls: they are meant to fail."
    assert drawn(at)["front"] == []


def test_without_results_a_press_asks_the_demo_models(monkeypatch, store: Store):
    at = open_page(monkeypatch, store, "tradeoff")
    assert [button.label for button in at.button] == ["Run it on the demo data"]


@pytest.mark.parametrize("fold", ["kinds", "numbers", "paper", "details"])
def test_a_fold_is_in_the_link_and_made_only_when_it_is_open(shown, key: str, fold: str):
    closed = shown(set=key)
    opened = shown(set=key, open=fold)
    assert not closed.get("plotly_chart")
    assert len(words(opened)) > len(words(closed)) + 200
    charts = [element.key for element in opened.get("plotly_chart")]
    expected = {"type_color", "type_number", "type_object", "type_combined", "strength", "wordings"}
    assert set(charts) == (expected if fold == "kinds" else set())


def test_a_panel_s_links_lead_to_the_failures_of_that_type(shown, key: str, filled: Store):  # noqa: F811
    stored = views.runs.question_set(filled, key)
    about = PageSubject(stored, MODELS, {})
    base = {"set": key, "model": FIRST}
    queries = [
        case_links.query(about, lies)
        for lies in (
            picture.lies(about, FIRST),
            by_kind.lies_of_kind(about, FIRST, "color"),
            by_kind.lies_of_kind(about, FIRST, "combined"),
        )
    ]
    assert queries[0] == base | {"kind": "flip"}
    assert queries[1] == base | {"kind": "flip", "type": "color"}
    assert queries[2] == base | {"kind": "combined"}
    labels = {link.proto.label for link in shown(set=key, open="kinds").get("page_link")}
    assert {model_name(model).replace(":", "\\:") for model in MODELS} <= labels


def test_a_click_opens_the_failures_of_the_model_and_a_printed_mark_opens_nothing(
    monkeypatch: pytest.MonkeyPatch,
    key: str,
    filled: Store,  # noqa: F811
):
    opened: list[tuple[str, dict]] = []
    monkeypatch.setattr(
        by_kind.st, "switch_page", lambda page, query_params: opened.append((page, query_params))
    )
    about = PageSubject(views.runs.question_set(filled, key), MODELS, {})
    by_kind.open_clicked(about, [], "number")
    by_kind.open_clicked(about, [{"curve_number": 0, "x": 1.0}], "number")
    assert not opened
    by_kind.open_clicked(about, [{"curve_number": 1, "customdata": [SECOND]}], "number")
    query = {"set": key, "model": SECOND, "kind": "flip", "type": "number"}
    assert opened == [("pages/explore.py", query)]


def test_beyond_nine_marks_only_the_models_that_are_looked_at_are_named_and_coloured(
    shown, key: str, monkeypatch: pytest.MonkeyPatch
):
    for name in ("vlprobe.render.charts.styles", "vlprobe.dashboard.tradeoff.picture"):
        monkeypatch.setattr(f"{name}.DISTINCT", 2)
    data = drawn(shown(set=key, model=SECOND))
    named = {mark["model"] for mark in data["marks"] if mark["named"]}
    assert SECOND in named and CONTROL not in named
    assert set(data["examples"]) == {SECOND}
    assert len(data["marks"]) == len(MODELS)


def test_names_and_captions_reach_the_picture_as_text_and_the_page_escaped(
    monkeypatch: pytest.MonkeyPatch,
    filled: Store,  # noqa: F811
    tmp_path: Path,
    key: str,
):
    own = Store(shutil.copytree(filled.root, tmp_path / "cache"))
    display_names.rename(own, FIRST, HOSTILE)
    display_names.rename(own, SECOND, "**bold** [x](javascript:1) " + "long " * 6)
    at = open_page(monkeypatch, own, "tradeoff", set=key, open="kinds|numbers")
    assert not at.error
    names = {mark["model"]: mark["name"] for mark in drawn(at)["marks"]}
    assert names[FIRST] == HOSTILE
    bodies = " ".join(element.proto.body for element in at.get("html"))
    assert "<img src=x" not in bodies and "</script>" not in bodies
    written = [
        *(one.value for one in at.markdown),
        *(one.proto.label for one in at.get("page_link")),
    ]
    assert not [one for one in written if "<img" in one.replace("\\<img", "") or "](java" in one]


def test_a_picture_that_is_gone_is_named_and_the_captions_stay(
    monkeypatch: pytest.MonkeyPatch,
    filled: Store,  # noqa: F811
    key: str,
):
    monkeypatch.setattr(picture, "addresses", lambda root, names: {})
    monkeypatch.setattr(picture, "large_picture", lambda name, side: "")
    example = drawn(open_page(monkeypatch, filled, "tradeoff", set=key))["examples"][FIRST]
    assert example["source"] == "" and example["picture"].endswith(".png")
    assert len(example["lines"]) == 2


def test_kinds_that_are_not_lgip_s_have_a_panel_or_a_row_each_and_hide_what_the_paper_prints(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    store = Store(tmp_path / "cache")
    options = {"kinds": ["flip", "paraphrase", *kind_edits.OFFERED]}
    folder = make_tiny(tmp_path / "tiny")
    execute(Request((CONTROL,), folder, "lgip", options, limit=4, examine=False), store)
    at = open_page(monkeypatch, store, "tradeoff", open="kinds")
    assert not at.exception
    key = views.runs.question_sets(store)["case_key"].iloc[0]
    asked = set(views.estimates.choices(store, views.runs.question_set(store, key))["subtype"])
    lies = asked & set(kind_edits.LIES)
    assert {"negation", "relation"} <= lies
    for name in lies:
        assert f"**{value_label(name)}**" in [each.value for each in at.markdown]
    specs = " ".join(chart.proto.spec for chart in at.get("plotly_chart"))
    for name in kind_edits.REWORDINGS:
        assert value_label(name) in specs
    assert "as printed" not in json.dumps(drawn(at))
    assert "as printed" in json.dumps(
        drawn(open_page(monkeypatch, store, "tradeoff", printed="shown"))
    )


def test_the_picker_of_two_models_says_both(monkeypatch: pytest.MonkeyPatch, compared: Store):
    at = open_page(monkeypatch, compared, "tradeoff")
    assert "both models" in [block.proto.popover.label for block in at.get("popover")]
