"""Types of areas: within one, the counts of a table vary independently; between types, all of them differ together.

    x₁, x₂, … | type t  ~  Π Gₜⱼ(xⱼ)        P(t) = πₜ

A neighbourhood of towers has few mobile homes, and barracks hardly any children: counts beside each other tell of what
kind an area is, and so about each other. Types are found by EM on the published counts; how many there are is decided by how
well the counts of other areas are predicted, each from the rest of its area.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unround.mechanisms.base import FloatArray, IntArray

NUMBERS = (1, 2, 3, 4, 6, 9)
"""How many types are tried."""

STEPS = 25
"""Of EM."""

BORROWED = 15.0
"""Areas with the distribution of all areas that are added to those of every type."""

MOST_AREAS = 3000
"""More would not change types."""

FEWEST_AREAS = 90
"""With fewer there are no types."""

STARTS = 2
"""From so many random divisions of areas EM begins; the one that fits best is kept."""

LEAST = 1e-300


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """What was published of one count.

    - `row`: For every area its row of `likely`; -1 where nothing is known.
    - `likely`: How likely each rate leads to what was published, by row.
    - `rates`, `weights`: The rates, and their weights over all areas.
    """

    row: IntArray
    likely: FloatArray
    rates: FloatArray
    weights: FloatArray

    def logs(self, weights: FloatArray, areas: IntArray) -> FloatArray:
        """Return areas × types: how likely each type leads to what was published, in logarithms."""
        return known_logs(self.row[areas], np.log(self.likely @ weights + LEAST))

    def improved(self, weights: FloatArray, shares: FloatArray, areas: IntArray) -> FloatArray:
        """Return the weights after a step of EM, given how much every area is of each type."""
        row = self.row[areas]
        known = row >= 0
        times = [np.bincount(row[known], of_type[known], len(self.likely)) for of_type in shares.T]
        expected = self.likely @ weights + LEAST
        better = weights * (self.likely.T @ (np.stack(times, axis=1) / expected)) + BORROWED * self.weights[:, None]
        return np.asarray(better / better.sum(axis=0))


@dataclass(frozen=True, slots=True, eq=False)
class Types:
    """The types of areas of one table.

    - `common`: How common each is.
    - `weights`: For every leaf rates × types.
    """

    common: FloatArray
    weights: tuple[FloatArray, ...]


def known_logs(row: NDArray[np.integer], logs: FloatArray) -> FloatArray:
    """Return the rows of areas; zeros where nothing is known."""
    return np.where(row[:, None] >= 0, logs[row], 0.0)


def normalised(logs: FloatArray) -> FloatArray:
    """Return probabilities along the last axis, from their logarithms."""
    shares = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=-1, keepdims=True))


def by_others(common: FloatArray, logs: FloatArray) -> FloatArray:
    """Return leaves × areas × types: how likely an area is of each type by its counts other than this one."""
    return normalised(np.log(common) + logs.sum(axis=0) - logs)


def find_types(leaves: Sequence[Leaf], areas: int) -> Types:
    """Find the types of areas, as many as help to predict the published counts of other areas."""
    order = np.random.default_rng(20_261_118).permutation(areas)[:MOST_AREAS]
    if len(leaves) < 2 or areas < FEWEST_AREAS:
        return _fit(leaves, order, 1)
    fitted_to, judged_by = order[: 2 * len(order) // 3], order[2 * len(order) // 3 :]
    chosen, reached = 1, _score(leaves, _fit(leaves, fitted_to, 1), judged_by)
    for number in NUMBERS[1:]:
        score = _score(leaves, _fit(leaves, fitted_to, number), judged_by)
        gain = score - reached
        if gain.mean() > 2 * gain.std() / np.sqrt(len(gain)):
            chosen, reached = number, score
    return _fit(leaves, order, chosen)


def _score(leaves: Sequence[Leaf], types: Types, areas: IntArray) -> FloatArray:
    """Return for every area the log probability of its counts, each by the others."""
    logs = np.stack([leaf.logs(weights, areas) for leaf, weights in zip(leaves, types.weights, strict=True)])
    expected = (by_others(types.common, logs) * np.exp(logs)).sum(axis=2)
    return np.asarray(np.log(expected + LEAST).sum(axis=0))


def _fit(leaves: Sequence[Leaf], areas: IntArray, number: int) -> Types:
    """Fit so many types by EM."""
    if number == 1:
        return Types(np.ones(1), tuple(leaf.weights[:, None] for leaf in leaves))
    fits = []
    for start in range(STARTS):
        shares = _divided(leaves, areas, number, np.random.default_rng(start))
        weights = [np.repeat(leaf.weights[:, None], number, axis=1) for leaf in leaves]
        for step in range(STEPS + 2):
            weights = [leaf.improved(own, shares, areas) for leaf, own in zip(leaves, weights, strict=True)]
            if step >= 2:  # the first steps only make the types differ
                common = (shares.sum(axis=0) + 1) / (len(areas) + number)
                logs = sum(leaf.logs(own, areas) for leaf, own in zip(leaves, weights, strict=True)) + np.log(common)
                shares = normalised(logs)
        fits.append((float(np.logaddexp.reduce(logs, axis=1).sum()), Types(common, tuple(weights))))
    return max(fits, key=lambda fit: fit[0])[1]


def _divided(leaves: Sequence[Leaf], areas: IntArray, number: int, rng: np.random.Generator) -> FloatArray:
    """Divide areas by how their rates look (k-means); return areas × types."""
    columns = []
    for leaf in leaves:
        roots = (leaf.likely * leaf.weights) @ np.sqrt(leaf.rates) / (leaf.likely @ leaf.weights + LEAST)
        row = leaf.row[areas]
        column = np.where(row >= 0, roots[row], roots[row[row >= 0]].mean() if (row >= 0).any() else 0.0)
        columns.append((column - column.mean()) / (column.std() + 1e-9))
    places = np.stack(columns, axis=1)
    centres = places[[rng.integers(len(places))]]
    for _ in range(number - 1):
        far = ((places[:, None] - centres) ** 2).sum(axis=2).min(axis=1) + 1e-12
        centres = np.concatenate([centres, places[[rng.choice(len(places), p=far / far.sum())]]])
    for _ in range(10):
        nearest = ((places[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
        for k in np.unique(nearest).tolist():
            centres[k] = places[nearest == k].mean(axis=0)
    return np.asarray(0.9 * np.eye(number)[nearest] + 0.1 / number)
