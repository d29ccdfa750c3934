"""Replies of a language model are checked: each rule is tested with a reply that it rejects, and with real edits."""

import json
from pathlib import Path

import pytest

from vlprobe.errors import NotFound
from vlprobe.perturb import instructions
from vlprobe.perturb.instructions import KINDS, NEGATIVES

CAPTION = "A red bus stops at the corner of a street."
P1, LIE, PHOTO = KINDS["P1"], KINDS["negative:object"], KINDS["P2:photo"]
RIGHT = [
    ("A bus that is red stops at a street corner.", P1),
    ('"A crimson bus halts at the corner of a street."', P1),
    ("<think>What is a bus?\nHm.</think>\nA crimson bus halts at a street corner.", P1),
    ("A red train stops at the corner of a street.", LIE),
    ("a photo of a red bus stopping at the corner of a street.", PHOTO),
]
WRONG = [
    ("NONE", P1, instructions.NONE_POSSIBLE),
    ("none.", LIE, instructions.NONE_POSSIBLE),
    ("", P1, instructions.EMPTY),
    (' "" ', P1, instructions.EMPTY),
    ("...", P1, instructions.EMPTY),
    ("A crimson bus.\nIt halts.", P1, instructions.SEVERAL_LINES),
    ("A crimson bus \x1b[31m halts.", P1, instructions.UNPRINTABLE),
    ("I'm sorry, I can't help with that.", P1, instructions.REFUSAL),
    ("As an AI language model, I have no eyes.", P1, instructions.REFUSAL),
    ("Sure! A crimson bus halts at a corner.", P1, instructions.REMARK),
    ("Paraphrased: A crimson bus halts at a corner.", P1, instructions.REMARK),
    ("Here's a caption of a crimson bus.", P1, instructions.REMARK),
    ("a red bus stops at the corner, of a street", P1, instructions.UNCHANGED),
    ("A scarlet bus stops here.", P1, instructions.REPEATED),
    ("A bus waits.", LIE, instructions.TRUE_CAPTION),
    ("A crimson bus halts at a corner " + "and goes on " * 20, P1, instructions.TOO_LONG),
    ("same", P1, instructions.TOO_SHORT),
    ("A tram.", LIE, instructions.TOO_SHORT),
    ("Ein roter Bus hält an der Straßenecke.", P1, instructions.OTHER_LANGUAGE),
    ("A picture of a red bus that stops at a corner.", PHOTO, instructions.NO_OPENING),
]


def defect(reply: str, kind: instructions.EditKind, is_cut: bool = False) -> str:
    known = {"earlier": {"a scarlet bus stops here"}, "true_captions": {"a bus waits"}}
    return instructions.defect(instructions.text_of(reply), CAPTION, kind, is_cut=is_cut, **known)


@pytest.mark.parametrize(("reply", "kind"), RIGHT)
def test_a_valid_edit_passes_unless_it_is_cut_off(reply: str, kind: instructions.EditKind):
    assert defect(reply, kind) == ""
    assert defect(reply, kind, is_cut=True) == instructions.CUT_OFF


@pytest.mark.parametrize(("reply", "kind", "reason"), WRONG)
def test_an_invalid_edit_is_refused_with_its_reason(
    reply: str, kind: instructions.EditKind, reason: str
):
    assert defect(reply, kind) == reason


@pytest.mark.parametrize(
    ("reply", "meaning"),
    [
        ("same", "same"),
        (" Different. ", "different"),
        ("<think>same?</think>different", "different"),
    ],
)
def test_a_one_word_verdict_is_compared_with_the_intended_meaning(reply: str, meaning: str):
    for kind in (P1, LIE):
        agrees = instructions.judged_defect(reply, kind) == ""
        assert agrees == (kind.meaning == meaning)
    for reply in ("", "They are the same, or different.", "yes"):
        assert instructions.judged_defect(reply, P1) == instructions.NO_VERDICT


@pytest.mark.full  # real data, seconds
def test_the_rules_accept_99_percent_of_human_validated_edits(shared_data: Path):
    """Use captions, second positives and negatives of SugarCrepe++, which people validated."""
    counts = {}
    for file in sorted((shared_data / "scpp" / "data").glob("*.json")):
        rows = json.loads(file.read_text("utf-8"))
        for row in list(rows.values() if isinstance(rows, dict) else rows)[:100]:
            for column, kind in (("caption2", KINDS["positive"]), ("negative_caption", LIE)):
                text = instructions.text_of(row[column])
                reason = instructions.defect(text, row["caption"], kind)
                counts[reason] = counts.get(reason, 0) + 1
    total = sum(counts.values())
    assert total > 500 and counts[""] / total > 0.99, counts


def test_kinds_of_negatives_are_drawn_evenly_and_cycle_through_all():
    drawn = [
        instructions.kind_of(instructions.NEGATIVE, f"caption {n}", 0, 0).name for n in range(600)
    ]
    assert set(drawn) == {kind.name for kind in NEGATIVES}
    assert min(map(drawn.count, set(drawn))) > 60
    six = [instructions.kind_of(instructions.NEGATIVE, "x", 0, n) for n in range(6)]
    assert set(six) == set(NEGATIVES)


def test_the_second_question_reveals_neither_the_intended_meaning_nor_the_kind():
    question = instructions.question(CAPTION, "A red train stops.")[0]["content"]
    words = [kind.rule for kind in KINDS.values() if len(kind.rule) > 6]
    assert not [rule for rule in words if rule in question] and "Answer with one word" in question


def test_an_unknown_kind_is_refused_with_a_suggestion():
    with pytest.raises(NotFound, match="negative:swap"):
        instructions.chosen(["negative:swop"])
    assert instructions.chosen(["prsm", "P1"])[0] == "P1"
    assert len(instructions.chosen(["prsm"])) == 1 + 4 + 3
