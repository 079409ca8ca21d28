"""By which method an area's probabilities were obtained, and how exact each is, as measured."""

from __future__ import annotations

from dataclasses import dataclass

OWN, MERGED, GIBBS, LOOPY = 0, 1, 2, 3
"""By which method an area's probabilities were obtained: see `METHODS`."""

MOST_SAMPLED = 4
"""Children up to which a family is sampled in any case; larger ones are left to messages between areas."""

NARROW = 6.0
"""Possible counts of a cell, on average, below which larger families are sampled too (base 3, not base 5): where most of the
children can have but one count of something, the others are few, and messages too sure of themselves."""


def is_sampled(children: int, width: float) -> bool:
    """Say whether a family of so many children, with so many possible counts of a cell on average, is sampled."""
    return children <= MOST_SAMPLED or width < NARROW


@dataclass(frozen=True, slots=True)
class Method:
    """A way to obtain probabilities.

    Parameters
    ----------
    code : int
        Its place in `METHODS`, as in `Linked.method`.
    name, sentence : str
        What reports call it, and how they explain it.
    mean, worst : float
        How far it is from the exact distribution of a cell, as total variation: on average, and in the worst of all
        cells that were compared. `docs/linked.md` has the tables, and how they are made.
    """

    code: int
    name: str
    sentence: str
    mean: float
    worst: float


METHODS = (
    Method(OWN, "own area", "From the area's own table alone: exact, but without what other areas say.", 0.0, 0.0),
    Method(MERGED, "merged", "The area and its only child are the same people, published twice: exact.", 0.0, 0.0),
    Method(
        GIBBS,
        "sampled",
        f"Up to {MOST_SAMPLED} children and their parent, or more where few counts are possible: areas are drawn whole, and "
        "their exact distributions averaged, with some help from messages.",
        0.017,
        0.11,
    ),
    Method(
        LOOPY,
        "messages",
        f"More than {MOST_SAMPLED} children and their parent, by messages between exact areas: an approximation.",
        0.018,
        0.12,
    ),
)
"""In the order of the codes. The errors are the largest of any size of family and base that was measured."""
