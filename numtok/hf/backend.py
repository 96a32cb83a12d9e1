"""A tokenizer whose backend has number tokens; what numtok makes of one state of a ``tokenizers``
backend, and how a change to it is noticed.

In: a backend and numtok's settings. Out: the numtok tokenizer, the copies of the backend with
    placeholders, and what was found out about them. All of it is made on demand, belongs in the
    tokenizer's ``cache``, and is left behind when the backend changes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from transformers import PreTrainedTokenizerFast

from numtok.arrays.cached import cached_property
from numtok.engines.hf_tokenizers import library, load
from numtok.hf import loading
from numtok.hf.placeholders import Placeholders
from numtok.representations import SingleToken
from numtok.tokenizer.tokenizer import Tokenizer
from numtok.tokenizer.tokenizer_json import load_source

# no decimal digit lies between those of ASCII and the Arabic ones
MAY_BE_DIGIT = re.compile("[0-9\u0660-\U0010ffff]")
BRACKET = re.compile(r"\[/?NUM")  # how the names of numtok's own tokens begin
MOST_CACHED = 2  # copies of a backend, each with other placeholders
PROBE = "\ufb01\u200bA"  # NFKC, NMT, case


@dataclass
class BackendState:
    """The numtok tokenizer made from a backend, valid until the backend changes."""

    numtok: Tokenizer  # the tokenizer; its engine is made when it is first needed
    post_processor: Any  # its state at that time
    # the last copies of the backend with placeholders
    cached: list[Placeholders] = field(default_factory=list)
    characters: int = 0  # how many were encoded in batches that may take the quick way
    has_fast_engine: bool | None = None  # None before the engine was made

    @cached_property
    def numbers_stay(self) -> bool:
        """Whether numbers are ordinary text."""
        return self.numtok.representations[0].stays_text

    @cached_property
    def one_token(self) -> bool:
        """Whether a number is one token, ``[NUM]``."""
        return isinstance(self.numtok.representations[0], SingleToken)

    def may_hold_number(self, texts: Sequence[str]) -> bool:
        """Whether one of the texts may hold a number; False is certain."""
        return any(map(MAY_BE_DIGIT.search, texts)) or self.numtok.grammar.pattern is not None

    def contains_reserved_token(self, texts: Sequence[str]) -> bool:
        """Whether a text has the name of one of numtok's tokens, which is to stay text."""
        return any(map(self._names.search, texts))

    @cached_property
    def _names(self) -> re.Pattern[str]:
        """The pattern of how names of numtok's tokens begin, and of symbols that the vocabulary
        lacked, such as ``E`` where text is made lower case.
        """
        symbols = (one for one in self.numtok.own_tokens if not BRACKET.match(one.lstrip()))
        return re.compile("|".join([BRACKET.pattern, *map(re.escape, symbols)]))

    def placeholders_for(self, texts: Sequence[str]) -> Placeholders:
        """Return placeholders that do not occur in the texts."""
        for placeholders in self.cached:
            if not placeholders.occur_in(texts):
                return placeholders
        self.cached[MOST_CACHED - 1 :] = []
        self.cached.insert(0, Placeholders(self.numtok, texts))
        return self.cached[0]


def state_of(part: Any) -> Any:
    """Return the state of a part of a ``tokenizers.Tokenizer``, to compare parts by."""
    return None if part is None else part.__getstate__()


def _normalizer_state(normalizer: Any) -> Any:
    """Return the state of a normalizer. The tables of SentencePiece take half a millisecond to
    write out, so the normalized form of some characters stands for them.
    """
    kinds = library().normalizers
    if type(normalizer) is kinds.Precompiled:
        return normalizer.normalize_str(PROBE)
    if type(normalizer) is kinds.Sequence:  # not iterated, which ends in an exception
        return [_normalizer_state(normalizer[k]) for k in range(len(normalizer))]
    return state_of(normalizer)


def key_of(backend: Any) -> tuple[Any, ...]:
    """Return a key that is equal as long as nothing changes that ids depend on, except the
    vocabulary and the post-processor.
    """
    parts = state_of(backend.pre_tokenizer), state_of(backend.decoder)
    return (_normalizer_state(backend.normalizer), *parts)


class NumberTokenizerBase(PreTrainedTokenizerFast):
    """A fast tokenizer whose backend has number tokens.

    Attributes:
        return_numbers: whether calls return the number streams, if they do not say.
        numtok: the :class:`numtok.Tokenizer` of the same settings, which gives the same ids.
        cache: all that is made on demand.
    """

    return_numbers: bool = False
    # numtok.json; None while the base class is at work in __init__
    _number_settings: dict[str, Any] | None = None

    def __init__(
        self, *args: Any, number_settings: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        self.cache: dict[str, Any] = {}  # the one attribute that fingerprints of datasets leave out
        if file := kwargs.pop("tokenizer_file", None):  # which only numtok reads
            self._tokenizer = load(load_source(file))
        super().__init__(*args, **kwargs)  # type: ignore[no-untyped-call]
        self._install(number_settings or {})

    def _install(self, settings: dict[str, Any]) -> None:
        """Add the number tokens that are not there yet."""
        settings = loading.DEFAULTS | settings
        self.return_numbers = bool(settings.pop("return_numbers"))
        self.cache = {}
        numtok = loading.install_number_tokens(self.backend_tokenizer, settings)
        self._number_settings = numtok.saved_settings()
        self.init_kwargs["number_settings"] = self.number_settings

    @property
    def number_settings(self) -> dict[str, Any]:
        """JSON: grammar, representations and the like; what ``numtok.json`` holds, and
        ``return_numbers``.
        """
        return {**(self._number_settings or {}), "return_numbers": self.return_numbers}

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without what is made on demand."""
        return vars(self) | {"cache": {}}

    def _add_tokens(self, new_tokens: Any, special_tokens: bool = False) -> int:
        """Add tokens as the base class does. numtok's own tokens are there already and stay as they
        are.
        """
        if self._number_settings is not None:
            own = self.backend_state().numtok.own_tokens
            new_tokens = [token for token in new_tokens if str(token) not in own]
        self.cache = {}
        return int(super()._add_tokens(new_tokens, special_tokens))

    def _switch_to_input_mode(self) -> None:
        """Do nothing. The base class calls it each time, and is long in finding that nothing is to
        be done.
        """

    @property
    def numtok(self) -> Tokenizer:
        """The numtok tokenizer of the same settings."""
        state = self.backend_state()
        post_processor = state_of(self.backend_tokenizer.post_processor)
        if state.post_processor == post_processor:
            return state.numtok
        # few things depend on the post-processor, which may change often
        if self.cache.get("post_processor") != post_processor:
            self.cache |= {"post_processor": post_processor, "numtok": self._number_tokenizer()}
        numtok: Tokenizer = self.cache["numtok"]
        return numtok

    def backend_state(self) -> BackendState:
        """Return the state that depends on the backend.

        A change to that, also one made on ``backend_tokenizer`` directly, makes a new one.
        """
        backend = self.backend_tokenizer
        key = key_of(backend)
        state: BackendState = self.cache.get("state")  # type: ignore[assignment]
        # A new token takes the next id; to count them would take milliseconds.
        if self.cache.get("key") != key or backend.id_to_token(state.numtok.vocab_size) is not None:
            state = BackendState(self._number_tokenizer(), state_of(backend.post_processor))
            self.cache = {"key": key, "state": state}
        return state

    def _number_tokenizer(self) -> Tokenizer:
        assert self._number_settings is not None
        return Tokenizer.from_settings(load_source(self.backend_tokenizer), self._number_settings)
