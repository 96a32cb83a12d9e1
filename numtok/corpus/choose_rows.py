"""Which rows a file gets: by document, in either layout, or packed.

In: the options of a run. Out: the :class:`numtok.corpus.layout.Rows` that do it.
"""

from __future__ import annotations

import pyarrow as pa

from numtok.corpus.layout import Rows, TokenRows
from numtok.corpus.pack import PackedRows
from numtok.corpus.settings import EncodeSettings
from numtok.tokenizer.end_token import end_token
from numtok.tokenizer.tokenizer import Tokenizer


def rows_for(settings: EncodeSettings, encoded: pa.Schema, tokenizer: Tokenizer) -> Rows:
    """How the batches of a schema become the rows of a file.

    Raises:
        TokenizerError: if documents are to be packed and the tokenizer has no such end token.
    """
    if settings.pack is not None:
        return PackedRows(
            encoded, settings.pack, settings.pack_mode, end_token(tokenizer, settings.end_token)
        )
    return TokenRows(encoded) if settings.layout == "token" else Rows(encoded)
