"""What is possible, what is not, and why: no probabilities.

- `propagation`: START HERE: what sums say about the cells of one system, until nothing changes; the material of proofs
- `tighten`: the same for many areas at once, compiled
- `search`: solutions and bounds of systems of any shape, by CP-SAT or Z3
- `linked`: bounds between areas; feasibility intervals of hidden counts, by all sums together
- `certificates`: proofs written out step by step; `prover`: of counts of a block, by the sums that their bounds rest on
- `clash`: the smallest set of published cells and sums that cannot hold together
"""
