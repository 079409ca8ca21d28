"""Whole releases: many areas with one structure, as arrays and compiled kernels.

`infer` solves one system of any shape; this package does the same for a block of areas that share their sums, and agrees
with it. In the order of the flow:

- `types`: the arrays that everything here takes and returns
- `compiled_sums`: the structure that all areas share, compiled once, and as tables for the kernels
- `windows`: the true counts that each published count leaves possible
- `tighten`: bounds by all sums together, and which sums they depend on
- `posterior`: START HERE: exact joint posteriors, by `sum_product` on the `evidence` (and `keys`), in `buffers`, with
  `convolution` and `summary`; `rates`: published rates in it; `sampling`: draws of whole areas; `depth`: how many sums away
  from a cell one must look until
  its count is likely; `loops`: tables by several axes, by chains
"""
