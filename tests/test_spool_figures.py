"""The spool keeps rates, means and medians beside the counts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from unround.figures import Figure, FigureKind
from unround.release import AREA, FIGURE_ABSENT, Block, Column, Release
from unround.tables.spool import Spool, survey

VALUES = np.array([[124_000, FIGURE_ABSENT], [0, 385_000], [1_000_000, 420_000]], dtype=np.int64)
COUNTS = np.array([[60, 500], [0, 45], [50, 50]], dtype=np.int32)


def release() -> Release:
    areas = pl.DataFrame({AREA: ["a", "b", "c"], "parent": pl.Series([None] * 3, dtype=pl.String)})
    return Release(
        source="made",
        file_format="made",
        columns=(Column("poor", ("poor",), "poor"), Column("all", ("all",), "all")),
        axes=("what",),
        areas=(AREA,),
        read=lambda _: [Block(areas[:2], COUNTS[:2], VALUES[:2]), Block(areas[2:], COUNTS[2:], VALUES[2:])],
        figures=(
            Figure("rate", FigureKind.RATE, "all", "poor"),
            Figure("age", FigureKind.MEDIAN, "all"),
        ),
    )


def test_figures_come_back_as_they_were_read(tmp_path: Path) -> None:
    spool, structure = survey(release(), tmp_path)
    again = [block.figures for block in spool.blocks(2)]
    assert [len(block) for block in again if block is not None] == [2, 1]
    assert np.array_equal(np.concatenate([block for block in again if block is not None]), VALUES)
    for rows in ([1, 2], [2, 0]):
        picked = spool.pick_figures(np.array(rows))
        assert picked is not None
        assert np.array_equal(picked, VALUES[rows])
    opened = Spool.open(spool.path, 2, 3, figures=2)
    assert np.array_equal(opened.figures(1, 3), VALUES[1:])  # type: ignore[arg-type]
    assert structure.areas == 3


def test_a_release_without_figures_has_none_on_disk(tmp_path: Path) -> None:
    plain = release()
    areas = next(plain.blocks()).areas
    bare = Release("made", "made", plain.columns, ("what",), (AREA,), lambda _: [Block(areas, COUNTS[:2])])
    spool, structure = survey(bare, tmp_path)
    assert next(spool.blocks(10)).figures is None
    assert spool.pick_figures(np.array([0])) is None
    assert not (tmp_path / "figures.bin").exists()
    assert structure.figures == ()
