"""Errors can be pickled and copied without loss, so that they can be passed between processes."""

import copy
import pickle

import pytest

from vlprobe.errors import JobFailed, MissingDependency, NotFound, StoredDamage, VlprobeError


@pytest.mark.parametrize(
    "error",
    [
        NotFound("model", "demo:sofmax", ["demo:softmax", "demo:weak"], "See `vlprobe list`."),
        MissingDependency("'ray'", "ray"),
        StoredDamage("\x1b" * 9000),
        JobFailed("Out of memory."),
        VlprobeError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_survives_pickling_and_copying(error: VlprobeError):
    for protocol in (2, pickle.HIGHEST_PROTOCOL):
        twin = pickle.loads(pickle.dumps(error, protocol=protocol))
        assert (type(twin), str(twin), twin.args) == (type(error), str(error), error.args)
        assert vars(twin) == vars(error)
    assert str(copy.copy(error)) == str(copy.deepcopy(error)) == str(error)


def test_a_pickled_error_keeps_its_notes():
    error = NotFound("probe", "lgp", ["lgip"])
    error.add_note("In worker 3.")
    assert pickle.loads(pickle.dumps(error)).__notes__ == ["In worker 3."]
