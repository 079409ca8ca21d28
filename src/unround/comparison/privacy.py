"""What a release costs in the currency of differential privacy, all cells together that a person is counted in."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt
from typing import Any

from unround.comparison.material import Material
from unround.mechanisms import Exact, Gaussian, Laplace, Mechanism, Unpublished
from unround.prior.exposure import Hierarchy

DELTA = 1e-10
"""The δ at which the cost of Gaussian noise is told as an ε."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The privacy cost of a whole release.

    - `cells`: Noisy counts that one person is in, at most, over all levels of areas: adding or leaving out the person
      changes each by 1.
    - `epsilon`: Pure ε for Laplace noise; for Gaussian noise that which follows from ρ at `DELTA`; None where there is
      none.
    - `rho`: For Gaussian noise, the ρ of zero-concentrated differential privacy.
    - `note`: What kind of number that is, or why there is none.
    """

    cells: int
    epsilon: float | None
    rho: float | None
    note: str

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"epsilon": self.epsilon, "rho": self.rho, "cells_of_a_person": self.cells, "epsilon_note": self.note}


def cells_of_a_person(material: Material, mechanisms: tuple[Mechanism, ...]) -> int:
    """Return how many counts of one area a person is in, at most, that are published and not exact.

    A person is in one part of every partition; where counts are split by sex, in a total and in one of its parts.
    """
    noisy = [not isinstance(how, Exact | Unpublished) for how in mechanisms]
    found = Hierarchy.of(material.model(material.mechanisms(mechanisms[-1])).compiled)
    split = {total: parts for total, *parts in found.pairs}
    below: dict[int, list[tuple[int, ...]]] = {}
    inner = {part for parts in split.values() for part in parts}
    parts_of_something: set[int] = set()
    for one in found.sums:
        below.setdefault(one.total, []).append(one.parts)
        parts_of_something.update(one.parts)

    seen: set[int] = set()

    def touched(cell: int) -> int:
        own = noisy[cell] + max((noisy[part] for part in split.get(cell, [])), default=0)
        for parts in below.get(cell, []):
            if len(parts) == 1:
                # The same people under another name: they count once, wherever they come first.
                if parts[0] in seen:
                    continue
                seen.add(parts[0])
            own += max(touched(part) for part in parts)
        return own

    tops = [c for c in range(len(mechanisms)) if c not in inner and c not in parts_of_something]
    return sum(touched(top) for top in tops)


def cost(material: Material, how: Mechanism, mechanisms: tuple[Mechanism, ...]) -> Cost:
    """Return what a release costs."""
    cells = material.levels * cells_of_a_person(material, mechanisms)
    exact = any(isinstance(each, Exact) for each in mechanisms)
    among = (
        ". Exact counts are not included: among tables with the same exact counts, changing one person's answers costs "
        "up to twice as much"
        if exact
        else ""
    )
    one = cells // material.levels
    inside = f" ({one} in each of {material.levels} nested areas)" if material.levels > 1 else ""
    person = f"one person changes {cells} counts by 1{inside}"
    if isinstance(how, Laplace):
        return Cost(cells, cells / how.t, None, f"pure: {person}, at a cost of 1/{how.t:g} each{among}")
    if isinstance(how, Gaussian):
        rho = cells / (2 * how.sigma**2)
        epsilon = rho + 2 * sqrt(rho * log(1 / DELTA))
        said = f"zCDP with ρ = {rho:.3g}, converted to ε at δ = {DELTA:g}: {person}{among}"
        return Cost(cells, epsilon, rho, said)
    return Cost(
        cells,
        None,
        None,
        f"none: under {how.name}, some published counts are possible for some true counts and impossible for others",
    )
