"""Metadata of a file that anybody may have written: every key missing, of every wrong type and of
every extreme, through every reader.
"""

import copy
import functools
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import trained

pytest.importorskip("torch")

from input_files import read_encoded

import numtok
from numtok.corpus.decode import tokenizer_of
from numtok.errors import NumtokError, SchemaError
from numtok.representations import (
    P10,
    ExponentBins,
    FloatBits,
    FoNE,
    LogFourier,
    PlaceValue,
    Subword,
    XVal,
)
from numtok.tokenizer.schema import METADATA_KEY, read_metadata
from numtok_torch import (
    NumberCollator,
    NumberDataset,
    NumberTokenLoss,
    embedding_from_schema,
    head_from_schema,
)

TEXTS = ["is 28.5 or 1,234", None, "none", "7"]
KINDS = {
    "single": [XVal(), FloatBits(), FoNE(6, 4, chunk=5), ExponentBins(), LogFourier(4)],
    "place": [PlaceValue()],
    "bare": [PlaceValue(brackets=False)],
    "p10": [P10()],
    "subword": [Subword()],
}
TOKENIZERS = {
    name: numtok.Tokenizer.from_pretrained(None, numbers) for name, numbers in KINDS.items()
}
BATCHES = {
    name: tokenizer.encode_batch(TEXTS, keep_text=True) for name, tokenizer in TOKENIZERS.items()
}
METADATA = {
    name: json.loads(batch.schema.metadata[METADATA_KEY]) for name, batch in BATCHES.items()
}
DEEP = json.loads("[" * 700 + "]" * 700)
# fmt: off
WRONG = [
    None, True, -1, 2**63, 10**400, 1.5, float("nan"), "x", "\ud800", [], {}, DEEP, 0, 3, 2**24, 10**30, "", "\x1b[31m" * 100, [[]], [[], [], []], [[-1], []],
    [[10**12], []], [["a"], []], [[1] * 5000, []], [[5, 6], [7]], {"x": 1}, {"[NUM]": 2**40},
]
RAW = [b"", b"[]", b"null", b"\xff\xfe", b"{" * 5000, b"[" * 200_000, b'{"format":' + b"9" * 5000 + b"}"]
# fmt: on


def changed(metadata, path, value):
    """With another value at a path; without the key, for the value KeyError."""
    made = copy.deepcopy(metadata)
    inner = functools.reduce(lambda found, key: found[key], path[:-1], made)
    if value is KeyError:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return json.dumps(made).encode()


def with_metadata(name, described):
    return BATCHES[name].replace_schema_metadata({METADATA_KEY: described})


def refused(name, described):
    """Whether ``read_metadata`` refuses; every reader must then, or give what was written, or
    refuse by itself. Anything else is a failure here.
    """
    batch = with_metadata(name, described)
    schema, refusal = batch.schema, None
    try:
        read_metadata(schema, "a.parquet")
    except SchemaError as error:
        refusal = str(error)
        assert refusal.startswith("a.parquet: ") and "\n" not in refusal and len(refusal) < 500
    masked = {"pad_token_id": 0, "objective": "masked", "mask_token_id": 1}
    for reader in (
        lambda: NumberDataset(batch)[0],
        lambda: NumberCollator.from_schema(schema, **masked)([NumberDataset(batch)[0]]),
        lambda: embedding_from_schema(schema, 24),
        lambda: head_from_schema(schema, 24),
        lambda: head_from_schema(schema, 24, "mixture"),
        lambda: NumberTokenLoss.from_schema(schema),
        lambda: TOKENIZERS[name].decode_batch(batch).to_pylist() == TEXTS or pytest.fail("other"),
    ):
        try:
            reader()
            assert refusal is None, "read_metadata refuses, but a reader does not"
        except NumtokError:
            pass
    return refusal is not None


@pytest.mark.parametrize("name", KINDS)
def test_every_key_missing_or_of_a_wrong_type(name):
    """The top-level keys; ``tests/fuzz`` mutates what they hold."""
    metadata = METADATA[name]
    variants = [changed(metadata, (key,), value) for key in metadata for value in WRONG]
    refusals = [refused(name, described) for described in variants[::5]]
    assert sum(refusals) > 0.6 * len(refusals)
    assert not refused(name, json.dumps(metadata).encode())
    for key in metadata.keys() - {"symbols", "shapes", "layout", "tokenizer_kind"}:
        with pytest.raises(SchemaError, match=f"field {key}|'format' is None"):
            read_metadata(with_metadata(name, changed(metadata, (key,), KeyError)).schema)


OUT_OF_RANGE = [
    (("numbers", 2, "int_digits"), -5),
    (("numbers", 2, "int_digits"), 10**18),
    (("numbers", 2, "chunk"), 10**18),
    (("numbers", 2, "bases"), [10] * 100_000),
    (("numbers", 0, "scale"), 10**400),
    (("numbers", 0, "scale"), -1.0),
    (("numbers", 0, "name"), "unknown"),
    (("numbers", 0, "overflow"), DEEP),
    (("numbers", 3, "n"), 10**18),
    (("numbers", 3, "low"), float("nan")),
    (("numbers", 4, "n_frequencies"), 10**18),
    (("numbers",), []),
    (("shapes", "number_bits"), [31]),
    (("shapes", "number_fourier"), [-1, 2]),
    (("shapes",), {"input_ids": [2]}),
    (("vocab_size",), 0),
    (("vocab_size",), 2**40),
    (("format",), True),
    (("grammar", "pattern"), "("),
    (("tokens",), {}),
    (("symbols",), {"plain": [[0, 1]], "spaced": []}),
]
SYMBOLS = [
    *(KeyError, None, {"spaced": []}, {"plain": 3, "spaced": []}, {"plain": [[0]], "spaced": []}),
    *(
        {"plain": plain, "spaced": []}
        for plain in ([], [[0, 27]], [[0, 28], [5, 1]], [[0, 10**15]], [[-1, 28]], [[1, 0]] * 28)
    ),
]


DAMAGED = [
    *(("single", raw) for raw in RAW),
    *(("single", changed(METADATA["single"], *change)) for change in OUT_OF_RANGE),
    *(("p10", changed(METADATA["p10"], ("symbols",), value)) for value in SYMBOLS),
]


@pytest.mark.parametrize(("name", "described"), DAMAGED, ids=range(len(DAMAGED)))
def test_what_is_damaged_or_out_of_range(name, described):
    assert refused(name, described)


def test_an_option_that_is_missing_has_its_default():
    """As files of a version that did not know the option yet."""
    described = changed(METADATA["single"], ("numbers", 0, "scale"), KeyError)
    assert read_metadata(with_metadata("single", described).schema)["numbers"][0]["scale"] == 1.0


def test_what_others_add_is_left_alone():
    described = json.dumps(METADATA["single"] | {"command": "numtok encode", "deep": DEEP})
    schema = with_metadata("single", described.encode()).schema
    metadata = read_metadata(schema)
    assert metadata["command"] == "numtok encode" and metadata["frame"] == [[], []]
    metadata["frame"][0].append(5)
    assert read_metadata(schema)["frame"] == [[], []], "a dictionary of its own"


@pytest.mark.parametrize("kind", ["gpt2", "bert", "t5"])
def test_an_encoded_file_says_by_what_tokenizer(kind, tmp_path):
    """By its content, whatever it was called; of what others wrote there, nothing is believed. One
    that is damaged is named.
    """
    path, model = tmp_path / "a.parquet", {"bert": "WordPiece", "t5": "Unigram"}.get(kind)
    source = trained.source(kind)
    made = numtok.Tokenizer.from_pretrained(source, [XVal()])
    batch = made.encode_batch(TEXTS)
    named = f"{model or 'byte-level BPE'} of {source.get_vocab_size():,} tokens"
    pq.write_table(pa.Table.from_batches([batch]), path)
    readers = [
        (tokenizer_of, path),
        (TOKENIZERS["single"].decode_batch, batch),
        (functools.partial(NumberDataset, tokenizer=TOKENIZERS["single"]), path),
    ]
    for read, given in readers:
        with pytest.raises(SchemaError, match=rf"\({named}, fingerprint {made.fingerprint}"):
            read(given)
    own = json.loads(batch.schema.metadata[METADATA_KEY])
    for other in ({}, {"tokenizer_kind": 5}):
        left = {key: value for key, value in own.items() if key != "tokenizer_kind"}
        described = {METADATA_KEY: json.dumps(left | other)}
        pq.write_table(pa.Table.from_batches([batch.replace_schema_metadata(described)]), path)
        with pytest.raises(SchemaError, match=rf"\(fingerprint {made.fingerprint}\)"):
            tokenizer_of(path)
    pq.write_table(pa.Table.from_batches([with_metadata("single", b"{")]), path)
    for reader in (tokenizer_of, NumberDataset, lambda path: list(read_encoded(path))):
        with pytest.raises(SchemaError, match=f"^{path}.*damaged"):
            reader(path)
