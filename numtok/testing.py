"""Check a representation of numbers, one of numtok or a user's own: :func:`check_representation`,
and the strategies of Hypothesis that it draws from.

In: a representation. Out: nothing, or an ``AssertionError`` with the smallest example that fails.
Needs Hypothesis: ``pip install 'numtok[testing]'``.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Sequence
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.errors import MissingDependencyError, RepresentationError
from numtok.numbers.automaton import NEVER, Continuation
from numtok.numbers.decimals import in_marks_of
from numtok.numbers.grammar import Grammar
from numtok.numbers.numbers import Numbers
from numtok.numbers.scan import scan
from numtok.representations import (
    Representation,
    SingleToken,
    Spelled,
    SpelledOut,
    from_dict,
    streams,
)
from numtok.tokenizer.tokenizer import Tokenizer

try:
    from hypothesis import HealthCheck, given, settings
    from hypothesis import strategies as st
except ImportError as error:
    raise MissingDependencyError(
        "numtok.testing needs Hypothesis; install it with: pip install 'numtok[testing]'"
    ) from error

__all__ = ["batches", "check_representation", "grammars", "literals", "numbers", "texts"]

LONGEST = 20  # digits of a number that models write
EDGES = ("0", "-0", "0.000", "1", "-1", "007", "9" * 40, "0." + "0" * 40 + "1", "1e400", "-1e-400")
BETWEEN = (" ", ", ", " km", "\n", "é ", " [NUM] ", "[/NUM]", "-", "(", "x", ".", "１２ ")


def literals() -> st.SearchStrategy[str]:
    """Draw a number as written: ``-60.2``, ``1e-9``, ``007``; often an edge of a range.

    Example:
        >>> from hypothesis import find
        >>> find(literals(), lambda literal: len(literal) > 0)
        '0'
    """
    written = st.builds(
        lambda sign, digits, point, power: (
            sign + digits[:point] + ("." if point < len(digits) else "") + digits[point:] + power
        ),
        st.sampled_from(["", "-"]),
        st.text("0123456789", min_size=1, max_size=20),
        st.integers(1, 20),
        st.one_of(st.just(""), st.integers(-50, 50).map("e{}".format)),
    )
    return st.one_of(written, st.integers(-9999, 9999).map(str), st.sampled_from(EDGES))


def numbers(max_size: int = 8) -> st.SearchStrategy[Numbers]:
    """Draw exact numbers, as they are found in a text.

    Example:
        >>> from hypothesis import find
        >>> find(numbers(), lambda numbers: len(numbers) > 0).text().to_pylist()
        ['0']
    """
    return st.lists(literals(), max_size=max_size).map(Numbers.parse)


def texts() -> st.SearchStrategy[str]:
    """Draw texts with numbers in them, between words, marks, literal ``[NUM]`` and other scripts.

    Example:
        >>> from hypothesis import find
        >>> find(texts(), lambda text: len(text) > 0)
        '0'
    """
    parts = st.one_of(literals(), st.sampled_from(BETWEEN), st.text(max_size=4))
    return st.lists(parts, max_size=8).map("".join)


def batches(max_size: int = 4) -> st.SearchStrategy[list[str]]:
    """Draw the texts of a batch; some are empty.

    Example:
        >>> from hypothesis import find
        >>> find(batches(), lambda batch: len(batch) > 1)
        ['', '']
    """
    return st.lists(texts(), max_size=max_size)


def grammars() -> st.SearchStrategy[Grammar]:
    """Draw a preset of the grammar.

    Example:
        >>> import numtok
        >>> from hypothesis import find
        >>> find(grammars(), lambda grammar: grammar.decimal == ",") == numtok.Grammar.european()
        True
    """
    presets = (
        Grammar.prose,
        Grammar.data,
        Grammar.european,
        Grammar.indian,
        Grammar.swiss,
        Grammar.finance,
    )
    return st.sampled_from(presets).map(lambda preset: preset())


def check_representation(representation: Representation, examples: int = 50) -> None:
    """Hold a representation to what all of numtok relies on; its class must be registered.

    - Options go through JSON, and one that it does not have is refused.
    - Columns have the types that are declared; no numbers are none; of many, each is as alone.
    - What is decoded encodes to the same; ``exact`` and spelled-out numbers are the same decimals.
    - ``fits`` and ``clipped`` are one answer a number, and what fits is not clipped.
    - Texts come back from a tokenizer byte for byte, alone and in a batch with the same ids.
    - Spelled-out numbers are read from ids alone, each where it stands, and encode to these ids.
    - What is encoded may follow so, by ``continuation``, and what may follow so is one number, which
      encodes to the same.

    Args:
        representation: with the options to check.
        examples: that each property is tried on.

    Raises:
        AssertionError: with the smallest example that fails.

    Example:
        >>> import numtok
        >>> check_representation(numtok.XVal(), examples=2)  # raises nothing
    """
    check_options(representation)
    limits = settings(
        max_examples=examples,
        deadline=None,
        database=None,
        report_multiple_bugs=False,  # else what is raised is a group of errors
        suppress_health_check=[HealthCheck.too_slow],
    )
    limits(given(st.just(representation), numbers())(check_numbers))()
    tokenizers = [
        Tokenizer.from_pretrained(None, [representation], grammar=preset)
        for preset in (Grammar.prose(), Grammar.european())
    ]
    limits(given(st.sampled_from(tokenizers), batches())(check_texts))()
    if isinstance(representation, SpelledOut):
        presets = st.sampled_from([tokenizer.grammar for tokenizer in tokenizers])
        limits(given(st.just(representation), presets, st.data())(check_continuation))()


def check_options(representation: Representation) -> None:
    """Check options through JSON, and the columns in the registry."""
    options = json.loads(json.dumps(representation.to_dict()))
    assert from_dict(options) == representation
    assert hash(from_dict(options)) == hash(representation)
    assert options["name"] == representation.name
    try:
        from_dict(options | {"no_such_option": 1})
    except RepresentationError:
        pass
    else:
        raise AssertionError(f"{representation.name} takes an option that it does not have")
    assert streams().keys() >= representation.columns().keys()


def check_numbers(representation: Representation, drawn: Numbers) -> None:
    """Check encoding, decoding and ranges, for the numbers that are held."""
    fits, clipped = representation.fits(drawn), representation.clipped(drawn)
    assert fits.dtype == clipped.dtype == np.bool_
    assert len(fits) == len(clipped) == len(drawn)
    surfaces = [text for text, fit in zip(drawn.format().to_pylist(), fits, strict=True) if fit]
    held = Numbers.parse(surfaces)
    assert representation.fits(held).all()
    if isinstance(representation, SpelledOut):
        _check_spelling(representation, held, surfaces)
    if isinstance(representation, SingleToken):
        _check_columns(representation, held, surfaces)


def _check_columns(representation: SingleToken, held: Numbers, surfaces: Sequence[str]) -> None:
    columns = representation.encode(held)
    assert {name: column.type for name, column in columns.items()} == {
        name: column.type for name, column in representation.columns().items()
    }
    assert all(len(column) == len(held) for column in columns.values())
    for number in range(len(held)):
        alone = representation.encode(Numbers.parse(surfaces[number : number + 1]))
        assert all(alone[name].equals(columns[name].slice(number, 1)) for name in columns)
    back = representation.decode(columns)
    assert len(back) == len(held)
    again = representation.encode(back)
    if representation.exact:
        assert all(again[name].equals(columns[name]) for name in columns)
        _same_decimals(back.format(), surfaces, sign=representation.carries_sign)


def _check_spelling(representation: SpelledOut, held: Numbers, surfaces: Sequence[str]) -> None:
    """Check that numbers decoded from symbols are encoded to the same symbols again."""
    spelled = representation.encode(held)
    assert len(spelled.offsets) == len(held) + 1
    assert spelled.stream is None or len(spelled.stream) == len(spelled.symbols)
    assert len(representation.token_counts(held)) == len(held)
    text = representation.decode(spelled)
    assert len(text) == len(held)
    if representation.order is not None:
        _same_decimals(text, surfaces)
    if (rules := _rules(representation, Grammar())) is not None:
        for number, surface in enumerate(surfaces):
            symbols = spelled.symbols[spelled.offsets[number] : spelled.offsets[number + 1]]
            # models need not write longer ones
            assert len(surface) > LONGEST or accepts(rules, symbols)
    again = representation.encode(Numbers.parse(text))
    assert again.symbols.tolist() == spelled.symbols.tolist()
    assert again.offsets.tolist() == spelled.offsets.tolist()


@functools.lru_cache(maxsize=2)
def _rules(representation: SpelledOut, grammar: Grammar) -> Continuation | None:
    return representation.continuation(grammar)


def accepts(rules: Continuation, symbols: Iterable[int]) -> bool:
    """Whether these symbols, one after the other, are a whole number."""
    state = 0
    for symbol in symbols:
        if (state := rules.following[state, symbol]) == NEVER:
            return False
    return bool(rules.ends[state])


def check_continuation(representation: SpelledOut, grammar: Grammar, data: st.DataObject) -> None:
    """Check that a random walk through the automaton of symbols is a number."""
    if (rules := _rules(representation, grammar)) is None:
        return
    assert (rules.to_end < len(rules.ends)).all()  # every beginning can be ended
    if (
        representation.length is not None
    ):  # then nothing but the first symbol tells where one begins
        assert rules.to_end[0] == representation.length
        first = np.flatnonzero(rules.following[0] != NEVER).tolist()
        assert first == list(representation.first_symbols)
    state, symbols = 0, list[int]()
    while not rules.ends[state] or (
        len(symbols) < 24 and (rules.following[state] != NEVER).any() and data.draw(st.booleans())
    ):
        onward = np.flatnonzero(rules.following[state] != NEVER)
        if len(symbols) >= 24:
            onward = onward[rules.to_end[rules.following[state, onward]] < rules.to_end[state]]
        symbols.append(int(onward[data.draw(st.integers(0, len(onward) - 1))]))
        state = rules.following[state, symbols[-1]]
    spelled = Spelled(np.array(symbols, np.uint16), np.array([0, len(symbols)]))
    text = in_marks_of(grammar, representation.decode(spelled)).to_pylist()
    numbers = scan(text, grammar)
    assert numbers.text().to_pylist() == text
    assert representation.fits(numbers).all()
    assert representation.encode(numbers).symbols.tolist() == symbols


def _same_decimals(decoded: pa.Array, surfaces: Sequence[str], sign: bool = True) -> None:
    for text, surface in zip(decoded.to_pylist(), surfaces, strict=True):
        one, other = Decimal(text), Decimal(surface)
        assert (one, one.is_signed()) == (other, other.is_signed()) if sign else one == abs(other)


def check_texts(tokenizer: Tokenizer, drawn: list[str]) -> None:
    """Check that texts become ids and columns and texts again, in a batch as alone."""
    try:
        batch = tokenizer.encode_batch(drawn, keep_text=True)
    except RepresentationError:  # of what it cannot hold
        assert any(one.overflow == "error" for one in tokenizer.representations)
        return
    assert tokenizer.decode_batch(batch).to_pylist() == drawn
    ids = batch.column("input_ids").to_pylist()
    index = batch.column("number_index").to_pylist()
    values = batch.column("number_value").to_pylist()
    for row, text in enumerate(drawn):
        alone = tokenizer.encode_batch([text])
        assert alone.column("input_ids").to_pylist() == [ids[row]]
        assert len(index[row]) == len(values[row])
        assert index[row] == sorted(set(index[row]))
        assert all(0 <= place < len(ids[row]) for place in index[row])
        if isinstance(tokenizer.representations[0], SpelledOut):
            _check_ids(tokenizer, np.array(ids[row], np.int32), index[row])


def _check_ids(tokenizer: Tokenizer, ids: npt.NDArray[np.int32], places: list[int]) -> None:
    """Check numbers that nothing but their tokens tell; where they are tokens of the text, those
    that stayed text are read too.
    """
    numbers_read = tokenizer.numbers_in(ids)
    first = tokenizer.representations[0]
    if isinstance(first, SpelledOut) and not first.marks_begin:
        numbers_read = [number for number in numbers_read if number[0] in places]
    assert [start for start, _, _ in numbers_read] == places
    text, end = "", 0
    for start, stop, written in numbers_read:
        spelled = ids[start:stop]
        alone = tokenizer.decode(spelled)
        assert alone.removeprefix(" ") == written
        assert tokenizer.encode(alone).input_ids.tolist() == spelled.tolist()
        text += tokenizer.decode(ids[end:start]) + alone
        end = stop
    assert tokenizer.decode(ids) == text + tokenizer.decode(ids[end:])
