"""Whole releases at once: many areas with one structure, as arrays and compiled kernels.

`infer` works out one system of any shape; this package does the same for a block of areas whose sums are all alike, and
agrees with it. In the order of the flow:

- `types`: the arrays that everything here takes and gives
- `compile`: the structure that all areas share, made once
- `windows`: what each published count leaves possible
- `tighten`: bounds by all sums together, and which sums they rest on
- `scan` and `lookup`: what each sum says on its own, by look-up
- `posterior`: exact joint posteriors, with `forest`, `buffers`, `sweeps`, `convolution`, `summary`; `sharing`: totals that
  share random numbers with their parts; and `depth`: how many sums away from a cell one must look until its count is likely
- `compiled` and `threads`: how kernels are compiled and run
"""
