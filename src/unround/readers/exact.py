"""Exact: what Statistics Canada publishes as it is, and in which areas it may have been changed a little.

Populations and dwellings are not rounded. But populations of small areas may be adjusted, "always within 5 of the actual
values"; those of census divisions and of large census subdivisions are not.
"""

from __future__ import annotations

import re

from unround.mechanisms import Exact, Mechanism

ADJUSTED = 5
LARGE = 5_000
"""Populations of census subdivisions from here on are not adjusted."""

_POPULATION = re.compile(r"population(?:, (?:18|19|20)\d\d)?")
_DWELLINGS = re.compile(r"dwellings|households|total private dwellings|private dwellings occupied by usual residents")
_WHOLE = ("c", "country", "pr", "province", "territory", "province or territory", "cd", "census division")
_SUBDIVISION = ("csd", "census subdivision")


def published_exactly(label: str) -> tuple[Mechanism | None, int]:
    """Return the mechanism of a line, where it was not rounded, and by how much small areas may have been adjusted.

    Examples
    --------
    >>> published_exactly("Population, 2021")
    (Exact(), 5)
    >>> published_exactly("Total private dwellings"), published_exactly("0 to 4 years")
    ((Exact(), 0), (None, 0))
    """
    name = label.strip().lower()
    if _POPULATION.fullmatch(name):
        return Exact(), ADJUSTED
    return (Exact(), 0) if _DWELLINGS.fullmatch(name) else (None, 0)


def adjustable(level: str, population: int) -> bool:
    """Say whether the population of an area may have been adjusted.

    Parameters
    ----------
    level : str
        As files call it: "DA", "CSD", "Census subdivision", …
    population : int
        As published; a code of `release` where it was not, so that the area counts as small.

    Examples
    --------
    >>> adjustable("DA", 12_000), adjustable("CSD", 12_000), adjustable("Census subdivision", 400), adjustable("PR", 400)
    (True, False, True, False)
    """
    name = level.strip().lower()
    return not (name in _WHOLE or (name in _SUBDIVISION and population >= LARGE))
