"""Check what tokenizers refuse: arguments of wrong types, sources, batches of others, folders to export to,
texts to train on.
"""

import dataclasses
import functools
import json
import re

import errors
import numpy as np
import pyarrow as pa
import pytest
import trained
from tokenizers import pre_tokenizers

from numtok import Grammar, Numbers, Tokenizer, extract
from numtok.errors import (
    InputError,
    NumtokError,
    OutputError,
    RepresentationError,
    SchemaError,
    TokenizerError,
)
from numtok.numbers.scan import scan
from numtok.representations import (
    NUM,
    P10,
    REPRESENTATIONS,
    Column,
    Digits,
    FloatBits,
    FoNE,
    Representation,
    SingleToken,
    Subword,
    XVal,
    from_dict,
    parse,
    register,
)  # fmt: skip
from numtok.representations.registry import default_instances
from numtok.tokenizer.layout import expand, to_token_layout
from numtok.tokenizer.schema import check_rows, read_metadata
from numtok.tokenizer.train import save_tokenizer, train_tokenizer

# Arguments of every type: any error of numtok that says what was wanted


@functools.cache
def tok():
    return Tokenizer.from_pretrained()


NOT_TEXTS = [
    {"a": 1}, [b"x"], b"x", "x", {"x"}, 5, None, [5], ["a", 1.5], [["a"]], [True],
    np.array([1, 2]), np.array([b"a"]), np.array([["a"]]),
    pa.array([1]), pa.array([b"a"]), pa.table({"text": ["a"]}),
    pa.record_batch({"text": ["a"]}), pa.scalar("a"),
]  # fmt: skip
NUM_ID = tok().tokens["[NUM]"]
REFUSED = {
    **{f"encode({text!r})": lambda text=text: tok().encode(text) for text in (None, b"x", 5, ["a"])},
    **{f"extract({text!r})": lambda text=text: extract(text) for text in (None, b"5", 5, ["5"])},
    **{f"decode({ids!r})": lambda ids=ids: tok().decode(ids) for ids in ("abc", None, [1.5], ["a"], [[1, 2]], [[1], [1, 2]], [2**70], [None])},
    **{f"decode numbers={given!r}": lambda given=given: tok().decode([NUM_ID], given) for given in (5, ["abc"], [None], [1, 2], [float("inf")])},
    **{f"decode_batch({given!r})": lambda given=given: tok().decode_batch(given) for given in (None, [[1]], pa.table({"input_ids": [[1]]}), "a")},
    "decode_batch(Encoding)": lambda: tok().decode_batch(tok().encode("5")),
    "decode(RecordBatch)": lambda: tok().decode(tok().encode("5").batch),
    "encoding[0]": lambda: tok().encode("5")[0],
    **{f"from_pretrained({source!r})": lambda source=source: Tokenizer.from_pretrained(source) for source in (5, {}, b"x", [], "", "a\0b", "/no/such")},
    **{f"numbers={given!r}": lambda given=given: Tokenizer.from_pretrained(numbers=given) for given in (
        5, [5], [], [None], "", {"name": "xval"}, [{"name": "xval"}], [FoNE], FoNE, [Representation], int, b"xval", "no", ["no"], "xval,place", True)},
    **{f"grammar={given!r}": lambda given=given: Tokenizer.from_pretrained(grammar=given) for given in ("prosaic", Grammar, {}, 5, False)},
    **{f"scan grammar={given!r}": lambda given=given: scan(["5"], given) for given in ("prosaic", Grammar, {}, 5)},
    **{f"engine={given!r}": lambda given=given: Tokenizer.from_pretrained(engine=given) for given in (5, [], None, "x")},
    **{f"config={given!r}": lambda given=given: Tokenizer(given, XVal()) for given in ("gpt2", None, [])},
    **{f"leading_space={given!r}": lambda given=given: Tokenizer.from_pretrained(leading_space=given) for given in (5, [], "x")},
    **{f"save_pretrained({given!r})": lambda given=given: tok().save_pretrained(given) for given in (None, 5)},
    **{f"Grammar({name}={given!r})": lambda name=name, given=given: Grammar(**{name: given})
       for name in (field.name for field in dataclasses.fields(Grammar)) for given in (5, [], b"\\d", 1.5, {})},
    **{f"Grammar.from_dict({given!r})": lambda given=given: Grammar.from_dict(given) for given in (None, [], 5, {5: 1})},
    **{f"from_dict({given!r})": lambda given=given: from_dict(given) for given in (None, [1], 5, {}, {"name": []}, {"name": "xval", 5: 1})},
    **{f"parse({given!r})": lambda given=given: parse(given) for given in (None, 5, [], b"xval")},
    **{f"Numbers.parse({given!r})": lambda given=given: Numbers.parse(given) for given in (5, [None], [b"5"], [[5]], None, "5")},
}  # fmt: skip


@pytest.mark.parametrize("call", list(REFUSED))
def test_arguments_of_every_type(call):
    with pytest.raises(NumtokError) as caught:
        REFUSED[call]()
    assert len(str(caught.value)) > 20


@pytest.mark.parametrize(
    "texts", NOT_TEXTS, ids=lambda texts: re.sub(" at 0x[0-9a-f]+", "", repr(texts))
)
def test_what_is_not_texts(texts):
    for call in (tok().encode_batch, scan):
        with pytest.raises(NumtokError, match="expected"):
            call(texts)


# Errors with a place and a way out


FLAGS = dict.fromkeys(["single_word", "lstrip", "rstrip", "normalized", "special"], False)
FILES = [
    ("nothing.json", None, "does not exist"),
    (".", None, "holds no tokenizer.json"),
    ("broken.json", b'{"model": \n {,', "broken.json:2:3: not JSON"),
    ("latin.json", b'{"a": "\xe9"}', "latin.json…not UTF-8 at byte 7"),
    (
        "tokenizer_config.json",
        b'{"tokenizer_class": "GPT2Tokenizer"}',
        "tokenizer_config.json…no 'model'",
    ),
    ("vocab.json", b'{"a": 0, "b": 1}', "vocab.json…no 'model'"),
    ("half.json", b'{"model": {"type": "BPE"}}', "half.json…vocab"),
    (
        "odd.json",
        b'{"model": {"type": "BPE", "vocab": {}, "merges": []}, "added_tokens": [{"id": 1}]}',
        "odd.json",
    ),
    ("kind.json", b'{"model": {"type": "Nope", "vocab": {"a": 0}}}', "kind.json"),
    (
        "surrogate.json",
        json.dumps(
            {"model": {"vocab": {}}, "added_tokens": [{"content": "\ud800", **FLAGS}]}
        ).encode(),
        "surrogate.json…half of a character",
    ),
]


def gpt2(*numbers, **options):
    return Tokenizer(trained.config("gpt2"), [*numbers] or [XVal()], **options)


def with_token(kind, numbers, **token):
    """A tokenizer whose source has one more added token."""
    config = trained.config(kind)
    config["added_tokens"].append({"id": config["added_tokens"][-1]["id"] + 1, **FLAGS, **token})
    return Tokenizer(config, numbers)


def with_word(word, numbers):
    config = trained.config("bert")
    config["model"]["vocab"][word] = len(config["model"]["vocab"])
    return Tokenizer(config, [numbers])


def cut_before(kind, cut):
    source = trained.source(kind)
    source.pre_tokenizer = pre_tokenizers.Sequence([cut, source.pre_tokenizer])
    return Tokenizer.from_pretrained(source, [Digits(3)])


def later_token():
    """A source with a token behind numtok's own."""
    config = json.loads(json.dumps(gpt2().config))
    last = config["added_tokens"][-1]
    config["added_tokens"].append(last | {"id": last["id"] + 1, "content": "<later>"})
    return Tokenizer(config, [Subword()])


def with_metadata(batch, **changed):
    told = json.loads(batch.schema.metadata[b"numtok"]) | changed
    return batch.schema.with_metadata({b"numtok": json.dumps(told).encode()})


def with_column(batch, name, values, kind):
    column = batch.schema.get_field_index(name)
    return batch.set_column(column, batch.schema.field(column), pa.array(values, pa.list_(kind)))


def encoded(*texts, numbers="xval,fone:3,2,bits"):
    return Tokenizer.from_pretrained(None, numbers).encode_batch([*texts])


def decode_without(*names, reader=gpt2, options=(), texts=("5",)):
    return reader(*options).decode_batch(
        reader(*options).encode_batch(texts).drop_columns([*names])
    )


def ids_and(values):
    return gpt2().decode(gpt2().encode("a 5 b 6 c 7").input_ids.tolist(), values)


def export(numbers, source=None, **options):
    return Tokenizer.from_pretrained(source, numbers).export("new", **options)


class Other(XVal):
    """Another class by a name that is taken."""


class Clashing(SingleToken):
    name = "clashing"
    declared = (Column("place_value", pa.float32(), np.float32),)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizers")
    for name, content, _ in FILES:
        if content is not None:
            (folder / name).write_bytes(content)
    config = trained.config("bert")
    config["model"]["vocab"]["zzz"] = 5000
    (folder / "holes.json").write_text(json.dumps(config))
    (folder / "there").mkdir()
    (folder / "there" / "tokenizer.json").write_text("mine")
    (folder / "file").touch()
    return folder


CUT_OTHERWISE = [
    (name, one) for name, kind in REPRESENTATIONS.items() if name not in ("digits", "subword", "fone") for one in default_instances(kind)
]  # fmt: skip
PRIVATE = "".join(
    chr(code)
    for first, stop in ((0xE000, 0xF900), (0xF0000, 0xFFFFE), (0x100000, 0x10FFFE))
    for code in range(first, stop)
)
ERRORS = {
    TokenizerError: [
        *((lambda name=name: Tokenizer.from_pretrained(f"./{name}"), told) for name, _, told in FILES),
        (lambda: Tokenizer.from_pretrained("./holes.json"), "holes.json…holes"),
        (lambda: with_word(NUM, XVal()), "word of its vocabulary"),
        (lambda: with_word("[NUM:+]", P10()), "word of its vocabulary"),
        *((lambda flag=flag: with_token("gpt2", [XVal()], content=NUM, **{flag: True}), "already has '[NUM]'") for flag in ("special", "normalized")),
        (lambda: gpt2(engine="tiktoken"), "'auto', 'gigatoken' or 'tokenizers'"),
        (lambda: cut_before("metaspace_first", pre_tokenizers.Punctuation()).export("new"), "more than WhitespaceSplit"),
        (lambda: cut_before("gpt2", pre_tokenizers.Digits(individual_digits=True)).export("new"), "cuts '00' by itself; export Digits(1)"),
        (lambda: later_token().export("new"), "made from the original source"),
        (lambda: train_tokenizer(["a b"], 256), "need 257"),
    ],
    SchemaError: [
        (lambda: gpt2().decode_batch(gpt2().encode_batch(["5"]).replace_schema_metadata(None)), "no 'numtok' schema metadata"),
        (lambda: gpt2().decode_batch(gpt2().encode_batch(["5"]).replace_schema_metadata({b"other": b"1"})), "no 'numtok' schema metadata"),
        (lambda: read_metadata(pa.schema([], {b"numtok": b'{"format": 3}'})), "format 3…upgrade"),
        (lambda: read_metadata(pa.schema([], {b"numtok": b'{"format": "1"}'})), "damaged…format"),
        (lambda: read_metadata(with_metadata(to_token_layout(encoded("5")), layout="word")), "'layout': Invalid enum value 'word'"),
        (lambda: gpt2(FloatBits()).decode_batch(gpt2().encode_batch(["5"])), "another tokenizer"),
        (lambda: decode_without("number_index"), "number_index"),
        (lambda: decode_without("number_value"), "number_value"),
        (lambda: decode_without("number_scaled", options=[XVal(overflow="clip")], texts=["1e400"]), "number_scaled"),
        (lambda: check_rows(with_column(to_token_layout(encoded("is -28.5", "7")), "number_value", [[1.0], [1.0, 2.0]], pa.float64())),
         "'number_value' has 1 values, but there are 3 tokens"),
        (lambda: check_rows(to_token_layout(encoded("is 7")).drop_columns(["number_mask"])), "no column 'number_mask'"),
        (lambda: expand(to_token_layout(gpt2(FloatBits(compact=True)).encode_batch(["7"])).drop_columns(["number_mask"])), "no column 'number_mask'"),
        (lambda: check_rows(with_column(encoded("is 7", "5 or 6"), "number_index", [[1], [2, 2]], pa.int32())),
         "row 1: 'number_index' has 2, which is no place after"),
        *((lambda values=values: ids_and(values), f"3 number tokens, but {len(values)} values") for values in ([1], [1, 2, 3, 4], [])),
        (lambda: gpt2().encode("5")["number_fourier"], "number_fourier"),
    ],
    RepresentationError: [
        *((lambda first=first: ids_and([first, float("nan"), 3]), "value 1 is nan") for first in (1, 1.0)),
        (lambda: gpt2(XVal(overflow="error")).encode_batch(["a 5 and 6"] * 30 + ["x 1e999"], threads=3), "", {"document": 30, "byte": 2}),
        (lambda: gpt2(XVal(), FloatBits(overflow="error")).encode_batch(["9" * 500]), f"{'9' * 40}... (500 characters)"),
        *((lambda one=one: export([one]), f"{name} …digits:1, … and subword can") for name, one in CUT_OTHERWISE),
        (lambda: export("digits:2,places"), "Digits(2) without places"),
        (lambda: register(Other), "there is a representation 'xval' already, XVal"),
        (lambda: register(Clashing), "there is a column 'place_value' already"),
    ],
    InputError: [
        *((lambda wrong=wrong: gpt2().encode_batch(["a"], threads=wrong), "positive integer") for wrong in (0, -1, 1.5, "2", True)),
        *((lambda texts=texts: train_tokenizer(texts, 300), "no text to train on") for texts in ([], ["12 34", None, ""])),
        (lambda: Tokenizer(trained.config("bert"), [XVal()]).encode_batch([f"5 {PRIVATE}"]),
         "hold 137468 of the 137468 private-use characters"),
    ],
    OutputError: [
        (lambda: save_tokenizer({}, "there"), "exists already"),
        (lambda: Tokenizer.from_pretrained(None, "digits:1").export("there"), "exists already"),
        (lambda: Tokenizer.from_pretrained(None, "digits:1").export("file"), ""),
    ],
    AttributeError: [(lambda: gpt2().encode("5").number_fourier, "input_ids, number_index, number_value, number_scaled")],
}  # fmt: skip


@errors.rows(ERRORS)
def test_errors(call, kind, told, fields, folder, monkeypatch):
    monkeypatch.chdir(folder)
    before = sorted(path.name for path in folder.iterdir())
    errors.check(call, kind, told, fields)
    assert sorted(path.name for path in folder.iterdir()) == before
    assert (folder / "there" / "tokenizer.json").read_text() == "mine"
