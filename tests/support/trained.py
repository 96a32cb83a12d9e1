"""Small tokenizers of every kind that is met in the wild, trained on the spot: nothing to download,
every part that can go wrong is in one. They are the same in every process.

``config(kind)`` is the tokenizer.json of a kind as a dict (a fresh copy), ``BYTE_LEVEL`` and
``OTHERS`` are the kinds."""

import collections
import functools
import itertools
import json
import re

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

# Llama 3's
CL100K = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN = CL100K.replace(r"\p{N}{1,3}", r"\p{N}")

O200K = (  # GPT-4o's
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

# Enough of everything for merges across spaces, signs, digits, line ends and scripts.
CORPUS = [
    (
        "The mass of the sample is -1.5e3 kg, i.e. about 3,300 pounds; it's 10km away and costs"
        " $5.00 (or 4.50)."
    ),
    (
        "In 2019, 2020 and 2021 the temperature was 12.5, -3 and 0.75 degrees; the covid-19 numbers"
        " were 1,234,567 and 89."
    ),
    (
        "Don't say we'll, we've or I'd in the 1990's; that's 5's and 'll. THE END of"
        " WWW.HTTP.com/A_b-C?d=1&e=22#f33."
    ),
    (
        "for (i=0; i<10; ++i) { a[i] = 0x1F + 1e-9; }\n\n\treturn 7;\n\n\n        // done\r\n\r\n  "
        "  x = y  +  z;\n"
    ),
    (
        "naïve café Ångström résumé Übergröße π ≈ 3.14159, ½ of 10² and x₂; −5 ± 3 %; [100,200,300]"
        " (1,234) 50% 10-20 3--2"
    ),
    (
        "Привет, мир! Это 7 слов и 8 чисел. Ещё раз: привет. שלום 3. عدد ٤٢. 今年は2020年5月です。"
        "温度-5度。한국어 12개."
    ),
    "½0 ½5 ½00 0½ 5½ 10² 50² 00² ²0 ²5 ①0 0① x₂0 0₂ Ⅻ0 0Ⅻ =-0 (-5 (-0 =.5 =.0 --0 -0 +0 .0 '0 '5",
    (
        "a\t\t\tb\n\n\n\nc\r\n\r\n\r\nd \n e\n f\u00a0\u00a0\u00a0g \u00a0"
        " h\u2009\u2009\u2009i\u2028\u2028\u2028j\u3000\u3000\u3000k\n\n\n0 0"
    ),
    (
        "The tokens [NUM] and [/NUM] are words of this text, and so is NUM. E-1 B3 +0 e E , . _ ' -"
        " + 0 1 2 3 4 5 6 7 8 9"
    ),
    (
        "a b c d e f g h i j k l m n o p q r s t u v w x y z A B C D E F G H I J K L M N O P Q R S"
        " T U V W X Y Z"
    ),
    (
        "nation station ration relation number numbers numeral the there then these this that than;"
        " tokens and text and numbers in text."
    ),
]

# Digits in the names of added tokens are not numbers: timestamps as Whisper's, sentinels as T5's,
# reserved tokens as Llama 3's.
DIGIT_TOKENS = [
    AddedToken("<|0.00|>", normalized=False, special=False),
    AddedToken("<extra_id_7>", normalized=False, special=True),
    AddedToken("<|reserved_12|>", normalized=False, special=True),
    AddedToken("<|reserved_13|>", normalized=False, special=False),
]
RUNS_OF_SPACES = [
    AddedToken(" " * n, normalized=True, special=False) for n in (24, 16, 8, 7, 6, 5, 4, 3, 2)
]


def _bpe(size, special, byte_alphabet):
    alphabet = pre_tokenizers.ByteLevel.alphabet() if byte_alphabet else []
    return trainers.BpeTrainer(
        vocab_size=size, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )


def _byte_level(pre_tokenizer, normalizer=None, added=None, **options):
    tokenizer = Tokenizer(models.BPE(**options))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.train_from_iterator(CORPUS * 3, _bpe(1000, ["<|endoftext|>"], byte_alphabet=True))
    tokenizer.add_tokens(DIGIT_TOKENS + (added or []))
    return tokenizer


PLAIN, PREFIXED = (pre_tokenizers.ByteLevel(add_prefix_space=space) for space in (False, True))


def _split(pattern):
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def _llama3():
    tokenizer = _byte_level(_split(CL100K), ignore_merges=True)
    begin = tokenizer.token_to_id("<|endoftext|>")
    template = processors.TemplateProcessing(
        single="<|endoftext|> $A", special_tokens=[("<|endoftext|>", begin)]
    )
    tokenizer.post_processor = processors.Sequence(
        [processors.ByteLevel(trim_offsets=False), template]
    )
    return tokenizer


def _roberta():
    mask = AddedToken("<mask>", lstrip=True, normalized=False, special=True)
    tokenizer = _byte_level(PLAIN, added=[mask])
    end = ("<|endoftext|>", tokenizer.token_to_id("<|endoftext|>"))
    tokenizer.post_processor = processors.RobertaProcessing(
        end, end, trim_offsets=False, add_prefix_space=False
    )
    return tokenizer


# an added token that is not special and eats the white space before it, and one that eats what
# follows
STRIPPERS = [
    AddedToken("<left>", lstrip=True, normalized=False, special=False),
    AddedToken("<right_1>", rstrip=True, normalized=False, special=False),
]


def _word_pieces(words, size):
    """The vocabulary that the trainer of ``tokenizers`` makes, whose ties hang on the process."""
    cuts = {word: [word[0], *(f"##{one}" for one in word[1:])] for word in words}
    pieces = sorted({*"".join(words)} | {piece for cut in cuts.values() for piece in cut})
    while len(pieces) < size:
        pairs = collections.Counter()
        for word, count in words.items():
            for pair in itertools.pairwise(cuts[word]):
                pairs[pair] += count
        if not pairs:
            break
        pair = min(pairs, key=lambda one: (-pairs[one], one))
        pieces.append(pair[0] + pair[1].removeprefix("##"))
        for cut in cuts.values():
            at = 0
            while at < len(cut) - 1:
                if (cut[at], cut[at + 1]) == pair:
                    cut[at : at + 2] = pieces[-1:]
                at += 1
    return list(dict.fromkeys(pieces))


def _bert(lowercase):
    normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    cleaned = map(normalizer.normalize_str, CORPUS)
    words = collections.Counter(
        word for line in cleaned for word, _ in pre_tokenizer.pre_tokenize_str(line)
    )
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    pieces = [*special, *_word_pieces(words, 700)]
    vocab = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = Tokenizer(
        models.WordPiece(vocab=vocab, unk_token="[UNK]", max_input_chars_per_word=100)
    )
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre_tokenizer
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens(special)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")],
    )
    tokenizer.add_tokens(DIGIT_TOKENS)
    return tokenizer


def _sentencepiece(normalizer, pre_tokenizer, decoder):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer, tokenizer.decoder = normalizer, decoder
    if pre_tokenizer is not None:
        tokenizer.pre_tokenizer = pre_tokenizer
    special = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    # else words would be whole lines
    corpus = (
        CORPUS * 3
        if pre_tokenizer is not None
        else [word for line in CORPUS * 3 for word in line.split()]
    )
    tokenizer.train_from_iterator(corpus, _bpe(1000, special, byte_alphabet=False))
    content = json.loads(tokenizer.to_str())
    # bytes are no added tokens
    content["added_tokens"] = [
        token for token in content["added_tokens"] if not token["content"].startswith("<0x")
    ]
    tokenizer = Tokenizer.from_str(json.dumps(content))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))]
    )
    tokenizer.add_tokens(DIGIT_TOKENS)
    return tokenizer


def _metaspace(scheme):
    decoder = decoders.Sequence(
        [decoders.ByteFallback(), decoders.Metaspace(prepend_scheme=scheme)]
    )
    return _sentencepiece(None, pre_tokenizers.Metaspace(prepend_scheme=scheme), decoder)


def _llama_legacy():
    normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    steps = [
        decoders.Replace("▁", " "),
        decoders.ByteFallback(),
        decoders.Fuse(),
        decoders.Strip(" ", 1, 0),
    ]
    return _sentencepiece(normalizer, None, decoders.Sequence(steps))


def _t5():
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    special = ["<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(
        vocab_size=500, special_tokens=special, unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS * 3, trainer)
    content = json.loads(tokenizer.to_str())
    # which of two tokens with nearly the same score comes first hangs on the process
    vocab = content["model"]["vocab"]
    ordered = sorted(vocab[3:], key=lambda one: (-round(one[1], 2), one[0]))
    scores = sorted((round(score, 6) for _, score in vocab[3:]), reverse=True)
    tokens = [token for token, _ in ordered]
    content["model"]["vocab"] = vocab[:3] + list(zip(tokens, scores, strict=True))
    tokenizer = Tokenizer.from_str(json.dumps(content))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", tokenizer.token_to_id("</s>"))]
    )
    tokenizer.add_tokens(
        [*DIGIT_TOKENS, AddedToken("<extra_id_0>", normalized=False, special=True)]
    )
    return tokenizer


def _t5_words():
    """As published: what stands between words is dropped before they are cut."""
    tokenizer = _t5()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")]
    )
    return tokenizer


BYTE_LEVEL = {
    "gpt2": lambda: _byte_level(PLAIN),
    "gpt2_prefix_space": lambda: _byte_level(PREFIXED),
    "neox": lambda: _byte_level(PLAIN, normalizers.NFC(), RUNS_OF_SPACES),
    "llama3": _llama3,
    "qwen": lambda: _byte_level(_split(QWEN), normalizers.NFC()),
    "roberta": _roberta,
    "lstrip_token": lambda: _byte_level(PLAIN, added=STRIPPERS),
}
OTHERS = {
    "bert": lambda: _bert(lowercase=False),
    "bert_lower": lambda: _bert(lowercase=True),
    "metaspace_first": lambda: _metaspace("first"),
    "metaspace_always": lambda: _metaspace("always"),
    "metaspace_never": lambda: _metaspace("never"),
    "llama_legacy": _llama_legacy,
    "t5": _t5,
}
KINDS = [*BYTE_LEVEL, *OTHERS]
SENTENCEPIECE = ["llama_legacy", "metaspace_first", "metaspace_always", "metaspace_never"]
# these differ from llama3 in its pattern alone, and from t5 in what is dropped between words, so only
# where that matters
MORE = {"gpt4o": lambda: _byte_level(_split(O200K)), "t5_words": _t5_words}


@functools.cache
def _json(kind):
    return str((BYTE_LEVEL | OTHERS | MORE)[kind]().to_str())


def config(kind):
    """The tokenizer.json of one kind."""
    return dict(json.loads(_json(kind)))


def source(kind):
    """A ``tokenizers.Tokenizer`` of one kind."""
    return Tokenizer.from_str(_json(kind))


def stock(kind, **options):
    """Return the fast tokenizer of transformers around one kind."""
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(tokenizer_object=source(kind), **options)


def cuts_digits(kind):
    """The tokenizer.json of a kind whose vocabulary has no token of several digits, or of digits
    and something else.
    """
    made = config(kind)
    model = made["model"]
    if model["type"] == "Unigram":
        model["vocab"] = [
            [
                word,
                score if (word.isdigit() and len(word) == 1) or not re.search(r"\d", word) else -99,
            ]
            for word, score in model["vocab"]
        ]
        return made
    merged = [pair for pair in model["merges"] if re.search(r"\d", "".join(pair))]
    model["merges"] = [pair for pair in model["merges"] if pair not in merged]
    for pair in merged:
        word = "".join(pair)
        model["vocab"]["unused " + word] = model["vocab"].pop(word)  # ids without holes
    return made
