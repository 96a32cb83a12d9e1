"""Compiled functions are never stale and never somebody else's, and whatever becomes of the cache,
they are compiled and run.
"""

from __future__ import annotations

import ast
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import numtok
from numtok.arrays import file_cache, kernel_cache
from numtok.arrays.file_cache import source_key
from numtok.arrays.kernels import inner_kernel, kernel, merged_kernel

PACKAGE = Path(numtok.__file__).parent
needs_modes = pytest.mark.skipif(sys.platform == "win32", reason="rights are not a mode there")


def run(program: str, folder: Path, **environment: str) -> str:
    """What a new process prints that finds modules in its folder first."""
    places = f"{folder}{os.pathsep}{PACKAGE.parent}"
    variables = {**os.environ, "PYTHONPATH": places, **environment}
    command: Any = {"args": [sys.executable, "-c", program], "cwd": folder, "env": variables}
    done = subprocess.run(**command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def squared(x: float) -> tuple[float, int]:
    """(x², how many of the compiled functions came from the cache), of a kernel that is new in this
    process.
    """

    def square(x):  # type: ignore[no-untyped-def]
        return x * x

    made = kernel(square)
    return made(x), sum(made.compiled.stats.cache_hits.values())


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(kernel_cache, "_told", set())
    return tmp_path / "cache"


# ---- Never stale


@pytest.mark.slow
def test_a_change_in_an_imported_rule_is_seen(tmp_path: Path) -> None:
    """Without rule D, runs are cut in the middle; the file keeps its times, as in a wheel built
    with constant times.
    """
    find = "import numtok; print(numtok.scan(['5 of 7R32 and 1.2.3']).text().to_pylist())"
    shutil.copytree(PACKAGE, tmp_path / "numtok", ignore=shutil.ignore_patterns("__pycache__"))
    assert "['5']\n" in run(find, tmp_path)
    assert run(find, tmp_path) == "['5']\n"
    rules = tmp_path / "numtok" / "numbers" / "rules.py"
    before, times = rules.read_text("utf-8"), rules.stat()
    first, rest = before.split("def glued_end(", 1)
    without = rest.replace("    while True:\n", "    return at\n    while True:\n", 1)
    rules.write_text(f"{first}def glued_end({without}", "utf-8")
    os.utime(rules, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert "'7'" in run(find, tmp_path)


def test_the_key_holds_what_a_module_imports_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = tmp_path / "housekey" / "room"
    room.mkdir(parents=True)
    for name, source in {
        **dict.fromkeys(("__init__", "other", "room/__init__"), ""),
        "constants": "ONE = 1\n",
        "room/kernels": "from housekey.room.rules import RULE\n",
        "room/rules": "def late():\n    from housekey import constants\n",
    }.items():
        (room.parent / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    import housekey  # type: ignore[import-not-found]  # noqa: F401

    def key() -> str:
        for function in (source_key, file_cache._source, file_cache._files_of):
            function.cache_clear()
        return source_key("housekey.room.kernels")

    keys = [key()]
    for path in (room / "kernels.py", room / "rules.py", room.parent / "constants.py"):
        path.write_text(path.read_text() + "# changed\n")
        keys.append(key())
    assert len(set(keys)) == 4
    (room / "unrelated.py").write_text("")
    assert key() == keys[-1]


def test_kernels_of_another_version_are_not_taken(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [squared(3), squared(3)] == [(9, 0), (9, 1)]
    for number in range(12):
        monkeypatch.setattr(kernel_cache, "source_key", lambda _, number=number: f"{number:016}")
        assert squared(3) == (9, 0)
    assert len(list(cache.glob("numtok/kernels/*/"))) <= kernel_cache.VERSIONS + 1  # and the note


# ---- Whatever becomes of the cache


HARMS: dict[str, Callable[[bytes], bytes]] = {
    "cut short": lambda whole: whole[: len(whole) // 2],
    "empty": lambda whole: b"",
    "no pickle": lambda whole: b"whole, but not what it should be",
    "of another kind": lambda whole: pickle.dumps((("float64",), ())),
}


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
@pytest.mark.parametrize("harm", HARMS)
def test_a_damaged_cache_is_no_error_and_mended(harm: str, suffix: str, cache: Path) -> None:
    assert [squared(3), squared(3)] == [(9, 0), (9, 1)]
    (path,) = cache.rglob(f"*{suffix}")
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
def squares(tmp_path: Path) -> Path:
    """A folder with a module of small kernels, to work and to cache in."""
    (tmp_path / "squares.py").write_text(SQUARES)
    return tmp_path


def use(program: str, squares: Path) -> str:
    return run(program, squares, NUMBA_CACHE_DIR=str(squares / "cache"))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_a_full_disk_is_no_error_but_one_warning(squares: Path) -> None:
    program = (
        "import os, resource, warnings, squares\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "with warnings.catch_warnings(record=True) as told:\n"
        "    warnings.simplefilter('always')\n"
        "    results = squares.square(3), squares.square(2.5), squares.cube(2)\n"
        "os.write(1, repr((results, [str(w.message) for w in told])).encode())"
    )
    results, told = ast.literal_eval(use(program, squares).partition("numtok: compiling")[0])
    assert results == (9, 6.25, 8)
    assert len(told) == 1 and "NUMBA_CACHE_DIR" in told[0]


@pytest.mark.parametrize(
    "surprise",
    [
        "del numba.core.caching._CacheLocator",
        "del numba.core.caching.IndexDataCacheFile",
        "del numba.core.caching.Cache._load_overload",
        "numba.core.caching.FunctionCache.__init__ = lambda self: None",
        "numba.__version__ = '1.0.0'",
    ],
)
def test_surprises_in_numba_are_no_error(surprise: str, squares: Path) -> None:
    program = f"import numba.core.caching\n{surprise}\nimport squares; print([squares.square(3)])"
    for _ in range(2):
        assert "[9]\n" in use(program, squares)


def test_runs_at_the_same_time_share_a_cache(squares: Path) -> None:
    """With other types, in part: no run gets what was compiled for those of another."""
    program = "import squares; print([squares.square(one) for one in ({}, {}, {})])"
    orders = [program.format(3, 3.0, 3 + 0j), program.format(3 + 0j, 3.0, 3)] * 2
    with ThreadPoolExecutor(4) as pool:
        printed = list(pool.map(lambda order: use(order, squares).splitlines(), orders))
    assert [lines[0] for lines in printed] == ["[9, 9.0, (9+0j)]", "[(9+0j), 9.0, 9]"] * 2
    assert len(list((squares / "cache").rglob("*.nbc"))) == 3
    assert not list((squares / "cache").rglob("*.tmp*"))


@inner_kernel
def _doubled(x):  # type: ignore[no-untyped-def]
    return x + x


@merged_kernel
def _tripled(x):  # type: ignore[no-untyped-def]
    return _doubled(x) + x


def _sextupled(x):  # type: ignore[no-untyped-def]
    return _doubled(_tripled(x))


def test_what_only_kernels_call_is_cached_as_part_of_them(cache: Path) -> None:
    assert [kernel(_sextupled)(7), kernel(_sextupled)(7)] == [42, 42]
    (path,) = cache.rglob("*.nbc")
    assert "_sextupled" in path.name


def test_loading_leaves_other_packages_extensions_to_those_who_use_them(squares: Path) -> None:
    """awkward's for one, which take a second to import."""
    program = (
        "import sys, numba, numtok, squares; squares.square(3)\n"
        "print('awkward' in sys.modules); numba.njit(lambda x: x)(1)\n"
        "print('awkward' in sys.modules)"
    )
    use(program, squares)
    assert use(program, squares) == "False\nTrue\n"


def test_it_is_said_once_a_machine_that_it_compiles(
    cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for value in (3, 2.5, 1j):
        kernel_cache._told.clear()  # as in a new process
        squared(value)  # type: ignore[arg-type]
    told = [record.message for record in caplog.records if record.name == "numtok"]
    assert told == [kernel_cache.COMPILING]


# ---- Never somebody else's


def test_an_installation_that_cannot_be_written_uses_the_users_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__pycache__").write_text("no folder can be made in a file, by root neither")
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(kernel_cache, "PACKAGE", package)
    monkeypatch.setattr(kernel_cache, "_told", set())
    monkeypatch.setenv("NUMTOK_CACHE", str(tmp_path / "home" / "numtok"))
    assert [squared(3), squared(3)] == [(9, 0), (9, 1)]
    monkeypatch.setenv("NUMTOK_CACHE", "0")
    with pytest.warns(UserWarning, match="cannot be cached"):
        assert squared(3) == (9, 0)


@needs_modes
def test_own_folders_are_private_at_every_level_whatever_the_umask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMTOK_CACHE", str(tmp_path / "a" / "b"))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "c" / "d"))
    before = os.umask(0)
    try:
        assert squared(3)[0] == 9
        file_cache.cached("name", ["given"], lambda: "found")
    finally:
        os.umask(before)
    folders = [path for path in tmp_path.rglob("*") if path.is_dir()]
    assert len(folders) >= 8 and {path.stat().st_mode & 0o777 for path in folders} == {0o700}


@needs_modes
def test_kernels_beside_the_package_are_for_others_to_read_and_not_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their folders are as open as the package. What a former version wrote there under a umask of
    0 is not read, but made anew.
    """
    package = tmp_path / "package"
    package.mkdir(mode=0o755)
    package.chmod(0o755)
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(kernel_cache, "PACKAGE", package)
    before = os.umask(0)
    try:
        assert [squared(3), squared(3)] == [(9, 0), (9, 1)]
    finally:
        os.umask(before)
    files = [path for path in package.rglob("*.nb?")]
    assert len(files) == 2 and {path.stat().st_mode & 0o777 for path in files} == {0o644}
    assert {path.parent.stat().st_mode & 0o777 for path in files} == {0o755}
    files[0].chmod(0o666)
    assert [squared(3), squared(3)] == [(9, 0), (9, 1)]


def test_kernels_of_windows_are_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There, all may write to all by their modes, which say nothing."""
    assert squared(3) == (9, 0)
    for path in cache.rglob("*"):
        path.chmod(0o777 if path.is_dir() else 0o666)
    monkeypatch.delattr(os, "getuid")
    assert squared(3) == (9, 1)


HOSTILE: dict[str, tuple[int, int, int]] = {  # the mode, the user, the group
    "all may write": (0o777, -1, -1),
    "a group may write": (0o770, -1, 65534 if os.getuid() == 0 else -1),
    "of user nobody": (0o700, 65534, 65534),
}


@needs_modes
@pytest.mark.parametrize("level", [0, 1, 2, 3])
@pytest.mark.parametrize("who", HOSTILE)
def test_a_folder_that_others_may_write_is_not_read(
    who: str, level: int, cache: Path, tmp_path: Path
) -> None:
    """A pickle that was planted there is never opened, and the kernel runs."""
    if who == "of user nobody" and os.getuid():
        pytest.skip("only root can give files away")
    assert squared(3) == (9, 0)
    planted, mark = b"cos\nsystem\n(S'touch %s'\ntR.", tmp_path / "opened"
    for path in cache.rglob("*.nb?"):
        path.write_bytes(planted % str(mark).encode())
    folder = next(path for path in cache.rglob("*.nbi")).parent
    levels = [folder, *folder.parents][: 1 + level]
    mode, user, group = HOSTILE[who]
    os.chown(levels[-1], user, group)
    levels[-1].chmod(mode)
    with pytest.warns(UserWarning, match="cannot be cached"):
        assert squared(3) == (9, 0)
    assert not mark.exists()


@needs_modes
def test_links_and_sticky_folders(tmp_path: Path) -> None:
    trusted: Callable[[Path], Path | None] = file_cache.trusted
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
