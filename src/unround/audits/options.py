"""What the user decides about an audit."""

from __future__ import annotations

from dataclasses import dataclass

from unround.errors import InputError

POPULATIONS = ("exact", "within5")
PRIORS = ("fitted", "flat")
ROUNDINGS = ("auto", "dependent", "independent")

FEWEST, MOST = 16, 4096
"""Areas in a block: fewer would not pay, and more bring nothing."""

CELLS_AT_A_TIME = 1_000_000
"""Cells in a block: enough for arrays to pay, few enough to fit a hundred bytes each into memory."""


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """What the user decides about an audit.

    Parameters
    ----------
    threshold : float
        From which probability on a count is likely.
    prior : str
        "fitted" to the release, or "flat", which is the paper's.
    population : str
        "exact" takes counts as exact that the agency may have adjusted a little, and calls what needs that conditional;
        "within5" does not.
    estimates : bool
        Whether to write an estimate for every cell.
    rounding : str
        "independent" takes every count to have its own random number; "dependent" fits how total and parts share
        theirs, table by table; "auto" does so where the check finds a departure, and uses what is no chance.
    link : bool
        Whether areas that lie within each other are inferred together.
    block : int, optional
        How many areas to work on at a time: the unit that is written whole or not at all, and that workers are given.
        By default what fits into memory well.
    """

    threshold: float = 0.66
    prior: str = "fitted"
    population: str = "exact"
    estimates: bool = False
    rounding: str = "auto"
    link: bool = True
    block: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.threshold <= 1:
            raise InputError(f"the threshold is a probability above 0 and up to 1, such as 0.66; not {self.threshold}.")
        if self.prior not in PRIORS:
            raise InputError(f"there is no prior {self.prior!r}: choose {' or '.join(PRIORS)}.")
        if self.population not in POPULATIONS:
            raise InputError(f"there is no population {self.population!r}: choose {' or '.join(POPULATIONS)}.")
        if self.rounding not in ROUNDINGS:
            raise InputError(f"there is no rounding {self.rounding!r}: choose {', '.join(ROUNDINGS)}.")
        if self.block is not None and self.block < 1:
            raise InputError(f"a block has at least one area, not {self.block}.")


def block_size(cells: int) -> int:
    """Return how many areas of so many cells to work on at a time."""
    return max(FEWEST, min(MOST, CELLS_AT_A_TIME // cells))
