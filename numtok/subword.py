"""The text between numbers to token ids.

In: rows of text, the places of the numbers to cut out, and the ids to put there. Out: token ids. The contract: the ids are those that the source
tokenizer gives to the text with every number replaced by an added token (``AddedToken(normalized=False, special=False)``), and for byte-level BPE
a number takes the space before it along, as a second form of that token. Two engines give the same ids:

- :class:`TokenizersEngine`, for every tokenizer: numbers are replaced by a character that does not occur in the text, which is the added token.
- :class:`GigatokenEngine`, for byte-level BPE, some fifty times faster: the numbers are cut out, see :mod:`numtok.joined`.
"""

from __future__ import annotations

import copy
import itertools
import json
import re
import sys
import warnings
from dataclasses import dataclass
from typing import Any, Protocol

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from numtok import buffers, joined
from numtok.errors import NumtokError, TokenizerError
from numtok.numbers import Numbers
from numtok.text import TextRows
from numtok.unicode_tables import flags

Ints = npt.NDArray[np.int64]
Ids = npt.NDArray[np.int32]
Config = dict[str, Any]  # a parsed tokenizer.json
SMALL_TEXT = 1 << 16

_jit = numba.njit(cache=True, nogil=True)


class EngineWarning(UserWarning):
    """The fast engine is not used, and why."""


@dataclass(frozen=True)
class NumberTokens:
    """The added tokens of numtok.

    Attributes:
        plain, spaced: ids of those that stand for a number, ``[NUM]`` and, if there are two forms, `` [NUM]``; -1 if there is none. For numbers
            without a frame, of one of the symbols that may begin them.
        hidden: ids of the others, ``[/NUM]`` and the symbols of spelled-out numbers: what looks like them in a text is ordinary text.
    """

    plain: int
    spaced: int = -1
    hidden: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Cuts:
    """The numbers to cut out, c of them, in order.

    Attributes:
        document: int32[c]. start, stop: int64[c], byte offsets within the document, without the space before.
        per_document: int64[documents + 1], offsets of each document's cuts.
        plain, spaced: int32, flat ids to put in place of each cut, in its form without and with the space.
        offsets: int64[c + 1] into both.
    """

    document: npt.NDArray[np.int32]
    per_document: Ints
    start: Ints
    stop: Ints
    plain: Ids
    spaced: Ids
    offsets: Ints

    @classmethod
    def of(cls, numbers: Numbers, plain: Ids, spaced: Ids, offsets: Ints) -> Cuts:
        """Cut out all these numbers."""
        return cls(numbers.document, numbers.per_document(), numbers.start, numbers.stop, plain, spaced, offsets)


@dataclass(frozen=True, eq=False)
class Encoded:
    """Token ids of n documents.

    Attributes:
        ids: int32[total]. offsets: int64[n + 1].
        positions: int64[c]: where in ``ids`` each cut's first id stands.
        spaced: bool[c]: whether the cut took the space before it along.
    """

    ids: Ids
    offsets: Ints
    positions: Ints
    spaced: npt.NDArray[np.bool_]


class Engine(Protocol):
    """Encodes text with numbers cut out."""

    name: str

    def encode(self, rows: TextRows, cuts: Cuts) -> Encoded: ...


def is_byte_level(config: Config) -> bool:
    """Whether this is byte-level BPE: every byte has a token, the pieces between added tokens are independent, and a space is a byte as any other."""
    return config["model"].get("type") == "BPE" and "ByteLevel" in _parts(config.get("pre_tokenizer"), "pretokenizers")


def _parts(part: Config | None, children: str) -> list[str]:
    """The types of a component and, if it is a sequence, of its members."""
    if part is None:
        return []
    if part["type"] == "Sequence":
        return [name for child in part[children] for name in _parts(child, children)]
    return [part["type"]]


def without_numbers(config: Config, tokens: NumberTokens, parse_special: bool) -> Config:
    """``config`` as the engines take it: no number tokens, no truncation or padding, and special tokens only if they are to be parsed."""
    config = copy.copy(config) | {"truncation": None, "padding": None}
    ours = {tokens.plain, tokens.spaced, *tokens.hidden}
    config["added_tokens"] = [
        token for token in config.get("added_tokens") or [] if token["id"] not in ours and (parse_special or not token["special"])
    ]
    return config


class TokenizersEngine:
    """Every tokenizer, by Hugging Face's ``tokenizers``: exact by construction, as each number is an added token of the very same tokenizer."""

    name = "tokenizers"

    def __init__(self, config: Config, tokens: NumberTokens, parse_special: bool = False) -> None:
        self.tokens = tokens
        self._config, self._parse_special = config, parse_special
        self._by_sentinel: dict[str, Any] = {}

    def encode(self, rows: TextRows, cuts: Cuts) -> Encoded:
        sentinel = self._unused_character(rows)
        needle = np.frombuffer(sentinel.encode(), np.uint8)
        buffer, offsets = _replace(rows.text, rows.offsets, rows.valid, cuts.document, cuts.start, cuts.stop, needle)
        texts = pa.LargeStringArray.from_buffers(len(rows), pa.py_buffer(offsets), pa.py_buffer(buffer)).to_pylist()
        tokenizer = self._tokenizer(sentinel)
        plain, spaced_token = _stand_ins(tokenizer, sentinel)
        encodings = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        lists = [encoding.ids for encoding in encodings]
        id_offsets = np.concatenate([[0], np.cumsum([len(ids) for ids in lists])]).astype(np.int64)
        flat = np.fromiter((token for ids in lists for token in ids), np.int32, int(id_offsets[-1]))
        spaced_form = flat == spaced_token
        places = np.flatnonzero((flat == plain) | spaced_form)
        if len(places) != len(cuts.document):
            raise NumtokError(f"the tokenizer returned {len(places)} number tokens for {len(cuts.document)} numbers; please report this tokenizer")
        spaced = spaced_form[places]
        ids, offsets_out, positions = _insert(flat, id_offsets, places, np.where(spaced, 1, 0), cuts.plain, cuts.spaced, cuts.offsets)
        return Encoded(ids, offsets_out, positions, spaced)

    def decode(self, ids: list[int], numbers: list[str]) -> str:
        """Text of ids; the number tokens, in order, become ``numbers``. Special tokens are left out of the text only by the decoder itself."""
        for code in range(0xE000, 0xE010):  # another one if the text itself has it
            tokenizer = self._tokenizer(chr(code))
            renamed = dict(zip((self.tokens.plain, self.tokens.spaced), _stand_ins(tokenizer, chr(code)), strict=True))
            pieces = str(tokenizer.decode([renamed.get(token, token) for token in ids], skip_special_tokens=False)).split(chr(code))
            if len(pieces) == len(numbers) + 1:
                return "".join(piece + number for piece, number in zip(pieces, [*numbers, ""], strict=True))
        raise NumtokError(f"the ids do not hold the {len(numbers)} number tokens they should, or too many private-use characters")

    def special_frame(self) -> tuple[list[int], list[int]]:
        """Ids that the post-processor puts before and after a text."""
        encoding = self._tokenizer("\ue000").encode("a", add_special_tokens=True)
        inside = [k for k, special in enumerate(encoding.special_tokens_mask) if not special]
        if not inside:
            raise TokenizerError("the tokenizer gives no token for 'a', so the places of its special tokens cannot be told")
        return encoding.ids[: inside[0]], encoding.ids[inside[-1] + 1 :]

    def first_tokens(self, text: str, characters: list[int]) -> list[int]:
        """The token in which each character lies; for a character without one, the next that has."""
        encoding = self._tokenizer("\ue000").encode(text, add_special_tokens=False)
        found = []
        for character in characters:
            token = None
            while token is None and character < len(text):
                token = encoding.char_to_token(character)
                character += 1
            found.append(len(encoding.ids) - 1 if token is None else token)
        return found

    def _unused_character(self, rows: TextRows) -> str:
        """A private-use character that is not in the text."""
        for code in range(0xE000, 0xF8FF):
            if not pc.any(pc.match_substring(rows.array, chr(code))).as_py():
                return chr(code)
        raise NumtokError("the text uses every private-use character; encode it in smaller batches")

    def _tokenizer(self, sentinel: str) -> Any:
        if sentinel not in self._by_sentinel:
            import tokenizers

            config = without_numbers(self._config, self.tokens, parse_special=True)
            config["added_tokens"] = self._added_tokens(sentinel, max((token["id"] for token in config["added_tokens"]), default=-1))
            try:
                tokenizer = tokenizers.Tokenizer.from_str(json.dumps(config))
            except Exception as error:  # it knows no narrower class
                raise TokenizerError(f"tokenizers cannot load it: {error}") from error
            tokenizer.encode_special_tokens = not self._parse_special
            self._by_sentinel[sentinel] = tokenizer
        return self._by_sentinel[sentinel]

    def _added_tokens(self, sentinel: str, last: int) -> list[Config]:
        """The added tokens with the sentinel for our stand-ins; ``last`` is the largest id of the source's.

        As `tokenizers` numbers them anew, the hidden ones before that stay, under a name with a noncharacter, which no text has. Those behind,
        tens of thousands perhaps, are left out, so that the stand-ins may get other ids than they have.
        """
        contents = {self.tokens.plain: sentinel, self.tokens.spaced: " " + sentinel}
        hidden = set(self.tokens.hidden)
        found = []
        for token in self._config["added_tokens"]:
            number = token["id"]
            if number in contents:
                found.append(token | {"content": contents[number]})
            elif number not in hidden:
                found.append(token)
            elif number < last:
                found.append(token | {"content": f"{sentinel}\ufdd0{number}"})
        return found


def _stand_ins(tokenizer: Any, sentinel: str) -> tuple[int, int]:
    """Ids of the sentinel and of its form with a space; -1 if there is none."""
    ids = (tokenizer.token_to_id(form) for form in (sentinel, " " + sentinel))
    plain, spaced = (-1 if number is None else int(number) for number in ids)
    return plain, spaced


class GigatokenEngine:
    """Byte-level BPE by gigatoken.

    Args:
        config: the source's tokenizer.json, number tokens included.

    Raises:
        TokenizerError: if the tokenizer is not one this engine can encode exactly; the message says why.
    """

    name = "gigatoken"

    def __init__(self, config: Config, tokens: NumberTokens, parse_special: bool = False) -> None:
        import gigatoken

        if not is_byte_level(config):
            raise TokenizerError(f"it is not byte-level BPE but {config['model'].get('type')}")
        source, config = config, without_numbers(config, tokens, parse_special)
        _check_added_tokens(config["added_tokens"], two_forms=tokens.spaced >= 0)
        if not parse_special:
            unread = [token["content"] for token in source["added_tokens"] or [] if token["special"]]
            _check_unread_tokens(unread, [token["content"] for token in config["added_tokens"]], two_forms=tokens.spaced >= 0)
        self._two_forms = tokens.spaced >= 0
        self.slow = TokenizersEngine(source, tokens, parse_special)
        try:
            self._complete = gigatoken.Tokenizer.from_json(json.dumps(config))
            bare = config | {"added_tokens": [], "normalizer": None}
            self._bare = gigatoken.Tokenizer.from_json(json.dumps(bare))
            vocabulary = self._bare.vocab
        except BaseException as error:  # a Rust panic is not an Exception
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            raise TokenizerError(f"gigatoken cannot load it: {error}") from error
        vocabulary = vocabulary | {token["id"]: token["content"].encode() for token in config["added_tokens"]}
        longest = max(map(len, vocabulary.values()))
        self.widths = np.zeros(max(vocabulary) + 1, np.uint8 if longest < 256 else np.uint16)  # 8 bits stay in the first-level cache
        for token, content in vocabulary.items():
            self.widths[token] = len(content)
        self._joins = _pre_tokenizes_like_gpt2(config)
        self._unsafe = flags("nfc_unsafe") if config.get("normalizer") else np.empty(0, np.uint8)
        self.normalizes = config.get("normalizer") is not None
        self._runs_of_spaces = any(token["content"].strip(" ") == "" for token in config["added_tokens"])
        words = [token["content"] for token in config["added_tokens"] if token["content"].strip(" ")]
        self._added = _alternatives(words)

    def encode(self, rows: TextRows, cuts: Cuts) -> Encoded:
        first, last, count = int(rows.offsets[0]), int(rows.offsets[-1]), len(cuts.document)
        text, offsets = buffers.empty(last - first, np.uint8), rows.offsets - first
        text[:] = rows.text[first:last]
        kinds, ends = buffers.empty(2 * count + len(rows), np.uint8), buffers.empty(2 * count + len(rows) + 1, np.int64)
        ends[0] = 0
        begins, stops, spaced = buffers.empty(count, np.int64), buffers.empty(count, np.int64), buffers.empty(count, np.bool_)
        segments, document_segments, delicate_text = joined.divide(
            text,
            offsets,
            rows.valid,
            cuts.per_document,
            cuts.start,
            cuts.stop,
            self._delicate_places(text),
            self._two_forms,
            self._joins,
            joined.ASCII_KINDS,
            flags("number"),
            flags("space"),
            kinds,
            ends[1:],
            begins,
            stops,
            spaced,
        )
        kinds, starts = kinds[:segments], ends[: segments + 1]
        ids, id_offsets = _gigatoken_ids(self._bare if self._joins else self._complete, text, starts)
        rest_starts = buffers.offsets_of(np.diff(starts)[kinds == joined.DELICATE])
        rest_ids, rest_offsets = _gigatoken_ids(self._complete, delicate_text, rest_starts)
        out = buffers.empty(len(ids) + len(rest_ids) + len(cuts.plain), np.int32)
        out_offsets, positions = buffers.empty(len(rows) + 1, np.int64), buffers.empty(count, np.int64)
        filled, ok = joined.splice(
            kinds,
            document_segments,
            starts,
            begins,
            stops,
            spaced,
            ids,
            id_offsets,
            rest_ids,
            rest_offsets,
            self.widths if self._joins else self.widths[:0],
            cuts.plain,
            cuts.spaced,
            cuts.offsets,
            out,
            out_offsets,
            positions,
        )
        if not ok:
            raise NumtokError("gigatoken did not keep numbers apart from the text; use engine='tokenizers' and please report this tokenizer")
        return Encoded(out[:filled], out_offsets, positions, spaced)

    def has_unsafe(self, rows: TextRows) -> npt.NDArray[np.bool_]:
        """bool[rows]: whether the normalizer may change the row."""
        places = _delicate_places(rows.text[: int(rows.offsets[-1])], False, flags("nfc_unsafe"))
        counts = np.searchsorted(places, rows.offsets)
        return np.asarray(np.diff(counts) > 0)

    def _delicate_places(self, text: npt.NDArray[np.uint8]) -> Ints:
        if not self._joins:
            return np.empty(0, np.int64)
        places: Ints = _delicate_places(text, self._runs_of_spaces, self._unsafe)
        if self._added:
            places = np.sort(np.concatenate([places, [match.start() for match in self._added.finditer(text.data)]])).astype(np.int64)
        return places


def _delicate_places(text: npt.NDArray[np.uint8], double_space: bool, unsafe: npt.NDArray[np.uint8]) -> Ints:
    if not double_space and not len(unsafe):
        return np.empty(0, np.int64)
    places: Ints = joined.delicate_places(text, double_space, unsafe, buffers.empty(len(text) // 64 + 1, np.uint64))
    return places


def _gigatoken_ids(tokenizer: Any, text: npt.NDArray[np.uint8], offsets: Ints) -> tuple[npt.NDArray[np.uint32], Ints]:
    """(ids, offsets) of documents in one buffer, without copying it."""
    import awkward as ak

    if len(text) <= SMALL_TEXT:  # lists then cost less than awkward arrays
        data = text.tobytes()
        lists = tokenizer.encode_batch_list([data[a:b] for a, b in itertools.pairwise(offsets.tolist())], parallel=False)
        ids = np.fromiter(itertools.chain.from_iterable(lists), np.uint32)
        return ids, buffers.offsets_of(np.fromiter(map(len, lists), np.int64, len(lists)))
    characters = ak.contents.NumpyArray(text, parameters={"__array__": "char"})
    documents = ak.contents.ListOffsetArray(ak.index.Index64(offsets), characters, parameters={"__array__": "string"})
    layout = tokenizer.encode_batch(ak.Array(documents), parallel=False).layout
    return np.asarray(layout.content.data), np.asarray(layout.offsets.data)


def _alternatives(words: list[str]) -> re.Pattern[bytes] | None:
    """A pattern that finds any of the words, the longest first."""
    if not words:
        return None
    return re.compile(b"|".join(re.escape(word.encode()) for word in sorted(words, key=len, reverse=True)))


def _check_added_tokens(added: list[Config], two_forms: bool) -> None:
    """Refuse added tokens whose matching depends on more than the piece of text they stand in."""
    for token in added:
        if token["lstrip"] or token["rstrip"] or token["single_word"]:
            raise TokenizerError(f"its added token {token['content']!r} strips spaces or wants whole words")
        if two_forms and not token["normalized"] and token["content"].endswith(" "):
            raise TokenizerError(f"its added token {token['content']!r} may take the space before a number")


def _check_unread_tokens(unread: list[str], added: list[str], two_forms: bool) -> None:
    """Refuse special tokens that are not parsed but still hide another added token: ``tokenizers`` passes over the whole of them."""
    prefixes = {content[:length] for content in added for length in range(1, len(content) + 1)}
    for content in unread:
        ends = two_forms and content.endswith(" ")  # hides the space of the number after it
        if ends or any(content[start:] in prefixes for start in range(1, len(content))) or any(other in content for other in added):
            raise TokenizerError(f"its special token {content!r} overlaps another added token")


def _pre_tokenizes_like_gpt2(config: Config) -> bool:
    """Whether cuts may be joined: GPT-2's own pre-tokenizer, no more than NFC before it, nothing unusual in the model."""
    pre_tokenizer, normalizer, model = config["pre_tokenizer"], config.get("normalizer"), config["model"]
    return (
        pre_tokenizer["type"] == "ByteLevel"
        and not pre_tokenizer["add_prefix_space"]
        and pre_tokenizer.get("use_regex", True)
        and (normalizer is None or normalizer == {"type": "NFC"})
        and not any(model.get(option) for option in ("dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"))
    )


def first_tokens(engine: Engine, encoded: Encoded, numbers: Numbers) -> Ints:
    """int64[n]: position in ``encoded.ids`` of the token in which each number begins, for text encoded without cuts."""
    rows, per_document = numbers.rows, numbers.per_document()
    if isinstance(engine, GigatokenEngine):
        places, settled = _walk(encoded.ids, encoded.offsets, rows.offsets, per_document, numbers.start, engine.widths)
        if engine.normalizes:
            settled &= ~engine.has_unsafe(rows)
        slow = engine.slow
    else:
        places, settled = np.empty(len(numbers), np.int64), np.zeros(len(rows), np.bool_)
        slow = engine
    for row in np.flatnonzero(~settled & (np.diff(per_document) > 0)):
        text = rows.array[int(row)].as_py()
        encoded_text = text.encode()
        which = slice(per_document[row], per_document[row + 1])
        characters = [len(encoded_text[:start].decode()) for start in numbers.start[which]]
        places[which] = np.array(slow.first_tokens(text, characters)) + encoded.offsets[row]
    return places


@_jit
def _walk(ids, offsets, text_offsets, per_document, start, widths):  # type: ignore[no-untyped-def]
    """(places, bool[rows]: whether the tokens' widths add up to the row's bytes)."""
    places = np.empty(start.size, np.int64)
    settled = np.ones(offsets.size - 1, np.bool_)
    for row in range(offsets.size - 1):
        at, number = 0, per_document[row]
        for k in range(offsets[row], offsets[row + 1]):
            at += widths[ids[k]]
            while number < per_document[row + 1] and start[number] < at:
                places[number] = k
                number += 1
        settled[row] = at == text_offsets[row + 1] - text_offsets[row]
    return places, settled


# Text in which tokenizers that are nearly alike differ: white space, contractions, scripts, marks, emoji, code, and numbers beside all of them.
SELF_CHECK = [
    "The mass is -1.5e3 kg, i.e. about 3,300 pounds; it's 10km away.\n\n5 more\t\t6\r\n 7  8   9",
    "  leading and trailing   \n \n  \t ",
    "don't DON'T we'll we've I'd 1990's '5' 'll'5's",
    "naïve café\u0301 re\u0301sume\u0301 5\u0301 Ångström Å 3½ ²5 10² x₂ 5\u00a06\u2009000",
    "今年は2020年5月です。温度-5度 Привет 7 мир! שלום 3 عدد ٤٢ ไทย 9",
    "🙂5🙂 👩‍👩‍👧 1️⃣ \u200b5\u200b \ufeff6 \x00 7 \x7f",
    "for (i=0; i<10; ++i) { a[i] = 0x1F + 1e-9; } // v1.2.3 192.168.0.1 __x_3__",
    "[100,200,300] (1,234) $5.00 -$3 10-20 3--2 =+3 1/2 10^6 10x6 50% #7 @8 & ~9",
    "\n5", "\n\n5", " \n 5", "a  5", "a\u00a05", "5", " 5", "5 ", "\u30005", "", "a\u2028\u20285",
    "WWW.HTTP.com/A_b-C?d=1&e=22#f33 ALLCAPS123 camelCase4Thing",
]  # fmt: skip


def make_engine(config: Config, tokens: NumberTokens, engine: str = "auto", parse_special: bool = False) -> Engine:
    """The engine to use: gigatoken where it gives the same ids, else tokenizers.

    Args:
        engine: ``"auto"``, ``"gigatoken"`` or ``"tokenizers"``.

    Raises:
        TokenizerError: for another engine, or ``"gigatoken"`` where it cannot be used.
    """
    if engine not in ("auto", "gigatoken", "tokenizers"):
        raise TokenizerError(f"engine={engine!r} is unknown; use 'auto', 'gigatoken' or 'tokenizers'")
    if engine == "tokenizers":
        return TokenizersEngine(config, tokens, parse_special)
    try:
        fast = GigatokenEngine(config, tokens, parse_special)
        _compare(fast, fast.slow, tokens)
        return fast
    except NumtokError as error:
        if engine == "gigatoken":
            raise TokenizerError(f"engine='gigatoken' cannot be used for this tokenizer: {error}") from error
        if is_byte_level(config):
            warnings.warn(f"using the slower engine 'tokenizers', because {error}", EngineWarning, stacklevel=_level_of_caller())
        return TokenizersEngine(config, tokens, parse_special)


def _level_of_caller() -> int:
    """The ``stacklevel`` at which the function that calls this one warns about the code that called numtok."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in ("numtok", "functools"):
        frame, level = frame.f_back, level + 1
    return level


def _compare(fast: Engine, slow: Engine, tokens: NumberTokens) -> None:
    """Raise TokenizerError if the engines differ on SELF_CHECK."""
    from numtok.scan import scan

    numbers = scan(SELF_CHECK)
    if tokens.plain < 0:  # numbers stay text
        numbers = numbers.select(np.empty(0, np.int64))
    count = len(numbers)
    plain, spaced = np.full(count, tokens.plain, np.int32), np.full(count, tokens.spaced, np.int32)
    cuts = Cuts.of(numbers, plain, spaced, np.arange(count + 1))
    got, expected = fast.encode(numbers.rows, cuts), slow.encode(numbers.rows, cuts)
    if not np.array_equal(got.offsets, expected.offsets) or not np.array_equal(got.ids, expected.ids):
        rows = zip(np.split(got.ids, got.offsets[1:-1]), np.split(expected.ids, expected.offsets[1:-1]), SELF_CHECK, strict=True)
        text = next(text for a, b, text in rows if not np.array_equal(a, b))
        raise TokenizerError(f"gigatoken gives other ids than tokenizers for {text!r}")


@_jit
def _replace(text, offsets, valid, document, start, stop, needle):  # type: ignore[no-untyped-def]
    """(buffer, offsets) of the text with every cut replaced by ``needle``; null rows become empty."""
    rows = offsets.size - 1
    out = np.empty(offsets[-1] - offsets[0] + document.size * needle.size, np.uint8)
    out_offsets = np.empty(rows + 1, np.int64)
    out_offsets[0] = 0
    filled, cut = 0, 0
    for row in range(rows):
        at = offsets[row]
        end = offsets[row + 1] if valid[row] else at
        while cut < document.size and document[cut] == row:
            for k in range(at, offsets[row] + start[cut]):
                out[filled] = text[k]
                filled += 1
            for k in range(needle.size):
                out[filled] = needle[k]
                filled += 1
            at = offsets[row] + stop[cut]
            cut += 1
        for k in range(at, end):
            out[filled] = text[k]
            filled += 1
        out_offsets[row + 1] = filled
    return out[:filled], out_offsets


@_jit
def _insert(ids, offsets, places, form, plain, spaced, insert_offsets):  # type: ignore[no-untyped-def]
    """``ids`` with the one id at each place replaced by that cut's ids; (ids, offsets, positions)."""
    out = np.empty(ids.size - places.size + plain.size, np.int32)
    out_offsets = np.empty(offsets.size, np.int64)
    out_offsets[0] = 0
    positions = np.empty(places.size, np.int64)
    filled, cut = 0, 0
    for row in range(offsets.size - 1):
        for k in range(offsets[row], offsets[row + 1]):
            if cut < places.size and places[cut] == k:
                positions[cut] = filled
                for m in range(insert_offsets[cut], insert_offsets[cut + 1]):
                    out[filled] = spaced[m] if form[cut] else plain[m]
                    filled += 1
                cut += 1
            else:
                out[filled] = ids[k]
                filled += 1
        out_offsets[row + 1] = filled
    return out, out_offsets, positions
