"""Every page shows the display name of a model; its stored name is only in tooltips, commands and data."""

import html
import json
import re
from collections.abc import Iterator

import pytest
from google.protobuf.json_format import MessageToDict
from streamlit.testing.v1 import AppTest

from tests.conftest import tiers
from tests.dashboard.test_pages import open_page
from vlprobe import views
from vlprobe.dashboard.navigation import BELOW, ROW
from vlprobe.storage import display_names
from vlprobe.storage.store import Store

STORED, PLAIN, RENAMED = "control:constant", "Always the same", "Zebra & Sons"
PROBES = ("lgip", "rococo", "eqben", "visla", "prsm")
PROBE_OF = {"retrieval": "rococo", "pairs": "eqben", "triplets": "visla", "rankings": "prsm"}
# Not visible: tooltips, keys, addresses, and the data that a mark or a click sends to the page.
UNSEEN = {
    *("help", "tooltip", "helpText", "id", "userKey", "queryString", "formId", "key", "href"),
    *("stored", "model", "pinned", "customdata", "elementId", "pageScriptHash"),
}
TITLE = re.compile(r'\btitle="[^"]*"|\bhref="[^"]*"')
MARKUP = re.compile(r"<[^>]+>")


@pytest.fixture
def renamed(every_probe: Store) -> Iterator[Store]:
    display_names.rename(every_probe, STORED, RENAMED)
    yield every_probe
    display_names.rename(every_probe, STORED, "")


def strings(value: object, name: str = "") -> Iterator[str]:
    """Yield all visible texts in the data that a page sends to the browser."""
    if name in UNSEEN:
        return
    if isinstance(value, dict):
        for part, item in value.items():
            yield from strings(item, part)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item, name)
    elif isinstance(value, str):
        if name in ("json", "spec", "figure") and value[:1] in "{[":
            yield from strings(json.loads(value))
        else:
            yield html.unescape(MARKUP.sub(" ", TITLE.sub("", value)))


def page_texts(at: AppTest) -> list[str]:
    """Return all texts of a page."""
    return [
        f"{element.type}: {text}"
        for element in walk(at._tree)
        if getattr(element, "key", "") not in TYPED
        for text in strings(MessageToDict(element.proto))
    ]


def walk(block) -> Iterator:
    for child in block.children.values():
        if hasattr(child, "children"):
            yield from walk(child)
        if getattr(child, "proto", None) is not None and hasattr(child.proto, "DESCRIPTOR"):
            yield child


FOLDS = {"compare": "measured|map|details", "tradeoff": "kinds|numbers|paper|details"}
TYPED = ("rename_stored", "run_models")  # pickers of stored names


def addresses() -> list:
    """List every page, with every probe if it shows any probe; the default suite uses only the first probe."""
    several = ("home", "explore", "compare", "tradeoff", "present", "breakdown")
    every = [(page, PROBE_OF.get(page, "")) for page in {**ROW, **BELOW} if page not in several]
    by_probe = [(page, probe) for probe in PROBES for page in several]
    return every + tiers(by_probe, by_probe[: len(several)])


def assert_renamed(at: AppTest) -> None:
    texts = page_texts(at)
    assert [text for text in texts if PLAIN in text] == []
    assert [text for text in texts if STORED in text] == []


def open_model(monkeypatch: pytest.MonkeyPatch, store: Store, page: str, probe: str, **query: str):
    """Open a page about the renamed model."""
    if probe:
        sets = views.runs.question_sets(store).set_index("probe")["case_key"]
        query = {"set": sets[probe]} | query
    return open_page(monkeypatch, store, page, **{"model": STORED} | query)


@pytest.mark.parametrize(("page", "probe"), addresses())
def test_every_page_shows_the_display_name_of_a_model(renamed, monkeypatch, page, probe):
    folds = {"open": FOLDS[page]} if page in FOLDS else {}
    assert_renamed(open_model(monkeypatch, renamed, page, probe, **folds))


@pytest.mark.parametrize("probe", tiers(PROBES, ("lgip", "prsm")))
def test_the_drawer_shows_the_display_name_of_a_model(renamed, monkeypatch, probe):
    sets = views.runs.question_sets(renamed).set_index("probe")["case_key"]
    question_set = views.runs.question_set(renamed, sets[probe])
    case = views.rows.questions(question_set, [0])["id"][0]
    at = open_model(monkeypatch, renamed, "explore", probe, case=case, other="control:random")
    assert at.get("dialog")
    assert_renamed(at)


def test_the_view_of_mixed_pictures_shows_the_display_name_of_a_model(renamed, monkeypatch):
    at = open_model(monkeypatch, renamed, "explore", "rococo", kind="t2i")
    assert_renamed(at)


def test_pages_that_load_a_model_show_its_display_name(renamed, monkeypatch):
    at = open_model(monkeypatch, renamed, "try", "", models=STORED)
    assert_renamed(at)
    at = open_model(monkeypatch, renamed, "retrieval", "rococo", reader=STORED, looker=STORED)
    assert_renamed(at.button(key="load_encode_texts").click().run())
