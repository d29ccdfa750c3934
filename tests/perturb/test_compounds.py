"""A compound noun is replaced as a whole or not at all."""

import itertools
import json
from pathlib import Path

import pytest

from tests.conftest import tiers
from vlprobe.perturb.substitution import POLICIES, alter, delete, sources

# Compound nouns in COCO captions that have no entry in the lexicon.
PAIRS = {
    "tennis match", "tennis player", "tennis players", "tennis net", "dining area", "baseball player", "baseball game",
    "baseball uniform", "city street", "city bus", "park bench", "ski slope", "ski gear", "kitchen counter",
    "bathroom sink", "computer desk", "computer monitor", "wedding cake", "train engine", "food truck", "toy train",
    "soccer field", "brick building", "shower stall", "living area", "stove top", "peanut butter", "school bus",
}  # fmt: skip


def find_source_texts(caption: str) -> list[str]:
    return [caption[noun.start : noun.end] for noun in sources(caption)]


@pytest.mark.parametrize(
    ("caption", "expected"),
    [
        ("A tennis player eats in the dining area.", ["tennis player", "dining area"]),
        ("A tennis match on a city street", ["tennis match", "city street"]),
        ("People watch a living room table near ski gear.", ["People", "living room table"]),
        ("A man stands near the fruit stand on a park bench.", ["man", "park bench"]),
        ("Giraffes stand while two men ride horses.", ["Giraffes", "men", "horses"]),
        ("A black dog and an orange cat on a wooden table", ["dog", "cat", "table"]),
        ("The dog's bowl, cup and plate", ["dog", "bowl", "cup", "plate"]),
        ("A woman serving hot dogs from a serving tray", ["woman", "hot dogs", "serving tray"]),
        ("A double decker bus and a Wii remote", ["decker bus", "Wii remote"]),
    ],
)
def test_nouns_are_found_with_their_modifiers(caption: str, expected: list[str]):
    assert find_source_texts(caption) == expected


@pytest.mark.parametrize(
    ("policy", "pictures"),
    tiers(itertools.product(POLICIES, (300, 1000)), [(POLICIES[0], 300)]),
)
def test_no_altered_coco_caption_has_half_a_compound(policy: str, pictures: int, shared_data: Path):
    images = json.loads((shared_data / "rococo" / "coco_karpathy_test.json").read_text())[:pictures]
    halves = met = 0
    for image in images:
        captions = image["caption"]
        for caption, one in zip(captions, alter(captions, image["image"], policy)[0], strict=True):
            before = caption.lower().split()
            pairs = PAIRS & set(map(" ".join, itertools.pairwise(before)))
            met += len(pairs)
            after = one.text.lower() if one else ""
            for pair in pairs if one else ():
                first, second = pair.split()
                gone = [
                    word
                    for word in (first, second)
                    if before.count(word) > after.split().count(word)
                ]
                halves += len(gone) == 1 and pair not in after
    assert met > pictures / 10
    assert halves == 0


def test_a_compound_is_deleted_as_a_whole():
    assert delete(["A tennis player"], "x", "random")[0][0].text == "A"


def test_the_replacement_of_a_compound_with_a_name_is_not_capitalized():
    texts = {
        alter(["A dog near a Wii remote"], "x", "rand-voca", seed=seed)[0][0].text
        for seed in range(30)
    }
    near = [text for text in texts if text.startswith("A dog near")]
    assert near and all(text[1:].islower() for text in near)


@pytest.mark.parametrize("person", ["man", "woman", "boy", "girl"])
def test_a_person_is_never_replaced_by_a_teenager_or_a_word_that_may_be_true(person: str):
    put = {
        alter([f"A {person}"], "x", "same-concept", seed=seed)[0][0].edit.target
        for seed in range(400)
    }
    assert len(put) > 20
    assert not put & {
        "teenager",
        *({"man", "boy"} if person in ("man", "boy") else {"woman", "girl"}),
    }
