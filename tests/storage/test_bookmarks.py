"""Saved views are read by name, and a damaged file is reported instead of overwritten."""

import pytest

from vlprobe.errors import InvalidInput, NotFound
from vlprobe.storage import bookmarks
from vlprobe.storage.store import Store


def test_views_are_listed_by_name_and_can_be_replaced_and_removed(store: Store):
    bookmarks.VIEWS.save(store, "  b  view ", "kind=flip")
    bookmarks.VIEWS.save(store, "A <b>", "kind=combined&words=%3D1")
    bookmarks.VIEWS.save(store, "b view", "kind=paraphrase")
    assert list(bookmarks.VIEWS.read(store).items()) == [
        ("A <b>", "kind=combined&words=%3D1"),
        ("b view", "kind=paraphrase"),
    ]
    bookmarks.VIEWS.remove(store, "b view")
    assert list(bookmarks.VIEWS.read(store)) == ["A <b>"]
    with pytest.raises(NotFound, match="b view"):
        bookmarks.VIEWS.remove(store, "b view")


@pytest.mark.parametrize(
    ("name", "query"),
    [("", "x=1"), ("  ", "x=1"), ("x" * 61, "x=1"), ("a\x07", ""), ("a", "x" * 4001)],
)
def test_an_invalid_name_or_too_long_view_is_refused(store: Store, name: str, query: str):
    with pytest.raises(InvalidInput, match=r"Expected|The maximum is 4,000"):
        bookmarks.VIEWS.save(store, name, query)
    assert bookmarks.VIEWS.read(store) == {}


def test_the_number_of_saved_views_is_limited(store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bookmarks, "MAX_BOOKMARKS", 2)
    for name in ("a", "b"):
        bookmarks.VIEWS.save(store, name, "")
    with pytest.raises(InvalidInput, match="Delete a saved view"):
        bookmarks.VIEWS.save(store, "c", "")
    bookmarks.VIEWS.save(store, "b", "kind=flip")
    assert bookmarks.VIEWS.read(store) == {"a": "", "b": "kind=flip"}


@pytest.mark.parametrize("content", [b"{", b"[1]", b"\xff"])
def test_a_damaged_bookmarks_file_is_reported_and_not_overwritten(store: Store, content: bytes):
    path = store.root / "mine" / "bookmarks.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    for ask in (lambda: bookmarks.VIEWS.read(store), lambda: bookmarks.VIEWS.save(store, "a", "")):
        with pytest.raises(InvalidInput, match=r"bookmarks\.json"):
            ask()
    assert path.read_bytes() == content


def test_a_read_only_dashboard_saves_and_removes_no_view(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    bookmarks.VIEWS.save(store, "a", "kind=flip")
    monkeypatch.setenv("VLPROBE_READ_ONLY", "1")
    for ask in (
        lambda: bookmarks.VIEWS.save(store, "b", ""),
        lambda: bookmarks.VIEWS.remove(store, "a"),
    ):
        with pytest.raises(InvalidInput, match="read-only"):
            ask()
    assert bookmarks.VIEWS.read(store) == {"a": "kind=flip"}
