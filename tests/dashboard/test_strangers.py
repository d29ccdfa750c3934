"""Each page with results of the small models on pictures other than drawn scenes notes that they guess."""

from pathlib import Path

import pytest

from tests.conftest import make_tiny, store_again, tiers
from tests.dashboard.test_pages import open_page, words
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage import shipped
from vlprobe.storage.shipped import StoreAboveShipped
from vlprobe.storage.store import Store

PAGES = ("home", "explore", "compare", "tradeoff", "breakdown", "present", "quiz")
SAID = "On photographs they mostly guess."


@pytest.fixture(scope="module")
def photographed(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return a control's results on pictures of a folder, also stored under the names of two demo models."""
    folder = tmp_path_factory.mktemp("strangers")
    store = Store(folder / "cache")
    (manifest,) = execute(Request(("control:random",), make_tiny(folder / "tiny"), "lgip"), store)
    for digit, model in (("1", "demo:weak"), ("2", "demo:softmax")):
        store_again(store, manifest, digit * 16, model=model, model_digest=digit * 32)
    return store


@pytest.mark.parametrize("page", tiers(PAGES, ("explore", "compare", "present")))
def test_pages_note_that_small_models_guess_on_other_pictures(photographed, monkeypatch, page: str):
    query = {"model": "demo:weak", "with": "demo:softmax"} if page == "compare" else {}
    query |= {"tab": "quiz"} if page == "quiz" else {}
    at = open_page(monkeypatch, photographed, "present" if page == "quiz" else page, **query)
    assert words(at).count(SAID) == 1


@pytest.mark.parametrize("page", ["home", "explore"])
def test_on_drawn_scenes_pages_do_not_mention_guesses(monkeypatch, tmp_path: Path, page: str):
    monkeypatch.delenv(shipped.SETTING)
    store = StoreAboveShipped(tmp_path / "own", shipped.FOLDER)
    assert SAID not in words(open_page(monkeypatch, store, page))


def test_only_the_small_models_are_named_in_a_comparison_with_others(photographed, monkeypatch):
    query = {"model": "control:random", "with": "demo:weak"}
    at = open_page(monkeypatch, photographed, "compare", **query)
    assert "Half-trained was trained on drawings." in words(at)
