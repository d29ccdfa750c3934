"""Fixtures that open dashboard pages without a browser."""

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
def shown(monkeypatch: pytest.MonkeyPatch) -> partial[AppTest]:
    """Return a function that opens a page on a store."""
    return partial(open_page, monkeypatch)


@pytest.fixture
def open_probe(monkeypatch: pytest.MonkeyPatch, every_probe: Store) -> partial[AppTest]:
    """Return a function that opens a page on a store with a few results of every probe."""
    return partial(open_page, monkeypatch, every_probe)


@pytest.fixture
def bundled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> StoreAboveShipped:
    """Return an empty cache above the bundled results."""
    monkeypatch.setenv(shipped.SETTING, str(shipped.FOLDER))
    return StoreAboveShipped(tmp_path / "own", shipped.FOLDER)
