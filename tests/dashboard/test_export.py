"""Every figure and table of a page can be exported with the functions that the commands use."""

import io
import json

import pandas as pd
import plotly.graph_objects as go
import pytest

from tests.conftest import tiers
from tests.dashboard.test_pages import bodies
from vlprobe import views
from vlprobe.dashboard import export
from vlprobe.dashboard.compare import rows_table
from vlprobe.render.sentences import sentence_names
from vlprobe.render.text_tables import formatted
from vlprobe.storage.store import Store
from vlprobe.surfaces import paper
from vlprobe.views.paired_tests import compare_models

FIGURE_SUFFIXES, TABLE_SUFFIXES = (".svg", ".pdf", ".png"), (".csv", ".tex", ".md")
PAGES = {
    "lgip": ("tradeoff", "breakdown", "compare"),
    "rococo": ("retrieval", "compare"),
    "eqben": ("pairs",),
    "visla": ("triplets",),
    "prsm": ("rankings",),
    "series": ("series",),
}


@pytest.fixture(scope="module")
def keys(every_probe: Store) -> dict[str, str]:
    """Return the key of each probe's question set."""
    return dict(views.runs.question_sets(every_probe).set_index("probe")["case_key"])


@pytest.mark.parametrize("probe", tiers(PAGES, ("lgip", "eqben")))
def test_each_figure_of_a_page_has_a_menu_with_svg_pdf_and_png(
    open_probe, keys, probe, monkeypatch
):
    monkeypatch.setattr(export, "can_render", lambda: True)
    for page in PAGES[probe]:
        query = {"open": "map|kinds|numbers|measured"} if page in ("compare", "tradeoff") else {}
        at = open_probe(page, set=keys[probe], **query)
        buttons = {button.key for button in at.get("download_button")}
        charts = {chart.key for chart in at.get("plotly_chart")}
        charts = {"margins" if "|" in name else name for name in charts}
        assert charts
        for name in charts:
            for file in (name, f"{name}_column"):  # 7 inches wide, and for one of two columns
                assert {f"{file}{suffix}" for suffix in FIGURE_SUFFIXES} <= buttons, (page, name)
        tables = {name.rpartition(".")[0] for name in buttons if str(name).endswith(".csv")}
        for name in tables:
            assert {f"{name}{suffix}" for suffix in TABLE_SUFFIXES} <= buttons, (page, name)


def test_without_a_browser_the_export_menu_names_the_missing_extra(open_probe, keys, monkeypatch):
    monkeypatch.setattr(export, "can_render", lambda: False)
    at = open_probe("compare", set=keys["lgip"], tab="differences")
    assert "vlprobe[figures]" in bodies(at)
    assert "forest.svg" not in {button.key for button in at.get("download_button")}


def test_an_exported_figure_is_light_and_has_the_width_of_the_text(open_probe, keys, monkeypatch):
    made = []
    draw = lambda *given, **named: made.append((*given, named))  # noqa: E731
    monkeypatch.setattr(export, "can_render", lambda: True)
    monkeypatch.setattr(export, "draw_menu", draw)
    monkeypatch.setattr("vlprobe.dashboard.chart.draw_menu", draw)
    open_probe("tradeoff", set=keys["lgip"], open="kinds")
    panels = [given[1]() for given in made if given[0].startswith("type_")]
    assert panels and all(panel.layout.annotations for panel in panels)  # titles and names
    at = open_probe("compare", set=keys["lgip"], tab="differences")
    ((_, figure, menu),) = [given for given in made if given[0] == "forest"]
    table, caption, text = (menu[name] for name in ("table", "caption", "text"))
    assert paper.print_style(figure(), "column").layout.width == paper.WIDTHS["column"]
    printed = paper.print_style(figure())
    shown = json.loads(at.get("plotly_chart")[0].proto.spec)
    page = go.Figure(shown)
    assert printed.layout.width == paper.WIDTHS["text"] and printed.layout.paper_bgcolor == "white"
    assert printed.layout.font.color == "#3a4454"
    marks = [list(trace.x) for trace in printed.data if trace.mode == "markers"]
    assert marks == [trace["x"] for trace in shown["data"] if trace.get("mode") == "markers"]
    assert "Holm" in caption or "p < .05" in caption
    models = {*table()["baseline"], *table()["model"]}
    drawn = [[each.text for each in figure.layout.annotations] for figure in (printed, page)]
    assert "Click" not in f"{caption} {drawn[0]}" and "Click a row" in str(drawn[1])
    assert all(name in caption for name in ("Compared with", *sentence_names(models, {}).values()))
    rows = pd.read_csv(io.StringIO(formatted(table(), "csv")))
    assert {"baseline", "subtype", "difference", "p_holm", "model_name", "type"} <= set(rows)
    first, _, *lines, blank, note = text("markdown").splitlines()
    assert not blank and "paired permutation test by picture" in note and "Holm" in note
    assert first.startswith("| Type | Model | Fooled |") and len(lines) == len(rows)
    assert "&lt;" not in text("markdown") and ":" not in lines[0]
    assert text("latex").count(" \\\\\n") == 1 + len(rows) and "\u2212" not in text("latex")


def test_the_exported_table_has_the_rows_of_the_comparison(every_probe, keys):
    question_set = views.runs.question_set(every_probe, keys["lgip"])
    tests = compare_models(question_set, question_set.models[:2], "flip")
    names = {model: model for model in question_set.models}
    table = rows_table(tests, question_set.presentation.kind("flip"), names)
    assert table["difference"].tolist() == [row.difference for row in tests.rows]
    assert formatted(table, "latex").splitlines()[8] == r"\toprule"
    assert formatted(table, "markdown").startswith("| baseline | kind |")
