"""Calibration on worlds of several kinds, and which of them is the worst."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from unround.comparison.calibration import Calibration, Progress, calibrate
from unround.comparison.material import Material, from_world, simulated
from unround.comparison.practice import TODAY
from unround.errors import InputError
from unround.shown import Shown
from unround.simulation.worlds import WORLDS, world

CENSUS = "census"
"""The census that `unround simulate` draws, which is a world too."""

SENTENCES = {
    CENSUS: "The census that `unround simulate` draws, whose shares vary between areas as a simple prior would have them.",
    **{name: one.sentence for name, one in WORLDS.items()},
}
"""All worlds that can be calibrated on, with what is special about each."""

SHORT = (CENSUS, "unlike-evenness", "one-even-part", "rare-languages", "households", "neighbourhoods", "couples")
"""What is calibrated on unless somebody chooses."""

ALL = "all"

AREAS = 2000
"""How many areas are drawn of every world, unless somebody says."""


@dataclass(frozen=True)
class Calibrations(Shown):
    """How often claims are right in one table or several worlds, the worst first.

    A world is the worse, the more some band of stated probability overstates beyond chance; those with too few claims to
    judge any band come last.
    """

    worlds: tuple[Calibration, ...]

    @classmethod
    def of(cls, found: Sequence[Calibration]) -> Calibrations:
        """Put the worst first."""
        return cls(tuple(sorted(found, key=_badness, reverse=True)))

    @property
    def worst(self) -> Calibration:
        """The world in which claims overstate most."""
        return self.worlds[0]

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data: the worst world, and under `worlds` all of them."""
        return self.worst.to_json() | {"worlds": [one.to_json() for one in self.worlds]}


def _badness(found: Calibration) -> tuple[bool, float]:
    worst = found.claims.worst
    whole = found.claims.whole
    return worst is not None, worst.over if worst is not None else whole.over if whole is not None else -1.0


def material_of_world(
    name: str, areas: int | None = None, seed: int = 11, rows: str | None = None, *, rounded_total: bool = False
) -> Material:
    """Draw a world, or the simulated census.

    Raises `InputError` if there is no such world, or no such choice.
    """
    number = AREAS if areas is None else areas
    if name == CENSUS:
        return simulated(number, seed, rows or "age")
    if name not in WORLDS:
        raise InputError(f"there is no world {name!r}: choose from {', '.join(SENTENCES)}, or {ALL}.")
    return from_world(world(name), number, seed, rounded_total=rounded_total)


def calibrate_worlds(
    names: Sequence[str] | None = None,
    areas: int | None = None,
    seed: int = 11,
    spec: str = TODAY,
    rows: str | None = None,
    *,
    rounded_total: bool = False,
    progress: Progress = lambda *_: None,
) -> Calibrations:
    """Publish worlds whose truth is known, audit each, and see how often its claims are right."""
    chosen = SHORT if names is None else tuple(SENTENCES) if tuple(names) == (ALL,) else tuple(names)
    if not chosen:
        raise InputError(f"name at least one world: {', '.join(SENTENCES)}, or {ALL}.")
    if rows is not None and CENSUS not in chosen:
        raise InputError(f"rows are those of the simulated census: they go with the world {CENSUS}.")
    if rounded_total and chosen == (CENSUS,):
        raise InputError("the census always publishes its population exactly: choose another world to round the total.")
    found = []
    for name in chosen:

        def told(_: str, done: int, whole: int, name: str = name) -> None:
            progress(f"Calibrating on {name}", done, whole)

        material = material_of_world(name, areas, seed, rows, rounded_total=rounded_total)
        one = calibrate(material, spec, seed, told)
        one.world, one.sentence = name, SENTENCES[name]
        found.append(one)
    return Calibrations.of(found)
