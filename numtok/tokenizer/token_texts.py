"""The text of each token of a tokenizer.json, as it stands beside the text of other tokens."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from numtok.engines.config import byte_of_character, is_byte_level, vocabulary_of

CONTINUING = bytes(range(0x80, 0xC0))  # within a character
SOME_LETTER = "é"


def is_lossless(config: dict[str, Any]) -> bool:
    """Whether the bytes of the tokens are those of the text, as of byte-level BPE."""
    decoder = config.get("decoder") or {}
    return is_byte_level(config) and decoder.get("type") == "ByteLevel"


def contents_of(config: dict[str, Any], wanted: Collection[int] | None = None) -> dict[int, bytes]:
    """Return the bytes of the tokens of a byte-level tokenizer by id: of all, or those wanted."""
    table = byte_of_character()
    contents = {
        number: bytes(map(table.__getitem__, token))
        for token, number in config["model"]["vocab"].items()
        if (wanted is None or number in wanted) and table.keys() >= set(token)
    }
    return contents | {token["id"]: token["content"].encode() for token in config["added_tokens"]}


def beside_others(config: dict[str, Any]) -> dict[int, bytes]:
    """Return the bytes that each token of any tokenizer stands for beside others, by id; a
    character that is cut between tokens in parts.
    """
    return contents_of(config) if is_lossless(config) else _contents(config)


def token_texts(config: dict[str, Any]) -> list[str]:
    """Return the text of each token by id. Of a character that is cut between tokens, its first
    part stands for it: for a letter if it is one of two bytes, which most of those are.
    """
    contents = beside_others(config)
    texts = [""] * (max(contents) + 1)
    for number, content in contents.items():
        texts[number] = _text(content)
    return texts


def _contents(config: dict[str, Any]) -> dict[int, bytes]:
    """Return the text of each token of WordPiece, of SentencePiece, or of BPE whose words end in a
    suffix.
    """
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
