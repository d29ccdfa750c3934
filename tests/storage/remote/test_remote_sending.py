"""What a store behind a URL sends, when, and what becomes of it where sending broke off."""

import shutil
import time

import pytest

from tests.storage.remote.test_remote_s3 import TABLE
from tests.storage.remote.test_remote_store import KEY, ask, finish
from vlprobe.errors import InvalidInput
from vlprobe.runs import verify
from vlprobe.storage.mirror import Mirror


def test_parts_that_are_here_alone_are_sent_when_a_run_goes_on(memory, on):
    one = on("one", memory)
    one.run(KEY).write_part("0", TABLE)
    there = one.mirror
    there.remove(there.names("runs"))
    assert one.run(KEY).parts() == {"0"}
    assert on("two", memory).run(KEY).part("0").equals(TABLE)


def test_what_was_finished_while_nothing_could_be_sent_is_sent_by_the_next_run(
    memory, on, monkeypatch
):
    one = on("one", memory)

    def fail(*_):
        raise InvalidInput("Cannot reach it.")

    with monkeypatch.context() as patch, pytest.raises(InvalidInput, match="Cannot reach it"):
        patch.setattr(Mirror, "put", fail)
        finish(one)
    assert one.runs() == []
    (one.root / "models").mkdir()
    (one.root / "models" / "m-d.json").write_text("{}")
    one.require_writable()
    two = on("two", memory)
    assert two.run(KEY).table("scores").equals(TABLE)
    two.runs()
    assert (two.root / "models" / "m-d.json").exists()


def test_what_was_finished_and_is_damaged_before_it_is_sent_is_made_again(memory, on, monkeypatch):
    one = on("one", memory)
    with monkeypatch.context() as patch, pytest.raises(InvalidInput):
        patch.setattr(Mirror, "put", lambda *_: (_ for _ in ()).throw(InvalidInput("")))
        finish(one)
    path = one.root / "runs" / KEY / "scores.parquet"
    path.write_bytes(path.read_bytes()[:-1])
    one.require_writable()
    assert not one.run(KEY).complete
    assert not one.mirror.names("runs")


def test_a_run_that_was_killed_right_after_its_commit_is_complete(memory, on, monkeypatch):
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


def test_left_over_objects_are_found_once_nobody_can_be_sending_them(memory, on, monkeypatch):
    one = on("one", memory)
    ask(one)
    finish(one)
    left = f"runs/{KEY}/scores.0123456789abcdef.parquet"
    one.mirror.put(left, b"x")
    assert verify.damages(one) == []
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 2 * verify.LEFT_OVER)
    assert [(str(one.path), one.why) for one in verify.damages(one)] == [
        (f"{memory}/{left}", "no result refers to it")
    ]
    verify.repair(verify.damages(one))
    assert verify.damages(one) == []
    assert one.run(KEY).table("scores").equals(TABLE)


def test_half_an_object_is_never_seen_in_a_shared_folder(on, tmp_path, monkeypatch):
    one = on("one", f"file://{tmp_path}/shared")
    one.require_writable()
    there, copy = one.mirror, shutil.copyfileobj

    def cut_off(source, target):
        target.write(source.read(1))
        raise KeyboardInterrupt

    (tmp_path / "file").write_bytes(b"new")
    for content in (tmp_path / "file", b"new"):
        there.put("a", b"old")
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(shutil, "copyfileobj", cut_off)
            there.put("a", content)
        assert there.read("a") == b"old"
        there.put("a", content)
        assert there.read("a") == b"new"
    assert shutil.copyfileobj is copy
    assert sorted(there.names("")) == ["a", "writable"]


@pytest.mark.parametrize("kind", ["memory", "folder"])
def test_an_upload_that_is_cut_off_anywhere_leaves_no_half_entry(
    kind, request, on, tmp_path, monkeypatch
):
    url = f"file://{tmp_path}/shared" if kind == "folder" else request.getfixturevalue("memory")
    one = on("one", url)
    one.require_writable()
    put = Mirror.put
    for n_allowed in range(2):  # the table, then the manifest
        calls = []

        def cut_off(self, name, content, calls=calls, n_allowed=n_allowed):
            calls.append(name)
            if len(calls) > n_allowed:
                raise KeyboardInterrupt
            put(self, name, content)

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(Mirror, "put", cut_off)
            finish(one)
        two = on("two", url)
        assert two.runs() == one.runs() == []
        assert not two.run(KEY).complete
        on("one", url)
    one.require_writable()
    assert on("two", url).run(KEY).table("scores").equals(TABLE)
