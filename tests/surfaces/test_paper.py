"""`vlprobe figure`: the figures of pages as files for a paper, with captions."""

import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

import vlprobe
from tests.conftest import call, make_tiny
from vlprobe import views
from vlprobe.render.sentences import sentence_names
from vlprobe.surfaces import paper
from vlprobe.views.runs import QuestionSet

MODELS = ["control:random", "control:constant"]
CHROME = [name for name in ("chromium", "google-chrome", "chrome") if shutil.which(name)]
needs_chrome = pytest.mark.skipif(not CHROME, reason="needs Chrome or Chromium")


@pytest.fixture(scope="module")
def question_set(tmp_path_factory: pytest.TempPathFactory) -> QuestionSet:
    """Return a run of both controls on six pictures."""
    folder = tmp_path_factory.mktemp("paper")
    results = vlprobe.run(MODELS, make_tiny(folder / "tiny"), cache=folder / "cache", examine=False)
    return results.question_set


def test_a_figure_has_the_numbers_of_show_and_its_caption_the_counts(question_set):
    figure, caption = paper.printed_figure(question_set, "trade-off", "text")
    table = views.estimates.estimates(question_set).set_index(["metric", "model"])["value"]
    marks = {
        trace["customdata"][0][0]: (trace["x"][0], trace["y"][0])
        for trace in figure.data
        if trace["customdata"] is not None
    }
    assert marks == {
        model: pytest.approx((table["invariance_error", model], table["positive_rate", model]))
        for model in marks
    }
    assert set(marks) == set(MODELS)
    run = question_set.runs[0]
    assert f"n = {run.n_cases:,} cases, {run.n_items:,} items." in caption
    assert "95 % intervals" in caption and "Click" not in caption


def test_a_comparison_names_its_test_and_correction(question_set):
    figure, caption = paper.printed_figure(question_set, "compare", "column")
    assert figure["layout"]["width"] == 336 and figure["layout"]["paper_bgcolor"] == "white"
    assert "corrected for" in caption and "permutation" in caption and "Click" not in caption
    assert any(trace["customdata"] is not None for trace in figure.data)


@pytest.mark.parametrize("name", [name for name in paper.FIGURES if name != "steps"])
def test_every_figure_has_the_chosen_width_and_the_counts_in_its_caption(question_set, name):
    figure, caption = paper.printed_figure(question_set, name, "column")
    run = question_set.runs[0]
    assert figure["layout"]["width"] == 336 and "Click" not in caption
    source = f": n = {run.n_cases:,} cases, {run.n_items:,} items. Run with vlprobe. "
    assert source in caption and caption.endswith(f"results of {run.finished[:10]}.")


def test_a_scorecard_a_curve_and_a_map_have_the_stored_numbers(question_set):
    estimates = views.estimates.estimates(question_set).set_index(["metric", "model"])["value"]
    scorecard, _ = paper.printed_figure(question_set, "scorecard", "text")
    marks = {tuple(trace["customdata"][0]): trace["x"][0] for trace in scorecard.data}
    shares = {model: marks[model, "flip", ""] for model in MODELS}
    assert shares == {
        model: pytest.approx(1 - estimates["positive_rate", model]) for model in MODELS
    }
    curves, _ = paper.printed_figure(question_set, "strength", "text")
    table = views.estimates.estimates(question_set, "strength_bin")
    rates = table.loc[(table["metric"] == "positive_rate") & table["value"].notna(), "value"]
    drawn = [
        value
        for trace in curves.data
        if trace["error_y"]["array"] is not None
        for value in trace["y"]
    ]
    assert sorted(drawn) == pytest.approx(sorted(rates)) and len(drawn)
    cases, caption = paper.printed_figure(question_set, "map", "text", MODELS[::-1])
    assert {trace["type"] for trace in cases.data} == {"scatter"}
    flips = sum(len(trace["x"]) for trace in cases.data)
    assert f"{flips:,} of {flips:,} cases are drawn." in caption
    assert caption.startswith("Margins of Always the same and Coin flip")


@needs_chrome
def test_svg_has_the_chosen_width_and_the_names_as_text(question_set, tmp_path):
    store = question_set.store
    pytest.importorskip("kaleido")
    out = tmp_path / "figure.svg"
    words = ("figure", "trade-off", str(out), "--set", question_set.key, "--width", "column")
    printed = call(store.root, *words).stdout
    assert re.fullmatch(r".* n = [\d,]+ cases, [\d,]+ items\. Run with vlprobe\. .*\n", printed)
    root = ElementTree.parse(out).getroot()
    texts = " ".join(root.itertext())
    assert root.get("width") == "336" and "Positive rate" in texts and "Coin flip" in texts
    assert "exists" in call(store.root, *words, code=1).stderr


@needs_chrome
@pytest.mark.full
def test_pdf_embeds_its_fonts_and_png_stores_its_resolution(question_set, tmp_path):
    store = question_set.store
    pytest.importorskip("kaleido")
    from PIL import Image

    for suffix in ("pdf", "png"):
        (tmp_path / f"f.{suffix}").write_bytes(b"old")
        call(store.root, "figure", "compare", str(tmp_path / f"f.{suffix}"), "--force")
    content = (tmp_path / "f.pdf").read_bytes()
    assert content.startswith(b"%PDF") and b"/FontFile" in content
    with Image.open(tmp_path / "f.png") as image:
        assert image.info["dpi"] == pytest.approx((384, 384), abs=1)
        assert image.width == 672 * paper.PNG_SCALE


@needs_chrome
@pytest.mark.full
@pytest.mark.parametrize("width", paper.WIDTHS)
def test_files_of_the_scorecard_have_the_stated_size(question_set, tmp_path, width):
    store = question_set.store
    pytest.importorskip("kaleido")
    from PIL import Image

    for suffix in ("pdf", "png"):
        call(store.root, "figure", "scorecard", str(tmp_path / f"f.{suffix}"), "--width", width)
    inches = {"column": 3.5, "text": 7}[width]
    with Image.open(tmp_path / "f.png") as image:
        assert image.width / image.info["dpi"][0] == pytest.approx(inches, abs=0.01)
        height = image.height / image.info["dpi"][1]
    assert height <= 9
    box = re.search(rb"/MediaBox ?\[([\d. ]+)\]", (tmp_path / "f.pdf").read_bytes())
    assert box is not None
    _, _, right, top = map(float, box[1].split())
    assert (right / 72, top / 72) == pytest.approx((inches, height), abs=0.02)


def test_a_scorecard_in_a_column_has_two_panels_in_a_row(question_set):
    figure, _ = paper.printed_figure(question_set, "scorecard", "column")
    panels = {figure.layout[name].domain for name in figure.layout if name.startswith("xaxis")}
    assert len(panels) == 2 and len({trace.customdata[0][2] for trace in figure.data}) > 1


@pytest.mark.parametrize("width", paper.WIDTHS)
def test_marks_in_print_are_smaller_than_most_intervals_and_titles_of_rows_fit(question_set, width):
    figure, _ = paper.printed_figure(question_set, "compare", width)
    layout = figure.layout
    most = {"column": paper.SMALL_MARK, "text": paper.MARK}[width]
    assert all(trace.marker.size <= most for trace in figure.data)
    longest = max(len(line) for text in layout.yaxis.ticktext for line in text.split("<br>"))
    assert layout.margin.l > 0.5 * layout.font.size * (longest - len("<b></b>"))
    assert layout.width - layout.margin.l - layout.margin.r > layout.width / 3
    assert layout.height <= paper.PAGE[1]


def test_a_trade_off_for_a_column_has_all_names_in_the_legend_and_numbers_above_intervals(
    question_set,
):
    figure, _ = paper.printed_figure(question_set, "trade-off", "column")
    names = {trace.name for trace in figure.data if trace.error_x.array and trace.showlegend}
    assert names == set(sentence_names(question_set.models, {}).values())
    assert not {f"<b>{name}</b>" for name in names} & {
        note.text for note in figure.layout.annotations
    }
    (place,) = [n for n, trace in enumerate(figure.data) if trace.mode == "markers+text"]
    assert figure.data[place].name == "published"  # two columns of names fit; the caption has these
    lines = [
        n
        for n, trace in enumerate(figure.data)
        if trace.error_x.array and trace.error_x.visible is None
    ]
    marks = [n for n, trace in enumerate(figure.data) if trace.error_x.visible is False]
    assert max(lines) < place < min(marks) and len(lines) == len(marks)


def test_an_unknown_figure_output_model_or_result_gives_one_line(
    question_set, tmp_path, monkeypatch
):
    store = question_set.store
    out = str(tmp_path / "f.svg")
    line = call(store.root, "figure", "tradeof", out, code=1).stderr
    assert "No figure named 'tradeof'. Did you mean 'trade-off'?" in line
    assert (
        "Expected one of: .svg, .png, .pdf"
        in call(store.root, "figure", "compare", "f.gif", code=1).stderr
    )
    assert "No stored results" in call(tmp_path / "none", "figure", "compare", out, code=1).stderr
    unknown = call(store.root, "figure", "map", out, "--model", "control:rondom", code=1).stderr
    assert "No model with results named 'control:rondom'. Did you mean 'control:random'?" in unknown
    single = call(store.root, "figure", "compare", out, "--model", MODELS[0], code=1).stderr
    assert "compares two to 8 models" in single and "Models chosen: 1" in single
    monkeypatch.setattr(paper, "find_spec", lambda name: None)
    monkeypatch.setitem(paper.MOST_MODELS, "scorecard", 1)  # as if there were many models
    few = call(store.root, "figure", "scorecard", out, code=1).stderr
    assert "the first 1 of 2 models: " in few
    lacking = call(store.root, "figure", "compare", out, code=1).stderr
    assert "pip install 'vlprobe[figures]'" in lacking and len(lacking.splitlines()) == 1
    assert not Path(out).exists()
