"""Tables by several axes, such as age by sex by marital status, with all their totals: probabilities where sums form loops.

Every cell of such a table is a set of its innermost cells, the leaves: a tree crossed with a tree. Nothing here needs more
than that, so that overlapping groups, cells that are missing and totals that are exact are all welcome.

- `table`: from sums to leaves and axes, once per structure
- `moves`: the steps that lead from one table that adds up to another
- `weights`: what each cell's published value says of its true count, as one array
- `kernel`: the chain: draws whole tables, and counts what it sees
- `chains`: START HERE: probabilities by several chains, their standard errors, and whether the chains agree
- `listing`: all tables that fit, one after the other, where they are few
- `elimination`: exact probabilities where one axis is long and the others have few cells together
- `reach`: how far each cell can go, shown by tables that fit
- `best`: the likeliest tables near those that a chain has seen
"""
