"""Random draws, drawn towards what messages between areas say.

Averages of draws are right, but uncertain. What messages say (`loopy`) is not uncertain, but a little wrong where areas are
few: means are right; variances are not, in the same way for all cells of a kind, too small for cells without parts and
too large for totals. That can be mended from few draws, as all cells of a kind show it together. What still differs is then
split: averages are drawn towards messages by as much as chance explains of the difference (James and Stein). Where messages
are far off, they are not heeded.
"""

from __future__ import annotations

import numpy as np

from unround.linked.bounds import Rows
from unround.mechanisms.base import FloatArray

MOST_OFF = 1.4
"""By which factor the variances of messages are mended, at most."""

NEARLY_CERTAIN = 0.3
"""Variance up to which what messages say of a cell is left as it is."""

MOST_LIFTED = 1.0
"""Logarithm of the factor by which unlikely counts become likelier when variances are mended, at most."""

FARTHEST = 3.0
"""Standard errors from which messages about a cell are heeded like those of its kind; from farther, they pull no more."""

MOST_HEEDED = 0.9
"""The largest share that messages have in a result: that they are right is never certain."""


def shrink(
    cell: Rows, kind: Rows, drawn: FloatArray, beliefs: FloatArray, error: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Draw averages of draws towards what messages say.

    Parameters
    ----------
    cell : array
        For every probability, the number of its cell; those of a cell are one behind the other, count by count.
    kind : array
        For every probability, the number of its kind: those of one family's children or parent, totals or not. -1 for none,
        which are left as they are.
    drawn, beliefs : array
        What was drawn on average; and what messages say, of the same counts.
    error : array
        One standard error of what was drawn.

    Returns
    -------
    array, array
        The probabilities, and the standard error of each.
    """
    beliefs = _match_variances(cell, kind, drawn, beliefs)
    alike = np.where(kind < 0, 0, kind)
    chance, apart = (np.bincount(alike, np.where(kind < 0, 0.0, one**2)) for one in (error, drawn - beliefs))
    share = np.minimum(chance / np.where(apart > 0, apart, 1.0), MOST_HEEDED)[alike]
    # A single cell may be off where its kind is not: it is not drawn further than chance may have brought it.
    usual = chance / np.maximum(np.bincount(alike, np.where(kind < 0, 0.0, drawn)), 1.0)
    own_chance, own_apart = (np.bincount(cell, one**2)[cell] for one in (error, drawn - beliefs))
    farthest = FARTHEST * np.sqrt(np.maximum(own_chance, usual[alike]))
    share *= np.minimum(1.0, farthest / np.sqrt(np.where(own_apart > 0, own_apart, 1.0)))
    share = np.where((kind >= 0) & (np.bincount(cell, beliefs)[cell] > 0), share, 0.0)
    return drawn + share * (beliefs - drawn), error * np.sqrt(1 - share)


def _match_variances(cell: Rows, kind: Rows, drawn: FloatArray, beliefs: FloatArray) -> FloatArray:
    """Make what messages say as wide as what was drawn, on the whole: the variances of a kind by the same factor.

    It is exactly this factor for normal distributions, and about so for others.
    """
    mean, variance = _moments(cell, beliefs)
    _, drawn_variance = _moments(cell, drawn)
    # Of cells that are nearly certain the variance says nothing about the form.
    open_yet = (kind >= 0) & (variance > NEARLY_CERTAIN)[cell]
    alike = np.where(open_yet, kind, 0)
    wide, goal = (np.bincount(alike, np.where(open_yet, beliefs * one[cell], 0.0)) for one in (variance, drawn_variance))
    ratio = np.clip(goal / np.where(wide > 0, wide, 1.0), 1 / MOST_OFF, MOST_OFF)[alike]
    steep = np.where(open_yet, (1 / ratio - 1) / 2 / np.where(open_yet, variance[cell], 1.0), 0.0)
    distance = _steps(cell) - mean[cell]
    return normalised(cell, beliefs * np.exp(np.minimum(-steep * distance**2, MOST_LIFTED)))


def _steps(cell: Rows) -> Rows:
    """Return how many counts above the least of its cell every number is."""
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
