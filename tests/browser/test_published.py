"""A fresh installation in a browser: a failure of GPT-4V on a photograph, and the path to failures of only GPT-4V."""

import re
from collections.abc import Iterator

import pytest

from tests.browser.conftest import browsing, choose, idle, serving, visit
from tests.conftest import case_key_of
from vlprobe import views
from vlprobe.render.words import presentations
from vlprobe.storage import shipped
from vlprobe.storage.store import Store
from vlprobe.views.filter import Filter

pytestmark = [pytest.mark.browser, pytest.mark.full]  # starts a server: 17 s

GPT4V, TUNED = "published:GPT-4V", "published:CLIP_TROHN-Img"


@pytest.fixture(scope="module")
def fresh(driver, tmp_path_factory: pytest.TempPathFactory) -> Iterator:
    """Return Home of a server with all bundled results over an empty cache."""
    with (
        serving(tmp_path_factory.mktemp("fresh"), with_published=True) as url,
        browsing(url, driver) as page,
    ):
        yield visit(page, url)


def swaps_that_fool_gpt4v_only() -> set[str]:
    store = Store(shipped.PUBLISHED_FOLDER)
    key = case_key_of(store, dataset="bundled:SugarCrepe")
    chosen = Filter(GPT4V, "foil", "swap_obj", other=TUNED, other_outcome="held")
    question_set = views.runs.question_set(store, key)
    return set(views.cases.failures(question_set, chosen, 1, 1000)[0]["id"])


def test_swaps_that_fool_gpt4v_and_not_the_tuned_clip_are_a_few_clicks_from_home(fresh):
    expected = swaps_that_fool_gpt4v_only()
    assert len(expected) > 10
    assert (
        "CLIP ViT-B/32, CLIP_COCO and CLIP_TROHN-Img chose this one"
        in fresh.get_by_text("chose this one").inner_text()
    )
    assert fresh.locator("img.picture:visible").first.evaluate("image => image.naturalWidth") > 300
    assert fresh.get_by_text("CC BY-SA 2.0").count() == 1
    fresh.get_by_role("link", name=re.compile("^Compare.*Which model is better")).click()
    idle(fresh)
    fresh.get_by_role("radio", name="Differences").click()
    idle(fresh)
    # On the first screen: the models of the pictures below the plot, and the legend of marks
    bar = fresh.locator(".st-key-parting")
    place = bar.bounding_box()
    assert place["y"] + place["height"] <= fresh.viewport_size["height"]
    assert "CLIP_TROHN-Text" in bar.locator(".vp-legend").inner_text()
    assert fresh.locator(".st-key-forest .legend").count() == 0
    choose(fresh, "row_type", "Swapped things")
    choose(fresh, "row_model", "CLIP_TROHN-Img")
    boxes = fresh.locator("button.card .boxes").first.locator(".box")
    assert boxes.count() == 5
    heights = boxes.evaluate_all("boxes => boxes.map(box => box.getBoundingClientRect().top)")
    assert len(set(heights)) == 1
    side = fresh.locator(".st-key-left_head")
    words = " ".join(side.inner_text().split())
    assert f"{len(expected)} fooled GPT-4V, not CLIP_TROHN-Img" in words
    side.get_by_role("link", name="See all").click()
    idle(fresh)
    lies = presentations()["eqben"].kind("foil").lies
    heading = fresh.locator("h1", has_text=lies).inner_text()
    assert heading.startswith(f"{len(expected)} {lies} preferred")
    every = "cards => cards.map(card => card.dataset.id)"
    shown = fresh.locator("button.card").evaluate_all(every)
    assert shown and set(shown) <= expected
    assert fresh.outside == []


def test_on_a_phone_the_first_card_is_on_the_first_screen_with_five_filters(fresh):
    origin = fresh.url.split("/", 3)[:3]
    types = "type=replace_att&type=swap_obj&agreement=one&words=man&held=published%3ACLIP_COCO"
    fresh.set_viewport_size({"width": 390, "height": 844})
    visit(fresh, f"{'/'.join(origin)}/explore?model=published%3AGPT-4V&kind=foil&{types}")
    assert fresh.locator("[class*=st-key-chip_]").count() == 5
    card = fresh.locator("button.card").first.bounding_box()
    assert card["y"] < 400 and card["y"] + card["height"] < 844
    fits = "() => document.documentElement.scrollWidth <= innerWidth"
    assert fresh.evaluate(fits)
