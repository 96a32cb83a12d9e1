"""Input files for the tests of readers: written, read whole, or refused with an error that names
them.
"""

import bz2
import contextlib
import csv
import gzip
import io
import json
import lzma

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import numtok
from numtok.corpus.read.batches import ReadOptions
from numtok.corpus.read.documents import find_inputs, read_batches
from numtok.corpus.read.encoded import open_encoded
from numtok.corpus.read.template import Template
from numtok.errors import InputError

COMPRESS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": lambda data: pa.compress(data, "zstd", asbytes=True),
}


def batches_of(path, **options):
    if "template" in options:
        options["template"] = Template(options["template"])
    how = ReadOptions(**options)
    return [batch for source in find_inputs([path]) for batch in read_batches(source, how)]


def read_all(path, **options):
    batches = batches_of(path, **options)
    for batch in batches:
        batch.texts.validate(full=True)
        assert all(len(column) == len(batch.texts) for column in batch.kept.values())
    return [text for batch in batches for text in batch.texts.to_pylist()]


def read_encoded(path, batch_bytes=8 << 20):
    """The rows of an encoded file, in batches."""
    with contextlib.closing(open_encoded(path)) as file:
        yield from file.batches(batch_bytes)


def write(folder, name, data):
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def write_texts(path, texts):
    """JSON lines, with a number for each row."""
    rows = (json.dumps({"id": number, "text": text}) for number, text in enumerate(texts))
    path.write_text("".join(f"{row}\n" for row in rows), "utf-8")
    return path


def write_rows(path, rows):
    """Rows of a table in the format that the name tells, plain or compressed."""
    kind, _, suffix = path.name.partition(".")[2].partition(".")
    out = io.BytesIO()
    if kind == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), out)
    elif kind == "arrow":
        pyarrow.feather.write_feather(pa.Table.from_pylist(rows), out)
    elif kind in ("csv", "tsv"):
        lines = io.StringIO(newline="")
        how = {"delimiter": "," if kind == "csv" else "\t", "quoting": csv.QUOTE_ALL}
        writer = csv.DictWriter(lines, list(rows[0]), **how)
        writer.writeheader()
        writer.writerows(rows)
        out.write(lines.getvalue().encode("utf-8-sig"))
    else:
        written = json.dumps(rows, indent=1)
        lines = written if kind == "json" else "".join(json.dumps(row) + "\n" for row in rows)
        out.write(lines.encode())
    data = out.getvalue()
    path.write_bytes(COMPRESS[suffix](data) if suffix else data)
    return path


def lines_of(path):
    """The values of JSON lines."""
    return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]


def decoded(path, tokenizer=None):
    """The texts of an encoded file or folder."""
    back = path.with_name(f"{path.name}-back.jsonl")
    numtok.decode_files(path, back, tokenizer, overwrite=True)
    return [row["text"] for row in lines_of(back)]


def failure(path, **options):
    with pytest.raises(InputError) as caught:
        read_all(path, **options)
    assert str(caught.value).startswith(str(path)), "an input error begins with the file"
    return caught.value
