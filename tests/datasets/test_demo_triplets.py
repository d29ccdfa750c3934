import math
from collections import Counter

import pytest
from rapidfuzz.distance import Levenshtein

from tests.conftest import draw_fewer
from vlprobe import registry
from vlprobe.datasets.world import items
from vlprobe.scoring.pictures import open_picture


@pytest.fixture
def few(monkeypatch):
    """Keep six triplets of each kind, so that a test draws quickly."""
    draw_fewer(monkeypatch, 6)


@pytest.fixture
def all_items():
    """Return every triplet without drawing its picture."""
    return items.read("demo-triplets")


def words(text: str) -> list[str]:
    return text.lower().replace(".", "").replace(",", "").split()


def test_both_subsets_have_400_triplets(all_items):
    edits = Counter((item.tags["subset"], item.tags["edit"]) for item in all_items)
    generic = {("generic", edit): 100 for edit in ("object", "color", "number", "swap")}
    assert edits == generic | {("spatial", "location"): 400}
    assert len({item.id for item in all_items}) == 800


def test_the_wrong_caption_is_closer_to_p1_than_p2_is(all_items):
    nearer_to_p2 = 0
    for item in all_items:
        (one, two), (negative,) = item.captions, item.foils
        assert len({one, two, negative}) == 3
        assert Levenshtein.distance(one, negative) < Levenshtein.distance(one, two)
        nearer_to_p2 += Levenshtein.distance(two, negative) < Levenshtein.distance(one, negative)
    # "behind" and "in front of" differ by more letters than dog and cat
    assert nearer_to_p2 <= 0.01 * len(all_items)


def test_only_swapped_colors_have_the_same_words_in_another_order(all_items):
    for item in all_items:
        same_bag = Counter(words(item.captions[0])) == Counter(words(item.foils[0]))
        assert same_bag == (item.tags["edit"] == "swap")


def test_a_bag_of_words_is_wrong_on_at_least_90_percent_of_the_triplets(all_items):
    def jaccard(one: str, other: str) -> float:
        one, other = set(words(one)), set(words(other))
        return len(one & other) / len(one | other)

    right = [
        jaccard(*item.captions) > max(jaccard(caption, item.foils[0]) for caption in item.captions)
        for item in all_items
    ]
    assert math.fsum(right) / len(right) < 0.1


def test_an_item_has_its_picture_and_shares_it_with_the_pairs(few, tmp_path):
    pairs = {item.id: item for item in registry.load_dataset("demo-pairs", tmp_path).items}
    drawn = set(tmp_path.rglob("*.png"))
    triplets = {item.id: item for item in registry.load_dataset("demo-triplets", tmp_path).items}
    assert set(tmp_path.rglob("*.png")) == drawn
    for kind in ("object", "location"):
        pair, triplet = pairs[f"demo-pairs-{kind}-003"], triplets[f"demo-triplets-{kind}-003"]
        assert triplet.image == pair.image
        assert (triplet.captions[0], triplet.foils) == (pair.captions[0], pair.foils)
        assert triplet.foil_image is None
        assert open_picture(triplet.image).size == (224, 224)
