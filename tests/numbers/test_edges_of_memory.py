"""Nothing is read outside of the text, where there may be no memory at all: a text that is a page
of its own, between two that must not be touched.
"""

import subprocess
import sys

import pytest

SCRIPT = """
import ctypes, mmap, sys
import numpy as np, pyarrow as pa
from numtok import scan
text = sys.argv[1].encode()
page = mmap.PAGESIZE
memory = mmap.mmap(-1, 3 * page)
begin = page if sys.argv[2] == "begin" else 2 * page - len(text)
memory[page : 2 * page] = b"." * page
memory[begin : begin + len(text)] = text
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
for untouchable in (address, address + 2 * page):
    if ctypes.CDLL(None, use_errno=True).mprotect(ctypes.c_void_p(untouchable), page, 0):
        sys.exit("mprotect is refused")
data = pa.foreign_buffer(address + begin, len(text), memory)
texts = pa.Array.from_buffers(pa.large_string(), 1, [None, pa.py_buffer(np.array([0, len(text)])), data])
print(scan(texts).text().to_pylist(), flush=True)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="protects pages as Linux does")
@pytest.mark.parametrize("at", ["begin", "end"])
def test_numbers_at_the_edges_of_a_page(at):
    text = "12 of 345.5, and more words behind which there is room, up to -7 and 89"
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, text, at], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "['12', '345.5', '-7', '89']\n"), done.stderr
