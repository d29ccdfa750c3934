"""Runs that are killed, that fill the disk, and that share a cache; see the scenes in this folder."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults import forks, scenes

ROOT = Path(forks.__file__).resolve().parents[2]


def outcome(folder: Path, points: int, stride: int) -> dict[str, dict]:
    """Return the outcomes of the scenes, run in another process: this one has threads and cannot fork safely."""
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
    assert outcomes["killing"]["states"] > 4  # the kill points cover the entire run
    assert outcomes["killing"]["different"] == []


@pytest.mark.full
def test_a_run_killed_at_any_of_200_points_or_out_of_disk_at_any_write_resumes_to_the_same_bytes(
    tmp_path: Path,
):
    full_outcomes = outcome(tmp_path, scenes.FULL_POINTS, scenes.FULL_STRIDE)
    assert full_outcomes["killing"]["killed"] == scenes.FULL_POINTS == 200
    assert full_outcomes["killing"]["states"] > 20
    assert full_outcomes["killing"]["different"] == []
    assert full_outcomes["filling"]["operations"] > 50
    assert full_outcomes["filling"]["states"] > 20
    assert full_outcomes["filling"]["faulty"] == []


def test_a_full_disk_is_reported_in_one_line_and_loses_only_the_current_write(
    outcomes,
):
    assert outcomes["filling"]["operations"] > 50
    assert outcomes["filling"]["states"] > 5
    assert outcomes["filling"]["faulty"] == []


def test_reaching_the_file_size_limit_is_reported_in_one_line(outcomes):
    assert outcomes["limit"]["sizes"] > 5
    assert outcomes["limit"]["faulty"] == []


def test_four_runs_and_a_reader_on_one_cache_do_not_interfere(outcomes):
    assert outcomes["crowding"]["codes"] == [0, 0, 0, 0]
    assert outcomes["crowding"]["reader"] == 0
    assert outcomes["crowding"]["seen"][-1] == "2"
    assert outcomes["crowding"]["same"]
