"""Offsets on the quick way: where each token stands, from the bytes that it covers and the spaces
that a post-processor trims, or from the words that it is of. The general way encodes the few rows
that are not certain.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from transformers import PreTrainedTokenizerFast

from numtok.arrays.text_rows import TextRows
from numtok.engines.interface import steps_of
from numtok.engines.offsets import TokenForms, token_spans
from numtok.hf.backend import BackendState, state_of
from numtok.hf.general import Call, encode_generally
from numtok.numbers.numbers import Numbers
from numtok.tokenizer import schema

Ints = npt.NDArray[np.int64]
KNOWN = {"ByteLevel", "RobertaProcessing", "TemplateProcessing", "BertProcessing"}


def trims_spaces(post_processor: Any) -> bool | None:
    """Whether a post-processor leaves the spaces out with which tokens begin and end; None if it
    does something else to offsets.
    """
    state = state_of(post_processor)
    found = [] if state is None else steps_of(json.loads(state), "processors")
    if not KNOWN.issuperset(step["type"] for step in found):
        return None
    trims = [step for step in found if step.get("trim_offsets")]
    # the latter keeps some of the first spaces
    if len(trims) > 1 or any(step["add_prefix_space"] for step in trims):
        return None
    return bool(trims)


def offset_mapping(
    tokenizer: PreTrainedTokenizerFast, state: BackendState, texts: list[str], batch: pa.RecordBatch
) -> Ints | None:
    """int64[t, 2] of all tokens of the texts; None if the general way must tell."""
    forms, trims = state.token_forms, trims_spaces(tokenizer.backend_tokenizer.post_processor)
    if trims is None or not (state.one_token or state.numbers_stay):
        return None
    rows = TextRows.of(texts)
    numbers = state.numtok.finder.numbers(rows, parse_special=True)
    if state.numbers_stay:
        numbers = numbers.select(np.empty(0, np.int64))
    if forms is None:
        return None if trims else _mapping_by_words(state, rows, numbers, batch)
    ids, offsets = schema.flat(batch.column("input_ids"))
    tokens = schema.number_places(batch)[2] if len(numbers) else np.empty(0, np.int64)
    values = ids.to_numpy()
    spans = token_spans(values, offsets, rows, numbers, tokens, forms)
    mapping = np.stack([spans.starts, spans.stops], axis=1)
    if trims:
        _trim(mapping, values, forms)
    for row in np.flatnonzero(~spans.known).tolist():
        options = {"add_special_tokens": False, "return_offsets_mapping": True, "verbose": False}
        told = encode_generally(tokenizer, state, Call(texts[row], None, False, options))
        spans_of_row = np.array(told["offset_mapping"]).reshape(-1, 2)
        mapping[offsets[row] : offsets[row + 1]] = spans_of_row
    return mapping


def _mapping_by_words(
    state: BackendState, rows: TextRows, numbers: Numbers, batch: pa.RecordBatch
) -> Ints | None:
    _, slots, _ = state.numtok.encode_numbers(numbers)
    mapping = state.numtok.engine_for(parse_special=True).spans(rows, slots)
    tokens = len(schema.flat(batch.column("input_ids"))[0])
    return mapping if mapping is not None and len(mapping) == tokens else None


def _trim(mapping: Ints, ids: npt.NDArray[np.int32], forms: TokenForms) -> None:
    """Leave the spaces out with which tokens begin and end."""
    mapping[:, 0] = np.minimum(mapping[:, 0] + forms.leading[ids], mapping[:, 1])
    mapping[:, 1] = np.maximum(mapping[:, 1] - forms.trailing[ids], mapping[:, 0])
