"""The text of each token of a tokenizer.json, as it stands beside the text of other tokens."""

from __future__ import annotations

import re
from typing import Any

from numtok.engines.number_tokens import vocabulary_of
from numtok.tokenizer.decode import contents_of, is_lossless

CONTINUING = bytes(range(0x80, 0xC0))  # within a character
SOME_LETTER = "é"


def token_texts(config: dict[str, Any]) -> list[str]:
    """By id. Of a character that is cut between tokens, its first part stands for it: for a letter
    if it is one of two bytes, which most of those are.
    """
    contents = contents_of(config) if is_lossless(config) else _contents(config)
    texts = [""] * (max(contents) + 1)
    for number, content in contents.items():
        texts[number] = _text(content)
    return texts


def _contents(config: dict[str, Any]) -> dict[int, bytes]:
    """Those of WordPiece, of SentencePiece, and of words that end in a mark."""
    decoder = config.get("decoder") or {}
    contents = {}
    for token, number in vocabulary_of(config).items():
        if decoder.get("type") == "WordPiece":
            prefix = decoder.get("prefix", "##")
            beside = token.startswith(prefix) or (decoder.get("cleanup") and token in ".,?!")
            text = token.removeprefix(prefix) if beside else f" {token}"
        elif decoder.get("type") == "BPEDecoder":
            text = token.replace(decoder.get("suffix", "</w>"), " ")
        else:
            text = token.replace("▁", " ")
        byte = re.fullmatch("<0x([0-9A-F]{2})>", token)
        contents[number] = bytes.fromhex(byte[1]) if byte else text.encode()
    return contents | {token["id"]: token["content"].encode() for token in config["added_tokens"]}


def _text(content: bytes) -> str:
    begun = content.lstrip(CONTINUING)
    text = begun.decode("utf-8", "replace")
    return f"{text[:-1]}{SOME_LETTER}" if b"\xc3" <= begun[-1:] < b"\xe0" else text
