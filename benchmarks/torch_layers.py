"""The torch embedding layers beside a plain ``nn.Embedding`` lookup of the same shape, and beside
the first layer of a GPT-2 as wide as they are.

The numbers are those of the corpus, at some of the tokens. Before the clock starts, each layer's
vectors are compared with the formula, in float64 in numpy, and the word vectors of all other tokens
with what they were. On a CPU with one thread, and on a GPU where there is one.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import numtok
from benchmarks.corpus import Corpus
from benchmarks.references import Array
from benchmarks.timing import Goal, Section, alternate, check
from numtok.representations import ExponentBins, FloatBits, FoNE, LogFourier, SingleToken, XVal

ROWS, LENGTH, WIDTH, VOCABULARY = 8, 512, 768, 50257
# of the tokens are numbers; the latter for the layer whose cost hangs on it most
SHARE, SHARES = (
    0.1,
    (0.05, 0.1, 0.15),
)
LOOKUP, FIRST = "nn.Embedding lookup", "GPT-2's first layer"
HEAD = 64  # dimensions of one attention head
NEEDED = ("torch", "transformers")


@dataclass(frozen=True)
class Case:
    """One layer.

    Attributes:
        name: for people.
        representation: which gives the stream; None for place values, at random.
        make: d_model to the layer.
        formula: (weights by name, word vectors [n, d], stream [n, ...]) to the vectors of the
            numbers [n, d], in float64.
        shares: of the tokens that are numbers, one measurement each.
    """

    name: str
    representation: SingleToken | None
    make: Callable[[int], Any]
    formula: Callable[[dict[str, Array], Array, Array], Array]
    shares: tuple[float, ...] = (SHARE,)


def run(corpus: Corpus) -> Section:
    """All layers, on each device there is."""
    rows, length, width = (2, 64, 64) if corpus.quick else (ROWS, LENGTH, WIDTH)
    section = Section(f"Embedding layers, {rows} x {length} tokens of {width} dimensions")
    if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        section.checks.append(
            f"nothing: {', '.join(missing)} is not installed, so the layers are not timed; pip"
            " install '.[torch,hf]'"
        )
        return section
    import torch

    torch.set_num_threads(1)
    section.notes.append(
        f"torch {torch.__version__}; ratios are to {FIRST}; the lookup's vocabulary has"
        f" {VOCABULARY:,} tokens"
    )
    numbers = numtok.scan(corpus.column)
    for device in ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]:
        measure(device, numbers, (rows, length, width), corpus, section)
    return section


def measure(
    device: str,
    numbers: numtok.Numbers,
    shape: tuple[int, int, int],
    corpus: Corpus,
    section: Section,
) -> None:
    """Check and time the layers on one device."""
    import torch

    where = device if device == "cpu" else torch.cuda.get_device_name()
    rows, length, width = shape
    torch.manual_seed(0)
    table = torch.nn.Embedding(VOCABULARY, width, device=device)
    words = torch.randn(rows, length, width, device=device).requires_grad_()
    steps: dict[str, tuple[Any, ...]] = {
        LOOKUP: (table, torch.randint(VOCABULARY, (rows, length), device=device)),
        FIRST: (first_layer(width).to(device), words),
    }
    for case in cases():
        for share in case.shares:
            mask = torch.rand(rows, length, device=device) < share
            layer, batch = (
                case.make(width).to(device),
                {"number_mask": mask, **streams(case.representation, numbers, mask)},
            )
            name = f"{case.name}, {share:.0%} numbers"
            section.checks.append(
                f"{name}, {where}: {compare(case, layer, words, batch)} numbers as in the formula,"
                " words as they were"
            )
            steps[name] = (layer, words, batch)
    for backward in (False, True):
        ending = f", forward{' and backward' if backward else ''}, {where}"
        functions = {
            name + ending: lambda parts=parts, backward=backward: step(device, backward, *parts)
            for name, parts in steps.items()
        }
        timings = alternate(functions, corpus.budget(30))  # type: ignore[arg-type]
        section.add(timings, rows * length / 1e6, FIRST + ending, "M tokens")
        # two matrices of twelve, at a tenth of the tokens: a sixtieth
        if device == "cpu" and not corpus.quick:
            share = timings[f"FloatBits, {SHARE:.0%} numbers{ending}"].over(timings[FIRST + ending])
            section.goals.append(
                Goal(
                    f"FloatBits over {FIRST}{ending}, {SHARE:.0%} numbers",
                    share,
                    0.05,
                    0.02,
                    "x",
                    at_most=True,
                )
            )


def first_layer(width: int) -> Any:
    """Attention and the network after it, of random weights: what the word vectors go into."""
    import torch
    from transformers import GPT2Config
    from transformers.models.gpt2.modeling_gpt2 import GPT2Block

    class First(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            config = GPT2Config(
                n_embd=width,
                n_head=max(width // HEAD, 1),
                attn_pdrop=0.0,
                resid_pdrop=0.0,
                attn_implementation="sdpa",
            )
            self.block = GPT2Block(config, layer_idx=0)

        def forward(self, words: Any) -> Any:
            found = self.block(words)
            return found if isinstance(found, torch.Tensor) else found[0]

    return First()


def step(device: str, backward: bool, layer: Any, *arguments: Any) -> None:
    """Forward, and backward, until the device is done."""
    import torch

    for one in [*layer.parameters(), *arguments]:
        if isinstance(one, torch.Tensor):
            one.grad = None
    with torch.set_grad_enabled(backward):
        found = layer(*arguments)
    if backward:
        found.sum().backward()
    if device != "cpu":
        torch.cuda.synchronize()


def streams(
    representation: SingleToken | None, numbers: numtok.Numbers, mask: Any
) -> dict[str, Any]:
    """The representation's stream, with the corpus's numbers, again and again, where the mask says."""
    import torch

    if representation is None:
        places = torch.randint(1, 10, mask.shape, device=mask.device) * (
            1 - 2 * torch.randint(2, mask.shape, device=mask.device)
        )
        return {"place_value": places * mask}
    found = numbers if representation.carries_sign else numbers.without_sign()
    found = found.select(np.flatnonzero(representation.fits(found))[: mask.numel()])
    ((name, column),) = representation.encode(found).items()
    array = (
        column.to_numpy_ndarray()
        if hasattr(column, "to_numpy_ndarray")
        else column.to_numpy(zero_copy_only=False)
    )
    array = array.astype(np.int64) if array.dtype in (np.uint32, np.uint64, np.int16) else array
    filled = np.zeros((*mask.shape, *array.shape[1:]), array.dtype)
    at = mask.cpu().numpy()
    filled[at] = array[np.arange(at.sum()) % len(array)]
    return {name: torch.from_numpy(filled).to(mask.device)}


def compare(case: Case, layer: Any, words: Any, batch: dict[str, Any]) -> int:
    """The count of numbers, if the layer gives what the formula does."""
    import torch

    with torch.no_grad():
        found = layer(words, batch)
    at = batch["number_mask"]
    words = words.detach()
    check(
        torch.equal(found[~at], words[~at]),
        f"{case.name}: the layer changes tokens that are no number",
    )
    weights = {
        name: value.detach().double().cpu().numpy() for name, value in layer.named_parameters()
    }
    stream = (
        next(stream for name, stream in batch.items() if name != "number_mask")[at].cpu().numpy()
    )
    expected = case.formula(weights, words[at].double().cpu().numpy(), stream)
    got = found[at].double().cpu().numpy()
    check(
        np.allclose(got, expected, rtol=1e-4, atol=1e-4),
        f"{case.name}: the layer's vectors differ from the formula's",
    )
    return len(expected)


def bits_formula(weights: dict[str, Array], words: Array, stream: Array) -> Array:
    """Three linear layers with ReLU, the last one's after the residual sum."""
    first = np.maximum(stream @ weights["layers.0.weight"].T, 0)
    inner = np.maximum(first @ weights["layers.1.weight"].T, 0)
    return np.asarray(np.maximum(first + inner @ weights["layers.2.weight"].T, 0))


def wide_bits(stream: Array) -> Array:
    """The 64 bits of float64, as -1 and 1, from either form: [n, 64]."""
    if stream.ndim == 1:
        stream = np.unpackbits(stream.astype(">i8").view(np.uint8)).reshape(-1, 64)
    return 2.0 * stream - 1


def fone_features(digits: Array) -> Array:
    """Cosine and sine of each phase, from digits [n, d], least significant first: [n, 2 d]."""
    turn, found = np.zeros(len(digits)), []
    for column in digits.astype(np.float64).T:
        turn = (turn + column) / 10
        found += [np.cos(2 * np.pi * turn), np.sin(2 * np.pi * turn)]
    return np.stack(found, 1)


def cases() -> list[Case]:
    """Every layer."""
    import numtok_torch as layers

    def fone_padded(weights: dict[str, Array], words: Array, stream: Array) -> Array:
        features = fone_features(stream)
        return np.asarray(
            words + np.pad(features, ((0, 0), (0, words.shape[1] - features.shape[1])))
        )

    return [
        Case(
            "XVal", XVal(), layers.XValEmbedding, lambda w, e, x: e * x[:, None].astype(np.float64)
        ),
        Case("FloatBits", FloatBits(), layers.FloatBitsEmbedding, bits_formula, SHARES),
        Case(
            "FloatBits(64), added",
            FloatBits(width=64),
            lambda d: layers.FloatBitsEmbedding(d, width=64),
            lambda w, e, x: e + np.pad(wide_bits(x), ((0, 0), (0, e.shape[1] - 64))),
        ),
        Case(
            "FloatBits(64), compact, linear map, added",
            FloatBits(width=64, compact=True),
            lambda d: layers.FloatBitsEmbedding(d, width=64, projection="linear"),
            lambda w, e, x: e + wide_bits(x) @ w["projection.weight"].T,
        ),
        Case(
            "FoNE(8, 4), compact",
            FoNE(8, 4, compact=True),
            lambda d: layers.FoNEEmbedding(d, 8, 4),
            fone_padded,
        ),
        Case(
            "FoNE(8, 4), compact, linear map",
            FoNE(8, 4, compact=True),
            lambda d: layers.FoNEEmbedding(d, 8, 4, projection="linear"),
            lambda w, e, x: e + fone_features(x) @ w["projection.weight"].T,
        ),
        Case(
            "FoNE(8, 4), dense",
            FoNE(8, 4),
            lambda d: layers.FoNEEmbedding(d, 8, 4),
            lambda w, e, x: (
                e + np.pad(x.reshape(len(x), -1), ((0, 0), (0, e.shape[1] - x[0].size)))
            ),
        ),
        Case(
            "ExponentBins",
            ExponentBins(),
            layers.ExponentBinsEmbedding,
            lambda w, e, x: e + w["vectors.weight"][x],
        ),
        Case(
            "LogFourier(8)",
            LogFourier(8),
            layers.LogFourierEmbedding,
            lambda w, e, x: e + x.reshape(len(x), -1).astype(np.float64) @ w["projection.weight"].T,
        ),
        Case(
            "PlaceValue",
            None,
            lambda d: layers.PlaceValueEmbedding(d, zero_init=False),
            lambda w, e, x: e + w["vectors.weight"][64 + x],
        ),
    ]
