"""By which method an area's probabilities were obtained, and how exact each is, as measured."""

from __future__ import annotations

from dataclasses import dataclass

from unround.linked.families import GIBBS, LOOPY, MERGED, MOST_SAMPLED, OWN


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
