"""Kinds of edit beyond LGIP's: each makes the documented change to real and invented captions, and none is used by
default.
"""

import hashlib
import json
import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import OSA

from tests.perturb.test_lgip import captions
from vlprobe.errors import NotFound
from vlprobe.perturb import lgip, lgip_format
from vlprobe.perturb.grammar import Sentence
from vlprobe.perturb.kinds import edits as kind_edits
from vlprobe.perturb.rewriting import NEGATIVE
from vlprobe.perturb.tokens import Reading

GOLD = Path(__file__).parent / "gold.jsonl"
MADE = tomllib.loads(GOLD.with_name("kinds.toml").read_text("utf-8"))
REAL = sorted({json.loads(row)["caption"] for row in GOLD.read_text(encoding="utf-8").splitlines()})
# Digests of the default edits of the first captions in the gold file, computed before other kinds were added.
N_BEFORE = 338
BEFORE = {"strict": "f70d28d8dc344329", "paper": "62c5333423472bf8"}


def every_change(name: str, caption: str, *siblings: str) -> list[tuple[str, str]]:
    sentence = Sentence(Reading(caption))
    readings = [sentence.reading, *map(Reading, siblings)]
    return [(each.text, each.rule) for each in kind_edits.changes(name, sentence, readings)]


def texts(name: str, caption: str, *siblings: str) -> set[str]:
    return {text for text, _ in every_change(name, caption, *siblings)}


def word_counts(text: str) -> Counter[str]:
    return Counter("a" if word == "an" else word for word in re.findall(r"[\w'-]+", text.lower()))


@pytest.mark.parametrize("rules", lgip.RULES)
def test_the_default_edits_have_not_changed(rules: str):
    digest = hashlib.sha256()
    rows = [json.loads(row) for row in GOLD.read_text(encoding="utf-8").splitlines()]
    for number, row in enumerate(rows[:N_BEFORE]):
        edited = lgip.edits([row["caption"]], str(number), rules=rules)
        digest.update(repr(edited.edits).encode())
        digest.update(repr(sorted(edited.dropped.items())).encode())
    assert digest.hexdigest()[:16] == BEFORE[rules]


@pytest.mark.parametrize("rules", lgip.RULES)
def test_more_kinds_are_added_after_lgips_edits_without_changing_them(rules: str):
    for caption in REAL[:60]:
        (default,) = lgip.edits([caption], "x", rules=rules).edits
        (every,) = lgip.edits([caption], "x", rules=rules, kinds=lgip.ALL_KINDS).edits
        assert every[: len(default)] == default
        subtypes = [edit.subtype for _, edit in every[len(default) :]]
        assert len(set(subtypes)) == len(subtypes) and set(subtypes) <= set(kind_edits.NAMES)


@pytest.mark.parametrize("name", kind_edits.NAMES)
def test_a_single_kind_makes_at_most_one_edit_per_caption(name: str):
    edited = lgip.edits(REAL, "x", kinds=[name], k_same=0, k_diff=0)
    counts = [len(of_caption) for of_caption in edited.edits]
    assert max(counts) == 1 and counts.count(0) == edited.dropped.get(f"{name}, no rule fits", 0)
    side = "flip" if name in kind_edits.LIES else "paraphrase"
    edits = [edit for of_caption in edited.edits for _, edit in of_caption]
    assert {(edit.kind, edit.subtype) for edit in edits} == {(side, name)}
    assert all(edit.rule.startswith(f"{name}:") for edit in edits)


def test_an_unknown_kind_of_edit_is_refused():
    with pytest.raises(NotFound, match="kind of edit"):
        lgip.edits(["A cat."], "x", kinds=["shuffle"])


@given(captions(), captions(), st.sampled_from(kind_edits.NAMES))
@settings(max_examples=60, deadline=None)
def test_every_change_differs_from_its_caption_and_from_the_others(caption, sibling, name):
    made = every_change(name, caption, sibling)
    assert len({text for text, _ in made}) == len(made)
    assert caption.strip() not in {text for text, _ in made}


@given(st.text(min_size=1, max_size=60).filter(str.strip), st.sampled_from(kind_edits.NAMES))
@settings(max_examples=60, deadline=None)
def test_changes_of_any_unicode_caption_do_not_fail(caption, name):
    every_change(name, caption)


def test_surface_edits_keep_every_word_and_a_typo_changes_one_key():
    for caption in REAL:
        check_surface(caption)


def check_surface(caption: str) -> None:
    for text in texts("case", caption):
        assert text.casefold() == caption.strip().casefold()
    for text in texts("punctuation", caption):
        assert text.rstrip(".!") == caption.strip().rstrip(" .!")
    for text in texts("typo", caption):
        assert OSA.distance(text, caption.strip()) == 1 and len(text) == len(caption.strip())
        assert len(word_counts(text) - word_counts(caption)) == 1


def test_swaps_keep_the_words_and_other_kinds_change_only_the_named_words():
    for caption in REAL:
        check_lies(caption)


def check_lies(caption: str) -> None:
    for name in ("attribute-swap", "word-order"):
        for text in texts(name, caption):
            assert word_counts(text) == word_counts(caption)
    for text in texts("negation", caption):
        assert len(NEGATIVE.intersection(word_counts(text))) == 1
        assert not NEGATIVE.intersection(word_counts(caption))
    sentence = Sentence(Reading(caption))
    for each in kind_edits.changes("relation", sentence):
        gone, come = word_counts(caption) - word_counts(each.text), word_counts(each.text)
        assert gone <= word_counts(each.source)
        assert come - word_counts(caption) <= word_counts(each.target)


@pytest.mark.parametrize(
    ("name", "caption"), [(name, caption) for name in MADE for caption in MADE[name]]
)
def test_a_rule_makes_exactly_the_expected_edits(name: str, caption: str):
    assert texts(name, caption) == set(MADE[name][caption])


def test_a_typo_never_makes_another_word():
    assert "A man rising a wave" not in texts("typo", "A man riding a wave")
    assert "A dog and a stating cat" not in texts("typo", "A dog and a staring cat")


def test_a_swap_that_another_caption_of_the_image_confirms_is_not_made():
    caption = "A red car and a blue bus."
    assert texts("attribute-swap", caption, "A car beside a bus.")
    assert not texts("attribute-swap", caption, "A blue car.")


def test_the_drawn_edit_does_not_depend_on_the_other_kinds():
    alone = lgip.edits(REAL[:20], "x", kinds=["relation"]).edits
    beside = lgip.edits(REAL[:20], "x", kinds=["typo", "relation", "flip"]).edits
    for of_alone, of_beside in zip(alone, beside, strict=True):
        assert [row for row in of_beside if row[1].subtype == "relation"] == list(of_alone)


def test_wrong_captions_of_every_kind_are_read_back_from_lgips_format():
    edited = lgip.edits(REAL, "x", kinds=kind_edits.LIES)
    (image,) = lgip_format.read([lgip_format.line("1.jpg", REAL, edited)], "f")
    for before, after in zip(edited.edits, image.edits, strict=True):
        assert [(text, edit.kind, edit.subtype) for text, edit in before] == [
            (text, edit.kind, edit.subtype) for text, edit in after
        ]
