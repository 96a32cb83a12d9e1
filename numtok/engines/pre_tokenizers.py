r"""Pre-tokenizers that are known, by their pattern: how they cut the text around a number, so that
it may stay in one piece.

In: a tokenizer.json. Out: :class:`Cuts`, or None for one that is not known, whose text has to be
    encoded piece by piece.

All of these take the first alternative that matches, from left to right; no alternative looks back,
and only ``\s+(?!\S)`` looks ahead. So they agree in what the gigatoken engine's ``split`` builds on:

- they cut before and after a run of digits, unless a character of category N touches it, and what
  they do elsewhere does not depend on the digits;
- they cut between a character that is no white space and a space; what stands before the space does
  not depend on what follows, nor the other way round;
- they cut after a letter, before what is neither letter nor mark nor apostrophe.

They differ in white space and in digits. GPT-2's cuts a run of white space off from the word before
it, and takes a space and digits for one word. The others give line ends to the marks before them,
cut after the last line end of white space, and cut a space off from digits, but not from letters.
"""

from __future__ import annotations

from typing import Any, NamedTuple

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


class Cuts(NamedTuple):
    """How a pre-tokenizer cuts white space before a number.

    Attributes:
        line_ends: whether it always cuts after the last line end of white space; else white space
            is always apart from the word before it.
    """

    line_ends: bool


def known_cuts(pre_tokenizer: dict[str, Any]) -> Cuts | None:
    """Those of a pre-tokenizer in a tokenizer.json; None if it is not one of those above."""
    if pre_tokenizer["type"] == "ByteLevel":
        usual = pre_tokenizer.get("use_regex", True)
        usual = usual and not pre_tokenizer.get("add_prefix_space", True)
        return Cuts(line_ends=False) if usual else None
    steps = pre_tokenizer.get("pretokenizers") or []
    if [step["type"] for step in steps] != ["Split", "ByteLevel"]:
        return None
    split, byte_level = steps
    more = byte_level.get("add_prefix_space", True) or byte_level.get("use_regex", True)
    if more or (split.get("behavior"), split.get("invert")) not in ALL_MATCHES:
        return None
    pattern = regex_of(split)
    if pattern not in (GPT2, LLAMA3, QWEN2, GPT4O):
        return None
    return Cuts(line_ends=pattern != GPT2)


def regex_of(split: dict[str, Any]) -> str | None:
    """The pattern of a Split; None if it is a string."""
    pattern = split.get("pattern")
    return pattern.get("Regex") if isinstance(pattern, dict) else None
