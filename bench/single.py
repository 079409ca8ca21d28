"""One system at a time: the tree engine against the paper's method and other ways to list all solutions."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from functools import partial

import numpy as np

from bench.row import Pair, Ratio, Row, Time, timed
from unround.bounds.search import z3_solutions
from unround.engines import infer
from unround.equations import parse
from unround.mechanisms import Exact, Rounding
from unround.system import Cell, Sum, System

AGES = {
    "all": ("0-14", "15-64", "65+"),
    "0-14": ("0-4", "5-9", "10-14"),
    "15-64": ("15-19", "20-24", "25-29", "30-34", "35-39", "40-44", "45-49", "50-54", "55-59", "60-64"),
    "65+": ("65-69", "70-74", "75-79", "80-84", "85+"),
    "85+": ("85-89", "90-94", "95-99", "100+"),
}
"""The age tree of the Canadian profile: 26 nodes."""


def six_cells(shift: int) -> System:
    """Make the paper's kind of example with other values: moving cells by multiples of 5 keeps all 1,956 solutions."""
    text = f"{110 + 15 * shift}! = a: {30 + 5 * shift} + {65 + 5 * shift} + {10 + 5 * shift}; a = {10 + 5 * shift} + 10 + 10"
    return parse(text)


def age_by_sex(rng: np.random.Generator, mean: float = 40) -> System:
    """Draw a population by age and sex and publish it: 26 nodes × total, men, women; the population is exact."""
    true: dict[tuple[str, str], int] = {}

    def fill(node: str) -> None:
        for child in AGES.get(node, ()):
            fill(child)
        for sex in ("men", "women"):
            children = AGES.get(node)
            true[node, sex] = sum(true[c, sex] for c in children) if children else int(rng.poisson(mean))
        true[node, "total"] = true[node, "men"] + true[node, "women"]

    fill("all")
    rounding = Rounding(5)
    cells = [
        Cell(f"{node} {sex}", count, Exact())
        if (node, sex) == ("all", "total")
        else Cell(f"{node} {sex}", int(rounding.publish(np.array([count]), rng)[0]), rounding)
        for (node, sex), count in true.items()
    ]
    nodes = dict.fromkeys(node for node, _ in true)
    sums = [Sum(f"{node} total", (f"{node} men", f"{node} women")) for node in nodes]
    for node, children in AGES.items():
        sums += [Sum(f"{node} {sex}", tuple(f"{c} {sex}" for c in children)) for sex in ("total", "men", "women")]
    return System(cells, sums)


def against(engine: str, repeats: int, top: int, batch: int = 50) -> list[Pair]:
    """Time an engine and the tree engine in turn, on new values each time, for one system each."""
    infer(six_cells(999), top=top)  # warm: plans are made once for a structure
    pairs = []
    for k in range(repeats):
        theirs = timed(partial(check, six_cells(1000 + k), engine, top))
        systems = [six_cells(2000 + k * batch + i) for i in range(batch)]
        pairs.append((theirs, statistics.median(timed(partial(infer, one, engine="tree", top=top)) for one in systems)))
    return pairs


def against_linear_z3(repeats: int, batch: int = 50) -> list[Pair]:
    """Time Z3 with its logic for linear sums, which the paper does not use, and the tree engine in turn."""
    pairs = []
    for k in range(repeats):
        one = six_cells(5000 + k)
        theirs = timed(partial(z3_solutions, one.equations, one.windows, 10_000, "QF_LIA"))
        systems = [six_cells(6000 + k * batch + i) for i in range(batch)]
        pairs.append((theirs, statistics.median(timed(partial(infer, system, top=0)) for system in systems)))
    return pairs


def check(system: System, engine: str, top: int) -> None:
    """Run a baseline, and make sure that it found what it should."""
    found = infer(system, engine=engine, top=top)
    assert found.answer is not None
    assert found.answer.solutions == 1956


def rows() -> Iterator[Row]:
    """Measure everything, one row at a time."""
    job = "six cells, 1,956 solutions: bounds, count, distributions"
    yield Ratio(job, "Z3 with blocking clauses", against("z3", 5, top=0), aim=10_000)
    yield Ratio(job, "the same, declared as linear", against_linear_z3(5), aim=5_000)
    yield Ratio(f"{job}, and the 5 best", "Z3 with blocking clauses", against("z3", 5, top=5), aim=1_000)
    yield Ratio(job, "CP-SAT, all solutions", against("cp-sat", 9, top=0), aim=100)
    rng = np.random.default_rng(1)
    times = [timed(partial(infer, age_by_sex(rng))) for _ in range(40)]
    yield Time("ages by sex, 78 cells, ~10^30 solutions, the 5 best, one system at a time", times, aim=0.020)
