"""Damaged, missing or planted files in a shared store do not block the rest of it."""

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


def test_one_damaged_entry_does_not_block_reading_running_or_repairing(memory, on):
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


def test_locally_damaged_files_are_not_uploaded(memory, on, caplog):
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


def test_removed_questions_are_recreated_by_the_next_run(memory, dataset_name, on):
    one = on("one", memory)
    key = execute(request(dataset_name), one)[0]["case_key"]
    two = on("two", memory)
    assert two.cases(key).complete  # from here on, machine two has it in its listing
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


def test_repair_keeps_a_file_that_became_valid_in_the_meantime(memory, on, monkeypatch):
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


def test_a_deleted_mirror_is_recreated(memory, on):
    one = on("one", memory)
    finish(one)
    shutil.rmtree(one.root)
    assert len(one.runs()) == 1
    finish(Store(one.root), ANOTHER)
    assert len(on("two", memory).runs()) == 2


def test_a_page_shows_local_results_with_a_warning_if_the_bucket_is_unreachable(
    memory, dataset_name, on, monkeypatch
):
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


def test_a_silent_server_is_abandoned_after_seconds(server, on, monkeypatch, tmp_path):
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
def test_a_malformed_manifest_counts_as_damaged(memory, on, case):
    one = on("one", memory)
    for key in (KEY, ANOTHER):
        ask(one, key)
        finish(one, key)
    manifest = json.loads(one.mirror.read(INDEX))
    del manifest["sha256"]
    given = MANIFESTS[case]
    one.mirror.put(
        INDEX, given if isinstance(given, bytes) else json.dumps(manifest | given).encode()
    )
    two = on("two", memory)
    assert views.runs.runs(two)["key"].tolist() == [ANOTHER]
    assert call(memory, "verify", "--repair").count("\n") == 1


def test_the_checked_types_cover_every_field_of_a_run():
    assert {*entry.RUN_FIELDS, "selection"} == {field.name for field in fields(Run)}


@pytest.mark.parametrize(
    "changed", [{"finished": 5}, {"passport": [["a", 1]]}, {"checks": [{"name": 1}]}, {"erased": 1}]
)
def test_a_malformed_examination_counts_as_damaged(changed, tmp_path):
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
def test_the_error_for_a_url_with_a_password_does_not_show_it(url):
    with pytest.raises(InvalidInput, match="contains a user or password") as error:
        Store(url)
    assert "SEC" not in str(error.value)


def test_an_error_of_an_endpoint_does_not_show_its_user():
    error = ConnectionError('Could not connect to "http://me:hunter2@127.0.0.1:9/x"')
    assert file_systems.one_line(error) == 'Could not connect to "http://127.0.0.1:9/x"'


def test_a_mirror_mark_in_a_parent_folder_of_a_cache_is_ignored(tmp_path):
    (tmp_path / mirror.MARK).write_text("s3://evil/x")
    assert Store(tmp_path / "me" / "cache").mirror is None
    with pytest.raises(InvalidInput, match="is the local mirror"):
        Store(tmp_path)


def test_a_process_killed_at_the_end_of_a_commit_leaves_no_parts(memory, on, monkeypatch):
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
