"""What a store behind a URL sends, when, and what becomes of it where sending broke off."""

import pytest

from tests.storage.remote.test_remote_s3 import TABLE
from tests.storage.remote.test_remote_store import KEY, finish
from vlprobe.errors import InvalidInput
from vlprobe.storage import mirror
from vlprobe.storage.mirror import Mirror


def test_parts_that_are_here_alone_are_sent_when_a_run_goes_on(memory, on):
    one = on("one", memory)
    one.run(KEY).write_part("0", TABLE)
    there = one.mirror
    there.remove(there.names("runs"))
    assert one.run(KEY).parts() == {"0"}
    assert on("two", memory).run(KEY).part("0").equals(TABLE)


def test_what_was_finished_while_nothing_could_be_sent_is_sent_when_it_is_finished_again(
    memory, on, monkeypatch
):
    one = on("one", memory)
    examination = one.root / "models" / "m-d.json"

    def fail(*_):
        raise InvalidInput("Cannot reach it.")

    with monkeypatch.context() as patch:
        patch.setattr(Mirror, "put", fail)
        with pytest.raises(InvalidInput, match="Cannot reach it"):
            finish(one)
        with pytest.raises(InvalidInput, match="Cannot reach it"):
            mirror.write_examination(examination, {})
    assert one.runs() == []
    assert not examination.exists()  # so that the next run makes and sends it
    finish(one)
    mirror.write_examination(examination, {})
    two = on("two", memory)
    assert two.run(KEY).table("scores").equals(TABLE)
    two.runs()
    assert (two.root / "models" / "m-d.json").read_bytes() == examination.read_bytes()


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


def test_an_upload_that_is_cut_off_anywhere_leaves_no_half_entry(memory, on, monkeypatch):
    one = on("one", memory)
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
        two = on("two", memory)
        assert two.runs() == one.runs() == []
        assert not two.run(KEY).complete
        on("one", memory)
    finish(one)
    assert on("two", memory).run(KEY).table("scores").equals(TABLE)
