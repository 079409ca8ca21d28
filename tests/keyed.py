"""A small census whose counts are rounded by keys, made independently of `unround.simulation`: a model to test against."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from unround.mechanisms import Exact, mechanism
from unround.release import Block, Column, Proposal, Release

SEXES = ("total", "men", "women")
Numbers = np.ndarray[Any, Any]


@dataclass
class Cell:
    """True counts (whole or weighted) and the sums of their records' keys, by area."""

    count: Numbers
    key: Numbers

    def __add__(self, other: Cell) -> Cell:
        return Cell(self.count + other.count, (self.key + other.key) % 1)

    def published(self, constant: float | Numbers | None, rng: np.random.Generator, base: int = 5) -> Numbers:
        """Round by keys and a constant; without one, by fresh random numbers."""
        drawn = rng.random(len(self.count)) if constant is None else (self.key + constant) % 1
        down = np.floor(self.count / base + 1e-9) * base
        return np.asarray(down + base * (drawn < (self.count - down) / base - 1e-9), dtype=np.int64)


def divided(cell: Cell, shares: list[float], rng: np.random.Generator, whole: bool = True) -> list[Cell]:
    """Divide a cell's records into parts that have no record in common."""
    areas = len(cell.count)
    if whole:
        counts = [rng.multinomial(n, shares) for n in cell.count.astype(int)]
    else:
        counts = [n * rng.dirichlet(40 * np.array(shares)) for n in cell.count]
    cells, left = [], cell.key.copy()
    for part in np.array(counts).T:
        key = np.where(part > 0, rng.random(areas), 0.0)
        cells.append(Cell(part, key))
        left = (left - key) % 1
    last = np.array([np.flatnonzero(row)[-1] if row.any() else 0 for row in np.array(counts)])
    for at, part in enumerate(cells):  # the keys of all parts add up to the key of the whole
        part.key = np.where(last == at, (part.key + left) % 1, part.key)
    return cells


def keyed_census(
    areas: int,
    constants: list[float | Numbers | None],
    seed: int,
    parts: int = 3,
    size: float = 400.0,
    whole: bool = True,
    exact: bool = False,
    how: str = "rounding:5",
) -> tuple[Release, Numbers]:
    """A profile: some tables of the same people by sex, each with a constant of its own; and the true counts.

    A constant of None rounds a table independently.
    """
    rng = np.random.default_rng(seed)
    people = {
        sex: Cell(rng.poisson(size * rng.lognormal(0, 0.4, areas) / 2) * (1 if whole else 1 + rng.random(areas)), None)  # type: ignore[arg-type]
        for sex in SEXES[1:]
    }
    for one in people.values():
        one.key = np.where(one.count > 0, rng.random(areas), 0.0)
    columns, true, shown = list[Column](), list[Numbers](), list[Numbers]()
    proposals, heads = list[Proposal](), dict[str, int]()
    if exact:
        columns.append(Column("population", ("population", "total"), "Population", "", mechanism=Exact()))
        true.append((people["men"] + people["women"]).count)
        shown.append(true[0])
    for k, constant in enumerate(constants):
        rows = {sex: [one, *divided(one, [1 / parts] * parts, rng, whole)] for sex, one in people.items()}
        at = {}
        for row in range(parts + 1):
            cells = {"total": rows["men"][row] + rows["women"][row], "men": rows["men"][row], "women": rows["women"][row]}
            for sex, cell in cells.items():
                at[row, sex] = len(columns)
                key = f"t{k}.{row}"
                columns.append(
                    Column(
                        key if sex == "total" else f"{key}/{sex}",
                        (key, sex),
                        f"row {key}",
                        f"Table {k}",
                        int(row > 0),
                        mechanism(how),
                    )
                )
                true.append(cell.count)
                shown.append(cell.published(constant, rng))
            proposals.append(Proposal(at[row, "total"], (at[row, "men"], at[row, "women"]), "sex"))
        for sex in SEXES:
            proposals.append(Proposal(at[0, sex], tuple(at[row, sex] for row in range(1, parts + 1)), "indentation"))
            if sex in heads:
                proposals.append(Proposal(heads[sex], (at[0, sex],), "universe"))
            heads.setdefault(sex, at[0, sex])
        if exact and not k:
            proposals.append(Proposal(0, (at[0, "total"],), "universe"))
    return _release(np.column_stack(shown), columns, proposals), np.column_stack(true)


def _release(counts: Numbers, columns: list[Column], proposals: list[Proposal], size: int = 300) -> Release:
    frame = pl.DataFrame({"region": [f"a{at}" for at in range(len(counts))]})

    def blocks(_progress: object) -> Iterator[Block]:
        for start in range(0, len(counts), size):
            yield Block(frame[start : start + size], counts[start : start + size].astype(np.int32))

    axes = ("characteristic_id", "sex")
    return Release("made.csv", "made", tuple(columns), axes, ("region",), blocks, tuple(proposals))
