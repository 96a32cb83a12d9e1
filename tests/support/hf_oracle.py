"""Check what stock transformers gives for text with numbers: the oracle of the drop-in tokenizer.

It shares nothing with ``numtok.hf`` but the places and values of the numbers. Every number is
replaced by characters that the text does not hold, one for each of the number's tokens; these are
added tokens of a stock copy of the source, which encodes the result. Ids are translated,
and offsets mapped back: those of a number's token cover the number, all others shift piece by
piece.
"""

from __future__ import annotations

import copy
import functools
import itertools
import math
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from hf_compare import attributes
from tokenizers import AddedToken

import numtok
from numtok.representations import END_NUM, NUM, SpelledOut, Subword, symbol_token
from numtok.representations.columns import numbers_from_floats

NEUTRAL = {"number_value": 1.0, "number_scaled": 1.0}  # every other stream is 0 beside numbers


@dataclass
class Place:
    """A number of a text: characters [start, stop), its value, what the representations say of it,
    and its tokens.
    """

    start: int
    stop: int
    value: float
    streams: dict[str, Any]
    tokens: list[str]
    per_token: list[int]
    canonical: str


@dataclass
class Leaf:
    """A string of the input, and the same with its numbers replaced.

    ``starts`` and ``stops`` take an offset in ``replaced`` at which a token starts or stops to the
    one in ``text``; ``owner`` says for each character of ``replaced`` which number it stands for,
    and as which of its tokens."""

    text: str
    places: list[Place]
    replaced: str = ""
    starts: list[int] = field(default_factory=lambda: [0])
    stops: list[int] = field(default_factory=lambda: [0])
    owner: list[tuple[int, int] | None] = field(default_factory=list)

    def append_text(self, start, stop):
        self.replaced += self.text[start:stop]
        for offset in range(start + 1, stop + 1):
            self.starts.append(offset)
            self.stops.append(offset)
            self.owner.append(None)

    def append_number(self, number, stand_ins):
        place = self.places[number]
        self.replaced += stand_ins
        for ordinal in range(len(stand_ins)):
            self.starts.append(place.start)  # of a later token of the same number
            self.stops.append(place.stop)
            self.owner.append((number, ordinal))
        self.starts[-1] = place.stop  # of what follows it


@dataclass
class Row:
    """An expected encoding: that of the stand-ins, and what is otherwise; ``numbers`` has for each
    token the place, and which of its tokens this is.
    """

    encoding: Any
    ids: list[int]
    tokens: list[str]
    offsets: list[tuple[int, int]]
    numbers: list[tuple[Place, int] | None]
    overflowing: list[Row]

    def __getattr__(self, name):
        return getattr(self.encoding, name)

    def stream(self, name):
        if name == "number_value":
            return [
                one[0].value if one is not None and one[1] == 0 else 1.0 for one in self.numbers
            ]
        if name == "number_mask":
            return [one is not None and one[1] == 0 for one in self.numbers]
        if name == "place_value":
            return [0 if one is None else one[0].per_token[one[1]] for one in self.numbers]
        some = next((one[0].streams[name] for one in self.numbers if one is not None), None)
        neutral = (
            np.full_like(some, NEUTRAL.get(name, 0)) if some is not None else NEUTRAL.get(name, 0)
        )
        return [neutral if one is None else one[0].streams[name] for one in self.numbers]


@dataclass
class Expected:
    """What a call should return: its data without streams, and the encodings."""

    data: dict[str, Any]
    rows: list[Row]
    single: bool  # one text, returned without the dimension of the batch


class Oracle:
    """Stock transformers for one source tokenizer and one setting of ``numtok.Tokenizer``."""

    def __init__(self, source, settings):
        self.source, self.settings = source, settings
        self.tokens = dict(settings.tokens)
        self.backend = copy.deepcopy(source.backend_tokenizer)
        self.backend.no_truncation()
        self.backend.no_padding()
        self.symbols = list(dict.fromkeys(token.lstrip(" ") for token in self.tokens))

    # Numbers
    # ----------------------------------------------------------------------------------------------------------------

    def places(self, texts, split_special_tokens=False):
        """The numbers of each text."""
        found = [[] for _ in texts]
        numbers = numtok.scan(texts, self.settings.grammar)
        if isinstance(self.settings.representations[0], Subword) or not len(numbers):
            return found
        kept = numbers.select(self._outside_added_tokens(texts, numbers, split_special_tokens))
        if not self.settings.carries_sign:
            kept = kept.without_sign()
        fits = np.ones(len(kept), np.bool_)
        for representation in self.settings.representations:
            if representation.overflow == "text":
                fits &= representation.fits(kept)
        kept = kept.select(fits)
        columns = characters(texts, kept), kept.to_float64().tolist(), *self._columns(kept)
        for row, span, *own in zip(kept.document.tolist(), *columns, strict=True):
            found[row].append(Place(*span, *own))
        return found

    def _outside_added_tokens(self, texts, numbers, split_special_tokens):
        """Which are not where the source itself sees one of its added tokens that holds a digit."""
        tokens = self.source.added_tokens_decoder.items()
        added = {number for number, token in tokens if re.search(r"\d", token.content)}
        self.backend.encode_special_tokens = split_special_tokens
        inside = []
        for encoding in self.backend.encode_batch(texts, add_special_tokens=False):
            spans = zip(encoding.ids, encoding.offsets, strict=True)
            inside.append([span for token, span in spans if token in added])
        spans = zip(numbers.document.tolist(), characters(texts, numbers), strict=True)
        return np.array(
            [
                not any(a < stop and start < b for a, b in inside[row])
                for row, (start, stop) in spans
            ]
        )

    def _columns(self, numbers):
        """(streams, tokens, values per token, canonical text) of each number."""
        first, count = self.settings.representations[0], len(numbers)
        if not isinstance(first, SpelledOut):
            streams = [{} for _ in range(count)]
            for representation in self.settings.representations:
                for name, column in representation.encode(numbers).items():
                    tensors = isinstance(column, pa.ExtensionArray)
                    dense = column.to_numpy_ndarray() if tensors else column.to_numpy(False)
                    for k in range(count):
                        streams[k][name] = dense[k]
            return streams, [[NUM]] * count, [[0]] * count, canonical(numbers.to_float64().tolist())
        spelled = first.encode(numbers)
        tokens, per_token = [], []
        for start, stop in itertools.pairwise(spelled.offsets.tolist()):
            names = [first.token_strings[symbol] for symbol in spelled.symbols[start:stop]]
            names = [name if name in self.tokens else symbol_token(name) for name in names]
            stream = np.zeros(stop - start, int)
            if spelled.stream is not None:
                stream = spelled.stream[start:stop]
            tokens.append([NUM, *names, END_NUM] if first.bracketed else names)
            per_token.append([0, *stream, 0] if first.bracketed else [*stream])
        return [{}] * count, tokens, per_token, first.decode(spelled).to_pylist()

    def strip_numbers(self, text, split_special_tokens=False):
        """The text with its numbers cut out, until it has none."""
        while places := self.places([text], split_special_tokens)[0]:
            for place in reversed(places):
                text = text[: place.start] + text[place.stop :]
        return text

    def extra_streams(self):
        """Names and numpy dtypes of the streams besides values and mask."""
        columns = [one.columns() for one in self.settings.representations]
        columns = itertools.chain(*map(dict.values, columns))
        return {column.name: np.dtype(column.value_type.to_pandas_dtype()) for column in columns}

    # Stock tokenizer with stand-ins
    # -------------------------------------------------------------------------------------------

    @functools.lru_cache(2)  # lives as long as the oracle  # noqa: B019
    def stock(self, base):
        """(a copy of the source that knows the stand-ins, their ids to ours, their ids to our
        tokens, symbols to stand-ins).
        """
        stand_in = {symbol: chr(base + k) for k, symbol in enumerate(self.symbols)}
        stock = copy.deepcopy(self.source)
        contents = {
            token: " " * token.startswith(" ") + stand_in[token.lstrip(" ")]
            for token in self.tokens
        }
        stock.add_tokens(
            [AddedToken(one, normalized=False, special=False) for one in contents.values()]
        )
        ids = {stock.convert_tokens_to_ids(content): token for token, content in contents.items()}
        return stock, {number: self.tokens[token] for number, token in ids.items()}, ids, stand_in

    def base(self, texts):
        """A run of characters from here on is in none of the texts."""
        used = {ord(character) for text in texts for character in text}
        count = len(self.symbols)
        return next(
            at
            for at in range(0x10FFFD - count, 0x100000, -count)
            if not used.intersection(range(at, at + count))
        )

    def leaf(self, text, places, stand_in):
        leaf, at = Leaf(text, places), 0
        for k, place in enumerate(places):
            leaf.append_text(at, place.start)
            leaf.append_number(k, "".join(stand_in[token] for token in place.tokens))
            at = place.stop
        leaf.append_text(at, len(text))
        return leaf

    def call(self, text, text_pair=None, sides=None, **options):
        """What ``tokenizer(text, text_pair, **options)`` should return; ``sides``: truncation_side
        and padding_side of the instance.

        Raises:
            Exception: whatever stock transformers raises.
        """
        texts = list(strings((text, text_pair)))
        stock, ids, _, stand_in = self.stock(self.base(texts))
        split = options.get("split_special_tokens")
        split = self.source.split_special_tokens if split is None else split
        places = self.places(texts, split)
        leaves = (self.leaf(*one, stand_in) for one in zip(texts, places, strict=True))
        both = [rebuild(one, lambda _: next(leaves)) for one in (text, text_pair)]
        pieces, batched = samples(*both, options.get("is_split_into_words", False))
        with attributes(stock, sides or {}):
            got = stock(*(rebuild(one, lambda leaf: leaf.replaced) for one in both), **options)
        of_row = range(len(got.encodings))
        overflowing = options.get("return_overflowing_tokens")
        if overflowing:
            of_row = np.asarray(got["overflow_to_sample_mapping"]).tolist()
        rows = [
            self._row(encoding, pieces[sample], ids)
            for encoding, sample in zip(got.encodings, of_row, strict=True)
        ]
        single = not (batched or overflowing or options.get("return_tensors"))
        data = dict(got)
        for name, own in (("input_ids", "ids"), ("offset_mapping", "offsets")):
            if name in data:
                data[name] = like(data[name], [getattr(row, own) for row in rows], single)
        return Expected(data, rows, single)

    def _row(self, encoding, pieces, ids, depth=0):
        offsets, numbers, tokens = [], [], []
        names = {id: token for token, id in self.tokens.items()}
        columns = ("tokens", "ids", "offsets", "sequence_ids", "word_ids")
        columns = (getattr(encoding, name) for name in columns)
        for token, number, place, sequence, word in zip(*columns, strict=True):
            piece = None if sequence is None else pieces[sequence]
            if isinstance(piece, list | tuple):
                piece = piece[word]
            tokens.append(names[ids[number]] if number in ids else token)
            if piece is not None:
                offsets.append((piece.starts[place[0]], piece.stops[place[1]]))
            else:
                offsets.append(place)
            owner = None if piece is None or number not in ids else piece.owner[place[1] - 1]
            numbers.append(None if owner is None else (piece.places[owner[0]], owner[1]))
        more = encoding.overflowing if depth == 0 else ()
        overflowing = [self._row(one, pieces, ids, 1) for one in more]
        ids = [ids.get(number, number) for number in encoding.ids]
        return Row(encoding, ids, tokens, offsets, numbers, overflowing)

    def decode(self, texts, row, numbers, **options):
        """The text of a row that came from ``call(texts)``, with these surfaces in place of the
        numbers; None: of the tokens themselves. Where ids do not tell whether a space stands before
        a number, one does, but for behind brackets and the like.
        """
        stock, _, _, stand_in = self.stock(self.base(texts))
        if numbers is None:
            decoded = str(stock.decode(row.encoding.ids, **options))
            return functools.reduce(
                lambda text, symbol: text.replace(stand_in[symbol], symbol), stand_in, decoded
            )
        once = [
            number
            for number, place in zip(row.encoding.ids, row.numbers, strict=True)
            if place is None or place[1] == 0
        ]
        surfaces, mark = iter(numbers), next(iter(stand_in.values()))
        glued, apart = (
            stock.encode(f"a{one}{mark}", add_special_tokens=False) for one in ("", " ")
        )
        space = " " if glued == apart else ""

        def surface(found):
            before = found.string[: found.start()][-1:]
            return ("" if before in set(" \n([{$/#-") | {""} else space) + next(surfaces)

        decoded = str(stock.decode(once, **options))
        return re.sub(f"[{''.join(stand_in.values())}]", surface, decoded)


def canonical(values):
    """Values as numtok writes them."""
    written = iter(
        numbers_from_floats(np.array([value for value in values if math.isfinite(value)]), "value")
        .format()
        .to_pylist()
    )
    return [next(written) if math.isfinite(value) else str(value) for value in values]


# Texts and rows in any nesting, as transformers takes and gives them


def characters(texts, numbers):
    """The numbers' places in characters."""
    raw = [text.encode() for text in texts]
    spans = zip(numbers.document, numbers.start, numbers.stop, strict=True)
    return [tuple(len(raw[row][:at].decode()) for at in span) for row, *span in spans]


def strings(value):
    """All strings in nested lists and tuples."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from strings(one)


def rebuild(value, change):
    """Nested lists and tuples with every leaf changed."""
    if isinstance(value, list | tuple):
        return type(value)([rebuild(one, change) for one in value])
    return None if value is None else change(value)


def samples(text, text_pair, is_split_into_words):
    """(for each sample its one or two sequences, whether it is a batch), by the rules of
    transformers.
    """
    nested = list | tuple
    batched = isinstance(text, nested)
    if is_split_into_words:
        batched = batched and bool(text) and isinstance(text[0], nested)
    if not batched:
        pair = text_pair.text if isinstance(text_pair, Leaf) else text_pair
        return [[text, text_pair] if pair else [text]], False
    if text_pair is not None:
        return [list(both) for both in zip(text, text_pair, strict=True)], True
    if not is_split_into_words:
        return [list(one) if isinstance(one, nested) else [one] for one in text], True
    pairs = [len(one) == 2 and all(isinstance(part, nested) for part in one) for one in text]
    return [list(one) if pair else [one] for one, pair in zip(text, pairs, strict=True)], True


def like(value, rows, single):
    """The rows in the form of ``value``: one row, a list, a numpy array or a torch tensor."""
    if isinstance(value, list):
        return rows[0] if single else rows
    if isinstance(value, np.ndarray) and value.dtype == object:  # rows of different lengths
        made = np.empty(value.shape, object)
        made[:] = [
            np.asarray(one, value[k].dtype).reshape(value[k].shape) for k, one in enumerate(rows)
        ]
        return made
    if isinstance(value, np.ndarray):
        return np.array(rows, value.dtype).reshape(value.shape)
    import torch

    return torch.tensor(rows, dtype=value.dtype).reshape(value.shape)
