"""How judges who had seen neither the rules nor what was meant read edits of every kind of `perturb.kinds`.

A row of gold_kinds.jsonl is one edit as the rules drew it, with what it should be (`meaning`: same or different) and
what each judge called it: same, different, bad (no acceptable English) or unclear, with their comments. `made` says
whether the rules make it today: what a judge doubted led to narrower rules. The sheets mixed all kinds with decoys.
The captions are of COCO (CC BY 4.0): val2017, and val2014 by way of RoCOCO (MIT).
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
    """Whether every judge called it what it should be."""
    return bool(row["verdicts"]) and set(row["verdicts"]) == {row["meaning"]}


@pytest.mark.parametrize("kind", kind_edits.OFFERED)
def test_the_judges_call_an_offered_kind_right_at_least_95_times_in_100(kind: str):
    rows = rows_of(kind)
    assert len(rows) >= 60
    assert sum(row["image"].startswith(("coco_real/", "rococo/COCO_")) for row in rows) >= 20
    n_right = sum(map(is_right, rows))
    assert n_right / len(rows) >= LEAST_RIGHT
    assert binomtest(n_right, len(rows)).proportion_ci(method="wilson").low > 0.87


@pytest.mark.parametrize("kind", kind_edits.NAMES)
def test_a_kind_means_what_its_side_says(kind: str):
    meaning = "different" if kind in kind_edits.LIES else "same"
    assert {row["meaning"] for row in rows_of(kind)} == {meaning}


def test_the_rules_make_today_what_the_file_says_and_nothing_that_a_judge_doubted():
    for row in GOLD:
        sentence = Sentence(Reading(row["caption"]))
        made = row["text"] in {each.text for each in kind_edits.changes(row["kind"], sentence)}
        assert made == row["made"], row
        assert is_right(row) or not made, row
    assert sum(row["made"] for row in GOLD) >= 0.97 * len(GOLD)
