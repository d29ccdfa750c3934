"""The first five pictures before and after a fine-tuning, on the page Repair."""

from tests.dashboard.test_pages import open_page, words
from vlprobe import views
from vlprobe.storage.store import Store


def test_the_first_five_before_and_after_are_shown_with_their_captions(
    monkeypatch, mixed_store: Store
):
    before, control, after = "hue:1", "hue:3", "hue:2"
    at = open_page(monkeypatch, mixed_store, "repair", before=before, control=control, after=after)
    assert not at.error
    key = mixed_store.runs()[0]["case_key"]
    question_set = views.runs.question_set(mixed_store, key)
    lists = views.figures.first_lists(question_set, before, after, 6)
    assert lists and all(row.caption in words(at) for row in lists)
    assert "Top five before and after" in [fold.label for fold in at.expander]
