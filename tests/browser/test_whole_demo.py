"""The main path of the dashboard with nothing made smaller: one button, all scenes, three models."""

from pathlib import Path

import pytest

from tests.browser.conftest import begin_demo, browsing, idle, serving, visit

pytestmark = [pytest.mark.browser, pytest.mark.full]


def test_one_button_takes_an_empty_cache_to_results(tmp_path: Path, driver):
    with serving(tmp_path, with_shipped=False) as url, browsing(url, driver) as page:
        begin_demo(page, url)
        page.get_by_role("button", name="Cancel").wait_for(state="detached", timeout=600_000)
        idle(page)
        assert page.get_by_text("See the failures").is_visible()
        visit(page, url + "/tradeoff")
        assert page.locator(".area").is_visible(), page.locator("main").inner_text()
        assert page.outside == []
