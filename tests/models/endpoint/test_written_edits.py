"""Edits written by a language model: rules and a second question check each edit, and no request is repeated."""

import json
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.conftest import CAPTIONS
from tests.models.endpoint import author
from tests.models.endpoint.conftest import Server
from vlprobe.cli.main import main
from vlprobe.perturb import instructions
from vlprobe.probes import file_options
from vlprobe.runs.edits import write as edits_write
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage import files
from vlprobe.storage.store import Store

FIRST = [captions[0] for _, _, *captions in CAPTIONS]


def call(store: Store, tiny: str, out: Path, server: Server, *words: str, code: int = 0):
    start = ["--cache", str(store.root), "edits", tiny, str(out), "--with", server.name("author")]
    outcome = CliRunner().invoke(main, [*start, "--captions", "1", *words])
    assert outcome.exit_code == code, outcome.output
    return outcome


def rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def received_messages(server: Server) -> list[list[dict]]:
    return [request["body"]["messages"] for request in server.requests()]


@pytest.fixture
def server(author_server: Server) -> Server:
    return author_server


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "edits.jsonl"


def test_edits_that_pass_the_rules_and_the_second_question_can_be_used_by_every_probe(
    server: Server, tiny: str, store: Store, out: Path
):
    call(store, tiny, out, server, "--kind", "P1", "--kind", "negative:attribute")
    written = {(row["caption"], row["subtype"]): row for row in rows(out)}
    # by hand: the edit of the dog is refused once, that of the car is never one line, the boat's and the horse's fail
    # the second question
    used = [caption for caption in FIRST if not any(w in caption for w in ("car", "boat"))]
    for caption in used:
        if "horse" not in caption:
            assert written[caption, "P1"]["text"] == author.SEEN + author.lowered(caption)
        assert written[caption, "attribute"]["text"] == author.negative(caption)
    assert len(written) == 2 * len(used) - 1
    assert {row["meaning"] for row in rows(out) if row["subtype"] == "P1"} == {"same"}
    assert {row["made"] for row in rows(out)} == {"2026-01-01"}
    assert {row["maker"] for row in rows(out)} == {f"{server.url}#author, answered by 'author'"}
    for probe in ("visla", "prsm"):  # `tests/probes/test_edits_file.py` tests all probes
        request = Request(("control:random",), tiny, probe, {"edits": str(out)}, examine=False)
        manifest = execute(request, store)[0]
        assert manifest["n_cases"], probe


def test_rejected_edits_are_written_to_a_second_file_with_the_reason(
    server: Server, tiny: str, store: Store, out: Path
):
    outcome = call(store, tiny, out, server, "--kind", "P1", "--attempts", "2")
    reasons = {row["caption"]: row["reason"] for row in rows(out.with_suffix(".rejected.jsonl"))}
    car, boat, horse = (next(c for c in FIRST if w in c) for w in ("car", "boat", "horse"))
    assert reasons == {
        car: instructions.SEVERAL_LINES,
        boat: instructions.NO_VERDICT,
        horse: instructions.JUDGED_DIFFERENT,
    }
    assert "3 edits (P1 3)" in outcome.stderr and "3 not written" in outcome.stderr
    again = [messages for messages in received_messages(server) if len(messages) == 3]
    assert {author.caption_of(messages) for messages in again} == {car, boat, horse, FIRST[0]}
    conversation = next(messages for messages in again if author.caption_of(messages) == car)
    assert (
        conversation[1]["content"] == author.TWICE
        and instructions.SEVERAL_LINES in conversation[2]["content"]
    )
    assert max(map(len, received_messages(server))) == 3  # at most two attempts


def test_the_second_question_does_not_reveal_the_intended_meaning(
    server: Server, tiny: str, store: Store, out: Path
):
    def beginnings() -> list[str]:
        contents = [messages[0]["content"] for messages in received_messages(server)]
        return [text.partition("First caption")[0] for text in contents if "First caption" in text]

    call(store, tiny, out, server, "--kind", "negative:object", "--limit", "1")
    (shared,) = beginnings()
    call(store, tiny, out.with_name("2.jsonl"), server, "--kind", "P1", "--limit", "1")
    assert beginnings()[-1] == shared


def test_a_stopped_command_resumes_without_repeated_requests(
    server: Server, tiny: str, store: Store, out: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(edits_write, "CAPTIONS_AT_A_TIME", 2)
    whole = out.with_name("whole.jsonl")
    call(Store(store.root.with_name("other")), tiny, whole, server)
    n_whole = len(received_messages(server))
    server.fail()
    for attempt in range(n_whole):
        cost = ["--price", "100", "--max-cost", f"{0.08 * (attempt + 1):.2f}"]
        start = ["--cache", str(store.root), "edits", tiny, str(out), "--captions", "1", *cost]
        outcome = CliRunner().invoke(main, [*start, "--with", server.name("author")])
        if outcome.exit_code == 0:
            break
        assert "Stopped before the next request" in outcome.stderr
        assert outcome.stderr.splitlines()[-1].startswith("Error: ")
    else:
        pytest.fail("never finished")
    assert attempt >= 2
    assert len(received_messages(server)) == n_whole
    assert out.read_bytes() == whole.read_bytes()
    call(store, tiny, out, server)
    assert len(received_messages(server)) == n_whole


def test_edits_finished_before_an_error_remain_in_the_file(
    server: Server, tiny: str, store: Store, out: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(edits_write, "CAPTIONS_AT_A_TIME", 1)
    words = ["--kind", "P1", "--sample", "6"]
    call(store, tiny, out, server, *words, "--limit", "1")
    first = rows(out)
    server.fail("401", 1)
    outcome = call(store, tiny, out, server, *words, code=1)
    assert "rejected the key" in outcome.stderr and rows(out) == first


def test_a_second_process_that_writes_the_same_edits_is_refused(
    server: Server, tiny: str, store: Store, out: Path
):
    call(store, tiny, out, server, "--kind", "P1", "--limit", "1")
    lock = next((store.root / "mine" / "answers").rglob("answers.jsonl")).with_name(".writing.lock")
    before = out.read_bytes()
    with files.lock(lock, lambda: None):
        outcome = call(store, tiny, out, server, "--kind", "P1", code=1)
    assert "by another process" in outcome.stderr and out.read_bytes() == before


def test_an_edits_file_from_another_source_is_not_overwritten(
    server: Server, tiny: str, store: Store, out: Path
):
    out.write_text('{"caption": "a", "text": "b", "meaning": "same", "maker": "Ann"}\n')
    outcome = call(store, tiny, out, server, code=1)
    assert "Choose another file name" in outcome.stderr and "Ann" in out.read_text()


def test_an_answer_that_was_cut_off_is_requested_again(
    server: Server, tiny: str, store: Store, out: Path
):
    call(store, tiny, out, server, "--kind", "P1", "--limit", "1", "--where", "thing=cat")
    server.fail("cut", 1)
    call(store, tiny, out, server, "--kind", "P1", "--limit", "1", "--where", "thing=bus")
    last = [messages[-1]["content"] for messages in received_messages(server)]
    assert [instructions.CUT_OFF in content for content in last] == [False, True, False]


def test_an_answer_without_text_stops_the_command_with_a_one_line_error(
    server: Server, tiny: str, store: Store, out: Path
):
    call(store, tiny, out, server, "--kind", "P1", "--limit", "1")
    server.fail("wordless", 1)
    outcome = call(store, tiny, out, server, "--kind", "P1", code=1)
    assert "its message has no 'content'" in outcome.stderr.splitlines()[-1]


def test_several_edits_of_a_kind_differ_and_use_different_seeds(
    server: Server, tiny: str, store: Store, out: Path
):
    words = ["--kind", "P1", "--count", "2", "--item", "2.png", "--attempts", "1"]
    call(store, tiny, out, server, *words, "--seed", "7", "--temperature", "0.5")
    assert len(rows(out)) == 1  # the author writes only one
    assert [row["reason"] for row in rows(out.with_suffix(".rejected.jsonl"))] == [
        instructions.REPEATED
    ]
    bodies = [request["body"] for request in server.requests()[1:]]
    assert len({body["seed"] for body in bodies[:2]}) == 2
    assert [body["temperature"] for body in bodies] == [0.5, 0.5, 0.0]


def test_a_p2_edit_needs_its_opening_and_skips_non_english_captions(
    server: Server, tmp_path: Path, store: Store, out: Path
):
    from tests.runs.test_run import pictured

    german = "Ein Bus hält vor einem alten Gebäude."
    data = pictured(tmp_path, {"a.png": "A photo of a cat on a table.", "b.png": german})
    call(store, data, out, server, "--kind", "P2")
    texts = [row["text"] for row in rows(out)]
    assert texts == [
        "A picture of a photo of a cat on a table.",
        "An image of a photo of a cat on a table.",
        "There one sees a photo of a cat on a table.",
    ]
    reasons = [(row["caption"], row["reason"]) for row in rows(out.with_suffix(".rejected.jsonl"))]
    assert (german, "not in English") in reasons
    assert ("A photo of a cat on a table.", "the caption begins with these words") in reasons


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("demo:softmax", "cannot write texts"),
        ("http:http://127.0.0.1:1/v1#m+pictures", "has options for scores or embeddings"),
    ],
)
def test_a_model_that_cannot_write_texts_is_refused(
    tiny: str, tmp_path: Path, out: Path, name: str, words: str
):
    start = ["--cache", str(tmp_path / "c"), "edits", tiny, str(out), "--with", name]
    outcome = CliRunner().invoke(main, start)
    assert outcome.exit_code == 1 and words in outcome.stderr and not out.exists()


def test_every_kind_of_edit_can_be_requested_and_read_from_the_file(
    server: Server, tiny: str, store: Store, out: Path
):
    words = ["--kind", "visla", "--kind", "prsm", "--kind", "negatives", "--attempts", "1"]
    call(store, tiny, out, server, *words, "--item", "3.png")
    edits = file_options.load_edits(file_options.EDITS.with_digest({"edits": str(out)}))
    assert edits and edits.rows[0].subtype == "positive"
    rest = rows(out.with_suffix(".rejected.jsonl"))
    every = Counter(row["subtype"] for row in [*rows(out), *rest])
    assert every.pop("P2") == 4 and every.pop("P3") == 3 and every.total() == 1 + 1 + 1 + 6
    assert {row["reason"] for row in rest} == {instructions.REPEATED}
