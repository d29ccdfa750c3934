"""The command as a separate process: its exit code and its last output."""

import subprocess
import sys

import pytest


def _process(code: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a process with some code and then the command."""
    lines = ["import atexit, sys, vlprobe.__main__ as command", code, "command.run()"]
    return subprocess.run(
        [sys.executable, "-c", "\n".join(lines), *words], capture_output=True, text=True
    )


@pytest.mark.parametrize(
    ("ending", "status", "error"),
    [
        ("sys.exit()", 0, ""),
        ("sys.exit(3)", 3, ""),
        ("sys.exit('no')", 1, "no"),
        ("1 / 0", 1, "ZeroDivisionError: division by zero"),
    ],
)
def test_the_process_of_a_command_ends_with_its_exit_code_and_message(ending, status, error):
    code = f"def main():\n    atexit.register(print, 'closed')\n    {ending}\ncommand.main = main"
    done = _process(code)
    assert (done.returncode, done.stdout) == (status, "closed\n")
    assert done.stderr.rpartition("\n")[0].rpartition("\n")[2] == error


@pytest.mark.full  # 5 s, in a process that loads torch
def test_a_command_that_ran_a_model_prints_no_warnings_of_libraries(tiny, tmp_path):
    words = ["--cache", str(tmp_path), "run", "--model", "control:constant", "--dataset", tiny]
    done = _process("import duckdb, torch", *words)  # which report leaks at the end
    assert (
        done.returncode == 0 and "leaked" not in done.stderr and "invariance_error" in done.stdout
    )
