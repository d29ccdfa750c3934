"""Properties of `edits` for any captions."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vlprobe.errors import InvalidInput, NotFound
from vlprobe.perturb import substitution
from vlprobe.perturb.lexicon import VERBS
from vlprobe.perturb.lgip import KINDS, RULES, edits
from vlprobe.perturb.strict import FLIPPABLE
from vlprobe.perturb.tokens import TOKEN, takes_an

SUBJECTS = """a man, an old man, two dogs, one cat, a group of people, several red kites, a black and white cat, the
bus, Man, a pizza with cheese, an orange umbrella, a person, five boats""".replace("\n", " ").split(
    ", "
)
PREDICATES = """riding a wave, is sitting on a bench, sits next to a tree, are flying kites, holding two cups,
parked on a street, eating a large pizza, that is blue, has a sink, in a kitchen, walk together"""
PREDICATES = PREDICATES.replace("\n", " ").split(", ")
TAILS = [
    "",
    " on a beach",
    " while holding an umbrella",
    " near a red car",
    " in the park",
    ", with a cat",
    " and a dog",
]


@st.composite
def captions(draw):
    text = (
        draw(st.sampled_from(SUBJECTS))
        + " "
        + draw(st.sampled_from(PREDICATES))
        + draw(st.sampled_from(TAILS))
    )
    text = text[:1].upper() + text[1:] if draw(st.booleans()) else text
    return text + draw(st.sampled_from(["", ".", " "]))


def words(text):
    return [word.lower() for word in TOKEN.findall(text)]


def flip_words(text):
    return Counter(word for word in words(text) if word in FLIPPABLE)


def article_errors(text):
    pairs = zip(words(text), words(text)[1:], strict=False)
    return sum(a in ("a", "an") and b[0].isalnum() and (a == "an") != takes_an(b) for a, b in pairs)


@given(
    st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=3), st.sampled_from(RULES)
)
@settings(max_examples=60, deadline=None)
def test_edits_of_any_unicode_caption_do_not_fail(texts, rules):
    made = edits(texts, "item", rules=rules)
    assert len(made.edits) == len(texts)
    for caption, of_caption in zip(texts, made.edits, strict=True):
        assert len({text for text, _ in of_caption}) == len(of_caption)
        assert all(text not in (caption, caption.strip()) for text, _ in of_caption)


@given(captions(), captions(), st.sampled_from(RULES), st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_paraphrases_neither_add_nor_remove_a_flippable_word(one, other, rules, seed):
    for caption, of_caption in zip(
        (one, other), edits([one, other], "x", rules=rules, seed=seed).edits, strict=True
    ):
        kinds = Counter(edit.subtype for _, edit in of_caption if edit.kind == "paraphrase")
        assert sum(kinds.values()) <= 6
        for text, edit in of_caption:
            if edit.kind == "paraphrase":
                assert flip_words(text) == flip_words(caption), edit.rule


# Words that a rule may add or remove, apart from another form of the same verb. Synonyms record the words that they
# change.
GLUE = words(
    "there is are that who by being while a an with has have in the this image picture photo of scene shows showing , ."
)


@given(captions(), st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_a_paraphrase_changes_only_the_content_words_that_it_records(caption, seed):
    for text, edit in edits([caption], "x", seed=seed, kinds=["paraphrase"]).edits[0]:
        before, after = (
            Counter(VERBS[word].base if word in VERBS else word for word in words(of))
            for of in (caption, text)
        )
        changed = (before - after) + (after - before)
        allowed = set(GLUE) | {VERBS[word].base for word in GLUE if word in VERBS}
        if edit.rule == "synonym":
            named = words(edit.source) + words(edit.target)
            allowed |= {VERBS[word].base if word in VERBS else word for word in named}
        assert set(changed) <= allowed, edit.rule
        assert abs(len(words(text)) - len(words(caption))) <= 4


@given(captions(), captions(), st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_strict_edits_introduce_no_wrong_article_and_flips_change_one_word(one, other, seed):
    for caption, of_caption in zip(
        (one, other), edits([one, other], "x", seed=seed).edits, strict=True
    ):
        for text, edit in of_caption:
            assert article_errors(text) <= article_errors(caption)
            if edit.kind == "paraphrase":
                continue
            original = edit.via or caption
            gone, come = (
                flip_words(original) - flip_words(text),
                flip_words(text) - flip_words(original),
            )
            kinds_gone = [FLIPPABLE[word] for word in gone]
            if (
                edit.source.lower() == "one"
            ):  # the noun becomes plural, which can also be a flippable word
                kinds_gone = [entry for entry in kinds_gone if entry[0] == "number"]
            assert [entry[0] for entry in kinds_gone] == [edit.subtype]
            assert sum(come.values()) == sum(gone.values())


@given(captions(), st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_a_combined_edit_is_the_flip_of_a_drawn_paraphrase(caption, seed):
    made = edits([caption], "x", seed=seed).edits[0]
    paraphrases = {text for text, edit in made if edit.kind == "paraphrase"}
    flipped = {edit.subtype: edit for _, edit in made if edit.kind == "flip"}
    for _, edit in made:
        if edit.kind == "combined":
            assert edit.via in paraphrases
            assert edit.source.lower() == flipped[edit.subtype].source.lower()
            assert edit.target.lower() == flipped[edit.subtype].target.lower()


def test_the_flip_of_a_passive_replaces_the_same_animal_as_the_flip_of_the_caption():
    caption = "A dog chasing a cat."
    for seed in range(60):
        made = edits([caption], "x", seed=seed, k_same=20).edits[0]
        flip = next(edit for _, edit in made if edit.kind == "flip")
        for text, edit in made:
            if edit.kind == "combined" and edit.via == "A cat being chased by a dog.":
                assert text == f"A cat being chased by a {flip.target}."
                return
    pytest.fail("no passive was drawn")


def test_numbers_are_increased_but_not_to_one_that_another_caption_states():
    made = {
        text
        for seed in range(60)
        for text, _ in edits(["three dogs on a bed"], "x", seed=seed, kinds=["flip"]).edits[0]
    }
    assert {text for text in made if "dogs" in text} == {"four dogs on a bed", "five dogs on a bed"}
    siblings = ["three dogs on a bed", "four pets lying about"]
    made = {
        text
        for seed in range(60)
        for text, _ in edits(siblings, "x", seed=seed, kinds=["flip"]).edits[0]
    }
    assert {text for text in made if "dogs" in text} == {"five dogs on a bed"}


def test_flips_that_other_captions_confirm_are_dropped_and_counted():
    siblings = ["a dog by a car", "a puppy looks at a man", "a kitten, an orange taxi and a yacht"]
    made = [edits(siblings, "x", seed=seed, kinds=["flip"]) for seed in range(80)]
    words_put = {edit.target for one in made for _, edit in one.edits[0]}
    assert words_put == {"horse", "bus", "train", "bird", "bicycle", "truck"}
    assert sum(one.dropped.get("flip:object, still true of the image", 0) for one in made) > 0


def test_strict_reserves_up_to_half_of_the_edits_for_advanced_paraphrases():
    caption = "A man is sitting on a large bench next to a tree."
    for seed in range(10):
        subtypes = Counter(
            edit.subtype
            for _, edit in edits([caption], "x", seed=seed, kinds=["paraphrase"]).edits[0]
        )
        assert subtypes == {"simple": 3, "advanced": 3}


def test_edits_of_a_kind_do_not_depend_on_the_other_requested_kinds():
    caption = "Two dogs sitting on a large red couch."
    whole = edits([caption], "x").edits[0]
    for kind in KINDS:
        alone = edits([caption], "x", kinds=[kind]).edits[0]
        assert alone == tuple(one for one in whole if one[1].kind == kind)


def test_seed_item_and_index_each_change_the_drawn_edits():
    caption = "Two dogs sitting on a large red couch next to a small black table."
    base = edits([caption], "x").edits[0]
    assert edits([caption], "x").edits[0] == base
    assert edits([caption], "y").edits[0] != base
    assert edits([caption], "x", seed=43).edits[0] != base
    assert edits([caption, caption], "x").edits[1] != base


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        ({"rules": "strickt"}, NotFound, "Did you mean 'strict'"),
        ({"kinds": ["flips"]}, NotFound, "Did you mean 'flip'"),
        ({"tag": "rules"}, NotFound, "Did you mean 'rule'"),
        ({"k_same": -1}, InvalidInput, r"k_same \(-1\)"),
        ({"captions": ["a dog", "  "]}, InvalidInput, "Caption 1 of item 'img7' is empty"),
    ],
)
def test_invalid_arguments_of_edits_are_refused_in_one_line(wrong, error, says):
    call = {"captions": ["a dog"], "item_id": "img7"} | wrong
    with pytest.raises(error, match=says) as caught:
        edits(call.pop("captions"), call.pop("item_id"), **call)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("caption", "reasons"),
    [
        ("The couch is tidy but empty of people.", ["flip:object"]),
        ("A red freeway without any cars or black dogs.", ["flip:object"] * 2),
        ("A bus that isn’t red", ["flip:color"]),
    ],
)
def test_a_negated_word_is_counted_and_flipped_only_by_the_paper_rules(
    caption: str, reasons: list[str]
):
    strict, paper = (edits([caption], "x", rules=rules, kinds=("flip",)) for rules in RULES)
    dropped = {f"{reason}, under a negation": reasons.count(reason) for reason in reasons}
    assert dropped.items() <= dict(strict.dropped).items()
    negated = {word for word in ("people", "cars", "dogs") if word in caption}
    assert all(word in text for text, _ in strict.edits[0] for word in negated)
    assert "under a negation" not in " ".join(paper.dropped)


def test_a_vocabulary_replaces_object_flips_and_keeps_the_other_flips():
    captions = ["A red umbrella on a bench.", "There is no umbrella here.", "A red thing."]
    words = substitution.vocabulary(["zebra", "oven", "bench"])
    made = edits(captions, "a", words=words, kinds=("flip", "combined", "paraphrase"))
    flips = [[(text, edit) for text, edit in of if edit.kind == "flip"] for of in made.edits]
    (of_first,) = [edit for _, edit in flips[0] if edit.subtype == "object"]
    assert of_first.source in ("umbrella", "bench") and of_first.target in ("zebra", "oven")
    written = next(text for text, edit in flips[0] if edit.subtype == "object")
    article = "an" if of_first.target == "oven" else "a"
    old_article = "red" if of_first.source == "umbrella" else "a"
    new = f"{old_article if old_article == 'red' else article} {of_first.target}"
    assert written == captions[0].replace(f"{old_article} {of_first.source}", new)
    assert not flips[1] and made.dropped["flip:object, under a negation"] == 1
    colors = [[text for text, edit in of if edit.subtype == "color"] for of in flips]
    usual = edits(captions, "a", kinds=("flip",)).edits
    assert colors == [[text for text, edit in of if edit.subtype == "color"] for of in usual]
    combined = [edit.subtype for of in made.edits for _, edit in of if edit.kind == "combined"]
    assert combined and "object" not in combined
    assert made.dropped["combined, word of a vocabulary"] > 0
