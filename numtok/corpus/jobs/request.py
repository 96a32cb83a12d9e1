"""What a call on a folder asks for, checked before anything is written.

In: inputs, what encodes them, options. Out: a ``Request``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numtok.corpus.choose_rows import rows_for
from numtok.corpus.encode import refuse_own_names
from numtok.corpus.jobs.plan import FILE_SUFFIXES, NOT_SETTLED
from numtok.corpus.jobs.sharding import Encoder, Sharding
from numtok.corpus.read.documents import check_text_unit
from numtok.corpus.read.find import find_inputs
from numtok.corpus.read.sources import Source
from numtok.corpus.settings import EncodeSettings
from numtok.corpus.write.encoded import check_options
from numtok.errors import InputError, OutputError

SHARD_SIZE = 256 << 20


@dataclass(frozen=True)
class Request:
    """The inputs in the order of their paths, what encodes them, with which settings, into which
    shards.
    """

    sources: Sequence[Source]
    encoder: Encoder
    settings: EncodeSettings
    sharding: Sharding

    @property
    def options(self) -> dict[str, Any]:
        """All that changes the output, JSON-ready, by the names that :func:`numtok.encode_files`
        has for it.
        """
        settings = {
            name: value
            for name, value in dataclasses.asdict(self.settings).items()
            if name not in NOT_SETTLED
        }
        tokenizer, fit = self.encoder.tokenizer, self.encoder.fit
        return settings | {
            "keep_columns": list(self.settings.keep_columns),
            "output_format": self.settings.output_format or "parquet",
            "numbers": [representation.to_dict() for representation in tokenizer.representations],
            "grammar": tokenizer.grammar.to_dict(),
            "leading_space": tokenizer.leading_space,
            "engine": self.encoder.engine,
            "fit": fit is not None,
            "fit_quantile": fit and fit.quantile,
            "clip": fit and fit.clip,
            "shards": self.sharding.shards,
            "shard_size": None if self.sharding.shards else self.sharding.shard_size or SHARD_SIZE,
        }


def make_request(
    inputs: Sequence[str | Path], encoder: Encoder, settings: EncodeSettings, sharding: Sharding
) -> Request:
    """The request, checked as far as that goes without reading the inputs.

    Raises:
        NumtokError: for what is not there, cannot be cut, or makes no sense.
    """
    sharding.check()
    kind = settings.output_format or "parquet"
    if kind not in FILE_SUFFIXES:
        raise OutputError(f"unknown output format {kind!r}; choose {' or '.join(FILE_SUFFIXES)}")
    check_options(f"shard{FILE_SUFFIXES[kind]}", kind, settings.compression, settings.tensors)
    refuse_own_names(settings.keep_columns, encoder.tokenizer)
    rows_for(
        settings,
        encoder.tokenizer.batch_schema(settings.keep_text, settings.add_special_tokens),
        encoder.tokenizer,
    )
    sources = sorted(find_inputs(inputs, settings.input_format), key=lambda source: source.path)
    check_text_unit(sources, settings.text_unit)
    for source in sources:
        if source.path == "-" or source.size is None:
            message = (
                "cannot be cut into shards, nor read again after a kill; save it to a file first,"
                " or write one file instead of a folder"
            )
            raise InputError(message, source.name)
    return Request(sources, encoder, settings, sharding)
