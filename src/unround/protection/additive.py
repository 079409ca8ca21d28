"""Make a noisy table add up again: the nearest whole numbers for which every sum holds.

Two steps, both for all areas at once. First the least squares solution, real numbers: what is published is moved, as
little as possible in squares, to where all sums hold (and nothing is negative, if so wanted; Dykstra's alternating
projections). Then every count goes to a neighbouring whole number so that the sums still hold, each step taken where the
counts stay nearer to the first step's; where that ends below 0, a small integer program takes its place. What was
published is all that this looks at, so that it costs no privacy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unround.errors import InputError, InternalError
from unround.mechanisms import HIDDEN
from unround.mechanisms.base import FloatArray, IntArray
from unround.protection.walk import Loops, Tableau, tableaux, walk
from unround.sums.forest import Equations

_FINE = 1 << 20  # real numbers are taken as multiples of one over this
_ROUNDS, _CLOSE = 500, 1e-4
"""How often counts are projected on the sums and on what is not negative, at most; and when that is close enough."""
SECONDS = 10.0
"""How long one integer program may take."""


def nearest_consistent(
    published: IntArray,
    usable: NDArray[np.bool_],
    sums: Equations,
    rng: np.random.Generator,
    *,
    fixed: frozenset[int] = frozenset(),
    floor: bool = False,
) -> IntArray:
    """Return the nearest whole numbers that add up."""
    from unround.protection.table import patterns

    result = published.copy()
    hidden = published == HIDDEN
    shown = np.stack([~hidden[:, [total, *parts]].any(axis=1) for total, parts in sums], axis=1) if sums else usable
    for areas, held in patterns(usable & shown):
        chosen = tuple(sums[at] for at in held)
        if not chosen:
            continue
        try:
            pieces = tableaux(published.shape[1], chosen, fixed)
            for piece in pieces:
                _one_piece(result, areas, piece, chosen, fixed, rng, floor)
        except Loops:
            raise InputError(
                "these sums form loops other than those of a hierarchy crossed with one more classification, such as sex: "
                "--additive cannot make such counts add up. Leave out --additive, or some of the sums."
            ) from None
    return result


def _one_piece(
    result: IntArray,
    areas: IntArray,
    piece: Tableau,
    sums: Equations,
    fixed: frozenset[int],
    rng: np.random.Generator,
    floor: bool,
) -> None:
    """Make the counts of one connected piece add up, in place."""
    members = np.concatenate([piece.basic, piece.free])
    at = {int(cell): place for place, cell in enumerate(members)}
    of_piece = [(total, parts) for total, parts in sums if any(cell in at for cell in (total, *parts))]
    matrix = np.zeros((len(of_piece), len(members)))
    target = np.zeros((len(areas), len(of_piece)))
    for row, (total, parts) in enumerate(of_piece):
        for sign, cell in ((1, total), *((-1, part) for part in parts)):
            if cell in fixed:
                target[:, row] -= sign * result[areas, cell]
            else:
                matrix[row, at[cell]] += sign
    noisy = result[np.ix_(areas, members)].astype(np.float64)
    real = _least_squares(noisy, matrix, target, floor)
    # The free cells decide; the others follow from them exactly, in whole numbers.
    fine = np.rint(real * _FINE).astype(np.int64)
    many = len(piece.basic)
    right = _constants(matrix, target, piece, at)
    fine[:, :many] = right * _FINE - fine[:, many:] @ piece.signs.T.astype(np.int64)
    down = fine // _FINE
    rest = fine - down * _FINE
    walk(rest, _FINE, [_alone(piece)], rng, nearest=True)
    whole = down + rest // _FINE
    if floor:
        # For the few areas in which the two steps end below 0 by a hair.
        low, high = np.zeros(len(members)), np.full(len(members), np.inf)
        for area in np.flatnonzero((whole < 0).any(axis=1)).tolist():
            whole[area] = nearest_whole(matrix, target[area], noisy[area], low, high)
    result[np.ix_(areas, members)] = whole


def nearest_whole(matrix: Any, target: FloatArray, wanted: FloatArray, low: FloatArray, high: FloatArray) -> IntArray:
    """Return the whole numbers within bounds with matrix @ numbers = target that are nearest in the sum of distances.

    Raises `InternalError` where none are found.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array, eye_array, hstack, vstack

    many, eye = wanted.size, eye_array(wanted.size)
    # Besides each number, how far above and how far below the wanted one it is: the sum of these is to be least.
    rows = [hstack([csr_array(matrix), csr_array((len(target), 2 * many))]), hstack([eye, -eye, eye])]
    right, far = np.r_[target, wanted], np.full(2 * many, np.inf)
    solved = milp(
        np.r_[np.zeros(many), np.ones(2 * many)],
        constraints=LinearConstraint(vstack(rows).tocsr(), right, right),
        bounds=Bounds(np.r_[low, np.zeros(2 * many)], np.r_[high, far]),
        integrality=np.r_[np.ones(many), np.zeros(2 * many)],
        options={"time_limit": SECONDS},
    )
    if solved.x is None:
        raise InternalError(f"no whole numbers within bounds add up: {solved.message}")
    return np.asarray(np.rint(solved.x[:many]), dtype=np.int64)


def _alone(piece: Tableau) -> Tableau:
    """Return a piece whose cells are counted from 0, the basic ones first."""
    many = len(piece.basic)
    return Tableau(np.arange(many), np.arange(many, many + len(piece.free)), piece.signs)


def _constants(matrix: FloatArray, target: FloatArray, piece: Tableau, at: dict[int, int]) -> IntArray:
    """Return what each basic cell and its signed free cells come to: 0, but for cells that are fixed."""
    some = np.linalg.lstsq(matrix, target.T, rcond=None)[0].T
    basic, free = some[:, [at[int(c)] for c in piece.basic]], some[:, [at[int(c)] for c in piece.free]]
    return np.asarray(np.rint(basic + free @ piece.signs.T), dtype=np.int64)


def _least_squares(noisy: FloatArray, matrix: FloatArray, target: FloatArray, floor: bool) -> FloatArray:
    """Return the nearest real numbers for which matrix @ cells = target, and none is negative if so wanted."""
    back = np.linalg.pinv(matrix)
    real = noisy - (noisy @ matrix.T - target) @ back.T
    if not floor:
        return real
    # Dykstra: only what the floor changed is taken back before the next round.
    owed = np.zeros_like(real)
    for _ in range(_ROUNDS):
        above = np.maximum(real + owed, 0.0)
        owed += real - above
        real = above - (above @ matrix.T - target) @ back.T
        if real.min(initial=0.0) > -_CLOSE:
            break
    return real
