"""What the chain takes and changes, as arrays: the law, the tables, their windows, a world, and how long to run."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Int16s = NDArray[np.int16]
Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
Words = NDArray[np.uint64]
Floats = NDArray[np.float64]
Singles = NDArray[np.float32]


class Law(NamedTuple):
    """The law as arrays: one factor per attribute, its probability given the attributes that it depends on.

    `step[k, v, f]` is what value v of attribute k adds to the place of a person in factor f, which begins at `base[f]` in
    `log` and, cumulated over the values of its attribute, in `sums`. Factor f is about attribute `child[f]`, and `factor` is
    the other way round. Attribute k is in factors of[first[k]:first[k + 1]].
    """

    child: Int64s
    factor: Int64s
    base: Int64s
    step: Int32s
    log: Floats
    sums: Floats
    sizes: Int64s
    first: Int64s
    of: Int64s


class Tables(NamedTuple):
    """The published columns as arrays, by margins.

    `step[k, v, m]` is what value v of attribute k adds to an atom of margin m. Atoms are numbered through all margins, those
    of margin m from `base[m]` on; atom a belongs to columns held[starts[a]:starts[a + 1]], in ascending order. Attribute k
    is in margins of[first[k]:first[k + 1]].
    """

    base: Int64s
    step: Int32s
    starts: Int64s
    held: Int32s
    first: Int64s
    of: Int64s
    columns: int


class Windows(NamedTuple):
    """Likelihoods by rows: row r gives log likelihoods of the true counts from `low[r]` on, at `start[r]` in `log`."""

    start: Int64s
    size: Int64s
    low: Int64s
    log: Floats


class State(NamedTuple):
    """A world: the values of every person, their places in the factors and atoms in the margins, and all counts.

    `rows` are the windows of the columns of this area: the lowest count, the number of counts, and where they start in the
    table of logarithms; a size of 0 says that nothing is known of a column. `gains` are the changes if a count were one
    more, and one less, each in two parts: of the log likelihood within the window, and of the steps outside of it.
    """

    values: Int16s
    places: Int32s
    atoms: Int32s
    counts: Int32s
    rows: Int32s
    log: Floats
    gains: Singles


class Schedule(NamedTuple):
    """How long to run: moves per person before the first world and between worlds, and β from the lowest to the highest."""

    first: int
    between: int
    worlds: int
    low: float
    high: float
