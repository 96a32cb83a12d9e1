"""Compiled functions are never stale and never somebody else's, and whatever becomes of the cache,
they are compiled and run.
"""

import ast
import importlib
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import numtok
from numtok.arrays import file_cache, kernel_cache
from numtok.arrays.kernels import kernel

PACKAGE = Path(numtok.__file__).parent
needs_modes = pytest.mark.skipif(sys.platform == "win32", reason="rights are not a mode there")


def run(program, folder, **environment):
    """What a new process prints that finds modules in its folder first, and caches there."""
    places = f"{folder}{os.pathsep}{PACKAGE.parent}"
    variables = {"PYTHONPATH": places, "NUMBA_CACHE_DIR": str(folder / "cache"), **environment}
    command = [sys.executable, "-c", program]
    environment = os.environ | variables
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def squared(x):
    """(x², how many of the compiled functions came from the cache), of a kernel that is new in this
    process.
    """

    def square(x):
        return x * x

    made = kernel(square)
    return made(x), sum(made.dispatcher.stats.cache_hits.values())


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    importlib.reload(kernel_cache)  # nothing has been said yet, as in a new process
    return tmp_path / "cache"


# ---- Never stale


def test_the_key_holds_what_a_module_imports_and_nothing_else(tmp_path):
    room = tmp_path / "housekey" / "room"
    room.mkdir(parents=True)
    for name, source in {
        **dict.fromkeys(("__init__", "other", "room/__init__"), ""),
        "constants": "ONE = 1\n",
        "room/kernels": "from housekey.room.rules import RULE\n",
        "room/rules": "def late():\n    from housekey import constants\n",
    }.items():
        (room.parent / f"{name}.py").write_text(source)

    def key():
        program = "import housekey; from numtok.arrays.file_cache import source_key"
        return run(f"{program}; print(source_key('housekey.room.kernels'))", tmp_path)

    keys = [key()]
    for path in (room / "kernels.py", room / "rules.py", room.parent / "constants.py"):
        path.write_text(path.read_text() + "# changed\n")
        keys.append(key())
    assert len(set(keys)) == 4
    (room / "unrelated.py").write_text("")
    assert key() == keys[-1]


def test_a_folder_of_kernels_does_not_grow(cache):
    """The oldest half goes when there are too many, such as those of former versions."""
    assert [squared(3), squared(3)] == [(9, 0), (9, 1)]
    (folder,) = {path.parent for path in cache.rglob("*") if path.is_file()}
    for number in range(file_cache.MOST_FILES + 5):
        (folder / f"{number}").touch()
        os.utime(folder / f"{number}", (number, number))
    assert squared(2.5) == (6.25, 0) and squared(2.5) == (6.25, 1)
    assert len([*folder.iterdir()]) < file_cache.MOST_FILES * 0.6


# ---- Whatever becomes of the cache


HARMS = {
    "cut short": lambda whole: whole[: len(whole) // 2],
    "empty": lambda whole: b"",
    "no pickle": lambda whole: b"whole, but not what it should be",
    "of another kind": lambda whole: pickle.dumps((("float64",), ())),
}


@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize("harm", HARMS)
def test_a_damaged_cache_is_no_error_and_mended(harm, sealed, cache):
    """Also if what is damaged was so when it was written."""
    assert [squared(3), squared(3)] == [(9, 0), (9, 1)]
    (path,) = cache.rglob("square-*")
    if sealed:
        file_cache.write(path, HARMS[harm](file_cache.read(path)))
    else:
        path.write_bytes(HARMS[harm](path.read_bytes()))
    assert [squared(3), squared(3)] == [(9, 0), (9, 1)]
    path.unlink()
    path.mkdir()
    with pytest.warns(UserWarning, match="cannot be cached"):
        assert squared(3) == (9, 0)


SQUARES = """
from numtok.arrays.kernels import inner_kernel, kernel

@inner_kernel
def times(x, y):
    return x * y

@kernel
def square(x):
    return times(x, x)

@kernel
def cube(x):
    return times(x, x) * x
"""


@pytest.fixture
def squares(tmp_path):
    """A folder with a module of small kernels, to work and to cache in."""
    (tmp_path / "squares.py").write_text(SQUARES)
    return tmp_path


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_a_full_disk_is_no_error_but_one_warning(squares):
    program = (
        "import os, resource, warnings, squares\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "with warnings.catch_warnings(record=True) as told:\n"
        "    warnings.simplefilter('always')\n"
        "    results = squares.square(3), squares.square(2.5), squares.cube(2)\n"
        "os.write(1, repr((results, [str(w.message) for w in told])).encode())"
    )
    results, told = ast.literal_eval(run(program, squares))
    assert results == (9, 6.25, 8)
    assert len(told) == 1 and "NUMBA_CACHE_DIR" in told[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "surprise",
    [
        "numba.core.caching.FunctionCache = None",
        "del numba.core.caching.Cache._index_key",
        "del numba.core.compiler.CompileResult._rebuild",
        "numba.__version__ = '1.0.0'",
        "from numba.core.cpu import CPUTargetOptions as options\n"
        "for one in options.__mro__: '_nrt' in vars(one) and delattr(one, '_nrt')",
        "import numba.core.cpu; del numba.core.cpu.CPUTargetOptions",
    ],
)
def test_surprises_in_numba_are_no_error(surprise, squares):
    program = f"import numba.core.caching\n{surprise}\nimport squares; print([squares.square(3)])"
    for _ in range(2):
        assert run(program, squares) == "[9]\n"


LARGE = np.zeros(1 << 20)  # which is not copied into the code


def test_what_holds_addresses_of_its_process_is_not_cached(cache):
    def first(x):
        return LARGE[x]

    with pytest.warns(UserWarning, match="addresses of this process"):
        assert kernel(first)(3) == 0
    assert not list(cache.rglob("*.kernel"))


def test_what_is_compiled_is_loaded_until_its_module_changes(squares):
    """Also where the file keeps its times: its size changes, by which Python knows its bytecode.
    That it compiles is said once a machine; loading leaves other packages' extensions, such as
    awkward's, which take a second to import, to those who use Numba themselves.
    """
    path = squares / "squares.py"
    program = (
        "import logging, sys, numba, squares; logging.basicConfig(stream=sys.stdout)\n"
        "print(squares.square(3))\n"
    )
    assert run(program, squares) == f"WARNING:numtok:{kernel_cache.COMPILING}\n9\n"
    awkward = "print('awkward' in sys.modules)\n"
    others = f"{awkward}numba.njit(lambda x: x)(1)\n{awkward}"
    assert run(program + others, squares) == "9\nFalse\nTrue\n"
    times = path.stat()
    path.write_text(SQUARES.replace("x * y", "x + 1 * y"))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert run(program, squares) == "6\n"


def test_runs_at_the_same_time_share_a_cache(squares):
    """With other types, in part: no run gets what was compiled for those of another."""
    program = "import squares; print([squares.square(one) for one in ({}, {}, {})])"
    orders = [program.format(3, 3.0, 3 + 0j), program.format(3 + 0j, 3.0, 3)]
    with ThreadPoolExecutor(2) as pool:
        printed = list(pool.map(lambda order: run(order, squares), orders))
    assert printed == ["[9, 9.0, (9+0j)]\n", "[(9+0j), 9.0, 9]\n"]
    # what only kernels call is part of them
    assert len(list((squares / "cache").rglob("square-*.kernel"))) == 3
    assert not list((squares / "cache").rglob("*.tmp"))


# ---- Never somebody else's


def test_kernels_are_in_the_users_cache_if_there_is_one(tmp_path, monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setenv("NUMTOK_CACHE", str(tmp_path))
    assert [squared(3), squared(3)] == [(9, 0), (9, 1)]
    assert kernel_cache.compiled_in(tmp_path / "kernels") == 1
    importlib.reload(kernel_cache)
    monkeypatch.setenv("NUMTOK_CACHE", "0")
    with pytest.warns(UserWarning, match="cannot be cached"):
        assert squared(3) == (9, 0)


@needs_modes
def test_own_folders_are_private_at_every_level_whatever_the_umask(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMTOK_CACHE", str(tmp_path / "a" / "b"))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "c" / "d"))
    importlib.reload(kernel_cache)
    before = os.umask(0)
    try:
        assert squared(3)[0] == 9
        file_cache.cached("name", ["given"], lambda: "found")
    finally:
        os.umask(before)
    folders = [path for path in tmp_path.rglob("*") if path.is_dir()]
    assert len(folders) >= 7 and {path.stat().st_mode & 0o777 for path in folders} == {0o700}
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert "told" in {path.name for path in files}
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}


def test_kernels_of_windows_are_kept(cache, monkeypatch):
    """There, all may write to all by their modes, which say nothing."""
    assert squared(3) == (9, 0)
    for path in cache.rglob("*"):
        path.chmod(0o777 if path.is_dir() else 0o666)
    monkeypatch.delattr(os, "getuid")
    assert squared(3) == (9, 1)


HOSTILE = {  # the mode, the user, the group
    "all may write": (0o777, -1, -1),
    "a group may write": (0o770, -1, 65534 if os.getuid() == 0 else -1),
    "of user nobody": (0o700, 65534, 65534),
}


@needs_modes
@pytest.mark.parametrize("level", [0, 1, 2, 3])
@pytest.mark.parametrize("who", HOSTILE)
def test_a_folder_that_others_may_write_is_not_read(who, level, cache, tmp_path):
    """A pickle that was planted there is never opened, and the kernel runs."""
    if who == "of user nobody" and os.getuid():
        pytest.skip("only root can give files away")
    assert squared(3) == (9, 0)
    mark, (path,) = tmp_path / "opened", cache.rglob("square-*")
    file_cache.write(path, b"cos\nsystem\n(S'touch %s'\ntR." % str(mark).encode())
    there = [path.parent, *path.parent.parents][level]
    mode, user, group = HOSTILE[who]
    os.chown(there, user, group)
    there.chmod(mode)
    with pytest.warns(UserWarning, match="cannot be cached"):
        assert squared(3) == (9, 0)
    assert not mark.exists()


@needs_modes
def test_a_file_that_others_may_write_is_not_read(cache):
    """In a folder that others may read, it is made so that they cannot, whatever the umask."""
    before = os.umask(0)
    try:
        cache.mkdir(0o755, parents=True)
        assert squared(3) == (9, 0)
    finally:
        os.umask(before)
    (path,) = cache.rglob("square-*")
    assert path.stat().st_mode & 0o777 == 0o600 and squared(3) == (9, 1)
    path.chmod(0o666)
    assert squared(3) == (9, 0) and squared(3) == (9, 1)


@needs_modes
def test_links_and_sticky_folders(tmp_path):
    trusted = file_cache.trusted
    real = file_cache.make_private(tmp_path / "a" / "b")
    (tmp_path / "link").symlink_to(real)
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    assert trusted(tmp_path / "link") == real and trusted(tmp_path / "circle") is None
    assert trusted(tmp_path / "none") is None
    real.parent.chmod(0o1777)  # as /tmp: others cannot put another folder in the place of this one
    assert trusted(real) == real and trusted(real.parent) is None
    real.parent.chmod(0o777)
    assert trusted(real) is None and trusted(tmp_path / "link") is None
    with pytest.raises(PermissionError, match="others can write"):
        file_cache.make_private(real / "c")
