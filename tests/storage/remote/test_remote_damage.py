"""What is damaged, gone or planted in a store that several machines share keeps nobody from the rest of it."""

import json
import shutil
import socket
from dataclasses import asdict, fields
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from tests.conftest import facts
from tests.dashboard.test_pages import open_page
from tests.storage.remote.test_remote_s3 import TABLE, call, request
from tests.storage.remote.test_remote_store import ANOTHER, KEY, ask, finish
from vlprobe import views
from vlprobe.errors import InvalidInput
from vlprobe.models.doctor import examine
from vlprobe.models.doctor.checks import Check
from vlprobe.runs import jobs, verify
from vlprobe.runs.run import execute
from vlprobe.scoring.vectors import VectorStore
from vlprobe.storage import entry, file_systems, mirror
from vlprobe.storage.mirror import Mirror
from vlprobe.storage.store import Store
from vlprobe.types import Run

INDEX = f"index/runs/{KEY}.2.json"


EXAMINED = asdict(
    examine.Examination("m", "d", "x", "y", {}, (Check("name", "meaning", True),), (), "1")
)


def test_one_damaged_entry_keeps_nobody_from_looking_working_or_repairing(memory, on):
    one = on("one", memory)
    for key in (KEY, ANOTHER):
        ask(one, key)
        finish(one, key)
    one.mirror.put(INDEX, b"{trunc")
    for name in ("one", "two"):
        on(name, memory).require_writable()
    assert ANOTHER in call(memory, "show", "--format", "csv")
    assert call(memory, "verify", "--repair").startswith(
        f"{memory}/{INDEX}: it differs from what was written"
    )
    assert call(memory, "verify") == ""
    assert INDEX not in one.mirror.names("index")
    assert [run["key"] for run in on("two", memory).runs()] == [ANOTHER]


def test_what_is_damaged_here_is_sent_to_nobody(memory, on, caplog):
    one = on("one", memory)
    (one.root / "models").mkdir()
    (one.root / "models" / "m-d.json").write_bytes(b'{"schema": 1, "mod')
    one.require_writable()
    assert "m-d.json' is damaged and is not uploaded" in caplog.text
    folder = one.root / "embeddings" / "m" / "texts"
    kept = VectorStore(4, folder)
    kept.put([b"x" * 16], np.ones((1, 4), "f4"))
    kept.close()
    there = one.mirror
    there.remove(there.names("embeddings"))
    file = next(folder.glob("*.npy"))
    file.write_bytes(file.read_bytes()[:-3])
    with pytest.raises(InvalidInput, match="checksum differs"):
        VectorStore(4, folder)
    assert list(there.names("")) == ["writable"]


def test_questions_that_were_removed_are_made_anew_by_whoever_runs(memory, dataset_name, on):
    one = on("one", memory)
    key = execute(request(dataset_name), one)[0]["case_key"]
    two = on("two", memory)
    assert two.cases(key).complete  # known to two from here on
    there = one.mirror
    there.remove([name for name in there.names("") if "cases/" in name])
    assert "its question set is missing" in call(memory, "verify", code=1)
    call(memory, "verify", "--repair")
    one = on("one", memory)
    assert one.runs() == two.runs() == []
    assert not one.cases(key).complete and not two.cases(key).complete
    execute(request(dataset_name), one)
    assert call(memory, "verify") == ""
    assert len(views.rows.questions(views.runs.question_set(on("two", memory), key), [0])) == 1


def test_repair_leaves_what_became_valid_since_it_was_seen(memory, on, monkeypatch):
    one = on("one", memory)
    ask(one)
    finish(one)
    there = one.mirror
    (table,) = (name for name in there.names("runs") if "scores" in name)
    sound = there.read(table)
    there.put(table, b"rubbish")
    look = verify.damages

    def look_and_mend(store, *given, **more):
        found = look(store, *given, **more)
        if "again" not in more:
            assert [one.why for one in found] == ["its checksum differs"]
            there.put(table, sound)
        return found

    monkeypatch.setattr(verify, "damages", look_and_mend)
    call(memory, "verify", "--repair")
    assert on("three", memory).run(KEY).table("scores").equals(TABLE)


def test_a_mirror_that_was_deleted_is_a_mirror_again(memory, on):
    one = on("one", memory)
    finish(one)
    shutil.rmtree(one.root)
    assert len(one.runs()) == 1
    finish(Store(one.root), ANOTHER)
    assert len(on("two", memory).runs()) == 2


def test_a_page_goes_on_with_what_is_here_and_says_so(memory, dataset_name, on, monkeypatch):
    one = on("one", memory)
    execute(request(dataset_name), one)
    monkeypatch.setattr(Mirror, "names", Mock(side_effect=InvalidInput("Cannot use it.")))
    at = open_page(monkeypatch, one, "models")
    assert not at.exception and not at.error
    assert [warning.value for warning in at.warning] == [
        r"Only the results on this machine are shown. Cannot use it."
    ]
    with pytest.raises(InvalidInput, match="Cannot use it"):
        one.require_writable()


def test_a_server_that_is_silent_is_left_alone_after_seconds(server, on, monkeypatch, tmp_path):
    import s3fs
    from fsspec.config import conf

    monkeypatch.delenv("AWS_MAX_ATTEMPTS")
    monkeypatch.delitem(conf, "s3")
    there = Mirror("s3://bucket/x", tmp_path)
    config = there._opened[0].config_kwargs
    assert config["read_timeout"] * config["retries"]["total_max_attempts"] * 2 < 60
    monkeypatch.setattr(
        file_systems,
        "_options",
        lambda url: {"config_kwargs": config | {"read_timeout": 0.2, "retries": {}}},
    )
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        s3fs.S3FileSystem.clear_instance_cache()
        one = on("one", "s3://bucket/silent")
        folder = one.root / "jobs" / "abc"
        folder.mkdir(parents=True)
        (folder / "request.json").write_text("{}")
        with pytest.raises(InvalidInput, match="Cannot use 's3://bucket/silent'"):
            one.runs()
        with pytest.raises(InvalidInput, match="Cannot use 's3://bucket/silent'"):
            one.mirror.put("runs/abc", b"1")
        (one.root / "runs" / KEY).mkdir(parents=True)
        entry.Entry(one.root / "runs" / KEY).finish({}, facts(KEY))
        assert len(one.runs()) == 1
        jobs.cancel(one, "abc")
    assert (folder / "cancel").exists()
    s3fs.S3FileSystem.clear_instance_cache()


DEEP = b'{"schema":' * 100_000
MANIFESTS = {
    "deep": DEEP,
    "no files": {"files": None},
    "a file that is a number": {"files": [1]},
    "a file elsewhere": {"files": [{"name": "/dev/zero", "sha256": "0" * 64}]},
    "a checksum that is a number": {"files": [{"name": "scores.parquet", "sha256": 5}]},
    "a number that is a text": {"finished": 1},
    "a run with more": {"run": facts(KEY)["run"] | {"more": 1}},
    "a run with less": {"run": {"model": "m"}},
    "a run of other sorts": {"run": facts(KEY)["run"] | {"options": []}},
    "sizes of other sorts": {"n_items": float("inf")},
}


@pytest.mark.parametrize("case", MANIFESTS)
def test_a_manifest_that_nobody_would_write_is_damaged_and_no_traceback(memory, on, case):
    one = on("one", memory)
    for key in (KEY, ANOTHER):
        ask(one, key)
        finish(one, key)
    said = json.loads(one.mirror.read(INDEX))
    del said["sha256"]
    given = MANIFESTS[case]
    one.mirror.put(INDEX, given if isinstance(given, bytes) else json.dumps(said | given).encode())
    two = on("two", memory)
    assert views.runs.runs(two)["key"].tolist() == [ANOTHER]
    assert call(memory, "verify", "--repair").count("\n") == 1


def test_the_sorts_of_a_run_are_those_of_its_fields():
    assert {*entry.RUN_FIELDS, "selection"} == {field.name for field in fields(Run)}


@pytest.mark.parametrize(
    "changed", [{"finished": 5}, {"passport": [["a", 1]]}, {"checks": [{"name": 1}]}, {"erased": 1}]
)
def test_an_examination_that_nobody_would_write_is_damaged(changed, tmp_path):
    path = tmp_path / "d-y.json"
    path.write_text(json.dumps(EXAMINED | {"schema": examine.SCHEMA, "passport": []}))
    assert examine.read(path).model == "m"
    path.write_text(json.dumps(EXAMINED | {"schema": examine.SCHEMA, "passport": []} | changed))
    with pytest.raises(InvalidInput, match="is damaged"):
        examine.read(path)
    path.write_bytes(DEEP)
    with pytest.raises(InvalidInput, match="is damaged"):
        examine.read(path)


@pytest.mark.parametrize(
    "url",
    [
        "https://AKIA:SECRET@minio:9000/b",
        "s3:/AKIA:SECRET@b/x",
        "s3://AKIA:SEC/RET@b/x",
        "simplecache::s3://A:SEC/RET@b",
    ],
)
def test_no_password_in_a_url_is_said_again(url):
    with pytest.raises(InvalidInput, match="contains a user or password") as told:
        Store(url)
    assert "SEC" not in str(told.value)


def test_an_error_names_no_user_of_an_endpoint():
    error = ConnectionError('Could not connect to "http://me:hunter2@127.0.0.1:9/x"')
    assert file_systems.one_line(error) == 'Could not connect to "http://127.0.0.1:9/x"'


def test_a_mark_above_a_cache_is_nothing_to_it(tmp_path):
    (tmp_path / mirror.MARK).write_text("s3://evil/x")
    assert Store(tmp_path / "me" / "cache").mirror is None
    with pytest.raises(InvalidInput, match="is the local mirror"):
        Store(tmp_path)


def test_whoever_is_killed_at_the_end_of_a_commit_leaves_no_parts(memory, on, monkeypatch):
    one = on("one", memory)
    one.run(KEY).write_part("0", TABLE)
    unlink = Path.unlink

    def killed(path, **given):
        if path.name == "pending.json":
            raise KeyboardInterrupt
        unlink(path, **given)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Path, "unlink", killed)
        finish(one)
    assert not [name for name in one.mirror.names("runs") if "/parts/" in name]
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Mirror, "remove", Mock(side_effect=KeyboardInterrupt))
        one.run(ANOTHER).write_part("0", TABLE)
        finish(one, ANOTHER)
    one.require_writable()
    assert not [name for name in one.mirror.names("runs") if "/parts/" in name]
    assert not list(one.root.rglob("parts")) and not list(one.root.rglob("pending.json"))
