"""Verdicts on edits of every kind of `perturb.kinds` by judges who knew neither the rules nor the intended meaning.

A row of gold_kinds.jsonl is an edit that the rules drew, its intended `meaning` (same or different), and the verdict of
each judge: same, different, bad (not acceptable English) or unclear, with comments. `made` states whether the current
rules make the edit: doubts of the judges led to narrower rules. The sheets mixed all kinds with decoys. The captions
are from COCO (CC BY 4.0): val2017, and val2014 through RoCOCO (MIT).
"""

import json
from pathlib import Path

import pytest
from scipy.stats import binomtest

from vlprobe.perturb.grammar import Sentence
from vlprobe.perturb.kinds import edits as kind_edits
from vlprobe.perturb.tokens import Reading

GOLD = [
    json.loads(line)
    for line in (Path(__file__).parent / "gold_kinds.jsonl").read_text("utf-8").splitlines()
]
LEAST_RIGHT = 0.95


def rows_of(kind: str) -> list[dict]:
    return [row for row in GOLD if row["kind"] == kind]


def is_right(row: dict) -> bool:
    """Return whether every judge gave the intended meaning."""
    return bool(row["verdicts"]) and set(row["verdicts"]) == {row["meaning"]}


@pytest.mark.parametrize("kind", kind_edits.NAMES)
def test_judges_agree_with_at_least_95_percent_of_the_edits_of_an_offered_kind(kind: str):
    rows = rows_of(kind)
    assert len(rows) >= 60
    assert sum(row["image"].startswith(("coco_real/", "rococo/COCO_")) for row in rows) >= 20
    n_right = sum(map(is_right, rows))
    assert n_right / len(rows) >= LEAST_RIGHT
    assert binomtest(n_right, len(rows)).proportion_ci(method="wilson").low > 0.87


@pytest.mark.parametrize("kind", kind_edits.NAMES)
def test_every_kind_has_the_meaning_of_its_group(kind: str):
    meaning = "different" if kind in kind_edits.LIES else "same"
    assert {row["meaning"] for row in rows_of(kind)} == {meaning}


def test_the_rules_make_the_edits_marked_made_and_none_that_a_judge_doubted():
    for row in GOLD:
        sentence = Sentence(Reading(row["caption"]))
        made = row["text"] in {each.text for each in kind_edits.changes(row["kind"], sentence)}
        assert made == row["made"], row
        assert is_right(row) or not made, row
    assert sum(row["made"] for row in GOLD) >= 0.97 * len(GOLD)
