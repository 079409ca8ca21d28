"""Worlds with known truth that no prior of unround assumes: what probabilities are tried on besides the simulated census.

A prior that is judged only on draws from its own family always looks right. Each of these worlds breaks an assumption that
would be convenient: that parts are equally uneven, that people come one by one, that men and women are split at random.
"""

from __future__ import annotations

from unround.errors import InputError
from unround.simulation.worlds.categories import CATEGORIES
from unround.simulation.worlds.persons import PERSONS
from unround.simulation.worlds.world import TOTAL, World

__all__ = ["TOTAL", "WORLDS", "World", "world"]

WORLDS = {one.name: one for one in (*CATEGORIES, *PERSONS)}
"""All worlds by name."""


def world(name: str) -> World:
    """Return a world by its name.

    Raises `InputError` if there is none of that name.

    Examples
    --------
    >>> world("couples").leaves
    ('married', 'common-law', 'single', 'separated', 'divorced', 'widowed')
    >>> world("couples").counts(areas=2, seed=1).shape
    (2, 27)
    """
    if name not in WORLDS:
        raise InputError(f"there is no world {name!r}: choose from {', '.join(WORLDS)}.")
    return WORLDS[name]
