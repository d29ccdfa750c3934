"""LGIP's JSON lines: written edits are read back, and errors name the line."""

import json

import pytest

from vlprobe.errors import InvalidInput
from vlprobe.perturb.lgip import edits
from vlprobe.perturb.lgip_format import line, read

CAPTIONS = ["Two dogs sitting on a red couch.", "a man riding a wave"]


def test_written_edits_are_read_back_with_kinds_and_types():
    made = edits(CAPTIONS, "a.jpg")
    (image,) = read([line("a.jpg", CAPTIONS, made)], "file")
    assert (image.image_path, image.captions) == ("a.jpg", tuple(CAPTIONS))
    for written, of_file in zip(made.edits, image.edits, strict=True):
        expected = {
            (text, edit.kind, edit.subtype if edit.kind != "paraphrase" else "")
            for text, edit in written
        }
        assert {
            (text, edit.kind, edit.subtype if edit.kind != "paraphrase" else "")
            for text, edit in of_file
        } == expected


def test_the_fields_are_those_of_the_papers_appendix():
    record = json.loads(line("a.jpg", CAPTIONS, edits(CAPTIONS, "a.jpg")))
    assert list(record) == [
        "image_path", "orig_captions", "same_caps", "diff_caps", "diff_caps_color", "diff_caps_number",
        "diff_caps_object", "combined_caps",
    ]  # fmt: skip
    assert set(record["diff_caps"]) == {"0", "1"}
    assert {item["flip_type"] for item in record["diff_caps"]["0"]} == {"color", "number", "object"}
    assert sorted(item["text"] for item in record["diff_caps"]["0"]) == sorted(
        text for kind in ("color", "number", "object") for text in record[f"diff_caps_{kind}"]["0"]
    )


def test_plain_strings_get_their_type_from_the_typed_list_that_contains_them():
    record = {
        "image_path": "a.jpg",
        "orig_captions": ["a dog"],
        "same_caps": {"0": ["a photo of a dog", "a dog in the scene"]},
        "diff_caps": {"0": ["a cat", "a fox"]},
        "diff_caps_object": {"0": ["a cat"]},
    }
    (image,) = read(["", json.dumps(record)], "file")
    kinds = {text: (edit.kind, edit.subtype) for text, edit in image.edits[0]}
    assert kinds == {
        "a photo of a dog": ("paraphrase", "simple"),
        "a dog in the scene": ("paraphrase", "advanced"),
        "a cat": ("flip", "object"),
        "a fox": ("flip", ""),
    }


GOOD = {"image_path": "a.jpg", "orig_captions": ["a dog"]}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not valid JSON"),
        ("[1]", "a list"),
        (json.dumps({"image_path": "a.jpg"}), "orig_captions"),
        (json.dumps(GOOD | {"same_caps": ["a cat"]}), "same_caps is a list"),
        (json.dumps(GOOD | {"same_caps": {"1": ["a cat"]}}), "key '1'"),
        (json.dumps(GOOD | {"diff_caps": {"0": "a cat"}}), "is a str"),
        (json.dumps(GOOD | {"diff_caps": {"0": [3]}}), "the item 3"),
        (json.dumps(GOOD | {"diff_caps": {"0": [{"text": "a cat", "flip_type": "size"}]}}), "size"),
    ],
)
def test_the_error_for_a_wrong_line_has_its_number(text, says):
    with pytest.raises(InvalidInput, match=says) as caught:
        list(read([json.dumps(GOOD), text], "edits.jsonl"))
    assert str(caught.value).startswith("edits.jsonl, line 2: ")
    assert "\n" not in str(caught.value)
