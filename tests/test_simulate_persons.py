"""Simulated persons: records with dependence, areas that differ, and tables that count them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import unround
from unround.errors import InputError
from unround.simulation.persons import BLOCK, TABLES, VALUES, counted, margins, person_blocks, query

SIZES = {name: len(values) for name, values in VALUES.items()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("persons")
    unround.simulate(out / "exact", persons=True, areas=12, people=60, mechanism="exact")
    unround.simulate(out / "rounded", persons=True, areas=12, people=60)
    return out


def test_every_table_counts_the_records(folder: Path) -> None:
    """Counted by hand with polars: no code is shared with the tables."""
    persons = pl.read_parquet(folder / "exact" / "persons.parquet")
    table = pl.read_parquet(folder / "exact" / "age_sex_marital.parquet")
    for region, low, high, label in (("A00003", 35, 44, "35 to 44 years"), ("A00007", 75, 100, "75 years and over")):
        rows = persons.filter((pl.col("region") == region) & pl.col("age").is_between(low, high))
        for sex, marital in (("women", "married"), ("all", "widowed"), ("men", "all")):
            inside = rows
            if sex != "all":
                inside = inside.filter(pl.col("sex") == sex)
            if marital != "all":
                inside = inside.filter(pl.col("marital") == marital)
            shown = table.filter(
                (pl.col("region") == region) & (pl.col("age") == label) & (pl.col("sex") == sex)
                & (pl.col("marital") == marital)
            )  # fmt: skip
            assert shown["published"].to_list() == [inside.height]


def test_tables_are_rounded_as_declared_and_people_are_exact(folder: Path) -> None:
    persons = pl.read_parquet(folder / "rounded" / "persons.parquet")
    assert persons.equals(pl.read_parquet(folder / "exact" / "persons.parquet"))
    for table in TABLES:
        exact, rounded = (pl.read_parquet(folder / how / f"{table.name}.parquet") for how in ("exact", "rounded"))
        change = (exact["published"] - rounded["published"]).to_numpy()
        assert abs(change).max() < 5
        everyone = np.tile([not one for one in table.queries], 12)
        assert not change[everyone].any()
        assert not (rounded["published"].to_numpy()[~everyone] % 5).any()


def test_keys_with_one_constant_round_the_same_people_alike(tmp_path: Path) -> None:
    unround.simulate(tmp_path / "a", persons=True, areas=8, people=80, keys=True, constant=0.3)
    tables = [pl.read_parquet(tmp_path / "a" / f"age_sex_{name}.parquet") for name in ("marital", "education")]
    total = [table.filter((pl.col(name) == "all") & (pl.col("age") == "35 to 44 years")).sort("region", "sex")
             for table, name in zip(tables, ("marital", "education"), strict=True)]  # fmt: skip
    assert total[0]["published"].to_list() == total[1]["published"].to_list()
    keys = pl.read_parquet(tmp_path / "a" / "persons.parquet")["key"]
    assert keys.is_between(0, 1).all()
    assert abs(keys.mean() - 0.5) < 0.05


def test_attributes_depend_on_each_other_and_areas_differ() -> None:
    block = next(person_blocks(BLOCK, 3))
    codes = block.codes
    both = np.histogram2d(codes["language"], codes["birthplace"], bins=(5, 6))[0] / len(block.area)
    apart = both.sum(1, keepdims=True) * both.sum(0, keepdims=True)
    told = float((both * np.log(np.where(both > 0, both, 1) / apart)).sum())
    assert told > 0.1
    french = np.bincount(block.area, codes["language"] == 1) / np.bincount(block.area)
    chance = np.sqrt(french.mean() * (1 - french.mean()) / np.bincount(block.area).mean())
    assert french.std() > 5 * chance
    assert (codes["marital"][codes["age"] < 15] == 0).all()
    assert (codes["education"][codes["age"] < 15] == 0).all()
    assert (codes["education"][codes["age"] >= 15] > 0).all()


def test_a_smaller_census_is_the_beginning_of_a_larger_one() -> None:
    few, many = next(person_blocks(3, 5, 50)), next(person_blocks(40, 5, 50))
    assert np.array_equal(few.codes["age"], many.codes["age"][: len(few.area)])


def test_the_note_tells_how_to_make_the_same_files_again(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from unround.cli import app

    first = unround.simulate(
        tmp_path / "a", persons=True, areas=3, people=30, seed=4, mechanism="laplace:1.45", tables=["age_sex"]
    )
    command = re.search(r"unround (simulate -o FOLDER .*)", first.note.read_text(encoding="utf-8"))
    assert command is not None
    typed = shlex.split(command[1].replace("FOLDER", str(tmp_path / "b")))
    assert CliRunner().invoke(app, typed).exit_code == 0
    for name in ("persons.parquet", "age_sex.parquet"):
        assert pl.read_parquet(tmp_path / "a" / name).equals(pl.read_parquet(tmp_path / "b" / name))


def test_queries_are_answered_together_as_each_alone() -> None:
    block = next(person_blocks(2, 8, 100))
    queries = [query({}, SIZES)]
    queries += [query({"age": frozenset(range(low, low + 7)), "sex": frozenset({1})}, SIZES) for low in (0, 3, 50)]
    numbers = counted(margins(queries, SIZES), len(queries), block.area, 2, block.codes)
    for at, one in enumerate(queries):
        inside = np.ones(len(block.area), dtype=bool)
        for name, values in one:
            inside &= np.isin(block.codes[name], list(values))
        assert numbers[:, at].tolist() == np.bincount(block.area[inside], minlength=2).tolist()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"people": 5}, "people goes with persons"),
        ({"persons": True, "tables": ["income"]}, "no table of persons called 'income'"),
        ({"persons": True, "tables": []}, "at least one table"),
        ({"persons": True, "areas": 0}, "1 to 99,999 areas"),
        ({"persons": True, "people": 0}, "people must be at least 1 and at most 100000, not 0"),
        ({"persons": True, "seed": -1}, "seed must be at least 0"),
        ({"persons": True, "constant": 0.5}, "constant goes with keys"),
        ({"persons": True, "keys": True, "mechanism": "cellkey:3,2", "constant": 0.5}, "cell keys have none"),
        ({"persons": True, "keys": True, "mechanism": "laplace:1"}, "does not do that"),
    ],
)
def test_refusals(tmp_path: Path, options: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        unround.simulate(tmp_path / "no", **options)
    assert not (tmp_path / "no").exists()


def test_files_of_others_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "persons.parquet").write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match=r"already contains persons\.parquet"):
        unround.simulate(tmp_path, persons=True, areas=1)
