import re

import pytest

from tools.train_demo import TEMPLATES, vocabulary, wrapped
from tools.world.captions import NUMBERS, SYNONYMS, article, captions, plural
from tools.world.scenes import COLORS, OPPOSITE, draw, specification
from vlprobe.datasets.world.scene import Group, Scene, facing, placements

SCENES = [draw("test", index) for index in range(400)]
TEXTS = [(scene, text) for scene in SCENES for text in captions(scene, 8)]
RELATION = {
    "left": r"to the left of|on the left side of|on the left of|\bleft of",
    "right": r"to the right of|on the right side of|on the right of|\bright of",
    "above": r"\babove\b(?! (?:it|them))|\bover\b(?! (?:it|them))|higher than",
    "below": r"\bbelow\b(?! (?:it|them))|\bunder\b|underneath(?! (?:it|them))|beneath|lower than",
    "front": r"in front of(?! (?:it|them))",
    "behind": r"\bbehind\b(?! (?:it|them))",
}


def nouns(group):
    names = (group.object, *SYNONYMS[group.object])
    return [plural(name) if group.count > 1 else name for name in names]


def find_mention(text, group):
    """Return the position of the group in the caption, found by an expression independent of the grammar, or -1."""
    number = NUMBERS[group.count] if group.count > 1 else "an?|one|a single|the"
    noun = "|".join(nouns(group))
    color = group.color
    plain = rf"\b(?:{number}) {color} (?:{noun})\b"
    after = rf"\b(?:{number}) (?:{noun}) (?:that (?:is|are)|in|wearing|dressed in) {color}\b"
    late = rf"^the (?:{number} )?(?:{noun}) .* (?:is|are) (?:dressed in )?{color}\.$"
    match = re.search(rf"{plain}|{after}|{late}", text, re.IGNORECASE)
    return match.start() if match else -1


def test_every_caption_states_the_number_color_and_object_of_every_group():
    for scene, text in TEXTS:
        for group in scene.groups:
            assert find_mention(text, group) >= 0, (specification(scene), text)


def test_a_stated_relation_is_the_drawn_one():
    checked = 0
    for scene, text in TEXTS:
        if not scene.relation or "flanked" in text:
            continue
        for name, words in RELATION.items():
            match = re.search(words, text, re.IGNORECASE)
            if not match:
                continue
            after = [find_mention(text[match.end() :], group) for group in scene.groups]
            at = [position if position >= 0 else 999 for position in after]
            assert min(at) < 999, text
            # the group that is not directly after the words of the relation
            told_of = 1 if at[0] < at[1] else 0
            expected = scene.relation if told_of == 0 else OPPOSITE[scene.relation]
            assert name == expected, (specification(scene), text)
            checked += 1
    assert checked > 1000


def test_the_side_in_flanked_and_with_phrases_is_the_drawn_one():
    checked = 0
    for scene, text in TEXTS:
        match = re.search(
            r"flanked on the (left|right) by|with .* (?:to|on) (?:its|their) (left|right)\.", text
        )
        if not match:
            continue
        first = min((0, 1), key=lambda group: find_mention(text, scene.groups[group]))
        of_the_first = scene.relation if first == 0 else OPPOSITE[scene.relation]
        assert (match[1] or match[2]) == OPPOSITE[of_the_first], (specification(scene), text)
        checked += 1
    assert checked > 50


def test_the_followed_group_is_ahead_in_the_direction_that_all_face():
    checked = 0
    for index in range(3000):
        scene = draw("train", index)
        for text in captions(scene, 14) if scene.relation in ("left", "right") else ():
            if " follow" not in text:
                continue
            first = min((0, 1), key=lambda group: find_mention(text, scene.groups[group]))
            ahead = first if "followed by" in text else 1 - first
            middle = {
                group: sum(
                    placement.x + placement.size / 2
                    for placement in placements(scene)
                    if placement.group == group
                )
                / scene.groups[group].count
                for group in (0, 1)
            }
            further = (
                max(middle, key=middle.get)
                if facing(scene) == "right"
                else min(middle, key=middle.get)
            )
            assert ahead == further
            checked += 1
    assert checked > 100


def test_a_named_place_is_the_background():
    telling = {
        "street": r"street|road|city",
        "room": r"room|house|floor|indoors",
        "meadow": r"meadow|grass|field|lawn",
        "beach": r"beach|sand|shore|seaside",
        "sea": r"\bsea\b|water|ocean",
        "sky": r"sky|clouds|\bair\b",
    }
    for scene, text in TEXTS:
        named = {name for name, words in telling.items() if re.search(words, text, re.IGNORECASE)}
        assert named <= {scene.background}, text


def test_captions_have_correct_articles_and_agreement():
    for _, text in TEXTS:
        assert not re.search(r"\ba [aeiou]|\ban [^aeiou]", text, re.IGNORECASE), text
        assert not re.search(r"\b(?:two|three|four|five) (?:\w+ )?(?:\w+[^s]|people) is\b", text), (
            text
        )
        assert not re.search(r"^There is (?:two|three|four|five)|^There are (?:an?|one)\b", text), (
            text
        )
        assert not re.search(r"^(?:A|An|One) (?:\w+ )?\w+ (?:in \w+ )?are\b", text), text
        assert re.fullmatch(r"[A-Z][A-Za-z ,]+\.", text), text
        assert "  " not in text


def test_captions_of_a_scene_differ_and_are_reproducible():
    for scene in SCENES[:100]:
        texts = captions(scene)
        assert len(set(texts)) == 5
        assert texts == captions(scene)


def test_captions_vary_in_syntax():
    starts = {" ".join(text.split()[:2]) for _, text in TEXTS}
    assert len(starts) > 150
    for words in (
        "There is",
        "There are",
        "can be seen",
        "with",
        "where",
        "flanked",
        "hidden by",
        "We ",
        "photo of",
    ):
        assert any(words in text for _, text in TEXTS), words


def test_the_vocabulary_has_every_word_of_captions_and_edits():
    used = {word for _, text in TEXTS for word in re.findall("[a-z]+", text.lower())}
    used |= {
        word
        for template in TEMPLATES
        for word in re.findall("[a-z]+", template.lower().replace("{c}", ""))
    }
    needed = """
        puppy dog pony horse bike bicycle coach bus locomotive train kitten cat automobile car human person people ship
        boat next beside above over higher below under underneath a single one two three four five followed hidden
        flanked by
    """
    assert used | set(needed.split()) | set(COLORS) <= vocabulary()


@pytest.mark.parametrize(
    ("text", "fixed"), [("a orange car", "an orange car"), ("a red car and a automobile", None)]
)
def test_an_article_is_fixed_before_a_vowel(text, fixed):
    assert article(text) == (fixed or "a red car and an automobile")


def test_irregular_plurals_are_correct():
    assert [plural(name) for name in ("bus", "person", "pony", "coach", "dog")] == (
        ["buses", "people", "ponies", "coaches", "dogs"]
    )


def test_a_wrapped_caption_stays_a_sentence():
    assert (
        wrapped("A dog is on the beach.", "In this image, {c}")
        == "In this image, a dog is on the beach."
    )
    assert (
        wrapped("A dog is on the beach.", "{c} in the scene")
        == "A dog is on the beach in the scene."
    )
    assert wrapped("A dog on the beach.", "a photo of {c}") == "A photo of a dog on the beach."


def test_a_person_wears_the_color():
    texts = captions(Scene("room", (Group("person", "orange", 2),), seed=3), 10)
    assert all(re.search(r"(in|wearing) orange", text) for text in texts)
