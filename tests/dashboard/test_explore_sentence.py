"""Explore's sentence: a kind opens its question set, and every choice has a different label."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.dashboard.walls import card_ids, send
from tests.probes.test_common import make
from vlprobe import views
from vlprobe.render.words import model_name
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.store import Store
from vlprobe.views.filter import region_text

ONE = "control:random"


def test_a_kind_of_another_probe_opens_its_question_set(
    show_page, tmp_path: Path, store_copy: Store
):
    execute(Request((ONE,), make("visla", tmp_path / "visla", 4), "visla"), store_copy)
    at = show_page(store_copy, "explore", kind="flip", type="color")
    sets = views.runs.question_sets(store_copy)
    visla = sets[sets["probe"] == "visla"]["case_key"].iloc[0]
    at.selectbox(key="kind").set_value(f"{visla}:t2t").run()
    assert not at.exception and not at.warning
    assert at.query_params["kind"] == "t2t" and "type" not in at.query_params
    assert at.query_params["set"] == visla
    assert at.selectbox(key="model").value == ONE
    datasets = at.selectbox(key="dataset").options
    assert len(datasets) == 2
    at.selectbox(key="dataset").set_value(sets[sets["probe"] == "lgip"]["case_key"].iloc[0]).run()
    assert at.selectbox(key="kind").value == "flip"


def test_a_kind_of_another_dataset_is_listed_with_the_dataset_and_a_changed_model(
    show_page, tmp_path: Path, store_copy: Store
):
    execute(
        Request(("control:constant",), make("visla", tmp_path / "other", 4), "visla"), store_copy
    )
    at = show_page(store_copy, "explore", kind="flip", model=ONE, pictured="here")
    options = at.selectbox(key="kind").options
    own, others = options[:3], options[3:]  # each opens a kind
    assert own == ["a wrong word", "a reworded wrong caption", "a rewording"]
    assert others and all(" in " in option for option in others)
    assert all(option.endswith(f", for {model_name('control:constant')}") for option in others)
    visla = next(row for row in views.runs.question_set_rows(store_copy) if row.probe == "visla")
    at.selectbox(key="kind").set_value(f"{visla.case_key}:t2t").run()
    assert at.query_params["set"] == visla.case_key and "pictured" not in at.query_params
    assert at.toast[0].value == "The pictures are now Triplets (swap), which has such questions."
    assert at.segmented_control(key="view").options == ["Wall", "Map"]  # no label to judge


def test_choosing_another_question_set_clears_filters_by_cases(show_page, tmp_path: Path):
    store = Store(tmp_path / "cache")
    for probe in ("eqben", "prsm"):
        execute(Request((ONE,), make(probe, tmp_path / probe, 4), probe), store)
    first, second = views.runs.question_sets(store)["case_key"].tolist()
    chosen = {"region": region_text("selected", np.array([0])), "not": "pair=a>b"}
    at = show_page(store, "explore", set=first, unseen="match", cards="every", **chosen)
    assert len(card_ids(at)) <= 1
    at.selectbox(key="set").set_value(second).run()
    assert not at.exception and at.query_params["set"] == second
    assert not {"region", "unseen", "not"} & set(at.query_params)


def test_the_users_run_and_the_bundled_one_are_two_entries_of_the_dataset_picker(
    show_page, monkeypatch: pytest.MonkeyPatch, store_copy: Store
):
    (own,) = views.runs.question_set_rows(store_copy)
    bundled = replace(own, case_key="0" * 16, shipped=True)
    monkeypatch.setattr(views.runs, "question_set_rows", lambda store: [own, bundled])
    picker = show_page(store_copy, "explore", set=own.case_key).selectbox(key="dataset")
    first, second = picker.options
    assert "(your run, " in first and second.endswith(" (bundled)")
    assert picker.value == own.case_key
    damaged = replace(own, finished="yesterday")
    monkeypatch.setattr(views.runs, "question_set_rows", lambda store: [damaged, bundled])
    picker = show_page(store_copy, "explore", set=own.case_key).selectbox(key="dataset")
    assert picker.options[0].endswith(" (your run)")


def test_only_kinds_with_cases_are_listed(show_page, tmp_path: Path, store_copy: Store):
    execute(Request((ONE,), make("eqben", tmp_path / "eqben", 4), "eqben"), store_copy)
    eqben = next(row for row in views.runs.question_set_rows(store_copy) if row.probe == "eqben")
    kinds = set(views.estimates.choices(views.runs.question_set(store_copy, eqben.case_key)).kind)
    at = show_page(store_copy, "explore", kind="flip", model=ONE)
    values = at.selectbox(key="kind").proto.options
    assert len([value for value in values if " in " in value]) == len(kinds)


def test_two_tables_with_one_name_have_different_labels_and_a_click_keeps_the_chosen_one(
    show_page, tmp_path: Path
):
    store = Store(tmp_path / "cache")
    for probe in ("rococo", "prsm"):
        execute(Request((ONE,), make(probe, tmp_path / probe, 4), probe), store)
    keys = views.runs.question_sets(store)["case_key"].tolist()
    for key in keys:
        at = show_page(store, "explore", set=key)
        options = at.selectbox(key="dataset").options
        assert len(set(options)) == len(options) == 2
        at = send(at, "wall", "open", card_ids(at)[0])
        assert at.query_params["set"] in (key, [key])
