"""Known formats, however they come: a frame is its file, a part of a file is the file, and a note is not a proof."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import unround
from unround.errors import InputError
from unround.tables import SIMULATED

HEADER = (
    "CENSUS_YEAR,DGUID,ALT_GEO_CODE,GEO_LEVEL,GEO_NAME,TNR_SF,TNR_LF,DATA_QUALITY_FLAG,CHARACTERISTIC_ID,"
    "CHARACTERISTIC_NAME,CHARACTERISTIC_NOTE,C1_COUNT_TOTAL,SYMBOL,C2_COUNT_MEN+,SYMBOL,C3_COUNT_WOMEN+,SYMBOL"
)
PARTS = ("Employed", "Unemployed", "Looking", "Neither")


def profile(path: Path, areas: int, title: str) -> Path:
    """Write a profile in which the last area has a total of 60 for parts of 20, which whole numbers can only be as 16."""
    rng, lines = np.random.default_rng(1), [HEADER]
    for area in range(areas):
        true = rng.integers(20, 60, 4)
        parts = [int(5 * ((one + rng.integers(0, 5)) // 5)) for one in true]
        total = int(5 * ((true.sum() + rng.integers(0, 5)) // 5))
        if area == areas - 1:
            parts, total = [20] * 4, 60
        for number, (name, count) in enumerate(zip((title, *(f"  {part}" for part in PARTS)), (total, *parts), strict=True)):
            code = f"1001{area:04}"
            lines.append(
                f'2021,"2021S0512{code}","{code}","Dissemination area","{code}",1,1,"00000",{2223 + number},"{name}",'
                f',{count},"",,"...",,"..."'
            )
    path.write_text("\n".join(lines) + "\n", encoding="latin-1")
    return path


def kinds(table: object, folder: Path) -> list[str]:
    return unround.audit(table, folder).findings["kind"].to_list()


@pytest.mark.parametrize("areas", [12, 150])
def test_sample_data_are_estimates_however_much_of_them_is_there(areas: int, tmp_path: Path) -> None:
    sample = profile(tmp_path / "sample.csv", areas, "Total - Labour force - 25% sample data (12)")
    full = profile(tmp_path / "full.csv", areas, "Total - Labour force - 100% data (12)")
    assert not {"proved", "conditional"} & set(kinds(sample, tmp_path / "of sample"))
    assert {"proved", "conditional"} & set(kinds(full, tmp_path / "of all"))
    frame = pl.read_csv(sample, infer_schema_length=None)
    assert not {"proved", "conditional"} & set(kinds(frame, tmp_path / "of a frame"))


def assert_same(one: unround.Release, other: unround.Release) -> None:
    assert one.file_format == other.file_format
    assert (one.columns, one.proposals, one.figures, one.left_out) == (
        other.columns,
        other.proposals,
        other.figures,
        other.left_out,
    )
    for mine, its in zip(one.blocks(), other.blocks(), strict=True):
        assert np.array_equal(mine.counts, its.counts)
        assert mine.figures is None or np.array_equal(mine.figures, its.figures)


def test_a_frame_is_read_as_its_file_is(tmp_path: Path) -> None:
    """Pandas and polars number the columns called SYMBOL; counts beside gaps become 15.0."""
    pandas = pytest.importorskip("pandas")
    path = profile(tmp_path / "profile.csv", 7, "Total - Age - 100% data")
    file = unround.read(path)
    for frame in (pl.read_csv(path), pandas.read_csv(path)):
        assert_same(file, unround.read(frame))
    pl.read_csv(path).write_parquet(tmp_path / "profile.parquet")
    assert_same(file, unround.read(tmp_path / "profile.parquet"))
    with pytest.raises(InputError, match=r"the frame is in the format statcan, which needs no description\. Call"):
        unround.describe(pl.read_csv(path))


@pytest.mark.parametrize("name", ["canada-2021-fsa-selected.csv", "canada-2021-first-names.csv.gz"])
def test_a_frame_of_a_real_file_is_read_as_the_file_is(name: str, census_data: Path) -> None:
    path = census_data / name
    assert_same(unround.read(path), unround.read(pl.read_csv(path, infer_schema_length=None)))


def test_a_note_makes_no_other_table_a_simulated_one(tmp_path: Path) -> None:
    """Only the tables that `unround simulate` wrote are known as such, by their content; names and notes say nothing."""
    made = unround.simulate(tmp_path, areas=5)
    assert unround.read(made.files[0]).product == SIMULATED
    assert unround.read(made.truth).product == SIMULATED
    table = profile(tmp_path / "real.csv", 3, "Total - Age - 100% data")
    assert unround.read(table).product != SIMULATED
    text = made.files[0].read_bytes()
    made.files[0].write_bytes(text.replace(b"Dissemination", b"dissemination", 1))
    assert unround.read(made.files[0]).product != SIMULATED
