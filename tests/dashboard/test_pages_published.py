"""The page of printed numbers: every cell of a paper, with those of a stored run beside them."""

import math
from functools import partial

import pytest

from tests.dashboard.test_pages import open_page, words
from vlprobe import views
from vlprobe.dashboard.lab.published import PAGE_SIZE
from vlprobe.render.html.printed import WORDS, own_number
from vlprobe.storage.store import Store
from vlprobe.views.records import PrintedCell, records

RANDOM = "control:random"


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, every_probe: Store):
    return partial(open_page, monkeypatch, every_probe)


@pytest.mark.parametrize("paper", views.published.SOURCES)
def test_a_paper_has_all_its_cells_on_pages_with_the_runs_beside_them(
    shown, every_probe: Store, paper: str
):
    at = shown("published", paper=paper, model=RANDOM)
    assert not at.error
    key = at.selectbox(key="set").value
    question_set = views.runs.question_set(every_probe, key)
    assert question_set.probe == paper
    cells = views.printed.beside(every_probe, question_set, RANDOM)
    assert f"**{len(cells):,}** numbers" in " ".join(element.value for element in at.markdown)
    text = words(at)
    for row in records(PrintedCell, cells.head(PAGE_SIZE)):
        assert row.printed in text and row.note.removeprefix("suspect: ") in text
        if not math.isnan(row.run):
            assert own_number(row, row.run) in text


def test_a_table_a_remark_and_words_narrow_what_is_shown(shown):
    at = shown("published", paper="lgip", table="5", remark="doubted", words="siglip2 strong")
    text = words(at)
    assert "SigLIP2 base-p16-224" in text and text.count("Table 5") == 1
    assert WORDS["doubted"] in text
    assert "No printed number" in shown("published", words="zebra").info[0].value


def test_a_remark_of_several_rows_in_a_row_is_said_once(shown):
    text = words(shown("published", paper="lgip", table="2", words="siglip base-p16-384"))
    assert text.count("pads text to the longest") == 1 and text.count("as above") == 2


def test_without_a_run_the_numbers_stand_alone(monkeypatch, store: Store):
    at = open_page(monkeypatch, store, "published", paper="prsm")
    assert "0.642" in words(at)
    assert "Nobody was asked" in at.info[0].value
