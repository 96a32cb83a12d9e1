"""Load a drop-in tokenizer: from a source of transformers and settings as JSON, those of
``numtok.json`` and ``return_numbers``.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer, PreTrainedTokenizerFast
from transformers.models.auto.tokenization_auto import get_tokenizer_config

from numtok.engines.config import TOKENIZER_FILE, tokenizer_errors
from numtok.engines.hf_tokenizers import library, load
from numtok.errors import InputError, TokenizerError
from numtok.numbers.grammar import Grammar, check_grammar
from numtok.representations import Representation, XVal, representations_of
from numtok.tokenizer.saving import check_settings, read_settings
from numtok.tokenizer.tokenizer import Tokenizer
from numtok.tokenizer.tokenizer_json import check_exists, load_source

DEFAULTS: dict[str, Any] = {
    "numbers": [XVal().to_dict()],
    "grammar": Grammar().to_dict(),
    "leading_space": "auto",
    "return_numbers": False,
}
OWN_METHODS = {
    "__call__", "_encode_plus", "_convert_encoding", "pad", "_pad", "decode", "_decode",
    "batch_decode", "_switch_to_target_mode", "src_lang",
}  # fmt: skip


def given_settings(
    numbers: Sequence[Representation | str] | Representation | str | None,
    grammar: Grammar | str | None,
    leading_space: str | None,
    return_numbers: bool | None,
) -> dict[str, Any]:
    """Return the settings that are not None."""
    settings: dict[str, Any] = {"leading_space": leading_space, "return_numbers": return_numbers}
    if numbers is not None:
        settings["numbers"] = [one.to_dict() for one in representations_of(numbers)]
    if grammar is not None:
        settings["grammar"] = check_grammar(grammar).to_dict()
    return {name: value for name, value in settings.items() if value is not None}


def refuse_misspelt(names: Iterable[str], options: Sequence[str], where: str) -> None:
    """Refuse options that look like a misspelt one of ours. Transformers takes any option and says
    nothing of those that it does not know. InputError that names the option.
    """
    for name in names:
        if meant := difflib.get_close_matches(name, options, 1, 0.8):
            raise InputError(f"{where} has no option {name!r}; did you mean {meant[0]!r}?")


@contextlib.contextmanager
def checked(path: Any) -> Iterator[None]:
    """Say in words what is wrong with ``path`` while transformers loads it."""
    check_exists(path)
    file = Path(path) / TOKENIZER_FILE if Path(path).is_dir() else Path(path)
    if not file.is_file():
        yield
        return
    load_source(file)  # says what is wrong with it
    with tokenizer_errors(f"{path}: transformers cannot load it"):
        yield


def saved_settings(path: Any, options: dict[str, Any]) -> dict[str, Any] | None:
    """Return the settings in a folder that was saved with numbers; None for any other source.

    ``options`` as for AutoTokenizer.
    """
    if Path(path).is_file():
        return None
    config = get_tokenizer_config(path, **options)
    if "number_settings" in config:  # by the drop-in tokenizer
        return check_settings(config["number_settings"], f"{path}/tokenizer_config.json")
    return read_settings(path)


def load_stock(path: Any, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    """Return the tokenizer of transformers from any other source."""
    if Path(path).is_file():
        backend = load(load_source(path))
        return PreTrainedTokenizerFast(tokenizer_object=backend, **options)
    alone = (
        Path(path).is_dir()
        and not (Path(path) / "config.json").is_file()
        and not get_tokenizer_config(path, **options)
    )
    # a tokenizer.json alone tells AutoTokenizer nothing
    kind = PreTrainedTokenizerFast if alone else AutoTokenizer
    return kind.from_pretrained(path, *inputs, **options)


def check_is_fast(tokenizer: Any, ours: type) -> None:
    """Raise TokenizerError for a tokenizer that is not a fast one. Warn of one whose class changes
    what a call does.
    """
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        raise TokenizerError(
            f"{type(tokenizer).__name__} is not a fast transformers tokenizer; wrap a"
            " tokenizers.Tokenizer as PreTrainedTokenizerFast(tokenizer_object=...), and load slow"
            " ones with AutoTokenizer"
        )
    theirs = [kind for kind in type(tokenizer).__mro__ if kind not in ours.__mro__]
    methods = sorted({name for kind in theirs for name in OWN_METHODS.intersection(vars(kind))})
    # some model classes change what a call does in Python; a tokenizer that derives from the base
    # class cannot have that too
    if methods:
        warnings.warn(
            f"{type(tokenizer).__name__} has its own {', '.join(methods)}; the tokenizer with numbers"
            " works without",
            stacklevel=4,
        )


def install_number_tokens(backend: Any, settings: dict[str, Any]) -> Tokenizer:
    """Add the number tokens that a backend lacks, and return the numtok tokenizer of the same
    settings. TokenizerError if ``tokenizers`` gives the tokens other ids.
    """
    numtok = Tokenizer.from_settings(load_source(backend), settings)
    present = backend.get_added_tokens_decoder()
    added = numtok.config["added_tokens"]
    new = {token["content"]: token["id"] for token in added if token["id"] not in present}
    as_added = functools.partial(library().AddedToken, normalized=False, special=False)
    backend.add_tokens([*map(as_added, new)])
    if wrong := [one for one, number in new.items() if backend.token_to_id(one) != number]:
        raise TokenizerError(
            f"tokenizers gives {wrong[0]!r} another id than numtok; please report this tokenizer"
        )
    return numtok
