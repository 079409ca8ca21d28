"""One number for what a table exposes, to rank repairs by: new claims, weighed by how sure and how small they are."""

from __future__ import annotations

from unround.audits.summary import SIZES
from unround.differences import Diff
from unround.differences.run import KINDS

SURENESS = {"none": 0, "likely": 1, "conditional": 5, "proved": 10}
"""What a claim weighs by its kind. A count that is published as it is weighs as much as a proved one."""

SMALLNESS = {"1-2": 10, "3-9": 3, "0": 1, "10+": 1}
"""The same by the count that it names: those of one or two people tell most."""


def exposure(found: Diff) -> int:
    """Return the weight of all that is newly claimed, less what was claimed before of the same cells.

    A proved count of one or two weighs 100, a likely one 10; a proved count of ten or more 10, a likely one 1.
    """
    total = 0
    for row in found.counted.cube.iter_rows(named=True):
        if row["after"] > row["before"]:
            gained = SURENESS[KINDS[row["after"]]] - SURENESS[KINDS[row["before"]]]
            total += row["len"] * gained * _smallness(row["class"])
    return total + sum(SURENESS["proved"] * SMALLNESS[name] * many for name, many in found.laid_open.items())


def exposure_of_columns(found: Diff) -> dict[str, int]:
    """Return the weight of what is newly claimed of each column, by its key; all columns of a cell have the same."""
    weights = dict.fromkeys((key for cell in found.match.cells for key in (*cell.before, *cell.after)), 0)
    for row in found.counted.by_cell.iter_rows(named=True):
        cell = found.match.cells[row["cell"]]
        for key in {*cell.before, *cell.after}:
            weights[key] += row["len"] * SURENESS[KINDS[row["after"]]] * _smallness(row["class"])
    return weights


def _smallness(size: int) -> int:
    return SMALLNESS[SIZES[size][1]]
