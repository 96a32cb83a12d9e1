"""Check what data sets and collators refuse: options, rows that do not fit together, other tokenizers."""

import errors
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from kept import kept
from torch.utils.data import DataLoader
from torch_rows import tokenizer

from numtok.errors import InputError, SchemaError, TokenizerError
from numtok.representations import FoNE, XVal
from numtok.tokenizer.packing import NumberTokens
from numtok_torch import (
    IterableNumberDataset,
    NumberCollator,
    NumberDataset,
    Seq2SeqNumberCollator,
    answers_only,
)

ONE, TWO = {"input_ids": [1], "number_index": [0]}, {"input_ids": [1, 2]}
VALUE, VALUES = {"number_value": [1.0]}, {"number_value": [1.0, 2.0]}
MASKED = {"objective": "masked", "mask_token_id": 1, "vocab_size": 9}
BLOCKS = {"block_size": 4, "nulls": "skip"}
BOTH = (NumberDataset, IterableNumberDataset)


@kept
def encoded(*texts):
    return tokenizer().encode_batch(list(texts), keep_text=True)


def collate(*rows, **options):
    return NumberCollator(900, **{"objective": "causal", **options})(rows)


def masked_spans(*spans):
    options = {"objective": "masked", "mask_token_id": 1, "mask": "spans"}
    collator = NumberCollator.from_schema(encoded("5").schema, 900, **options)
    row = NumberDataset(encoded("ab 123 cd"))[0]
    return collator([row | {"mask_spans": [*spans]} if spans else row])


def blocks(**options):
    return NumberDataset(encoded("1", None), **options)


def number():
    return NumberTokens.from_schema(encoded("5").schema).ids[0]


def damaged(name, values):
    """Two documents with a column in the place of one."""
    batch = encoded("5 and 6", "no 1 and 2")
    column = batch.schema.get_field_index(name)
    return batch.set_column(
        column, batch.schema.field(column), pa.array(values, batch.schema.types[column])
    )


def fourier(*rows):
    return NumberCollator.from_schema(tokenizer(FoNE(6, 4)).batch_schema(), 0, objective=None)(rows)


EMPTY = {"input_ids": [1], "number_index": [], "number_value": [], "number_fourier": []}
PAIR = {"number_index": [0], "number_value": [1.0], "number_fourier": [[[1.0, 0.0]]]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Encoded files, and others that are none."""
    folder = tmp_path_factory.mktemp("files")
    for name in ("data", "more"):
        (folder / name).mkdir()
    table = pa.Table.from_batches([encoded(*map(str, range(50)))])
    pq.write_table(table, folder / "data" / "a.parquet")
    whole = (folder / "data" / "a.parquet").read_bytes()
    pq.write_table(pa.table({"input_ids": [[1]]}), folder / "foreign.parquet")
    pq.write_table(table.drop_columns("number_scaled"), folder / "less.parquet")
    (folder / "short.parquet").write_bytes(whole[:100])
    (folder / "damaged.parquet").write_bytes(whole[:200] + bytes(60) + whole[260:])
    (folder / "text.parquet").write_text("hello")
    (folder / "empty").mkdir()
    other = pa.Table.from_batches([tokenizer(XVal(scale=2.0)).encode_batch(["5"])])
    pq.write_table(other, folder / "other.parquet")
    pq.write_table(pa.Table.from_batches([encoded("1", None, "2")]), folder / "nulls.parquet")
    reversed_places = damaged("number_index", [[0, 2], [3, 1]])
    pq.write_table(pa.Table.from_batches([reversed_places]), folder / "reversed.parquet")
    return folder


ROWS = [
    ([], "no rows"),
    ([{"labels": [1]}], "no 'input_ids'"),
    ([{"input_ids": [1]}, {"input_ids": [1], "labels": [1]}], "rows 0 and 1…labels"),
    ([{"input_ids": [1], "id": "x"}], "'id'…drop"),
    ([{"input_ids": 1}], "single value"),
    ([{"input_ids": [1]} | VALUE], "neither 'number_index'"),
    ([ONE | {"number_mask": [True]}], "both"),
    ([TWO | VALUE | {"number_index": [2]}], "in order"),
    ([TWO | VALUE | {"number_index": [-1]}], "in order"),
    ([TWO | VALUES | {"number_index": [1, 0]}], "in order"),
    ([TWO | {"number_index": [1], "number_value": []}], "row 0: … has 0 values…1 numbers"),
    ([TWO | {"number_mask": [True]}], "row 0: 'number_mask' has 1"),
    ([TWO | {"place_value": [0]}], "row 0: 'place_value' has 1"),
    ([ONE | {"number_bits": [[1, [0]]]}], "nested lists"),
    ([ONE | {"number_bits": [[1] * k]} for k in (32, 31)], "same shape"),
    ([EMPTY | {"number_fourier": []}], "from_schema"),
]
OPTIONS = [
    ({"objective": "mlm"}, "objective='mlm'"),
    ({"padding_side": "top"}, "padding_side"),
    ({"truncation_side": "top"}, "truncation_side"),
    ({"padding": True}, "padding"),
    ({"pack": True}, "max_length"),
    ({"padding": "max_length"}, "max_length"),
    ({"max_length": 0}, "max_length=0"),
    ({"max_length": 2, "frame": (1, 1)}, "special tokens"),
    ({"pad_to_multiple_of": 0}, "pad_to_multiple_of"),
    ({"objective": "masked"}, "mask_token_id"),
    (MASKED | {"mask": "digits"}, "mask='digits'"),
    (MASKED | {"mlm_probability": 2}, "mlm_probability"),
    (MASKED | {"mask_share": 0.95}, "mask_share"),
    (MASKED | {"vocab_size": 2, "special_token_ids": (0,)}, "no word"),
]
PACKED = {"pack": True, "max_length": 8, "max_target_length": 8}
SIDES = (tokenizer, lambda: tokenizer(XVal(0.5)))
MAKERS = (
    lambda **options: NumberCollator(900, **options),
    lambda **options: NumberCollator.from_schema(encoded("5").schema, 900, **options),
    lambda **options: NumberCollator.from_tokenizer(tokenizer(), 900, **options),
)
OBJECTIVES = "'causal'…'masked'…Seq2SeqNumberCollator"
ERRORS = {
    SchemaError: [
        *((lambda rows=rows: collate(*rows), told) for rows, told in ROWS),
        *((lambda options=options: collate(ONE, **options), told) for options, told in OPTIONS),
        *((make, OBJECTIVES) for make in MAKERS),
        (lambda: fourier(EMPTY | PAIR), "schema says"),
        *(
            (
                lambda make=make: make(objective=None)(
                    [row for side in SIDES for row in NumberDataset(side().encode_batch(["it is 5"]))]
                ),
                "made for another tokenizer",
            )
            for make in MAKERS[1:]
        ),
        *(
            (lambda span=span: masked_spans(*span), "mask_spans")
            for span in ([[0, 99]], [[-1, 1]], [[2, 1]], [])
        ),
        (lambda: collate({"input_ids": [1], "labels": [1]}, **MASKED), "labels"),
        (lambda: answers_only(NumberDataset(encoded("5")), tokenizer(), "A?")[0], "row 0 "),
        (lambda: answers_only(NumberDataset(encoded("5")), tokenizer(), ""), "after=''"),
        (lambda: answers_only(NumberDataset(encoded("5")), tokenizer(), "step 5"), "no number"),
        (lambda: NumberCollator(encoded("5"), objective="causal"), "pad_token_id…from_schema"),
        (lambda: NumberCollator.from_tokenizer(tokenizer(), objective=None), "no padding token"),
        (lambda: Seq2SeqNumberCollator.from_schema(encoded("5").schema, 0, **PACKED), "packed"),
        (lambda: Seq2SeqNumberCollator.from_schema(encoded("5").schema, 0, objective="causal"), "objective=None"),
        (lambda: blocks(block_size=0), "block_size=0"),
        (lambda: blocks(block_size=4), "row 1 is null…skip"),
        (lambda: blocks(**BLOCKS, columns=["text"]), "'text' has no value for each token"),
        (lambda: blocks(separator=1), "give block_size"),
        (lambda: blocks(block_size=4, separator="<|endoftext|>"), "tokenizer=..."),
        (lambda: blocks(block_size=4, separator=number()), "none that numbers are made of"),
        (lambda: blocks(block_size=4, separator=10**6), "no id of the tokenizer"),
        (lambda: NumberDataset(encoded("1", None)), "row 1 is null…skip"),
        (lambda: NumberDataset("nulls.parquet"), "row 1 is null…skip"),
        (lambda: NumberDataset(damaged("number_index", [[0, 2], [3, 1]])), "row 1"),
        (lambda: NumberDataset("reversed.parquet"), "row 1"),
        (lambda: NumberDataset(damaged("number_value", [[1.0], [1.0, 2.0]]))[0], "number_value…damaged"),
        (lambda: NumberDataset("foreign.parquet"), "not written by numtok"),
        *(
            (lambda of=of: IterableNumberDataset("data", rank=of[0], world_size=of[1]), "rank={} of world_size={}".format(*of))
            for of in ((2, 2), (-1, 2), (0, 0))
        ),
        (lambda: NumberDataset("data", columns=["number_bits"]), "no column 'number_bits'"),
        *(
            row
            for make in BOTH
            for row in (
                (lambda make=make: make("data", tokenizer=tokenizer(XVal(2.0))), "another tokenizer"),
                (lambda make=make: make("data", tokenizer=object()), "no fingerprint"),
                (lambda make=make: make(["data", "other.parquet"]), "do not belong together"),
                (lambda make=make: make(["data", "less.parquet"]), "same columns: number_scaled is float in the one, missing in the other"),
                (lambda make=make: next(iter(DataLoader(make("data"), batch_size=2))), "collate_fn=NumberCollator.from_schema"),
            )
        ),
    ],
    TokenizerError: [
        (lambda: answers_only(encoded("5"), "gpt2", "is"), "str is neither a numtok.Tokenizer"),
        (lambda: NumberCollator.from_tokenizer(object(), 0, objective=None), "neither a numtok.Tokenizer nor a numtok.hf"),
        (lambda: blocks(block_size=4, separator="[NONE]", tokenizer=tokenizer()), "no token '[NONE]'"),
        (lambda: NumberCollator.from_tokenizer(tokenizer(), "<pad>", objective=None), "no token '<pad>'"),
    ],
    InputError: [
        (lambda: NumberDataset("none.parquet"), "none.parquet…no such file"),
        (lambda: NumberDataset("empty"), "holds no"),
        (lambda: NumberDataset("short.parquet"), "short.parquet"),
        (lambda: NumberDataset("text.parquet"), "neither a Parquet"),
        *((lambda make=make: make("s3://bucket/data"), "is in a store…copy it to this machine") for make in BOTH),
        (lambda: NumberDataset("damaged.parquet"), "damaged.parquet"),
        (lambda: list(IterableNumberDataset("damaged.parquet")), "damaged.parquet"),
        (lambda: NumberDataset(5), "int"),
        (lambda: NumberDataset([]), "no file to read: got an empty list"),
    ],
    IndexError: [
        *((lambda at=at: NumberDataset(encoded("1", "2"))[at], f"row {at} of") for at in (2, -3)),
        (lambda: NumberDataset(encoded("1", "2"), **BLOCKS)[9], "row 9 of"),
    ],
}  # fmt: skip


@errors.rows(ERRORS)
def test_errors(call, kind, told, fields, folder, monkeypatch):
    monkeypatch.chdir(folder)
    errors.check(call, kind, told, fields)
