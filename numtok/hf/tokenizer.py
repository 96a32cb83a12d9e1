"""NumberTokenizer: any fast Hugging Face tokenizer, with numbers.

In and out: all that a fast transformers tokenizer takes and gives. Text without numbers is encoded
    exactly as by the source tokenizer; a number is the added token ``[NUM]`` (or the tokens of a
    spelled-out representation), and with ``return_numbers=True`` the number streams run along
    (:mod:`numtok.hf.streams`). ``decode`` puts numbers back.

A large batch goes through numtok's own engine (:mod:`numtok.hf.batch`), all else the general way
(:mod:`numtok.hf.general`): numbers are replaced by placeholders, and the base class does all of its own
work. Both give the same.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from numtok.engines.hf_tokenizers import complete_library, load
from numtok.errors import InputError, MissingDependencyError
from numtok.numbers.grammar import Grammar
from numtok.representations import Representation
from numtok.tokenizer.saving import read_settings, refuse_to_replace
from numtok.tokenizer.tokenizer import Tokenizer
from numtok.tokenizer.tokenizer_json import DEFAULT_FOLDER, load_source, sealed

try:
    from transformers import PreTrainedTokenizerFast
    from transformers.models.auto.tokenization_auto import REGISTERED_TOKENIZER_CLASSES
    from transformers.utils.generic import to_py_obj
except ImportError as error:
    complete_library("numtok.hf")  # transformers needs it too, and says less
    raise MissingDependencyError(
        "numtok.hf needs transformers 5.23 or later; install it with: pip install 'numtok[hf]'"
    ) from error

from numtok.hf import files
from numtok.hf.backend import BackendState, decode_row, key_of, state_of
from numtok.hf.batch import encode_quickly
from numtok.hf.general import Call, encode_generally
from numtok.hf.streams import mark_whole_numbers, pad_streams, pop_streams, stream_names

# of a call
BASE_OPTIONS = frozenset(inspect.signature(PreTrainedTokenizerFast._encode_plus).parameters)
# for which model classes have defaults: Llama's pads on the left, BERT's returns token types
SAVED = ("padding_side", "truncation_side", "model_input_names")


class NumberTokenizer(PreTrainedTokenizerFast):
    """A fast transformers tokenizer that knows numbers. Make one with :meth:`from_pretrained` or
    :meth:`from_tokenizer`.

    A call takes one more argument than other tokenizers, ``return_numbers``. ``decode`` and
    ``batch_decode`` take ``number_value``.

    Attributes:
        return_numbers: whether a call that does not say returns the number columns.
        numtok: the :class:`numtok.Tokenizer` with the same settings, which gives the same ids.

    Example:
        >>> tokenizer = NumberTokenizer.from_pretrained(numbers="xval")
        >>> batch = tokenizer(["pH 7.4"], return_numbers=True)
        >>> sorted(batch)
        ['attention_mask', 'input_ids', 'number_mask', 'number_scaled', 'number_value']
        >>> tokenizer.decode(batch["input_ids"][0], number_value=batch["number_value"][0])
        'pH 7.4'
    """

    return_numbers: bool = False
    # numtok.json; None while the base class is at work in __init__
    _number_settings: dict[str, Any] | None = None
    _auto_map: ClassVar = {"AutoTokenizer": (None, f"{files.SHIM}.NumberTokenizer")}

    # Making, saving and loading

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
        settings = files.DEFAULTS | settings
        self.return_numbers = bool(settings.pop("return_numbers"))
        self.cache = {}
        numtok = files.install_number_tokens(self.backend_tokenizer, settings)
        self._number_settings = numtok.saved_settings()
        self.init_kwargs["number_settings"] = self.number_settings

    @property
    def number_settings(self) -> dict[str, Any]:
        """JSON: grammar, representations and the like; what ``numtok.json`` holds, and
        ``return_numbers``.
        """
        return {**(self._number_settings or {}), "return_numbers": self.return_numbers}

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: Any = None,
        *inputs: Any,
        numbers: Sequence[Representation | str] | Representation | str | None = None,
        grammar: Grammar | str | None = None,
        leading_space: str | None = None,
        return_numbers: bool | None = None,
        **kwargs: Any,
    ) -> NumberTokenizer:
        """Load any fast tokenizer and put numbers into it, or load one that :meth:`save_pretrained`
        wrote.

        Args:
            pretrained_model_name_or_path: a hub id, a folder, or a tokenizer.json; ``None`` for
                numtok's small default tokenizer.
            inputs: as for ``AutoTokenizer.from_pretrained``.
            numbers: representations, ``[XVal()]`` if not given, or their names,
                ``"xval,fone:6,4"``.
            grammar: what counts as a number, or its name, ``"european"``.
            leading_space: ``"auto"`` or ``"separate"``; see :class:`numtok.Tokenizer`.
            return_numbers: whether a call that does not say returns the number columns; False if
                not given.
            kwargs: as for ``AutoTokenizer.from_pretrained``.

        Options that are not given are those that the folder was saved with.
        """
        files.refuse_misspelt(kwargs, [*files.DEFAULTS], "NumberTokenizer.from_pretrained")
        path = pretrained_model_name_or_path
        path = DEFAULT_FOLDER if path is None else path
        settings = files.given_settings(numbers, grammar, leading_space, return_numbers)
        with files.checked(path):
            saved = files.saved_settings(path, kwargs)
            if saved is None:
                stock = files.load_stock(path, inputs, kwargs)
                return cls._with_numbers(stock, (read_settings(path) or {}) | settings)
            settings = kwargs.pop("number_settings", saved) | settings
            loaded: NumberTokenizer = super().from_pretrained(
                path, *inputs, number_settings=settings, **kwargs
            )
            return loaded

    @classmethod
    def from_tokenizer(
        cls,
        tokenizer: Any,
        numbers: Sequence[Representation | str] | Representation | str | None = None,
        grammar: Grammar | str | None = None,
        leading_space: str | None = None,
        return_numbers: bool | None = None,
    ) -> NumberTokenizer:
        """Return a copy of a fast transformers tokenizer, with numbers. Options as for
        :meth:`from_pretrained`.

        Raises:
            TokenizerError: if the tokenizer is not a fast one.
        """
        settings = files.given_settings(numbers, grammar, leading_space, return_numbers)
        return cls._with_numbers(tokenizer, settings)

    @classmethod
    def _with_numbers(cls, tokenizer: Any, settings: dict[str, Any]) -> NumberTokenizer:
        """Return a copy with these settings; those that are not given are its own."""
        files.check_is_fast(tokenizer, NumberTokenizer)
        copied = cls.__new__(cls)
        state = {name: value for name, value in vars(tokenizer).items() if name != "cache"}
        vars(copied).update(copy.deepcopy(state))
        for name in SAVED:
            copied.init_kwargs.setdefault(name, getattr(copied, name))
        copied._install((getattr(tokenizer, "number_settings", None) or {}) | settings)
        if "numbers" in settings:
            backend = copied.backend_tokenizer

            def source_ids(texts: list[str]) -> list[list[int]]:
                encodings = backend.encode_batch(texts, add_special_tokens=False)
                return [one.ids for one in encodings]

            copied.numtok.advise_bare(source_ids)
        return copied

    def save_pretrained(
        self, save_directory: Any, *args: Any, push_to_hub: bool = False, **kwargs: Any
    ) -> tuple[str, ...]:
        """Save as the base class does, but every file appears whole or not at all.

        Raises:
            OutputError: if the system refuses; files that were there already stay as they were.
        """
        save = super().save_pretrained
        if Path(save_directory).is_file():
            return save(save_directory, *args, **kwargs)  # which says what is wrong
        names = files.save_whole(save_directory, lambda folder: save(folder, *args, **kwargs))
        kwargs["push_to_hub"] = True
        return save(save_directory, *args, **kwargs) if push_to_hub else names

    def export(self, folder: str | Path, overwrite: bool = False) -> tuple[str, ...]:
        """Write a folder for programs without numtok, such as transformers.js, with special tokens
        and chat template. Otherwise as :meth:`numtok.Tokenizer.export`.
        """
        self.numtok.representations[0].plain_form(self.numtok.grammar)  # or an error, before all
        refuse_to_replace(folder, overwrite)
        stock = files.without_number_tokens(self, self.numtok)
        files.save_whole(folder, stock.save_pretrained)
        return self.numtok.export(folder, overwrite=True)

    def _save_pretrained(
        self,
        save_directory: Any,
        file_names: tuple[str, ...],
        legacy_format: bool | None = None,
        filename_prefix: str | None = None,
    ) -> tuple[str, ...]:
        names: tuple[str, ...] = super()._save_pretrained(
            save_directory, file_names, legacy_format, filename_prefix
        )
        if not self.numtok.reads_as_plain:
            file = Path(names[-1])  # tokenizer.json
            file.write_text(sealed(file.read_text("utf-8")), "utf-8")
        return (*names, *files.write_own_files(save_directory, self._number_settings))

    @classmethod
    def register_for_auto_class(cls, auto_class: Any = "AutoTokenizer") -> None:
        """Do nothing: a saved folder imports the class and needs no copy of its code."""

    @classmethod
    def convert_to_native_format(
        cls, trust_remote_code: bool = False, **kwargs: Any
    ) -> dict[str, Any]:
        file = kwargs.get("tokenizer_file")
        if file is not None and Path(file).is_file():
            return kwargs  # as for PreTrainedTokenizerFast: the whole tokenizer is in the file
        converted: dict[str, Any] = super().convert_to_native_format(
            trust_remote_code=trust_remote_code, **kwargs
        )  # type: ignore[no-untyped-call]
        return converted

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without what is made on demand."""
        return vars(self) | {"cache": {}}

    # What is made from the backend

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

    # Encoding

    def _encode_plus(  # type: ignore[override]  # the rest goes through as it comes
        self, text: Any, text_pair: Any = None, *, return_numbers: bool | None = None, **kwargs: Any
    ) -> Any:
        with_streams = self.return_numbers if return_numbers is None else bool(return_numbers)
        # the base class encodes chunk by chunk, each through this method
        if kwargs.get("sanitize_control_tokens"):
            if with_streams:
                raise InputError(
                    "number streams and sanitize_control_tokens=True do not go together; pass"
                    " return_numbers=False"
                )
            return super()._encode_plus(text=text, text_pair=text_pair, **kwargs)
        if not BASE_OPTIONS.issuperset(kwargs):
            unknown = kwargs.keys() - BASE_OPTIONS
            files.refuse_misspelt(unknown, ["return_numbers"], "a call of NumberTokenizer")
        call, state = Call(text, text_pair, with_streams, kwargs), self.backend_state()
        out = encode_quickly(self, state, call)
        return encode_generally(self, state, call) if out is None else out

    def apply_chat_template(
        self,
        conversation: Any,
        *args: Any,
        return_numbers: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Render a chat and encode it as the base class does, with the numbers of what is said.

        Args:
            conversation: the messages, or several lists of messages.
            args: as for the base class.
            return_numbers: whether to return the number columns; by default as for a call.
            kwargs: as for the base class. ``return_assistant_tokens_mask=True`` marks all tokens of
                a number with which the assistant's words begin or end.
        """
        masked = bool(kwargs.get("return_assistant_tokens_mask"))
        options = dict(kwargs.pop("tokenizer_kwargs", None) or {})
        if return_numbers is not None:
            options["return_numbers"] = return_numbers
        wanted = options.get("return_numbers", self.return_numbers)
        if masked:
            options["return_numbers"] = True
        rest = {"tokenizer_kwargs": options, **kwargs} if options else kwargs
        out: Any = super().apply_chat_template(conversation, *args, **rest)
        if masked:
            mark_whole_numbers(out, "assistant_masks")
            for name in stream_names(out) if not wanted else ():
                del out[name]
        return out

    def train_new_from_iterator(
        self, text_iterator: Any, vocab_size: int, *args: Any, **kwargs: Any
    ) -> NumberTokenizer:
        """Train a tokenizer as the base class does, on the text between numbers: they take no part
        in the vocabulary, except with ``Subword``.

        The result has the same settings.
        """
        numtok = self.backend_state().numtok
        stock = files.without_number_tokens(self, numtok)
        texts = files.between_numbers(text_iterator, numtok)
        trained = stock.train_new_from_iterator(texts, vocab_size, *args, **kwargs)
        settings = {name: value for name, value in self.number_settings.items() if name != "tokens"}
        return self._with_numbers(trained, settings)

    # Padding

    def pad(self, encoded_inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Pad as the base class does. Number streams among the inputs are padded too, with their
        neutral values.
        """
        rest, streams = pop_streams(encoded_inputs)
        out = super().pad(rest, *args, **kwargs)
        if streams:
            arguments = inspect.signature(super().pad).bind(rest, *args, **kwargs).arguments
            side = arguments.get("padding_side") or self.padding_side
            pad_streams(out, streams, self.model_input_names[0], side)
        return out

    # Decoding

    def decode(
        self,
        token_ids: Any,
        skip_special_tokens: bool = False,
        number_value: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Decode as the base class does, with the numbers put in. ``batch_decode`` passes its options
        on to this method.

        Args:
            token_ids: ids, or a batch of them.
            skip_special_tokens: leave out special tokens; ``[NUM]`` is none.
            number_value: for each row, the values that the call returned, one per token (those of
                other tokens are not looked at), or one per number. Without them ``[NUM]`` shows as
                itself. Spelled-out numbers need none.
            kwargs: as for the base class.

        Raises:
            InputError: if there are neither as many values as tokens nor as many as numbers.
        """
        files.refuse_misspelt(kwargs, ["number_value"], "NumberTokenizer.decode")
        options = {"skip_special_tokens": skip_special_tokens, **kwargs}
        if number_value is None:
            return super().decode(token_ids, **options)
        ids, values = to_py_obj(token_ids), to_py_obj(number_value)
        if not (isinstance(ids, list) and ids and isinstance(ids[0], list)):  # one row
            return self._decode(ids, number_value=values, **options)
        if len(ids) != len(values):
            raise InputError(
                f"{len(ids)} rows of ids, but {len(values)} rows of number_value; give one for each"
            )
        rows = zip(ids, values, strict=True)
        return [self._decode(row, number_value=row_values, **options) for row, row_values in rows]

    def _decode(self, token_ids: Any, number_value: Any = None, **kwargs: Any) -> str:  # type: ignore[override]
        return decode_row(self, self.backend_state(), token_ids, number_value, kwargs)


REGISTERED_TOKENIZER_CLASSES[NumberTokenizer.__name__] = NumberTokenizer
