"""README's pictures are those of the pages as they are now, on the results that come with vlprobe.

With VLPROBE_SCREENSHOTS=FOLDER they are written there; `docs/pictures` is where README and the tour look for them.
"""

import io
import os
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.browser.conftest import ROOT, browsing, serving, visit
from tests.browser.test_walk import SCREENS

pytestmark = [pytest.mark.browser, pytest.mark.full]

PICTURES = {
    "home": "/",
    "explore": SCREENS["explore"],
    "mixed": SCREENS["mixed"],
    "compare": SCREENS["compare"].replace("with=demo:weak", "with=demo:scvc|demo:eqsim|demo:plain"),
    "present": SCREENS["present"],
}
DIFFERENCE = (
    4  # of 255, on average over a picture an eighth as wide: fonts and edges are drawn anew
)


@pytest.fixture(scope="module")
def fresh(driver, tmp_path_factory: pytest.TempPathFactory) -> Iterator:
    """The browser page of somebody who has just installed vlprobe, and its address."""
    with serving(tmp_path_factory.mktemp("fresh")) as url, browsing(url, driver) as page:
        yield page, url


def small(picture: Image.Image) -> np.ndarray:
    return np.asarray(picture.convert("RGB").resize((160, 112), Image.Resampling.BOX), dtype=float)


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_of_the_readme_is_of_the_page_as_it_is(fresh, name: str):
    page, url = fresh
    visit(page, url + PICTURES[name])
    if name == "present":
        page.locator("button.start").click()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
    if name == "mixed":
        page.get_by_text("Asking at every share").wait_for(state="detached", timeout=120_000)
    page.mouse.move(0, 0)
    page.wait_for_timeout(500)
    shot = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    if folder := os.environ.get("VLPROBE_SCREENSHOTS"):
        colours = shot.quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
        colours.save(Path(folder) / f"{name}-light.png", optimize=True)
    kept = ROOT / "docs" / "pictures" / f"{name}-light.png"
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.search(rf"!\[[^\]]{{20,}}\]\(docs/pictures/{kept.name}\)", text)
    difference = np.abs(small(shot) - small(Image.open(kept))).mean()
    assert difference < DIFFERENCE, f"{kept}: see CONTRIBUTING.md for how it is made again"
