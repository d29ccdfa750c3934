"""The main paths of the dashboard at full size: one button, all scenes, three models; and photographs,
from the form of Run to a tagged failure.
"""

from pathlib import Path

import pytest

from tests.browser.conftest import begin_demo, browsing, idle, serving, visit
from tests.browser.test_drawer import case_of, open_card, type_tag
from vlprobe.storage import annotations
from vlprobe.storage.store import Store

pytestmark = [pytest.mark.browser, pytest.mark.full]


def test_one_button_takes_an_empty_cache_to_results(tmp_path: Path, driver):
    with serving(tmp_path, with_shipped=False) as url, browsing(url, driver) as page:
        begin_demo(page, url)
        page.get_by_role("button", name="Cancel").wait_for(state="detached", timeout=600_000)
        idle(page)
        assert page.get_by_text("See the cases").is_visible()
        visit(page, url + "/tradeoff")
        assert page.locator(".st-key-tradeoff .scatterlayer").is_visible(), page.locator(
            "main"
        ).inner_text()
        assert page.outside == []


def test_a_run_on_photographs_leads_to_a_failure_whose_tag_survives_a_reload(
    tmp_path: Path, shared_data: Path, driver
):
    store = Store(tmp_path / "cache")
    with serving(tmp_path, with_shipped=False) as url, browsing(url, driver) as page:
        visit(page, url + "/run")
        for name in ("card_run_model_demo-softmax", "card_run_model_demo-weak", "run_probe_rococo"):
            page.locator(f".st-key-{name} label").click()
            idle(page)
        page.locator(".st-key-run_own input").fill(f"coco:{shared_data / 'coco_real'}")
        page.keyboard.press("Enter")
        page.get_by_text("2 models × 2 tests").wait_for()
        page.get_by_role("button", name="Start").click()
        cancel = page.get_by_role("button", name="Cancel")
        cancel.wait_for()
        cancel.wait_for(state="detached", timeout=900_000)
        idle(page)
        assert sorted((run["run"]["probe"], run["run"]["model"]) for run in store.runs()) == [
            (probe, model)
            for probe in ("lgip", "rococo")
            for model in ("demo:softmax", "demo:weak")
        ]

        page.get_by_role("link", name="See the cases").first.click()
        page.wait_for_url("**/explore?**")
        idle(page)
        drawer = open_card(page, 0)
        case = case_of(page)
        type_tag(page, "wrong label")
        drawer.get_by_text("Saved").wait_for()
        page.reload()
        idle(page)
        assert case_of(page) == case
        page.keyboard.press("t")
        drawer.locator(".st-key-case_tags").get_by_text("wrong label").wait_for()
        assert page.outside == []
    stored_tags = [
        (note.id, note.tags)
        for key in {run["case_key"] for run in store.runs()}
        for note in annotations.read(store, key).current
    ]
    assert stored_tags == [(case, ("wrong label",))]
