"""What encoding has come to, for people: the table at the end, and a warning where a scale loses
many numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .console import counts, duration, print_table, print_warning, size

if TYPE_CHECKING:
    from numtok.corpus.fit import Fit
    from numtok.corpus.summary import Summary

VANISHING, CLIPPED = 0.01, 0.1  # shares of numbers lost to a scale, above which the user is told


def warn_of_losses(summary: Summary) -> None:
    """Say it where a scale loses many numbers."""
    log = any(getattr(representation, "log", False) for representation in summary.representations)
    kept = max(summary.numbers - sum(summary.left_as_text.values()), 1)
    vanishing, clipped = summary.vanishing.get("xval", 0), summary.clipped.get("xval", 0)
    if vanishing > VANISHING * kept or clipped > CLIPPED * kept:
        lost = (
            f"{vanishing / kept:.1%} of the numbers are nearly zero for the model and"
            f" {clipped / kept:.1%} are clipped"
        )
        wider = (
            "--numbers bits holds"
            if log
            else "--numbers xval:log holds more of them, and bits holds"
        )
        print_warning(f"with this scale of xval, {lost}; {wider} numbers of all magnitudes")


def scale_row(fit: Fit) -> tuple[str, str, str]:
    """The scale, what it was found on, and how to encode other files alike."""
    where = f"{fit.numbers:,} numbers of {fit.documents:,} documents"
    effect = (
        f"{fit.largest:.4g} becomes 5 ({where})"
        if fit.largest is not None
        else "there is no number but zero to fit it to"
    )
    again = f"--scale {fit.xval.scale!r} --clip {fit.xval.clip:g}"
    return "xval's scale", f"{fit.xval.scale!r}", f"{effect}; for more files: {again}"


def packing_rows(summary: Summary, length: int) -> list[tuple[str, str, str]]:
    """How full packed rows are, and what was cut."""
    full = (summary.tokens + summary.documents - summary.without_text) / max(
        summary.rows * length, 1
    )
    rows = [("rows", f"{summary.rows:,}", f"of at most {length:,} tokens, {full:.2%} full")]
    if summary.cut_numbers:
        rows.append(
            (
                "cut numbers",
                f"{summary.cut_numbers:,}",
                "longer than a row, so that they lie in several",
            )
        )
    return rows


def print_summary(summary: Summary, numbers: str | None, pack: int | None = None) -> None:
    """The table at the end; ``numbers`` as they were asked for, if they were, and the length of
    packed rows.
    """
    if not isinstance(numbers, str):
        numbers = ",".join(representation.name for representation in summary.representations)
    rows = [
        (
            "documents",
            f"{summary.documents:,}",
            f"{summary.skipped:,} left out, see {summary.quarantine}" if summary.skipped else "",
        ),
        ("text", size(summary.bytes), time_taken(summary)),
        (
            "tokens",
            f"{summary.tokens:,}",
            f"{summary.bytes / summary.tokens:.2f} bytes each" if summary.tokens else "",
        ),
        ("numbers", f"{summary.numbers:,}", f"as {numbers}"),
    ]
    rows += packing_rows(summary, pack) if pack else []
    if summary.fit is not None:
        rows.append(scale_row(summary.fit))
    if summary.tokens_before is not None and summary.tokens_after is not None:
        rows.append(
            (
                "tokens per number",
                f"{summary.tokens_after:.2f}",
                f"{summary.tokens_before:.2f} by the tokenizer alone",
            )
        )
    if any(summary.left_as_text.values()):
        rows.append(
            (
                "left as text",
                f"{sum(summary.left_as_text.values()):,}",
                f"cannot be held: {counts(summary.left_as_text)}",
            )
        )
    if summary.clipped:
        rows.append(("clipped", f"{sum(summary.clipped.values()):,}", counts(summary.clipped)))
    if summary.vanishing:
        rows.append(
            (
                "nearly zero",
                f"{sum(summary.vanishing.values()):,}",
                f"below 0.001 once scaled: {counts(summary.vanishing)}",
            )
        )
    if summary.in_added_tokens:
        rows.append(
            (
                "in added tokens",
                f"{summary.in_added_tokens:,}",
                "digits within the tokenizer's own tokens, not numbers",
            )
        )
    if summary.shards:
        rows.append(("shards", f"{summary.shards:,}", shards_left(summary)))
    share = (
        f"{summary.output_bytes / summary.bytes:.2f} of the text's size"
        if summary.bytes
        else "there is no text"
    )
    rows.append(("output", size(summary.output_bytes), share))
    print_table(
        rows,
        "standard output" if summary.output == "-" else summary.output,
        to_stderr=summary.output == "-",
    )


def time_taken(summary: Summary) -> str:
    """How long it took, and how fast that was, if all of it was done now."""
    if summary.resumed or not summary.seconds:
        return duration(summary.seconds) if summary.seconds else ""
    return (
        f"{duration(summary.seconds)}, {size(summary.bytes / summary.seconds)}/s, without start-up"
    )


def shards_left(summary: Summary) -> str:
    """What was there before, and what is to be done yet."""
    told = [f"{summary.resumed:,} were done before"] if summary.resumed else []
    if left := summary.shards - summary.shards_done:
        told.append(f"{left:,} are not done yet")
    elif summary.share:
        told.append("all are done: `numtok finish` the folder")
    return "; ".join(told)
