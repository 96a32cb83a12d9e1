"""Numbers and token ids to a record batch with one row per document; its inverse is
:mod:`numtok.tokenizer.from_batch`.

In: the numbers that become tokens, and what an engine made of the text between them. Out: first,
    what to put into the text for the numbers (:class:`NumberTokensInText`); then, with special
    tokens around each document if they are wanted, the columns of ``FORMAT.md``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from numtok.arrays import memory
from numtok.arrays.kernels import kernel
from numtok.engines.interface import Encoded, Engine, NumberTokens, Slots
from numtok.numbers.numbers import Numbers
from numtok.representations import Representation, SingleToken, Spelled, SpelledOut
from numtok.tokenizer import schema
from numtok.tokenizer.spelling import Spelling, symbol_stream, token_ids

Columns = dict[str, Any]


class NumberTokensInText(NamedTuple):
    """What stands for n numbers.

    Attributes:
        columns: one value per number each.
        slots: the places in the text, and the tokens that are put there.
        spelled: the symbols, if numbers are spelled out.
    """

    columns: Columns
    slots: Slots
    spelled: Spelled | None


def no_slots(numbers: Numbers) -> Slots:
    """None of the numbers gets tokens of its own: their documents are encoded as they are."""
    nothing = np.empty(0, np.int32)
    return Slots.of(numbers.select(nothing), nothing, nothing, np.zeros(1, np.int64))


def number_tokens(
    numbers: Numbers,
    representations: Sequence[Representation],
    spelling: Spelling | None,
    tokens: NumberTokens,
) -> NumberTokensInText:
    """What stands for the numbers in the text and beside it."""
    first = representations[0]
    if first.stays_text:
        return NumberTokensInText({}, no_slots(numbers), None)
    if spelling is not None and isinstance(first, SpelledOut):
        spelled = first.encode(numbers)
        plain, spaced, offsets = token_ids(spelled, spelling)
        return NumberTokensInText({}, Slots.of(numbers, plain, spaced, offsets), spelled)
    columns: Columns = {}
    for representation in representations:
        if isinstance(representation, SingleToken):
            columns |= representation.encode(numbers)
    plain, spaced = (
        memory.full(len(numbers), token, np.int32) for token in (tokens.plain, tokens.spaced)
    )
    return NumberTokensInText(
        columns, Slots.of(numbers, plain, spaced, np.arange(len(numbers) + 1)), None
    )


def encode_between(
    engine: Engine, numbers: Numbers, in_text: NumberTokensInText, first: Representation
) -> tuple[Encoded, Columns]:
    """(ids of the documents with the numbers in them, all columns of the representations)."""
    encoded = engine.encode(numbers.rows, in_text.slots)
    if first.stays_text:
        return dataclasses.replace(encoded, positions=engine.first_tokens(encoded, numbers)), {}
    stream = symbol_stream(first, in_text.spelled, encoded.positions, len(encoded.ids))
    return encoded, in_text.columns | ({} if stream is None else {stream[0]: stream[1]})


def add_frame(
    encoded: Encoded,
    columns: Columns,
    numbers: Numbers,
    frame: tuple[list[int], list[int]],
    per_token: Collection[str],
) -> tuple[Encoded, Columns]:
    """With the special tokens of ``frame`` before and after each valid document; 0 there in the
    columns with one value per token.
    """
    before, after = frame
    lengths = np.where(numbers.rows.valid, len(before) + len(after), 0)
    shift = np.concatenate([[0], np.cumsum(lengths)])
    offsets = encoded.offsets + shift
    ids = np.empty(offsets[-1], np.int32)
    places = np.arange(len(encoded.ids)) + np.repeat(
        shift[:-1] + len(before), np.diff(encoded.offsets)
    )
    ids[places] = encoded.ids
    for row in np.flatnonzero(numbers.rows.valid):
        ids[offsets[row] : offsets[row] + len(before)] = before
        ids[offsets[row + 1] - len(after) : offsets[row + 1]] = after
    widened = dict(columns)
    for name in set(per_token) & set(columns):
        widened[name] = np.zeros(len(ids), columns[name].dtype)
        widened[name][places] = columns[name]
    positions = encoded.positions + shift[numbers.document] + len(before)
    return dataclasses.replace(encoded, ids=ids, offsets=offsets, positions=positions), widened


def is_large(encoded: Encoded, nbytes: int) -> bool:
    """Whether lists of so many ids, or strings of ``nbytes``, need 64-bit offsets."""
    return max(len(encoded.ids), nbytes) > schema.LIST_LIMIT


def assemble(
    numbers: Numbers,
    encoded: Encoded,
    columns: Columns,
    described: pa.Schema,
    per_token: Collection[str],
) -> pa.RecordBatch:
    """The record batch of a schema, all but its column ``text``."""
    if "text" in described.names:
        described = described.remove(described.get_field_index("text"))
    index = memory.empty(len(numbers), np.int32)
    _positions_in_document(encoded.positions, encoded.offsets, numbers.document, index)
    columns = {
        "input_ids": encoded.ids,
        "number_index": index,
        "number_value": numbers.to_float64(),
        **columns,
    }
    if "number_text" in described.names:
        columns["number_text"] = numbers.text().cast(pa.string())
    per_document, arrays = numbers.per_document(), []
    for field in described:
        offsets = encoded.offsets if field.name in per_token else per_document
        large = pa.types.is_large_list(field.type)
        arrays.append(
            schema.list_array(
                columns[field.name], offsets, field.type.value_type, numbers.rows.valid, large
            )
        )
    return pa.RecordBatch.from_arrays(arrays, schema=described)


def with_text(
    batch: pa.RecordBatch, texts: pa.Array, decoded: pa.Array, field: pa.Field
) -> pa.RecordBatch:
    """With the texts that ids and number surfaces do not give back, because the source tokenizer
    normalises; null for the others.
    """
    import pyarrow.compute as pc

    texts = texts.cast(pa.large_string())
    same = pc.equal(
        decoded.cast(pa.large_string()), texts
    )  # null where there is no text, and so is the result
    return batch.append_column(
        field, pc.if_else(same, pa.nulls(len(texts), pa.large_string()), texts).cast(field.type)
    )


@kernel
def _positions_in_document(positions, offsets, document, out):  # type: ignore[no-untyped-def]
    for i in range(positions.size):
        out[i] = positions[i] - offsets[document[i]]
