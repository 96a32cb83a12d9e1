"""A parsed tokenizer.json: how it is written out, and the questions about it that several modules
ask.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

from numtok.arrays.cached import cached_property
from numtok.engines.engine import NumtokTokens
from numtok.errors import NumtokError, TokenizerError

Config = dict[str, Any]
TOKENIZER_FILE = "tokenizer.json"


class Model(dict[str, Any]):
    """The ``model`` of a tokenizer.json, which is nearly all of it: written out once, for all that
    read it as text. It does not change.
    """

    @cached_property
    def text(self) -> str:
        """Return the model as JSON."""
        return json.dumps(self)

    def __reduce__(self) -> tuple[type[Model], tuple[dict[str, Any]]]:
        return Model, (dict(self),)


@contextlib.contextmanager
def tokenizer_errors(what: str) -> Iterator[None]:
    """Raise what a library in Rust raises or panics with (no ``Exception``) as a TokenizerError
    that says ``what`` could not be done.
    """
    try:
        yield
    except (NumtokError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        reason = str(error).strip().splitlines()
        raise TokenizerError(f"{what}: {reason[0] if reason else type(error).__name__}") from error


def to_json(config: Mapping[str, Any]) -> str:
    """Return ``json.dumps(config)``, with the text of the model if it has one already."""
    parts = (
        f"{json.dumps(name)}: {part.text if isinstance(part, Model) else json.dumps(part)}"
        for name, part in config.items()
    )
    return "{" + ", ".join(parts) + "}"


def is_byte_level(config: Config) -> bool:
    """Whether this is byte-level BPE: bytes have tokens, the chunks between added tokens are
    independent, and a space is a byte as any other.
    """
    steps = steps_of(config.get("pre_tokenizer"), "pretokenizers")
    return config["model"].get("type") == "BPE" and any(s["type"] == "ByteLevel" for s in steps)


def byte_of_character() -> dict[str, int]:
    """Return the byte that each character of a byte-level vocabulary stands for: printable Latin-1
    characters stand for themselves, those from U+0100 on for the other bytes, as in GPT-2.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(printable)]
    return {chr(byte): byte for byte in printable} | {
        chr(256 + k): byte for k, byte in enumerate(others)
    }


def kind_of(config: Config) -> str:
    """Return the name of a kind of tokenizer: ``byte-level BPE``, ``WordPiece``."""
    return "byte-level BPE" if is_byte_level(config) else str(config["model"].get("type", "BPE"))


def steps_of(part: Config | None, children: str) -> list[Config]:
    """Return a component in a list, or the members of a sequence, in order."""
    if part is None:
        return []
    if part["type"] == "Sequence":
        return [step for child in part[children] for step in steps_of(child, children)]
    return [part]


def regex_of(split: dict[str, Any]) -> str | None:
    """Return the pattern of a Split; None if it is a string."""
    pattern = split.get("pattern")
    return pattern.get("Regex") if isinstance(pattern, dict) else None


def without_numbers(config: Config, tokens: NumtokTokens, parse_special: bool) -> Config:
    """Return ``config`` as the engines take it: no number tokens, no truncation or padding, and
    special tokens only if they are to be parsed.
    """
    ours = {tokens.unspaced, tokens.spaced, *tokens.reserved}
    added = [
        token
        for token in config.get("added_tokens") or []
        if token["id"] not in ours and (parse_special or not token["special"])
    ]
    return config | {"truncation": None, "padding": None, "added_tokens": added}


def vocabulary_of(config: dict[str, Any]) -> Mapping[str, int]:
    """Return token to id, of the model without added tokens; a Unigram model has a list."""
    vocabulary = config["model"]["vocab"]
    if isinstance(vocabulary, list):
        return {token: number for number, (token, _) in enumerate(vocabulary)}
    return cast(Mapping[str, int], vocabulary)


def ordinary_token(number: int, content: str) -> dict[str, Any]:
    """Return an entry of ``added_tokens`` that is found as it stands, and is not special."""
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    return {"id": number, "content": content, **flags}
