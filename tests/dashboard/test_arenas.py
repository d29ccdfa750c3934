"""A server's memory: few heaps, whatever number of threads allocate at once."""

import platform
import re
import subprocess
import sys

import pytest

from vlprobe.dashboard import arenas

# Twelve threads hold memory that is in nobody else's heap, at once; then the C library describes its heaps.
SCRIPT = """
import ctypes, sys, threading
from vlprobe.dashboard import arenas
if sys.argv[1] == "limited":
    arenas.limit()
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
    assert n_heaps["limited"] <= arenas.ARENAS < n_heaps["as it is"]
