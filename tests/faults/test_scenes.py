"""What becomes of a run that is killed, finds the disk full, or is not alone; see the scenes in this folder."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults import forks, scenes

ROOT = Path(forks.__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict]:
    """What the scenes found, in a process that can be forked: this one has threads."""
    command = [sys.executable, "-m", "tests.faults.scenes", str(tmp_path_factory.mktemp("scenes"))]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_a_run_killed_at_any_of_200_points_resumes_to_the_same_bytes(found):
    assert found["killing"]["killed"] == scenes.POINTS == 200
    assert found["killing"]["states"] > 20  # the points are spread over the whole run
    assert found["killing"]["different"] == []


def test_a_disk_that_is_full_at_any_write_is_said_in_one_line_and_costs_only_what_was_being_written(found):
    assert found["filling"]["operations"] > 50
    assert found["filling"]["states"] > 5
    assert found["filling"]["faulty"] == []


def test_a_file_that_may_not_grow_is_said_in_one_line(found):
    assert found["limit"]["sizes"] > 5
    assert found["limit"]["faulty"] == []


def test_four_runs_and_a_reader_on_one_cache_disturb_each_other_nowhere(found):
    assert found["crowding"]["codes"] == [0, 0, 0, 0]
    assert found["crowding"]["reader"] == 0
    assert found["crowding"]["seen"][-1] == "2"
    assert found["crowding"]["same"]
