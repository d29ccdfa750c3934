"""Malicious dataset files: each is read correctly or refused with a one-line error."""

import itertools
import json
import os
from pathlib import Path

import pytest
from PIL import Image

from tests.conftest import tiers
from vlprobe import registry
from vlprobe.datasets.validation import MAX_CHARACTERS, MAX_TAGS
from vlprobe.errors import VlprobeError

DEEP = 1_000_000
JSON = {  # JSON that is not a dataset, and part of the error of every reader
    "a million lists in each other": ("[" * DEEP + "]" * DEEP, "nested too deeply"),
    "a million lists, none closed": ("[" * DEEP, "nested too deeply"),
    "a hundred thousand objects in each other": (
        '{"a":' * 100_000 + "1" + "}" * 100_000,
        "nested too deeply",
    ),
    "a number of 5000 digits": ("9" * 5000, "digits"),
    "a number of 5000 digits in a row": ('{"id": %s}' % ("9" * 5000), "digits"),
    "a number beyond any float": ("[1e999999]", ""),
    "not a number": ("NaN", ""),
    "infinity": ("[-Infinity]", ""),
    "null": ("null", ""),
    "nothing": ("", ""),
    "white space": (" \n\t ", ""),
    "a string": ('"x"', ""),
    "true": ("true", ""),
    "an empty list": ("[]", ""),
    "an empty object": ("{}", ""),
    "a list of nulls": ("[null]", ""),
    "lists of lists": ("[[[]]]", ""),
    "NUL": ("\0", ""),
    "NUL within": ('["a\0"]', ""),
    "half a character, escaped": (r'["\ud800"]', ""),
    "half a character, raw": (b'["\xed\xa0\x80"]', "not UTF-8"),
    "a mark of byte order and nothing": ("\ufeff", ""),
    "two marks of byte order": ("\ufeff\ufeff[]", ""),
    "UTF-16": ("[]".encode("utf-16"), ""),
    "UTF-7": (b"+AFsAXQ-", ""),
    "bytes that are no text": (bytes(range(128, 256)), "not UTF-8"),
    "a name twice": ('{"a": [1], "a": [2]}', "occurs twice"),
    "HTML": ("<html><script>alert(1)</script>", ""),
    "a comment": ("// x\n[]", ""),
    "a trailing comma": ("[1,]", ""),
    "single quotes": ("['a']", ""),
    "YAML that runs code": ("!!python/object/apply:os.system ['true']", ""),
}
READERS = {  # name of the dataset, and path of the file
    "coco": ("coco:{}", "a.json"),
    "rococo": ("rococo:{}", "a.json"),
    "pairs": ("pairs:{}", "a.json"),
    "triplets": ("triplets:{}", "a.json"),
    "folder": ("folder:{.parent}", "captions.json"),
    "pairs by lines": ("pairs:{}", "a.jsonl"),
    "triplets by lines": ("triplets:{}", "a.jsonl"),
    "queries by lines": ("queries:{}", "a.jsonl"),
    "prompts p2": ("queries:{}+p2", "a.jsonl"),
    "prompts p3": ("queries:{}+p3", "a.jsonl"),
    "frames by lines": ("frames:{}", "a.jsonl"),
}


def refusal(name: str, cache: Path) -> str:
    """Return the one-line error with which a dataset is refused."""
    with pytest.raises(VlprobeError) as caught:
        registry.load_dataset(name, cache)
    message = str(caught.value)
    assert message.isprintable()
    assert message[-1] in ".:]})>\"'"  # a complete sentence, or the expected form
    assert message[-1] in ".:]})>"  # a complete sentence, or the expected value
    assert len(message) < 3000
    return message


def put(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    return path


# Each text and each reader once; only the full suite tests all pairs, because the readers share a parser.
PAIRS = list(itertools.product(JSON, READERS))


@pytest.mark.parametrize(("what", "reader"), tiers(PAIRS, PAIRS[:: len(READERS) + 1]))
def test_json_that_is_not_a_dataset_is_refused_in_one_line(tmp_path: Path, what: str, reader: str):
    form, file = READERS[reader]
    text, expected = JSON[what]
    Image.new("RGB", (4, 4)).save(tmp_path / "a.png")
    assert expected in refusal(form.format(put(tmp_path / file, text)), tmp_path / "cache")


MANY = 60_000  # so many names that comparing each pair of them would never finish
QUADRATIC = {  # JSON with many names, and part of the error
    "a name of its own in each row": (
        "table:{}",
        lambda: json.dumps([{f"n{number}": 1} for number in range(MANY)]),
        "60,000 different column names in 60,000 rows, and most rows lack many of them",
    ),
    "names of objects within": (
        "table:{}",
        lambda: json.dumps([{"a": {f"n{number}": 1}} for number in range(MANY)]),
        "60,000 different column names",
    ),
    "a name twice, after many": (
        "folder:{.parent}",
        lambda: (
            json.dumps({f"{number}.png": [] for number in range(MANY)})[:-1] + ', "59999.png": []}'
        ),
        "'59999.png' occurs twice",
    ),
}


@pytest.mark.parametrize(
    "what", tiers(QUADRATIC, ("names of objects within", "a name twice, after many"))
)
def test_json_with_very_many_names_is_refused_quickly(tmp_path: Path, what: str):
    form, text, expected = QUADRATIC[what]
    assert expected in refusal(
        form.format(put(tmp_path / "captions.json", text())), tmp_path / "cache"
    )


HEADS = {  # header of each table, and a row with a placeholder for one field
    "csv": ("csv:{}", "a.csv", "image,caption\n", "a.png,{}\n"),
    "queries": ("queries:{}", "a.csv", "query,caption\n", "1,{0}\n1,{0} too\n"),
    "frames": (
        "frames:{}",
        "a.csv",
        "video,frame,time,caption\n",
        "v,a.png,1,{0}\nv,a.png,2,{0} too\n",
    ),
    "triplets": (
        "triplets:{}",
        "a.tsv",
        "filename\tcaption\tcaption2\tnegative_caption\n",
        "a.png\t{0}\tanother {0}\tno {0}\n",
    ),
}
RIGHT = {  # captions that are read unchanged
    "a formula": "=HYPERLINK(A1)",
    "a formula that starts a program": "=cmd|' /C calc'!A0",
    "a plus": "+1+1",
    "an at sign": "@SUM(1)",
    "HTML": "<img src=x onerror=alert(1)>",
    "Markdown": "[a](javascript:alert(1)) **b** $x$ :red[c]",
    "right to left": "\u202ecba\u202c dog",
    "Arabic": "كلب أحمر",
    "astral": "\U0001f469\u200d\U0001f680 on \U0002070e",
    "zero width": "a\u200bb\u200dc\ufeffd",
    "combining": "e" + "\u0301" * 500,
    "line separator": "a\u2028b\u2029c",
    "NUL": "a\0b",
    "escape codes": "\x1b[31mred\x1b[0m\x07",
    "a template": "{{7*7}} ${7*7} {0.__class__}",
    "SQL": "'; DROP TABLE cases; --",
    "a path": "../../etc/passwd",
    "percent signs": "%s%n%x %(a)s",
}


@pytest.mark.parametrize("reader", HEADS)
@pytest.mark.parametrize("what", RIGHT)
def test_an_unusual_caption_is_read_unchanged(tmp_path: Path, what: str, reader: str):
    form, file, head, row = HEADS[reader]
    caption = RIGHT[what]
    written = f'"{caption}"' if "," in caption and file.endswith(".csv") else caption
    Image.new("RGB", (4, 4)).save(tmp_path / "a.png")
    path = put(tmp_path / file, head + row.replace("{0}", "{}").replace("{}", written))
    item = registry.load_dataset(form.format(path), tmp_path / "cache").items[0]
    assert item.captions[0] == caption


TABLES = {
    "nothing": "",
    "the header alone": "{head}",
    "an open quote": '{head}"a.png,x\n',
    "a quote after text": '{head}a.png,"x"y\n',
    "a field too many": "{head}a.png,x,y,z,1,2,3\n",
    "no caption": "{head}a.png,\n",
    "a caption of zero letters": "{head}a.png,   \n",
    "duplicate column names": "image,caption,caption\na.png,x,y\n",
    "a field of a million letters": "{head}a.png," + "a" * 10**6 + "\n",
    "a quoted field of a million lines": '{head}a.png,"' + "a,\n" * 10**6 + '"\n',
    "half a character": "{head}a.png,x \ud800 y\n",
    "UTF-16": "{head}a.png,x\n".encode("utf-16"),
    "Latin-1": "{head}a.png,é\n".encode("latin-1"),
    "another separator": "image^caption\na.png^x\n",
    "a ZIP": b"PK\x03\x04" + b"\0" * 60,
    "an xlsx by its name": b"\xd0\xcf\x11\xe0",
}


@pytest.mark.parametrize("reader", ["csv", "queries", "frames"])
@pytest.mark.parametrize("what", TABLES)
def test_a_malformed_table_is_refused_in_one_line(tmp_path: Path, what: str, reader: str):
    form, file, head, _ = HEADS[reader]
    text = TABLES[what]
    Image.new("RGB", (4, 4)).save(tmp_path / "a.png")
    text = (
        text.replace("{head}", head)
        if isinstance(text, str)
        else text.replace(b"{head}", head.encode())
    )
    refusal(form.format(put(tmp_path / file, text)), tmp_path / "cache")


@pytest.mark.parametrize(
    ("name", "expected"),
    {
        "/etc/passwd": "ok",
        "../a.png": "missing",
        "a.png\0.jpg": "missing",
        "x" * 5000 + ".png": "missing",
        ".": "missing",
        "fifo.png": "missing",
        "/dev/zero": "missing",
        "loop.png": "missing",
        "https://example.org/a.png": "missing",
        "~/a.png": "missing",
        "$HOME/a.png": "missing",
        "a\u202egnp.png": "missing",
    }.items(),
)
def test_an_unusual_image_name_is_read_as_a_path_or_reported_missing(
    tmp_path: Path, name: str, expected: str
):
    os.mkfifo(tmp_path / "fifo.png")
    (tmp_path / "loop.png").symlink_to("loop.png")
    path = put(tmp_path / "a.csv", f"image,caption\n{name},x\n")
    if expected == "ok":  # whether it is a picture is checked when it is opened
        assert (
            str(registry.load_dataset(f"csv:{path}", tmp_path / "cache").items[0].image.path)
            == name
        )
    else:
        assert "images in" in refusal(f"csv:{path}", tmp_path / "cache")


def test_too_long_captions_and_too_many_tags_are_refused(tmp_path: Path):
    Image.new("RGB", (4, 4)).save(tmp_path / "a.png")
    put(tmp_path / "captions.json", '{"a.png": ["%s"]}' % ("a " * 500_000))
    # stripped: one less
    assert "1,000,000 characters" not in refusal(f"folder:{tmp_path}", tmp_path / "cache")
    put(tmp_path / "captions.json", '{"a.png": ["%s"]}' % ("a" * (MAX_CHARACTERS + 1)))
    assert f"{MAX_CHARACTERS + 1:,} characters" in refusal(f"folder:{tmp_path}", tmp_path / "cache")
    put(tmp_path / "captions.json", '{"a.png": ["%s"]}' % ("a" * MAX_CHARACTERS))
    assert registry.load_dataset(f"folder:{tmp_path}", tmp_path / "cache").items
    columns = [f"c{number}" for number in range(MAX_TAGS + 1)]
    path = put(
        tmp_path / "a.csv",
        ",".join(["image", "caption", *columns]) + "\na.png,x" + ",1" * len(columns) + "\n",
    )
    assert f"has {MAX_TAGS + 1} tags" in refusal(f"csv:{path}", tmp_path / "cache")


@pytest.mark.parametrize(
    "half",
    [r'{"a.png": ["x \ud800"]}', r'{"a.png": ["x"], "\udfff.png": ["x"]}'],
    ids=["in a caption", "in a name"],
)
def test_a_lone_surrogate_in_captions_json_is_shown_in_the_error(tmp_path: Path, half: str):
    put(tmp_path / "captions.json", half)
    Image.new("RGB", (4, 4)).save(tmp_path / "a.png")
    assert r"\ud" in refusal(f"folder:{tmp_path}", tmp_path / "cache")


ENDS = {
    "csv": "csv",
    "coco": "json",
    "triplets": "json",
    "rococo": "json",
    "pairs": "jsonl",
    "queries": "csv",
}
PLACES = {
    "a pipe": "{tmp}/fifo.{end}",
    "a device without an end": "/dev/zero",
    "a device without a beginning": "/dev/null",
    "a link to itself": "{tmp}/loop.{end}",
    "a folder of that name": "{tmp}/folder.{end}",
    "a name too long for any disk": "x" * 5000,
    "a name with NUL": "a\0b.{end}",
    "a name of two lines": "a\nb.{end}",
    "a home of nobody": "~nosuchuser/a.{end}",
    "the memory of this process": "/proc/self/mem",
    "nothing": "",
    "half a character": "\ud800",
    "up and up": "../../../../../../etc/shadow.{end}",
    "a URL": "https://example.org/a.{end}",
    "a million letters": "a" * 10**6,
}


@pytest.mark.parametrize("prefix", [*ENDS, "frames", "folder"])
@pytest.mark.parametrize("what", PLACES)
def test_a_path_that_is_not_a_regular_file_is_refused_in_one_line_without_blocking(
    tmp_path: Path, what: str, prefix: str
):
    end = ENDS.get(prefix, "csv")
    os.mkfifo(tmp_path / f"fifo.{end}")
    (tmp_path / f"loop.{end}").symlink_to(f"loop.{end}")
    (tmp_path / f"folder.{end}").mkdir()
    refusal(f"{prefix}:{PLACES[what].format(tmp=tmp_path, end=end)}", tmp_path / "cache")
