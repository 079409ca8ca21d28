"""What a verdict is based on, and how it affects an audit, in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unround.checks.families import DEPARTS, FITS, LEAST_SUMS, FamilyHistogram
from unround.checks.shared_numbers import shared, shares_of
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
