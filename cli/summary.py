"""What encoding has come to, for people: the table at the end, and warnings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .console import duration, print_table, print_warning, rate, size

if TYPE_CHECKING:
    from numtok.corpus.fit import Fit
    from numtok.corpus.summary import Summary

VANISHING, CLIPPED = 0.01, 0.1  # shares of numbers lost to a scale, above which the user is told


def print_warnings(summary: Summary, packed: bool) -> None:
    """Documents without text, no numbers at all, and many numbers lost to a scale."""
    if summary.without_text:
        became = "pieces without tokens" if packed else "null rows"
        print_warning(
            f"{summary.without_text:,} of {summary.documents:,} documents have no text (it is"
            f" missing or null) and are {became}, the first in {summary.first_without_text}"
        )
    if summary.documents and not summary.numbers:
        warn_of_no_numbers(summary)
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


def warn_of_no_numbers(summary: Summary) -> None:
    """Say where there are some, in a table."""
    found = ", ".join(map(repr, summary.number_columns))
    template = " ".join(f"{{{name}}}" for name in summary.number_columns)
    where = f" in {summary.text_column!r}" if summary.text_column else ""
    ways = (
        f"; the columns {found} hold some: join them to the text with --template '{template}', or"
        " all with --template row"
        if found
        else "; with tables, --template joins columns to the text"
    )
    print_warning(f"there are no numbers{where}{ways}")


def print_summary(summary: Summary, numbers: str | None, pack: int | None = None) -> None:
    """The table at the end; ``numbers`` as asked for, ``pack`` the length of packed rows."""
    if not isinstance(numbers, str):
        numbers = ",".join(representation.name for representation in summary.representations)
    skipped = f"{summary.skipped:,} left out, see {summary.quarantine}" if summary.skipped else ""
    each = f"{summary.bytes / summary.tokens:.2f} bytes each" if summary.tokens else ""
    column = f"of {summary.text_column!r}; " if summary.text_column else ""
    rows = [
        ("documents", f"{summary.documents:,}", skipped),
        ("text", size(summary.bytes), column + _time_taken(summary)),
        ("tokens", f"{summary.tokens:,}", each),
        ("numbers", f"{summary.numbers:,}", f"as {numbers}"),
    ]
    if pack:
        full = summary.tokens + summary.documents - summary.without_text
        share = f"{full / max(summary.rows * pack, 1):.2%} full"
        rows.append(("rows", f"{summary.rows:,}", f"of at most {pack:,} tokens, {share}"))
    if summary.fit is not None:
        rows += _fitted(summary.fit)
    rows += _lost(summary)
    rows += [(f"of {name}", f"{count:,}", "documents") for name, count in summary.splits.items()]
    if summary.shards:
        rows.append(("shards", f"{summary.shards:,}", _shards_left(summary)))
    share = f"{summary.output_bytes / max(summary.bytes, 1):.2f} of the text's size"
    remark = share if summary.bytes else "there is no text"
    rows.append(("output", size(summary.output_bytes), remark))
    piped = summary.output == "-"
    print_table(rows, "standard output" if piped else summary.output, err=piped)


def _lost(summary: Summary) -> list[tuple[str, str, str]]:
    """The numbers that are not as they were, by what became of them."""
    cut, inside = {"": summary.cut_numbers}, {"": summary.in_added_tokens}
    kinds = (
        ("cut numbers", cut, "longer than a row, so that they lie in several"),
        ("left as text", summary.left_as_text, "cannot be held: "),
        ("clipped", summary.clipped, ""),
        ("nearly zero", summary.vanishing, "below 0.001 once scaled: "),
        ("in added tokens", inside, "digits within the tokenizer's own tokens, not numbers"),
    )
    return [
        (label, f"{sum(by_name.values()):,}", why + ("" if "" in by_name else by(by_name)))
        for label, by_name, why in kinds
        if sum(by_name.values())
    ]


def by(counts: dict[str, int]) -> str:
    """``12 by bits, 3 by xval``."""
    return ", ".join(f"{count:,} by {name}" for name, count in sorted(counts.items()) if count)


def _fitted(fit: Fit) -> Iterator[tuple[str, str, str]]:
    """What was fitted, what to, and how to encode other files with the same scale."""
    to = f"({fit.numbers:,} numbers of {fit.documents:,} documents)"
    if xval := fit.xval:
        effect = "there is no number but zero to fit it to"
        if fit.largest is not None:
            effect = f"{fit.largest:.4g} becomes 5 {to}"
        again = f"--scale {xval.scale!r} --clip {xval.clip:g}"
        yield "xval's scale", f"{xval.scale!r}", f"{effect}; for more files: {again}"
    yield from ((f"fitted {one.name}", "", to) for one in fit.fitted if not one.has_scale)


def _time_taken(summary: Summary) -> str:
    """How long it took, and how fast that was, if all of it was done now."""
    if summary.resumed or not summary.seconds:
        return duration(summary.seconds) if summary.seconds else ""
    return f"{rate(summary.bytes, summary.seconds)}, without start-up"


def _shards_left(summary: Summary) -> str:
    """What was there before, and what is to be done yet."""
    told = [f"{summary.resumed:,} were done before"] if summary.resumed else []
    if left := summary.shards - summary.shards_done:
        told.append(f"{left:,} are not done yet")
    return "; ".join(told)
