"""Edits that people judged one by one: the rules make every good one and no bad one.

The captions are from COCO (CC BY 4.0) through RoCOCO (MIT), or invented.
"""

import functools
import json
from collections import Counter
from pathlib import Path

from vlprobe.perturb import advanced, strict, templates
from vlprobe.perturb.grammar import Sentence
from vlprobe.perturb.tokens import Reading
from vlprobe.perturb.truths import truths

GOLD = [
    json.loads(line)
    for line in (Path(__file__).parent / "gold.jsonl").read_text(encoding="utf-8").splitlines()
]


@functools.cache
def edits_of(caption: str) -> frozenset[str]:
    """Return all edits that the strict rules make of the caption over many seeds, if its image has no other caption."""
    sentence = Sentence(Reading(caption))
    made = {one.text for one in advanced.paraphrases(sentence) + templates.fitted(sentence)}
    known = truths([sentence.reading.lower])
    for seed in range(120):
        made |= {
            flip.text for flip in strict.flips(sentence.reading, known, "gold", 0, seed, Counter())
        }
    return frozenset(made)


def test_every_edit_judged_good_is_made():
    missing = [
        row
        for row in GOLD
        if row["verdict"] == "good" and row["text"] not in edits_of(row["caption"])
    ]
    assert missing == []


def test_no_edit_judged_bad_is_made():
    made = [
        row for row in GOLD if row["verdict"] == "bad" and row["text"] in edits_of(row["caption"])
    ]
    assert made == []


def test_the_gold_file_has_enough_good_and_bad_edits():
    verdicts = [row["verdict"] for row in GOLD]
    assert verdicts.count("good") >= 150
    assert verdicts.count("bad") >= 50
    assert {row["rule"].partition(":")[0] for row in GOLD} >= {
        "passive",
        "inversion",
        "synonym",
        "flip",
        "template",
    }
