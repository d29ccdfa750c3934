"""Annotations of cases are stored completely, by several processes at once, and damage affects only the damaged
lines.
"""

import subprocess
import sys

import pytest

from vlprobe.errors import InvalidInput
from vlprobe.storage import annotations, errata
from vlprobe.storage.annotations import Annotation
from vlprobe.storage.store import Store

KEY = "a" * 16


def test_the_last_note_of_a_case_counts_and_the_newest_is_listed_first(store: Store):
    annotations.write(store, KEY, Annotation(3, "c3", ("odd",), "first"))
    annotations.write(store, KEY, Annotation(5, "c5", ("even", "odd")))
    annotations.write(store, KEY, Annotation(3, "c3", ("even",), "second"))
    known = annotations.read(store, KEY)
    assert known.current == (
        Annotation(3, "c3", ("even",), "second"),
        Annotation(5, "c5", ("even", "odd")),
    )
    assert known.tags == {"even": 2, "odd": 1}
    assert annotations.read(store, "b" * 16).current == ()


def test_the_former_name_of_a_wrong_label_is_read_as_the_same_tag(store: Store):
    annotations.write(store, KEY, Annotation(1, "c1", ("label wrong", "wrong label", "odd")))
    assert annotations.read(store, KEY).tags == {"odd": 1, "wrong label": 1}
    assert errata.TAGS["wrong"] in annotations.SUGGESTED


def test_an_emptied_note_is_deleted(store: Store):
    annotations.write(store, KEY, Annotation(3, "c3", ("odd",), "note"))
    annotations.write(store, KEY, Annotation(3, "c3"))
    assert annotations.read(store, KEY).current == ()


def test_every_note_is_read_back_as_typed(store: Store):
    note = 'a "quote", a\nnew line, <b>, =1+1, \u2028, 🔎, \\, and {"case": 1}'
    annotation = annotations.write(
        store, KEY, Annotation(1, "c", ("  two   words ", "two words", "é<i>"), note)
    )
    assert annotation.tags == ("two words", "é<i>")
    assert annotations.read(store, KEY).current == (annotation,)
    assert annotation.note == note


def test_a_damaged_line_is_reported_and_the_others_are_read(store: Store):
    for number in range(3):
        annotations.write(store, KEY, Annotation(number, f"c{number}", ("odd",)))
    path = store.root / "mine" / "annotations" / f"{KEY}.jsonl"
    lines = path.read_bytes().split(b"\n")
    lines[1] = lines[1][:20]
    path.write_bytes(
        b"\n".join(
            [
                *lines[:2],
                b"\xff\xfe",
                b"[1]",
                b"[" * 100_000,
                b'{"case": 9999999999999999999999, "id": "x", "tags": [], "note": "n"}',
                b'{"case": "x", "id": "", "tags": [], "note": ""}',
                *lines[2:],
            ]
        )
    )
    known = annotations.read(store, KEY)
    assert [one.case for one in known.current] == [2, 0]
    assert known.damaged == tuple(f"{KEY}.jsonl, line {line}" for line in range(2, 8))


def test_a_line_truncated_by_a_crash_does_not_damage_later_ones(store: Store):
    annotations.write(store, KEY, Annotation(1, "c1", ("odd",)))
    path = store.root / "mine" / "annotations" / f"{KEY}.jsonl"
    path.write_bytes(path.read_bytes() + b'{"case": 2, "id"')
    assert annotations.read(store, KEY).damaged == ()  # another process may still be writing it
    annotations.write(store, KEY, Annotation(3, "c3", ("odd",)))
    known = annotations.read(store, KEY)
    assert [one.case for one in known.current] == [3, 1]
    assert known.damaged == (f"{KEY}.jsonl, line 2",)


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"tags": ("x" * 31,)}, "30 characters"),
        ({"tags": ("a\x07b",)}, "one line"),
        ({"tags": tuple("abcdefghi")}, "The maximum is 8"),
        ({"note": "x" * 2001}, "2,000"),
    ],
)
def test_too_long_or_too_many_tags_and_notes_are_refused(store: Store, given: dict, word: str):
    with pytest.raises(InvalidInput, match=word):
        annotations.write(store, KEY, Annotation(1, "c", **given))
    assert annotations.read(store, KEY).current == ()


def test_the_number_of_different_tags_is_limited(store: Store):
    for start in range(0, annotations.MAX_VOCABULARY, 8):
        annotations.write(
            store, KEY, Annotation(start, "c", tuple(f"t{start + step:02}" for step in range(8)))
        )
    with pytest.raises(InvalidInput, match="Use an existing tag: t00"):
        annotations.write(store, KEY, Annotation(99, "c", ("one more",)))
    annotations.write(store, KEY, Annotation(99, "c", ("t00",)))
    assert annotations.read(store, KEY).tags["t00"] == 2


def test_a_read_only_dashboard_writes_no_annotation(store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("VLPROBE_READ_ONLY", "1")
    with pytest.raises(InvalidInput, match="read-only"):
        annotations.write(store, KEY, Annotation(1, "c", ("odd",)))
    assert not (store.root / "mine").exists()


def test_concurrent_writes_of_annotations_lose_nothing(store: Store):
    code = (
        "import sys; from vlprobe.storage import annotations as a; from vlprobe.storage.store import Store\n"
        "from pathlib import Path\n"
        "for n in range(int(sys.argv[3]), int(sys.argv[3]) + 15):\n"
        "    a.write(Store(Path(sys.argv[1])), sys.argv[2], a.Annotation(n, 'c', ('t',), 'x' * 500))"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(store.root), KEY, str(start)])
        for start in (0, 100)
    ]
    assert [process.wait() for process in running] == [0, 0]
    known = annotations.read(store, KEY)
    assert known.damaged == ()
    assert sorted(one.case for one in known.current) == [
        start + n for start in (0, 100) for n in range(15)
    ]


def test_the_version_changes_with_each_annotation(store: Store):
    seen = [annotations.version(store, KEY)]
    for number in range(3):
        annotations.write(store, KEY, Annotation(number, "c", ("odd",)))
        seen.append(annotations.version(store, KEY))
    assert len(set(seen)) == 4
