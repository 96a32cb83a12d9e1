"""The distribution of the next number is that of writing every number out."""

import functools
import math
import time
from decimal import Decimal

import numpy as np
import pytest
from pretrained import smollm2

from numtok import NumberFormat
from numtok_torch import NumberDistribution, number_distribution

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

TOKENS = ["</s>", " ", *"0123456789.,xe-", "12", "00", " 1", "5 k", ".x", "99", ".5"]
PROMPT = [14, 1, 14]
BOILING = "The boiling point of water in degrees Celsius is"


@functools.cache
def tiny_tokenizer():
    vocabulary = {token: number for number, token in enumerate(TOKENS)}
    model = tokenizers.models.WordLevel(vocabulary, unk_token="x")
    backend = tokenizers.Tokenizer(model)
    backend.decoder = tokenizers.decoders.Fuse()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="</s>")


@functools.cache
def tiny_model(kind="Llama"):
    torch.manual_seed(3)
    options = {"hidden_size": 16, "num_hidden_layers": 2, "vocab_size": len(TOKENS)}
    options |= {"initializer_range": 0.4, "num_attention_heads": 2}
    if kind != "Bloom":
        options |= {"intermediate_size": 32, "num_key_value_heads": 2}
    if kind == "Mistral":
        options["sliding_window"] = 4
    config = getattr(transformers, f"{kind}Config")(**options)
    return getattr(transformers, f"{kind}ForCausalLM")(config).eval()


def next_shares(model, rows):
    """Return the probabilities of the token after each row of ids, all of one length."""
    with torch.no_grad():
        return [
            share
            for part in torch.tensor(rows).split(1024)
            for share in model(input_ids=part).logits[:, -1].double().softmax(-1).tolist()
        ]


def read(text, is_held):
    """Return the number that has ended in a text; False for no number, None for not yet."""
    body = text.removeprefix(" ")
    digits = len(body) - len(body.lstrip("0123456789"))
    number, rest = body[:digits], body[digits:]
    could_be = number == "" or ((number[0] != "0" or number == "0") and len(number) <= 3)
    if not could_be or (number == "" and rest):
        return False
    if rest == "" or rest in {".", ",", "e", "e-"}:
        return None
    if rest[0] in ".," and rest[1].isdigit():
        return False
    if rest[0] == "e" and rest[1:].lstrip("-")[:1].isdigit() and not rest.startswith("e--"):
        return False
    return number if is_held(number) else False


def by_brute_force(model, is_held):
    """Every sequence of tokens, one token longer at a time, until it has ended or is no number."""
    found, outside, waiting = {}, 0.0, [((), 1.0)]
    while waiting:
        shares_of_rows = next_shares(model, [[*PROMPT, *ids] for ids, _ in waiting])
        longer = []
        for (ids, probability), shares in zip(waiting, shares_of_rows, strict=True):
            text = "".join(TOKENS[number] for number in ids)
            for token, share in enumerate(shares):
                said = read(text + (TOKENS[token] if token else "\0"), is_held)
                if said is None:
                    longer.append(((*ids, token), probability * share))
                elif said is False:
                    outside += probability * share
                else:
                    found[Decimal(said)] = found.get(Decimal(said), 0.0) + probability * share
        waiting = longer
    return found, outside


def check_equal(model, made, found, outside, accuracy):
    assert made.unwalked == pytest.approx(0, abs=1e-9)
    assert set(made.values) == set(found)
    for value, probability in zip(made.values, made.probabilities, strict=True):
        assert probability == pytest.approx(found[value], abs=accuracy)
    assert made.outside == pytest.approx(outside, abs=accuracy)
    assert list(made.probabilities) == sorted(made.probabilities, reverse=True)
    assert math.isclose(made.number + made.outside, 1, abs_tol=1e-9)


def test_a_character_may_be_cut_between_tokens():
    tokens = ["</s>", " ", "1", "0", "x", "<0xE2>", "<0x80>", "<0xAF>"]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    backend = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, [], byte_fallback=True))
    decoders = tokenizers.decoders
    backend.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="</s>")
    grouped = NumberFormat(1000, 1000, grouping="\N{NARROW NO-BREAK SPACE}")
    ids = [2, 5, 6, 7, 3, 3, 3]
    assert grouped.matches(tokenizer.decode(ids))
    model, expected = tiny_model(), 0.0
    for path in (ids, [1, *ids]):
        shares = [next_shares(model, [[*PROMPT, *path[:n]]])[0] for n in range(len(path) + 1)]
        written = math.prod(share[token] for share, token in zip(shares, path, strict=False))
        expected += written * (1 - shares[-1][2] - shares[-1][3])
    options = {"mass": 1, "max_prefixes": 10**6}
    made = number_distribution(model, tokenizer, PROMPT, grouped, **options)
    assert made.values == (Decimal(1000),)
    assert made.probabilities[0] == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("kind", ["Llama", "Mistral", "Bloom"])
def test_it_is_what_brute_force_gives(kind):
    """In one cache, and for models that are read text by text: a window, or places from a mask."""
    model, most = tiny_model(kind), 199 if kind == "Llama" else 19
    found, outside = by_brute_force(model, lambda number: int(number) <= most)
    made = number_distribution(
        model, tiny_tokenizer(), PROMPT, NumberFormat(0, most), 1, max_prefixes=10**6
    )
    check_equal(model, made, found, outside, 1e-6)


def test_less_mass_is_walked_less_and_the_rest_is_bounded():
    model, tokenizer = tiny_model(), tiny_tokenizer()
    walk = functools.partial(number_distribution, model, tokenizer, PROMPT, NumberFormat(0, 199))
    whole = walk(1, max_prefixes=10**6)
    exact = dict(zip(whole.values, whole.probabilities, strict=True))
    for mass in (0.5, 0.9, 0.99):
        part = walk(mass, batch_size=4)
        assert part.number >= mass * whole.number
        assert whole.number <= part.number + part.unwalked + 1e-6
        for value, probability in zip(part.values, part.probabilities, strict=True):
            assert -1e-6 <= exact[value] - probability <= part.unwalked + 1e-6
    assert walk(max_prefixes=5).unwalked > 0.01


def test_a_function_of_top_logprobs_is_walked_with_a_bound():
    model = tiny_model()

    def top(count):
        def function(text):
            assert text.startswith("x x")
            rest, ids = text[3:], []
            while rest:
                [*_, token] = [one for one in TOKENS[1:12] + TOKENS[12:17] if rest.startswith(one)]
                ids.append(TOKENS.index(token))
                rest = rest[len(token) :]
            (shares,) = next_shares(model, [[*PROMPT, *ids]])
            best = sorted(range(len(shares)), key=lambda at: -shares[at])[:count]
            return {TOKENS[at]: math.log(shares[at]) for at in best}

        return function

    number_format = NumberFormat(0, 19)
    whole = number_distribution(top(len(TOKENS)), None, "x x", number_format, 1, max_prefixes=10**5)
    assert whole.unwalked == pytest.approx(0, abs=1e-9)
    exact = dict(zip(whole.values, whole.probabilities, strict=True))
    part = number_distribution(top(8), None, "x x", number_format, 1, max_prefixes=10**5)
    assert part.number + part.outside + part.unwalked == pytest.approx(1) and part.unwalked > 0
    for value, probability in zip(part.values, part.probabilities, strict=True):
        assert 0 <= exact[value] - probability + 1e-9 <= part.unwalked + 2e-9


def test_a_number_ends_before_what_does_not_go_on_with_it():
    """1. is 1 unless a digit follows, and 1.5 is no integer."""
    answers = {
        "": {" 1": 1.0},
        " 1": {".": 0.5, "0": 0.25, " km": 0.25},
        " 1.": {"5": 0.5, " The": 0.5},
        " 10": {"e": 1.0},
        " 10e": {"5": 0.5, "ven": 0.5},
    }
    logs = {text: {t: math.log(p) for t, p in one.items()} for text, one in answers.items()}
    made = number_distribution(logs.__getitem__, None, "", NumberFormat(0, 99), 1)
    assert dict(zip(map(str, made.values), made.probabilities, strict=True)) == pytest.approx(
        {"1": 0.5, "10": 0.125}
    )
    assert made.outside == pytest.approx(0.375)


def test_what_has_no_probability_is_no_value():
    answers = {"": {"5": 0.0}, "5": {" km": -math.inf, "0": 0.0}, "50": {"0": 0.0}}
    made = number_distribution(answers.__getitem__, None, "", NumberFormat(0, 9), 1)
    assert made.values == () and math.isnan(made.mean) and made.outside == 1


def test_tokens_that_the_model_does_not_score_are_never_written():
    longer = tiny_tokenizer.__wrapped__()
    assert longer.add_tokens(["77"]) == 1
    one, other = (
        number_distribution(tiny_model(), known, PROMPT, NumberFormat(0, 99), 0.5)
        for known in (tiny_tokenizer(), longer)
    )
    assert one.values == other.values
    assert one.probabilities == pytest.approx(other.probabilities)


def test_what_is_read_off_it():
    made = NumberDistribution((Decimal(5), Decimal(1), Decimal(20)), (0.4, 0.2, 0.2), 0.15, 0.05)
    assert made.mean == pytest.approx((2 + 0.2 + 4) / 0.8)
    assert (made.median, made.quantile(0), made.quantile(1)) == (5, 1, 20)
    assert made.quantile(0.25) == 1 and made.interval(0.6) == (1, 20)
    assert made.interval(0.4) == (5, 5)
    nothing = NumberDistribution((), (), 1.0, 0.0)
    assert math.isnan(nothing.mean) and nothing.median.is_nan()


@pytest.mark.slow
def test_a_pretrained_model_knows_where_water_boils():
    folder = smollm2()
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    begin = time.process_time()
    made = number_distribution(model, tokenizer, BOILING, NumberFormat(0, 999))
    assert time.process_time() - begin < 20  # on two cores 10 s
    assert made.values[0] == 100 and made.median == 100
    assert made.number >= 0.99 * (made.number + made.unwalked)
    assert np.isclose(made.number + made.outside + made.unwalked, 1)
