"""James–Stein shrinkage of sampled averages towards beliefs by messages (James and Stein 1961; Efron and Morris 1973).

Averages of draws are unbiased but noisy. Beliefs by messages (`loopy`) are free of noise but biased where areas are few:
their means are right, but their variances are too small for cells without parts and too large for totals, by a factor that
all cells of a kind share. A few draws are enough to correct that. The averages are then shrunk towards the
corrected beliefs by the share of the difference that sampling error explains. Beliefs that are far off have no influence.
"""

from __future__ import annotations

import numpy as np

from unround.linked.bounds import Rows
from unround.mechanisms.base import FloatArray

MOST_CORRECTED = 1.4
"""The largest factor by which variances are corrected."""

NEARLY_CERTAIN = 0.3
"""Variance up to which the belief about a cell is not corrected."""

MOST_LIFTED = 1.0
"""Logarithm of the largest factor by which a correction raises the weight of a count."""

FARTHEST = 3.0
"""Standard errors beyond which a single cell is shrunk no further, even if others of its kind are."""

MOST_SHRUNK = 0.9
"""The largest weight of beliefs in a result: they are never certain to be right."""


def shrink(
    cell: Rows, kind: Rows, drawn: FloatArray, beliefs: FloatArray, error: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Shrink averages of draws towards beliefs.

    Parameters
    ----------
    cell : array
        For every probability, the number of its cell; those of a cell are contiguous, in the order of counts.
    kind : array
        For every probability, the number of its kind: a family's children or its parent, totals or not. -1: not shrunk.
    drawn, beliefs : array
        The averages of draws, and the beliefs about the same counts.
    error : array
        The standard errors of the averages.

    Returns
    -------
    array, array
        The probabilities, and the standard error of each.
    """
    beliefs = _match_variances(cell, kind, drawn, beliefs)
    alike = np.where(kind < 0, 0, kind)
    chance, apart = (np.bincount(alike, np.where(kind < 0, 0.0, one**2)) for one in (error, drawn - beliefs))
    share = np.minimum(chance / np.where(apart > 0, apart, 1.0), MOST_SHRUNK)[alike]
    # A single cell may be off where its kind is not: it is not moved further than sampling error may have brought it.
    usual = chance / np.maximum(np.bincount(alike, np.where(kind < 0, 0.0, drawn)), 1.0)
    own_chance, own_apart = (np.bincount(cell, one**2)[cell] for one in (error, drawn - beliefs))
    farthest = FARTHEST * np.sqrt(np.maximum(own_chance, usual[alike]))
    share *= np.minimum(1.0, farthest / np.sqrt(np.where(own_apart > 0, own_apart, 1.0)))
    share = np.where((kind >= 0) & (np.bincount(cell, beliefs)[cell] > 0), share, 0.0)
    return drawn + share * (beliefs - drawn), error * np.sqrt(1 - share)


def _match_variances(cell: Rows, kind: Rows, drawn: FloatArray, beliefs: FloatArray) -> FloatArray:
    """Match the average variance of beliefs to that of draws, by one factor per kind.

    The factor is exact for normal distributions, and approximate for others.
    """
    mean, variance = _moments(cell, beliefs)
    _, drawn_variance = _moments(cell, drawn)
    # The variance of a nearly certain cell says nothing about its shape.
    open_yet = (kind >= 0) & (variance > NEARLY_CERTAIN)[cell]
    alike = np.where(open_yet, kind, 0)
    wide, goal = (np.bincount(alike, np.where(open_yet, beliefs * one[cell], 0.0)) for one in (variance, drawn_variance))
    ratio = np.clip(goal / np.where(wide > 0, wide, 1.0), 1 / MOST_CORRECTED, MOST_CORRECTED)[alike]
    steep = np.where(open_yet, (1 / ratio - 1) / 2 / np.where(open_yet, variance[cell], 1.0), 0.0)
    distance = _steps(cell) - mean[cell]
    return normalised(cell, beliefs * np.exp(np.minimum(-steep * distance**2, MOST_LIFTED)))


def _steps(cell: Rows) -> Rows:
    """Return how far above the least count of its cell each entry is."""
    first = np.flatnonzero(np.diff(cell, prepend=-1))
    return np.arange(cell.size) - np.repeat(first, np.diff(np.append(first, cell.size)))


def _moments(cell: Rows, chances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return mean (above the least count) and variance of every cell."""
    step = _steps(cell)
    mean = np.bincount(cell, chances * step).astype(np.float64)
    return mean, np.bincount(cell, chances * (step - mean[cell]) ** 2).astype(np.float64)


def normalised(cell: Rows, chances: FloatArray) -> FloatArray:
    """Make the weights of every cell add up to 1."""
    whole = np.bincount(cell, chances)
    return np.asarray(chances / np.where(whole > 0, whole, 1.0)[cell])
