"""Fuzzing: seeds mutated at random, one function of bytes per target. Only NumtokError may come of
an input, within seconds. What compiles (Numba, Rust, C++) shows no fuzzer its branches, so mutations
know the inputs' structure instead. See CONTRIBUTING.md.
"""

import contextlib
import copy
import json
import signal
import traceback
import warnings

SECONDS = 20  # of processor time that an input may take
VALUES = [None, True, 0, -1, 0.5, 1e308, -1e-320, 2**31, 2**63, 2**64, -(2**63), 10**400]
VALUES += ["", "a", "\x00", "../a", "é" * 300, [], {}, [None], [[]], {"type": "Sequence"}]
PIECES = [b"\x00", b"\xff" * 4, b"\xff" * 8, b"\x00\x00\x00\x80", b"\xed\xa0\x80", b"\xf4\x90"]
PIECES += [b"9" * 400, b"[" * 3000, b'"', b"{}", b"1e999999999", b"-0", "−٤".encode()]


class Slow(BaseException):
    """An input took too long."""


def mutate(generator, seeds, pieces):
    """One of the seeds, changed in a few places; JSON half of the time as JSON."""
    data = bytearray(generator.choice(seeds))
    if data.startswith(b"{") and generator.random() < 0.7:
        content = json.loads(data)
        for _ in range(generator.choice((1, 1, 2, 4))):
            _change_json(generator, content)
        return json.dumps(content).encode()
    for _ in range(generator.choice((1, 1, 2, 4, 16))):
        _change_bytes(generator, data, seeds, pieces)
    return bytes(data)


def _change_json(generator, content):
    """Replace, drop or repeat something in it."""
    while True:
        keys = list(content) if isinstance(content, dict) else list(range(len(content)))
        if not keys:
            return
        key = generator.choice(keys)
        if not isinstance(content[key], dict | list) or generator.random() < 0.1:
            break
        content = content[key]
    what = generator.randrange(4)
    if what == 0:
        del content[key]
    elif what == 1 and isinstance(content, list):
        content.insert(key, copy.deepcopy(content[generator.choice(keys)]))
    elif what == 1:
        content[generator.choice(keys)] = copy.deepcopy(content[key])
    elif what == 2 and isinstance(content[key], int | float):
        content[key] += generator.choice((-1, 1, 255, 2**31))
    else:
        content[key] = copy.deepcopy(generator.choice(VALUES))


def _change_bytes(generator, data, seeds, pieces):
    """Flip a bit, overwrite, insert, drop, repeat, or splice in a piece of another seed."""
    start = generator.randrange(len(data) + 1)
    stop = min(len(data), start + generator.choice((1, 2, 4, 8, 64)))
    what = generator.randrange(7)
    if what == 0 and start < stop:
        data[start] ^= 1 << generator.randrange(8)
    elif what == 1:
        data[start:stop] = generator.randbytes(stop - start)
    elif what == 2:
        piece = generator.choice(pieces)
        data[start : start + len(piece)] = piece
    elif what == 3:
        data[start:start] = generator.choice(pieces)
    elif what == 4:
        del data[start:stop]
    elif what == 5:
        data[start:start] = data[start:stop] * generator.choice((1, 1, 2, 50))
    else:
        other = generator.choice(seeds)
        place = generator.randrange(len(other) + 1)
        data[start:stop] = other[place : place + generator.choice((1, 8, 64))]


@contextlib.contextmanager
def in_time(seconds):
    """Slow is raised in what takes longer."""

    def stop(*_):
        raise Slow(f"took more than {seconds} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def failure(target, data, seconds=SECONDS):
    """Return what an input does that it must not, or None; a panic of Rust is no Exception."""
    try:
        with in_time(seconds), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            target(data)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} at {place.filename}:{place.lineno}: {error!s:.300}"
    return None
