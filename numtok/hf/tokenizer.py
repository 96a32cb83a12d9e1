"""NumberTokenizer: any fast Hugging Face tokenizer, with numbers.

In and out: all that a fast transformers tokenizer takes and gives. Text without numbers is encoded exactly as by the source tokenizer; a number is
the added token ``[NUM]`` (or the tokens of a spelled-out representation), and with ``return_numbers=True`` the number streams run along
(:mod:`numtok.hf.streams`). ``decode`` puts numbers back.

How: numbers are replaced by marks, private-use characters that a copy of the tokenizer knows as added tokens, and the base class does all of its
own work on the marked text (:mod:`numtok.hf.marks`); ids and offsets are translated as they are read (:mod:`numtok.hf.encoding`). Large batches of
byte-level BPE go through numtok's own engine (:mod:`numtok.hf.batch`).
"""

from __future__ import annotations

import copy
import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import tokenizers

from numtok.arrays.text_rows import TextRows
from numtok.engines.rust import tokenizer_errors
from numtok.engines.tokenizer_json import DEFAULT_FOLDER, TOKENIZER_FILE, check_exists, load_source
from numtok.errors import InputError, MissingDependencyError, NumtokError, TokenizerError
from numtok.numbers.grammar import Grammar
from numtok.numbers.numbers import Numbers
from numtok.representations import Representation
from numtok.tokenizer.saving import SETTINGS_FILE, check_settings, read_settings, write_json
from numtok.tokenizer.tokenizer import Tokenizer

try:
    from transformers import AutoTokenizer, PreTrainedTokenizerFast
    from transformers.models.auto.tokenization_auto import REGISTERED_TOKENIZER_CLASSES, get_tokenizer_config
    from transformers.tokenization_utils_base import TruncationStrategy
    from transformers.utils.generic import PaddingStrategy, to_py_obj
except ImportError as error:
    raise MissingDependencyError("numtok.hf needs transformers 5 or later; install it with: pip install 'numtok[hf]'") from error

from numtok.hf.advice import advise_streams
from numtok.hf.arrow import encode_arrow
from numtok.hf.backend import Core, key_of, state_of
from numtok.hf.batch import encode_fast
from numtok.hf.encoding import LazyBatchEncoding, NumberEncoding
from numtok.hf.marks import Leaf, Marks, find_in_ids, mark, unmarked
from numtok.hf.saving import save_whole
from numtok.hf.settings import complete_settings, given_settings
from numtok.hf.streams import NumberStreams, attach, pad_streams, stream_of_symbols, take_streams
from numtok.hf.texts import CallTexts

SHIM = "numtok_tokenizer"  # the module in a saved folder that imports the class, for AutoTokenizer
OWN_METHODS = ("__call__", "_encode_plus", "_convert_encoding", "pad", "_pad", "decode", "_decode", "batch_decode")


class NumberTokenizer(PreTrainedTokenizerFast):
    """A fast transformers tokenizer that knows numbers. Make one with :meth:`from_pretrained` or :meth:`from_tokenizer`.

    Attributes:
        return_numbers: whether calls return the number streams, if they do not say.
        numtok: the :class:`numtok.Tokenizer` of the same settings, which gives the same ids.

    A call takes one more argument, ``return_numbers``. ``decode`` and ``batch_decode`` take ``number_values``.
    """

    return_numbers: bool = False
    _number_settings: dict[str, Any] | None = None  # numtok.json; None while the base class is at work in __init__
    _auto_map: ClassVar = {"AutoTokenizer": (None, f"{SHIM}.NumberTokenizer")}

    def __init__(self, *args: Any, number_settings: dict[str, Any] | None = None, **kwargs: Any) -> None:
        self.cache: dict[str, Any] = {}  # the one attribute that fingerprints of datasets leave out
        super().__init__(*args, **kwargs)  # type: ignore[no-untyped-call]
        self._install(number_settings or {})

    def _install(self, settings: dict[str, Any]) -> None:
        """Add the number tokens that are not there yet."""
        settings = complete_settings(settings)
        self.return_numbers = bool(settings.pop("return_numbers"))
        self.cache = {}
        made = Tokenizer.from_settings(load_source(self.backend_tokenizer), settings)
        known = self.backend_tokenizer.get_added_tokens_decoder()
        entries = [token for token in made.config["added_tokens"] if token["id"] not in known]
        if entries:
            self.backend_tokenizer.add_tokens(
                [tokenizers.AddedToken(token["content"], normalized=False, special=False) for token in entries]
            )
        wrong = [token["content"] for token in entries if self.backend_tokenizer.token_to_id(token["content"]) != token["id"]]
        if wrong:
            raise TokenizerError(f"tokenizers gives {wrong[0]!r} another id than numtok; please report this tokenizer")
        self._number_settings = made.saved_settings()
        self.init_kwargs["number_settings"] = self.number_settings

    # Making, saving and loading

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: Any = None,
        *inputs: Any,
        numbers: Sequence[Representation | str] | Representation | str | None = None,
        grammar: Grammar | None = None,
        leading_space: str | None = None,
        return_numbers: bool | None = None,
        **kwargs: Any,
    ) -> NumberTokenizer:
        """Load any fast tokenizer and put numbers into it, or load one that :meth:`save_pretrained` wrote.

        Args:
            pretrained_model_name_or_path: a hub id, a folder, or a tokenizer.json; ``None`` for numtok's small default tokenizer.
            inputs: as for ``AutoTokenizer.from_pretrained``.
            numbers: representations, ``[XVal()]`` if not given, or their names, ``"xval,fone:6,4"``.
            grammar: what counts as a number.
            leading_space: ``"auto"`` or ``"separate"``; see :class:`numtok.Tokenizer`.
            return_numbers: whether calls return the number streams, if they do not say; False if not given.
            kwargs: as for ``AutoTokenizer.from_pretrained``.

        Options that are not given are those the folder was saved with.
        """
        path = DEFAULT_FOLDER if pretrained_model_name_or_path is None else pretrained_model_name_or_path
        check_exists(path)
        options = given_settings(numbers, grammar, leading_space, return_numbers)
        file = Path(path) / TOKENIZER_FILE if Path(path).is_dir() else Path(path)
        if not file.is_file():
            return cls._loaded(path, inputs, options, kwargs)
        load_source(file)  # says what is wrong with it
        with tokenizer_errors(f"{path}: transformers cannot load it"):
            return cls._loaded(path, inputs, options, kwargs)

    @classmethod
    def _loaded(cls, path: Any, inputs: tuple[Any, ...], options: dict[str, Any], kwargs: dict[str, Any]) -> NumberTokenizer:
        """From whatever ``path`` is; ``options`` are the settings that were given."""
        if Path(path).is_file():
            return cls.from_tokenizer(
                PreTrainedTokenizerFast(tokenizer_file=str(path), **kwargs), _settings=(read_settings(path) or {}) | options
            )
        config = get_tokenizer_config(path, **kwargs)
        if "number_settings" in config:
            saved = check_settings(config["number_settings"], f"{path}/tokenizer_config.json")
            settings = kwargs.pop("number_settings", saved) | options
            loaded: NumberTokenizer = super().from_pretrained(path, *inputs, number_settings=settings, **kwargs)
            return loaded
        if not config and Path(path).is_dir() and not (Path(path) / "config.json").is_file():  # a tokenizer.json alone
            source = PreTrainedTokenizerFast.from_pretrained(path, *inputs, **kwargs)
        else:
            source = AutoTokenizer.from_pretrained(path, *inputs, **kwargs)
        return cls.from_tokenizer(source, _settings=(read_settings(path) or {}) | options)

    @classmethod
    def from_tokenizer(
        cls,
        tokenizer: Any,
        numbers: Sequence[Representation | str] | Representation | str | None = None,
        grammar: Grammar | None = None,
        leading_space: str | None = None,
        return_numbers: bool | None = None,
        *,
        _settings: dict[str, Any] | None = None,
    ) -> NumberTokenizer:
        """A copy of a fast transformers tokenizer, with numbers. Options as for :meth:`from_pretrained`.

        Raises:
            TokenizerError: if the tokenizer is not a fast one.
        """
        if not isinstance(tokenizer, PreTrainedTokenizerFast):
            raise TokenizerError(
                f"{type(tokenizer).__name__} is not a fast transformers tokenizer; wrap a tokenizers.Tokenizer as"
                " PreTrainedTokenizerFast(tokenizer_object=...), and load slow ones with AutoTokenizer"
            )
        _warn_of_own_methods(type(tokenizer))
        made = cls.__new__(cls)
        state = {name: value for name, value in vars(tokenizer).items() if name != "cache"}
        vars(made).update(copy.deepcopy(state))
        own = getattr(tokenizer, "number_settings", None) or {}
        made._install(own | (_settings or {}) | given_settings(numbers, grammar, leading_space, return_numbers))
        return made

    @property
    def number_settings(self) -> dict[str, Any]:
        """JSON: grammar, representations and the like; what ``numtok.json`` holds, and ``return_numbers``."""
        return {**(self._number_settings or {}), "return_numbers": self.return_numbers}

    def save_pretrained(
        self,
        save_directory: Any,
        legacy_format: bool | None = None,
        filename_prefix: str | None = None,
        push_to_hub: bool = False,
        save_format: str | None = None,
        **kwargs: Any,
    ) -> tuple[str, ...]:
        """As of the base class, but every file appears whole or not at all.

        Raises:
            OutputError: if the system refuses; files that were there already stay as they were.
        """
        kwargs |= {"legacy_format": legacy_format, "filename_prefix": filename_prefix} | (
            {"save_format": save_format} if save_format else {}
        )
        save = super().save_pretrained
        if Path(save_directory).is_file():
            return save(save_directory, **kwargs)  # which says what is wrong
        names = save_whole(save_directory, lambda folder: save(folder, **kwargs))
        return save(save_directory, push_to_hub=True, **kwargs) if push_to_hub else names

    def _save_pretrained(
        self, save_directory: Any, file_names: tuple[str, ...], legacy_format: bool | None = None, filename_prefix: str | None = None
    ) -> tuple[str, ...]:
        names: tuple[str, ...] = super()._save_pretrained(save_directory, file_names, legacy_format, filename_prefix)
        folder = Path(save_directory)
        write_json(folder / SETTINGS_FILE, self._number_settings)
        (folder / f"{SHIM}.py").write_text("from numtok.hf import NumberTokenizer as NumberTokenizer\n", "utf-8")
        return (*names, str(folder / SETTINGS_FILE), str(folder / f"{SHIM}.py"))

    @classmethod
    def register_for_auto_class(cls, auto_class: Any = "AutoTokenizer") -> None:
        """Nothing: saved folders import the class from this package and hold no copy of its code."""

    @classmethod
    def convert_to_native_format(cls, trust_remote_code: bool = False, **kwargs: Any) -> dict[str, Any]:
        file = kwargs.get("tokenizer_file")
        if file is not None and Path(file).is_file():
            return kwargs  # as for PreTrainedTokenizerFast itself: the whole tokenizer is in the file
        converted: dict[str, Any] = super().convert_to_native_format(trust_remote_code=trust_remote_code, **kwargs)  # type: ignore[no-untyped-call]
        return converted

    def __getstate__(self) -> dict[str, Any]:
        """Without what is made on demand."""
        return vars(self) | {"cache": {}}

    # What is made on demand

    def _add_tokens(self, new_tokens: Any, special_tokens: bool = False) -> int:
        """As of the base class; numtok's own tokens are there already, and stay what they are."""
        if self._number_settings is not None:
            own = self.core().numtok.own_tokens
            new_tokens = [token for token in new_tokens if str(token) not in own]
        self.cache = {}
        return int(super()._add_tokens(new_tokens, special_tokens))

    @property
    def numtok(self) -> Tokenizer:
        """The numtok tokenizer of the same settings."""
        core, around = self.core(), state_of(self.backend_tokenizer.post_processor)
        if core.around == around:
            return core.numtok
        if self.cache.get("around") != around:  # only fingerprint and frame depend on the post-processor, which may change often
            self.cache |= {"around": around, "numtok": self._made_numtok()}
        made: Tokenizer = self.cache["numtok"]
        return made

    def core(self) -> Core:
        """What depends on the backend. A change to that, also one made on ``backend_tokenizer`` directly, makes a new one."""
        backend = self.backend_tokenizer
        key = key_of(backend)
        if self.cache.get("key") != key:
            self.cache = {"key": key, "core": Core(self._made_numtok(), state_of(backend.post_processor))}
        made: Core = self.cache["core"]
        return made

    def _made_numtok(self) -> Tokenizer:
        assert self._number_settings is not None
        return Tokenizer.from_settings(load_source(self.backend_tokenizer), self._number_settings)

    # Encoding

    def _encode_plus(  # type: ignore[override]  # the rest goes through as it comes
        self, text: Any, text_pair: Any = None, *, return_numbers: bool | None = None, **kwargs: Any
    ) -> Any:
        with_streams = self.return_numbers if return_numbers is None else bool(return_numbers)
        if kwargs.get("sanitize_control_tokens"):  # encodes piece by piece, each through this method
            if with_streams:
                raise InputError("number streams and sanitize_control_tokens=True do not go together; pass return_numbers=False")
            return super()._encode_plus(text=text, text_pair=text_pair, **kwargs)
        out = encode_fast(self, text, text_pair, with_streams, kwargs)
        if out is None:
            out = self.encode_marked(text, text_pair, with_streams, kwargs)
        self._leave_backend_as_called(kwargs)
        return out

    def _leave_backend_as_called(self, kwargs: Mapping[str, Any]) -> None:
        """The backend keeps the truncation and padding of the last call, whether it was the one to encode or not."""
        self.set_truncation_and_padding(
            padding_strategy=kwargs.get("padding_strategy", PaddingStrategy.DO_NOT_PAD),
            truncation_strategy=kwargs.get("truncation_strategy", TruncationStrategy.DO_NOT_TRUNCATE),
            max_length=kwargs.get("max_length"),  # type: ignore[arg-type]
            stride=kwargs.get("stride", 0),
            pad_to_multiple_of=kwargs.get("pad_to_multiple_of"),
            padding_side=kwargs.get("padding_side"),
        )

    def encode_marked(self, text: Any, text_pair: Any, with_streams: bool, kwargs: Mapping[str, Any]) -> Any:
        """The general way, for every call; arguments as for ``_encode_plus``."""
        core = self.core()
        try:
            texts = CallTexts(text, text_pair, bool(kwargs.get("is_split_into_words")))
            rows = TextRows.of(texts.strings)
        except InputError:  # whatever the base class says about input that is not text
            return super()._encode_plus(text=text, text_pair=text_pair, **kwargs)
        split = kwargs.get("split_special_tokens")
        numbers = core.numtok.find(rows, parse_special=not (self.split_special_tokens if split is None else split)).numbers
        if len(numbers) and not with_streams:
            advise_streams(self.deprecation_warnings, core.numtok)
        if not with_streams and (not len(numbers) or core.stay_text) and not core.is_named_in(texts.strings):
            return super()._encode_plus(text=text, text_pair=text_pair, **kwargs)
        return self._encode_numbers(core, self.backend_tokenizer.post_processor, texts, rows, numbers, with_streams, kwargs)

    def encodings_later(self, text: Any, kwargs: Mapping[str, Any]) -> Callable[[], list[Any]]:
        """A function that encodes texts the general way, with everything as it is now, and returns the ``tokenizers.Encoding`` of each."""
        core, around = self.core(), self.backend_tokenizer.post_processor
        then = type(self).__new__(type(self))
        vars(then).update(vars(self))

        def make() -> list[Any]:
            texts = CallTexts(text, None, False)
            rows = TextRows.of(texts.strings)
            numbers = core.numtok.find(rows, parse_special=True).numbers
            return list(then._encode_numbers(core, around, texts, rows, numbers, False, {**kwargs, "return_tensors": None}).encodings)

        return make

    def _encode_numbers(
        self, core: Core, around: Any, texts: CallTexts, rows: TextRows, numbers: Numbers, with_streams: bool, kwargs: Mapping[str, Any]
    ) -> Any:
        """Let the base class encode the marked texts, and put the post-processor ``around`` to them."""
        marks = core.marks_for(texts.strings)
        marks.tokenizer.post_processor = around
        if core.stay_text:
            leaves = unmarked(texts.strings, rows, numbers)
            streams = NumberStreams(numbers, {})
        else:
            columns, slots, spelled = core.numtok.encode_numbers(numbers)
            leaves = mark(texts.strings, rows, numbers, slots, marks)
            streams = NumberStreams(numbers, columns, stream_of_symbols(core.numtok, slots, spelled))
        call = self._sibling(marks, _marks=marks, _split=texts.split, _rows=texts.rows(leaves))
        text, pair = texts.rebuilt([leaf.text for leaf in leaves])
        out: Any = PreTrainedTokenizerFast._encode_plus(call, text=text, text_pair=pair, **kwargs)
        found = list(out.encodings)
        out = LazyBatchEncoding(out.data, n_sequences=out.n_sequences, make=lambda: [one.restored() for one in found])
        if with_streams:
            rows_of = [streams.spread(len(one), *one.number_tokens) for one in found]
            single = not texts.batched and kwargs.get("return_tensors") is None and not kwargs.get("return_overflowing_tokens")
            attach(out, rows_of, kwargs.get("return_tensors"), single)
        return out

    def encode_arrow(
        self,
        texts: Any,
        column: str = "text",
        return_numbers: bool | None = None,
        add_special_tokens: bool = True,
        max_length: int | None = None,
        keep_column: bool = False,
    ) -> pa.Table:
        """Encode Arrow to Arrow, without Python lists in between: for ``dataset.with_format("arrow").map(tokenizer.encode_arrow, batched=True)``.

        Args:
            texts: a table or record batch, or its text column.
            column: name of the text column in a table.
            return_numbers: add the number streams; as the tokenizer says if not given.
            add_special_tokens: as in a call.
            max_length: cut longer texts, on the tokenizer's truncation side.
            keep_column: keep the text column of a table too. (``map`` does not apply its ``remove_columns`` to tables.)

        Returns:
            One row per text: the other columns of the table, ``input_ids`` (int32), ``attention_mask`` and ``token_type_ids`` (int8) as the model
            wants them, and the number streams.

        Raises:
            InputError: if there is no such column, or a text is null.
        """
        with_streams = self.return_numbers if return_numbers is None else return_numbers
        return encode_arrow(self, texts, column, with_streams, add_special_tokens, max_length, keep_column)

    def train_new_from_iterator(self, text_iterator: Any, vocab_size: int, *args: Any, **kwargs: Any) -> NumberTokenizer:
        """As of the base class, on the text between numbers: they take no part in the vocabulary. The result has the same settings."""
        own = self.core().numtok.own_tokens
        config = json.loads(self.backend_tokenizer.to_str())
        config["added_tokens"] = [token for token in config["added_tokens"] if token["content"] not in own]
        stock = PreTrainedTokenizerFast.__new__(PreTrainedTokenizerFast)
        options = {name: value for name, value in self.init_kwargs.items() if name != "number_settings"}
        vars(stock).update(vars(self), _tokenizer=tokenizers.Tokenizer.from_str(json.dumps(config)), init_kwargs=options)
        trained = stock.train_new_from_iterator(self._between_numbers(text_iterator), vocab_size, *args, **kwargs)
        settings = {name: value for name, value in self.number_settings.items() if name != "tokens"}
        return type(self).from_tokenizer(trained, _settings=settings)

    def _between_numbers(self, batches: Iterable[Any]) -> Iterator[list[str]]:
        for batch in batches:
            texts = [batch] if isinstance(batch, str) else list(batch)
            rows = TextRows.of(texts)
            numbers = self.core().numtok.find(rows).numbers
            yield [piece for leaf in unmarked(texts, rows, numbers) for piece in leaf.between()]

    # Padding

    def pad(
        self,
        encoded_inputs: Any,
        padding: Any = True,
        max_length: int | None = None,
        pad_to_multiple_of: int | None = None,
        padding_side: str | None = None,
        return_attention_mask: bool | None = None,
        return_tensors: Any = None,
        verbose: bool = True,
    ) -> Any:
        """As of the base class; number streams among the inputs are padded too, with their neutral values."""
        rest, streams = take_streams(encoded_inputs)
        out = super().pad(rest, padding, max_length, pad_to_multiple_of, padding_side, return_attention_mask, return_tensors, verbose)
        if streams:
            pad_streams(out, streams, self.model_input_names[0], padding_side or self.padding_side)
        return out

    # Decoding

    def decode(self, token_ids: Any, skip_special_tokens: bool = False, number_values: Any = None, **kwargs: Any) -> Any:
        """As of the base class, with the numbers put in.

        Args:
            token_ids: ids, or a batch of them.
            skip_special_tokens: leave out special tokens; ``[NUM]`` is none.
            number_values: for each row, the values that the call returned, one per token (those of other tokens are not looked at), or one per
                number. Without them ``[NUM]`` shows as itself. Spelled-out numbers need none.
            kwargs: as for the base class.

        Raises:
            InputError: if there are neither as many values as tokens nor as many as numbers.
        """
        if number_values is None:
            return super().decode(token_ids, skip_special_tokens=skip_special_tokens, **kwargs)
        rows, values = to_py_obj(token_ids), to_py_obj(number_values)
        if rows and isinstance(rows[0], list):
            if len(rows) != len(values):
                raise InputError(f"{len(rows)} rows of ids, but {len(values)} rows of number_values; give one for each")
            return [
                self._decode(row, skip_special_tokens=skip_special_tokens, number_values=own, **kwargs)
                for row, own in zip(rows, values, strict=True)
            ]
        return self._decode(rows, skip_special_tokens=skip_special_tokens, number_values=values, **kwargs)

    def batch_decode(  # type: ignore[override]
        self, sequences: Any, skip_special_tokens: bool = False, number_values: Any = None, **kwargs: Any
    ) -> list[str]:
        """:meth:`decode` of a batch."""
        result = self.decode(sequences, skip_special_tokens=skip_special_tokens, number_values=number_values, **kwargs)
        return [result] if isinstance(result, str) else result

    def _decode(self, token_ids: Any, number_values: Any = None, **kwargs: Any) -> str:  # type: ignore[override]
        ids = token_ids["input_ids"] if isinstance(token_ids, dict) else token_ids
        core = self.core()
        found = find_in_ids(core.numtok, [ids] if isinstance(ids, int) else ids, number_values)
        if found is None:
            return str(super()._decode(token_ids, **kwargs))
        read: list[str] = []
        for _ in range(2):  # again with others, if what is read has some of the marks itself
            marks = core.marks_for(read)
            read = [PreTrainedTokenizerFast._decode(self._sibling(marks), found.ids, **kwargs)]
            text = marks.replaced(read[0], found.surfaces)
            if text is not None:
                return text
        raise NumtokError(f"the ids do not hold the {len(found.surfaces)} number tokens they should; please report this tokenizer")

    def _sibling(self, marks: Marks, **more: Any) -> _Call:
        """This tokenizer with marks; nothing that happens to it is seen here."""
        call = _Call.__new__(_Call)
        vars(call).update(vars(self), _tokenizer=marks.tokenizer, **more)
        return call


class _Call(PreTrainedTokenizerFast):
    """A tokenizer for one call: the same in everything, with marks, and encodings that know the original text."""

    _rows: Iterator[list[list[Leaf]]]
    _marks: Marks
    _split: bool

    def _convert_encoding(self, encoding: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        wrapped: Any = NumberEncoding(encoding, next(self._rows), self._marks, self._split)
        return super()._convert_encoding(encoding=wrapped, **kwargs)


def _warn_of_own_methods(kind: type) -> None:
    """Some model classes change what a call does in Python; a tokenizer that derives from the base class cannot have that too."""
    known = set(PreTrainedTokenizerFast.__mro__) | {NumberTokenizer}
    own = sorted({name for one in kind.__mro__ if one not in known for name in OWN_METHODS if name in vars(one)})
    if own:
        warnings.warn(f"{kind.__name__} has its own {', '.join(own)}; the tokenizer with numbers works without", stacklevel=3)


REGISTERED_TOKENIZER_CLASSES[NumberTokenizer.__name__] = NumberTokenizer
