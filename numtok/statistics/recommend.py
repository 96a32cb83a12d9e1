"""Which representation to take for a corpus and a task, and why, in plain words. The task decides,
by ``ADVICE``, of which docs/choosing.md has the evidence (small models, trained from scratch); the
numbers say with which options, or that another has to be taken:

- ``exact``: ``fone``, with the digits that 99% of the numbers need; ``place:lsd`` if more than 5% of
  the numbers are too long for 16 digits on either side of the point;
- ``read``: ``bits``; ``bits:64`` if float32 changes more than 1% of the numbers;
- ``arithmetic``, ``estimate``, ``column``: as in the table.

Without a task it is ``column`` where a template made the texts of columns, else ``exact``. Without
any number it is ``subword``, as nothing is to be shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from numtok.errors import InputError
from numtok.options import shown_option
from numtok.statistics.losses import Loss
from numtok.statistics.statistics import Statistics

CHANGED, TOO_LONG = 0.01, 0.05
FEW = 30  # numbers, below which what is counted says next to nothing
# shares of the numbers from which on something odd, and lakhs, which nothing else looks like, are
# told
TOLD, RARE = 0.01, 0.001
# Numbers side by side: as which one they look, and the grammar that reads them as it.
_HINTS = {
    "decimal comma": ("3,14 with a comma for the decimal point", "european"),
    "grouped by space": ("12 345, grouped by spaces", None),
    "grouped by thin space": ("12 345, grouped by thin spaces", None),
    "grouped by apostrophe": ("12'345, grouped by apostrophes", "swiss"),
    "grouped in lakhs": ("12,34,567, grouped in lakhs", "indian"),
}
ALTERNATIVES = 3  # that hold as many numbers exactly, and are named


class Advice(NamedTuple):
    """A task, and the representation that was best at it."""

    task: str  # as ``numtok stats --task`` takes it
    take: str  # the representation, as the command line takes it
    needs: str  # what a model needs to read it
    wanted: str  # what a reader wants of the numbers
    measured: str  # the finding, in a sentence
    against: str  # what speaks against it, in half a sentence


ADVICE = (
    Advice(
        "exact",
        "fone:6,4",
        "a layer and a head",
        wanted="numbers in answers right to the last digit: sums, prices, counts",
        measured="Sums and differences were learnt with fone in the fewest steps, all of them.",
        against="products of two digits were learnt less well from few pairs than with place:lsd on"
        " average, and the answers have to fit its digits too.",
    ),
    Advice(
        "arithmetic",
        "place:lsd",
        "a layer",
        wanted="arithmetic and word problems, written digit by digit",
        measured="Sums of whole numbers were learnt with place:lsd long before digits:1, and of"
        " products the most on average.",
        against="sums with digits behind the point came later than with digits:1, one seed of three"
        " was no better than fone in products, and without its layer of places it is digits:1 read"
        " backwards.",
    ),
    Advice(
        "estimate",
        "logfourier",
        "a layer and a head",
        wanted="estimates of measured values",
        measured="Values of expressions were estimated with logfourier and the head of xval with a third"
        " of what xval left unexplained, and over twelve decades 96% or more were within 10%.",
        against="digits beyond the seventh are lost, and of eight tasks at once, where it was not"
        " among those tried, quantile_bins:64,soft was near most often on average.",
    ),
    Advice(
        "column",
        "quantile_bins:32,soft",
        "a layer and a head",
        wanted="columns of tables",
        measured="Of models that read rows of two tables as text, those with quantile_bins:32,soft"
        " came nearest to a straight line on one, and were as near as those with xval:log on the"
        " other; fone with room for all numbers, digits:1 and bits were no better than the median.",
        against="a model writes a place between two edges, so that its answers are near and seldom"
        " exact, and numbers beyond those that it was fitted to stay text.",
    ),
    Advice(
        "read",
        "bits",
        "a layer and a head",
        wanted="texts whose numbers are only read",
        measured="Small models read the value of bits; that this helps the words around is its paper's"
        " finding, and hardly showed.",
        against="sums were not learnt with it in short training, and a wrong bit of the exponent is"
        " wrong by orders of magnitude; exponent_bins were read as well.",
    ),
)
BY_TASK = {one.task: one for one in ADVICE}
TASKS = tuple(BY_TASK)
PLAIN = "digits:1,bare"  # for a model that stays as it is


@dataclass(frozen=True)
class Recommendation:
    """Recommended options for encoding a corpus, with the reasons."""

    numbers: str  # the name of the representation, as :func:`numtok.encode_files` takes it
    # for that call, by name
    options: dict[str, Any]
    reasons: tuple[str, ...]  # sentences, the decisive one first
    # sentences about what looks odd in the corpus, whatever the representation
    remarks: tuple[str, ...] = ()
    # another grammar that the corpus looks as if it wanted, see :func:`wanted_grammar`; then the
    # counts are of misread numbers
    grammar: str | None = None
    # sentences about what speaks against it, and which others hold as much
    against: tuple[str, ...] = ()
    task: str | None = None  # that it is for; None without numbers, if none was named
    by_task: dict[str, str] = field(default_factory=dict)  # what to take for each of the tasks


def recommend(
    statistics: Statistics, compared: Sequence[Loss], task: str | None = None
) -> Recommendation:
    """Recommend what to take for the task, one of ``TASKS``, by the
    losses of all candidates. InputError for an unknown task.
    """
    if task is not None and task not in BY_TASK:
        raise InputError(
            f"{shown_option('task', task)} is not one of {', '.join(map(repr, TASKS))}"
        )
    if not statistics.numbers:
        nothing = "There are no numbers in these texts, so there is nothing to show to a model."
        return Recommendation("subword", {"numbers": "subword"}, (nothing,), task=task)
    default = "column" if statistics.columns.counts else "exact"
    by_task = {one: _for_task(one, statistics, compared) for one in TASKS}
    advice, chosen, why = by_task[task or default]
    reasons = [_of_task(task, default), *filter(None, [why]), advice.measured, _kept(chosen)]
    if statistics.numbers < FEW:
        reasons.insert(0, _too_few(statistics.numbers))
    return Recommendation(
        chosen.name,
        {"numbers": chosen.name},
        tuple(reasons),
        tuple(_remarks(statistics, chosen)),
        wanted_grammar(statistics),
        tuple(_against(advice, chosen, compared)),
        task or default,
        {one: loss.name for one, (_, loss, _) in by_task.items()},
    )


def _for_task(
    task: str, statistics: Statistics, compared: Sequence[Loss]
) -> tuple[Advice, Loss, str]:
    """Return (the advice for a task, the representation with options for these numbers, why these)."""
    advice, by_name = BY_TASK[task], {loss.name: loss for loss in compared}
    if task == "exact":
        fone = next(loss for loss in compared if loss.representation.name == "fone")
        kind: Any = fone.representation
        if fone.left_as_text <= TOO_LONG * statistics.numbers:
            share = _percent(1 - fone.left_as_text / statistics.numbers)
            held = f"{kind.n_digits} digits hold {share}"
            return advice, fone, f"{held} of the numbers; take more if answers are longer."
        share = _percent(fone.left_as_text / statistics.numbers)
        why = f"{share} of the numbers are too long for the {kind.n_digits} digits of one token"
        advice = BY_TASK["arithmetic"]
        return advice, by_name[advice.take], f"{why}, so each digit gets a token with its place."
    bits = by_name["bits"]
    if task == "read" and bits.rounded + bits.left_as_text > CHANGED * statistics.numbers:
        share = _percent((bits.rounded + bits.left_as_text) / statistics.numbers)
        return advice, by_name["bits:64"], f"float32 does not hold {share} of the numbers exactly."
    return advice, by_name[advice.take], ""


def _of_task(task: str | None, default: str) -> str:
    """Say for which task it is."""
    wanted = BY_TASK[task or default].wanted
    if task is not None:
        return f"For {wanted}, as {shown_option('task', task)}."
    why = "the texts are made of columns" if default == "column" else "no task was named"
    return f"For {wanted}, as {why}: task=... (--task) names another."


def _too_few(count: int) -> str:
    numbers = "There is only 1 number" if count == 1 else f"There are only {count} numbers"
    return (
        f"{numbers}, which is too few to go by: below {FEW}, what is counted here says next to"
        " nothing of the numbers that a model will meet."
    )


def _against(advice: Advice, chosen: Loss, compared: Sequence[Loss]) -> Iterator[str]:
    """Say what speaks against the one that is chosen, which others hold as much, and what to take
    for a model that stays as it is.
    """
    if advice.against:
        yield f"Against {chosen.name}: {advice.against}"
    others = [
        loss
        for loss in compared
        if loss.exact >= chosen.exact and loss.tokens is not None and loss.name != chosen.name
    ]
    others.sort(key=lambda loss: (-loss.exact, loss.tokens))
    if exact_names := [
        f"{loss.name} ({_percent(loss.exact / loss.numbers)}, {loss.tokens:.3g} tokens each)"
        for loss in others[:ALTERNATIVES]
    ]:
        yield f"At least as many numbers are exact in {', '.join(exact_names)}."
    yield (
        f"{chosen.name} needs {advice.needs} of numtok, so the model becomes a NumberModel; {PLAIN}"
        " changes nothing but the vocabulary."
    )


def _kept(chosen: Loss) -> str:
    """Return a sentence that says how many numbers the representation keeps exactly, rounds, clips
    and leaves as text.
    """
    counts = (
        (chosen.exact, "of the numbers are read back exactly"),
        (chosen.rounded, f"are rounded by at most {chosen.worst_error:.1g} of their value"),
        (chosen.clipped, "are clipped"),
        (chosen.left_as_text, "stay text"),
    )
    counts_shown = [
        (count, what) for place, (count, what) in enumerate(counts) if count or not place
    ]
    parts = (f"{_percent(count / chosen.numbers)} {what}" for count, what in counts_shown)
    return f"In {chosen.name}, {', '.join(parts)}."


def _remarks(statistics: Statistics, chosen: Loss) -> Iterator[str]:
    """Yield sentences about numbers that look misread or need attention."""
    zeros = statistics.counts.labelled("marks").get("leading zeros", 0)
    if zeros > TOLD * statistics.written:
        yield (
            f"{_percent(zeros / statistics.written)} are written with leading zeros, as codes are; only"
            " place and digits keep those (with keep_text=True (--keep-text), decoding gives them"
            " back)."
        )
    hyphens = statistics.counts.labelled("marks").get("minus after a word", 0)
    if hyphens > RARE * statistics.written:
        yield (
            f"{hyphens:,} have a minus sign after a word and a space, as the -300 of 75 -300mm and"
            " the -19 of COVID -19: look whether these are hyphens, which the grammar reads as"
            " signs."
        )
    for kind, count in _hints(statistics).items():
        yield (
            f"{count:,} times the grammar that was used reads several numbers where one seems to be"
            f" meant: {_HINTS[kind][0]}."
        )
    negative = int(statistics.counts["negative_decades"].sum())
    if not chosen.representation.carries_sign and negative > TOLD * statistics.numbers:
        yield (
            f"{_percent(negative / statistics.numbers)} are negative;"
            f" {chosen.representation.name} shows"
            " magnitudes, so their sign is a token of text before them."
        )
    if beyond := int(statistics.counts["beyond_float64"].sum()):
        yield f"{beyond:,} numbers are beyond float64 (1.8e308, or nearer to zero than 5e-324)."


def wanted_grammar(statistics: Statistics) -> str | None:
    """Return the name of the grammar that the written forms ask for in place of the one that was
    used; None if none does.

    The most frequent kind of numbers side by side decides, of those that make more than 1% of all
    numbers, or 0.1% for lakhs, as nothing else looks like them in running text. The decimal comma
    also has to be more frequent than numbers with one, two, or more than three digits after a
    point: with three, the point may be a european separator.
    """
    asking = {kind: count for kind, count in _hints(statistics).items() if _HINTS[kind][1]}
    return _HINTS[max(asking, key=asking.__getitem__)][1] if asking else None


def _hints(statistics: Statistics) -> dict[str, int]:
    """Return the kinds of numbers side by side that are frequent enough to tell."""
    counts = statistics.counts.labelled("side_by_side")
    fraction = statistics.counts["fraction_digits"]
    if counts.get("decimal comma", 0) <= int(fraction.sum() - fraction[0] - fraction[3]):
        counts.pop("decimal comma", None)
    least = {"grouped in lakhs": RARE}
    return {
        kind: count
        for kind, count in counts.items()
        if count > least.get(kind, TOLD) * statistics.in_text
    }


def _percent(share: float) -> str:
    """Format a share: ``12%``, ``0.3%``; ``less than 0.1%`` rather than 0."""
    if 0 < share < 0.001:
        return "less than 0.1%"
    return f"{100 * share:.1f}".removesuffix(".0") + "%"
