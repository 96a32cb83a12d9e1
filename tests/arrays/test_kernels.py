"""Compiled functions are never stale: a change in a module that a kernel takes something from is
seen, whatever the cache and the files' times say.
"""

from __future__ import annotations

import ast
import gc
import os
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import numtok
from numtok.arrays import kept, kernel_cache, kernel_folders
from numtok.arrays.kernels import inner_kernel, kernel, merged_kernel
from numtok.arrays.stamp import ROOMS, content_stamp

PACKAGE = Path(numtok.__file__).parent
FIND = (
    "import numtok, sys; print([number.text for number in numtok.extract('5 of 7R32 and 1.2.3')])"
)


def found(folder: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", FIND], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.slow
def test_a_change_in_an_imported_rule_is_seen(tmp_path: Path) -> None:
    """Without rule D, runs are cut in the middle; the file keeps its times, as in a wheel built
    with constant times.
    """
    shutil.copytree(PACKAGE, tmp_path / "numtok", ignore=shutil.ignore_patterns("__pycache__"))
    assert found(tmp_path) == found(tmp_path) == "['5']"
    rules = tmp_path / "numtok" / "numbers" / "rules.py"
    before, times = rules.read_text("utf-8"), rules.stat()
    first, rest = before.split("def glued_end(", 1)
    without_rule = (
        first
        + "def glued_end("
        + rest.replace("    while True:\n", "    return at\n    while True:\n", 1)
    )
    rules.write_text(without_rule, "utf-8")
    os.utime(rules, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert "'7'" in found(tmp_path)


def test_compiling_leaves_other_packages_extensions_to_those_who_use_them(tmp_path: Path) -> None:
    """awkward's for one, which take a second to import: they are there for the first function that
    is not ours.
    """
    compile_both = (
        "import sys, numba; from numtok.arrays import memory; memory.iota(9); print('awkward' in"
        " sys.modules);numba.njit(lambda x: x)(1); print('awkward' in sys.modules)"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", compile_both], env=environment, capture_output=True, text=True
    )
    assert done.stdout.split() == ["False", "True"], done.stderr
    assert list(tmp_path.rglob("*.kernel"))


def test_every_kernel_is_in_a_room_that_the_key_covers() -> None:
    holders = {
        path.relative_to(PACKAGE).parts[0]
        for path in PACKAGE.rglob("*.py")
        if "arrays.kernels import" in path.read_text("utf-8")
    }
    assert holders <= set(ROOMS)
    assert len({content_stamp(room) for room in ROOMS}) == len(
        ROOMS
    ) and content_stamp() == content_stamp("tokenizer")


def test_a_room_imports_nothing_from_those_above_it() -> None:
    """Else the key of its kernels would not see all that they are made of."""
    for above, room in enumerate(ROOMS, 1):
        for path in (PACKAGE / room).glob("*.py"):
            for later in ROOMS[above:]:
                assert not re.search(
                    rf"(from|import) numtok\.{later}\b|from numtok import .*\b{later}\b",
                    path.read_text("utf-8"),
                ), (
                    path,
                    later,
                )


@pytest.mark.skipif(
    sys.platform == "win32", reason="a full disk is played by a limit that Windows lacks"
)
def test_a_full_disk_is_no_error_but_one_warning(tmp_path: Path) -> None:
    """Numba cannot write its cache: functions are compiled all the same, and that is said once."""
    (tmp_path / "squares.py").write_text(
        "from numtok.arrays.kernels import kernel\n\n@kernel\ndef square(x):\n    return x *"
        " x\n\n@kernel\ndef cube(x):\n    return x * x * x\n",
        "utf-8",
    )
    use = (
        "import resource, warnings, squares; resource.setrlimit(resource.RLIMIT_FSIZE, (0,"
        " 0))\nwith warnings.catch_warnings(record=True) as told:\n   "
        " warnings.simplefilter('always'); results = squares.square(3), squares.square(2.5),"
        " squares.cube(2)\nimport os; os.write(1, repr((results, [str(w.message) for w in"
        " told])).encode())"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": f"{PACKAGE.parent}{os.pathsep}{tmp_path}",
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
    }
    done = subprocess.run(
        [sys.executable, "-c", use], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    results, told = ast.literal_eval(done.stdout)
    assert results == (9, 6.25, 8)
    assert len(told) == 1 and "NUMBA_CACHE_DIR" in told[0]


def squared(x: int) -> tuple[int, int]:
    """(x², how many of the compiled functions came from the cache), of a kernel that is new in this
    process.
    """

    def square(x):  # type: ignore[no-untyped-def]
        return x * x

    made = kernel(square)
    return int(made(x)), sum(made.compiled.stats.cache_hits.values())


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.parametrize(
    "harm", ["cut short", "a bit flipped", "empty", "no pickle", "of other types"]
)
def test_a_damaged_cache_is_no_error_and_mended(harm: str, cache: Path) -> None:
    assert [squared(3), squared(3)] == [(9, 0), (9, 1)]
    (path,) = cache.rglob("*.kernel")
    content = path.read_bytes()
    if harm == "no pickle":
        kept.write(path, b"whole, but not what it should be")
    elif harm == "of other types":
        kept.write(path, pickle.dumps((("float64",), ())))
    else:
        half = len(content) // 2
        path.write_bytes(
            {
                "cut short": content[:half],
                "a bit flipped": content[:half] + b"\x00\xff" + content[half + 2 :],
                "empty": b"",
            }[harm]
        )
    assert [squared(3), squared(3)] == [(9, 0), (9, 1)]


@inner_kernel
def _doubled(x):  # type: ignore[no-untyped-def]
    return x + x


@merged_kernel
def _tripled(x):  # type: ignore[no-untyped-def]
    return _doubled(x) + x


def _sextupled(x):  # type: ignore[no-untyped-def]
    return _doubled(_tripled(x))


def test_what_only_kernels_call_is_compiled_and_kept_as_part_of_them(cache: Path) -> None:
    """Machine code of its own would take as long again."""
    assert [kernel(_sextupled)(7), kernel(_sextupled)(7)] == [42, 42]
    assert [
        path.name.rpartition("-")[0].rpartition(".")[2] for path in cache.rglob("*.kernel")
    ] == ["_sextupled"]
    assert gc.isenabled()


def test_kernels_of_another_version_are_not_taken(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert squared(3) == (9, 0)
    monkeypatch.setattr(kernel_folders, "content_stamp", lambda room: "another")
    assert squared(3) == (9, 0)
    for number in range(12):
        monkeypatch.setattr(
            kernel_folders, "content_stamp", lambda room, number=number: f"{number:016}"
        )
        squared(3)
    assert len(list(cache.glob("numtok/kernels/*"))) <= kernel_folders.VERSIONS


def test_runs_at_the_same_time_share_a_cache(cache: Path) -> None:
    use = "from numtok.arrays.memory import iota; print(iota(5).tolist())"
    runs = [
        subprocess.Popen([sys.executable, "-c", use], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    assert [run.communicate()[0] for run in runs] == ["[0, 1, 2, 3, 4]\n"] * 3
    assert [path.suffix for path in cache.rglob("*") if path.is_file()] == [".kernel"]


def test_an_installation_that_cannot_be_written_uses_the_users_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder can be made in a file, by root neither")
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(kernel_folders, "PACKAGE", tmp_path / "file")
    monkeypatch.setenv("NUMTOK_CACHE", str(tmp_path / "home" / "numtok"))
    assert [squared(3), squared(3)] == [(9, 0), (9, 1)]
    assert (tmp_path / "home" / "numtok").stat().st_mode & 0o777 == 0o700
    monkeypatch.setattr(kernel_cache, "_told", set())
    monkeypatch.setenv("NUMTOK_CACHE", "0")
    with pytest.warns(UserWarning, match="cannot be kept"):
        assert squared(3) == (9, 0)


def test_it_is_said_once_that_it_compiles(
    cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(kernel_cache, "_told", set())
    squared(3), squared(3)
    squared(2.5)  # type: ignore[arg-type]
    assert [record.message for record in caplog.records if record.name == "numtok"] == [
        kernel_cache.COMPILING
    ]
