"""A started process runs this vlprobe and no file in the current folder."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import vlprobe
from vlprobe.runs import case_workers, jobs, processes

ROOT = Path(vlprobe.__file__).resolve().parent.parent


@pytest.fixture
def trap(tmp_path, monkeypatch) -> Path:
    """Put modules that both kinds of process would import into the current folder, and return the file that they create
    if they run.
    """
    for name in ("numbers", "json"):
        (tmp_path / f"{name}.py").write_text(
            "import pathlib; pathlib.Path('ran').touch(); raise SystemExit(3)"
        )
    monkeypatch.chdir(tmp_path)
    return tmp_path / "ran"


def test_a_process_that_makes_questions_imports_nothing_from_the_current_folder(trap):
    with contextlib.ExitStack() as stack:
        process = case_workers._start(stack)
        process.stdin.close()
        assert process.wait(300) == 1  # it received no input
    assert not trap.exists()


def test_a_job_imports_nothing_from_the_current_folder(trap, store):
    (store.root / "jobs" / "abc").mkdir(parents=True)  # without a request
    jobs._spawn(store, "abc")
    assert next(reversed(jobs._children.values())).wait(300) == 1
    assert "No job named 'abc'" in (store.root / "jobs" / "abc" / "log.txt").read_text()
    assert not trap.exists()


def test_a_copy_that_is_not_installed_starts_its_own_modules(tmp_path, monkeypatch):
    copy = tmp_path / "copy"
    (copy / "vlprobe" / "runs").mkdir(parents=True)
    (copy / "vlprobe" / "__init__.py").touch()
    (copy / "vlprobe" / "runs" / "__init__.py").touch()
    (copy / "vlprobe" / "runs" / "processes.py").write_bytes(Path(processes.__file__).read_bytes())
    (copy / "vlprobe" / "where.py").write_text("print(__file__)")
    code = "from vlprobe.runs import processes; raise SystemExit(processes.start('vlprobe.where').wait())"
    monkeypatch.delenv("PYTHONPATH", raising=False)
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=copy, capture_output=True, text=True, check=True
    )
    assert Path(ran.stdout.strip()) == copy / "vlprobe" / "where.py"


def test_an_existing_pythonpath_is_preserved(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "told.py").write_text("import os; print(os.environ['PYTHONPATH'])")
    out, _ = processes.start("told", stdout=subprocess.PIPE).communicate(timeout=300)
    assert out.decode().strip().split(os.pathsep) == [str(ROOT), str(tmp_path)]
