"""The methods by which an area's probabilities are obtained, when each is used, and its measured error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

OWN, MERGED, GIBBS, LOOPY, CHAINS, LISTED, APART, FAMILY = range(8)
"""Codes of methods: places in `METHODS`."""

IN_TABLES = np.array([OWN, CHAINS, LISTED, APART], dtype=np.int8)
"""The codes of areas by how their tables by several axes were answered; see `batch.types.EXACT` and those after it."""

MERGED_IN_TABLES = np.array([MERGED, FAMILY, MERGED, APART], dtype=np.int8)
"""The same for areas that are merged with their only child."""

ALONE = frozenset({OWN, CHAINS, LISTED, APART})
"""Methods that use no other area."""

MOST_SAMPLED = 4
"""Children up to which a family is always sampled; larger ones exchange messages."""

NARROW = 6.0
"""Average number of possible counts per cell below which larger families are sampled too (base 3, not base 5): where most
children have only one possible count, few are left, and messages are overconfident."""


def is_sampled(children: int, width: float) -> bool:
    """Return whether a family with this many children, and this average number of possible counts per cell, is sampled."""
    return children <= MOST_SAMPLED or width < NARROW


@dataclass(frozen=True, slots=True)
class Method:
    """One method of obtaining probabilities.

    - `code`: Its place in `METHODS`, as in `Linked.method`.
    - `name`, `sentence`: What reports call it, and how they explain it.
    - `mean`, `worst`: Total variation distance from the exact distribution of a cell: on average, and in the worst cell
      that was compared. `docs/linked.md` has the tables and how they are made.
    """

    code: int
    name: str
    sentence: str
    mean: float
    worst: float


METHODS = (
    Method(OWN, "own area", "From the area's own table alone: exact, but without information from other areas.", 0.0, 0.0),
    Method(MERGED, "merged", "The area and its only child contain the same people, published twice: exact.", 0.0, 0.0),
    Method(
        GIBBS,
        "sampled",
        f"A parent with up to {MOST_SAMPLED} children, or more where few counts are possible: Gibbs sampling of whole "
        "areas, with shrinkage towards messages.",
        0.017,
        0.11,
    ),
    Method(
        LOOPY,
        "messages",
        f"A parent with more than {MOST_SAMPLED} children: messages between areas (loopy belief propagation), approximate.",
        0.018,
        0.12,
    ),
    Method(
        CHAINS,
        "chains",
        "From all sums of the area's own table by several axes: Markov chains over whole tables that agree with each other.",
        0.011,
        0.13,
    ),
    Method(
        LISTED,
        "all tables",
        "Chains did not agree, or may not have reached every table, but all tables that fit could be gone through: exact.",
        0.0,
        0.0,
    ),
    Method(
        APART,
        "none",
        "Chains over whole tables do not agree or do not reach every table, and there are too many tables to go through: no "
        "probability uses the sums.",
        0.0,
        0.0,
    ),
    Method(
        FAMILY,
        "family chains",
        "From all sums of the tables by several axes of a parent and its children, and between them: Markov chains over the "
        "tables of the whole family.",
        0.013,
        0.1,
    ),
)
"""In the order of the codes. The errors are the largest over all family sizes and bases measured."""
