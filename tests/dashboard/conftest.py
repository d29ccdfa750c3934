"""Fixtures that open dashboard pages without a browser."""

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.dashboard.test_pages import open_page
from tests.views.conftest import filled, key  # noqa: F401 (fixtures)
from tests.views.test_compare import partial_answers  # noqa: F401 (fixture)
from vlprobe.storage import shipped
from vlprobe.storage.shipped import StoreAboveShipped
from vlprobe.storage.store import Store


@pytest.fixture
def show_page(monkeypatch: pytest.MonkeyPatch) -> partial[AppTest]:
    """Return a function that opens a page on a store."""
    return partial(open_page, monkeypatch)


@pytest.fixture
def show_compare(
    monkeypatch: pytest.MonkeyPatch,
    filled: Store,  # noqa: F811
) -> partial[AppTest]:
    """Return a function that opens Compare > Differences."""
    return partial(open_page, monkeypatch, filled, "compare", tab="differences")


@pytest.fixture
def open_probe(monkeypatch: pytest.MonkeyPatch, every_probe: Store) -> partial[AppTest]:
    """Return a function that opens a page on a store with a few results of every probe."""
    return partial(open_page, monkeypatch, every_probe)


@pytest.fixture(scope="session")
def own_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a cache folder for `bundled`. It is always the same, so that pages reuse cached answers."""
    return tmp_path_factory.mktemp("bundled") / "own"


@pytest.fixture
def bundled(monkeypatch: pytest.MonkeyPatch, own_root: Path) -> Iterator[StoreAboveShipped]:
    """Return an empty cache above the bundled results."""
    monkeypatch.setenv(shipped.SETTING, str(shipped.FOLDER))
    yield StoreAboveShipped(own_root, shipped.FOLDER)
    shutil.rmtree(own_root, ignore_errors=True)
