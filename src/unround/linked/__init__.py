"""Areas within areas: what parents and children say about each other's counts.

`batch` works out areas one by one; this package puts to use that every count of a parent is the sum of its children's, each
rounded by itself. In the order of the flow:

- `bounds`: bounds across areas, to a fixpoint; links that contradict are dropped
- `families`: areas that are one and the same, and families
- `engine`: START HERE: `link` chooses a method for every family, and says which
- `weights`, `summaries`, `kept`: what is known of cells, count by count; what is reported of it; all of it for one area
- `loopy`, `telling`: many children, by messages between areas
- `sampled`, `gibbs`, `persons`, `towards`: few children, by random draws that are drawn towards messages
- `methods`: how exact each method is, as measured
- `proofs`: certificates that name the cells of several areas
"""
