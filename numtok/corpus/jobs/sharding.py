"""Whether an output is a folder of shards, and what is said about these. It takes next to nothing
to load.

In: the name of an output, and options. Out: yes or no; ``Sharding`` and ``Encoder``, which say how
    a folder is written.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from numtok import locations
from numtok.corpus.fit import ScaleFit
from numtok.corpus.job_folder import DATA
from numtok.corpus.settings import EncodeSettings
from numtok.errors import InputError, OutputError
from numtok.tokenizer.tokenizer import Tokenizer


class Sharding(NamedTuple):
    """How a corpus is cut, and whose share this is.

    Attributes:
        shards, shard_size: how many there should be, or how many bytes of input in each; None for
            the default.
        share: (i, n): every n-th shard from the i-th on, counted from 1; None for all.
        ray: the address of the Ray cluster that does them; None for this machine.
    """

    shards: int | None = None
    shard_size: int | None = None
    share: tuple[int, int] | None = None
    ray: str | None = None

    def check(self) -> None:
        """Raise InputError if it makes no sense."""
        for name in ("shards", "shard_size"):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < 1):
                raise InputError(f"{name}={value!r} must be a whole number from 1 on")
        if self.shards is not None and self.shard_size is not None:
            raise InputError(
                "shards and shard_size both say how large a shard is; leave out one of them"
            )
        if self.share is not None:
            i, n = self.share
            if not 1 <= i <= n:
                raise InputError(f"shard={i}/{n} must be one of 1/{n} to {n}/{n}")


class Encoder(NamedTuple):
    """What encodes.

    Attributes:
        tokenizer: with the representations that were asked for.
        source: its name; None for the default one, or for one that was given as an object.
        given: whether it was.
        engine: as :meth:`numtok.Tokenizer.from_pretrained` takes it.
        fit: how to find the scale; None for the one that there is.
    """

    tokenizer: Tokenizer
    source: str | None = None
    given: bool = False
    engine: str = "auto"
    fit: ScaleFit | None = None

    @classmethod
    def of(cls, tokenizer: Tokenizer, source: Any, engine: str, fit: ScaleFit | None) -> Encoder:
        """The encoder for a tokenizer that was made of ``source``."""
        name = str(source) if isinstance(source, str | Path) else None
        return cls(tokenizer, name, source is not None and name is None, engine, fit)


def is_folder(output: str | Path, sharding: Sharding, settings: EncodeSettings) -> bool:
    """Whether the output is a folder of shards: its name ends in a slash, it is there, or the
    options say so.

    Raises:
        OutputError: if the options say so, but it is named like a file.
    """
    name = os.fspath(output)
    named_like_one = name.lower().endswith(DATA)
    if name.endswith(("/", os.sep)) or (
        locations.is_folder(name) if not (locations.is_url(name) and named_like_one) else False
    ):
        return True
    like_a_file = name == "-" or named_like_one or locations.is_file(name)
    if sharding != Sharding() and like_a_file:
        raise OutputError(
            f"{name} is a file, or named like one, but the options for shards are for a folder;"
            " name one, as in out/"
        )
    return sharding != Sharding() or (
        settings.workers is not None and settings.output_format is None and not like_a_file
    )
