"""Explore's sentence: another kind leads to its own questions, and no two choices are called alike."""

import functools
import shutil
from pathlib import Path

import pytest

from tests.dashboard.test_pages import open_page
from tests.dashboard.walls import card_ids, send
from tests.probes.test_common import make
from vlprobe import views
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.store import Store

ONE = "control:random"


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch):
    return functools.partial(open_page, monkeypatch)


def test_another_kind_of_another_probe_leads_to_its_questions(
    shown, tmp_path: Path, compared: Store
):
    store = Store(shutil.copytree(compared.root, tmp_path / "cache"))
    execute(Request((ONE,), make("visla", tmp_path / "visla", 4), "visla"), store)
    at = shown(store, "explore", kind="flip", type="color")
    at.selectbox(key="kind").set_value("visla:t2t").run()
    assert not at.exception and not at.warning
    assert at.query_params["kind"] == "t2t" and "type" not in at.query_params
    sets = views.runs.question_sets(store)
    assert at.query_params["set"] == sets[sets["probe"] == "visla"]["case_key"].iloc[0]
    assert at.selectbox(key="model").value == ONE
    datasets = at.selectbox(key="dataset").options
    assert len(datasets) == 2
    at.selectbox(key="dataset").set_value(sets[sets["probe"] == "lgip"]["dataset"].iloc[0]).run()
    assert at.selectbox(key="kind").value == "flip"


def test_two_tables_of_one_name_are_told_apart_and_a_press_stays_where_it_is(shown, tmp_path: Path):
    store = Store(tmp_path / "cache")
    for probe in ("rococo", "prsm"):
        execute(Request((ONE,), make(probe, tmp_path / probe, 4), probe), store)
    keys = views.runs.question_sets(store)["case_key"].tolist()
    for key in keys:
        at = shown(store, "explore", set=key)
        options = at.selectbox(key="dataset").options
        assert len(set(options)) == len(options) == 2
        at = send(at, "wall", "open", card_ids(at)[0])
        assert at.query_params["set"] in (key, [key])
