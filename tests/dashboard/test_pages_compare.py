"""The Compare page, without a browser: words, numbers, the scatter and the cases that it leads to."""

import html
import json
import math
import re
import shutil
from functools import partial
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.conftest import make_tiny
from tests.dashboard.test_pages import bodies, open_page, words
from tests.views.conftest import (
    MODELS,
    filled,  # noqa: F401 (fixtures)
    key,  # noqa: F401 (fixtures)
)
from tests.views.test_compare import partial_answers  # noqa: F401 (fixture)
from vlprobe import views
from vlprobe.dashboard import cards
from vlprobe.dashboard import compare as dashboard_compare
from vlprobe.render import charts, numbers
from vlprobe.render.html import compare, elements
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.store import Store

AREA = ((-0.1, -0.1), (0.3, -0.1), (0.3, 0.05), (-0.1, 0.05))
IN_URL = ";".join(f"{x:.5f},{y:.5f}" for x, y in AREA)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, filled: Store):  # noqa: F811
    return partial(open_page, monkeypatch, filled, "compare")


def figure(at: AppTest) -> dict:
    return json.loads(at.get("plotly_chart")[0].proto.spec)


def shown_cases(at: AppTest) -> list[str]:
    return [button.key for button in at.button if button.label == "Details"]


def expected_cases(store: Store, key: str, chosen: views.filter.Filter) -> list[str]:  # noqa: F811
    table, _ = views.cases.failures(
        store, views.runs.question_set(store, key), chosen, 1, cards.SIZE
    )
    return [f"open_{case}" for case in table["case"]]


def mark(at: AppTest, box: list | None = None, lasso: list | None = None) -> AppTest:
    """What dragging over the scatter does."""
    element = at.get("plotly_chart")[0]
    states = at._tree.get_widget_states()
    widget = states.widgets.add()
    widget.id = element.proto.id
    drawn = {"points": [], "point_indices": [], "box": box or [], "lasso": lasso or []}
    widget.string_value = json.dumps({"selection": drawn})
    return at._run(states)


def test_with_one_model_it_says_that_it_takes_two(monkeypatch, tmp_path: Path):
    store = Store(tmp_path / "cache")
    execute(
        Request(
            ("control:constant",), make_tiny(tmp_path / "tiny"), "lgip", limit=1, examine=False
        ),
        store,
    )
    at = open_page(monkeypatch, store, "compare")
    assert "takes two" in at.info[0].value
    assert [link.proto.label for link in at.get("page_link")] == ["Ask another model"]
    assert not at.get("plotly_chart")


def test_the_table_has_the_numbers_of_the_view(shown, filled: Store, key: str):  # noqa: F811
    average, unit = "micro", "spread"
    at = shown(average=average, unit=unit)
    assert not at.error
    text = words(at)
    for row in views.compare.compare(
        filled, views.runs.question_set(filled, key), MODELS, average, unit
    ).itertuples():
        own = numbers.unit_of(views.runs.metrics("lgip")[row.metric], unit)
        size = f"{charts.compare.signed(row.difference, own)} ({charts.compare.between(row.low, row.high, own)})"
        told = f"{numbers.number(row.value, own)} {compare.WORDS[row.verdict]}{size}"
        assert told + charts.compare.chance(row.p_holm) in text


def test_every_number_says_its_unit_direction_chance_meaning_and_source(shown, filled: Store):  # noqa: F811
    for text in (words(shown()), words(open_numbers(shown, filled))):
        for metric in views.runs.metrics("lgip").values():
            assert html.unescape(f"{metric.help} Source: {metric.source}.") in text
        assert "Positive ratein % · ↑ higher is better · guessing gets 50 %" in text


def open_numbers(shown: partial, store: Store) -> AppTest:
    return shown.func(*shown.args[:1], store, "breakdown")


def test_pictures_that_are_left_out_are_counted_and_the_baseline_has_its_own_n(
    monkeypatch,
    partial_answers: Store,  # noqa: F811
):
    text = words(
        open_page(monkeypatch, partial_answers, "compare", base="partial", **{"with": MODELS[0]})
    )
    assert f"Left out against {MODELS[0]} up to 3." in text
    assert "n = 3, 3 left out; baseline there" in text
    assert "n = 4" in text  # of the baseline, which answered half of a picture too
    assert "may leave out 0 where these are tied" in text
    whole = words(
        open_page(monkeypatch, partial_answers, "compare", base=MODELS[0], **{"with": "partial"})
    )
    assert "n = 6" in whole


def test_the_url_says_who_is_compared_with_whom(shown, filled: Store, key: str):  # noqa: F811
    at = shown(base=MODELS[2], **{"with": MODELS[0]}, area=IN_URL)
    assert at.selectbox(key="base").value == MODELS[2]
    assert at.multiselect(key="with").value == [MODELS[0]]
    looks = charts.styles.styles(views.runs.models(filled))
    shapes = [elements.SHAPES[looks[name][1]] for name in (MODELS[0], MODELS[2])]
    assert f"{shapes[0]} {MODELS[0]} against {shapes[1]} {MODELS[2]}" in words(at)
    assert f"{MODELS[1]} against" not in words(at)
    at.multiselect(key="with").set_value([MODELS[0], MODELS[1]]).run()
    assert at.query_params["with"] == "|".join(MODELS[:2])
    assert at.query_params["area"] == IN_URL
    at.selectbox(key="other").set_value(MODELS[1]).run()
    title = figure(at)["layout"]["yaxis"]["title"]["text"]
    assert MODELS[1] in title


def test_nonsense_in_the_url_falls_back_to_what_there_is(shown):
    at = shown(
        base="x",
        **{"with": "y|z"},
        area="nan,1;2,3;4,5",
        bucket="?",
        kind="!",
        tool=":",
        other="-",
        sort="up",
    )
    assert not at.error
    assert at.selectbox(key="base").value == MODELS[0]
    assert at.multiselect(key="with").value == list(MODELS[1:])
    assert "shapes" not in figure(at)["layout"]


def test_a_model_keeps_its_mark_when_another_is_stored_and_in_a_copy_that_cannot_be_written(
    monkeypatch,
    tmp_path: Path,
    filled: Store,  # noqa: F811
    key: str,  # noqa: F811
):
    run = views.runs.question_set(filled, key).run(MODELS[0]).key
    fewer = Store(shutil.copytree(filled.root, tmp_path / "cache"))
    shutil.rmtree(fewer.root / "runs" / run)
    marked = r'color:light-dark\((#\w+), #\w+\)">(.)</span> (2|Coin flip)'
    looks = set(re.findall(marked, bodies(open_page(monkeypatch, fewer, "breakdown"))))
    assert len(looks) == 2
    shutil.copytree(filled.root / "runs" / run, fewer.root / "runs" / run)
    for path in (fewer.root, *fewer.root.rglob("*")):
        path.chmod(path.stat().st_mode & ~0o222)
    monkeypatch.setenv("VLPROBE_READ_ONLY", "1")
    assert set(re.findall(marked, bodies(open_page(monkeypatch, fewer, "breakdown")))) == looks
    assert {color for color, _, name in looks if name == "Coin flip"} == {charts.styles.GREY}


def test_a_list_that_was_emptied_stays_empty_and_says_what_to_do(shown):
    at = shown(base=MODELS[1])
    assert at.multiselect(key="with").value == [MODELS[0], MODELS[2]]
    at.multiselect(key="with").set_value([]).run()
    assert not at.exception
    assert at.multiselect(key="with").value == []
    assert at.query_params["with"] == ""
    assert "Choose one to 3 models in the list above" in at.info[0].value
    assert not at.get("plotly_chart")
    at.multiselect(key="with").set_value([MODELS[2]]).run()
    assert f"{MODELS[2]} against" in words(at)
    assert MODELS[0] not in words(at)


def test_a_new_baseline_leaves_no_empty_list(shown):
    at = shown(base=MODELS[1], **{"with": MODELS[0]})
    at.selectbox(key="base").set_value(MODELS[0]).run()
    assert at.multiselect(key="with").value == list(MODELS[1:])
    assert not at.warning


def test_a_link_to_models_that_are_not_here_says_so_before_it_compares_others(shown):
    at = shown(base="gone", **{"with": f"{MODELS[2]}|also*gone"})
    told = at.warning[0].value
    assert told.startswith("This link is about results that are not here: ")
    assert "baseline “gone”" in told
    assert r"compared with it “also\*gone”" in told
    assert at.multiselect(key="with").value == [MODELS[2]]


def test_the_scatter_has_a_mark_a_case_by_who_is_fooled(shown, filled: Store, key: str):  # noqa: F811
    at = shown()
    counts = views.paired_outcomes.paired_outcomes(
        filled, views.runs.question_set(filled, key), *MODELS[:2], "flip"
    ).counts
    traces = {trace["name"]: trace["x"] for trace in figure(at)["data"]}
    points, total = views.paired_outcomes.scatter(
        filled, views.runs.question_set(filled, key), *MODELS[:2], "flip"
    )
    assert list(traces) == [
        "both held",
        "both fooled",
        f"only {MODELS[0]} fooled",
        f"only {MODELS[1]} fooled",
    ]
    sentence = next(text.value for text in at.markdown if "cases fool only" in text.value)
    assert f"**{counts['only_first']}** cases fool only" in sentence
    assert f"**{counts['only_second']}** only" in sentence
    assert f"{counts['both_fooled']} both and {counts['both_held']} neither" in sentence
    assert "exchanged as a whole" in sentence  # a picture has several cases
    assert len(points) == total
    assert f"Drawn: {len(points)}" not in words(at)


def test_only_a_share_of_many_cases_is_drawn_and_it_says_so(shown, monkeypatch):
    monkeypatch.setattr(
        views.paired_outcomes, "scatter", partial(views.paired_outcomes.scatter, limit=20)
    )
    at = shown(kind="combined")
    assert "Drawn: 20 of" in words(at)


def test_a_marked_box_fills_the_gallery_with_every_case_inside(shown, filled: Store, key: str):  # noqa: F811
    at = mark(shown(), box=[{"xref": "x", "yref": "y", "x": [-0.1, 0.3], "y": [-0.1, 0.05]}])
    assert at.query_params["area"] == IN_URL
    chosen = views.filter.Filter(
        MODELS[0], "flip", outcome="all", sort="difference", other=MODELS[1], within=AREA
    )
    counts = views.paired_outcomes.buckets(filled, views.runs.question_set(filled, key), chosen)
    assert (
        0
        < counts["all"]
        < views.paired_outcomes.scatter(
            filled, views.runs.question_set(filled, key), *MODELS[:2], "flip"
        )[1]
    )
    assert f"{counts['all']} of" in words(at)
    assert shown_cases(at) == expected_cases(filled, key, chosen)
    assert figure(at)["layout"]["shapes"][0]["path"].startswith("M -0.1,-0.1 L 0.3,-0.1")
    at.button(key="unmark").click().run()
    assert "area" not in at.query_params
    assert "shapes" not in figure(at)["layout"]


def test_a_lasso_is_thinned_until_a_link_can_bear_it(shown):
    turns = [2 * math.pi * step / 300 for step in range(300)]
    lasso = {
        "x": [0.3 * math.cos(turn) for turn in turns],
        "y": [0.3 * math.sin(turn) for turn in turns],
    }
    at = mark(shown(tool="lasso", page="2", bucket="both_fooled"), lasso=[lasso])
    corners = dashboard_compare.corners(at.query_params["area"])
    assert 30 <= len(corners) <= dashboard_compare.CORNERS
    assert all(math.hypot(*corner) == pytest.approx(0.3, abs=1e-4) for corner in corners)
    assert not {"page", "bucket"} & set(at.query_params)
    assert figure(at)["layout"]["dragmode"] == "lasso"


def test_a_link_to_a_bucket_shows_the_cases_of_who_is_fooled(shown, filled: Store, key: str):  # noqa: F811
    at = shown(bucket="only_second", area=IN_URL)
    turned = tuple((y, x) for x, y in AREA)
    chosen = views.filter.Filter(
        MODELS[1],
        "flip",
        sort="difference",
        other=MODELS[0],
        other_outcome="held",
        within=turned,
        outcome="fooled",
    )
    assert expected_cases(filled, key, chosen)
    assert shown_cases(at) == expected_cases(filled, key, chosen)


@pytest.mark.parametrize(
    ("probe", "kind"),
    [("lgip", "paraphrase"), ("visla", "t2t"), ("prsm", "ranking")],
)
def test_the_page_answers_for_every_probe(monkeypatch, every_probe: Store, probe: str, kind: str):
    keys = views.runs.question_sets(every_probe).set_index("probe")["case_key"]
    at = open_page(monkeypatch, every_probe, "compare", set=keys[probe], kind=kind)
    assert not at.error
    assert "nan" not in words(at)
    there = {element.key for element in at.get("button_group")}
    assert ("bucket" in there) == (kind not in ("paraphrase", "ranking"))
