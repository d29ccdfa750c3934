"""Runs that are removed from a shared store."""

from unittest.mock import Mock

import pytest

from tests.storage.remote.test_remote_s3 import call
from tests.storage.remote.test_remote_s3 import request as asked
from vlprobe.errors import InvalidInput, NotFound
from vlprobe.runs import verify
from vlprobe.runs.run import execute
from vlprobe.storage.mirror import Mirror

MODELS = ("control:random", "control:constant")


@pytest.mark.parametrize("kind", ["memory", pytest.param("bucket", marks=pytest.mark.full)])
def test_a_removed_run_is_removed_for_every_machine_and_the_others_remain(
    kind, dataset_name, on, request
):
    address = request.getfixturevalue(kind)
    one, two = on("one", address), on("two", address)
    removed, kept = (execute(asked(dataset_name, models=(model,)), one)[0] for model in MODELS)
    scores = two.run(kept["key"]).table("scores")
    assert two.run(removed["key"]).complete
    assert verify.remove(one, verify.removable(one, [removed["key"]])) == 0
    remote = one.mirror
    assert not [name for name in remote.names("") if removed["key"] in name]
    for name in ("one", "two", "three"):
        store = on(name, address)
        assert [run["key"] for run in store.runs()] == [kept["key"]]
        assert not store.run(removed["key"]).complete
        assert store.run(kept["key"]).table("scores").equals(scores)
        with pytest.raises(NotFound):
            verify.removable(store, [removed["key"]])
    assert call(address, "verify") == ""
    (again,) = execute(asked(dataset_name, models=(MODELS[0],)), on("two", address))
    assert again["key"] == removed["key"]
    assert again["files"] == removed["files"]
    assert len(on("one", address).runs()) == 2


def test_the_command_removes_a_run_of_a_shared_store(memory, dataset_name, on):
    (manifest,) = execute(asked(dataset_name), on("one", memory))
    call(memory, "remove", manifest["key"][:8], "--yes")
    assert not on("two", memory).runs()


def test_an_interrupted_removal_leaves_no_incomplete_run(memory, dataset_name, on, monkeypatch):
    one = on("one", memory)
    (manifest,) = execute(asked(dataset_name), one)
    with monkeypatch.context() as patch:
        patch.setattr(
            Mirror, "names", Mock(side_effect=InvalidInput("The store cannot be reached."))
        )
        with pytest.raises(InvalidInput, match="cannot be reached"):
            one.mirror.remove_run(manifest["key"])
    assert not on("two", memory).runs() and not on("one", memory).runs()
    (again,) = execute(asked(dataset_name), on("two", memory))
    assert again["files"] == manifest["files"]
