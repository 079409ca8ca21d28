"""The scan: what each sum says on its own, looked up for any number of areas.

It depends only on the residual and a few other numbers, so it is computed once for every class of sums.

Given how many parts were published as 0 or as something larger, and whether the total is exact, rounded, or rounded to
0, everything that a single sum says depends on its residual r = total − Σ parts. It follows by convolution, under the flat
prior.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unround.batch.types import CompiledSums, Ints
from unround.jit import in_threads, kernel
from unround.mechanisms import Exact, Mechanism, Rounding, Sample
from unround.mechanisms.base import BoolArray, FloatArray
from unround.release import Counts

FULL, ZERO, TWICE, EXACT = "full", "zero", "twice", "exact"
"""How a cell was published: well away from 0, as 0, as twice the base where smaller counts are not published, as it is."""

_RAREST = 1e-290
"""Weights below this have lost their digits: probabilities are then not given."""


@dataclass(frozen=True, slots=True)
class SumClass:
    """All that matters of a sum besides its residual.

    - `base`: Of the rounding.
    - `sample`: Whether counts below twice the base are published as 0 or twice the base (`Sample`).
    - `full`, `zero`, `twice`: How many parts are published how.
    - `total`: How the total is published: "exact", "full", "zero" or "twice".
    - `sample_total`: Whether the total is published like the parts of such a sample.
    """

    base: int
    sample: bool
    full: int
    zero: int
    twice: int
    total: str
    sample_total: bool = False


@dataclass(frozen=True, slots=True)
class Kind:
    """What is known of a sum before any count: how many parts, and how they and the total were rounded."""

    base: int
    sample: bool
    parts: int
    totals: tuple[str, ...]

    @property
    def keys(self) -> int:
        """How many classes there are, for the most part numbered with gaps."""
        return (self.parts + 1) * (self.parts + 1 if self.sample else 1) * len(self.totals)

    def work_out(self, key: int) -> tuple[SumClass, int, tuple[FloatArray, ...]]:
        """Return a class, its least residual, and for each residual from there on all that is to be known."""
        rest, total = divmod(key, len(self.totals))
        zero, twice = divmod(rest, self.parts + 1) if self.sample else (rest, 0)
        full, sample_total = self.parts - zero - twice, TWICE in self.totals
        one = SumClass(self.base, self.sample, full, zero, twice, self.totals[total], sample_total)
        return one, *table(one)


def kind_of(parts: list[Mechanism], total: Mechanism) -> Kind | None:
    """Return what kind of sum this is; None for those that cannot be looked up."""
    how = parts[0]
    if not isinstance(how, Rounding | Sample) or any(part != how for part in parts):
        return None
    sample = isinstance(how, Sample)
    if isinstance(total, Exact):
        return Kind(how.base, sample, len(parts), (EXACT,))
    if isinstance(total, Rounding | Sample) and total.base == how.base:
        totals = (FULL, ZERO, TWICE) if isinstance(total, Sample) else (FULL, ZERO)
        return Kind(how.base, sample, len(parts), totals)
    return None


@dataclass(frozen=True, slots=True)
class _Weights:
    """Weights over consecutive whole numbers."""

    low: int
    values: FloatArray

    def plus(self, other: _Weights) -> _Weights:
        """Return the weights of the sum."""
        return _Weights(self.low + other.low, np.minimum(np.convolve(self.values, other.values), 1e300))

    def at(self, low: int, size: int, step: int) -> FloatArray:
        """Return the weights from `low` on, in steps; 0 where there are none."""
        found = np.zeros(size)
        skipped = max(0, -((low - self.low) // step))
        inside = self.values[low + skipped * step - self.low :: step][: max(0, size - skipped)]
        found[skipped : skipped + len(inside)] = inside
        return found


@cache
def _cell(base: int, sample: bool, how: str, plain: bool) -> _Weights:
    """Return how likely a cell is to be so far from what was published; all 1 if plain."""
    if how == EXACT:
        return _Weights(0, np.ones(1))
    published = {ZERO: 0, TWICE: 2 * base, FULL: 4 * base}[how]
    window = (Sample(base) if sample else Rounding(base)).window(published)
    assert window.weights is not None  # rounded counts are bounded
    values = np.ones(window.weights.size) if plain else window.weights / window.weights.sum()
    return _Weights(window.low - published, values)


@lru_cache(maxsize=4096)
def _several(base: int, sample: bool, how: str, number: int, plain: bool) -> _Weights:
    """Return the weights of the sum of so many cells."""
    if number < 2:
        return _cell(base, sample, how, plain) if number else _Weights(0, np.ones(1))
    half = number // 2
    return _several(base, sample, how, half, plain).plus(_several(base, sample, how, number - half, plain))


def table(one: SumClass) -> tuple[int, tuple[FloatArray, ...]]:
    """Work out one class: r = Σ distances of the parts − distance of the total."""
    base, exact = one.base, one.total == EXACT

    def parts(number: dict[str, int], plain: bool = False) -> _Weights:
        found = _Weights(0, np.ones(1))
        for how, many in number.items():
            found = found.plus(_several(base, one.sample, how, many, plain))
        return found

    def total(plain: bool = False) -> _Weights:
        own = _cell(base, one.sample_total, one.total, plain)
        return _Weights(-(own.low + len(own.values) - 1), own.values[::-1])

    number = {FULL: one.full, ZERO: one.zero, TWICE: one.twice}
    whole = parts(number).plus(total())
    step = 1 if exact else base
    low = -(-whole.low // step) * step
    size = (whole.low + len(whole.values) - 1 - low) // step + 1
    weights = whole.at(low, size, step)
    solutions = np.minimum(parts(number, plain=True).plus(total(plain=True)).at(low, size, step), 2)

    def likeliest(cell: _Weights, others: _Weights) -> FloatArray:
        highest = np.zeros(size)
        for i, weight in enumerate(cell.values):
            highest = np.maximum(highest, weight * others.at(low - cell.low - i, size, step))
        share = np.divide(highest, weights, out=np.zeros(size), where=weights > _RAREST)
        return np.where(solutions == 1, 1.0, np.minimum(share, 1.0))

    probabilities = [
        likeliest(_cell(base, one.sample, how, False), parts({**number, how: many - 1}).plus(total()))
        if many
        else np.zeros(size)
        for how, many in number.items()
    ]
    of_total = np.zeros(size) if exact else likeliest(total(), parts(number))
    return low, (low + step * np.arange(size, dtype=np.float64), solutions, *probabilities, of_total)


UNSCANNED, IMPOSSIBLE = 0, 1
"""The first two codes: the sum cannot be looked up here; and no true counts fit its residual."""


class Lookup(NamedTuple):
    """What every code means. A probability is 0 where there is no such cell.

    `solutions` is 0, 1 (proved) or 2 (more than one); `full`, `zero`, `twice` and `total` are the probabilities of the
    likeliest count of such a part, or of the total; `best` is the largest of them.
    """

    classes: tuple[SumClass, ...]
    class_of: Ints
    residual: Ints
    solutions: NDArray[np.uint8]
    full: NDArray[np.float32]
    zero: NDArray[np.float32]
    twice: NDArray[np.float32]
    total: NDArray[np.float32]
    best: NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Scan:
    """A code for every area and equation, and what the codes mean."""

    codes: Ints
    lookup: Lookup

    @property
    def impossible(self) -> NDArray[np.int64]:
        """In how many areas each sum cannot hold."""
        return self._in_areas(self.lookup.solutions == 0)

    @property
    def proved(self) -> NDArray[np.int64]:
        """In how many areas each sum, on its own, leaves one solution."""
        return self._in_areas(self.lookup.solutions == 1)

    def strong(self, threshold: float) -> NDArray[np.int64]:
        """In how many areas each sum, on its own, makes some cell at least this likely without proving it."""
        return self._in_areas((self.lookup.solutions > 1) & (self.lookup.best >= np.float32(threshold)))

    def _in_areas(self, which: BoolArray) -> NDArray[np.int64]:
        return np.asarray((which[self.codes] & (self.codes != UNSCANNED)).sum(axis=0))

    def residuals(self, equation: int) -> Counter[tuple[SumClass | None, int]]:
        """Count the residuals of one sum by class; those that are impossible come as (None, 0)."""
        codes, times = np.unique(self.codes[:, equation], return_counts=True)
        found: Counter[tuple[SumClass | None, int]] = Counter()
        for code, n in zip(codes.tolist(), times.tolist(), strict=True):
            if code == IMPOSSIBLE:
                found[None, 0] += n
            elif code != UNSCANNED:
                found[self.lookup.classes[self.lookup.class_of[code]], int(self.lookup.residual[code])] += n
        return found


class Scanner:
    """The sums that can be looked up, and every class of them met so far.

    - `compiled`: The sums. Those are scanned whose parts are all rounded to one base, all by `Rounding` or all by
      `Sample`, and whose total is exact or rounded to that base too; `scannable` says which. A repeat (a sum of one part)
      whose part is exact is read the other way round: the exact count is its total.
    - `mechanisms`: How each column was published.
    """

    def __init__(self, compiled: CompiledSums, mechanisms: Sequence[Mechanism]) -> None:
        equations = [_exact_first(total, parts, mechanisms) for total, parts in compiled.equations]
        kinds = [kind_of([mechanisms[part] for part in parts], mechanisms[total]) for total, parts in equations]
        self.scannable = np.array([kind is not None for kind in kinds], dtype=np.bool_)
        self._number = len(kinds)
        self._kinds: list[Kind] = list(dict.fromkeys([kind for kind in kinds if kind is not None]))
        firsts = np.concatenate(([0], np.cumsum([kind.keys for kind in self._kinds]))).astype(np.int64)
        # Sums of one kind come together: the kernel then goes through many that differ in nothing but their cells.
        groups = [[e for e, kind in enumerate(kinds) if kind == group] for group in self._kinds]
        cells = [cell for group in groups for e in group for cell in (equations[e][0], *equations[e][1])]
        used = sorted(set(cells))
        self._sums = _Sums(
            np.array([e for group in groups for e in group], dtype=np.int64),
            np.searchsorted(used, cells).astype(np.uint64),
            np.array(
                [
                    (len(group), *_numbers(kind, int(first)))
                    for group, kind, first in zip(groups, self._kinds, firsts, strict=False)
                ],
                dtype=np.int64,
            ).reshape(-1, 9),
            np.array(used, dtype=np.uint64),
            np.array([_divisor(mechanisms[c]) for c in used], dtype=np.uint32).reshape(-1, 4),
        )
        self._firsts = firsts
        # For each class: its first code (-1: not met yet), its least residual, and how many residuals it has.
        self._keys = np.full((int(firsts[-1]), 3), -1, dtype=np.int32)
        self._classes: list[SumClass] = []
        self._pieces: list[tuple[FloatArray, ...]] = []
        self._size = IMPOSSIBLE + 1
        self._lookup = self._joined()

    def scan(self, counts: Counts, active: BoolArray | None = None) -> Scan:
        """Look up the sums of a block.

        Notes
        -----
        Where a cell is absent, or cannot come from its mechanism, the sum is not looked up there. Codes keep
        their meaning from block to block.
        """
        counts = np.ascontiguousarray(counts, dtype=np.int32)
        codes = np.zeros((len(counts), self._number), dtype=np.int32)
        met = np.zeros(len(self._keys), dtype=np.bool_)
        in_threads(lambda first, last: _scan(first, last, counts, self._sums, self._keys, met, codes), len(counts))
        if met.any():  # classes for the first time: work them out, and look again
            for key in np.flatnonzero(met).tolist():
                self._add(key)
            self._lookup = self._joined()
            in_threads(lambda first, last: _scan(first, last, counts, self._sums, self._keys, met, codes), len(counts))
        if active is not None:
            codes[~active] = UNSCANNED
        return Scan(codes, self._lookup)

    def _add(self, key: int) -> None:
        """Work out a class that was not met before."""
        k = int(np.searchsorted(self._firsts, key, side="right")) - 1
        one, low, table = self._kinds[k].work_out(key - int(self._firsts[k]))
        size = len(table[0])
        self._keys[key] = self._size, low, size
        self._classes.append(one)
        self._pieces.append(table)
        self._size += size

    def _joined(self) -> Lookup:
        nothing = tuple(np.zeros(2) for _ in range(7))
        of = [np.full(len(piece[0]), k, dtype=np.float64) for k, piece in enumerate(self._pieces)]
        class_of = np.concatenate([np.full(2, -1.0), *of])
        columns = [np.concatenate([one[i] for one in (nothing, *self._pieces)]) for i in range(6)]
        residual, solutions, *rest = columns
        full, zero, twice, total = (one.astype(np.float32) for one in rest)
        best = np.maximum(np.maximum(full, zero), np.maximum(twice, total))
        return Lookup(
            tuple(self._classes),
            class_of.astype(np.int32),
            residual.astype(np.int32),
            solutions.astype(np.uint8),
            full,
            zero,
            twice,
            total,
            best,
        )


# -- the kernel -----------------------------------------------------------------------------------------------------------


def _exact_first(total: int, parts: tuple[int, ...], mechanisms: Sequence[Mechanism]) -> tuple[int, tuple[int, ...]]:
    """Turn a repeat of an exact count round, so that it can be looked up as a part under an exact total."""
    if len(parts) == 1 and isinstance(mechanisms[parts[0]], Exact) and not isinstance(mechanisms[total], Exact):
        return parts[0], (total,)
    return total, parts


def _numbers(kind: Kind, first: int) -> tuple[int, ...]:
    """Return what the kernel needs to know of a kind, in its order; `first` is the number of its first class."""
    # Residuals under exact totals are any numbers; others are multiples of the base.
    inverse, _, bits, _ = _divisor(Exact() if kind.totals == (EXACT,) else Rounding(kind.base))
    twice, twice_total = (2 * kind.base if found else -1 for found in (kind.sample, TWICE in kind.totals))
    return (
        kind.parts,
        first,
        len(kind.totals),
        kind.parts + 1 if kind.sample else 1,
        twice,
        twice_total,
        inverse,
        bits.bit_length(),
    )


def _divisor(how: Mechanism) -> tuple[int, int, int, int]:
    """Return four numbers that tell, without a division, what this mechanism can have published.

    A number is a multiple of an odd base if its product with the base's inverse modulo 2^32 is at most the second
    number; that product is then the quotient. Of an even base this is the odd factor, and the third number has the
    bits that must be 0 besides. The fourth is a multiple that is never published.
    """
    nothing = (1 << 32) - 1
    if not isinstance(how, Rounding | Sample):
        return 1, nothing, 0, nothing
    power = how.base & -how.base
    odd = how.base // power
    return pow(odd, -1, 1 << 32), nothing // odd, power - 1, how.base if isinstance(how, Sample) else nothing


_LANES = 32
"""Areas that are worked on side by side, by instructions that take many numbers at once."""

_WIDE = 1 << 29
"""Sums that could reach this are added up in wider numbers."""


class _Sums(NamedTuple):
    """The sums that are scanned, kind by kind.

    Their places among the equations; their cells, the total first, as positions in `used`; for every kind how many sums
    there are, and its numbers; the columns in use, and the divisor of each.
    """

    place: NDArray[np.int64]
    cells: NDArray[np.uint64]
    kinds: NDArray[np.int64]
    used: NDArray[np.uint64]
    divisors: NDArray[np.uint32]


@kernel
def _scan(begin: int, end: int, counts: Counts, sums: _Sums, keys: NDArray[np.int32], met: BoolArray, codes: Ints) -> None:
    """Look up the sums of the areas from `begin` up to `end`, and mark the classes that are met for the first time."""
    tile = np.empty((sums.used.size, _LANES), dtype=np.int32)
    added, union, special, key = np.empty((4, _LANES), dtype=np.int32)
    for area in range(begin, end, _LANES):
        lanes = min(_LANES, end - area)
        _turn(counts[area : area + lanes], sums.used, tile)
        _check(tile.view(np.uint32), sums.divisors)
        s = cell = 0
        for k in range(sums.kinds.shape[0]):
            number, parts, first, totals, stride, twice, twice_total, inverse, shift = sums.kinds[k]
            wide = _WIDE // parts
            for _ in range(number):
                own = sums.cells[cell : cell + 1 + parts]
                _add_up(tile, own[1:], twice, added, union, special)
                total = tile[own[0]]
                for i in range(_LANES):
                    rounded = np.int32(total[i] == 0) + (np.int32(total[i] == twice_total) << 1)
                    kind = (special[i] & 0xFFFF) * stride + (special[i] >> 16)
                    key[i] = first + kind * totals + (rounded if totals > 1 else 0)
                place = sums.place[s]
                for i in range(lanes):
                    code = np.int64(UNSCANNED)
                    if union[i] | total[i] >= 0:
                        at_key = np.uint32(key[i])
                        residual = np.int64(total[i]) - added[i]
                        if union[i] >= wide:
                            residual = _residual(tile, own, i)
                        at = ((residual - keys[at_key, 1]) >> shift) * inverse & 0xFFFFFFFF
                        code = keys[at_key, 0] + at if at < keys[at_key, 2] else np.int64(IMPOSSIBLE)
                        if keys[at_key, 0] < 0:
                            met[at_key] = True
                    codes[area + i, place] = code
                s += 1
                cell += parts + 1


@kernel
def _residual(tile: Ints, cells: NDArray[np.uint64], lane: int) -> int:
    """Return the residual of a sum whose counts are so large that 32 bits may not hold it."""
    residual = np.int64(tile[cells[0], lane])
    for c in cells[1:]:
        residual -= tile[c, lane]
    return int(residual)


@kernel
def _turn(rows: Counts, used: NDArray[np.uint64], tile: Ints) -> None:
    """Turn areas × columns into columns × areas; areas that are not there are absent."""
    # Unsigned positions in flat arrays: the compiler then need not think of negative ones, and is several times as fast.
    flat, turned = rows.ravel(), tile.ravel()
    one, width, lanes = np.uint64(1), np.uint64(rows.shape[1]), rows.shape[0]
    for c in range(used.size):
        at, to = used[c], np.uint64(c * _LANES)
        for _ in range(lanes):
            turned[to] = flat[at]
            at += width
            to += one
        for i in range(lanes, _LANES):
            tile[c, i] = -1


@kernel
def _check(tile: NDArray[np.uint32], divisors: NDArray[np.uint32]) -> None:
    """Set the highest bit of counts that their mechanism cannot have published: they are then negative, as absent ones."""
    for c in range(tile.shape[0]):
        inverse, most, bits, never = divisors[c, 0], divisors[c, 1], divisors[c, 2], divisors[c, 3]
        for i in range(_LANES):
            value = tile[c, i]
            wrong = (np.uint32(value * inverse) > most) | (value == never) | (np.uint32(value & bits) != 0)
            tile[c, i] = np.uint32(value | np.uint32(1 << 31)) if wrong else value


@kernel
def _add_up(tile: Ints, parts: NDArray[np.uint64], twice: int, added: Ints, union: Ints, special: Ints) -> None:
    """Add parts up; `union` is negative where one is absent, `special` counts zeros, and twice the base 65,536-fold."""
    added[:], union[:], special[:] = 0, 0, 0
    if twice < 0:
        for c in parts:
            column = tile[c]
            for i in range(_LANES):
                added[i] += column[i]
                union[i] |= column[i]
                special[i] += column[i] == 0
    else:
        for c in parts:
            column = tile[c]
            for i in range(_LANES):
                added[i] += column[i]
                union[i] |= column[i]
                special[i] += (column[i] == 0) + ((column[i] == twice) << 16)
