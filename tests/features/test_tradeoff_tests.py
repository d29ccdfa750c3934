"""Each test with two properties has a trade-off, with its axes and the numbers of the views."""

import math
import re

import pytest

from tests.conftest import make_tiny, question_set_of
from tests.dashboard.test_pages import bodies, open_page
from tests.dashboard.walls import figure_of
from tests.features.test_tradeoff_data import boxes
from vlprobe import views
from vlprobe.features.tradeoff.data import (
    HEIGHT,
    MARGINS,
    PUBLISHED,
    figure_table,
    in_columns,
    other_note,
    short_name,
    table_text,
    trade_off_data,
    trade_off_figure,
    trade_offs_by_type,
)
from vlprobe.metrics.tie_groups import group_letters
from vlprobe.render.charts.names import LETTER, LINE, NARROW, WIDTHS
from vlprobe.render.charts.styles import styles
from vlprobe.render.sentences import sentence_names
from vlprobe.render.text_tables import formatted
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.shipped import FOLDER, PUBLISHED_FOLDER, SETTING, StoreAboveShipped
from vlprobe.storage.store import Store

STORE = Store(FOLDER)
AXES = {
    ("visla", ""): ("t2t_accuracy", "i2t_accuracy"),
    ("rococo", ""): ("i2t_drop_rate", "i2t_r1"),
    ("rococo", "t2i_r1"): ("t2i_drop_rate", "t2i_r1"),
    ("eqben", ""): ("equivariance_deviation", "group_score"),
}


@pytest.mark.parametrize(("probe", "up"), AXES)
def test_marks_have_the_estimates_and_the_better_side_is_right(probe: str, up: str):
    questions = question_set_of(STORE, probe)
    trade_off = trade_off_data(questions, up)
    x, y = AXES[probe, up]
    assert (trade_off.down.name, trade_off.up.name) == (x, y)
    table = views.estimates.estimates(questions).set_index(["metric", "model"])["value"]
    for point in trade_off.points:
        assert (point.x, point.y) == pytest.approx((table[x, point.model], table[y, point.model]))
    names = sentence_names(questions.models, {})
    figure = trade_off_figure(trade_off, styles(questions.models), names)
    left, right = figure.layout.xaxis.range
    assert (left > right) == (questions.metrics[x].direction == "down")
    heading = trade_off.finding(names).heading
    assert "rewording" not in heading + trade_off.finding(names).detail
    if trade_off.lowest.state == trade_off.highest.state == "leads":
        assert "highest" in heading
    assert "r@1" not in heading + trade_off.finding(names).detail
    assert trade_off.printed == ()  # no paper publishes both axes


def test_only_sets_with_both_axes_are_offered_and_others_have_a_note(monkeypatch):
    keys = views.tradeoff.sets_with_trade_off(STORE)
    probes = {row.probe for row in views.runs.question_set_rows(STORE) if row.case_key in keys}
    assert probes == {"lgip", "rococo", "eqben", "visla"}
    at = open_page(monkeypatch, STORE, "tradeoff", set=question_set_of(STORE, "visla").key)
    assert not at.exception
    assert at.selectbox(key="trade_off_of").value == "visla"
    assert "lookalikes rejected with the picture" in str(at.get("plotly_chart")[0].proto.spec)
    at.selectbox(key="trade_off_of").set_value("eqben").run()
    assert at.query_params["set"] == question_set_of(STORE, "eqben").key and not at.exception
    at = open_page(monkeypatch, STORE, "tradeoff", set=question_set_of(STORE, "prsm").key)
    assert "has no trade-off, so this page shows another question set" in bodies(at)


def test_no_interval_and_no_other_text_crosses_the_name_of_a_mark():
    questions = question_set_of(STORE, "lgip")
    drawn = trade_off_data(questions)
    names = sentence_names(questions.models, {})
    figure = trade_off_figure(drawn, styles(questions.models), names)
    (rings,) = [trace for trace in figure.data if trace.name == PUBLISHED]
    assert list(rings.text) == [str(number) for number in range(1, len(rings.x) + 1)]
    shown = [short_name(ring.model) for ring in drawn.printed if not drawn.side(ring)]
    assert len(shown) == len(rings.x) and all(name in rings.meta for name in shown)
    in_legend = {trace.name for trace in figure.data if trace.customdata and trace.showlegend}
    (left, right), (bottom, top) = figure.layout.xaxis.range, figure.layout.yaxis.range
    height = HEIGHT - MARGINS["t"] - MARGINS["b"]
    (note,) = [each for each in figure.layout.annotations if "Longer-trained" in each.text]
    assert note.ax == 0 and note.arrowcolor == "rgba(0,0,0,0)"  # no leader on its interval
    assert any("E<sub>inv</sub>" in each.text for each in figure.layout.annotations)
    for width in WIDTHS:
        placed = boxes(figure, width)
        if width != WIDTHS[NARROW]:
            beside = {re.sub("</?b>", "", text) for text, _ in placed}
            assert beside.isdisjoint(in_legend) and beside | in_legend == {*names.values()}
            assert len(in_legend) <= 1
        for text, (x0, y0, x1, y1) in placed:
            assert x1 < width - LETTER * len("better") or y1 < height - LINE + 1, text
            for point in drawn.points:
                x = width * (point.x - left) / (right - left)
                y = height * (point.y - bottom) / (top - bottom)
                low, high = (
                    height * (end - bottom) / (top - bottom) for end in (point.y_low, point.y_high)
                )
                assert not (x0 < x < x1 and low < y1 and y0 < high), (text, point.model, width)
                near, far = (
                    width * (end - left) / (right - left) for end in (point.x_high, point.x_low)
                )
                assert not (y0 < y < y1 and near < x1 and x0 < far), (text, point.model, width)


def test_panels_by_type_share_the_axes_of_the_test():
    questions = question_set_of(STORE, "visla")
    by_type = trade_offs_by_type(questions, trade_off_data(questions))
    assert {"spatial", "generic"} == set(by_type)
    assert len({each.frame for each in by_type.values()}) == 1
    assert not any(math.isnan(point.x) for each in by_type.values() for point in each.points)


def test_the_exported_table_has_each_mark_of_the_figure_with_its_metrics():
    questions = question_set_of(STORE, "lgip")
    names = {model: f"Name of {model}" for model in questions.models}
    drawn = trade_off_data(questions)
    table = figure_table(questions, drawn, names)
    whole = table.loc[table["type"] == "all"].set_index("model")
    assert drawn.printed and set(whole["source"]) == {"run", "published"}
    for point in (*drawn.points, *drawn.printed):
        values = whole.loc[point.model, ["positive_rate", "invariance_error"]].tolist()
        assert values == pytest.approx([point.y, point.x], nan_ok=True)
    first = drawn.points[0]
    assert whole.loc[first.model, "name"] == names[first.model]
    words = in_columns(drawn, names)  # for a paper, only the rows of the figure
    assert len(words) == len(whole) < len(table) and next(iter(words)) == "Model"
    assert words.loc[0, "Positive rate"].startswith(f"{100 * first.y:.1f} % (")
    is_published = whole["source"] == "published"
    assert words["Positive rate"].str.endswith("(published)").sum() == is_published.sum()
    assert "0.008 (published)" in set(words["Invariance error"])  # with the decimals of the paper
    errors = words["Invariance error"]
    assert (words != "").all(axis=None)
    assert errors.str.endswith("(published)").sum() == is_published.sum()
    for how in ("latex", "markdown"):
        assert "values that the LGIP paper prints" in table_text(questions, drawn, names, how)
    groups = views.paired_tests.metric_tie_groups(questions, only=["positive_rate"])
    letters = group_letters(groups["positive_rate"])
    for row in table_text(questions, drawn, names, "markdown").splitlines():
        model, value = [*row.split(" | "), ""][:2]
        stored = model.removeprefix("| Name of ")
        assert value.replace("**", "").partition(") ")[2] == letters.get(stored, "")
    paper = "% @misc{lgip,"
    assert paper in table_text(questions, drawn, names, "latex")
    unpublished = trade_off_data(questions, shows_published=False)
    assert paper not in table_text(questions, unpublished, names, "latex")
    assert str(int(first.y_n)) in formatted(table, "csv").splitlines()[1].split(",")
    assert f" {first.y_n:.0f} " in formatted(table, "latex").splitlines()[11]
    assert set(table["type"]) == {"all", *trade_offs_by_type(questions, drawn)}


@pytest.fixture(scope="module")
def both_sides(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return a store with edited captions for two controls, and changed pictures for one of them."""
    folder = tmp_path_factory.mktemp("both_sides")
    store, dataset = Store(folder / "cache"), make_tiny(folder / "tiny")
    edits = {"k_same": 1, "k_diff": 2}
    changes = {"changes": ["pixelate", "crop"]}
    models = ("control:random", "control:constant")
    execute(Request(models, dataset, "lgip", edits, limit=4, examine=False), store)
    execute(Request(models[:1], dataset, "pictures", changes, limit=4, examine=False), store)
    return store


def open_marks(figure: dict) -> dict[str, tuple[list[float], list[float]]]:
    """Return the ends of the line to each model's mark of the other side."""
    return {
        trace["customdata"][1][0]: (list(trace["x"]), list(trace["y"]))
        for trace in figure["data"]
        if trace["marker"].get("symbol", "").endswith("-open") and trace.get("customdata")
    }


@pytest.mark.parametrize(
    ("probe", "x", "y"),
    [
        ("lgip", "picture_invariance_error", "picture_positive_rate"),
        ("pictures", "invariance_error", "positive_rate"),
    ],
)
def test_each_model_with_edited_captions_and_changed_pictures_has_a_mark_for_both(
    both_sides: Store, probe: str, x: str, y: str
):
    sets = {row.probe: row.case_key for row in views.runs.question_set_rows(both_sides)}
    questions = views.runs.question_set(both_sides, sets[probe])
    other_set = views.runs.question_set(both_sides, sets["pictures" if probe == "lgip" else "lgip"])
    data = trade_off_data(questions)
    names = sentence_names(questions.models, {})
    figure = trade_off_figure(data, styles(questions.models), names)
    table = views.estimates.estimates(other_set).set_index(["metric", "model"])
    marks = open_marks(figure.to_dict())
    assert "control:random" in marks and "control:constant" not in marks
    for model, (xs, ys) in marks.items():
        point = data.point(model)
        expected = table.loc[(x, model), "value"], table.loc[(y, model), "value"]
        assert (xs[1], ys[1]) == pytest.approx(expected)
        assert (xs[0], ys[0]) == pytest.approx((point.x, point.y), nan_ok=True)
    (left, right), (bottom, top) = data.ranges()
    (x_end, y_end) = (ends[1] for ends in marks["control:random"])
    assert left < x_end < right and bottom < y_end < top
    exported = figure_table(questions, data, names)
    whole = exported[exported["type"] == "all"].set_index("model")
    assert whole.loc["control:random", [x, y]].tolist() == pytest.approx([x_end, y_end])
    in_words = in_columns(data, names)
    of_other = in_words[in_words["Changed"] == data.other.changed]
    assert len(of_other) == len(data.other.points)
    assert other_note(data).endswith(f"1 of {len(questions.models)}. ")
    assert trade_off_data(questions, shows_other=False).other is None


def test_the_page_shows_both_sides_or_one(monkeypatch, both_sides: Store):
    sets = {row.probe: row.case_key for row in views.runs.question_set_rows(both_sides)}
    at = open_page(monkeypatch, both_sides, "tradeoff", set=sets["lgip"], model="control:random")
    assert not at.exception and "control:random" in open_marks(figure_of(at, "tradeoff"))
    assert "Positive rate (changed picture)" in bodies(at)
    (sides,) = [group for group in at.button_group if group.key == "sides"]
    sides.set_value("one").run()
    assert not open_marks(figure_of(at, "tradeoff"))
    assert "Positive rate (changed picture)" not in bodies(at)


def test_metrics_with_equal_names_on_both_sides_get_different_labels():
    questions = question_set_of(STORE, "rococo")
    data = trade_off_data(questions)
    labels = [label for label, _ in data.rows(questions.models[0])]
    assert len({*labels}) == 4 and labels[2] == "R@1, clean gallery (mixed pictures as decoys)"


def test_a_note_explains_the_other_set_after_one_without_a_trade_off(monkeypatch, tmp_path):
    store = StoreAboveShipped(tmp_path, PUBLISHED_FOLDER, FOLDER)
    rows = views.runs.question_set_rows(store)
    (published,) = [row.case_key for row in rows if row.dataset == "bundled:SugarCrepe"]
    monkeypatch.delenv(SETTING, raising=False)
    at = open_page(monkeypatch, store, "tradeoff")
    assert "shows another question set" not in bodies(at)
    at.query_params.clear()
    at.session_state["carried_set"] = published
    at.run()
    line = "True caption or foil on SugarCrepe has no trade-off, so this page shows another"
    assert not at.exception and line in bodies(at)
    at.run()
    assert line in bodies(at)
    assert at.session_state["carried_set"] == published  # other pages still show it
    at.session_state["carried_set"] = at.query_params["set"]
    at.query_params.clear()  # a later visit from a page of this question set
    at.run()
    assert line not in bodies(at)
    figure = figure_of(at, "tradeoff")
    notes = {note["text"] for note in figure["layout"]["annotations"]}
    for trace in (t for t in figure["data"] if t.get("customdata")):
        assert trace["showlegend"] != (f"<b>{trace['name']}</b>" in notes)


@pytest.mark.parametrize("probe", ["lgip", "rococo", "eqben", "visla"])
def test_every_bundled_model_has_its_name_at_its_mark(probe: str):
    questions = question_set_of(STORE, probe)
    names = sentence_names(questions.models, {})
    figure = trade_off_figure(trade_off_data(questions), styles(questions.models), names)
    assert {f"<b>{name}</b>" for name in names.values()} <= {
        note.text for note in figure.layout.annotations
    }


@pytest.mark.parametrize("name", ["tradeoff", "compare"])
def test_the_models_to_show_are_kept_from_page_to_page_until_all_are_shown(
    monkeypatch, tmp_path, name
):
    store = StoreAboveShipped(tmp_path, FOLDER)
    monkeypatch.delenv(SETTING, raising=False)
    query = {"set": question_set_of(store, "lgip", "demo").key, "shown": "demo:scvc|demo:weak"}
    at = open_page(monkeypatch, store, name, **query)
    assert at.session_state["carried_shown"] == "demo:scvc|demo:weak"
    at.query_params.clear()  # opened from the menu
    at.run()
    assert at.query_params["shown"] == "demo:scvc|demo:weak"
    next(each for each in at.button if each.label == "Show all").click().run()
    at.query_params.clear()
    at.run()
    assert not at.exception and "shown" not in at.query_params
