"""A server's process: few heaps, whatever number of threads allocate at once, an end that waits for none."""

import os
import platform
import re
import subprocess
import sys

import pytest

from vlprobe.dashboard import process

# Twelve threads hold memory that is in nobody else's heap, at once; then the C library describes its heaps.
SCRIPT = """
import ctypes, sys, threading
from vlprobe.dashboard import process
if sys.argv[1] == "limited":
    process.limit_heaps()
library, meeting = ctypes.CDLL(None), threading.Barrier(12)
library.malloc.restype = library.fopen.restype = ctypes.c_void_p
def allocate():
    for _ in range(20):
        meeting.wait()
        library.malloc(ctypes.c_size_t(30_000))
threads = [threading.Thread(target=allocate) for _ in range(12)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
file = ctypes.c_void_p(library.fopen(sys.argv[2].encode(), b"w"))
library.malloc_info(0, file)
library.fclose(file)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another allocator")
def test_threads_that_allocate_at_once_share_two_heaps(tmp_path):
    n_heaps = {}
    for name in ("limited", "as it is"):
        command = [sys.executable, "-c", SCRIPT, name, str(tmp_path / name)]
        subprocess.run(command, check=True)
        n_heaps[name] = len(re.findall("<heap nr=", (tmp_path / name).read_text()))
    assert n_heaps["limited"] <= process.HEAPS < n_heaps["as it is"]


@pytest.mark.parametrize(
    ("code", "expected", "said"), [("None", 0, ""), ("3", 3, ""), ("'no port'", 1, "no port\n")]
)
def test_the_end_waits_for_no_thread_and_says_what_a_system_exit_says(code, expected, said):
    script = f"""
import threading
from vlprobe.dashboard import process
threading.Thread(target=threading.Event().wait).start()  # Python's own end would wait for it for ever
print("done")
process.leave({code})
"""
    command = [sys.executable, "-c", script]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (ended.returncode, ended.stdout, ended.stderr) == (expected, "done\n", said)


def test_matrix_products_have_one_thread_also_where_nothing_loaded_their_library_before():
    script = (
        "import sys; from vlprobe.dashboard import process; assert 'numpy' not in sys.modules; "
        "process.limit_threads(); from threadpoolctl import threadpool_info; "
        "print({info['num_threads'] for info in threadpool_info() if info['user_api'] == 'blas'})"
    )
    environment = os.environ | {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}
    command = [sys.executable, "-c", script]
    completed = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    assert completed.stdout.strip() == "{1}"


def test_what_is_loaded_is_not_looked_through_again_and_what_comes_later_is_freed():
    script = """
import gc, weakref
from vlprobe.dashboard import process
class Session: pass
process.keep_what_is_loaded()
assert gc.get_freeze_count() > 10_000 and len(gc.get_objects()) < 1_000
session = Session()
session.itself, gone = session, weakref.ref(session)
del session
gc.collect()
assert gone() is None
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=300)
