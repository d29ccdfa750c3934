"""Trade-off, without a browser: the finding, the figure, selections, the folds, hostile names."""

import base64
import html
import json
import math
import re
import shutil
import urllib.parse
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Multiselect

from tests.conftest import case_key_of, make_tiny, question_set_of, tiers
from tests.dashboard.test_pages import open_page, words
from tests.dashboard.walls import figure_of, marks_of, select_marks
from tests.views.conftest import MODELS
from vlprobe import views
from vlprobe.features.tradeoff import page
from vlprobe.perturb.kinds import edits as kind_edits
from vlprobe.render import numbers
from vlprobe.render.words import edit_title, model_name, value_label
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage import display_names
from vlprobe.storage.store import Store
from vlprobe.views.filter import Filter

FIRST, SECOND, CONTROL = MODELS
HOSTILE = "</script><img src=x onerror=alert(1)>"


@pytest.fixture
def show_tradeoff(monkeypatch: pytest.MonkeyPatch, filled: Store):
    return partial(open_page, monkeypatch, filled, "tradeoff")


@pytest.fixture
def key(filled: Store) -> str:
    return case_key_of(filled)


def test_results_with_one_side_of_the_trade_off_lead_to_explore(show_tradeoff, monkeypatch):
    monkeypatch.setattr(views.tradeoff, "sets_with_trade_off", lambda store: [])
    at = show_tradeoff()
    assert not at.exception and not at.error
    assert "only one side of the trade-off" in words(at)
    assert "Explore their cases" in [link.label for link in at.get("page_link")]


def marks_by_model(at: AppTest) -> dict[str, dict]:
    """Return the marks of the figure by model."""
    return {model: mark for (model,), mark in marks_of(figure_of(at, "tradeoff")).items()}


def read_pinned(at: AppTest) -> str:
    """Return the model whose worst mistake is shown."""
    return at.session_state["pinned"]


def bodies(at: AppTest) -> str:
    return " ".join(element.proto.body for element in at.get("html"))


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
    show_tradeoff, filled: Store, key: str, query: dict, up: str, unit: str, average: str
):
    at = show_tradeoff(set=key, **query)
    assert not at.error and heading(at)
    table = views.tradeoff.trade_off(
        views.runs.question_set(filled, key), up, average, unit
    ).set_index("model")
    shown_marks = marks_by_model(at)
    assert set(shown_marks) <= set(MODELS) and {FIRST, SECOND} <= set(shown_marks)
    y_unit = "rate" if up == "positive_rate" else unit
    for model, mark in shown_marks.items():
        row = table.loc[model]
        assert (mark["x"], mark["y"]) == (row["x"], row["y"])
        for value, low, high, of in (
            ("x", "x_low", "x_high", unit),
            ("y", "y_low", "y_high", y_unit),
        ):
            assert numbers.number(row[value], of) in mark["text"]
            assert numbers.interval(row[low], row[high], of) in mark["text"]
        assert f"{row['y_n']:,} pictures" in mark["text"]
    (buttons,) = [each for each in at.button_group if each.key == "pinned"]
    for model, option in zip(tradeoff_order(table), buttons.options, strict=True):
        assert option.endswith(numbers.number(table.loc[model]["y"], y_unit))
    assert shows_published(at) == (unit == "cosine" and "printed" not in query)


def shows_published(at: AppTest) -> bool:
    drawn = json.dumps(figure_of(at, "tradeoff"))
    return "(published" in drawn or bool(re.search(r"as published, \d", bodies(at)))


def tradeoff_order(table) -> list[str]:
    """Return the models by their second value, the highest first, controls last."""
    return sorted(table.index, key=lambda model: (model == CONTROL, -table.loc[model]["y"]))


def test_a_click_shows_the_worst_mistake_of_a_model_and_is_stored_in_the_link(
    show_tradeoff, filled: Store, key: str
):
    at = select_marks(show_tradeoff(set=key), "tradeoff", (SECOND,))
    assert at.query_params["model"] in (SECOND, [SECOND])
    assert read_pinned(at) == SECOND
    question_set = views.runs.question_set(filled, key)
    (worst, *_), _, _ = views.wall.wall(question_set, Filter(SECOND, "flip"), 1, 1)
    text = html.unescape(re.sub(r"<[^>]*>", "", bodies(at)))
    assert worst.true_text in text and worst.wrong_text in text
    assert 'src="data:image/webp;base64,' in bodies(at)
    again = show_tradeoff(set=key, model=SECOND)
    assert read_pinned(again) == SECOND
    published = select_marks(again, "tradeoff", ())
    assert read_pinned(published) == SECOND  # a published model has no cases


def test_a_button_of_a_model_does_what_a_click_on_its_mark_does(show_tradeoff, key: str):
    at = show_tradeoff(set=key, model=FIRST)
    (buttons,) = [each for each in at.button_group if each.key == "pinned"]
    buttons.set_value(SECOND).run()
    assert at.query_params["model"] in (SECOND, [SECOND]) and read_pinned(at) == SECOND


def test_the_link_opens_the_counted_wrong_captions(show_tradeoff, filled: Store, key: str):
    at = show_tradeoff(set=key, model=FIRST)
    count = views.cases.outcomes(views.runs.question_set(filled, key), Filter(FIRST, "flip"))[
        "fooled"
    ]
    links = {link.proto.label: link.proto for link in at.get("page_link")}
    link = links[f"See the {count:,} wrong captions that fool this model"]
    query = dict(urllib.parse.parse_qsl(link.query_string))
    assert link.page == "explore" and query == {"set": key, "model": FIRST, "kind": "flip"}


def model_picker(at: AppTest) -> Multiselect:
    """Return the picker of the models to show. Its key depends on the models that it offers."""
    (picker,) = [each for each in at.multiselect if str(each.key).startswith("shown_models_")]
    return picker


def test_a_selected_area_shows_only_its_models_until_show_all_is_clicked(show_tradeoff, key: str):
    at = select_marks(show_tradeoff(set=key), "tradeoff", (FIRST,), (SECOND,), is_area=True)
    assert at.query_params["shown"] in (f"{FIRST}|{SECOND}", [f"{FIRST}|{SECOND}"])
    assert set(marks_by_model(at)) == {FIRST, SECOND}
    assert model_picker(at).value == [FIRST, SECOND]
    at.button(key="shown_models_all").click().run()
    assert "shown" not in at.query_params and CONTROL in model_picker(at).value
    empty = select_marks(at, "tradeoff", is_area=True)
    assert "shown" not in empty.query_params


def test_the_picker_shows_the_chosen_models_and_an_empty_choice_shows_all(show_tradeoff, key: str):
    at = show_tradeoff(set=key, shown=f"{FIRST}|{SECOND}")
    assert set(marks_by_model(at)) == {FIRST, SECOND}
    model_picker(at).set_value([SECOND]).run()
    assert at.query_params["shown"] in (SECOND, [SECOND])
    assert set(marks_by_model(at)) == {SECOND} and read_pinned(at) == SECOND
    model_picker(at).set_value([]).run()
    assert len(model_picker(at).value) == len(MODELS)


def test_a_link_to_a_missing_model_shows_a_warning_and_the_stored_models(show_tradeoff, key: str):
    at = show_tradeoff(set=key, model="nobody", shown="nobody|else")
    assert "model “nobody”" in at.warning[0].value.replace("\\", "")
    assert read_pinned(at) in MODELS and len(model_picker(at).value) == len(MODELS)


def test_an_overview_link_to_another_probe_opens_its_numbers(
    monkeypatch: pytest.MonkeyPatch, every_probe: Store
):
    sets = views.runs.question_sets(every_probe).set_index("probe")["case_key"]
    # `navigation` adds the parameter that opens the numbers.
    at = open_page(monkeypatch, every_probe, "overview", set=sets["prsm"], open="numbers")
    assert at.selectbox(key="metric").options and not figure_of(at, "tradeoff")
    assert at.selectbox(key="set").value == sets["prsm"]


def test_a_link_to_questions_without_a_trade_off_shows_others_and_says_so(
    monkeypatch: pytest.MonkeyPatch, every_probe: Store
):
    sets = views.runs.question_sets(every_probe).set_index("probe")["case_key"]
    at = open_page(monkeypatch, every_probe, "tradeoff", set=sets["prsm"])
    assert not at.exception and figure_of(at, "tradeoff")
    line = "has no trade-off, so this page shows another question set. A trade-off needs two"
    assert line in bodies(at)
    assert at.selectbox(key="set").value in views.tradeoff.sets_with_trade_off(every_probe)
    assert at.session_state["carried_set"] == sets["prsm"]  # other pages still show it
    at.run()
    assert line in bodies(at)
    at.session_state["carried_set"] = chosen = views.tradeoff.sets_with_trade_off(every_probe)[-1]
    at.query_params["set"] = sets["prsm"]
    at.run()
    assert line in bodies(at) and at.selectbox(key="set").value == chosen
    assert at.session_state["carried_set"] == sets["prsm"]


def test_the_heading_for_controls_is_not_a_finding(
    monkeypatch: pytest.MonkeyPatch, every_probe: Store
):
    at = open_page(monkeypatch, every_probe, "tradeoff")
    assert heading(at) == "These are controls, which should fail."
    assert all(trace["mode"] != "lines" for trace in figure_of(at, "tradeoff")["data"])


def test_the_worst_mistake_of_a_pair_shows_both_pictures_and_what_the_model_chose(
    monkeypatch: pytest.MonkeyPatch, every_probe: Store
):
    sets = views.runs.question_sets(every_probe)
    (key,) = sets.loc[sets["probe"] == "eqben", "case_key"]
    at = open_page(monkeypatch, every_probe, "tradeoff", set=key, model="control:random")
    shown = bodies(at)
    assert len(re.findall(r'<figure><img src="data:', shown)) == 2
    assert '<th scope="row">Right picture</th>' in shown and "✗ failed" in shown


def test_without_results_the_trade_off_page_offers_a_demo_run(monkeypatch, store: Store):
    at = open_page(monkeypatch, store, "tradeoff")
    assert [button.label for button in at.button] == ["Run it on the demo data"]


@pytest.mark.parametrize("fold", tiers(["kinds", "numbers", "paper", "details"], ["kinds"]))
def test_a_fold_is_drawn_only_if_the_link_opens_it(show_tradeoff, key: str, fold: str):
    closed = show_tradeoff(set=key)
    opened = show_tradeoff(set=key, open=fold)
    assert [element.key for element in closed.get("plotly_chart")] == ["tradeoff"]
    assert len(words(opened)) > len(words(closed)) + 200
    charts = [element.key for element in opened.get("plotly_chart")]
    expected = {
        "type_color",
        "type_number",
        "type_object",
        "type_combined",
        "strength_positive_rate",
        "wordings",
    }
    assert set(charts) == {"tradeoff"} | (expected if fold == "kinds" else set())


def test_a_panel_s_links_and_marks_open_the_failures_of_its_type(
    show_tradeoff, key: str, monkeypatch: pytest.MonkeyPatch
):
    opened: list[tuple[str, dict]] = []
    monkeypatch.setattr(
        page.st, "switch_page", lambda to, query_params: opened.append((to, query_params))
    )
    at = show_tradeoff(set=key, open="kinds", model=FIRST)
    base = {"set": key, "model": SECOND}
    queries = {
        "type_color": base | {"kind": "flip", "type": "color"},
        "type_combined": base | {"kind": "combined"},
    }
    labels = {link.proto.label for link in at.get("page_link")}
    assert {model_name(model).replace(":", "\\:") for model in MODELS} <= labels
    linked = [dict(urllib.parse.parse_qsl(link.proto.query_string)) for link in at.get("page_link")]
    for panel, query in queries.items():
        assert query in linked
        opened.clear()
        select_marks(at, panel, (SECOND,))
        assert opened == [("pages/explore.py", query)]
        at = show_tradeoff(set=key, open="kinds", model=FIRST)
    opened.clear()
    select_marks(at, "type_color", ())
    assert not opened


def test_panels_share_axes_that_contain_every_interval_and_show_the_numbers_of_the_view(
    show_tradeoff, key: str, filled: Store
):
    at = show_tradeoff(set=key, open="kinds")
    table = views.tradeoff.trade_off_by_type(
        views.runs.question_set(filled, key), "positive_rate"
    ).set_index(["type", "model"])
    axes = set()
    for name in ("color", "number", "object"):
        figure = figure_of(at, f"type_{name}")
        axes.add(json.dumps([figure["layout"][axis]["range"] for axis in ("xaxis", "yaxis")]))
        bottom, top = figure["layout"]["yaxis"]["range"]
        for (model,), mark in marks_of(figure).items():
            row = table.loc[name, model]
            assert (mark["x"], mark["y"]) == (row["x"], row["y"])
            assert model == CONTROL or math.isnan(row["y_low"]) or bottom <= row["y_low"]
            assert model == CONTROL or math.isnan(row["y_high"]) or row["y_high"] <= top
    assert len(axes) == 1


def test_with_many_models_only_the_two_that_matter_are_named(
    show_tradeoff, key: str, monkeypatch: pytest.MonkeyPatch
):
    for name in ("vlprobe.render.charts.styles", "vlprobe.features.tradeoff.data"):
        monkeypatch.setattr(f"{name}.DISTINCT", 1)
    at = show_tradeoff(set=key, model=SECOND, up="sensitivity_gap")
    names = [
        note["text"]
        for note in figure_of(at, "tradeoff")["layout"]["annotations"]
        if note.get("xref") != "paper"
    ]
    assert any(model_name(SECOND) in name for name in names)
    assert not any(model_name(CONTROL) in name for name in names)


def test_hostile_names_are_escaped_in_the_figure_and_on_the_page(
    monkeypatch: pytest.MonkeyPatch, filled: Store, tmp_path: Path, key: str
):
    store = Store(shutil.copytree(filled.root, tmp_path / "cache"))
    display_names.rename(store, FIRST, HOSTILE)
    display_names.rename(store, SECOND, "**bold** [x](javascript:1) " + "long " * 6)
    at = open_page(monkeypatch, store, "tradeoff", set=key, open="kinds|numbers")
    assert not at.error
    spec = json.dumps(figure_of(at, "tradeoff"))
    assert "&lt;img src=x" in spec and "<img src=x" not in spec
    assert "<img src=x" not in bodies(at) and "</script>" not in bodies(at)
    labels = [
        *(one.value for one in at.markdown),
        *(one.proto.label for one in at.get("page_link")),
        *(option for group in at.button_group for option in group.options),
    ]
    assert not [
        one
        for one in labels
        if "<img" in one.replace("\\<img", "") or "](java" in one.replace("\\](", "")
    ]


def test_a_missing_picture_is_named_and_the_captions_remain(
    monkeypatch: pytest.MonkeyPatch, filled: Store, key: str
):
    monkeypatch.setattr(page, "addresses", lambda root, names: {})
    monkeypatch.setattr(page, "large_picture", lambda name, side: "")
    text = bodies(open_page(monkeypatch, filled, "tradeoff", set=key, model=FIRST))
    assert "data:image" not in text and ".png is missing or damaged." in text
    assert text.count('class="vp-told"') == 2


def test_kinds_beyond_lgip_have_a_panel_or_a_row_and_hide_published_numbers_by_default(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    store = Store(tmp_path / "cache")
    options = {"kinds": ["flip", "paraphrase", *kind_edits.NAMES]}
    folder = make_tiny(tmp_path / "tiny")
    execute(Request((CONTROL,), folder, "lgip", options, limit=4, examine=False), store)
    at = open_page(monkeypatch, store, "tradeoff", open="kinds")
    assert not at.exception
    subtypes = set(views.estimates.choices(question_set_of(store))["subtype"])
    lies = subtypes & set(kind_edits.LIES)
    assert {"negation", "relation"} <= lies
    for name in lies:
        assert f"**{edit_title(name)}**" in [each.value for each in at.markdown]
    specs = " ".join(chart.proto.spec for chart in at.get("plotly_chart"))
    for name in kind_edits.REWORDINGS:
        assert value_label(name) in specs
    assert not shows_published(at)
    assert shows_published(open_page(monkeypatch, store, "tradeoff", printed="shown"))


def test_the_picker_of_two_models_reads_both_models(
    monkeypatch: pytest.MonkeyPatch, compared: Store
):
    at = open_page(monkeypatch, compared, "tradeoff")
    assert "both models" in [block.proto.popover.label for block in at.get("popover")]


def test_searches_with_changed_pictures_have_a_curve_by_severity(monkeypatch, tmp_path: Path):
    options = {"changes": ["pixelate"], "severities": [1, 5], "search": True}
    name, store = make_tiny(tmp_path / "tiny"), Store(tmp_path / "cache")
    execute(
        Request(("control:random", "demo:weak"), name, "pictures", options, examine=False), store
    )
    key = views.runs.question_set_rows(store)[0].case_key
    at = open_page(monkeypatch, store, "tradeoff", set=key, open="kinds", average="micro")
    assert not at.exception
    heads = [head.value for head in at.subheader]
    for end in (
        "R@1 kept, changed pictures, captions for a picture",
        "(MMI), pictures for a caption",
    ):
        assert [head for head in heads if head.endswith(end)], end
    shown = bodies(at)
    assert "Before" in shown and "After: Pixelate" in shown
    before, after = re.findall(r'<figure><img src="(data:[^"]+)', shown)
    assert before != after
    table = views.estimates.estimates(views.runs.question_set(store, key), "strength_bin")
    of_mmi = table[(table["metric"] == "changed_t2i_mmi") & (table["model"] == "demo:weak")]
    expected = of_mmi.sort_values("slice")["value"].tolist()
    drawn = [json.loads(chart.proto.spec) for chart in at.get("plotly_chart")]
    lines = [
        np.frombuffer(base64.b64decode(trace["y"]["bdata"]), trace["y"]["dtype"])
        if isinstance(trace["y"], dict)
        else trace["y"]
        for spec in drawn
        for trace in spec["data"]
        if trace.get("name") == "Half-trained" and trace.get("y")
    ]
    assert any(list(line) == pytest.approx(expected) for line in lines)
