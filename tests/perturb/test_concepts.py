import json
import re
import tomllib
from pathlib import Path

import pytest

from vlprobe.perturb import concepts, lexicon
from vlprobe.perturb.concepts import CONCEPTS, IDIOMS, LISTS, TRUE_BESIDE, find, mentions, named
from vlprobe.perturb.tokens import takes_an

COCO = """person, bicycle, car, motorcycle, airplane, bus, train, truck, boat, traffic light, fire hydrant, stop sign,
parking meter, bench, bird, cat, dog, horse, sheep, cow, elephant, bear, zebra, giraffe, backpack, umbrella,
handbag, tie, suitcase, frisbee, skis, snowboard, sports ball, kite, baseball bat, baseball glove,
skateboard, surfboard, tennis racket, bottle, wine glass, cup, fork, knife, spoon, bowl, banana, apple,
sandwich, orange, broccoli, carrot, hot dog, pizza, donut, cake, chair, couch, potted plant, bed, dining
table, toilet, tv, laptop, mouse, remote, keyboard, cell phone, microwave, oven, toaster, sink,
refrigerator, book, clock, vase, scissors, teddy bear, hair drier, toothbrush"""

NOUNS = tomllib.loads(Path(__file__).with_name("nouns.toml").read_text("utf-8"))


def nouns_in(caption: str) -> list[tuple[str, str]]:
    """Return the text and the form of each noun found in a caption."""
    return [(caption[noun.start : noun.end], noun.form) for noun in find(caption)]


def test_all_eighty_names_of_coco_are_in_the_lexicon():
    names = [name.strip() for name in COCO.replace("\n", " ").split(",")]
    assert len(names) == 80
    assert [name for name in names if not named(name)] == []


def test_there_are_31_groups_of_at_least_ten_concepts():
    sizes = {}
    for concept in CONCEPTS:
        for group in concept.groups:
            sizes[group] = sizes.get(group, 0) + 1
    assert len(sizes) == 31
    assert min(sizes.values()) >= 10


def test_every_group_has_a_concept_that_can_be_inserted():
    putable = set().union(*(concept.groups for concept in CONCEPTS if not concept.watch))
    assert putable == set().union(*(concept.groups for concept in CONCEPTS))


def test_a_word_with_several_meanings_is_in_several_groups():
    assert {"animals", "technology"} <= set().union(*(concept.groups for concept in named("mouse")))


def test_the_concepts_file_has_no_duplicates_in_a_group_and_no_unknown_words():
    text = Path(concepts.__file__).with_name("concepts.txt").read_text(encoding="utf-8")
    seen = set()
    for line in text.splitlines():
        head, _, words = line.partition(": ")
        assert head.startswith(("#", "group ", "words ", "alike", "kind ", "idiom")), line
        entries = [entry.strip().split("/")[0].rstrip("*") for entry in words.split(",")]
        if head.startswith(("group", "words")):
            keys = [(head, entry) for entry in entries]
            assert len(set(keys)) == len(keys) and not seen & set(keys), line
            seen |= set(keys)
    known = {concept.lemma for concept in CONCEPTS} | {
        concept.lemma for words in LISTS.values() for concept in words
    }
    assert set(TRUE_BESIDE) <= known


def test_danger_has_12_to_20_words_and_the_papers_three_are_a_separate_list():
    assert 12 <= len(LISTS["danger"]) <= 20
    assert [concept.lemma for concept in LISTS["danger-paper"]] == [
        "weapon",
        "criminal",
        "minefield",
    ]


def test_plurals_of_the_lgip_lexicon_are_found_too():
    counted = [
        concept
        for concept in CONCEPTS
        if concept.kind == "count" and concept.lemma in lexicon.PLURALS
    ]
    assert len(counted) > 300
    assert [
        concept.lemma for concept in counted if concept not in named(lexicon.PLURALS[concept.lemma])
    ] == []


@pytest.mark.parametrize(
    ("singular", "plural"),
    [("man", "men"), ("wolf", "wolves"), ("knife", "knives"), ("person", "people"), ("deer", "deer"), ("ski", "skis"),
     ("wine glass", "wine glasses"), ("cherry", "cherries"), ("toothbrush", "toothbrushes"), ("monkey", "monkeys"),
     ("fisherman", "fishermen"), ("tooth", "teeth"), ("volcano", "volcanoes"), ("bus", "buses"), ("couch", "couches")],
)  # fmt: skip
def test_irregular_plurals_are_right(singular: str, plural: str):
    assert {concept.plural for concept in named(singular) if concept.kind == "count"} == {plural}


def test_words_with_an_initial_vowel_letter_take_a_only_before_a_consonant_sound():
    vowels = {
        concept.lemma for concept in (*CONCEPTS, *LISTS["ordinary"]) if concept.lemma[0] in "aeiou"
    }
    assert {word for word in vowels if not takes_an(word)} == {
        "uniform",
        "urinal",
        "utensil",
        "university",
        "one",
    }
    others = {concept.lemma for concept in (*CONCEPTS, *LISTS["ordinary"])} - vowels
    assert {word for word in others if takes_an(word)} == set()


@pytest.mark.parametrize(("caption", "expected"), NOUNS.items())
def test_nouns_are_found_with_their_number(caption: str, expected: str):
    assert " ".join(f"{word}:{form}" for word, form in nouns_in(caption)) == expected


@pytest.mark.full  # real data, seconds
def test_found_nouns_are_in_order_without_overlap_and_match_their_lemmas(
    shared_data: Path,
):
    for image in json.loads((shared_data / "rococo" / "coco_karpathy_test.json").read_text())[:300]:
        for caption in image["caption"]:
            done = 0
            for noun in find(caption):
                assert done <= noun.start < noun.end
                done = noun.end
                words = re.sub(r"\s+", " ", caption[noun.start : noun.end].lower())
                spellings = {concept.lemma: concept for concept in named(words)}
                assert noun.groups and set(noun.lemmas) <= set(spellings)


def test_idioms_are_skipped():
    assert "side by side" in IDIOMS
    assert nouns_in("Two cats side by side on board") == [("Two", "quality"), ("cats", "plural")]


def test_mentions_include_words_lemmas_and_compounds():
    assert {"men", "man", "hot dog", "dogs", "dog", "hot"} <= mentions("Men eat hot dogs")


def test_98_percent_of_coco_captions_have_a_noun(shared_data: Path):
    images = json.loads((shared_data / "rococo" / "coco_karpathy_test.json").read_text())
    captions = [caption for image in images[::5] for caption in image["caption"]]
    with_thing = sum(any(noun.form != "quality" for noun in find(caption)) for caption in captions)
    assert with_thing / len(captions) >= 0.98
