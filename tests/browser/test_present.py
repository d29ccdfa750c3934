"""The file for offline use, opened from the disk with the network off: keys, notes, hostile text."""

import pytest

from tests.browser.conftest import another, mount
from tests.browser.test_keyboard import ACTIVE
from tests.render.test_slides import hostile_file

pytestmark = pytest.mark.browser
READ = """() => { const show = document.querySelector('.show');
  return { open: show.open, heading: show.querySelector('.title').textContent, alert: window.hacked || '',
    count: show.querySelector('.count').textContent, said: show.querySelector('[role=status]').textContent,
    notes: !show.querySelector('.speaker').hidden, black: !show.querySelector('.black').hidden,
    wide: show.querySelector('.stage').scrollWidth > show.querySelector('.stage').clientWidth }; }"""


def test_the_file_opens_without_a_network_and_is_led_by_keys(blank, tmp_path):
    text, sent = hostile_file()
    (tmp_path / "slides.html").write_text(text, encoding="utf-8")
    with another(blank) as page:
        problems: list[str] = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on(
            "console", lambda message: message.type == "error" and problems.append(message.text)
        )
        page.on("dialog", lambda dialog: problems.append("dialog"))
        page.context.set_offline(True)
        page.goto(f"file://{tmp_path / 'slides.html'}")

        def press(key: str) -> dict:
            page.keyboard.press(key)
            return page.evaluate(READ)

        count = len(sent["slides"])
        state = page.evaluate(READ)
        assert state["open"] and state["count"] == f"1 of {count}" and not state["notes"]
        second = press("ArrowRight")
        expected = "".join(run[0] for run in sent["slides"][1]["heading"])
        assert second["heading"] == expected and second["said"].startswith(f"Slide 2 of {count}.")
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 844})
            assert not page.evaluate(READ)["wide"]
        assert press("Space")["count"].startswith("3 ")
        assert press("ArrowLeft")["count"].startswith("2 ")
        assert press("End")["count"] == f"{count} of {count}"
        assert press("ArrowRight")["count"] == f"{count} of {count}"
        assert press("Home")["count"].startswith("1 ")
        assert press("n")["notes"] and not press("n")["notes"]
        assert press("b")["black"]
        assert not press("b")["black"]
        assert not press("Escape")["open"]
        page.context.set_offline(False)
        assert problems == [] and page.outside == []


@pytest.mark.parametrize(
    ("opener", "stops"), [("button.start", 1), ("li:nth-of-type(2) > button", 3)]
)
def test_new_data_move_neither_the_focus_nor_where_it_returns_to(blank, opener: str, stops: int):
    page = {"whole": False, "start": "Begin", "detail": "", "heading": "Slides"}
    sent = hostile_file()[1] | page
    mount(blank, "slides", sent)
    for _ in range(stops):
        blank.keyboard.press("Tab")
    assert blank.evaluate(ACTIVE, opener)
    blank.evaluate("(data) => window.draw(data)", sent)
    assert blank.evaluate(ACTIVE, opener)
    blank.keyboard.press("Enter")
    blank.locator("dialog[open]").wait_for()
    blank.evaluate("(data) => window.draw(data)", sent | {"slides": sent["slides"][:3]})
    blank.keyboard.press("Escape")
    blank.locator("dialog[open]").wait_for(state="detached")
    blank.wait_for_function(ACTIVE, arg=opener)
