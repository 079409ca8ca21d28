"""Random rounding in which a total, men and women sometimes share random numbers: for testing audits that allow for it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unround.errors import InputError
from unround.mechanisms.base import IntArray
from unround.mechanisms.rounding import TwoWay

PATTERNS = ("total-men", "total-women", "men-women")
"""Which counts share a random number: the total uses that of the men, or that of the women, or the women use the men's."""

_USES = ((0, 1), (0, 2), (2, 1))
"""For each pattern, whose random number is replaced by whose: places in (total, men, women)."""


@dataclass(frozen=True, slots=True)
class SharedDraws:
    """The proportions of counts in which total, men and women share random numbers.

    Parameters
    ----------
    shares : tuple of float
        One per pattern, as in `PATTERNS`; in all other counts each of the three has its own.

    Examples
    --------
    >>> SharedDraws.parse("total-men:0.3, men-women:0.2").name
    'total-men:0.3,men-women:0.2'
    """

    shares: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        if not all(0 <= share <= 1 for share in self.shares) or sum(self.shares) > 1 + 1e-9:
            raise InputError(
                "the proportions of shared random numbers must be from 0 to 1, and at most 1 together; not "
                f"{', '.join(map(str, self.shares))}."
            )

    @classmethod
    def parse(cls, text: str) -> SharedDraws:
        """Read what `name` writes.

        Raises
        ------
        InputError
            If a pattern is unknown or given twice, or a proportion is not a number from 0 to 1.
        """
        found: dict[str, float] = {}
        for piece in filter(None, (one.strip() for one in text.split(","))):
            pattern, _, share = (part.strip() for part in piece.partition(":"))
            if pattern not in PATTERNS or pattern in found:
                why = "is given twice" if pattern in found else "is not a pattern of sharing"
                raise InputError(f"{pattern!r} {why}: choose from {_listed()}, as in {PATTERNS[0]}:0.3,{PATTERNS[2]}:0.2.")
            try:
                found[pattern] = float(share)
            except ValueError:
                raise InputError(
                    f"the proportion of {pattern} must be a number from 0 to 1, such as {pattern}:0.3; not {share!r}."
                ) from None
        return cls((found.get(PATTERNS[0], 0.0), found.get(PATTERNS[1], 0.0), found.get(PATTERNS[2], 0.0)))

    @property
    def name(self) -> str:
        """Its name on the command line; "" where nothing is shared."""
        return ",".join(f"{pattern}:{share:g}" for pattern, share in zip(PATTERNS, self.shares, strict=True) if share)

    def publish(self, how: TwoWay, true: IntArray, rng: np.random.Generator) -> IntArray:
        """Round counts of total, men and women (… × 3) with random numbers that are sometimes shared."""
        draws = how.draws(true.shape, rng)
        which = np.searchsorted(np.cumsum(self.shares), rng.random(true.shape[:-1]), side="right")
        for pattern, (to, of) in enumerate(_USES):
            here = which == pattern
            draws[here, to] = draws[here, of]
        return how.publish_with(true, draws)


def _listed() -> str:
    return f"{', '.join(PATTERNS[:-1])} and {PATTERNS[-1]}"
