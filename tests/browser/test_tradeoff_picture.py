"""The component of the trade-off alone in a browser: names without overlap, hostile names, no room, no marks."""

import json
import random
from collections.abc import Iterator

import pytest

from tests.browser.conftest import DRAWN, another
from vlprobe import views
from vlprobe.dashboard import components
from vlprobe.render import tradeoff
from vlprobe.render.charts.styles import DISTINCT, styles
from vlprobe.render.html.style import STYLE
from vlprobe.views.records import PointRow, PrintedRow, records

pytestmark = pytest.mark.browser
NAMES = [
    *("Pair-tuned", "Tiny CLIP", "Tiny SigLIP", "Longer-trained", "Mix-tuned", "Half-trained"),
    *("ViT-B-32/laion2b_s34b_b79k", "ViT-L-14/openai", "SigLIP 2 base 16"),
]
HOSTILE = "</script><img src=x onerror=window.ran=1>"
LONG, TURNED = "long " * 1000, "\u202eדגם"
OVERLAPS = """() => {
  const shadow = document.getElementById('host').shadowRoot;
  const shown = [...shadow.querySelectorAll('.name')].filter(e => e.textContent && e.offsetWidth);
  const boxes = shown.map(e => [e.textContent, e.getBoundingClientRect()]);
  const marks = [...shadow.querySelectorAll('.spot.mark')].map(e => {
    const b = e.getBoundingClientRect(), x = (b.left + b.right) / 2, y = (b.top + b.bottom) / 2;
    return ['mark', {left: x - 8, right: x + 8, top: y - 8, bottom: y + 8}];
  });
  const area = shadow.querySelector('.area').getBoundingClientRect();
  const meet = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
  const found = boxes.filter(([, b]) => b.left < area.left - 1 || b.right > area.right + 1).map(([t]) => [t, 'edge']);
  boxes.forEach(([text, box], place) => [...boxes.slice(place + 1), ...marks].forEach(([other, second]) => {
    if (meet(box, second)) found.push([text, other]);
  }));
  return [found, shown.filter(e => !e.classList.contains('ring-name')).length];
}"""


@pytest.fixture(scope="module")
def view(blank) -> Iterator:
    """A page with the component on it, and nothing else."""
    script, css = components.source("tradeoff", "placing")
    script = script.replace("export default function", "window.draw = function")
    with another(blank) as page:
        page.set_viewport_size({"width": 1240, "height": 900})
        page.set_content(
            f"<html><head>{STYLE}</head><body style='margin:10px'><div id=host></div></body></html>"
        )
        page.evaluate(
            """([script, css]) => {
          const style = document.createElement('style'); style.textContent = css;
          window.parent_ = document.createElement('div'); window.sent = [];
          document.getElementById('host').attachShadow({mode: 'open'}).append(style, window.parent_);
          const element = document.createElement('script'); element.textContent = script; document.body.append(element);
        }""",
            [script, css],
        )
        yield page


def draw(view, data: dict) -> None:
    view.mouse.move(0, 0)  # where the test before left it, a mark may be
    view.evaluate("() => document.activeElement.blur()")  # a model in focus stays shown
    view.evaluate(
        "data => window.draw({data, parentElement: window.parent_, setTriggerValue: (...v) => window.sent.push(v)})",
        data,
    )
    view.evaluate(DRAWN)


def crowd(seed: int, spread: float, names: list[str] = NAMES) -> dict:
    """The picture of models that stand close together."""
    draws = random.Random(seed)
    points = []
    for place in range(len(names)):
        x, y = 0.01 + spread * draws.gauss(0, 0.003), 0.88 + spread * draws.gauss(0, 0.02)
        points.append(PointRow(f"m{place}", x, x - 4e-4, x + 4e-4, y, y - 0.01, y + 0.01))
    called = {point.model: name for point, name in zip(points, names, strict=True)}
    plane = tradeoff.plane(points, set(called), "cosine", "rate")
    printed = records(PrintedRow, views.tradeoff.published_trade_off("positive_rate"))
    data = tradeoff.picture_data(points, ["m0", "m1"], printed, plane, styles(called), called, 0.5)
    for mark in data["marks"]:
        mark["named"] = True
    return data | {"pinned": "m0", "list": "Models", "legend": [], "examples": {}}


@pytest.mark.parametrize("width", [1240, 390])
@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 12), marks=pytest.mark.full)])
def test_nine_names_meet_neither_each_other_nor_a_mark_however_close_these_are(
    view, width: int, seeds: range
):
    assert len(NAMES) == DISTINCT
    view.set_viewport_size({"width": width, "height": 900})
    for seed in seeds:
        for spread in (1, 0.3, 0.1):
            draw(view, crowd(seed, spread))
            overlaps, n_names = view.evaluate(OVERLAPS)
            assert (overlaps, n_names) == ([], DISTINCT), (seed, spread)
            assert view.evaluate("() => document.documentElement.scrollWidth") <= width


def test_hostile_long_and_turned_texts_are_text(view):
    view.set_viewport_size({"width": 390, "height": 900})
    data = crowd(1, 1, [HOSTILE, LONG, TURNED])
    data["rings"] = [{"name": HOSTILE, "place": [50, 50], "label": HOSTILE}]
    data["edges"] = [{"side": "below", "text": HOSTILE + LONG}]
    lines = [["true", [[HOSTILE, ""], [TURNED, "true"]]], ["lie", [[LONG, "lie"]]]]
    example = {"note": HOSTILE, "lines": lines, "press": HOSTILE, "alt": HOSTILE}
    data["examples"] = {"m0": example | {"picture": HOSTILE, "source": "javascript:window.ran=1"}}
    view.evaluate("() => window.sent.length = 0")
    draw(view, data)
    assert view.evaluate("() => window.ran") is None
    assert view.locator("img").count() == 0 and view.locator(".example script").count() == 0
    assert view.locator(".models .word").first.inner_text() == HOSTILE
    assert view.locator(".example .missing").inner_text() == HOSTILE
    assert view.evaluate("() => document.documentElement.scrollWidth") <= 390
    assert json.loads(json.dumps(view.evaluate("() => window.sent"))) == []


def test_marks_buttons_and_the_press_say_which_model(view):
    view.set_viewport_size({"width": 1240, "height": 900})
    data = crowd(3, 1)
    example = {"note": "Its worst mistake:", "lines": [], "press": "See the 3 lies", "picture": ""}
    data["examples"] = {"m0": example, "m2": example | {"note": "another"}}
    draw(view, data)
    view.evaluate("() => window.sent.length = 0")
    view.locator(".spot.mark[data-model='m2']").dispatch_event("pointerenter")
    assert "another" in view.locator(".example").inner_text()
    view.locator(".spot.mark[data-model='m2']").dispatch_event("pointerleave")
    assert "another" not in view.locator(".example").inner_text()
    view.locator(".press").click()
    view.locator(".spot.mark[data-model='m2']").dispatch_event("click")
    view.locator(".model[data-model='m4']").click()
    assert view.evaluate("() => window.sent") == [["open", "m0"], ["pin", "m2"], ["pin", "m4"]]


@pytest.mark.parametrize("width", [1240, 390])
def test_a_list_of_forty_models_scrolls_and_what_was_pressed_stays_in_sight(view, width: int):
    view.set_viewport_size({"width": width, "height": 900})
    data = crowd(3, 1, [f"ViT-B-32/epoch_{number}" for number in range(40)])
    draw(view, data)
    assert view.locator(".models").bounding_box()["height"] < 260
    view.locator(".model[data-model='m39']").click()
    for pinned in ("m39", "m20"):
        draw(view, data | {"pinned": pinned})  # as the page answers a press, here or on a mark
        assert view.evaluate(
            """pinned => {
          const shadow = document.getElementById('host').shadowRoot;
          const list = shadow.querySelector('.models').getBoundingClientRect();
          const button = shadow.querySelector(`.model[data-model=${pinned}]`).getBoundingClientRect();
          return button.top >= list.top - 1 && button.bottom <= list.bottom + 1;
        }""",
            pinned,
        ), pinned


def test_the_button_of_a_model_in_focus_is_the_next_stop_of_the_keyboard(view):
    data = crowd(3, 1)
    example = {"note": "", "lines": [], "press": "See the 3 lies", "picture": ""}
    data["examples"] = {mark["model"]: example for mark in data["marks"]}
    draw(view, data)
    view.evaluate("() => window.sent.length = 0")
    view.locator(".model[tabindex='0']").focus()
    for key in ("Home", "ArrowRight", "Tab", "Enter"):
        view.keyboard.press(key)
    assert view.evaluate("() => window.sent") == [["open", "m1"]]


def test_a_pointer_that_rests_takes_nothing_from_the_keyboard(view):
    data = crowd(3, 1)
    example = {"lines": [], "press": "See the 3 lies", "picture": ""}
    data["examples"] = {mark["model"]: example | {"note": mark["model"]} for mark in data["marks"]}
    draw(view, data)
    view.evaluate("() => window.sent.length = 0")
    mark = view.locator(".spot.mark[data-model='m4']")
    view.locator(".model[tabindex='0']").focus()
    for key in ("Home", "ArrowRight"):
        view.keyboard.press(key)
    mark.dispatch_event("pointerenter")  # as a browser tells of it when the page moves below it
    assert "m4" in view.locator(".example").inner_text()
    mark.dispatch_event("pointerleave")
    assert "m1" in view.locator(".example").inner_text()
    view.keyboard.press("Tab")
    for event in ("pointerenter", "pointerleave"):
        mark.dispatch_event(event)
    view.keyboard.press("Enter")
    assert view.evaluate("() => window.sent") == [["open", "m1"]]


def test_a_picture_without_any_known_model_is_drawn(view):
    data = crowd(1, 1) | {"rings": [], "front": []}
    for mark in data["marks"]:
        mark |= {"place": None, "across": None, "along": None}
    draw(view, data)
    assert view.locator(".spot.mark").count() == 0 and view.locator(".model").count() == DISTINCT
