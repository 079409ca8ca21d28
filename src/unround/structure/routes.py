"""Which area may lie in which: by the columns of the file, by codes, and by nothing else. Nothing of it is believed yet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import polars as pl

_NOT_CODES = ("region_name", "level", "adjustable", "code")
_BY_CODE = 0.95
"""Codes of one level tell the area of another if so many of them begin with the code of one."""

Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class ParentRoute:
    """Areas of one level that may make up areas of another.

    Parameters
    ----------
    child, parent : str
        The levels, as the file calls them.
    by : str
        What says so: the name of a column, or "code".
    children, parents : array
        Positions of areas: the first of these lies in the first of those, and so on.
    """

    child: str
    parent: str
    by: str
    children: Places
    parents: Places


def parent_routes(areas: pl.DataFrame, axis: str) -> list[ParentRoute]:
    """Return every pair of levels that something links, the smallest parents first, and for each the largest children first.

    Parameters
    ----------
    areas : DataFrame
        All areas of a release.
    axis : str
        The column that names them.
    """
    levels = areas["level"].fill_null("").to_list() if "level" in areas.columns else [""] * areas.height
    found: dict[tuple[str, str], tuple[str, Places]] = {}
    for by, target in _routes(areas, axis, levels):
        target[target == np.arange(len(target))] = -1  # an area may name itself
        there = np.flatnonzero(target >= 0)
        pairs = {
            (levels[child], levels[parent]) for child, parent in zip(there.tolist(), target[there].tolist(), strict=True)
        }
        for pair in sorted(pairs):
            if pair[0] == pair[1] != "":
                continue
            here = np.array([c for c in there.tolist() if (levels[c], levels[target[c]]) == pair], dtype=np.int64)
            _, places = found.setdefault(pair, (by, np.full(len(target), -1, dtype=np.int64)))
            here = here[places[here] < 0]  # who spoke first is believed; others fill in what it left open
            places[here] = target[here]
    size = {level: levels.count(level) for level in set(levels)}
    height = _heights(list(found))
    order = sorted(found, key=lambda pair: (height[pair[1]], -size[pair[1]], -height[pair[0]], size[pair[0]]))
    made = []
    for pair in order:
        by, places = found[pair]
        children = np.flatnonzero(places >= 0)
        made.append(ParentRoute(*pair, by, children, places[children]))
    return made


def _routes(areas: pl.DataFrame, axis: str, levels: list[str]) -> Iterator[tuple[str, Places]]:
    """Go through everything that says where areas lie: what says so, and for every area a position or -1."""
    import polars as pl

    from unround.readers.regions import KINDS, around, identities

    codes = areas[axis].cast(pl.String)
    own = identities(codes, pl.Series(levels, dtype=pl.String))
    place = {code: at for at, code in enumerate(codes.to_list())}
    by_identity = {identity: at for at, identity in enumerate(own)}
    bare = _unique_bare(own)
    for name, kind in areas.schema.items():
        if name == axis or name in _NOT_CODES or kind != pl.String:
            continue
        above = KINDS.get(name.lower().removesuffix("_uid"))

        def find(code: str | None, above: str | None = above) -> int:
            if code is None:
                return -1
            exactly = place.get(code, by_identity.get(f"{above}:{code}", -1) if above else -1)
            return exactly if exactly >= 0 else bare.get(code, -1) if above is None else -1

        target = np.array([find(code) for code in areas[name].to_list()], dtype=np.int64)
        if (target >= 0).any():
            yield name, target
    # Codes tell every level around an area, of which the file may hold any: one at a time, so that none hides another.
    told = [[by_identity[one] for one in around(identity) if one in by_identity] for identity in own]
    for step in range(max(map(len, told), default=0)):
        yield "code", np.array([one[step] if step < len(one) else -1 for one in told], dtype=np.int64)
    yield from _prefixes(own, levels)


def _heights(pairs: list[tuple[str, str]]) -> dict[str, int]:
    """Return how many levels lie below each, one within the other."""
    height = {level: 0 for pair in pairs for level in pair}
    for _ in height:  # no chain is longer than there are levels, even if some lie in each other
        for child, parent in pairs:
            if child != parent:
                height[parent] = max(height[parent], min(height[child] + 1, len(height)))
    return height


def _unique_bare(own: list[str]) -> dict[str, int]:
    """Return areas by their code alone, where no two levels share it."""
    found: dict[str, int] = {}
    for at, identity in enumerate(own):
        code = identity.partition(":")[2] or identity
        found[code] = at if code not in found else -1
    return found


def _prefixes(own: list[str], levels: list[str]) -> Iterator[tuple[str, Places]]:
    """Find pairs of levels where the code of the smaller area begins with that of the larger, as wards' with districts'."""
    members: dict[str, list[int]] = {}
    for at, identity in enumerate(own):
        if ":" not in identity:  # where the agency's own scheme is known, likenesses beyond it are accidents
            members.setdefault(levels[at], []).append(at)
    lengths = {level: {len(own[at]) for at in ats} for level, ats in members.items()}
    for above, tops in members.items():
        if len(lengths[above]) != 1:
            continue
        (length,) = lengths[above]
        index = {own[at]: at for at in tops}
        for below, ats in members.items():
            if below == above or lengths[below] != {max(lengths[below])} or min(lengths[below]) <= length:
                continue
            target = np.full(len(own), -1, dtype=np.int64)
            target[ats] = [index.get(own[at][:length], -1) for at in ats]
            if np.count_nonzero(target >= 0) >= _BY_CODE * len(ats):
                yield "code", target
