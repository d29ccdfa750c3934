"""Logs of other tools are read as answers: the chosen caption, or unknown if the reply cannot be read."""

import io
import json
import math
import zipfile
from pathlib import Path

import openpyxl
import pyarrow as pa
import pytest

from vlprobe.errors import InvalidInput
from vlprobe.models.answer_logs import NEITHER, UNKNOWN, LoggedAnswer, parse_choice, read_log

GPT4V = Path(__file__).parents[3] / "shared/data/real/gpt4v"
CAPTIONS = ("A dog on a bench.", "A cat on a bench.")


def read(path: Path, content: str | bytes) -> list[LoggedAnswer]:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    answers = read_log(path, path.read_bytes())
    assert answers is not None
    return answers


@pytest.mark.parametrize(
    ("reply", "choice"),
    [
        ("(2)", 1),
        ("Output (1).", 0),
        ("B", 1),
        ("b.", 1),
        ("B. A cat on a bench", 1),
        ("**Answer:** B", 1),
        ("The answer is A", 0),
        ("The second caption fits better.", 1),
        ('"A DOG on a bench"', 0),
        ("I see a cat on a bench here.", 1),
        ("Neither (1) nor (2)", NEITHER),
        ("None of the captions is right.", NEITHER),
        ("Neither (1) nor (2) is exact; if I must choose, it would be (2).", 1),
        ("I cannot output (1) or (2): neither is accurate.", NEITHER),
        ("A or B", UNKNOWN),
        ("It is A or it is (2)", 1),
        ("I'm sorry, I can't help with that.", UNKNOWN),
        ("(3)", UNKNOWN),
        ("", UNKNOWN),
    ],
)
def test_the_choice_of_a_reply_is_parsed(reply: str, choice: int):
    assert parse_choice(reply, CAPTIONS) == choice


def test_the_longer_of_two_overlapping_captions_is_chosen_if_a_reply_quotes_it():
    options = ("A man", "A man and a dog")
    assert parse_choice("I think: a man and a dog, sitting", options) == 1
    assert parse_choice("I think: a man, sitting", options) == 0


@pytest.mark.skipif(not GPT4V.is_dir(), reason="../shared/data/real is not here")
def test_parsed_choices_agree_with_sugarcrepe_except_for_six_of_15024_answers():
    differing, n_answers = [], 0
    for path in sorted(GPT4V.glob("*/*.json")):
        for row in json.loads(path.read_text("utf-8")).values():
            if not isinstance(row, dict):
                continue  # the total of the file
            options = [row["caption"], row["negative_caption"]]
            if path.parent.name == "negative-first":
                options.reverse()
            chosen = row["answer"]["multiple_choice_answer"]
            expected = options.index(chosen) if chosen in options else None
            choice = parse_choice(str(row["answer"]["free_form_answer"]), options)
            n_answers += 1
            if choice != expected and not (expected is None and choice in (NEITHER, UNKNOWN)):
                differing.append((path.name, row["answer"]["free_form_answer"]))
    assert n_answers == 15_024
    assert len(differing) == 6, differing


@pytest.mark.skipif(not GPT4V.is_dir(), reason="../shared/data/real is not here")
def test_sugarcrepes_gpt4v_files_give_the_printed_counts():
    path = GPT4V / "positive-first/gpt4v-swap_obj.json"
    answers = read_log(path, path.read_bytes())
    assert answers is not None
    assert (sum(answer.scores[0][0] for answer in answers), len(answers)) == (211, 246)


def test_a_sugarcrepe_answer_that_chose_neither_caption_is_a_tie(tmp_path: Path):
    row = {
        "caption": "a dog",
        "negative_caption": "a cat",
        "filename": "000000000139.jpg",
        "correct": False,
    }
    log = {
        "0": {**row, "answer": {"multiple_choice_answer": "a cat"}},
        "1": {**row, "answer": {"multiple_choice_answer": "Neither"}},
        "2": {**row, "answer": {"multiple_choice_answer": "a dog"}, "correct": True},
        "accuracy": "0.3333",
    }
    answers = read(tmp_path / "gpt4v.json", json.dumps(log))
    assert [answer.scores for answer in answers] == [((0, 1),), ((0, 0),), ((1, 0),)]
    assert answers[0].picture == "000000000139"


def spreadsheet(rows: list[list[object]]) -> bytes:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    content = io.BytesIO()
    book.save(content)
    return content.getvalue()


def test_vlmevalkits_predictions_put_the_true_caption_first(tmp_path: Path):
    rows = [
        ["index", "question", "A", "B", "answer", "prediction", "image_path"],
        [7, "Which fits?", "a cat", "a dog", "B", "B", "photos/139.jpg"],
        [8, "Which fits?", "a cat", "a dog", "A", "The answer is B.", "photos/140.jpg"],
        [9, "Which fits?", "a cat", "a dog", "A", "I do not know", "photos/141.jpg"],
    ]
    answers = read(tmp_path / "model.xlsx", spreadsheet(rows))
    assert [answer.texts for answer in answers] == [
        ("a dog", "a cat"),
        ("a cat", "a dog"),
        ("a cat", "a dog"),
    ]
    assert [answer.scores[0] for answer in answers[:2]] == [(1, 0), (0, 1)]
    assert all(map(math.isnan, answers[2].scores[0])) and answers[2].reply == "I do not know"
    assert [answer.picture for answer in answers] == ["139", "140", "141"]


@pytest.mark.parametrize(
    ("doc", "target"),
    [
        ({"options": ["a cat", "a dog"]}, "B"),
        ({"choices": ["a cat", "a dog"]}, 1),
        ({"A": "a cat", "B": "a dog"}, "a dog"),
        ({"caption": "a dog", "negative_caption": "a cat"}, "a dog"),
    ],
)
def test_lmms_eval_samples_are_read_with_every_name_of_the_options_field(
    tmp_path: Path, doc: dict, target: object
):
    line = {
        "doc_id": 3,
        "doc": doc,
        "target": target,
        "resps": [["..."]],
        "filtered_resps": ["a cat"],
        "acc": 0.0,
    }
    (answer,) = read(tmp_path / "20260101_samples_pairs.jsonl", json.dumps(line))
    assert (answer.key, answer.texts, answer.scores) == ("3", ("a dog", "a cat"), ((0, 1),))


def sample(**changes: object) -> dict[str, object]:
    return {
        "id": "q1",
        "epoch": 1,
        "input": "Which caption fits?",
        "choices": ["a cat", "a dog"],
        "target": ["B"],
        "metadata": {"filename": "139.jpg"},
        "output": {"completion": "ANSWER: A", "choices": []},
        "scores": {"choice": {"value": "I", "answer": "A"}},
        **changes,
    }


def archive(samples: list[dict[str, object]]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as log:
        for one in samples:
            log.writestr(f"samples/{one['id']}_epoch_{one['epoch']}.json", json.dumps(one))
        log.writestr("header.json", json.dumps({"version": 2, "eval": {"model": "x"}}))
    return content.getvalue()


def with_zstd(content: bytes) -> bytes:
    """Return the archive with its members compressed as zstd, which Python 3.11 cannot write."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w") as new:
        for info in old.infolist():
            plain = old.read(info)
            new.writestr(info.filename, pa.compress(plain, codec="zstd", asbytes=True))
            # the method and size that the directory at the end of the archive declares
            new.filelist[-1].compress_type, new.filelist[-1].file_size = 93, len(plain)
    return out.getvalue()


@pytest.mark.parametrize("packed", [False, True])
def test_inspects_archives_are_read_deflated_and_with_zstd(tmp_path: Path, packed: bool):
    content = archive([sample(), sample(epoch=2), sample(id="q2", scores=None)])
    answers = read(tmp_path / "log.eval", with_zstd(content) if packed else content)
    assert [(answer.key, answer.texts, answer.scores) for answer in answers] == [
        ("q1", ("a dog", "a cat"), ((0, 1),)),
        ("q2", ("a dog", "a cat"), ((0, 1),)),
    ]
    assert answers[0].picture == "139"


def test_inspects_json_log_gives_the_answers_of_its_archive(tmp_path: Path):
    log = {"version": 2, "eval": {"model": "x"}, "samples": [sample(), sample(id="q2", target="A")]}
    of_json = read(tmp_path / "log.json", json.dumps(log))
    of_archive = read(tmp_path / "log.eval", archive([sample(), sample(id="q2", target="A")]))
    assert of_json == of_archive


def test_mtebs_predictions_are_named_by_subset_and_number(tmp_path: Path):
    log = {
        "mteb_model_meta": {"model_name": "m", "revision": None},
        "add_att": {"test": [[[0.3, 0.2]], [[0.1, 0.4]]]},
        "swap_obj": {"test": [[[0.5, 0.5]]]},
    }
    answers = read(tmp_path / "SugarCrepe_predictions.json", json.dumps(log))
    assert [(answer.key, answer.scores) for answer in answers] == [
        ("add_att/0", ((0.3, 0.2),)),
        ("add_att/1", ((0.1, 0.4),)),
        ("swap_obj/0", ((0.5, 0.5),)),
    ]


HOSTILE = {
    "damaged.xlsx": b"PK\x03\x04 no spreadsheet",
    "columns.xlsx": spreadsheet([["index", "question"], [1, "x"]]),
    "answer.xlsx": spreadsheet([["A", "B", "answer", "prediction"], ["x", "y", "both", "A"]]),
    "damaged.eval": archive([sample()])[:-40],
    "empty.eval": archive([]),
    "free.eval": archive([sample(choices=None)]),
    "target.eval": archive([sample(target="Z")]),
    "samples.json": json.dumps({"eval": {}, "samples": [3]}).encode(),
    "target_samples_x.jsonl": json.dumps(
        {"doc_id": 0, "doc": {"A": "x", "B": "y"}, "target": "z"}
    ).encode(),
    "fields_samples_x.jsonl": json.dumps(
        {"doc_id": 0, "doc": {"question": "x"}, "target": "z"}
    ).encode(),
    "doc_samples_x.jsonl": b'{"doc_id": 0, "doc": {"A": "x", "B": "y"}, "target": "x"}\n[1]',
    "a_predictions.json": b'{"mteb_model_meta": {}, "default": {"test": [0.5]}}',
    "b_predictions.json": b'{"mteb_model_meta": {}, "default": {"test": [[[0.5, NaN]]]}}',
    "c_predictions.json": b'{"mteb_model_meta": {}, "default": {"test": [[[0.5], [0.5, 0.1]]]}}',
    "d_predictions.json": b'{"mteb_model_meta": {}, "default": {"dev": [], "test": []}}',
    "correct.json": b'{"0": {"caption": "x", "negative_caption": "y", "correct": "yes"}}',
    "gpt4v.json": b'{"0": {"caption": 1, "negative_caption": "x", "correct": true}}',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_damaged_log_is_refused_in_one_line_that_names_the_file(tmp_path: Path, name: str):
    with pytest.raises(InvalidInput, match=name) as failure:
        read(tmp_path / name, HOSTILE[name])
    assert "\n" not in str(failure.value)


def test_an_archive_that_declares_gigabytes_is_refused_without_reading_it(tmp_path: Path):
    content = bytearray(archive([sample()]))
    entry = content.find(b"PK\x01\x02")
    content[entry + 24 : entry + 28] = (2**31).to_bytes(4, "little")
    with pytest.raises(InvalidInput, match="unpacks to 2,048 MiB"):
        read(tmp_path / "bomb.eval", bytes(content))


@pytest.mark.parametrize("name", ["scores.jsonl", "scores.json", "scores.csv"])
def test_a_file_that_is_not_a_log_is_not_read_as_one(tmp_path: Path, name: str):
    (tmp_path / name).write_text(
        '[{"label": "a_c0_i0", "score": 1}]' if name.endswith("json") else '{"label": "x"}'
    )
    assert read_log(tmp_path / name, (tmp_path / name).read_bytes()) is None
