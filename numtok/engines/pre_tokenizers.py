r"""Pre-tokenizers that are known, by their pattern: text around a number may stay in one piece, as
they cut it around a digit as they cut it around a token.

In: a tokenizer.json. Out: whether its pre-tokenizer is a known one.

All of these take the first alternative that matches, from left to right; no alternative looks back,
and only ``\s+(?!\S)`` looks ahead. So they agree in what the gigatoken engine builds on:

- they cut before and after a run of digits, unless a character of category N touches it, and what
  they do elsewhere does not depend on the digits;
- they cut white space before a space and digits as they cut it at the end of a text;
- they cut between a character that is no white space and a space; what stands before the space does
  not depend on what follows, nor the other way round.
"""

from __future__ import annotations

from typing import Any

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


# behavior and invert of a Split by a pattern that leaves nothing between its matches
ALL_MATCHES = (("Isolated", False), ("Removed", True))


def is_known(pre_tokenizer: dict[str, Any]) -> bool:
    """Whether the pre-tokenizer of a tokenizer.json is one of those above."""
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
    return regex_of(split) in (GPT2, LLAMA3, QWEN2, GPT4O)


def regex_of(split: dict[str, Any]) -> str | None:
    """The pattern of a Split; None if it is a string."""
    pattern = split.get("pattern")
    return pattern.get("Regex") if isinstance(pattern, dict) else None
