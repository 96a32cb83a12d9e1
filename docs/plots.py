"""``python docs/plots.py [FOLDER]``: draw the pictures of representations.md, all from values that
the code computes.

Needs the extra ``report``. Writes PNG files into docs/images/, or the folder named.
"""

from __future__ import annotations

import io
import itertools
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from numtok import Numbers
from numtok.representations import (
    B1999,
    P10,
    P1000,
    Digits,
    ExponentBins,
    FloatBits,
    FoNE,
    LogFourier,
    PlaceValue,
    Representation,
    SingleToken,
    SpelledOut,
    XVal,
)

IMAGES = Path(__file__).with_name("images")
# Transparent, and in colours that are readable on light and on dark pages.
INK, FAINT = "#768390", "#76839066"
BLUE, ORANGE, GREEN, RED, PURPLE, SKY = (
    "#2f81d6",
    "#d9822b",
    "#2a9d6f",
    "#d1495b",
    "#9b6bc4",
    "#3aa6b9",
)
STYLE = {
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.titlecolor": INK,
    "font.size": 9.5,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": "#76839033",
    "savefig.dpi": 130,
}


def decoded(representation: Representation, numbers: Numbers) -> list[Decimal]:
    """Return the values that a representation holds of numbers: encode, then decode."""
    if isinstance(representation, SpelledOut):
        return Numbers.parse(representation.decode(representation.encode(numbers))).to_decimal()
    assert isinstance(representation, SingleToken)
    return representation.decode(representation.encode(numbers)).to_decimal()


def fone_phases() -> Any:
    """Draw a row of dials per number: the hand of each period, and the digit that turns it most."""
    import matplotlib.pyplot as plt

    literals, fone = ["4.17", "4.18", "60.2", "999.99"], FoNE(3, 2)
    digits = fone.digits(Numbers.parse(literals))
    features = fone.features(digits)  # [numbers, periods, 2]
    figure, axes = plt.subplots(
        len(literals), len(fone.periods), figsize=(7.6, 6.2), layout="constrained"
    )
    turns = np.linspace(0, 2 * np.pi, 200)
    for row, literal in enumerate(literals):
        for column, period in enumerate(fone.periods):
            axis, (x, y) = axes[row, column], features[row, column]
            axis.plot(np.cos(turns), np.sin(turns), color=FAINT, lw=1)
            for digit in range(10):
                angle = 2 * np.pi * digit / 10
                axis.text(
                    1.32 * np.cos(angle),
                    1.32 * np.sin(angle),
                    str(digit),
                    ha="center",
                    va="center",
                    fontsize=7,
                    color=INK,
                )
            axis.plot([0, x], [0, y], color=BLUE, lw=2.2, solid_capstyle="round")
            axis.plot(x, y, "o", color=BLUE, ms=4.5)
            turn = f"{np.arctan2(y, x) / (2 * np.pi) % 1:.5f}".rstrip("0").rstrip(".")
            axis.text(
                0,
                -1.75,
                f"digit {digits[row, column]}, turn {turn}",
                ha="center",
                va="center",
                fontsize=8,
            )
            axis.set(aspect="equal", xlim=(-1.5, 1.5), ylim=(-1.95, 1.5))
            axis.axis("off")
            if row == 0:
                axis.set_title(f"period {period.normalize():f}", fontsize=9.5, loc="center")
        axes[row, 0].text(-2.6, 0, literal, ha="right", va="center", fontsize=13, fontweight="bold")
    figure.suptitle(
        "FoNE: a clock for each digit; the digits below it move its hand on",
        x=0.02,
        ha="left",
        fontsize=12,
    )
    return figure


def xval_layer_norm() -> Any:
    """Draw xVal's value after the first layer norm."""
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(7.2, 3.6), layout="constrained")
    x = np.linspace(-7, 14, 1001)
    axis.axvspan(-5, 5, color=BLUE, alpha=0.08, lw=0)
    axis.plot(x, x / np.sqrt(1 + x**2), color=BLUE, lw=2)
    marked = {value: value / np.sqrt(1 + value**2) for value in (1, 2, 3, 4, 5, 10, 12)}
    for value, y in marked.items():
        axis.plot(value, y, "o", color=BLUE if value <= 5 else RED, ms=5)
        axis.annotate(
            str(value),
            (value, y),
            xytext=(2, -13),
            textcoords="offset points",
            color=BLUE if value <= 5 else RED,
        )
    for a, b, place, colour in (
        (1, 2, (1.6, 0.45), BLUE),
        (4, 5, (1.6, 0.25), BLUE),
        (10, 12, (7.4, 0.45), RED),
    ):
        axis.text(*place, f"{a} and {b}: {marked[b] - marked[a]:.2g} apart", color=colour)
    axis.text(-4.8, 0.9, "XVal.fit puts the\nnumbers within ±5", color=BLUE, va="top")
    axis.text(7.4, 0.25, "hardly told apart any more", color=RED)
    axis.set(
        xlabel="number_scaled, x",
        ylabel="behind the layer norm, x/√(1 + x²)",
        xlim=(-7, 14),
        ylim=(-1.08, 1.14),
        xticks=(-5, 0, 5, 10),
    )
    axis.set_title("xVal: layer norm flattens large values, so the scale matters")
    return figure


def bins() -> Any:
    """Draw all bins on a logarithmic axis, and the numbers that a few of them decode to."""
    import matplotlib.pyplot as plt

    representation = ExponentBins()
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.2, 3.5), layout="constrained")
    magnitudes = np.geomspace(1e-4, 1e6, 2000)
    numbers = Numbers.parse([repr(float(value)) for value in magnitudes])
    left.semilogx(
        magnitudes, representation.encode(numbers)["number_bin"].to_numpy(), color=ORANGE, lw=2
    )
    for value in (0.01, 1, 60.2, 10000):
        one = int(representation.encode(Numbers.parse([str(value)]))["number_bin"][0].as_py())
        left.plot(value, one, "o", color=INK, ms=4)
        left.annotate(
            f"{value:g}: bin {one}",
            (value, one),
            xytext=(8, -9),
            textcoords="offset points",
            fontsize=8.5,
        )
    left.set(xlabel="magnitude", ylabel="number_bin", ylim=(0, 205), xlim=(5e-5, 2e7))
    left.set_title("200 bins, 20 for each power of ten")
    x = np.linspace(55, 80, 4000)
    y = [
        float(value)
        for value in decoded(representation, Numbers.parse([repr(float(value)) for value in x]))
    ]
    right.plot(x, x, color=FAINT, lw=1.2)
    right.fill_between(
        x,
        x * (1 - representation.relative_error),
        x * (1 + representation.relative_error),
        color=ORANGE,
        alpha=0.13,
        lw=0,
    )
    right.plot(x, y, color=ORANGE, lw=2)
    right.text(56, 78.5, f"± {representation.relative_error:.1%}", color=ORANGE, va="top")
    right.set(xlabel="number", ylabel="what the bin decodes to", xlim=(55, 80), ylim=(51, 85))
    right.set_title("A bin stands for its centre")
    return figure


def errors(representation: Representation, literals: list[str]) -> float:
    """Return the largest relative error of numbers that are written with many digits."""
    numbers = Numbers.parse(literals)
    pairs = zip(numbers.to_decimal(), decoded(representation, numbers), strict=True)
    return max(float(abs((abs(now) - abs(before)) / before)) for before, now in pairs)


def relative_error() -> Any:
    """Draw the largest relative error in each third of a decade, of numbers with twelve digits.
    Numbers out of range are clipped.
    """
    import matplotlib.pyplot as plt

    shown: list[tuple[Representation, str, str, tuple[float, float]]] = [
        (ExponentBins(overflow="clip"), "bins", ORANGE, (1e3, 0.12)),
        (B1999(overflow="clip"), "p10, p1000, b1999, fp15", GREEN, (3e-2, 1.3e-2)),
        (LogFourier(), "logfourier", PURPLE, (1e-17, 9e-7)),
        (FloatBits(), "xval, bits: float32", BLUE, (1e-17, 1.2e-8)),
        (XVal(scale=5e-6, clip=5.0), "xval fitted to ±10⁶: clipped above", SKY, (2.5e6, 3e-5)),
        (FoNE(6, 4, overflow="clip"), "fone:6,4", RED, (2e-3, 2e-5)),
        (FloatBits(width=64), "", INK, (1e-17, 2.2e-13)),  # exact: covered by the next line
        (PlaceValue(), "place, digits, bits:64: exact", INK, (1e-17, 2.2e-13)),
    ]
    rng = np.random.default_rng(0)
    edges = 10.0 ** np.arange(-18, 18.01, 1 / 3)
    samples = [
        [f"{value:.11e}" for value in np.exp(rng.uniform(np.log(a), np.log(b), 60))]
        for a, b in itertools.pairwise(edges)
    ]
    figure, axis = plt.subplots(figsize=(8.2, 5.0), layout="constrained")
    middles = np.sqrt(edges[:-1] * edges[1:])
    exact_line = 1e-13  # zero has no place on a logarithmic axis
    for representation, label, colour, place in shown:
        largest: npt.NDArray[np.float64] = np.array(
            [errors(representation, literals) for literals in samples]
        )
        width, style = (1.4, (0, (4, 2))) if colour == SKY else (1.9, "solid")
        axis.loglog(middles, np.clip(largest, exact_line, 10), color=colour, lw=width, ls=style)
        axis.text(*place, label, color=colour, fontsize=9, va="center")
    axis.set(
        xlabel="magnitude of the number",
        ylabel="largest relative error",
        ylim=(4e-14, 8),
        xlim=(1e-18, 1e18),
    )
    axis.set_yticks(
        [exact_line, 1e-11, 1e-9, 1e-7, 1e-5, 1e-3, 1e-1, 1],
        ["0", *(f"$10^{{{k}}}$" for k in (-11, -9, -7, -5, -3, -1)), "1"],
    )
    axis.minorticks_off()
    axis.grid(True)
    axis.set_title("What is lost of a number with twelve digits (out of range: overflow='clip')")
    return figure


def tokens_of_an_integer() -> Any:
    """Draw how many tokens an integer takes, by its digits, brackets included."""
    import matplotlib.pyplot as plt

    shown: list[tuple[SpelledOut | SingleToken, str, str]] = [
        (Digits(1), "place, digits:1", BLUE),
        (Digits(2), "digits:2", SKY),
        (Digits(3), "digits:3", RED),
        (P10(), "p10", GREEN),
        (P1000(), "p1000", ORANGE),
        (XVal(), "one token: xval, bits, fone, …", INK),
    ]
    figure, axis = plt.subplots(figsize=(7.2, 3.6), layout="constrained")
    for representation, label, colour in shown:
        numbers = Numbers.parse(["7" * digits for digits in range(1, 17)])
        held = np.flatnonzero(representation.fits(numbers))
        counts = np.ones(len(held))
        if isinstance(representation, SpelledOut):
            counts = representation.token_counts(numbers.select(held))
        axis.step(held + 1, counts, where="mid", color=colour, lw=2)
        axis.text(held[-1] + 1.6, counts[-1], label, color=colour, va="center", fontsize=9)
    axis.set(
        xlabel="digits of the integer",
        ylabel="tokens",
        xlim=(0.5, 22),
        ylim=(0, 19),
        xticks=range(1, 17, 3),
        yticks=range(0, 19, 3),
    )
    axis.grid(True)
    axis.set_title("What an integer costs, as far as it can be held; brackets included")
    return figure


def save(figure: Any, path: Path) -> None:
    """Write a figure as a PNG with a palette, a third of the size, and a transparent background."""
    import matplotlib.pyplot as plt
    from PIL import Image

    with io.BytesIO() as buffer:
        figure.savefig(buffer)
        plt.close(figure)
        Image.open(buffer).quantize(256, method=Image.Quantize.FASTOCTREE).save(path, optimize=True)


PLOTS: tuple[Callable[[], Any], ...] = (
    fone_phases,
    xval_layer_norm,
    bins,
    relative_error,
    tokens_of_an_integer,
)


def main(folder: Path = IMAGES) -> None:
    """Draw all pictures."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update(STYLE)
    folder.mkdir(parents=True, exist_ok=True)
    for plot in PLOTS:
        path = folder / f"{plot.__name__}.png"
        save(plot(), path)
        print(f"{path}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
