"""Addresses that the dashboard of commit 52b9ca1 wrote open the same cases today.

`addresses.json` has forty of them on the cache that this commit wrote (`tests/old_cache`): the cases that pass, in
order, and the one in the drawer. They were computed by the code of that commit and by that of the first new page's
parent, which agree. Other addresses have no cases; for them the file lists words and numbers that the page shows.

When a page is replaced, its old path redirects with its query: `opened` then has to read the cases from the new page.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from tests.conftest import tiers
from tests.dashboard.test_inventory import looked
from tests.dashboard.walls import card_ids, values_of
from vlprobe.dashboard.navigation import PAGE_SIZE

ROOT = Path(__file__).resolve().parents[2]
OLD = ROOT / "tests" / "old_cache"
STORED = json.loads((ROOT / "tests/dashboard/addresses.json").read_text("utf-8"))
CASES = [row for row in STORED if "cases" in row]
OTHERS = [row for row in STORED if "says" in row]
Opened = Callable[[str], AppTest]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(OLD, tmp_path_factory.mktemp("addresses") / "old"))


@pytest.fixture
def opened(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Opened:
    """Return a function that opens an address as a browser does."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr("vlprobe.storage.store.DEFAULT", folder / "stored")

    def show(address: str) -> AppTest:
        path, query = urlsplit(address).path.strip("/"), urlsplit(address).query
        at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=300)
        for name, values in parse_qs(query, keep_blank_values=True).items():
            at.query_params[name] = values
        at._page_hash = calc_hash(path)  # Streamlit's name for the page at this path
        at.run()
        assert not at.exception, at.exception[0].message
        assert not at.error and not any("not found" in one.value for one in at.warning)
        return at

    return show


def read_parameter(at: AppTest, name: str) -> str:
    """Return a parameter of the current address."""
    value = at.query_params.get(name, "")
    return value if isinstance(value, str) else value[0]


def test_forty_stored_addresses_open_cases():
    assert len(CASES) == 40 and len({row["address"] for row in STORED}) == len(STORED)
    assert sum(bool(row["open"]) for row in CASES) >= 6
    assert sum("area=" in row["address"] for row in CASES) >= 2


@pytest.mark.parametrize("row", tiers(CASES, CASES[::5]), ids=lambda row: row["address"][:60])
def test_an_old_address_opens_the_same_cases(opened: Opened, row: dict):
    at = opened(row["address"])
    assert read_parameter(at, "set") == row["set"]
    if row["address"].startswith("/failures"):
        check_wall(at, row)
    else:
        assert row["address"].startswith("/compare")
        check_compared(at, row)
    shown = looked(at)
    assert ("One case" in shown.names["dialog"]) == bool(row["open"])
    if row["open"]:
        assert any(f"Case{row['open']}" in text for text in shown.texts["text"])


def check_wall(at: AppTest, row: dict) -> None:
    """Check that the page which replaced Failures has every case, in order."""
    page = int(read_parameter(at, "page") or 1)
    if "?" not in row["address"]:  # no choice in the address: today's default wall
        assert card_ids(at)[0] == row["cases"][0]
        return
    assert card_ids(at) == row["cases"][PAGE_SIZE * (page - 1) : PAGE_SIZE * page]
    pages = at.get("pagination")
    assert (pages[0].proto.num_pages if pages else 1) == max(1, -(-len(row["cases"]) // PAGE_SIZE))


def check_compared(at: AppTest, row: dict) -> None:
    """Check that Compare shows a link's choice of cases in an open fold; without a choice, the left column has
    the cases that fool only the baseline.
    """
    if not values_of(at, "map_cards"):
        assert not {"bucket", "area", "sort"} & set(at.query_params)
        assert [card["id"] for card in values_of(at, "left_cards")["cards"]] == row["cases"]
        return
    page = int(read_parameter(at, "page") or 1)
    ids = [card["id"] for card in values_of(at, "map_cards")["cards"]]
    assert ids == row["cases"][PAGE_SIZE * (page - 1) : PAGE_SIZE * page]


@pytest.mark.parametrize("row", tiers(OTHERS, OTHERS[::4]), ids=lambda row: row["address"][:60])
def test_an_old_address_of_another_page_shows_its_stored_words(opened: Opened, row: dict):
    text = " ".join(looked(opened(row["address"])).texts["text"])
    assert [word for word in row["says"] if word not in text] == []
