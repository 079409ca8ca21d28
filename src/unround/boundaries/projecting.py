"""From degrees to a plane: Albers' equal-area conic projection, which leaves every area its size."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]

STANDARD = 1 / 6
"""The standard parallels lie so far from both ends of the map, as a share of its height: a common choice."""


def projected(points: Points) -> Points:
    """Return points on a plane, north up and y growing downwards, as drawings have it.

    What is not in degrees has been projected before, and is only turned over.
    """
    x, y = points[:, 0], points[:, 1]
    if np.abs(x).max() > 360 or np.abs(y).max() > 90:
        return np.column_stack([x, -y])
    if x.max() - x.min() > 180:  # on both sides of the antimeridian
        x = np.where(x < 0, x + 360, x)
    low, high = np.radians(y.min()), np.radians(y.max())
    first, second = low + STANDARD * (high - low), high - STANDARD * (high - low)
    n = (np.sin(first) + np.sin(second)) / 2
    angle, latitude = np.radians(x - (x.min() + x.max()) / 2), np.radians(y)
    if abs(n) < 1e-6:  # around the equator the cone becomes a cylinder
        return np.column_stack([angle, -np.sin(latitude)])
    c = np.cos(first) ** 2 + 2 * n * np.sin(first)
    radius = np.sqrt(np.maximum(c - 2 * n * np.sin(latitude), 0)) / n
    return np.column_stack([radius * np.sin(n * angle), radius * np.cos(n * angle)])
