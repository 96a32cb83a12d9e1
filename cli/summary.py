"""Print what became of a corpus: counts, and warnings of numbers that a model would not see."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .console import Row, duration, print_warning, rate, size

if TYPE_CHECKING:
    from numtok.corpus.fit import Fit
    from numtok.corpus.summary import Summary

# shares of numbers, above which the user is told of them
VANISHING, CLIPPED, LEFT = 0.01, 0.1, 0.01


def warn(summary: Summary, packed: bool) -> None:
    """Warn of documents without text, of no numbers at all, and of many numbers left as text or
    lost to a scale.
    """
    if summary.without_text:
        became = "pieces without tokens" if packed else "null rows"
        print_warning(
            f"{summary.without_text:,} of {summary.documents:,} documents have no text (it is"
            f" missing or null) and are {became}, the first in {summary.first_without_text}"
        )
    if summary.documents and not summary.numbers:
        _warn_of_no_numbers(summary)
    if left := _left_as_text(summary):
        print_warning(left)
    log = any(getattr(representation, "log", False) for representation in summary.representations)
    kept = max(summary.numbers - sum(summary.left_as_text.values()), 1)
    vanishing, clipped = summary.vanishing.get("xval", 0), summary.clipped.get("xval", 0)
    if vanishing > VANISHING * kept or clipped > CLIPPED * kept:
        more = "" if log else "--numbers xval:log holds more of them, and "
        print_warning(
            f"with this scale of xval, {vanishing / kept:.1%} of the numbers are nearly zero for"
            f" the model and {clipped / kept:.1%} are clipped; {more}--numbers bits holds numbers"
            " of all magnitudes"
        )


def _left_as_text(summary: Summary) -> str:
    """Say how many numbers, of all and of each column of a template, stay text; or nothing, if those
    are few.
    """

    left, there = summary.left_by_column, summary.numbers_by_column
    columns = [
        f"{count:,} of {there[name]:,} in column {name!r}"
        for name, count in left.items()
        if count > LEFT * there[name]
    ]
    total = sum(summary.left_as_text.values())
    if not columns and total <= LEFT * summary.numbers:
        return ""
    names = [one.spec() for one in summary.representations if one.name in summary.left_as_text]
    where = f" ({', '.join(columns)})" if columns else ""
    return (
        f"{' and '.join(names)} cannot hold {total / summary.numbers:.1%} of the numbers{where}, which"
        " stay ordinary text: a model gets no value of them. `numtok stats` says which"
        " representations hold them; --overflow clip takes the nearest number that is held"
    )


def _warn_of_no_numbers(summary: Summary) -> None:
    """Say where there are some, in a table."""
    columns = ", ".join(map(repr, summary.number_columns))
    template = " ".join(f"{{{name}}}" for name in summary.number_columns)
    where = f" in {summary.text_column!r}" if summary.text_column else ""
    ways = (
        f"; the columns {columns} hold some: join them to the text with --template '{template}', or"
        " all with --template row"
        if columns
        else "; with tables, --template joins columns to the text"
    )
    print_warning(f"there are no numbers{where}{ways}")


def rows_of(
    summary: Summary, numbers: Any, pack: int | None = None, framed: bool = False
) -> Iterator[Row]:
    """Yield the rows (name, value, remark) of the table printed at the end. ``numbers``: the option
    as the user gave it; if it is no text, the names of the summary's representations are shown.
    ``pack``: the length of packed rows. ``framed``: whether texts have special tokens, one of which
    may be the end token, so that it is not known how full the rows are.
    """
    if not isinstance(numbers, str):
        numbers = ",".join(representation.name for representation in summary.representations)
    skipped = f"{summary.skipped:,} skipped, see {summary.quarantine}" if summary.skipped else ""
    each = f"{summary.bytes / summary.tokens:.2f} bytes each" if summary.tokens else ""
    column = f"of {summary.text_column!r}; " if summary.text_column else ""
    yield "documents", f"{summary.documents:,}", skipped
    yield "text", size(summary.bytes), column + _time_taken(summary)
    yield "tokens", f"{summary.tokens:,}", each
    yield "numbers", f"{summary.numbers:,}", f"as {numbers}"
    if pack:
        full = summary.tokens + summary.documents - summary.without_text
        share = "" if framed else f", {full / max(summary.rows * pack, 1):.2%} full"
        yield "rows", f"{summary.rows:,}", f"of at most {pack:,} tokens{share}"
    if summary.fit is not None:
        yield from _fitted(summary.fit)
    yield from _lost(summary)
    for name, count in summary.splits.items():
        yield f"of {name}", f"{count:,}", "documents"
    if summary.shards:
        remarks = [f"{summary.resumed:,} were done before"] if summary.resumed else []
        left = summary.shards - summary.shards_done
        remarks += [f"{left:,} are not done yet"] if left else []
        yield "shards", f"{summary.shards:,}", "; ".join(remarks)
    share = f"{summary.output_bytes / max(summary.bytes, 1):.2f} of the text's size"
    yield "output", size(summary.output_bytes), share if summary.bytes else "there is no text"


def _lost(summary: Summary) -> Iterator[Row]:
    """Yield the numbers that are not as they were, by what became of them."""
    kinds = (
        ("cut numbers", summary.cut_numbers, "longer than a row, so that they lie in several"),
        ("left as text", summary.left_as_text, "cannot be held: "),
        ("clipped", summary.clipped, ""),
        ("nearly zero", summary.vanishing, "below 0.001 once scaled: "),
        (
            "in added tokens", summary.in_added_tokens,
            "digits within the tokenizer's own tokens, not numbers",
        ),
    )  # fmt: skip
    for label, lost, why in kinds:
        by = lost if isinstance(lost, dict) else {}
        if count := sum(by.values()) if by else lost:
            each = sorted(by.items())
            yield label, f"{count:,}", why + ", ".join(f"{n:,} by {name}" for name, n in each if n)


def _fitted(fit: Fit) -> Iterator[Row]:
    """Yield a row for each fitted representation, with the options that give other files the same
    scale.
    """
    to = f"({fit.numbers:,} numbers of {fit.documents:,} documents)"
    if xval := fit.xval:
        effect = "there is no number but zero to fit it to"
        if fit.largest is not None:
            effect = f"{fit.largest:.4g} becomes 5 {to}"
        again = f"--scale {xval.scale!r} --clip {xval.clip:g}"
        yield "xval's scale", f"{xval.scale!r}", f"{effect}; for more files: {again}"
    yield from ((f"fitted {one.name}", "", to) for one in fit.fitted if not one.has_scale)


def _time_taken(summary: Summary) -> str:
    """Return the duration of the run and its speed. A resumed run has no speed, as parts were done
    before.
    """
    if summary.resumed or not summary.seconds:
        return duration(summary.seconds) if summary.seconds else ""
    return f"{rate(summary.bytes, summary.seconds)}, without start-up"
