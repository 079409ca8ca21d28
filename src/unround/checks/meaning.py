"""What a verdict is based on, and how it affects an audit, in words.

How shared random numbers affect residuals and probabilities can be listed for two parts and a rounded total: the remainders
of the parts, and the random number of each of the three counts, of which only the step of 1/b matters that it falls into. A
pattern says which of the three share theirs. How often each residual occurs does not tell more than how much is shared, if
it is shared in so simple a way; given a residual, other ways of depending on each other could do anything to the
probabilities, or nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from unround.checks.families import DEPARTS, FITS, LEAST_SUMS, FamilyHistogram
from unround.checks.sums import TestedSum
from unround.mechanisms import Exact, Mechanism, Rounding, Sample
from unround.structure.evidence import INFERRED


def consequence(
    comparison: FamilyHistogram,
    sums: Sequence[TestedSum],
    mechanisms: Sequence[Mechanism | None],
    basis: Sequence[str],
    impossible: int,
    complete: int,
    otherwise: str,
) -> str:
    """Return the note of a family of sums."""
    said = []
    if impossible:
        said.append(f"No true counts fit {impossible:,} of {complete:,} sums; these are left out of the comparison.")
    least = min(one.least for one in sums)
    if otherwise == FITS:
        said.append(_fitting(comparison, basis))
    elif otherwise == DEPARTS:
        said += [_departing(comparison), _meaning(comparison, sums, mechanisms)]
    else:
        said.append(f"Only {comparison.sums:,} sums have a total of {least} or more; a comparison needs {LEAST_SUMS}.")
    return " ".join(said)


def _fitting(comparison: FamilyHistogram, basis: Sequence[str]) -> str:
    close = f"The shares differ by {comparison.distance:.1%} in total (p = {comparison.p_value:.2g})"
    if comparison.p_value < 1e-3:
        return f"{close}: more than chance, but so little that the expectation itself may be as inaccurate."
    # What nobody declared was inferred from the same counts: they can fit it, but do not confirm a declaration.
    return f"{close}, as expected under the {'inferred' if INFERRED in basis else 'declared'} mechanism."


def _departing(comparison: FamilyHistogram) -> str:
    said = f"The shares differ by {comparison.distance:.1%} in total (p = {comparison.p_value:.1g})"
    ratio = comparison.tail_ratio
    if ratio is None:
        wide, should = (_spread(of) for of in (comparison.observed, comparison.expected))
        return f"{said}; the standard deviation of the residuals is {wide:.2f} and should be {should:.2f}."
    return f"{said}; the largest residuals occur {ratio:.2f} times as often as expected ({comparison.tail:,} sums)."


def _spread(folded: np.ndarray) -> float:
    return float((folded @ np.arange(len(folded)) ** 2 / max(folded.sum(), 1e-300)) ** 0.5)


def _meaning(comparison: FamilyHistogram, sums: Sequence[TestedSum], mechanisms: Sequence[Mechanism | None]) -> str:
    """Say how a departure affects the probabilities of an audit."""
    if not any(one.used for one in sums):
        return "An audit does not use these sums."
    kinds = {(mechanisms[one.total], *(mechanisms[part] for part in one.parts)) for one in sums}
    ratio = comparison.tail_ratio
    if all(isinstance(kind[0], Exact) for kind in kinds) and ratio is not None and ratio > 1:
        wrong = 1 - 1 / ratio
        return f"If the total is not always exact, up to {wrong:.0%} of the claims based on the largest residuals are wrong."
    roundings = {how for kind in kinds for how in kind}
    if all(len(kind) == 3 for kind in kinds) and len(roundings) == 1:
        (how,) = roundings
        if isinstance(how, Rounding | Sample):
            return _sharing(comparison, how.base)
    return "Proofs are not affected; probabilities assume independent rounding and may be inaccurate."


def _sharing(comparison: FamilyHistogram, base: int) -> str:
    """Say what it would mean if total and two parts shared random numbers."""
    # Small counts affect both histograms alike: only the difference is added to the histogram of large counts.
    seen = comparison.observed / comparison.sums - comparison.expected / comparison.expected.sum()
    fit = shared(np.clip(shares_of(base) + seen[[0, base, 2 * base]], 0, None), base)
    if not fit.explains:
        return (
            "Random numbers shared by total and parts do not explain it; how inaccurate probabilities that assume "
            "independent rounding are is not known."
        )
    return (
        f"Proofs are not affected. It is as if the parts shared a random number in {fit.parts:.0%} of the sums, and the "
        f"total and a part in {fit.total:.0%}; probabilities that assume independent rounding would then be off by up to "
        f"{100 * fit.off:.0f} points. Other kinds of dependence may fit as well."
    )


Floats = NDArray[np.float64]

NONE, PARTS = (0, 1, 2), (0, 1, 1)
WITH_TOTAL = ((0, 0, 1), (0, 1, 0), (0, 0, 0))
"""Which random number the total, the first and the second part use: each its own; the parts the same; the total the same as
one part or as both. The latter three give the same residuals, and different probabilities."""

COMMON = 0.001
"""Residuals rarer than this are left out when probabilities are compared."""

CLOSE = 0.006
"""A mixture of patterns explains shares that it approximates within this distance (total variation)."""


@lru_cache(maxsize=64)
def _outcomes(base: int, pattern: tuple[int, int, int]) -> Floats:
    """Return the chances of all outcomes: residual in steps from −2 to 2 × count × error of that count."""
    found = np.zeros((5, 3, 2 * base - 1))
    different = max(pattern) + 1
    drawn = np.array(list(product(range(base), repeat=different)))[:, list(pattern)]
    for first, second in product(range(base), repeat=2):
        rests = np.array([(first + second) % base, first, second])
        errors = base * (drawn < rests) - rests
        residual = (errors[:, 0] - errors[:, 1] - errors[:, 2]) // base + 2
        for who in range(3):
            np.add.at(found, (residual, who, errors[:, who] + base - 1), 1 / base**2 / len(drawn))
    return found


def shares_of(base: int, pattern: tuple[int, int, int] = NONE) -> Floats:
    """Return the shares of |r| = 0, b and 2b of large counts.

    Examples
    --------
    >>> [round(float(share), 4) for share in shares_of(5)]
    [0.5603, 0.4262, 0.0134]
    """
    signed = _outcomes(base, pattern)[:, 0].sum(1)
    return np.array([signed[2], signed[1] + signed[3], signed[0] + signed[4]])


@dataclass(frozen=True, slots=True)
class SharedNumbers:
    """The amount of simple sharing that comes closest to what was observed.

    Parameters
    ----------
    parts, total : float
        In which share of the sums the two parts share their random number; and the total one part's, or both parts'.
    left : float
        How far that is from what was observed (total variation).
    off : float
        By how much the probabilities of an audit are then off, at most: of any error of any of the three counts, given
        any residual that is not rare.
    """

    parts: float
    total: float
    left: float
    off: float

    @property
    def explains(self) -> bool:
        """Whether simple sharing explains the residuals."""
        return self.left <= CLOSE


def shared(folded: Floats, base: int) -> SharedNumbers:
    """Fit to the shares of |r| = 0, b and 2b of large counts.

    Examples
    --------
    >>> fit = shared(0.7 * shares_of(5) + 0.3 * shares_of(5, PARTS), 5)
    >>> round(fit.parts, 3), fit.explains
    (0.3, True)
    """
    from scipy.optimize import nnls

    one = 1000.0  # the shares add up to 1
    shapes = np.column_stack([shares_of(base, pattern) for pattern in (NONE, PARTS, WITH_TOTAL[0])])
    weights, _ = nnls(np.vstack([shapes, np.full(3, one)]), np.append(folded, one))
    weights = weights / weights.sum()
    left = float(np.abs(shapes @ weights - folded).sum() / 2)
    alone = _outcomes(base, NONE)
    off = 0.0
    for pattern in WITH_TOTAL:
        mixed = sum(w * _outcomes(base, p) for w, p in zip(weights, (NONE, PARTS, pattern), strict=True))
        for residual in range(5):
            often, usual = mixed[residual, 0].sum(), alone[residual, 0].sum()
            if min(often, usual) >= COMMON:
                off = max(off, float(np.abs(mixed[residual] / often - alone[residual] / usual).max()))
    return SharedNumbers(float(weights[1]), float(weights[2]), left, off)
