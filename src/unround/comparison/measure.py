"""The numbers by which a release is judged: how far off it is, and what it gives away."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from unround.audits.claims import ClaimKind
from unround.comparison.attack import AttackResult
from unround.comparison.material import Material
from unround.mechanisms import HIDDEN
from unround.mechanisms.base import IntArray

FARTHEST = 20
"""Signed distances beyond this one are counted together, in the table of distances."""

SMALL = (1, 2)
"""Counts of so few people are what rounding is there to hide."""

LARGE = 10
"""Above this it matters no longer how near 0 a count is; the paper looks at such counts only."""

WITHIN = 4
"""How near the paper wants published counts to be."""


@dataclass
class Measures:
    """One release after the other: every number, and the distances."""

    rows: list[dict[str, float]] = field(default_factory=list)
    away: NDArray[np.float64] = field(default_factory=lambda: np.zeros(2 * FARTHEST + 1))

    def add(self, one: tuple[dict[str, float], NDArray[np.float64]]) -> None:
        """Take in a release."""
        self.rows.append(one[0])
        self.away += one[1]

    def again(self) -> None:
        """Take in the last release once more; the shares of distances stay what they are."""
        self.rows.append(self.rows[-1])

    def means(self) -> dict[str, float]:
        """Return the mean of every number over the releases."""
        return {name: float(np.mean([row[name] for row in self.rows])) for name in self.rows[0]}

    def standard_errors(self) -> dict[str, float | None]:
        """Return by how much these means would differ, typically, over other seeds; None after one release."""
        many = len(self.rows)
        if many < 2:
            return dict.fromkeys(self.rows[0])
        spread = {name: float(np.std([row[name] for row in self.rows], ddof=1)) for name in self.rows[0]}
        return {name: one / many**0.5 for name, one in spread.items()}

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
    told = {
        **_errors(off),
        **_large(off, true[:, errors][there]),
        "hidden": 1 - float(there.mean()),
        "negative": float((shown[:, errors][there] < 0).mean()),
        **_clamped(shown, true, errors, there),
        **_additivity(published, material),
        **_risks(inferred, true, risks),
    }
    away = np.bincount(np.clip(off, -FARTHEST, FARTHEST) + FARTHEST, minlength=2 * FARTHEST + 1)
    return told, away.astype(np.float64)


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
    told = _errors(off[true > LARGE])
    return {f"mean_error_over_{LARGE}": told["mean_error"], f"rmse_over_{LARGE}": told["rmse"]}


def _clamped(shown: IntArray, true: IntArray, errors: NDArray[np.bool_], there: NDArray[np.bool_]) -> dict[str, float]:
    """Return the errors if negative counts are published as 0."""
    off = (np.maximum(shown, 0) - true)[:, errors][there]
    zero = (true[:, errors] == 0) & there
    bias = (np.maximum(shown, 0) - true)[:, errors][zero]
    told = {f"clamped_{name}": value for name, value in _errors(off).items()}
    return told | {"clamped_bias_of_zeros": float(bias.mean()) if bias.size else 0.0}


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
    sums = off = broken = 0.0
    for total, parts in material.equations:
        cells = published[:, [total, *parts]]
        cells = cells[(cells != HIDDEN).all(axis=1)]
        residual = np.abs(cells[:, 0] - cells[:, 1:].sum(axis=1))
        sums += len(cells)
        broken += float((residual > 0).sum())
        off += float(residual.sum())
    return {
        "sums_broken": broken / sums if sums else 0.0,
        "sums_off_by": off / sums if sums else 0.0,
    }


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
    }
