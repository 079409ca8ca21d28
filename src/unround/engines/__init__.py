"""Engines: from what is known to what is likely. `choose` takes one system, `forest` and `linked` a block of areas.

One system, without compiled code where none is needed:

- `answer`: what every engine takes and returns
- `choose`: START HERE: chooses an engine, and says why; systems in pieces
- `tree` (with `arrays`): sums without loops, exactly; the likeliest solutions
- `cutset`: loops that few values cut open, and figures, exactly
- `elimination`: tables with one long axis, exactly
- `multiway`: tables by several axes: enumeration, elimination or chains
- `brute`: the reference, in exact fractions

A block of areas (`evidence.cells.Block`), compiled. `forest.posteriors` answers every area on its own and chooses among the
first two; `linked.link` answers areas within areas and chooses, family by family and table by table, among all:

| method           | used for                                        | gives                           | cost               |
|------------------|-------------------------------------------------|---------------------------------|--------------------|
| `forest`         | sums without loops; pairs (men, women) as nodes | exact                           | half a millisecond |
| `multiway_block` | multi-way tables                                | exact if few, or estimates      | some milliseconds  |
| merging          | a parent with one child                         | exact                           | that of one area   |
| `gibbs`          | families of few children, or of narrow windows  | estimates, shrunk to `loopy`'s  | hundredths of a s  |
| `loopy`          | larger families                                 | approximations                  | the same           |
| `linked_tables`  | families with multi-way tables                  | as `multiway_block`             | grows with family  |

How far off each was, where it could be measured, is in `linked_weights.METHODS`, which results refer to.

- `messages` up and down a forest, `marginals` (summaries, draws), and `rates`, published rates in it
- `chains` (with `chain_kernel`): Markov chains over whole tables, their moves, and whether they agree
- `enumeration`: all tables that fit, where they are few; the likeliest; how far each cell can go
"""

from unround.engines.answer import Inference
from unround.engines.choose import ENGINES, infer

__all__ = ["ENGINES", "Inference", "infer"]
