"""Counts that were perturbed, not rounded: every remainder occurs, as if they were exact, but sums miss by a few.

Noise on every count adds up in a residual: total − n parts has the variance of n + 1 of them, whatever the counts are. So
the residuals of all sums together tell how strong the noise is, and their shape tells which of the usual kinds fits best. A
sum that does not hold looks otherwise: its residuals do not average zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unround.mechanisms import Exact, Gaussian, Laplace, Mechanism, Within
from unround.release import Column
from unround.structure.evidence import MechanismEvidence
from unround.structure.residuals import FARTHEST, SumTally

Floats = NDArray[np.float64]

_AREAS = 30
"""A sum is looked at from so many areas."""
_OFTEN = 0.2
"""Counts that are exact may have slips; noise makes residuals other than 0 in a larger share of areas than this."""
_FAR = 0.01
"""And hardly any as far out as the histogram of residuals goes."""
_ERRORS = 5.0
"""A mean residual of more standard errors than this is not noise, unless it is slight: noise that is cut at 0 has a bias."""
_SLIGHT = 0.25
"""In standard deviations."""
_LARGE = 4.0
"""Totals average at least so many standard deviations of their residuals; smaller ones fit anything."""
_ALIKE = 2.0
"""Sums belong to one kind of noise if its variance, a count, differs by no more than this factor from what is typical."""
_SCALES = 41
_LARGE_COUNT = 1 << 20
"""A count far from 0, to look at the noise itself."""


@dataclass(frozen=True, slots=True)
class Perturbation:
    """Noise that was found.

    - `mechanism`: The kind that fits best, with its strength.
    - `spread`: The standard deviation of the noise on one count, from the residuals.
    - `columns`: The columns of the tables in which it was found, of those that looked exact.
    - `why`: The evidence, in words.
    """

    mechanism: Mechanism
    spread: float
    columns: frozenset[int]
    why: str


def find_perturbation(
    results: Sequence[SumTally], columns: Sequence[Column], mechanisms: Sequence[Mechanism | None], negative: bool
) -> Perturbation | None:
    """Look for noise in the sums of counts that were taken for exact; None where there is no sign of it."""
    loose = {at for at, how in enumerate(mechanisms) if isinstance(how, Exact) and columns[at].mechanism is None}
    noisy = [(one, cells) for one in results if (cells := _noisy_cells(one, loose))]
    if not noisy:
        return None
    variances = np.array([one.all_spread**2 / len(cells) for one, cells in noisy])
    typical = float(np.median(variances))
    alike = [pair for pair, v in zip(noisy, variances, strict=True) if typical / _ALIKE <= v <= typical * _ALIKE]
    tested = [one for one in results if len(one.proposal.parts) > 1 and loose >= {one.proposal.total, *one.proposal.parts}]
    if 2 * len(alike) < len(tested):  # most sums do not look like that: they do not hold
        return None
    weights = np.array([one.areas for one, _ in alike], dtype=np.float64)
    spread = float(np.average([one.all_spread**2 / len(cells) for one, cells in alike], weights=weights) ** 0.5)
    how = _best(alike, spread, negative)
    tables = {columns[cell].block for _, cells in alike for cell in cells}
    members = frozenset(at for at in loose if columns[at].block in tables)
    off = sum(one.areas - one.zeros for one, _ in alike) / weights.sum()
    why = (
        f"every remainder occurs, as in exact counts, but {len(alike):,} of {len(tested):,} sums miss by a few in {off:.0%} "
        "of the areas, as often above as below: perturbed, not rounded. The noise on a count has a standard deviation of "
        f"{spread:.2f}, and {how.name} fits best; if the agency does not say otherwise, give --mechanism {how.name}"
    )
    return Perturbation(how, spread, members, why)


def without_noisy(
    noise: Perturbation, mechanisms: Sequence[Mechanism | None], how: Sequence[MechanismEvidence]
) -> tuple[list[Mechanism | None], list[MechanismEvidence]]:
    """Return mechanisms and evidence in which perturbed columns are unknown, until somebody declares them."""
    left = [replace(one, columns=tuple(at for at in one.columns if at not in noise.columns)) for one in how]
    tables = {one.block: [at for at in one.columns if at in noise.columns] for one in how if noise.columns & {*one.columns}}
    evidence = [
        MechanismEvidence(block, tuple(members), None, noise.why, suggested=noise.mechanism)
        for block, members in tables.items()
    ]
    kinds = [None if at in noise.columns else kind for at, kind in enumerate(mechanisms)]
    return kinds, [*(one for one in left if one.columns), *evidence]


def _noisy_cells(one: SumTally, loose: set[int]) -> list[int]:
    """Return the cells of a sum that may have noise, if its residuals look like noise; else none."""
    cells = [*(one.proposal.against or (one.proposal.total,)), *one.proposal.parts]
    own = [cell for cell in cells if cell in loose]
    spread = one.all_spread
    if len(one.proposal.parts) < 2 or not set(one.proposal.parts) <= loose or one.areas < _AREAS or not spread:
        return []
    far = sum(number for residual, number in one.residuals.items() if abs(residual) >= FARTHEST)
    error = spread / one.areas**0.5
    fine = (
        one.areas - one.zeros > _OFTEN * one.areas
        and far <= _FAR * one.areas
        and abs(one.all_mean) <= max(_ERRORS * error, _SLIGHT * spread)
        and one.mean_total >= _LARGE * spread
    )
    return own if fine else []


def _best(alike: Sequence[tuple[SumTally, list[int]]], spread: float, negative: bool) -> Mechanism:
    """Return the kind of noise, and its scale, under which the residuals are most likely."""
    candidates: list[Mechanism] = []
    for factor in np.linspace(0.8, 1.2, _SCALES):
        scale = max(0.01, round(spread * factor, 2))
        # The discrete Laplace of scale t has a variance of nearly 2t².
        candidates += [Laplace(max(0.01, round(scale / 2**0.5, 2)), not negative), Gaussian(scale, not negative)]
    steps = round(((12 * spread**2 + 1) ** 0.5 - 1) / 2)
    candidates += [Within(k) for k in range(max(1, steps - 1), steps + 2)]
    return max(dict.fromkeys(candidates), key=lambda how: _log_likelihood(how, alike))


def _log_likelihood(how: Mechanism, alike: Sequence[tuple[SumTally, list[int]]]) -> float:
    one = _noise(how)
    found, known = 0.0, dict[int, Floats]()
    for tally, cells in alike:
        number = len(cells)
        if number not in known:
            known[number] = _added_up(one, number)
        shares = known[number]
        for residual, areas in tally.residuals.items():
            found += areas * float(np.log(max(shares[residual + FARTHEST], 1e-12)))
    return found


def _noise(how: Mechanism) -> Floats:
    """Return the probability of every change from −`FARTHEST` to `FARTHEST`."""
    changes = np.arange(-FARTHEST, FARTHEST + 1)
    true = np.full(changes.shape, _LARGE_COUNT)
    return np.asarray(how.likelihood(true + changes, true), dtype=np.float64)


def _added_up(one: Floats, number: int) -> Floats:
    """Return the same for several changes added up; those beyond count at the edges."""
    total = one
    for _ in range(number - 1):
        whole = np.convolve(total, one)
        total = whole[FARTHEST:-FARTHEST].copy()
        total[0] += whole[:FARTHEST].sum()
        total[-1] += whole[-FARTHEST:].sum()
    return total
