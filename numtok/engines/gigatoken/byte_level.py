"""The engine for byte-level BPE: gigatoken, some fifty times faster than ``tokenizers``, with the
same ids.

Where the pre-tokenizer is a known one, rows are encoded whole, with a digit in place of each number
(:mod:`numtok.engines.gigatoken.stand_ins`). Where it is not, each chunk of text between two numbers
is a document of its own (:mod:`numtok.engines.chunks`).
"""

from __future__ import annotations

import functools
import itertools
import unicodedata
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory
from numtok.arrays.bitmarks import ONE, SIXTY_THREE, byte_ranges, count_marks, lowest_bit, marks_of
from numtok.arrays.cached import cached_property
from numtok.arrays.kernels import kernel
from numtok.arrays.text_rows import TextRows
from numtok.arrays.unicode_classes import flags
from numtok.arrays.utf8 import decode
from numtok.engines.chunks import Tokens, chunks_between, interleave, joined
from numtok.engines.config import Config, Model, byte_of_character, regex_of, without_numbers
from numtok.engines.engine import Encoded, Engine, Ints, Mask, NumtokTokens, Slots
from numtok.engines.gigatoken.pool import GigatokenPool, find_first_tokens, pool_of, widths_of
from numtok.engines.gigatoken.stand_ins import Rules, Sources, classes, put_in, write
from numtok.engines.special_rows import any_of, spans_in_rows
from numtok.errors import TokenizerError
from numtok.numbers.numbers import Numbers

Bytes = npt.NDArray[np.uint8]

MAY_BE_UNSAFE = byte_ranges((0xCA, 0xFF))  # first bytes from U+0280 on
SPACES = byte_ranges((0x20, 0x20))
UNUSUAL = (  # options of a model
    "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback",
)  # fmt: skip
NEVER_IN_UTF8 = {0xC0, 0xC1, *range(0xF5, 0x100)}
MANY_RUNS = 1 << 10  # one in so many bytes: then a tokenizer that reads them costs less
# control characters, and bytes of planes of Unicode that have no characters
NEVER_NORMALIZED_TO = {*range(0x20), 0x7F, 0xF1, 0xF2}

_CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (
    _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + _SPACES
)
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
GPT4O = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_CONTRACTIONS}?|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_CONTRACTIONS}?"
    rf"|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACES}"
)
PATTERNS = (GPT2, LLAMA3, QWEN2, GPT4O)
# behavior and invert of a Split by a pattern that leaves nothing between its matches
ALL_MATCHES = (("Isolated", False), ("Removed", True))


class ByteLevelEngine:
    """Byte-level BPE by gigatoken; TokenizerError if it cannot encode the tokenizer exactly.

    ``unread``: names of added tokens that gigatoken would match otherwise, and bytes without a
    token: rows that hold one are not to be encoded with this engine. ``slow`` returns the
    engine with the same ids for what gigatoken cannot tell.
    """

    name = "gigatoken"

    def __init__(
        self,
        config: Config,
        tokens: NumtokTokens,
        parse_special: bool,
        slow: Callable[[], Engine],
    ) -> None:
        delicate = _delicate_tokens(config, tokens, parse_special)
        source, config = config, without_numbers(config, tokens, parse_special)
        added = [token for token in config["added_tokens"] if token not in delicate]
        config = _without_idle_fallback(config | {"added_tokens": added})
        config, missing = _with_every_byte(config, source)
        self.unread = [*(token["content"].encode() for token in delicate), *missing]
        self._slow, self._config, self._two_forms = slow, config, tokens.spaced >= 0
        is_cut_at_digits = _is_usual(config) and cuts_at_digits(config["pre_tokenizer"])
        words = [token for token in added if not _is_run(token)]
        runs = {len(token["content"]) for token in added if _is_run(token)}
        longest = max(runs, default=0)
        self._longest_run = longest if runs == {*range(2, longest + 1)} else 1
        vocabulary = (self._bare if is_cut_at_digits else self._complete).vocab
        self._rules = Rules(self._two_forms, 0, classes()) if is_cut_at_digits else None
        added_bytes = {token["id"]: token["content"].encode() for token in added}
        self.widths = widths_of(vocabulary | added_bytes)
        self.normalizes = config.get("normalizer") is not None
        self._unsafe = self._by_tokenizers = flags("unsettled")
        if self.normalizes:
            self._unsafe = flags("nfc_unsafe", "unsettled")
            self._by_tokenizers = flags("nfc_newer", "unsettled")
        # gigatoken does not look for them in what the normalizer makes of the text
        if any(token["normalized"] for token in words):
            self._by_tokenizers = self._unsafe
        self._words = any_of([token["content"].encode() for token in words]) if words else None

    @cached_property
    def _complete(self) -> GigatokenPool:
        """Return the tokenizer as it is."""
        return pool_of(self._config)

    @cached_property
    def _bare(self) -> GigatokenPool:
        """Return the tokenizer without added tokens and normalizer."""
        return pool_of(self._config | {"added_tokens": [], "normalizer": None})

    @cached_property
    def _with_runs(self) -> GigatokenPool:
        """Return the tokenizer without normalizer and added tokens but runs of spaces."""
        runs = [token for token in self._config["added_tokens"] if _is_run(token)]
        return pool_of(self._config | {"added_tokens": runs, "normalizer": None})

    def encode(self, rows: TextRows, slots: Slots) -> Encoded:
        if self._rules is None:
            chunks = chunks_between(rows, slots, self._two_forms)
            tokens = self._complete_tokens(chunks.text, chunks.spans)
            return interleave(tokens, chunks.spaced, slots)
        text = rows.text[int(rows.offsets[0]) : int(rows.offsets[-1])]
        unsafe, runs = self._unsafe_positions(text, rows.offsets - rows.offsets[0])
        rules = self._rules._replace(longest_run=self._longest_run * runs)
        written = write(text, rows, slots, unsafe, rules)
        words = self._complete_tokens(text, written.words)
        memory.trim_memory(rows.nbytes)
        documents = np.concatenate([[0], written.documents])
        tokens = (self._with_runs if runs else self._bare).tokens(written.text, documents)
        memory.trim_memory(rows.nbytes)
        return put_in(written, Sources(tokens, words, slots, self.widths))

    def first_tokens(self, encoded: Encoded, numbers: Numbers, wanted: Mask | None = None) -> Ints:
        """Find the tokens by their bytes, in rows that the normalizer changes by those of the
        normalized text. Rows in which the bytes do not add up go to ``tokenizers``.
        """
        rows, per_row = numbers.rows, numbers.per_document()
        starts, sizes = numbers.start, np.diff(rows.offsets)
        if self.normalizes:
            starts = starts.copy()
            first, text = rows.offsets[0], rows.text[int(rows.offsets[0]) : int(rows.offsets[-1])]
            positions = changed_positions(text, self._unsafe, self._by_tokenizers)
            changed = np.diff(np.searchsorted(positions, rows.offsets - first)) > 0
            for row in np.flatnonzero(changed):
                in_row = slice(per_row[row], per_row[row + 1])
                starts[in_row], sizes[row] = _normalized_starts(rows, int(row), starts[in_row])
        return find_first_tokens(encoded, numbers, starts, sizes, self.widths, self._slow, wanted)

    def _unsafe_positions(self, text: npt.NDArray[np.uint8], offsets: Ints) -> tuple[Ints, bool]:
        """Return the positions of unsafe characters, and of the first characters of added tokens;
        and whether there are runs of spaces that are added tokens beside those: many, as in code.
        """
        if self.normalizes:
            positions = changed_positions(text, self._unsafe, self._by_tokenizers)
        else:
            positions = positions_of(text, self._unsafe)
        if self._words:
            positions = np.concatenate([positions, spans_in_rows(self._words, text, offsets)[:, 0]])
        runs = runs_of_spaces(text, len(text) // MANY_RUNS) if self._longest_run else None
        if runs is not None:
            positions = np.concatenate([positions, runs])
        return np.sort(positions), self._longest_run > 0 and runs is None

    def _complete_tokens(self, text: npt.NDArray[np.uint8], spans: Ints) -> Tokens:
        """Return the tokens of spans of the text, by the complete tokenizer or ``tokenizers``."""
        if not len(spans):  # the complete tokenizer need not be loaded
            return Tokens(np.empty(0, np.uint32), np.zeros(1, np.int64))
        text, offsets = joined(text, spans)
        tokens = self._complete.tokens(text, offsets)
        others = positions_of(text, self._by_tokenizers)
        if not len(others):
            return tokens
        ids = np.split(tokens.ids, tokens.offsets[1:-1])
        which = np.unique(np.searchsorted(offsets, others, "right") - 1).tolist()
        texts = [text[offsets[k] : offsets[k + 1]].tobytes().decode() for k in which]
        encoded = self._slow().encode(TextRows.of(texts), Slots.none(len(texts)))
        for k, by_slow in zip(which, np.split(encoded.ids, encoded.offsets[1:-1]), strict=True):
            ids[k] = by_slow.view(np.uint32)
        lengths = np.fromiter(map(len, ids), np.int64, len(ids))
        return Tokens(np.concatenate(ids), memory.offsets_of(lengths))


def _normalized_starts(rows: TextRows, row: int, starts: Ints) -> tuple[list[int], int]:
    """Return where the numbers of a row that begin at ``starts`` begin after NFC, and the size of
    the row then, in bytes. No character that begins a number joins the one before it.
    """
    text = rows.text[rows.offsets[row] : rows.offsets[row + 1]].tobytes()
    edges = itertools.pairwise([0, *starts.tolist(), len(text)])
    chunks = [text[first:last] for first, last in edges]
    nfc = functools.partial(unicodedata.normalize, "NFC")
    sizes = [len(chunk if chunk.isascii() else nfc(chunk.decode()).encode()) for chunk in chunks]
    *begins, size = itertools.accumulate(sizes)
    return begins, size


def _without_idle_fallback(config: Config) -> Config:
    """Return ``config`` without a fallback to byte tokens such as ``<0x0A>`` that the vocabulary
    does not have, which does nothing, and with which gigatoken does not load it.
    """
    model = config["model"]
    if not model.get("byte_fallback") or any(
        f"<0x{byte:02X}>" in model["vocab"] for byte in range(256)
    ):
        return config
    return config | {"model": Model(model | {"byte_fallback": False})}


def _with_every_byte(config: Config, source: Config) -> tuple[Config, list[bytes]]:
    """Return ``config`` with a row for each byte that has none, and those bytes. Text that holds
    them is not to be encoded with it; TokenizerError if a normalizer may put them into other text.
    The ids of these rows are beyond all of ``source``, which has the number tokens too.
    """
    vocabulary = config["model"]["vocab"]
    added = source["added_tokens"] or []
    characters = {
        byte: character
        for character, byte in byte_of_character().items()
        if character not in vocabulary and byte not in NEVER_IN_UTF8
    }
    if not characters or not isinstance(vocabulary, dict):  # which gigatoken refuses
        return config, []
    if config.get("normalizer") is not None and not NEVER_NORMALIZED_TO.issuperset(characters):
        raise TokenizerError("its vocabulary lacks bytes that its normalizer may put into text")
    first = 1 + max([*vocabulary.values(), *(token["id"] for token in added)])
    rows = {character: first + k for k, character in enumerate(characters.values())}
    model = Model(config["model"] | {"vocab": vocabulary | rows})
    return config | {"model": model}, [bytes([byte]) for byte in characters]


def _delicate_tokens(config: Config, tokens: NumtokTokens, parse_special: bool) -> list[Config]:
    """Return the added tokens that gigatoken would match otherwise than ``tokenizers``: those that
    take along what stands beside them, and special ones that are not parsed but hide another added
    token, as ``tokenizers`` passes over the whole of them.

    Raises:
        TokenizerError: if such a token may be in a text under another name.
    """
    added = without_numbers(config, tokens, parse_special=True)["added_tokens"]

    def is_parsed(token: Config) -> bool:
        return parse_special or not token["special"]

    names = [token["content"] for token in added if is_parsed(token)]
    prefixes = {name[:length] for name in names for length in range(1, len(name) + 1)}

    def is_delicate(token: Config) -> bool:
        name = token["content"]
        # the space of the number after it
        takes_space = tokens.spaced >= 0 and name.endswith(" ")
        if is_parsed(token):
            strips = token["lstrip"] or token["rstrip"] or token["single_word"]
            return strips or (takes_space and not token["normalized"])
        overlaps = any(name[start:] in prefixes for start in range(1, len(name)))
        return takes_space or overlaps or any(other in name for other in names)

    delicate = list(filter(is_delicate, added))
    for token in delicate:
        if token["normalized"] and config.get("normalizer") is not None:
            raise TokenizerError(
                f"its added token {token['content']!r} is looked for in normalized text, and what"
                " it matches depends on the text beside it"
            )
    return delicate


def _is_usual(config: Config) -> bool:
    """Whether text can be cut inside a chunk at all.

    No more than NFC comes before, there is nothing unusual in the model, and no white space in
    added tokens but runs of spaces.
    """
    added = config["added_tokens"]
    runs = [token for token in added if _is_run(token)]
    words = "".join(token["content"] for token in added if token not in runs)
    return (
        config.get("normalizer") in (None, {"type": "NFC"})
        and not any(map(config["model"].get, UNUSUAL))
        and all(len(token["content"]) > 1 for token in runs)
        and len({token["normalized"] for token in runs}) < 2
        and not any(map(str.isspace, words))
    )


def _is_run(token: Config) -> bool:
    """Whether an added token is a run of spaces."""
    return not token["content"].strip(" ")


# Unsafe characters
# -------------------------------------------------------------------------------------------------


def positions_of(text: Bytes, flagged: Bytes) -> Ints:
    """Return the positions of the characters from U+0280 on that are flagged by code point."""
    if text.size == 0:
        return np.empty(0, np.int64)
    marks = marks_of(text, MAY_BE_UNSAFE)
    positions = memory.empty(count_marks(marks)[0], np.int64)
    return positions[: _positions(text, flagged, marks, positions)]


def changed_positions(text: Bytes, unsafe: Bytes, always: Bytes) -> Ints:
    """Return the positions of the characters that NFC changes in this text, among those flagged in
    ``unsafe``, and of all that are flagged in ``always``.

    A character that NFC may change stands in a run of characters that are not ASCII, after one
    that may be; each such run is normalised by itself, and most are what NFC makes of them.
    Python's own data know all characters that are not newer, whose normal forms are for ever.
    """
    positions = positions_of(text, unsafe)
    if not len(positions):
        return positions
    runs = memory.empty(len(text), np.uint8)
    starts = memory.empty(len(positions) + 1, np.int64)
    run_of = memory.empty(len(positions), np.int64)
    count = _runs(text, positions, runs, starts, run_of)
    joined = runs[: starts[count]].tobytes().decode()
    changed = np.zeros(count, np.bool_)
    if not unicodedata.is_normalized("NFC", joined):
        for k in range(count):
            run = runs[starts[k] : starts[k + 1]].tobytes().decode()
            changed[k] = not unicodedata.is_normalized("NFC", run)
    kept = changed[run_of]
    kept |= np.isin(positions, positions_of(text, always), assume_unique=True)
    return np.asarray(positions[kept])


def runs_of_spaces(text: Bytes, most: int) -> Ints | None:
    """Return the positions of spaces before another one; None if there are more than ``most``."""
    spaces = marks_of(text, SPACES)
    behind = spaces >> ONE
    behind[:-1] |= spaces[1:] << SIXTY_THREE
    spaces &= behind
    blocks = np.flatnonzero(spaces)
    if len(blocks) > most:
        return None
    bits = np.unpackbits(spaces[blocks].view(np.uint8), bitorder="little").reshape(-1, 64)
    block, bit = np.nonzero(bits)
    return blocks[block] * 64 + bit


@kernel
def _positions(text, flagged, marks, positions):  # type: ignore[no-untyped-def]
    """Fill in and count the ``positions`` of marked characters with a ``flagged`` code point."""
    count = 0
    for block in range(marks.size):
        bits = marks[block]
        while bits != 0:
            at = block * 64 + np.int64(lowest_bit(bits))
            bits &= bits - ONE
            # no dash or quote is
            if not (text[at] == 0xE2 and text[at + 1] == 0x80 and text[at + 2] > 0x81):
                code, _ = decode(text, at)
                if flagged[code] != 0:
                    positions[count] = at
                    count += 1
    return count


@kernel
def _runs(text, positions, runs, starts, run_of):  # type: ignore[no-untyped-def]
    """Copy what NFC looks at around each position: all up to the next ASCII character, and the one
    before; the count of runs.
    """
    count, filled, stop = 0, 0, 0
    starts[0] = 0
    for k in range(positions.size):
        at = positions[k]
        if at >= stop:
            first, stop = at, at
            while first > 0 and text[first] >= 0x80:
                first -= 1
            while stop < text.size and text[stop] >= 0x80:
                stop += 1
            for j in range(first, stop):
                runs[filled] = text[j]
                filled += 1
            count += 1
            starts[count] = filled
        run_of[k] = count - 1
    return count


def cuts_at_digits(pre_tokenizer: dict[str, Any]) -> bool:
    r"""Whether a pre-tokenizer is a known one, which certainly cuts before and after a run of digits.

    Text around a number may stay whole, as these pre-tokenizers cut it around a digit as they cut it
    around a token. All of them take the first alternative that matches, from left to right; no
    alternative looks back, and only ``\s+(?!\S)`` looks ahead. So they agree in what this engine
    builds on:

    - they cut before and after a run of digits, unless a character of category N touches it, and
      what they do elsewhere does not depend on the digits;
    - they cut white space before a space and digits as they cut it at the end of a text;
    - they cut between a character that is no white space and a space; what stands before the space
      does not depend on what follows, nor the other way round.
    """
    if pre_tokenizer["type"] == "ByteLevel":
        usual = pre_tokenizer.get("use_regex", True)
        return bool(usual and not pre_tokenizer.get("add_prefix_space", True))
    steps = pre_tokenizer.get("pretokenizers") or []
    if [step["type"] for step in steps] != ["Split", "ByteLevel"]:
        return False
    split, byte_level = steps
    more = byte_level.get("add_prefix_space", True) or byte_level.get("use_regex", True)
    if more or (split.get("behavior"), split.get("invert")) not in ALL_MATCHES:
        return False
    return regex_of(split) in PATTERNS
