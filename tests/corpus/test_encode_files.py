"""``numtok.encode_files`` and ``numtok.decode_files`` do what the commands do, and take no option
that does not exist.
"""

import dataclasses
import inspect
import re
from pathlib import Path

import pyarrow as pa
import pytest
from command import ok
from input_files import decoded, lines_of, read_encoded, write_texts
from numtok_cli.main import cli
from places import ROOT

import numtok
from numtok import Grammar, Tokenizer, XVal
from numtok.corpus.encode_options import EncodeOptions
from numtok.representations import FloatBits, FoNE
from numtok.tokenizer.metadata import READ_VERSIONS
from numtok_torch import NumberDataset

TEXTS = ["-1.5e-3 of 87600", "1,234.50", "none", "0 and 60.2"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_texts(tmp_path / "in.jsonl", TEXTS)
    return tmp_path


@pytest.mark.parametrize("numbers", ["place", "place:bare", "p10", "digits:3", "subword"])
def test_a_tokenizer_of_ones_own_encodes_as_its_name(numbers, folder):
    own = Tokenizer.from_pretrained(numbers=numbers)
    numtok.encode_files("in.jsonl", "own.arrow", tokenizer=own)
    numtok.encode_files("in.jsonl", "named.arrow", numbers=numbers)
    own_bytes, named = (Path(f"{name}.arrow").read_bytes() for name in ("own", "named"))
    assert own_bytes == named


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ("", {}),
        ("--numbers xval,fone:6,4", {"numbers": [XVal(), "fone:6,4"], "fit": True}),
        ("--numbers fone:6,4 --dense", {"numbers": [FoNE(6, 4, compact=True)], "dense": True}),
        ("--scale 0.002 --clip 5", {"scale": 0.002, "clip": 5.0}),
        ("--fit-quantile 0.5 --overflow clip", {"fit_quantile": 0.5, "overflow": "clip"}),
        ("--grammar data --keep-column id", {"grammar": Grammar.data(), "keep_columns": ["id"]}),
    ],
)
def test_a_call_writes_the_file_of_the_command(arguments, options, folder):
    ok(f"encode in.jsonl -o command.parquet {arguments}")
    summary = numtok.encode_files("in.jsonl", "call.parquet", **options)
    assert (summary.documents, summary.output) == (4, "call.parquet")
    assert Path("command.parquet").read_bytes() == Path("call.parquet").read_bytes()


@pytest.mark.parametrize("output", ["a.parquet", "a.arrow"])
@pytest.mark.parametrize("how", [{}, {"layout": "token"}, {"pack": 6}])
def test_files_are_compact_and_expand_to_what_dense_ones_hold(folder, output, how):
    fone = FoNE(7, 5, (2, 10), chunk=5)
    numbers = ["xval", FloatBits(width=64, reciprocal=True), fone]
    tokenizer, tables = Tokenizer.from_pretrained(None, numbers), []
    for dense in (False, True):
        out = f"{dense}{output}"
        numtok.encode_files("in.jsonl", out, numbers=numbers, scale=1.0, dense=dense, **how)
        tables.append(pa.Table.from_batches(list(read_encoded(out))))
    compact, dense_one = tables
    assert compact["number_bits"].type.value_type == pa.uint64()
    assert "number_digits" in compact.column_names and compact.nbytes < dense_one.nbytes / 3
    assert numtok.expand(compact).equals(dense_one) and numtok.expand(dense_one).equals(dense_one)
    assert numtok.expand(compact).schema.equals(dense_one.schema, check_metadata=True)
    for batch in compact.to_batches():
        assert isinstance(numtok.expand(batch), pa.RecordBatch)
    assert decoded(Path(f"False{output}"), tokenizer) == decoded(Path(f"True{output}"), tokenizer)


GOLDEN = sorted((ROOT / "tests/golden").glob("format*/*"))
GOLDEN_TEXTS = ["It is -28.5 or 10,000", "", None, "none"]


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: "/".join(path.parts[-2:]))
def test_files_written_before_still_read(path, tmp_path):
    """Of every version of the format; none of these files is ever made anew. Those of format 1 have
    a checksum of the footer, and a mark behind the last batch.
    """
    assert numtok.decode_files(path, tmp_path / "o.jsonl").documents == 6
    assert [row["text"] for row in lines_of(tmp_path / "o.jsonl")][:4] == GOLDEN_TEXTS
    for file in [path] if path.is_file() else sorted(path.glob("*.parquet")):
        table = pa.Table.from_batches(list(read_encoded(file)))
        assert table.num_rows >= 2
        assert numtok.expand(table)["number_bits"].type.value_type.shape in ([32], [64])
    assert len(NumberDataset(path, nulls="skip")) >= 4
    assert numtok.corpus_stats(path).numbers > 5


def test_every_version_of_the_format_has_its_files():
    assert {path.parent.name for path in GOLDEN} == {f"format{n}" for n in READ_VERSIONS}


def test_a_representation_that_is_given_keeps_its_scale_unless_asked(folder):
    numbers = [XVal(scale=0.5)]
    given = numtok.encode_files("in.jsonl", "a.parquet", numbers=numbers)
    tokenizer = Tokenizer.from_pretrained(numbers=numbers)
    own = numtok.encode_files("in.jsonl", "b.parquet", tokenizer=tokenizer)
    assert given.fit is own.fit is None and given.representations == tuple(numbers)
    assert Path("a.parquet").read_bytes() == Path("b.parquet").read_bytes()
    fitted = numtok.encode_files("in.jsonl", "c.parquet", numbers=numbers, fit=True)
    assert fitted.fit is not None
    assert fitted.representations == (fitted.fit.xval,) != tuple(numbers)


@pytest.mark.parametrize("options", [{}, {"split": "train=0.5,test=0.5"}, {"shards": 2}])
def test_inputs_may_come_from_a_generator(options, folder):
    """As ``Path.glob`` gives them; they are asked for more than once."""
    write_texts(folder / "in.jsonl", ["none", "no number", "at all"] * 9)
    output = "folder" if options else "a.parquet"
    assert numtok.encode_files(folder.glob("*.jsonl"), output, **options).documents == 27


def test_every_option_is_declared_once_and_told():
    """By the dataclass, whose keywords ``help`` shows for the call, and by options of the command."""
    names = [one.name for one in dataclasses.fields(EncodeOptions)]
    told = inspect.getdoc(EncodeOptions)
    assert all(re.search(rf"\b{name}(, \w+)?: ", told) for name in names)
    assert [*inspect.signature(numtok.encode_files).parameters][2:] == names
    options = {one.name for one in cli.commands["encode"].params}
    of_commands = {"inputs", "output", "pattern", "config", "quiet", "debug"}
    assert {*names} - {"progress"} == options - of_commands
