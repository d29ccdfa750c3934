"""What becomes of a run that is killed, finds the disk full, or is not alone; see the scenes in this folder."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults import forks, scenes

ROOT = Path(forks.__file__).resolve().parents[2]


def outcome(folder: Path, points: int, stride: int) -> dict[str, dict]:
    """What the scenes found, in a process that can be forked: this one has threads."""
    options = ["--points", str(points), "--stride", str(stride)]
    command = [sys.executable, "-m", "tests.faults.scenes", str(folder), *options]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict]:
    return outcome(tmp_path_factory.mktemp("scenes"), scenes.POINTS, scenes.STRIDE)


def test_a_run_killed_at_any_of_10_points_resumes_to_the_same_bytes(outcomes):
    assert outcomes["killing"]["killed"] == scenes.POINTS == 10
    assert outcomes["killing"]["states"] > 4  # the points are spread over the whole run
    assert outcomes["killing"]["different"] == []


@pytest.mark.full
def test_a_run_killed_at_any_of_200_points_or_out_of_disk_at_any_write_resumes_to_the_same_bytes(
    tmp_path: Path,
):
    found = outcome(tmp_path, scenes.FULL_POINTS, scenes.FULL_STRIDE)
    assert found["killing"]["killed"] == scenes.FULL_POINTS == 200
    assert found["killing"]["states"] > 20
    assert found["killing"]["different"] == []
    assert found["filling"]["operations"] > 50
    assert found["filling"]["states"] > 20
    assert found["filling"]["faulty"] == []


def test_a_disk_that_is_full_at_a_write_is_said_in_one_line_and_costs_only_what_was_being_written(
    outcomes,
):
    assert outcomes["filling"]["operations"] > 50
    assert outcomes["filling"]["states"] > 5
    assert outcomes["filling"]["faulty"] == []


def test_a_file_that_may_not_grow_is_said_in_one_line(outcomes):
    assert outcomes["limit"]["sizes"] > 5
    assert outcomes["limit"]["faulty"] == []


def test_four_runs_and_a_reader_on_one_cache_disturb_each_other_nowhere(outcomes):
    assert outcomes["crowding"]["codes"] == [0, 0, 0, 0]
    assert outcomes["crowding"]["reader"] == 0
    assert outcomes["crowding"]["seen"][-1] == "2"
    assert outcomes["crowding"]["same"]
