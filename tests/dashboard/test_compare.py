"""The Compare page, without a browser: the finding, the forest, the two columns, and the folds with all numbers."""

import html
import json
import math
import re
import shutil
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.conftest import case_key_of, make_tiny, tiers
from tests.dashboard.test_pages import bodies, open_page, words
from tests.dashboard.walls import figure_of, marks_of, select_marks, send_to, values_of
from tests.views.conftest import MODELS
from vlprobe import views
from vlprobe.dashboard import compare
from vlprobe.render import charts, forest
from vlprobe.render.findings import verdict
from vlprobe.render.sentences import unbroken
from vlprobe.render.wall import side_filter
from vlprobe.render.words import model_name, presentations
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage import shipped
from vlprobe.storage.shipped import StoreAboveShipped
from vlprobe.storage.store import Store

AREA = ((-0.1, -0.1), (0.3, -0.1), (0.3, 0.05), (-0.1, 0.05))
IN_URL = ";".join(f"{x:.5f},{y:.5f}" for x, y in AREA)
NAMES = [model_name(model) for model in MODELS]  # "1", "2", "Coin flip"
ALL = {"model": MODELS[0], "with": "|".join(MODELS[1:])}


def one(at: AppTest, name: str) -> str:
    """Return a parameter of the current address."""
    value = at.query_params.get(name, "")
    return value if isinstance(value, str) else value[0]


def read_cases(at: AppTest, part: str) -> list[str]:
    return [card["id"] for card in values_of(at, part).get("cards", [])]


def test_each_tab_shows_its_content_when_selected_again(monkeypatch, filled: Store):
    at = open_page(monkeypatch, filled, "compare")
    for tab in ("differences", "scorecard", "differences", "scorecard"):
        at.segmented_control(key="tab").set_value(tab).run()
        assert not at.exception
        assert at.segmented_control(key="tab").value == tab
        assert bool(at.get("plotly_chart")) == (tab == "differences")


def test_with_one_model_the_page_asks_for_a_second_one(monkeypatch, tmp_path: Path):
    store = Store(tmp_path / "cache")
    execute(
        Request(
            ("control:constant",), make_tiny(tmp_path / "tiny"), "lgip", limit=1, examine=False
        ),
        store,
    )
    at = open_page(monkeypatch, store, "compare", tab="differences")
    assert "needs two" in at.info[0].value
    assert [link.proto.label for link in at.get("page_link")] == ["Run another model"]
    assert not figure_of(at, "forest")


def test_the_heading_is_the_finding(show_compare, filled: Store, key: str):
    at = show_compare(**ALL)
    compared = views.paired_tests.compare_models(
        views.runs.question_set(filled, key), MODELS, "flip"
    )
    finding = verdict(compared, presentations()["lgip"].kind("flip"))
    assert f"<h1>{html.escape(unbroken(finding.heading))}</h1>" in bodies(at)
    assert unbroken(finding.short) in words(at) and " %" not in unbroken(finding.detail)
    assert finding.more and finding.more not in words(at)  # only in the expander
    assert finding.more in words(show_compare(**ALL, open="measured"))
    assert sorted(finding.detail) == sorted(f"{finding.short} {finding.more}")
    assert len(re.findall("<h1", bodies(at))) == 1


def read_open_row(at: AppTest) -> tuple[str, str]:
    """Return the row whose pictures are shown; the plot marks the band of its type."""
    subtype, model = at.session_state["row_type"], at.session_state["row_model"]
    styles = " ".join(element.proto.body for element in at.get("html"))
    (place,) = re.findall(r'st-key-forest .shapelayer path\[data-index="(\d+)"\]', styles)
    band = figure_of(at, "forest")["layout"]["shapes"][int(place)]
    assert band["y0"] < marks_of(figure_of(at, "forest"))[subtype, model]["y"] < band["y1"]
    return subtype, model


def test_the_forest_has_the_rows_of_the_view(show_compare, filled: Store, key: str):
    figure = figure_of(show_compare(**ALL, other="-", junk="not in links"), "forest")
    assert "junk" not in json.dumps(figure)
    compared = views.paired_tests.compare_models(
        views.runs.question_set(filled, key), MODELS, "flip"
    )
    marks = marks_of(figure)
    assert set(marks) == {(row.subtype, row.model) for row in compared.rows}
    bars = {
        tuple(values): (trace["error_x"], index)
        for trace in figure["data"]
        for index, values in enumerate(trace.get("customdata") or [])
        if "error_x" in trace
    }
    for row in compared.rows:
        mark = marks[row.subtype, row.model]
        assert mark["x"] == pytest.approx(100 * row.difference)
        assert mark["symbol"].endswith("-open") != (row.verdict in ("fewer", "more"))
        assert f"{row.n_lies:,} wrong captions, {row.n_pictures:,} pictures" in mark["text"]
        if (row.subtype, row.model) in bars and not math.isnan(row.low):
            bar, index = bars[row.subtype, row.model]
            assert mark["x"] + bar["array"][index] == pytest.approx(100 * row.high)
            assert mark["x"] - bar["arrayminus"][index] == pytest.approx(100 * row.low)
    heights = {mark: values["y"] for mark, values in marks.items()}
    (rows,) = [trace for trace in figure["data"] if trace["type"] == "bar"]
    assert {tuple(row): y for row, y in zip(rows["customdata"], rows["y"], strict=True)} == heights
    ends = figure["layout"]["xaxis"]["range"]
    assert rows["base"] == ends[0] and rows["x"] == pytest.approx([ends[1] - ends[0]] * len(marks))
    links = [note["text"] for note in figure["layout"]["annotations"] if "<a" in note["text"]]
    queries = [dict(re.findall(r"(type|other)=([^&\"]*)", link)) for link in links]
    assert {(each["type"], each["other"]) for each in queries} == set(marks)
    assert sorted(heights, key=heights.get) == [(row.subtype, row.model) for row in compared.rows]


def test_the_default_models_are_the_best_and_the_open_row_and_its_pictures_prove_the_heading(
    monkeypatch, bundled
):
    at = open_page(monkeypatch, bundled, "compare", tab="differences", model="demo:softmax")
    question_set = views.runs.question_set(bundled, one(at, "set"))
    answers: dict[str, list[int]] = {}
    for row in views.showcase.lie_counts(question_set, "flip"):
        fooled, n_lies = answers.get(row.model, (0, 0))
        answers[row.model] = [fooled + row.n_believed, n_lies + row.n_lies]
    shares = {model: fooled / n_lies for model, (fooled, n_lies) in answers.items()}
    ranked = sorted(question_set.ordered_models, key=shares.__getitem__)
    *compared, left_out = [model for model in ranked if model != "demo:softmax"]
    assert one(at, "with").split("|") == compared
    assert f"Not in this comparison: {model_name(left_out)}." in words(at)
    everyone = "|".join([left_out, *compared])
    chosen = {"with": everyone, "other": "demo:weak", "model": "demo:softmax"}
    complete = open_page(monkeypatch, bundled, "compare", tab="differences", **chosen)
    assert one(complete, "with") == everyone and "Not in this comparison" not in words(complete)
    assert "<h1>Pair-tuned is fooled less often than Tiny CLIP. It counts better.</h1>" in bodies(
        at
    )
    assert read_open_row(at) == ("number", "demo:eqsim")
    text = words(at)
    assert "133 fooled Tiny CLIP, not Pair-tuned" in text
    assert "48 fooled Pair-tuned, not Tiny CLIP" in text
    assert read_open_row(complete) == ("number", "demo:weak")
    best = open_page(monkeypatch, bundled, "compare", tab="differences")
    assert best.selectbox(key="model").value == ranked[0]
    assert "Pair-tuned is the baseline: it has the lowest value on all cases." in words(best)


def test_a_tie_whose_uncorrected_interval_excludes_0_is_marked_as_corrected(monkeypatch, bundled):
    rivals = {"model": "demo:softmax", "with": "demo:weak|demo:sigmoid|demo:eqsim"}
    at = open_page(monkeypatch, bundled, "compare", tab="differences", **rivals)
    dashed = [
        trace for trace in figure_of(at, "forest")["data"] if "lines" in trace.get("mode", "")
    ]
    ends = [tuple(trace["x"][:2]) for trace in dashed]
    assert all(low > 0 or high < 0 for low, high in ends) and len(ends) == 1
    corrected = [
        row
        for row, mark in marks_of(figure_of(at, "forest")).items()
        if "tied, corrected" in mark["text"]
    ]
    assert corrected == [("color", "demo:weak")]
    assert (
        "Dashed and pale (*): the interval excludes 0, but the difference is not significant after correction."
        in "".join([*words(at), *(caption.value for caption in at.caption)])
    )


def test_a_clicked_row_shows_its_pictures_and_see_all_opens_the_counted_cases(
    show_compare, filled: Store, key: str
):
    at = show_compare(**ALL)
    subtype = next(subtype for subtype, _ in marks_of(figure_of(at, "forest")) if subtype)
    at = select_marks(at, "forest", (subtype, MODELS[2]))
    assert (one(at, "type"), one(at, "other")) == (subtype, MODELS[2])
    assert read_open_row(at) == (subtype, MODELS[2])
    compared = views.paired_tests.compare_models(
        views.runs.question_set(filled, key), MODELS, "flip"
    )
    row = compared.row(MODELS[2], subtype)
    text = words(at)
    assert f"{row.only_base}" in text and f"fooled {NAMES[0]}, not {NAMES[2]}" in text
    n_fooled = [row.both + n for n in (row.only_base, row.only_model)]
    assert (
        f"{NAMES[0]} is fooled by {n_fooled[0]} of {row.n_lies} wrong captions and {NAMES[2]} by {n_fooled[1]}: a "
        f"difference of {forest.signed((n_fooled[1] - n_fooled[0]) / row.n_lies, 'rate')} points. {row.both} fool "
        f"both models, and {row.neither} fool neither."
    ) in text
    links = [link.proto for link in at.get("page_link") if link.proto.label == "See all"]
    for link, count in zip(links, [n for n in (row.only_base, row.only_model) if n], strict=True):
        query = dict(pair.split("=") for pair in link.query_string.split("&"))
        assert query["type"] == subtype and query["bucket"] == "only_first"
        explored = show_compare.func(
            *show_compare.args[:2],
            "explore",
            **{name: value.replace("%3A", ":") for name, value in query.items()},
        )
        assert values_of(explored, "wall")["heading"].startswith(f"{count:,} ")


def test_the_pickers_of_the_row_do_what_a_click_on_the_plot_does(show_compare):
    at = show_compare(**ALL)
    types = [subtype for subtype, _ in marks_of(figure_of(at, "forest"))]
    other = next(subtype for subtype in types if subtype not in ("", read_open_row(at)[0]))
    at.selectbox(key="row_type").set_value(other).run()
    assert one(at, "type") == other
    at.selectbox(key="row_model").set_value(MODELS[2]).run()
    assert read_open_row(at) == (other, MODELS[2])
    at.selectbox(key="row_type").set_value("").run()
    assert read_open_row(at) == ("", MODELS[2]) and at.query_params["type"] in ("", [""])


def test_each_column_has_the_cases_that_fool_only_its_model_with_one_card_per_picture(
    show_compare, filled: Store, key: str
):
    at = show_compare(**ALL, type="")
    question_set = views.runs.question_set(filled, key)
    for part, pair in (("left_cards", MODELS[:2]), ("right_cards", MODELS[1::-1])):
        chosen = side_filter("flip", *pair, "")
        cards, _, total = views.wall.wall(question_set, chosen, 1, compare.SHOWN)
        values = values_of(at, part)
        assert [card["id"] for card in values["cards"]] == [card.id for card in cards]
        assert f"{total:,}" in re.findall(r"vp-big[^>]*>([\d,]+)<", bodies(at))
        assert len({card.item for card in cards}) == len(cards)
        for card, drawn in zip(cards, values["cards"], strict=True):
            states = {given.model: given.verdict for given in card.verdicts}
            assert [box["state"] for box in drawn["boxes"]] == [states[name] for name in MODELS]
            assert [box["label"].split()[0] for box in drawn["boxes"]] == ["1", "2", "Coin"]
            assert drawn["boxes"][MODELS.index(pair[0])]["state"] in ("fooled", "tied")
            assert drawn["boxes"][MODELS.index(pair[1])]["state"] == "held"


def test_a_clicked_card_opens_its_case_from_either_column(show_compare):
    at = show_compare(**ALL, type="")
    for part in ("right_cards", "left_cards"):
        case = read_cases(at, part)[0]
        opened = send_to(show_compare(**ALL, type=""), part, "open", case)
        assert one(opened, "case") == case
        assert "Picture 1 of " in words(opened)


def test_a_default_model_of_explore_is_not_the_baseline_but_a_chosen_one_is(monkeypatch, bundled):
    at = open_page(monkeypatch, bundled, "explore")
    default = at.selectbox(key="model").value
    at.query_params.clear()  # as the menu does
    at.switch_page("pages/compare.py").run()
    best = at.selectbox(key="model").value
    assert best == "demo:eqsim" != default
    at = open_page(monkeypatch, bundled, "explore", model="demo:weak")
    at.query_params.clear()
    at.switch_page("pages/compare.py").run()
    assert at.selectbox(key="model").value == "demo:weak"


def test_the_chosen_model_is_the_baseline_and_the_others_keep_their_order(show_compare):
    at = show_compare(model=MODELS[2], **{"with": f"{MODELS[1]}|{MODELS[0]}"})
    assert at.selectbox(key="model").value == MODELS[2]
    assert at.multiselect(key="with").value == [MODELS[1], MODELS[0]]
    marks = marks_of(figure_of(at, "forest"))
    assert marks["", MODELS[1]]["y"] < marks["", MODELS[0]]["y"]
    assert one(at, "with") == f"{MODELS[1]}|{MODELS[0]}"


def read_map_titles(at) -> tuple[str, str]:
    """Return the titles of the axes of the map of margins."""
    layout = json.loads(at.get("plotly_chart")[-1].proto.spec)["layout"]
    return layout["xaxis"]["title"]["text"], layout["yaxis"]["title"]["text"]


def test_the_url_selects_the_models_to_compare(show_compare):
    at = show_compare(base=MODELS[2], **{"with": MODELS[0]}, area=IN_URL, open="measured|map")
    assert at.selectbox(key="model").value == MODELS[2]
    assert "base" not in at.query_params
    assert at.multiselect(key="with").value == [MODELS[0]]
    across, up = read_map_titles(at)
    assert NAMES[2] in across and NAMES[0] in up
    at.multiselect(key="with").set_value([MODELS[1], MODELS[0]]).run()
    assert one(at, "with") == f"{MODELS[1]}|{MODELS[0]}"
    across, up = read_map_titles(at)
    assert NAMES[2] in across and NAMES[1] in up


def test_invalid_url_parameters_fall_back_to_stored_results(show_compare):
    at = show_compare(
        **ALL | {"with": "y|z"},
        area="nan,1;2,3;4,5",
        bucket="?",
        tool=":",
        other="-",
        sort="up",
        type="<b>",
        open="x|map",
        unit="inch",
        average="mode",
    )
    assert not at.error
    assert at.multiselect(key="with").value == [MODELS[1]]
    assert "shapes" not in json.loads(at.get("plotly_chart")[-1].proto.spec)["layout"]
    assert "not found: compared with it “y, z”" in at.warning[0].value


def test_a_model_keeps_its_color_and_shape_when_another_is_stored_and_in_a_read_only_copy(
    monkeypatch, tmp_path: Path, filled: Store, key: str
):
    run = views.runs.question_set(filled, key).run(MODELS[0]).key
    fewer = Store(shutil.copytree(filled.root, tmp_path / "cache"))
    shutil.rmtree(fewer.root / "runs" / run)
    marked = r"aria-hidden=\"true\" style=\"([^\"]+)\"></span> (2|Coin flip)"
    looks = set(re.findall(marked, bodies(open_page(monkeypatch, fewer, "breakdown"))))
    assert len(looks) == 2
    shutil.copytree(filled.root / "runs" / run, fewer.root / "runs" / run)
    for path in (fewer.root, *fewer.root.rglob("*")):
        path.chmod(path.stat().st_mode & ~0o222)
    monkeypatch.setenv("VLPROBE_READ_ONLY", "1")
    assert set(re.findall(marked, bodies(open_page(monkeypatch, fewer, "breakdown")))) == looks
    grey = charts.styles.Look(charts.styles.GREY, "circle").css
    assert [grey in html.unescape(style) for style, name in looks if name == "Coin flip"] == [True]


def test_an_emptied_list_of_models_stays_empty_and_the_page_offers_models(show_compare):
    at = show_compare(model=MODELS[1])
    assert at.multiselect(key="with").value == [MODELS[0]]
    at.multiselect(key="with").set_value([]).run()
    assert not at.exception
    assert at.multiselect(key="with").value == []
    assert one(at, "with") == ""
    assert "Compare 2 with..." in words(at)
    assert "Choose up to 7 models, in the list above." in words(at)
    assert not figure_of(at, "forest")
    at.multiselect(key="with").set_value([MODELS[2]]).run()
    assert at.multiselect(key="with").value == [MODELS[2]]
    assert {model for _, model in marks_of(figure_of(at, "forest"))} == {MODELS[2]}


def test_a_compared_model_chosen_as_baseline_swaps_places_with_the_old_baseline(show_compare):
    at = show_compare(model=MODELS[1], **{"with": MODELS[0]})
    at.selectbox(key="model").set_value(MODELS[0]).run()
    assert at.multiselect(key="with").value == [MODELS[1]]
    assert not at.warning
    at.selectbox(key="model").set_value(MODELS[2]).run()
    assert at.multiselect(key="with").value == [MODELS[1]]


def test_a_link_to_missing_models_shows_a_warning_before_other_models_are_compared(show_compare):
    at = show_compare(base="gone", **{"with": f"{MODELS[2]}|also*gone"})
    assert (
        "This link refers to results that are not on this computer: model “gone”"
        in at.warning[0].value
    )
    at.button(key="show_what_is_here").click().run()
    assert not at.warning
    at = show_compare(model=MODELS[0], **{"with": f"{MODELS[2]}|also*gone"})
    assert r"compared with it “also\*gone”" in at.warning[0].value
    assert at.multiselect(key="with").value == [MODELS[2]]


NOT_STORED = [  # kinds without cases under the options of `every_probe`
    ("series", "boundary"),
    ("eqben", "foil"),
    ("visla", "i2t-pair"),
    ("rococo", "clean_i2t"),
    ("rococo", "clean_t2i"),
]


KINDS = [
    (probe, kind)
    for probe, presentation in presentations().items()
    for kind in presentation.kinds
    if (probe, kind) not in NOT_STORED
]


@pytest.mark.parametrize(("probe", "kind"), tiers(KINDS, dict(reversed(KINDS)).items()))
def test_compare_opens_every_kind_of_every_probe_without_an_error(
    monkeypatch, every_probe: Store, probe: str, kind: str
):
    keys = views.runs.question_sets(every_probe).set_index("probe")["case_key"]
    at = open_page(
        monkeypatch, every_probe, "compare", set=keys[probe], kind=kind, open="measured|map|details"
    )
    assert not at.error
    assert "nan" not in words(at)
    assert one(at, "kind") == kind
    group_keys = {element.key for element in at.get("button_group")}
    moves = presentations()[probe].kind(kind).is_movement
    assert ("bucket" in group_keys) != moves
    for part in ("left_cards", "right_cards", "map_cards"):
        for card in values_of(at, part).get("cards", []):
            assert len(card["boxes"]) == 2
            assert all(box["label"] for box in card["boxes"])
            if moves:
                assert {box["state"] for box in card["boxes"]} == {"moved"}


def test_the_scorecard_and_the_differences_have_the_same_models(monkeypatch, tmp_path: Path):
    monkeypatch.delenv(shipped.SETTING, raising=False)
    store = StoreAboveShipped(tmp_path, shipped.PUBLISHED_FOLDER, shipped.FOLDER)
    names = ("CLIP_TROHN-Text", "CLIP_TROHN-Img", "GPT-4V", "CLIP_COCO", "CLIP ViT-B/32")
    text, image, gpt, coco, _ = (f"published:{name}" for name in names)
    key = case_key_of(store, dataset="bundled:SugarCrepe")
    at = open_page(monkeypatch, store, "compare", set=key, model=gpt, tab="differences")
    assert len(at.multiselect(key="with").value) == 4
    at.segmented_control(key="tab").set_value("scorecard").run()
    (picker,) = (each for each in at.multiselect if each.key.startswith("shown_models_"))
    picker.set_value([text, image, gpt]).run()
    at.segmented_control(key="tab").set_value("differences").run()
    assert at.multiselect(key="with").value == [text, image]
    at.multiselect(key="with").set_value([text, coco]).run()
    at.segmented_control(key="tab").set_value("scorecard").run()
    (picker,) = (each for each in at.multiselect if each.key.startswith("shown_models_"))
    assert set(picker.value) == {text, gpt, coco}
    at.button(key="shown_models_all").click().run()
    at.segmented_control(key="tab").set_value("differences").run()
    assert len(at.multiselect(key="with").value) == 4
    at.query_params.clear()  # the menu leads to the tab that was open last
    at.run()
    assert at.query_params["tab"] in ("differences", ["differences"]) and not at.exception
