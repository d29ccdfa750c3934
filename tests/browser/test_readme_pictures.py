"""The pictures of README and of the tour match the pages of a fresh installation, with all bundled results.

With VLPROBE_SCREENSHOTS=FOLDER the tests write them there; docs/tour.md shows all of `docs/pictures`, README some.
"""

import io
import os
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.browser.conftest import ROOT, browsing, idle, serving, visit
from tests.browser.test_walk import SCREENS

pytestmark = [pytest.mark.browser, pytest.mark.full]

PICTURES = {
    "home": "/",
    "explore": "/explore",
    "mixed": SCREENS["mixed"],
    "compare": "/compare?tab=differences",
    "present": "/present",
    "drawer": "/explore",
    "quiz": "/present?tab=quiz&round=3",
    "repair": "/repair",
    **{
        name: SCREENS[name]
        for name in (
            *("near twins", "tradeoff", "playground", "run", "lab", "models", "breakdown"),
            *("published", "retrieval", "pairs", "triplets", "rankings", "series"),
        )
    },
}
DIFFERENCE = 4  # of 255, on average over a picture an eighth as wide, because fonts and edges are drawn differently


@pytest.fixture(scope="module")
def fresh(driver, tmp_path_factory: pytest.TempPathFactory) -> Iterator:
    """Return the browser page of a fresh installation, and its address."""
    with (
        serving(tmp_path_factory.mktemp("fresh"), with_published=True) as url,
        browsing(url, driver) as page,
    ):
        yield page, url


def small(picture: Image.Image) -> np.ndarray:
    return np.asarray(picture.convert("RGB").resize((160, 112), Image.Resampling.BOX), dtype=float)


def screenshot(page, name: str) -> Image.Image:
    """Return the first screen, once it is fully loaded."""
    if name == "present":
        page.locator("button.start").click()
        for _ in range(3):
            page.keyboard.press("ArrowRight")
    if name == "mixed":
        page.get_by_text("Testing all mixtures").wait_for(state="detached", timeout=120_000)
    if name == "drawer":
        page.locator("button.card").first.click()
        page.wait_for_url("**case=*")
        idle(page)
    page.mouse.move(0, 0)
    page.wait_for_timeout(500)
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_matches_its_page(fresh, name: str):
    page, url = fresh
    visit(page, url + PICTURES[name])
    shot = screenshot(page, name)
    file = f"{name.replace(' ', '-')}-light.webp"
    if folder := os.environ.get("VLPROBE_SCREENSHOTS"):
        shot.save(Path(folder) / file, quality=70, method=6)
    tour = (ROOT / "docs/tour.md").read_text(encoding="utf-8")
    assert re.search(rf"!\[[^\]]{{20,}}\]\(pictures/{file}\)", tour)
    compare(shot, f"docs/pictures/{file}")


def compare(shot: Image.Image, file_name: str) -> None:
    """Fail if the page no longer looks like its picture."""
    difference = np.abs(small(shot) - small(Image.open(ROOT / file_name))).mean()
    assert difference < DIFFERENCE, f"{file_name}: see CONTRIBUTING.md for how it is made again"
