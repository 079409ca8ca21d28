"""What areas that lie within each other say about one another, for one block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unround.audits.contradictions import AREAS, ASSUMPTION, Active, Contradiction
from unround.audits.model import Model
from unround.audits.nested import NestedAreas
from unround.batch.types import Posterior, PriorTable, Tight, Windows
from unround.linked.bounds import FamilyClash, LinkedBounds, linked_bounds
from unround.linked.engine import Linked, link


@dataclass(frozen=True, slots=True, eq=False)
class Across:
    """What follows for a block from how its areas lie within each other.

    Parameters
    ----------
    nested : NestedAreas
        How they do.
    documented, assumed : LinkedBounds
        Bounds by all sums, within areas and between them: by what the agency documents, and if counts that may have been
        adjusted are exact.
    contradictions : list
        Areas that cannot be the sum of their parts; they are not linked.
    """

    nested: NestedAreas
    documented: LinkedBounds
    assumed: LinkedBounds
    contradictions: list[Contradiction]


def bounds_across(
    model: Model, nested: NestedAreas, documented: tuple[Windows, Tight], assumed: tuple[Windows, Tight], active: Active
) -> Across:
    """Carry bounds from area to area, until nothing changes.

    Parameters
    ----------
    model : Model
        The sums within areas.
    nested : NestedAreas
        How areas lie within each other.
    documented, assumed : pairs
        Windows, and the bounds that every area has by itself.
    active : array
        Which sums hold in which area.
    """
    first = linked_bounds(model.compiled, *documented, nested.parent, nested.cells, active, proofs_only=True)
    second = first
    if assumed[1] is not documented[1]:
        second = linked_bounds(model.compiled, *assumed, first.parent, nested.cells, active, proofs_only=True)
    found = [_clash(model, one) for one in first.clashes]
    if second is not first:
        found += [
            Contradiction(
                one.parent,
                ASSUMPTION,
                (),
                () if one.column < 0 else (one.column,),
                "Taken as exact, the counts that may have been adjusted in this area and in those that lie in it leave no "
                "solution: some were adjusted. They are linked for proofs, not for probabilities.",
            )
            for one in second.clashes
        ]
    return Across(nested, first, second, found)


def _clash(model: Model, one: FamilyClash) -> Contradiction:
    """Put into words that an area is not the sum of those in it; where no single count shows it, all its sums do."""
    what = f"{model.columns[one.column].key} cannot be the sum" if one.column >= 0 else "Its counts cannot be the sums"
    text = f"{what} of the same counts of the areas that lie in this one. They are not linked."
    return Contradiction(one.parent, AREAS, (), (one.column,) if one.column >= 0 else (), text)


def likely_across(
    model: Model,
    across: Across,
    windows: Windows,
    reach: Tight,
    prior: PriorTable | None,
    active: Active,
    keep: int | None = None,
) -> Linked:
    """Work out what is likely, given all areas that are linked; `keep` is the area whose whole distributions are wanted."""
    nested = across.nested
    return link(
        model.compiled, windows, reach, across.assumed.parent, nested.cells, prior, active, alike=nested.alike, keep=keep
    )


def needs_others(own: Posterior, joint: Posterior, threshold: float) -> NDArray[np.bool_]:
    """Say which counts are likely only because of other areas."""
    likely = joint.probability >= threshold
    return np.asarray(likely & ~((own.mode == joint.mode) & (own.probability >= threshold)))
