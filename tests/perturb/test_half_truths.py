"""Half-truths: the edits of captions, and the captions that are left unchanged."""

from pathlib import Path

import pytest

from vlprobe import registry
from vlprobe.perturb.half_truths import MOST_WORDS, half_truths
from vlprobe.perturb.tokens import Reading


def texts_by_type(*captions: str) -> dict[str, tuple[str, str]]:
    """Return the short and the wrong caption of the first caption by type."""
    edits, _ = half_truths(captions, "1", 42)
    return {one.edit.subtype: (one.short, one.text) for one in edits[0]}


def test_the_short_caption_lacks_the_detail_that_is_wrong_in_the_long_one():
    pairs = texts_by_type("A red bus parked next to a building.")
    short, wrong = pairs["attribute"]
    assert (
        short == "A bus parked next to a building."
        and wrong.startswith("A ")
        and " red " not in wrong
    )
    assert pairs["relation"] == ("A red bus parked.", "A red bus parked far away from a building.")


def test_the_article_matches_the_word_after_a_removed_attribute():
    assert texts_by_type("A brown elephant walks.")["attribute"][0] == "An elephant walks."


def test_an_object_is_removed_with_its_preposition():
    short, wrong = texts_by_type("a woman holding a baby on a bench")["object"]
    assert short in ("a woman holding a baby", "a woman") or wrong.startswith(short)
    assert wrong.startswith(short) and len(wrong) > len(short)


@pytest.mark.parametrize(
    "caption",
    ["A man without a hat on a bench.", "no dog on the bed", "A dog.", "¿Un perro?", "A GROUP"],
)
def test_captions_that_the_rules_cannot_parse_have_no_relation_edit(caption: str):
    assert "relation" not in texts_by_type(caption)


def test_a_wrong_object_is_not_one_that_another_caption_names():
    for seed in range(30):
        edits, _ = half_truths(
            ["A cat on a chair.", "A cat on a sofa, a couch or a bench."], "1", seed
        )
        for one in edits[0]:
            if one.edit.subtype == "object":
                assert not {"sofa", "couch", "bench", "cat"} & set(Reading(one.edit.target).lower)


@pytest.mark.full  # real data, seconds
def test_short_captions_of_photographs_use_only_words_of_the_caption(
    shared_data: Path, tmp_path: Path
):
    items = registry.load_dataset(f"coco:{shared_data / 'coco_real'}", tmp_path).items
    n_of_type = {"object": 0, "attribute": 0, "relation": 0}
    for item in items:
        edits, dropped = half_truths(item.captions, item.id, 42)
        assert sum(map(len, edits)) + sum(dropped.values()) == 3 * len(item.captions)
        for caption, of_caption in zip(item.captions, edits, strict=True):
            for one in of_caption:
                n_of_type[one.edit.subtype] += 1
                assert set(Reading(one.short).lower) <= {*Reading(caption).lower, "a", "an", "."}
                longer = len(Reading(one.text).words) - len(Reading(one.short).words)
                assert 0 < longer <= MOST_WORDS + 3
                assert one.text not in item.captions and one.short != one.text
    assert min(n_of_type.values()) > 100
