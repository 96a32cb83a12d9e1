"""``numtok.encode_files`` and ``numtok.decode_files`` do what the commands do, and take no option
that does not exist.
"""

import dataclasses
import inspect
import os
import re
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner
from input_files import decoded, lines_of, read_encoded, write_texts
from numtok_cli.main import cli
from places import ROOT

import numtok
from numtok import Grammar, Tokenizer, XVal
from numtok.corpus.encode_options import EncodeOptions
from numtok.errors import (
    InputError,
    NumtokError,
    OutputError,
    RepresentationError,
    SchemaError,
    TokenizerError,
)
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
    command = ["encode", "in.jsonl", "-o", "command.parquet", *arguments.split()]
    result = CliRunner().invoke(cli, command)
    assert result.exit_code == 0, result.output
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
    with pytest.raises(SchemaError, match="not written by numtok"):
        numtok.expand(pa.table({"number_bits": [[1]]}))


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


def test_a_tokenizer_has_its_own_numbers(folder):
    made = Tokenizer.from_pretrained(numbers=[FoNE(6, 4)])
    summary = numtok.encode_files("in.jsonl", "a.parquet", tokenizer=made)
    assert summary.representations == (FoNE(6, 4),)
    options = {"numbers": "xval", "grammar": Grammar.data(), "overflow": "clip", "dense": True}
    for name, value in options.items():
        given = {name: value}
        with pytest.raises(TokenizerError, match=f"^{name}=.*leave it out"):
            numtok.encode_files("in.jsonl", "b.parquet", tokenizer=made, **given)


NO_TEMPLATE = r"template .*(brace|names no column).*\{name\} costs"
NO_OPTIONS = [
    ({"keep_colums": ["id"]}, TypeError, "keep_colums"),
    (
        {"on_error": "skp"},
        InputError,
        r"on_error='skp' \(--on-error\) is unknown; use one of 'raise', 'skip'",
    ),
    ({"keep_columns": "id"}, InputError, "must be a list of names"),
    ({"numbers": "xvla"}, RepresentationError, "xvla"),
    ({"numbers": "bits", "scale": 2.0}, RepresentationError, "only xval has a scale"),
    ({"scale": 2.0, "fit": True}, RepresentationError, "which fit=.* is to find; leave out one"),
    ({"numbers": "xval", "dense": True}, RepresentationError, "'xval' has no tensors, which"),
    ({"input_format": "jsnl"}, NumtokError, "unknown format 'jsnl'"),
    ({"template": "row", "text_column": "text"}, InputError, "leave out one"),
    *(({"template": one}, InputError, NO_TEMPLATE) for one in ("", "no column", "{a", "a}")),
    *(({"template": one}, InputError, NO_TEMPLATE) for one in ("{}", "{{a}}")),
    ({"pack": 0}, InputError, r"pack=0 \(--pack\) must be a whole number from 1"),
    ({"pack": 8, "layout": "number"}, InputError, "packed rows are in token layout.*leave out"),
    ({"pack": 8, "keep_columns": ["id"]}, InputError, "'id' cannot be kept: a packed row holds"),
    (
        {"pack_mode": "best-fit"},
        InputError,
        r"pack_mode='best-fit' \(--pack-mode\) is for packed rows; give pack",
    ),
    (
        {"pack": 8, "pack_mode": "worst"},
        InputError,
        r"pack_mode='worst' \(--pack-mode\) is unknown",
    ),
    ({"pack": 8, "end_token": "<stop>"}, TokenizerError, "'<stop>' .*is no token"),
    ({"pack": 8, "end_token": 1 << 20}, TokenizerError, "is no token"),
    ({"pack": 8, "end_token": "[NUM]"}, TokenizerError, "numbers are made of"),
    ({"split": "train=0.9"}, InputError, "add up to 1"),
    ({"split": "train=1.5,test=-0.5"}, InputError, "add up to 1"),
    *(
        ({"split": one}, InputError, "must name the splits")
        for one in ("a=0.5,a=0.5", "../a=0.5,b=0.5")
    ),
    *(({"split": one}, InputError, "must name the splits") for one in ("train=nan,b=1", "")),
    ({"split_seed": 1 << 32}, InputError, r"split_seed=4294967296 \(--split-seed\) must be"),
]


@pytest.mark.parametrize(("options", "kind", "message"), NO_OPTIONS)
def test_what_is_no_option_is_an_error(options, kind, message, folder):
    with pytest.raises(kind, match=message):
        numtok.encode_files("in.jsonl", "out/" if "split" in options else "a.parquet", **options)
    assert os.listdir() == ["in.jsonl"]


def test_every_option_is_declared_once_and_told():
    """By the dataclass, whose keywords ``help`` shows for the call, and by options of the command."""
    names = [one.name for one in dataclasses.fields(EncodeOptions)]
    told = inspect.getdoc(EncodeOptions)
    assert all(re.search(rf"\b{name}(, \w+)?: ", told) for name in names)
    assert [*inspect.signature(numtok.encode_files).parameters][2:] == names
    options = {one.name for one in cli.commands["encode"].params}
    of_commands = {"inputs", "output", "pattern", "config", "quiet", "debug"}
    assert {*names} - {"progress"} == options - of_commands


@pytest.mark.parametrize("name", ["no/a.parquet", "no/deeper/a.arrow", "no/a.jsonl"])
def test_a_file_makes_no_folder(name, tmp_path):
    """A name that was mistyped is told; a folder that is named as the output is made."""
    out, source = tmp_path / name, tmp_path / "in.jsonl"
    source.write_text('{"text": "is 5"}\n')
    with pytest.raises(OutputError, match=f"there is no folder {out.parent}; make it"):
        numtok.encode_files(source, out, scale=1.0)
    numtok.encode_files(source, f"{tmp_path}/job/deeper/", scale=1.0, keep_text=True)
    with pytest.raises(OutputError, match="there is no folder"):
        numtok.decode_files(f"{tmp_path}/job/deeper/", out.with_suffix(".jsonl"))
    assert not (tmp_path / "no").exists()
    out.parent.mkdir(parents=True)
    numtok.encode_files(source, out, scale=1.0)
    assert out.exists()
