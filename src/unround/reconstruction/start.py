"""Where a chain begins: people drawn from the law and raked to the published counts.

More people than live in the area are drawn from the law, and weighted so that they add up to the published counts, column by
column, again and again (iterative proportional fitting). Then as many as live there are drawn by these weights. A chain that
began with the law alone would spend most of its time on the way to an area unlike others, one with a residence of students.
"""

from __future__ import annotations

import numpy as np

from unround.jit import kernel
from unround.reconstruction.arrays import Floats, Int16s, Int32s, Law, Tables, Windows, Words
from unround.reconstruction.chain import uniform, value_of

TIMES, PASSES = 8, 12
"""People drawn for each who lives there, and how often all columns are gone through."""

LEAST = 0.02
"""A column in which nobody was drawn counts as this much, so that others are not multiplied beyond measure."""


@kernel
def raked_people(people: int, law: Law, tables: Tables, rows: Int32s, windows: Windows, seed: int) -> Int16s:
    """Return the values of as many people as live in an area: people × attributes."""
    width, margins, many = law.sizes.shape[0], tables.base.shape[0], TIMES * people
    chance = np.empty(1, np.uint64)
    chance[0] = np.uint64(seed)
    values = np.zeros((many, width), np.int16)
    atoms = np.zeros((margins, many), np.int32)  # a margin's side by side: they are gone through again and again
    for i in range(many):
        for f in range(width):
            start = law.base[f]
            for other in range(width):
                start += law.step[other, values[i, other], f]
            values[i, law.child[f]] = value_of(law, start, law.child[f], chance)
        for m in range(margins):
            atoms[m, i] = tables.base[m]
            for k in range(width):
                atoms[m, i] += tables.step[k, values[i, k], m]
    weight = np.full(many, 1.0 / TIMES)
    known = np.zeros(tables.starts.shape[0] - 1)
    factor = np.zeros(tables.columns)
    for _ in range(PASSES):
        for m in range(margins):
            first = tables.base[m]
            last = tables.base[m + 1] if m + 1 < margins else tables.starts.shape[0] - 1
            known[first:last] = 0.0
            for i in range(many):
                known[atoms[m, i]] += weight[i]
            for a in range(first, last):
                for at in range(tables.starts[a], tables.starts[a + 1]):
                    factor[tables.held[at]] = 0.0
            for a in range(first, last):
                for at in range(tables.starts[a], tables.starts[a + 1]):
                    factor[tables.held[at]] += known[a]
            # What is known of an atom becomes the factor of its people: between those of all columns that it is in.
            for a in range(first, last):
                change, number = 0.0, 0
                for at in range(tables.starts[a], tables.starts[a + 1]):
                    column = tables.held[at]
                    if rows[column] >= 0:
                        low, size = windows.low[rows[column]], windows.size[rows[column]]
                        wanted = min(max(factor[column], low), low + size - 1)
                        change += np.log(max(wanted, LEAST) / max(factor[column], LEAST))
                        number += 1
                known[a] = np.exp(change / number) if number else 1.0
            for i in range(many):
                weight[i] *= known[atoms[m, i]]
    return _chosen(values, weight, people, chance)


@kernel
def _chosen(values: Int16s, weight: Floats, people: int, chance: Words) -> Int16s:
    """Draw people by their weights, at equal distances along all of them."""
    found = np.empty((people, values.shape[1]), np.int16)
    step = weight.sum() / people
    at, reached, wanted = 0, weight[0], uniform(chance) * step
    for i in range(people):
        while reached <= wanted and at + 1 < values.shape[0]:
            at += 1
            reached += weight[at]
        found[i] = values[at]
        wanted += step
    return found
