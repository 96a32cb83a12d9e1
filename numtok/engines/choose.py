"""Choose the engine that encodes the text between numbers, and check that it gives the right ids.

The contract: the ids are those that the source tokenizer gives to the text with every number
replaced by an added token (``AddedToken(normalized=False, special=False)``), and for byte-level BPE
a number takes the space before it along, as a second form of that token. All engines give the same
ids; gigatoken is held to it on every load.
"""

from __future__ import annotations

import functools
import importlib.metadata
import platform
import sys
import warnings
from typing import Any

import numpy as np

from numtok.arrays import file_cache
from numtok.engines.config import Config, is_byte_level, to_json
from numtok.engines.engine import Engine, NumtokTokens, Slots
from numtok.engines.gigatoken.byte_level import ByteLevelEngine
from numtok.engines.gigatoken.sentencepiece import SentencePieceEngine
from numtok.engines.special_rows import SpecialRowsEngine
from numtok.engines.tokenizers_engine import TokenizersEngine
from numtok.errors import NumtokError, TokenizerError
from numtok.options import shown_option


class EngineWarning(UserWarning):
    """Warns that the fast engine is not used, and says why."""


# packages whose lines are no user's: ours, and those that call us
BELOW_USER_CODE = {
    "numtok", "numtok_torch", "numtok_cli", "functools", "click",
    "transformers", "datasets", "torch",
}  # fmt: skip

# Text in which tokenizers that are nearly alike differ: white space, contractions, scripts, marks,
# emoji, code, and numbers beside all of them.
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


def make_engine(
    config: Config,
    tokens: NumtokTokens,
    engine: str,
    parse_special: bool,
    given_warnings: set[str],
) -> Engine:
    """Return the engine to use for a tokenizer.json, number tokens included: gigatoken where it
    gives the same ids, else tokenizers. ``given_warnings``: messages that are not given again, and
    to which the one of this call is added.

    Raises:
        TokenizerError: if one is asked for that cannot be used.
    """
    if engine not in ("auto", "gigatoken", "tokenizers"):
        raise TokenizerError(
            f"{shown_option('engine', engine)} is unknown; use 'auto', 'gigatoken' or 'tokenizers'"
        )
    if engine == "tokenizers":
        return TokenizersEngine(config, tokens, parse_special)
    try:
        return _fast_engine(config, tokens, parse_special)
    except NumtokError as error:
        if engine == "gigatoken":
            raise TokenizerError(
                "engine='gigatoken' (--engine gigatoken) cannot be used for this tokenizer:"
                f" {error}"
            ) from error
        if is_byte_level(config):
            message = f"using the slower engine 'tokenizers', because {error}"
            if message not in given_warnings:
                given_warnings.add(message)
                warnings.warn(message, EngineWarning, stacklevel=_level_of_caller())
        return TokenizersEngine(config, tokens, parse_special)


def _fast_engine(config: Config, tokens: NumtokTokens, parse_special: bool) -> Engine:
    """Return gigatoken, once it has given the same ids; TokenizerError if it does not."""
    slow = functools.cache(lambda: TokenizersEngine(config, tokens, parse_special))
    gigatoken: ByteLevelEngine | SentencePieceEngine
    if is_byte_level(config):
        gigatoken = ByteLevelEngine(config, tokens, parse_special, slow)
    else:
        gigatoken = SentencePieceEngine(config, tokens, slow)
    unread = gigatoken.unread
    fast = SpecialRowsEngine(gigatoken, slow, unread) if unread else gigatoken
    # all that the outcome depends on beside numtok's own source
    versions = map(importlib.metadata.version, ("gigatoken", "tokenizers"))
    depends_on = [to_json(config), repr((tokens, parse_special, *versions, platform.machine()))]
    merges = config["model"]["merges"]
    file_cache.cached("same-ids", depends_on, lambda: _compare(fast, slow(), tokens, merges))
    return fast


def _level_of_caller() -> int:
    """Return the ``stacklevel`` of the code that called numtok, also by way of other libraries."""
    frame, level = sys._getframe(1), 1
    while (
        frame.f_back is not None
        and frame.f_globals.get("__name__", "").split(".")[0] in BELOW_USER_CODE
    ):
        frame, level = frame.f_back, level + 1
    return level


def _compare(fast: Engine, slow: Engine, tokens: NumtokTokens, merges: list[Any]) -> str:
    """Return "yes", to be cached; TokenizerError if the engines differ on SELF_CHECK, or will on other
    text.
    """
    from numtok.numbers.scan import scan

    pairs = list(map(str, merges))
    if len(set(pairs)) < len(pairs):
        raise TokenizerError("its merges hold a pair twice, and the libraries rank it differently")

    numbers = scan(SELF_CHECK)
    if tokens.unspaced < 0:  # numbers stay text
        numbers = numbers.select(np.empty(0, np.int64))
    count = len(numbers)
    unspaced, spaced = (
        np.full(count, tokens.unspaced, np.int32),
        np.full(count, tokens.spaced, np.int32),
    )
    slots = Slots.of(numbers, unspaced, spaced, np.arange(count + 1))
    got, expected = (
        np.split(encoded.ids, encoded.offsets[1:-1])
        for encoded in (fast.encode(numbers.rows, slots), slow.encode(numbers.rows, slots))
    )
    for text, one, other in zip(SELF_CHECK, got, expected, strict=True):
        if not np.array_equal(one, other):
            raise TokenizerError(f"gigatoken gives other ids than tokenizers for {text!r}")
    return "yes"
