"""The page of published numbers: every cell of a paper, next to the numbers of a stored run."""

import json
import math

import pandas as pd
import pytest
from streamlit.dataframe_util import convert_arrow_bytes_to_pandas_df

from tests.conftest import tiers
from tests.dashboard.test_pages import bodies, open_page
from vlprobe import views
from vlprobe.render.html import papers
from vlprobe.storage.store import Store
from vlprobe.views.records import PrintedCell, records

RANDOM = "control:random"


def table_of(at) -> pd.DataFrame:
    """Return the values of the page's table; `read_texts` returns the texts of its cells."""
    return at.dataframe[0].value


def read_texts(at) -> pd.DataFrame:
    """Return the texts of the table's cells, as the browser draws them."""
    return convert_arrow_bytes_to_pandas_df(at.dataframe[0].proto.arrow_data.styler.display_values)


@pytest.mark.parametrize("paper", tiers(views.published.SOURCES, ("prsm",)))
def test_a_paper_has_all_its_cells_in_one_table_with_the_numbers_of_the_run(
    open_probe, every_probe: Store, paper: str
):
    at = open_probe("published", paper=paper, model=RANDOM)
    assert not at.error
    key = at.selectbox(key="set").value
    question_set = views.runs.question_set(every_probe, key)
    assert question_set.probe == paper
    cells = views.papers.beside(question_set, RANDOM)
    assert f"**{len(cells):,}** printed numbers" in " ".join(e.value for e in at.markdown)
    assert "is another model. It has a number" in bodies(at)
    table, texts = table_of(at), read_texts(at)
    assert len(table) == len(cells)
    for row, values, text in zip(
        records(PrintedCell, cells), table.to_dict("records"), texts.to_dict("records"), strict=True
    ):
        assert text["Printed"] == row.printed + papers.UNITS.get(row.unit, "")
        assert values["Printed"] == float(row.printed) and values["Model"] == row.model
        assert row.note.removeprefix("suspect: ") in values["Remark"]
        decimals = len(row.printed.partition(".")[2])
        if math.isnan(row.run):
            assert text["This run"] == ""
        else:
            assert text["This run"].removeprefix("+").startswith(f"{row.run:.{decimals}f}")
        if not math.isnan(row.low):
            ends = f"{row.low:.{decimals}f} to {row.high:.{decimals}f}"
            assert values["95 % interval"] == ends


def test_the_table_number_the_remark_and_words_filter_the_rows(open_probe):
    at = open_probe("published", paper="lgip", table="5", remark="doubted", words="siglip2 strong")
    table = table_of(at)
    assert table["Model"].tolist() == ["SigLIP2 base-p16-224"] and table["Table"].tolist() == [5]
    assert papers.REMARKS["doubted"] in table["Remark"].iloc[0]
    assert "No printed number" in open_probe("published", words="zebra").info[0].value


def test_every_row_has_a_separate_remark(open_probe):
    table = table_of(open_probe("published", paper="lgip", table="2", words="siglip base-p16-384"))
    assert table["Remark"].str.contains("pads text to the longest").sum() == 3


def test_without_a_run_the_page_shows_the_printed_numbers(monkeypatch, store: Store):
    at = open_page(monkeypatch, store, "published", paper="prsm")
    assert "0.642" in set(read_texts(at)["Printed"])
    assert "not been run" in at.info[0].value
    config = json.loads(at.dataframe[0].proto.columns)
    assert config["This run"]["hidden"] and config["95 % interval"]["hidden"]
