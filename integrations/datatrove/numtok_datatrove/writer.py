"""Documents of a datatrove pipeline to Parquet or Arrow files of numtok's rows.

In: documents, from any reader or filter. Out: the same documents, for the next step; and one file
for each task, ``00003-of-00128.parquet``, with the rows that ``numtok encode`` gives the same texts.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from datatrove.data import Document, DocumentsPipeline
from datatrove.pipeline.base import PipelineStep
from datatrove.utils.typeshelper import StatHints

from numtok import Grammar, Tokenizer, storage
from numtok.corpus.encode import refuse_own_names, rows_for
from numtok.corpus.encode_files import NUMBERS
from numtok.corpus.encode_options import EncodeOptions
from numtok.corpus.summary import SHARD_BATCH_BYTES
from numtok.corpus.write import open_writer
from numtok.errors import InputError, NumtokError
from numtok.numbers.grammar import check_grammar
from numtok.representations import Representation
from numtok.representations.registry import set_for_all

OPTIONS = (
    *("keep_text", "add_special_tokens", "parse_special", "layout", "pack", "pack_mode"),
    *("end_token", "compression", "tensors", "batch_bytes"),
)


class NumtokWriter(PipelineStep):  # type: ignore[misc]  # datatrove has no types
    """Encode documents into one file of the output folder for each task.

    A file appears when its task is complete, so that a task that was killed leaves none, and is run
    again by datatrove. Nothing is fitted to the data, as no task sees those of the others: ``xval``
    and ``xval:log``, the default, have the scale 1 unless one is given, as in ``XVal(scale=0.01)``.

    Args:
        output_folder: a local folder or a URL.
        tokenizer: a ``tokenizer.json``, a folder that holds one, or a hub id; None for the one inside
            numtok.
        numbers: representations, or their names, as in ``numtok encode --numbers``.
        grammar: what counts as a number, or its name.
        keep_columns: ``"id"`` and names of metadata to store beside the tokens: their types are those
            of the first documents of a task. Or their types by name, for tasks that are to agree.
        output_format: ``"parquet"`` or ``"arrow"``.
        options: those of :class:`numtok.corpus.encode_options.EncodeOptions` that ``OPTIONS`` names.

    Raises:
        NumtokError: for options that do not go together; while it runs, with the document's id.
    """

    name = "numtok"
    type = "💽 - WRITER"

    def __init__(
        self,
        output_folder: str | Path,
        tokenizer: str | Path | None = None,
        numbers: str | Representation | Sequence[Representation | str] = NUMBERS,
        grammar: Grammar | str | None = None,
        *,
        keep_columns: Sequence[str] | Mapping[str, pa.DataType] = (),
        output_format: str = "parquet",
        **options: Any,
    ) -> None:
        super().__init__()
        if others := [name for name in options if name not in OPTIONS]:
            raise InputError(
                f"{others[0]!r} is no option of NumtokWriter, which besides its arguments has"
                f" {', '.join(OPTIONS)}; leave it out"
            )
        self.output_folder, self.output_format = str(output_folder), output_format
        types = keep_columns if isinstance(keep_columns, Mapping) else {}
        self.options = EncodeOptions(keep_columns=list(keep_columns), **options)
        self.types = dict(types)
        self._source = None if tokenizer is None else str(tokenizer)
        self._numbers = tuple(set_for_all(numbers, compact=True))
        self._grammar = check_grammar(grammar)

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer: made once in each process, whatever the number of its tasks."""
        return _tokenizer(self._source, self._numbers, self._grammar)

    def run(self, data: DocumentsPipeline, rank: int = 0, world_size: int = 1) -> DocumentsPipeline:
        """Write the documents of a task, and hand each on."""
        options, tokenizer = self.options, self.tokenizer
        refuse_own_names(options.keep_columns, tokenizer)
        batches = _batches(data or (), options.batch_bytes or SHARD_BATCH_BYTES)
        first = next(batches, [])
        kept = [pa.field(name, self._type(name, first)) for name in options.keep_columns]
        own = tokenizer.batch_schema(options.keep_text, options.add_special_tokens)
        rows = rows_for(options, pa.schema([*own, *kept], own.metadata), tokenizer)
        if not storage.is_url(self.output_folder):
            Path(self.output_folder).mkdir(parents=True, exist_ok=True)
        name = f"{rank:05d}-of-{world_size:05d}.{self.output_format}"
        with open_writer(
            storage.join(self.output_folder, name),
            rows.schema,
            self.output_format,
            options.compression,
            overwrite=True,  # by a task that is run again
            tensors=options.tensors,
        ) as writer:
            for batch in itertools.chain([first] if first else [], batches):
                with self.track_time(unit="batch"):
                    for encoded in rows.arrange(rows.convert(self._encode(batch, kept))):
                        writer.write(encoded)
                yield from batch
            for encoded in rows.rest():
                writer.write(encoded)

    def _encode(self, documents: list[Document], kept: list[pa.Field]) -> pa.RecordBatch:
        """Return the rows of some documents, with the columns that are kept."""
        texts = pa.array([one.text for one in documents], pa.large_string())
        options = self.options
        try:
            encoded, report = self.tokenizer.encode_with_report(
                texts,
                keep_text=options.keep_text,
                add_special_tokens=options.add_special_tokens,
                parse_special=options.parse_special,
            )
        except NumtokError as error:
            if error.document is not None:
                error.add_note(f"the document's id is {documents[error.document].id!r}")
            raise
        for document in documents:
            self.stat_update(StatHints.total)
            self.update_doc_stats(document)
        self.stat_update("tokens", value=report.tokens, unit="batch")
        self.stat_update("numbers", value=report.numbers, unit="batch")
        columns = [_column(field.name, documents, field.type) for field in kept]
        schema = pa.schema([*encoded.schema, *kept], encoded.schema.metadata)
        return pa.RecordBatch.from_arrays([*encoded.columns, *columns], schema=schema)

    def _type(self, name: str, documents: list[Document]) -> pa.DataType:
        """Return the type of a kept column: as given, or that of the first documents."""
        if name in self.types:
            return self.types[name]
        found = _column(name, documents).type
        return pa.string() if found == pa.null() else found


@functools.lru_cache(1)
def _tokenizer(
    source: str | None, numbers: tuple[Representation, ...], grammar: Grammar
) -> Tokenizer:
    return Tokenizer.from_pretrained(source, numbers, grammar)


def _batches(documents: Iterable[Document], size: int) -> Iterator[list[Document]]:
    """Yield the documents in lists of about so many bytes of text."""
    waiting: list[Document] = []
    characters = 0
    for document in documents:
        waiting.append(document)
        characters += len(document.text)
        if characters >= size:
            yield waiting
            waiting, characters = [], 0
    if waiting:
        yield waiting


def _column(name: str, documents: list[Document], kind: pa.DataType | None = None) -> pa.Array:
    """Return a kept column of some documents; InputError for values of another type than ``kind``, or
    of several.
    """
    values = [one.id if name == "id" else one.metadata.get(name) for one in documents]
    try:
        return pa.array(values, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        what = "holds several types" if kind is None else f"is {kind} in the first documents only"
        raise InputError(
            f"the column {name!r} {what}: {error}; give its type by keep_columns={{{name!r}: ...}}"
        ) from error
