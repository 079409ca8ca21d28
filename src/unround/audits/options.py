"""What the user decides about an audit."""

from __future__ import annotations

from dataclasses import dataclass

from unround.errors import InputError

THRESHOLD = 0.66
"""The default minimum probability to report a count as likely."""

POPULATIONS = ("exact", "within5")
PRIORS = ("fitted", "flat")
ROUNDINGS = ("auto", "independent")
VERIFIED, NO_FIGURES = "verified", "off"
FIGURES = (VERIFIED, NO_FIGURES)
MEANS, DISTRIBUTIONS = "means", "distributions"
"""What estimates hold: mean, deviation and likeliest count; or the probability of every possible count as well."""

FEWEST, MOST = 16, 4096
"""Areas in a block: fewer would not pay, and more gain nothing."""

CELLS_AT_A_TIME = 500_000
"""Cells in a block: enough for arrays to pay, few enough to fit a kilobyte each into memory, of two blocks at a time."""


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """What the user decides about an audit.

    - `threshold`: Minimum probability to report a count as likely: every prior that fits about as well must give it as
      much.
    - `prior`: "fitted" to the release, or "flat", which is the paper's.
    - `population`: "exact" treats counts as exact that the agency may have adjusted slightly, and calls claims that need
      this conditional; "within5" does not.
    - `estimates`: Whether to write an estimate for every cell: "means", which True stands for too, or whole
      "distributions".
    - `rounding`: "auto" uses the keys that the check finds, table by table; "independent" gives every count its own
      random number.
    - `link`: Whether nested areas are inferred together.
    - `doubtful`: Whether to list conditional claims even if the check finds that the data contradict the mechanism.
    - `block`: How many areas to process at a time: the unit that is written whole or not at all, and that workers are
      given. By default as many as fit comfortably into memory.
    - `bom`: Whether CSV files begin with a byte-order mark, by which Excel tells that they are UTF-8.
    - `figures`: "verified" uses the rates, means and medians that the data show to be computed from true counts; "off"
      none.
    """

    threshold: float = THRESHOLD
    prior: str = "fitted"
    population: str = "exact"
    estimates: bool | str = False
    rounding: str = "auto"
    link: bool = True
    doubtful: bool = False
    block: int | None = None
    bom: bool = False
    figures: str = VERIFIED

    def __post_init__(self) -> None:
        check_threshold(self.threshold)
        if self.prior not in PRIORS:
            raise InputError(f"prior must be {' or '.join(PRIORS)}, not {self.prior!r}.")
        if self.population not in POPULATIONS:
            raise InputError(f"population must be {' or '.join(POPULATIONS)}, not {self.population!r}.")
        if self.rounding not in ROUNDINGS:
            raise InputError(f"rounding must be one of {', '.join(ROUNDINGS)}, not {self.rounding!r}.")
        if self.figures not in FIGURES:
            raise InputError(f"figures must be {' or '.join(FIGURES)}, not {self.figures!r}.")
        if self.estimates not in (False, True, MEANS, DISTRIBUTIONS):
            raise InputError(f"estimates must be {MEANS} or {DISTRIBUTIONS}, not {self.estimates!r}.")
        if self.block is not None and self.block < 1:
            raise InputError(f"a block must have at least one area, not {self.block}.")

    @property
    def exact_population(self) -> bool:
        """Whether probabilities and conditional claims treat counts as exact that the agency may have adjusted."""
        return self.population == "exact"


def check_threshold(threshold: float) -> None:
    """Reject what is not a usable probability."""
    if not 0 < threshold <= 1:
        raise InputError(f"the threshold must be a probability above 0 and at most 1, such as {THRESHOLD}; not {threshold}.")


def block_size(cells: int) -> int:
    """Return how many areas of this many cells to process at a time."""
    return max(FEWEST, min(MOST, CELLS_AT_A_TIME // cells))
