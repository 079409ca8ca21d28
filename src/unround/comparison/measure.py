"""The numbers by which a release is judged: how far off it is, measured and in closed form, what it gives away, and ε."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isnan, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unround.audits.claims import ClaimKind
from unround.comparison.attack import AttackResult
from unround.comparison.material import Material
from unround.mechanisms import HIDDEN, Exact, Gaussian, Laplace, Mechanism, Nearest, Rounding, Transition, Unpublished
from unround.mechanisms.base import WIDEST, IntArray
from unround.prior.exposure import Hierarchy
from unround.protection.table import ProtectionScore

FARTHEST = 20  # signed distances beyond this one are counted together, in the table of distances
SMALL = (1, 2)  # counts of so few people are what rounding is there to hide
LARGE = 10  # above this it matters no longer how near 0 a count is; the paper looks at such counts only
FEW = 3  # A feasibility interval of so few values leaves little to guess
WITHIN = 4  # how near the paper wants published counts to be


@dataclass
class Measures:
    """One release after the other: every number, and the distances."""

    rows: list[dict[str, float]] = field(default_factory=list)
    away: NDArray[np.float64] = field(default_factory=lambda: np.zeros(2 * FARTHEST + 1))

    def add(self, release: tuple[dict[str, float], NDArray[np.float64]]) -> None:
        """Take in a release."""
        self.rows.append(release[0])
        self.away += release[1]

    def again(self) -> None:
        """Take in the last release once more; the shares of distances stay what they are."""
        self.rows.append(self.rows[-1])

    def means(self) -> dict[str, float | None]:
        """Return the mean of every number over the releases; None where there is no such number."""
        means = {name: float(np.mean([row[name] for row in self.rows])) for name in self.rows[0]}
        return {name: None if isnan(mean) else mean for name, mean in means.items()}

    def standard_errors(self) -> dict[str, float | None]:
        """Return by how much these means would differ, typically, over other seeds; None after one release."""
        many = len(self.rows)
        if many < 2:
            return dict.fromkeys(self.rows[0])
        spread = {name: float(np.std([row[name] for row in self.rows], ddof=1)) for name in self.rows[0]}
        return {name: None if isnan(deviation) else deviation / many**0.5 for name, deviation in spread.items()}

    def distances(self) -> dict[str, float]:
        """Return how often published counts lay so far from the truth; the ends take all beyond."""
        shares = self.away / max(self.away.sum(), 1.0)
        return {str(d): float(p) for d, p in zip(range(-FARTHEST, FARTHEST + 1), shares, strict=True) if p > 0}


def measure(material: Material, published: IntArray, inferred: AttackResult) -> tuple[dict[str, float], NDArray[np.float64]]:
    """Judge one release by the truth; return the numbers, and how often each signed distance occurred."""
    errors, risks = material.judged()
    true = material.true.astype(np.int64)
    shown = added_up(published, material)
    off, there = (shown - true)[:, errors], (shown != HIDDEN)[:, errors]
    off = off[there]
    numbers = {
        **_errors(off),
        **_large(off, true[:, errors][there]),
        "hidden": 1 - float(there.mean()),
        "negative": float((shown[:, errors][there] < 0).mean()),
        **_clamped(shown, true, errors, there),
        **_additivity(published, material),
        **_risks(inferred, true, risks),
    }
    away = np.bincount(np.clip(off, -FARTHEST, FARTHEST) + FARTHEST, minlength=2 * FARTHEST + 1)
    return numbers, away.astype(np.float64)


def _errors(off: IntArray) -> dict[str, float]:
    """Return how far published counts lie from the truth."""
    if not off.size:
        return dict.fromkeys(("mean_error", "rmse", "within_4", "bias"), float("nan"))
    away = np.abs(off)
    return {
        "mean_error": float(away.mean()),
        "rmse": float(np.sqrt((off.astype(np.float64) ** 2).mean())),
        "within_4": float((away <= WITHIN).mean()),
        "bias": float(off.mean()),
    }


def _large(off: IntArray, true: IntArray) -> dict[str, float]:
    """Return the same of counts that are not small: where 0 stays 0, many zeros make the mean error smaller."""
    errors = _errors(off[true > LARGE])
    return {f"mean_error_over_{LARGE}": errors["mean_error"], f"rmse_over_{LARGE}": errors["rmse"]}


def _clamped(shown: IntArray, true: IntArray, errors: NDArray[np.bool_], there: NDArray[np.bool_]) -> dict[str, float]:
    """Return the errors if negative counts are published as 0."""
    off = (np.maximum(shown, 0) - true)[:, errors][there]
    zero = (true[:, errors] == 0) & there
    bias = (np.maximum(shown, 0) - true)[:, errors][zero]
    clamped = {f"clamped_{name}": value for name, value in _errors(off).items()}
    return clamped | {"clamped_bias_of_zeros": float(bias.mean()) if bias.size else 0.0}


def added_up(published: IntArray, material: Material) -> IntArray:
    """Fill in totals that are not published by the sums of their published parts, as a reader would."""
    shown = published.copy()
    waiting = [(total, list(parts)) for total, parts in material.equations]
    while True:
        left = []
        for total, parts in waiting:
            missing = shown[:, total] == HIDDEN
            ready = missing & (shown[:, parts] != HIDDEN).all(axis=1)
            shown[ready, total] = shown[ready][:, parts].sum(axis=1)
            if (missing & ~ready).any():
                left.append((total, parts))
        if len(left) == len(waiting) or not left:
            return shown
        waiting = left


def _additivity(published: IntArray, material: Material) -> dict[str, float]:
    """Return how many published sums do not add up, and by how much sums are off on average."""
    score = ProtectionScore()
    score.add(published, material.true.astype(np.int64), material.equations)
    return {"sums_broken": score.broken_share or 0.0, "sums_off_by": score.mean_gap or 0.0}


def _risks(inferred: AttackResult, true: IntArray, risks: NDArray[np.bool_]) -> dict[str, float]:
    """Return what can be inferred, and how much of it is right."""
    claims = inferred.claims
    proved, likely = claims.of_kind(ClaimKind.PROVED) & risks, claims.of_kind(ClaimKind.LIKELY) & risks
    right = claims.values == true
    claimed = (proved | likely) & right
    small = np.isin(true, SMALL)
    posterior = inferred.posterior
    guess = np.abs(posterior.mode - true)[:, risks]
    mean = (posterior.mean - true)[:, risks]
    return {
        "proved": float(proved.sum()),
        "proved_wrong": float((proved & ~right).sum()),
        "likely": float(likely.sum()),
        "likely_right": float((likely & right).sum()),
        "likely_stated": float(posterior.probability[likely].sum()),
        "truth_probability": float(inferred.truth[:, risks].mean()),
        "truth_probability_alone": float(inferred.alone[:, risks].mean()),
        "guessed": float((guess == 0).mean()),
        "guess_error": float(guess.mean()),
        "estimate_rmse": float(np.sqrt((mean**2).mean())),
        "small_disclosed": float((claimed & small).sum()),
        "small": float((small & risks).sum()),
        "not_exact": float((posterior.cut > 0).sum()),
        **_intervals(inferred, risks),
    }


def _intervals(inferred: AttackResult, risks: NDArray[np.bool_]) -> dict[str, float]:
    """Return how many values feasibility intervals hold, and how many hold few; NaN where something has no bounds."""
    if inferred.left is None or inferred.left_alone is None or inferred.left_alone.max() > WIDEST:
        return dict.fromkeys(("interval", "interval_alone", f"interval_up_to_{FEW}"), float("nan"))
    left = inferred.left[:, risks]
    return {
        "interval": float(left.mean()),
        "interval_alone": float(inferred.left_alone[:, risks].mean()),
        f"interval_up_to_{FEW}": float((left <= FEW).mean()),
    }


@dataclass(frozen=True, slots=True)
class Distances:
    """Probabilities by signed distance.

    The remainder of the true count is taken as uniform, and the count as large.
    """

    shares: dict[int, float]

    @classmethod
    def of(cls, mechanism: Mechanism, cycle: int, reach: int) -> Distances:
        """Average over `cycle` true counts in a row, out to `reach`."""
        away = np.arange(-reach, reach + 1)
        start = 1000 * (reach + cycle)
        chances = sum(mechanism.likelihood(true + away, np.asarray(true)) for true in range(start, start + cycle))
        return cls({int(d): float(p) for d, p in zip(away, np.asarray(chances) / cycle, strict=True) if p > 0})

    def within(self, reach: int) -> float:
        """Return the probability of being at most so far away."""
        return sum(p for d, p in self.shares.items() if abs(d) <= reach)

    def mean(self, reach: int | None = None) -> float:
        """Return the mean distance, or what of it comes from distances up to `reach`."""
        return sum(abs(d) * p for d, p in self.shares.items() if reach is None or abs(d) <= reach)

    def variance(self) -> float:
        """Return the mean squared distance."""
        return sum(d * d * p for d, p in self.shares.items())

    def rmse(self) -> float:
        """Return its root."""
        return sqrt(self.variance())


def distances(mechanism: Mechanism) -> Distances | None:
    """Return the distances of a mechanism under which they do not depend on how large a count is; else None.

    >>> from unround.mechanisms import Laplace, Rounding
    >>> [f"{distances(how).mean():.4f}" for how in (Rounding(5), Laplace(1.45))]
    ['1.6000', '1.3411']
    """
    if isinstance(mechanism, Laplace | Gaussian):
        return Distances.of(mechanism, 1, mechanism.reach)
    if isinstance(mechanism, Rounding):
        return Distances.of(mechanism, mechanism.base, mechanism.base)
    if isinstance(mechanism, Nearest):  # halves may go to the even multiple
        return Distances.of(mechanism, 2 * mechanism.base, mechanism.base)
    return None


def mean_change(how: Mechanism, material: Material) -> float | None:
    """Return how far a table of transition probabilities moves these true counts on average over all draws; else None."""
    if not isinstance(how, Transition):
        return None
    by_row = np.array([sum(float(p) * abs(v) for v, p in row) for row in how.rows])
    return float(by_row[how.row_of(material.true[:, material.judged()[0]].astype(np.int64))].mean())


DELTA = 1e-10  # the δ at which the cost of Gaussian noise is told as an ε


@dataclass(frozen=True, slots=True)
class Cost:
    """The privacy cost of a whole release."""

    cells: int  # noisy counts that one person is in, at most, over all levels of areas
    epsilon: float | None  # pure ε for Laplace noise; for Gaussian noise that which follows from ρ at `DELTA`
    rho: float | None  # for Gaussian noise, the ρ of zero-concentrated differential privacy
    note: str  # what kind of number that is, or why there is none

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"epsilon": self.epsilon, "rho": self.rho, "cells_of_a_person": self.cells, "epsilon_note": self.note}


def cells_of_a_person(material: Material, mechanisms: tuple[Mechanism, ...]) -> int:
    """Return how many counts of one area a person is in, at most, that are published and not exact.

    A person is in one part of every partition; where counts are split by sex, in a total and in one of its parts.
    """
    noisy = [not isinstance(how, Exact | Unpublished) for how in mechanisms]
    hierarchy = Hierarchy.of(material.model(material.mechanisms(mechanisms[-1])).compiled)
    split = {total: parts for total, *parts in hierarchy.pairs}
    below: dict[int, list[tuple[int, ...]]] = {}
    inner = {part for parts in split.values() for part in parts}
    parts_of_something: set[int] = set()
    for partition in hierarchy.sums:
        below.setdefault(partition.total, []).append(partition.parts)
        parts_of_something.update(partition.parts)

    seen: set[int] = set()

    def touched(cell: int) -> int:
        noisy_cells = noisy[cell] + max((noisy[part] for part in split.get(cell, [])), default=0)
        for parts in below.get(cell, []):
            if len(parts) == 1:
                # The same people under another name: they count once, wherever they come first.
                if parts[0] in seen:
                    continue
                seen.add(parts[0])
            noisy_cells += max(touched(part) for part in parts)
        return noisy_cells

    tops = [c for c in range(len(mechanisms)) if c not in inner and c not in parts_of_something]
    return sum(touched(top) for top in tops)


def cost(material: Material, how: Mechanism, mechanisms: tuple[Mechanism, ...]) -> Cost:
    """Return what a release costs."""
    cells = material.levels * cells_of_a_person(material, mechanisms)
    exact = any(isinstance(each, Exact) for each in mechanisms)
    among = (
        ". Exact counts are not included: among tables with the same exact counts, changing one person's answers costs "
        "up to twice as much"
        if exact
        else ""
    )
    in_each = cells // material.levels
    inside = f" ({in_each} in each of {material.levels} nested areas)" if material.levels > 1 else ""
    person = f"one person changes {cells} counts by 1{inside}"
    if isinstance(how, Laplace):
        return Cost(cells, cells / how.t, None, f"pure: {person}, at a cost of 1/{how.t:g} each{among}")
    if isinstance(how, Gaussian):
        rho = cells / (2 * how.sigma**2)
        epsilon = rho + 2 * sqrt(rho * log(1 / DELTA))
        said = f"zCDP with ρ = {rho:.3g}, converted to ε at δ = {DELTA:g}: {person}{among}"
        return Cost(cells, epsilon, rho, said)
    return Cost(
        cells,
        None,
        None,
        f"none: under {how.name}, some published counts are possible for some true counts and impossible for others",
    )
