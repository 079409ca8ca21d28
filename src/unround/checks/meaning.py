"""What a verdict is based on, and how it affects an audit, in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unround.checks.families import DEPARTS, FITS, KEYED, LEAST_SUMS, UNKNOWN, FamilyHistogram, TableRounding
from unround.checks.sums import TestedSum
from unround.mechanisms import Exact, Mechanism
from unround.structure.evidence import INFERRED


def consequence(
    comparison: FamilyHistogram,
    sums: Sequence[TestedSum],
    mechanisms: Sequence[Mechanism | None],
    basis: Sequence[str],
    impossible: tuple[int, int],
    otherwise: str,
    rounding: TableRounding | None,
) -> str:
    """Return the note of a family of sums; `impossible` is in how many sums no true counts fit, and of how many."""
    said = []
    if impossible[0]:
        said.append(f"No true counts fit {impossible[0]:,} of {impossible[1]:,} sums; these are left out of the comparison.")
    least = min(one.least for one in sums)
    if otherwise == FITS:
        said.append(_fitting(comparison, basis))
    elif otherwise == DEPARTS:
        said += [_departing(comparison), _meaning(comparison, sums, mechanisms, rounding)]
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


def _meaning(
    comparison: FamilyHistogram,
    sums: Sequence[TestedSum],
    mechanisms: Sequence[Mechanism | None],
    rounding: TableRounding | None,
) -> str:
    """Say how a departure affects the probabilities of an audit."""
    if not any(one.used for one in sums):
        return "An audit does not use these sums."
    ratio = comparison.tail_ratio
    if all(isinstance(mechanisms[one.total], Exact) for one in sums) and ratio is not None and ratio > 1:
        wrong = 1 - 1 / ratio
        return f"If the total is not always exact, up to {wrong:.0%} of the claims based on the largest residuals are wrong."
    if rounding is not None and rounding.model == KEYED:
        return f"{keys_in_words(rounding)} Proofs are not affected, and the probabilities of an audit account for it."
    doubt = "Proofs are not affected; probabilities assume independent rounding and may be inaccurate."
    if rounding is not None and rounding.model == UNKNOWN:
        return f"What the random numbers do is not known: {rounding.why}. {doubt}"
    return doubt


def keys_in_words(rounding: TableRounding) -> str:
    """Say what keys do in a table."""
    said = "Keys explain it: the random number of a total is the sum of its parts'"
    if rounding.constant is not None and rounding.error is not None:
        said += f" and a constant of {rounding.constant:.3f} ± {rounding.error:.3f}, around a circle of length 1"
    fit = "" if rounding.p_value is None else f" (p = {rounding.p_value:.2g})"
    kind = {True: " What was rounded were whole numbers.", False: " What was rounded were weighted estimates."}
    return f"{said}{fit}.{kind.get(rounding.whole, '') if rounding.whole is not None else ''}"
