"""Differences between two captions."""

import pytest

from vlprobe.views.changes import change_in_words, changed_words, word_runs


def test_a_word_that_only_moved_is_not_shown_as_a_change_of_itself():
    texts = "A snowy hill with a lift", "A hill with a snowy lift"
    assert changed_words(*texts) == ("snowy", "snowy")
    assert change_in_words(*texts, "several places") == "several places"


@pytest.mark.parametrize(
    "before, after, changed",
    [
        ("a person in a suit", "A smiling person in a suit.", ("", "smiling")),
        ("A cat.", "A monkey", ("cat", "monkey")),
        (
            "very bright with blue red and gray.",
            "very drab with blue, red, and gray.",
            ("bright", "drab"),
        ),
        ("the janitor's closet", "the full janitors closet", ("", "full")),
        ("the dog's bone", "the dogs bone", ("dog's", "dogs")),  # only an apostrophe changes
        ("Two dogs", "Two dogs.", ("", ".")),  # only punctuation changes
    ],
)
def test_punctuation_is_a_change_only_if_no_word_changes(before: str, after: str, changed):
    assert changed_words(before, after) == changed
    marked = "".join(text for text, differs in word_runs(before, after, True) if differs)
    assert marked == changed[1]
    assert "".join(text for text, _ in word_runs(before, after, True)) == after
