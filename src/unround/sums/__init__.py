"""What sums are, without any numbers: compiled once, and shared by every area of a release.

- `forest`: sums as positions of cells; the forest along which messages travel, pairs of counts (men and women) as nodes
- `multiway`: multi-way tables, such as age by sex by marital status: from sums to innermost cells and axes
- `compiled`: START HERE: `compile_sums`, for any sums, with loops or without
- `families`: areas within areas: which are the same people, which are the parts of one
"""
