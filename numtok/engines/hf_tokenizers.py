"""Hugging Face's ``tokenizers``: no other module of numtok imports it, and it is imported when it
is first needed, as it takes longer to load than most starts may.

Version 0.x has all that numtok asks for. Version 1.0 is much faster, and its Python interface has
less: it loads a file, encodes and decodes. So with 1.0 numtok encodes, decodes and saves; what
needs the rest calls :func:`complete_library`, which says so.
"""

from __future__ import annotations

import functools
import itertools
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory
from numtok.engines.config import TOKENIZER_FILE, to_json, tokenizer_errors
from numtok.errors import MissingDependencyError, TokenizerError

ADVICE = "pip install 'tokenizers<1.0'"


@functools.cache
def library() -> Any:
    """Return the module ``tokenizers``, whichever version is installed."""
    import tokenizers

    return tokenizers


def is_version_1() -> bool:
    """Whether ``tokenizers`` 1.0 or later is installed: much faster, with less of an interface."""
    return int(library().__version__.split(".")[0]) >= 1


def complete_library(purpose: str) -> Any:
    """Return the module ``tokenizers`` of version 0.x.

    Raises:
        MissingDependencyError: if it is a later one; says that ``purpose`` is not possible with it.
    """
    if is_version_1():
        raise MissingDependencyError(
            f"{purpose} needs more than the Python interface of tokenizers {library().__version__}"
            f" has; {ADVICE} (with 1.0, numtok.Tokenizer loads, encodes, decodes and saves)"
        )
    return library()


def load(config: Mapping[str, Any]) -> Any:
    """Return the ``tokenizers.Tokenizer`` of a tokenizer.json, or a :class:`Version1`."""
    return Version1(config) if is_version_1() else library().Tokenizer.from_str(to_json(config))


def flat_ids(encodings: Sequence[Any]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Return int32[total], the ids of the encodings one after another, and int64[n + 1] offsets."""
    if is_version_1():
        arrays = [encoding.ids_array for encoding in encodings]
        lengths = np.fromiter(map(len, arrays), np.int64, len(arrays))
        ids = np.concatenate([np.empty(0, np.uint32), *arrays]).view(np.int32)
        return ids, memory.offsets_of(lengths)
    lists = [encoding.ids for encoding in encodings]
    offsets = memory.offsets_of(np.fromiter(map(len, lists), np.int64, len(lists)))
    ids = np.fromiter(itertools.chain.from_iterable(lists), np.int32, int(offsets[-1]))
    return ids, offsets


class Version1:
    """A ``tokenizers.Tokenizer`` of version 1.0, with the methods of 0.x that numtok calls.

    ``encode_special_tokens``: whether special tokens in a text are ordinary text.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        _refuse_lost_spaces(config["added_tokens"])
        with tempfile.TemporaryDirectory(prefix="numtok-") as folder:  # it reads files alone
            path = Path(folder, TOKENIZER_FILE)
            path.write_text(to_json(config), "utf-8")
            with tokenizer_errors(
                f"tokenizers cannot load it (1.0 reads fewer than 0.23: {ADVICE})"
            ):
                self._tokenizer = library().Tokenizer.from_file(path)
                self._tokenizer.encode("a")  # some patterns fail with the first text only
        self.encode_special_tokens = False

    def encode_batch(self, texts: Sequence[str], add_special_tokens: bool = True) -> list[Any]:
        """Return an encoding of each text; it has ``ids``, and no offsets."""
        options = {"encode_special_tokens": self.encode_special_tokens}
        encode = self._tokenizer.encode_batch
        with tokenizer_errors("tokenizers cannot encode with it"):
            return list(encode(texts, add_special_tokens=add_special_tokens, **options))

    encode_batch_fast = encode_batch

    def encode(self, text: str, add_special_tokens: bool = True) -> Any:
        """Return the encoding of one text."""
        return self.encode_batch([text], add_special_tokens)[0]

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        """Return the text of ids."""
        return str(self._tokenizer.decode(ids, skip_special_tokens=skip_special_tokens))

    def token_to_id(self, content: str) -> int | None:
        """Return the id of a token that stands alone in a text, such as an added token."""
        ids = self.encode(content, add_special_tokens=False).ids
        tokens = self._tokenizer.decode_tokens(ids)
        return ids[tokens.index(content)] if content in tokens else None


def _refuse_lost_spaces(added_tokens: Sequence[Mapping[str, Any]]) -> None:
    """Raise TokenizerError for added tokens that give other ids with 1.0 than with 0.23: after one
    with ``rstrip``, 1.0 drops the space that another begins with, as `` [NUM]`` does.
    """
    strips = next((token["content"] for token in added_tokens if token["rstrip"]), None)
    if strips is not None and any(token["content"][:1].isspace() for token in added_tokens):
        raise TokenizerError(
            f"tokenizers {library().__version__} drops the space that an added token begins with"
            f" after {strips!r}, which strips spaces (rstrip), and 0.23 does not; {ADVICE}"
        )
