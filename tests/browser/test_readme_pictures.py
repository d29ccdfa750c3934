"""The pictures of README and of the tour match the pages of a fresh installation, with all bundled results.

With VLPROBE_SCREENSHOTS=FOLDER the tests write them there; README and docs/tour.md use those in `docs/pictures`.
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
    "compare": "/compare",
    "present": "/present",
}
TOUR = {
    "drawer": "/explore",
    "quiz": "/play?round=3",
    "repair": "/repair",
    **{
        name: SCREENS[name]
        for name in (
            *("near twins", "tradeoff", "playground", "run", "lab", "models", "breakdown"),
            *("published", "retrieval", "pairs", "triplets", "rankings", "series"),
        )
    },
}
DIFFERENCE = (
    4  # of 255, on average over a picture an eighth as wide: fonts and edges are drawn anew
)


@pytest.fixture(scope="module")
def fresh(driver, tmp_path_factory: pytest.TempPathFactory) -> Iterator:
    """The browser page of somebody who has just installed vlprobe, and its address."""
    with (
        serving(tmp_path_factory.mktemp("fresh"), with_published=True) as url,
        browsing(url, driver) as page,
    ):
        yield page, url


def small(picture: Image.Image) -> np.ndarray:
    return np.asarray(picture.convert("RGB").resize((160, 112), Image.Resampling.BOX), dtype=float)


def screenshot(page, name: str) -> Image.Image:
    """The first screen, once what it shows has come."""
    if name == "present":
        page.locator("button.start").click()
        page.keyboard.press("ArrowRight")
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


def written(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_of_the_readme_is_of_the_page_as_it_is(fresh, name: str):
    page, url = fresh
    visit(page, url + PICTURES[name])
    shot = screenshot(page, name)
    kept = f"docs/pictures/{name}-light.png"
    if folder := os.environ.get("VLPROBE_SCREENSHOTS"):
        colours = shot.quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
        colours.save(Path(folder) / f"{name}-light.png", optimize=True)
    assert re.search(rf"!\[[^\]]{{20,}}\]\({kept}\)", written("README.md"))
    compare(shot, kept)


@pytest.mark.parametrize("name", TOUR)
def test_a_picture_of_the_tour_is_of_the_page_as_it_is(fresh, name: str):
    page, url = fresh
    visit(page, url + TOUR[name])
    shot = screenshot(page, name)
    file = f"{name.replace(' ', '-')}-light.webp"
    if folder := os.environ.get("VLPROBE_SCREENSHOTS"):
        shot.save(Path(folder) / file, quality=70, method=6)
    assert re.search(rf"!\[[^\]]{{20,}}\]\(pictures/{file}\)", written("docs/tour.md"))
    compare(shot, f"docs/pictures/{file}")


def compare(shot: Image.Image, kept: str) -> None:
    """Fails where the page no longer looks like its picture."""
    difference = np.abs(small(shot) - small(Image.open(ROOT / kept))).mean()
    assert difference < DIFFERENCE, f"{kept}: see CONTRIBUTING.md for how it is made again"
