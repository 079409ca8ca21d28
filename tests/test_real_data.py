"""Published census counts: the mechanisms and the engine meet the real thing. Skipped where the files are not at hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from unround.mechanisms import Exact, Rounding
from unround.proofs import check_proof
from unround.solution import solve
from unround.system import Cell, Sum, System

AGES = [f"{low} to {low + 4} years" for low in range(0, 85, 5)] + ["85 years and over"]


@pytest.fixture(scope="module")
def areas(census_data: Path) -> pl.DataFrame:
    return pl.read_csv(census_data / "canada-2021-da-censusmapper.csv.gz", infer_schema=False, null_values="NA")


def triple(areas: pl.DataFrame, age: str) -> np.ndarray:
    """Return total, male and female of one age, for all areas; -1 where a count is missing."""
    names = [next(c for c in areas.columns if f": {age}, - {sex}" in c) for sex in ("Total", "Male", "Female")]
    return areas.select(pl.col(name).cast(pl.Float64).fill_null(-1).cast(pl.Int64) for name in names).to_numpy()


def split_by_sex(total: int, men: int, women: int, base: int) -> System:
    rounding = Rounding(base)
    return System(
        [Cell("total", total, rounding), Cell("men", men, rounding), Cell("women", women, rounding)],
        [Sum("total", ("men", "women"))],
    )


def test_canadian_ages_by_sex_are_multiples_of_five_that_can_add_up(areas: pl.DataFrame) -> None:
    """All but the two splits of one area that the data's own notes name."""
    impossible = []
    for age in AGES:
        counts = triple(areas, age)
        known = (counts >= 0).all(axis=1)
        assert (counts[known] % 5 == 0).all()
        # Each count is within 4 of the truth, and none is negative: 12 apart at the most.
        for row in np.flatnonzero(known & (np.abs(counts[:, 0] - counts[:, 1] - counts[:, 2]) > 12)):
            impossible.append((areas["GeoUID"][int(row)], age))
            solution = solve(split_by_sex(*counts[row].tolist(), base=5))
            assert not solution.feasible
            assert solution.clash is not None
    assert impossible == [("48062625", "30 to 34 years"), ("48062625", "35 to 39 years")]


def test_ages_that_cannot_sum_to_their_population_are_a_clash(areas: pl.DataFrame) -> None:
    """An area of which the data's own notes say so."""
    row = int(np.flatnonzero(areas["GeoUID"].to_numpy() == "35204599")[0])
    population = int(float(areas["Population"][row]))
    counts = [int(triple(areas, age)[row, 0]) for age in AGES]
    cells = [Cell("population", population, Exact()), *(Cell(a, c, Rounding(5)) for a, c in zip(AGES, counts, strict=True))]
    solution = solve(System(cells, [Sum("population", tuple(AGES))]))
    assert not solution.feasible
    assert solution.argument is not None
    assert str(population) in solution.argument


def test_new_zealand_sex_splits_give_proofs(census_data: Path) -> None:
    """Base 3, two parts: a residual of 6 leaves one possibility, and the certificate checks."""
    table = pl.read_csv(census_data / "nz-2013-individual-sa2.csv.gz", infer_schema=False)
    ages = table.filter(pl.col("variable") == "age_5_year_groups").select("code", "variable_group", "count")
    counts = {(code, group): int(count) for code, group, count in ages.iter_rows() if count and count.isdigit()}
    splits = proved = 0
    for (code, group), men in counts.items():
        if not group.endswith("_1_male_curp"):
            continue
        age = group.removeprefix("by_sex_").removesuffix("_1_male_curp")
        women = counts.get((code, f"by_sex_{age}_2_female_curp"))
        total = counts.get((code, f"{age}_curp"))
        if women is None or total is None:
            continue
        splits += 1
        assert total % 3 == men % 3 == women % 3 == 0
        if abs(total - men - women) == 6 and min(men, women, total) >= 3 and proved < 50:
            system = split_by_sex(total, men, women, base=3)
            solution = solve(system)
            assert solution.solutions == 1
            assert [check_proof(system, proof) for proof in solution.proofs] == [True] * 3
            proved += 1
    assert splits > 10_000
    assert proved == 50
