import functools
import json
import random
import re
from pathlib import Path

import pytest

from tests.conftest import tiers
from vlprobe.errors import InvalidInput, NotFound
from vlprobe.perturb.concepts import LISTS, TRUE_BESIDE, find, mentions, named
from vlprobe.perturb.substitution import DELETIONS, POLICIES, alter, delete, sources, vocabulary

CAPTIONS = [
    "A woman holding an umbrella on a red bench.",
    "An elephant stands near two horses and some grass.",
    "THREE DOGS SIT IN A BOAT.",
    "A Man Riding A Wave",
    "He wears a pair of scissors.",
    "TV on a stand next to a couch",
]
ENGLISH = re.compile(r"\w+|[^\w\s]")


FITS = {
    "singular": ["count"],
    "plural": ["count"],
    "mass": ["mass"],
    "plural-only": ["plural", "count"],
}


def words(text: str) -> list[str]:
    return ENGLISH.findall(text)


@pytest.fixture
def coco(shared_data: Path) -> list[tuple[str, list[str]]]:
    """Return 120 images with their captions."""
    images = json.loads((shared_data / "rococo" / "coco_karpathy_test.json").read_text())
    return [(image["image"], image["caption"]) for image in images[:120]]


@functools.cache
def altered_by(policy: str, captions: tuple[str, ...], item: str) -> tuple[list, dict]:
    """Return `alter` of an image's captions, cached for several tests."""
    return alter(list(captions), item, policy)


def spans_changed(old: str, new: str, source: str, target: str) -> bool:
    """Return whether the texts differ only by one replacement of the source and possibly the article before it."""
    for match in re.finditer(re.escape(source), old):
        before = old[: match.start()]
        for article in ("", "a", "an"):
            given = re.sub(
                r"\b(an?)(\s+)$", lambda m, a=article: a + m[2], before, flags=re.IGNORECASE
            )
            kept = before if not article else given
            if (kept + target + old[match.end() :]).lower() == new.lower():
                return True
    return False


@pytest.mark.parametrize("policy", POLICIES)
def test_exactly_one_span_changes_and_never_to_a_word_of_another_caption(policy: str, coco):
    made = 0
    for item, captions in coco:
        altered, dropped = altered_by(policy, tuple(captions), item)
        assert sum(dropped.values()) == sum(one is None for one in altered)
        assert len(altered) == len(captions)
        mentioned = set().union(*map(mentions, captions))
        for caption, one in zip(captions, altered, strict=True):
            if one is None:
                continue
            made += 1
            assert one.text not in captions
            assert spans_changed(caption, one.text, one.edit.source, one.edit.target)
            lemma = {concept.lemma for concept in named(one.edit.target.lower())} or {
                one.edit.target.lower()
            }
            assert not lemma & mentioned and one.edit.target.lower() not in mentioned
            assert (one.edit.kind, one.edit.subtype, one.edit.rule) == (
                "substitution",
                policy,
                f"{policy}:k1",
            )
    assert made > 0.97 * sum(len(captions) for _, captions in coco)


@pytest.mark.parametrize("policy", ["same-concept", "diff-concept"])
def test_number_and_group_agree_with_the_policy(policy: str, coco):
    for item, captions in coco:
        altered, _ = altered_by(policy, tuple(captions), item)
        for caption, one in zip(captions, altered, strict=True):
            if one is None:
                continue
            fits = []
            for noun in sources(caption):
                wanted = FITS[noun.form]
                for concept in (
                    named(one.edit.target.lower())
                    if caption[noun.start : noun.end] == one.edit.source
                    else ()
                ):
                    written = concept.plural if "plural" in noun.form else concept.lemma
                    agrees = (
                        concept.kind in wanted
                        and written == one.edit.target.lower()
                        and not concept.watch
                    )
                    fits.append(
                        agrees and bool(concept.groups & noun.groups) == (policy == "same-concept")
                    )
            assert any(fits), one


@pytest.mark.parametrize("policy", POLICIES)
def test_the_article_before_the_edit_fits_and_no_other_article_changes(policy: str, coco):
    consonant_sound = {"uniform", "urinal", "utensil", "university"}
    for item, captions in coco:
        altered, _ = altered_by(policy, tuple(captions), item)
        for caption, one in zip(captions, altered, strict=True):
            if one is None:
                continue
            before, after = words(caption), words(one.text)
            source, target = words(one.edit.source), words(one.edit.target)
            tail = len(after) - len(target)
            at = next(
                i for i in range(tail + 1) if after[i : i + len(target)] == target
                and before[i : i + len(source)] == source
                and after[i + len(target) :] == before[i + len(source) :]
            )  # fmt: skip
            if at and before[at - 1].lower() in ("a", "an"):
                is_an = target[0][0].lower() in "aeiou" and target[0].lower() not in consonant_sound
                assert after[at - 1].lower() == ("an" if is_an else "a")
                assert after[at - 1][0] == before[at - 1][0]
                assert after[: at - 1] == before[: at - 1]
            else:
                assert after[:at] == before[:at]


def test_letter_case_and_punctuation_are_preserved():
    for seed in range(30):
        altered = [one for one in alter(CAPTIONS, "x", "diff-concept", seed=seed)[0] if one]
        assert len(altered) == len(CAPTIONS)
        for caption, one in zip(CAPTIONS, altered, strict=True):
            assert caption[0].isupper() == one.text[0].isupper()
            assert caption.endswith(".") == one.text.endswith(".")
            if caption.isupper():
                assert one.text.isupper()
            elif caption == "A Man Riding A Wave":
                assert one.text.replace("An ", "A ").istitle()
            else:
                assert one.text.removeprefix("TV")[1:].islower()


def test_the_replacement_of_an_acronym_is_not_in_capitals():
    texts = [alter(["TV on a stand"], "x", "danger", seed=seed)[0][0].text for seed in range(20)]
    assert all(text[0].isupper() and text[1:].islower() for text in texts)


def test_a_mass_noun_is_replaced_only_by_a_mass_noun():
    for seed in range(40):
        one = alter(["A dog eats some broccoli"], "x", "rand-voca", seed=seed)[0][0]
        if one.edit.source == "broccoli":
            mass = {
                concept.lemma
                for concept in (*named(one.edit.target), *LISTS["ordinary"])
                if concept.kind == "mass"
            }
            assert one.edit.target in mass


def test_the_drawn_edit_depends_only_on_seed_and_item():
    first = alter(CAPTIONS, "x", "diff-concept")
    for other in ("y", "z"):
        alter(CAPTIONS, other, "same-concept")
    random.seed(1)
    assert alter(CAPTIONS, "x", "diff-concept") == first
    assert alter(CAPTIONS, "y", "diff-concept") != first
    assert alter(CAPTIONS, "x", "diff-concept", seed=43) != first


def test_every_policy_replaces_the_same_word_if_possible():
    one_each = [
        [one.edit.source for one in alter(CAPTIONS, "x", policy)[0]] for policy in POLICIES[:4]
    ]
    assert one_each.count(one_each[0]) == 4


@pytest.mark.parametrize("policy", ["rand-voca", "same-concept", "diff-concept", "danger"])
@pytest.mark.parametrize("k", tiers([2, 3, 4, 5], (2, 5)))
def test_k_words_are_replaced_by_k_different_ones(policy: str, k: int, coco):
    made = 0
    for item, captions in coco[:60]:
        altered, dropped = alter(captions, item, policy, k=k)
        assert sum(dropped.values()) == sum(one is None for one in altered)
        for caption, one in zip(captions, altered, strict=True):
            if one is None:
                assert policy != "rand-voca" or len(words(caption)) <= k + 4, caption
                continue
            made += 1
            sourced, put = one.edit.source.split(", "), one.edit.target.split(", ")
            assert len(sourced) == len(put) == len({word.lower() for word in put}) == k
            rest = iter(re.split("|".join(rf"\b{re.escape(word)}\b" for word in put), one.text))
            joined = "".join(next(rest) + source for source in sourced) + next(rest)
            assert next(rest, None) is None
            assert re.sub(r"\ban\b", "a", joined.lower()) == re.sub(r"\ban\b", "a", caption.lower())
            assert one.edit.rule == f"{policy}:k{k}"
    assert made


def test_a_word_that_may_still_be_true_is_never_inserted():
    captions = ["A man on a couch", "A puppy near a tree"]
    never = {"person", "sofa", "dog", "animal", "guy"} & set(TRUE_BESIDE)
    assert len(never) == 5
    put = {
        one.edit.target
        for seed in range(300)
        for one in alter(captions, "x", "same-concept", seed=seed)[0]
        if one
    }
    assert len(put) > 60
    assert not put & never


def test_a_general_word_is_not_replaced_by_a_more_specific_one():
    altered, dropped = alter(["An animal"], "x", "same-concept")
    assert altered == [None] and sum(dropped.values()) == 1


def test_the_word_with_least_influence_for_most_encoders_is_replaced():
    caption = "A dog and a horse near a bench"
    starts = [noun.start for noun in sources(caption)]
    scores = dict(zip(starts, [(0.3, 0.1, 0.2), (0.1, 0.2, 0.1), (0.2, 0.3, 0.3)], strict=True))
    for seed in range(5):
        taken = alter([caption], "x", "danger", seed=seed, influence=[scores])[0][0].edit.source
        assert taken == "horse"
        two = alter([caption], "x", "danger", k=2, seed=seed, influence=[scores])[0][0].edit.source
        assert (
            two == "dog, horse"
        )  # of the remaining two words, two of three encoders ignore the dog
        assert (
            delete([caption], "x", "low-ei", seed=seed, influence=[scores])[0][0].text
            == "A dog and a near a bench"
        )
        assert (
            delete([caption], "x", "high-ei", seed=seed, influence=[scores])[0][0].text
            == "A dog and a horse near a"
        )


def test_tied_words_are_drawn_with_the_seed():
    caption = "A dog and a horse near a bench"
    level = {noun.start: (0.1,) for noun in sources(caption)}
    taken = {
        alter([caption], "x", "danger", seed=seed, influence=[level])[0][0].edit.source
        for seed in range(40)
    }
    assert taken == {"dog", "horse", "bench"}


@pytest.mark.parametrize("which", DELETIONS)
def test_a_deletion_removes_exactly_one_noun(which: str, coco):
    for item, captions in coco[:100]:
        scores = [
            {noun.start: (noun.start * 0.01,) for noun in sources(caption)} for caption in captions
        ]
        altered, dropped = delete(captions, item, which, influence=scores)
        assert sum(dropped.values()) == sum(one is None for one in altered)
        for caption, one in zip(captions, altered, strict=True):
            if one is None:
                continue
            assert one.edit.source in [caption[noun.start : noun.end] for noun in sources(caption)]
            left = words(re.sub(r"['’]s\b", "", caption.lower()))
            kept = words(re.sub(r"['’]s\b", "", one.text.lower()))
            assert len(left) - len(kept) == len(words(one.edit.source))
            assert "  " not in one.text or "  " in caption
            assert (one.edit.kind, one.edit.subtype, one.edit.target) == ("deletion", which, "")
            if which != "random":
                pick = min if which == "low-ei" else max
                assert (
                    one.edit.source
                    == caption[pick(sources(caption)).start : pick(sources(caption)).end]
                )


def test_colors_numbers_and_directions_are_never_replaced():
    assert [noun.form for noun in find("two red cars on the left side")] == [
        "quality",
        "quality",
        "plural",
    ] + ["quality"] * 2
    assert [noun.lemmas for noun in sources("two red cars on the left side")] == [("car",)]


def test_a_custom_word_list_is_used_and_inflected():
    nouns = vocabulary(["walrus", "##ing", "[CLS]", "café", "of", "beautiful", "gravy"])
    assert {concept.lemma for pool in nouns.values() for concept in pool} == {"walrus", "gravy"}
    captions = ["A dog with two cats and some rice"]
    altered = alter(captions, "x", "rand-voca", k=3, words=nouns)[0][0]
    assert altered is None  # two words cannot replace three
    texts = {alter(captions, "x", "rand-voca", words=nouns, seed=s)[0][0].text for s in range(40)}
    assert texts == {
        "A walrus with two cats and some rice",
        "A dog with two walruses and some rice",
        "A dog with two cats and some gravy",
    }


def test_errors_for_invalid_arguments_state_the_expected_values():
    with pytest.raises(NotFound, match="No policy named 'same'"):
        alter(CAPTIONS, "x", "same")
    with pytest.raises(InvalidInput, match=r"from 1 to 5\. Got 6"):
        alter(CAPTIONS, "x", "danger", k=6)
    with pytest.raises(InvalidInput, match="only rand-voca"):
        alter(CAPTIONS, "x", "danger", words=vocabulary(["dog"]))
    with pytest.raises(InvalidInput, match="no noun"):
        vocabulary(["of", "2"])
    with pytest.raises(InvalidInput, match=r"Colors, numbers and directions are skipped\."):
        vocabulary(["red", "two", "left"])
    with pytest.raises(InvalidInput, match="no EI score"):
        alter(CAPTIONS, "x", "danger", influence=[{}] * len(CAPTIONS))
    with pytest.raises(InvalidInput, match="needs EI scores"):
        delete(CAPTIONS, "x", "low-ei")
    with pytest.raises(NotFound, match="No deletion named 'low'"):
        delete(CAPTIONS, "x", "low")
