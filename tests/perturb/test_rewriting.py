"""Inverse rules restore the caption, and the position of every kept word is known."""

import pytest

from vlprobe.perturb import advanced
from vlprobe.perturb.draws import draw, sample
from vlprobe.perturb.grammar import Sentence
from vlprobe.perturb.lexicon import VERBS, plural_of, regular
from vlprobe.perturb.tokens import Reading, like, takes_an


def by_rule(caption):
    return {one.rule: one.text for one in advanced.paraphrases(Sentence(Reading(caption)))}


@pytest.mark.parametrize(
    ("caption", "there", "back"),
    [
        ("A man riding a wave.", "there-is", "there-out"),
        ("Two dogs sitting on a rug", "there-is", "there-out"),
        ("A man riding a wave.", "copula-in", "copula-out"),
        ("several cows are grazing in a field", "copula-out", "copula-in"),
        ("A kitchen with a stove and a sink.", "with-to-has", "has-to-with"),
        ("A woman holds a cup.", "progressive", "simple-present"),
        ("A bus is parked on a street.", "copula-out", "copula-in"),
    ],
)
def test_a_rule_and_its_inverse_restore_the_caption(caption, there, back):
    assert by_rule(by_rule(caption)[there])[back] == caption


@pytest.mark.parametrize(
    ("caption", "rule", "text"),
    [
        ("A woman is holding a cup.", "passive", "A cup is being held by a woman."),
        ("A woman holds two cups.", "passive", "Two cups are held by a woman."),
        (
            "A group of men carrying an umbrella",
            "passive",
            "An umbrella being carried by a group of men",
        ),
        ("a cat sits on a table", "inversion", "on a table sits a cat"),
        ("A box is on a table.", "there-is", "There is a box on a table."),
        (
            "Two men and a woman riding horses.",
            "copula-in",
            "Two men and a woman are riding horses.",
        ),
        ("An old man riding a bus.", "relative", "An old man who is riding a bus."),
        ("A man riding a horse on a beach.", "scene-first", "On a beach, a man is riding a horse."),
        ("Umpire standing on a field.", "article-in", "An umpire standing on a field."),
    ],
)
def test_paraphrases_have_correct_agreement_and_articles(caption, rule, text):
    assert by_rule(caption)[rule] == text


@pytest.mark.parametrize(
    "caption",
    [
        "A dog chasing a red ball on a beach.",
        "Two dogs are sitting next to a large black couch.",
        "a person on a bicycle holding a small umbrella while riding a wave",
        "A kitchen with a red stove and two sinks.",
    ],
)
def test_a_kept_word_is_at_its_recorded_position(caption):
    reading = Reading(caption)
    found = advanced.paraphrases(Sentence(reading))
    assert len(found) >= 3
    for one in found:
        for word, (start, _) in zip(reading.words, reading.spans, strict=True):
            place = one.where(start)
            if place is not None:
                assert one.text[place : place + len(word)].lower() == word.lower(), (one.rule, word)
        kept = [
            word
            for word, (start, _) in zip(reading.words, reading.spans, strict=True)
            if one.where(start) is not None
        ]
        assert {"dog", "dogs", "person", "kitchen"} & {word.lower() for word in kept}, one.rule


@pytest.mark.parametrize(
    "word",
    ["apple", "umbrella", "hour", "orange", "MP3", "8", "old", "eye", "honest", "SUV", "igloo"],
)
def test_takes_an_is_true_before_a_vowel_sound(word):
    assert takes_an(word)


@pytest.mark.parametrize(
    "word",
    [
        "dog",
        "unicorn",
        "one",
        "European",
        "used",
        "uniform",
        "house",
        "once",
        "BMW",
        "ewe",
        "ukulele",
    ],
)
def test_takes_an_is_false_before_a_consonant_sound(word):
    assert not takes_an(word)


def test_plurals_and_verb_forms_are_spelled_correctly():
    assert [plural_of(word) for word in ("bus", "dog", "city", "toy", "box", "bench")] == [
        "buses", "dogs", "cities", "toys", "boxes", "benches",
    ]  # fmt: skip
    assert regular("carry")[1:4] == ("carries", "carrying", "carried")
    assert regular("race")[1:4] == ("races", "racing", "raced")
    assert (VERBS["sits"].ing, VERBS["lying"].base, VERBS["held"].participle) == (
        "sitting",
        "lie",
        "held",
    )
    assert (VERBS["stopped"].ing, VERBS["ridden"].present) == ("stopping", "rides")


def test_letter_case_is_copied_from_the_pattern():
    assert [like(pattern, "cat") for pattern in ("dog", "Dog", "DOG")] == ["cat", "Cat", "CAT"]


def test_samples_are_uniform_over_subsets():
    seen = {}
    for item in range(3000):
        subset = frozenset(sample("abcd", 2, draw(42, f"item{item}", 0, "test")))
        seen[subset] = seen.get(subset, 0) + 1
    assert len(seen) == 6
    assert all(abs(count - 500) < 5 * (500 * 5 / 6) ** 0.5 for count in seen.values())
