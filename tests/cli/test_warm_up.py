"""``numtok warm-up``: after it, no run compiles or compares engines; what cannot be kept is an
error that says where it was to go.
"""

import os
import re

import pytest
from command import ok, process

COMPILING = "compiling for this processor"


def numtok(words, **environment):
    return process(words, env={**os.environ, **environment})


def test_it_says_what_it_prepared_and_where(tmp_path):
    done = numtok("warm-up --numbers xval", NUMTOK_CACHE=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "preparing xval" in done.stderr and "kernels" in done.stdout
    counted = re.search(r"compiled functions +(\d+)\n", done.stdout)
    assert counted and int(counted[1]) > 20
    # the default tokenizer, and one like others
    assert len(list((tmp_path / "facts").glob("same-ids-*"))) == 2


def test_what_it_does_not_say():
    assert ok("warm-up --numbers xval -q") == ""


@pytest.mark.slow
def test_after_it_nothing_is_compiled(tmp_path):
    text, out = tmp_path / "a.txt", tmp_path / "a.parquet"
    text.write_text("The mass is -1,234.5e3 kg,  2  times.\n", "utf-8")
    line = f"encode {text} -o {out} --overwrite --scale 1 --workers 1"
    warmed = {"NUMBA_CACHE_DIR": str(tmp_path / "compiled")}
    assert numtok(line, **warmed).stderr.count(COMPILING) == 1  # what it needs itself
    assert numtok("warm-up -q", **warmed).returncode == 0
    packed = f"{line} --pack 8 --pack-mode best-fit"
    for words in (line, packed, f"stats {text}", f"stats {out}"):
        assert COMPILING not in numtok(words, **warmed).stderr


def test_no_folder_for_what_was_compiled_is_an_error(tmp_path, monkeypatch):
    from numtok.corpus.warm_up import warm_up
    from numtok.errors import OutputError

    (tmp_path / "file").write_text("no folder can be made in a file, by root neither")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    with pytest.raises(OutputError, match="set NUMBA_CACHE_DIR to one"):
        warm_up()
