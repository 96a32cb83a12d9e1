"""``numtok.encode_files`` and ``numtok.decode_files`` do what the commands do, and take no option
that does not exist.
"""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from numtok_cli.main import cli
from places import ROOT

import numtok
from numtok import Grammar, Tokenizer, XVal
from numtok.corpus.read import formats
from numtok.corpus.read.batches import ReadOptions, TextBatch
from numtok.corpus.read.encoded import read_encoded
from numtok.corpus.read.sources import Source
from numtok.corpus.settings import EncodeOptions, EncodeSettings
from numtok.errors import InputError, NumtokError, RepresentationError, SchemaError, TokenizerError
from numtok.representations import FloatBits, FoNE
from numtok.tokenizer.metadata import READ_VERSIONS
from numtok_torch import NumberDataset

TEXTS = ["-1.5e-3 of 87600", "1,234.50", "none", "0 and 60.2"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [json.dumps({"id": str(number), "text": text}) for number, text in enumerate(TEXTS)]
    Path("in.jsonl").write_text("\n".join(rows) + "\n", "utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ("", {}),
        (
            "--numbers xval,fone:6,4,bits",
            {"numbers": [XVal(), "fone:6,4", FloatBits()], "fit": True},
        ),
        (
            "--numbers fone:6,4,bits --dense",
            {"numbers": [FoNE(6, 4, compact=True), "bits"], "dense": True},
        ),
        ("--scale 0.002 --clip 5", {"scale": 0.002, "clip": 5.0}),
        ("--fit-quantile 0.5 --overflow clip", {"fit_quantile": 0.5, "overflow": "clip"}),
        (
            "--grammar data --keep-text --keep-column id",
            {"grammar": Grammar.data(), "keep_text": True, "keep_columns": ["id"]},
        ),
    ],
)
def test_a_call_writes_the_file_of_the_command(
    arguments: str, options: dict[str, Any], folder: Path
) -> None:
    command = ["encode", "in.jsonl", "-o", "command.parquet", *arguments.split()]
    result = CliRunner().invoke(cli, command)
    assert result.exit_code == 0, result.output
    summary = numtok.encode_files("in.jsonl", "call.parquet", **options)
    assert (summary.documents, summary.output) == (4, "call.parquet")
    made, call = pq.read_table("command.parquet"), pq.read_table("call.parquet")
    assert call.equals(made) and call.schema.metadata == made.schema.metadata


@pytest.mark.parametrize("output", ["a.parquet", "a.arrow"])
@pytest.mark.parametrize("how", [{}, {"layout": "token"}, {"pack": 6}])
def test_files_are_compact_and_expand_to_what_dense_ones_hold(
    folder: Path, output: str, how: dict[str, Any]
) -> None:
    tables, fone = [], FoNE(7, 5, (2, 10), chunk=5)
    numbers = ["xval", FloatBits(width=64, reciprocal=True), fone]
    for dense in (False, True):
        out = f"{dense}{output}"
        numtok.encode_files("in.jsonl", out, numbers=numbers, scale=1.0, dense=dense, **how)
        tables.append(pa.Table.from_batches(list(read_encoded(out))))
        numtok.decode_files(out, f"{out}.txt", tokenizer=Tokenizer.from_pretrained(None, numbers))
    compact, dense = tables
    assert compact["number_bits"].type.value_type == pa.uint64()
    assert "number_digits" in compact.column_names and compact.nbytes < dense.nbytes / 3
    assert numtok.expand(compact).equals(dense) and numtok.expand(dense).equals(dense)
    assert numtok.expand(compact).schema.equals(dense.schema, check_metadata=True)
    for batch in compact.to_batches():
        assert isinstance(numtok.expand(batch), pa.RecordBatch)
    assert Path(f"False{output}.txt").read_bytes() == Path(f"True{output}.txt").read_bytes()
    with pytest.raises(SchemaError, match="not written by numtok"):
        numtok.expand(pa.table({"number_bits": [[1]]}))


GOLDEN = sorted((ROOT / "tests/golden").glob("format*/*"))
GOLDEN_TEXTS = ["It is -28.5 or 10,000", "", None, "none"]


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: "/".join(path.parts[-2:]))
def test_files_written_before_still_read(path: Path, tmp_path: Path) -> None:
    """Of every version of the format; none of these files is ever made anew. Those of format 1 have
    a checksum of the footer, and a mark behind the last batch.
    """
    assert numtok.decode_files(path, tmp_path / "o.jsonl").documents == 6
    rows = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text("utf-8").splitlines()]
    assert [row["text"] for row in rows][:4] == GOLDEN_TEXTS
    for file in [path] if path.is_file() else sorted(path.glob("*.parquet")):
        table = pa.Table.from_batches(list(read_encoded(file)))
        assert table.num_rows >= 2
        shape = numtok.expand(table)["number_bits"].type.value_type.shape
        assert shape in ([32], [64])
    assert len(NumberDataset(path, nulls="skip")) >= 4
    assert numtok.corpus_stats(path).numbers > 5


def test_every_version_of_the_format_has_its_files() -> None:
    assert {path.parent.name for path in GOLDEN} == {f"format{n}" for n in READ_VERSIONS}


def test_decoding_gives_the_texts_back(folder: Path) -> None:
    numtok.encode_files([folder / "in.jsonl"], "kept.parquet", numbers="place", keep_text=True)
    for number, tokenizer in enumerate((None, Tokenizer.from_pretrained(numbers="place"))):
        summary = numtok.decode_files("kept.parquet", f"{number}.txt", tokenizer=tokenizer)
        assert (summary.documents, Path(f"{number}.txt").read_text("utf-8")) == (
            4,
            "\n".join(TEXTS) + "\n",
        )


def test_a_representation_that_is_given_keeps_its_scale_unless_asked(folder: Path) -> None:
    given = numtok.encode_files("in.jsonl", "a.parquet", numbers=[XVal(scale=0.5)])
    assert given.fit is None
    assert given.representations == (XVal(scale=0.5),)
    own = numtok.encode_files(
        "in.jsonl", "b.parquet", tokenizer=Tokenizer.from_pretrained(numbers=[XVal(scale=0.5)])
    )
    assert pq.read_table("a.parquet").equals(pq.read_table("b.parquet"))
    assert own.fit is None
    fitted = numtok.encode_files("in.jsonl", "c.parquet", numbers=[XVal(scale=0.5)], fit=True)
    assert fitted.fit is not None
    assert fitted.representations == (fitted.fit.xval,) != (XVal(scale=0.5),)


def test_a_tokenizer_has_its_own_numbers(folder: Path) -> None:
    made = Tokenizer.from_pretrained(numbers=[FoNE(6, 4)])
    assert numtok.encode_files("in.jsonl", "a.parquet", tokenizer=made).representations == (
        FoNE(6, 4),
    )
    for options in (
        {"numbers": "xval"},
        {"grammar": Grammar.data()},
        {"overflow": "clip"},
        {"dense": True},
    ):
        with pytest.raises(TokenizerError, match=f"^{next(iter(options))}=.*leave it out"):
            numtok.encode_files("in.jsonl", "b.parquet", tokenizer=made, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"keep_colums": ["id"]}, TypeError, "keep_colums"),
        ({"on_error": "skp"}, InputError, "on_error='skp' is unknown; use one of 'raise', 'skip'"),
        ({"keep_columns": "id"}, InputError, "must be a list of names"),
        ({"numbers": "xvla"}, RepresentationError, "xvla"),
        ({"numbers": "bits", "scale": 2.0}, RepresentationError, "only xval has a scale"),
        ({"scale": 2.0, "fit": True}, RepresentationError, "leave out one or the other"),
        (
            {"numbers": "xval", "dense": True},
            RepresentationError,
            "'xval' has no tensors, which dense is for",
        ),
        ({"input_format": "jsnl"}, NumtokError, "unknown format 'jsnl'"),
    ],
)
def test_what_is_no_option_is_an_error(
    options: dict[str, Any], kind: type[Exception], message: str, folder: Path
) -> None:
    with pytest.raises(kind, match=message):
        numtok.encode_files("in.jsonl", "a.parquet", **options)
    assert not Path("a.parquet").exists()


def test_options_have_the_same_types_within() -> None:
    assert typing.get_type_hints(EncodeOptions) == typing.get_type_hints(EncodeSettings)
    told = inspect.getdoc(EncodeOptions) or ""
    assert all(f"{name}:" in told for name in typing.get_type_hints(EncodeOptions))


def test_importing_numtok_stays_light() -> None:
    code = (
        "import sys, numtok; print([name for name in ('numtok.corpus', 'pyarrow.parquet',"
        " 'pyarrow.csv', 'torch') if name in sys.modules])"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert loaded == "[]\n"
    assert callable(numtok.encode_files)
    with pytest.raises(AttributeError, match="encode_fils"):
        numtok.encode_fils  # type: ignore[attr-defined]  # noqa: B018


def test_an_input_format_is_a_reader_and_a_line_in_the_table(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_reversed(source: Source, options: ReadOptions) -> Iterator[TextBatch]:
        lines = Path(source.path).read_text("utf-8").splitlines()
        yield TextBatch(pa.array(line[::-1] for line in lines), {}, 0, source.size or 0, source)

    monkeypatch.setitem(formats.FORMATS, "rev", formats.Format(("rev",), read_reversed))
    monkeypatch.setitem(formats.SUFFIXES, "rev", "rev")
    Path("in.rev").write_text("5.2- si ti\n", "utf-8")
    result = CliRunner().invoke(
        cli, ["encode", "in.rev", "-o", "a.parquet", "--format", "rev", "--keep-text"]
    )
    assert result.exit_code == 0, result.output
    numtok.encode_files(folder, "b.parquet", input_format="rev", keep_text=True)
    for path in ("a.parquet", "b.parquet"):
        numtok.decode_files(path, "back.txt", overwrite=True)
        assert Path("back.txt").read_text("utf-8") == "it is -2.5\n"
