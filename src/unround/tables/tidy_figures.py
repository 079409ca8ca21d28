"""Figures of a tidy table: which of its columns are rates, means and medians, by its description or by labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unround.errors import InputError
from unround.figures import Figure
from unround.release import Column
from unround.tables.description import SEX, Description, near
from unround.tables.figure_labels import TableLine, propose
from unround.tables.kinds import COUNT, kinds_of
from unround.tables.lines import TOTAL


def figures_of_table(
    columns: Sequence[Column], decimals: Sequence[bool], axes: Sequence[str], description: Description
) -> list[Figure]:
    """Return the figures among the columns of a table.

    Those that the description lists are taken at its word. Of others, columns with decimals can be figures, and their
    labels propose what they are.

    Raises `InputError` where the description names columns that are not there.
    """
    labels = {column.key: column.label for column in columns}
    listed = [replace(one, label=labels.get(one.name, one.name)) for one in description.figures]
    figures = {figure.name for figure in listed}
    for figure in listed:
        for key in (figure.name, *figure.counts, figure.numerator):
            if key and (key not in labels or (key != figure.name and key in figures)):
                raise InputError(
                    f"{description.where}: the figure {figure.name!r} names {key!r}, which is no column of counts of this "
                    f"table.{near(key, labels)} Columns are named by their codes, joined by a slash."
                )
    return listed + [figure for figure in _by_label(columns, decimals, axes) if figure.name not in figures]


def _by_label(columns: Sequence[Column], decimals: Sequence[bool], axes: Sequence[str]) -> list[Figure]:
    """Return what labels say of columns with decimals."""
    if not any(decimals):
        return []
    by_sex = len(axes) == 2 and axes[-1] == SEX
    kinds = kinds_of([column.label for column in columns], [column.depth for column in columns])
    lines: dict[str, TableLine] = {}
    for column, kind, broken in zip(columns, kinds, decimals, strict=True):
        own, sex = (column.codes[0], column.codes[1]) if by_sex else (column.key, TOTAL)
        kind = (kind if kind != COUNT else "decimals") if broken else COUNT
        line = lines.setdefault(own, TableLine(own, column.label, column.depth, column.block, kind, ()))
        # What has decimals for one sex is no count for the others either.
        lines[own] = replace(line, sexes=(*line.sexes, sex), kind=line.kind if line.kind != COUNT else kind)
    return propose(list(lines.values()))
