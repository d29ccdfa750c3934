"""What a store behind a URL sends, when, and what becomes of it where sending broke off."""

import time

import pytest

from tests.storage.remote.test_remote_s3 import TABLE
from tests.storage.remote.test_remote_store import KEY, ask, finish
from vlprobe.errors import InvalidInput
from vlprobe.runs import verify
from vlprobe.storage import mirrored_entry
from vlprobe.storage.objects import Remote


def test_parts_that_are_here_alone_are_sent_when_a_run_goes_on(memory, on):
    one = on("one", memory)
    one.run(KEY).write_part("0", TABLE)
    there = one.mirror.remote
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
        patch.setattr(Remote, "put", fail)
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
        patch.setattr(Remote, "put", lambda *_: (_ for _ in ()).throw(InvalidInput("")))
        finish(one)
    path = one.root / "runs" / KEY / "scores.parquet"
    path.write_bytes(path.read_bytes()[:-1])
    one.require_writable()
    assert not one.run(KEY).complete
    assert not one.mirror.remote.names("runs")


def test_a_run_that_was_killed_right_after_its_commit_is_complete(memory, on, monkeypatch):
    one = on("one", memory)

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(mirrored_entry, "write_bytes", killed)
        finish(one)
    assert on("two", memory).run(KEY).table("scores").equals(TABLE)
    on("one", memory).require_writable()
    assert [run["key"] for run in one.runs()] == [KEY]
    assert not list(one.root.rglob("pending.json"))


def test_a_commit_whose_answer_was_lost_and_that_was_tried_again_is_ours(
    memory, on, monkeypatch, caplog
):
    one = on("one", memory)
    create = Remote.create
    monkeypatch.setattr(Remote, "create", lambda *given: create(*given) and False)
    finish(one)
    assert one.run(KEY).table("scores").equals(TABLE)
    assert len(one.mirror.remote.names("runs")) == 1
    assert not caplog.records


def test_left_over_objects_are_found_once_nobody_can_be_sending_them(memory, on, monkeypatch):
    one = on("one", memory)
    ask(one)
    finish(one)
    left = f"runs/{KEY}/scores.0123456789abcdef.parquet"
    one.mirror.remote.write(left, b"x")
    assert verify.damages(one) == []
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 2 * verify.LEFT_OVER)
    assert [(str(one.path), one.why) for one in verify.damages(one)] == [
        (f"{memory}/{left}", "no result names it")
    ]
    verify.repair(verify.damages(one))
    assert verify.damages(one) == []
    assert one.run(KEY).table("scores").equals(TABLE)


def test_half_an_object_is_never_seen_in_a_shared_folder(on, tmp_path, monkeypatch):
    there = on("one", f"file://{tmp_path}/shared").mirror.remote
    there.make()
    seen = []

    def look(kept):
        def then(self, *given, **more):
            done = kept(self, *given, **more)
            seen.append([name for name in there.names("") if not name.startswith("sending/")])
            return done

        return then

    for name in ("put_file", "pipe_file"):
        monkeypatch.setattr(type(there._files), name, look(getattr(type(there._files), name)))
    (tmp_path / "file").write_bytes(b"x")
    there.put("a", tmp_path / "file")
    there.write("b", b"x")
    assert there.create("c", b"x")
    assert seen == [[], ["a"], ["a", "b"]]
    assert sorted(there.names("")) == ["a", "b", "c"]


def test_a_file_system_that_cannot_create_only_is_looked_at_first(memory, on, monkeypatch):
    there = on("one", memory).mirror.remote
    files = there._files
    kept = type(files).pipe_file

    def no_mode(self, path, value, mode="overwrite", **given):
        if mode != "overwrite":
            raise NotImplementedError
        return kept(self, path, value, **given)

    monkeypatch.setattr(type(files), "pipe_file", no_mode)
    assert there.create("index/x", b"first")
    assert not there.create("index/x", b"second")
    assert there.read("index/x") == b"first"
