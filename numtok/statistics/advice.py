"""Advise which representation to take for which task, in one table. ``numtok stats`` recommends by
it, and the tables of README.md and docs/choosing.md are written from it (``python docs/advice.py``).

What was measured stands in docs/evidence.md: on small models, trained from scratch.
"""

from __future__ import annotations

from typing import NamedTuple


class Advice(NamedTuple):
    """A task, and the representation that was best at it."""

    take: str  # the representation, as the command line takes it
    kind: (
        str  # "tokens" change nothing but the vocabulary; "tokens, layer" and "value" need a layer
    )
    how: str  # how it shows a number, in a line
    wanted: str = ""  # what a reader has and wants, for README; empty: not listed there
    task: str = ""  # as ``numtok stats --task`` takes it; empty: ``numtok stats`` does not ask
    model: str = ""  # what the model has to do, for docs/choosing.md; empty: not listed there
    section: str = ""  # the heading there that has the evidence
    more: str = ""  # what to take beside or instead, for that table
    measured: str = ""  # the finding, in a sentence
    against: str = ""  # what speaks against it, in half a sentence


ADVICE = (
    Advice(
        "digits:1,bare",
        "tokens",
        "the model's own digits and nothing else",
        wanted="a pretrained model whose tokenizer writes single digits: Qwen, Llama 2, SmolLM2",
    ),
    Advice(
        "digits:1",
        "tokens",
        "one for each digit, between `[NUM]` and `[/NUM]`",
        wanted="any other model, changed in nothing but its vocabulary",
        model="stay a plain model of tokens",
        section="a-plain-model-of-tokens",
        against="it took more steps than fone for sums and differences, and more tokens than a value.",
    ),
    Advice(
        "fone:6,4",
        "value",
        "up to 6 digits before the point and 4 after it, each read and written",
        wanted="numbers in answers right to the last digit: sums, prices, counts",
        task="exact",
        model="say sums and differences that are right to the last digit",
        section="right-to-the-last-digit",
        more="wide enough for the answers too",
        measured="Sums and differences were learnt with fone in the fewest steps, all of them.",
        against="products of two digits were learnt less well from few pairs than with place:lsd on"
        " average, and the answers have to fit its digits too.",
    ),
    Advice(
        "place:lsd",
        "tokens, layer",
        "digits, the last one first; the layer reads their places",
        wanted="arithmetic and word problems, written digit by digit",
        task="arithmetic",
        model="do arithmetic and word problems, written digit by digit",
        section="right-to-the-last-digit-token-by-token",
        measured="Sums of whole numbers were learnt with place:lsd long before digits:1, and of"
        " products the most on average.",
        against="sums with digits behind the point came later than with digits:1, one seed of three"
        " was no better than fone in products, and without its layer of places it is digits:1 read"
        " backwards.",
    ),
    Advice(
        "logfourier",
        "value",
        "its sign, and waves of its logarithm",
        wanted="estimates of measured values",
        task="estimate",
        model="estimate quantities",
        section="estimates",
        more='with `head="scalar"` if all answers are of one scale',
        measured="Values of expressions were estimated with logfourier and the head of xval with a third"
        " of what xval left unexplained, and over twelve decades 96% or more were within 10%.",
        against="digits beyond the seventh are lost, and of eight tasks at once, where it was not"
        " among those tried, quantile_bins:64,soft was near most often on average.",
    ),
    Advice(
        "xval",
        "value",
        "the scaled value, and a mixture of Gaussians as the head",
        model="say which of several values it may be",
        section="several-possible-values",
        more='with `head="mixture"`',
    ),
    Advice(
        "quantile_bins:32,soft",
        "value",
        "which 32nd of all values it is in",
        wanted="columns of tables",
        task="column",
        model="say a column of a table from the others",
        section="columns-of-a-table",
        measured="Of models that read rows of two tables as text, those with quantile_bins:32,soft"
        " came nearest to a straight line on one, and were as near as those with xval:log on the"
        " other; fone with room for all numbers, digits:1 and bits were no better than the median.",
        against="a model writes a place between two edges, so that its answers are near and seldom"
        " exact, and numbers beyond those that it was fitted to stay text.",
    ),
    Advice(
        "bits",
        "value",
        "the bits of the float",
        wanted="texts whose numbers are only read",
        task="read",
        model="read numbers and write words",
        section="numbers-that-are-only-read",
        more="or `exponent_bins`",
        measured="Small models read the value of bits; that this helps the words around is its paper's"
        " finding, and hardly showed.",
        against="sums were not learnt with it in short training, and a wrong bit of the exponent is"
        " wrong by orders of magnitude; exponent_bins were read as well.",
    ),
    Advice(
        "subword",
        "tokens",
        "what your tokenizer does",
        wanted="to compare with what you had",
    ),
)
BY_TASK = {one.task: one for one in ADVICE if one.task}
TASKS = tuple(BY_TASK)
PLAIN = next(one for one in ADVICE if one.kind == "tokens")  # for a model that stays as it is
