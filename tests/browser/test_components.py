"""Each component on an empty page in a browser: hostile text stays text, and nothing runs or scrolls sideways.

Mixed pictures, the quiz and the slides have separate test files.
"""

import base64

import pytest

from tests.browser.conftest import HOSTILE, PIXEL, another, mount, severe_violations
from vlprobe.dashboard import components

pytestmark = pytest.mark.browser

OWN_FILE = {"mixed", "quiz", "slides"}
WITHOUT_TEXT = {"zoom", "points"}
NO_PICTURE = (
    "",
    "https://127.0.0.1:9/x.png",
    "javascript:window.ran=1",
    "data:text/html,<b>",
    'data:image/svg+xml,<svg onload="window.ran=1">',
)
SQUARE = "M1 1 H13 V13 H1 Z"
ROOT = "document.querySelector('#host').shadowRoot.querySelector('.root')"


def figures(text: str, _source: str = "") -> dict:
    number = {
        "href": "/explore",
        "big": "25.0 %",
        "sentence": text,
        "strong": text[:5],
        "exact": text,
    }
    model = {
        "href": "/explore",
        "name": text,
        "stored": f"{text}!",
        "value": "12 %",
        "width": 0.4,
        "mark": {"path": SQUARE, "color": "red"},
    }
    door = {"href": "/compare", "title": text, "sentence": text}
    strip = {
        "label": "Fooled",
        "of": text,
        "guess": 0.5,
        "models": [model] * 3,
        "more": "and 3 more",
        "more_href": "/explore",
    }
    return {"numbers": [number] * 3, "strip": strip, "doors": [door] * 4}


def home(text: str, source: str = PIXEL) -> dict:
    shot = {"source": source, "name": text, "alt": text, "label": text}
    boxes = [
        {"line": [[text, ""], [text, style]], "label": text, "style": style}
        for style in ("true", "lie")
    ]
    mark = {"name": text, "path": SQUARE, "color": "red"}
    case = {
        "id": "1",
        "place": 0,
        "heading": [text, text],
        "pictures": [shot],
        "boxes": boxes,
        "marks": [mark],
        "right": {"marks": [mark], "more": 1, "verdict": text},
        "more": 2,
        "verdict": text,
        "href": "/explore",
    }
    return {
        "kicker": text,
        "only": False,
        "cases": [case, case | {"id": "2", "place": 1, "pictures": [shot, shot]}],
    }


def wall(text: str, source: str = PIXEL) -> dict:
    box = {
        "path": SQUARE,
        "color": "red",
        "state": "fooled",
        "text": text,
        "source": source,
        "label": text,
    }
    card = {
        "id": text,
        "name": text,
        "tip": text,
        "badge": "+9",
        "texts": [[[text, "true"]]],
        "count": "1 of 6",
        "frames": [{"source": source, "name": text, "style": "", "text": text}],
        "word": text,
        "notes": [text],
        "lines": [[[text, "true"], ["became", "arrow"], [text, "lie"]], [[text, "swap"]]],
        "verdicts": [["fooled", text], ["tied", text]],
    }
    cards = [
        card,
        card | {"id": "2", "frames": [], "boxes": [box]},
        card | {"boxes": [box | {"text": ""}]},
    ]
    return {
        "label": text,
        "heading": text,
        "note": text,
        "legend": [["fooled", text]],
        "cards": cards,
    }


def keys(text: str, _source: str = "") -> dict:
    return {"ways": ["zoom", "deck", "play"]}


def tryit(text: str, _source: str = "") -> dict:
    answer = {"state": "fooled", "text": text}
    row = {
        "kind": text,
        "label": text,
        "runs": [[text, ""], [text, "lie"]],
        "verdicts": [answer],
        "more": True,
    }
    return {
        "models": [{"name": text, "path": SQUARE, "color": "red"}],
        "rows": [row],
        "chips": [{"kind": text, "label": text}],
        "all": {"label": text, "id": text},
        "beat": {"text": text, "verdicts": [answer], "count": "1 of 1", "note": text},
    }


BUILDERS = (figures, home, wall, keys, tryit)


def test_every_component_with_text_is_tested_with_hostile_text():
    every = {file.stem for file in components.FOLDER.glob("*.css")} - {"base"}
    assert {build.__name__ for build in BUILDERS} | OWN_FILE | WITHOUT_TEXT == every


def test_faint_text_and_a_picture_without_a_description_are_violations(blank):
    with another(blank) as page:
        page.set_content(
            f"<html lang=en><title>t</title><main><img src='{PIXEL}'><p style='color:#bbb'>A red dog"
        )
        assert [rule for rule, _ in severe_violations(page)] == ["color-contrast", "image-alt"]


@pytest.mark.parametrize("build", BUILDERS)
def test_hostile_text_stays_text_and_fits_every_screen(blank, build):
    problems: list[str] = []
    blank.on("pageerror", lambda error: problems.append(str(error)))
    pictures = (PIXEL, *NO_PICTURE) if build in (home, wall) else (PIXEL,)
    for text in HOSTILE.values():
        for source in pictures if text == HOSTILE["script"] else (PIXEL,):
            blank.set_viewport_size({"width": 1280, "height": 900})
            mount(blank, build.__name__, build(text, source))
            assert build is keys or blank.evaluate(f"() => {ROOT}.textContent").count(text) >= 4
            n_active = blank.evaluate(
                f"() => {ROOT}.querySelectorAll('script, iframe, [onerror]').length"
            )
            shown = blank.evaluate(
                f"() => [...{ROOT}.querySelectorAll('img')].every(e => e.src.startsWith('data:image/png'))"
            )
            assert (n_active, shown) == (0, True)
            for width in (1280, 390, 320):
                blank.set_viewport_size({"width": width, "height": 900})
                wide = blank.evaluate("() => document.documentElement.scrollWidth")
                assert wide <= width, (text[:20], source[:20])
    blank.wait_for_timeout(50)
    assert blank.evaluate("() => window.ran") is None
    assert (problems, blank.outside) == ([], [])


def test_a_drawer_lists_only_the_keys_that_work(blank):
    for ways, expected in (
        (["play", "deck", "zoom"], ["T", "Z", "D", "L", "P", "?"]),
        ([], ["T", "L", "?"]),
    ):
        mount(blank, "keys", {"ways": ways})
        assert blank.locator("button.pair kbd").all_inner_texts() == expected
    blank.set_viewport_size({"width": 390, "height": 844})  # no keyboard
    assert not blank.get_by_role("button", name="all keys").is_visible()
    blank.set_viewport_size({"width": 1280, "height": 900})


def test_a_drawer_scrolls_once_to_words_and_parts_when_they_are_opened(blank):
    mount(blank, "keys", {"ways": [], "opened": ""})
    blank.evaluate("""() => { document.body.insertAdjacentHTML("beforeend",
      "<p style='height: 2000px'></p><p class='st-key-case_why' style='height: 2000px'></p>"); }""")
    top = "document.querySelector('.st-key-case_why').getBoundingClientRect().top"
    assert blank.evaluate(top) >= 2000
    blank.evaluate("window.draw({ ways: [], opened: 'a' })")
    assert abs(blank.evaluate(top)) < 1
    blank.evaluate("window.scrollTo(0, 0)")
    blank.evaluate("window.draw({ ways: [], opened: 'a' })")
    assert blank.evaluate("window.scrollY") == 0


def test_letters_typed_before_the_tag_field_is_ready_appear_in_it(blank):
    mount(blank, "keys", {"ways": ["play"]})
    blank.evaluate("""() => { const fold = document.createElement("div");
      fold.className = "st-key-case_tab";
      fold.innerHTML = "<a role='tab'>Why</a><a role='tab'>Notes</a><div class='st-key-case_tags'></div>";
      fold.addEventListener("click", (event) => (window.pressed = event.target.textContent));
      document.body.append(fold); }""")
    blank.keyboard.press("t")
    blank.keyboard.type("pho")  # P is a key of the drawer
    blank.evaluate(
        """() => document.querySelector(".st-key-case_tags").append(
          document.createElement("button"), document.createElement("input"))"""
    )
    blank.wait_for_function(
        "() => document.querySelector('.st-key-case_tags input').value === 'pho'"
    )
    blank.keyboard.type("to")
    assert blank.locator(".st-key-case_tags input").input_value() == "photo"
    assert blank.evaluate("window.pressed") == "Notes"


def test_a_click_on_a_tab_returns_the_focus_to_the_drawer_and_the_keyboard_keeps_it_on_the_tab(
    blank,
):
    mount(blank, "keys", {"ways": []})
    blank.evaluate("""() => { const drawer = document.createElement("div");
      Object.assign(drawer, { role: "dialog", tabIndex: -1, className: "st-key-case_tab" });
      drawer.innerHTML = "<div role='tab' tabindex='0'>Why</div>";
      drawer.addEventListener("click", (event) => event.stopPropagation()); // as Streamlit's tabs do
      document.body.append(drawer); }""")
    role = "() => document.activeElement.role"
    blank.get_by_role("tab").click()
    assert blank.evaluate(role) == "dialog"
    blank.keyboard.press("Tab")
    blank.get_by_role("tab").dispatch_event("click")
    assert blank.evaluate(role) == "tab"


def test_the_tag_field_does_not_take_the_focus_from_a_note(blank):
    mount(blank, "keys", {"ways": []})
    active = blank.evaluate("""async () => { const fold = document.createElement("div");
      fold.className = "st-key-case_tags";
      fold.innerHTML = "<button>Remove ambiguous</button><textarea></textarea>";
      document.body.append(fold);
      document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "t", bubbles: true }));
      fold.lastChild.focus();
      fold.prepend(document.createElement("input"));
      for (let frame = 0; frame < 10; frame += 1) await new Promise(requestAnimationFrame);
      return document.activeElement.localName; }""")
    assert active == "textarea"
    blank.keyboard.type("a note")
    assert blank.locator(".st-key-case_tags textarea").input_value() == "a note"


def test_wheel_drag_and_z_zoom_and_move_the_pictures_of_a_case(blank):
    script, _ = components.source("zoom")
    blank.evaluate(
        """async ([script, source]) => {
      document.body.innerHTML = `<div class="st-key-case_pictures"><div id="host"></div>
        <div><img width="200" height="200" src="${source}"></div></div>`;
      const root = document.querySelector("#host").attachShadow({ mode: "open" });
      const module = await import("data:text/javascript;base64," + script);
      window.draw = (id) => { window.leave = module.default({ data: { case: id }, parentElement: root }); };
      window.draw("a"); }""",
        [base64.b64encode(script.encode()).decode(), PIXEL],
    )
    scale = """() => new DOMMatrix(document.querySelector("img").style.transform).a"""
    blank.keyboard.press("z")
    assert blank.evaluate(scale) == 3
    image = blank.locator("img").bounding_box()
    blank.mouse.move(100, 100)
    blank.mouse.down()
    blank.mouse.move(150, 100)
    blank.mouse.up()
    moved = blank.locator("img").bounding_box()
    assert moved["x"] == image["x"] + 50 and moved["y"] == image["y"]
    blank.keyboard.press("z")
    assert blank.evaluate(scale) == 1
    blank.evaluate(
        "window.heard = 0; window.addEventListener('keydown', () => { window.heard += 1; })"
    )
    blank.keyboard.press("z")
    for n_heard in (0, 1):  # Escape leaves the zoom, and only then closes the drawer
        blank.evaluate("window.heard = 0")
        blank.keyboard.press("Escape")
        assert (blank.evaluate(scale), blank.evaluate("window.heard")) == (1, n_heard)
    blank.mouse.wheel(0, -100)
    blank.wait_for_function(f"() => ({scale})() === 1.5")
    blank.evaluate("window.draw('another case')")
    assert blank.evaluate(scale) == 1
    full = "() => document.fullscreenElement?.className ?? ''"
    for fills in ("st-key-case_pictures", ""):
        blank.get_by_role("button", name="Full window").click()
        blank.wait_for_function(f"(name) => ({full})() === name", arg=fills)
    blank.evaluate("window.leave()")
    blank.keyboard.press("z")
    assert blank.evaluate(scale) == 1


def test_j_and_k_press_the_buttons_of_the_next_and_the_previous_case(blank):
    with another(blank) as page:
        mount(page, "keys", {"ways": []})
        page.evaluate("""() => { window.turned = [];
          for (const name of ["next", "previous"]) {
            const box = Object.assign(document.createElement("div"), { className: `st-key-case_${name}` });
            box.append(document.createElement("button"));
            box.firstChild.addEventListener("click", () => window.turned.push(name));
            document.body.append(box);
          } }""")
        for key in "jkJ":
            page.keyboard.press(key)
        assert page.evaluate("window.turned") == ["next", "previous", "next"]


def test_a_click_on_a_mark_is_sent_once_after_the_map_was_mounted_again(blank):
    data = {"chart": "map", "mark": -1, "source": ""}
    mount(blank, "points", data)
    blank.evaluate("""() => {
      document.body.insertAdjacentHTML("beforeend", "<div class='st-key-map'><p class='js-plotly-plot'>map</p></div>");
      document.querySelector("p")._hoverdata = [{ customdata: [7] }]; }""")
    for mounts, sent in (("window.leave()", []), ("window.draw(data)", [["open", 7]])):
        blank.evaluate(f"(data) => {{ {mounts} }}", data)
        blank.locator("p").click()
        assert [each for each in blank.evaluate("window.sent") if each[0] == "open"] == sent


def test_the_mark_that_the_map_finds_after_the_last_move_of_the_pointer_has_its_picture_below_its_caption(
    blank,
):
    mount(blank, "points", {"chart": "map", "mark": -1, "source": ""})
    blank.evaluate("""() => {
      document.body.insertAdjacentHTML("beforeend", `<div class='st-key-map'><p class='js-plotly-plot'>map
        <span class='hoverlayer' style='position: fixed; left: 9px; top: 50px'>caption</span></p></div>`);
      const plot = document.querySelector("p"), event = new MouseEvent("mousemove", { bubbles: true });
      plot._hoverdata = [{ customdata: [7] }];
      plot.dispatchEvent(event);
      plot._hoverdata = [{ customdata: [8] }]; }""")
    blank.wait_for_function("window.sent.length")
    assert blank.evaluate("window.sent") == [["show", 8]]
    blank.evaluate("(data) => window.draw(data)", {"chart": "map", "mark": 8, "source": PIXEL})
    picture, caption = (
        blank.locator("img").bounding_box(),
        blank.locator(".hoverlayer").bounding_box(),
    )
    assert picture["y"] >= caption["y"] + caption["height"] and picture["x"] == caption["x"]


def test_a_word_after_an_arrow_wraps_to_the_next_line_before_it_is_broken(blank):
    blank.set_viewport_size({"width": 1280, "height": 900})

    def pieces(*runs: list[str]) -> int:
        """Return the number of lines of the false word on a card."""
        data = wall("x")
        mount(blank, "wall", data | {"cards": [data["cards"][0] | {"lines": [list(runs)]}]})
        return blank.locator(".change .l").evaluate("one => one.getClientRects().length")

    false = max(("w" * n for n in range(4, 24) if pieces(["w" * n, "l"]) == 1), key=len)
    assert pieces(["admires", "t"], ["became", "arrow"], [false, "l"]) == 1


def test_a_click_on_a_figure_of_home_is_sent_to_the_page_and_a_control_click_opens_a_tab(blank):
    mount(blank, "figures", figures("counting"))
    host = "document.querySelector('#host')"  # the next component replaces it, and the listener with it
    blank.evaluate(f"() => {host}.addEventListener('click', (event) => event.preventDefault())")
    blank.locator("a.door").first.click()
    blank.locator("a.number").first.click(modifiers=["Control"])
    assert blank.evaluate("() => window.sent") == [["go", "/compare"]]


def test_a_card_without_a_picture_is_as_high_as_its_text(blank):
    heights = {}
    for source in (PIXEL, ""):
        mount(blank, "wall", wall("A red dog.", source))
        heights[source] = blank.locator("ul.wall .frames").first.bounding_box()["height"]
    assert heights[""] < heights[PIXEL] / 2


def test_try_it_shows_every_model_s_verdict_on_a_phone(blank):
    sent = tryit("a red dog")
    sent["models"] *= 3
    sent["rows"][0]["verdicts"] *= 3
    blank.set_viewport_size({"width": 390, "height": 844})
    mount(blank, "tryit", sent)
    places = [box.bounding_box() for box in blank.locator("td.answer").all()]
    assert len(places) == 3 and all(box["x"] + box["width"] <= 390 for box in places)
    scroll = blank.locator(".scroll")
    assert scroll.evaluate("e => e.scrollWidth <= e.clientWidth")


def test_cards_are_selected_one_by_one_or_as_a_range_as_in_a_file_manager(blank):
    values = wall("x")
    ids = [f"card {place}" for place in range(8)]
    cards = [values["cards"][0] | {"id": name, "name": name} for name in ids]
    mount(blank, "wall", values | {"cards": cards, "selects": True, "total": 1215})
    shown = blank.locator("button.card")

    def places() -> list[int]:
        return [at for at in range(8) if shown.nth(at).get_attribute("aria-pressed")]

    shown.nth(0).click(modifiers=["Control"])
    shown.nth(3).click(modifiers=["Control"])
    shown.nth(6).click(modifiers=["Shift"])
    assert places() == [0, 3, 4, 5, 6]
    shown.nth(2).click(modifiers=["Shift"])  # the range changes, other cards stay selected
    assert places() == [0, 2, 3] and blank.get_by_text("3 cases selected").is_visible()
    blank.keyboard.press("Shift+ArrowLeft")
    assert places() == [0, 1, 2, 3]
    shown.nth(7).focus()
    blank.keyboard.press("Shift+ArrowLeft")  # another range starts at a card that is not selected
    assert places() == [0, 1, 2, 3, 6, 7]
    blank.get_by_label("Select: card 1").click()
    assert places() == [0, 2, 3, 6, 7]
    blank.get_by_label("Select: card 4").click(modifiers=["Shift"])
    assert places() == [0, 1, 2, 3, 4, 6, 7]
    shown.nth(4).focus()
    blank.keyboard.press("Escape")
    assert places() == []
    blank.get_by_label("Select: card 1").click()
    assert blank.get_by_role("button", name="Select all 1,215 cases").is_visible()
    blank.keyboard.press("Control+a")  # the focus is on a check box
    blank.get_by_role("button", name="Export").click()
    blank.get_by_role("button", name="Select all 1,215 cases").click()
    assert blank.get_by_text("All 1,215 cases selected").is_visible()
    blank.get_by_role("button", name="Export").click()
    blank.get_by_label("Select: card 4").click()
    assert blank.get_by_text("7 cases selected").is_visible()
    sent = {"ids": ids, "act": "export", "tag": "", "front": False}
    assert [value for _, value in blank.evaluate("window.sent")] == [
        sent | {"every": every} for every in (False, True)
    ]


def test_the_bar_counts_the_cases_behind_selected_cards_and_can_leave_them_out(blank):
    values = wall("x")
    cards = [values["cards"][0] | {"id": name, "cases": n} for name, n in (("a", 3), ("b", 1))]
    mount(blank, "wall", values | {"cards": cards, "selects": True, "offered": ["odd"]})
    for card in blank.locator("button.card").all():
        card.click(modifiers=["Control"])
    tally = blank.get_by_role("status")
    assert "4 cases selected, on 2 cards" in tally.inner_text()
    blank.get_by_role("button", name="Only the 2 cases in front").click()
    assert "2 cases selected, on 2 cards" in tally.inner_text()
    blank.get_by_role("button", name="# odd").click()
    ((_, sent),) = blank.evaluate("window.sent")
    assert sent["ids"] == ["a", "b"] and sent["front"] is True
    blank.get_by_role("button", name="Include the 2 cases behind").click()
    assert "4 cases selected, on 2 cards" in tally.inner_text()


def test_cards_are_selected_by_checkbox_control_and_x_and_saved_as_a_slice(blank):
    values = wall("x")
    ids = ["1", "2", "3"]
    cards = [values["cards"][0] | {"id": name, "name": name} for name in ids]
    mount(blank, "wall", values | {"cards": cards, "selects": True, "offered": ["odd"]})
    third = blank.locator("button.card").nth(2)
    place = third.bounding_box()
    blank.get_by_label("Select: 1").check()
    blank.locator("button.card").nth(1).click(modifiers=["Control"])
    assert third.bounding_box() == place  # another click still hits its card
    blank.locator("button.card").nth(1).click(modifiers=["Shift"])
    assert blank.evaluate("String(getSelection())") == ""
    blank.locator("button.card").nth(2).focus()
    blank.keyboard.press("x")
    assert blank.locator(".picker:checked").count() == 3
    blank.get_by_placeholder("Tag or slice name").fill("mine")
    blank.get_by_role("button", name="Save as a slice").click()
    sent = {"ids": ids, "act": "slice", "tag": "mine", "every": False, "front": False}
    assert blank.evaluate("window.sent") == [["chosen", sent]]
    mount(blank, "wall", values | {"cards": cards, "selects": False})
    assert not blank.locator(".picker").count()
