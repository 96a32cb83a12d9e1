"""The ids of texts with numbers, by ``tokenizers`` alone.

It shares nothing with numtok but the places of the numbers: it puts a character that the text does
not hold in place of each of them, makes that character an added token of the source, and lets
Hugging Face's ``tokenizers`` encode the result."""

import functools
import json
import re

import trained
from kept import kept
from tokenizers import AddedToken
from tokenizers import Tokenizer as Source

import numtok
from numtok.representations import NUM, XVal

TAKES_ALL = XVal(overflow="clip")  # no number stays text because it is too large


@kept
def tokenizer(kind, engine="tokenizers", representation=TAKES_ALL, **options):
    """One of a kind of trained tokenizers."""
    return numtok.Tokenizer(trained.config(kind), [representation], engine=engine, **options)


@kept
def oracle(kind, parse_special=False, leading_space="auto"):
    """The ids of its texts."""
    tokens = tokenizer(kind, leading_space=leading_space).tokens
    return Oracle(trained.config(kind), tokens, parse_special)


def check(tok, reference, documents, add_special_tokens=False, **options):
    """The batch of the documents, whose ids are those of the oracle; or the first that has others."""
    batch = tok.encode_batch(documents, add_special_tokens=add_special_tokens, **options)
    expected = reference.encode(list(documents), add_special_tokens)
    for text, ours, theirs in zip(documents, batch["input_ids"].to_pylist(), expected, strict=True):
        assert ours == theirs, repr(text)
    return batch


class Oracle:
    """The ids of texts with numbers, by ``tokenizers`` alone."""

    def __init__(self, config, tokens, parse_special=False):
        self.config = json.dumps(config | {"truncation": None, "padding": None})
        self.tokens, self.parse_special = tokens, parse_special
        self.plain_source = Source.from_str(self.config)
        self.plain_source.encode_special_tokens = not parse_special
        added = self.plain_source.get_added_tokens_decoder().items()
        self.with_digits = {number for number, one in added if re.search(r"\d", one.content)}
        self.scanned = (), []  # documents, and the places of their numbers

    @functools.lru_cache(2)  # lives as long as the oracle  # noqa: B019
    def with_token(self, content):
        source = Source.from_str(self.config)
        forms = [name for name in (NUM, f" {NUM}") if name in self.tokens]
        contents = [name.replace(NUM, content) for name in forms]
        source.add_tokens([AddedToken(one, normalized=False, special=False) for one in contents])
        source.encode_special_tokens = not self.parse_special
        return source, {
            source.token_to_id(one): self.tokens[name]
            for one, name in zip(contents, forms, strict=True)
        }

    def encode(self, documents, add_special_tokens=False):
        stand_in = next(
            chr(code)
            for code in range(0x10FFFD, 0x100000, -1)
            if not any(chr(code) in (text or "") for text in documents)
        )
        source, ids = self.with_token(stand_in)
        spans = self.numbers(documents)
        replaced = [
            replace(text or "", places, stand_in)
            for text, places in zip(documents, spans, strict=True)
        ]
        encodings = source.encode_batch_fast(replaced, add_special_tokens=add_special_tokens)
        return [
            None if text is None else [ids.get(token, token) for token in one.ids]
            for text, one in zip(documents, encodings, strict=True)
        ]

    def numbers(self, documents):
        """Places of the numbers, in characters."""
        documents = tuple(documents)
        if documents != self.scanned[0]:
            self.scanned = documents, self._numbers(documents)
        return self.scanned[1]

    def _numbers(self, documents):
        found = numtok.scan(documents)
        places = [[] for _ in documents]
        for row, start, stop in zip(
            found.document.tolist(), found.start.tolist(), found.stop.tolist(), strict=True
        ):
            raw = (documents[row] or "").encode()
            places[row].append((len(raw[:start].decode()), len(raw[:stop].decode())))
        for row, text in enumerate(documents):
            # every added token of ours that holds a digit begins with it
            if places[row] and ("<" in text):
                inside = self.inside_added_tokens(text)
                places[row] = [
                    (a, b)
                    for a, b in places[row]
                    if not any(first < b and a < last for first, last in inside)
                ]
        return places

    def inside_added_tokens(self, text):
        """Where the source itself sees one of its added tokens that holds a digit."""
        encoding = self.plain_source.encode(text, add_special_tokens=False)
        pairs = zip(encoding.ids, encoding.offsets, strict=True)
        return [place for token, place in pairs if token in self.with_digits]


def replace(text, places, content):
    for start, stop in reversed(places):
        text = text[:start] + content + text[stop:]
    return text
