"""How many solutions there are: an exact whole number of any size.

The same pass up the tree as for probabilities, with every possible value weighing 1. Doubles hold whole numbers up to 2^53
exactly; where counts may grow beyond, each is kept as several digits of a smaller base, one array a digit.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from unround.infer.arrays import convolve, fit
from unround.mechanisms.base import FloatArray

if TYPE_CHECKING:
    from unround.infer.tree import Tree

Digits = list[FloatArray]
"""A number at every place of an array: digit k counts (2^bits)^k."""


def count_solutions(tree: Tree, local: list[FloatArray]) -> int:
    """Return the exact number of assignments that fit."""
    possible = [np.sign(array) for array in local]
    if math.prod([array.size for array in possible]) < 2**52:  # no intermediate count can exceed the product of all
        up = tree.upward(possible, tree.sum)
        found = math.prod(float(np.add.reduce(up.belief[root], axis=None)) for root in tree.plan.roots)
        return int(math.ldexp(found, up.exponent))  # exact: scaling is by powers of two
    return _count_in_digits(tree, possible)


def _count_in_digits(tree: Tree, possible: list[FloatArray]) -> int:
    # A correlation adds at most as many products of two digits as the larger array has places.
    lengths = [length for one in tree.chains for _, length in (one.first, *one.forward)]
    widest = max([math.prod(np.atleast_1d(length)) for length in lengths] + [array.size for array in possible])
    # A column of digits adds up at most as many of these as the number has digits, which is below 2^10 for any number of
    # up to 2^14 bits; larger ones are not counted.
    bits = (52 - math.ceil(math.log2(widest)) - 10) // 2
    belief: list[Digits] = [[array] for array in possible]
    for i in range(len(tree.plan.links) - 1, -1, -1):
        spans = tree.chains[i]
        children = [
            _carried([tree.child(digit, end, tree.sum) for digit in belief[end.node]], bits) for end in tree.order[i]
        ]
        current = [fit(digit, spans.first) for digit in children[0]]
        for j in range(1, len(children)):
            span = spans.forward[j]
            current = _combined(current, children[j], bits, lambda a, b, span=span: convolve(a, b, span))
        parent = tree.plan.links[i].parent
        message = [tree.onto(digit, parent) for digit in current]
        belief[parent.node] = _combined(belief[parent.node], message, bits, np.multiply)
    return math.prod(_total(belief[root], bits) for root in tree.plan.roots)


def _combined(a: Digits, b: Digits, bits: int, operation) -> Digits:  # type: ignore[no-untyped-def] # any bilinear one
    """Multiply digit by digit, as on paper, with the operation in the place of the product."""
    columns: list[FloatArray | None] = [None] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            product = operation(x, y)
            column = columns[i + j]
            columns[i + j] = product if column is None else column + product
    return _carried([column for column in columns if column is not None], bits)


def _carried(columns: Digits, bits: int) -> Digits:
    """Bring every digit below the base."""
    base = 2.0**bits
    digits: Digits = []
    carry: FloatArray | None = None
    for column in columns:
        column = column if carry is None else column + carry
        if column.max() < base:
            digits.append(column)
            carry = None
        else:
            carry = np.floor(column / base)
            digits.append(column - carry * base)
    while carry is not None:
        upper = np.floor(carry / base)
        digits.append(carry - upper * base)
        carry = upper if upper.any() else None
    return digits


def _total(digits: Digits, bits: int) -> int:
    return sum(int(np.add.reduce(digit, axis=None)) << (bits * k) for k, digit in enumerate(digits))
