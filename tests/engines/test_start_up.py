"""A start loads what it needs and nothing else, and what one run found out the next one takes over:
the same ids, whatever became of what was kept.
"""

import ast
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from numtok_cli.main import cli

import numtok
from numtok import Tokenizer
from numtok.arrays import file_cache

LINE = "The mass is 1,234.5 kg at -3 °C,  2  times."
ENCODE = f"""
import sys, numtok
tok = numtok.Tokenizer.from_pretrained(*sys.argv[1:])
found = tok.encode({LINE!r})
print(found.input_ids.tolist(), "_complete" in vars(tok.engine), sep=";")
"""
COMMAND = """
import sys
from numtok_cli.main import cli
cli(sys.argv[1:], standalone_mode=False)
print(sorted(m for m in sys.modules if m.startswith("numtok.corpus")))
"""
HEAVY = (
    "pandas awkward tokenizers pyarrow.compute pyarrow.csv pyarrow.parquet pyarrow.dataset regex"
)
HEAVY += " numpy.testing numba.np.arrayobj fsspec torch transformers"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMTOK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def loaded_by(program, *arguments):
    """(what a new process prints last, which of the heavy packages it loads)."""
    program += f"print([name for name in {HEAVY.split()} if name in sys.modules])"
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    *_, printed, heavy = done.stdout.splitlines()
    return printed, set(ast.literal_eval(heavy))


def loaded_by_command(*arguments):
    """Likewise, of the second run of a command: (modules of the corpus, heavy packages)."""
    cli(list(arguments), standalone_mode=False)
    printed, heavy = loaded_by(COMMAND, *arguments)
    return ast.literal_eval(printed), heavy - {"regex"}


def facts(folder):
    return sorted((folder / "facts").glob("*"))


IMPORTS = {
    "numtok": {*HEAVY.split(), "numtok.corpus", "click"},
    "numtok.score": {*HEAVY.split(), "numba", "pyarrow", "numpy"},
    "numtok_cli.main": {*HEAVY.split(), "numtok", "numpy", "pyarrow", "numba"},
}


@pytest.mark.parametrize("name", IMPORTS)
def test_an_import_is_light(name):
    program = f"import sys, {name}; print(sorted(sys.modules.keys() & {IMPORTS[name]}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr
    assert callable(numtok.encode_files)
    with pytest.raises(AttributeError, match="encode_fils"):
        numtok.encode_fils  # noqa: B018


def test_a_start_loads_neither_pandas_nor_a_second_engine(cache, neox_json):
    """Nor does one with added tokens and a normalizer: the two spaces come from a table."""
    for source in ([], [neox_json]):
        ids = Tokenizer.from_pretrained(*source).encode(LINE).input_ids.tolist()
        slow = Tokenizer.from_pretrained(*source, engine="tokenizers")
        assert slow.encode(LINE).input_ids.tolist() == ids
        assert loaded_by(ENCODE, *source) == (f"{ids};False", set())


def test_the_verdict_is_kept_for_the_same_tokens_and_engines(cache, monkeypatch):
    """A file for each: it is not written again, and another version of an engine has its own."""

    def verdicts(numbers):
        """Return the cache files after an encoding, and when each was written."""
        Tokenizer.from_pretrained(numbers=numbers).encode(LINE)
        found = [path for path in facts(cache) if path.name.startswith("same-ids-")]
        return {path.name: path.stat().st_mtime_ns for path in found}

    one = verdicts("xval")
    assert len(one) == 1 and verdicts("xval") == one
    two = verdicts("p10")
    assert len(two) == 2 and one.items() < two.items() and verdicts("p10") == two
    assert cache.stat().st_mode & 0o777 == 0o700
    monkeypatch.setattr("importlib.metadata.version", lambda package: f"a later {package}")
    assert len(verdicts("xval")) == 3
    monkeypatch.setenv("NUMTOK_CACHE", "0")
    assert len(verdicts("digits")) == 3


HARMS = {
    "cut short": lambda content: content[:-1],
    "a bit flipped": lambda content: content[:-1] + bytes([content[-1] ^ 1]),
    "empty": lambda content: b"",
    "another version's": lambda content: content.replace(b"kept 1", b"kept 9"),
    "a folder": None,
}


def test_nothing_is_cached_without_the_sources(cache, monkeypatch):
    """As of a frozen program, or of a folder of .pyc files alone."""

    def no_source(module):
        raise FileNotFoundError(module)

    monkeypatch.setattr(file_cache, "source_key", no_source)
    for found in "right", "found anew":
        assert file_cache.cached("name", ["given"], lambda found=found: found) == found
    assert not facts(cache)


@pytest.mark.parametrize("harm", HARMS)
def test_what_is_damaged_is_found_out_anew(harm, cache):
    def found(what):
        return file_cache.cached("name", ["given"], lambda: what)

    assert found("right") == "right"
    (path,) = facts(cache)
    content = path.read_bytes()
    path.unlink()
    if harm == "a folder":
        path.mkdir()
    else:
        path.write_bytes(HARMS[harm](content))
    assert found("found anew") == "found anew"
    assert found("third") == ("third" if harm == "a folder" else "found anew")


def test_runs_at_the_same_time_find_whole_files(cache):
    long = "x" * 100_000

    def look(turn):
        return {file_cache.cached(f"name{k % 3}", [str(turn % 2)], lambda: long) for k in range(50)}

    with ThreadPoolExecutor(8) as pool:
        assert set().union(*pool.map(look, range(16))) == {long}
    assert len(facts(cache)) == 6  # and nothing half-written


@pytest.mark.skipif(sys.platform == "win32", reason="rights are not a mode there")
def test_a_folder_that_others_can_write_to_is_not_used(cache):
    file_cache.cached("name", ["given"], lambda: "planted")
    for folder in (cache / "facts", cache):
        folder.chmod(0o777)
        assert file_cache.cached("name", ["given"], lambda: "own") == "own"
    assert file_cache.user_folder() is None


def test_a_home_that_cannot_be_written_is_no_error(cache, monkeypatch):
    cache.write_text("no folder can be made in a file, by root neither")
    monkeypatch.setenv("NUMTOK_CACHE", str(cache / "numtok"))
    assert len(Tokenizer.from_pretrained().encode("5").input_ids) == 1


def test_inspecting_a_line_loads_nothing_of_files(cache):
    line = ["inspect", "A mass of -1.5e3 kg", "--numbers", "xval,bits", "--numbers", "subword"]
    assert loaded_by_command(*line) == ([], set())


def encoding(folder, suffix, lines):
    (folder / "in.jsonl").write_text("\n".join(json.dumps({"text": line}) for line in lines))
    files = [str(folder / "in.jsonl"), "-o", str(folder / f"out.{suffix}")]
    return loaded_by_command("encode", *files, "--overwrite")


def test_encoding_a_line_loads_one_reader_and_one_writer(cache, tmp_path):
    own, heavy = encoding(tmp_path, "arrow", [LINE])
    assert heavy == set()
    readers = {"csv_table", "encoded", "jsonl", "tables"}
    assert readers & {name.rpartition(".")[2] for name in own if ".read." in name} == {"jsonl"}
    assert "numtok.corpus.decode" not in own


def test_much_text_and_numbers_hard_to_round_load_no_other_arrays(cache, tmp_path):
    """pandas takes as long to load as a hundred megabytes take to encode, and 24 MiB a process."""
    hard = [f"{row} and 0.{'1234567890' * 4}{row}: " + "word " * 3000 for row in range(100)]
    _, heavy = encoding(tmp_path, "parquet", [*hard, None])
    assert "pyarrow.parquet" in heavy and not {"pandas", "awkward"} & heavy
