"""Random walks over the tables of well-formed numbers: rows that a model might write under them, by
numpy alone, and the rows in which a number does not read as it was written.
"""

import re
from decimal import Decimal

import numpy as np

from numtok import extract
from numtok.representations import SingleToken
from numtok.tokenizer.well_formed import NumberRules

# text that numbers might run into; without the comma, as only digits decide what it joins
BESIDE = [*" .-)+('%]", *"aeExXDdu0123", "½", "\\", "$", "US", "pm", "e-", "kg", "Dog", "..", "--"]
# only digits decide that the number is 0, and that it stands alone in parentheses
LEFT_OPEN = re.compile("0[xX]")
LEFT_OPEN_IN_ACCOUNTS = re.compile(r"0[xX]|\([^()]*\)")
LONGEST = 16  # tokens of a number


def candidates(tokenizer, dice):
    """(tokens to choose from, how likely each is): those of numbers, and some of text."""
    own = np.array(sorted(set(tokenizer.tokens.values())))
    if len(own) > 200:  # the first are signs and brackets, the last powers
        own = np.unique(np.concatenate([own[:20], own[-10:], dice.choice(own, 100)]))
    beside = {int(one) for text in BESIDE for one in tokenizer.encode("a" + text).input_ids[-2:]}
    beside |= {int(one) for text in BESIDE for one in tokenizer.encode(text).input_ids[:1]}
    beside = np.array(sorted(beside - set(own.tolist())))
    weights = np.full(len(own), 3 / len(own)), np.full(len(beside), 1 / len(beside))
    return np.concatenate([own, beside]), np.concatenate(weights)


def walk(tokenizer, count, length, seed):
    """int64[count, seq] ids of rows that the rules let a model write; ``length`` tokens, and those
    that the last number needs to end.
    """
    rules, dice = NumberRules.of(tokenizer), np.random.default_rng(seed)
    tokens, weights = candidates(tokenizer, dice)
    comma = np.isin(tokens, [tokenizer.tokens.get(",", -1)])
    columns, rows = rules.column[tokens], np.arange(count)
    ids, state = np.empty((count, 0), np.int64), np.zeros(count, np.int64)
    left = np.zeros(count, np.int64)
    while ids.shape[1] < length or rules.to_text[state].any():
        outside = rules.to_text[state] == 0
        room = np.where(outside, LONGEST if ids.shape[1] < length else 1, left)
        room = np.maximum(room, np.maximum(rules.to_text[state], 1))
        steps = np.where(rules.allowed_next[state], 1 + rules.to_text[rules.after[state]], 1 << 20)
        may = (steps[:, columns] <= room[:, None]) & ~(comma & outside[:, None])
        chosen = np.where(may, dice.exponential(size=may.shape) / weights, np.inf).argmin(1)
        assert may[rows, chosen].all()
        state = rules.after[state, columns[chosen]]
        left = np.where(outside, LONGEST, left) - 1
        ids = np.concatenate([ids, tokens[chosen][:, None]], 1)
    return ids


def misread(tokenizer, ids):
    """(the texts in which some number of these rows does not read as it was written, how many
    numbers there are). A value has any sign, as only it decides whether its sign is one.
    """
    single = isinstance(tokenizer.representations[0], SingleToken)
    forms = [tokenizer.tokens[one] for one in ("[NUM]", " [NUM]") if one in tokenizer.tokens]
    texts, count = [], 0
    for row in ids.astype(np.int32):
        if single:
            number = np.isin(row, forms).sum()
            values = [(-1) ** k * (1007.0 + 1000 * k) for k in range(number)]
            text, written = tokenizer.decode(row, values), [*map(Decimal, values)]
        else:
            text = tokenizer.decode(row)
            alone = [extract(one, tokenizer.grammar) for *_, one in tokenizer.numbers_in(row)]
            written = [one.value for [one] in alone]
        count += len(written)
        read = iter([one.value for one in extract(text, tokenizer.grammar)])
        same = (lambda a, b: abs(a) == abs(b)) if single else _same
        left_open = LEFT_OPEN_IN_ACCOUNTS if tokenizer.grammar.accounting else LEFT_OPEN
        if left_open.search(text) is None:
            texts += [text] * (not all(any(same(one, two) for two in read) for one in written))
    return texts, count


def _same(one, two):
    return one == two and one.is_signed() == two.is_signed()
