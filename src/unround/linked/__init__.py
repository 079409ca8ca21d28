"""Linked areas: what parents and children in a nesting say about each other's counts.

`batch` treats areas one at a time; this package uses that every count of a parent is the sum of its children's, each rounded
independently. In the order of the flow:

- `bounds`: bound propagation across areas, to a fixpoint; links that contradict are dropped; areas that are the same
  people, and families
- `hidden`: feasibility intervals of hidden counts, by all sums together
- `methods`: the methods for probabilities, when each is used, and its measured error
- `engine`: START HERE: `link` chooses a method for every family
- `weights`: the weights of all possible counts as one flat array, to multiply evidence from other areas into
- `distributions`: summarised into a posterior; those of one area kept whole, for explanations
- `loopy`: large families, by loopy belief propagation
- `gibbs` (with `gibbs_kernel`): small families, by blocked Gibbs sampling, shrunk towards `loopy`
- `tables`: families whose areas have tables by several axes, by chains over the tables of the whole family
- `prover`: certificates that name the cells of several areas
"""
