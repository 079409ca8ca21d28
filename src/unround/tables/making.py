"""Making a release: what every format ends in, once it says which of its numbers are counts, of whom, and where."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unround.errors import InputError
from unround.figures import Figure
from unround.regions import published_exactly
from unround.release import ABSENT, AREA, UNREADABLE, Block, Column, Counts, FigureValues, Progress, Release
from unround.tables.figure_labels import propose
from unround.tables.grid import HeadedTable
from unround.tables.lines import COUNT, FIRST, TableLine, key_of
from unround.tables.source import Source
from unround.tables.symbols import as_counts

AREAS_AT_ONCE = 2_000
CELLS_AT_ONCE = 500_000
DECIMAL = "figure with decimals"


def in_memory(
    areas: pl.DataFrame, counts: Counts, size: int, figures: FigureValues | None = None
) -> Callable[[Progress], Iterator[Block]]:
    """Return what goes through a table in memory as `Release.read` does through a file."""
    kept = figures if figures is not None and figures.shape[1] else None

    def blocks(progress: Progress) -> Iterator[Block]:
        for start in range(0, len(areas), AREAS_AT_ONCE):
            end = min(start + AREAS_AT_ONCE, len(areas))
            progress(size * end // len(areas))
            yield Block(areas[start:end], counts[start:end], None if kept is None else kept[start:end])

    return blocks


def census(source: Source, form: str, columns: Sequence[Column], **others: Any) -> Release:
    """Return the release of a census: columns are characteristics by sex, and rows are areas."""
    axes: Any = {"axes": ("characteristic_id", "sex"), "areas": (AREA,)}
    return Release(source=str(source.path), file_format=form, columns=tuple(columns), size=source.size, **axes, **others)


def columns_of(lines: Sequence[TableLine], anywhere: bool = False) -> list[Column]:
    """Return the columns of all lines that are counts: those above the first table, or anywhere, may be exact by name."""
    found: list[Column] = []
    for line in lines:
        how = published_exactly(line.label) if anywhere or line.table == FIRST else (None, 0)
        sexes = line.sexes if line.kind == COUNT else ()
        found += [Column(key_of(line.id, sex), (line.id, sex), line.label, line.table, line.depth, *how) for sex in sexes]
    return found


def told_apart(
    lines: Sequence[TableLine], sexes: Sequence[str], broken: NDArray[np.bool_], nothing: NDArray[np.bool_]
) -> tuple[list[TableLine], list[Figure], dict[str, tuple[str, ...]]]:
    """Decide which lines of a profile are counts, and for which sexes; return them, the figures, and what is left out.

    `broken` are lines that show decimals, `nothing` lines × sexes that are not applicable.
    """
    lines = [
        replace(
            line,
            kind=DECIMAL if line.kind == COUNT and odd else line.kind,
            sexes=tuple(sex for sex, absent in zip(sexes, none, strict=True) if not absent),
        )
        for line, odd, none in zip(lines, broken, nothing, strict=True)
    ]
    figures = propose(lines)
    figured = {figure.name.partition("/")[0] for figure in figures}
    left_out: dict[str, list[str]] = {}
    for line in lines:
        if line.kind != COUNT and line.id not in figured:
            left_out.setdefault(line.kind, []).append(line.label)
        elif line.kind == COUNT and len(line.sexes) < len(sexes):
            gone = (sex for sex in sexes if sex not in line.sexes)
            left_out.setdefault("not applicable", []).extend(f"{line.label}, {sex}" for sex in gone)
    return lines, figures, {kind: tuple(labels) for kind, labels in left_out.items()}


def refuse_repeated(source: Source, areas: pl.Series) -> None:
    """Raise if an area has no code, or stands there twice."""
    empty = areas.is_null() | (areas == "")
    if empty.any():
        number = int(empty.arg_true()[0]) + 1
        raise InputError(f"{source.path}: line {number} below the header has no {AREA}; add it, or remove the line.")
    again = areas.is_duplicated()
    if again.any():
        raise InputError(
            f"{source.path} has the area {areas.filter(again)[0]} more than once; {int(again.sum()):,} lines are affected. "
            "Each area may occur only once: remove the copies, or split the file."
        )


def counts_of(table: HeadedTable, places: Sequence[int]) -> tuple[Counts, NDArray[np.float64]]:
    """Turn columns into counts; also return, for every column, the share of its numbers that have a fraction.

    A point alone proves nothing here: pandas writes whole numbers as `15.0` in columns with gaps.
    """
    lines = len(table.cells)
    counts = np.empty((lines, len(places)), dtype=np.int32)
    shares = np.zeros(len(places))
    # Many short columns end to end are read far faster than one by one.
    step = max(1, CELLS_AT_ONCE // lines)
    for start in range(0, len(places), step):
        few = places[start : start + step]
        read, decimals = as_counts(pl.concat([table.column(place).alias("") for place in few]))
        cells = read.reshape(len(few), lines)
        broken = np.count_nonzero(decimals.reshape(len(few), lines) & (cells == UNREADABLE), axis=1)
        shares[start : start + step] = broken / np.maximum(1, broken + np.count_nonzero(cells > ABSENT, axis=1))
        counts[:, start : start + step] = cells.T
    return counts, shares


def unreadable(counts: Counts) -> list[str]:
    """Return the note that some cells hold no counts, or none."""
    cells = int(np.count_nonzero(counts == UNREADABLE))
    note = f"{cells:,} cells in columns of counts hold text or numbers with decimals; they are treated as unknown."
    return [note] if cells else []
