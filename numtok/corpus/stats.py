"""The statistics of whole corpora, files of text or encoded ones: what ``numtok stats`` does. Tokens
are counted on a part of every batch, as that takes longer than all the rest.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.arrays.text_rows import TextRows
from numtok.corpus.encode_options import EncodeOptions
from numtok.corpus.pipeline import Reader, join_small, located, run_ordered
from numtok.corpus.read.batches import TextBatch
from numtok.corpus.read.documents import check_formats, columns_with_numbers, find_inputs
from numtok.corpus.read.encoded import is_encoded
from numtok.corpus.read.sources import Source
from numtok.corpus.read.template import Cells
from numtok.corpus.summary import BATCH_BYTES, Progress, Run
from numtok.corpus.unpack import encoded_chunks
from numtok.errors import InputError
from numtok.numbers.grammar import Grammar, check_grammar
from numtok.numbers.numbers import Numbers
from numtok.numbers.scan import scan
from numtok.representations import Subword
from numtok.representations.columns import numbers_from_floats
from numtok.representations.magnitudes import ColumnMagnitudes
from numtok.statistics import Statistics
from numtok.statistics.tokens import TokenCosts
from numtok.tokenizer.layout import to_number_layout
from numtok.tokenizer.number_selection import EncodeReport
from numtok.tokenizer.schema import column, read_metadata
from numtok.tokenizer.tokenizer import Tokenizer

# Of each batch's text one part in so many is also tokenized, and of a small one so much.
TOKEN_SHARE, TOKEN_BYTES = 16, 1 << 16


def corpus_stats(
    inputs: str | Path | Sequence[str | Path],
    *,
    tokenizer: Any = None,
    grammar: Grammar | str | None = None,
    text_column: str | None = None,
    template: str | None = None,
    input_format: str | None = None,
    delimiter: str | None = None,
    text_unit: Literal["line", "file"] = "line",
    on_error: Literal["raise", "skip"] = "raise",
    workers: int | None = None,
    batch_bytes: int = BATCH_BYTES,
    progress: Callable[[Progress], None] | None = None,
) -> Statistics:
    """Count the numbers of files, as ``numtok stats`` does. Warns if the texts hold none, but other
    columns do.

    Args:
        inputs: a file, folder, glob or URL, ``-`` for standard input, or a list of them. Of encoded
            files the stored numbers are counted, unless ``text_column`` is given.
        tokenizer: the source tokenizer whose tokens per number are counted, as
            :meth:`numtok.Tokenizer.from_pretrained` takes it.
        grammar: what counts as a number in texts, or its name; prose if not given. Encoded files
            have their own, and where all inputs are encoded, ``grammar`` and ``tokenizer`` are
            refused.
        text_column: where the text is; by default ``text``, ``content``, ``document``, ``body``, or
            the only column of strings.
        template: in place of ``text_column``, columns joined to a text, as by ``encode_files``.
        input_format: of the inputs, whatever their suffix.
        delimiter: between the columns of CSV and TSV, if it is another than a comma or a tab.
        text_unit: in ``.txt``, whether a line or the whole file is a document.
        on_error: ``"skip"`` skips bad rows of JSON, CSV and text files.
        workers: threads that count; by default one per processor.
        batch_bytes: about how much text is counted at once.
        progress: called from the calling thread, several times a second.

    Raises:
        NumtokError: naming the file and row.

    Example:
        >>> import numtok
        >>> numtok.corpus_stats("sample.jsonl").numbers
        183
    """
    options = EncodeOptions(
        text_column=text_column,
        template=template,
        input_format=input_format,
        delimiter=delimiter,
        text_unit=text_unit,
        on_error=on_error,
        workers=workers,
        batch_bytes=batch_bytes,
    )
    sources = find_inputs(inputs, input_format)
    check_formats(sources, text_unit, delimiter)
    _refuse_for_encoded(sources, text_column or template, grammar=grammar, tokenizer=tokenizer)
    subwords = Tokenizer.from_pretrained(tokenizer, Subword(), check_grammar(grammar))
    total = _total(Run(sources, "-", progress), options, subwords)
    if total.documents and not total.numbers and template is None:
        _warn_of_other_columns(sources[0], subwords.grammar, options.delimiter)
    return total


def _refuse_for_encoded(sources: Sequence[Source], texts: str | None, **for_texts: Any) -> None:
    """Raise InputError for options that would do nothing, as all files are encoded already and no
    column of ``texts`` is asked for.
    """
    for name, value in for_texts.items():
        if value is not None and texts is None and all(map(_is_encoded, sources)):
            raise InputError(
                f"{name}=... is for texts, and these files hold numbers that were found already;"
                " leave it out, or name a column of texts by text_column=NAME (--text-column NAME)"
            )


def _is_encoded(source: Source) -> bool:
    plain = source.path != "-" and source.compression is None
    return plain and source.format in ("parquet", "arrow") and is_encoded(source.path)


def _warn_of_other_columns(source: Source, grammar: Grammar, delimiter: str | None) -> None:
    if _is_encoded(source):
        return
    if columns := columns_with_numbers(source, grammar, delimiter):
        template = " ".join(f"{{{name}}}" for name in columns)
        warnings.warn(
            f"there are no numbers in the texts; the columns {', '.join(map(repr, columns))} hold"
            f" some: join them by template=... (--template), '{template}', or 'row' for all of"
            " them",
            stacklevel=3,
        )


class _Part(NamedTuple):
    """Some rows that are yet to be counted."""

    counted: Callable[[], Statistics]  # called from any thread
    bytes: int
    read: int  # stored bytes of all inputs up to their end


def _total(run: Run, options: EncodeOptions, tokenizer: Tokenizer) -> Statistics:
    total = Statistics()

    def add(result: tuple[Statistics, int]) -> None:
        nonlocal total
        counted, run.read = result
        total = total + counted
        run.report = EncodeReport(total.documents, tokens=total.tokens.tokens)

    run_ordered(
        _parts(run.sources, options, tokenizer),
        lambda part: (part.counted(), part.read),
        add,
        lambda part: part.bytes,
        options.workers,
        options.batch_bytes or BATCH_BYTES,
        run.tick,
    )
    return total


def _parts(
    sources: Sequence[Source], options: EncodeOptions, tokenizer: Tokenizer
) -> Iterator[_Part]:
    """Yield the rows of encoded files, and the texts of others or of columns that are named."""
    read, may_be_encoded = 0, options.text_column is None and options.template is None
    for are_encoded, some in itertools.groupby(
        sources, lambda one: may_be_encoded and _is_encoded(one)
    ):
        group = list(some)
        if are_encoded:
            for rows in encoded_chunks(group, options.batch_bytes or BATCH_BYTES, read):
                count = functools.partial(statistics_of_encoded, rows.batch, rows.path)
                yield _Part(count, rows.batch.nbytes, rows.read)
        else:
            for texts in join_small(Reader(group, options).chunks()):
                count = functools.partial(_counted_texts, texts.batch, tokenizer)
                yield _Part(count, texts.batch.texts.nbytes, read + texts.read)
        read += sum(source.size or 0 for source in group)


def _counted_texts(batch: TextBatch, tokenizer: Tokenizer) -> Statistics:
    with located(batch):
        return counted(batch.texts, tokenizer, batch.cells)


def counted(texts: pa.Array, tokenizer: Tokenizer, cells: Cells | None = None) -> Statistics:
    """Count the numbers of one batch, by the tokenizer's grammar; tokens are counted on a part of
    it. ``cells``: where the columns of a template stand in the texts.
    """
    numbers = scan(texts, tokenizer.grammar)
    statistics = Statistics.of_numbers(numbers)
    if cells is not None:
        places = cells.column_of(numbers.document, numbers.stop)
        columns = ColumnMagnitudes.of(cells.names, places, numbers.to_float64())
        statistics = dataclasses.replace(statistics, columns=columns)
    tokens = TokenCosts.of(_front(texts, max(TOKEN_BYTES, texts.nbytes // TOKEN_SHARE)), tokenizer)
    return dataclasses.replace(statistics, tokens=tokens)


def _front(texts: pa.Array, limit: int) -> pa.Array:
    """Return the first rows of up to ``limit`` bytes; or the front of the first, up to a space."""
    rows = TextRows.of(texts)
    count = int(np.searchsorted(rows.offsets, rows.offsets[0] + limit, side="right")) - 1
    if count > 0 or not len(rows):
        return rows.array.slice(0, count)
    first = rows.text[rows.offsets[0] : rows.offsets[0] + limit].tobytes()
    text = first.decode("utf-8", "ignore")
    return TextRows.of([text[: text.rfind(" ") + 1] or text]).array


def statistics_of_encoded(batch: pa.RecordBatch, path: str = "") -> Statistics:
    """Count the numbers of one batch with its metadata: by the text of each number where it was kept, else its float64;
    SchemaError if it lacks a column.
    """
    batch = to_number_layout(batch)
    stored, offsets = memory.flat(column(batch, "number_value"))
    values = memory.from_arrow(stored)
    numbers, written = None, False
    if "number_text" in batch.schema.names:
        surfaces = scan(
            memory.flat(batch.column("number_text"))[0],
            Grammar.from_dict(read_metadata(batch.schema, path)["grammar"]),
        )
        written = len(surfaces) == len(values) and bool((np.diff(surfaces.document) == 1).all())
        numbers = surfaces if written else None
    if numbers is None:
        numbers = _of_floats(values)
    nulls = int(batch.column("number_value").null_count)
    return Statistics.of_values(
        numbers, np.asarray(offsets, np.int64), without_text=nulls, written=written
    )


def _of_floats(values: npt.NDArray[np.float64]) -> Numbers:
    """Return the numbers of floats, infinite ones as a number that is beyond float64."""
    finite = np.isfinite(values)
    numbers = numbers_from_floats(np.where(finite, values, 0.0), "number_value")
    if finite.all():
        return numbers
    texts = numbers.format().to_pylist()
    for place in np.flatnonzero(~finite).tolist():
        texts[place] = "1e999" if values[place] > 0 else "-1e999"
    return Numbers.parse(texts)
