"""Small tables of which nothing is declared, and which are not what they seem: is anything called proved that is not so?

python -m tests.drafts.small [NUMBER] [--workers 2]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import polars as pl

import unround

Counts = np.ndarray
"""True or published counts, areas × columns."""
NONE = -1
"""In place of a count that is hidden."""


@dataclass(frozen=True)
class Small:
    """A small table: its headings, the counts behind it and those that are printed; `rows` are names of areas."""

    rows: list[str]
    headings: list[str]
    truth: Counts
    printed: Counts
    base: int = 0
    """What a note can truly say: rounded parts are rounded to this base."""

    def frame(self) -> pl.DataFrame:
        columns = {
            heading: ["c" if value == NONE else str(value) for value in self.printed[:, at]]
            if (self.printed[:, at] == NONE).any()
            else self.printed[:, at]
            for at, heading in enumerate(self.headings)
        }
        return pl.DataFrame({"District": self.rows} | columns)


def up_or_down(true: Counts, base: int, rng: np.random.Generator) -> Counts:
    """Round at random, without bias."""
    down = true // base * base
    return down + base * (rng.random(true.shape) < (true - down) / base)


def people(rng: np.random.Generator, areas: int, headings: str, mean: float, parts: int = 0) -> tuple[list[str], Counts]:
    """Draw a total and its parts; if `parts` is given, so many of them, and the others are its parts in another way."""
    names = headings.split(",")
    number = parts or len(names) - 1
    size = rng.poisson(mean * rng.uniform(0.5, 1.5, areas))
    groups = [number, len(names) - 1 - number] if parts else [number]
    counts = [rng.multinomial(size, rng.dirichlet([5.0] * group)) for group in groups]
    return names, np.column_stack([size, *counts])


FEW = (
    "Total,Men,Women",
    "Total,0-14,15-64,65+",
    "All persons,Under 25,25 to 64,65 and over",
    "Households,Owned,Rented,Other",
    "Total,Men,Women,0-14 years,15-64 years,65+ years",
)


def _plain(rng: np.random.Generator, areas: int, mean: float) -> tuple[list[str], Counts]:
    headings = FEW[rng.integers(len(FEW))]
    return people(rng, areas, headings, mean, 2 if headings.startswith("Total,Men,Women,") else 0)


def base_6(rng: np.random.Generator) -> Small:
    """Counts rounded to base 6 in five areas: all are multiples of 3 as well."""
    names, truth = _plain(rng, 5, rng.uniform(20, 120))
    return _small(names, truth, up_or_down(truth, 6, rng), 6)


def base_10(rng: np.random.Generator) -> Small:
    """Counts rounded to base 10 in two to four areas: all are multiples of 5 as well."""
    names, truth = _plain(rng, int(rng.integers(2, 5)), rng.uniform(40, 200))
    return _small(names, truth, up_or_down(truth, 10, rng), 10)


def base_of_some(rng: np.random.Generator) -> Small:
    """An exact total over parts rounded to base 10 or 6, in few areas."""
    names, truth = _plain(rng, int(rng.integers(3, 8)), rng.uniform(40, 150))
    printed = up_or_down(truth, int(rng.choice([6, 10])), rng)
    printed[:, 0] = truth[:, 0]
    return _small(names, truth, printed)


def third_sex(rng: np.random.Generator) -> Small:
    """The total includes people who are neither printed as men nor as women."""
    names, truth = people(rng, int(rng.integers(10, 40)), "Total,Men,Women", rng.uniform(10, 60))
    truth[:, 0] += rng.poisson(rng.uniform(0.2, 1), len(truth))
    printed = up_or_down(truth, 3, rng)
    if rng.random() < 0.5:
        printed[:, 0] = truth[:, 0]
    return _small(names, truth, printed, 3)


def partly_exact(rng: np.random.Generator) -> Small:
    """A total that is exact in some of the areas only."""
    names, truth = _plain(rng, int(rng.integers(10, 40)), rng.uniform(15, 100))
    base = int(rng.choice([3, 5]))
    printed = up_or_down(truth, base, rng)
    exact = rng.random(len(truth)) < rng.uniform(0.2, 0.7)
    printed[exact, 0] = truth[exact, 0]
    return _small(names, truth, printed, base)


def overlapping(rng: np.random.Generator) -> Small:
    """Several answers were allowed, by few people in small areas."""
    names, truth = people(
        rng,
        int(rng.integers(15, 31)),
        ("Total,English,French,Other", "All persons,Car,Bus,Bicycle", "Total,Renting,Owning")[rng.integers(3)],
        rng.uniform(5, 30),
    )
    truth[:, 1:] += rng.binomial(truth[:, :1], rng.uniform(0.01, 0.1), (len(truth), truth.shape[1] - 1))
    base = int(rng.choice([3, 5]))
    printed = up_or_down(truth, base, rng)
    if rng.random() < 0.5:
        printed[:, 0] = truth[:, 0]
    return _small(names, truth, printed, base)


def adjusted(rng: np.random.Generator) -> Small:
    """A total that seems exact, and was changed by up to 5 in small areas."""
    names, truth = _plain(rng, int(rng.integers(12, 40)), rng.uniform(20, 120))
    printed = up_or_down(truth, 5, rng)
    small = truth[:, 0] < 60
    printed[:, 0] = np.maximum(0, truth[:, 0] + small * rng.integers(-5, 6, len(truth)))
    return _small(names, truth, printed, 5)


def not_stated(rng: np.random.Generator) -> Small:
    """People who did not answer are in the total, and in none of the categories."""
    names, truth = _plain(rng, int(rng.integers(12, 40)), rng.uniform(15, 80))
    truth[:, 0] += rng.poisson(rng.uniform(0.1, 0.8), len(truth))
    printed = up_or_down(truth, 3, rng)
    if rng.random() < 0.6:
        printed[:, 0] = truth[:, 0]
    return _small(names, truth, printed, 3)


def added_up(rng: np.random.Generator) -> Small:
    """Totals are sums of the rounded parts, and so further from the truth than the base."""
    names, truth = people(rng, int(rng.integers(8, 30)), FEW[1 + rng.integers(3)], rng.uniform(20, 90))
    base = int(rng.choice([3, 5]))
    printed = up_or_down(truth, base, rng)
    printed[:, 0] = printed[:, 1:].sum(axis=1)
    return _with_row(names, truth, printed, lambda those: those.sum(axis=0))


def added_up_below(rng: np.random.Generator) -> Small:
    """The last row is the sum of the rounded counts above it."""
    names, truth = people(rng, int(rng.integers(3, 12)), FEW[rng.integers(4)], rng.uniform(20, 90))
    return _with_row(names, truth, up_or_down(truth, 3, rng), lambda those: those.sum(axis=0))


def zero_or_ten(rng: np.random.Generator) -> Small:
    """Counts under 10 became 0 or 10, others were rounded to base 5."""
    names, truth = _plain(rng, int(rng.integers(6, 30)), rng.uniform(15, 60))
    printed = np.where(truth < 10, up_or_down(truth, 10, rng), up_or_down(truth, 5, rng))
    if rng.random() < 0.5:
        printed[:, 0] = truth[:, 0]
    return _small(names, truth, printed)


def cut_off(rng: np.random.Generator) -> Small:
    """Counts under 5 are printed as 0, others as they are, or rounded."""
    names, truth = _plain(rng, int(rng.integers(8, 25)), rng.uniform(15, 60))
    printed = np.where(truth < 5, 0, truth if rng.random() < 0.4 else up_or_down(truth, 3, rng))
    printed[:, 0] = truth[:, 0]
    return _small(names, truth, printed)


def hidden_left_out(rng: np.random.Generator) -> Small:
    """A last row that was added up after some counts were hidden, so that it does not include them."""
    names, truth = people(rng, int(rng.integers(5, 20)), FEW[rng.integers(4)], rng.uniform(20, 90))
    printed = truth.copy()
    row = rng.integers(len(truth))
    printed[row, 1 : 1 + rng.integers(1, truth.shape[1])] = NONE
    return _with_row(names, truth, printed, lambda those: np.where(those == NONE, 0, those).sum(axis=0))


def area_left_out(rng: np.random.Generator) -> Small:
    """A last row that includes an area which is not printed."""
    names, truth = people(rng, int(rng.integers(5, 20)), FEW[rng.integers(4)], rng.uniform(20, 90))
    printed = truth.copy()
    printed[rng.integers(len(truth)), 1:] = NONE
    abroad = rng.poisson(3, truth.shape[1])
    small = _with_row(names, truth, printed, lambda _: truth.sum(axis=0) + abroad)
    small.truth[-1] = small.printed[-1]
    return small


def nudged(rng: np.random.Generator) -> Small:
    """Exact to look at, with noise of ±1 or ±2 on some counts; the sums hold nearly everywhere."""
    names, truth = people(rng, int(rng.integers(2, 12)), FEW[rng.integers(4)], rng.uniform(20, 90))
    noisy = rng.random(truth.shape) < 0.05
    printed = np.maximum(0, truth + noisy * rng.integers(-2, 3, truth.shape))
    printed[rng.integers(len(truth)), 1 + rng.integers(truth.shape[1] - 1)] = NONE
    return _small(names, truth, printed)


def controlled(rng: np.random.Generator) -> Small:
    """Parts are rounded, and the total to one of its neighbours so that they add up, where that is possible."""
    names, truth = people(rng, int(rng.integers(8, 30)), FEW[1 + rng.integers(3)], rng.uniform(20, 90))
    printed = up_or_down(truth, 3, rng)
    for at in range(len(truth)):
        for _ in range(50):
            if printed[at, 0] == printed[at, 1:].sum():
                break
            printed[at] = up_or_down(truth[at], 3, rng)
    return _small(names, truth, printed, 3)


FAMILIES: tuple[Callable[[np.random.Generator], Small], ...] = (
    base_6,
    base_10,
    base_of_some,
    third_sex,
    partly_exact,
    overlapping,
    adjusted,
    not_stated,
    added_up,
    added_up_below,
    zero_or_ten,
    cut_off,
    hidden_left_out,
    area_left_out,
    nudged,
    controlled,
)


def _small(names: list[str], truth: Counts, printed: Counts, base: int = 0) -> Small:
    return Small([f"Ward {at + 1}" for at in range(len(truth))], names, truth, printed, base)


def _with_row(names: list[str], truth: Counts, printed: Counts, last: Callable[[Counts], Counts]) -> Small:
    rows = [*(f"Ward {at + 1}" for at in range(len(truth))), "Total"]
    return Small(rows, names, np.vstack([truth, truth.sum(axis=0)]), np.vstack([printed, last(printed)]))


def _as_table(small: Small, folder: Path, number: int) -> pl.DataFrame | Path:
    """Return a frame; or, of every other table whose base a note can truly state, a file that states it."""
    if not small.base or number // len(FAMILIES) % 2:
        return small.frame()
    path = folder / "table.csv"
    path.write_text(small.frame().write_csv() + f"\nCounts are randomly rounded to base {small.base}.\n")
    return path


@dataclass(frozen=True)
class Claimed:
    """What an audit of a small table claims."""

    family: str
    seed: int
    proved: int = 0
    false: tuple[str, ...] = ()
    conditional: int = 0
    false_conditional: int = 0
    error: str = ""


def audited(number: int) -> Claimed:
    """Audit the table of this number, and compare what is claimed with the truth."""
    family = FAMILIES[number % len(FAMILIES)]
    small = family(np.random.default_rng([number, 31]))
    name = family.__name__
    try:
        with tempfile.TemporaryDirectory() as folder:
            findings = unround.audit(_as_table(small, Path(folder), number)).to_polars()
    except unround.InputError as error:
        return Claimed(name, number, error=str(error))
    rows, headings = (
        {row: at for at, row in enumerate(small.rows)},
        {heading: at for at, heading in enumerate(small.headings)},
    )
    axes = findings.columns[: findings.columns.index("published")]
    counted: Counter[tuple[str, bool]] = Counter()
    false = []
    for finding in findings.filter(pl.col("kind").is_in(["proved", "conditional"])).iter_rows(named=True):
        words = [finding[axis] for axis in axes]
        row = next(rows[word] for word in words if word in rows)
        column = next((headings[word] for word in words[1:] if headings.get(word)), 0)
        right = finding["value"] == small.truth[row, column]
        counted[finding["kind"], right] += 1
        if finding["kind"] == "proved" and not right:
            false.append(f"{small.rows[row]}/{small.headings[column]} is {small.truth[row, column]}, not {finding['value']}")
    proved, conditional = (counted[kind, True] + counted[kind, False] for kind in ("proved", "conditional"))
    return Claimed(name, number, proved, tuple(false), conditional, counted["conditional", False])


def in_words(claims: list[Claimed]) -> str:
    lines = [f"{'family':17}tables  proved  false  in tables  conditional    false  not audited"]
    for family in FAMILIES:
        those = [claim for claim in claims if claim.family == family.__name__]
        numbers = {
            6: len(those),
            8: sum(claim.proved for claim in those),
            7: sum(len(claim.false) for claim in those),
            11: sum(bool(claim.false) for claim in those),
            13: sum(claim.conditional for claim in those),
            9: sum(claim.false_conditional for claim in those),
            12: sum(bool(claim.error) for claim in those),
        }
        lines.append(f"{family.__name__:17}" + "".join(f"{number:{width}}" for width, number in numbers.items()))
    lines += [f"table {claim.seed} ({claim.family}): {claim.false[0]}" for claim in claims if claim.false][:20]
    lines += sorted({f"not audited: {claim.error[:150]}" for claim in claims if claim.error})[:5]
    return "\n".join(lines)


def main(number: int = 1000, workers: int = 1) -> bool:
    """Audit so many small tables, print what was claimed, and return whether anything was falsely called proved."""
    start = time.perf_counter()
    if workers == 1:
        claims = [audited(at) for at in range(number)]
    else:
        with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
            claims = list(pool.map(audited, range(number), chunksize=8))
    false = sum(bool(claim.false) for claim in claims)
    print(
        f"{number} small tables: false proofs in {false} of them ({time.perf_counter() - start:.0f} s)\n{in_words(claims)}"
    )
    return bool(false)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("number", nargs="?", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    raise SystemExit(main(options.number, options.workers))
