"""The page on which people judge edits: blind, kept by judge, gone back to; agreement as on the command line."""

import csv
import io
import json
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.dashboard.test_pages import open_page, words
from vlprobe.cli.main import main
from vlprobe.runs.edits.sheet import drawn, open_edits
from vlprobe.storage import access
from vlprobe.storage import verdicts as stored_verdicts
from vlprobe.storage.store import Store

ROWS = [
    {"caption": f"Caption {n}.", "text": f"Text {n}.", "meaning": meaning}
    for n, meaning in enumerate(["same", "different"] * 3)
]
KEYS = {"same": "s", "different": "d", "unsure": "u", "broken": "b"}


@pytest.fixture
def edits(tmp_path: Path) -> Path:
    path = tmp_path / "edits.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS), "utf-8")
    return path


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, store: Store):
    return partial(open_page, monkeypatch, store, "verdicts")


def judging(shown, edits: Path, **query: str):
    at = shown(edits=str(edits), **query)
    return at.text_input(key="judge").set_value("Ann").run()


def on_page(at) -> str:
    return next(row["text"] for row in ROWS if row["text"] in words(at))


def test_edits_come_one_by_one_in_the_order_of_the_sheet_without_what_was_intended(shown, edits):
    at = judging(shown, edits)
    order = [edit.text for edit in drawn(open_edits(str(edits)).edits, 0, 42)]
    for number, text in enumerate(order):
        assert on_page(at) == text and f"{number} of 6 judged" in at.get("progress")[0].proto.text
        assert not {"same", "different"} & set(words(at).lower().split())
        at.button(key="verdict_same").click().run()
    assert "All are judged" in at.success[0].value


def test_every_verdict_has_a_key(shown, edits):
    at = judging(shown, edits)
    shortcuts = {name: at.button(key=f"verdict_{name}").proto.shortcut.lower() for name in KEYS}
    assert shortcuts == KEYS


def test_a_verdict_can_be_gone_back_to_and_changed(shown, edits, store: Store):
    at = judging(shown, edits)
    first = on_page(at)
    at.button(key="verdict_broken").click().run()
    at.button(key="verdict_back").click().run()
    assert on_page(at) == first
    at.button(key="verdict_different").click().run()
    assert on_page(at) != first
    given = stored_verdicts.read(store, open_edits(str(edits)).digest)
    assert [(row.judge, row.verdict) for row in given] == [("Ann", "different")]


def test_the_sheet_and_the_agreement_are_those_of_the_command_line(
    shown, edits, store: Store, tmp_path: Path
):
    at = judging(shown, edits, open="agreement")
    for _ in ROWS:
        at.button(key="verdict_same").click().run()
    outcome = CliRunner().invoke(main, ["--cache", str(store.root), "verdicts", str(edits)])
    assert outcome.exit_code == 0
    assert outcome.stderr.strip() in [body.value.replace("\\", "") for body in at.markdown]
    assert "3 disputes" in outcome.stderr and "Ann: same" in words(at)
    labels = [button.proto.label for button in at.get("download_button")]
    assert labels == ["Download as CSV", "Download the edits without 3 that were judged wrong"]


def test_nothing_is_judged_where_nothing_may_be_written(shown, edits, monkeypatch):
    monkeypatch.setenv(access.READ_ONLY, "1")
    monkeypatch.setenv(access.ROOTS, str(edits.parent))
    at = shown(edits=str(edits))
    assert "read-only" in words(at) and not [b for b in at.button if "verdict" in str(b.key)]


def test_a_file_that_is_none_and_one_outside_of_the_roots_are_one_line(shown, edits, monkeypatch):
    edits.write_text("no JSON\n")
    assert "no JSON object" in shown(edits=str(edits)).error[0].value
    monkeypatch.setenv(access.ROOTS, str(edits.parent / "other"))
    assert "outside" in shown(edits=str(edits)).error[0].value


def test_another_seed_and_a_sample_draw_another_sheet(shown, edits):
    at = judging(shown, edits, seed="7", sample="0")
    assert on_page(at) == drawn(open_edits(str(edits)).edits, 0, 7)[0].text
    assert "is no seed" in shown(edits=str(edits), seed="x").error[0].value


def test_without_a_file_the_page_says_how_to_make_one(shown):
    assert "vlprobe edits" in " ".join(code.value for code in shown().code)


def test_what_was_exported_is_read_back_as_the_same_verdicts(edits, store: Store, tmp_path: Path):
    from vlprobe.render.sheet import as_csv
    from vlprobe.runs.edits.sheet import read_verdicts

    judged = open_edits(str(edits))
    given = {edit.id: word for edit, word in zip(judged.edits, KEYS, strict=False)}
    path = tmp_path / "download.csv"
    path.write_text(as_csv(judged.edits, given, "Ann"), "utf-8")
    assert {(v.judge, v.id, v.verdict) for v in read_verdicts(path, judged)} == {
        ("Ann", *pair) for pair in given.items()
    }
    assert len(list(csv.reader(io.StringIO(path.read_text("utf-8-sig"))))) == 7
