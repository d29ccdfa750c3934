"""The component of mixed pictures on an empty page in a browser: the slider, hostile values, and its requests."""

import base64
import io
from collections.abc import Iterator

import pytest
from PIL import Image

from tests.browser.conftest import another
from vlprobe.dashboard import components

pytestmark = pytest.mark.browser

HOSTILE = (
    "</script><script>document.title='ran'</script>",
    "<img src=x onerror=\"document.title='ran'\">",
    "\u202eقطة حمراء على المقعد\u202c",
    "a very long story " * 280,
)
ADDRESSES = ("http://127.0.0.1:9/x.png", "javascript:document.title='ran'", "data:text/html,<b>")


def picture(color: str, width: int = 40, height: int = 40) -> str:
    buffer = io.BytesIO()
    Image.new("RGB", (width, height), color).save(buffer, "PNG")
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def component_props(
    text: str = "A red dog.", *, boxes: bool = False, pending: bool = False
) -> dict:
    """Return the component's data, with five shares and two models."""

    def frame(source: int, style: str = "", over: int = -1, stays: int = 100) -> dict:
        return {"source": source, "over": over, "stays": stays, "style": style, "name": text}

    def step(share: int, order: list[int]) -> dict:
        is_won = share < 80
        return {
            "share": share,
            "heading": f"{text} {share}",
            "stays": f"{share} %",
            "part": f"{100 - share} % of this one",
            "right": [["found ", ""], [text, "strong"]],
            "own": "Ranked 2nd" if is_won else "Ranked 1st instead",
            "style": "true" if is_won else "lie",
            "order": order,
        }

    row = {"name": text, "path": "M0 0 H14", "color": "red", "segments": [], "dots": [], "at": -1}
    return {
        "id": f"case {text[:20]}",
        "query": text,
        "sources": [picture("red", 60, 40), picture("blue"), picture("green")],
        "right": {"source": 0, "alt": text},
        "partner": {"source": 1, "alt": text},
        "alt": text,
        "steps": [
            step(share, [-1, 0, 1] if share >= 80 else [0, -1, 1])
            for share in (100, 90, 80, 70, 60)
        ],
        "start": 1,
        "boxes": [[0, 0, 0, 0], *[[0.25, 0.5, 0.75, 1]] * 4] if boxes else [],
        "strips": {
            "clean": {"label": text, "frames": [frame(0, "true"), frame(2)]},
            "whole": {
                "label": text,
                "frames": [frame(0, "true"), frame(2, "lie", 1, 80)],
                "own": frame(0, "lie", 1, 90),
            },
        },
        "chart": {
            "title": "When each model sees the difference",
            "note": text,
            "rows": [
                row | {"segments": [[100, 80]], "at": 80, "text": "80 %", "remark": ""},
                row | {"dots": [[90, False], [60, True]], "text": "", "remark": text},
            ],
            "ticks": [[100, "100 %"], [50, "50 %"]],
            "more": "",
        },
        "note": text,
        "pending": pending,
    }


@pytest.fixture(scope="module")
def tab(blank) -> Iterator:
    """Return a page with the component's script and style, without the dashboard."""
    script, style = components.source("mixed")
    script = script.replace("export default", "window.draw =")
    with another(blank) as page:
        colors = ":root { --vp-lie: red; --vp-edge: gray; }"
        page.set_content(f"<style>{colors} {style}</style><main id=parent></main>")
        page.evaluate("window.sent = []; window.heard = 0")
        page.evaluate("document.addEventListener('keydown', () => { window.heard += 1; })")
        page.add_script_tag(content=f"(() => {{ {script} }})();")
        yield page


def draw(tab, data: dict) -> None:
    tab.evaluate(
        """data => window.leave = window.draw({ data, parentElement: document.getElementById('parent'),
             setTriggerValue: (name, value) => window.sent.push([name, value]) })""",
        data,
    )


def opacity(tab) -> float:
    return float(tab.locator(".sum .over").evaluate("e => getComputedStyle(e).opacity"))


def border(tab) -> str:
    """Return the color of the mixture's border."""
    square = tab.locator(".sum .mixture")
    return square.evaluate("e => getComputedStyle(e, '::after').borderTopColor")


def order(tab) -> list[str]:
    """Return the frames of the second strip, identified by their border."""
    squares = tab.locator(".strips section").nth(1).locator(".square").all()
    return [
        (square.get_attribute("class") or "").replace("square", "").strip() for square in squares
    ]


def test_the_slider_updates_picture_words_line_and_strip_by_keyboard(tab):
    draw(tab, component_props("one"))
    slider = tab.get_by_role("slider", name="Share of the right picture that remains")
    assert opacity(tab) == pytest.approx(0.1) and order(tab) == ["mixture", "right", "mixture"]
    left, fooled = tab.locator(".now").evaluate("e => e.style.left"), border(tab)
    slider.focus()
    assert tab.get_by_role("heading", name="one 90").is_visible()
    tab.keyboard.press("ArrowRight")
    assert opacity(tab) == pytest.approx(0.2)
    assert tab.get_by_role("heading", name="one 80").is_visible()
    assert tab.locator(".now").evaluate("e => e.style.left") == "40%" != left
    tab.keyboard.press("End")
    assert opacity(tab) == pytest.approx(0.4) and order(tab) == ["right", "mixture", "mixture"]
    assert border(tab) != fooled  # it once kept the color of a mixture that wins
    assert tab.get_by_text("40 % of this one").is_visible()
    assert slider.get_attribute("aria-valuetext") == "60 % stays. Ranked 2nd"
    tab.keyboard.press("Home")
    assert opacity(tab) == 0
    assert tab.evaluate("window.heard") == 0  # arrow keys on the slider do not change the case


def test_a_redraw_of_the_same_case_keeps_share_and_focus_and_another_case_resets_them(tab):
    draw(tab, component_props("two"))
    tab.get_by_role("slider").focus()
    tab.keyboard.press("End")
    draw(tab, component_props("two"))
    assert opacity(tab) == pytest.approx(0.4)
    assert tab.evaluate("document.activeElement.type") == "range"
    draw(tab, component_props("three"))
    assert opacity(tab) == pytest.approx(0.1)


def test_after_the_slider_was_dragged_the_keys_of_the_drawer_work_and_z_enlarges_all_pictures(tab):
    draw(tab, component_props("eight"))
    tab.get_by_role("slider").click()
    assert tab.evaluate("document.activeElement === document.body")
    frames = tab.locator(".sum .frame")
    widths = [frame.bounding_box()["width"] for frame in frames.all()]
    tab.keyboard.press("z")
    larger = [frame.bounding_box()["width"] for frame in frames.all()]
    assert larger == pytest.approx([3 * width for width in widths])
    for n_heard in (0, 1):  # Escape leaves the zoom, and only then closes the drawer
        tab.evaluate("window.heard = 0")
        tab.keyboard.press("Escape")
        assert tab.evaluate("window.heard") == n_heard
        assert frames.first.bounding_box()["width"] == pytest.approx(widths[0])
    tab.evaluate("window.leave()")  # Streamlit mounts it again
    for key, size in (("z", 1), ("", 1), ("z", 3)):
        if not key:
            draw(tab, component_props("eight"))
        else:
            tab.keyboard.press(key)
        assert frames.first.bounding_box()["width"] == pytest.approx(size * widths[0])
    draw(tab, component_props("eight and another case"))
    assert frames.first.bounding_box()["width"] == pytest.approx(widths[0])


def test_the_frame_has_the_proportions_of_the_picture_and_the_partner_covers_it(tab):
    draw(tab, component_props("four"))
    frame, over = (
        tab.locator(f".sum figure:last-of-type {name}").bounding_box()
        for name in (".frame", ".over")
    )
    assert frame == over
    assert frame["width"] / frame["height"] == pytest.approx(1.5, abs=0.02)


def test_a_patch_is_cut_from_the_partner_at_its_place(tab):
    draw(tab, component_props("five", boxes=True))
    style = "e => [getComputedStyle(e).clipPath, getComputedStyle(e).opacity]"
    assert tab.locator(".sum .over").evaluate(style) == ["inset(50% 25% 0%)", "1"]
    patch = tab.locator(".strips section").nth(1).locator(".over").first
    assert patch.evaluate(style) == ["inset(50% 25% 0%)", "1"]


def test_scores_are_requested_once_per_case_and_only_if_pending(tab):
    tab.evaluate("window.sent = []")
    draw(tab, component_props("six"))
    draw(tab, component_props("seven", pending=True))
    draw(tab, component_props("seven", pending=True))
    draw(tab, component_props("seven"))
    assert tab.evaluate("window.sent") == [["ask", "case seven"]]


@pytest.mark.parametrize("text", HOSTILE, ids=["script", "img", "rtl", "long"])
def test_hostile_text_stays_text_and_inside_the_page(tab, text: str):
    for width in (390, 1280):
        tab.set_viewport_size({"width": width, "height": 900})
        draw(tab, component_props(text))
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.locator(".query").inner_text().strip() == text.strip()
    assert tab.locator("#parent script, #parent [onerror]").count() == 0
    assert tab.title() != "ran"


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_that_is_not_a_picture_is_not_requested(tab, address: str):
    data = component_props("nine")
    data["sources"] = [address] * 3
    before = len(tab.outside)
    draw(tab, data)
    assert tab.locator("#parent img").count() == 0 and len(tab.outside) == before
    assert tab.locator(".missing").first.inner_text() == "nine"
