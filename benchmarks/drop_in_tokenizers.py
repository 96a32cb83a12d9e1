"""Tokenizers of the most frequent kinds: the files of GPT-2 and GPT-NeoX where the shared folder
has them, and others that are trained on the benchmark's text.

A trained tokenizer has the parts of its model (normalizer, pre-tokenizer, model, post-processor,
added tokens) and a vocabulary of some thousand tokens, so that nothing is downloaded. The time of
numtok relative to ``tokenizers`` depends on the parts far more than on the vocabulary.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from benchmarks.corpus import DEFAULT_TOKENIZER, Corpus, shared_folder

CHARSMAP = Path(__file__).with_name("nmt_nfkc.xz")
TRAINED_ON = 300_000  # characters
VOCABULARY = 6_000


def builders() -> dict[str, Callable[[Corpus], Tokenizer]]:
    """Return the functions that make each tokenizer, by the name of its model."""
    return {
        "GPT-2": gpt2,
        "GPT-NeoX": neox,
        "RoBERTa": roberta,
        "BERT": bert,
        "T5": t5,
        "Phi-3": phi3,
    }


def gpt2(corpus: Corpus) -> Tokenizer:
    """Return a byte-level BPE: the file itself."""
    return _file("gpt2.json", corpus)


def neox(corpus: Corpus) -> Tokenizer:
    """Return a byte-level BPE with NFC and added tokens for runs of spaces: the file itself."""
    return _file("gpt-neox-20b.json", corpus)


def _file(name: str, corpus: Corpus) -> Tokenizer:
    """Load a file of the shared folder; the default tokenizer if it is missing, or for a quick run."""
    folder = shared_folder()
    path = DEFAULT_TOKENIZER if folder is None or corpus.quick else folder / "tokenizers" / name
    return Tokenizer.from_file(str(path if path.is_file() else DEFAULT_TOKENIZER))


def roberta(corpus: Corpus) -> Tokenizer:
    """Return a byte-level BPE with special tokens around a text, and a mask token that takes the
    white space before it.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = (
        pre_tokenizers.ByteLevel(add_prefix_space=False),
        decoders.ByteLevel(),
    )
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    tokenizer.train_from_iterator(
        _lines(corpus), _bpe(special, pre_tokenizers.ByteLevel.alphabet())
    )
    tokenizer.add_special_tokens(
        [AddedToken("<mask>", lstrip=True, normalized=False, special=True)]
    )
    begin, end = (("<s>", tokenizer.token_to_id("<s>")), ("</s>", tokenizer.token_to_id("</s>")))
    tokenizer.post_processor = processors.RobertaProcessing(
        end, begin, trim_offsets=True, add_prefix_space=False
    )
    return tokenizer


def bert(corpus: Corpus) -> Tokenizer:
    """Return a WordPiece tokenizer that lowercases."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = (
        normalizers.BertNormalizer(lowercase=True),
        pre_tokenizers.BertPreTokenizer(),
    )
    tokenizer.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(
        _lines(corpus),
        trainers.WordPieceTrainer(
            vocab_size=VOCABULARY, special_tokens=special, show_progress=False
        ),
    )
    around = [(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=around
    )
    return tokenizer


def t5(corpus: Corpus) -> Tokenizer:
    """Return a Unigram tokenizer with the normalization table of SentencePiece's ``nmt_nfkc``, as
    in every T5.
    """
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence(
        [charsmap(), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    special = ["<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(
        vocab_size=VOCABULARY, special_tokens=special, unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(_lines(corpus), trainer)
    tokenizer.add_special_tokens(
        [AddedToken(f"<extra_id_{k}>", normalized=False, special=True) for k in range(100)]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", tokenizer.token_to_id("</s>"))]
    )
    return tokenizer


def charsmap() -> Any:
    """Return the normalizer with the ``precompiled_charsmap`` that SentencePiece 0.2.3 writes for
    ``nmt_nfkc``.
    """
    return normalizers.Precompiled(lzma.decompress(CHARSMAP.read_bytes()))


def phi3(corpus: Corpus) -> Tokenizer:
    """Return a SentencePiece BPE as in Llama 2 and Phi-3. The tokenizer has no pre-tokenizer, but
    is trained with one.
    """
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    tokenizer.train_from_iterator(_lines(corpus), _bpe(special, []))
    content: dict[str, Any] = json.loads(tokenizer.to_str())
    content["pre_tokenizer"] = None
    content["added_tokens"] = [
        token for token in content["added_tokens"] if not token["content"].startswith("<0x")
    ]
    tokenizer = Tokenizer.from_str(json.dumps(content))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    steps = [
        decoders.Replace("▁", " "),
        decoders.ByteFallback(),
        decoders.Fuse(),
        decoders.Strip(" ", 1, 0),
    ]
    tokenizer.decoder = decoders.Sequence(steps)
    names = [
        "<|endoftext|>",
        "<|assistant|>",
        *(f"<|placeholder{k}|>" for k in range(1, 5)),
        "<|system|>",
        "<|end|>",
        "<|user|>",
    ]
    tokenizer.add_special_tokens(
        [AddedToken(name, rstrip=True, normalized=False, special=True) for name in names]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))]
    )
    return tokenizer


def _bpe(special: list[str], alphabet: list[str]) -> Any:
    """Return a trainer for BPE."""
    return trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=special,
        initial_alphabet=alphabet,
        show_progress=False,
    )


def _lines(corpus: Corpus) -> list[str]:
    """Return the first documents, about :data:`TRAINED_ON` characters."""
    count, lines = 0, list[str]()
    for text in corpus.texts:
        lines.append(text)
        count += len(text)
        if count > TRAINED_ON:
            break
    return lines
