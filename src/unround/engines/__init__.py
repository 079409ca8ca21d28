"""Engines: from what is known to what is likely. Each takes one value and returns one, and says what it is good for.

One system (`unround solve`): a `Problem` in, an `Inference` out, or why it cannot. `choose` is START HERE: it asks engines
in turn, compiled ones last, and says why one was chosen; its table has what each is exact for, gives and costs.

- `answer`: `Problem`, `Inference`, and what they are made of
- `tree` (with `arrays`): sums without loops, in plain numpy; the likeliest solutions
- `cutset`: loops that few values cut open, and figures
- `multiway`: multi-way tables, for the areas of a block as well: `enumeration` or `chains`
- `brute`: the reference, in exact fractions

A block of areas (`unround audit`): a `Block` in, a `Posterior` out, compiled. `forest.posteriors` answers every area on its
own and chooses among the first two; `linked.link` answers areas within areas and chooses, family by family and table by
table, among all:

| method           | used for                                        | gives                           | cost               |
|------------------|-------------------------------------------------|---------------------------------|--------------------|
| `forest`         | sums without loops; pairs (men, women) as nodes | exact                           | half a millisecond |
| `multiway_block` | multi-way tables, of areas and of families      | exact if few, or estimates      | some milliseconds  |
| merging          | a parent with one child                         | exact                           | that of one area   |
| `gibbs`          | families of few children, or of narrow windows  | estimates, shrunk to `loopy`'s  | hundredths of a s  |
| `loopy`          | larger families                                 | approximations                  | the same           |

How far off each was, where it could be measured, is in `linked_weights.METHODS`, which results refer to. Why families
without multi-way tables are sampled by `gibbs` and not by chains is measured in docs/linked-methods.md.

Why a system is not a block of one area: they share what sums are (`sums`), mechanisms, bounds and chains, and the tests hold
them against each other. But `tree` answers "48! = 20 + 20 + 20" in .3 s of processor, imports included, in plain numpy; the
kernels of a block take .7 s, and 19 s where they were never compiled. And an `Inference` has what no area of a release is
asked for: the number of solutions, of any size, and the best of them; cells that nothing bounds, negative published counts,
priors by cell, means and medians in probabilities. A block would have to learn all this, and no line of `tree` or `choose`
would go.

- `messages` up and down a forest, `marginals` (summaries, draws), and `rates`, published rates in it
- `chains` (with `chain_kernel`): Markov chains over whole tables, their moves, and whether they agree
- `enumeration`: all tables that fit, where they are few; the likeliest
"""

from unround.engines.answer import Inference
from unround.engines.choose import ENGINES, infer

__all__ = ["ENGINES", "Inference", "infer"]
