"""Floating-Point Embedding, tables 1 and 2: masked words beside a number.

A small BERT is pretrained here on the shared text, of which some pages are put aside; it sees a
number as one token without a value. Then a layer that shows values is put in front of it, from
zeros, and is trained on sentences with one number, 15% of their words masked, alone or with all of
the model. Others are pretrained with such a layer, or with digits, from the start. Every word of
sentences of the pages put aside is masked, one at a time; and again with the number of another
sentence in the place of theirs, so that what the value is worth is seen in one model.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

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
from benchmarks.evidence.learning import Course
from benchmarks.evidence.plots import dots, learning_curves, shown
from benchmarks.evidence.store import Result, Settings, Store
from numtok_torch import NumberCollator, NumberEmbedding, NumberModel, embedding_from_schema

NAME = "bits_masked_words"
CONSTANT, COUNTED = "constant", "counts of pairs of words"
RANDOM, DIGITS = "float bits, random start", "digits"
PRETRAINED = "pretraining"
VALUES = {"exponent bins": "exponent_bins", "float bits": "bits", "xval, log": "xval:log"}
# --numbers; the control has a token for every number, and no value
EMBEDDINGS = {CONSTANT: "bits", **VALUES, RANDOM: "bits", DIGITS: "digits:1"}
FROZEN = "layer alone"
OWN = "pretrained"  # in the form of the row
TRUNKS = {  # and what is trained with each; with the first, the constant is what was pretrained
    FROZEN: (*VALUES,),
    "all": (CONSTANT, *VALUES, RANDOM),
    OWN: ("exponent bins", "float bits", DIGITS),
}
SEEDS = {"smoke": (0,), "small": (0, 1, 2), "full": (0, 1, 2, 3, 4)}
PRETRAINING = {"smoke": 20, "small": 15_000, "full": 100_000}
STEPS = {"smoke": 60, "small": 1500, "full": 3000}
VOCABULARY = {"smoke": 400, "small": 2000, "full": 16_000}
TRUNK = {"smoke": (32, 1), "small": (64, 2), "full": (768, 12)}
ASKED = {"smoke": 5, "small": 600, "full": 2000}  # sentences, each of whose words is masked in turn
BATCH, LONGEST, WIDEST = 32, 48, 9  # tokens of a row; bytes of a number that is asked about
RATES = {OWN: 0.002, FROZEN: 0.002, "all": 0.0005}  # a higher one does harm to what was pretrained
LEAST = 0.01  # of perplexity: what a value has to be worth
WATCHED = 40  # of these sentences, for a point of a learning curve
NEAR = 3  # tokens from the number
NEAR_HEAD, SWAPPED_HEAD = f"within {NEAR} tokens of the number", "with another number, near"
UNSEEN = 10  # one page of so many is put aside
KNOWN = 20  # times that a token was seen, for half of what follows to be taken from there
MASK = "<|endoftext|>"


def phases(size: str) -> list[list[Settings]]:
    """The pretraining; counts, and layers with every seed; then what is pretrained with each row's
    own, which takes long, with one.
    """
    rows = [
        {"size": size, "embedding": name, "trunk": trunk, "seed": seed}
        for trunk, names in TRUNKS.items()
        for seed in (SEEDS[size] if trunk != OWN else SEEDS[size][:1])
        for name in (names if size != "smoke" else (names[1], names[-1]))
    ]
    first: list[Settings] = [
        {"size": size, "embedding": name, "seed": 0} for name in (PRETRAINED, COUNTED)
    ]
    return [first[:1], first[1:] + rows]


def sentences(unseen: bool | None = None) -> list[str]:
    """Of the shared text, else of the sample; each once.

    Args:
        unseen: of the pages that are put aside, of the others, or of all. What both have is not
            unseen.
    """
    aside, others = _by_page()
    if unseen is None:
        return [*dict.fromkeys([*others, *aside])]
    return [one for one in aside if one not in others] if unseen else [*others]


def _by_page() -> tuple[dict[str, int], dict[str, int]]:
    """Sentences, and their pages, of those that are put aside and of the others."""
    shared = shared_folder()
    path = shared / "corpora" / "wiki.jsonl" if shared else SAMPLE
    with (path if path.is_file() else SAMPLE).open(encoding="utf-8") as lines:
        pages = [json.loads(line)["text"] for line in lines]
    random.Random(0).shuffle(pages)
    others = [page for index, page in enumerate(pages) if index % UNSEEN]
    return _sentences(pages[::UNSEEN]), _sentences(others)


def _sentences(pages: list[str]) -> dict[str, int]:
    """Each with the first page that has it."""
    found: dict[str, int] = {}
    for index, page in enumerate(pages):
        for one in re.split(r"(?<=[.!?])\s+|\n", page):
            if 30 <= len(one) <= 160:
                found.setdefault(one, index)
    return found


def with_one_number(texts: list[str]) -> list[str]:
    """Those of them."""
    return [one for one in texts if len(numtok.extract(one)) == 1]


def asked_sentences(size: str) -> list[str]:
    """Of the pages that are put aside, some with one number, which is not long."""
    found = with_one_number(sentences(unseen=True))
    found = [one for one in found if len(numtok.extract(one)[0].text.encode()) <= WIDEST]
    random.Random(0).shuffle(found)
    return found[: ASKED[size]]


def swapped(texts: list[str]) -> list[str]:
    """Each with the number of the next, where that is a number there too."""
    numbers = [numtok.extract(one)[0] for one in texts]
    found = []
    for text, own, other in zip(texts, numbers, numbers[1:] + numbers[:1], strict=True):
        changed = text[: own.start] + other.text + text[own.stop :]
        is_one = [one.text for one in numtok.extract(changed)] == [other.text]
        found.append(changed if is_one else text)
    return found


def run(settings: Settings, store: Store, folder: Path) -> Result:
    """Train from the start, or from the pretrained model on, and ask."""
    size, seed, row = settings["size"], settings["seed"], settings["embedding"]
    own = row == PRETRAINED or settings.get("trunk") == OWN
    # the small one is in the repository; made where it is missing
    home = store.folder / NAME / f"trunk-{size}"
    texts = sentences(unseen=False)
    if row == PRETRAINED:
        train(texts, home / "tokenizer", VOCABULARY[size])
    elif not (home / "model.pt").is_file():
        run({"size": size, "embedding": PRETRAINED, "seed": 0}, store, folder / PRETRAINED)
    if not own:
        texts = with_one_number(texts)
    numbers = EMBEDDINGS.get(row, EMBEDDINGS[CONSTANT])
    encoded = encode(texts, numbers, folder, tokenizer=home / "tokenizer")
    asked = asked_sentences(size)
    pages = _by_page()[0]
    page_of = [pages[one] for one in asked]
    if row == COUNTED:
        return count_words(encoded, encoded.like(asked), page_of)
    torch.manual_seed(seed)
    trunk = new_bert(size, encoded.tokenizer.vocab_size) if own else kept_bert(home)
    model = NumberModel(
        trunk,
        layer(row, encoded, trunk.config.hidden_size),
        freeze_backbone=settings.get("trunk") == FROZEN,
        vocab_size=encoded.tokenizer.vocab_size,
    )
    rate = RATES[OWN if own else settings["trunk"]]
    course = Course((PRETRAINING if own else STEPS)[size], BATCH, rate, seed)
    few = encoded.like(asked[:WATCHED])
    found = learning.train(
        model,
        masked_words(encoded, course),
        course,
        lambda: ask(model, few, page_of)["perplexity_near"],
    )
    if row == PRETRAINED:
        state = {name: weights.cpu() for name, weights in trunk.state_dict().items()}
        torch.save({"config": trunk.config.to_dict(), "state": state}, home / "model.pt")
    about = {"steps": course.steps, "sentences": len(texts)}
    found |= about | ask(model, encoded.like(asked), page_of)
    other = ask(model, encoded.like(swapped(asked)), page_of)
    return found | {f"{key}_swapped": other[key] for key in ("perplexity_near", "losses_near")}


def layer(row: str, encoded: Encoded, width: int) -> NumberEmbedding | None:
    """What shows values: from zeros, so that nothing is changed at first, if not said otherwise."""
    if row not in (*VALUES, RANDOM):
        return None
    return embedding_from_schema(encoded.schema, width, zero_init=row != RANDOM)


def new_bert(size: str, vocabulary: int) -> BertForMaskedLM:
    """One with random weights."""
    width, layers = TRUNK[size]
    sizes: dict[str, Any] = {
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": 4,
        "intermediate_size": 4 * width,
    }
    config = BertConfig(
        vocab_size=vocabulary, max_position_embeddings=LONGEST, hidden_dropout_prob=0.0, **sizes
    )
    return BertForMaskedLM(config)


def kept_bert(home: Path) -> BertForMaskedLM:
    """The pretrained one."""
    kept = torch.load(home / "model.pt", weights_only=True)
    model = BertForMaskedLM(BertConfig.from_dict(kept["config"]))
    model.load_state_dict(kept["state"])
    return model


def masked_words(encoded: Encoded, course: Course) -> Iterator[dict[str, Tensor]]:
    """Batches without end, 15% of the words masked, no digit and no number."""
    collator = NumberCollator.from_schema(
        encoded.schema, pad_token_id=0, objective="masked", mask="words", mask_token_id=encoded.id_of(MASK), max_length=LONGEST,
        special_token_ids=digits(encoded), seed=course.seed,
    )  # fmt: skip
    lengths = torch.tensor(
        [len(encoded.rows[row]["input_ids"]) for row in range(len(encoded.rows))]
    )
    for chosen in learning.of_one_length(lengths, course):
        yield collator([encoded.rows[int(row)] for row in chosen])


def digits(encoded: Encoded) -> list[int]:
    """Tokens that hold digits, and those that stand for numbers or around them."""
    pieces = [encoded.tokenizer.decode([token]) for token in range(encoded.tokenizer.vocab_size)]
    return [
        token for token, piece in enumerate(pieces) if any(letter.isdigit() for letter in piece)
    ] + marks(encoded)


def marks(encoded: Encoded) -> list[int]:
    """Tokens that stand for numbers or around them."""
    return sorted(token for name, token in encoded.tokenizer.tokens.items() if "NUM]" in name)


def asked_words(unseen: Encoded) -> Iterator[tuple[int, list[int], list[bool]]]:
    """The row, the places of its words, and which of these are near its number; the same words of
    the same rows, however numbers are written. Rows that are too long are left out.
    """
    hidden = set(digits(unseen))
    numbers = set(marks(unseen))
    for index in range(len(unseen.rows)):
        ids = unseen.rows[index]["input_ids"].tolist()
        number = [place for place, token in enumerate(ids) if token in numbers]
        first, last = number[0], number[-1]  # digits lie between two of these
        beside = [place for place in range(len(ids)) if not first <= place <= last]
        words = [place for place in beside if ids[place] not in hidden]
        if words and len(beside) <= LONGEST - WIDEST - 2:
            yield index, words, [first - NEAR <= place <= last + NEAR for place in words]


def ask(model: NumberModel, unseen: Encoded, page_of: list[int]) -> Result:
    """Perplexity of every word, each masked alone, and how often the right one is the first."""
    mask = unseen.id_of(MASK)
    collator = NumberCollator.from_schema(unseen.schema, pad_token_id=0, objective=None)
    losses: list[float] = []
    where: list[tuple[int, bool]] = []
    right: list[bool] = []
    model.eval()
    for index, words, near in asked_words(unseen):
        one = collator([unseen.rows[index]])
        batch = {
            name: stream.repeat(len(words), *[1] * (stream.dim() - 1))
            for name, stream in one.items()
        }
        at = torch.arange(len(words)), torch.tensor(words)
        labels = batch["input_ids"][at].clone()
        batch["input_ids"][at] = mask
        with torch.no_grad():
            logits = model(**learning.placed(batch)).logits.cpu()[at]
        losses += cross_entropy(logits.double(), labels, reduction="none").tolist()
        where += [(page_of[index], one) for one in near]
        right += (logits.argmax(-1) == labels).tolist()
    return summed(losses, where, right)


def count_words(encoded: Encoded, unseen: Encoded, page_of: list[int]) -> Result:
    """The same of counts: what follows a token in the sentences of the training, n times seen, by
    n / (n + 20), else how often a word comes at all.
    """
    size = encoded.tokenizer.vocab_size
    pairs = np.zeros((size, size))
    alone = np.ones(size)
    for index in range(len(encoded.rows)):
        ids = encoded.rows[index]["input_ids"]
        np.add.at(pairs, (ids[:-1], ids[1:]), 1)
        np.add.at(alone, ids, 1)
    words = np.setdiff1d(np.arange(size), digits(encoded))
    losses, where, right = [], [], []
    for index, places, near in asked_words(unseen):
        ids = unseen.rows[index]["input_ids"]
        where += [(page_of[index], one) for one in near]
        for place in places:
            after = pairs[ids[place - 1]] if place else np.zeros(size)
            share = after[words].sum() / (after[words].sum() + KNOWN)
            chance = (1 - share) * alone[words] / alone[words].sum()
            chance += share * after[words] / max(after[words].sum(), 1)
            wanted = np.searchsorted(words, ids[place])
            losses.append(-float(np.log(chance[wanted])))
            right.append(bool(chance.argmax() == wanted))
    return summed(losses, where, right)


def summed(losses: list[float], where: list[tuple[int, bool]], right: list[bool]) -> Result:
    """Perplexity of all words, of those near the number, and of those far from it; and by page the
    count of words near it and the sum of their losses.
    """
    of, page = np.array(losses), np.array([index for index, _ in where])
    near = np.array([is_near for _, is_near in where])
    chosen = {"": np.ones(len(of), bool), "_near": near, "_far": ~near}
    return {
        "words": len(of),
        **{
            f"perplexity{name}": round(float(np.exp(of[which].mean())), 4)
            for name, which in chosen.items()
        },
        "top_1": round(float(np.mean(right)), 5),
        "near": np.bincount(page, near).astype(int).tolist(),
        "losses_near": np.bincount(page, of * near).round(4).tolist(),
    }


def worth(found: Sequence[Result]) -> tuple[float, float]:
    """How much lower the loss on a word near a number is with the number that belongs there than
    with another one, mean of seeds, and its standard error, by pages and by seeds.
    """
    near = np.array(found[0]["near"])
    gains = np.array([np.subtract(one["losses_near_swapped"], one["losses_near"]) for one in found])
    by_seed = gains.sum(1) / near.sum()
    mean, pages = by_seed.mean(), np.count_nonzero(near)
    off = gains.mean(0) - mean * near
    error = np.sqrt(np.square(off).sum() * pages / (pages - 1)) / near.sum()
    if len(found) > 1:
        error = np.hypot(error, by_seed.std(ddof=1) / np.sqrt(len(found)))
    return float(mean), float(error)


def verdict(found: Sequence[Result]) -> str:
    """Whether the right number makes perplexity lower by :data:`LEAST`, and by more than twice the
    standard error.
    """
    gain, error = worth(found)
    if gain < LEAST or gain < 2 * error:
        return "not shown"
    return "shown" if gain - 2 * error > LEAST else "shown in part"


def section(results: list[tuple[Settings, Result]], plots: Path) -> str:
    """Means over seeds, and their spread."""
    by = by_row(results)
    columns = {
        "perplexity": ("perplexity", ".1f"),
        "perplexity_near": (NEAR_HEAD, ".1f"),
        "perplexity_far": ("farther", ".1f"),
        "top_1": ("top-1", ".1%"),
    }
    named = {f"{name}, {trunk}": found for (trunk, name), found in by.items()}
    named |= {COUNTED: found} if (found := of_all(results, COUNTED)) else {}
    rows = [
        [
            name,
            *(tables.mean((one[key] for one in found), form) for key, (_, form) in columns.items()),
            *_worth(name, found),
            str(len(found)),
        ]
        for name, found in named.items()
    ]
    heads = [head for head, _ in columns.values()]
    last = [SWAPPED_HEAD, "verdict: the value is read", "seeds"]
    table = tables.markdown(["", *heads, *last], rows)
    if not by:
        return table
    picture = plots / f"{NAME}.svg"
    near = {
        trunk: {
            name: [one["perplexity_near"] for one in found]
            for (of, name), found in by.items()
            if of == trunk
        }
        for trunk in TRUNKS
    }
    near = {trunk: values for trunk, values in near.items() if values}
    dots(picture, near, f"perplexity of words within {NEAR} tokens of the number")
    what = "Perplexity of masked words near a number, with its spread over seeds"
    path, y = plots / f"{NAME}_curves.svg", "perplexity of words near the number"
    curves = {f"{name}, {trunk}": found for (trunk, name), found in by.items()}
    drawn = learning_curves(path, curves, "Perplexity near the number", y, share=False)
    return "\n\n".join([table, shown(picture, what, near), drawn])


def _worth(name: str, found: Sequence[Result]) -> list[str]:
    if name == COUNTED or CONSTANT in name:
        return ["", ""]
    gain, error = worth(found)
    return [f"{np.expm1(gain):+.1%} ± {error * np.exp(gain):.1%}", verdict(found)]


def of_all(results: list[tuple[Settings, Result]], name: str) -> list[Result]:
    """What is the same for every row."""
    return [found for one, found in results if (one["size"], one["embedding"]) == ("small", name)]


def by_row(results: list[tuple[Settings, Result]]) -> dict[tuple[str, str], list[Result]]:
    """By trunk and embedding, one result for each seed."""
    by = tables.gathered(
        ((settings["trunk"], settings["embedding"]), result)
        for settings, result in results
        if settings["size"] == "small" and "trunk" in settings
    )
    by[OWN, CONSTANT] = of_all(results, PRETRAINED)  # where that of the layer alone begins too
    order = ((trunk, name) for trunk in TRUNKS for name in EMBEDDINGS)
    return {key: by[key] for key in order if by.get(key)}


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
    sure="Shown in part, with three seeds.",
    rows=("exponent bins, all", "constant, all"),
    columns=(NEAR_HEAD, SWAPPED_HEAD),
    labels={
        "exponent bins, all": "exponent bins",
        "constant, all": "a token without a value",
        NEAR_HEAD: f"perplexity within {NEAR} tokens",
        SWAPPED_HEAD: "with another number",
    },
    picture="bits_masked_words.svg",
    differs=f"""\
- **Model.** A BERT of width {TRUNK["small"][0]} with {TRUNK["small"][1]} layers in place of BERT-base,
  pretrained here on Wikipedia for {PRETRAINING["small"]:,} steps of {BATCH}. A number is then one token
  without a value, `constant`.
- **Training.** {STEPS["small"]:,} steps with each layer on 6,323 sentences with one number. The paper trains
  the word head beside the layer. On so few sentences that did harm to all rows when tried, so the
  layer is trained alone, or all of the model. Rates are not searched.
- **Questions.** A page in {UNSEEN} is held out before the pretraining. 484 sentences of 41 such pages are
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
