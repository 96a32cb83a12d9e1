"""Files of a drop-in tokenizer, there and back.

Load: from a source of transformers and settings as JSON, those of ``numtok.json`` and
``return_numbers``. Save: the files of transformers, each in one step (``numtok.files``),
``numtok.json``, and one line of Python with which AutoTokenizer finds the class. Also remove the
number tokens of a tokenizer that is to be exported or trained anew.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import json
import os
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer, PreTrainedTokenizerFast
from transformers.models.auto.tokenization_auto import get_tokenizer_config

from numtok.arrays.text_rows import TextRows
from numtok.engines.config import TOKENIZER_FILE, tokenizer_errors
from numtok.engines.hf_tokenizers import library, load
from numtok.errors import InputError, NumtokError, OutputError, TokenizerError
from numtok.files import write_file
from numtok.hf.placeholders import replace_numbers, with_backend
from numtok.numbers.grammar import Grammar, check_grammar
from numtok.representations import Representation, XVal, representations_of
from numtok.tokenizer.saving import check_settings, read_settings, write_json
from numtok.tokenizer.tokenizer import Tokenizer
from numtok.tokenizer.tokenizer_json import SETTINGS_FILE, check_exists, load_source

DEFAULTS: dict[str, Any] = {
    "numbers": [XVal().to_dict()],
    "grammar": Grammar().to_dict(),
    "leading_space": "auto",
    "return_numbers": False,
}
SHIM = "numtok_tokenizer"  # the module in a saved folder that imports the class, for AutoTokenizer
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


def write_own_files(folder: str | os.PathLike[str], settings: Any) -> tuple[str, str]:
    """Write the files that transformers does not write, and return their names."""
    settings_path, shim = Path(folder, SETTINGS_FILE), Path(folder, f"{SHIM}.py")
    write_json(settings_path, settings)
    shim.write_text("from numtok.hf import NumberTokenizer as NumberTokenizer\n", "utf-8")
    return str(settings_path), str(shim)


def save_whole(
    folder: str | os.PathLike[str], save: Callable[[str], tuple[str, ...] | None]
) -> tuple[str, ...]:
    """Let ``save`` write into a temporary folder, then bring its files into ``folder``; returns the
    names that it returned, there.

    transformers and ``tokenizers`` write straight into the folder they are given, and so leave half
    a file on a full disk. OutputError if the system refuses; no file is left half-written.
    """
    with tempfile.TemporaryDirectory(prefix="numtok-") as staging:
        try:
            names = save(staging) or ()
        except NumtokError:
            raise
        except Exception as error:
            if not isinstance(error, OSError) and type(error) is not Exception:  # of `tokenizers`
                raise
            raise OutputError(
                f"cannot save to {folder}: {error}; make room for temporary files, then run again"
            ) from error
        for path in sorted(Path(staging).rglob("*")):
            if path.is_file():
                write_file(Path(folder, path.relative_to(staging)), path.read_bytes())
        return tuple(str(Path(folder, Path(name).relative_to(staging))) for name in names)


def without_number_tokens(
    tokenizer: PreTrainedTokenizerFast, numtok: Tokenizer
) -> PreTrainedTokenizerFast:
    """Return a stock tokenizer, the same except for the number tokens and settings."""
    config = json.loads(tokenizer.backend_tokenizer.to_str())
    added = config["added_tokens"]
    config["added_tokens"] = [one for one in added if one["content"] not in numtok.own_tokens]
    stock = with_backend(tokenizer, load(config))
    options = tokenizer.init_kwargs
    stock.init_kwargs = {name: options[name] for name in options if name != "number_settings"}
    return stock


def between_numbers(batches: Iterable[Any], numtok: Tokenizer) -> Iterator[list[str]]:
    """Yield the chunks of text between the numbers of each batch; the texts, if numbers are text."""
    for batch in batches:
        texts = [batch] if isinstance(batch, str) else list(batch)
        if numtok.representations[0].stays_text:
            yield texts
            continue
        chunks = []
        for one in replace_numbers(texts, numtok.selector.select(TextRows.of(texts)).numbers, None):
            starts, stops = [*one.starts.tolist(), len(one.text)], [0, *one.stops.tolist()]
            chunks += [one.text[a:b] for a, b in zip(stops, starts, strict=True) if a < b]
        yield chunks
