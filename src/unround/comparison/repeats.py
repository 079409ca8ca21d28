"""Counts that stand in several tables, all rounded by the keys of the same records: what their roundings say together.

With u the sum of the records' keys, table j shows the count rounded up if u + sⱼ (mod 1) is below its remainder divided by
the base. Whoever knows the constants sⱼ knows the arc of u that all roundings leave, for every remainder; its length is
the likelihood. Without constants all tables show the same number, and one of them says as much as all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise

import numpy as np

from unround.mechanisms.base import FloatArray, IntArray, Window, counts, window_from
from unround.sums.forest import Equations

FAINT = 1e-12
"""The likelihood of a count that only the constants rule out: they are estimates, so nothing is proved by them."""


def repeated(columns: int, equations: Equations, exact: frozenset[int]) -> list[tuple[int, ...]]:
    """Return the columns that show the same count as another one, in groups; those of exact counts are left out."""
    first = list(range(columns))
    for total, parts in equations:
        if len(parts) == 1:
            one, other = sorted((first[total], first[parts[0]]))
            first = [one if at == other else at for at in first]
    groups: dict[int, list[int]] = {}
    for column, at in enumerate(first):
        groups.setdefault(at, []).append(column)
    return [tuple(group) for group in groups.values() if len(group) > 1 and not exact.intersection(group)]


@dataclass(frozen=True)
class Together:
    """All roundings of one count as a single observation, by `code`; a mechanism that nothing is published by.

    - `base`: What is rounded to.
    - `constants`: Those of the tables.

    Examples
    --------
    >>> two = Together(5, (0.0, 0.5))
    >>> code = two.code(np.array([[10, 15]]))
    >>> {x: round(float(two.likelihood(int(code[0]), np.array(x))), 3) for x in (11, 12, 13, 14)}
    {11: 0.2, 12: 0.4, 13: 0.4, 14: 0.2}
    """

    base: int
    constants: tuple[float, ...]
    _patterns: tuple[tuple[bool, ...], ...] = field(init=False, repr=False, compare=False)
    _arcs: FloatArray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        found = [_arcs(self.constants, remainder, self.base) for remainder in range(self.base)]
        alike = [tuple([up] * len(self.constants)) for up in (False, True)]
        mixed = sorted({pattern for arcs in found for pattern in arcs} - set(alike))
        patterns = (*alike, *mixed)
        arcs = np.array([[each.get(pattern, 0.0) for each in found] for pattern in patterns])
        object.__setattr__(self, "_patterns", patterns)
        object.__setattr__(self, "_arcs", arcs)

    @property
    def name(self) -> str:
        """What it is called in errors."""
        return f"together:{self.base}"

    @property
    def sentence(self) -> str:
        """The assumption, as a sentence."""
        return f"Random rounding to base {self.base} by keys, in {len(self.constants)} tables whose constants are known."

    def code(self, published: IntArray) -> IntArray:
        """Return one number for what the tables show (areas × tables)."""
        low = published.min(axis=1)
        at = {pattern: number for number, pattern in enumerate(self._patterns)}
        which = [at[tuple(row)] for row in (published > low[:, None]).tolist()]
        return np.asarray(low // self.base * len(self._patterns) + np.array(which, dtype=np.int64))

    def likelihood(self, published: int | IntArray | None, true: IntArray) -> FloatArray:
        """Return how likely the roundings are, given the count."""
        code, x, possible = counts(published, true)
        low, which = np.divmod(code, len(self._patterns))
        low = low * self.base
        rest = x - low
        up = (rest < 0) & (which == 0)  # all tables show the multiple above
        row, column = np.where(up, 1, which), np.clip(np.where(up, rest + self.base, rest), 0, self.base - 1)
        inside = np.where(which == 0, np.abs(rest) < self.base, (rest > 0) & (rest < self.base))
        return np.where(possible & inside, np.maximum(self._arcs[row, column], FAINT), 0.0)

    def window(self, published: int | None) -> Window:
        """Return the counts that the roundings leave."""
        code = published if published is None else int(published)
        low = 0 if code is None else code // len(self._patterns) * self.base

        def likelihood(_: int, true: IntArray) -> FloatArray:
            return self.likelihood(code, true)

        return window_from(likelihood, low, self.base - 1, self.base - 1, f"rounding to base {self.base} by keys")

    def chance(self, published: int | None, true: int) -> Fraction:
        """Return the likelihood of one observation."""
        return Fraction(float(self.likelihood(published, np.asarray(true))))

    def publish(self, true: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw observations."""
        u = rng.random(true.shape)
        rest = (true % self.base)[:, None]
        up = (u[:, None] + np.array(self.constants)) % 1 < rest / self.base
        return self.code(true[:, None] - rest + self.base * up)


def _arcs(constants: Sequence[float], remainder: int, base: int) -> dict[tuple[bool, ...], float]:
    """Return the lengths of the arcs of u on which tables round a count up or down, by pattern."""
    ends = sorted({0.0, 1.0, *((end - s) % 1 for s in constants for end in (0.0, remainder / base))})
    found: dict[tuple[bool, ...], float] = {}
    for start, stop in pairwise(ends):
        middle = (start + stop) / 2
        pattern = tuple((middle + s) % 1 < remainder / base for s in constants)
        found[pattern] = found.get(pattern, 0.0) + stop - start
    return found
