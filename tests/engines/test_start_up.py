"""A start loads what it needs and nothing else, and what one run found out the next one takes over:
the same ids, whatever became of what was kept.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from numtok_cli.main import cli

from numtok import Tokenizer
from numtok.arrays import file_cache
from numtok.engines import choose
from numtok.engines.choose import EngineWarning
from numtok.errors import TokenizerError

LINE = "The mass is 1,234.5 kg at -3 °C,  2  times."
ENCODE = f"""
import sys, numtok
tok = numtok.Tokenizer.from_pretrained(*sys.argv[1:])
found = tok.encode({LINE!r})
heavy = ["pandas", "awkward", "tokenizers", "pyarrow.compute", "pyarrow.parquet", "pyarrow.dataset", "regex", "numpy.testing", "torch", "transformers"]
print([found.input_ids.tolist(), [m for m in heavy if m in sys.modules],
       sorted(set(vars(tok.engine)) & {{"slow", "_complete"}})])
"""


@contextlib.contextmanager
def keeping_in(cache: Path) -> Iterator[None]:
    """As a first run, in this process, which loads all there is and keeps what it finds out."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMTOK_CACHE", str(cache))
        yield


def encode_one_line(cache: Path | str, *arguments: Any) -> list[Any]:
    """Of a new process: the ids, which of the heavy packages it loaded, and which tokenizers beside
    the one it needs.
    """
    environment = {**os.environ, "NUMTOK_CACHE": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", ENCODE, *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found: list[Any] = ast.literal_eval(done.stdout)
    return found


def facts(folder: Path) -> list[Path]:
    return sorted((folder / "facts").glob("*"))


def test_a_start_loads_neither_pandas_nor_a_second_engine(tmp_path: Path, neox_json: Path) -> None:
    """Nor does one with added tokens and a normalizer: the two spaces come from a table."""
    for source in ([], [neox_json]):
        with keeping_in(tmp_path):
            ids = Tokenizer.from_pretrained(*source).encode(LINE).input_ids.tolist()
        slow = Tokenizer.from_pretrained(*source, engine="tokenizers")
        assert slow.encode(LINE).input_ids.tolist() == ids
        assert encode_one_line(tmp_path, *source) == [ids, [], []]


def test_the_verdict_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMTOK_CACHE", str(tmp_path / "made" / "new"))
    compared: list[Any] = []
    compare = choose._compare
    monkeypatch.setattr(
        choose, "_compare", lambda *arguments: compared.append(arguments) or compare(*arguments)
    )
    ids = [Tokenizer.from_pretrained().encode(LINE).input_ids.tolist() for _ in range(2)]
    assert len(compared) == 1 and ids[0] == ids[1]
    assert (tmp_path / "made" / "new").stat().st_mode & 0o777 == 0o700
    Tokenizer.from_pretrained(numbers="p10")  # other number tokens
    assert len(compared) == 2
    monkeypatch.setenv("NUMTOK_CACHE", "0")
    Tokenizer.from_pretrained()
    assert len(compared) == 3


def test_another_version_of_an_engine_is_compared_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMTOK_CACHE", str(tmp_path))
    Tokenizer.from_pretrained()
    before = facts(tmp_path)
    monkeypatch.setattr(choose, "_installed", lambda package: f"a later {package}")
    Tokenizer.from_pretrained()
    assert [path.name.split("-")[0] for path in set(facts(tmp_path)) - set(before)] == ["same"]


def test_what_failed_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMTOK_CACHE", str(tmp_path))

    def differ(*_: object) -> str:
        raise TokenizerError("they differ")

    monkeypatch.setattr(choose, "_compare", differ)
    with pytest.warns(EngineWarning, match="they differ"):
        assert Tokenizer.from_pretrained().engine.name == "tokenizers"
    assert facts(tmp_path) == []


HARMS: dict[str, Callable[[bytes], bytes]] = {
    "cut short": lambda content: content[:-1],
    "a bit flipped": lambda content: content[:-1] + bytes([content[-1] ^ 1]),
    "empty": lambda content: b"",
    "another version's": lambda content: content.replace(b"kept 1", b"kept 9"),
}


@pytest.mark.parametrize("harm", [*HARMS, "a folder"])
def test_what_is_damaged_is_found_out_anew(
    harm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMTOK_CACHE", str(tmp_path))

    def found(what: str) -> str:
        return file_cache.cached("name", ["given"], lambda: what)

    assert found("right") == "right"
    (path,) = facts(tmp_path)
    content = path.read_bytes()
    path.unlink()
    if harm == "a folder":
        path.mkdir()
    else:
        path.write_bytes(HARMS[harm](content))
    assert found("found anew") == "found anew"
    assert found("third") == ("third" if harm == "a folder" else "found anew")


def test_runs_at_the_same_time_find_whole_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMTOK_CACHE", str(tmp_path))
    long = "x" * 100_000

    def look(turn: int) -> set[str]:
        return {file_cache.cached(f"name{k % 3}", [str(turn % 2)], lambda: long) for k in range(50)}

    with ThreadPoolExecutor(8) as pool:
        assert set().union(*pool.map(look, range(16))) == {long}
    assert len(facts(tmp_path)) == 6  # and nothing half-written


@pytest.mark.skipif(sys.platform == "win32", reason="rights are not a mode there")
def test_a_folder_that_others_can_write_to_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMTOK_CACHE", str(tmp_path))
    file_cache.cached("name", ["given"], lambda: "planted")
    tmp_path.chmod(0o777)
    assert file_cache.user_folder() is None
    assert file_cache.cached("name", ["given"], lambda: "own") == "own"


def test_a_home_that_cannot_be_written_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder can be made in a file, by root neither")
    monkeypatch.setenv("NUMTOK_CACHE", str(tmp_path / "file" / "numtok"))
    assert len(Tokenizer.from_pretrained().encode("5").input_ids) == 1


def test_the_folder_does_not_grow_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMTOK_CACHE", str(tmp_path))
    monkeypatch.setattr(file_cache, "MOST_FACTS", 10)
    for k in range(40):
        file_cache.cached("name", [str(k)], lambda: "x")
    assert len(facts(tmp_path)) <= 10


OTHERS = """
import sys
from numtok_cli.main import cli
cli(sys.argv[1:], standalone_mode=False)
heavy = ["pandas", "awkward", "tokenizers", "pyarrow.compute", "pyarrow.csv", "pyarrow.parquet", "numba.np.arrayobj", "fsspec"]
print([m for m in heavy if m in sys.modules], sorted(m for m in sys.modules if m.startswith("numtok.corpus")))
"""


def loaded_by(cache: Path, *arguments: str) -> tuple[list[str], list[str]]:
    """(heavy packages, modules of the corpus) that the second run of a command loads."""
    with keeping_in(cache):
        cli(list(arguments), standalone_mode=False)
    environment = {**os.environ, "NUMTOK_CACHE": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", OTHERS, *arguments], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    heavy, own = done.stdout.splitlines()[-1].split("] [")
    return ast.literal_eval(heavy + "]"), ast.literal_eval("[" + own)


def test_inspecting_a_line_loads_nothing_of_files(tmp_path: Path) -> None:
    line = ["inspect", "A mass of -1.5e3 kg", "--numbers", "xval,bits", "--numbers", "subword"]
    assert loaded_by(tmp_path, *line) == ([], [])


@pytest.mark.parametrize(("suffix", "needs"), [("parquet", ["pyarrow.parquet"]), ("arrow", [])])
def test_encoding_a_line_loads_one_reader_and_one_writer(
    suffix: str, needs: list[str], tmp_path: Path
) -> None:
    heavy, own = encoding(tmp_path, suffix, [json.dumps({"text": LINE})])
    assert heavy == needs
    readers = {"arrow", "csv_table", "encoded", "json_document", "jsonl", "parquet", "text"}
    assert readers & {name.rpartition(".")[2] for name in own if ".read." in name} == {"jsonl"}
    assert "numtok.corpus.decode" not in own


def test_much_text_and_numbers_hard_to_round_load_no_other_arrays(tmp_path: Path) -> None:
    """pandas takes as long to load as a hundred megabytes take to encode, and 24 MiB a process."""
    hard = [f"{row} and 0.{'1234567890' * 4}{row}: " + "word " * 3000 for row in range(100)]
    lines = [json.dumps({"text": text}) for text in (*hard, None)]
    heavy, _ = encoding(tmp_path, "parquet", lines)
    assert not {"pandas", "awkward"}.intersection(heavy)


def encoding(folder: Path, suffix: str, lines: list[str]) -> tuple[list[str], list[str]]:
    (folder / "in.jsonl").write_text("\n".join(lines))
    files = [str(folder / "in.jsonl"), "-o", str(folder / f"out.{suffix}")]
    return loaded_by(folder / "cache", "encode", *files, "--overwrite")


def test_tokenizers_of_one_source_share_what_gigatoken_makes_of_it() -> None:
    first, other = (Tokenizer.from_pretrained(numbers=one).engine for one in ("xval", "p10"))
    assert isinstance(first, choose.GigatokenEngine) and isinstance(other, choose.GigatokenEngine)
    assert first._bare is other._bare
