"""Malicious names, keys, ids, options and weights: each is handled correctly or refused with a one-line error."""

import json
import os
import pickle
import shlex
import struct
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.conftest import make_tiny
from vlprobe import registry, views
from vlprobe.cli.main import main
from vlprobe.errors import VlprobeError
from vlprobe.runs import jobs, run
from vlprobe.runs import request as runs_request
from vlprobe.storage import annotations, bookmarks
from vlprobe.storage.store import Store
from vlprobe.types import Picture

KEYS = {
    "nothing": "",
    "here": ".",
    "up": "..",
    "up and away": "../../../../etc/passwd",
    "a path": "a/b",
    "a whole path": "/etc/passwd",
    "NUL": "abc\0",
    "two lines": "a\nb",
    "SQL": "x'; DROP TABLE scores; --",
    "a pattern": "*",
    "any file": "[a-z]*",
    "percent codes": "%2e%2e%2f",
    "HTML": "<script>alert(1)</script>",
    "digits that are none": "٣٤٥",
    "half a character": "\ud800",
    "right to left": "\u202eabc",
    "a hundred thousand letters": "a" * 100_000,
    "a key of nobody": "0123456789abcdef",
}
ACTIONS = {
    "read a job": lambda store, key: jobs.read(store, key),
    "resume a job": lambda store, key: jobs.resume(store, key),
    "cancel a job": lambda store, key: jobs.cancel(store, key),
    "a job's log": lambda store, key: jobs.log(store, key),
    "find a run": lambda store, key: store.find(key),
    "a run": lambda store, key: store.run(key).manifest(),
    "facts": lambda store, key: views.runs.facts(views.runs.question_set(store, key)),
    "choices": lambda store, key: views.estimates.choices(views.runs.question_set(store, key)),
    "runs of": lambda store, key: views.runs.question_set(store, key),
    "estimates": lambda store, key: views.estimates.estimates(views.runs.question_set(store, key)),
    "failures": lambda store, key: views.cases.failures(
        views.runs.question_set(store, key), views.filter.Filter(model="x")
    ),
    "questions": lambda store, key: views.rows.questions(views.runs.question_set(store, key), [0]),
    "a saved view's removal": lambda store, key: bookmarks.VIEWS.remove(store, key),
}


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Store]:
    """Return the name of a dataset and a store with one run on it."""
    folder = tmp_path_factory.mktemp("asked")
    tiny, store = make_tiny(folder / "tiny"), Store(folder / "cache")
    run.execute(
        runs_request.Request(("control:random",), tiny, "lgip", limit=2, examine=False), store
    )
    return tiny, store


def files(store: Store) -> list[Path]:
    return sorted(
        path for path in store.root.rglob("*") if path.is_file() and path.suffix != ".lock"
    )


@pytest.mark.parametrize("what", ACTIONS)
@pytest.mark.parametrize("key", KEYS)
def test_an_unknown_or_malformed_key_is_refused_in_one_line_and_changes_no_file(
    finished_run, what: str, key: str
):
    store = finished_run[1]
    before = files(store)
    with pytest.raises(VlprobeError) as caught:
        ACTIONS[what](store, KEYS[key])
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 4000
    assert files(store) == before


MODELS = {
    "nothing": "",
    "a colon": ":",
    "a family alone": "openclip:",
    "an at sign": "openclip:@",
    "an architecture that is a path": "openclip:../../etc/passwd",
    "weights that nobody published": "openclip:ViT-B-32/nope",
    "weights that are a path": "openclip:ViT-B-32/../../x",
    "a folder that is a device": "openclip:local-dir:/dev",
    "a folder of no name": "openclip:local-dir:",
    "a folder with NUL": "openclip:local-dir:a\0b",
    "a folder too long": "openclip:local-dir:" + "x" * 5000,
    "a checkpoint too long": "openclip:ViT-B-32@" + "x" * 5000,
    "a checkpoint with NUL": "openclip:ViT-B-32@a\0b",
    "a checkpoint without an end": "openclip:ViT-B-32@/dev/zero",
    "a checkpoint of nobody's": "openclip:ViT-B-32@~nosuchuser/x.pt",
    "a checkpoint from the net": "openclip:ViT-B-32@https://example.org/x.pt",
    "a million letters": "openclip:" + "x" * 10**6,
    "half a character": "openclip:\ud800",
    "a hub's folder up": "hf:../..",
    "a hub's name with NUL": "hf:a\0b",
    "a hub's name too long": "hf:" + "x" * 5000,
    "a hub's name of nobody's": "hf:~nosuchuser/x",
    "a hub's folder that is none": "hf:/etc",
    "a sentence model that is a device": "st:/dev/zero",
    "a matching head that is none": "hf-itm:/etc",
    "a generator that is none": "hf-gen:/etc",
    "a control of two lines": "control:random\n",
    "a control in capitals": "control:RANDOM",
    "a demo up": "demo:../softmax",
    "HTML": "<script>alert(1)</script>",
    "right to left": "\u202emodnar:lortnoc",
    "code": "__import__('os').system('true')",
}


@pytest.mark.parametrize("what", MODELS)
def test_an_unknown_model_is_refused_in_one_line(what: str, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(VlprobeError) as caught:
        registry.load_model(MODELS[what], "cpu")
    assert str(caught.value).isprintable()


def header(text: str | bytes, length: int = -1, n_padding: int = 16) -> bytes:
    """Return a safetensors file that declares this header length."""
    content = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(content) if length < 0 else length) + content + b"\0" * n_padding


def tensor(shape: list[int], ends: list[int], kind: str = "F32") -> dict[str, object]:
    return {"dtype": kind, "shape": shape, "data_offsets": ends}


class Runs:
    """An object that creates a folder when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


TENSORS = {
    "a header of 2^63 bytes": header("{}", 2**63 - 1),
    "a header of 100 MB that is not there": header("{}", 100_000_000),
    "a tensor of a trillion numbers": header(
        json.dumps({"a": tensor([10**6, 10**6], [0, 4 * 10**12])})
    ),
    "two tensors in one place": header(
        json.dumps({"a": tensor([2], [0, 8]), "b": tensor([2], [4, 12])})
    ),
    "a tensor before the beginning": header(
        '{"a":{"dtype":"F32","shape":[2],"data_offsets":[-8,0]}}'
    ),
    "a shape below nothing": header('{"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}}'),
    "a type that nobody knows": header(json.dumps({"a": tensor([2], [0, 8], "F99")})),
    "a hundred thousand objects in each other": header('{"a":' * 100_000),
    "no JSON": header("hello"),
    "nothing": b"",
    "a pickle": pickle.dumps({"a": 1}),
    "no tensors": header("{}", n_padding=0),
}
PICKLES = {
    "code alone": lambda runs: pickle.dumps(runs),
    "code as a tensor": lambda runs: pickle.dumps({"state_dict": {"a": runs}}),
    "code of protocol 0": lambda runs: pickle.dumps(runs, protocol=0),
    "nothing": lambda runs: b"",
    "text": lambda runs: b"hello",
    "a ZIP's head": lambda runs: b"PK\x03\x04" + b"\0" * 99,
    "a list": lambda runs: pickle.dumps([1, 2]),
    "numbers by name": lambda runs: pickle.dumps({"a": 1}),
}


@pytest.mark.parametrize("what", TENSORS)
def test_a_safetensors_file_with_a_false_header_is_refused_in_one_line(tmp_path: Path, what: str):
    from vlprobe.models.checkpoint import read_weights

    (tmp_path / "a.safetensors").write_bytes(TENSORS[what])
    if what == "no tensors":  # a valid file without tensors, which matches no model
        assert read_weights(tmp_path / "a.safetensors") == {}
        return
    with pytest.raises(VlprobeError, match="cannot be read as plain tensors") as caught:
        read_weights(tmp_path / "a.safetensors")
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("zipped", [False, True], ids=["plain", "as torch saves it"])
@pytest.mark.parametrize("what", PICKLES)
def test_unpickling_a_checkpoint_never_runs_code(tmp_path: Path, what: str, zipped: bool):
    import torch

    from vlprobe.models.checkpoint import read_weights

    path = tmp_path / "a.pt"
    if zipped:
        torch.save({"state_dict": {"a": torch.zeros(2), "b": Runs(tmp_path / "ran")}}, path)
    else:
        path.write_bytes(PICKLES[what](Runs(tmp_path / "ran")))
    with pytest.raises(
        VlprobeError, match="could run code and are rejected" if zipped else None
    ) as caught:
        read_weights(path)
    assert str(caught.value).isprintable()
    assert not (tmp_path / "ran").exists()


CONFIGS = {
    "nothing": "",
    "a list": "[]",
    "a hundred thousand lists": "[" * 100_000,
    "a number for a model": '{"model_cfg": 5}',
    "numbers for its parts": '{"model_cfg": {"embed_dim": "x", "vision_cfg": 5, "text_cfg": []}}',
    "fewer than no dimensions": '{"model_cfg": {"embed_dim": -1, "vision_cfg": {}, "text_cfg": {}}}',
    "more dimensions than atoms": '{"model_cfg": {"embed_dim": 1e300, "vision_cfg": {}, "text_cfg": {}}}',
    "a module of Python's": '{"model_cfg": {"embed_dim": 8, "vision_cfg": {"timm_model_name": "os"}, "text_cfg": {}}}',
    "code of its own": '{"auto_map": {"AutoModel": "evil.Model"}, "model_type": "clip"}',
    "bytes that are no text": "\ud800",
}


@pytest.mark.parametrize("family", ["openclip:local-dir:", "hf:", "hf-itm:", "hf-gen:", "st:"])
@pytest.mark.parametrize("what", CONFIGS)
def test_a_model_folder_with_a_malformed_config_is_refused_in_one_line(
    tmp_path: Path, what: str, family: str
):
    for file in ("open_clip_config.json", "config.json"):
        (tmp_path / file).write_bytes(CONFIGS[what].encode("utf-8", "surrogatepass"))
    (tmp_path / "open_clip_model.safetensors").write_bytes(TENSORS["no tensors"])
    with pytest.raises(VlprobeError) as caught:
        registry.load_model(f"{family}{tmp_path}", "cpu")
    assert str(caught.value).isprintable()


COMMANDS = {  # in shell syntax
    "an option without a value": "run --model control:random --option rules",
    "an option that is not there": "run --model control:random --option __class__=x",
    "a limit below nothing": "run --model control:random --limit -1",
    "a limit that is no number": "run --model control:random --limit 1e9",
    "a batch of nothing": "run --model control:random --batch-size 0",
    "a batch of 10^30": "run --model demo:nope --dataset DATA --batch-size 1000000000000000000000000000000",
    "a seed that is no number": "run --model control:random --seed x",
    "a device of two lines": "run --model demo:weak --dataset DATA --device 'cpu\nx'",
    "a precision that is none": "run --model demo:weak --dataset DATA --precision fp999",
    "a probe up": "run --model control:random --probe ../lgip",
    "a breakdown by SQL": "show KEY --by 'x\" OR 1=1'",
    "a unit that is none": "show KEY --unit volts",
    "a page of nothing": "failures KEY --page 0",
    "a page beyond 10^9": "failures KEY --page 999999999999999999999999999999",
    "a size beyond 10^6": "failures KEY --size 999999999999",
    "an outcome by SQL": "failures KEY --outcome 1=1",
    "an order by SQL": "failures KEY --sort 'margin; DROP TABLE x'",
    "a tag without a value": "failures KEY --tag x",
    "a format that is none": "show --format exe",
    "a job by a path": "jobs --resume ../../etc",
    "a log by a path": "jobs --log ../../../etc/passwd",
    "an export to a folder": "export /",
    "an export to a device": "export /dev/null",
    "edits from a device": "run --model control:random --dataset DATA --option edits=/dev/zero",
    "edits with NUL": "run --model control:random --dataset DATA --option 'edits=a\x00b'",
    "edits that are a folder": "run --model control:random --dataset DATA --option edits=/tmp",
    "a cache that is a device": "--cache /dev/null run --model control:random --dataset DATA",
    "a cache that leads to itself": "--cache LOOP run --model control:random --dataset DATA",
}


@pytest.mark.parametrize("what", COMMANDS)
def test_an_invalid_command_line_is_refused_in_one_line(finished_run, what: str):
    tiny, store = finished_run
    loop = store.root.with_name("loop")
    if not loop.is_symlink():
        loop.symlink_to(loop)
    placeholders = {"KEY": store.runs()[0]["key"], "DATA": tiny, "LOOP": str(loop)}
    words = [
        "--cache",
        str(store.root),
        *(placeholders.get(word, word) for word in shlex.split(COMMANDS[what])),
    ]
    done = CliRunner().invoke(main, words)
    assert done.exit_code in (1, 2), done.output
    assert done.exception is None or isinstance(done.exception, SystemExit), repr(done.exception)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("Error: ")
    assert last.isprintable()


EDITS = {
    "a hundred thousand lists": "[" * 100_000,
    "a number of 5000 digits": "9" * 5000,
    "a list": "[]",
    "numbers for captions": '{"image_path": 5, "orig_captions": [1]}',
    "an index of 5000 digits": '{"image_path": "0.png", "orig_captions": ["a"], "same_caps": {"%s": ["b"]}}'
    % ("9" * 5000),
    "an index below nothing": '{"image_path": "0.png", "orig_captions": ["a"], "same_caps": {"-1": ["b"]}}',
    "edits that are numbers": '{"image_path": "0.png", "orig_captions": ["a"], "diff_caps": {"0": [7]}}',
    "a flip of no type": '{"image_path": "0.png", "orig_captions": ["a"], "diff_caps": {"0": [{"text": "b", '
    '"flip_type": "x"}]}}',
    "bytes that are no text": b"\xff\xfe{",
    "of other pictures": '{"image_path": "../../x.png", "orig_captions": ["a"]}',
}


@pytest.mark.parametrize("what", EDITS)
def test_a_malformed_edits_file_is_refused_in_one_line(finished_run, tmp_path: Path, what: str):
    tiny, store = finished_run
    text = EDITS[what]
    (tmp_path / "edits.jsonl").write_bytes(text if isinstance(text, bytes) else text.encode())
    request = runs_request.Request(
        ("control:random",), tiny, "lgip", {"edits": str(tmp_path / "edits.jsonl")}, examine=False
    )
    with pytest.raises(VlprobeError) as caught:
        run.execute(request, store)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("key", [key for key in KEYS if key != "a key of nobody"])
def test_a_note_with_a_malformed_key_is_not_written(finished_run, key: str):
    store = finished_run[1]
    with pytest.raises(VlprobeError):
        annotations.write(store, KEYS[key], annotations.Annotation(0, "x", ("telling",), "a note"))
    assert not list(store.root.parent.rglob("*.jsonl"))


def test_a_picture_name_in_a_table_is_a_path_and_never_an_edit():
    for name in ("../../etc/passwd", "<b>", "a\0b", "x" * 5000):
        assert Picture.from_name(name).edit is None
