"""What a mechanism does, as numbers: how far true counts lie from published ones, and how much they scatter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unround.errors import InputError
from unround.mechanisms import HIDDEN, Mechanism
from unround.release import ABSENT, Counts

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]

_TABLE = 1 << 16
"""Windows of counts under this are looked up; larger ones are few."""
_UNKNOWN, IMPOSSIBLE = (int(np.iinfo(np.int32).min) + k for k in range(2))
"""No distances: below a negative count, which noise makes, the true one lies at a negative distance."""
_DRAWS = 20_000
_LEVELS = 31


@dataclass(frozen=True, slots=True, eq=False)
class Scatter:
    """How published counts scatter around true ones.

    - `step`: The smallest count above zero that can be published.
    - `variance`: Of published − true, by the number of binary digits of the count.
    - `at_zero`: The same for a true count of zero.
    - `small`: The largest variance that each published count under twice the step can stand for, on average over all
      areas: a true 1 that seldom comes up is the worst, for it is published as nothing or as far too much.
    - `drift`, `small_drift`: How far published counts lie from true ones on average: large ones; and at most, small ones.
      Zero without bias.
    """

    step: int
    variance: Floats
    at_zero: float
    small: float
    drift: float
    small_drift: float


_SCATTERS: dict[Mechanism, Scatter] = {}
_WINDOWS: dict[Mechanism, Ints] = {}


def scatter(mechanism: Mechanism) -> Scatter:
    """Measure a mechanism, once, by letting it publish many counts, always with the same random numbers."""
    if mechanism not in _SCATTERS:
        _SCATTERS[mechanism] = _measure(mechanism)
    return _SCATTERS[mechanism]


def _measure(mechanism: Mechanism) -> Scatter:
    rng = np.random.default_rng(0)

    def errors(true: NDArray[np.int64]) -> Floats:
        published = mechanism.publish(true, rng)
        return np.asarray((published - true)[published != HIDDEN], dtype=np.float64)

    def variance(found: Floats) -> float:
        return float(np.mean(found**2)) if found.size else 0.0

    step = next((y for y in range(1, 1001) if _window(mechanism, y) is not None), 1)
    variances = np.zeros(_LEVELS + 1)
    for digits in range(1, _LEVELS + 1):
        variances[digits] = variance(errors(rng.integers(1 << (digits - 1), 1 << digits, _DRAWS // 4)))
    at_zero = variance(errors(np.zeros(_DRAWS, dtype=np.int64)))
    drift, small_drift = 0.0, 0.0
    far = errors(rng.integers(200 * step, 400 * step, 10 * _DRAWS))
    if far.size and abs(far.mean()) > 5 * far.std() / far.size**0.5 + 1e-9:
        drift = abs(float(far.mean()))
    for true in range(min(2 * step, 100)):
        found = errors(np.full(_DRAWS, true, dtype=np.int64))
        if found.size and abs(found.mean()) > 5 * found.std() / found.size**0.5 + 1e-9:
            small_drift = max(small_drift, abs(float(found.mean())))
    small = float(step * (step - 1)) if at_zero == 0 and step > 1 else float(variances[step.bit_length()])
    return Scatter(step, variances, at_zero, small, drift, small_drift)


def _window(mechanism: Mechanism, published: int) -> tuple[int, int] | None:
    """Return how far below and above a published count the true one can be; None where it cannot be published."""
    try:
        window = mechanism.window(published)
    except InputError:
        return None
    if window.high is None:
        return None
    return published - window.low, window.high - published


def _known(mechanism: Mechanism) -> Ints:
    """Return the table of windows of small counts, which fills up as they occur."""
    if mechanism not in _WINDOWS:
        _WINDOWS[mechanism] = np.full((2, _TABLE), _UNKNOWN, dtype=np.int32)
    return _WINDOWS[mechanism]


class ScatterWindows:
    """How far true counts can lie below and above published ones, for whole tables at once.

    - `mechanisms`: One per column; columns without one are treated as unpublished.
    - `adjusted`: By how much an exact count may have been changed, a column.
    """

    def __init__(self, mechanisms: Sequence[Mechanism | None], adjusted: Sequence[int]) -> None:
        kinds: dict[Mechanism, list[int]] = {}
        for at, mechanism in enumerate(mechanisms):
            if mechanism is not None:
                kinds.setdefault(mechanism, []).append(at)
        self._kinds = [(kind, np.array(at)) for kind, at in kinds.items()]
        self._adjusted = [(at, by) for at, by in enumerate(adjusted) if by]

    def of(self, counts: Counts, adjustable: NDArray[np.bool_]) -> tuple[Ints, Ints, NDArray[np.bool_]]:
        """Return how far down and up, and which cells are published and possible; elsewhere both are 0."""
        down, up = np.zeros_like(counts), np.zeros_like(counts)
        seen = np.zeros(counts.shape, dtype=np.bool_)
        for kind, columns in self._kinds:
            shown = counts[:, columns]
            below, above = self._look_up(kind, shown)
            possible = below != IMPOSSIBLE
            seen[:, columns] = possible
            down[:, columns] = np.where(possible, below, 0)
            up[:, columns] = np.where(possible, above, 0)
        for column, by in self._adjusted:
            here = adjustable & seen[:, column]
            down[here, column] += by
            up[here, column] += by
        return down, up, seen

    @staticmethod
    def _look_up(kind: Mechanism, shown: Counts) -> tuple[Ints, Ints]:
        table = _known(kind)
        common = (shown >= 0) & (shown < _TABLE)
        place = np.where(common, shown, 0)
        unknown = common & (table[0][place] == _UNKNOWN)
        if unknown.any():
            for count in np.unique(shown[unknown]).tolist():
                table[:, count] = _window(kind, count) or (IMPOSSIBLE, IMPOSSIBLE)
        below = np.where(common, table[0][place], IMPOSSIBLE)
        above = np.where(common, table[1][place], IMPOSSIBLE)
        rest = ~common & (shown > ABSENT)
        if rest.any():
            counts, where = np.unique(shown[rest], return_inverse=True)
            found = np.array([_window(kind, count) or (IMPOSSIBLE, IMPOSSIBLE) for count in counts.tolist()])
            below[rest], above[rest] = found[where, 0], found[where, 1]
        return below, above
