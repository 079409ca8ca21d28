"""What a verdict rests on, and what it does to an audit, in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unround.checks.dependence import shared, shares_of
from unround.checks.family import DEPARTS, FITS, LEAST_SUMS, FamilyHistogram
from unround.checks.sums import Tested
from unround.mechanisms import Exact, Mechanism, Rounding, Sample


def consequence(
    comparison: FamilyHistogram,
    sums: Sequence[Tested],
    mechanisms: Sequence[Mechanism | None],
    impossible: int,
    complete: int,
    otherwise: str,
) -> str:
    """Return the note of a family of sums."""
    said = []
    if impossible:
        said.append(f"No true counts fit in {impossible:,} of {complete:,} sums; these are left out of the comparison.")
    least = min(one.least for one in sums)
    if otherwise == FITS:
        said.append(_fitting(comparison))
    elif otherwise == DEPARTS:
        said += [_departing(comparison), _meaning(comparison, sums, mechanisms)]
    else:
        said.append(f"Sums with a total of {least} or more: {comparison.sums:,}; {LEAST_SUMS} are needed for a comparison.")
    return " ".join(said)


def _fitting(comparison: FamilyHistogram) -> str:
    close = f"The shares differ by {comparison.distance:.1%} in all (p = {comparison.p_value:.2g})"
    if comparison.p_value < 1e-3:
        return f"{close}: more than chance, but so little that the expectation itself may be as far off."
    return f"{close}: as the declared mechanism implies."


def _departing(comparison: FamilyHistogram) -> str:
    said = f"The shares differ by {comparison.distance:.1%} in all (p = {comparison.p_value:.1g})"
    ratio = comparison.tail_ratio
    if ratio is None:
        wide, should = (_spread(of) for of in (comparison.observed, comparison.expected))
        return f"{said}; the residuals' spread is {wide:.2f}, and should be {should:.2f}."
    return f"{said}; the largest residuals come {ratio:.2f} times as often as they should ({comparison.tail:,} sums)."


def _spread(folded: np.ndarray) -> float:
    return float((folded @ np.arange(len(folded)) ** 2 / max(folded.sum(), 1e-300)) ** 0.5)


def _meaning(comparison: FamilyHistogram, sums: Sequence[Tested], mechanisms: Sequence[Mechanism | None]) -> str:
    """Say what a departure does to the probabilities of an audit."""
    if not any(one.used for one in sums):
        return "An audit does not use these sums."
    kinds = {(mechanisms[one.total], *(mechanisms[part] for part in one.parts)) for one in sums}
    ratio = comparison.tail_ratio
    if all(isinstance(kind[0], Exact) for kind in kinds) and ratio is not None and ratio > 1:
        wrong = 1 - 1 / ratio
        return (
            f"If the total is not always exact, up to {wrong:.0%} of the claims that rest on the largest residuals are "
            "wrong."
        )
    roundings = {how for kind in kinds for how in kind}
    if all(len(kind) == 3 for kind in kinds) and len(roundings) == 1:
        (how,) = roundings
        if isinstance(how, Rounding | Sample):
            return _sharing(comparison, how.base)
    return "Proofs do not rest on this; probabilities assume independent rounding, and may be off."


def _sharing(comparison: FamilyHistogram, base: int) -> str:
    """Say what it would mean if total and two parts shared random numbers."""
    # What small counts do is in both histograms: only the difference is laid on that of large ones.
    seen = comparison.observed / comparison.sums - comparison.expected / comparison.expected.sum()
    fit = shared(np.clip(shares_of(base) + seen[[0, base, 2 * base]], 0, None), base)
    if not fit.explains:
        return (
            "Shared random numbers of total and parts do not explain it; by how much probabilities that assume independent "
            "rounding are off is not known."
        )
    return (
        f"Proofs do not rest on this. It is as if the parts shared their random number in {fit.parts:.0%} of the sums, and "
        f"the total with a part in {fit.total:.0%}; then probabilities that assume independent rounding are off by up to "
        f"{100 * fit.off:.0f} points. Other dependences may fit as well."
    )
