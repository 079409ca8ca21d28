"""Inputs drawn by Hypothesis: seeds with pieces cut out, doubled, changed and moved, and words that mean something."""

from __future__ import annotations

import random
from collections.abc import Sequence

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzz.oracle import judged, limited
from fuzz.target import LONGEST, Target
from fuzz.targets import seeds

_ODD = (
    b"\0", b"\xff", b"\xc3", b"\r", b'"', b"9" * 400, b"1e999", b" " * 200, b"-0", "١٢".encode(), "\u202e".encode(), b"=1+1",
    b"nan", b"\xef\xbb\xbf", b"9223372036854775808", b"0.1", b"x", b"", b"1_0", b"\x1a", b"\n\n", b"-", b"+", b"2147483648",
)  # fmt: skip


def mutated(data: bytes, words: Sequence[bytes], rng: random.Random) -> bytes:
    """Return a seed with a few changes."""
    for _ in range(rng.choice((1, 1, 2, 3, 6))):
        at = rng.randrange(len(data) + 1)
        to = min(len(data), at + rng.choice((0, 1, 1, 2, 5, 20, 80)))
        way = rng.randrange(7)
        if way == 0:
            data = data[:at] + data[to:]
        elif way == 1:
            data = data[:at] + rng.choice(words) + data[to:]
        elif way == 2:
            data = data[:to] + data[at:]
        elif way == 3:
            data = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
        elif way == 4:
            other = rng.randrange(len(data) + 1)
            data = data[:other] + data[at:to] + data[other:]
        elif way == 5:
            lines = data.split(b"\n")
            one, two = rng.randrange(len(lines)), rng.randrange(len(lines))
            lines[one], lines[two] = lines[two], lines[one]
            data = b"\n".join(lines)
        else:
            cells = data.split(b",")
            cells[rng.randrange(len(cells))] = rng.choice(words)
            data = b",".join(cells)
    return data[:LONGEST]


def inputs(target: Target) -> st.SearchStrategy[bytes]:
    """Return a strategy for the inputs of a target."""
    first = seeds(target)
    words = (*_ODD, *(word.encode() for word in target.words))
    changed = st.builds(
        lambda seed, number: mutated(seed, words, random.Random(number)), st.sampled_from(first), st.integers(0, 2**64)
    )
    return st.one_of(changed, changed, changed, st.binary(max_size=200), st.text(max_size=100).map(str.encode))


def run_drawn(target: Target, examples: int, derandomize: bool = False) -> dict[str, int]:
    """Try a target on so many inputs; return how many were read, and how many refused with words."""
    told = {"read": 0, "refused": 0}

    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        derandomize=derandomize,
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    @given(inputs(target))
    def attempt(data: bytes) -> None:
        with limited():
            told[judged(target.run, data)] += 1

    first, *_ = seeds(target)
    judged(target.run, first)  # compiles what has to be compiled, which may take longer
    for seed in seeds(target):
        with limited():
            told[judged(target.run, seed)] += 1
    attempt()
    return told


def run_plain(target: Target, number: int, rng: random.Random) -> dict[str, int]:
    """Try a target on so many changed seeds, without Hypothesis: ten times as fast, and faults are not made small."""
    told = {"read": 0, "refused": 0}
    first = seeds(target)
    words = (*_ODD, *(word.encode() for word in target.words))
    for _ in range(number):
        data = mutated(rng.choice(first), words, rng)
        try:
            with limited():
                told[judged(target.run, data)] += 1
        except BaseException:
            print(f"{target.name} fails on {data!r}")
            raise
    return told
