"""The options of the Run page are in folds that are drawn only while they are open."""

from tests.dashboard.test_pages import open_form
from tests.dashboard.test_pages_run import requests
from vlprobe.runs.request import Request
from vlprobe.storage.store import Store

GALLERY = "Edits, before and after"
MACHINE = "Advanced"


def test_options_set_in_a_fold_are_used_while_it_is_closed_and_shown_when_it_opens_again(
    monkeypatch, store: Store, unspawned: None
):
    at = open_form(monkeypatch, store)
    assert [fold.label.replace("\\", "") for fold in at.expander] == [
        GALLERY,
        "Options for Wording and meaning (LGIP)",
        MACHINE,
    ]
    at.multiselect(key="run_models").set_value(["control:random"])
    at.button_group(key="run_lgip_kinds").set_value(["flip"])
    at.number_input(key="run_lgip_k_same").set_value(3)
    at.number_input(key="run_seed").set_value(7).run()
    opened = at.query_params["open"]
    del at.query_params["open"]
    at.run()
    assert not [field for field in at.number_input if field.key == "run_seed"]
    assert at.button_group(key="run_lgip_kinds").value == ["flip"]  # types are never hidden
    assert [fold.label[-12:] for fold in at.expander[1:]] == [" · 1 changed"] * 2
    at.button(key="start").click().run()
    (request,) = requests(store)
    assert request.seed == 7
    assert (request.options["kinds"], request.options["k_same"]) == (["flip"], 3)
    at.query_params["open"] = opened
    at.run()
    assert at.number_input(key="run_seed").value == 7
    assert at.button_group(key="run_lgip_kinds").value == ["flip"]
    at.number_input(key="run_seed").set_value(Request.seed).run()
    assert at.expander[-1].label == MACHINE
