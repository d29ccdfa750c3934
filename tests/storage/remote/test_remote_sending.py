"""Uploads of a remote store: their content, their time, and recovery after an interruption."""

from unittest.mock import Mock

import pytest

from tests.storage.remote.test_remote_s3 import TABLE
from tests.storage.remote.test_remote_store import KEY, finish
from vlprobe.errors import InvalidInput
from vlprobe.storage.mirror import Mirror


def test_parts_that_exist_only_locally_are_uploaded_when_a_run_resumes(memory, on):
    one = on("one", memory)
    one.run(KEY).write_part("0", TABLE)
    there = one.mirror
    there.remove(there.names("runs"))
    assert one.run(KEY).parts() == {"0"}
    assert on("two", memory).run(KEY).part("0").equals(TABLE)


def test_results_finished_while_offline_are_uploaded_by_the_next_run(memory, on, monkeypatch):
    one = on("one", memory)
    with monkeypatch.context() as patch, pytest.raises(InvalidInput, match="Cannot reach it"):
        patch.setattr(Mirror, "put", Mock(side_effect=InvalidInput("Cannot reach it.")))
        finish(one)
    assert one.runs() == []
    (one.root / "models").mkdir()
    (one.root / "models" / "m-d.json").write_text("{}")
    one.require_writable()
    two = on("two", memory)
    assert two.run(KEY).table("scores").equals(TABLE)
    two.runs()
    assert (two.root / "models" / "m-d.json").exists()


def test_a_result_damaged_before_its_upload_is_recomputed(memory, on, monkeypatch):
    one = on("one", memory)
    with monkeypatch.context() as patch, pytest.raises(InvalidInput):
        patch.setattr(Mirror, "put", Mock(side_effect=InvalidInput("")))
        finish(one)
    path = one.root / "runs" / KEY / "scores.parquet"
    path.write_bytes(path.read_bytes()[:-1])
    one.require_writable()
    assert not one.run(KEY).complete
    assert not one.mirror.names("runs")


def test_a_run_killed_right_after_its_commit_is_complete(memory, on, monkeypatch):
    one = on("one", memory)

    put = Mirror.put

    def killed(self, name, content):
        put(self, name, content)
        if name.startswith("index/"):
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Mirror, "put", killed)
        finish(one)
    assert on("two", memory).run(KEY).table("scores").equals(TABLE)
    on("one", memory).require_writable()
    assert [run["key"] for run in one.runs()] == [KEY]
    assert not list(one.root.rglob("pending.json"))


def test_an_interrupted_upload_leaves_no_incomplete_entry(memory, on, monkeypatch):
    one = on("one", memory)
    one.require_writable()
    put = Mirror.put
    for n_allowed in range(2):  # the table is uploaded first, then the manifest
        calls = []

        def cut_off(self, name, content, calls=calls, n_allowed=n_allowed):
            calls.append(name)
            if len(calls) > n_allowed:
                raise KeyboardInterrupt
            put(self, name, content)

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(Mirror, "put", cut_off)
            finish(one)
        two = on("two", memory)
        assert two.runs() == one.runs() == []
        assert not two.run(KEY).complete
        on("one", memory)
    one.require_writable()
    assert on("two", memory).run(KEY).table("scores").equals(TABLE)
