"""The button that downloads photographs: it announces the size, can continue, and needs write access."""

import os
import shutil
import time
from pathlib import Path
from unittest.mock import Mock

import pytest
from streamlit.testing.v1 import AppTest

from tests.cli.test_pictures import Coco, coco, jpeg
from tests.conftest import question_set_of
from tests.dashboard.test_pages import bodies, open_page, words
from tests.dashboard.walls import wall
from vlprobe import registry, views
from vlprobe.dashboard import photographs as page
from vlprobe.datasets import photographs
from vlprobe.storage import access, shipped
from vlprobe.storage.store import Store
from vlprobe.views.filter import Filter

__all__ = ["coco"]  # a fixture
DATASET, MODEL = "bundled:SugarCrepe", "published:GPT-4V"
N_MISSING = 4


@pytest.fixture(scope="module")
def photographed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a cache with all photographs of SugarCrepe except the first four that are not bundled."""
    root = tmp_path_factory.mktemp("photographed")
    addresses, _ = photographs.missing(registry.load_dataset(DATASET, root).items)
    photograph = jpeg(1)
    for path in list(addresses)[N_MISSING:]:
        path.write_bytes(photograph)
    return root


@pytest.fixture
def store(tmp_path: Path, photographed: Path, coco: str, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Return the results of a fresh installation, above a copy of that cache."""
    monkeypatch.delenv(shipped.SETTING)
    monkeypatch.setattr(photographs, "HOST", coco)
    monkeypatch.setattr(page, "_downloads", {})
    shutil.copytree(photographed, tmp_path / "cache", copy_function=os.link)
    return shipped.opened(tmp_path / "cache")


def open_case(monkeypatch: pytest.MonkeyPatch, store: Store) -> tuple[AppTest, Path]:
    """Open a case whose photograph is missing in Explore's drawer; return the page and the photograph's file."""
    monkeypatch.setattr("vlprobe.dashboard.explore.PAGE_SIZE", 6)
    question_set = question_set_of(store, dataset=DATASET)
    chosen = Filter(MODEL, "foil", outcome="all", sort="models")
    n_pictured = views.rows.with_pictures(question_set, "foil")[0]
    table, n_cases = views.cases.failures(question_set, chosen, 1, 8000)
    assert n_pictured < n_cases == len(table)
    last = table.iloc[-1]
    query = {"set": question_set.key, "model": MODEL, "outcome": "all", "case": last["id"]}
    at = open_page(monkeypatch, store, "explore", **query)
    return at, store.root / last["images"][0]


def wait(download: page.Download) -> None:
    """Wait until the measurement or the download has ended."""
    while download.is_running:
        time.sleep(0.001)


def labels(at: AppTest) -> list[str]:
    return [button.label for button in at.button if str(button.key).startswith("case_download")]


def press(at: AppTest, label: str) -> AppTest:
    keys = [
        button.key
        for button in at.button
        if button.label == label and str(button.key).startswith("case_download")
    ]
    at.button(key=keys[0]).click().run()
    for download in page._downloads.values():
        wait(download)
    return at.run()


def test_the_page_announces_number_and_size_and_continues_a_failed_download(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    at, file = open_case(monkeypatch, store)
    assert "Picture not bundled" in words(at)
    assert f"https://cocodataset.org/#explore?id={int(file.stem)}" in bodies(at)
    assert labels(at) == ["Download all pictures"]
    at = press(at, "Download all pictures")
    assert "4 photographs are missing: 0.0 MB." in words(at)
    assert Coco.requested == [] and not file.exists()
    assert labels(at) == ["Download", "Not now"]
    at = press(at, "Not now")
    assert labels(at) == ["Download all pictures"] and Coco.requested == []
    Coco.gone = {file.name}
    at = press(at, "Download all pictures")
    at = press(at, "Download")
    assert "3 photographs downloaded" in words(at)
    assert "Still missing: 1" in words(at) and "404" in words(at)
    at.query_params["cards"] = "every"
    assert "Still missing" not in words(at.run())  # the result of a download from before
    Coco.gone, Coco.requested = set(), []
    at = press(at, "Download all pictures")
    assert "1 photographs are missing" in words(at)
    at = press(at, "Download")
    assert Coco.requested == [f"/val2017/{file.name}"]
    assert file.read_bytes() == jpeg(int(file.stem))
    assert labels(at) == [] and "Picture not bundled" not in words(at)
    assert all(card["frames"][0]["source"] for card in wall(at)["cards"])


class PageDrawn(Exception):
    """Streamlit draws the whole page again."""


def test_the_whole_page_is_drawn_again_when_a_download_starts_and_when_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(page.st, "rerun", Mock(side_effect=PageDrawn))
    download = page.Download(Store(tmp_path), DATASET)
    download.begin(download.stop.wait)
    with pytest.raises(PageDrawn):  # only the whole page can make itself refresh every second
        page._draw(download, "started", was_running=False)
    download.stop.set()
    wait(download)
    with pytest.raises(PageDrawn):
        page._draw(download, "ended", was_running=True)


def test_a_stopped_download_keeps_the_downloaded_photographs(store: Store):
    class StoppedAfterOne(page.Download):
        def _note(self, n_done: int, n_total: int) -> None:
            self.stop.set()
            super()._note(n_done, n_total)

    download = StoppedAfterOne(store, DATASET)
    download.begin(download.measure)
    wait(download)
    missing = list(download.addresses)
    assert len(missing) == N_MISSING
    download.begin(download.fetch)
    wait(download)
    assert download.result == "Stopped. Press the button again to continue."
    Coco.requested = []
    again = page.Download(store, DATASET)
    again.begin(again.measure)
    wait(again)
    again.begin(again.fetch)
    wait(again)
    assert len(Coco.requested) < N_MISSING and all(path.exists() for path in missing)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        (access.READ_ONLY, "This is a read-only demo. Pictures cannot be downloaded here."),
        (access.ROOTS, " pictures bundled:SugarCrepe"),
    ],
)
def test_a_read_only_or_confined_dashboard_explains_in_one_line_why_it_cannot_download(
    store: Store, name: str, line: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(name, "1" if name == access.READ_ONLY else str(store.root))
    at, file = open_case(monkeypatch, store)
    assert line in words(at) and labels(at) == []
    assert name == access.READ_ONLY or f"vlprobe --cache {store.address} pictures" in words(at)
    download = page.Download(store, DATASET)
    with pytest.raises(page.InvalidInput, match=r"Pictures cannot|terminal"):
        download.begin(download.measure)
    assert Coco.requested == [] and not file.exists()


def test_without_a_network_the_page_says_so_and_gives_the_command(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(page.photographs, "HOST", "http://127.0.0.1:9")  # nobody answers
    at, _ = open_case(monkeypatch, store)
    at = press(at, "Download all pictures")
    assert "could not be read from" in words(at) and "Connection refused" in words(at)
    assert f"vlprobe --cache {store.address} pictures {DATASET}" in words(at)
