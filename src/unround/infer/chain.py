"""The geometry of a link: where the partial sums of its children can lie.

A link parent = x₁ + … + xₙ is gone through part by part: s₀ = 0, sⱼ = sⱼ₋₁ + xⱼ, sₙ = parent. Each partial sum is cut to
what the parts before it can give and what the parts after it and the parent still allow. The spans depend on the bounds
alone, so that one geometry serves every pass over the numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unround.infer.arrays import Span


@dataclass(slots=True)
class Chain:
    """Spans for `arrays.fit`, one a child, and the cost of one pass.

    Parameters
    ----------
    first : Span
        From the first child's array to the first partial sum.
    forward : list of Span
        forward[j] is the span of the convolution of the sum of the first j children with child j that is the sum of j + 1.
    backward : list of Span
        backward[j] is the span of the correlation of what is known of the sum of j + 1 children with child j that is known
        of the sum of j.
    child : list of Span
        child[j] is the span of the correlation of the former with the sum of the first j children that is known of child j;
        child[0] cuts it out of what is known of the first partial sum.
    lows : list
        lows[j] is the least partial sum of j + 1 children that the arrays hold.
    work : int
        Multiplications in a forward pass.
    """

    first: Span
    forward: list[Span]
    backward: list[Span]
    child: list[Span]
    lows: list[Any]
    work: int


def chain(lows: list[int], highs: list[int], parent_low: int, parent_high: int) -> Chain:
    """Lay out a link of single counts, its children in the order given."""
    last = len(lows) - 1
    least, most = lows[0], highs[0]
    after_low, after_high = sum(lows) - least, sum(highs) - most
    if last:
        low = max(least, parent_low - after_high)
        high = min(most, parent_high - after_low)
    else:
        low, high = parent_low, parent_high
    first: Span = (low - least, high - low + 1)
    forward: list[Span] = [(0, 0)]
    backward: list[Span] = [(0, 0)]
    child: list[Span] = [(least - low, most - least + 1)]
    starts = [low]
    work = 0
    for j in range(1, last + 1):
        part_low, part_high = lows[j], highs[j]
        after_low -= part_low
        after_high -= part_high
        least += part_low
        most += part_high
        if j < last:
            next_low = least if least > parent_low - after_high else parent_low - after_high
            next_high = most if most < parent_high - after_low else parent_high - after_low
        else:
            next_low, next_high = parent_low, parent_high
        length, width = next_high - next_low + 1, part_high - part_low + 1
        forward.append((next_low - low - part_low, length))
        backward.append((low - next_low + part_high, high - low + 1))
        child.append((part_low - next_low + high, width))
        starts.append(next_low)
        work += length * width
        low, high = next_low, next_high
    return Chain(first, forward, backward, child, starts, work)


def pair_chain(
    lows: list[tuple[int, int]],
    highs: list[tuple[int, int]],
    parent_low: tuple[int, int],
    parent_high: tuple[int, int],
) -> Chain:
    """Lay out a link of pairs of counts: a chain along each axis, joined."""
    rows = chain([low[0] for low in lows], [high[0] for high in highs], parent_low[0], parent_high[0])
    columns = chain([low[1] for low in lows], [high[1] for high in highs], parent_low[1], parent_high[1])
    work = 0
    for j in range(1, len(lows)):
        height, width = rows.forward[j][1], columns.forward[j][1]
        work += height * width * (highs[j][0] - lows[j][0] + 1) * (highs[j][1] - lows[j][1] + 1)
    return Chain(
        _joined(rows.first, columns.first),
        [_joined(a, b) for a, b in zip(rows.forward, columns.forward, strict=True)],
        [_joined(a, b) for a, b in zip(rows.backward, columns.backward, strict=True)],
        [_joined(a, b) for a, b in zip(rows.child, columns.child, strict=True)],
        list(zip(rows.lows, columns.lows, strict=True)),
        work,
    )


def _joined(a: Span, b: Span) -> Span:
    return (a[0], b[0]), (a[1], b[1])
