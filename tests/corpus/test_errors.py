"""Check what reading, encoding and exporting files refuse before anything is written; rows of files that
cannot be read are with the reader of their format.
"""

import copy
import gzip
import os
import pickle
from pathlib import Path

import errors
import pyarrow as pa
import pytest
import trained
from input_files import write_texts

import numtok
from numtok import FoNE, Grammar, Tokenizer, XVal
from numtok.corpus.read.documents import find_inputs
from numtok.corpus.write import open_writer
from numtok.errors import (
    GrammarError,
    InputError,
    JobError,
    MissingDependencyError,
    NumtokError,
    OutputError,
    RepresentationError,
    SchemaError,
    TokenizerError,
)
from numtok.tokenizer.packing import end_token

OWN = Tokenizer.from_pretrained(numbers=[FoNE(6, 4)])


def encode(inputs="in.jsonl", output="a.parquet", **options):
    return numtok.encode_files(inputs, output, **options)


def job(inputs="in.jsonl", output="out", **options):
    return numtok.encode_files(inputs, output, **{"shards": 7} | options)


def export(*inputs, **options):
    return numtok.export_files([*inputs], "twins", **options)


def write(name, **options):
    ids = pa.record_batch({"input_ids": pa.array([[1]], pa.list_(pa.int32()))})
    with open_writer(name, ids.schema, **options) as writer:
        writer.write(ids)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Inputs of all kinds, encoded files, and what is in the way."""
    folder = tmp_path_factory.mktemp("errors")
    for name in ("in.jsonl", "more/b.jsonl", "twice/a.jsonl"):
        (folder / name).parent.mkdir(exist_ok=True)
        write_texts(folder / name, ["-1.5e-3 of 87600", "1,234.50", "none"])
    same = (folder / "twice" / "a.jsonl").read_bytes()
    (folder / "twice" / "a.jsonl.gz").write_bytes(gzip.compress(same))
    for name in ("a.csv", "a.txt", "noext", "x.gz"):
        (folder / name).write_text("a;b\n1;2\n")
    for name in ("empty", "linked"):
        (folder / name).mkdir()
    os.symlink("nowhere", folder / "dangling.txt")
    write_texts(folder / "linked" / "a.jsonl", ["5"])
    os.link(folder / "linked" / "a.jsonl", folder / "linked" / "link.jsonl")
    for name, options in (
        ("place", {"numbers": "place"}),
        ("packed", {"numbers": "xval", "pack": 16, "scale": 0.5}),
    ):
        numtok.encode_files(folder / "in.jsonl", folder / f"{name}.parquet", **options)
    numtok.encode_files(folder / "more", f"{folder}/lost/", shards=2, workers=1, scale=1.0)
    os.remove(min((folder / "lost").glob("*.parquet")))
    return folder


STRICT = Tokenizer.from_pretrained(numbers=[XVal(overflow="error")])
DIGIT_OR_B = Grammar.from_pattern(r"\d|b")
ALWAYS_NAMES = ("text", "input_ids", "number_text", "number_scaled", "number_mask", "seq_lengths")
NO_TEMPLATE = "template …{name} costs"
ENCODED = {
    InputError: [
        ({"on_error": "skp"}, "on_error='skp' (--on-error) is unknown; use one of 'raise', 'skip'"),
        *(({"keep_columns": one}, "must be a list of names") for one in ("id", None, 5, [5])),
        ({"keep_text": "no"}, "keep_text='no' (--keep-text) must be of type bool"),
        ({"template": 5}, "template=5 (--template) must be of type str | None"),
        ({"fit_quantile": "0.5"}, "fit_quantile='0.5' (--fit-quantile) must be of type float | None"),
        *(({"keep_columns": [name]}, f"column '{name}' cannot be kept") for name in ALWAYS_NAMES),
        *(({"template": one}, NO_TEMPLATE) for one in ("", "no column", "{a", "a}", "{}", "{{a}}")),
        ({"pack": 0}, "pack=0 (--pack) must be a whole number from 1"),
        ({"pack": 8, "keep_columns": ["id"]}, "'id' cannot be kept: a packed row holds"),
        ({"pack": 8, "pack_mode": "worst"}, "pack_mode='worst' (--pack-mode) is unknown"),
        ({"input_format": "jsnl"}, "unknown format 'jsnl'"),
    ],
    RepresentationError: [
        ({"numbers": "xvla"}, "xvla"),
        ({"scale": 2.0, "fit": True}, "which fit=… is to find; leave out one"),
    ],
    TokenizerError: [
        ({"pack": 8, "end_token": "<stop>"}, "'<stop>' …is no token"),
        ({"pack": 8, "end_token": 1 << 20}, "is no token"),
        ({"pack": 8, "end_token": "[NUM]"}, "numbers are made of"),
        *(
            ({"tokenizer": OWN, name: value}, f"{name}=…leave it out")
            for name, value in {"numbers": "xval", "grammar": Grammar.data(), "overflow": "clip", "dense": True}.items()
        ),
    ],
    TypeError: [({"keep_colums": ["id"]}, "keep_colums")],
    OutputError: [
        ({"split": "a=0.5,b=0.5"}, "a.parquet is a file, or named like one"),
        *(({"output": one}, f"there is no folder {Path(one).parent}; make it") for one in ("no/a.parquet", "no/deeper/a.arrow", "no/a.jsonl")),
    ],
}  # fmt: skip
JOBS = {
    InputError: [
        ({"shards": 0}, "whole number"),
        ({"shard_size": 10}, "leave out one"),
        *(({"shard": one}, "(--shard) must be (i, n), where i is from 1 to n") for one in ((3, 2), (0, 2), "1/2", 1, [1], (1, "2"))),
        ({"keep_columns": ["text"]}, "cannot be kept"),
        ({"inputs": "-"}, "cannot be cut into shards"),
        ({"split": "train=0.9"}, "add up to 1"),
        ({"split": "train=1.5,test=-0.5"}, "add up to 1"),
        *(({"split": one}, "must name the splits") for one in ("a=0.5,a=0.5", "../a=0.5,b=0.5", "train=nan,b=1", "")),
        ({"split_seed": 1 << 32}, "split_seed=4294967296 (--split-seed) must be"),
    ],
    OutputError: [
        ({"output_format": "csv"}, "unknown output format"),
        ({"compression": "rar"}, "no compression 'rar'"),
        ({"output": "out.parquet"}, "named like one, but the options for shards are for a folder"),
        ({"output": "/sys/numtok"}, "cannot make the folder: …check the folder and its"),
    ],
    JobError: [({"shard": (1, 2), "overwrite": True}, "would remove what the others have written")],
}  # fmt: skip
EXPORTS = {
    SchemaError: [
        (("packed.parquet",), {"end_token": 0}, "packed.parquet: …end token already; leave out end"),
        (("place.parquet",), {"end_token": 1 << 20}, "end_token=1048576 … is no id … has 16003"),
        (("place.parquet",), {"end_token": 1.5}, "end_token=1.5 … is no id"),
        (("place.parquet",), {"end_token": 16002}, "end_token=16002 … numbers are made of"),
        (("place.parquet", "packed.parquet"), {}, "packed.parquet: its tokenizer is not that of …place.parquet"),
    ],
    TokenizerError: [(("place.parquet",), {"end_token": "<stop>"}, "'<stop>' … is no token")],
    InputError: [
        (("place.parquet",), {"to": "jax"}, "'jax' … is unknown; … 'megatron', 'gpt-neox'"),
        (("in.jsonl",), {}, "neither a Parquet nor an Arrow IPC file"),
    ],
}  # fmt: skip
INPUTS = [
    (["nope"], "nope: …check the path"), (["*.nope"], "*.nope: …pattern"), (["noext"], "noext: …input_format="),
    (["x.gz"], "x.gz: …input_format="), (["empty"], "empty: …no file of a known kind"), ([], "no input"),
    (["dangling.txt"], "cannot be read"),
    *((given.split(), "given twice") for given in (
        "in.jsonl in.jsonl", "more more/b.jsonl", "more/*.jsonl more/b*", "- -", "more/b.jsonl ./more/../more/b.jsonl"
    )),
    (["linked"], "linked/link.jsonl: is given twice (the other time as linked/a.jsonl)"),
    *((given, "twice/a.jsonl… seems to hold the same as twice/a.jsonl…name only one") for given in (
        ["twice"], ["twice/*"], ["twice/a.jsonl.gz", "twice/a.jsonl"]
    )),
    (["lost"], "00000-of-00002.parquet: is a shard that is not there any more"),
]  # fmt: skip
OUTPUTS = [
    ("in.jsonl/a.parquet", {}, "there is no folder"), ("more/y/a.parquet", {}, "there is no folder"),
    ("more", {"format": "parquet"}, "folder"),
    ("a.csv", {}, ".parquet, .arrow"), ("b.bin", {"format": "csv"}, "parquet or arrow"),
    ("a.arrow", {"compression": "snappy"}, "zstd, lz4, none"),
    ("in.jsonl", {"format": "arrow"}, "exists already…overwrite=True"),
]  # fmt: skip
SECOND = {"document": 1}
NOT_UTF8 = pa.array([b"a", b"ab\xff"]).view(pa.string())
OTHERS = {
    InputError: [
        *((lambda given=given: find_inputs(given), told) for given, told in INPUTS),
        (lambda: find_inputs(["."], "docx"), "unknown format"),
        *((lambda wrong=wrong: encode("a.csv", delimiter=wrong), "delimiter=") for wrong in (";;", "", "x", "1", '"', "\n", "é", 5)),
        (lambda: numtok.corpus_stats("a.txt", delimiter=";"), "for CSV and TSV"),
        (lambda: encode("a.txt", template="row"), "a text file has no columns"),
        (lambda: encode("a.txt", keep_columns=["id"]), "no columns"),
        (lambda: numtok.scan(NOT_UTF8), "", SECOND | {"byte": 2}),
        (lambda: numtok.decode_files("place.parquet", "o.jsonl", workers=-1), "workers=-1 (--workers) must be a whole"),
        (lambda: numtok.decode_files("place.parquet", "o.jsonl", batch_bytes=0), "batch_bytes=0 (--batch-bytes) must be a whole"),
    ],
    OutputError: [
        *((lambda name=name, options=options: write(name, **options), told) for name, options, told in OUTPUTS),
        *((lambda call=call: call("place.parquet", "place.parquet", overwrite=True), "also an input") for call in (numtok.encode_files, numtok.decode_files)),
        (lambda: numtok.decode_files("place.parquet", "no/a.jsonl"), "there is no folder"),
    ],
    TokenizerError: [
        (lambda: end_token(Tokenizer({**trained.config("gpt2"), "added_tokens": []}, ["xval"])), "none of the usual end tokens; name the one"),
    ],
    RepresentationError: [
        (lambda: STRICT.encode_batch(["none", "a é 1e400"]), "", SECOND | {"byte": 5, "path": None, "row": None}),
    ],
    GrammarError: [(lambda: numtok.scan(["5", "a: b"], DIGIT_OR_B), "", SECOND | {"byte": 3})],
    SchemaError: [(lambda: numtok.expand(pa.table({"number_bits": [[1]]})), "not written by numtok")],
}  # fmt: skip


ERRORS = {
    kind: [
        *((lambda one=one: encode(**one), told) for one, told in ENCODED.get(kind, ())),
        *((lambda one=one: job(**one), told) for one, told in JOBS.get(kind, ())),
        *((lambda names=names, one=one: export(*names, **one), told) for names, one, told in EXPORTS.get(kind, ())),
        *OTHERS.get(kind, ()),
    ]
    for kind in ENCODED | JOBS | EXPORTS | OTHERS
}  # fmt: skip


@errors.rows(ERRORS)
def test_errors(call, kind, told, fields, folder, monkeypatch):
    """And nothing is written, nor taken away."""
    monkeypatch.chdir(folder)
    before = sorted(folder.rglob("*"))
    errors.check(call, kind, told, fields)
    assert sorted(folder.rglob("*")) == before


# The place of an error


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (NumtokError("wrong"), "wrong"),
        (RepresentationError("wrong", document=3, byte=17), "document 3, byte 17: wrong"),
        (InputError("wrong", document=1, character=0), "document 1, character 0: wrong"),
        (InputError("wrong", "a.jsonl", 3, 8), "a.jsonl:3:8: wrong"),
        (SchemaError("wrong", path="a.parquet", row=0), "a.parquet, row 0: wrong"),
        (SchemaError("wrong", row=0), "row 0: wrong"),
        (OutputError("wrong", path="a.parquet"), "a.parquet: wrong"),
        (MissingDependencyError("wrong"), "wrong"),
    ],
)
def test_the_text_of_an_error_is_its_place_and_its_message(error, told):
    for same in (error, pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(same) is type(error)
        assert (str(same), same.message, vars(same)) == (told, "wrong", vars(error))


@pytest.mark.parametrize(
    ("first", "on_error", "place"),
    [('{"text": "5"}', "raise", "row 3: byte 1: "), ("{", "skip", "near row 2: byte 1: ")],
)
def test_a_corpus_names_the_row_of_every_error_about_a_document(first, on_error, place, tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text(first + '\n{"text": "6"}\n{"text": "ab"}\n')
    made = Tokenizer.from_pretrained(numbers="xval", grammar=Grammar.from_pattern(r"\d|b"))
    with pytest.raises(GrammarError, match="does not read as a decimal number") as failed:
        encode(path, tmp_path / "out.parquet", tokenizer=made, on_error=on_error)
    assert str(failed.value).startswith(f"{path}, {place}")
    assert (failed.value.path, failed.value.byte, failed.value.document) == (str(path), 1, None)
    assert not list(tmp_path.glob("*.parquet"))
