"""Floating-Point Embedding, tables 1 and 2: masked words beside a number.

A small BERT is pretrained on the shared text without its held-out pages. A number is then one token
without a value. Next, a layer that shows values, which starts from zeros, is trained on sentences
with one number, 15% of whose words are masked. Either the layer alone is trained or the whole
model. Other models are pretrained from the start with such a layer or with digits. In sentences of
the held-out pages every word is masked, one at a time. The same sentences are asked again with the
number of another sentence, which measures what the value is worth to one model.
"""

from __future__ import annotations

import functools
import json
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import BertConfig, BertForMaskedLM

import numtok
from benchmarks.corpus import SAMPLE, shared_folder
from benchmarks.evidence import learning, tables
from benchmarks.evidence.corpus import Encoded, encode, train
from benchmarks.evidence.experiment import Experiment
from benchmarks.evidence.learning import Schedule
from benchmarks.evidence.plots import dots, learning_curves, picture_link
from benchmarks.evidence.store import Result, Settings, Store
from numtok_torch import NumberCollator, NumberModel, embedding_from_schema

NAME = "bits_masked_words"
CONSTANT, COUNTED = "constant", "counts of pairs of words"
RANDOM, DIGITS = "float bits, random start", "digits"
PRETRAINED = "pretraining"
VALUES = {"exponent bins": "exponent_bins", "float bits": "bits", "xval, log": "xval:log"}
# --numbers of each row; the constant's layer is left out, so that numbers have a token and no value
EMBEDDINGS = {CONSTANT: "bits", **VALUES, RANDOM: "bits", DIGITS: "digits:1"}
LAYER_ALONE, WHOLE_MODEL = "layer alone", "all"
FROM_START = "pretrained"  # pretrained from the start with the representation of the row
TRAINED_PARTS = {  # rows by what is trained; for the layer alone, the constant is the pretrained model
    LAYER_ALONE: (*VALUES,),
    WHOLE_MODEL: (CONSTANT, *VALUES, RANDOM),
    FROM_START: ("exponent bins", "float bits", DIGITS),
}
SEEDS = {"smoke": (0,), "small": (0, 1, 2), "full": (0, 1, 2, 3, 4)}
PRETRAINING = {"smoke": 20, "small": 15_000, "full": 100_000}
STEPS = {"smoke": 60, "small": 1500, "full": 3000}
VOCABULARY = {"smoke": 400, "small": 2000, "full": 16_000}
MODEL_SIZE = {"smoke": (32, 1), "small": (64, 2), "full": (768, 12)}
ASKED = {"smoke": 5, "small": 600, "full": 2000}  # sentences, each of whose words is masked in turn
BATCH, ROW_TOKENS, NUMBER_BYTES = 32, 48, 9  # the latter two of a sentence that is asked, at most
# a higher rate harms a pretrained model
RATES = {FROM_START: 0.002, LAYER_ALONE: 0.002, WHOLE_MODEL: 0.0005}
LEAST = 0.01  # loss that the right number must save for the verdict "shown"
CURVE_QUESTIONS = 40  # sentences for a point of a learning curve
NEAR = 3  # tokens from the number
NEAR_HEAD, SWAPPED_HEAD = f"within {NEAR} tokens of the number", "with another number, near"
HELD_OUT = 10  # one page of so many is held out
BACKOFF = 20  # occurrences of a token at which its followers get half of the probability
MASK = "<|endoftext|>"


def phases(size: str) -> list[list[Settings]]:
    """Return the pretraining; then the counts and all other rows. Rows that are pretrained from the
    start take long, and have one seed.
    """
    rows = [
        {"size": size, "embedding": name, "trunk": part, "seed": seed}
        for part, names in TRAINED_PARTS.items()
        for seed in (SEEDS[size] if part != FROM_START else SEEDS[size][:1])
        for name in (names if size != "smoke" else (names[1], names[-1]))
    ]
    first: list[Settings] = [
        {"size": size, "embedding": name, "seed": 0} for name in (PRETRAINED, COUNTED)
    ]
    return [first[:1], first[1:] + rows]


def sentences(held_out: bool | None = None) -> list[str]:
    """Return the different sentences of the shared text, or of the sample where that is absent.

    Args:
        held_out: True for sentences that only held-out pages have, False for those of the other
            pages, None for all.
    """
    held, others = _pages_of_sentences()
    if held_out is None:
        return [*dict.fromkeys([*others, *held])]
    return [sentence for sentence in held if sentence not in others] if held_out else [*others]


@functools.cache
def _pages_of_sentences() -> tuple[dict[str, int], dict[str, int]]:
    """Return the sentences of held-out pages, and those of the others, with their page numbers."""
    shared = shared_folder()
    path = shared / "corpora" / "wiki.jsonl" if shared else SAMPLE
    with (path if path.is_file() else SAMPLE).open(encoding="utf-8") as lines:
        pages = [json.loads(line)["text"] for line in lines]
    random.Random(0).shuffle(pages)
    others = [page for index, page in enumerate(pages) if index % HELD_OUT]
    return _first_pages(pages[::HELD_OUT]), _first_pages(others)


def _first_pages(pages: list[str]) -> dict[str, int]:
    """Return the sentences of 30 to 160 characters, and the index of the first page that has each."""
    first_pages: dict[str, int] = {}
    for index, page in enumerate(pages):
        for sentence in re.split(r"(?<=[.!?])\s+|\n", page):
            if 30 <= len(sentence) <= 160:
                first_pages.setdefault(sentence, index)
    return first_pages


def with_one_number(texts: list[str]) -> list[str]:
    """Return the texts with exactly one number."""
    counts = np.diff(numtok.scan(texts).per_document())
    return [text for text, count in zip(texts, counts, strict=True) if count == 1]


def asked_sentences(size: str) -> list[str]:
    """Return sentences of held-out pages with one number of at most :data:`NUMBER_BYTES` bytes."""
    texts = with_one_number(sentences(held_out=True))
    short = [text for text in texts if len(numtok.extract(text)[0].text.encode()) <= NUMBER_BYTES]
    random.Random(0).shuffle(short)
    return short[: ASKED[size]]


def swapped(texts: list[str]) -> list[str]:
    """Return each text with the number of the next text; unchanged where that would not be read as
    one number.
    """
    numbers = [numtok.extract(text)[0] for text in texts]
    changed_texts = []
    for text, number, other in zip(texts, numbers, numbers[1:] + numbers[:1], strict=True):
        changed = text[: number.start] + other.text + text[number.stop :]
        is_read = [one.text for one in numtok.extract(changed)] == [other.text]
        changed_texts.append(changed if is_read else text)
    return changed_texts


def run(settings: Settings, store: Store, folder: Path) -> Result:
    """Train a new BERT, or go on with the pretrained one, and mask words of held-out sentences."""
    size, seed, row = settings["size"], settings["seed"], settings["embedding"]
    part = FROM_START if row == PRETRAINED else settings.get("trunk", "")
    # the pretrained model of the small runs is in the repository; others are made on demand
    home = store.folder / NAME / f"trunk-{size}"
    texts = sentences(held_out=False)
    if row == PRETRAINED and not (home / "tokenizer").is_dir():
        train(texts, home / "tokenizer", VOCABULARY[size])
    elif row != PRETRAINED and not (home / "model.pt").is_file():
        run({"size": size, "embedding": PRETRAINED, "seed": 0}, store, folder / PRETRAINED)
    if part != FROM_START:
        texts = with_one_number(texts)
    numbers = EMBEDDINGS.get(row, EMBEDDINGS[CONSTANT])
    encoded = encode(texts, numbers, folder, tokenizer=home / "tokenizer")
    asked = asked_sentences(size)
    page_of = [_pages_of_sentences()[0][sentence] for sentence in asked]
    if row == COUNTED:
        return count_words(encoded, encoded.encode(asked), page_of)
    torch.manual_seed(seed)
    vocabulary = encoded.tokenizer.vocab_size
    bert = new_bert(size, vocabulary) if part == FROM_START else pretrained_bert(home)
    layer = None
    if row in (*VALUES, RANDOM):  # a layer from zeros changes nothing at first
        width = bert.config.hidden_size
        layer = embedding_from_schema(encoded.schema, width, zero_init=row != RANDOM)
    model = NumberModel(bert, layer, freeze_backbone=part == LAYER_ALONE, vocab_size=vocabulary)
    steps = (PRETRAINING if part == FROM_START else STEPS)[size]
    schedule = Schedule(steps, BATCH, RATES[part], seed)
    few = encoded.encode(asked[:CURVE_QUESTIONS])
    batches = masked_words(encoded, schedule)
    result = learning.train(
        model, batches, schedule, lambda: ask(model, few, page_of)["perplexity_near"]
    )
    if row == PRETRAINED and not (home / "model.pt").is_file():
        state = {name: weights.cpu() for name, weights in bert.state_dict().items()}
        torch.save({"config": bert.config.to_dict(), "state": state}, home / "model.pt")
    result |= {"steps": steps, "sentences": len(texts)}
    result |= ask(model, encoded.encode(asked), page_of)
    other = ask(model, encoded.encode(swapped(asked)), page_of)
    return result | {f"{key}_swapped": other[key] for key in ("perplexity_near", "losses_near")}


def new_bert(size: str, vocabulary: int) -> BertForMaskedLM:
    """Return a BERT with random weights."""
    width, layers = MODEL_SIZE[size]
    config = BertConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        intermediate_size=4 * width,
        max_position_embeddings=ROW_TOKENS,
        hidden_dropout_prob=0.0,
    )
    return BertForMaskedLM(config)


def pretrained_bert(home: Path) -> BertForMaskedLM:
    """Load the pretrained BERT."""
    saved = torch.load(home / "model.pt", weights_only=True)
    model = BertForMaskedLM(BertConfig.from_dict(saved["config"]))
    model.load_state_dict(saved["state"])
    return model


def masked_words(encoded: Encoded, schedule: Schedule) -> Iterator[dict[str, Tensor]]:
    """Yield batches without end, with 15% of the words masked, but no digit and no number."""
    collator = NumberCollator.from_schema(
        encoded.schema,
        pad_token_id=0,
        objective="masked",
        mask="words",
        mask_token_id=encoded.token_id(MASK),
        max_length=ROW_TOKENS,
        special_token_ids=number_tokens(encoded),
        seed=schedule.seed,
    )
    every_row = range(len(encoded.rows))
    lengths = torch.tensor([len(encoded.rows[row]["input_ids"]) for row in every_row])
    for rows in learning.similar_rows(lengths, schedule):
        yield collator([encoded.rows[int(row)] for row in rows])


def number_tokens(encoded: Encoded) -> list[int]:
    """Return the ids of tokens with a digit, and of placeholders and brackets of numbers."""
    pieces = [encoded.tokenizer.decode([token]) for token in range(encoded.tokenizer.vocab_size)]
    digits = [token for token, piece in enumerate(pieces) if any(map(str.isdigit, piece))]
    return digits + placeholders(encoded)


def placeholders(encoded: Encoded) -> list[int]:
    """Return the ids of the placeholders of numbers and of the brackets around digits."""
    return sorted(token for name, token in encoded.tokenizer.tokens.items() if "NUM]" in name)


def asked_words(unseen: Encoded) -> Iterator[tuple[int, list[int], list[bool]]]:
    """Yield a row, the positions of its words, and whether each is near the number.

    Rows that are too long are skipped. Words and rows are the same in every representation.
    """
    hidden, marks = set(number_tokens(unseen)), set(placeholders(unseen))
    for row in range(len(unseen.rows)):
        ids = unseen.rows[row]["input_ids"].tolist()
        number = [position for position, token in enumerate(ids) if token in marks]
        first, last = number[0], number[-1]  # digits stand between the brackets
        outside = [position for position in range(len(ids)) if not first <= position <= last]
        words = [position for position in outside if ids[position] not in hidden]
        if words and len(outside) <= ROW_TOKENS - NUMBER_BYTES - 2:
            yield row, words, [first - NEAR <= position <= last + NEAR for position in words]


def ask(model: NumberModel, unseen: Encoded, page_of: list[int]) -> Result:
    """Mask every word alone, and return what :func:`summarize` makes of the model's predictions."""
    mask = unseen.token_id(MASK)
    collator = NumberCollator.from_schema(unseen.schema, pad_token_id=0, objective=None)
    losses: list[float] = []
    words_asked: list[tuple[int, bool]] = []
    right: list[bool] = []
    model.eval()
    for row, words, near in asked_words(unseen):
        batch = {
            name: stream.repeat(len(words), *[1] * (stream.dim() - 1))
            for name, stream in collator([unseen.rows[row]]).items()
        }
        masked = torch.arange(len(words)), torch.tensor(words)
        labels = batch["input_ids"][masked].clone()
        batch["input_ids"][masked] = mask
        with torch.no_grad():
            logits = model(**learning.to_device(batch)).logits.cpu()[masked]
        losses += cross_entropy(logits.double(), labels, reduction="none").tolist()
        words_asked += [(page_of[row], is_near) for is_near in near]
        right += (logits.argmax(-1) == labels).tolist()
    return summarize(losses, words_asked, right)


def count_words(encoded: Encoded, unseen: Encoded, page_of: list[int]) -> Result:
    """Predict words by counts, and return what :func:`summarize` makes of them.

    A word's probability is a mean of its share among the followers of the token before it, which
    occurs n times in the training, and of its share among all words. The weight of the former is
    n / (n + :data:`BACKOFF`).
    """
    size = encoded.tokenizer.vocab_size
    pairs = np.zeros((size, size))
    alone = np.ones(size)
    for row in range(len(encoded.rows)):
        ids = encoded.rows[row]["input_ids"]
        np.add.at(pairs, (ids[:-1], ids[1:]), 1)
        np.add.at(alone, ids, 1)
    vocabulary = np.setdiff1d(np.arange(size), number_tokens(encoded))
    losses, words_asked, right = [], [], []
    for row, words, near in asked_words(unseen):
        ids = unseen.rows[row]["input_ids"]
        words_asked += [(page_of[row], is_near) for is_near in near]
        for position in words:
            followers = (pairs[ids[position - 1]] if position else np.zeros(size))[vocabulary]
            weight = followers.sum() / (followers.sum() + BACKOFF)
            chance = (1 - weight) * alone[vocabulary] / alone[vocabulary].sum()
            chance += weight * followers / max(followers.sum(), 1)
            wanted = np.searchsorted(vocabulary, ids[position])
            losses.append(-float(np.log(chance[wanted])))
            right.append(bool(chance.argmax() == wanted))
    return summarize(losses, words_asked, right)


def summarize(losses: list[float], words: list[tuple[int, bool]], right: list[bool]) -> Result:
    """Return the perplexity of all words, of words near the number and of the others; the share of
    right predictions; and per page the count of near words and the sum of their losses.

    Args:
        losses: loss on each word.
        words: page of each word, and whether the word is near the number.
        right: whether the likeliest prediction is right.
    """
    loss, page = np.array(losses), np.array([page for page, _ in words])
    near = np.array([is_near for _, is_near in words])
    selections = {"": np.ones(len(loss), bool), "_near": near, "_far": ~near}
    return {
        "words": len(loss),
        **{
            f"perplexity{name}": round(float(np.exp(loss[selected].mean())), 4)
            for name, selected in selections.items()
        },
        "top_1": round(float(np.mean(right)), 5),
        "near": np.bincount(page, near).astype(int).tolist(),
        "losses_near": np.bincount(page, loss * near).round(4).tolist(),
    }


def worth(runs: Sequence[Result]) -> tuple[float, float]:
    """Return how much lower the loss on a word near a number is with the right number than with
    another one, mean of seeds, and its standard error over pages and over seeds.
    """
    near = np.array(runs[0]["near"])
    gains = np.array([np.subtract(run["losses_near_swapped"], run["losses_near"]) for run in runs])
    by_seed = gains.sum(1) / near.sum()
    mean, pages = by_seed.mean(), np.count_nonzero(near)
    residuals = gains.mean(0) - mean * near
    error = np.sqrt(np.square(residuals).sum() * pages / (pages - 1)) / near.sum()
    if len(runs) > 1:
        error = np.hypot(error, by_seed.std(ddof=1) / np.sqrt(len(runs)))
    return float(mean), float(error)


def verdict(runs: Sequence[Result]) -> str:
    """Return "shown" if the right number lowers the loss by more than :data:`LEAST` even at twice
    the standard error below the mean, "shown in part" if the mean does so and exceeds twice the
    error.
    """
    gain, error = worth(runs)
    if gain < LEAST or gain < 2 * error:
        return "not shown"
    return "shown" if gain - 2 * error > LEAST else "shown in part"


def section(results: list[tuple[Settings, Result]], plots: Path) -> str:
    """Return a table of perplexities, means over seeds, and pictures."""
    rows = by_row(results)
    columns = {
        "perplexity": ("perplexity", ".1f"),
        "perplexity_near": (NEAR_HEAD, ".1f"),
        "perplexity_far": ("farther", ".1f"),
        "top_1": ("top-1", ".1%"),
    }
    named = {f"{name}, {part}": runs for (part, name), runs in rows.items()}
    counted = {COUNTED: runs_of(results, COUNTED)}
    lines = [
        [
            name,
            *(tables.mean((one[key] for one in runs), form) for key, (_, form) in columns.items()),
            *_worth(name, runs),
            str(len(runs)),
        ]
        for name, runs in (named | counted).items()
        if runs
    ]
    heads = ["", *(head for head, _ in columns.values())]
    heads += [SWAPPED_HEAD, "verdict: the value is read", "seeds"]
    table = tables.markdown(heads, lines)
    if not rows:
        return table
    near: dict[str, dict[str, list[float]]] = {part: {} for part, _ in rows}
    for (part, name), runs in rows.items():
        near[part][name] = [one["perplexity_near"] for one in runs]
    picture = plots / f"{NAME}.svg"
    dots(picture, near, f"perplexity of words within {NEAR} tokens of the number")
    title = "Perplexity of masked words near a number, with its spread over seeds"
    path, y = plots / f"{NAME}_curves.svg", "perplexity of words near the number"
    drawn = learning_curves(path, named, "Perplexity near the number", y, share=False)
    return "\n\n".join([table, picture_link(picture, title, near), drawn])


def _worth(name: str, runs: Sequence[Result]) -> list[str]:
    """Return the cells of :func:`worth`, as a change of perplexity, and :func:`verdict`."""
    if name == COUNTED or CONSTANT in name:
        return ["", ""]
    gain, error = worth(runs)
    return [f"{np.expm1(gain):+.1%} ± {error * np.exp(gain):.1%}", verdict(runs)]


def runs_of(results: list[tuple[Settings, Result]], name: str) -> list[Result]:
    """Return the results of a run that has no trained part: the pretraining or the counts."""
    return [result for settings, result in results if settings["embedding"] == name]


def by_row(results: list[tuple[Settings, Result]]) -> dict[tuple[str, str], list[Result]]:
    """Return the results by trained part and embedding, one per seed."""
    rows = tables.group_values(
        ((settings["trunk"], settings["embedding"]), result)
        for settings, result in results
        if "trunk" in settings
    )
    rows[FROM_START, CONSTANT] = runs_of(
        results, PRETRAINED
    )  # the other rows begin with this model
    order = ((part, name) for part in TRAINED_PARTS for name in EMBEDDINGS)
    return {key: rows[key] for key in order if rows.get(key)}


EXPERIMENT = Experiment(
    NAME,
    "Floating-Point Embedding, tables 1 and 2",
    """\
Words beside a number are masked, BERT-base on Wiki-Convert:

| | perplexity | top-1 |
|---|--:|--:|
| default | 2.993 | 66.98% |
| exponents | 2.954 | 67.42% |
| floats | 2.898 | 67.88% |""",
    phases,
    run,
    section,
    question="Does the value of a number help to guess the words around it?",
    result=(
        "Models read the value: words near a number are harder to guess with another sentence's number"
        " in its place. Whether a value makes these words easier to guess is not settled."
    ),
    confidence="Shown in part, with three seeds.",
    rows=("exponent bins, all", "constant, all"),
    columns=(NEAR_HEAD, SWAPPED_HEAD),
    labels={
        "exponent bins, all": "exponent bins",
        "constant, all": "a token without a value",
        NEAR_HEAD: f"perplexity within {NEAR} tokens",
        SWAPPED_HEAD: "with another number",
    },
    picture="bits_masked_words.svg",
    setup=f"""\
- **Model.** A BERT of width {MODEL_SIZE["small"][0]} with {MODEL_SIZE["small"][1]} layers in place of BERT-base,
  pretrained here on Wikipedia for {PRETRAINING["small"]:,} steps of {BATCH}. A number is then one token
  without a value, `constant`.
- **Training.** {STEPS["small"]:,} steps with each layer on 6,323 sentences with one number. The paper trains
  the word head beside the layer. On so few sentences that did harm to all rows when tried, so the
  layer is trained alone, or all of the model. Rates are not searched.
- **Questions.** A page in {HELD_OUT} is held out before the pretraining. 484 sentences of 41 such pages are
  asked: 9,521 words or subwords, 2,262 of them within {NEAR} tokens of the number.
- **`{SWAPPED_HEAD}`** is the increase in perplexity with the number of another sentence. Its error is over
  pages, and over seeds where there are several. `shown`: at least 1% by twice that error. `shown in
  part`: at least 1% as measured, and more than twice that error.
- **Start.** Layers start from zeros, so that nothing is changed at first. `random start` is as long as
  a word vector, as in the other experiments.
- **The last rows** are pretrained with their layer, or with digits as tokens, from the start, with one
  seed.

The pretrained model is kept beside the results (CC BY-SA 4.0, as its text).""",
    verdict="""\
Shown in part.

- **A value is read: shown in part.** Words near a number are harder to guess with the number of
  another sentence in its place. xVal's value is hardly read.

| perplexity with another number | exponent bins | bits | digits |
|---|--:|--:|--:|
| the layer alone is trained, three seeds | +2.8 ± 0.9% | +1.8 ± 0.6% | |
| all of the model is trained, three seeds | +1.8 ± 0.6% | hardly: +0.4 ± 0.2% | |
| pretrained so, one seed | +10.9 ± 1.6% | +7.0 ± 1.5% | +1.7 ± 0.8% |

- **The model is better for it: not settled.** After training all of the model there is no difference.
  Pretrained with bits, words near the number have 7% less perplexity, and farther ones 2% less. With
  bins it is 8% and 6%, and a value hardly explains the latter. A single seed does not settle it.

| perplexity near the number | no value | bits | exponent bins |
|---|--:|--:|--:|
| the layer alone is trained | 46.7 | 46.3 | 46.5 |
| all of the model is trained | 42.7 | 42.6 | 42.6 |
| pretrained so, one seed | 46.7 | 43.6 | 43.2 |

A layer that does not start from zeros is 9% behind.""",
)
