"""What a number that a head predicted is from then on: one decimal, from which its text and all of
its streams follow.

In: a head's prediction for n numbers. Out: ``Numbers``, their text, and the streams (n, ...) that
    the model is shown. They are those that the tokenizer gives for the text, whichever head
    predicted them, so that a model reads what it wrote as it was shown it.

**One decimal, however it was computed.** Float32 sums depend on the order in which they are made,
so a cache, padding, or other rows in a batch move a real number by 1e-7 to 1e-5, and with it all
digits and bits behind. So it is rounded, to :data:`DIGITS` significant digits; and where the noise
may decide which way (:func:`doubtful`), it is read once more from its own text alone, without cache
and padding, which is the same computation in every run. Digits (``FoNEHead``) and bits
(``BitsHead``) are chosen among few, as tokens are, and taken as they are.

What remains: noise beyond ``heads.base.NOISE``, and a token, digit or bit whose two best are closer
    than the noise, some 1 in 10**6 each in float32. In bfloat16 the noise is 1e-2, and tokens
    themselves differ with and without a cache.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from numtok import Tokenizer
from numtok.numbers.numbers import Numbers
from numtok.representations import Representation
from numtok.representations.values import numbers_from_floats
from numtok_torch.heads.base import NumberPrediction

# significant ones of a real number: one more would be noise in a model that amplifies it; about one
# number in ten is read twice
DIGITS = 4
Floats = npt.NDArray[np.float64]


def rounded(values: Floats) -> Floats:
    """float64 (...) to :data:`DIGITS` significant digits; infinities and NaN stay."""
    flat = [float(f"{value:.{DIGITS - 1}e}") for value in values.ravel()]
    return np.array(flat, np.float64).reshape(values.shape)


def doubtful(prediction: NumberPrediction) -> npt.NDArray[np.bool_]:
    """Bool (n,): whether float noise decides how a number is rounded."""
    if prediction.bounds is None:
        return np.zeros(len(prediction.values), np.bool_)
    low, high = rounded(prediction.bounds.numpy()).T  # (n,) each
    differs: npt.NDArray[np.bool_] = low != high
    return differs


def decimals(tokenizer: Tokenizer, prediction: NumberPrediction, name: str) -> Numbers:
    """The numbers as decimals that all representations of the tokenizer hold; magnitudes where one
    of them does not carry the sign.

    Raises:
        RepresentationError: for NaN, with the head's ``name``.
    """
    chosen = {stream: values.numpy() for stream, values in prediction.streams.items()}
    readings = (
        representation.decode_chosen(chosen) for representation in tokenizer.representations
    )
    numbers = next((numbers for numbers in readings if numbers is not None), None)
    if numbers is None:
        finite = torch.nan_to_num(
            prediction.values, nan=float("nan")
        ).numpy()  # infinities as the largest double
        numbers = numbers_from_floats(rounded(finite), name)
    if not tokenizer.carries_sign:
        numbers = Numbers.parse([text.removeprefix("-") for text in numbers.format().to_pylist()])
    return held(tokenizer.representations, numbers)


def held(representations: Sequence[Representation], numbers: Numbers) -> Numbers:
    """The numbers, each replaced by one near it that all of the representations hold."""
    for (
        _
    ) in representations:  # what one of them makes of a number may be more than another can hold
        for representation in representations:
            numbers = representation.nearest(numbers)
    return numbers


def texts_of(tokenizer: Tokenizer, numbers: Numbers, prediction: NumberPrediction) -> list[str]:
    """As they are written; a head that predicts a sign which the tokenizer leaves in the text
    (``FoNEHead(sign=True)``) has it written.
    """
    texts = [str(text) for text in numbers.format().to_pylist()]
    if tokenizer.carries_sign or "number_digits" not in prediction.streams:
        return texts
    return [
        f"-{text}" if negative else text
        for text, negative in zip(texts, prediction.values.signbit().tolist(), strict=True)
    ]


def streams_of(tokenizer: Tokenizer, numbers: Numbers) -> dict[str, Tensor]:
    """Every number stream (n, ...) of the tokenizer, as it gives them for the text."""
    streams = {"number_value": torch.from_numpy(numbers.to_float64().copy())}
    for representation in tokenizer.representations:
        columns = representation.columns()
        for name, column in representation.encode_columns(numbers).items():
            array = (
                column.to_numpy_ndarray()
                if hasattr(column, "to_numpy_ndarray")
                else column.to_numpy(zero_copy_only=False)
            )
            streams[name] = torch.from_numpy(array.astype(columns[name].dtype))
    return streams
