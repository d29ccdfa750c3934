"""Download the photographs for a question set. The number and size are shown first, and users can stop and resume."""

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import streamlit as st

from vlprobe import registry, views
from vlprobe.dashboard.state import PageSubject, command, query, quiet, store
from vlprobe.dashboard.widgets import draw_row, press
from vlprobe.datasets import photographs
from vlprobe.errors import InvalidInput, VlprobeError
from vlprobe.storage import access
from vlprobe.storage.store import Store

EVERY_SECONDS = 1
SHOWN_AT = "download_shown_at"  # session key: the URL's query when a download was begun or running
READ_ONLY = "This is a read-only demo. Pictures cannot be downloaded here."
CONFINED = (
    "This dashboard reads only the folders given with --root. Download pictures in a terminal: {}"
)


class _Stopped(Exception):
    """Raised when a visitor stops the download."""


@dataclass
class Download:
    """Download of the photographs for one dataset. It runs in threads of this process, which first find out its size.

    Attributes:
        command: The command that downloads the same photographs.
        announcement: A sentence with the number and size of the missing photographs, once they are known.
        is_running: Whether a thread is finding the size or downloading.
        n_done: Number of photographs handled so far.
        n_total: Number of photographs to download, or 0 while the size is not known.
        result: The result of the last download, in words.
    """

    store: Store
    dataset: str
    command: str = ""
    announcement: str = ""
    is_running: bool = False
    n_done: int = 0
    n_total: int = 0
    result: str = ""
    addresses: dict[Path, str] = field(default_factory=dict)
    stop: threading.Event = field(default_factory=threading.Event)

    def begin(self, task: Callable[[], None]) -> None:
        """Start `measure` or `fetch` in a thread, unless one is running. If it fails, the error becomes the result.

        Raises:
            InvalidInput: This dashboard may not download pictures.
        """
        if reason := refusal(self.dataset):
            raise InvalidInput(reason)
        with _lock:
            if self.is_running:
                return
            self.is_running, self.result = True, ""
            self.stop.clear()
        threading.Thread(target=self._run, args=(task,), daemon=True).start()

    def _run(self, task: Callable[[], None]) -> None:
        try:
            task()
        except (VlprobeError, OSError) as error:
            self.result = str(error)
        except _Stopped:
            self.result = "Stopped. Press the button again to continue."
        finally:
            self.is_running = False

    def measure(self) -> None:
        """Find out which photographs are missing, and their total size."""
        items = registry.load_dataset(self.dataset, self.store.root).items
        self.addresses, _ = photographs.missing(items, photographs.HOST)
        self.n_done = self.n_total = 0
        if self.addresses:
            self.announcement = photographs.announcement(self.addresses, self.command)
        else:
            self.result = "No COCO photographs are missing."

    def fetch(self) -> None:
        """Download the photographs that were announced."""
        self.announcement, self.n_done, self.n_total = "", 0, len(self.addresses)
        report = photographs.download(self.store, self.addresses, self._note)
        self.result = photographs.summary(report)
        if report.failures:
            path, reason = next(iter(report.failures.items()))
            self.result += (
                f" Still missing: {len(report.failures):,} (first: {path.name}, {reason}). Press "
                "the button again to continue."
            )

    def _note(self, n_done: int, n_total: int) -> None:
        self.n_done, self.n_total = n_done, n_total
        if self.stop.is_set():
            raise _Stopped


_lock = threading.Lock()
_downloads: dict[tuple[str, str], Download] = {}  # by store and dataset, shared by all visitors


def refusal(dataset: str) -> str:
    """Return the reason why this dashboard may not download pictures, or "" if it may."""
    if access.read_only():
        return READ_ONLY
    return CONFINED.format(command("pictures", dataset)) if access.ROOTS in os.environ else ""


def draw_download(subject: PageSubject, key: str) -> None:
    """Draw the button, announcement or progress of a download, if the dataset has questions without pictures.

    Args:
        subject: The question set.
        key: Prefix for the widget keys, because a page can draw the widgets in two places.
    """
    if not views.rows.keeps_unpictured(subject.question_set):
        return
    dataset = subject.question_set.runs[0].dataset
    if reason := refusal(dataset):
        quiet(reason)
        return
    with _lock:
        name = (store().address, dataset)
        download = _downloads.setdefault(
            name, Download(store(), dataset, command("pictures", dataset))
        )
    every = EVERY_SECONDS if download.is_running else None
    st.fragment(_draw, run_every=every)(download, key, download.is_running)


def _draw(download: Download, key: str, was_running: bool) -> None:
    if was_running != download.is_running:
        st.rerun()  # start to refresh the page, or show the new pictures or the next question
    with draw_row(f"{key}_box"):
        if download.is_running:
            st.session_state[SHOWN_AT] = query()
        if download.is_running and download.n_total:
            words = f"Downloading photographs: {download.n_done:,} of {download.n_total:,}"
            st.progress(download.n_done / download.n_total, words, width=320)
            press("Stop", download.stop.set, key=f"{key}_stop", type="tertiary")
        elif download.is_running:
            quiet("Getting the total size of the missing photographs …")
        elif download.announcement:
            host = photographs.HOST.partition("://")[2]
            quiet(f"{download.announcement} They come from {host}.")
            look = {"icon": "download", "key": f"{key}_yes", "type": "primary"}
            press("Download", _begin, download, download.fetch, **look)
            forget = setattr, download, "announcement", ""
            press("Not now", *forget, key=f"{key}_no", type="tertiary")
        else:
            help_ = "Those of all cases, whatever the filters. Shows their number and size first."
            look = {"icon": "download", "key": f"{key}_ask", "help": help_}
            press("Download all pictures", _begin, download, download.measure, **look)
            if download.result and st.session_state.get(SHOWN_AT) == query():
                quiet(download.result)


def _begin(download: Download, task: Callable[[], None]) -> None:
    """Begin a task, whose result is shown until the visitor changes the filter or the page."""
    st.session_state[SHOWN_AT] = query()
    download.begin(task)
