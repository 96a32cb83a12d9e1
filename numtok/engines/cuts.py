r"""Where tokenizers certainly cut text, or certainly merge nothing, by the parts of their
tokenizer.json that are known.

**Around digits** (:func:`cuts_at_digits`): text around a number may stay whole, as these
pre-tokenizers cut it around a digit as they cut it around a token. All of them take the first
alternative that matches, from left to right; no alternative looks back, and only ``\s+(?!\S)``
looks ahead. So they agree in what the gigatoken engine builds on:

- they cut before and after a run of digits, unless a character of category N touches it, and what
  they do elsewhere does not depend on the digits;
- they cut white space before a space and digits as they cut it at the end of a text;
- they cut between a character that is no white space and a space; what stands before the space does
  not depend on what follows, nor the other way round.

**At single spaces** (:func:`cuts_at_spaces`): each word has the same ids wherever it stands. The
space stands between characters that are neither white space nor change with what is beside them
(:mod:`numtok.engines.words` says which). Normalizers that are known change such text character
by character. A pre-tokenizer that is known cuts there, and the steps after it see one word each; of
the steps before it only those are known that go by the kind of each character. Without a
pre-tokenizer, BPE merges nothing across the space if no token of the vocabulary has one inside.
"""

from __future__ import annotations

from typing import Any

from numtok.engines.config import Config, steps_of, vocabulary_of

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

MARK = "\u2581"  # what SentencePiece writes for a space
CLIP = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
LOCAL = (
    "NFC", "NFD", "NFKC", "NFKD", "Nmt", "Lowercase", "StripAccents", "BertNormalizer",
    "Precompiled", "Prepend", "Strip",
)  # fmt: skip
REPLACED = ({"String": " "}, {"Regex": " {2,}"}, {"Regex": r"\s+"})  # what Replace may look for
BY_CHARACTER = ("Digits", "Punctuation")
WHITE_SPACE = ("BertPreTokenizer", "Whitespace", "WhitespaceSplit")
ANY_WORD = (*BY_CHARACTER, *WHITE_SPACE, "ByteLevel", "Metaspace", "Split", "UnicodeScripts")


def cuts_at_digits(pre_tokenizer: dict[str, Any]) -> bool:
    """Whether a pre-tokenizer is one of those above, which cut before and after a run of digits."""
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


def regex_of(split: dict[str, Any]) -> str | None:
    """Return the pattern of a Split; None if it is a string."""
    pattern = split.get("pattern")
    return pattern.get("Regex") if isinstance(pattern, dict) else None


def cuts_at_spaces(config: Config, two_forms: bool) -> bool:
    """Whether a tokenizer.json without number tokens certainly cuts text at single spaces;
    ``two_forms``: a number takes the space before it along.
    """
    left = tokens_to_leave_whole(config)
    hidden = config.get("normalizer") is not None and any(
        token["normalized"] for token in config["added_tokens"] if token["content"] in left
    )
    steps = steps_of(config.get("pre_tokenizer"), "pretokenizers")
    return (
        all(map(_is_local, steps_of(config.get("normalizer"), "normalizers")))
        and not config["model"].get("dropout")
        and (_cuts(steps) or _never_merges(config, steps))
        and not hidden  # in text that does not have their names
        and not any(_crosses_space(token, two_forms) for token in config["added_tokens"])
    )


def tokens_to_leave_whole(config: Config) -> list[str]:
    """Return the added tokens beside which a space is not as beside a word: those that strip it, or
    begin with it and want whole words; all if a normalizer looks at the first space of a text.
    """
    kinds = {step["type"] for step in steps_of(config.get("normalizer"), "normalizers")}
    return [
        token["content"]
        for token in config["added_tokens"]
        if token["rstrip"]
        or (token["single_word"] and token["content"].startswith((" ", MARK)))
        or kinds & {"Prepend", "Strip"}
    ]


def _crosses_space(token: Config, two_forms: bool) -> bool:
    """Whether an added token may take along a space at which text is cut."""
    content = token["content"]
    inside = any(one == MARK or one.isspace() for one in content.lstrip())
    return bool(content.strip(f" {MARK}") and inside) or (
        two_forms and not token["normalized"] and content.endswith(" ")
    )


def _is_local(step: Config) -> bool:
    """Whether a normalizer leaves the space, and does nothing to the text beside it that depends on
    what is beyond.
    """
    if step["type"] == "Replace":
        return step.get("pattern") in REPLACED and step.get("content") in (" ", MARK)
    return step["type"] in LOCAL


def _cuts(steps: list[Config]) -> bool:
    """Whether the steps of a pre-tokenizer cut all text at single spaces."""
    for number, step in enumerate(steps):
        if _cuts_at_spaces(step):
            return all(later["type"] in ANY_WORD for later in steps[number + 1 :])
        if step["type"] not in BY_CHARACTER:
            return False
    return False


def _cuts_at_spaces(step: Config) -> bool:
    kind = step["type"]
    if kind == "ByteLevel":
        return bool(step.get("use_regex", True))
    if kind == "Metaspace":
        return bool(step.get("split", True))
    if kind == "Split":
        how = step.get("behavior"), step.get("invert")
        patterns = (*PATTERNS, CLIP) if how == ("Removed", True) else PATTERNS
        return regex_of(step) in patterns and how in ALL_MATCHES
    return kind in WHITE_SPACE


def _never_merges(config: Config, steps: list[Config]) -> bool:
    """Whether this is BPE over whole texts, with a mark for each space and no token with the mark
    after anything else.
    """
    model = config["model"]
    options = ("ignore_merges", "continuing_subword_prefix", "end_of_word_suffix")
    kinds = [step["type"] for step in steps]
    if (
        model.get("type") != "BPE"
        or any(map(model.get, options))
        or kinds not in ([], ["Metaspace"])
    ):
        return False
    normalizers = steps_of(config.get("normalizer"), "normalizers")
    to_mark = bool(steps) or any(
        step["type"] == "Replace" and step["pattern"] == {"String": " "} and step["content"] == MARK
        for step in normalizers
    )
    vocabulary = vocabulary_of(config)
    crossing = any(MARK in token.lstrip(MARK) for token in vocabulary)
    return to_mark and MARK in vocabulary and not crossing
