"""Engines: from what is known to what is likely. `choose` takes one system, `forest` and `linked` a block of areas.

One system, without compiled code where none is needed:

- `answer`: what every engine takes and returns
- `choose`: START HERE: chooses an engine, and says why; systems in pieces
- `tree` (with `arrays`): sums without loops, exactly; the likeliest solutions
- `cutset`: loops that few values cut open, and figures, exactly
- `elimination`: tables with one long axis, exactly
- `multiway`: tables by several axes: enumeration, elimination or chains
- `brute`: the reference, in exact fractions

A block of areas, compiled:

- `forest`: START HERE: exact joint posteriors by sum-product, with `messages` up and down, `marginals` (summaries, draws,
  depths) and `rates`, published rates in it
- `multiway_block`: multi-way tables, by chains, or by going through all tables
- `chains` (with `chain_kernel`): Markov chains over whole tables, their moves, and whether they agree
- `enumeration`: all tables that fit, where they are few; the likeliest; how far each cell can go
- `linked`: areas within areas; chooses a method for every family, with `linked_weights`
- `gibbs`: small families, by blocked Gibbs sampling, shrunk towards `loopy`: large ones, by loopy belief propagation
- `linked_tables`: families whose areas have multi-way tables
"""

from unround.engines.answer import Inference
from unround.engines.choose import ENGINES, infer

__all__ = ["ENGINES", "Inference", "infer"]
